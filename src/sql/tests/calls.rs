//! Calls: what is built in, what may write, what is tied to a connection.
//!
//! Names with a number (`b003…`) are those of reported faults of other proxies.

use super::*;
use crate::sql::{Kind, Reason};

#[test]
fn b016_sequences_move_on_the_primary() {
    all(
        Some(Reason::Sequence),
        &[
            "SELECT NEXT VALUE FOR sq",
            "SELECT PREVIOUS VALUE FOR sq",
            "SELECT a, next\nvalue for sq FROM t",
        ],
    );
    on(
        &MARIADB,
        &[
            ("SELECT NEXTVAL(sq)", Some(Reason::Sequence)),
            ("SELECT LASTVAL(sq)", Some(Reason::Sequence)),
            ("SELECT setval (sq, 5)", Some(Reason::Sequence)),
            ("SELECT sq.nextval FROM dual", Some(Reason::Sequence)),
            ("SELECT db.sq.CURRVAL", Some(Reason::Sequence)),
            ("SELECT nextval FROM t", None),
        ],
    );
    on(
        &MYSQL,
        &[
            ("SELECT NEXTVAL(sq)", Some(Reason::UnknownFunction)),
            ("SELECT t.nextval FROM t", None),
        ],
    );
}

#[test]
fn b017_functions_that_are_not_built_in_may_write() {
    all(
        Some(Reason::UnknownFunction),
        &[
            "SELECT ff()",
            "SELECT id, ff ( ) FROM t WHERE id=1",
            "SELECT db.ff()",
            "SELECT db . ff ( 1 )",
            "SELECT ff/* x */()",
            "SELECT `ff`()",
            "SELECT `db`.`ff`(1)",
            "SELECT db.abs(1)",
            "SELECT `now`()",
            "SELECT 1 FROM t WHERE a = 1 AND ff(b)",
            "SELECT 1 FROM t ORDER BY ff(b)",
            "SELECT 1 FROM (SELECT ff(1) AS a) x",
            "SELECT CONCAT('a', ff(1))",
            "SELECT {fn ff()}",
            "SELECT a MOD ff(1)",
            "SELECT a FROM t WHERE a LIKE ff(1)",
            "SELECT CASE WHEN ff(1) THEN 1 END",
            "WITH c AS (SELECT ff(1)) SELECT * FROM c",
            "WITH c AS (SELECT 1) SELECT ff(1) FROM c",
            "WITH c AS (SELECT 1), d AS (SELECT 2) SELECT 1, ff(1) FROM c",
            "SELECT 1 FROM (SELECT a FROM t GROUP BY a WITH ROLLUP) x WHERE a IN (1, ff(1))",
            "SELECT 1ff(1)",
            "SELECT \u{e9}(1)",
            "TABLE t ORDER BY ff(a)",
            "EXPLAIN SELECT ff(1)",
            "DESC SELECT ff(1)",
            "SHOW TABLES WHERE ff(1)",
            // Built in only if ( follows at once.
            "SELECT COUNT (1)",
            "SELECT now ()",
            "SELECT MAX/**/(a) FROM t",
            "SELECT SUBSTR (a, 1)",
        ],
    );
}

#[test]
fn built_in_functions_and_other_words_before_a_parenthesis_are_plain() {
    all(
        None,
        &[
            "SELECT COUNT(*), MAX(a), CONCAT (a, 'x'), IF(a, 1, 2), LEFT(a, 1), INSERT('a', 1, 1, 'b'), REPLACE(a, 'b', 'c')",
            "SELECT a FROM t WHERE a IN (1, 2) AND (b = 1 OR (c = 2)) AND NOT (d)",
            "SELECT a FROM t WHERE EXISTS (SELECT 1) AND a > ALL (SELECT 1) AND a = ANY (SELECT 2)",
            "SELECT CAST(a AS CHAR(10)), CONVERT(a, DECIMAL(10,2)), CAST(1 AS SIGNED), CONVERT(a USING utf8mb4) FROM t",
            "SELECT * FROM t1 JOIN t2 USING (id) JOIN (SELECT 1) x ON (x.a = t1.a)",
            "SELECT * FROM (t1, t2) LEFT JOIN (t3) ON (1)",
            "SELECT * FROM t USE INDEX (i) IGNORE KEY (PRIMARY)",
            "SELECT * FROM t PARTITION (p0, p1)",
            "SELECT a FROM t UNION (SELECT 1) UNION ALL (SELECT 2) EXCEPT (SELECT 3) INTERSECT (SELECT 4)",
            "SELECT SUM(a) OVER (PARTITION BY b ORDER BY c), ROW_NUMBER() OVER w, RANK() OVER (w) FROM t WINDOW w AS (PARTITION BY b)",
            "WITH c (a, b) AS (SELECT 1, 2), d(x) AS (SELECT 3) SELECT * FROM c, d",
            "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c",
            "SELECT * FROM (SELECT 1, 2) AS x (a, b)",
            "SELECT * FROM (SELECT 1, 2) x (a, b)",
            "SELECT MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE) FROM t",
            "SELECT a FROM t WHERE (a, b) IN ((1, 2)) AND a BETWEEN (1) AND (2)",
            "SELECT INTERVAL (1) DAY + NOW(), DATE_ADD(a, INTERVAL (1) DAY) FROM t",
            "SELECT CASE (a) WHEN (1) THEN (2) ELSE (3) END FROM t WHERE (a) LIKE ('x') AND a REGEXP ('y')",
            "SELECT DISTINCT (a), SQL_NO_CACHE (1) FROM t GROUP BY (a) HAVING (a) ORDER BY (a) LIMIT 5",
            "SELECT SQL_CALC_FOUND_ROWS (a) FROM t",
            "SELECT ROW(1, 2) = (1, 2), a DIV (2), a MOD (3), a XOR (b), - (1), BINARY (a) FROM t",
            "SELECT VALUES(a), DEFAULT(a) FROM t",
            "SELECT JSON_EXTRACT(a, '$.x'), a->>'$.y', JSON_VALUE(a, '$.b') FROM t",
            "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (id FOR ORDINALITY, a INT PATH '$')) AS jt",
            "SELECT * FROM t, JSON_TABLE(t.j, '$[*]' COLUMNS (a VARCHAR(10) PATH '$', NESTED PATH '$.b' COLUMNS (c INT PATH '$'))) jt",
            "SELECT UTC_TIMESTAMP, CURRENT_TIMESTAMP(6), CURRENT_USER(), CURDATE(), NOW(6), SYSDATE()",
            "SELECT USER(), DATABASE(), VERSION(), UUID(), RAND(5), SLEEP(0), BENCHMARK(1, 1), LOAD_FILE('x')",
            "SELECT ST_Distance(a, ST_GeomFromText('POINT(1 1)')), POINT(1, 2) FROM t",
            "SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR ','), JSON_ARRAYAGG(a), BIT_OR(a), STD(a) FROM t",
            "SELECT TRIM(BOTH 'x' FROM a), EXTRACT(YEAR FROM a), POSITION('x' IN a), CHAR(77 USING utf8mb4) FROM t",
            "SELECT REGEXP_REPLACE(a, 'b', 'c'), AES_DECRYPT(a, 'k'), SHA2(a, 256), CRC32(a), INET6_NTOA(a) FROM t",
            "SELECT GET_FORMAT(DATE, 'USA'), TIMESTAMPDIFF(SECOND, a, b), WEIGHT_STRING('a' AS CHAR(3)) FROM t",
            "SELECT {fn now()}, {d '2020-01-01'}",
            "SELECT get_lock_name, last_insert_id_copy, found_rows, t.row_count FROM t",
            "SELECT a FROM t PROCEDURE ANALYSE(10, 2000)",
        ],
    );
    on(
        &MYSQL,
        &[
            (
                "SELECT UUID_TO_BIN(a), BIN_TO_UUID(b), ANY_VALUE(c), GROUPING(d), REGEXP_LIKE(a, 'b') FROM t",
                None,
            ),
            (
                "SELECT * FROM t, LATERAL (SELECT 1) x WHERE a MEMBER OF ('[1]')",
                None,
            ),
            ("SELECT a FROM t GROUP BY ROLLUP (a)", None),
            // Moved to a component that may or may not be there.
            ("SELECT MD5(a) FROM t", Some(Reason::UnknownFunction)),
            ("SELECT NVL(a, 1) FROM t", Some(Reason::UnknownFunction)),
            ("SELECT PERCENTILE_CONT(0.5)", Some(Reason::UnknownFunction)),
        ],
    );
    on(
        &MARIADB,
        &[
            (
                "SELECT MD5(a), SHA1(a), NVL(a, 1), JSON_QUERY(a, '$'), COLUMN_GET(a, 'b' AS INT) FROM t",
                None,
            ),
            (
                "SELECT MEDIAN(a) OVER (PARTITION BY b), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) OVER () FROM t",
                None,
            ),
            ("SELECT UUID_TO_BIN(a)", Some(Reason::UnknownFunction)),
            ("SELECT ANY_VALUE(a)", Some(Reason::UnknownFunction)),
            ("SELECT json_table(1)", Some(Reason::UnknownFunction)),
            (
                "SELECT RANK () OVER (w) FROM t",
                Some(Reason::UnknownFunction),
            ),
        ],
    );
    let mysql_8 = Dialect::new(Server::MySql, 8_00_36);
    on(
        &mysql_8,
        &[
            ("SELECT MD5(a) FROM t", None),
            ("SELECT VECTOR_DIM(a)", Some(Reason::UnknownFunction)),
        ],
    );
    on(
        &Dialect::new(Server::MySql, 5_07_40),
        &[("SELECT RANK() FROM t", Some(Reason::UnknownFunction))],
    );
    on(
        &Dialect::new(Server::MariaDb, 10_06_00),
        &[("SELECT SFORMAT(a) FROM t", Some(Reason::UnknownFunction))],
    );
    on(&MARIADB, &[("SELECT SFORMAT(a) FROM t", None)]);
}

#[test]
fn b027_lock_functions() {
    all(
        Some(Reason::LockFunction),
        &[
            "SELECT GET_LOCK('m',0)",
            "SELECT IS_USED_LOCK('m') = CONNECTION_ID()",
            "SELECT IS_FREE_LOCK('m')",
            "SELECT RELEASE_LOCK ('m')",
            "SELECT RELEASE_ALL_LOCKS()",
            "SELECT 1 FROM t WHERE GET_LOCK('L',0)",
        ],
    );
    // B083: also where nothing is selected.
    for sql in [
        "DO GET_LOCK('L',0)",
        "INSERT INTO t SELECT GET_LOCK('L', 0)",
        "SET @a = GET_LOCK('L', 0)",
    ] {
        assert!(
            facts(sql, &MARIADB).traits.contains(Traits::LOCK_FUNCTION),
            "{sql}"
        );
    }
    assert!(
        facts("SELECT CONNECTION_ID()", &MARIADB)
            .traits
            .contains(Traits::CONNECTION_ID)
    );
}

#[test]
fn b085_and_kin_calc_found_rows_stays_a_read() {
    let statement = facts("SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1", &MARIADB);
    assert_eq!(
        (statement.kind, statement.traits),
        (Kind::Read, Traits::CALC_FOUND_ROWS)
    );
    assert_eq!(statement.wants_primary(), None);
    all(
        Some(Reason::Diagnostics),
        &[
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT ( )",
            "SHOW WARNINGS",
            "SHOW COUNT(*) ERRORS",
        ],
    );
    all(
        Some(Reason::LastInsertId),
        &[
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "SELECT id FROM t WHERE ROW_COUNT() = 1 AND id = LAST_INSERT_ID()",
        ],
    );
}

#[test]
fn found_rows_may_be_another_number() {
    for d in BOTH {
        for (sql, wanted) in [
            ("SELECT a FROM t", false),
            ("SELECT a FROM t LIMIT 5", false),
            ("SELECT a FROM t LIMIT 5 ", false),
            ("SELECT a FROM (SELECT b FROM u LIMIT ?) x", false),
            ("SELECT a FROM t UNION SELECT 1", false),
            ("SELECT a FROM t LIMIT 5, 10", true),
            ("SELECT a FROM t LIMIT ?,?", true),
            ("SELECT a FROM t LIMIT /* 1 */ 5 /* 2 */ , 10", true),
            ("SELECT a FROM t LIMIT 10 OFFSET 5", true),
            ("SELECT a FROM t OFFSET 5 ROWS FETCH NEXT 1 ROW ONLY", true),
            ("SELECT a FROM t UNION SELECT 1 LIMIT 1", true),
            ("(SELECT 1) EXCEPT (SELECT 2) LIMIT 1", true),
            ("INSERT INTO t VALUES (1, 2)", false),
            (
                "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
                false,
            ),
        ] {
            let traits = classify(sql.as_bytes(), &d).traits;
            assert_eq!(traits.contains(Traits::COUNTS_OTHERWISE), wanted, "{sql}");
        }
    }
}
