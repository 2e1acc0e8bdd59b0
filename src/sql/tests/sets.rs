//! What SET assigns, in every spelling.
//!
//! Names with a number (`b033…`) are those of reported faults of other proxies.

use super::effects::{check, of};
use super::*;

#[test]
fn b033_every_spelling_of_autocommit() {
    check(&[
        ("SET autocommit=0;", &["autocommit = 0"]),
        ("set session autocommit=1", &["autocommit = 1"]),
        ("SET @@autocommit=off", &["autocommit = off"]),
        ("SET @@session.autocommit='ON'", &["autocommit = 'ON'"]),
        ("SET @@session . autocommit = 1", &["autocommit = 1"]),
        ("SET @@`autocommit`=1", &["autocommit = 1"]),
        ("SET SESSION `autocommit`=1", &["autocommit = 1"]),
        ("SET LOCAL autocommit = FALSE", &["autocommit = FALSE"]),
        ("SET autocommit:=1", &["autocommit = 1"]),
        ("/*!40101 SET autocommit=0 */", &["autocommit = 0"]),
        ("SET autocommit=DEFAULT", &["autocommit = DEFAULT"]),
        ("SET @x=1, autocommit=0", &["@x = 1", "autocommit = 0"]),
        (
            "SET autocommit=0, sql_mode='bogus'",
            &["autocommit = 0", "sql_mode = 'bogus'"],
        ),
        ("SET GLOBAL autocommit=0", &["global autocommit = 0"]),
        ("SET @@global.autocommit=0", &["global autocommit = 0"]),
    ]);
}

#[test]
fn b061_a_long_list_is_read_to_its_end() {
    check(&[(
        "SET @@SESSION.sql_mode = '', @@SESSION.auto_increment_increment = 5, @@SESSION.auto_increment_offset = 3, \
         @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 27000",
        &[
            "sql_mode = ''",
            "auto_increment_increment = 5",
            "auto_increment_offset = 3",
            "sql_auto_is_null = 0",
            "wait_timeout = 27000",
        ],
    )]);
    // B058
    check(&[(
        "SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode,',STRICT_ALL_TABLES'),',NO_AUTO_VALUE_ON_ZERO'), \
         @@SESSION.sql_auto_is_null = 0",
        &[
            "names utf8mb4",
            "sql_mode = CONCAT(CONCAT(@@sql_mode,',STRICT_ALL_TABLES'),',NO_AUTO_VALUE_ON_ZERO')",
            "sql_auto_is_null = 0",
        ],
    )]);
}

#[test]
fn b063_values_may_be_queries_without_tables() {
    check(&[(
        "SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ZERO_DATE')),time_zone='+01:00',NAMES utf8mb4 \
         COLLATE utf8mb4_unicode_520_ci;",
        &[
            "sql_mode = (SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ZERO_DATE'))",
            "time_zone = '+01:00'",
            "names utf8mb4 utf8mb4_unicode_520_ci",
        ],
    )]);
}

#[test]
fn b064_names_in_the_middle_of_a_list() {
    check(&[(
        "SET SESSION SQL_MODE='STRICT_ALL_TABLES,ANSI_QUOTES', NAMES utf8mb4, time_zone='+02:00';",
        &[
            "SQL_MODE = 'STRICT_ALL_TABLES,ANSI_QUOTES'",
            "names utf8mb4",
            "time_zone = '+02:00'",
        ],
    )]);
}

#[test]
fn b067_names_of_character_sets_lose_their_quotes() {
    check(&[
        ("SET CHARACTER SET 'cp1251'", &["character set cp1251"]),
        ("SET CHARSET utf8", &["character set utf8"]),
        ("SET CHAR SET \"utf8\"", &["character set utf8"]),
        ("SET CHARACTER SET DEFAULT", &["character set DEFAULT"]),
        (
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            &["names utf8mb4 utf8mb4_unicode_520_ci"],
        ),
        ("SET NAMES `utf8mb4` ", &["names utf8mb4"]),
        ("SET NAMES DEFAULT", &["names DEFAULT"]),
        ("SET NAMES binary", &["names binary"]),
        ("SET NAMES utf8mb4 COLLATE DEFAULT", &["names utf8mb4"]),
    ]);
}

#[test]
fn b068_a_batch_is_taken_statement_by_statement() {
    check(&[
        (
            "SET NAMES utf8;SET character_set_results=NULL",
            &["names utf8", "character_set_results = NULL"],
        ),
        (
            "SET sql_mode=(SELECT CONCAT(@@sql_mode,',PIPES_AS_CONCAT'));\nSET time_zone='+01:00';\nSET NAMES utf8mb4 \
             COLLATE utf8mb4_unicode_520_ci;",
            // B105
            &[
                "sql_mode = (SELECT CONCAT(@@sql_mode,',PIPES_AS_CONCAT'))",
                "time_zone = '+01:00'",
                "names utf8mb4 utf8mb4_unicode_520_ci",
            ],
        ),
        (
            "SELECT 1; USE x; SELECT 'SET a=1'; ; USE y;",
            &["use x", "use y"],
        ),
        (
            "SET @p0='x'; INSERT INTO t(s) VALUES(@p0); SELECT 1",
            &["@p0 = 'x'"],
        ),
    ]);
}

#[test]
fn b012_sets_in_executable_comments_count() {
    check(&[
        ("/*!40101 SET NAMES utf8mb4 */;", &["names utf8mb4"]),
        (
            "/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */",
            &["@OLD_TIME_ZONE = @@TIME_ZONE"],
        ),
        (
            "/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */",
            &["FOREIGN_KEY_CHECKS = @OLD_FOREIGN_KEY_CHECKS @"],
        ),
        ("/*!999999 SET NAMES utf8mb4 */", &[]),
        ("SET a=1 /*!40101 , b=2 */", &["a = 1", "b = 2"]),
        ("/*!40101 SET a=1 */ /*!40101 , b=2 */", &["a = 1", "b = 2"]),
        // Text that runs only partly inside such a comment means nothing elsewhere.
        ("SET @a = 1 /*!40101 + 1 */", &["@a = 1 /*!40101 + 1 !"]),
        (
            "/*!40101 SET @a = 1 */ /*!40101 + 1 */",
            &["@a = 1 */ /*!40101 + 1 !"],
        ),
        (
            "SET @a = 1 /*!99999 + 1 */ + 2",
            &["@a = 1 /*!99999 + 1 */ + 2"],
        ),
        ("SET @a = /*!40101 1 */", &["@a = 1"]),
    ]);
}

#[test]
fn scopes_hold_for_the_names_that_follow() {
    check(&[
        ("SET SESSION a=1, b=2", &["a = 1", "b = 2"]),
        (
            "SET GLOBAL a=1, b=2, SESSION c=3, d=4",
            &["global a = 1", "global b = 2", "c = 3", "d = 4"],
        ),
        (
            "SET GLOBAL a=1, @@b=2, @x=3, NAMES utf8, c=4",
            &[
                "global a = 1",
                "b = 2",
                "@x = 3",
                "names utf8",
                "global c = 4",
            ],
        ),
        ("SET @@global.a=1, b=2", &["global a = 1", "b = 2"]),
        (
            "SET PERSIST a=1, PERSIST_ONLY b=2, @@persist.c=3",
            &["persist a = 1", "persist b = 2", "persist c = 3"],
        ),
        (
            "SET SESSION sql_mode='ANSI', @x = 1, GLOBAL max_connections = 10",
            &["sql_mode = 'ANSI'", "@x = 1", "global max_connections = 10"],
        ),
        (
            "SET GLOBAL hot_cache.key_buffer_size = 1",
            &["global hot_cache.key_buffer_size = 1"],
        ),
        (
            "SET default.key_buffer_size = 1",
            &["default.key_buffer_size = 1"],
        ),
        (
            "SET @@global.default.key_buffer_size = 1",
            &["global default.key_buffer_size = 1"],
        ),
        ("SET local = 5, global := 6", &["local = 5", "global = 6"]),
    ]);
}

#[test]
fn set_transaction() {
    check(&[
        (
            "SET TRANSACTION READ ONLY",
            &["once transaction: SET TRANSACTION READ ONLY"],
        ),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;",
            &["transaction: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"],
        ),
        (
            "/*!50000 SET local transaction READ ONLY */",
            &["transaction: SET local transaction READ ONLY"],
        ),
        (
            "SET GLOBAL TRANSACTION READ ONLY",
            &["global transaction: SET GLOBAL TRANSACTION READ ONLY"],
        ),
        (
            "SET @@tx_isolation='SERIALIZABLE'",
            &["once tx_isolation = 'SERIALIZABLE'"],
        ),
        (
            "SET SESSION a=1, @@transaction_read_only=1",
            &["a = 1", "once transaction_read_only = 1"],
        ),
        (
            "SET tx_isolation='SERIALIZABLE', @@session.tx_read_only=1",
            &["tx_isolation = 'SERIALIZABLE'", "tx_read_only = 1"],
        ),
    ]);
}

#[test]
fn values_that_would_be_others_elsewhere_are_marked() {
    let replayable = [
        "1",
        "-1",
        "1.5e3",
        "'x' 'y'",
        "N'x'",
        "_utf8mb4'x'",
        "x'4D'",
        "0x4D",
        "NULL",
        "TRUE",
        "DEFAULT",
        "ON",
        "ANSI",
        "(ANSI)",
        "SYSTEM",
        "1 + 2 * 3",
        "@@sql_mode",
        "@@session.time_zone",
        "CONCAT(@@sql_mode, ',x')",
        "(SELECT REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', ''))",
        "(SELECT 1 FROM DUAL)",
        "IF(1, 2, 3)",
        "TRIM(TRAILING ',' FROM @@sql_mode)",
        "CAST('1' AS SIGNED)",
        "CASE WHEN 1 THEN 2 ELSE 3 END",
        "1 IN (1, 2)",
        "LEFT('abc', 2)",
        "NOT 1",
        "'a' LIKE 'b'",
        "(1)",
    ];
    let not = [
        "NOW()",
        "CURRENT_TIMESTAMP",
        "UUID()",
        "RAND()",
        "CONNECTION_ID()",
        "LAST_INSERT_ID()",
        "@@server_id",
        "@@timestamp",
        "@@global.sort_buffer_size",
        "@@warning_count",
        "(SELECT a FROM t)",
        "(SELECT COUNT(*) FROM t)",
        "ff(1)",
        "db.ff(1)",
        "`ff`(1)",
        "(SELECT NEXTVAL(s))",
        "(NEXT VALUE FOR s)",
        "?",
        "1 + ?",
        "(SELECT 1 FROM t WHERE a = TRIM('a' FROM 'b'))",
        "USER()",
        "SLEEP(1)",
        "GET_LOCK('a', 1)",
        "LOAD_FILE('x')",
        "(TABLE t)",
        "(WITH c AS (SELECT 1) SELECT * FROM c)",
        "COUNT (1)",
        "VERSION()",
        "CURRENT_USER",
        "(SELECT 1 FROM DUAL, t)",
        "(1",
    ];
    for d in BOTH {
        for (values, mark) in [(&replayable[..], ""), (&not[..], " !")] {
            for value in values {
                let sql = format!("SET @a = {value}");
                assert_eq!(
                    of(sql.as_bytes(), &d),
                    [format!("@a = {value}{mark}")],
                    "{:?}: {sql}",
                    d.server
                );
            }
        }
    }
    check(&[
        ("SET @a = @b + 1, @c = 2", &["@a = @b + 1 @", "@c = 2"]),
        ("SET @a = (@b := 5)", &["@b =  !", "@a = (@b := 5) ! @"]),
        ("SET @a = f(1, 2), b = 3", &["@a = f(1, 2) !", "b = 3"]),
        ("SET @a = ((1), (2)), b = 3", &["@a = ((1), (2))", "b = 3"]),
        (
            "SET @`a b` = 1, @'c' = 2, @\"d\" = 3",
            &["@a b = 1", "@c = 2", "@d = 3"],
        ),
        ("SET @`a``b` = 1", &["@a``b =  !", "Opaque"]),
        // No variable is called so; a name is said again without quotes.
        ("SET `a b` = 1, `c` = 2", &["a b = 1 !", "c = 2"]),
        ("SET a.`b c` = 1, x.y = 2", &["a.`b c` = 1 !", "x.y = 2"]),
    ]);
}

#[test]
fn other_forms_of_set() {
    check(&[
        ("SET PASSWORD = 'x'", &["SetPassword"]),
        ("SET PASSWORD FOR 'a'@'%' = PASSWORD('x')", &["SetPassword"]),
        ("SET ROLE NONE", &["role NONE"]),
        ("SET ROLE a, 'b'@'c';", &["role a, 'b'@'c'"]),
        ("SET DEFAULT ROLE a TO b", &[]),
        ("SET RESOURCE GROUP x", &["Opaque"]),
        ("SET", &["Opaque"]),
        ("SET autocommit 1", &["Opaque"]),
        ("SET a=", &["Opaque"]),
        ("SET a=1 b=2", &["a = 1 b=2"]),
        ("SET a=1,", &["a = 1", "Opaque"]),
        ("SET NAMES 'utf8mb4 '", &["Opaque"]),
        ("SET ROLE a---- x", &["Opaque"]),
        ("SET NAMES ''", &["Opaque"]),
        ("SET a=1)", &["a = 1", "Opaque"]),
        ("SET STATEMENT a=1, b=(2) FOR SET @x=5", &["@x = 5"]),
        ("SET STATEMENT a=1 FOR SELECT @b:=6", &["@b =  !"]),
        ("SET STATEMENT a=1", &["Opaque"]),
    ]);
}
