//! What was asked of sharding, by its number, on servers: what each test shows is in its name. Numbers that whole modules are about are
//! listed with the module.
//!
//! | number | where |
//! | --- | --- |
//! | C5, C14, B13 | `random`, `statements`: every kind of statement, the grammar of WHERE, names put in place |
//! | C6, B18, B19 | `ids`: keys that are generated, and no two instances alike |
//! | C8, B11 | `conversions`, `prepared`: keys are compared as servers compare them, also as parameters |
//! | C15, C16 | `merging`: what needs all rows together |
//! | C18 | `transactions`: the script, with hints and without |
//! | B2, B3, B4, B7, B12, B20, C1, C2, C11, C21 | `entry`: rules, upgrades, governing, log-ins, growth |
//! | C8, C14 | `alike`: values and statements in every form |
//! | C19, C17 | `xa`: writes over groups, all of it or nothing |
//! | B21 | `globals`: tables that every group has |

use crate::Stage;
use crate::common::{Atlas, Bed, Login, Node, Param, Wire, config_for};
use crate::stage::seen;

const NOT_SUPPORTED: &str = "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: ";

/// Atlas with `ord` in these ranges, over the servers of a stage.
fn config(stage: &Stage<'_>, ranges: &str) -> String {
    let (bed, schema) = (stage.bed, &stage.schema);
    let config = config_for(bed)
        .all_users("group = \"main\"")
        .all_users("causal = \"session\"")
        .append(&format!(
            "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}\n[[tables]]\nname = \"{schema}.ord\"\nkey = \"uid\"\nranges = [{ranges}]\n",
            bed.address(Node::Second)
        ));
    config.into()
}

fn client(stage: &Stage<'_>, atlas: &Atlas) -> Wire {
    Wire::connect(atlas.address(), &Login::plain().schema(&stage.schema))
}

/// The groups that a statement would go to.
fn groups(client: &mut Wire, sql: &str) -> Vec<String> {
    let rows = client.query(&format!("EXPLAIN ROUTE {sql}")).rows();
    let shards = rows.iter().filter(|row| row[0].as_deref() == Some("shard"));
    let mut groups: Vec<String> = shards
        .map(|row| {
            row[1]
                .as_deref()
                .unwrap()
                .split(':')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    groups.sort();
    groups
}

/// The server that has rows of `ord` in this group.
fn there(stage: &Stage<'_>, group: &str, uid: i64) -> usize {
    let (node, schema) = match group {
        "main" => (Node::Primary, stage.schema.to_string()),
        _ => (Node::Second, format!("{}_b", stage.schema)),
    };
    let sql = format!("SELECT uid FROM {schema}.ord WHERE uid = {uid}");
    stage.bed.root(node).ok(&sql).rows().len()
}

const TWO: &str =
    "{ to = 1000, groups = [\"main\"] }, { from = 1000, to = 2000, groups = [\"s1\"] }";

#[test]
fn c9_c10_b8_ranges_hold_their_first_key_and_are_hit_precisely() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let atlas = Atlas::start(config(&stage, TWO));
        let mut client = client(&stage, &atlas);
        for (uid, group) in [(-5, "main"), (999, "main"), (1000, "s1"), (1999, "s1")] {
            client.ok(&format!("INSERT INTO ord (uid, amt) VALUES ({uid}, 1)"));
            assert_eq!(there(&stage, group, uid), 1, "{uid}");
            let other = if group == "main" { "s1" } else { "main" };
            assert_eq!(there(&stage, other, uid), 0, "{uid}");
        }
        let beyond = client
            .query("INSERT INTO ord (uid, amt) VALUES (2000, 1)")
            .error();
        let text = beyond.unwrap().2;
        assert!(text.ends_with("holds the shard key 2000"), "{text}");
        for (condition, wanted) in [
            ("uid > 100 AND uid < 1000", &["main"][..]),
            ("uid > 100 OR uid < 1000", &["main", "s1"]),
            ("uid BETWEEN 1000 AND 1500", &["s1"]),
            ("uid BETWEEN 999 AND 1000", &["main", "s1"]),
            ("uid = 1500", &["s1"]),
            ("uid IN (1, 1001)", &["main", "s1"]),
            ("NOT (uid < 1000)", &["s1"]),
            ("uid >= 1000 AND amt = 3", &["s1"]),
            ("uid < 1000 AND (uid > 5 OR amt = 3)", &["main"]),
            ("amt = 3", &["main", "s1"]),
        ] {
            let sql = format!("SELECT amt FROM ord WHERE {condition}");
            assert_eq!(groups(&mut client, &sql), wanted, "{condition}");
        }
        // C15: what needs all rows together is answered where one group has them.
        let count = client.query("SELECT COUNT(*) FROM ord WHERE uid >= 1000 AND uid < 2000");
        assert_eq!(count.cell(), "2");
    }
}

#[test]
fn c12_c13_keys_are_divided_with_a_remainder_and_ranges_of_them_are_everywhere() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    let atlas = Atlas::start(config(
        &stage,
        "{ groups = [\"main\", \"s1\"], tables = 1 }",
    ));
    let mut client = client(&stage, &atlas);
    for (uid, group) in [
        (10, "main"),
        (11, "s1"),
        (-1, "s1"),
        (-2, "main"),
        (i64::MIN, "main"),
    ] {
        client.ok(&format!("INSERT INTO ord (uid, amt) VALUES ({uid}, 1)"));
        assert_eq!(there(&stage, group, uid), 1, "{uid}");
        let sql = format!("SELECT amt FROM ord WHERE uid = {uid}");
        assert_eq!(groups(&mut client, &sql), [group], "{uid}");
    }
    let far = "SELECT amt FROM ord WHERE uid > 100 AND uid < 100000";
    assert_eq!(groups(&mut client, far), ["main", "s1"]);
}

/// A range above and a group come by a reload, under clients that are connected; a gap is refused, and nothing changes.
#[test]
fn c20_b8_b17_a_range_is_added_while_it_runs() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let atlas = Atlas::start(config(&stage, "{ to = 1000, groups = [\"main\"] }"));
        let mut client = client(&stage, &atlas);
        let insert = "INSERT INTO ord (uid, amt) VALUES (1500, 1)";
        assert_eq!(client.query(insert).error_code(), 1105);
        let gap = "{ to = 1000, groups = [\"main\"] }, { from = 1001, groups = [\"s1\"] }";
        atlas.write_config(config(&stage, gap));
        atlas.signal("HUP");
        atlas.wait_log("the keys from 1000 to 1001 are in no range");
        assert_eq!(client.query(insert).error_code(), 1105);
        // Inside the range the keys are spread, here over two tables of the group.
        let two_levels = "{ to = 1000, groups = [\"main\"] }, { from = 1000, to = 2000, groups = [\"s1\"] }, { from = 2000, groups = [\"s1\", \"main\"] }";
        atlas.write_config(config(&stage, two_levels));
        atlas.signal("HUP");
        atlas.wait_log("version 2");
        client.ok(insert);
        assert_eq!(there(&stage, "s1", 1500), 1);
        for (uid, group) in [(2000, "s1"), (2001, "main"), (999, "main")] {
            client.ok(&format!("INSERT INTO ord (uid, amt) VALUES ({uid}, 1)"));
            assert_eq!(there(&stage, group, uid), 1, "{uid}");
        }
    }
}

/// Rows are moved by nobody: what would have them looked for elsewhere is refused, and nothing changes. A restart takes the file as it is.
#[test]
fn c4_a_reload_does_not_have_rows_looked_for_elsewhere() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let two = "{ groups = [\"main\", \"s1\"] }";
        let atlas = Atlas::start(config(&stage, two));
        let mut client = client(&stage, &atlas);
        let all = |client: &mut Wire| {
            client
                .query("SELECT uid FROM ord WHERE uid IN (1, 2, 3)")
                .rows()
                .len()
        };
        assert_eq!(all(&mut client), 3);
        for (number, other) in [
            "{ groups = [\"main\", \"s1\"], tables = 2 }",
            "{ groups = [\"s1\", \"main\"] }",
            "{ to = 1000, groups = [\"main\"] }, { from = 1000, groups = [\"s1\"] }",
            "{ to = 1000, groups = [\"main\", \"s1\"] }",
        ]
        .iter()
        .enumerate()
        {
            atlas.write_config(config(&stage, other));
            atlas.signal("HUP");
            let refusals = |log: &str| log.matches("Atlas moves no rows").count() > number;
            crate::common::eventually("the reload is refused", || refusals(&atlas.log()));
            assert_eq!(all(&mut client), 3, "{other}");
        }
        // The same rows in the same places.
        let split = "{ to = 1000, groups = [\"main\", \"s1\"] }, { from = 1000, groups = [\"main\", \"s1\"] }";
        atlas.write_config(config(&stage, split));
        atlas.signal("HUP");
        atlas.wait_log("version 2");
        assert_eq!(all(&mut client), 3);
    }
}

/// Sharded tables and others in one schema, by the names that clients know; a join needs them in one group.
#[test]
fn c3_b5_b6_tables_of_both_kinds_in_one_schema() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for sql in [
            "SELECT k FROM misc WHERE uid = 1",
            "UPDATE misc SET k = 12 WHERE uid = 1",
            "INSERT INTO misc VALUES (9, 99)",
            "INSERT INTO misc (uid, k) SELECT id, id + 5 FROM zone",
            "SELECT uid, k FROM misc ORDER BY uid, k",
            "SELECT amt FROM ord WHERE uid = 1",
            "SELECT o.amt, m.k FROM ord o JOIN misc m ON m.uid = o.uid WHERE o.uid = 2",
            "SELECT o.amt, z.name FROM ord o JOIN zone z ON z.id = o.amt WHERE o.uid = 1",
            "DESCRIBE log",
        ] {
            assert_eq!(seen(&client.query(sql)), seen(&direct.query(sql)), "{sql}");
        }
        // That row is in the other group.
        let far = "SELECT o.amt, m.k FROM ord o JOIN misc m ON m.uid = o.uid WHERE o.uid = 1";
        let text = client.query(far).error().unwrap().2;
        let wanted = format!(
            "{NOT_SUPPORTED}a sharded and an unsharded table that are not in the same group: ask them apart, or have the one in every group and list it in `global_tables`"
        );
        assert_eq!(text, wanted);
    }
}

/// In a group with replicas reads are theirs and writes the primary's; a group without any reads from its primary.
#[test]
fn c7_each_group_has_a_primary_and_replicas_of_its_own() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        client.ok("SELECT 1");
        let marks = bed.marks();
        client.ok("SELECT amt, 'a read' FROM ord WHERE uid = 2");
        client.ok("SELECT amt, 'a read' FROM ord WHERE uid = 3");
        client.ok("UPDATE ord SET amt = 3, code = 'wr' WHERE uid = 2");
        client.ok("UPDATE ord SET amt = 3, code = 'wr' WHERE uid = 3");
        let of = |node: Node, text: &str| {
            let entries = marks.entries(node);
            entries
                .iter()
                .filter(|entry| entry.text.contains(text))
                .count()
        };
        let replicas: usize = Node::REPLICAS
            .iter()
            .map(|node| of(*node, "'a read'"))
            .sum();
        assert_eq!(
            (
                replicas,
                of(Node::Primary, "'a read'"),
                of(Node::Second, "'a read'")
            ),
            (1, 0, 1)
        );
        assert_eq!(
            (
                of(Node::Primary, "code = 'wr'"),
                of(Node::Second, "code = 'wr'")
            ),
            (1, 1)
        );
    }
}

#[test]
fn c17_writes_that_several_groups_have_rows_for_are_refused_whole() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        let before = client.query("SELECT * FROM ord").rows().len();
        for sql in [
            "DELETE FROM ord",
            "UPDATE ord SET amt = 0",
            "DELETE FROM ord WHERE amt > 0",
            "UPDATE ord SET amt = 0 WHERE uid IN (1, 2)",
            "DELETE FROM ord WHERE uid > 0",
            "INSERT INTO ord (uid, amt) VALUES (50, 0), (51, 0)",
            "REPLACE INTO ord (uid, amt) VALUES (1, 0), (2, 0)",
        ] {
            let (code, state, text) = client.query(sql).error().unwrap();
            assert_eq!((code, state.as_str()), (1105, "HY000"), "{sql}");
            assert!(
                text.starts_with(NOT_SUPPORTED) && text.contains(": "),
                "{sql}: {text}"
            );
        }
        let rows = client.query("SELECT * FROM ord WHERE amt > 0").rows();
        assert_eq!(rows.len(), before);
    }
}

/// NULL stays NULL in what several shards answer, as text and in binary rows.
#[test]
fn c22_nulls_survive() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let sql = "SELECT uid, n, NULL, code FROM ord";
        let sorted = |wire: &mut Wire| {
            let mut rows = wire.query(sql).rows();
            rows.sort();
            rows
        };
        let rows = sorted(&mut client);
        assert_eq!(rows, sorted(&mut direct));
        assert_eq!(rows.iter().filter(|row| row[1].is_none()).count(), 3);
        let binary = |wire: &mut Wire| {
            let statement = wire.prepare(sql);
            let mut rows = wire.execute(&statement, &[]).binary_rows();
            rows.sort();
            rows
        };
        assert_eq!(binary(&mut client), binary(&mut direct));
    }
}

/// The rows of one table are on several servers, each once, and each server is asked for its own only.
#[test]
fn b1_b11_one_table_over_several_servers() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        let insert = client.prepare("INSERT INTO ord (uid, amt) VALUES (?, ?)");
        for uid in 100..140 {
            client
                .execute(&insert, &[Param::Int(uid), Param::Int(uid)])
                .assert_ok();
        }
        for uid in 100..140 {
            let groups = if uid % 2 == 0 {
                ["main", "s1"]
            } else {
                ["s1", "main"]
            };
            assert_eq!(
                [there(&stage, groups[0], uid), there(&stage, groups[1], uid)],
                [1, 0],
                "{uid}"
            );
        }
        let marks = bed.marks();
        client.ok("SELECT amt, 'only there' FROM ord WHERE uid = 101");
        let texts = |node| {
            let entries = marks.entries(node);
            entries
                .iter()
                .filter(|entry| entry.text.contains("'only there'"))
                .count()
        };
        assert_eq!(texts(Node::Second), 1);
        assert_eq!(
            texts(Node::Primary)
                + Node::REPLICAS
                    .iter()
                    .map(|node| texts(*node))
                    .sum::<usize>(),
            0
        );
    }
}

/// Names are put in place where they name a table, and nowhere else; schemas have other names in other groups.
#[test]
fn b13_only_names_of_tables_are_rewritten() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("INSERT INTO log (id, s) VALUES (2, 'log'), (3, 'log_2')");
        }
        for sql in [
            "SELECT 'log', s, \"log.id\" FROM log WHERE id = 2 AND s = 'log'",
            "SELECT s AS log, id AS `log.id` FROM log /* FROM log */ WHERE id = 2 -- log",
            "SELECT log.s FROM log AS log WHERE log.id = 3",
            "SELECT `log`.`s`, l.id FROM log l, ord AS log WHERE 1 = 2 AND l.id = 2 AND log.uid = 3",
            "SELECT (SELECT COUNT(*) FROM log WHERE id = 2) AS log",
            "SELECT s, (SELECT COUNT(*) FROM log x WHERE x.id = 2) FROM log WHERE log.id = 2",
        ] {
            let (ours, theirs) = (client.query(sql), direct.query(sql));
            assert_eq!(seen(&ours), seen(&theirs), "{sql}");
        }
    }
}
