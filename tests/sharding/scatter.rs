//! Reads whose rows are on several shards.

use crate::Stage;
use crate::common::{Bed, Login, Node, Param, Wire};
use crate::stage::seen;

fn sorted(reply: &str) -> Vec<String> {
    let mut rows: Vec<String> = reply
        .split("], [")
        .map(|row| row.trim_matches(['[', ']']).to_owned())
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn rows_of_all_shards_follow_each_other() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut setup = stage.client();
        for id in -3..12 {
            for wire in [&mut setup, &mut stage.direct()] {
                wire.ok(&format!(
                    "INSERT INTO log (id, s) VALUES ({id}, 'row {id}')"
                ));
            }
        }
        // Other sessions may read them from a replica.
        bed.wait_replicas();
        for login in Login::plain().shapes(bed.kind) {
            let login = login.schema(&stage.schema);
            let mut client = Wire::connect(stage.atlas.address(), &login);
            let mut direct = stage.direct();
            for sql in [
                "SELECT * FROM ord",
                "SELECT uid, n FROM ord WHERE n IS NULL",
                "SELECT uid FROM ord WHERE uid = 1 OR uid = 2 AND amt = 2",
                "SELECT uid FROM ord WHERE amt = 8",
                "SELECT uid FROM ord WHERE amt = 999",
                "SELECT uid FROM ord WHERE NOT (uid = 1)",
                "SELECT * FROM log",
                "SELECT log.* FROM log WHERE log.id BETWEEN 2 AND 7",
                "SELECT o.uid, i.sku FROM ord o JOIN item i ON i.uid = o.uid",
                "SELECT o.uid, i.sku FROM ord o LEFT JOIN item i USING (uid)",
                "SELECT o.uid, z.name FROM ord o JOIN zone z ON z.id = o.amt",
                "SELECT CONCAT(uid, '-', amt) AS x, NULL FROM ord LIMIT 100",
            ] {
                let (reply, wanted) = (client.query(sql), direct.query(sql));
                wanted.assert_ok();
                assert_eq!(sorted(&seen(&reply)), sorted(&seen(&wanted)), "{sql}");
                assert_eq!(
                    client.query("SELECT FOUND_ROWS(), ROW_COUNT()").rows(),
                    direct.query("SELECT FOUND_ROWS(), ROW_COUNT()").rows(),
                    "{sql}"
                );
            }
            for (limit, rows) in [(0, 0), (1, 1), (4, 4), (6, 6), (7, 6)] {
                let reply = client.query(&format!("SELECT uid FROM ord LIMIT {limit}"));
                assert_eq!(reply.assert_ok().rows().len(), rows, "LIMIT {limit}");
            }
        }
    }
}

#[test]
fn a_shard_that_fails_makes_the_whole_fail() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        // In a transaction they are collected.
        for id in [0, 1] {
            client.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'x')"));
        }
        client.ok("BEGIN");
        let reply = client.query("SELECT REPEAT('x', 600000) FROM log WHERE id IN (0, 1)");
        let (code, _, text) = reply.error().unwrap();
        assert!(code == 1105 && text.contains("merge_memory"), "{text}");
        client = stage.client();
        client.ok("SELECT uid FROM ord");
        assert_eq!(client.query("SELECT nope FROM ord").error_code(), 1054);
        let mut second = bed.root(Node::Second);
        second.ok(&format!(
            "ALTER TABLE {}_b.ord MODIFY amt VARCHAR(9)",
            stage.schema
        ));
        let (code, _, text) = client.query("SELECT amt FROM ord").error().unwrap();
        assert!(code == 1105 && text.contains("not defined alike"), "{text}");
        second.ok(&format!("DROP TABLE {}_b.ord", stage.schema));
        assert_eq!(client.query("SELECT uid FROM ord").error_code(), 1146);
        client.ok("SELECT uid FROM ord WHERE uid = 2");
    }
}

#[test]
fn what_belongs_to_one_server_is_not_asked_of_several() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    let mut client = stage.client();
    for sql in [
        "SELECT uid, CONNECTION_ID() FROM ord",
        "SELECT uid, LAST_INSERT_ID() FROM ord",
        "SELECT uid, no_such_function() FROM ord",
        "SELECT uid, GET_LOCK('a', 0) FROM ord",
    ] {
        assert_eq!(client.query(sql).error_code(), 1105, "{sql}");
    }
    let statement = client.prepare("SELECT uid FROM ord WHERE uid IN (?, ?)");
    client
        .execute(&statement, &[Param::Int(1), Param::Int(3)])
        .assert_ok();
    client
        .execute(&statement, &[Param::Int(1), Param::Int(2)])
        .assert_ok();
    client.ok("BEGIN");
    let error = client
        .execute(&statement, &[Param::Int(1), Param::Int(2)])
        .error();
    assert_eq!(error.map(|error| error.0), Some(1179));
    client.ok("ROLLBACK");

    // In a transaction the shards of one group can be asked.
    for id in 0..2 {
        client.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'x')"));
    }
    client.ok("BEGIN");
    client.ok("UPDATE log SET s = 'mine' WHERE id = 0");
    let rows = client.query("SELECT s FROM log WHERE id IN (0, 1)");
    assert_eq!(rows.assert_ok().rows().len(), 2);
    assert!(seen(&rows).contains("mine"));
    assert_eq!(client.query("SELECT s FROM log").error_code(), 1179);
    client.ok("ROLLBACK");
    assert!(!seen(&client.query("SELECT s FROM log")).contains("mine"));
}
