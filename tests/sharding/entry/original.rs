//! What the original's documentation promised of sharding: its six functions, many clients, keys that grow, and replicas beside shards.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicI64, Ordering};

use super::{EVEN_ODD, client, config, config_with, operator};
use crate::common::{Atlas, Bed, Firewall, Node, Refused, Wire, config_for, eventually};
use crate::stage::{Stage, seen};

/// The six functions that the original had: reads apart from writes, balanced over replicas, clients by address, tables in parts, servers
/// taken out and brought back, and those that die left alone.
#[test]
fn c1_the_six_functions_of_the_original() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut firewall = Firewall::before(bed.address(Node::Replica2));
        let base = config_for(&bed)
            .server("client_networks = [\"127.0.0.1\"]")
            .group(&format!(
                "replicas = [{{ address = \"{}\" }}, {{ address = \"{}\" }}]",
                bed.address(Node::Replica1),
                firewall.address()
            ))
            .append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"100ms\"\ntimeout = \"500ms\"\nfall = 2\nrise = 1\n");
        let atlas = Atlas::start(config_with(&stage, base, EVEN_ODD).all_users("causal = \"off\""));
        let mut wire = client(&stage, &atlas);
        // Automatic sub-tables: each row is in the part that its key says.
        for id in 0..8 {
            wire.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'row')"));
        }
        for number in 0..4 {
            let (node, schema) = if number < 2 {
                (Node::Primary, stage.schema.to_string())
            } else {
                (Node::Second, format!("{}_b", stage.schema))
            };
            let rows = bed
                .root(node)
                .query(&format!("SELECT id FROM {schema}.log_{number} ORDER BY id"))
                .rows();
            let ids: Vec<i64> = rows
                .iter()
                .map(|row| row[0].as_deref().unwrap().parse().unwrap())
                .collect();
            assert_eq!(ids, [number, number + 4]);
        }
        bed.wait_replicas();
        let read = |wire: &mut Wire| {
            wire.query("SELECT @@server_id, amt FROM ord WHERE uid = 2")
                .rows()[0][0]
                .clone()
                .unwrap()
        };
        let ids = [Node::Primary, Node::Replica1, Node::Replica2]
            .map(|node| bed.root(node).query("SELECT @@server_id").cell());
        let seen = |wire: &mut Wire| {
            let mut seen: Vec<String> = (0..24).map(|_| read(wire)).collect();
            seen.sort();
            seen.dedup();
            seen
        };
        let mut both = vec![ids[1].clone(), ids[2].clone()];
        both.sort();
        assert_eq!(
            seen(&mut wire),
            both,
            "reads are balanced, and none is the primary's"
        );
        let outsider = Wire::greet_from(atlas.address(), Ipv4Addr::new(127, 0, 0, 9));
        assert!(
            matches!(outsider, Err(Refused::Error { code: 1130, .. })),
            "{outsider:?}"
        );
        // Out and back while reads go on.
        let mut boss = operator(&atlas);
        boss.ok(&format!("SET OFFLINE {}", bed.address(Node::Replica1)));
        assert_eq!(seen(&mut wire), [ids[2].clone()]);
        boss.ok(&format!("SET ONLINE {}", bed.address(Node::Replica1)));
        eventually("it is back", || seen(&mut wire) == both);
        // One that answers nobody is left alone, and comes back by itself.
        firewall.drop_all();
        eventually("it is left alone", || seen(&mut wire) == [ids[1].clone()]);
        firewall.let_through();
        eventually("it is back by itself", || seen(&mut wire) == both);
        wire.ok("UPDATE ord SET amt = 9 WHERE uid = 2");
        let sql = format!("SELECT amt FROM {}.ord WHERE uid = 2", stage.schema);
        assert_eq!(bed.root(Node::Primary).query(&sql).cell(), "9");
    }
}

/// Many clients at once, each with rows of its own on all shards: every answer is right, and the servers have few connections.
#[test]
fn c2_many_clients_work_on_all_shards_at_once() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let atlas = Atlas::start(config(&stage, EVEN_ODD).append("[pool]\nmax_connections = 6\nconnect_rate = 1000\nmin_idle = 1\nacquire_timeout = \"60s\"\n"));
        let most = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for number in 0..48_i64 {
                let (stage, atlas, most) = (&stage, &atlas, &most);
                scope.spawn(move || {
                    let mut wire = client(stage, atlas);
                    let base = 10_000 + number * 100;
                    let insert = wire.prepare("INSERT INTO ord (uid, amt) VALUES (?, ?)");
                    for at in 0..12 {
                        wire.execute(&insert, &[(base + at).into(), number.into()])
                            .assert_ok();
                        let rows = wire
                            .query(&format!(
                                "SELECT uid FROM ord WHERE amt = {number} AND uid >= {base}"
                            ))
                            .rows();
                        assert_eq!(rows.len(), usize::try_from(at).unwrap() + 1, "{number}");
                        let sql = format!("SELECT amt FROM ord WHERE uid = {}", base + at);
                        assert_eq!(wire.query(&sql).cell(), number.to_string());
                    }
                    wire.ok("BEGIN");
                    wire.ok(&format!(
                        "UPDATE ord SET amt = -{number} - 1 WHERE uid = {base}"
                    ));
                    wire.ok("ROLLBACK");
                    assert_eq!(
                        wire.query(&format!("SELECT amt FROM ord WHERE uid = {base}"))
                            .cell(),
                        number.to_string()
                    );
                    let there = atlas.connections_to(stage.bed.address(Node::Second));
                    most.fetch_max(i64::try_from(there).unwrap(), Ordering::Relaxed);
                });
            }
        });
        let most = most.load(Ordering::Relaxed);
        // One more is the monitor's.
        assert!((1..=8).contains(&most), "{most}");
    }
}

/// Keys that grow by one fill one range, and in it all groups and tables alike: what a plain range would not do.
#[test]
fn c11_keys_that_grow_are_spread_within_their_range() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    let atlas = Atlas::start(config(
        &stage,
        "{ to = 1000, groups = [\"main\"] }, { from = 1000, groups = [\"main\", \"s1\"] }",
    ));
    let mut wire = client(&stage, &atlas);
    let rows =
        |ids: std::ops::Range<i64>| ids.map(|uid| format!("({uid}, -5)")).collect::<Vec<_>>();
    for range in [900..1000, 1000..1100] {
        for row in rows(range) {
            wire.ok(&format!("INSERT INTO ord (uid, amt) VALUES {row}"));
        }
    }
    let count = |node, schema: &str, condition: &str| {
        bed.root(node)
            .query(&format!(
                "SELECT COUNT(*) FROM {schema}.ord WHERE amt = -5 AND {condition}"
            ))
            .cell()
    };
    let second = format!("{}_b", stage.schema);
    assert_eq!(
        count(Node::Primary, stage.schema.name(), "uid < 1000"),
        "100"
    );
    assert_eq!(count(Node::Second, &second, "uid < 1000"), "0");
    assert_eq!(
        count(Node::Primary, stage.schema.name(), "uid >= 1000"),
        "50"
    );
    assert_eq!(count(Node::Second, &second, "uid >= 1000"), "50");
}

/// Replication and sharding go together: within a group a write is on its replicas too, and other groups never have it.
#[test]
fn c21_a_row_is_on_all_servers_of_its_group_and_on_no_other() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut wire, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut wire, &mut direct] {
            wire.ok("INSERT INTO ord (uid, amt) VALUES (100, 1), (102, 2)");
            wire.ok("INSERT INTO ord (uid, amt) VALUES (101, 3)");
        }
        bed.wait_replicas();
        let sql = "SELECT amt FROM ord WHERE uid = 102";
        assert_eq!(seen(&wire.query(sql)), seen(&direct.query(sql)));
        for node in Node::ALL {
            let second = node == Node::Second;
            let schema = if second {
                format!("{}_b", stage.schema)
            } else {
                stage.schema.to_string()
            };
            let rows = bed
                .root(node)
                .query(&format!(
                    "SELECT uid FROM {schema}.ord WHERE uid >= 100 ORDER BY uid"
                ))
                .rows();
            let uids: Vec<&str> = rows.iter().map(|row| row[0].as_deref().unwrap()).collect();
            let wanted: &[&str] = if second { &["101"] } else { &["100", "102"] };
            assert_eq!(uids, wanted, "{node:?}");
        }
    }
}
