//! B30: the breaker of `[pool]`: a server that takes no further connections is left alone, while those that exist go on.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::*;

/// The way to a server that can be closed to new connections.
struct Gateway {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    /// Connections that came while it was closed.
    refused: Arc<AtomicUsize>,
}

impl Gateway {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let gateway = Self {
            address: listener.local_addr().expect("bound"),
            is_closed: Arc::default(),
            refused: Arc::default(),
        };
        let (is_closed, refused) = (gateway.is_closed.clone(), gateway.refused.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if is_closed.load(Ordering::SeqCst) {
                    refused.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                pump(&client, &server);
                pump(&server, &client);
            }
        });
        gateway
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

fn pump(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("fd"), to.try_clone().expect("fd"));
    let _ = from.set_nodelay(true);
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn metric(http: SocketAddr, gateway: &Gateway) -> String {
    let needle = format!("address=\"{}\"", gateway.address);
    let text = http_get(http, "/metrics").1;
    let line = text
        .lines()
        .find(|line| line.starts_with("atlas_backend_breaker_open") && line.contains(&needle));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.unwrap_or_else(|| panic!("{text}")).to_owned()
}

const POOL: &str = "[pool]\nmin_idle = 0\nconnect_rate = 1000\n\
                    breaker = { failure_ratio = 0.5, window = \"10s\", open_for = \"2s\" }\n\
                    [monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"50ms\"\nrise = 1\n";

#[test]
fn reads_go_elsewhere_while_it_is_open() {
    for bed in Bed::both() {
        let gateway = Gateway::to(bed.address(Node::Replica1));
        let replicas = format!(
            "replicas = [{{ address = \"{}\" }}, {{ address = \"{}\" }}]",
            gateway.address,
            bed.address(Node::Replica2)
        );
        let config = config_for(&bed)
            .group(&replicas)
            .server("http_listen = \"127.0.0.1:0\"")
            // Every client needs connections of its own.
            .all_users("sharing = \"session\"")
            .append(&POOL.replace("50ms", "1s"));
        let atlas = Atlas::start(config);
        let http = http_of(&atlas.log()).expect("the log names the port");
        // The server id of whoever answers, on a connection that is new to the server.
        let read = || {
            let mut client = Wire::connect(atlas.address(), &Login::plain());
            client.query("SELECT @@server_id").cell()
        };
        let id_of = |node| bed.root(node).query("SELECT @@server_id").cell();
        let (first, second) = (id_of(Node::Replica1), id_of(Node::Replica2));
        eventually("both serve", || read() == first);
        assert_eq!(metric(http, &gateway), "0");
        gateway.close();
        eventually("it opens", || {
            assert_eq!(read(), second, "no read fails");
            metric(http, &gateway) == "1"
        });
        assert!(gateway.refused() >= 5);
        atlas.wait_log(&format!(
            "breaker (atlas): no connections to {} are opened for 2s",
            gateway.address
        ));
        // The next one that tries fails too.
        eventually("it opens again", || {
            assert_eq!(read(), second);
            atlas.log().contains("the next one has failed too")
        });
        let refused = gateway.refused();
        for _ in 0..50 {
            assert_eq!(read(), second);
        }
        // At most the one after the pause, when the fifty took so long, and a check's or two.
        assert!(gateway.refused() <= refused + 3, "it is left alone");
        gateway.open();
        eventually("it closes", || read() == first);
        atlas.wait_log(&format!(
            "connections to {} are opened again",
            gateway.address
        ));
        assert_eq!(metric(http, &gateway), "0");
    }
}

#[test]
fn writes_are_told_at_once_when_no_other_primary_came() {
    for bed in Bed::both() {
        let gateway = Gateway::to(bed.address(Node::Primary));
        let config = config_for(&bed)
            .group(&format!("primary = \"{}\"", gateway.address))
            .group("primary_wait = \"1s\"")
            .all_users("sharing = \"session\"")
            .append(&POOL.replace("50ms", "1s"));
        let atlas = Atlas::start(config);
        let write = || {
            let mut client = Wire::connect(atlas.address(), &Login::plain());
            client.query("DO 1").error()
        };
        // A connection that exists is used on.
        let mut old = Wire::connect(atlas.address(), &Login::plain());
        old.ok("DO 1");
        assert_eq!(write(), None);
        gateway.close();
        eventually("writes are told why", || {
            let (code, _, text) = write().expect("an error");
            assert_eq!(code, 1105, "{text}");
            assert!(
                text.starts_with("Proxy Warning - no primary in group main"),
                "{text}"
            );
            text.contains("(pool.breaker)")
        });
        old.ok("DO 1");
        let refused = gateway.refused();
        let told = (0..20).filter(|_| write().is_some_and(|e| e.2.contains("(pool.breaker)")));
        assert!(told.count() >= 15, "at once");
        assert!(gateway.refused() <= refused + 5, "it is left alone");
        gateway.open();
        eventually("writes go on", || write().is_none());
        old.ok("DO 1");
    }
}

/// The pause is not waited for when checks can connect again.
#[test]
fn a_check_that_connects_ends_the_pause() {
    for bed in Bed::both() {
        let gateway = Gateway::to(bed.address(Node::Replica1));
        let replicas = format!("replicas = [\"{}\"]", gateway.address);
        let config = config_for(&bed)
            .group(&replicas)
            .server("http_listen = \"127.0.0.1:0\"")
            .all_users("sharing = \"session\"")
            .append(&POOL.replace("2s", "10m"));
        let atlas = Atlas::start(config);
        let http = http_of(&atlas.log()).expect("the log names the port");
        let read = || {
            let mut client = Wire::connect(atlas.address(), &Login::plain());
            client.query("SELECT @@server_id").cell()
        };
        let id = bed.root(Node::Replica1).query("SELECT @@server_id").cell();
        eventually("it serves", || read() == id);
        gateway.close();
        eventually("it opens", || {
            assert_ne!(read(), "");
            metric(http, &gateway) == "1"
        });
        // The check's own connection, which exists, answers all the time; that is not enough.
        let refused = gateway.refused();
        eventually("checks try to connect", || gateway.refused() > refused + 3);
        assert_eq!(metric(http, &gateway), "1");
        assert_ne!(read(), id);
        gateway.open();
        eventually("it closes", || read() == id);
        assert_eq!(metric(http, &gateway), "0");
        atlas.wait_log(&format!(
            "a check could log in to {}: the next connection to it is tried",
            gateway.address
        ));
    }
}

/// What the server says no to is no failure of the way to it.
#[test]
fn refusals_of_the_server_do_not_open_it() {
    let bed = Bed::mariadb();
    let config = config_for(&bed)
        .user("nobody-there", "pw", &["sharing = \"session\""])
        .append(POOL);
    let atlas = Atlas::start(config);
    for _ in 0..20 {
        let mut client = Wire::connect(atlas.address(), &Login::new("nobody-there", "pw"));
        if let Ok(reply) = client.try_query("DO 1") {
            assert_eq!(reply.error_code(), 1045);
        }
    }
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("DO 1");
    std::thread::sleep(Duration::from_millis(100));
    assert!(!atlas.log().contains("breaker"), "{}", atlas.log());
    // But operators hear of it, and not each time.
    atlas.wait_log("refuses a log-in: 1045 Access denied for user 'nobody-there'");
    let told = atlas.log().matches("refuses a log-in").count();
    assert!(told <= 4, "{told} times");
}
