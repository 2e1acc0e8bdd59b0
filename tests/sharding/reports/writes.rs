//! Writes: parameters of divided statements, generated ids, transactions over several groups.

use crate::Stage;
use crate::common::{Bed, Param, Wire};
use crate::stage::{all, seen};

/// Each group gets its own rows' parameters and those of the tail.
#[test]
fn b241_over_groups() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let sql = "INSERT INTO ord (uid, amt) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE amt = ? + VALUES(amt)";
        let params = [2, 1, 3, 1, 5].map(Param::Int);
        let (here, there) = (client.prepare(sql), direct.prepare(sql));
        for _ in 0..2 {
            let (ours, theirs) = (
                client.execute(&here, &params),
                direct.execute(&there, &params),
            );
            assert_eq!(seen(&ours), seen(&theirs));
        }
        let both = |wire: &mut Wire| {
            let mut rows = wire
                .query("SELECT uid, amt FROM ord WHERE uid IN (2, 3)")
                .rows();
            rows.sort();
            rows
        };
        let rows = both(&mut client);
        assert_eq!(rows, both(&mut direct));
        assert!(
            rows.iter().all(|row| row[1].as_deref() == Some("6")),
            "{rows:?}"
        );
    }
}

/// What is told of an id that an upsert finds or makes is what the server tells.
#[test]
fn b242_ids_of_upserts() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("TRUNCATE TABLE item");
            wire.ok("ALTER TABLE item ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE (uid, sku)");
        }
        for sql in [
            "INSERT INTO item (uid, sku) VALUES (2, 1)",
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "INSERT INTO item (uid, sku) VALUES (2, 1) ON DUPLICATE KEY UPDATE sku = sku + 10",
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "SELECT ROW_COUNT()",
            "INSERT INTO item (uid, sku) VALUES (2, 2), (2, 3)",
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "INSERT INTO item (uid, sku) VALUES (2, 11) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), sku = 12",
            "SELECT LAST_INSERT_ID(), @@identity",
            "SELECT id, sku FROM item WHERE uid = 2 ORDER BY id",
        ] {
            assert_eq!(
                all(&client.query(sql)),
                all(&direct.query(sql)),
                "{:?}: {sql}",
                bed.kind
            );
        }
    }
}

/// A transaction is in one group, so that its COMMIT is that of one server, and its answer the server's.
#[test]
fn b247_commits() {
    for bed in Bed::both() {
        for stage in [
            Stage::new(&bed, "transaction"),
            Stage::xa(&bed, "transaction"),
        ] {
            let mut client = stage.client();
            client.ok("BEGIN");
            client.ok("UPDATE ord SET amt = 70 WHERE uid = 2");
            for other in [
                "UPDATE ord SET amt = 70 WHERE uid = 3",
                "UPDATE ord SET amt = 70",
                "INSERT INTO ord (uid) VALUES (71)",
            ] {
                let text = "Proxy Warning - sharding dbgroup is in trans, transaction will not work across multi dbgroup";
                let refused = client.query(other).error();
                let (code, state, told) = refused.unwrap();
                assert!(
                    (code, state.as_str(), told.as_str()) == (1179, "25000", text) || code == 1105,
                    "{other}: {told}"
                );
            }
            client.ok("COMMIT");
            let rows = client.query("SELECT uid FROM ord WHERE amt = 70").rows();
            assert_eq!(rows, [[Some("2".to_owned())]]);
        }
    }
}
