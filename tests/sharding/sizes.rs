//! Sizes at which replies and prepared statements are dealt with otherwise: what clients have is the same on either side of each.

use crate::Stage;
use crate::common::{Atlas, Bed, Login, Node, Param, Reply, Wire};

/// The packets, with one name in place of another of the same length.
fn told(reply: &Reply, (there, here): (&str, &str)) -> Vec<Vec<u8>> {
    assert_eq!(there.len(), here.len());
    let payloads = reply.packets.iter().map(|packet| {
        let mut payload = packet.payload.clone();
        let mut at = 0;
        while at + there.len() <= payload.len() {
            if payload[at..].starts_with(there.as_bytes()) {
                payload[at..at + here.len()].copy_from_slice(here.as_bytes());
            }
            at += 1;
        }
        payload
    });
    payloads.collect()
}

/// A reply into which the client's names are put leaves in pieces, which are put together up to 16 KiB.
#[test]
fn replies_about_the_size_that_is_put_together() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("INSERT INTO log VALUES (3, 'x')");
        }
        let names = (stage.whole.name(), stage.schema.name());
        let size = 16 * 1024;
        // Definitions of columns, the ends and headers are some hundred bytes.
        let one = size - 600..size + 20;
        let two = size / 2 - 300..size / 2 + 20;
        for (lengths, rest) in [
            (one, "FROM log WHERE id = 3"),
            (
                two,
                "FROM log JOIN (SELECT 1 AS n UNION ALL SELECT 2) AS d WHERE log.id = 3",
            ),
        ] {
            let sql = format!("SELECT log.s, REPEAT('y', ?), log.id {rest}");
            let (ours, theirs) = (client.prepare(&sql), direct.prepare(&sql));
            for length in lengths {
                let text = sql.replace('?', &length.to_string());
                let (reply, wanted) = (client.query(&text), direct.query(&text));
                assert!(
                    told(&reply, names) == told(&wanted, names),
                    "{:?}: {text}",
                    bed.kind
                );
                let length = [Param::Int(length)];
                let reply = client.execute(&ours, &length);
                let wanted = direct.execute(&theirs, &length);
                assert!(
                    told(&reply, names) == told(&wanted, names),
                    "{:?}: {length:?} {rest}",
                    bed.kind
                );
            }
        }
    }
}

/// A prepared statement keeps the texts of 64 shards at hand. With more, each execution is on its own shard all the same.
#[test]
fn executions_on_more_shards_than_are_kept() {
    const EACH: i64 = 35;
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let schema = stage.schema.to_string();
        for number in 0..2 * EACH {
            let (node, there) = if number < EACH {
                (Node::Primary, "")
            } else {
                (Node::Second, "_b")
            };
            bed.root(node).ok(&format!(
                "CREATE TABLE {schema}{there}.wide_{number} (id BIGINT PRIMARY KEY, v BIGINT)"
            ));
        }
        bed.wait_replicas();
        let config = std::fs::read_to_string(stage.atlas.config_path()).unwrap();
        let config = config.replace(&stage.atlas.address().to_string(), "{listen}");
        let atlas = Atlas::start(format!(
            "{config}\n[[tables]]\nname = \"{schema}.wide\"\nkey = \"id\"\nranges = [{{ groups = [\"main\", \"s1\"], tables = {EACH} }}]\n"
        ));
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&stage.schema));
        let insert = client.prepare("INSERT INTO wide (id, v) VALUES (?, ?)");
        let change = client.prepare("UPDATE wide SET v = v + 1 WHERE id = ?");
        let read = client.prepare("SELECT v FROM wide WHERE id = ?");
        // Two keys in each.
        let keys = 4 * EACH;
        for key in 0..keys {
            let reply = client.execute(&insert, &[Param::Int(key), Param::Int(key * 10)]);
            assert_eq!(reply.affected_and_insert_id().0, 1, "{key}");
        }
        let orders: [Vec<i64>; 3] = [
            (0..keys).collect(),
            (0..keys).rev().collect(),
            // Those that were kept last and those that were dropped, in turn.
            (0..keys).map(|at| (at * 67) % keys).collect(),
        ];
        for (turn, order) in (0..).zip(&orders) {
            for key in order {
                let rows = client.execute(&read, &[Param::Int(*key)]).binary_rows();
                let wanted: i64 = key * 10 + turn;
                let wanted = wanted.to_le_bytes().to_vec();
                assert_eq!(rows, [[Some(wanted)]], "{:?}: {key}", bed.kind);
            }
            for key in order.iter().rev() {
                let reply = client.execute(&change, &[Param::Int(*key)]);
                assert_eq!(reply.affected_and_insert_id().0, 1, "{:?}: {key}", bed.kind);
            }
        }
        // Each row is in the table of its key.
        for (node, there, first) in [(Node::Primary, "", 0), (Node::Second, "_b", EACH)] {
            let mut root = bed.root(node);
            for number in first..first + EACH {
                let sql = format!(
                    "SELECT COUNT(*), SUM(MOD(id, {}) = {number}), SUM(v = id * 10 + 3) FROM {schema}{there}.wide_{number}",
                    2 * EACH
                );
                let row = &root.query(&sql).rows()[0];
                assert!(
                    row.iter().all(|cell| cell.as_deref() == Some("2")),
                    "{row:?}"
                );
            }
        }
    }
}
