//! Which reads may leave the primary: locks, INTO, comments and strings around them.
//!
//! Names with a number (`b003…`) are those of reported faults of other proxies.

use super::*;
use crate::sql::{Kind, Reason};

#[test]
fn b003_locking_reads_wherever_the_clause_stands() {
    all(
        Some(Reason::LockingRead),
        &[
            "SELECT id FROM t WHERE id=1 FOR UPDATE;",
            "SELECT id FROM t WHERE id=1 FOR UPDATE SKIP LOCKED",
            "SELECT id FROM t WHERE id=1 FOR UPDATE NOWAIT",
            "SELECT id FROM t WHERE id=1 FOR UPDATE WAIT 5",
            "SELECT id FROM t WHERE id=1 LOCK IN SHARE MODE",
            "SELECT id FROM t WHERE id=1\nFOR UPDATE",
            "SELECT id FROM t WHERE id=1 FOR SHARE",
            "SELECT id FROM t WHERE id=1 FOR UPDATE OF t",
            "SELECT id FROM t WHERE id=1 FOR SHARE OF t SKIP LOCKED",
            "SELECT id FROM t FOR UPDATE OF t FOR SHARE OF u",
            "TABLE t FOR UPDATE",
            "SELECT (SELECT a FROM t LIMIT 1 FOR UPDATE)",
            "SELECT a FROM t WHERE b IN (SELECT b FROM u LOCK IN SHARE MODE)",
            "SELECT a FROM t UNION SELECT 1 FOR UPDATE",
            "SELECT 1 WHERE x=1e5FOR UPDATE",
            "SELECT 1 WHERE x=1.FOR UPDATE",
            "SELECT 1 WHERE x='a'FOR UPDATE",
            "SELECT 1 WHERE x=`a`FOR UPDATE",
        ],
    );
}

#[test]
fn b004_locking_words_in_strings_names_and_comments_are_nothing() {
    all(
        Some(Reason::LockingRead),
        &["SELECT id FROM t WHERE id=1 LIMIT 1 FOR UPDATE"],
    );
    all(
        None,
        &[
            "SELECT 'x for update' AS c FROM t",
            "SELECT id AS 'for update' FROM t",
            "SELECT id FROM t WHERE s='lock in share mode'",
            "SELECT id FROM t -- for update",
            "SELECT id FROM t # for update",
            "SELECT id FROM t /* for update */",
            "SELECT id FROM t /*!99999 for update */",
            "SELECT t.for, t.update FROM t",
            "SELECT `for` `update` FROM t",
            "SELECT a FROM t USE INDEX FOR JOIN (i)",
            "SELECT a FROM t FORCE INDEX FOR ORDER BY (i) IGNORE KEY (j)",
            "SELECT SUBSTRING(a FROM 1 FOR 2) FROM t",
        ],
    );
}

#[test]
fn b005_comments_between_the_words_of_a_lock() {
    all(
        Some(Reason::LockingRead),
        &[
            "select id from t where id=1 for/**/update",
            "select id from t where id=1 for -- x\n update",
            "select id from t where id=1 for # x\n update",
            "SeLeCt id FROM t WHERE id=1\tFOR\tUPDATE",
            "SELECT id FROM t LOCK/**/IN/**/SHARE/**/MODE",
        ],
    );
}

#[test]
fn b008_leading_comments_hide_no_statement() {
    all(
        None,
        &["/* criteria\n   query */ select this_.id as y0_ from t this_"],
    );
    all(
        Some(Reason::Write),
        &["/* a\nb */ INSERT INTO t(v) VALUES(1)"],
    );
}

#[test]
fn b009_dashes_without_a_blank_are_no_comment() {
    all(None, &["SELECT 5--1", "SELECT 5-- 1", "SELECT 5--1 FROM t"]);
    all(
        Some(Reason::LockingRead),
        &["SELECT 5--1 FROM t FOR UPDATE"],
    );
    all(Some(Reason::Set), &["SET @s = --4"]);
}

#[test]
fn b012_executable_comments_are_code() {
    let rows = [
        ("/*!50000 DELETE FROM t WHERE id=3 */", Some(Reason::Write)),
        (
            "SELECT id FROM t WHERE id=1 /*!50000 FOR UPDATE */",
            Some(Reason::LockingRead),
        ),
        ("SELECT 1 /*!50000 + 1 */", None),
        ("/*!40101 SET NAMES utf8mb4 */", Some(Reason::Set)),
        ("/*!50000 SELECT */ a FROM t", None),
        ("SELECT /*!40001 SQL_NO_CACHE */ * FROM t", None),
        (
            "SELECT a /*! INTO OUTFILE 'x' */ FROM t",
            Some(Reason::Into),
        ),
        (
            "/*!50000 SELECT 1 */; DELETE FROM t",
            Some(Reason::MultiStatement),
        ),
        ("/*! SELECT 1; DELETE FROM t */", Some(Reason::Doubtful)),
        ("/*!50000 INSERT */ INTO t VALUES (1)", Some(Reason::Write)),
        (
            "SELECT a FROM t /*!50000 FOR */ UPDATE",
            Some(Reason::LockingRead),
        ),
        (
            "SELECT a FROM t /*!99999 ' */ FOR UPDATE -- '",
            Some(Reason::LockingRead),
        ),
    ];
    routes(&rows);
    on(
        &MARIADB,
        &[
            ("SELECT 1 /*M! + 1 */", None),
            (
                "/*M!100000 DELETE FROM t WHERE id=99 */",
                Some(Reason::Write),
            ),
            // For newer MySQL, so a comment here.
            ("SELECT a FROM t /*!80000 FOR UPDATE */", None),
        ],
    );
    on(
        &MYSQL,
        &[
            ("SELECT 1 /*M! FOR UPDATE */", None),
            (
                "/*M!100000 DELETE FROM t WHERE id=99 */",
                Some(Reason::Empty),
            ),
            (
                "SELECT a FROM t /*!80000 FOR UPDATE */",
                Some(Reason::LockingRead),
            ),
        ],
    );
}

#[test]
fn an_unknown_version_is_read_with_caution() {
    let d = Dialect::new(Server::MySql, 0);
    for sql in [
        "SELECT a FROM t /*!80000 FOR UPDATE */",
        "SELECT a /*!80000 , b */ FROM t",
    ] {
        assert_eq!(
            facts(sql, &d).wants_primary(),
            Some(Reason::Doubtful),
            "{sql}"
        );
    }
    assert_eq!(
        facts("SELECT /*!40001 SQL_NO_CACHE */ a FROM t", &d).wants_primary(),
        None
    );
}

#[test]
fn b015_set_statement_is_what_it_runs() {
    on(
        &MARIADB,
        &[
            (
                "SET STATEMENT max_statement_time=25 FOR UPDATE t SET v=11 WHERE id=1",
                Some(Reason::Write),
            ),
            (
                "SET STATEMENT max_statement_time=25 FOR SELECT v FROM t",
                None,
            ),
            (
                "SET STATEMENT a=1, b=(SELECT 1 FROM t FOR UPDATE) FOR SELECT v FROM t",
                Some(Reason::LockingRead),
            ),
            (
                "SET STATEMENT a=1 FOR SELECT v FROM t FOR UPDATE",
                Some(Reason::LockingRead),
            ),
            (
                "SET STATEMENT a=1 FOR (SELECT v FROM t) UNION (SELECT 1)",
                None,
            ),
            (
                "SET STATEMENT a=1 FOR WITH c AS (SELECT 1) SELECT * FROM c",
                None,
            ),
            (
                "SET STATEMENT a=f() FOR SELECT v FROM t",
                Some(Reason::UnknownFunction),
            ),
            (
                "SET STATEMENT a=1 FOR SET STATEMENT b=2 FOR DELETE FROM t",
                Some(Reason::Write),
            ),
            ("SET STATEMENT a=1 FOR", Some(Reason::UnknownStatement)),
            ("SET STATEMENT a=1", Some(Reason::Set)),
        ],
    );
    let update = facts(
        "SET STATEMENT max_statement_time=25 FOR UPDATE t SET v=11",
        &MARIADB,
    );
    assert_eq!(
        (update.kind, update.traits),
        (Kind::Write, Traits::FOR_ITSELF | Traits::MAY_COUNT)
    );
}

#[test]
fn b018_into_goes_to_the_primary() {
    all(
        Some(Reason::Into),
        &[
            "SELECT * FROM t INTO OUTFILE 'x1.csv'",
            "SELECT id INTO @z FROM t WHERE id=1",
            "SELECT id FROM t WHERE id=1 INTO @y",
            "SELECT a INTO DUMPFILE 'x' FROM t",
            "TABLE t INTO OUTFILE 'x'",
            "VALUES ROW(1) INTO @x",
            "(SELECT 1) UNION (SELECT 2) INTO @a",
            "SELECT 1 FROM t LIMIT 1 INTO @a FOR SHARE NOWAIT"
                .trim_end_matches(" FOR SHARE NOWAIT"),
        ],
    );
    let t = facts("SELECT a, b INTO @x, @y FROM t WHERE c = @z", &MARIADB).traits;
    assert!(t.contains(Traits::USER_VAR_WRITE | Traits::USER_VAR_READ | Traits::EFFECTS));
    let t = facts("SELECT a, b INTO @x, @y FROM t", &MARIADB).traits;
    assert!(t.contains(Traits::USER_VAR_WRITE) && !t.contains(Traits::USER_VAR_READ));
}

#[test]
fn b019_system_variables_are_plain_unless_they_are_one_servers() {
    all(
        None,
        &[
            "SELECT @@max_allowed_packet",
            "SELECT @@server_id, v FROM t WHERE v=5",
            "SELECT @@version_comment LIMIT 1",
            "SELECT @@session.sql_mode, @@global.max_connections, @@local.time_zone",
            "/* drv */SELECT @@session.auto_increment_increment AS auto_increment_increment, @@tx_isolation AS transaction_isolation",
            "SELECT identity, warning_count, read_only FROM t",
        ],
    );
    assert!(
        !facts("SELECT @@max_allowed_packet", &MARIADB)
            .traits
            .intersects(Traits::USER_VAR_READ | Traits::EFFECTS)
    );
    routes(&[
        ("SELECT @@identity", Some(Reason::LastInsertId)),
        ("SELECT @@session.identity", Some(Reason::LastInsertId)),
        ("SELECT @@`last_insert_id`", Some(Reason::LastInsertId)),
        (
            "SELECT @@local . last_insert_id",
            Some(Reason::LastInsertId),
        ),
        ("SELECT @@warning_count", Some(Reason::Diagnostics)),
        ("SELECT @@error_count, 1", Some(Reason::Diagnostics)),
        ("SELECT @@pseudo_thread_id", Some(Reason::ConnectionId)),
        ("SELECT @@read_only", Some(Reason::ServerState)),
        ("SELECT @@global.super_read_only", Some(Reason::ServerState)),
        ("SELECT @@gtid_executed", Some(Reason::ServerState)),
        ("SELECT @@last_gtid", Some(Reason::ServerState)),
        ("SELECT @@autocommit, ff(1)", Some(Reason::UnknownFunction)),
    ]);
}

#[test]
fn b087_signs_in_quotes_are_no_variables() {
    for sql in [
        "SELECT 1 AS `@a` ",
        "SELECT 'x@y.z' AS mail",
        "SELECT 1 /* @b */",
        "SELECT 1 AS \"@a\" -- @b",
    ] {
        assert_eq!(facts(sql, &MARIADB).traits, Traits::NONE, "{sql}");
        assert_eq!(facts(sql, &MARIADB).wants_primary(), None, "{sql}");
    }
}

#[test]
fn the_servers_own_tables_are_read_where_they_tell_the_same() {
    all(
        None,
        &[
            "SELECT * FROM information_schema.tables WHERE table_schema = 'x'",
            "SELECT * FROM `information_schema`.`COLUMNS` c JOIN INFORMATION_SCHEMA.STATISTICS s",
            "SELECT TABLES.a, information_schema.schemata.x FROM information_schema . schemata",
        ],
    );
    all(
        Some(Reason::ServerState),
        &[
            "SELECT * FROM information_schema.processlist",
            "SELECT * FROM information_schema.`INNODB_TRX`",
            "SELECT * FROM `information_schema`.global_status",
            "SELECT * FROM performance_schema.threads",
            "SELECT * FROM `performance_schema`.data_locks",
            "SELECT WAIT_FOR_EXECUTED_GTID_SET('x', 1)",
            "SELECT MASTER_GTID_WAIT('x', 1)",
            "SELECT MASTER_POS_WAIT('x', 1)",
        ],
    );
}

#[test]
fn show_of_definitions_may_be_answered_anywhere() {
    all(
        None,
        &[
            "SHOW TABLES",
            "SHOW FULL TABLES FROM x LIKE 'a%'",
            "SHOW /*!50002 FULL*/ TABLES",
            "SHOW EXTENDED FULL COLUMNS FROM t",
            "SHOW FIELDS FROM t",
            "SHOW INDEX FROM t",
            "SHOW KEYS IN t",
            "SHOW CREATE TABLE t",
            "SHOW CREATE DATABASE IF NOT EXISTS x",
            "SHOW CREATE VIEW v",
            "SHOW DATABASES",
            "SHOW SCHEMAS",
            "SHOW TRIGGERS",
            "SHOW TABLE STATUS",
            "SHOW CHARACTER SET",
            "SHOW COLLATION LIKE 'utf8%'",
            "SHOW PROCEDURE STATUS",
            "DESC t",
        ],
    );
    all(
        Some(Reason::Show),
        &[
            "SHOW VARIABLES LIKE 'x%'",
            "SHOW SESSION STATUS",
            "SHOW GLOBAL VARIABLES",
            "SHOW PROCESSLIST",
            "SHOW FULL PROCESSLIST",
            "SHOW GRANTS",
            "SHOW CREATE USER a",
            "SHOW CREATE EVENT e",
            "SHOW EVENTS",
            "SHOW MASTER STATUS",
            "SHOW BINARY LOG STATUS",
            "SHOW BINLOG EVENTS",
            "SHOW REPLICA STATUS",
            "SHOW ALL SLAVES STATUS",
            "SHOW ENGINE INNODB STATUS",
            "SHOW ENGINES",
            "SHOW PLUGINS",
            "SHOW OPEN TABLES",
            "SHOW EXPLAIN FOR 5",
            "SHOW",
            "SHOW LAST ROUTES",
            "SHOW LAST ROUTE x",
        ],
    );
    all(
        Some(Reason::Diagnostics),
        &[
            "SHOW WARNINGS LIMIT 1",
            "SHOW ERRORS",
            "SHOW COUNT(*) WARNINGS",
            "SHOW PROFILES",
            "SHOW PROFILE",
        ],
    );
}
