//! Who may come in, where to, and what those who may not are told.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ::atlas::wire::Capabilities;

use super::common::{Atlas, Bed, Kind, Login, Node, Refused, Wire, config_for, eventually};
use super::stage::Stage;

/// What is said to one who says nothing: the beginning of a greeting, or everything up to the close.
fn told(address: SocketAddr) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).expect("connect");
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("timeout");
    let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
    // A greeting waits for an answer. A refusal does not.
    while bytes.get(4) != Some(&10) {
        match socket.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            // The close may arrive as a reset, behind the packet.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} behind {}", bytes.escape_ascii()),
        }
    }
    bytes
}

/// A refusal before the greeting: one ERR packet with sequence id 0 and no SQL state.
fn refusal(code: u16, text: &str) -> Vec<u8> {
    let payload = [&[0xff][..], &code.to_le_bytes(), text.as_bytes()].concat();
    super::common::frame(0, &payload)
}

#[test]
fn b178_too_many_clients_are_told_so_and_closed() {
    let bed = Bed::mariadb();
    let atlas = Atlas::start(
        config_for(&bed)
            .server("max_connections = 1")
            .server("workers = 2"),
    );
    let address = atlas.address();
    // The one that looked whether Atlas is there may not be gone yet.
    let mut held = None;
    eventually("there is room", || {
        held = Wire::try_connect(address, &Login::plain()).ok();
        held.is_some()
    });
    let mut held = held.expect("there is room");
    for _ in 0..5 {
        assert_eq!(told(address), refusal(1040, "Too many connections"));
    }
    assert_eq!(held.query("SELECT 1").cell(), "1");
    held.quit();
    eventually("there is room again", || {
        Wire::try_connect(address, &Login::plain()).is_ok()
    });
}

#[test]
fn addresses_that_may_not_connect() {
    let bed = Bed::mariadb();
    for networks in ["10.0.0.0/8", "192.168"] {
        let atlas =
            Atlas::start(config_for(&bed).server(&format!("client_networks = [\"{networks}\"]")));
        let text = "Host '127.0.0.1' is not allowed to connect to this MySQL server";
        assert_eq!(told(atlas.address()), refusal(1130, text));
    }
    let atlas =
        Atlas::start(config_for(&bed).server("client_networks = [\"10.0.0.0/8\", \"127.0.0\"]"));
    Wire::connect(atlas.address(), &Login::plain());
}

#[test]
fn clients_over_a_unix_socket() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        // Addresses do not matter to it.
        let stage = Stage::with(kind, "", |config| {
            config
                .server("listen = [\"{listen}\", \"unix:{dir}/atlas.sock\"]")
                .user(
                    "near",
                    "near-pw",
                    &[
                        "networks = [\"10.9.8.0/24\"]",
                        "backend = { user = \"plain\", password = \"plain-pw\" }",
                    ],
                )
        });
        let path = stage.atlas.dir().join("atlas.sock");
        for login in [
            stage.login(),
            Login::new("near", "near-pw").schema(&stage.schema),
        ] {
            let mut client = Wire::try_connect_unix(&path, &login).expect("a log-in");
            assert_eq!(
                stage
                    .on_replica(&mut client, "SELECT v FROM t WHERE id=1")
                    .cell(),
                "10"
            );
            stage
                .on_primary(&mut client, "INSERT INTO t(v) VALUES(1)")
                .assert_ok();
            client.quit();
        }
        let refused = Wire::try_connect_unix(&path, &Login::new("plain", "wrong"));
        let Err(Refused::Error {
            code: 1045, text, ..
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert!(text.contains("'plain'@'localhost'"), "{text}");
        let near = Wire::try_connect(stage.atlas.address(), &Login::new("near", "near-pw"));
        assert!(
            matches!(near, Err(Refused::Error { code: 1045, .. })),
            "{near:?}"
        );
        let mut atlas = stage.atlas;
        atlas.signal("TERM");
        assert!(atlas.wait(Duration::from_secs(10)).success());
        assert!(!path.exists(), "the socket's file is left behind");
    }
}

#[test]
fn clients_are_spread_evenly_over_workers() {
    const WORKERS: usize = 4;
    let bed = Bed::mariadb();
    let config = config_for(&bed)
        .server(&format!("workers = {WORKERS}"))
        .server("listen = [\"{listen}\", \"unix:{dir}/atlas.sock\"]");
    let atlas = Atlas::start(config);
    let path = atlas.dir().join("atlas.sock");
    let mut clients = Vec::new();
    let mut counts = [0_usize; WORKERS];
    // Few and many, by either way in.
    for round in 0..10 {
        for _ in 0..WORKERS {
            let client = if round % 2 == 0 {
                Wire::connect(atlas.address(), &Login::plain())
            } else {
                Wire::try_connect_unix(&path, &Login::plain()).expect("a log-in")
            };
            // Bits 24 to 29 of the id that the client is told are its worker.
            counts[usize::try_from(client.id >> 24 & 0x3f).expect("small")] += 1;
            clients.push(client);
        }
        // The one that looked whether Atlas is there may still have counted in the first round.
        assert!(
            counts.iter().all(|count| count.abs_diff(round + 1) <= 1),
            "round {round}: {counts:?}"
        );
    }
    for client in &mut clients {
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
    let mut ids: Vec<u32> = clients.iter().map(|client| client.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), clients.len(), "ids are unique");
}

#[test]
fn b190_running_out_of_descriptors_is_nobody_elses_fault() {
    const LIMIT: usize = 90;
    let stage = Stage::mariadb();
    let atlas = Atlas::start_limited(
        config_for(&stage.bed)
            .server("workers = 2")
            .group("primary_wait = \"500ms\""),
        LIMIT,
    );
    let login = stage.login();
    let mut first = Wire::connect(atlas.address(), &login);
    first.query("SELECT v FROM t WHERE id=1").assert_ok();
    first.ok("INSERT INTO t(v) VALUES(1)");
    // Those have no server connections yet.
    let fresh = Login::plain();
    let mut waiting: Vec<Wire> = (0..6)
        .map(|_| Wire::connect(atlas.address(), &fresh))
        .collect();
    // More sockets than Atlas can have.
    let sockets: Vec<TcpStream> = (0..LIMIT + 60)
        .map(|_| TcpStream::connect(atlas.address()).expect("the kernel takes them"))
        .collect();
    // Whoever comes now is told, not left waiting.
    eventually("the limit is reached", || {
        told(atlas.address()) == refusal(1040, "Too many connections")
    });
    // One that was there goes on; one that needs a server connection now is told what is wrong.
    first.ok("INSERT INTO t(v) VALUES(2)");
    assert_eq!(first.query("SELECT v FROM t WHERE id=1").cell(), "10");
    for client in &mut waiting {
        let (code, _, text) = client
            .query("SELECT 1")
            .error()
            .expect("no descriptor is left");
        assert_eq!(code, 1203);
        assert!(text.contains("open files"), "{text}");
    }
    drop(sockets);
    eventually("new clients come in again", || {
        Wire::greet_within(atlas.address(), Duration::from_millis(200)).is_ok()
    });
    for client in &mut waiting {
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
    // Full service, replicas included, and at once: no server was taken for dead.
    stage.trail();
    let mut clients = Vec::new();
    eventually("all of those who left are gone", || {
        clients.extend(Wire::try_connect(atlas.address(), &login));
        clients.len() == 10
    });
    for client in &mut clients {
        assert_eq!(
            stage
                .on_replica(client, "SELECT v FROM t WHERE id=1")
                .cell(),
            "10"
        );
        client.ok("INSERT INTO t(v) VALUES(3)");
    }
    let log = atlas.log();
    assert!(
        !log.contains("passed over") && !log.contains("is out"),
        "{log}"
    );
}

/// What a vanished host leaves behind is found by the kernel's probes: each client's socket has them on, well below an hour.
#[test]
fn b192_clients_are_watched_by_keepalive() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    client.ok("BEGIN");
    let port = stage.atlas.address().port();
    // "sl local_address rem_address st tx:rx tr:tm->when …": tr 2 is a keepalive timer, when its jiffies (hundredths of a second). While
    // something is on its way another timer runs.
    let mut seen = Vec::new();
    eventually("every client is watched", || {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc/net/tcp");
        seen = table
            .lines()
            .map(|line| {
                line.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter(|row| row[1].ends_with(&format!(":{port:04X}")) && row[3] == "01")
            .map(|row| row[5].clone())
            .collect();
        !seen.is_empty() && seen.iter().all(|timer| timer.starts_with("02:"))
    });
    for timer in seen {
        let hundredths = u64::from_str_radix(&timer[3..], 16).expect("a number");
        assert!(hundredths <= 60 * 100, "{hundredths}");
    }
}

#[test]
fn b070_the_greeting_is_the_primarys() {
    for stage in Stage::both() {
        let through = Wire::greet(stage.atlas.address()).expect("a greeting");
        let direct = Wire::greet(stage.bed.address(Node::Primary)).expect("a greeting");
        assert_eq!(through.version, direct.version);
        // Behind the version, the id, eight bytes of nonce and a zero: two bytes of capabilities, the collation, the status.
        let at = 1 + direct.version.len() + 1 + 4 + 8 + 1 + 2;
        assert_eq!(
            through.greeting.payload[at..at + 3],
            direct.greeting.payload[at..at + 3]
        );
        let extra = through.offered.without(direct.offered);
        assert_eq!(extra.0, 0, "more than the server can: {extra:?}");
        let less = direct.offered.without(through.offered);
        // What Atlas cannot do.
        let known = Capabilities::SSL
            | Capabilities::COMPRESS
            | Capabilities::ZSTD_COMPRESSION_ALGORITHM
            | Capabilities::MULTI_FACTOR_AUTHENTICATION
            | Capabilities::CAPABILITY_EXTENSION
            | Capabilities::MARIADB_COM_MULTI
            // Two servers answer one session, so what one has described may not be left out by the other.
            | Capabilities::MARIADB_CACHE_METADATA;
        assert_eq!(less.without(known).0, 0, "{less:?}");
        let atlas =
            Atlas::start(config_for(&stage.bed).server("server_version = \"8.0.36-myproxy\""));
        let told = Wire::greet(atlas.address()).expect("a greeting");
        assert_eq!(told.version, "8.0.36-myproxy");
    }
}
