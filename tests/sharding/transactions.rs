//! Transactions are in the first group that they touch, and another group's statements leave them as they are.

use crate::Stage;
use crate::common::{Bed, Node, Param, Wire};
use crate::stage::seen;

const IN_TRANS: &str =
    "Proxy Warning - sharding dbgroup is in trans, transaction will not work across multi dbgroup";

fn refused(client: &mut Wire, sql: &str) {
    let error = client.query(sql).error();
    let wanted = Some((1179, "25000".to_owned(), IN_TRANS.to_owned()));
    assert_eq!(error, wanted, "{sql}");
}

#[test]
fn another_group_is_refused_and_the_transaction_goes_on() {
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            for (begin, end) in [
                ("BEGIN", "COMMIT"),
                ("START TRANSACTION", "ROLLBACK"),
                ("SET autocommit = 0", "COMMIT"),
            ] {
                for hint in ["", "/*master*/ "] {
                    let stage = Stage::new(&bed, sharing);
                    let (mut client, mut direct) = (stage.client(), stage.direct());
                    let read = |uid: i64| format!("{hint}SELECT amt FROM ord WHERE uid = {uid}");
                    let mut both = |client: &mut Wire, sql: &str| {
                        assert_eq!(seen(&client.query(sql)), seen(&direct.query(sql)), "{sql}");
                    };
                    for sql in [
                        begin,
                        "SELECT 1",
                        "SET @x = 3",
                        &read(3),
                        "UPDATE ord SET amt = 70 WHERE uid = 3",
                    ] {
                        both(&mut client, sql);
                    }
                    refused(&mut client, &read(2));
                    refused(&mut client, "INSERT INTO ord (uid, amt) VALUES (100, 1)");
                    refused(&mut client, "SELECT * FROM ord WHERE uid IN (2, 3)");
                    refused(&mut client, "SELECT * FROM misc");
                    refused(&mut client, "UPDATE misc SET k = 1");
                    for sql in [
                        &*read(3),
                        "INSERT INTO ord (uid, amt) VALUES (101, 1)",
                        "SAVEPOINT a",
                        "INSERT INTO ord (uid, amt) VALUES (103, 1)",
                        "ROLLBACK TO a",
                        "SELECT @x",
                        end,
                        &*read(2),
                        &*read(3),
                        "SELECT k FROM misc ORDER BY k",
                        "SELECT uid FROM ord WHERE uid IN (101, 103)",
                    ] {
                        if begin.starts_with("SET") && sql == read(2) {
                            // Without autocommit the next one is in a transaction again.
                            both(&mut client, "SET autocommit = 1");
                        }
                        both(&mut client, sql);
                    }
                    // What another client sees.
                    let mut other = stage.client();
                    both(&mut other, &read(3));
                }
            }
        }
    }
}

/// A transaction that has done nothing is begun where its first statement runs, as it was begun.
#[test]
fn a_transaction_begins_where_it_is_used_first() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        client.ok("SELECT k FROM misc");
        let marks = bed.marks();
        client.ok("START TRANSACTION READ ONLY");
        let reply = client.query("SELECT amt FROM ord WHERE uid = 3");
        reply.assert_ok();
        assert_eq!(
            client
                .query("UPDATE ord SET amt = 1 WHERE uid = 3")
                .error_code(),
            1792
        );
        refused(&mut client, "SELECT k FROM misc");
        client.ok("COMMIT");
        let of = |node, text: &str| {
            let entries = marks.entries(node);
            entries
                .iter()
                .filter(|entry| entry.text.starts_with(text))
                .count()
        };
        assert_eq!(of(Node::Second, "START TRANSACTION READ ONLY"), 1);
        assert_eq!(of(Node::Second, "COMMIT"), 1);
        assert_eq!(of(Node::Primary, "ROLLBACK"), 1);
        assert_eq!(of(Node::Primary, "COMMIT"), 0);

        // The same prepared, with nothing done in between.
        let statement = client.prepare("UPDATE ord SET amt = amt + 1 WHERE uid = ?");
        client.ok("BEGIN");
        client.execute(&statement, &[Param::Int(3)]).assert_ok();
        let error = client.execute(&statement, &[Param::Int(2)]).error();
        assert_eq!(error.map(|error| error.0), Some(1179));
        client.ok("ROLLBACK");
        assert_eq!(
            client.query("SELECT amt FROM ord WHERE uid = 3").cell(),
            "4"
        );
    }
}

/// What a session has set, and what it may ask about the statement before, goes with it from group to group.
#[test]
fn a_sessions_state_goes_with_it() {
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            let stage = Stage::new(&bed, sharing);
            let (mut client, mut direct) = (stage.client(), stage.direct());
            for sql in [
                "SET @x = 5, SESSION sql_mode = 'ANSI_QUOTES', time_zone = '+03:00'",
                "SELECT @x, @@time_zone, uid FROM \"ord\" WHERE uid = 3",
                "SELECT @x, @@time_zone, uid FROM \"ord\" WHERE uid = 2",
                "SET sql_mode = ''",
                "UPDATE ord SET amt = 'x' WHERE uid = 3",
                "SHOW WARNINGS",
                "SELECT ROW_COUNT()",
                "SELECT k FROM misc WHERE k = 11",
                "SELECT FOUND_ROWS()",
                "UPDATE ord SET amt = 'x' WHERE uid = 2",
                "SELECT uid FROM ord WHERE uid = 1",
                "SHOW WARNINGS",
                "INSERT INTO ord (uid, amt) VALUES (LAST_INSERT_ID(77), 1)",
                "SELECT LAST_INSERT_ID(7)",
                "SELECT uid FROM ord WHERE uid = 1",
                "SELECT LAST_INSERT_ID()",
                "SELECT k, LAST_INSERT_ID() FROM misc WHERE k = 11",
            ] {
                let wanted = direct.query(sql);
                if sql.contains("(LAST_INSERT_ID(77)") {
                    // Known to the server only.
                    assert_eq!(client.query(sql).error_code(), 1105);
                    continue;
                }
                let named = |reply: &str| {
                    let reply = reply.replace(&format!("{}_b", stage.schema), stage.whole.name());
                    reply.replace(stage.schema.name(), stage.whole.name())
                };
                let reply = seen(&client.query(sql));
                assert_eq!(named(&reply), seen(&wanted), "{sharing}: {sql}");
            }
            // With something that keeps the connection for now.
            let update = "UPDATE ord SET amt = 'x' WHERE uid = 3";
            for sql in [
                "DESCRIBE misc",
                "SHOW CREATE TABLE misc",
                "CHECK TABLE misc",
            ] {
                client.ok(update);
                client.ok(sql);
            }
            client.ok("CREATE TEMPORARY TABLE tt (a INT)");
            let (code, _, text) = client
                .query("SELECT * FROM ord WHERE uid = 3")
                .error()
                .unwrap();
            assert_eq!(code, 1105);
            assert!(
                text.contains("holds temporary-table in group main"),
                "{text}"
            );
            client.ok("SELECT * FROM ord WHERE uid = 2");
            client.ok("DROP TEMPORARY TABLE tt");
        }
    }
}
