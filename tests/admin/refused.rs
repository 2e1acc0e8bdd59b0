//! Every kind of log-in that must be refused, 10,000 of them mixed and several at a time, on the data port and on the admin port: each is
//! told what it is to be told, and nothing stays of it, neither socket, thread nor memory, here or on the servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::common::{Kind, Login, Node, Refused, Wire, eventually};
use super::stage::{OPERATOR, PASSWORD, Stage, VIEWER};

/// The code of the error that refuses.
fn code(refused: Result<Wire, Refused>) -> u16 {
    match refused {
        Err(Refused::Error { code, .. }) => code,
        Err(other) => panic!("not told why: {other:?}"),
        Ok(_) => panic!("let in"),
    }
}

/// An address of this machine that hardly anybody else has: who guesses passwords from one address is answered later and later.
fn source(n: usize) -> Ipv4Addr {
    let [.., b, c, d] = u32::try_from(n).expect("few").to_be_bytes();
    Ipv4Addr::new(127, 16 + b, c, d)
}

/// Client number `n`, of one of sixteen kinds.
fn refused(stage: &Stage, n: usize) {
    let (data, admin) = (stage.atlas.address(), stage.admin);
    let log_in = |port: SocketAddr, user: &str, password: &str| {
        let plugin = ["caching_sha2_password", "mysql_native_password"][n / 16 % 2];
        let login = Login::new(user, password).plugin(plugin);
        let greeted = Wire::greet_from(port, source(n));
        code(greeted.and_then(|wire| wire.log_in(&login)))
    };
    // Bytes that are no log-in: it is told so, or only closed.
    let nonsense = |port: SocketAddr, bytes: &[u8], is_half: bool| {
        let mut wire = Wire::greet_from(port, source(n)).expect("a greeting");
        let _ = wire.try_send_bytes(bytes);
        if is_half {
            wire.end();
        }
        wire.read_to_close();
    };
    match n % 16 {
        // Wrong password.
        0 => {
            assert_eq!(log_in(data, "plain", "wrong"), 1045);
        }
        // No password.
        1 => {
            assert_eq!(log_in(data, "plain", ""), 1045);
        }
        // Unknown account.
        2 => {
            assert_eq!(log_in(data, &format!("nobody{n}"), "plain-pw"), 1045);
        }
        // Network of the account.
        3 => {
            assert_eq!(log_in(data, "inside", "inside-pw"), 1045);
        }
        // Network of clients.
        4 => {
            let outside = Ipv4Addr::from(u32::from(source(n)) | 0x0080_0000);
            assert_eq!(code(Wire::greet_from(data, outside)), 1130);
        }
        // Operator on the data port.
        5 => {
            assert_eq!(log_in(data, OPERATOR, PASSWORD), 1045);
        }
        // Length without end.
        6 => {
            nonsense(data, b"\xff\xff\xff\x01", true);
        }
        // Another protocol.
        7 => {
            nonsense(data, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
        }
        // Half of a log-in.
        8 => {
            nonsense(data, b"\x40\0\0\x01\x0d\xa6\x0f", true);
        }
        // None.
        9 => {
            drop(Wire::greet_from(data, source(n)).expect("a greeting"));
        }
        // Operator's wrong password.
        10 => {
            assert_eq!(log_in(admin, OPERATOR, "wrong"), 1045);
        }
        // Client on the admin port.
        11 => {
            assert_eq!(log_in(admin, "plain", "plain-pw"), 1045);
        }
        // Viewer gives orders.
        12 => {
            let login = Login::new(VIEWER, PASSWORD);
            let greeted = Wire::greet_from(admin, source(n));
            let mut viewer = greeted
                .and_then(|wire| wire.log_in(&login))
                .expect("let in");
            let orders = ["DRAIN", "SHUTDOWN", "REMOVE BACKEND 2", "ADD PWD a:b"];
            let reply = viewer.query(orders[n / 16 % orders.len()]);
            assert_eq!(reply.error_code(), 1227);
        }
        // Nonsense on the admin port.
        13 => {
            nonsense(admin, b"\x05\0\0\x01\0\0\0\0\0", false);
        }
        // Half of a log-in there.
        14 => {
            nonsense(admin, b"\x20\0\0\x01half of it", true);
        }
        // None there.
        _ => {
            drop(Wire::greet_from(admin, source(n)).expect("a greeting"));
        }
    }
}

#[test]
fn ten_thousand_of_all_kinds_leave_nothing() {
    let stage = Stage::with(Kind::MySql, |config| {
        config
            .server("client_networks = [\"127.0.0.0/9\"]")
            .user("inside", "inside-pw", &["networks = [\"10.0.0.0/8\"]"])
            .append("[pool]\nmin_idle = 0")
    });
    let mut client = stage.client();
    // With both replicas, so that no further connection is opened later.
    for _ in 0..6 {
        client.ok("SELECT 1");
    }
    let next = AtomicUsize::new(0);
    let round = |count: usize| {
        let end = next.load(Ordering::Relaxed) + count;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        match next.fetch_add(1, Ordering::Relaxed) {
                            n if n < end => refused(&stage, n),
                            _ => break,
                        }
                    }
                });
            }
        });
        next.store(end, Ordering::Relaxed);
    };
    let on_servers = || {
        [Node::Primary, Node::Replica1, Node::Replica2]
            .map(|node| stage.atlas.connections_to(stage.bed.address(node)))
    };
    let state = || {
        (
            stage.atlas.open_files(),
            stage.atlas.memory_kib("Threads"),
            on_servers(),
        )
    };
    // What the first ones make Atlas keep, such as buffers and who has guessed, is not of each.
    round(1600);
    let mut before = state();
    eventually("it has come to rest", || {
        std::thread::sleep(Duration::from_millis(300));
        let now = state();
        std::mem::replace(&mut before, now) == now
    });
    let memory = stage.atlas.memory_kib("VmRSS");
    round(10_000);
    let mut after = state();
    for _ in 0..100 {
        if after == before {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        after = state();
    }
    assert_eq!(
        after, before,
        "descriptors, threads, connections to servers"
    );
    let grown = stage.atlas.memory_kib("VmRSS").saturating_sub(memory);
    assert!(grown < 4096, "{grown} KiB more");
    // Nobody was kept out who may come, and nothing was done that only operators may do.
    client.ok("SELECT 1");
    stage.client().ok("SELECT 1");
    let mut operator = stage.operator();
    assert_eq!(operator.ok("SELECT * FROM backends").rows().len(), 3);
    assert!(!stage.atlas.log().contains(PASSWORD));
}
