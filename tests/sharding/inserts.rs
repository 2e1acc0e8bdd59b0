//! Writes to several physical tables of one group, and INSERTs that do not name their columns: as one server would have done them.

use crate::Stage;
use crate::common::{Bed, Node, Param};
use crate::stage::{all, seen};

/// Of `log` those with an even half are in one group, in two tables.
const STATEMENTS: [&str; 49] = [
    "INSERT INTO log VALUES (4, 'a'), (5, 'b'), (8, 'c')",
    "SELECT ROW_COUNT()",
    "SHOW WARNINGS",
    "INSERT INTO log VALUES (12, 'x'), (13, 'y'), (5, 'z'), (16, 'w')",
    "SHOW WARNINGS",
    "SELECT ROW_COUNT()",
    "SELECT id FROM log WHERE id = 12",
    "SELECT id FROM log WHERE id = 13",
    "INSERT IGNORE INTO log VALUES (4, 'q'), (16, 'r'), (17, 's'), (5, 't')",
    "SHOW WARNINGS",
    "REPLACE INTO log VALUES (4, 'rep'), (5, 'rep'), (20, 'rep')",
    "INSERT INTO {s}.log VALUES (4, 'k'), (5, 'k'), (21, 'k') ON DUPLICATE KEY UPDATE log.s = CONCAT(log.s, VALUES(s))",
    "SELECT * FROM log WHERE id = 4",
    "SELECT * FROM log WHERE id = 5",
    "INSERT IGNORE INTO log (s, id) VALUES (REPEAT('x', 50), 24), ('y', 28), (REPEAT('z', 50), 25), (REPEAT('v', 60), 32)",
    "SELECT s FROM log WHERE id = 32",
    "INSERT INTO log VALUES (40, 'a'), (44, 'b'), (41, 'c'), (45, REPEAT('x', 50))",
    "SHOW WARNINGS",
    "SELECT s FROM log WHERE id = 40",
    "INSERT INTO log SET id = 48, s = 'set'",
    "INSERT INTO log VALUES (52, 'one')",
    "INSERT INTO ord SELECT 61, sku, 'x', NULL FROM item WHERE uid = 5",
    "INSERT INTO ord VALUES (63, 1, 'a', NULL), (65, 2, 'b', 3)",
    "SELECT * FROM ord WHERE uid = 65",
    "REPLACE ord VALUES (63, 9, 'a', NULL)",
    "UPDATE log SET s = 'u' WHERE id IN (4, 5, 8)",
    "UPDATE log SET s = 'u' WHERE id IN (4, 5, 20)",
    "UPDATE log SET s = REPEAT('u', 50) WHERE id IN (4, 5)",
    "SELECT s FROM log WHERE id = 4",
    "DELETE FROM log WHERE id IN (4, 5, 8) AND s = 'u'",
    "SELECT ROW_COUNT()",
    "BEGIN",
    "INSERT INTO log VALUES (104, 'a'), (105, 'b')",
    "INSERT INTO log VALUES (108, 'a'), (109, 'b'), (105, 'b')",
    "SELECT id FROM log WHERE id = 104",
    "SELECT id FROM log WHERE id = 108",
    "ROLLBACK",
    "SELECT id FROM log WHERE id = 104",
    "BEGIN",
    "INSERT INTO log VALUES (112, 'a'), (113, 'b')",
    "COMMIT",
    "SELECT id FROM log WHERE id = 113",
    "SET autocommit = 0",
    "INSERT INTO log VALUES (116, 'a'), (117, 'b')",
    "ROLLBACK",
    "SELECT id FROM log WHERE id = 116",
    "SET autocommit = 1",
    "SELECT LAST_INSERT_ID()",
    "SELECT 1",
];

#[test]
fn writes_in_parts_are_done_as_one() {
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            let stage = Stage::new(&bed, sharing);
            let (mut client, mut direct) = (stage.client(), stage.direct());
            let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
            for sql in STATEMENTS {
                let wanted = direct.query(&sql.replace("{s}", &whole));
                let reply = client.query(&sql.replace("{s}", &schema));
                let wanted = all(&wanted).replace(&whole, &schema);
                assert_eq!(all(&reply), wanted, "{:?} {sharing}: {sql}", bed.kind);
            }
            // Of the parts' rows none is left where one fails, and all are where they belong.
            let mut primary = bed.root(Node::Primary);
            for (table, rest) in [("log_0", 0), ("log_1", 1)] {
                let wrong = format!("SELECT COUNT(*) FROM {schema}.{table} WHERE id % 4 <> {rest}");
                assert_eq!(primary.query(&wrong).cell(), "0");
            }
            for (sql, why) in [
                (
                    "INSERT INTO log VALUES (1, 'a'), (2, 'b')",
                    "insert them apart",
                ),
                ("UPDATE log SET s = 'x'", "say which with id"),
                ("UPDATE log SET s = 'x' WHERE id IN (4, 5) LIMIT 1", "LIMIT"),
                (
                    "INSERT INTO log VALUES (1, 'a'), (4, 'b', 3)",
                    "more or fewer",
                ),
            ] {
                let (code, _, text) = client.query(sql).error().unwrap();
                assert!(code == 1105 && text.contains(why), "{sql}: {text}");
            }
        }
    }
}

/// What a server generates in several tables is told as the first of them.
#[test]
fn ids_that_servers_generate_are_told() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let (mut primary, mut second) = (bed.root(Node::Primary), bed.root(Node::Second));
        let two = "INSERT INTO log VALUES (4, 'a'), (5, 'b')";
        assert_eq!(seen(&client.query(two)), seen(&direct.query(two)));
        // Another column, of which Atlas is not told.
        for table in [
            format!("{whole}.log"),
            format!("{schema}.log_0"),
            format!("{schema}.log_1"),
        ] {
            primary.ok(&format!(
                "ALTER TABLE {table} ADD n INT NOT NULL AUTO_INCREMENT UNIQUE"
            ));
        }
        for number in [2, 3] {
            second.ok(&format!(
                "ALTER TABLE {schema}_b.log_{number} ADD n INT NOT NULL AUTO_INCREMENT UNIQUE"
            ));
        }
        // Or it goes by the columns as they were, for a while.
        client.ok("ALTER TABLE log COMMENT = 'anything'");
        let old = "INSERT INTO log VALUES (8, 'a'), (9, 'b')";
        assert_eq!(direct.query(old).error_code(), 1136);
        // The server says so, or Atlas, which has asked meanwhile.
        let reply = client.query(old);
        assert!(matches!(reply.error_code(), 1105 | 1136), "{reply:?}");
        let three = "INSERT INTO log VALUES (8, 'a', NULL), (9, 'b', NULL)";
        crate::common::eventually("the columns are asked for again", || {
            client.query(three).error().is_none()
        });
        // Each table has one row, so that each gives the number 2; then 3.
        assert_eq!(client.query("SELECT LAST_INSERT_ID()").cell(), "2");
        let named = "INSERT INTO log (id, s) VALUES (12, 'a'), (13, 'b')";
        assert_eq!(client.query(named).affected_and_insert_id(), (2, 3));
        assert_eq!(client.query("SELECT LAST_INSERT_ID()").cell(), "3");
        // Ids that stand in the statement are told in the reply, and are no generated ones.
        for given in [
            "INSERT INTO log VALUES (16, 'a', 700), (17, 'b', 701)",
            "INSERT INTO log VALUES (21, 'a', 702), (20, 'b', 703), (25, 'c', 704)",
        ] {
            assert_eq!(
                all(&client.query(given)),
                all(&direct.query(given)),
                "{given}"
            );
        }
        assert_eq!(client.query("SELECT LAST_INSERT_ID()").cell(), "3");
    }
}

/// A reorder of columns that Atlas is not told of puts no row in a place that its key is not looked for in.
#[test]
fn columns_that_change_places_misplace_no_row() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        let mut servers = [bed.root(Node::Primary), bed.root(Node::Second)];
        let schemas = [stage.schema.to_string(), format!("{}_b", stage.schema)];
        let insert = client.prepare("INSERT INTO log VALUES (?, ?)");
        client.ok("INSERT INTO log VALUES (900, '903')");
        for place in ["FIRST", "AFTER id"] {
            for number in 0..4_usize {
                let (server, schema) = (&mut servers[number / 2], &schemas[number / 2]);
                server.ok(&format!(
                    "ALTER TABLE {schema}.log_{number} MODIFY s VARCHAR(40) {place}"
                ));
            }
            let round = if place == "FIRST" { 0 } else { 100 };
            for n in 0..8 {
                let (a, b) = (1000 + round + n, 2003 + round + n);
                let reply = client.query(&format!("INSERT INTO log VALUES ({a}, {b})"));
                assert!(matches!(reply.error_code(), 0 | 1054), "{reply:?}");
                let params = [Param::Int(a + 50), Param::Int(b + 50)];
                let reply = client.execute(&insert, &params);
                assert!(matches!(reply.error_code(), 0 | 1054), "{reply:?}");
            }
        }
        let mut rows = 0;
        for number in 0..4_usize {
            let (server, schema) = (&mut servers[number / 2], &schemas[number / 2]);
            let all = server.query(&format!("SELECT id FROM {schema}.log_{number}"));
            for row in all.rows() {
                let id: usize = row[0].as_ref().unwrap().parse().unwrap();
                assert_eq!(id % 4, number, "{:?}: {id}", bed.kind);
                rows += 1;
            }
        }
        assert!(rows > 16, "{rows}");
    }
}

#[test]
fn prepared_inserts_need_no_names_of_columns() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let sql = "INSERT INTO log VALUES (?, ?), (?, ?)";
        let (here, there) = (client.prepare(sql), direct.prepare(sql));
        for (a, b) in [(4, 8), (2, 6), (3, 7), (4, 12)] {
            let params = [
                Param::Int(a),
                Param::from("x"),
                Param::Int(b),
                Param::from("y"),
            ];
            let (reply, wanted) = (
                client.execute(&here, &params),
                direct.execute(&there, &params),
            );
            assert_eq!(seen(&reply), seen(&wanted), "{a} {b}");
        }
    }
}
