//! Names in answers.

use std::sync::Arc;

use super::placement;
use crate::shard::{Dress, Numbers, Part, Plan, Shows};
use crate::wire::{Capabilities, ColumnDef, ErrPacket, Header, PacketWriter, TextRow};

const CAPS: Capabilities = Capabilities::PROTOCOL_41;

/// For `log_12` in group `s1`, where the schema is `t1_b`.
fn dress(sql: &str) -> Option<Dress> {
    let placement = Arc::new(placement());
    let asked = super::asked(sql, Numbers::None);
    match placement.plan_text(asked, Some(b"t1")) {
        Some(Plan::One(leg)) => Dress::new(&placement, &leg),
        other => panic!("{sql}: {other:?}"),
    }
}

fn message(code: u16, text: &str) -> String {
    let dress = dress("SELECT * FROM log WHERE id = 2").unwrap();
    let message = dress.message(code, text.as_bytes());
    message.map_or_else(|| text.to_owned(), |text| String::from_utf8(text).unwrap())
}

#[test]
fn messages_have_the_clients_names() {
    for (code, there, known) in [
        (
            1146,
            "Table 't1_b.log_12' doesn't exist",
            "Table 't1.log' doesn't exist",
        ),
        (
            1062,
            "Duplicate entry '2' for key 'log_12.PRIMARY'",
            "Duplicate entry '2' for key 'log.PRIMARY'",
        ),
        (
            1062,
            "Duplicate entry 't1_b.log_12' for key 'log_12.s'",
            "Duplicate entry 't1_b.log_12' for key 'log.s'",
        ),
        (
            1062,
            "Duplicate entry 'log_12' for key 'PRIMARY'",
            "Duplicate entry 'log_12' for key 'PRIMARY'",
        ),
        (
            1366,
            "Incorrect integer value: 'log_12' for column `t1_b`.`log_12`.`x` at row 1",
            "Incorrect integer value: 'log_12' for column `t1`.`log`.`x` at row 1",
        ),
        (
            1292,
            "Truncated incorrect DOUBLE value: 'log_12'",
            "Truncated incorrect DOUBLE value: 'log_12'",
        ),
        (
            1644,
            "'log_12' is what the trigger says",
            "'log_12' is what the trigger says",
        ),
        (
            1452,
            "Cannot add or update a child row: a foreign key constraint fails (`t1_b`.`log_12`, CONSTRAINT `log_12_ibfk_1` FOREIGN KEY (`x`) REFERENCES `y` (`id`))",
            "Cannot add or update a child row: a foreign key constraint fails (`t1`.`log`, CONSTRAINT `log_ibfk_1` FOREIGN KEY (`x`) REFERENCES `y` (`id`))",
        ),
        (
            3819,
            "Check constraint 'log_12_chk_1' is violated.",
            "Check constraint 'log_chk_1' is violated.",
        ),
        (
            1054,
            "Unknown column 'log_12.x' in 'where clause'",
            "Unknown column 'log.x' in 'where clause'",
        ),
        (
            1054,
            "Unknown column 'log_123' in 'where clause'",
            "Unknown column 'log_123' in 'where clause'",
        ),
        (
            1054,
            "Unknown column 'catalog_12' in 'field list'",
            "Unknown column 'catalog_12' in 'field list'",
        ),
        (1049, "Unknown database 't1_b'", "Unknown database 't1'"),
        (
            1142,
            "SELECT command denied to user 'u'@'h' for table 'LOG_12'",
            "SELECT command denied to user 'u'@'h' for table 'log'",
        ),
        (1105, "", ""),
    ] {
        assert_eq!(message(code, there), known);
    }
}

#[test]
fn definitions_have_the_clients_names() {
    let dress = dress("SELECT * FROM log WHERE id = 2").unwrap();
    let long = "n".repeat(300);
    for (schema, table, original, wanted) in [
        ("t1_b", "log", "log_12", Some(("t1", "log", "log"))),
        ("t1_b", "l", "log_12", Some(("t1", "l", "log"))),
        ("t1_b", "zone", "zone", Some(("t1", "zone", "zone"))),
        ("", "", "", None),
        ("other", "x", "y", None),
    ] {
        let column = ColumnDef {
            schema: schema.as_bytes(),
            table: table.as_bytes(),
            org_table: original.as_bytes(),
            org_name: b"log_12",
            ..ColumnDef::text(long.as_bytes())
        };
        let mut packet = Vec::new();
        column.write(&mut packet, 7, CAPS);
        let mut out = b"before".to_vec();
        let is_changed = dress.write(Part::Definition, &packet[4..], 7, CAPS, &mut out);
        assert_eq!(is_changed, wanted.is_some());
        let Some((schema, table, original)) = wanted else {
            assert_eq!(out, b"before");
            continue;
        };
        let mut whole = b"before".to_vec();
        let column = ColumnDef {
            schema: schema.as_bytes(),
            table: table.as_bytes(),
            org_table: original.as_bytes(),
            ..column
        };
        column.write(&mut whole, 7, CAPS);
        assert_eq!(out, whole);
        // What is cut off is left as it is.
        for end in 0..40 {
            let mut out = Vec::new();
            let is_changed = dress.write(Part::Definition, &packet[4..4 + end], 7, CAPS, &mut out);
            assert!(!is_changed || Header::parse(&out).is_some_and(|h| h.len + 4 == out.len()));
        }
    }
}

#[test]
fn rows_that_show_tables_have_the_clients_names() {
    let row = |sql: &str, values: &[Option<&str>]| {
        let mut packet = Vec::new();
        let mut w = PacketWriter::begin(&mut packet, 3);
        for value in values {
            match value {
                None => w.u8(0xfb),
                Some(value) => w.lenenc_bytes(value.as_bytes()),
            }
        }
        w.finish();
        let dress = dress(sql).unwrap();
        assert!(dress.reads_rows());
        let mut out = Vec::new();
        if !dress.write(Part::Row, &packet[4..], 3, CAPS, &mut out) {
            out = packet;
        }
        let values = TextRow::new(&out[4..]).map(|value| {
            let value = value.unwrap();
            value.map_or_else(
                || "NULL".to_owned(),
                |v| String::from_utf8_lossy(v).into_owned(),
            )
        });
        values.collect::<Vec<_>>().join("|")
    };
    assert_eq!(
        row(
            "SHOW INDEX FROM log",
            &[Some("log_0"), Some("0"), None, Some("log_0")]
        ),
        "log|0|NULL|log_0"
    );
    assert_eq!(
        row(
            "SHOW CREATE TABLE log",
            &[
                Some("log_0"),
                Some(
                    "CREATE TABLE `log_0` (\n  `log_0` int COMMENT 'CREATE TABLE `log_0` it''s',\n  CONSTRAINT `log_0_ibfk_1` FOREIGN KEY (`a`) REFERENCES `log_1` (`id`)\n) COMMENT='log_0'"
                )
            ]
        ),
        "log|CREATE TABLE `log` (\n  `log_0` int COMMENT 'CREATE TABLE `log_0` it''s',\n  CONSTRAINT `log_ibfk_1` FOREIGN KEY (`a`) REFERENCES `log` (`id`)\n) COMMENT='log_0'"
    );
    assert_eq!(
        row(
            "EXPLAIN DELETE FROM log WHERE id = 2",
            &[Some("1"), Some("DELETE"), Some("log_12"), Some("log_12")]
        ),
        "1|DELETE|log|log_12"
    );
    let warnings = dress("SELECT * FROM log WHERE id = 2").unwrap();
    assert!(!warnings.reads_rows());
    assert!(warnings.showing(Shows::Messages).reads_rows());
}

#[test]
fn errors_keep_their_code_and_state() {
    let dress = dress("SELECT * FROM log WHERE id = 2").unwrap();
    let error = ErrPacket {
        code: 1146,
        sqlstate: Some(*b"42S02"),
        message: b"Table 't1_b.log_12' doesn't exist",
    };
    let (mut there, mut known) = (Vec::new(), Vec::new());
    error.write(&mut there, 1, CAPS);
    assert!(dress.write(Part::Error, &there[4..], 1, CAPS, &mut known));
    let read = ErrPacket::parse(&known[4..]).unwrap();
    assert_eq!((read.code, read.sqlstate), (1146, Some(*b"42S02")));
    assert_eq!(read.message, b"Table 't1.log' doesn't exist");
}

/// Statements whose names are the client's own are not looked at.
#[test]
fn nothing_is_done_where_names_are_the_same() {
    assert!(dress("SELECT * FROM ord WHERE uid = 3").is_none());
    assert!(dress("SELECT * FROM log WHERE id = 1000").is_none());
}

#[test]
fn columns_that_have_no_name_but_their_expression_are_named_as_the_client_wrote_it() {
    let dress = dress("SELECT (SELECT s FROM log WHERE id = 2)").unwrap();
    for (there, wanted) in [
        (
            "(SELECT s FROM `log_12` AS log WHERE id = 2)",
            Some("(SELECT s FROM log WHERE id = 2)"),
        ),
        (
            "EXISTS (SELECT 1 FROM `t1_b`.`log_12` AS `log`)",
            Some("EXISTS (SELECT 1 FROM t1.`log`)"),
        ),
        ("`t1_b`.log.id + 1", Some("t1.log.id + 1")),
        ("CONCAT('`log_12` AS log', \"`t1_b`\")", None),
        ("`log_123` + 1", None),
        ("COUNT(*)", None),
        ("'unclosed", None),
        ("`", None),
    ] {
        let column = ColumnDef::text(there.as_bytes());
        let (mut packet, mut out) = (Vec::new(), Vec::new());
        column.write(&mut packet, 7, CAPS);
        let is_changed = dress.write(Part::Definition, &packet[4..], 7, CAPS, &mut out);
        assert_eq!(is_changed, wanted.is_some(), "{there}");
        if let Some(wanted) = wanted {
            let mut whole = Vec::new();
            ColumnDef::text(wanted.as_bytes()).write(&mut whole, 7, CAPS);
            assert_eq!(out, whole, "{there}");
        }
    }
}

#[test]
fn binary_rows_that_show_tables_have_the_clients_names() {
    let row = |head: &[u8], values: &[&str]| {
        let mut packet = Vec::new();
        let mut w = PacketWriter::begin(&mut packet, 3);
        w.bytes(head);
        for value in values {
            w.lenenc_bytes(value.as_bytes());
        }
        w.finish();
        packet
    };
    for (sql, head, there, wanted) in [
        (
            "SHOW CREATE TABLE log",
            &[0, 0][..],
            &["log_0", "CREATE TABLE `log_0` (`log_0` int)"][..],
            Some(&["log", "CREATE TABLE `log` (`log_0` int)"][..]),
        ),
        (
            "SHOW INDEX FROM log",
            &[0, 0, 0],
            &["log_0", "PRIMARY", "log_0"],
            Some(&["log", "PRIMARY", "log_0"]),
        ),
        // An EXPLAIN begins with numbers.
        (
            "EXPLAIN SELECT * FROM log WHERE id = -2",
            &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            &["SIMPLE", "log_0"],
            Some(&["SIMPLE", "log"]),
        ),
        ("SHOW CREATE TABLE log", &[0, 0], &["log_0"], None),
        ("SHOW CREATE TABLE log", &[0], &[], None),
        ("SHOW INDEX FROM log", &[0, 0, 0], &["log_00"], None),
    ] {
        let packet = row(head, there);
        let mut out = Vec::new();
        let dress = dress(sql).unwrap();
        let is_changed = dress.write(Part::Row, &packet[4..], 3, CAPS, &mut out);
        assert_eq!(is_changed, wanted.is_some(), "{sql} {there:?}");
        if let Some(wanted) = wanted {
            assert_eq!(out, row(head, wanted), "{sql}");
        }
    }
}
