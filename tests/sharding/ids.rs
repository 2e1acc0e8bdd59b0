//! Keys that Atlas generates: filled in where a row has none, told as a server tells its own, and no two alike, whoever generates them.

use std::collections::BTreeSet;

use crate::Stage;
use crate::common::Login;
use crate::common::{Atlas, Bed, Node, Param, Wire, config_for, eventually};

/// `gen` has its rows by another column, in two tables of each group, `own` by the generated key.
fn start(stage: &Stage<'_>) -> Atlas {
    let (bed, schema) = (stage.bed, &stage.schema);
    let table = |name: &str, rest: &str| {
        format!(
            "[[tables]]\nname = \"{schema}.{name}\"\nid = {{ column = \"id\", generator = \"snowflake\" }}\n{rest}\n"
        )
    };
    Atlas::start(
        config_for(bed)
            .all_users("group = \"main\"")
            .all_users("causal = \"session\"")
            .append(&format!(
                "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}",
                bed.address(Node::Second)
            ))
            .append(&table(
                "gen",
                "key = \"uid\"\nranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
            ))
            .append(&table("own", "key = \"id\"\nranges = [{ groups = [\"main\", \"s1\"] }]")),
    )
}

fn create(stage: &Stage<'_>) {
    let mut servers = [stage.bed.root(Node::Primary), stage.bed.root(Node::Second)];
    let schemas = [stage.schema.to_string(), format!("{}_b", stage.schema)];
    for (server, (wire, schema)) in servers.iter_mut().zip(&schemas).enumerate() {
        for number in 0..2 {
            wire.ok(&format!(
                "CREATE TABLE {schema}.gen_{} (uid BIGINT, v VARCHAR(20), id BIGINT UNSIGNED NOT NULL PRIMARY KEY)",
                server * 2 + number
            ));
        }
        wire.ok(&format!(
            "CREATE TABLE {schema}.own (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, v VARCHAR(20))"
        ));
    }
}

/// A client of an instance that has become a node.
fn client(stage: &Stage<'_>, atlas: &Atlas) -> Wire {
    let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&stage.schema));
    eventually("this instance is a node", || {
        client
            .query("INSERT INTO gen (uid, v) VALUES (0, 'first')")
            .error()
            .is_none()
    });
    client
}

fn number(client: &mut Wire, sql: &str) -> u64 {
    client.query(sql).cell().parse().unwrap()
}

#[test]
fn rows_without_a_key_get_one() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        create(&stage);
        let atlas = start(&stage);
        let mut client = client(&stage, &atlas);
        let mut seen = BTreeSet::new();
        for (sql, rows) in [
            ("INSERT INTO gen (uid, v) VALUES (1, 'a')", 1),
            ("INSERT INTO gen VALUES (1, 'b', NULL)", 1),
            (
                "INSERT INTO gen VALUES (1, 'c', DEFAULT), (1, 'd', NULL)",
                2,
            ),
            ("INSERT INTO gen SET uid = 1, v = 'e'", 1),
            ("INSERT INTO gen SET id = NULL, uid = 1, v = 'f'", 1),
            ("REPLACE INTO gen (v, uid) VALUES ('g', 1), ('h', 1)", 2),
            ("INSERT IGNORE gen (uid) VALUES (1)", 1),
            (
                "INSERT INTO gen (uid, v) VALUES (1, 'i') ON DUPLICATE KEY UPDATE v = 'x'",
                1,
            ),
            // In two tables of one group.
            (
                "INSERT INTO gen (uid, v) VALUES (4, 'j'), (5, 'k'), (4, 'l')",
                3,
            ),
            ("INSERT INTO own (v) VALUES ('m')", 1),
            ("INSERT INTO own SET v = 'n'", 1),
        ] {
            let reply = client.query(sql);
            let (affected, id) = reply.assert_ok().affected_and_insert_id();
            assert_eq!(affected, rows, "{:?}: {sql}", bed.kind);
            assert_eq!(number(&mut client, "SELECT LAST_INSERT_ID()"), id, "{sql}");
            assert_eq!(number(&mut client, "SELECT @@identity"), id, "{sql}");
            let table = if sql.contains("own") { "own" } else { "gen" };
            // They follow each other.
            for id in id..id + rows {
                assert!(seen.insert(id), "{sql}");
                let found = if table == "own" {
                    client.query(&format!("SELECT id FROM own WHERE id = {id}"))
                } else {
                    client.query(&format!(
                        "SELECT id FROM gen WHERE uid IN (1, 4, 5) AND id = {id}"
                    ))
                };
                assert_eq!(found.cell(), id.to_string(), "{:?}: {sql}", bed.kind);
            }
        }
        // What has a key keeps it, and what was generated before is still told.
        let last = number(&mut client, "SELECT LAST_INSERT_ID()");
        client.ok("INSERT INTO gen (uid, id) VALUES (1, 77), (1, 78)");
        client.ok("INSERT INTO own (id, v) VALUES (79, 'x')");
        assert_eq!(number(&mut client, "SELECT LAST_INSERT_ID()"), last);
        assert_eq!(client.query("SELECT v FROM own WHERE id = 79").cell(), "x");
        for (sql, part) in [
            (
                "INSERT INTO gen (uid, v) SELECT uid, v FROM gen WHERE uid = 1",
                "does not give the generated key id",
            ),
            (
                "INSERT INTO own (v) VALUES ('a'), ('b'), ('c')",
                "insert them apart",
            ),
        ] {
            let (code, _, text) = client.query(sql).error().unwrap();
            assert!(code == 1105 && text.contains(part), "{sql}: {text}");
        }
        let rows = client
            .query("EXPLAIN ROUTE INSERT INTO own (v) VALUES ('x')")
            .rows();
        assert!(
            format!("{rows:?}").contains("with-generated-keys"),
            "{rows:?}"
        );
    }
}

#[test]
fn prepared_rows_without_a_key_get_one() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        create(&stage);
        let atlas = start(&stage);
        let mut client = client(&stage, &atlas);
        let text = |text: &str| Param::from(text);
        let int = Param::Int;
        for (sql, executions) in [
            (
                "INSERT INTO gen (uid, v) VALUES (?, ?)",
                vec![
                    vec![int(1), text("a")],
                    vec![int(2), text("b")],
                    vec![text("1"), Param::Null],
                ],
            ),
            (
                "INSERT INTO gen (v, uid) VALUES (?, ?), ('c', ?)",
                vec![
                    vec![text("a"), int(1), int(1)],
                    vec![text("b"), int(4), int(5)],
                    vec![text("b"), int(6), int(7)],
                ],
            ),
            (
                "INSERT INTO gen VALUES (?, 'x', NULL)",
                vec![vec![int(3)], vec![int(3)]],
            ),
            (
                "INSERT INTO gen SET v = ?, uid = ?",
                vec![vec![text("a"), int(1)]],
            ),
            (
                "INSERT INTO own (v) VALUES (?)",
                vec![vec![text("a")], vec![text("b")]],
            ),
            ("INSERT INTO own SET v = 'c'", vec![vec![], vec![]]),
        ] {
            let statement = client.prepare(sql);
            assert_eq!(usize::from(statement.params), executions[0].len(), "{sql}");
            for params in &executions {
                for around in ["", "BEGIN", "SET autocommit = 0"] {
                    if !around.is_empty() {
                        client.ok(around);
                    }
                    let reply = client.execute(&statement, params);
                    let (rows, id) = reply.assert_ok().affected_and_insert_id();
                    assert_eq!(number(&mut client, "SELECT LAST_INSERT_ID()"), id, "{sql}");
                    let question = client.prepare("SELECT LAST_INSERT_ID()");
                    let told = client.execute(&question, &[]).binary_rows();
                    assert_eq!(told[0][0].as_deref(), Some(&id.to_le_bytes()[..]), "{sql}");
                    if !around.is_empty() {
                        client.ok("COMMIT");
                        client.ok("SET autocommit = 1");
                    }
                    for id in id..id + rows {
                        let table = if sql.contains("own") { "own" } else { "gen" };
                        let found =
                            client.query(&format!("SELECT id FROM {table} WHERE id = {id}"));
                        assert_eq!(found.cell(), id.to_string(), "{:?}: {sql}", bed.kind);
                    }
                }
            }
        }
        // A failure is the server's own, and leaves the ids of before.
        let before = number(&mut client, "SELECT LAST_INSERT_ID()");
        let statement = client.prepare("INSERT INTO gen (uid, v) VALUES (?, ?)");
        let long = text(&"x".repeat(50));
        assert_eq!(
            client.execute(&statement, &[int(1), long]).error_code(),
            1406
        );
        let reply = client.execute(&statement, &[int(1), text("y")]);
        assert!(reply.assert_ok().affected_and_insert_id().1 > before);
    }
}

/// Instances are different nodes, by the server's word, and one whose lock was taken away becomes another.
#[test]
fn instances_are_different_nodes() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    create(&stage);
    let instances = [start(&stage), start(&stage), start(&stage)];
    let clients = instances.iter().map(|atlas| client(&stage, atlas));
    let mut clients: Vec<Wire> = clients.collect();
    // An instance that did not hear from the server in time gives none for a while.
    let take = |client: &mut Wire| {
        let reply = client.query("INSERT INTO own (v) VALUES ('x')");
        let is_given = reply.error().is_none();
        assert!(is_given || reply.error_code() == 1105, "{reply:?}");
        is_given.then(|| reply.affected_and_insert_id().1)
    };
    let node = |id: u64| id >> 12 & 1023;
    let mut ids = BTreeSet::new();
    let mut given = 0;
    eventually("each has given many", || {
        for client in &mut clients {
            for id in (0..50).filter_map(|_| take(client)) {
                given += 1;
                ids.insert(id);
            }
        }
        given > 600
    });
    assert_eq!(ids.len(), given);
    let mut root = bed.root(Node::Primary);
    eventually("there are three nodes, by the server's word", || {
        let nodes: BTreeSet<u64> = clients.iter_mut().filter_map(take).map(node).collect();
        nodes.len() == 3
            && nodes.iter().all(|node| {
                let sql = format!("SELECT IS_USED_LOCK('atlas.node.{node}') IS NOT NULL");
                root.query(&sql).cell() == "1"
            })
    });
    let mut client = clients.swap_remove(0);
    let mut first = 0;
    eventually("the server takes the lock away", || {
        let Some(id) = take(&mut client) else {
            return false;
        };
        first = node(id);
        let sql = format!("SELECT IFNULL(IS_USED_LOCK('atlas.node.{first}'), 0)");
        let thread = number(&mut root, &sql);
        thread != 0 && root.query(&format!("KILL {thread}")).error().is_none()
    });
    eventually("the instance is another node", || {
        take(&mut client).is_some_and(|id| {
            assert!(ids.insert(id));
            node(id) != first
        })
    });
}

/// A 0 in the place of a key is none, as for a server's own AUTO_INCREMENT, also where the statement came before with another number.
#[test]
fn b246_keys_given_as_0_or_null() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        create(&stage);
        let atlas = start(&stage);
        let mut client = client(&stage, &atlas);
        let before = number(&mut client, "SELECT LAST_INSERT_ID()");
        for id in 81..85 {
            client.ok(&format!("INSERT INTO own (id, v) VALUES ({id}, 'x')"));
        }
        let mut last = before;
        for sql in [
            "INSERT INTO own (id, v) VALUES (0, 'a')",
            "INSERT INTO own (id, v) VALUES (NULL, 'a')",
            "INSERT INTO own VALUES (0, 'a')",
            "INSERT INTO own SET id = 0, v = 'a'",
            "INSERT INTO gen (uid, id) VALUES (4, 0), (4, NULL), (4, 90)",
        ] {
            let (_, id) = client.query(sql).assert_ok().affected_and_insert_id();
            assert!(id > last, "{:?}: {sql} gives {id}", bed.kind);
            last = id;
            let (table, place) = if sql.contains("own") {
                ("own", "")
            } else {
                ("gen", "uid = 4 AND")
            };
            let found = format!("SELECT id FROM {table} WHERE {place} id = {id}");
            assert_eq!(client.query(&found).cell(), id.to_string(), "{sql}");
        }
        for place in ["own WHERE id = 0", "gen WHERE id = 0"] {
            let rows = client.query(&format!("SELECT id FROM {place}")).rows();
            assert!(rows.is_empty(), "{place}: {rows:?}");
        }
    }
}
