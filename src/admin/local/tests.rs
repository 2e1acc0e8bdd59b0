//! Answers to what drivers and graphical clients ask.

use super::super::words::Words;
use super::*;

const FACTS: Facts<'static> = Facts {
    version: "8.0.36-Atlas",
    id: 7,
    user: "admin",
    host: "10.0.0.9",
    schema: None,
};

fn table(text: &str) -> Vec<Vec<Option<String>>> {
    let words: Vec<Word<'_>> = Words::new(text).collect();
    match answer_driver(&words, &FACTS) {
        Some(Answer::Table(table)) => {
            let head = table.columns().map(|name| Some(name.to_owned())).collect();
            std::iter::once(head).chain(table.rows().to_vec()).collect()
        }
        other => panic!("{text}: {other:?}"),
    }
}

fn text(rows: &[Vec<Option<String>>]) -> Vec<Vec<&str>> {
    rows.iter()
        .map(|row| {
            row.iter()
                .map(|value| value.as_deref().unwrap_or("NULL"))
                .collect()
        })
        .collect()
}

#[test]
fn lists() {
    for (sql, wanted) in [
        (
            "select @@version_comment limit 1",
            &[["@@version_comment"], ["Atlas admin"]][..],
        ),
        ("SELECT USER()", &[["USER()"], ["admin@10.0.0.9"]]),
        ("SELECT DATABASE()", &[["DATABASE()"], ["NULL"]]),
        ("SELECT CONNECTION_ID() AS `i`", &[["i"], ["7"]]),
        ("SELECT 1", &[["1"], ["1"]]),
        ("SELECT 'a b'", &[["a b"], ["a b"]]),
        (
            "SELECT @@GLOBAL.max_allowed_packet",
            &[["@@GLOBAL.max_allowed_packet"], ["67108864"]],
        ),
        ("SELECT VERSION() v", &[["v"], ["8.0.36-Atlas"]]),
    ] {
        let rows = table(sql);
        assert_eq!(text(&rows), wanted, "{sql}");
    }
    let jdbc = "/* mysql-connector-j-8.3.0 */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@session.transaction_isolation AS transaction_isolation";
    let rows = table(jdbc);
    assert_eq!(
        text(&rows),
        [
            [
                "auto_increment_increment",
                "character_set_client",
                "transaction_isolation"
            ],
            ["1", "utf8mb4", "REPEATABLE-READ"]
        ]
    );
}

#[test]
fn variables() {
    let rows = table("SHOW VARIABLES LIKE 'lower_case_%'");
    assert_eq!(text(&rows)[1..], [["lower_case_table_names", "0"]]);
    let rows = table(
        "SHOW SESSION VARIABLES WHERE Variable_name = 'autocommit' OR Variable_name IN ('read_only')",
    );
    assert_eq!(
        text(&rows)[1..],
        [["autocommit", "ON"], ["read_only", "OFF"]]
    );
    assert!(table("SHOW VARIABLES").len() > VARIABLES.len());
    assert_eq!(table("SHOW GLOBAL STATUS").len(), 1);
}

#[test]
fn patterns() {
    for (name, pattern, wanted) in [
        ("abc", "%", true),
        ("abc", "a%", true),
        ("abc", "%c", true),
        ("abc", "_b_", true),
        ("abc", "a%b", false),
        ("aab", "%ab", true),
        ("", "%", true),
        ("", "_", false),
        ("abc", "", false),
    ] {
        assert_eq!(
            is_like(name.as_bytes(), pattern.as_bytes()),
            wanted,
            "{name} {pattern}"
        );
    }
    // Not exponential.
    assert!(!is_like(
        &[b'a'; 200],
        "%a".repeat(100).replace('%', "%x").as_bytes()
    ));
}

#[test]
fn what_is_done_by_saying_so() {
    for sql in [
        "SET NAMES utf8mb4",
        "set autocommit=0",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET @@session.wait_timeout = 5, sql_mode = ''",
        "USE x",
        "BEGIN",
        "ROLLBACK",
        "SET character_set_results = NULL",
        "SET CHARACTER SET utf8",
    ] {
        let words: Vec<Word<'_>> = Words::new(sql).collect();
        assert_eq!(answer_driver(&words, &FACTS), Some(Answer::Ok), "{sql}");
    }
    for sql in [
        "",
        "SELECT",
        "SELECT a FROM b",
        "DELETE FROM x",
        "SHOW",
        "SET",
        "SET x",
        "SELECT sleep(1)",
        "SELECT a.b",
    ] {
        let words: Vec<Word<'_>> = Words::new(sql).collect();
        assert_eq!(answer_driver(&words, &FACTS), None, "{sql}");
    }
    let words: Vec<Word<'_>> = Words::new("SELECT @@nonesuch").collect();
    assert!(
        matches!(answer_driver(&words, &FACTS), Some(Answer::Refused(refusal)) if refusal.code == 1193)
    );
}
