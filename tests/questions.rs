//! Questions about statements that a replica answered, where what asks also needs what only the primary has: user variables that
//! nobody but its connection knows, a temporary table, an open transaction, something to write.

mod common;

use common::{Atlas, Bed, Login, Node, Schema, Wire, config_for, unique_name};

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

/// An execution's text stays as it is, so that it cannot have the answer put in: it is refused and never given the wrong one.
#[test]
fn executions_that_need_both_are_refused() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let atlas = Atlas::start(config_for(&bed));
        let mut client = Wire::connect(atlas.address(), &Login::app().schema(&schema));
        let both = client.prepare("SELECT FOUND_ROWS(), @x");
        let rows = client.prepare("SELECT FOUND_ROWS()");
        client.ok(UNKNOWN);
        client.ok(READ);
        let refused = client.execute(&both, &[]);
        let (code, _, text) = refused.error().expect("it cannot be answered");
        assert_eq!(code, 1105, "{text}");
        let known = client.execute(&rows, &[]);
        known.assert_ok();
        client.ok("SELECT 1 /*master*/");
        assert_eq!(client.query("SELECT @x").cell(), "7");
    }
}
