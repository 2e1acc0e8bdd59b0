//! Questions for names of tables and schemas, and statements that would change them.

use super::{MAP, asked, check, goes, in_words, placement, placement_of};
use crate::shard::{Numbers, Placement, Plan, Shapes};

/// What a statement is sent as, for the account of the group `s0`.
fn sent(placement: &Placement, sql: &str, schema: Option<&[u8]>) -> String {
    match placement.plan_text(asked(sql, Numbers::None), schema) {
        None => "-".to_owned(),
        Some(Plan::One(leg)) => in_words(&leg),
        Some(Plan::Refuse(refused)) => refused.reason().to_owned(),
        Some(other) => format!("{other:?}"),
    }
}

/// The group `s0` has one of two sharded tables.
const ONE_OF_TWO: &str = r#"
    groups = [
        { name = "s0", primary = "h0" },
        { name = "s1", primary = "h1" },
        { name = "s2", primary = "h2" },
    ]
    users = [{ name = "u", password = "x", group = "s0" }]
    [[tables]]
    name = "t1.log"
    key = "id"
    ranges = [{ groups = ["s0", "s1"], tables = 2 }]
    [[tables]]
    name = "t1.far"
    key = "id"
    ranges = [{ groups = ["s1", "s2"] }]
"#;

#[test]
fn lists_are_asked_of_information_schema() {
    let placement = placement_of(ONE_OF_TWO);
    let from = "FROM (SELECT CASE WHEN TABLE_SCHEMA = 't1' AND TABLE_NAME = 'log_0' THEN 'log' ELSE TABLE_NAME END AS";
    let rest = "FROM information_schema.TABLES WHERE TABLE_SCHEMA = 't1' AND NOT (TABLE_SCHEMA = 't1' AND TABLE_NAME IN ('log', 'log_1', 'far'))";
    let far = "FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 't1'";
    let end =
        |header: &str| format!(" ORDER BY CAST(`{header}` AS BINARY) LIMIT 18446744073709551615");
    let plain = format!(
        "SELECT * {from} `Tables_in_t1` {rest} UNION ALL SELECT IF(SCHEMA_NAME = '', SCHEMA_NAME, 'far') {far}) AS TABLES "
    );
    let cases = [
        ("SHOW TABLES", format!("0: {plain}{}", end("Tables_in_t1"))),
        (
            "/* x */ show tables in t1 WHERE tables_in_t1 <> 'a' ; ",
            format!(
                "0: /* x */ {plain} WHERE tables_in_t1 <> 'a'{} ; ",
                end("Tables_in_t1")
            ),
        ),
        (
            "SHOW FULL TABLES LIKE 'l%'",
            format!(
                "0: SELECT * {from} `Tables_in_t1 (l%)`, TABLE_TYPE AS `Table_type` {rest} UNION ALL SELECT IF(SCHEMA_NAME = '', SCHEMA_NAME, 'far'), 'BASE TABLE' {far}) AS TABLES  WHERE CONVERT(`Tables_in_t1 (l%)` USING utf8mb4) COLLATE utf8mb4_bin LIKE CONVERT(IF(@@lower_case_table_names = 0, 'l%', LOWER('l%')) USING utf8mb4){}",
                end("Tables_in_t1 (l%)")
            ),
        ),
        ("SHOW DATABASES", "-".to_owned()),
        ("SHOW TABLES FROM t2", "-".to_owned()),
        ("SHOW TABLES FROM information_schema", "-".to_owned()),
        ("SHOW OPEN TABLES", "-".to_owned()),
        ("SHOW STATUS", "-".to_owned()),
        (
            "SET @a = 1; SHOW TABLES; SELECT 1",
            format!("0: SET @a = 1; {plain}{}; SELECT 1", end("Tables_in_t1")),
        ),
        (
            "SHOW TABLES; DELETE FROM log WHERE id = 1",
            "SHOW TABLES and a statement on a sharded or global table in one text: send it alone"
                .to_owned(),
        ),
        (
            "USE t2; SHOW TABLES",
            "SHOW TABLES behind USE in one text: name its schema (FROM), or send it alone"
                .to_owned(),
        ),
        (
            "CREATE PROCEDURE p() BEGIN SELECT 1; SHOW TABLES; END",
            "-".to_owned(),
        ),
    ];
    for (sql, wanted) in cases {
        assert_eq!(sent(&placement, sql, Some(b"t1")), wanted, "{sql}");
    }
    let status = sent(&placement, "SHOW TABLE STATUS WHERE Rows > 5", Some(b"t1"));
    assert!(
        status.contains("TABLE_ROWS AS `Rows`")
            && status.contains("TEMPORARY AS `Temporary`")
            && status.contains("WHERE Rows > 5 ORDER BY CAST(`Name`"),
        "{status}"
    );
    assert_eq!(sent(&placement, "SHOW TABLES", None), "-");
    // Where nothing has another name in the account's group, nothing is put in place.
    let map = ONE_OF_TWO
        .replace("t1_a", "t1")
        .replace("tables = 2", "tables = 1");
    let map = map.replace(r#"["s1", "s2"]"#, r#"["s0", "s2"]"#);
    let same = placement_of(&map);
    assert_eq!(sent(&same, "SHOW TABLES", Some(b"t1")), "0");
}

#[test]
fn queries_of_information_schema_have_the_known_names() {
    let placement = placement();
    let one = |sql: &str| sent(&placement, sql, Some(b"t1"));
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 't1' AND table_name LIKE 'l%'";
    let told = one(sql);
    assert!(
        told.starts_with("0: SELECT table_name FROM (SELECT TABLE_CATALOG AS `TABLE_CATALOG`, TABLE_SCHEMA AS `TABLE_SCHEMA`, CASE WHEN TABLE_SCHEMA = 't1' AND TABLE_NAME = 'log_0' THEN 'log'"),
        "{told}"
    );
    assert!(
        told.ends_with("AS `tables` WHERE table_schema = 't1' AND table_name LIKE 'l%'"),
        "{told}"
    );
    for hidden in ["'log_1'", "'log_10'", "'log_11'", "'wide_1'"] {
        assert!(told.contains(hidden), "{told}");
    }
    // That table is in another group.
    assert!(!told.contains("'log_12'"), "{told}");
    for (sql, wanted) in [
        (
            "SELECT c.column_name FROM INFORMATION_SCHEMA.`COLUMNS` c JOIN other o",
            ") c JOIN other o",
        ),
        ("(SELECT 1 FROM information_schema.columns AS c)", ") AS c)"),
        (
            "SELECT information_schema.statistics.index_name FROM information_schema.statistics",
            ") AS `statistics`",
        ),
        (
            "SELECT COUNT(*) FROM information_schema.key_column_usage WHERE table_name = ?",
            ") AS `key_column_usage` WHERE table_name = ?",
        ),
        (
            "EXPLAIN SELECT * FROM information_schema.table_constraints LIMIT 1",
            ") AS `table_constraints` LIMIT 1",
        ),
        (
            "WITH x AS (SELECT * FROM information_schema.referential_constraints) SELECT * FROM x",
            ") AS `referential_constraints`) SELECT * FROM x",
        ),
    ] {
        let told = one(sql);
        assert!(told.starts_with("0: ") && told.ends_with(wanted), "{told}");
        assert!(!told.contains("SELECT information_schema."), "{told}");
    }
    for sql in [
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM information_schema.processlist",
        "SELECT information_schema FROM misc",
        "DESC information_schema.tables",
        "SELECT 'information_schema.tables'",
        "INSERT INTO misc SELECT * FROM information_schema.tables",
    ] {
        let told = one(sql);
        assert!(told == "-" || told == "0", "{sql}: {told}");
    }
    // Beside a sharded table too, where the row is in the account's group.
    let both = one("SELECT o.amt FROM ord o JOIN information_schema.tables t WHERE o.uid = 2");
    assert!(
        both.starts_with("0: SELECT o.amt FROM ord o JOIN (SELECT "),
        "{both}"
    );
    let far = one("SELECT o.amt FROM ord o JOIN information_schema.tables t WHERE o.uid = 3");
    assert!(far.contains("not in the same group"), "{far}");
}

/// A text that comes again is answered in the same way.
#[test]
fn what_comes_again_has_its_names() {
    let placement = std::sync::Arc::new(placement_of(MAP));
    let mut shapes = Shapes::default();
    for number in 0..6 {
        let sql = format!("SELECT {number}, table_name FROM information_schema.tables");
        let asked = asked(&sql, Numbers::None);
        let columns = crate::shard::Columns::default();
        let again = shapes.plan(&placement, asked, Some(b"t1"), &columns);
        assert_eq!(again, placement.plan_text(asked, Some(b"t1")), "{sql}");
        assert!(matches!(again, Some(Plan::One(leg)) if leg.text.is_some()));
    }
}

#[test]
fn descriptions_name_the_schema_behind_the_table_too() {
    let cases = [
        (
            "SHOW FULL COLUMNS FROM `log` FROM `t1`",
            "0: SHOW FULL COLUMNS FROM `log_0` FROM `t1`",
        ),
        (
            "SHOW KEYS IN log IN t1 WHERE Key_name = 'a'",
            "0: SHOW KEYS IN `log_0` IN t1 WHERE Key_name = 'a'",
        ),
        ("SHOW INDEX FROM ord FROM t1", "0"),
        ("SHOW COLUMNS FROM misc FROM t1", "-"),
        ("SHOW COLUMNS FROM log FROM t2", "-"),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
    let placement = placement_of(MAP);
    let other = sent(&placement, "SHOW COLUMNS FROM log FROM t1", Some(b"t2"));
    assert_eq!(other, "0: SHOW COLUMNS FROM `log_0` FROM t1");
}

#[test]
fn names_of_the_configuration_are_not_given_away() {
    for sql in [
        "RENAME TABLE ord TO o",
        "rename tables ord to o",
        "RENAME TABLE IF EXISTS t1.ord TO t1.o",
        "RENAME TABLE ord WAIT 5 TO o",
        "RENAME TABLE misc TO m, ord TO misc",
        "RENAME TABLE ord TO x, item TO ord, x TO item",
        "RENAME TABLE zone TO z",
        "RENAME TABLE o TO p, t1.zone TO q",
        "/* a */ RENAME TABLE ord TO o",
        "ALTER TABLE zone RENAME TO z",
        "ALTER TABLE IF EXISTS zone ADD a INT, RENAME z",
    ] {
        let told = goes(sql);
        assert!(
            told.starts_with("RENAME of a sharded or global table"),
            "{sql}: {told}"
        );
    }
    for sql in [
        "ALTER TABLE ord RENAME o",
        "ALTER TABLE ord RENAME TO o",
        "ALTER TABLE ord RENAME AS o",
        "ALTER TABLE ord ADD a INT, RENAME = o",
        "ALTER ONLINE TABLE ord RENAME t2.ord",
        "ALTER IGNORE TABLE log RENAME log",
    ] {
        let told = goes(sql);
        assert!(
            told.contains("by their names there") || told.starts_with("RENAME to the name"),
            "{sql}: {told}"
        );
    }
}

#[test]
fn names_of_the_configuration_are_not_given_to_others() {
    for sql in [
        "RENAME TABLE misc TO ord",
        "RENAME TABLE misc TO t1.ord",
        "RENAME TABLE misc TO log_0",
        "RENAME TABLE misc TO LOG_12",
        "RENAME TABLE misc TO `sk-list`",
        "RENAME TABLE t2.a TO t1.wide_3",
        "RENAME TABLE misc TO zone",
        "RENAME TABLE a TO b, misc NOWAIT TO `log_1`",
        "ALTER TABLE misc RENAME log_0",
        "ALTER TABLE misc RENAME TO log",
        "ALTER TABLE misc RENAME AS t1.log_0",
        "ALTER TABLE misc RENAME = ord",
        "ALTER TABLE misc ADD a INT, RENAME zone",
    ] {
        let told = goes(sql);
        assert!(told.starts_with("RENAME to the name of"), "{sql}: {told}");
    }
    for sql in [
        "RENAME TABLE misc TO other",
        "RENAME TABLE misc TO log_99",
        "RENAME TABLE misc TO t2.ord",
        "RENAME USER ord TO log_0",
        "ALTER TABLE misc RENAME COLUMN ord TO log_0",
        "ALTER TABLE misc RENAME INDEX a TO log_0",
        "ALTER TABLE misc RENAME other",
        "ALTER TABLE misc ADD `rename` INT, COMMENT 'RENAME log_0'",
    ] {
        assert_eq!(goes(sql), "-", "{sql}");
    }
}
