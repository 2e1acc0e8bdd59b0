//! COM_QUERY in all its shapes, under the usual capabilities.

use ::atlas::wire::Capabilities;

use crate::common::{Kind, Login, Param};
use crate::differences::Differences;
use crate::script::{At, Execute, Script, owned};
use crate::stage::Stage;
use crate::{TABLES, on_both, under_every_set};

/// Every shape of a text reply.
pub(crate) fn text_tour() -> Script {
    let mut s = Script::new();
    s.read("SELECT 1")
        .read("SELECT id, v, s FROM t ORDER BY id");
    s.read("SELECT id FROM t WHERE id > 100");
    s.read("SELECT NULL, '', 'x', NULL, -1, 1.50, 1e0, x'00ff', CURRENT_TIMESTAMP IS NULL");
    s.read("SELECT REPEAT('x', 250), REPEAT('y', 251), REPEAT('z', 70000)");
    s.read("SELECT s FROM t ORDER BY id LIMIT 1");
    s.read("SELECT COUNT(*), MAX(v), GROUP_CONCAT(s ORDER BY id) FROM t");
    s.read("(SELECT 1) UNION ALL (SELECT 2)");
    s.read("SHOW TABLES")
        .read("SHOW CREATE TABLE t")
        .read("DESCRIBE t");
    s.read("SHOW COLUMNS FROM n3").read("EXPLAIN SELECT 1");
    // Errors: at the parser, at names, at run time, behind rows.
    s.query("SELEC 1")
        .query("SELECT")
        .query("SELECT nothing FROM t");
    s.read("SELECT id FROM no_such")
        .write("SELECT no_such(1) FROM no_db.t");
    s.read("SELECT i, IF(i = 2, (SELECT 1 UNION SELECT 2), 0) FROM n3");
    s.read("SELECT 7");
    // Warnings, asked for on the connection that has them.
    s.read("SELECT CAST('abc' AS SIGNED), CAST('12x' AS SIGNED)")
        .query("SHOW WARNINGS");
    s.query("SHOW COUNT(*) WARNINGS")
        .query("SELECT @@warning_count, @@error_count");
    s.query("BOGUS")
        .query("SHOW ERRORS")
        .query("SHOW WARNINGS LIMIT 1");
    // Empty ones.
    s.query("")
        .query(";")
        .query("  ")
        .query("-- nothing")
        .query("/* nothing */");
    // OK with numbers and texts.
    s.write("INSERT INTO u VALUES (1), (2)")
        .write("UPDATE u SET id = id WHERE id < 9");
    s.write("UPDATE u SET id = id + 10 ORDER BY id DESC")
        .write("INSERT INTO u VALUES (11)");
    s.write("INSERT IGNORE INTO u VALUES (11), (13)")
        .query("SHOW WARNINGS");
    s.write("REPLACE INTO u VALUES (11)").write("DELETE FROM u");
    s.write("INSERT INTO t(v) VALUES (40)")
        .query("SELECT LAST_INSERT_ID()");
    s.write("DELETE FROM t WHERE id > 3")
        .query("SELECT ROW_COUNT()");
    s.query("DO 1")
        .query("DO no_such()")
        .query("SET @a = 5")
        .query("SELECT @a");
    // Definitions.
    s.write("CREATE TABLE made(a INT)")
        .write("CREATE TABLE made(a INT)");
    s.write("CREATE TABLE IF NOT EXISTS made(a INT)")
        .query("SHOW WARNINGS");
    s.write("ALTER TABLE made ADD b INT")
        .write("DROP TABLE made")
        .write("DROP TABLE made");
    s.sync();
    // Several statements, the last one good, wrong, or an empty one.
    s.query("SELECT 1; SELECT 2, 3")
        .query("DO 1; SELECT 2; DO 3");
    s.query("SELECT 1; SELECT nothing; SELECT 3")
        .query("SELECT 1; BOGUS; SELECT 3");
    s.query("SELECT 1;")
        .query("SELECT 1; ")
        .query("SELECT 1; ; SELECT 2");
    s.query("INSERT INTO u VALUES (1); SELECT ROW_COUNT(); DELETE FROM u; SELECT 4");
    // Procedures.
    s.query("CALL two()")
        .query("CALL out1(@x, @y)")
        .query("SELECT @x, @y");
    s.query("SET @y = 'in'; CALL out1(@x, @y); SELECT @x, @y")
        .query("CALL late()");
    s.query("SHOW WARNINGS")
        .query("CALL no_such()")
        .query("CALL two(1)")
        .query("SELECT 9");
    s
}

#[test]
fn text_replies_under_every_set() {
    under_every_set(TABLES, |_| text_tour());
}

/// While a stored program has a cursor open MariaDB says so in the status of all that it answers.
#[test]
fn results_in_the_loop_of_a_cursor() {
    let looped = "CREATE PROCEDURE looped() BEGIN DECLARE n INT; DECLARE done INT DEFAULT 0; DECLARE c CURSOR FOR SELECT i FROM n3; \
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; \
        again: LOOP FETCH c INTO n; IF done THEN LEAVE again; END IF; SELECT n, s FROM t WHERE id <= n; UPDATE u SET id = 1; END LOOP; \
        CLOSE c; SELECT 'end'; END";
    let setup = [TABLES, &[looped]].concat();
    under_every_set(&setup, |kind| {
        let mut s = Script::new();
        s.query("CALL looped()").query("SELECT 1");
        let call = s.prepare("CALL looped()");
        s.execute(call, &[]).query("SELECT 2");
        if kind == Kind::MariaDb {
            s.query("FOR rec IN (SELECT i FROM n3) DO SELECT rec.i; END FOR");
            s.query("SELECT 3");
        }
        s
    });
}

#[test]
fn more_columns_than_a_table_can_have() {
    let columns = vec!["1"; 70_000].join(",");
    let mut s = Script::new();
    s.query(&format!("SELECT {columns}")).query("SELECT 2");
    let mut differences = Differences::default();
    let stage = Stage::new(Kind::MariaDb, TABLES);
    stage.compare("usual", &Login::app(), &s, &mut differences);
    differences.report();
}

/// Query attributes travel in front of the text, and behind the parameters of an execution.
#[test]
fn query_attributes() {
    let attributes = [
        ("name", Param::from("value")),
        ("", Param::Int(7)),
        ("nothing", Param::Null),
        ("quote", Param::from("'; DELETE FROM n3 -- ")),
    ];
    let mut s = Script::new();
    s.query_with("SELECT i FROM n3", &attributes)
        .at(At::Replica);
    s.query_with("INSERT INTO u VALUES (1)", &attributes)
        .at(At::Primary);
    s.query_with("DELETE FROM u", &[("a", Param::from("b"))])
        .at(At::Primary);
    s.query_with("BOGUS", &attributes)
        .query_with("", &attributes);
    let read = s.prepare("SELECT ?, i FROM n3");
    let without = s.prepare("SELECT i FROM n3");
    for (id, params) in [(read, vec![Param::from("p")]), (without, Vec::new())] {
        for named in [&attributes[..], &attributes[..1], &[]] {
            s.execute_as(Execute {
                id,
                flags: 0,
                params: params.clone(),
                types: true,
                attributes: owned(named),
                file: Vec::new(),
            });
            s.at(At::Replica);
        }
    }
    let login = Login::app().with(Capabilities::QUERY_ATTRIBUTES);
    on_both(TABLES, |stage, differences| {
        stage.compare("attributes", &login, &s, differences);
    });
}

/// Commands of all kinds that leave no trace, as short as they can be: each byte is a place to cut.
fn short_tour() -> Script {
    let mut s = Script::new();
    s.query("SELECT 1")
        .ping()
        .query("SELECT s FROM t")
        .query("BOGUS");
    let select = s.prepare("SELECT ?,i FROM n3");
    s.execute(select, &[Param::from("x")]);
    s.execute_again(select, &[Param::from("yy")]);
    s.query("BEGIN")
        .query("INSERT INTO u VALUES (1)")
        .query("SELECT * FROM u");
    s.file(
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE u",
        &[b"2\n", b"\x03", b"4\n"],
    );
    s.query("ROLLBACK")
        .query("SELECT 1;SELECT 2")
        .query("CALL two()");
    s.named(0x02, "{s}").named(0x02, "no").named(0x04, "n3\0");
    let long = s.prepare("SELECT LENGTH(?)");
    s.long_data(long, 0, b"abc")
        .execute(long, &[Param::Long])
        .reset(long)
        .close(long);
    s.execute(select, &[Param::Null])
        .query("SET @a=1")
        .query("SELECT @a");
    s.command(&[0x1b, 1, 0])
        .command(&[0x1b, 0, 0])
        .command(&[0x7f])
        .command(&[]);
    s.command(&[0x1f]).query("SELECT 2");
    s
}

#[test]
fn cut_at_every_byte() {
    on_both(TABLES, |stage, differences| {
        stage.compare_cut(&Login::app(), &short_tour(), differences);
    });
}
