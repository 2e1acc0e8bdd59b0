//! Statements that are not run, and what their senders are told.

use super::check;

#[test]
fn what_needs_merging_and_what_cannot_be_followed() {
    let cases = [
        ("SELECT code, COUNT(*) FROM ord GROUP BY code", "GROUP BY"),
        ("SELECT COUNT(*) FROM ord", "COUNT()"),
        ("SELECT MAX(amt) + 1 FROM ord", "MAX()"),
        ("SELECT DISTINCT code FROM ord", "DISTINCT"),
        ("SELECT uid FROM ord ORDER BY uid", "ORDER BY"),
        ("SELECT uid FROM ord LIMIT 2 OFFSET 3", "offset"),
        ("SELECT uid FROM ord LIMIT 3, 2", "offset"),
        ("SELECT uid FROM ord HAVING uid > 1", "HAVING"),
        ("SELECT uid FROM ord FOR UPDATE", "locking"),
        ("SELECT uid FROM ord LOCK IN SHARE MODE", "locking"),
        (
            "SELECT SQL_CALC_FOUND_ROWS uid FROM ord",
            "SQL_CALC_FOUND_ROWS",
        ),
        ("SELECT ROW_NUMBER() OVER (ORDER BY uid) FROM ord", "window"),
        ("SELECT @a := uid FROM ord", "variable"),
        (
            "SELECT uid FROM ord UNION ALL SELECT uid FROM item",
            "UNION",
        ),
        ("(SELECT amt FROM ord) UNION (SELECT amt FROM ord)", "UNION"),
        ("WITH c AS (SELECT * FROM ord) SELECT * FROM c", "WITH"),
        ("SELECT * FROM (SELECT uid FROM ord LIMIT 4) x", "subquery"),
        (
            "SELECT uid FROM ord WHERE amt = (SELECT amt FROM ord WHERE uid = 6)",
            "subquery",
        ),
        (
            "SELECT uid FROM ord WHERE uid = 1 UNION SELECT uid FROM ord WHERE uid = 2",
            "UNION",
        ),
        (
            "SELECT * FROM ord o JOIN item i ON o.amt = i.amt",
            "not on their shard keys",
        ),
        (
            "SELECT * FROM ord o, item i WHERE o.uid = i.uid OR o.amt = 1",
            "not on their shard keys",
        ),
        ("SELECT * FROM ord o, item i", "not on their shard keys"),
        (
            "SELECT * FROM ord o JOIN quiet q ON o.uid = q.uid WHERE q.uid = 1 AND o.uid = 2 OR 1",
            "broadcast",
        ),
        (
            "SELECT * FROM zone z LEFT JOIN ord o ON o.uid = z.id",
            "outer join",
        ),
        (
            "SELECT * FROM ord o JOIN misc m ON m.uid = o.uid WHERE o.uid = 3",
            "unsharded",
        ),
        ("SELECT * FROM ord JOIN misc", "unsharded"),
        (
            "SELECT * FROM quiet WHERE amt = 1",
            "`broadcast = \"deny\"`",
        ),
        (
            "SELECT * FROM known WHERE amt = 1",
            "`broadcast = \"listed\"`",
        ),
        ("UPDATE ord SET amt = 1", "several shards may have rows"),
        (
            "UPDATE ord SET amt = 1 WHERE amt = 2",
            "several shards may have rows",
        ),
        (
            "DELETE FROM ord WHERE uid IN (1, 2)",
            "several shards may have rows",
        ),
        (
            "UPDATE ord SET uid = 4 WHERE uid = 2",
            "changes the shard key",
        ),
        (
            "UPDATE ord o SET o.uid = 4 WHERE uid = 2",
            "changes the shard key",
        ),
        (
            "INSERT INTO ord (uid) VALUES (2) ON DUPLICATE KEY UPDATE uid = 4",
            "changes the shard key",
        ),
        ("INSERT INTO ord VALUES (2, 1)", "columns of 0"),
        ("INSERT INTO ord () VALUES ()", "columns of 0"),
        (
            "INSERT INTO ord (amt) VALUES (1)",
            "no value for the shard key",
        ),
        ("INSERT INTO ord SET amt = 1", "no value for the shard key"),
        (
            "INSERT INTO ord (uid, amt) VALUES (DEFAULT, 1)",
            "known to the server only",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES (1 + RAND(), 1)",
            "known to the server only",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES (30, 1), (NULL, 7)",
            "NULL",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES (30, 1), (31, 7)",
            "several groups",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES ('3x', 1)",
            "another value",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES (3.5, 1)",
            "another value",
        ),
        (
            "INSERT INTO ord (uid, amt) VALUES (3, 1, 2)",
            "more or fewer",
        ),
        (
            "INSERT INTO ord (uid, amt) SELECT uid + 1000, amt FROM ord WHERE uid = 2",
            "known to the server only",
        ),
        (
            "INSERT INTO ord (uid, amt) SELECT uid, amt FROM ord",
            "several shards",
        ),
        (
            "INSERT INTO ord (uid, amt) SELECT uid, id FROM log l WHERE uid = 1 AND id = 2",
            "known to the server only",
        ),
        (
            "INSERT INTO zone SELECT uid, code FROM ord WHERE uid = 1",
            "global",
        ),
        ("INSERT INTO zone (id) VALUES (UUID_SHORT())", "global"),
        ("UPDATE zone SET name = NOW(6)", "global"),
        ("DELETE FROM zone", "global"),
        (
            "UPDATE ord o JOIN zone z ON z.id = o.amt SET z.name = 'x' WHERE o.uid = 3",
            "may change a global",
        ),
        (
            "UPDATE ord o JOIN zone z ON z.id = o.amt SET name = 'x' WHERE o.uid = 3",
            "may change a global",
        ),
        (
            "DELETE z FROM ord o JOIN zone z ON z.id = o.amt WHERE o.uid = 3",
            "not sharded",
        ),
        ("INSERT INTO log (id) VALUES (2000)", "no range"),
        ("INSERT INTO `sk-list` (k) VALUES ('é')", "printable ASCII"),
        (
            "INSERT INTO `sk-list` (k) VALUES (CONCAT('d', 'e'))",
            "known to the server only",
        ),
        ("DROP TABLE IF EXISTS x, ord", "this kind of statement"),
        ("CREATE TABLE x LIKE ord", "this kind of statement"),
        (
            "CREATE VIEW v AS SELECT * FROM ord",
            "this kind of statement",
        ),
        ("RENAME TABLE x TO y, ord TO z", "RENAME of a sharded"),
        ("LOCK TABLES x READ, ord WRITE", "this kind of statement"),
        (
            "SET @x = (SELECT amt FROM ord WHERE uid = 1)",
            "this kind of statement",
        ),
        (
            "LOAD DATA INFILE 'x' INTO TABLE ord",
            "this kind of statement",
        ),
        ("HANDLER ord OPEN", "this kind of statement"),
        ("TABLE ord", "not understood"),
        (
            "SELECT 1; SELECT * FROM ord WHERE uid = 1",
            "more than one statement",
        ),
        (
            "SELECT * FROM ord WHERE uid = 1 INTO OUTFILE 'x'",
            "not understood",
        ),
        ("SELECT * FROM ord WHERE (uid = 1", "not understood"),
        (
            "SELECT * FROM ord PARTITION (p0) WHERE uid = 1",
            "PARTITION",
        ),
        ("SELECT 'x FROM ord", "-"),
        ("SELECT * FROM ord WHERE uid = 'x", "no end"),
        ("WITH ord AS (SELECT 1) SELECT * FROM ord", "WITH gives"),
        (
            "WITH c AS (SELECT 1 AS i) DELETE FROM ord WHERE uid IN (SELECT i FROM c)",
            "behind WITH",
        ),
        (
            "DELETE t1.ord FROM t1.ord JOIN item USING (uid) WHERE ord.uid = 1",
            "without its schema",
        ),
    ];
    check(
        cases.map(|(sql, part)| (sql.to_owned(), part)),
        |told, part| told.contains(part),
    );
}

/// What a hostile client may send: it is refused, or answered, in bounded time, and the stack holds.
#[test]
fn hostile_texts() {
    // What a worker has.
    let worker = std::thread::Builder::new().stack_size(crate::shard::STACK);
    worker.spawn(hostile).unwrap().join().unwrap();
}

fn hostile() {
    let deep = |open: &str, close: &str, n: usize| {
        format!(
            "SELECT * FROM ord WHERE {}uid{} = 1",
            open.repeat(n),
            close.repeat(n)
        )
    };
    let cases = [
        (
            format!("SELECT {} FROM ord", vec!["1"; 40_000].join("+")),
            "operators",
        ),
        (
            format!(
                "SELECT * FROM ord WHERE {}",
                vec!["uid=1"; 40_000].join(" AND ")
            ),
            "operators",
        ),
        (
            format!(
                "SELECT * FROM ord WHERE {}",
                vec!["uid IN (1, 2)"; 40_000].join(" OR ")
            ),
            "operators",
        ),
        (
            format!(
                "SELECT uid FROM ord {}",
                "UNION ALL SELECT 1, 2 ".repeat(40_000)
            ),
            "unites",
        ),
        (deep("(", ")", 10_000), "parentheses"),
        (deep("(", ")", 55), ""),
        (deep("-(", ")", 60), ""),
        (
            format!("SELECT * FROM ord WHERE {} uid", "NOT ".repeat(900)),
            "",
        ),
        (format!("SELECT {}uid FROM ord", "-".repeat(900)), ""),
        (
            format!(
                "SELECT * FROM ord WHERE {}",
                vec!["uid=1"; 450].join(" AND ")
            ),
            "2",
        ),
        (
            format!(
                "SELECT * FROM ord WHERE {}",
                vec!["uid=1"; 450].join(" OR ")
            ),
            "2",
        ),
        (
            format!("SELECT {} FROM ord", vec!["1"; 990].join("+")),
            "[0, 2]",
        ),
        (
            format!(
                "INSERT INTO ord (uid, amt) VALUES {}",
                vec!["(-1, -2)"; 50_000].join(",")
            ),
            "2",
        ),
        (
            format!(
                "INSERT INTO ord (uid, s) VALUES (1, '{}')",
                "x".repeat(1 << 20)
            ),
            "longer",
        ),
        (
            format!(
                "SELECT * FROM ord WHERE uid IN ({})",
                vec!["1"; 100_000].join(",")
            ),
            "2",
        ),
        (
            format!("SELECT * FROM ord WHERE {}", "CASE WHEN ".repeat(900)),
            "",
        ),
        (format!("SELECT * FROM {} ord", "ord JOIN ".repeat(300)), ""),
    ];
    check(cases, |told, part| told.contains(part));
}
