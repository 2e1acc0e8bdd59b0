//! Definitions of sharded tables.

use super::{check, goes};

#[test]
fn every_table_is_defined() {
    let all = "each (0: TRUNCATE `log_0`, 0: TRUNCATE `log_1`, 0: TRUNCATE `log_10`, 0: TRUNCATE `log_11`, 1: TRUNCATE `log_12`, 1: TRUNCATE `log_13`, 2)";
    assert_eq!(goes("TRUNCATE log"), all);
    let cases = [
        ("TRUNCATE TABLE t1.ord", "each (0, 2)"),
        (
            "ALTER TABLE ord ADD x INT, ADD KEY (uid), DROP KEY b, RENAME COLUMN a TO b",
            "each (0, 2)",
        ),
        (
            "alter online table if exists ord drop column if exists amt",
            "each (0, 2)",
        ),
        (
            "CREATE TABLE IF NOT EXISTS ord (uid INT, s VARCHAR(9) COMMENT 'like item')",
            "each (0, 2)",
        ),
        ("CREATE UNIQUE INDEX item ON ord (a)", "each (0, 2)"),
        ("DROP INDEX item ON ord", "each (0, 2)"),
        ("DROP TABLE IF EXISTS ord CASCADE;", "each (0, 2)"),
        ("DROP INDEX a ON misc", "-"),
        ("ALTER TABLE misc ADD ord INT", "-"),
        ("CREATE TABLE misc (ord INT)", "-"),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
}

#[test]
fn what_cannot_be_done_to_each_is_refused() {
    let cases = [
        ("ALTER TABLE ord RENAME TO o", "RENAME"),
        ("ALTER TABLE ord DROP uid", "changes the shard key"),
        (
            "ALTER TABLE ord ADD a INT, CHANGE COLUMN UID u INT",
            "changes the shard key",
        ),
        (
            "ALTER TABLE ord EXCHANGE PARTITION p WITH TABLE x",
            "EXCHANGE",
        ),
        (
            "ALTER TABLE ord ADD FOREIGN KEY (a) REFERENCES item (uid)",
            "another sharded or global table",
        ),
        ("CREATE TABLE ord LIKE x", "LIKE"),
        ("CREATE TABLE ord (LIKE x)", "LIKE"),
        ("CREATE TABLE ord AS SELECT 1", "SELECT"),
        ("DROP TABLE ord, misc", "one by one"),
        ("DROP TABLE misc, ord", "this kind of statement"),
        ("TRUNCATE ord; SELECT 1", "send it alone"),
        (
            "CREATE TEMPORARY TABLE ord (a INT)",
            "this kind of statement",
        ),
        (
            "RENAME TABLE ord TO o",
            "has too: rename its tables in each group, by their names there",
        ),
        (
            "RENAME TABLE o TO p, t1.zone TO q",
            "RENAME of a sharded or global table",
        ),
        ("ALTER TABLE ord RENAME AS o", "by their names there"),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told.contains(wanted),
    );
}
