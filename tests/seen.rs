//! What statements change of their session without saying so: by triggers, by values that only the server works out. It is the
//! session's own, and does not stay on a connection that serves others.

mod common;

use common::{Atlas, Bed, Login, Node, Schema, Wire, config_for};

/// Tables with a trigger that sets variables.
fn with_triggers(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    for sql in [
        "CREATE TABLE t(a INT PRIMARY KEY)",
        "CREATE TABLE zones(name VARCHAR(20))",
        "INSERT INTO zones VALUES ('+03:00')",
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW
         BEGIN SET time_zone = '+05:00'; SET @seen = NEW.a; END",
    ] {
        maker.ok(sql);
    }
    bed.wait_replicas();
    schema
}

fn start(bed: &Bed) -> Atlas {
    // All clients take turns on one connection.
    Atlas::start(
        config_for(bed)
            .append("[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n"),
    )
}

const ASK: &str = "SELECT CONCAT(@@time_zone, ' ', COALESCE(@seen, 'nothing')) /*master*/";

#[test]
fn what_a_trigger_sets_is_the_sessions_own() {
    for bed in Bed::both() {
        let schema = with_triggers(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed);
        for round in 1..=3 {
            let mut one = Wire::connect(atlas.address(), &login);
            assert_eq!(one.query(ASK).cell(), "SYSTEM nothing");
            one.ok(&format!("INSERT INTO t VALUES ({round})"));
            assert_eq!(one.query(ASK).cell(), format!("+05:00 {round}"));
            // Reads follow it.
            let read = one.query("SELECT @@time_zone");
            assert_eq!(read.cell(), "+05:00");
            let pins = one.query("EXPLAIN ROUTE SELECT 1").rows();
            let is_pinned = |row: &Vec<Option<String>>| {
                row[0].as_deref() == Some("pins") && row[1].as_deref() == Some("unseen-change")
            };
            assert!(pins.iter().any(is_pinned), "{pins:?}");
        }
    }
}

#[test]
fn a_trigger_of_a_statement_that_fails_leaves_nothing_to_others() {
    // MariaDB does not tell of it in time.
    let bed = Bed::of(common::Kind::MySql);
    let schema = with_triggers(&bed);
    let login = Login::plain().schema(&schema);
    let atlas = start(&bed);
    let mut one = Wire::connect(atlas.address(), &login);
    one.ok("INSERT INTO t VALUES (7)");
    drop(one);
    let mut one = Wire::connect(atlas.address(), &login);
    let mut other = Wire::connect(atlas.address(), &login);
    assert_eq!(one.query(ASK).cell(), "SYSTEM nothing");
    assert_eq!(one.query("INSERT INTO t VALUES (7)").error_code(), 1062);
    // Its connection is wanted, so it is asked what the error left.
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| other.query(ASK));
        // It is kept until this session ends.
        assert_eq!(one.query(ASK).cell(), "+05:00 7");
        drop(one);
        assert_eq!(asked.join().expect("an answer").cell(), "SYSTEM nothing");
    });
}

#[test]
fn a_value_that_the_server_worked_out_is_known() {
    for bed in Bed::both() {
        let schema = with_triggers(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed);
        let mut one = Wire::connect(atlas.address(), &login);
        let mut other = Wire::connect(atlas.address(), &login);
        one.ok("SET time_zone = (SELECT name FROM zones)");
        let statement = one.prepare("SET SESSION div_precision_increment = ?");
        one.execute(&statement, &[common::Param::Int(9)])
            .assert_ok();
        // The connection is free, and both are in their own state on it.
        for _ in 0..3 {
            assert_eq!(other.query(ASK).cell(), "SYSTEM nothing");
            assert_eq!(one.query(ASK).cell(), "+03:00 nothing");
            let ask = "SELECT @@div_precision_increment /*master*/";
            assert_eq!(other.query(ask).cell(), "4");
            assert_eq!(one.query(ask).cell(), "9");
        }
    }
}

#[test]
fn hints_that_set_variables_tie_nothing() {
    for bed in Bed::both() {
        let schema = with_triggers(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed);
        let mut one = Wire::connect(atlas.address(), &login);
        let mut other = Wire::connect(atlas.address(), &login);
        let sql = match bed.kind {
            common::Kind::MySql => {
                "SELECT /*+ SET_VAR(max_execution_time=5000) */ 'x' FROM t FOR UPDATE"
            }
            common::Kind::MariaDb => {
                "SET STATEMENT max_statement_time=5 FOR SELECT 'x' FROM t FOR UPDATE"
            }
        };
        one.query(sql).assert_ok();
        assert_eq!(other.query(ASK).cell(), "SYSTEM nothing");
        one.ok("DELETE FROM t");
        assert_eq!(other.query(ASK).cell(), "SYSTEM nothing");
    }
}
