//! Texts as a whole: hints, what does not end, long ones, character sets and sql_mode, first bytes.
//!
//! Names with a number (`b003…`) are those of reported faults of other proxies.

use super::*;
use crate::sql::{Hint, Kind, Reason, classify, classify_prefix};

#[test]
fn hints_move_reads_and_never_writes() {
    for (sql, hint, primary) in [
        (
            "/*master*/ SELECT 1",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        (
            "SELECT /* PRIMARY */ 1",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        (
            "SELECT 1 -- master",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        (
            "# master\nSELECT 1",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        (
            "SELECT /*+ master */ 1",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        ("/*slave*/ SELECT 1", Some(Hint::Replica), None),
        ("/*replica*/ SELECT 1", Some(Hint::Replica), None),
        ("/* group: g2 */ SELECT 1", Some(Hint::Group(b"g2")), None),
        (
            "/*group:g2*/ /*master*/ SELECT 1",
            Some(Hint::Group(b"g2")),
            Some(Reason::HintPrimary),
        ),
        (
            "/*slave*/ /*master*/ SELECT 1",
            Some(Hint::Primary),
            Some(Reason::HintPrimary),
        ),
        (
            "/*slave*/ DELETE FROM t",
            Some(Hint::Replica),
            Some(Reason::Write),
        ),
        (
            "/*group:a*/ INSERT INTO t VALUES (1)",
            Some(Hint::Group(b"a")),
            Some(Reason::Write),
        ),
        ("SELECT '/*master*/'", None, None),
        ("SELECT 1 /* not the master */", None, None),
        ("SELECT 1 /*!99999 master */", None, None),
        ("SELECT 1 /*/*master*/", None, None),
    ] {
        let statement = facts(sql, &MARIADB);
        assert_eq!(
            (statement.hint, statement.wants_primary()),
            (hint, primary),
            "{sql}"
        );
    }
}

#[test]
fn what_does_not_end_goes_to_the_primary() {
    all(
        Some(Reason::Unterminated),
        &[
            "SELECT 'x",
            "SELECT \"x",
            "SELECT `x",
            "SELECT 1 /* x",
            "SELECT 1 /*! x",
            "SELECT @'x",
            "SELECT 'x\\",
        ],
    );
    all(
        Some(Reason::Doubtful),
        &["SELECT 1 \0 FROM t", "SELECT `a\0b"],
    );
}

#[test]
fn b273_long_texts_are_read_to_their_end() {
    let long = "x".repeat(100_000);
    assert_eq!(
        facts(
            &format!("SELECT id FROM t WHERE s IN ('{long}') FOR UPDATE"),
            &MARIADB
        )
        .wants_primary(),
        Some(Reason::LockingRead)
    );
    let long = "y ".repeat(500_000);
    assert_eq!(
        facts(&format!("/* {long} */ DELETE FROM t WHERE id=1"), &MARIADB).wants_primary(),
        Some(Reason::Write)
    );
    let parens = "(".repeat(200_000);
    assert_eq!(
        facts(&format!("{parens}SELECT 1"), &MARIADB).kind,
        Kind::Read
    );
    let quotes = "`".repeat(200_001);
    assert_eq!(
        facts(&quotes, &MARIADB).wants_primary(),
        Some(Reason::Unterminated)
    );
}

#[test]
fn b282_the_character_set_decides_where_a_string_ends() {
    let text = b"SELECT '\xbf\x5c' AS g, id FROM t WHERE id=1 FOR UPDATE -- '";
    let batch = b"SELECT '\xbf\x5c'; DELETE FROM t WHERE id=2; -- '";
    for d in BOTH {
        let gbk = with_charset(d, Charset::Gbk);
        assert_eq!(
            classify(text, &gbk).wants_primary(),
            Some(Reason::LockingRead)
        );
        assert_eq!(classify(batch, &gbk).kind, Kind::Batch);
        // In UTF-8 the same bytes are one string to the last quote.
        assert_eq!(classify(text, &d).wants_primary(), None);
        assert_eq!(classify(batch, &d).kind, Kind::Read);
        let sjis = b"SELECT '\x83\x5c' FROM t FOR UPDATE -- '";
        assert_eq!(
            classify(sjis, &with_charset(d, Charset::Sjis)).wants_primary(),
            Some(Reason::LockingRead)
        );
        let name = b"SELECT `\xbf\x60` FROM t FOR UPDATE -- `";
        assert_eq!(
            classify(name, &gbk).wants_primary(),
            Some(Reason::LockingRead)
        );
        let blank = b"SELECT 1 FROM t FOR\xa0UPDATE";
        let latin1 = with_charset(d, Charset::from_name(b"latin1"));
        assert_eq!(
            classify(blank, &latin1).wants_primary(),
            Some(Reason::LockingRead)
        );
    }
}

#[test]
fn b283_without_backslash_escapes_a_backslash_ends_nothing() {
    let sql = r"SELECT '\' , id FROM t WHERE id=1 FOR UPDATE -- '";
    for d in BOTH {
        let plain = Dialect {
            no_backslash_escapes: true,
            ..d
        };
        assert_eq!(
            facts(sql, &plain).wants_primary(),
            Some(Reason::LockingRead)
        );
        assert_eq!(facts(sql, &d).wants_primary(), None);
        let ansi = Dialect {
            ansi_quotes: true,
            ..d
        };
        let sql = r#"SELECT "\" FROM t FOR UPDATE -- ""#;
        assert_eq!(facts(sql, &ansi).wants_primary(), Some(Reason::LockingRead));
        assert_eq!(facts(sql, &d).wants_primary(), None);
        // With ANSI_QUOTES, a quoted name before ( is a stored function.
        assert_eq!(
            facts("SELECT \"f\" (1)", &ansi).wants_primary(),
            Some(Reason::UnknownFunction)
        );
    }
}

#[test]
fn the_first_bytes_decide_only_by_a_whole_word() {
    for (sql, kind) in [
        ("INSERT INTO t VALUES ('xxx", Kind::Write),
        ("INSERT", Kind::Unknown),
        ("INSERT ", Kind::Write),
        ("/* x */ replace into t values (", Kind::Write),
        ("/* x", Kind::Unknown),
        ("SELECT 'x", Kind::Read),
        ("((SELECT", Kind::Unknown),
        ("((SELECT ", Kind::Read),
        ("CREATE TABLE", Kind::Ddl),
        ("CALL p('", Kind::Write),
        ("WITH c AS (", Kind::Unknown),
        ("BEGIN NOT ATOMIC", Kind::Unknown),
        ("SET @x = '", Kind::Unknown),
        ("LOAD DATA ", Kind::Unknown),
        ("FROBNICATE ", Kind::Unknown),
        ("", Kind::Unknown),
    ] {
        assert_eq!(classify_prefix(sql.as_bytes(), &MARIADB), kind, "{sql}");
    }
}
