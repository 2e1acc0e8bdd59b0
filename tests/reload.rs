//! What a reload changes, and that it changes nothing else: sessions go on, running work ends as it began, and a bad file is as if
//! nobody had asked.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Atlas, Bed, Config, Expect, Login, Node, Wire, config_for, eventually};

/// Asks for a reload and waits until it has been dealt with.
fn reload(atlas: &Atlas, config: impl Into<String>) {
    let done = |log: &str| log.matches("reload (signal): ").count();
    let before = done(&atlas.log());
    atlas.write_config(config);
    atlas.signal("HUP");
    eventually("the reload has come to an end", || {
        done(&atlas.log()) > before
    });
}

fn replicas(bed: &Bed, nodes: &[Node]) -> String {
    let addresses: Vec<String> = nodes
        .iter()
        .map(|node| format!("\"{}\"", bed.address(*node)))
        .collect();
    format!("replicas = [{}]", addresses.join(", "))
}

fn server(client: &mut Wire) -> String {
    client.query("SELECT @@server_id").cell()
}

fn port(bed: &Bed, node: Node) -> String {
    bed.address(node).port().to_string()
}

/// One error out of turn, and the end.
fn assert_dismissed(client: &mut Wire) {
    let said = client.read_to_close();
    let text = String::from_utf8_lossy(&said);
    assert!(
        text.contains("was taken out of the configuration"),
        "{text}"
    );
}

#[test]
fn replicas_come_and_go() {
    for bed in Bed::both() {
        let with = |nodes: &[Node]| config_for(&bed).group(&replicas(&bed, nodes));
        let atlas = Atlas::start(with(&[Node::Replica1]));
        let mut client = Wire::connect(atlas.address(), &Login::app());
        client.ok("SET @kept = 'mine'");
        for nodes in [
            &[Node::Replica2][..],
            &[Node::Replica1],
            &[],
            &[Node::Replica1, Node::Replica2],
            &[Node::Replica1],
        ] {
            reload(&atlas, with(nodes));
            let mut seen: Vec<String> = (0..8).map(|_| server(&mut client)).collect();
            seen.sort();
            seen.dedup();
            let mut wanted: Vec<String> = nodes.iter().map(|node| port(&bed, *node)).collect();
            if wanted.is_empty() {
                wanted.push(port(&bed, Node::Primary));
            }
            wanted.sort();
            assert_eq!(seen, wanted, "{nodes:?}");
            assert_eq!(client.query("SELECT @kept").cell(), "mine");
        }
        // The connections to the one that has gone are closed.
        eventually("no connection of Atlas is left there", || {
            atlas.connections_to(bed.address(Node::Replica2)) == 0
        });
        assert!(atlas.connections_to(bed.address(Node::Replica1)) > 0);
    }
}

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let bed = Bed::mariadb();
    let config = config_for(&bed).group(&replicas(&bed, &[Node::Replica1]));
    let atlas = Atlas::start(config.clone());
    let mut client = Wire::connect(atlas.address(), &Login::app());
    let bad = config
        .clone()
        .group(&replicas(&bed, &[Node::Replica2]))
        .append("[pool]\nmin_idle = \"many\"\nmax_conections = 4\n");
    reload(&atlas, bad);
    let log = atlas.log();
    assert!(log.contains("nothing has changed"), "{log}");
    assert!(log.contains("pool.min_idle: expected"), "{log}");
    assert!(log.contains("max_conections"), "{log}");
    assert_eq!(server(&mut client), port(&bed, Node::Replica1));
    // What is wrong with certificates shows later than what is wrong with the text, and changes as little.
    let bad = config
        .group(&replicas(&bed, &[Node::Replica2]))
        .append("[server.tls]\nmode = \"required\"\ncert = \"atlas.log\"\nkey = \"atlas.log\"\n");
    reload(&atlas, bad);
    let log = atlas.log();
    assert!(log.contains(": server.tls.cert: server.tls: "), "{log}");
    assert_eq!(server(&mut client), port(&bed, Node::Replica1));
    Wire::connect(atlas.address(), &Login::app()).quit();
}

#[test]
fn what_differs_is_told_and_passwords_are_not() {
    let bed = Bed::mariadb();
    let config = config_for(&bed);
    let atlas = Atlas::start(config.clone());
    let changed = config
        .server("workers = 7")
        .append("[pool]\nmin_idle = 3\n")
        .user("new", "very-secret", &[]);
    reload(&atlas, changed);
    let log = atlas.log();
    assert!(log.contains("version 2; "), "{log}");
    assert!(log.contains("pool.min_idle: (none) -> 3"), "{log}");
    assert!(
        log.contains("server.workers: (none) -> 7 (has an effect at the next start)"),
        "{log}"
    );
    assert!(
        log.contains("users[new].password: (none) -> (not shown)"),
        "{log}"
    );
    assert!(!log.contains("very-secret"), "{log}");
}

#[test]
fn accounts_come_and_go() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let config = || {
            config_for(&bed).user(
                "guest",
                "guest-pw",
                &["backend = { user = \"app\", password = \"app-pw\" }"],
            )
        };
        let atlas = Atlas::start(config());
        let guest = Login::new("guest", "guest-pw").schema(&schema);
        let (mut idle, mut busy, mut other) = (
            Wire::connect(atlas.address(), &guest),
            Wire::connect(atlas.address(), &guest),
            Wire::connect(atlas.address(), &Login::app().schema(&schema)),
        );
        busy.ok("CREATE TABLE t (a INT)");
        busy.ok("BEGIN");
        busy.ok("INSERT INTO t VALUES (1)");
        reload(&atlas, config_for(&bed));
        // Who is idle is told and closed; who is in a transaction may end it.
        assert_dismissed(&mut idle);
        busy.ok("INSERT INTO t VALUES (2)");
        busy.ok("COMMIT");
        assert_dismissed(&mut busy);
        assert_eq!(other.query("SELECT COUNT(*) FROM t /*master*/").cell(), "2");
        let refused = Wire::try_connect(atlas.address(), &guest).expect_err("no account");
        assert!(format!("{refused:?}").contains("1045"), "{refused:?}");
        reload(&atlas, config());
        let mut again = Wire::connect(atlas.address(), &guest);
        assert_eq!(again.query("SELECT COUNT(*) FROM t").cell(), "2");
    }
}

#[test]
fn passwords_change_without_a_moment_of_refusal() {
    let bed = Bed::mariadb();
    let with = |passwords: &str| {
        let line = format!("password = {passwords}");
        let backend = "backend = { user = \"app\", password = \"app-pw\" }";
        config_for(&bed).user("guest", "x", &[&line, backend])
    };
    let atlas = Atlas::start(with("\"old\""));
    let connects =
        |password: &str| Wire::try_connect(atlas.address(), &Login::new("guest", password)).is_ok();
    assert!(connects("old") && !connects("new"));
    let mut client = Wire::connect(atlas.address(), &Login::new("guest", "old"));
    reload(&atlas, with("[\"new\", \"old\"]"));
    assert!(connects("old") && connects("new"));
    reload(&atlas, with("\"new\""));
    assert!(!connects("old") && connects("new"));
    assert_eq!(client.query("SELECT 7").cell(), "7");
}

#[test]
fn networks_that_are_taken_away() {
    let bed = Bed::mariadb();
    let with = |line: &str| config_for(&bed).server(line);
    let atlas = Atlas::start(with("client_networks = []"));
    let mut client = Wire::connect(atlas.address(), &Login::app());
    reload(&atlas, with("client_networks = [\"127.0.0.0/8\"]"));
    assert_eq!(client.query("SELECT 7").cell(), "7");
    reload(&atlas, with("client_networks = [\"10.0.0.0/8\"]"));
    assert_dismissed(&mut client);
    let refused = Wire::try_connect(atlas.address(), &Login::app()).expect_err("not allowed");
    assert!(format!("{refused:?}").contains("1130"), "{refused:?}");
    reload(&atlas, with("client_networks = []"));
    Wire::connect(atlas.address(), &Login::app()).quit();
}

#[test]
fn another_primary_by_the_configuration() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let name = schema.to_string();
        bed.root(Node::Second)
            .ok(&format!("CREATE DATABASE IF NOT EXISTS `{name}`"));
        bed.root(Node::Second)
            .ok(&format!("CREATE TABLE `{name}`.t (a INT)"));
        let with = |node: Node| {
            let primary = format!("primary = \"{}\"", bed.address(node));
            config_for(&bed).group(&primary).group("replicas = []")
        };
        let atlas = Atlas::start(with(Node::Primary));
        let login = Login::app().schema(&schema);
        let mut idle = Wire::connect(atlas.address(), &login);
        idle.ok("CREATE TABLE t (a INT)");
        idle.ok("SET SESSION max_error_count = 17");
        let mut bound = Wire::connect(atlas.address(), &login);
        bound.ok("BEGIN");
        bound.ok("INSERT INTO t VALUES (1)");
        reload(&atlas, with(Node::Second));
        // An idle session goes on over there with its state; a transaction cannot.
        idle.ok("INSERT INTO t VALUES (2)");
        assert_eq!(idle.query("SELECT @@max_error_count").cell(), "17");
        assert_eq!(server(&mut idle), port(&bed, Node::Second));
        let refused = bound.try_query("INSERT INTO t VALUES (3)");
        assert!(refused.is_err() || refused.is_ok_and(|reply| reply.error().is_some()));
        let rows = |node| {
            bed.root(node)
                .query(&format!("SELECT GROUP_CONCAT(a) FROM `{name}`.t"))
                .cell()
        };
        assert_eq!(rows(Node::Second), "2");
        eventually("the old primary has rolled back", || {
            bed.root(Node::Primary)
                .query(&format!("SELECT COUNT(*) FROM `{name}`.t"))
                .cell()
                == "0"
        });
        bed.root(Node::Second)
            .ok(&format!("DROP DATABASE `{name}`"));
    }
}

/// Whatever the group is called, what runs on its servers ends as it began.
#[test]
fn a_group_gets_another_name() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let login = Login::app().schema(&schema);
        let config = config_for(&bed);
        let atlas = Atlas::start(config.clone());
        let mut bound = Wire::connect(atlas.address(), &login);
        bound.ok("CREATE TABLE t (a INT) ENGINE=InnoDB");
        bound.ok("BEGIN");
        bound.ok("INSERT INTO t VALUES (1)");
        let mut temporary = Wire::connect(atlas.address(), &login);
        temporary.ok("CREATE TEMPORARY TABLE own (a INT)");
        let mut idle = Wire::connect(atlas.address(), &login);
        idle.ok("SET @kept = 'mine'");
        for name in ["other", "main", "third"] {
            reload(&atlas, config.clone().group(&format!("name = \"{name}\"")));
            bound.ok("INSERT INTO t VALUES (2)");
            temporary.ok("INSERT INTO own VALUES (2)");
            assert_eq!(idle.query("SELECT @kept").cell(), "mine");
        }
        // The account goes to another group of the same primary.
        let group = format!(
            "[[groups]]\nname = \"fourth\"\nprimary = \"{}\"",
            bed.address(Node::Primary)
        );
        let moved = config
            .clone()
            .append(&group)
            .all_users("group = \"fourth\"");
        reload(&atlas, moved);
        bound.ok("COMMIT");
        assert_eq!(bound.query("SELECT COUNT(*) FROM t /*master*/").cell(), "4");
        assert_eq!(temporary.query("SELECT COUNT(*) FROM own").cell(), "3");
        temporary.ok("DROP TEMPORARY TABLE own");
        assert_eq!(
            temporary.query("SELECT @@server_id").cell(),
            port(&bed, Node::Primary)
        );
        // Another server is another matter.
        bound.ok("BEGIN");
        bound.ok("INSERT INTO t VALUES (3)");
        let elsewhere = config
            .group("name = \"fifth\"")
            .group(&format!("primary = \"{}\"", bed.address(Node::Second)))
            .group("replicas = []");
        reload(&atlas, elsewhere);
        let refused = bound.try_query("INSERT INTO t VALUES (3)");
        assert!(refused.is_err() || refused.is_ok_and(|reply| reply.error().is_some()));
    }
}

/// A statement too long to be kept is on its way when the primary changes: the rest does not follow, the old primary does nothing, and the
/// session goes on.
#[test]
fn a_long_statement_meets_another_primary() {
    for bed in Bed::both() {
        let schema = bed.schema();
        bed.root(Node::Primary).ok(&format!(
            "CREATE TABLE {schema}.t(b LONGBLOB) ENGINE=InnoDB"
        ));
        bed.wait_replicas();
        // One loop, so that what came before another client's statement has been dealt with before it.
        let config = config_for(&bed).server("workers = 1");
        let atlas = Atlas::start(config.clone());
        let mut other = Wire::connect(atlas.address(), &Login::app());
        for (len, is_bound) in [(3 << 20, false), (18 << 20, false), (3 << 20, true)] {
            let mut client = Wire::connect(atlas.address(), &Login::app().schema(&schema));
            client.ok("SET @kept = 'mine'");
            if is_bound {
                client.ok("BEGIN");
                client.ok("INSERT INTO t VALUES ('before')");
            }
            let sql = format!("INSERT INTO t VALUES ('{}')", "x".repeat(len));
            let payload = client.query_payload(sql.as_bytes());
            let frames = frames(&payload);
            let (first, rest) = frames.split_at(2 << 20);
            client.send_bytes(first);
            for _ in 0..3 {
                other.ok("DO 1");
            }
            let moved = config
                .clone()
                .group(&format!("primary = \"{}\"", bed.address(Node::Replica1)))
                .group(&replicas(&bed, &[Node::Primary, Node::Replica2]));
            reload(&atlas, moved);
            let told = if is_bound {
                // The error comes at once or behind what the client sends, and is the end.
                let _ = client.try_send_bytes(rest);
                String::from_utf8_lossy(&client.read_to_close()).into_owned()
            } else {
                client.send_bytes(rest);
                let (code, _, text) = client
                    .try_reply_from(Expect::Text, behind(&payload))
                    .expect("a reply")
                    .error()
                    .expect("an error");
                assert_eq!(code, 1105, "{text}");
                assert_eq!(client.query("SELECT @kept").cell(), "mine");
                text
            };
            assert!(told.contains("is no longer the primary"), "{told}");
            let rows = bed
                .root(Node::Primary)
                .query(&format!("SELECT COUNT(*) FROM {schema}.t"));
            assert_eq!(rows.cell(), "0");
            reload(&atlas, config.clone());
        }
    }
}

const FRAME_MAX: usize = 0xff_ffff;

/// The number of the packet that answers a command: it follows that of the command's last.
fn behind(payload: &[u8]) -> u8 {
    u8::try_from(payload.len() / FRAME_MAX + 1).expect("few frames")
}

/// A command as it goes over the wire.
fn frames(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (seq, frame) in payload.chunks(FRAME_MAX).enumerate() {
        let len = u32::try_from(frame.len()).expect("a frame");
        bytes.extend_from_slice(&len.to_le_bytes()[..3]);
        bytes.push(u8::try_from(seq).expect("few frames"));
        bytes.extend_from_slice(frame);
    }
    assert_ne!(
        payload.len() % FRAME_MAX,
        0,
        "an empty frame would have to follow"
    );
    bytes
}

/// A20: reloads while clients work: nothing fails. The number is small here; `ATLAS_RELOADS=1000` makes it as large as you like.
#[test]
fn reloads_under_load() {
    let rounds: usize = std::env::var("ATLAS_RELOADS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(30);
    for bed in Bed::both() {
        let schema = bed.schema();
        let config = |round: usize| -> Config {
            let nodes: &[Node] = match round % 3 {
                0 => &[Node::Replica1, Node::Replica2],
                1 => &[Node::Replica2],
                _ => &[Node::Replica1],
            };
            config_for(&bed)
                .group(&replicas(&bed, nodes))
                .append(&format!(
                    "[pool]\nmax_connections = {}\nconnect_rate = 500\n",
                    20 + round % 7
                ))
        };
        let atlas = Atlas::start(config(0));
        let login = Login::app().schema(&schema);
        Wire::connect(atlas.address(), &login).ok("CREATE TABLE t (a INT PRIMARY KEY, n INT)");
        bed.wait_replicas();
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for client in 0..6 {
                let (stop, done, login, address) = (&stop, &done, login.clone(), atlas.address());
                scope.spawn(move || {
                    let mut wire = Wire::connect(address, &login);
                    wire.ok(&format!("INSERT INTO t VALUES ({client}, 0)"));
                    wire.ok(&format!("SET @me = {client}"));
                    let read = wire.prepare("SELECT @me + 0, ? + 0");
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        wire.ok("BEGIN");
                        wire.ok(&format!("UPDATE t SET n = n + 1 WHERE a = {client}"));
                        wire.ok("COMMIT");
                        n += 1;
                        let row = wire.execute(&read, &[common::Param::Int(n)]);
                        assert_eq!(row.error(), None);
                        wire.ok("SELECT COUNT(*) FROM t");
                        if n % 5 == 0 {
                            Wire::connect(address, &login).quit();
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    let sql = format!("SELECT n FROM t WHERE a = {client} /*master*/");
                    let sql = format!("/*master*/ {sql}");
                    assert_eq!(wire.query(&sql).cell(), n.to_string());
                });
            }
            for round in 1..=rounds {
                let before = done.load(Ordering::Relaxed);
                reload(&atlas, config(round));
                eventually("clients go on", || {
                    done.load(Ordering::Relaxed) > before + 6
                });
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(!atlas.log().contains("panicked"), "{}", atlas.log());
    }
}
