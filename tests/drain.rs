//! The end of a process by TERM: who is told what, what may end, and what the exit code says.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use common::*;

/// The time that an end without a reason to wait may take on a busy machine.
const SOON: Duration = Duration::from_secs(10);

fn login(schema: &Schema) -> Login {
    Login::app().schema(schema)
}

/// The client is told that this is the end, and nothing else.
fn assert_dismissed(client: &mut Wire) {
    let packet = client.try_packet().expect("an error");
    assert_eq!(packet.payload[..9], *b"\xff\x1d\x04#08S01", "{packet:?}");
    assert!(client.read_to_close().is_empty());
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    for table in ["t", "other"] {
        bed.root(Node::Primary).ok(&format!(
            "CREATE TABLE {schema}.{table}(id INT PRIMARY KEY) ENGINE=InnoDB"
        ));
    }
    schema
}

fn rows(bed: &Bed, schema: &Schema) -> String {
    bed.root(Node::Primary)
        .query(&format!("SELECT COUNT(*) FROM {schema}.t"))
        .cell()
}

#[test]
fn what_has_begun_may_end() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut atlas = Atlas::start(config_for(&bed));
        let login = login(&schema);
        let mut idle = Wire::connect(atlas.address(), &login);
        let mut fresh = Wire::greet(atlas.address()).expect("a greeting");
        let mut writer = Wire::connect(atlas.address(), &login);
        writer.ok("BEGIN");
        writer.ok("INSERT INTO t VALUES (1)");
        let mut locker = Wire::connect(atlas.address(), &login);
        locker.ok("LOCK TABLES other READ");
        let mut sleeper = Wire::connect(atlas.address(), &login);
        sleeper.send(&sleeper.query_payload(b"SELECT SLEEP(1), 'slept'"));
        // Half a command.
        let mut slow = Wire::connect(atlas.address(), &login);
        let whole = frame(0, &slow.query_payload(b"SELECT 'late'"));
        slow.send_bytes(&whole[..9]);
        atlas.signal("TERM");
        assert_dismissed(&mut idle);
        let error = fresh.try_packet().expect("an error");
        assert_eq!(error.payload[..3], *b"\xff\x1d\x04");
        assert!(fresh.read_to_close().is_empty());
        // Nobody else comes in.
        assert!(Wire::greet(atlas.address()).is_err());
        assert_eq!(locker.query("SELECT COUNT(*) FROM other").cell(), "0");
        locker.ok("UNLOCK TABLES");
        assert_dismissed(&mut locker);
        writer.ok("INSERT INTO t VALUES (2)");
        slow.send_bytes(&whole[9..]);
        assert_eq!(slow.reply(Expect::Text).cell(), "late");
        assert_dismissed(&mut slow);
        let slept = sleeper.reply(Expect::Text);
        assert!(slept.error().is_none(), "{slept:?}");
        assert_dismissed(&mut sleeper);
        writer.ok("COMMIT");
        assert_dismissed(&mut writer);
        assert!(atlas.wait(SOON).success());
        assert_eq!(rows(&bed, &schema), "2");
    }
}

#[test]
fn what_does_not_end_is_cut_off() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let config = config_for(&bed).server("drain_timeout = \"1s\"");
        let mut atlas = Atlas::start(config);
        let mut writer = Wire::connect(atlas.address(), &login(&schema));
        writer.ok("BEGIN");
        writer.ok("INSERT INTO t VALUES (1)");
        let start = Instant::now();
        atlas.signal("TERM");
        assert_dismissed(&mut writer);
        assert!(start.elapsed() >= Duration::from_millis(900));
        let status = atlas.wait(SOON);
        assert_eq!(status.code(), Some(1), "{}", atlas.log());
        eventually("the transaction is rolled back", || {
            rows(&bed, &schema) == "0"
        });
        assert!(
            atlas.log().contains("1 clients were cut off"),
            "{}",
            atlas.log()
        );
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    let bed = Bed::mariadb();
    let mut atlas = Atlas::start(config_for(&bed));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("BEGIN");
    atlas.signal("TERM");
    atlas.wait_log("stopping: ");
    client.ok("DO 1");
    let start = Instant::now();
    atlas.signal("INT");
    assert_eq!(atlas.wait(SOON).code(), Some(1));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn nobody_is_waited_for_without_drain_timeout() {
    let bed = Bed::mariadb();
    let mut atlas = Atlas::start(config_for(&bed).server("drain_timeout = \"0s\""));
    let mut idle = Wire::connect(atlas.address(), &Login::plain());
    atlas.signal("TERM");
    assert_dismissed(&mut idle);
    assert!(atlas.wait(SOON).success());
}

/// Balancers notice first: until then clients are served.
#[test]
fn health_checks_fail_before_clients_are_refused() {
    let bed = Bed::mariadb();
    let config = config_for(&bed)
        .server("http_listen = \"127.0.0.1:0\"")
        .server("drain_delay = \"3s\"");
    let mut atlas = Atlas::start(config);
    let http = http_of(&atlas.log()).expect("the log names the port");
    let mut old = Wire::connect(atlas.address(), &Login::plain());
    let start = Instant::now();
    atlas.signal("TERM");
    eventually("draining", || {
        http_get(http, "/readyz") == (503, "draining\n".to_owned())
    });
    let mut new = Wire::connect(atlas.address(), &Login::plain());
    assert_eq!(new.query("SELECT 1").cell(), "1");
    assert_eq!(old.query("SELECT 1").cell(), "1");
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "too slow to tell anything"
    );
    assert_dismissed(&mut old);
    assert_dismissed(&mut new);
    assert!(start.elapsed() >= Duration::from_secs(3));
    assert!(atlas.wait(SOON).success());
}

/// Servers see no connection that ends without a word.
#[test]
fn servers_are_told_goodbye() {
    let bed = Bed::mariadb();
    let schema = bed.schema();
    let mut atlas = Atlas::start(config_for(&bed));
    let marks = bed.marks();
    let mut client = Wire::connect(atlas.address(), &login(&schema));
    client.ok("DO 'farewell-1'");
    atlas.signal("TERM");
    assert!(atlas.wait(SOON).success());
    let (_, said) = marks.find("farewell-1").pop().expect("in the general log");
    eventually("its connection quits", || {
        marks
            .entries(Node::Primary)
            .iter()
            .any(|entry| entry.connection == said.connection && entry.command == "Quit")
    });
}

/// What clients of the load below have seen.
#[derive(Default)]
struct Seen {
    committed: AtomicUsize,
    dismissed: AtomicUsize,
    faults: std::sync::Mutex<Vec<String>>,
}

impl Seen {
    fn fault(&self, text: String) {
        self.faults.lock().expect("no panic").push(text);
    }
}

/// Clients that stay and clients that come and go, writing all the time: none loses a statement but by the error that says why.
#[test]
fn under_load_only_the_error_that_says_why() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut atlas = Atlas::start(config_for(&bed));
        let (seen, next) = (Seen::default(), AtomicUsize::new(1));
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                stays(scope, &atlas, &schema, &seen, &next);
                comes_and_goes(scope, &atlas, &schema, &seen, &next, &stopped);
            }
            eventually("the load runs", || {
                seen.committed.load(Ordering::Relaxed) > 200
            });
            atlas.signal("TERM");
            stopped.store(true, Ordering::Release);
        });
        assert!(
            atlas.wait(Duration::from_secs(20)).success(),
            "{}",
            atlas.log()
        );
        let faults = seen.faults.into_inner().expect("no panic");
        assert!(faults.is_empty(), "{faults:#?}");
        assert_eq!(seen.dismissed.into_inner(), 4, "those that stay are told");
        assert_eq!(rows(&bed, &schema), seen.committed.into_inner().to_string());
    }
}

/// One transaction after the other on one connection, until it is told to go, which is never inside of one.
fn stays<'s>(
    scope: &'s Scope<'s, '_>,
    atlas: &Atlas,
    schema: &Schema,
    seen: &'s Seen,
    next: &'s AtomicUsize,
) {
    let mut client = Wire::connect(atlas.address(), &login(schema));
    scope.spawn(move || {
        loop {
            match client.try_query("BEGIN") {
                Ok(reply) if reply.error().is_none() => {}
                Ok(reply) if reply.error_code() == 1053 => break,
                // The error came on its own, before the command was read.
                Err(_) => break,
                Ok(reply) => return seen.fault(format!("BEGIN: {:?}", reply.error())),
            }
            let id = next.fetch_add(1, Ordering::Relaxed);
            for sql in [format!("INSERT INTO t VALUES ({id})"), "COMMIT".to_owned()] {
                match client.try_query(&sql) {
                    Ok(reply) if reply.error().is_none() => {}
                    other => return seen.fault(format!("{sql}: {other:?}")),
                }
            }
            seen.committed.fetch_add(1, Ordering::Relaxed);
        }
        seen.dismissed.fetch_add(1, Ordering::Relaxed);
    });
}

/// A connection for each statement. Who got a greeting before the stop is served.
fn comes_and_goes<'s>(
    scope: &'s Scope<'s, '_>,
    atlas: &Atlas,
    schema: &Schema,
    seen: &'s Seen,
    next: &'s AtomicUsize,
    stopped: &'s AtomicBool,
) {
    let (address, login) = (atlas.address(), login(schema));
    scope.spawn(move || {
        loop {
            let was_stopped = stopped.load(Ordering::Acquire);
            let wire = match Wire::greet(address) {
                Ok(wire) => wire,
                Err(refused) if !was_stopped && !stopped.load(Ordering::Acquire) => {
                    // The signal is sent before the test notes that it was.
                    std::thread::sleep(Duration::from_millis(500));
                    if !stopped.load(Ordering::Acquire) {
                        seen.fault(format!("refused: {refused:?}"));
                    }
                    return;
                }
                Err(_) => return,
            };
            let mut client = match wire.log_in(&login) {
                Ok(client) => client,
                Err(refused) => return seen.fault(format!("log-in: {refused:?}")),
            };
            let id = next.fetch_add(1, Ordering::Relaxed);
            match client.try_query(&format!("INSERT INTO t VALUES ({id})")) {
                Ok(reply) if reply.error().is_none() => {}
                other => return seen.fault(format!("its statement: {other:?}")),
            }
            seen.committed.fetch_add(1, Ordering::Relaxed);
        }
    });
}
