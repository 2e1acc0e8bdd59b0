//! Statements that the proxy itself answers: EXPLAIN ROUTE, SHOW LAST ROUTE, KILL.
//!
//! Names with a number (`b003…`) are those of reported faults of other proxies.

use super::*;
use crate::sql::{Kind, explain_route_target, kill_target, releases_connection};

#[test]
fn explain_route_and_show_last_route_are_atlass_own() {
    for (sql, inner) in [
        ("EXPLAIN ROUTE SELECT 1", Some(" SELECT 1")),
        (
            "explain /* a */ route/*master*/SELECT 1",
            Some("/*master*/SELECT 1"),
        ),
        ("EXPLAIN ROUTE (SELECT 1)", Some(" (SELECT 1)")),
        ("EXPLAIN ROUTE COMMIT", Some(" COMMIT")),
        (
            "EXPLAIN ROUTE DELETE FROM t; SELECT 2",
            Some(" DELETE FROM t; SELECT 2"),
        ),
        ("EXPLAIN ROUTE FROBNICATE t", Some(" FROBNICATE t")),
        ("EXPLAIN ROUTE", None),
        ("EXPLAIN ROUTE;", None),
        ("EXPLAIN route id", None),
        ("EXPLAIN route 'id'", None),
        ("EXPLAIN `ROUTE` SELECT 1", None),
        ("DESC route", None),
        ("EXPLAIN FORMAT=JSON SELECT route FROM t", None),
    ] {
        let kind = facts(sql, &MARIADB).kind;
        assert_eq!(kind == Kind::ExplainRoute, inner.is_some(), "{sql}");
        let found = explain_route_target(sql.as_bytes(), &MARIADB).and_then(|at| sql.get(at..));
        assert_eq!(found, inner, "{sql}");
    }
    for sql in [
        "SHOW LAST ROUTE",
        "show last route;",
        "/* x */ SHOW /* y */ LAST ROUTE -- z",
    ] {
        assert_eq!(facts(sql, &MARIADB).kind, Kind::ShowLastRoute, "{sql}");
    }
    for sql in ["SHOW LAST ROUTE x", "SHOW LAST", "SHOW ROUTE"] {
        assert_eq!(facts(sql, &MARIADB).kind, Kind::Show, "{sql}");
    }
    assert_eq!(
        facts("SHOW LAST ROUTE; SELECT 1", &MARIADB).kind,
        Kind::Batch
    );
}

#[test]
fn ends_of_connections() {
    for (sql, expected) in [
        ("COMMIT RELEASE", true),
        ("rollback work and no chain release -- now", true),
        ("COMMIT /* RELEASE */", false),
        ("COMMIT", false),
        ("COMMIT NO RELEASE", false),
        ("ROLLBACK AND CHAIN NO RELEASE", false),
        ("COMMIT; SELECT release", false),
    ] {
        assert_eq!(
            releases_connection(sql.as_bytes(), &MARIADB, false),
            expected,
            "{sql}"
        );
    }
    for (sql, expected) in [
        ("COMMIT", true),
        ("ROLLBACK AND CHAIN", true),
        ("COMMIT NO RELEASE", false),
        ("COMMIT AND NO CHAIN RELEASE", true),
    ] {
        let releases = releases_connection(sql.as_bytes(), &MARIADB, true);
        assert_eq!(releases, expected, "{sql} by default");
    }
}

#[test]
fn kill_targets() {
    for (sql, expected) in [
        ("KILL 5", Some((false, 5))),
        ("kill connection 7;", Some((false, 7))),
        ("KILL QUERY 18446744073709551615", Some((true, u64::MAX))),
        ("/* x */ KILL HARD QUERY 9 -- y", Some((true, 9))),
        ("KILL SOFT CONNECTION 9", Some((false, 9))),
        ("KILL SOFT 9", Some((false, 9))),
        ("KILL", None),
        ("KILL QUERY ID 5", None),
        ("KILL USER a", None),
        ("KILL @x", None),
        ("KILL CONNECTION_ID()", None),
        ("KILL 5 + 1", None),
        ("KILL 5; SELECT 1", None),
        ("KILL 1.5", None),
        ("KILL 18446744073709551616", None),
        ("SELECT 5", None),
    ] {
        let kill = kill_target(sql.as_bytes(), &MARIADB).map(|k| (k.query, k.id));
        assert_eq!(kill, expected, "{sql}");
    }
}
