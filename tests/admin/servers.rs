//! Servers come, go, change their weights and roles. Where statements ran is read from the servers.

use std::time::Duration;

use super::common::{Atlas, Bed, Kind, Login, Node, Wire, eventually};
use super::stage::{Stage, columns, error, rows};

/// The servers that answer so many reads of one client.
fn asked(client: &mut Wire, reads: usize) -> Vec<String> {
    let mut servers: Vec<String> = (0..reads)
        .map(|_| client.query("SELECT @@server_id").cell())
        .collect();
    servers.sort();
    servers.dedup();
    servers
}

fn id_of(bed: &Bed, node: Node) -> String {
    Wire::connect(bed.address(node), &Login::plain())
        .query("SELECT @@server_id")
        .cell()
}

/// No new work, and what runs there ends; by number and by address.
#[test]
fn a_replica_goes_offline_and_comes_back() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::new(kind);
        let mut admin = stage.operator();
        let [one, two] = Node::REPLICAS.map(|node| id_of(&stage.bed, node));
        let mut client = stage.client();
        eventually("both answer", || asked(&mut client, 20).len() == 2);
        // A read that runs there while it goes.
        let mut slow = stage.client();
        slow.send(&slow.query_payload(b"SELECT @@server_id, SLEEP(1)"));
        let mut other = stage.client();
        other.send(&other.query_payload(b"SELECT @@server_id, SLEEP(1)"));
        let address = stage.bed.address(Node::Replica2).to_string();
        eventually("the reads run", || {
            let sessions = rows(&mut admin, "SHOW SESSIONS");
            sessions.iter().filter(|row| row[5] == "statement").count() == 2
        });
        assert_eq!(
            columns(&mut admin, "SET OFFLINE 2;"),
            ["backend_ndx", "address", "state", "type"]
        );
        let row = rows(&mut admin, &format!("set offline {address}"));
        assert_eq!(row, [["3", address.as_str(), "offline", "ro"]]);
        for reader in [&mut slow, &mut other] {
            let reply = reader.reply(super::common::Expect::Text);
            assert_eq!(reply.error(), None);
        }
        let primary = id_of(&stage.bed, Node::Primary);
        assert_eq!(asked(&mut client, 20), [primary]);
        // Its connections close as they become free, and no new ones are made.
        eventually("nothing is open there", || {
            let pools = rows(&mut admin, "SHOW POOLS");
            pools[1][2] == "0" && pools[2][2] == "0"
        });
        let row = rows(&mut admin, "SET ONLINE 2");
        assert!(row[0][2] == "up" || row[0][2] == "unknown", "{row:?}");
        eventually("one is back", || asked(&mut client, 20) == [one.clone()]);
        admin.ok(&format!("SET ONLINE {address};"));
        let mut both = [one.clone(), two.clone()];
        both.sort();
        eventually("both are back", || asked(&mut client, 20) == both);
        assert_eq!(
            error(&mut admin, "SET OFFLINE 9"),
            (
                1105,
                "07000".to_owned(),
                "backend id is not exsit".to_owned()
            )
        );
        let events = rows(&mut admin, "SHOW EVENTS");
        let offline: Vec<&Vec<String>> = events.iter().filter(|row| row[3] == "offline").collect();
        assert_eq!(offline.len(), 2, "{events:?}");
        assert_eq!(offline[0][2], "boss@127.0.0.1");
    }
}

/// A transaction that is open on a primary that goes offline comes to its end; writes behind it wait, and then are told.
#[test]
fn a_primary_goes_offline() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| config.group("primary_wait = \"300ms\""));
        let schema = stage.bed.schema();
        let mut admin = stage.operator();
        let mut client = Wire::connect(stage.atlas.address(), &Login::plain().schema(&schema));
        client.ok("CREATE TABLE t(a INT PRIMARY KEY)");
        client.ok("BEGIN");
        client.ok("INSERT INTO t VALUES (1)");
        admin.ok("SET OFFLINE 1");
        client.ok("INSERT INTO t VALUES (2)");
        client.ok("COMMIT");
        let refused = client.query("INSERT INTO t VALUES (3)");
        let (code, _, text) = refused.error().expect("refused");
        assert!(
            code == 1105 && text.contains("no primary in group main"),
            "{code} {text}"
        );
        admin.ok("SET ONLINE 1");
        eventually("writes go through again", || {
            client.query("INSERT INTO t VALUES (4)").error().is_none()
        });
        let mut direct = Wire::connect(
            stage.bed.address(Node::Primary),
            &Login::plain().schema(&schema),
        );
        assert_eq!(
            direct
                .query("SELECT GROUP_CONCAT(a ORDER BY a) FROM t")
                .cell(),
            "1,2,4"
        );
    }
}

/// Numbers stay with their servers.
#[test]
fn replicas_are_added_and_removed() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let bed = Bed::of(kind);
        let second = format!("replicas = [\"{}\"]", bed.address(Node::Replica2));
        let stage = Stage::with(kind, |config| config.group(&second));
        let mut admin = stage.operator();
        let [one, two] = Node::REPLICAS.map(|node| id_of(&stage.bed, node));
        let address = stage.bed.address(Node::Replica1).to_string();
        let mut client = stage.client();
        eventually("one replica answers", || {
            asked(&mut client, 10) == [two.clone()]
        });
        let add = format!("ADD SLAVE {address}@3");
        assert_eq!(columns(&mut admin, &add), ["status"]);
        // Once more is no mistake, and no other server.
        assert_eq!(
            rows(&mut admin, &format!("add slave {address};")),
            Vec::<Vec<String>>::new()
        );
        let listed = rows(&mut admin, "SELECT * FROM backends");
        assert_eq!(listed.len(), 3);
        assert_eq!(
            (
                listed[2][0].as_str(),
                listed[2][1].as_str(),
                listed[2][3].as_str()
            ),
            ("3", address.as_str(), "ro")
        );
        assert_eq!(rows(&mut admin, "SHOW BACKENDS")[2][6], "3");
        let mut both = [one.clone(), two.clone()];
        both.sort();
        eventually("both answer", || asked(&mut client, 20) == both);
        admin.ok("SET WEIGHT 3 7");
        assert_eq!(rows(&mut admin, "SHOW BACKENDS")[2][6], "7");
        admin.ok("REMOVE BACKEND 2");
        assert_eq!(asked(&mut client, 20), std::slice::from_ref(&one));
        let left: Vec<String> = rows(&mut admin, "SELECT * FROM backends")
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(left, ["1", "3"]);
        admin.ok(&format!(
            "ADD GSLAVE main {}",
            stage.bed.address(Node::Replica2)
        ));
        admin.ok(&format!("REMOVE GBACKEND main {address}"));
        eventually("the other answers", || {
            asked(&mut client, 20) == [two.clone()]
        });
        for (command, told) in [
            ("REMOVE BACKEND 9", "invalid backend_id"),
            ("REMOVE BACKEND 3", "invalid backend_id"),
            ("SET WEIGHT 9 1", "backend id is not exsit"),
            (
                "ADD GSLAVE nowhere 127.0.0.1:1",
                "there is no group nowhere: the groups are main",
            ),
        ] {
            assert_eq!(error(&mut admin, command).2, told, "{command}");
        }
        assert!(
            error(&mut admin, "REMOVE BACKEND 1")
                .2
                .contains("is the primary of group main")
        );
        assert!(
            error(&mut admin, "SET WEIGHT 1 2")
                .2
                .contains("is the primary of group main")
        );
        assert!(
            error(&mut admin, "ADD MASTER 127.0.0.1:1")
                .2
                .contains("group main has a primary")
        );
    }
}

/// With several groups a command says which it is about.
#[test]
fn several_groups() {
    let bed = Bed::mariadb();
    let other = format!(
        "[[groups]]\nname = \"other\"\nprimary = \"{}\"",
        bed.address(Node::Second)
    );
    let stage = Stage::with(Kind::MariaDb, |config| {
        config.all_users("group = \"main\"").append(&other)
    });
    let mut admin = stage.operator();
    let listed = rows(&mut admin, "SELECT * FROM backends");
    assert_eq!((listed.len(), listed[3][3].as_str()), (4, "rw"));
    assert!(
        error(&mut admin, "ADD SLAVE 127.0.0.1:1")
            .2
            .starts_with("there are several groups (main, other): say which")
    );
    // One server in two groups: by its address it is not clear which is meant, by its number it is.
    let address = bed.address(Node::Replica1).to_string();
    admin.ok(&format!("ADD GSLAVE other {address}@2"));
    let added = rows(&mut admin, "SHOW BACKENDS");
    assert_eq!(added[4][..4], ["5", "other", &address, "replica"]);
    assert!(
        error(&mut admin, &format!("REMOVE BACKEND {address}"))
            .2
            .starts_with("several groups have a server at this address")
    );
    assert_eq!(
        error(&mut admin, "REMOVE GBACKEND other 2").2,
        "invalid backend_id"
    );
    admin.ok("REMOVE GBACKEND other 5");
    assert_eq!(rows(&mut admin, "SELECT * FROM backends").len(), 4);
}

/// Both change their roles in one step, and idle clients notice nothing. The server says where a write arrives: one that follows
/// another takes none of this account.
#[test]
fn another_primary() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::new(kind);
        let schema = stage.bed.schema();
        let mut admin = stage.operator();
        let mut client = Wire::connect(stage.atlas.address(), &Login::plain().schema(&schema));
        client.ok("CREATE TABLE t(a INT)");
        let [before, next] =
            [Node::Primary, Node::Replica1].map(|node| stage.bed.address(node).to_string());
        admin.ok(&format!("SWITCH PRIMARY main TO {next}"));
        let listed = rows(&mut admin, "SELECT * FROM backends");
        assert_eq!((listed[0][3].as_str(), listed[1][3].as_str()), ("ro", "rw"));
        let refused = client.query("INSERT INTO t VALUES (1)").error_code();
        assert!([1290, 1836].contains(&refused), "{refused}");
        admin.ok(&format!("SWITCH PRIMARY main TO {before}"));
        client.ok("INSERT INTO t VALUES (2)");
        let mut direct = Wire::connect(
            stage.bed.address(Node::Primary),
            &Login::plain().schema(&schema),
        );
        assert_eq!(direct.query("SELECT GROUP_CONCAT(a) FROM t").cell(), "2");
        // The same again is no mistake; others are.
        admin.ok(&format!("SWITCH PRIMARY main TO {before}"));
        assert!(
            error(&mut admin, "SWITCH PRIMARY main TO 127.0.0.1:1")
                .2
                .contains("has no server 127.0.0.1:1")
        );
        assert!(
            error(&mut admin, &format!("SWITCH PRIMARY other TO {next}"))
                .2
                .contains("there is no group other")
        );
        admin.ok("SET OFFLINE 2");
        assert!(
            error(&mut admin, &format!("SWITCH PRIMARY main TO {next}"))
                .2
                .contains("is offline")
        );
        // A primary that is out is replaced by ADD MASTER.
        admin.ok("SET ONLINE 2");
        admin.ok("SET OFFLINE 1");
        admin.ok(&format!("ADD MASTER {next}"));
        let listed = rows(&mut admin, "SELECT * FROM backends");
        assert_eq!(listed[0][3], "rw");
        assert_eq!(listed[0][1], next);
        assert!(
            error(&mut admin, "ADD GMASTER main 127.0.0.1:1")
                .2
                .contains("group main has a primary")
        );
        assert!(
            error(&mut admin, "ADD GMASTER nowhere 127.0.0.1:1")
                .2
                .contains("there is no group nowhere")
        );
    }
}

/// B41, B39.
#[test]
fn settings_that_do_not_fit() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| {
            config.append("[pool]\nmax_connections = 5000\nidle_timeout = \"1d\"")
        });
        let mut viewer = stage.viewer();
        let findings = rows(&mut viewer, "CHECK BACKENDS");
        for number in ["1", "2", "3"] {
            let of = |setting: &str| {
                findings
                    .iter()
                    .any(|row| row[0] == number && row[4] == setting)
            };
            assert!(of("max_connections") && of("wait_timeout"), "{findings:?}");
        }
        assert!(
            !findings.iter().any(|row| row[4] == "connection"),
            "{findings:?}"
        );
    }
}

#[test]
fn a_server_that_cannot_be_asked_is_told() {
    let stage = Stage::with(Kind::MySql, |config| {
        config.group("replicas = [\"127.0.0.1:1\"]")
    });
    let mut viewer = stage.viewer();
    let findings = rows(&mut viewer, "CHECK BACKENDS");
    assert!(
        findings
            .iter()
            .any(|row| row[0] == "2" && row[3] == "error" && row[4] == "connection"),
        "{findings:?}"
    );
}

/// What the signals do.
#[test]
fn drain_and_shutdown() {
    for (command, in_time) in [
        ("DRAIN", true),
        ("SHUTDOWN", true),
        ("SHUTDOWN IMMEDIATE", false),
    ] {
        let mut stage = Stage::new(Kind::MariaDb);
        let mut client = stage.client();
        client.ok("BEGIN");
        stage.operator().ok(command);
        if in_time {
            eventually("no new clients", || {
                Wire::try_connect(stage.atlas.address(), &Login::plain()).is_err()
            });
            client.ok("SELECT 1");
            client.ok("COMMIT");
        }
        let status = Atlas::wait(&mut stage.atlas, Duration::from_secs(20));
        assert_eq!(status.success(), in_time, "{command}");
    }
}
