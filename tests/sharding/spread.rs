//! Reads that several shards are asked at a time: what is under way at once, what becomes of it when somebody vanishes or is killed,
//! and that nobody waits in a circle.

use std::time::Duration;

use crate::Stage;
use crate::common::{Bed, Expect, Login, Node, Param, Wire, eventually};
use crate::stage::seen;

/// The tables of `log`, and the servers where they are.
const LOG: [(Node, &str, &str); 4] = [
    (Node::Primary, "", "log_0"),
    (Node::Primary, "", "log_1"),
    (Node::Second, "_b", "log_2"),
    (Node::Second, "_b", "log_3"),
];

/// Locks the tables of `log`, so that their primaries cannot read them.
fn lock(stage: &Stage<'_>) -> [Wire; 2] {
    [Node::Primary, Node::Second].map(|node| {
        let mut root = stage.bed.root(node);
        let tables = LOG.iter().filter(|(of, ..)| *of == node);
        let tables: Vec<_> = tables
            .map(|(_, tail, name)| format!("{}{tail}.{name} WRITE", stage.schema))
            .collect();
        root.ok(&format!("LOCK TABLES {}", tables.join(", ")));
        root
    })
}

/// Tables of `log` that are being read on their primaries.
fn under_way(stage: &Stage<'_>, text: &str) -> usize {
    let count = |node| {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{text}%log\\_%' AND INFO LIKE '%{}%' AND ID <> CONNECTION_ID()",
            stage.schema
        );
        let cell = stage.bed.root(node).query(&sql).cell();
        cell.parse::<usize>().unwrap()
    };
    count(Node::Primary) + count(Node::Second)
}

fn slow(stage: &Stage<'_>) -> String {
    format!("SELECT /*master*/ s FROM {}.log", stage.schema)
}

#[test]
fn as_many_shards_as_fan_out_says_are_asked_at_a_time() {
    for bed in Bed::both() {
        for fan_out in [1, 3, 4] {
            let stage = Stage::with(&bed, "transaction", &format!("fan_out = {fan_out}"), "");
            let mut client = stage.client();
            for id in 0..8 {
                client.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'x')"));
            }
            let locks = lock(&stage);
            let payload = client.query_payload(slow(&stage).as_bytes());
            client.send(&payload);
            eventually("the shards are asked", || {
                under_way(&stage, "s FROM") == fan_out
            });
            assert!(!client.speaks_within(Duration::from_millis(50)));
            assert_eq!(under_way(&stage, "s FROM"), fan_out);
            drop(locks);
            let reply = client.reply(Expect::Text);
            assert_eq!(reply.assert_ok().rows().len(), 8, "fan_out = {fan_out}");
        }
    }
}

#[test]
fn a_client_that_vanishes_leaves_nothing_running() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let locks = lock(&stage);
        let mut client = stage.client();
        let payload = client.query_payload(slow(&stage).as_bytes());
        client.send(&payload);
        eventually("the shards are asked", || under_way(&stage, "s FROM") == 4);
        drop(client);
        eventually("the shards are left", || under_way(&stage, "s FROM") == 0);
        drop(locks);
        stage.client().ok("SELECT s FROM log");
    }
}

#[test]
fn kill_query_ends_it_on_every_shard() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        let id = client.query("SELECT CONNECTION_ID()").cell();
        let locks = lock(&stage);
        let payload = client.query_payload(slow(&stage).as_bytes());
        client.send(&payload);
        eventually("the shards are asked", || under_way(&stage, "s FROM") == 4);
        stage.client().ok(&format!("KILL QUERY {id}"));
        let reply = client.reply(Expect::Text);
        assert_eq!(reply.error_code(), 1317);
        eventually("the shards are left", || under_way(&stage, "s FROM") == 0);
        drop(locks);
        client.ok("SELECT s FROM log");
        assert_eq!(client.query("SELECT CONNECTION_ID()").cell(), id);
    }
}

/// One shard's connection is killed on its server while another has answered.
#[test]
fn a_shard_that_is_lost_fails_the_whole_and_leaves_the_session() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        client.ok("SET @mine = 7");
        let mut locks = Vec::from(lock(&stage));
        let payload = client.query_payload(slow(&stage).as_bytes());
        client.send(&payload);
        eventually("the shards are asked", || under_way(&stage, "s FROM") == 4);
        drop(locks.remove(0));
        eventually("two shards have answered", || {
            under_way(&stage, "s FROM") == 2
        });
        let mut second = bed.root(Node::Second);
        let sql = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%s FROM %{}%log\\_%' AND ID <> CONNECTION_ID() LIMIT 1",
            stage.schema
        );
        let victim = second.query(&sql).cell();
        second.ok(&format!("KILL {victim}"));
        let (code, ..) = client.reply(Expect::Text).error().unwrap();
        assert!([1927, 1317, 3169, 1053].contains(&code), "{code}");
        eventually("the shards are left", || under_way(&stage, "s FROM") == 0);
        drop(locks);
        client.ok("SELECT s FROM log");
        assert_eq!(client.query("SELECT @mine").cell(), "7");
    }
}

/// With one connection to each server: a statement that waits for its second has given back or goes on with its first.
#[test]
fn nobody_waits_in_a_circle() {
    for bed in Bed::both() {
        let stage = Stage::with(
            &bed,
            "transaction",
            "",
            "[pool]\nmax_connections = 1\nmin_idle = 0\nacquire_timeout = \"60s\"",
        );
        let mut setup = stage.client();
        for id in 0..8 {
            setup.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'row')"));
        }
        // Other sessions' reads go to replicas.
        bed.wait_replicas();
        std::thread::scope(|scope| {
            for n in 0..6 {
                let stage = &stage;
                scope.spawn(move || {
                    let mut client = stage.client();
                    for _ in 0..10 {
                        let sql = if n % 2 == 0 {
                            "SELECT /*master*/ REPEAT(s, 30000) FROM log"
                        } else {
                            "SELECT REPEAT(s, 30000) FROM log"
                        };
                        let reply = client.query(sql);
                        assert_eq!(reply.assert_ok().rows().len(), 8);
                        client.ok("UPDATE log SET s = 'row' WHERE id = 3");
                    }
                });
            }
        });
        for node in [Node::Primary, Node::Second] {
            eventually("one is left, and that of the checks", || {
                stage.atlas.connections_to(bed.address(node)) <= 2
            });
        }
    }
}

/// Rows wait in the servers for a client that takes none, and LIMIT ends what has not been sent yet.
#[test]
fn rows_pass_without_being_collected() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        for id in 0..160 {
            client.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'x')"));
        }
        let before = stage.atlas.memory_kib("VmRSS");
        let big = "SELECT /*master*/ REPEAT(s, 1000000) FROM log";
        let payload = client.query_payload(big.as_bytes());
        client.send(&payload);
        let packet = client.try_packet().unwrap();
        assert_eq!(packet.payload[0], 1, "one column");
        // The others are stuck: what they have sent fills their sockets.
        let mut other = stage.client();
        for _ in 0..3 {
            let (packets, bytes, _) = {
                let payload = other.query_payload(big.as_bytes());
                other.send(&payload);
                other.skim(Expect::Text)
            };
            assert!(packets >= 160 && bytes > 160_000_000, "{packets} {bytes}");
        }
        let grown = stage.atlas.memory_kib("VmRSS").saturating_sub(before);
        assert!(grown < 24 * 1024, "{grown} KiB more");
        drop(client);
        let reply = other.query("SELECT /*master*/ REPEAT(s, 1000000) FROM log LIMIT 3");
        assert_eq!(reply.assert_ok().rows().len(), 3);
        eventually("the shards are left", || under_way(&stage, "REPEAT") == 0);
    }
}

#[test]
fn prepared_statements_are_executed_on_several_shards() {
    let params: [&[Param]; 7] = [
        &[Param::Int(0), Param::Int(100), Param::Int(7)],
        &[Param::Int(2), Param::Int(5), Param::Null],
        &["1".into(), "4".into(), "text".into()],
        &[Param::Double(1.5), Param::Double(4.5), Param::Double(0.25)],
        &[Param::Int(3), Param::Null, Param::Int(1)],
        &[Param::Int(90), Param::Int(99), Param::Int(1)],
        &[Param::Int(1), Param::Int(6), Param::Bytes(vec![0, 255, 1])],
    ];
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        for login in Login::plain().shapes(bed.kind) {
            let mut client = Wire::connect(stage.atlas.address(), &login.schema(&stage.schema));
            // Which leaves out no definitions.
            let mut direct = stage.direct();
            let sql =
                "SELECT uid, code, n, amt * 1.5 AS h, ? AS p FROM ord WHERE uid >= ? AND uid <= ?";
            let here = client.prepare(sql);
            for params in params {
                // MySQL goes on with the types of a statement's first parameters where it can.
                let there = direct.prepare(sql);
                let params = [params[2].clone(), params[0].clone(), params[1].clone()];
                for (cursor, types) in [(0, true), (0, false), (1, true)] {
                    let payload = client.execute_payload(here.id, cursor, &params, types);
                    let reply = client.command(&payload);
                    let wanted = direct.execute(&there, &params);
                    wanted.assert_ok();
                    let sorted = |reply: &crate::common::Reply| {
                        let mut rows = reply.binary_rows();
                        rows.sort();
                        rows
                    };
                    assert_eq!(sorted(reply.assert_ok()), sorted(&wanted), "{params:?}");
                    let columns =
                        |reply: &crate::common::Reply| reply.results()[0][0].payload.clone();
                    assert_eq!(columns(&reply)[0], columns(&wanted)[0]);
                }
            }
            let bad = client.prepare("SELECT uid FROM ord WHERE amt > ? LIMIT ?");
            let reply = client.execute(&bad, &[Param::Int(0), Param::Int(2)]);
            assert_eq!(reply.assert_ok().binary_rows().len(), 2);
            let reply = client.execute(&here, &[Param::Int(1), Param::Int(1), Param::Int(1)]);
            assert_eq!(reply.assert_ok().binary_rows().len(), 1);
            assert_eq!(seen(&client.query("SELECT 1 + 1")), "[[Some(\"2\")]]");
        }
    }
}
