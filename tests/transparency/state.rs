//! What a session builds up beside its variables: user variables, transactions, locks, temporary tables, the current schema, and what
//! a statement leaves behind for the next one.

use crate::common::{Login, Param};
use crate::delivery::{Delivery, Outcome};
use crate::script::Script;
use crate::{TABLES, compare_scripts, on_both};

#[test]
fn user_variables() {
    compare_scripts(&[(
        "user variables",
        Script::of(
            "SET @v = 41
             < SELECT @v
             INSERT INTO u VALUES (@v)
             DELETE FROM u
             SET @`odd name` = 'x', @\"q\" = \"y\", @'r' = 'z'
             < SELECT @`odd name`, @q, @r
             SET @A = 1
             < SELECT @a
             SET @v = @v + 1
             SELECT @v
             SET @big = 12345678901234567890, @f = 1.5e0, @d = 1.50, @n = NULL, @h = x'00ff', @s = _latin1'x'
             SELECT @big, @f, @d, @n, @h, @s
             SELECT HEX(@h), CHARSET(@s), COLLATION(@s)
             SELECT @n := 0
             SELECT @n := @n + 1 FROM n3
             SELECT @n
             SELECT i INTO @into FROM n3 WHERE i = 2
             SELECT @into
             SELECT MAX(i), MIN(i) FROM n3 INTO @x, @y
             SELECT @x, @y
             SET @sub = (SELECT MAX(i) FROM n3)
             SELECT @sub
             SELECT @never
             < SELECT i FROM n3
             SET @bad = no_such()
             SELECT @bad
             SET @txt = 'SELECT ? + 1'
             PREPARE p FROM @txt
             SET @one = 1
             EXECUTE p USING @one
             EXECUTE p USING @nothing
             DEALLOCATE PREPARE p
             EXECUTE p USING @one
             PREPARE p FROM 'SET @late = 9'
             EXECUTE p
             SELECT @late
             DROP PREPARE p
             EXECUTE IMMEDIATE 'SELECT 5'",
        ),
    )]);
}

#[test]
fn transactions() {
    let plain = Script::of(
        "BEGIN
         > SELECT i FROM n3
         > INSERT INTO u VALUES (1)
         > SELECT id FROM u
         SAVEPOINT a
         > INSERT INTO u VALUES (2)
         ROLLBACK TO a
         > SELECT id FROM u
         RELEASE SAVEPOINT a
         ROLLBACK TO a
         ROLLBACK
         < SELECT id FROM u
         START TRANSACTION READ ONLY
         > SELECT i FROM n3
         > INSERT INTO u VALUES (1)
         COMMIT
         < SELECT i FROM n3
         START TRANSACTION WITH CONSISTENT SNAPSHOT
         > SELECT i FROM n3
         COMMIT
         BEGIN; INSERT INTO u VALUES (3); COMMIT; DELETE FROM u
         < SELECT 1
         COMMIT AND CHAIN
         > SELECT i FROM n3
         ROLLBACK
         < SELECT 2
         BEGIN
         COMMIT RELEASE",
    );

    let mut implicit = Script::new();
    for ends in [
        "BEGIN",
        "CREATE TABLE made(a INT)",
        "ALTER TABLE made ADD b INT",
        "TRUNCATE made",
        "DROP TABLE made",
        "DROP TABLE made",
        "ANALYZE TABLE u",
        "FLUSH TABLES",
        "LOCK TABLES u WRITE",
        "UNLOCK TABLES",
    ] {
        implicit
            .lines("BEGIN\n> INSERT INTO u VALUES (1)")
            .query(ends);
        implicit.lines("ROLLBACK\n> SELECT id FROM u /*master*/\nDELETE FROM u");
    }
    for stays in [
        "CREATE TEMPORARY TABLE tt(a INT)",
        "DROP TEMPORARY TABLE tt",
        "SET @a = 1",
        "SHOW TABLES",
        "DO 1",
        "SET NAMES utf8mb4",
        "UNLOCK TABLES",
        "SELEC",
        "USE {s}",
    ] {
        implicit
            .lines("BEGIN\n> INSERT INTO u VALUES (1)")
            .query(stays);
        implicit.lines("ROLLBACK\n> SELECT id FROM u /*master*/");
    }
    implicit.read("SELECT 'free again'");

    let off = Script::of(
        "SET autocommit = 0
         > SELECT 1
         > SELECT i FROM n3
         COMMIT
         > INSERT INTO u VALUES (1)
         ROLLBACK
         > SELECT id FROM u
         COMMIT
         SET autocommit = 0
         SET autocommit = 1
         < SELECT i FROM n3
         SET @@autocommit = OFF
         > SELECT i FROM n3
         SET autocommit = DEFAULT
         < SELECT i FROM n3
         SET autocommit = 'x'
         < SELECT i FROM n3
         BEGIN
         SET autocommit = 1
         > SELECT i FROM n3
         ROLLBACK
         < SELECT 2",
    );

    let levels = Script::of(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED
         SELECT 1
         BEGIN
         SET TRANSACTION READ ONLY
         COMMIT
         SELECT 1
         SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
         < SELECT i FROM n3
         SET SESSION TRANSACTION READ ONLY
         INSERT INTO u VALUES (1)
         < SELECT i FROM n3
         SET SESSION TRANSACTION READ WRITE
         INSERT INTO u VALUES (1)
         DELETE FROM u
         SET TRANSACTION READ ONLY
         INSERT INTO u VALUES (1)
         INSERT INTO u VALUES (1)
         DELETE FROM u
         SET completion_type = 1
         BEGIN
         COMMIT
         > SELECT i FROM n3
         SET completion_type = 0
         COMMIT
         SELECT 3",
    );

    let xa = Script::of(
        "XA START 'x{s}'
         > INSERT INTO u VALUES (1)
         > SELECT id FROM u
         COMMIT
         BEGIN
         XA END 'x{s}'
         SELECT id FROM u
         XA PREPARE 'x{s}'
         XA ROLLBACK 'x{s}'
         < SELECT i FROM n3
         XA START 'y{s}'
         XA END 'y{s}'
         XA COMMIT 'y{s}' ONE PHASE
         XA COMMIT 'never'
         < SELECT i FROM n3",
    );

    compare_scripts(&[
        ("plain", plain),
        ("implicit commits", implicit),
        ("autocommit off", off),
        ("levels", levels),
        ("XA", xa),
    ]);
}

#[test]
fn locks() {
    let locks = Script::of(
        "SELECT GET_LOCK('{s}', 0)
         SELECT IS_USED_LOCK('{s}') IS NULL
         < SELECT i FROM n3
         DO RELEASE_LOCK('{s}')
         SELECT RELEASE_LOCK('{s}')
         LOCK TABLES t READ, n3 WRITE
         > SELECT i FROM n3
         > SELECT id FROM u
         UNLOCK TABLES
         < SELECT i FROM n3
         > SELECT id FROM t FOR UPDATE
         > SELECT id FROM t LOCK IN SHARE MODE
         HANDLER t OPEN
         HANDLER t READ FIRST
         < SELECT i FROM n3
         HANDLER t READ NEXT
         HANDLER t CLOSE
         HANDLER t READ NEXT",
    );
    compare_scripts(&[("locks", locks)]);
}

#[test]
fn temporary_tables() {
    let mut s = Script::of(
        "CREATE TEMPORARY TABLE tt(i INT)
         INSERT INTO tt VALUES (1)
         > SELECT i FROM tt
         > DESCRIBE tt
         > SHOW CREATE TABLE tt
         > EXPLAIN SELECT i FROM tt WHERE FALSE
         > (SELECT i FROM tt)
         > SELECT i FROM n3
         DROP TEMPORARY TABLE tt
         < SELECT i FROM tt
         < SELECT i FROM n3
         CREATE TEMPORARY TABLE n3(other INT)
         > SELECT * FROM n3
         DROP TABLE n3
         < SELECT * FROM n3
         CREATE TEMPORARY TABLE a AS SELECT 1 AS x
         CREATE TEMPORARY TABLE IF NOT EXISTS a(y INT)
         ALTER TABLE a RENAME TO b
         > SELECT * FROM b
         DROP TABLE b
         SELECT * FROM b
         CREATE TEMPORARY TABLE c(x INT); INSERT INTO c VALUES (7)
         > SELECT x FROM c
         DROP TEMPORARY TABLE IF EXISTS c, d
         SHOW WARNINGS
         SELECT x FROM c
         CREATE TEMPORARY TABLE like_t LIKE t
         > SELECT * FROM like_t",
    );
    s.command(&[0x1f]).lines(
        "SELECT * FROM like_t
         < SELECT i FROM n3",
    );
    compare_scripts(&[("temporary tables", s)]);
}

/// What a statement leaves behind for the next one.
#[test]
fn questions_about_the_previous_statement() {
    let counts = Script::of(
        "SELECT ROW_COUNT(), LAST_INSERT_ID()
         < SELECT i FROM n3
         < SELECT FOUND_ROWS()
         < SELECT i FROM n3
         < SELECT ROW_COUNT()
         < SELECT SQL_CALC_FOUND_ROWS i FROM n3 LIMIT 1
         SELECT FOUND_ROWS()
         < SELECT i FROM n3 LIMIT 2
         SELECT FOUND_ROWS()
         SELECT FOUND_ROWS()
         INSERT INTO t(v) VALUES (1), (2)
         > SELECT LAST_INSERT_ID(), ROW_COUNT()
         SELECT ROW_COUNT()
         < SELECT i FROM n3
         > SELECT LAST_INSERT_ID()
         SELECT LAST_INSERT_ID(42)
         SELECT LAST_INSERT_ID()
         SELECT @@last_insert_id, @@identity
         INSERT INTO t(id, v) VALUES (1000, 2)
         SELECT LAST_INSERT_ID()
         UPDATE t SET v = LAST_INSERT_ID(v + 1) WHERE id = 1000
         SELECT LAST_INSERT_ID()
         SET insert_id = 2000
         < SELECT i FROM n3
         INSERT INTO t(v) VALUES (3)
         SELECT LAST_INSERT_ID()
         DELETE FROM t WHERE id > 3
         > SELECT ROW_COUNT()
         INSERT INTO t(id) VALUES (1)
         > SELECT ROW_COUNT()
         INSERT INTO t(id) VALUES (1)
         > SHOW ERRORS
         > SHOW COUNT(*) ERRORS",
    );

    let mut warnings = Script::new();
    // Whatever comes between, it is the read's warnings that are asked for, or nobody's.
    for between in [
        "",
        "SELECT i FROM n3",
        "SELECT @@warning_count",
        "SHOW COUNT(*) WARNINGS",
        "SELEC",
    ] {
        warnings
            .lines("< SELECT CAST('x' AS SIGNED), i FROM n3")
            .lines(between);
        warnings.lines("SHOW WARNINGS\nSHOW WARNINGS LIMIT 1, 2");
    }
    warnings.read("SELECT CAST('x' AS SIGNED)").ping();
    warnings.lines(
        "< SHOW WARNINGS
         SELECT CAST('x' AS SIGNED); SELECT CAST('yy' AS SIGNED)
         > SHOW WARNINGS
         CALL late()
         > SHOW WARNINGS
         DROP TABLE IF EXISTS never
         > SHOW WARNINGS",
    );
    // With a table: MariaDB leaves the warnings of the statement before in place when one has none.
    let read = warnings.prepare("SELECT CAST(? AS SIGNED), i FROM n3");
    warnings.query("SHOW WARNINGS");
    warnings
        .execute(read, &[Param::from("x")])
        .query("SHOW WARNINGS");
    warnings.query("SELECT CAST('x' AS SIGNED)").close(read);
    warnings
        .query("SHOW WARNINGS")
        .query("SELECT CAST('x' AS SIGNED)");
    warnings.command(&[0x1f]).query("SHOW WARNINGS");

    // On one server, where commands that are no statements repeat on MySQL what the statement before left.
    let mut here = Script::new();
    for command in [&b"\x02{s}"[..], b"\x1b\0\0", b"\x0e", b"\x1b\x07\0"] {
        here.write("SELECT CAST('x' AS SIGNED) /*master*/")
            .command(command);
        here.write("SHOW WARNINGS");
    }
    here.lines(
        "> SELECT CAST('x' AS SIGNED) /*master*/
         > GET DIAGNOSTICS @n = NUMBER
         > SELECT @n
         > SELECT CAST('x' AS SIGNED) /*master*/
         > GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT
         > SELECT @m
         > SELECT CAST('x' AS SIGNED) /*master*/
         > SET @a = 1
         > SHOW WARNINGS
         > SELECT SQL_CALC_FOUND_ROWS i FROM n3 LIMIT 1 /*master*/
         > SET @n = FOUND_ROWS()
         > SELECT @n",
    );
    compare_scripts(&[
        ("counts", counts),
        ("warnings", warnings),
        ("on the primary", here),
    ]);
}

/// What goes to the primary and asks about a read that a replica answered is told what that would say.
#[test]
fn writes_that_ask_about_a_read_are_told() {
    on_both(TABLES, |stage, _| {
        for (write, question, told) in [
            ("SET @n = FOUND_ROWS()", "SELECT @n", "3"),
            ("GET DIAGNOSTICS @n = NUMBER", "SELECT @n", "0"),
            (
                "INSERT INTO u SELECT FOUND_ROWS()",
                "SELECT * FROM u /*master*/",
                "3",
            ),
            ("BEGIN", "SELECT FOUND_ROWS(), CONNECTION_ID()", "3"),
        ] {
            let script = Script::of(&format!("< SELECT i FROM n3\n{write}\n{question}"));
            let outcomes = stage.run_through(&Login::app(), &script, Delivery::Whole);
            let [_, Outcome::Reply(done), Outcome::Reply(answer)] = &outcomes[..] else {
                panic!("{write}: {outcomes:?}");
            };
            done.assert_ok();
            assert_eq!(answer.cell(), told, "{write}: {answer:?}");
        }
    });
}

/// Schemas that come and go.
#[test]
fn schemas_come_and_go() {
    let mut s = Script::of(
        "CREATE DATABASE {s}x
         USE {s}x
         CREATE TABLE a(b INT)
         ~
         < SELECT * FROM a
         DROP DATABASE {s}x
         ~
         SELECT DATABASE()
         SELECT * FROM a
         < SELECT DATABASE()
         USE {s}x",
    );
    s.named(0x02, "{s}").lines(
        "< SELECT DATABASE(), i FROM n3
         CREATE SCHEMA {s}x
         ~",
    );
    s.named(0x02, "{s}x").lines(
        "USE {s}
         DROP SCHEMA {s}x
         ~
         < SELECT DATABASE(), i FROM n3
         USE `{s}`
         < SELECT i FROM n3",
    );
    compare_scripts(&[("schemas", s)]);
}
