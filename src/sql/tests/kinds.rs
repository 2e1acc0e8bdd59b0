//! The kinds of statements, of batches and of compound statements.
//!
//! Names with a number (`b003…`) are those of reported faults of other proxies.

use super::*;
use crate::sql::{Kind, Reason};

#[test]
fn b020_explain_runs_nothing_and_analyze_does() {
    routes(&[
        (
            "EXPLAIN INSERT INTO t(id,v) VALUES(900,1)",
            Some(Reason::Write),
        ),
        ("EXPLAIN UPDATE t SET v=0 WHERE id=1", Some(Reason::Write)),
        (
            "EXPLAIN WITH c AS (SELECT 1) DELETE FROM t",
            Some(Reason::Write),
        ),
        ("DESC SELECT 1", None),
        ("EXPLAIN (SELECT 1)", None),
        ("EXPLAIN FORMAT=JSON SELECT 1", None),
        ("EXPLAIN EXTENDED SELECT 1", None),
        (
            "DESCRIBE FORMAT = TREE WITH c AS (SELECT 1) SELECT * FROM c",
            None,
        ),
        ("EXPLAIN TABLE t", None),
        ("EXPLAIN VALUES ROW(1)", None),
        ("EXPLAIN FORMAT=TREE FOR SCHEMA x SELECT * FROM t", None),
        (
            "EXPLAIN FORMAT=TREE FOR DATABASE x UPDATE t SET a=1",
            Some(Reason::Write),
        ),
        ("EXPLAIN ANALYZE SELECT * FROM t", None),
        ("EXPLAIN ANALYZE FORMAT=TREE SELECT * FROM t", None),
        (
            "EXPLAIN ANALYZE DELETE t FROM t JOIN u",
            Some(Reason::Write),
        ),
        ("EXPLAIN FORMAT=JSON INTO @x SELECT 1", Some(Reason::Into)),
        ("EXPLAIN FOR CONNECTION 5", Some(Reason::ServerState)),
        (
            "EXPLAIN FORMAT=JSON FOR CONNECTION 5",
            Some(Reason::ServerState),
        ),
        (
            "EXPLAIN SELECT a FROM t FOR UPDATE",
            Some(Reason::LockingRead),
        ),
        ("EXPLAIN t", None),
        ("EXPLAIN db.t", None),
        ("DESC t a", None),
        ("DESCRIBE `update` 'a%'", None),
        ("DESC format", None),
        ("ANALYZE SELECT 1", None),
        ("ANALYZE FORMAT=JSON SELECT 1", None),
        ("ANALYZE UPDATE t SET v=12 WHERE id=1", Some(Reason::Write)),
        (
            "ANALYZE FORMAT=JSON INSERT INTO t VALUES (1)",
            Some(Reason::Write),
        ),
        (
            "ANALYZE WITH c AS (SELECT 1) DELETE FROM t",
            Some(Reason::Write),
        ),
        ("ANALYZE TABLE t", Some(Reason::Admin)),
        ("ANALYZE LOCAL TABLE t", Some(Reason::Admin)),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", Some(Reason::Admin)),
        ("ANALYZE", Some(Reason::UnknownStatement)),
        ("ANALYZE t", Some(Reason::UnknownStatement)),
    ]);
    for d in BOTH {
        let explained = facts("EXPLAIN UPDATE t SET v=0", &d);
        assert_eq!(
            (explained.kind, explained.traits),
            (Kind::Explain, Traits::EXPLAINS_WRITE | Traits::MAY_COUNT)
        );
        assert_eq!(
            facts("EXPLAIN INSERT INTO t VALUES (@x)", &d).traits,
            Traits::EXPLAINS_WRITE | Traits::USER_VAR_READ | Traits::MAY_COUNT
        );
        assert_eq!(facts("ANALYZE UPDATE t SET v=0", &d).kind, Kind::Write);
        let into = facts("EXPLAIN FORMAT=JSON INTO @x SELECT 1", &d).traits;
        assert!(into.contains(Traits::USER_VAR_WRITE | Traits::EFFECTS));
    }
}

#[test]
fn b021_an_anonymous_block_is_no_transaction() {
    let block = facts("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END", &MARIADB);
    assert_eq!(block.kind, Kind::Write);
    assert_eq!(block.traits, Traits::CALL | Traits::EFFECTS);
    for sql in [
        "BEGIN",
        "BEGIN;",
        "BEGIN WORK",
        "begin /* x */ work ;",
        "START TRANSACTION READ ONLY",
    ] {
        assert_eq!(facts(sql, &MARIADB).kind, Kind::Begin, "{sql}");
    }
    for sql in [
        "IF 1 THEN SELECT 1; END IF",
        "FOR i IN 1..2 DO SELECT i; END FOR",
        "WHILE 0 DO SELECT 1; END WHILE",
    ] {
        assert_eq!(facts(sql, &MARIADB).kind, Kind::Write, "{sql}");
    }
    let then = facts(
        "BEGIN NOT ATOMIC IF 1 THEN SELECT CASE 1 WHEN 1 THEN 2 END; END IF; END; SELECT 3",
        &MARIADB,
    );
    assert_eq!(then.kind, Kind::Batch);
}

#[test]
fn b023_words_inside_names_mean_nothing() {
    let batch = facts(
        "UPDATE `app_settings` SET `val`='2' WHERE `name`='bar'; SELECT ROW_COUNT();",
        &MARIADB,
    );
    assert_eq!(batch.kind, Kind::Batch);
    assert_eq!(
        batch.traits,
        Traits::MULTI | Traits::DIAGNOSTICS | Traits::MATCHES
    );
    assert_eq!(
        facts("SELECT `set`, settings FROM app_settings", &MARIADB).traits,
        Traits::NONE
    );
}

#[test]
fn b024_batches_are_seen_as_such() {
    let sql = "update t set v=1, s=null where id=1;\n\n   update t set v=2, s=null where id=2";
    assert_eq!(
        (facts(sql, &MARIADB).kind, facts(sql, &MARIADB).traits),
        (Kind::Batch, Traits::MULTI | Traits::MATCHES)
    );
    for (sql, kind, is_multi) in [
        ("SELECT 1;", Kind::Read, false),
        ("SELECT 1 ; -- end", Kind::Read, false),
        ("SELECT 1;; /* x */ ;", Kind::Read, false),
        ("SELECT 1; SELECT 2", Kind::Read, true),
        ("SELECT 1; SHOW TABLES", Kind::Batch, true),
        ("BEGIN; SELECT 1; COMMIT", Kind::Batch, true),
        ("SELECT ';' AS `;` /* ; */ -- ;", Kind::Read, false),
        (";", Kind::Empty, false),
        (" ; ; ", Kind::Empty, false),
        ("; SELECT 1", Kind::Read, false),
    ] {
        let statement = facts(sql, &MARIADB);
        assert_eq!(
            (statement.kind, statement.traits.contains(Traits::MULTI)),
            (kind, is_multi),
            "{sql}"
        );
    }
    all(
        Some(Reason::MultiStatement),
        &["SELECT 1; SELECT 2", "SELECT 1; DELETE FROM t"],
    );
}

#[test]
fn bodies_of_routines_are_not_batches() {
    for sql in [
        "CREATE PROCEDURE p() BEGIN SELECT 1; IF a THEN SET @x = 1; END IF; END",
        "CREATE PROCEDURE p() BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; SELECT CASE a WHEN 1 THEN 2 END; END;",
        "CREATE PROCEDURE p() BEGIN l: LOOP LEAVE l; END LOOP; WHILE 0 DO SELECT 1; END WHILE; END",
        "CREATE OR REPLACE DEFINER=`a`@`%` FUNCTION f() RETURNS INT BEGIN BEGIN SET @x = GET_LOCK('a', 1); END; RETURN 1; END",
        "CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.a = 1; SET @b = 2; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN DELETE FROM t; END",
        "CREATE PROCEDURE p() BEGIN XA END 'a'; SELECT 1; END",
        "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT RETURN 1",
    ] {
        let statement = facts(sql, &MARIADB);
        assert_eq!(
            (statement.kind, statement.traits),
            (Kind::Ddl, Traits::NONE),
            "{sql}"
        );
    }
    // What follows a body is another statement.
    let batch = facts(
        "CREATE PROCEDURE p() BEGIN SELECT 1; END; SET @a = 1",
        &MARIADB,
    );
    assert_eq!(batch.kind, Kind::Batch);
    assert_eq!(
        batch.traits,
        Traits::MULTI | Traits::USER_VAR_WRITE | Traits::EFFECTS
    );
    assert_eq!(
        facts("CREATE PROCEDURE p() SELECT 1; SELECT 2", &MARIADB).kind,
        Kind::Batch
    );
    // Where the end of a body cannot be told, the rest may be anything.
    let loose = facts(
        "CREATE PROCEDURE p() IF 1 THEN SELECT 1; SELECT 2; END IF; SET @a = 1",
        &MARIADB,
    );
    assert_eq!(
        (loose.kind, loose.traits),
        (Kind::Ddl, Traits::MULTI | Traits::EFFECTS)
    );
}

#[test]
fn transaction_control() {
    for (sql, kind) in [
        ("COMMIT", Kind::Commit),
        ("COMMIT /*!50000 WORK */", Kind::Commit),
        ("COMMIT AND CHAIN", Kind::Commit),
        ("ROLLBACK", Kind::Rollback),
        ("ROLLBACK WORK AND NO CHAIN RELEASE", Kind::Rollback),
        ("ROLLBACK TO SAVEPOINT s1", Kind::Savepoint),
        ("ROLLBACK WORK TO s1", Kind::Savepoint),
        ("SAVEPOINT s1", Kind::Savepoint),
        ("RELEASE SAVEPOINT s1", Kind::Savepoint),
        ("XA START 'x1'", Kind::Xa),
        ("XA ROLLBACK 0x03,0x02,0x01", Kind::Xa),
        ("XA RECOVER", Kind::Xa),
        // B056
        (
            "START TRANSACTION /*!40108 WITH CONSISTENT SNAPSHOT */",
            Kind::Begin,
        ),
        ("BEGIN /* x */ WORK", Kind::Begin),
        ("START SLAVE", Kind::Admin),
        ("START REPLICA UNTIL SQL_AFTER_GTIDS = 'x'", Kind::Admin),
        ("START GROUP_REPLICATION", Kind::Admin),
    ] {
        for d in BOTH {
            assert_eq!(facts(sql, &d).kind, kind, "{sql}");
        }
    }
    all(
        Some(Reason::TransactionControl),
        &[
            "BEGIN",
            "COMMIT",
            "ROLLBACK TO s",
            "XA END 'x'",
            "START TRANSACTION READ ONLY",
        ],
    );
}

#[test]
fn b086_user_variables_are_seen() {
    let read = Traits::USER_VAR_READ;
    let write = Traits::USER_VAR_WRITE | Traits::EFFECTS;
    for (sql, traits) in [
        ("SET @v=41", write),
        ("SET @v=@w, @x := 5", write | read),
        ("INSERT INTO u VALUES(@v)", read),
        ("SELECT @v", read),
        ("SELECT id FROM u WHERE id=@`v`", read),
        ("SELECT @n:=@n+1 FROM t, (SELECT @n:=0) z", read | write),
        (
            "LOAD DATA INFILE 'x' INTO TABLE t (@a, b) SET c = @a",
            read | write | Traits::LOAD,
        ),
        ("CALL p(@x)", read | write | Traits::CALL),
        (
            "GET DIAGNOSTICS @p1 = NUMBER",
            read | write | Traits::DIAGNOSTICS | Traits::AREA,
        ),
        ("EXECUTE s USING @a", read | Traits::EFFECTS),
        (
            "GRANT SELECT ON t TO 'a'@'%', b@localhost, `c`@`d`",
            Traits::NONE,
        ),
        ("CREATE USER a@b", Traits::NONE),
        ("SELECT @@version", Traits::NONE),
    ] {
        assert_eq!(facts(sql, &MARIADB).traits, traits, "{sql}");
    }
    all(
        Some(Reason::UserVariableAssignment),
        &[
            "SELECT @a := 1",
            "SELECT @a:=@a+1 FROM t",
            "SELECT @'a b' := 1",
        ],
    );
}

#[test]
fn b099_a_batch_that_begins_with_set_writes_once_on_the_primary() {
    let sql = "SET @p0='x'; INSERT INTO t(s) VALUES(@p0); SELECT id FROM t WHERE ROW_COUNT() = 1 AND id = LAST_INSERT_ID();";
    let batch = facts(sql, &MARIADB);
    assert_eq!(batch.kind, Kind::Batch);
    assert_eq!(batch.wants_primary(), Some(Reason::MultiStatement));
    let expected = Traits::MULTI
        | Traits::USER_VAR_READ
        | Traits::USER_VAR_WRITE
        | Traits::EFFECTS
        | Traits::DIAGNOSTICS
        | Traits::LAST_INSERT_ID;
    assert_eq!(batch.traits, expected);
}

#[test]
fn statements_of_every_other_kind() {
    for (sql, kind, has_effects) in [
        ("INSERT INTO t VALUES (1) RETURNING id", Kind::Write, false),
        ("REPLACE t SET a=1", Kind::Write, false),
        ("DELETE HISTORY FROM t", Kind::Write, false),
        (
            "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
            Kind::Write,
            false,
        ),
        (
            "WITH c AS (SELECT 1) REPLACE t SELECT * FROM c",
            Kind::Write,
            false,
        ),
        (
            "WITH c AS (SELECT 1) UPDATE (t1 JOIN t2) SET a=1",
            Kind::Write,
            false,
        ),
        (
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            Kind::Write,
            false,
        ),
        // B278
        (
            "LOAD /* c */ DATA CONCURRENT LOCAL INFILE 'x' INTO TABLE t",
            Kind::Write,
            false,
        ),
        ("LOAD XML INFILE 'x' INTO TABLE t", Kind::Write, false),
        ("LOAD INDEX INTO CACHE t", Kind::Admin, false),
        ("CALL p()", Kind::Write, true),
        ("DO SLEEP(0)", Kind::Write, false),
        ("HANDLER t OPEN", Kind::Write, true),
        ("SIGNAL SQLSTATE '45000'", Kind::Write, false),
        ("CREATE TABLE x (a INT)", Kind::Ddl, false),
        ("CREATE TEMPORARY TABLE x (a INT)", Kind::Ddl, true),
        (
            "CREATE OR REPLACE TEMPORARY TABLE x (a INT)",
            Kind::Ddl,
            true,
        ),
        ("CREATE TABLE temporary_x (a INT)", Kind::Ddl, false),
        ("ALTER TABLE t ADD b INT", Kind::Ddl, false),
        ("ALTER TABLE t RENAME TO u", Kind::Ddl, true),
        ("DROP TABLE t", Kind::Ddl, true),
        ("DROP PREPARE p", Kind::Deallocate, true),
        ("RENAME TABLE a TO b", Kind::Ddl, true),
        ("TRUNCATE t", Kind::Ddl, false),
        ("GRANT SELECT ON *.* TO 'a'@'%'", Kind::Ddl, false),
        ("REVOKE ALL ON *.* FROM a", Kind::Ddl, false),
        ("SET autocommit=0", Kind::Set, true),
        ("SET SESSION TRANSACTION READ ONLY", Kind::Set, true),
        ("USE x", Kind::Use, true),
        ("PREPARE p FROM 'SELECT 1'", Kind::Prepare, true),
        ("EXECUTE p", Kind::Execute, true),
        ("EXECUTE IMMEDIATE 'DELETE FROM t'", Kind::Execute, true),
        ("DEALLOCATE PREPARE p", Kind::Deallocate, true),
        ("LOCK TABLES t WRITE", Kind::Lock, true),
        ("LOCK INSTANCE FOR BACKUP", Kind::Lock, true),
        ("BACKUP STAGE START", Kind::Lock, true),
        ("UNLOCK TABLES", Kind::Unlock, true),
        ("KILL 5", Kind::Kill, false),
        ("FLUSH TABLES WITH READ LOCK", Kind::Admin, true),
        ("OPTIMIZE TABLE t", Kind::Admin, false),
        ("CHECKSUM TABLE t", Kind::Admin, false),
        ("RESET MASTER", Kind::Admin, false),
        ("PURGE BINARY LOGS TO 'x'", Kind::Admin, false),
        ("CHANGE MASTER TO MASTER_HOST='x'", Kind::Admin, false),
        ("INSTALL PLUGIN x SONAME 'y'", Kind::Admin, false),
        ("CLONE LOCAL DATA DIRECTORY 'x'", Kind::Admin, false),
        ("IMPORT TABLE FROM 'x'", Kind::Admin, false),
        ("SHUTDOWN", Kind::Admin, false),
        ("RESTART", Kind::Admin, false),
        ("HELP 'x'", Kind::Admin, false),
        ("BINLOG 'x'", Kind::Admin, true),
        ("FROBNICATE t", Kind::Unknown, true),
        ("label: BEGIN END", Kind::Unknown, true),
        ("5", Kind::Unknown, true),
        ("'SELECT'", Kind::Unknown, true),
        ("`select` 1", Kind::Unknown, true),
        ("START", Kind::Unknown, true),
        ("", Kind::Empty, false),
        ("/* x */", Kind::Empty, false),
        ("-- x", Kind::Empty, false),
        ("SELECT 1", Kind::Read, false),
        ("(SELECT 1)", Kind::Read, false),
        ("((TABLE t))", Kind::Read, false),
    ] {
        let statement = facts(sql, &MARIADB);
        assert_eq!(
            (statement.kind, statement.traits.contains(Traits::EFFECTS)),
            (kind, has_effects),
            "{sql}"
        );
        assert_eq!(
            statement.wants_primary().is_none(),
            kind == Kind::Read,
            "{sql}"
        );
    }
}

#[test]
fn every_reason_has_its_own_name() {
    use Reason::*;
    let all = [
        Unterminated,
        Doubtful,
        MultiStatement,
        Write,
        Ddl,
        TransactionControl,
        Set,
        PreparedText,
        Lock,
        Admin,
        Show,
        Empty,
        UnknownStatement,
        LockingRead,
        Into,
        LastInsertId,
        LockFunction,
        Sequence,
        UnknownFunction,
        UserVariableAssignment,
        ConnectionId,
        Diagnostics,
        ServerState,
        HintPrimary,
    ];
    let names: std::collections::BTreeSet<_> = all.iter().map(|r| r.as_str()).collect();
    assert_eq!(names.len(), all.len());
    assert!(
        names
            .iter()
            .all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
    );
}
