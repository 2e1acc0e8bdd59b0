//! Writes to several physical tables of one group, and INSERTs that name no columns.

use std::time::Duration;

use super::{check, placement};
use crate::shard::{Columns, Numbers, Plan};

#[test]
fn writes_are_divided_by_tables() {
    let cases = [
        (
            "INSERT INTO log (id, x) VALUES (4, 'a'), (5, '(,)'), (8, log(1)) ON DUPLICATE KEY UPDATE log.x = 1 -- x",
            "(0: INSERT INTO `log_10` (id, x) VALUES (4, 'a'), (8, log(1)) ON DUPLICATE KEY UPDATE `log_10`.x = 1 -- x, 0: INSERT INTO `log_11` (id, x) VALUES (5, '(,)') ON DUPLICATE KEY UPDATE `log_11`.x = 1 -- x)",
        ),
        (
            "REPLACE t1.log (x, id) VALUES ROW(1, 4), ROW(2, 4)",
            "0: REPLACE t1.`log_10` (x, id) VALUES ROW(1, 4), ROW(2, 4)",
        ),
        (
            "INSERT INTO log (id) VALUES (6) /* two */ , /* three */ (7), (6+0)",
            "(1: INSERT INTO `log_12` (id) VALUES (6), (6+0), 1: INSERT INTO `log_13` (id) VALUES (7))",
        ),
        (
            "UPDATE log SET x = 1 WHERE id IN (4, 5, 9)",
            "(0: UPDATE `log_10` AS log SET x = 1 WHERE id IN (4, 5, 9), 0: UPDATE `log_11` AS log SET x = 1 WHERE id IN (4, 5, 9))",
        ),
        (
            "DELETE FROM log WHERE id < 0 AND id > -100",
            "(0: DELETE FROM `log_0` WHERE id < 0 AND id > -100, 0: DELETE FROM `log_1` WHERE id < 0 AND id > -100)",
        ),
        (
            "INSERT INTO log (id) VALUES (4), (6)",
            "its rows belong on shards of several groups: insert them apart, or allow such writes with `multi_shard_writes = \"xa\"`",
        ),
        (
            "INSERT INTO log (id) VALUES (4), (5) RETURNING id",
            "RETURNING from several physical tables: say which with id = ...",
        ),
        (
            "UPDATE log SET x = 1 WHERE id IN (4, 5) ORDER BY id",
            "UPDATE ... ORDER BY or LIMIT over several physical tables: say which with id = ...",
        ),
        (
            "DELETE FROM log WHERE id IN (4, 5) LIMIT 1",
            "DELETE ... ORDER BY, LIMIT or RETURNING over several physical tables: say which with id = ...",
        ),
        (
            "INSERT INTO wide (uid) VALUES (2), (0), (1), (4)",
            "across (2: INSERT INTO `wide_2` (uid) VALUES (2), 0: INSERT INTO `wide_0` (uid) VALUES (0), (4), 0: INSERT INTO `wide_1` (uid) VALUES (1))",
        ),
        (
            "DELETE FROM wide WHERE uid IN (1, 3)",
            "across (0: DELETE FROM `wide_1` WHERE uid IN (1, 3), 2: DELETE FROM `wide_3` WHERE uid IN (1, 3))",
        ),
        (
            "DELETE FROM wide WHERE uid IN (2, 3)",
            "(2: DELETE FROM `wide_2` WHERE uid IN (2, 3), 2: DELETE FROM `wide_3` WHERE uid IN (2, 3))",
        ),
        (
            "UPDATE log SET x = 1",
            "a write that several shards may have rows for: say which with id = ... or IN (...), or allow such writes with `multi_shard_writes = \"xa\"`",
        ),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
}

#[test]
fn columns_that_are_not_named_are_those_of_the_table() {
    let placement = placement();
    let mut columns = Columns::default();
    let go = |columns: &Columns, sql: &str| {
        let asked = super::asked(sql, Numbers::None);
        match placement.plan_text_with(asked, Some(b"t1"), columns) {
            Some(Plan::One(leg)) => super::in_words(&leg),
            Some(Plan::Columns(table)) => format!("columns of {table}"),
            Some(Plan::Refuse(refused)) => refused.reason().to_owned(),
            other => format!("{other:?}"),
        }
    };
    let sql = "INSERT INTO ord VALUES (7, 3), (8, 5)";
    assert_eq!(go(&columns, sql), "columns of 0");
    let table = &placement.tables[0];
    let rows = |names: &'static [(&'static str, &'static str)]| {
        let bytes = |(name, extra): &(&'static str, &'static str)| {
            (name.as_bytes(), &b"int"[..], extra.as_bytes())
        };
        names.iter().map(bytes)
    };
    assert!(!columns.note(table, rows(&[("x", "INVISIBLE")]), Duration::ZERO));
    let told = rows(&[
        ("hid", "STORED GENERATED INVISIBLE"),
        ("amt", ""),
        ("UID", "auto_increment"),
    ]);
    assert!(columns.note(table, told, Duration::from_secs(5)));
    assert_eq!(
        go(&columns, sql),
        "2: INSERT INTO ord (`amt`, `UID`) VALUES (7, 3), (8, 5)"
    );
    for (sql, wanted) in [
        (
            "INSERT INTO ord SELECT 1, 3 FROM item WHERE uid = 3",
            "2: INSERT INTO ord (`amt`, `UID`) SELECT 1, 3 FROM item WHERE uid = 3",
        ),
        (
            "REPLACE t1.`ord` /* a */ ( /* b */ )VALUE(7, 3)",
            "2: REPLACE t1.`ord` /* a */  (`amt`, `UID`)VALUE(7, 3)",
        ),
    ] {
        assert_eq!(go(&columns, sql), wanted);
    }
    assert_eq!(
        go(&columns, "INSERT INTO ord VALUES (1, 2, 3)"),
        "a row has more or fewer values than there are columns: give each column one"
    );
    columns.expire(Duration::from_millis(5_999));
    assert!(go(&columns, sql).starts_with("2: "));
    columns.expire(Duration::from_secs(6));
    assert_eq!(go(&columns, sql), "columns of 0");
}
