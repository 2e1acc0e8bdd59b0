//! The HTTP port: what it answers, when this instance is ready, and that nobody can keep a health check away.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{
    Atlas, Bed, Expect, Login, Node, Wire, config_for, eventually, http_exchange, http_get, http_of,
};

fn with_http() -> (Bed, Atlas, SocketAddr) {
    let bed = Bed::mariadb();
    let atlas = Atlas::start(config_for(&bed).server("http_listen = \"127.0.0.1:0\""));
    let address = http_of(&atlas.log()).expect("the log names the port");
    (bed, atlas, address)
}

/// A44, A45.
#[test]
fn every_page() {
    let (bed, atlas, http) = with_http();
    assert_eq!(http_get(http, "/healthz"), (200, "ok\n".to_owned()));
    // Not before its first server connections are there.
    eventually("it is ready", || {
        http_get(http, "/readyz") == (200, "ready\n".to_owned())
    });
    let mut clients: Vec<Wire> = (0..3)
        .map(|_| Wire::connect(atlas.address(), &Login::plain()))
        .collect();
    // The one that looked whether Atlas is there may not be gone yet.
    eventually("three clients are counted", || {
        http_get(http, "/metrics").1.contains("\natlas_clients 3\n")
    });
    let (status, metrics) = http_get(http, "/metrics");
    assert_eq!(status, 200);
    for line in ["atlas_up 1", "atlas_ready 1", "atlas_clients_max 10000"] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}\n{metrics}"
        );
    }
    for (node, role) in [
        (Node::Primary, "primary"),
        (Node::Replica1, "replica"),
        (Node::Replica2, "replica"),
    ] {
        let line = format!(
            "\natlas_backend_up{{group=\"main\",address=\"{}\",role=\"{role}\"}} 1\n",
            bed.address(node)
        );
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    let (status, page) = http_get(http, "/");
    assert!(
        status == 200 && page.contains("3 of 10000 clients") && page.contains("<td>up</td>"),
        "{page}"
    );
    clients[0].ok("BEGIN");
    let primary = bed.address(Node::Primary);
    let in_use = format!(
        "\natlas_backend_connections{{group=\"main\",address=\"{primary}\",role=\"primary\",state=\"in_use\"}} 1\n"
    );
    assert!(http_get(http, "/metrics").1.contains(&in_use));
    assert_eq!(clients[1].query("SELECT no_such_column").error_code(), 1054);
    let refused = Wire::try_connect(atlas.address(), &Login::new("nobody", "x"));
    assert!(refused.is_err());
    let metrics = http_get(http, "/metrics").1;
    for line in [
        "atlas_statements_total{kind=\"begin\",route=\"primary\",reason=\"transaction-control\"} 1",
        "atlas_pins{reason=\"transaction\"} 1",
        "atlas_pins{reason=\"temporary-table\"} 0",
        "atlas_errors_total{code=\"1054\"} 1",
        "atlas_refused_total{reason=\"access-denied\"} 1",
        "atlas_slow_total 0",
        "atlas_added_seconds_count{stage=\"acquire\"} 2",
        "atlas_added_seconds_count{stage=\"sync\"} 2",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}\n{metrics}"
        );
    }
    assert!(metrics.contains("\natlas_bytes_total{direction=\"to_clients\"} "));
    clients[0].ok("ROLLBACK");
    assert_eq!(http_get(http, "/metrics/").0, 404);
    assert!(http_exchange(http, b"POST /readyz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(http_exchange(http, b"HEAD /readyz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    assert!(http_exchange(http, b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Bytes behind the request are no reason to lose the answer.
    let body = [
        &b"GET /healthz HTTP/1.1\r\nContent-Length: 9999\r\n\r\n"[..],
        &[b'x'; 9999],
    ]
    .concat();
    assert!(http_exchange(http, &body).ends_with("\r\n\r\nok\n"));
    for client in &mut clients {
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn offline_is_for_health_checks_only() {
    let (_bed, atlas, http) = with_http();
    atlas.signal("USR2");
    eventually("offline", || {
        http_get(http, "/readyz") == (503, "offline\n".to_owned())
    });
    assert_eq!(http_get(http, "/healthz").0, 200);
    assert!(http_get(http, "/metrics").1.contains("\natlas_ready 0\n"));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    assert_eq!(client.query("SELECT 1").cell(), "1");
    atlas.signal("USR1");
    eventually("online", || http_get(http, "/readyz").0 == 200);
}

#[test]
fn while_it_drains_health_checks_are_told() {
    let (_bed, mut atlas, http) = with_http();
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("BEGIN");
    atlas.signal("TERM");
    eventually("draining", || {
        http_get(http, "/readyz") == (503, "draining\n".to_owned())
    });
    assert_eq!(http_get(http, "/healthz").0, 200);
    client.ok("COMMIT");
    assert!(atlas.wait(Duration::from_secs(10)).success());
}

/// What systemd is told, by which it knows that a start and a stop are done.
#[test]
fn a_service_manager_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).expect("bind");
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    let heard = || {
        let mut buffer = [0; 200];
        let n = manager.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..n].to_vec()).expect("UTF-8")
    };
    let socket = path.to_string_lossy();
    let config = config_for(&Bed::mariadb());
    let mut atlas = Atlas::try_start(config, &[("NOTIFY_SOCKET", &socket)]).expect("it starts");
    assert!(heard().starts_with("READY=1\n"));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("BEGIN");
    atlas.signal("TERM");
    // While a transaction is still open.
    let told = heard();
    assert!(
        told.starts_with("STOPPING=1\n") && told.ends_with("\nEXTEND_TIMEOUT_USEC=40000000"),
        "{told}"
    );
    client.ok("COMMIT");
    assert!(atlas.wait(Duration::from_secs(10)).success());
}

/// Servers that accept and say nothing: Atlas waits for their first check, and says so.
#[test]
fn before_it_is_ready_health_checks_are_told() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nhttp_listen = \"127.0.0.1:0\"\n\
         [[groups]]\nname = \"main\"\nprimary = \"{}\"\n[[users]]\nname = \"u\"\npassword = \"\"\n[monitor]\nuser = \"m\"\npassword = \"\"\ntimeout = \"5s\"\n",
        silent.local_addr().expect("bound")
    );
    std::fs::write(folder.path().join("atlas.toml"), config).expect("write");
    let log = folder.path().join("log");
    let mut atlas = Command::new(env!("CARGO_BIN_EXE_atlas"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(&log).expect("create"))
        .spawn()
        .expect("start");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let mut http = None;
    eventually("the log names the port", || {
        http = http_of(&read());
        http.is_some()
    });
    let http = http.expect("found");
    let first = http_get(http, "/readyz");
    assert_eq!(http_get(http, "/healthz").0, 200);
    let is_starting = !read().contains("ready: ");
    let mut later = first.clone();
    eventually("it gets ready", || {
        later = http_get(http, "/readyz");
        later.0 == 200
    });
    let _ = atlas.kill();
    let _ = atlas.wait();
    // Unless this test was held up for seconds, that was before it was ready.
    assert!(
        !is_starting || first == (503, "starting\n".to_owned()),
        "{first:?}"
    );
}

/// Who sends nothing, or half of something, is in nobody's way and does not stay.
#[test]
fn slow_clients_keep_nobody_away() {
    let (_bed, atlas, http) = with_http();
    // The first server connections are there.
    eventually("it is ready", || http_get(http, "/readyz").0 == 200);
    let before = atlas.open_files();
    let mut idle = Vec::new();
    for round in 0..300 {
        let mut socket = TcpStream::connect(http).expect("connect");
        if round % 2 == 0 {
            socket
                .write_all(b"GET /metrics HTTP/1.1\r\nA: ")
                .expect("send");
        }
        idle.push(socket);
        if round % 50 == 49 {
            let start = Instant::now();
            assert_eq!(http_get(http, "/healthz").0, 200);
            // A generous limit, and well below the five seconds after which those are closed.
            assert!(
                start.elapsed() < Duration::from_secs(4),
                "{:?}",
                start.elapsed()
            );
        }
    }
    assert!(atlas.open_files() <= before + 70, "{}", atlas.open_files());
    // One who never ends its head is told so.
    let mut socket = TcpStream::connect(http).expect("connect");
    let _ = socket.write_all(&[b'a'; 9000]);
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for mut socket in idle {
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("timeout");
        match socket.read(&mut [0; 10]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{other:?}"),
        }
    }
    eventually("their descriptors are free", || {
        atlas.open_files() <= before
    });
}

/// A sum of `atlas_added_seconds`, and how many times it is made of.
fn added(http: SocketAddr, stage: &str) -> (f64, u64) {
    let metrics = http_get(http, "/metrics").1;
    let figure = |name: &str| {
        let begins = format!("atlas_added_seconds_{name}{{stage=\"{stage}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&begins));
        line.unwrap_or_else(|| panic!("{begins}\n{metrics}"))
            .to_owned()
    };
    let sum = figure("sum").parse().expect("a number");
    (sum, figure("count").parse().expect("a number"))
}

#[test]
fn what_atlas_adds_is_told_by_stage() {
    let bed = Bed::mysql();
    let config = config_for(&bed)
        .server("http_listen = \"127.0.0.1:0\"")
        .append("[pool]\nmax_connections = 1\nmin_idle = 1\n");
    let atlas = Atlas::start(config);
    let http = http_of(&atlas.log()).expect("the log names the port");
    let mut holder = Wire::connect(atlas.address(), &Login::plain());
    let mut waiter = Wire::connect(atlas.address(), &Login::plain());
    holder.ok("BEGIN");
    let (before, statements) = added(http, "acquire");
    // The only connection is another one's.
    waiter.send(&waiter.query_payload(b"DO 1"));
    assert!(!waiter.speaks_within(Duration::from_millis(300)));
    holder.ok("COMMIT");
    waiter.reply(Expect::Text).assert_ok();
    let (after, more) = added(http, "acquire");
    assert!(
        after - before >= 0.3 && more == statements + 2,
        "{before} {after}"
    );

    // One connection for two sessions that have set different things.
    let (before, _) = added(http, "sync");
    for client in [&mut holder, &mut waiter] {
        client.ok("SET group_concat_max_len = 4321");
    }
    waiter.ok("SET group_concat_max_len = 1234");
    for _ in 0..5 {
        holder.ok("DO @@group_concat_max_len");
        waiter.ok("DO @@group_concat_max_len");
    }
    let (after, count) = added(http, "sync");
    assert!(after > before && count > 10, "{before} {after} {count}");

    // Of what the loop does itself a part is looked at.
    eventually("stages are seen", || {
        for _ in 0..200 {
            waiter.ok("DO 1");
        }
        ["queue", "route", "relay"]
            .iter()
            .all(|stage| added(http, stage).1 > 2)
    });
}
