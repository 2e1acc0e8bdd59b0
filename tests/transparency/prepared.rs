//! Prepared statements: every COM_STMT_* command, statements that run on one server, on the other, and on both in turn.

use ::atlas::wire::Capabilities;

use crate::capabilities::sets;
use crate::common::{Kind, Login, Param};
use crate::differences::Differences;
use crate::script::{At, Execute, Script};
use crate::stage::Stage;
use crate::{TABLES, compare_scripts, on_both, under_every_set};

/// The id of no statement, also where ids go on from another connection's.
const NOBODYS: u32 = 0x7000_0001;

/// Every command of prepared statements.
pub(crate) fn prepared_tour(kind: Kind) -> Script {
    let mut s = Script::new();
    let read = s.prepare("SELECT i, ? FROM n3 WHERE i >= ? ORDER BY i");
    s.execute(read, &[Param::from("x"), Param::Int(2)])
        .at(At::Replica);
    s.execute_again(read, &[Param::from("y"), Param::Int(3)])
        .at(At::Replica);
    s.execute(read, &[Param::Null, Param::Null]).at(At::Replica);
    s.execute(read, &[Param::Int(5), Param::Double(1.5)])
        .at(At::Replica);
    // On the other server now, which does not know the types yet, and back.
    s.query("BEGIN");
    s.execute_again(read, &[Param::Int(6), Param::Double(2.5)])
        .at(At::Primary);
    s.query("COMMIT");
    s.execute_again(read, &[Param::Int(7), Param::Double(0.0)])
        .at(At::Replica);
    s.reset(read)
        .execute_again(read, &[Param::Int(8), Param::Double(3.0)])
        .at(At::Replica);
    let without = s.prepare("SELECT s, id, v FROM t ORDER BY id");
    s.execute(without, &[])
        .at(At::Replica)
        .execute(without, &[])
        .at(At::Replica);
    let nothing = s.prepare("SELECT id FROM t WHERE id > 1000");
    s.execute(nothing, &[]).at(At::Replica);
    // Writes, in a transaction that leaves nothing.
    s.query("BEGIN");
    let insert = s.prepare("INSERT INTO u VALUES (?), (? + 1)");
    s.execute(insert, &[Param::Int(1), Param::Int(1)])
        .at(At::Primary);
    s.execute_again(insert, &[Param::Int(10), Param::Int(10)])
        .at(At::Primary);
    s.execute_again(insert, &[Param::Int(10), Param::Int(10)])
        .at(At::Primary);
    s.query("SHOW WARNINGS");
    let count = s.prepare("SELECT COUNT(*) FROM u");
    s.execute(count, &[]).at(At::Primary).query("ROLLBACK");
    s.execute(count, &[]).at(At::Replica);
    // Preparations that fail count too.
    let broken = s.prepare("SELEC ?");
    let nameless = s.prepare("SELECT no_such FROM t");
    s.execute(broken, &[]).execute(nameless, &[]);
    // Long data: good, for a parameter that is not there, for a statement that is not there; reset forgets it.
    let long = s.prepare("SELECT LENGTH(?), ?");
    s.long_data(long, 0, &[b'a'; 1000])
        .long_data(long, 0, b"bcd");
    s.execute(long, &[Param::Long, Param::from("z")]);
    s.execute(long, &[Param::from("short"), Param::from("z")]);
    s.long_data(long, 0, b"lost").reset(long);
    s.execute(long, &[Param::from("not lost"), Param::Null]);
    s.long_data(long, 9, b"there is no ninth")
        .execute(long, &[Param::Null, Param::Null]);
    s.execute(long, &[Param::Null, Param::Null]);
    s.long_data(NOBODYS, 0, b"nobody's").ping();
    // Cursors.
    let cursor = s.prepare("SELECT i FROM n3 ORDER BY i");
    s.execute_as(with_flags(cursor, 1))
        .fetch(cursor, 2)
        .fetch(cursor, 5)
        .fetch(cursor, 5);
    s.execute_as(with_flags(cursor, 1))
        .fetch(cursor, 1)
        .reset(cursor)
        .fetch(cursor, 1);
    if kind == Kind::MariaDb {
        // MySQL 9.7 sends an OK in place of the rows here, for which all its clients wait.
        s.execute_as(with_flags(cursor, 1)).execute(cursor, &[]);
        s.fetch(cursor, 1);
    }
    s.execute_as(with_flags(nothing, 1))
        .fetch(nothing, 1)
        .fetch(insert, 1);
    s.execute_as(with_flags(cursor, 1))
        .query("SELECT 'between'")
        .fetch(cursor, 1)
        .close(cursor);
    s.fetch(cursor, 1).query("SELECT 'behind'");
    // Several results and OUT parameters.
    let two = s.prepare("CALL two()");
    s.execute(two, &[]).execute(two, &[]);
    let out = s.prepare("CALL out1(?, ?)");
    s.execute(out, &[Param::Null, Param::from("in")]);
    let late = s.prepare("CALL late()");
    s.execute(late, &[]).query("SHOW WARNINGS");
    // Types missing from the start; the wrong number of parameters; closed; never there.
    let fresh = s.prepare("SELECT ? + 1");
    s.execute_again(fresh, &[Param::Int(1)])
        .execute(fresh, &[Param::Int(1)]);
    s.close(fresh)
        .execute(fresh, &[Param::Int(1)])
        .reset(fresh)
        .fetch(fresh, 1)
        .close(fresh);
    s.execute(NOBODYS, &[])
        .reset(NOBODYS)
        .fetch(NOBODYS, 1)
        .close(NOBODYS)
        .execute(0, &[])
        .ping();
    s
}

fn with_flags(id: u32, flags: u8) -> Execute {
    Execute {
        id,
        flags,
        params: Vec::new(),
        types: true,
        attributes: Vec::new(),
        file: Vec::new(),
    }
}

#[test]
fn prepared_under_every_set() {
    under_every_set(TABLES, prepared_tour);
}

/// Commands cut short, too long, or with numbers that mean nothing.
#[test]
fn malformed_statement_commands() {
    let mut s = Script::new();
    let read = s.prepare("SELECT ?, ?");
    s.execute(read, &[Param::Int(1), Param::Int(2)]);
    for command in [0x17, 0x18, 0x19, 0x1a, 0x1c, 0xfa] {
        for rest in [
            &b""[..],
            b"\x01",
            b"\x01\0\0",
            b"\xf1\xf2\xf3\x70",
            b"\xf1\xf2\xf3\x70\0",
            b"\xf1\xf2\xf3\x70\0\x01\0\0",
        ] {
            s.malformed(&[&[command], rest].concat());
        }
    }
    s.execute(read, &[Param::Int(1)])
        .execute(read, &[Param::Int(1), Param::Int(2)]);
    compare_scripts(&[("usual", s)]);
}

/// What a statement does to the session counts when it is executed, not when it is prepared.
#[test]
fn prepared_statements_change_the_session() {
    let mut s = Script::new();
    let names = s.prepare("SET NAMES latin1");
    let mode = s.prepare("SET sql_mode = ''");
    let variable = s.prepare("SET @a = ?");
    let literal = s.prepare("SET @b = 2");
    s.prepare("SET @c = 3");
    s.query("SELECT @@character_set_client, @@sql_mode, @a, @b, @c");
    s.execute(names, &[])
        .execute(mode, &[])
        .execute(variable, &[Param::Int(1)]);
    s.execute(literal, &[]);
    s.query("SELECT @@character_set_client, @@sql_mode, @a, @b, @c");
    s.read("SELECT @@character_set_client, @@sql_mode");
    let temporary = s.prepare("CREATE TEMPORARY TABLE tt AS SELECT 5 AS five");
    let read = s.prepare("SELECT five FROM tt");
    s.execute(read, &[])
        .execute(temporary, &[])
        .execute(temporary, &[]);
    let read = s.prepare("SELECT five FROM tt");
    s.execute(read, &[])
        .at(At::Primary)
        .write("SELECT five FROM tt");
    let drop = s.prepare("DROP TEMPORARY TABLE tt");
    s.execute(drop, &[]).execute(read, &[]);
    let begin = s.prepare("BEGIN");
    let rollback = s.prepare("ROLLBACK");
    s.execute(begin, &[]).execute(rollback, &[]);
    let off = s.prepare("SET autocommit = 0");
    s.execute(off, &[])
        .write("SELECT i FROM n3")
        .query("COMMIT");
    let on = s.prepare("SET autocommit = 1");
    s.execute(on, &[]).read("SELECT i FROM n3");
    let id = s.prepare("SELECT LAST_INSERT_ID(), CONNECTION_ID() > 0");
    s.query("INSERT INTO t(v) VALUES (1)")
        .execute(id, &[])
        .at(At::Primary);
    s.query("DELETE FROM t WHERE id > 3");
    let warnings = s.prepare("SHOW WARNINGS");
    s.query("SELECT CAST('x' AS SIGNED)").execute(warnings, &[]);
    let kill = s.prepare("KILL 0");
    s.execute(kill, &[]);
    let use_ = s.prepare("USE {s}");
    s.execute(use_, &[]);
    let call = s.prepare("CALL two()");
    s.execute(call, &[]);
    compare_scripts(&[("usual", s)]);
}

/// The two products differ here: on MariaDB -1 names the statement prepared last, MySQL knows none of that number.
#[test]
fn the_number_minus_one() {
    let last = u32::MAX;
    let mut s = Script::new();
    s.execute(last, &[]).reset(last);
    s.prepare("SELECT ? + 1");
    s.execute(last, &[Param::Int(4)])
        .execute_again(last, &[Param::Int(5)]);
    s.query("BEGIN")
        .execute_again(last, &[Param::Int(6)])
        .query("ROLLBACK");
    s.reset(last).fetch(last, 1);
    let second = s.prepare("SELECT i, ? FROM n3 ORDER BY i");
    s.execute(last, &[Param::from("second")]);
    let cursor = Execute {
        id: last,
        flags: 1,
        params: vec![Param::from("cursor")],
        types: true,
        attributes: Vec::new(),
        file: Vec::new(),
    };
    s.execute_as(cursor).fetch(last, 1).fetch(second, 5);
    // A preparation that fails takes the last place and leaves it empty.
    s.prepare("SELEC");
    s.execute(last, &[Param::from("none")])
        .execute(second, &[Param::from("there")]);
    s.prepare("SELECT LENGTH(?)");
    s.long_data(last, 0, b"seven b")
        .execute(last, &[Param::Long]);
    s.prepare("DO 1");
    s.execute(last, &[]).close(last).execute(last, &[]);
    let third = s.prepare("SELECT 3");
    s.prepare("SELECT 4");
    s.close(third)
        .execute(last, &[])
        .close(second)
        .execute(last, &[])
        .ping();
    compare_scripts(&[("usual", s)]);
}

/// One write with a preparation and its executions, as MariaDB's clients send it.
#[test]
fn prepared_and_executed_in_one_write() {
    let mut differences = Differences::default();
    let stage = Stage::new(Kind::MariaDb, TABLES);
    for text in ["SELECT i, ? FROM n3", "SELECT i, ? FROM no_such"] {
        let mut s = Script::new();
        s.prepare(text);
        s.execute(u32::MAX, &[Param::from("a")]);
        s.execute(u32::MAX, &[Param::from("b")])
            .query("SELECT 'next'");
        stage.compare_cut(&Login::app(), &s, &mut differences);
    }
    differences.report();
}

#[test]
fn many_parameters() {
    let mut s = Script::new();
    for count in [65_528, 65_529, 65_535, 65_536] {
        let marks = vec!["?"; count].join(",");
        let statement = s.prepare(&format!("SELECT 1 IN ({marks})"));
        for value in [Param::Null, Param::Int(1)] {
            s.execute(statement, &vec![value.clone(); count]);
            s.execute_again(statement, &vec![value; count]);
        }
        s.close(statement);
    }
    s.query("SELECT 'after'");
    let attributes = Login::app().with(Capabilities::QUERY_ATTRIBUTES);
    on_both(TABLES, |stage, differences| {
        stage.compare("usual", &Login::app(), &s, differences);
        stage.compare("with attributes", &attributes, &s, differences);
    });
}

/// Columns that appear after the preparation.
#[test]
fn a_table_changes_under_a_statement() {
    let mut s = Script::new();
    let all = s.prepare("SELECT * FROM u");
    s.execute(all, &[])
        .query("ALTER TABLE u ADD b INT DEFAULT 2")
        .sync();
    s.execute(all, &[])
        .query("INSERT INTO u(id) VALUES (1)")
        .sync();
    s.execute(all, &[])
        .query("BEGIN")
        .execute(all, &[])
        .query("COMMIT");
    s.query("DROP TABLE u").sync().execute(all, &[]);
    s.query("CREATE TABLE u(id VARCHAR(9) PRIMARY KEY)").sync();
    s.execute(all, &[]);
    on_both(TABLES, |stage, differences| {
        for (name, login) in sets(stage) {
            if name.starts_with("all") || name == "bare" {
                stage.compare(&name, &login, &s, differences);
            }
        }
    });
}
