//! Questions about statements that a replica answered, where what asks also needs what only the primary has: user variables that
//! nobody but its connection knows, a temporary table, an open transaction, something to write.

mod common;

use common::{
    Atlas, Bed, Kind, Login, Node, Param, Schema, Wire, assert_same, config_for, unique_name,
};

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    maker.ok("CREATE TABLE t(a INT PRIMARY KEY)");
    maker.ok("INSERT INTO t VALUES (1), (2), (3)");
    maker.ok("CREATE TABLE seen(n INT)");
    bed.wait_replicas();
    schema
}

/// Makes a variable that only the primary's connection knows.
const UNKNOWN: &str = "SELECT @x := MAX(a) + 4 FROM t";
/// The read that is asked about; `#` is replaced by a tag.
const READ: &str = "SELECT a FROM t WHERE a < 3 /* # */";
const CUT: &str = "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1 /* # */";
const WARNED: &str = "SELECT CAST('y' AS SIGNED) FROM t /* # */";

/// What is said one after the other; what is not a read about which something is asked has to arrive at the primary.
const SCENES: [&[&str]; 15] = [
    &[UNKNOWN, READ, "SELECT FOUND_ROWS(), @x"],
    &[UNKNOWN, READ, "SELECT ROW_COUNT(), @x"],
    &[UNKNOWN, CUT, "SELECT FOUND_ROWS(), @x"],
    &[
        UNKNOWN,
        READ,
        "SELECT 1 + FOUND_ROWS() AS n FROM t WHERE a + 4 = @x",
    ],
    &[UNKNOWN, WARNED, "SELECT @@warning_count, @@error_count, @x"],
    &[READ, "SELECT FOUND_ROWS() INTO @n", "SELECT @n"],
    &[CUT, "SELECT FOUND_ROWS() INTO @n", "SELECT @n"],
    &[CUT, "SET @n = FOUND_ROWS()", "SELECT @n"],
    &[
        CUT,
        "INSERT INTO seen VALUES (FOUND_ROWS())",
        "SELECT n FROM seen /*master*/",
    ],
    &[
        READ,
        "INSERT INTO seen SELECT ROW_COUNT()",
        "SELECT n FROM seen /*master*/",
    ],
    &[CUT, "SELECT LAST_INSERT_ID(), FOUND_ROWS()"],
    &[READ, "BEGIN", "SELECT FOUND_ROWS()", "COMMIT"],
    &[
        CUT,
        "SET autocommit = 0",
        "SELECT FOUND_ROWS()",
        "SET autocommit = 1",
    ],
    &[
        READ,
        "CREATE TEMPORARY TABLE tt(a INT)",
        "SELECT FOUND_ROWS(), COUNT(*) FROM tt",
        "DROP TEMPORARY TABLE tt",
    ],
    &[
        WARNED,
        "GET DIAGNOSTICS @n = NUMBER",
        "SHOW WARNINGS",
        "SELECT @n",
    ],
];

#[test]
fn the_answers_are_put_in_and_the_primary_gives_the_rest() {
    for bed in Bed::both() {
        let (schema, twin) = (with_table(&bed), with_table(&bed));
        for settings in [
            "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n",
            "",
        ] {
            let atlas = Atlas::start(config_for(&bed).append(settings));
            let login = Login::app().schema(&schema);
            let mut other = Wire::connect(atlas.address(), &login);
            for is_taken in [true, false] {
                for scene in SCENES {
                    let marks = bed.marks();
                    let mut client = Wire::connect(atlas.address(), &login);
                    let mut direct =
                        Wire::connect(bed.address(Node::Primary), &Login::app().schema(&twin));
                    let tag = unique_name("asked");
                    for sql in scene {
                        let sql = sql.replace('#', &tag);
                        if is_taken {
                            other.ok("SELECT 1");
                        }
                        let (seen, wanted) = (client.query(&sql), direct.query(&sql));
                        assert_eq!(seen.error(), wanted.error(), "{sql} of {scene:?}");
                        assert_eq!(seen.rows(), wanted.rows(), "{sql} of {scene:?}");
                    }
                    // What was asked about did run on a replica.
                    let nodes = marks.nodes(&tag);
                    let found = nodes.iter().filter(|node| **node != Node::Primary).count();
                    // One is the direct client's.
                    assert_eq!((found, nodes.len()), (1, 2), "{scene:?}: {nodes:?}");
                    client.ok("DELETE FROM seen");
                    direct.ok("DELETE FROM seen");
                }
            }
        }
    }
}

/// What is prepared, what is said then, and how often it is executed.
const EXECUTED: [(&str, &[&str]); 21] = [
    ("SELECT FOUND_ROWS(), @x > 6 AS more", &[UNKNOWN, READ]),
    ("SELECT ROW_COUNT()", &["SET @y = 1"]),
    ("SELECT ROW_COUNT()", &["DO 1"]),
    ("SELECT ROW_COUNT()", &["BEGIN", "COMMIT"]),
    ("SELECT ROW_COUNT()", &["DELETE FROM t WHERE a > 7"]),
    ("SELECT ROW_COUNT(), FOUND_ROWS()", &[READ]),
    ("SELECT ROW_COUNT(), FOUND_ROWS()", &[READ, "SELECTED"]),
    ("SELECT FOUND_ROWS()", &[CUT]),
    ("SELECT IF(ROW_COUNT() = -1, FOUND_ROWS(), 0) AS n", &[READ]),
    ("SET @n = ROW_COUNT()", &["UPDATE t SET a = 3 WHERE a = 3"]),
    ("SET @n = FOUND_ROWS()", &[CUT]),
    ("INSERT INTO seen VALUES (FOUND_ROWS())", &[READ]),
    (
        "INSERT INTO seen SELECT ROW_COUNT()",
        &["INSERT INTO seen VALUES (1), (2)"],
    ),
    ("DO SLEEP(0 * FOUND_ROWS())", &[READ]),
    (
        "SELECT LAST_INSERT_ID(), ROW_COUNT()",
        &["INSERT INTO seen VALUES (1), (2)"],
    ),
    ("SELECT FOUND_ROWS()", &[READ, "SET autocommit = 0"]),
    ("SELECT FOUND_ROWS()", &[READ, "BEGIN"]),
    (
        "SELECT FOUND_ROWS()",
        &[READ, "CREATE TEMPORARY TABLE tt(a INT)"],
    ),
    // These are prepared on MariaDB only.
    ("SELECT @@warning_count, @@error_count", &[WARNED]),
    ("SHOW WARNINGS", &[WARNED]),
    ("SHOW COUNT(*) WARNINGS", &[WARNED]),
];

/// The same by executions: a text with the answers in it is prepared for them, wherever the connection that knew them is.
#[test]
fn executions_are_answered_too() {
    for bed in Bed::both() {
        let (schema, twin) = (with_table(&bed), with_table(&bed));
        for settings in [
            "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"2s\"\n",
            "",
        ] {
            let atlas = Atlas::start(config_for(&bed).append(settings));
            let login = Login::app().schema(&schema);
            let mut other = Wire::connect(atlas.address(), &login);
            for is_taken in [true, false] {
                for (asks, scene) in EXECUTED {
                    let mut client = Wire::connect(atlas.address(), &login);
                    let mut direct =
                        Wire::connect(bed.address(Node::Primary), &Login::app().schema(&twin));
                    // What a fresh session finds the server leaves to chance.
                    for wire in [&mut client, &mut direct] {
                        wire.ok("SELECT 1 /*master*/");
                    }
                    let (seen, wanted) = (client.try_prepare(asks), direct.try_prepare(asks));
                    let (Ok(statement), Ok(there)) = (seen, wanted) else {
                        assert!(bed.kind == Kind::MySql, "{asks}");
                        continue;
                    };
                    let mut take = |sql: &str| {
                        if is_taken {
                            // Where the connection is held it has to wait in vain.
                            other.query(sql);
                        }
                    };
                    for sql in scene {
                        take("SELECT 1");
                        let (seen, wanted) = (client.query(sql), direct.query(sql));
                        assert_eq!(seen.error(), wanted.error(), "{sql} before {asks}");
                    }
                    for n in 0..3 {
                        take("SELECT 1");
                        let what = format!("{asks}, {n}, behind {scene:?}, taken: {is_taken}");
                        let wanted = direct.execute(&there, &[]);
                        let seen = client.execute(&statement, &[]);
                        assert_same(&what, &wanted, &seen, &[]);
                        let set = "SELECT @n, @x, (SELECT SUM(n) FROM seen) /*master*/";
                        if n == 2 {
                            assert_eq!(
                                client.query(set).rows(),
                                direct.query(set).rows(),
                                "{what}"
                            );
                        }
                    }
                    for wire in [&mut client, &mut direct] {
                        wire.ok("ROLLBACK");
                        wire.ok("SET autocommit = 1");
                        wire.ok("DELETE FROM seen");
                    }
                }
            }
        }
    }
}

/// Types that came with an execution are those of the next, though another text was prepared for it.
#[test]
fn parameters_of_questions_keep_their_types() {
    for bed in Bed::both() {
        let (schema, twin) = (with_table(&bed), with_table(&bed));
        let atlas = Atlas::start(config_for(&bed));
        let mut client = Wire::connect(atlas.address(), &Login::app().schema(&schema));
        let mut direct = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&twin));
        let mut said = [&mut client, &mut direct].map(|wire| {
            wire.ok(READ);
            let asks = wire.prepare("SELECT FOUND_ROWS() + ? AS n, @x > 6 AS more");
            let mut rows = Vec::new();
            for has_types in [true, false, false] {
                wire.ok(UNKNOWN);
                wire.ok(READ);
                let params = [Param::from(40_i64)];
                let payload = wire.execute_payload(asks.id, 0, &params, has_types);
                let reply = wire.command(&payload);
                reply.assert_ok();
                rows.push(reply.binary_rows());
            }
            rows
        });
        let wanted = said[1].split_off(0);
        assert_eq!(said[0], wanted);
        assert_eq!(wanted.len(), 3);
    }
}

/// Queries after which FOUND_ROWS() is something else than the number of rows that were sent, and some after which it is not.
const COUNTED: [&str; 8] = [
    "SELECT a FROM t",
    "SELECT a FROM t LIMIT 2",
    "SELECT a FROM t LIMIT 1, 1",
    "SELECT a FROM t LIMIT 1 OFFSET 1",
    "SELECT a FROM t UNION SELECT a + 10 FROM t",
    "SELECT a FROM t UNION SELECT a + 10 FROM t LIMIT 2",
    "(SELECT a FROM t) UNION ALL (SELECT a FROM t) LIMIT 1",
    "SELECT a FROM t WHERE a IN (SELECT n FROM seen) LIMIT 3",
];

/// Another client has the connections in between.
#[test]
fn found_rows_are_what_the_server_found() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let atlas = Atlas::start(
            config_for(&bed)
                .append("[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n"),
        );
        let login = Login::app().schema(&schema);
        let mut other = Wire::connect(atlas.address(), &login);
        for sql in COUNTED {
            for is_prepared in [true, false] {
                let mut client = Wire::connect(atlas.address(), &login);
                let mut direct = Wire::connect(bed.address(Node::Primary), &login);
                for wire in [&mut client, &mut direct] {
                    if is_prepared {
                        let statement = wire.prepare(sql);
                        assert_eq!(wire.execute(&statement, &[]).error(), None, "{sql}");
                    } else {
                        wire.ok(sql);
                    }
                }
                other.ok("SELECT a FROM t");
                other.ok("/*master*/ SELECT a FROM t");
                let seen = client.query("SELECT FOUND_ROWS()").rows();
                let wanted = direct.query("SELECT FOUND_ROWS()").rows();
                let how = (bed.kind, is_prepared);
                assert_eq!(seen, wanted, "{sql} {how:?}");
            }
        }
    }
}
