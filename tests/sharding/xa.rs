//! Writes over several groups: they are done as one server would do them, all of it or nothing, whoever dies at whatever step.

mod own_bed;

use crate::Stage;
use crate::common::{Bed, Node, Param, Wire, eventually};
use crate::stage::seen;

/// Statements on the sharded tables, the same as on the whole ones.
const STATEMENTS: [&str; 16] = [
    "INSERT INTO log (id, s) VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd'), (4, 'e')",
    "INSERT INTO log VALUES (9, 'i'), (10, 'j')",
    "UPDATE log SET s = CONCAT(s, '!')",
    "UPDATE log SET s = 'x' WHERE id IN (0, 2, 3)",
    "UPDATE log SET s = 'x' WHERE id IN (0, 2, 3)",
    "INSERT INTO log (id, s) VALUES (3, 'n'), (4, 'n'), (5, 'n') ON DUPLICATE KEY UPDATE s = VALUES(s)",
    "REPLACE INTO log (id, s) VALUES (0, 'r'), (6, 'r'), (7, 'r')",
    "INSERT IGNORE INTO log (id, s) VALUES (0, 'dup'), (2, 'dup'), (11, 'new')",
    "DELETE FROM log WHERE id < 3 OR id = 10",
    "UPDATE ord SET n = amt WHERE code = 'A'",
    "UPDATE ord SET n = 1 WHERE amt = 12345",
    "INSERT INTO ord (uid, amt) VALUES (100, 1), (101, 1), (1, 1)",
    "INSERT INTO ord (uid, amt) VALUES (102, 1), (103, 'no number'), (104, 1)",
    "UPDATE ord SET nope = 1",
    "DELETE FROM item",
    "DELETE FROM item",
];

fn prepared(root: &mut Wire) -> usize {
    let reply = root.query("XA RECOVER");
    reply.assert_ok().rows().len()
}

/// Lines of decisions in the log of the process that runs now.
fn decisions(stage: &Stage<'_>) -> usize {
    let folder = stage.atlas.dir().join("atlas.decisions");
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.map(|text| text.matches("commit ").count()).sum()
}

#[test]
fn they_are_done_as_one() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for sql in STATEMENTS {
            let (ours, theirs) = (client.query(sql), direct.query(sql));
            assert_eq!(seen(&ours), seen(&theirs), "{sql}");
            for ask in ["SHOW WARNINGS", "SELECT ROW_COUNT()"] {
                let sorted = |wire: &mut Wire| {
                    let mut rows = wire.query(ask).assert_ok().rows();
                    rows.sort();
                    rows
                };
                let (ours, theirs) = (sorted(&mut client), sorted(&mut direct));
                if ask == "SHOW WARNINGS" {
                    assert_eq!(ours.len(), theirs.len(), "{sql}: {ours:?} {theirs:?}");
                } else {
                    assert_eq!(ours, theirs, "{sql}");
                }
            }
            for table in ["log", "ord", "item"] {
                let all = format!("SELECT * FROM {table}");
                let sorted = |wire: &mut Wire| {
                    let mut rows = wire.query(&all).assert_ok().rows();
                    rows.sort();
                    rows
                };
                assert_eq!(sorted(&mut client), sorted(&mut direct), "{sql}");
            }
        }
        assert!(decisions(&stage) >= 10, "{}", decisions(&stage));
        assert!(!stage.atlas.log().contains("left prepared"));
    }
}

#[test]
fn what_cannot_be_done_so_is_refused() {
    let insert = "INSERT INTO ord (uid, amt) VALUES (200, 1), (201, 1)";
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let mut client = stage.client();
        for begin in ["BEGIN", "SET autocommit = 0"] {
            client.ok(begin);
            client.ok("UPDATE ord SET amt = 9 WHERE uid = 2");
            let (code, _, text) = client.query(insert).error().unwrap();
            assert_eq!(code, 1179, "{text}");
            let amt = "SELECT amt FROM ord WHERE uid = 2";
            assert_eq!(client.query(amt).cell(), "9");
            client.ok("ROLLBACK");
            assert_eq!(client.query(amt).cell(), "2");
            client.ok("ROLLBACK");
        }
        client.ok("SET autocommit = 1");
        client.ok("CREATE TEMPORARY TABLE mine (id INT)");
        assert_eq!(client.query(insert).error_code(), 1105);
        let statement = stage.client().query("SELECT COUNT(*) FROM misc").cell();
        assert_eq!(statement, "2");

        let other = Stage::new(&bed, "transaction");
        for sql in [insert, "UPDATE ord SET amt = 1", "DELETE FROM ord"] {
            let (code, _, text) = other.client().query(sql).error().unwrap();
            let wanted = "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: ";
            assert!(code == 1105 && text.starts_with(wanted), "{text}");
            assert!(text.contains("multi_shard_writes = \"xa\""), "{text}");
        }
        let session = Stage::xa(&bed, "session");
        assert_eq!(session.client().query(insert).error_code(), 1105);
    }
}

#[test]
fn global_tables_are_written_in_every_group() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let both = |query: &str| {
            let here = format!("{}.zone", stage.schema);
            let there = format!("{}_b.zone", stage.schema);
            let of = |node, name: &str| seen(&bed.root(node).query(&query.replace("zone", name)));
            [of(Node::Primary, &here), of(Node::Second, &there)]
        };
        let qualified = format!("UPDATE {}.zone SET name = 'q' WHERE id < 3", stage.schema);
        for sql in [
            "INSERT INTO zone (id, name) VALUES (3, 'three'), (4, NULL)",
            "UPDATE zone SET name = CONCAT(name, id)",
            "INSERT INTO zone SELECT id + 10, name FROM zone WHERE id > 2",
            &qualified,
            "UPDATE zone SET name = 'nobody' WHERE id = 99",
            "UPDATE zone SET nope = 1",
            "DELETE FROM zone WHERE id > 12",
        ] {
            let plain = sql.replace(&format!("{}.zone", stage.schema), "zone");
            let (ours, theirs) = (client.query(sql), direct.query(&plain));
            assert_eq!(seen(&ours), seen(&theirs), "{sql}");
            let ask = "SELECT ROW_COUNT()";
            assert_eq!(seen(&client.query(ask)), seen(&direct.query(ask)), "{sql}");
            let all = "SELECT id, name FROM zone ORDER BY id";
            let wanted = seen(&direct.query(all));
            assert_eq!(both(all), [wanted.clone(), wanted.clone()], "{sql}");
            assert_eq!(seen(&client.query(all)), wanted, "{sql}");
        }
        let before = both("SELECT * FROM zone ORDER BY id");
        for (sql, why) in [
            ("UPDATE zone SET name = NOW()", "NOW"),
            ("UPDATE zone SET name = @@hostname", "@@"),
            ("DELETE FROM zone LIMIT 1", "LIMIT"),
            ("INSERT INTO zone SELECT k, k FROM misc", "every group"),
            (
                "INSERT INTO zone SELECT uid, code FROM ord WHERE uid = 1",
                "sharded",
            ),
        ] {
            let (code, _, text) = client.query(sql).error().unwrap();
            assert!(code == 1105 && text.contains(why), "{sql}: {text}");
        }
        client.ok("BEGIN");
        assert_eq!(client.query("DELETE FROM zone").error_code(), 1179);
        client.ok("ROLLBACK");
        // One group cannot do it: none does.
        let mut second = bed.root(Node::Second);
        second.ok(&format!(
            "ALTER TABLE {}_b.zone ADD UNIQUE (id)",
            stage.schema
        ));
        let (code, ..) = client
            .query("INSERT INTO zone VALUES (20, 'new'), (1, 'again')")
            .error()
            .unwrap();
        assert_eq!(code, 1062);
        assert_eq!(both("SELECT id, name FROM zone ORDER BY id"), before);
    }
}

#[test]
fn prepared_statements_are_executed_in_several_groups() {
    let row = |id: i64, text: &str| [Param::Int(id), text.into()];
    let pair = |a, b| [row(a, "p"), row(b, "q")].concat();
    let cases = [
        ("INSERT INTO log (id, s) VALUES (?, ?), (?, ?)", pair(0, 2)),
        ("INSERT INTO log (id, s) VALUES (?, ?), (?, ?)", pair(5, 4)),
        ("INSERT INTO log (id, s) VALUES (?, ?), (?, ?)", pair(8, 2)),
        (
            "INSERT INTO log VALUES (7, ?), (12, 'x'), (?, ?)",
            vec!["z".into(), Param::Int(9), Param::Null],
        ),
        (
            "UPDATE log SET s = ? WHERE id IN (?, ?)",
            vec!["u".into(), Param::Int(0), Param::Int(2)],
        ),
        ("UPDATE log SET s = 'all'", vec![]),
        ("DELETE FROM log WHERE id > ?", vec![Param::Int(4)]),
        ("INSERT INTO zone VALUES (?, ?)", row(7, "seven").to_vec()),
        (
            "UPDATE zone SET name = ? WHERE id < ?",
            vec!["low".into(), Param::Int(3)],
        ),
        ("DELETE FROM zone", vec![]),
    ];
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for (sql, params) in &cases {
            let (here, there) = (client.prepare(sql), direct.prepare(sql));
            for _ in 0..2 {
                let ours = client.execute(&here, params);
                let theirs = direct.execute(&there, params);
                assert_eq!(seen(&ours), seen(&theirs), "{sql}");
                for table in ["log", "zone"] {
                    let sorted = |wire: &mut Wire| {
                        let all = format!("SELECT * FROM {table}");
                        let mut rows = wire.query(&all).assert_ok().rows();
                        rows.sort();
                        rows
                    };
                    assert_eq!(sorted(&mut client), sorted(&mut direct), "{sql}");
                }
            }
        }
        let zone = format!("SELECT COUNT(*) FROM {}_b.zone", stage.schema);
        assert_eq!(bed.root(Node::Second).query(&zone).cell(), "0");
        client.ok("BEGIN");
        let here = client.prepare("DELETE FROM log WHERE id > ?");
        let reply = client.execute(&here, &[Param::Int(0)]);
        assert_eq!(reply.error_code(), 1179);
        client.ok("ROLLBACK");
    }
}

#[test]
fn kill_query_undoes_it() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let mut second = bed.root(Node::Second);
        second.ok("BEGIN");
        second.ok(&format!(
            "INSERT INTO {}_b.ord (uid) VALUES (301)",
            stage.schema
        ));
        let mut client = stage.client();
        let id = client.query("SELECT CONNECTION_ID()").cell();
        let insert = "INSERT INTO ord (uid, amt) VALUES (300, 1), (301, 1)";
        let payload = client.query_payload(insert.as_bytes());
        client.send(&payload);
        let mut root = bed.root(Node::Second);
        let waits = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO%{}%(301, 1)%' AND ID <> CONNECTION_ID()",
            "ord"
        );
        eventually("it waits for the row", || root.query(&waits).cell() != "0");
        stage.client().ok(&format!("KILL QUERY {id}"));
        let reply = client.reply(crate::common::Expect::Text);
        assert_eq!(reply.error_code(), 1317);
        second.ok("ROLLBACK");
        let count = "SELECT uid FROM ord WHERE uid IN (300, 301)";
        assert!(client.query(count).assert_ok().rows().is_empty());
        client.ok(insert);
        assert_eq!(client.query(count).assert_ok().rows().len(), 2);
    }
}

/// A disk without room: what cannot be decided is refused and undone, and goes on when there is room again.
#[test]
fn a_decision_that_finds_no_room() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let mut client = stage.client();
        client.ok("UPDATE log SET s = 'a'");
        client.ok("INSERT INTO log (id, s) VALUES (0, 'a'), (2, 'a')");
        let pid = Pid::from_raw(i32::try_from(stage.atlas.pid()).unwrap());
        let limit = |bytes: Option<u64>| {
            let limit = Rlimit {
                current: bytes,
                maximum: None,
            };
            prlimit(pid, Resource::Fsize, limit).unwrap();
        };
        let file = || {
            let folder = stage.atlas.dir().join("atlas.decisions");
            let files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
            assert_eq!(files.len(), 1);
            files[0].as_ref().unwrap().path()
        };
        let text = std::fs::read(file()).unwrap();
        // No room at all, and room for some of it.
        for room in [0, 10, 0] {
            limit(Some(u64::try_from(text.len()).unwrap() + room));
            let error = client.query("UPDATE log SET s = 'b'").error().unwrap();
            assert!(
                error.0 == 1105 && error.2.contains("whose decision cannot be written down"),
                "{error:?}"
            );
            assert_eq!(std::fs::read(file()).unwrap(), text);
            // Nothing of it is there, and nothing is held.
            client.ok("UPDATE log SET s = CONCAT(s, '') WHERE id = 0");
            client.ok("UPDATE log SET s = CONCAT(s, '') WHERE id = 2");
            let rows = client.query("SELECT s FROM log").rows();
            let all_a = rows.iter().all(|row| row[0].as_deref() == Some("a"));
            assert!(rows.len() == 2 && all_a, "{rows:?}");
        }
        limit(None);
        client.ok("UPDATE log SET s = 'b'");
        assert!(std::fs::read(file()).unwrap().len() > text.len());
    }
}
