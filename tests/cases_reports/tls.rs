//! Reports about TLS and about the ways in to servers: every mode, every plugin, unix sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use ::atlas::wire::{Capabilities, Greeting, SslRequest};
use socket2::SockRef;

use super::common::{
    Atlas, Bed, Config, Kind, Login, Node, Refused, Wire, config_for, eventually, unique_name,
};
use super::stage::Stage;

const MODES: [&str; 5] = [
    "off",
    "preferred",
    "required",
    "verify-ca",
    "verify-identity",
];

fn to_clients(config: Config, bed: &Bed, mode: &str) -> Config {
    let tls = bed.tls.display();
    config.server(&format!(
        "tls = {{ mode = \"{mode}\", cert = \"{tls}/server-cert.pem\", key = \"{tls}/server-key.pem\" }}"
    ))
}

fn to_servers(config: Config, bed: &Bed, mode: &str, ca: &str) -> Config {
    config.group(&format!(
        "tls = {{ mode = \"{mode}\", ca = \"{}/{ca}\" }}",
        bed.tls.display()
    ))
}

/// The cipher of the server connection that answers; empty without TLS.
fn cipher(client: &mut Wire, hint: &str) -> String {
    let sql = format!("{hint} SHOW STATUS LIKE 'Ssl_cipher'");
    client.query(&sql).rows()[0][1].clone().expect("a value")
}

#[test]
fn clients_may_or_must_use_tls() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        let optional = Atlas::start(to_clients(config_for(&bed), &bed, "optional"));
        let required = Atlas::start(to_clients(config_for(&bed), &bed, "required"));
        let off = Atlas::start(config_for(&bed));
        for plugin in ["caching_sha2_password", "mysql_native_password"] {
            let plain = Login::plain().plugin(plugin);
            let tls = plain.clone().tls(&bed.ca());
            for (atlas, login) in [
                (&optional, &plain),
                (&optional, &tls),
                (&required, &tls),
                (&off, &plain),
            ] {
                let mut client = Wire::connect(atlas.address(), login);
                assert_eq!(client.query("SELECT 1").cell(), "1");
                // COM_CHANGE_USER goes on in the same TLS.
                client
                    .change_user(&Login {
                        tls: None,
                        ..login.clone()
                    })
                    .expect("the same user");
                assert_eq!(client.query("SELECT 2").cell(), "2");
            }
            let refused = Wire::try_connect(required.address(), &plain);
            assert!(
                matches!(refused, Err(Refused::Error { code: 3159, .. })),
                "{refused:?}"
            );
            let refused = Wire::try_connect(off.address(), &tls);
            assert!(matches!(refused, Err(Refused::Tls(_))), "{refused:?}");
            let wrong = Login {
                password: "wrong".to_owned(),
                ..tls.clone()
            };
            let refused = Wire::try_connect(required.address(), &wrong);
            assert!(
                matches!(refused, Err(Refused::Error { code: 1045, .. })),
                "{refused:?}"
            );
        }
        let other = Login::plain().tls(&bed.tls.join("other-cacert.pem"));
        let refused = Wire::try_connect(optional.address(), &other);
        assert!(matches!(refused, Err(Refused::Tls(_))), "{refused:?}");
    }
}

#[test]
fn tls_to_servers_in_every_mode() {
    for stage in Stage::both() {
        for mode in MODES {
            let config = to_servers(config_for(&stage.bed), &stage.bed, mode, "cacert.pem");
            let atlas = Atlas::start(config);
            let mut client = Wire::connect(atlas.address(), &stage.login());
            stage.trail();
            let on_replica = cipher(&mut client, "");
            client.query("SELECT v FROM t WHERE id=1").assert_ok();
            let on_primary = cipher(&mut client, "/*master*/");
            assert_eq!(on_primary.is_empty(), mode == "off", "{mode}: {on_primary}");
            assert_eq!(on_replica.is_empty(), mode == "off", "{mode}: {on_replica}");
            // Reads get there in TLS too.
            let read = client.query("SELECT v FROM t WHERE id=1");
            assert_eq!(read.cell(), "10");
            let trail = stage.trail();
            assert!(
                trail.iter().any(|seen| Node::REPLICAS.contains(&seen.node)),
                "{mode}: {trail:?}"
            );
        }
    }
}

#[test]
fn accounts_that_must_use_tls_need_it_to_the_server() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        let config = || config_for(&bed).user("tlsonly", "tlsonly-pw", &["schema = \"bed\""]);
        let login = Login::new("tlsonly", "tlsonly-pw");
        let atlas = Atlas::start(to_servers(config(), &bed, "required", "cacert.pem"));
        let mut client = Wire::connect(atlas.address(), &login);
        assert_eq!(client.query("SELECT 1").cell(), "1");
        let atlas = Atlas::start(config());
        let refused = Wire::try_connect(atlas.address(), &login);
        assert!(
            matches!(refused, Err(Refused::Error { code: 1045, .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn servers_with_the_wrong_authority_are_not_talked_to() {
    for stage in Stage::both() {
        for mode in MODES {
            let config = to_servers(config_for(&stage.bed), &stage.bed, mode, "other-cacert.pem");
            let atlas = Atlas::start(config.group("primary_wait = \"0s\""));
            stage.trail();
            let client = Wire::try_connect(atlas.address(), &stage.login());
            if mode.starts_with("verify") {
                let Err(Refused::Error {
                    code: 1105, text, ..
                }) = client
                else {
                    panic!("{mode}: {client:?}");
                };
                assert!(text.contains("certificate"), "{text}");
                assert!(stage.full_trail().is_empty(), "the log-in was sent");
            } else {
                assert_eq!(client.expect("unverified").query("SELECT 1").cell(), "1");
            }
        }
    }
}

/// A port on another loopback address, whose bytes go to `to`: the certificate there does not name it.
fn forwarder(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").expect("a loopback address");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(to) else {
                continue;
            };
            for (mut from, mut to) in [
                (
                    client.try_clone().expect("a handle"),
                    server.try_clone().expect("a handle"),
                ),
                (server, client),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    address
}

#[test]
fn a_certificate_must_name_the_server_where_identity_is_verified() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        let elsewhere = forwarder(bed.address(Node::Primary));
        let by_name = format!("localhost:{}", bed.address(Node::Primary).port());
        for (mode, primary, works) in [
            ("verify-ca", elsewhere.to_string(), true),
            ("verify-identity", elsewhere.to_string(), false),
            ("verify-identity", by_name, true),
        ] {
            let config = to_servers(config_for(&bed), &bed, mode, "cacert.pem")
                .group(&format!("primary = \"{primary}\""))
                .group("replicas = []")
                .group("primary_wait = \"0s\"");
            let atlas = Atlas::start(config);
            let client = Wire::try_connect(
                atlas.address(),
                &Login {
                    schema: Some("bed".to_owned()),
                    ..Login::plain()
                },
            );
            match client {
                Ok(mut client) => {
                    assert!(works, "{mode} {primary}");
                    assert!(!cipher(&mut client, "").is_empty());
                }
                Err(refused) => {
                    assert!(
                        !works && matches!(refused, Refused::Error { code: 1105, .. }),
                        "{mode} {primary}: {refused:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn ed25519_accounts() {
    let stage = Stage::mariadb();
    for mode in ["off", "required"] {
        let config = to_servers(config_for(&stage.bed), &stage.bed, mode, "cacert.pem");
        let atlas = Atlas::start(config);
        // Clients prove the password by the plugins that Atlas has.
        for plugin in ["caching_sha2_password", "mysql_native_password"] {
            let login = Login::new("ed", "ed-pw")
                .schema(&stage.schema)
                .plugin(plugin);
            let mut client = Wire::connect(atlas.address(), &login);
            assert_eq!(client.query("SELECT v FROM t WHERE id=1").cell(), "10");
            client.ok("INSERT INTO t(v) VALUES(1)");
            assert_eq!(client.query("SELECT CURRENT_USER()").cell(), "ed@%");
        }
    }
}

/// An account that no server has seen before is in no server's cache: its first log-in needs the whole password there.
#[test]
fn caching_sha2_with_a_cold_cache() {
    let stage = Stage::mysql();
    let mut root = stage.root();
    for (mode, by_socket) in [("off", false), ("required", false), ("off", true)] {
        let user = unique_name("s").replace('_', "");
        root.ok(&format!(
            "CREATE USER {user}@'%' IDENTIFIED WITH caching_sha2_password BY 'cold-pw'"
        ));
        root.ok(&format!("GRANT ALL ON {}.* TO {user}@'%'", stage.schema));
        stage.bed.wait_replicas();
        let mut config = to_servers(config_for(&stage.bed), &stage.bed, mode, "cacert.pem").user(
            &user,
            "cold-pw",
            &[],
        );
        if by_socket {
            config = over_sockets(config, &stage.bed);
        }
        let atlas = Atlas::start(config);
        let login = Login::new(&user, "cold-pw").schema(&stage.schema);
        for _ in 0..2 {
            let mut client = Wire::connect(atlas.address(), &login);
            client.ok("INSERT INTO t(v) VALUES(1)");
            assert_eq!(
                client.query("SELECT v FROM t WHERE id=1").cell(),
                "10",
                "{mode}"
            );
        }
        root.ok(&format!("DROP USER {user}@'%'"));
    }
}

fn over_sockets(config: Config, bed: &Bed) -> Config {
    let path = |node| format!("unix:{}", bed.server(node).socket.display());
    let replicas: Vec<String> = Node::REPLICAS
        .iter()
        .map(|node| format!("{{ address = \"{}\" }}", path(*node)))
        .collect();
    config
        .group(&format!("primary = \"{}\"", path(Node::Primary)))
        .group(&format!("replicas = [{}]", replicas.join(", ")))
}

#[test]
fn servers_behind_unix_sockets() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        // So that the last client opens connections too.
        let own = |config: Config| config.all_users("sharing = \"session\"");
        let stage = Stage::on(bed, "", |config| over_sockets(own(config), &Bed::of(kind)));
        let mut client = stage.client();
        stage
            .on_primary(&mut client, "INSERT INTO t(v) VALUES(1)")
            .assert_ok();
        assert_eq!(
            stage
                .on_replica(&mut client, "SELECT v FROM t WHERE id=1")
                .cell(),
            "10"
        );
        let mut fresh = stage.client();
        fresh.query("SELECT 1").assert_ok();
        let how: Vec<_> = stage
            .full_trail()
            .into_iter()
            .filter(|seen| seen.entry.command == "Connect")
            .collect();
        assert!(
            !how.is_empty()
                && how
                    .iter()
                    .all(|seen| seen.entry.text.contains("using Socket")),
            "{how:?}"
        );
        let log = stage.atlas.log();
        assert!(!log.contains("failed"), "{log}");
    }
}

#[test]
fn b139_clients_that_break_off_in_tls_harm_nobody() {
    const BREAKERS: usize = 60;
    let bed = Bed::mariadb();
    let config = to_servers(
        to_clients(config_for(&bed), &bed, "optional"),
        &bed,
        "required",
        "cacert.pem",
    );
    let config = config.append("[pool]\nmin_idle = 0\nmax_connections = 5");
    let atlas = Atlas::start(config.server("workers = 2"));
    let (address, ca) = (atlas.address(), bed.ca());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let steady: Vec<_> = (0..6)
            .map(|number| {
                let (done, ca) = (&done, &ca);
                scope.spawn(move || {
                    let login = if number % 2 == 0 {
                        Login::plain()
                    } else {
                        Login::plain().tls(ca)
                    };
                    let mut client = Wire::connect(address, &login);
                    let mut count = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) || count < 100 {
                        assert_eq!(client.query("SELECT 1").cell(), "1");
                        count += 1;
                    }
                })
            })
            .collect();
        for n in 0..BREAKERS {
            break_off(address, n % 5);
            if n % 4 == 0 {
                // Some come through.
                let mut client = Wire::connect(address, &Login::plain().tls(&ca));
                assert_eq!(client.query("SELECT 1").cell(), "1");
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for client in steady {
            client.join().expect("no error");
        }
    });
    let log = atlas.log();
    assert!(
        !log.contains("is out") && !log.contains("passed over"),
        "{log}"
    );
    eventually("all but idle ones are given back", || {
        atlas.open_files() < 40 + 3 * 5
    });
}

/// A client that asks for TLS and breaks off at some point, by a reset.
fn break_off(address: SocketAddr, stage: usize) {
    let mut socket = TcpStream::connect(address).expect("connect");
    SockRef::from(&socket)
        .set_linger(Some(Duration::ZERO))
        .expect("linger");
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("timeout");
    let mut greeting = [0; 512];
    let n = socket.read(&mut greeting).expect("a greeting");
    let greeting = Greeting::parse(&greeting[4..n]).expect("a greeting");
    assert!(greeting.capabilities.contains(Capabilities::SSL));
    let mut request = Vec::new();
    SslRequest {
        capabilities: Login::USUAL | Capabilities::SSL,
        max_packet: 1 << 24,
        charset: 45,
    }
    .write(&mut request, 1);
    // A record's head that announces 512 bytes of a hello.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..], &[7; 40]].concat();
    match stage {
        0 => {}
        1 => socket.write_all(&request).expect("send"),
        2 => socket.write_all(&[request, hello].concat()).expect("send"),
        3 => socket
            .write_all(&[request, vec![0x55; 300]].concat())
            .expect("send"),
        _ => {
            // A plain log-in where TLS was announced.
            socket
                .write_all(&[request, vec![3, 0, 0, 2, 1, 2, 3]].concat())
                .expect("send");
            let _ = socket.read(&mut [0; 64]);
        }
    }
}

/// Sessions of these, once seen on the server, must be gone within two seconds after their client.
fn sleeps_go_with_their_client(stage: &Stage, atlas: &Atlas, login: &Login) {
    for (sql, node) in [
        ("SELECT SLEEP(60)", None),
        ("SELECT SLEEP(60) FROM t FOR UPDATE", Some(Node::Primary)),
        ("INSERT INTO u SELECT SLEEP(60)", Some(Node::Primary)),
    ] {
        stage.trail();
        let mut client = Wire::connect(atlas.address(), login);
        let payload = client.query_payload(sql.as_bytes());
        client.send(&payload);
        let mut found = None;
        eventually("the statement runs", || {
            found = stage.trail().into_iter().find(|seen| seen.is(sql));
            found.is_some()
        });
        let seen = found.expect("it runs");
        assert!(node.is_none_or(|node| node == seen.node), "{seen:?}");
        drop(client);
        let left = Instant::now();
        let mut root = stage.bed.root(seen.node);
        let id = seen.entry.connection.to_string();
        eventually(sql, || {
            let rows = root.query("SHOW PROCESSLIST").rows();
            !rows.iter().any(|row| row[0].as_deref() == Some(&id))
        });
        assert!(
            left.elapsed() < Duration::from_secs(2),
            "{sql}: {:?}",
            left.elapsed()
        );
    }
}

#[test]
fn b140_a_sleep_ends_with_its_client() {
    for stage in Stage::both() {
        sleeps_go_with_their_client(&stage, &stage.atlas, &stage.login());
    }
}

#[test]
fn b140_a_sleep_ends_with_its_client_where_tls_is_required() {
    for stage in Stage::both() {
        let config = to_servers(config_for(&stage.bed), &stage.bed, "required", "cacert.pem").user(
            "tlsonly",
            "tlsonly-pw",
            &[],
        );
        let atlas = Atlas::start(to_clients(config, &stage.bed, "optional"));
        let login = Login::new("tlsonly", "tlsonly-pw")
            .schema(&stage.schema)
            .tls(&stage.bed.ca());
        sleeps_go_with_their_client(&stage, &atlas, &login);
    }
}

/// Everything at once over TLS on both sides: pieces larger than a record, a frame, and the buffers.
#[test]
fn long_packets_over_tls_on_both_sides() {
    const LEN: usize = (1 << 24) + 4321;
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        let config = to_servers(
            to_clients(config_for(&bed), &bed, "required"),
            &bed,
            "required",
            "cacert.pem",
        );
        let atlas = Atlas::start(config);
        let mut client = Wire::connect(atlas.address(), &Login::plain().tls(&bed.ca()));
        let text = format!("SELECT LENGTH('{}')", "x".repeat(LEN));
        assert_eq!(client.query(&text).cell(), LEN.to_string());
        let reply = client.query(&format!("SELECT REPEAT('y', {LEN})"));
        assert_eq!(reply.cell().len(), LEN);
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}
