//! What statements do to the state of their session.

use super::*;
use crate::sql::{Effect, Scope, Source, TableName, effects};

/// The effects of a text, one a line in a short form.
pub(super) fn of(sql: &[u8], d: &Dialect) -> Vec<String> {
    let mut out = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let text_of = |table: TableName<'_>| {
        let schema = table.schema.map_or_else(String::new, |s| text(s) + ".");
        schema + &text(table.name)
    };
    let name = |name: Option<&[u8]>| name.map_or_else(|| "DEFAULT".to_owned(), text);
    effects(sql, d, &mut |effect| {
        let value = |v: crate::sql::Value<'_>| {
            let marks = format!(
                "{}{}",
                if v.replayable { "" } else { " !" },
                if v.user_vars { " @" } else { "" }
            );
            text(v.text) + &marks
        };
        out.push(match effect {
            Effect::SetVariable {
                scope,
                name,
                value: v,
            } => format!("{}{} = {}", prefix(scope), text(name), value(v)),
            Effect::SetUserVariable { name, value: v } => format!("@{} = {}", text(name), value(v)),
            Effect::Names { charset, collation } => {
                format!(
                    "names {}{}",
                    name(charset),
                    collation.map_or_else(String::new, |c| format!(" {}", text(c)))
                )
            }
            Effect::CharacterSet(charset) => format!("character set {}", name(charset)),
            Effect::SetTransaction { scope, text: t } => {
                format!("{}transaction: {}", prefix(scope), text(t))
            }
            Effect::Use(schema) => format!("use {}", text(schema)),
            Effect::CreateTemporary(table) => format!("temporary {}", text_of(table)),
            Effect::DropTables { temporary, table } => {
                format!(
                    "drop {}{}",
                    if temporary { "temporary " } else { "" },
                    text_of(table)
                )
            }
            Effect::Prepare { name, from } => format!("prepare {}: {}", text(name), source(from)),
            Effect::Execute(name) => format!("execute {}", text(name)),
            Effect::ExecuteImmediate(from) => format!("execute: {}", source(from)),
            Effect::HandlerOpen(name) => format!("open {}", text(name)),
            Effect::HandlerClose(name) => format!("close {}", text(name)),
            Effect::Deallocate(statement) => format!("deallocate {}", text(statement)),
            Effect::SetRole(role) => format!("role {}", text(role)),
            Effect::DropDatabase(schema) => format!("drop database {}", text(schema)),
            other => format!("{other:?}"),
        });
    });
    out
}

fn source(from: Source<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match from {
        Source::Literal(literal) => text(literal),
        Source::Variable(name) => format!("@{}", text(name)),
        Source::Other => "?".to_owned(),
    }
}

fn prefix(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "",
        Scope::Global => "global ",
        Scope::Persist => "persist ",
        Scope::OneShot => "once ",
    }
}

pub(super) fn check(rows: &[(&str, &[&str])]) {
    for d in BOTH {
        for (sql, expected) in rows {
            assert_eq!(of(sql.as_bytes(), &d), *expected, "{:?}: {sql}", d.server);
        }
    }
}

#[test]
fn statements_that_change_state() {
    check(&[
        ("USE `my db`", &["use my db"]),
        ("USE x;", &["use x"]),
        ("CREATE TEMPORARY TABLE tt(i INT)", &["temporary tt"]),
        (
            "CREATE TEMPORARY TABLE IF NOT EXISTS `a`.`b` SELECT 1",
            &["temporary a.b"],
        ),
        (
            "CREATE OR REPLACE TEMPORARY TABLE a . tt LIKE u",
            &["temporary a.tt"],
        ),
        ("CREATE TABLE tt(i INT)", &[]),
        ("CREATE TABLE temporary(i INT)", &[]),
        ("DROP TABLE a, b.c, `d`", &["drop a", "drop b.c", "drop d"]),
        (
            "DROP TEMPORARY TABLE IF EXISTS tt CASCADE",
            &["drop temporary tt"],
        ),
        ("DROP VIEW v", &[]),
        ("DROP DATABASE IF EXISTS `x`", &["drop database x"]),
        ("DROP SCHEMA x", &["drop database x"]),
        ("DROP PREPARE p", &["deallocate p"]),
        ("RENAME TABLE a TO b", &["RenameTables"]),
        ("RENAME USER a TO b", &[]),
        ("ALTER TABLE a ADD b INT, RENAME TO c", &["RenameTables"]),
        (
            "ALTER TABLE a RENAME COLUMN b TO c, RENAME INDEX d TO e",
            &[],
        ),
        ("PREPARE p FROM 'SELECT 1'", &["prepare p: 'SELECT 1'"]),
        (
            "PREPARE p FROM 'SEL' 'ECT 1';",
            &["prepare p: 'SEL' 'ECT 1'"],
        ),
        ("PREPARE `p q` FROM @x", &["prepare p q: @x"]),
        ("PREPARE p FROM @`x y`", &["prepare p: @x y"]),
        ("PREPARE p FROM CONCAT('a', @x)", &["prepare p: ?"]),
        ("PREPARE p FROM 'a' || @x", &["prepare p: ?"]),
        ("EXECUTE p", &["execute p"]),
        ("EXECUTE p USING @a", &["execute p"]),
        ("EXECUTE immediate", &["execute immediate"]),
        ("EXECUTE immediate USING @a", &["execute immediate"]),
        ("EXECUTE IMMEDIATE 'SET @a=1'", &["execute: 'SET @a=1'"]),
        ("EXECUTE IMMEDIATE @q USING 1", &["execute: @q"]),
        ("EXECUTE p q", &["Opaque"]),
        ("DEALLOCATE PREPARE p", &["deallocate p"]),
        ("LOCK TABLES t READ, u WRITE", &["LockTables"]),
        ("LOCK INSTANCE FOR BACKUP", &["LockTables"]),
        ("UNLOCK TABLES", &["UnlockTables"]),
        ("FLUSH TABLES", &[]),
        ("FLUSH TABLES t, u WITH READ LOCK", &["LockTables"]),
        ("FLUSH LOCAL TABLES t FOR EXPORT", &["LockTables"]),
        ("BACKUP STAGE START", &["LockTables"]),
        ("BACKUP STAGE END", &["UnlockTables"]),
        ("BACKUP LOCK t", &["LockTables"]),
        ("BACKUP UNLOCK", &["UnlockTables"]),
        ("HANDLER t OPEN AS u", &["open u"]),
        ("HANDLER t OPEN u", &["open u"]),
        ("HANDLER `a`.t OPEN", &["open t"]),
        ("HANDLER t CLOSE", &["close t"]),
        ("HANDLER t READ FIRST", &[]),
        ("CALL p(@x)", &["Call"]),
        ("BEGIN", &[]),
        ("BEGIN WORK", &[]),
        ("BEGIN NOT ATOMIC SET a = 1; SET b = 2; END", &["Call"]),
        (
            "BEGIN NOT ATOMIC SELECT 1; END; SET c = 3",
            &["Call", "c = 3"],
        ),
        (
            "IF 1 THEN SET a = 1; END IF; SET b = 2",
            &["Call", "Opaque"],
        ),
        (
            "CREATE PROCEDURE p() BEGIN SET @a = 1; SET @b = 2; END",
            &[],
        ),
        (
            "CREATE PROCEDURE p() BEGIN SET @a = 1; END; SET @c = 3",
            &["@c = 3"],
        ),
        ("CREATE PROCEDURE p() SET @a = 1; SET @c = 3", &["@c = 3"]),
        (
            "CREATE PROCEDURE p() IF 1 THEN SET @a = 1; END IF; SET @c = 3",
            &["Opaque"],
        ),
        (
            "CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = @x := 1",
            &[],
        ),
        ("SELECT @a := 1, @b:=2, @c = 3", &["@a =  !", "@b =  !"]),
        (
            "SELECT a, b INTO @x, @`y` FROM t WHERE c = @z",
            &["@x =  !", "@y =  !"],
        ),
        ("SELECT a FROM t INTO OUTFILE '@x'", &[]),
        ("EXPLAIN FORMAT=JSON INTO @x SELECT @y", &["@x =  !"]),
        ("UPDATE t SET a = (@n := @n + 1)", &["@n =  !"]),
        ("LOAD DATA INFILE 'x' INTO TABLE t (@a, b)", &["@a =  !"]),
        ("GET DIAGNOSTICS @p1 = NUMBER", &["@p1 =  !"]),
        ("BINLOG 'x'", &["Opaque"]),
        ("FROBNICATE x", &["Opaque"]),
        (
            "label: LOOP SELECT 1; END LOOP; SET a = 1",
            &["Opaque", "Opaque"],
        ),
        ("SELECT 1", &[]),
        ("", &[]),
        (";;", &[]),
        ("/* x */", &[]),
        ("(SELECT @a := 1)", &["@a =  !"]),
    ]);
}

#[test]
fn effects_are_announced_by_the_trait() {
    // Whatever has effects says so when it is classified, or nobody would ask.
    for d in BOTH {
        for sql in [
            "SET a=1",
            "USE x",
            "CREATE TEMPORARY TABLE t(i INT)",
            "DROP TABLE t",
            "RENAME TABLE a TO b",
            "PREPARE p FROM 'x'",
            "ALTER TABLE a RENAME TO b",
            "EXECUTE p",
            "SELECT @a := 1",
            "SELECT 1 INTO @a",
            "CALL p()",
            "LOCK TABLES t READ",
            "BACKUP UNLOCK",
            "FLUSH TABLES WITH READ LOCK",
            "HANDLER t OPEN",
            "BEGIN NOT ATOMIC END",
            "FROBNICATE",
            "LOAD DATA INFILE 'x' INTO TABLE t (@a)",
            "GET DIAGNOSTICS @a = NUMBER",
            "SELECT 1; SET a=1",
            "SET STATEMENT a=1",
            "/*!40101 SET a=1 */",
            "EXPLAIN INTO @x SELECT 1",
            "DROP PREPARE p",
            "UPDATE t SET a=(@b:=1)",
            "BINLOG 'x'",
        ] {
            assert!(!of(sql.as_bytes(), &d).is_empty(), "{sql}");
            assert!(
                classify(sql.as_bytes(), &d)
                    .traits
                    .contains(Traits::EFFECTS),
                "{sql}"
            );
        }
    }
}

#[test]
fn names_in_other_quotes_and_character_sets() {
    let ansi = Dialect {
        ansi_quotes: true,
        ..MARIADB
    };
    assert_eq!(of(b"USE \"a b\"", &ansi), ["use a b"]);
    assert_eq!(
        of(b"CREATE TEMPORARY TABLE \"x\".\"y\" (i INT)", &ansi),
        ["temporary x.y"]
    );
    let gbk = with_charset(MARIADB, Charset::Gbk);
    let found = of(b"SET @a = '\xbf\x5c', @b = 1", &gbk);
    assert_eq!(found.len(), 2);
    // Between backquotes the last byte of this name would take the closing one for its second half.
    assert_eq!(of(b"SET @a\xe2 = 1", &gbk).last().unwrap(), "Opaque");
    assert_eq!(of(b"SET @a\xe2 = 1", &MARIADB).len(), 1);
    assert_eq!(of(b"SET @a = 'x", &MARIADB), ["@a = 'x !"]);
    assert_eq!(of(b"SET @a = 1---- x", &MARIADB), ["@a = 1-- !"]);
    // What can be read in two ways may do more than is seen.
    assert_eq!(
        of(
            b"SET a = 1 /*!80000 , b = 2 */",
            &Dialect::new(Server::MySql, 0)
        ),
        ["a = 1", "b = 2", "Opaque"]
    );
}
