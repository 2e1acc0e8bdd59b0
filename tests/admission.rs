//! Who is let in: addresses, what a balancer says of them (the PROXY protocol), guessing of passwords, and what clients leave
//! behind that do not come as far as a session.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use common::*;

/// The balancer of these tests is this machine.
const TRUSTED: &str = "proxy_protocol_from = [\"127.0.0.0/8\"]";

fn behind(config: Config) -> Atlas {
    // Its greeting is not awaited: whoever speaks no PROXY gets none.
    Atlas::start_behind(config.server(TRUSTED))
}

fn line(client: &str) -> Vec<u8> {
    let family = if client.contains(':') { "TCP6" } else { "TCP4" };
    let own = if client.contains(':') {
        "::1"
    } else {
        "10.0.0.1"
    };
    format!("PROXY {family} {client} {own} 50000 3306\r\n").into_bytes()
}

/// Version 2. `command` is 0x21 for a client's connection, 0x20 for the balancer's own.
fn binary(command: u8, client: &str, fields: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    let family = match client.parse().expect("an address") {
        std::net::IpAddr::V4(ip) => {
            rest.extend_from_slice(&ip.octets());
            rest.extend_from_slice(&[10, 0, 0, 1]);
            0x11
        }
        std::net::IpAddr::V6(ip) => {
            rest.extend_from_slice(&ip.octets());
            rest.extend_from_slice(&[0; 16]);
            0x21
        }
    };
    rest.extend_from_slice(&[0xc3, 0x50, 0x0c, 0xea]);
    rest.extend_from_slice(fields);
    let len = u16::try_from(rest.len()).expect("short").to_be_bytes();
    [
        b"\r\n\r\n\0\r\nQUIT\n",
        &[command, family, len[0], len[1]][..],
        &rest,
    ]
    .concat()
}

fn log_in(atlas: &Atlas, header: &[u8], login: &Login) -> Result<Wire, Refused> {
    Wire::greet_behind(atlas.address(), header, header.len())?.log_in(login)
}

fn denied(result: Result<Wire, Refused>) -> (u16, String) {
    match result {
        Err(Refused::Error { code, text, .. }) => (code, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_client_is_who_the_balancer_says() {
    for bed in Bed::both() {
        let config = config_for(&bed)
            .server("client_networks = [\"198.51.100\", \"2001:db8::/32\", \"192.0.2.0/24\"]")
            .user(
                "near",
                "near-pw",
                &[
                    "networks = [\"192.0.2.0/24\"]",
                    "backend = { user = \"plain\", password = \"plain-pw\" }",
                ],
            );
        let atlas = behind(config);
        let headers = [
            line("192.0.2.7"),
            line("2001:db8::7"),
            binary(0x21, "192.0.2.7", b""),
            binary(0x21, "2001:db8::7", b"\x02\0\x02ab\x05\0\0"),
            binary(
                0x21,
                "198.51.100.7",
                &[&[0xee, 0x0f, 0x00][..], &[0; 0xf00]].concat(),
            ),
        ];
        for header in &headers {
            let mut client = log_in(&atlas, header, &Login::plain()).expect("log-in");
            assert_eq!(client.query("SELECT 1").cell(), "1");
        }
        // Cut at every byte.
        for header in [&headers[0], &headers[2]] {
            for cut in 1..header.len() {
                let wire = Wire::greet_behind(atlas.address(), header, cut).expect("a greeting");
                let mut client = wire.log_in(&Login::plain()).expect("log-in");
                assert_eq!(client.query("SELECT 1").cell(), "1");
            }
        }
        // Its address decides, by which the balancer's own would have been refused too.
        for (header, host) in [
            (line("203.0.113.9"), "203.0.113.9"),
            (binary(0x21, "203.0.113.9", b""), "203.0.113.9"),
            (binary(0x21, "::ffff:203.0.113.9", b""), "203.0.113.9"),
            (line("2001:db9::1"), "2001:db9::1"),
            (binary(0x20, "192.0.2.7", b""), "127.0.0.1"),
            (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        ] {
            let (code, text) = denied(Wire::greet_behind(atlas.address(), &header, 5));
            assert_eq!(code, 1130);
            assert!(text.starts_with(&format!("Host '{host}' ")), "{text}");
        }
        let wrong = Login::new("plain", "guess");
        let (code, text) = denied(log_in(&atlas, &line("192.0.2.9"), &wrong));
        assert_eq!(code, 1045);
        assert_eq!(
            text,
            "Access denied for user 'plain'@'192.0.2.9' (using password: YES)"
        );
        // The account's own networks.
        let near = Login::new("near", "near-pw");
        assert_eq!(denied(log_in(&atlas, &line("198.51.100.7"), &near)).0, 1045);
        let mut client = log_in(&atlas, &line("192.0.2.7"), &near).expect("log-in");
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn a_balancer_checks_for_itself() {
    let atlas = behind(config_for(&Bed::mariadb()));
    for header in [
        binary(0x20, "192.0.2.7", b""),
        [b"\r\n\r\n\0\r\nQUIT\n", &[0x20, 0, 0, 0][..]].concat(),
        b"PROXY UNKNOWN\r\n".to_vec(),
    ] {
        log_in(&atlas, &header, &Login::plain()).expect("log-in");
        let wrong = denied(log_in(&atlas, &header, &Login::new("plain", "x")));
        assert!(wrong.1.contains("'plain'@'127.0.0.1'"), "{wrong:?}");
    }
}

/// What is no header: one error, and the end.
#[test]
fn headers_that_are_none() {
    let atlas = behind(config_for(&Bed::mariadb()));
    let unclear = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 5000]].concat();
    let mut oversize = binary(0x21, "192.0.2.7", &vec![0; 40_000]);
    let mut command = binary(0x21, "192.0.2.7", b"");
    command[12] = 0x2f;
    let mut family = binary(0x21, "192.0.2.7", b"");
    family[13] = 0x71;
    oversize.truncate(30_000);
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n".to_vec(),
        b"PROXY TCP4 2001:db8::7 10.0.0.1 1 2\r\n".to_vec(),
        // A log-in, as of somebody who does not know of the header.
        frame(1, &[0; 32]),
        unclear,
        oversize,
        command,
        family,
    ] {
        for cut in [1, bytes.len()] {
            let refused = denied(Wire::greet_behind(atlas.address(), &bytes, cut));
            assert_eq!(refused.0, 1043, "{}", bytes.escape_ascii());
            let answer = refusal(atlas.address(), &bytes);
            assert_eq!(answer[4..7], [0xff, 0x13, 0x04], "one error");
            assert_eq!(usize::from(answer[0]) + 4, answer.len(), "and the end");
        }
    }
    log_in(&atlas, &line("192.0.2.7"), &Login::plain()).expect("log-in");
}

/// From elsewhere a header is a log-in that cannot be read, and says nothing.
#[test]
fn from_others_no_header_is_taken() {
    let bed = Bed::mariadb();
    let atlas = Atlas::start(config_for(&bed).server("proxy_protocol_from = [\"192.0.2.0/24\"]"));
    for header in [line("192.0.2.7"), binary(0x21, "192.0.2.7", b"")] {
        let mut wire = Wire::greet(atlas.address()).expect("a greeting");
        wire.send_bytes(&header);
        let error = wire.try_packet().expect("an error");
        assert_eq!(error.payload[..3], [0xff, 0x13, 0x04]);
        assert!(wire.read_to_close().is_empty());
    }
    Wire::connect(atlas.address(), &Login::plain());
}

/// What `client_networks` keeps out, with CIDR and the original's prefixes.
#[test]
fn networks_of_the_instance() {
    let bed = Bed::mariadb();
    for (networks, is_allowed) in [
        ("[\"127.0.0.1\"]", true),
        ("[\"127.0.0\"]", true),
        ("[\"127.0.0.0/8\", \"10.0.0.0/8\"]", true),
        ("[\"::1\", \"10.0.0.0/8\"]", false),
        ("[\"127.0.1\"]", false),
        ("[\"127.0.0.2\"]", false),
    ] {
        let atlas = Atlas::start(config_for(&bed).server(&format!("client_networks = {networks}")));
        let result = Wire::try_connect(atlas.address(), &Login::plain());
        if is_allowed {
            result.expect("log-in");
            continue;
        }
        assert_eq!(denied(result).0, 1130, "{networks}");
        let answer = refusal(atlas.address(), b"");
        assert_eq!(
            usize::from(answer[0]) + 4,
            answer.len(),
            "one packet, and the end"
        );
    }
}

#[test]
fn networks_of_an_account() {
    for bed in Bed::both() {
        let config = config_for(&bed)
            .user(
                "far",
                "far-pw",
                &["networks = [\"10.0.0.0/8\", \"192.168\"]"],
            )
            .all_users("sharing = \"transaction\"");
        let atlas = Atlas::start(config);
        let far = Login::new("far", "far-pw");
        let text = "Access denied for user 'far'@'127.0.0.1' (using password: YES)";
        let expected = (1045, text.to_owned());
        assert_eq!(denied(Wire::try_connect(atlas.address(), &far)), expected);
        // The same words as for an account that does not exist, and for a change of users.
        let unknown = Wire::try_connect(atlas.address(), &Login::new("nobody", "x"));
        assert_eq!(denied(unknown).1, text.replace("far", "nobody"));
        let mut client = Wire::connect(atlas.address(), &Login::plain());
        let changed = client.change_user(&far);
        assert_eq!(denied(changed.map(|_| client)), expected);
    }
}

/// Guessing takes its time; who has the password never waits, from the same address too.
#[test]
fn guesses_are_answered_later_and_later() {
    let atlas = behind(config_for(&Bed::mariadb()));
    let wrong = Login::new("plain", "guess");
    let guess = |from: &str| {
        let start = Instant::now();
        assert_eq!(denied(log_in(&atlas, &line(from), &wrong)).0, 1045);
        start.elapsed()
    };
    for _ in 0..5 {
        guess("192.0.2.7");
    }
    // The sixth is put off by a quarter of a second, the eighth by a whole one.
    assert!(guess("192.0.2.7") >= Duration::from_millis(250));
    assert!(guess("192.0.2.7") >= Duration::from_millis(500));
    let guesser = log_in_later(&atlas, &line("192.0.2.7"), &wrong);
    let mut client = log_in(&atlas, &line("192.0.2.7"), &Login::plain()).expect("log-in");
    assert_eq!(client.query("SELECT 1").cell(), "1");
    guess("192.0.2.8");
    assert!(
        !guesser.is_finished(),
        "the guesser waits while others were served"
    );
    assert!(guesser.join().expect("the guesser") >= Duration::from_secs(1));
    atlas.wait_log(
        "Access denied for user 'plain'@'192.0.2.7' (using password: YES); 8 times in a row",
    );
    // Who does not wait for the answer leaves nothing.
    let mut idle = Wire::greet_behind(atlas.address(), &line("192.0.2.7"), 99).expect("greeting");
    let files = atlas.open_files();
    idle.send_as(1, &wrong_password());
    drop(idle);
    eventually("the guesser's socket is closed", || {
        atlas.open_files() < files
    });
}

/// A log-in of `plain` with a token that is none.
fn wrong_password() -> Vec<u8> {
    let login = ::atlas::wire::Login {
        capabilities: Login::USUAL,
        max_packet: 1 << 24,
        charset: 45,
        user: b"plain",
        auth: &[7; 32],
        schema: None,
        plugin: Some(b"caching_sha2_password"),
        attributes: b"",
        zstd_level: None,
    };
    let mut framed = Vec::new();
    login.write(&mut framed, 1);
    framed.split_off(4)
}

fn log_in_later(atlas: &Atlas, header: &[u8], login: &Login) -> std::thread::JoinHandle<Duration> {
    let wire = Wire::greet_behind(atlas.address(), header, header.len()).expect("a greeting");
    let login = login.clone();
    std::thread::spawn(move || {
        let start = Instant::now();
        assert_eq!(denied(wire.log_in(&login)).0, 1045);
        start.elapsed()
    })
}

/// Clients that vanish, say nothing, or say what is no log-in, 10,000 of them: nothing of them stays.
#[test]
fn ten_thousand_that_never_log_in_leave_nothing() {
    let bed = Bed::mariadb();
    let atlas = Atlas::start(
        config_for(&bed)
            .server("max_connections = 20000")
            .append("[pool]\nmin_idle = 0"),
    );
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    // With both replicas, so that no further connection is opened later.
    for _ in 0..6 {
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
    let round = |count: usize| {
        std::thread::scope(|scope| {
            for part in 0..4 {
                let address = atlas.address();
                scope.spawn(move || (0..count / 4).for_each(|n| spoil(address, n * 4 + part)));
            }
        });
    };
    let settled = |files: usize| {
        eventually("all sockets are closed", || atlas.open_files() <= files);
    };
    // What the first ones make Atlas keep, such as buffers, is not of each.
    let files = atlas.open_files();
    round(1000);
    settled(files);
    let (memory, threads) = (atlas.memory_kib("VmRSS"), atlas.memory_kib("Threads"));
    round(10_000);
    settled(files);
    assert_eq!(atlas.memory_kib("Threads"), threads);
    let grown = atlas.memory_kib("VmRSS").saturating_sub(memory);
    assert!(grown < 4096, "{grown} KiB more");
    assert_eq!(client.query("SELECT 1").cell(), "1");
    // Those that say nothing have their time, and then no longer.
    let silent: Vec<TcpStream> = (0..500)
        .map(|_| TcpStream::connect(atlas.address()).expect("connect"))
        .collect();
    let start = Instant::now();
    for stream in &silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("timeout");
        let mut bytes = Vec::new();
        let ended = { stream }.read_to_end(&mut bytes);
        assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    }
    assert!(start.elapsed() < Duration::from_secs(15));
    settled(files);
    assert_eq!(client.query("SELECT 1").cell(), "1");
}

/// One client that never logs in, of one of eight kinds.
fn spoil(address: SocketAddr, n: usize) {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    let bytes: &[u8] = match n % 8 {
        // Gone at once.
        0 => return,
        // A beginning, and gone.
        1 => {
            let _ = stream.write_all(b"\x40\0\0");
            return;
        }
        2 => b"\xff\xff\xff\x01",
        3 => b"\0\0\0\x01",
        4 => b"\x05\0\0\x07hello",
        5 => b"\x20\0\0\x01\0\x82\0\0\0\0\0\x01\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        6 => b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        // A half, and then the end of what it says.
        _ => {
            let _ = stream.write_all(b"\x40\0\0\x01\x0d\xa6\x0f");
            let _ = stream.shutdown(Shutdown::Write);
            b""
        }
    };
    let _ = stream.write_all(bytes);
    // It is told why, or just closed on.
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "not closed"),
    }
}

/// Everything that is answered to these first bytes, up to the end.
fn refusal(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    stream.write_all(bytes).expect("send");
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .expect("an answer and the end");
    answer
}
