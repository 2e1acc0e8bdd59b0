//! Prepared writes to several physical tables of one group, and prepared definitions: as one server would have done them.

use crate::Stage;
use crate::common::{Bed, Node, Param, Reply, Statement, Wire, unique_name};
use crate::stage::{all, seen};

/// A parameter as it lies in the packet: its type's number and flag, and its bytes (nothing for NULL).
type Raw<'a> = (u8, u8, Option<&'a [u8]>);

/// COM_STMT_EXECUTE with these parameters, with their types or without.
fn execution(statement: &Statement, params: &[Raw<'_>], types: bool) -> Vec<u8> {
    let mut out = vec![0x17];
    out.extend_from_slice(&statement.id.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    let mut nulls = vec![0_u8; params.len().div_ceil(8)];
    for (at, _) in params.iter().enumerate().filter(|(_, p)| p.2.is_none()) {
        nulls[at / 8] |= 1 << (at % 8);
    }
    out.extend_from_slice(&nulls);
    out.push(u8::from(types));
    for (kind, flag, _) in params.iter().filter(|_| types) {
        out.extend_from_slice(&[*kind, *flag]);
    }
    for bytes in params.iter().filter_map(|param| param.2) {
        out.extend_from_slice(bytes);
    }
    out
}

fn both(client: &mut Wire, direct: &mut Wire, sql: &str) -> [Statement; 2] {
    [client.prepare(sql), direct.prepare(sql)]
}

/// Values of every type that both servers know in parameters, each with some that are NULL.
#[test]
fn parameters_of_every_type_reach_their_rows() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let add = "ALTER TABLE log ADD a BIGINT UNSIGNED, ADD b DOUBLE, ADD c DECIMAL(20, 4), ADD d DATETIME(6), ADD e TIME(6), ADD f BLOB, ADD g DATE, ADD h BIT(16)";
        for wire in [&mut client, &mut direct] {
            wire.ok(add);
        }
        let cases: [(&str, Raw<'_>, Raw<'_>); 17] = [
            ("a", (1, 0x80, Some(b"\xff")), (1, 0x80, Some(b"\x07"))),
            ("a", (2, 0x80, Some(b"\xfe\xff")), (2, 0x80, None)),
            (
                "a",
                (3, 0, Some(b"\x01\0\0\0")),
                (3, 0, Some(b"\x02\0\0\0")),
            ),
            (
                "a",
                (8, 0x80, Some(b"\xff\xff\xff\xff\xff\xff\xff\xff")),
                (8, 0x80, Some(b"\x01\0\0\0\0\0\0\0")),
            ),
            (
                "b",
                (4, 0, Some(b"\xcd\xcc\x8c\x3f")),
                (4, 0, Some(b"\0\0\x40\x40")),
            ),
            (
                "b",
                (5, 0, Some(b"\x9a\x99\x99\x99\x99\x99\xb9\x3f")),
                (5, 0, Some(b"\0\0\0\0\0\0\x08\x40")),
            ),
            ("c", (246, 0, Some(b"\x07-3.5001")), (0, 0, Some(b"\x0212"))),
            (
                "d",
                (
                    12,
                    0,
                    Some(b"\x0b\xe8\x07\x01\x05\x0a\x0b\x0c\x01\x02\x03\0"),
                ),
                (12, 0, Some(b"\x04\xe8\x07\x02\x1d")),
            ),
            (
                "d",
                (7, 0, Some(b"\x07\xe8\x07\x01\x05\x0a\x0b\x0c")),
                (7, 0, None),
            ),
            (
                "e",
                (11, 0, Some(b"\x0c\x01\x02\0\0\0\x03\x04\x05\x01\0\0\0")),
                (11, 0, Some(b"\0")),
            ),
            (
                "f",
                (252, 0, Some(b"\x05\0'\\\"\xff")),
                (251, 0, Some(b"\0")),
            ),
            ("f", (249, 0, Some(b"\x01\xc3")), (250, 0, Some(b"\x02?,"))),
            ("g", (10, 0, Some(b"\x04\xe8\x07\x01\x05")), (10, 0, None)),
            ("h", (253, 0, Some(b"\x0201")), (254, 0, Some(b"\x01a"))),
            (
                "s",
                (253, 0, Some(b"\x04\xc3\xa9)(")),
                (15, 0, Some(b"\x03'?'")),
            ),
            ("s", (6, 0, None), (6, 0, None)),
            (
                "s",
                (254, 0, Some(b"\xfc\x03\0abc")),
                (3, 0, Some(b"\x05\0\0\0")),
            ),
        ];
        for (column, first, second) in cases {
            let sql = format!(
                "INSERT INTO log (id, {column}) VALUES (?, ?), (?, ?), (9, ?) ON DUPLICATE KEY UPDATE {column} = ?"
            );
            let statements = both(&mut client, &mut direct, &sql);
            for types in [true, false] {
                // Both tables of the group, by ids of different types.
                let params = [
                    (1, 0, Some(&b"\x04"[..])),
                    first,
                    (253, 0, Some(b"\x015")),
                    second,
                    first,
                    second,
                ];
                let payloads = statements.iter().map(|s| execution(s, &params, types));
                let mut payloads = payloads.collect::<Vec<_>>().into_iter();
                let here = client.command(&payloads.next().unwrap());
                let there = direct.command(&payloads.next().unwrap());
                assert_eq!(all(&here), all(&there), "{:?} {column} {first:?}", bed.kind);
            }
            for sql in [
                "SELECT * FROM log WHERE id IN (4, 8)",
                "SELECT * FROM log WHERE id = 5",
                "SELECT * FROM log WHERE id = 9",
                "DELETE FROM log WHERE id IN (4, 5, 9)",
            ] {
                let wanted = seen(&direct.query(sql));
                assert_eq!(seen(&client.query(sql)), wanted, "{column}: {sql}");
            }
        }
    }
}

/// Statements of every kind, with executions for one table, for two, and for none.
#[test]
fn prepared_writes_in_parts_are_done_as_one() {
    let int = Param::Int;
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            let stage = Stage::new(&bed, sharing);
            let (mut client, mut direct) = (stage.client(), stage.direct());
            let text = |text: &str| Param::from(text);
            let cases = [
                (
                    "INSERT INTO log VALUES (?, ?), (?, ?), (?, 'x')",
                    vec![
                        vec![int(4), text("a"), int(5), text("b"), int(8)],
                        vec![int(12), text("a"), int(5), text("b"), int(16)],
                        vec![int(12), text("a"), int(13), Param::Null, text("16")],
                        vec![int(20), text("a"), int(24), text("b"), int(28)],
                        vec![int(21), text("a"), int(25), text("b"), int(29)],
                    ],
                ),
                (
                    "SELECT s FROM log WHERE id = ?",
                    vec![vec![int(12)], vec![int(13)]],
                ),
                (
                    "INSERT IGNORE INTO log (s, id) VALUES (REPEAT(?, 50), ?), (?, ?)",
                    vec![vec![text("x"), int(32), text("y"), int(33)]],
                ),
                (
                    "REPLACE INTO log (s, id) VALUES (?, ?), (?, ?), ('z', 36)",
                    vec![vec![text("x"), int(4), text("y"), int(5)]],
                ),
                (
                    "UPDATE log SET s = CONCAT(s, ?) WHERE id IN (?, ?)",
                    vec![
                        vec![text("!"), int(4), int(5)],
                        vec![text("?"), int(4), int(8)],
                        vec![text("'"), int(5), Param::Null],
                        vec![text(&"x".repeat(60)), int(4), int(5)],
                    ],
                ),
                (
                    "SELECT s FROM log WHERE id = ?",
                    vec![vec![int(4)], vec![int(5)]],
                ),
                (
                    "DELETE FROM log WHERE id BETWEEN ? AND ? AND id IN (4, 5, 8)",
                    vec![
                        vec![int(4), int(5)],
                        vec![int(4), int(5)],
                        vec![int(0), int(9)],
                    ],
                ),
                (
                    "UPDATE log SET s = 'u' WHERE id IN (12, 13, 5)",
                    vec![vec![], vec![]],
                ),
            ];
            for around in ["", "BEGIN", "BEGIN"] {
                if !around.is_empty() {
                    client.ok(around);
                    direct.ok(around);
                }
                for (sql, executions) in &cases {
                    let [here, there] = both(&mut client, &mut direct, sql);
                    for params in executions {
                        let reply = client.execute(&here, params);
                        let wanted = direct.execute(&there, params);
                        let told = |reply: &Reply| match reply.results().first() {
                            Some(rows) if rows.len() > 1 => format!("{:?}", reply.binary_rows()),
                            _ => all(reply),
                        };
                        let at = format!("{:?} {sharing} {around}: {sql} {params:?}", bed.kind);
                        assert_eq!(
                            told(&reply),
                            told(&wanted)
                                .replace(&*stage.whole.to_string(), &stage.schema.to_string()),
                            "{at}"
                        );
                        for question in ["SELECT ROW_COUNT()", "SHOW WARNINGS"] {
                            let wanted = direct.query(question).rows();
                            assert_eq!(
                                client.query(question).rows(),
                                wanted,
                                "{question} after {at}"
                            );
                            // The next question is about this one.
                            client.execute(&here, params);
                            direct.execute(&there, params);
                        }
                    }
                    client.close_statement(&here);
                    direct.close_statement(&there);
                }
                if !around.is_empty() {
                    client.ok("ROLLBACK");
                    direct.ok("ROLLBACK");
                }
                for id in 0..40 {
                    let sql = format!("SELECT * FROM log WHERE id = {id}");
                    assert_eq!(
                        client.query(&sql).rows(),
                        direct.query(&sql).rows(),
                        "{sql}"
                    );
                }
            }
        }
    }
}

/// A part that cannot even be prepared leaves nothing of those before it.
#[test]
fn a_part_without_its_table_undoes_the_others() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        let statement = client.prepare("INSERT INTO log VALUES (?, 'x'), (?, 'y')");
        let params = [Param::Int(4), Param::Int(5)];
        bed.root(Node::Primary)
            .ok(&format!("DROP TABLE {}.log_1", stage.schema));
        for _ in 0..2 {
            let reply = client.execute(&statement, &params);
            assert_eq!(
                reply.error().map(|(code, _, text)| (code, text)),
                Some((1146, format!("Table '{}.log' doesn't exist", stage.schema)))
            );
            assert!(
                client
                    .query("SELECT * FROM log WHERE id = 4")
                    .rows()
                    .is_empty()
            );
        }
        bed.root(Node::Primary).ok(&format!(
            "CREATE TABLE {0}.log_1 LIKE {0}.log_0",
            stage.schema
        ));
        client.execute(&statement, &params).assert_ok();
        assert_eq!(client.query("SELECT s FROM log WHERE id = 5").cell(), "y");
    }
}

#[test]
fn prepared_definitions_are_made_on_every_table() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for sql in [
            "ALTER TABLE log ADD COLUMN x INT DEFAULT 3",
            "TRUNCATE TABLE log",
            "CREATE TABLE IF NOT EXISTS log (id BIGINT PRIMARY KEY)",
            "DROP TABLE IF EXISTS log",
            "CREATE TABLE log (id BIGINT PRIMARY KEY, s VARCHAR(40), x INT)",
        ] {
            let [here, there] = both(&mut client, &mut direct, sql);
            for _ in 0..2 {
                let reply = client.execute(&here, &[]);
                let wanted = direct.execute(&there, &[]);
                assert_eq!(
                    reply.error_code(),
                    wanted.error_code(),
                    "{:?}: {sql}",
                    bed.kind
                );
            }
            for sql in [
                "INSERT INTO log (id, s) VALUES (1, 'a')",
                "INSERT INTO log (id, s) VALUES (4, 'a'), (5, 'b')",
                "SELECT * FROM log WHERE id = 1",
                "SELECT * FROM log WHERE id = 5",
            ] {
                let wanted = seen(&direct.query(sql));
                assert_eq!(seen(&client.query(sql)), wanted, "{:?}: {sql}", bed.kind);
            }
        }
    }
}

/// Executions that take turns on two tables of a group: each of these is prepared once on a connection, and stays so.
#[test]
fn tables_that_take_turns_are_prepared_once_each() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, tag) = (stage.client(), unique_name("turns"));
        let sql = format!("SELECT s FROM log WHERE id = ? /* {tag} */");
        client.ok("INSERT INTO log (id, s) VALUES (4, 'zero'), (5, 'one')");
        let statement = client.prepare(&sql);
        // One connection, the primary's.
        client.ok("BEGIN");
        let marks = bed.marks();
        for turn in 0..8 {
            let (id, wanted) = [(4, &b"\x04zero"[..]), (5, b"\x03one")][turn % 2];
            let rows = client.execute(&statement, &[Param::Int(id)]);
            let rows = rows.assert_ok().binary_rows();
            assert_eq!(rows[0][0].as_deref(), Some(wanted));
        }
        client.ok("COMMIT");
        let entries = marks.entries(Node::Primary);
        let prepared = entries
            .iter()
            .filter(|entry| entry.command == "Prepare" && entry.text.contains(&tag));
        // One of them may have been there.
        assert!((1..=2).contains(&prepared.count()), "{:?}", bed.kind);
    }
}

/// On MySQL alone, without Atlas: whether a text is compared as a whole number or as a double is decided by the text of the first
/// execution, and later ones get other answers to the same values of the same types. A shard may see another first one than one server
/// with all rows would.
#[test]
fn a_text_is_compared_as_the_first_was() {
    let bed = Bed::mysql();
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!(
        "CREATE TABLE {schema}.o (uid BIGINT UNSIGNED PRIMARY KEY)"
    ));
    let key = 9_223_372_036_854_775_804;
    root.ok(&format!("INSERT INTO {schema}.o VALUES ({key})"));
    let sql = format!("SELECT uid FROM {schema}.o WHERE uid = ? AND uid + 0 = ?");
    let with = |text: &str| [Param::Int(key), Param::Text(text.to_owned())];
    // Its double is that of the row's number; it is another whole number.
    let asked = with("9223372036854775813");
    for (first, rows) in [
        (None, 0),
        (Some("5"), 0),
        (Some("5.5"), 0),
        (Some("x"), 1),
        (Some(" 9223372036854775801x"), 1),
    ] {
        let statement = root.prepare(&sql);
        if let Some(first) = first {
            root.execute(&statement, &with(first));
        }
        for _ in 0..2 {
            let found = root.execute(&statement, &asked).binary_rows().len();
            assert_eq!(found, rows, "behind {first:?}");
        }
        root.close_statement(&statement);
    }
}
