//! `causal`: reads that are to see the writes before them. Where they ran is read from the servers' logs.

mod common;

use std::time::Duration;

use common::{
    Atlas, Bed, Kind, Login, Node, Param, Schema, Wire, config_for, eventually, unique_name,
};

fn start(bed: &Bed, causal: &str) -> Atlas {
    Atlas::start(config_for(bed).all_users(&format!("causal = \"{causal}\"")))
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    bed.root(Node::Primary)
        .ok(&format!("CREATE TABLE {schema}.t(a INT)"));
    bed.wait_replicas();
    schema
}

/// Where a read of this client runs, as a text and prepared.
fn places(bed: &Bed, client: &mut Wire) -> [bool; 2] {
    let marks = bed.marks();
    let (text, prepared) = (unique_name("text"), unique_name("prepared"));
    client.query(&format!("SELECT '{text}'")).assert_ok();
    let statement = client.prepare("SELECT ?");
    client
        .execute(&statement, &[Param::from(prepared.as_str())])
        .assert_ok();
    [text, prepared].map(|tag| marks.only_on(&tag, &[Node::Primary]))
}

#[test]
fn reads_stay_on_the_primary_for_the_window() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed, "window:60s");
        let mut writer = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut writer), [false, false]);
        for write in ["INSERT INTO t VALUES (1)", "COMMIT"] {
            let mut writer = Wire::connect(atlas.address(), &login);
            writer.ok(write);
            assert_eq!(places(&bed, &mut writer), [true, true], "{write}");
        }
        // Another's writes do not count.
        assert_eq!(places(&bed, &mut writer), [false, false]);

        let atlas = start(&bed, "window:100ms");
        let mut writer = Wire::connect(atlas.address(), &login);
        writer.ok("INSERT INTO t VALUES (2)");
        eventually("the window is over", || {
            places(&bed, &mut writer) == [false, false]
        });
    }
}

#[test]
fn with_global_all_reads_go_to_the_primary() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let atlas = start(&bed, "global");
        let login = Login::plain().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut client), [true, true]);
    }
}

fn server_id(bed: &Bed, node: Node) -> String {
    bed.root(node).query("SELECT @@server_id").cell()
}

/// The number of rows that a client sees, and the server that says so, as a text and prepared.
fn seen(client: &mut Wire) -> [(String, String); 2] {
    const ASK: &str = "SELECT CONCAT(COUNT(*), ' ', @@server_id) FROM t";
    let text = client.query(ASK).cell();
    let statement = client.prepare(ASK);
    let reply = client.execute(&statement, &[]);
    let cell = reply.binary_rows()[0][0].clone().expect("no NULL");
    client.close_statement(&statement);
    // Behind its length.
    let prepared = String::from_utf8(cell[1..].to_vec()).expect("UTF-8");
    [text, prepared].map(|text| {
        let (count, server) = text.split_once(' ').expect("two numbers");
        (count.to_owned(), server.to_owned())
    })
}

#[test]
fn a_session_sees_its_own_writes_on_replicas() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let primary = server_id(&bed, Node::Primary);
        let atlas = start(&bed, "session:60s");
        let login = Login::app().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut client), [false, false]);
        let check = |client: &mut Wire, rows: usize| {
            for (count, server) in seen(client) {
                assert_eq!(count, rows.to_string());
                assert_ne!(server, primary);
            }
        };
        for row in 1..=5 {
            client.ok(&format!("INSERT INTO t VALUES ({row})"));
            check(&mut client, row);
        }
        client.ok("BEGIN");
        client.ok("INSERT INTO t VALUES (6)");
        client.ok("INSERT INTO t VALUES (7)");
        client.ok("COMMIT");
        check(&mut client, 7);
        let insert = client.prepare("INSERT INTO t VALUES (?)");
        client.execute(&insert, &[Param::Int(8)]).assert_ok();
        check(&mut client, 8);
        // Who asks for a replica is not kept waiting, and a write that failed may have left something all the same.
        assert_eq!(
            client.query("INSERT INTO t VALUES (1, 2)").error_code(),
            1136
        );
        assert_eq!(places(&bed, &mut client), [true, true]);
        let marks = bed.marks();
        let tag = unique_name("hinted");
        client.ok(&format!("/*slave*/ SELECT '{tag}'"));
        assert!(!marks.only_on(&tag, &[Node::Primary]));
        client.ok("CREATE TABLE u(a INT)");
        check(&mut client, 8);
        assert_eq!(client.query("SELECT COUNT(*) FROM u").cell(), "0");
    }
}

/// Has the replicas of a bed apply nothing any more, or go on.
fn apply(bed: &Bed, goes_on: bool) {
    let word = if goes_on { "START" } else { "STOP" };
    let what = match bed.kind {
        Kind::MariaDb => "SLAVE",
        Kind::MySql => "REPLICA",
    };
    for node in Node::REPLICAS {
        bed.root(node).ok(&format!("{word} {what} SQL_THREAD"));
    }
}

/// Whether a client waits on a replica.
fn waits(bed: &Bed, schema: &Schema) -> bool {
    Node::REPLICAS.iter().any(|node| {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND info LIKE '%GTID%'",
            schema.name()
        );
        bed.root(*node).query(&sql).cell() != "0"
    })
}

#[test]
fn a_replica_that_is_late_is_waited_for_and_one_that_stands_still_is_not() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::own(kind);
        let schema = with_table(&bed);
        let primary = server_id(&bed, Node::Primary);
        let login = Login::app().schema(&schema);
        // It is not this that keeps the replicas from being read.
        let config = config_for(&bed).group("max_lag = \"0s\"");
        let atlas = Atlas::start(config.clone().all_users("causal = \"session:60s\""));
        let mut client = Wire::connect(atlas.address(), &login);
        client.set_timeout(Duration::from_secs(60));
        apply(&bed, false);
        client.ok("INSERT INTO t VALUES (1)");
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| seen(&mut client));
            eventually("the read waits", || waits(&bed, &schema));
            apply(&bed, true);
            for (count, server) in reads.join().expect("it reads") {
                assert_eq!(count, "1");
                assert_ne!(server, primary);
            }
        });

        let atlas = Atlas::start(config.all_users("causal = \"session:200ms\""));
        let mut client = Wire::connect(atlas.address(), &login);
        apply(&bed, false);
        client.ok("INSERT INTO t VALUES (2)");
        for (count, server) in seen(&mut client) {
            assert_eq!((count.as_str(), &server), ("2", &primary));
        }
        apply(&bed, true);
        eventually("replicas are read again", || {
            seen(&mut client)
                .iter()
                .all(|(count, server)| count == "2" && *server != primary)
        });
    }
}
