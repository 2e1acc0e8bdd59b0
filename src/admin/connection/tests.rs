//! A client's bytes, one by one, and what it is told.

use super::super::{Answer, Command, Report, Table};
use super::*;
use crate::auth::{Secret, caching_sha2_scramble, native_scramble};
use crate::wire::{ErrPacket, Packets, SslRequest};

const NONCE: [u8; 20] = *b"12345678901234567890";
const FRESH: [u8; 20] = *b"abcdefghijklmnopqrst";

struct Client {
    connection: Connection,
    users: Vec<AdminUser>,
    received: Vec<u8>,
    out: Vec<u8>,
}

impl Client {
    fn new() -> Self {
        let user = |name: &str, is_operator| AdminUser {
            name: name.to_owned(),
            passwords: vec![Secret::from("old"), Secret::from("pw")],
            is_operator,
        };
        let mut out = Vec::new();
        let connection = Connection::new(
            5,
            "10.0.0.9".to_owned(),
            "8.0.36-Atlas".to_owned(),
            Plugin::CachingSha2,
            NONCE,
        );
        connection.greet(&mut out);
        let greeting = Greeting::parse(&out[4..]).unwrap();
        assert_eq!(
            (greeting.nonce, greeting.plugin),
            (NONCE, &b"caching_sha2_password"[..])
        );
        out.clear();
        Self {
            connection,
            users: vec![user("admin", true), user("eye", false)],
            received: Vec::new(),
            out,
        }
    }

    fn logged_in(user: &str) -> Self {
        let mut client = Self::new();
        assert_eq!(client.log_in(user, "pw", Plugin::CachingSha2), Step::Said);
        assert!(client.connection.is_logged_in());
        client.out.clear();
        client
    }

    /// The bytes arrive one by one, which must make no difference.
    fn arrive(&mut self, bytes: &[u8]) -> Step {
        let mut last = Step::More;
        for byte in bytes {
            self.received.push(*byte);
            loop {
                let mut nonce = || FRESH;
                let mut cx = Cx {
                    users: &self.users,
                    nonce: &mut nonce,
                };
                let (done, step) = self
                    .connection
                    .on_bytes(&mut cx, &self.received, &mut self.out);
                self.received.drain(..done);
                if step == Step::More {
                    break;
                }
                last = step;
                if last == Step::Close {
                    return last;
                }
            }
        }
        last
    }

    fn packet(&mut self, seq: u8, payload: &[u8]) -> Step {
        let mut bytes = Vec::new();
        write_payload(&mut bytes, seq, payload);
        self.arrive(&bytes)
    }

    fn log_in(&mut self, user: &str, password: &str, plugin: Plugin) -> Step {
        let auth = token(plugin, password, &NONCE);
        let mut bytes = Vec::new();
        Login {
            capabilities: OFFERED,
            max_packet: 1 << 24,
            charset: 45,
            user: user.as_bytes(),
            auth: &auth,
            schema: None,
            plugin: Some(plugin.name().as_bytes()),
            attributes: b"",
            zstd_level: None,
        }
        .write(&mut bytes, 1);
        self.arrive(&bytes)
    }

    fn query(&mut self, text: &str) -> Step {
        let mut payload = vec![3, 0, 1];
        payload.extend_from_slice(text.as_bytes());
        self.out.clear();
        self.packet(0, &payload)
    }

    fn payloads(&self) -> Vec<Vec<u8>> {
        let mut packets = Packets::new(&self.out);
        let payloads = packets
            .by_ref()
            .map(|(_, payload)| payload.to_vec())
            .collect();
        assert_eq!(packets.rest(), b"");
        payloads
    }

    fn error(&self) -> (u16, String) {
        let payloads = self.payloads();
        let error = ErrPacket::parse(payloads.last().expect("a packet")).unwrap();
        (
            error.code,
            String::from_utf8(error.message.to_vec()).unwrap(),
        )
    }
}

fn token(plugin: Plugin, password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    match plugin {
        Plugin::CachingSha2 => caching_sha2_scramble(password.as_bytes(), nonce).to_vec(),
        Plugin::Native => native_scramble(password.as_bytes(), nonce).to_vec(),
    }
}

#[test]
fn both_plugins_log_in() {
    let mut client = Client::new();
    assert_eq!(
        client.log_in("admin", "pw", Plugin::CachingSha2),
        Step::Said
    );
    assert_eq!(client.payloads()[0], [1, 3]);
    assert_eq!(client.payloads()[1][0], 0);
    let mut client = Client::new();
    client.log_in("eye", "old", Plugin::Native);
    assert!(client.connection.is_logged_in());
    // One whose plugin is another is told which to use.
    let mut client = Client::new();
    let mut bytes = Vec::new();
    Login {
        capabilities: OFFERED,
        max_packet: 1 << 24,
        charset: 45,
        user: b"admin",
        auth: b"x",
        schema: Some(b"db"),
        plugin: Some(b"mysql_clear_password"),
        attributes: b"",
        zstd_level: None,
    }
    .write(&mut bytes, 1);
    assert_eq!(client.arrive(&bytes), Step::Said);
    assert_eq!(client.payloads()[0][0], 0xfe);
    let answer = token(Plugin::CachingSha2, "pw", &FRESH);
    assert_eq!(client.packet(3, &answer), Step::Said);
    assert!(client.connection.is_logged_in());
}

#[test]
fn log_ins_that_are_refused() {
    for (user, password, plugin) in [
        ("admin", "wrong", Plugin::CachingSha2),
        ("admin", "wrong", Plugin::Native),
        ("nobody", "pw", Plugin::CachingSha2),
        ("nobody", "pw", Plugin::Native),
        ("", "pw", Plugin::Native),
    ] {
        let mut client = Client::new();
        let step = client.log_in(user, password, plugin);
        assert!(
            matches!(step, Step::Denied { is_guess: true, .. }),
            "{step:?}"
        );
        let text = format!("Access denied for user '{user}'@'10.0.0.9' (using password: YES)");
        assert_eq!(client.error(), (1045, text));
        assert!(!client.connection.is_logged_in());
    }
}

#[test]
fn malformed_log_ins() {
    let mut ssl = Vec::new();
    SslRequest {
        capabilities: OFFERED,
        max_packet: 1,
        charset: 45,
    }
    .write(&mut ssl, 1);
    let mut long = vec![0xff, 0xff, 0x7f, 1];
    long.extend_from_slice(&[0; 100]);
    for (bytes, code) in [
        (b"\x00\0\0\x01".to_vec(), 1043),
        (b"\x01\0\0\x01\x03".to_vec(), 1043),
        (b"\x09\0\0\x00\x03SELECT 1".to_vec(), 1156),
        (long, 1043),
        (b"\x06\0\0\x01\x05\x00\0\0\0\0".to_vec(), 1251),
        // Nobody offered it.
        (ssl, 1043),
    ] {
        let mut client = Client::new();
        assert_eq!(client.arrive(&bytes), Step::Close, "{bytes:02x?}");
        assert_eq!(client.error().0, code, "{bytes:02x?}");
    }
    // One that says half of it is waited for.
    assert_eq!(Client::new().arrive(b"\x20\0\0\x01\x00"), Step::More);
}

#[test]
fn who_may_do_what() {
    let mut eye = Client::logged_in("eye");
    assert_eq!(eye.query("SET OFFLINE 1"), Step::Said);
    let (code, text) = eye.error();
    assert_eq!(code, 1227);
    assert!(text.contains("'eye' is a viewer"), "{text}");
    let step = eye.query("SHOW POOLS;");
    let Step::Run(request) = step else {
        panic!("{step:?}")
    };
    assert_eq!(request.command, Command::Show(Report::Pools));
    assert_eq!(request.who.to_string(), "eye@10.0.0.9");
    let mut admin = Client::logged_in("admin");
    assert!(matches!(admin.query("SET OFFLINE 1"), Step::Run(_)));
    // Logging in as another is another role.
    let mut change = vec![17];
    change.extend_from_slice(b"eye\0\0\0\x2d\0caching_sha2_password\0\0");
    admin.out.clear();
    assert_eq!(admin.packet(0, &change), Step::Said);
    let answer = token(Plugin::CachingSha2, "pw", &FRESH);
    assert_eq!(admin.packet(2, &answer), Step::Said);
    assert_eq!(admin.query("SET OFFLINE 1"), Step::Said);
    assert_eq!(admin.error().0, 1227);
}

#[test]
fn answers() {
    let mut client = Client::logged_in("eye");
    let Step::Run(request) = client.query("SELECT * FROM backends") else {
        panic!()
    };
    let mut table = Table::new(["backend_ndx#", "address"]);
    table.push(["1".to_owned(), "10.0.0.1:3306".to_owned()]);
    client.out.clear();
    client
        .connection
        .answer(&request, &Answer::Table(table), &mut client.out);
    let payloads = client.payloads();
    assert_eq!(payloads[0], [2]);
    assert!(payloads[1].windows(11).any(|w| w == b"backend_ndx"));
    assert_eq!(payloads[3], b"\x011\x0d10.0.0.1:3306");
    assert_eq!(payloads[4][0], 0xfe);
    client.out.clear();
    client.connection.answer(
        &request,
        &Answer::Refused(Refusal::new("no")),
        &mut client.out,
    );
    assert_eq!(client.error(), (1105, "no".to_owned()));
    client.out.clear();
    client
        .connection
        .answer(&request, &Answer::Ok, &mut client.out);
    assert_eq!(client.payloads(), [b"\0\0\0\x02\0\0\0"]);
    assert_eq!(client.query("select @@version_comment limit 1"), Step::Said);
    assert_eq!(client.payloads()[2], b"\x0bAtlas admin");
}

#[test]
fn commands_of_the_protocol() {
    let mut client = Client::logged_in("admin");
    for (payload, first) in [
        (&b"\x0e"[..], 0),
        (b"\x02db", 0),
        (b"\x1f", 0),
        (b"\x1b\0\0", 0),
        (b"\x09", b'T'),
        (b"\x04t\0", 0xff),
        (b"\x12", 0xff),
        (b"", 0xff),
        (b"\xee", 0xff),
    ] {
        client.out.clear();
        assert_eq!(client.packet(0, payload), Step::Said);
        assert_eq!(client.payloads()[0][0], first, "{payload:02x?}");
    }
    assert_eq!(client.error().0, 1105);
    assert!(matches!(
        client.packet(0, b"\x0c\x07\0\0\0"),
        Step::Run(Request {
            command: Command::Kill {
                id: 7,
                query_only: false
            },
            ..
        })
    ));
    assert_eq!(client.packet(0, b"\x01"), Step::Close);
}

#[test]
fn prepared_commands() {
    let mut client = Client::logged_in("admin");
    client.packet(0, b"\x16SHOW POOLS");
    assert_eq!(client.payloads()[0], b"\x00\x01\0\0\0\0\0\0\0\0\0\0");
    let Step::Run(request) = client.packet(0, b"\x17\x01\0\0\0\0\x01\0\0\0") else {
        panic!()
    };
    let mut table = Table::new(["n#"]);
    table.push(["12".to_owned()]);
    client.out.clear();
    client
        .connection
        .answer(&request, &Answer::Table(table), &mut client.out);
    // A binary row; the column is a text in it.
    assert_eq!(client.payloads()[2], b"\0\0\x0212");
    client.packet(0, b"\x19\x01\0\0\0");
    client.packet(0, b"\x17\x01\0\0\0\0\x01\0\0\0");
    assert_eq!(client.error().0, 1243);
    for _ in 0..PREPARED_MAX {
        client.packet(0, b"\x16DRAIN");
    }
    client.packet(0, b"\x16DRAIN");
    assert_eq!(client.error().0, 1461);
    client.packet(0, b"\x16KILL ?");
    assert_eq!(client.connection.prepared.len(), PREPARED_MAX);
}

#[test]
fn too_long_for_a_command() {
    let mut client = Client::logged_in("admin");
    let mut payload = vec![3, 0, 1];
    payload.resize(1 << 17, b';');
    let mut bytes = Vec::new();
    write_payload(&mut bytes, 0, &payload);
    let mut nonce = || FRESH;
    let mut cx = Cx {
        users: &client.users,
        nonce: &mut nonce,
    };
    let (done, step) = client.connection.on_bytes(&mut cx, &bytes, &mut client.out);
    assert_eq!((done, step), (bytes.len(), Step::Said));
    assert_eq!(client.error().0, 1105);
    assert_eq!(client.arrive(b"\xff\xff\xff\x00"), Step::Close);
    assert_eq!(client.error().0, 1153);
}
