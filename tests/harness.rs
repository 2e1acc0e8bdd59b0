//! Tests of what the other integration tests stand on (`tests/common`): the servers, log-ins, logs and the process, all but for replies, which
//! `tests/harness_replies.rs` is about.

mod common;

use std::time::Duration;

use common::{
    Atlas, Bed, Config, Ended, Entry, Expect, Kind, Login, Node, Param, Part, Refused, Wire,
    config_for, parse_general_log,
};

#[test]
fn servers_are_what_the_bed_says() {
    for bed in Bed::both() {
        for server in bed.servers() {
            let mut root = bed.root(server.node);
            assert_eq!(
                root.query("SELECT @@port").cell(),
                server.address.port().to_string()
            );
            let read_only = match server.node {
                Node::Replica1 | Node::Replica2 => "1",
                Node::Primary | Node::Second => "0",
            };
            assert_eq!(
                root.query("SELECT @@read_only").cell(),
                read_only,
                "{server:?}"
            );
            let is_mariadb = root.query("SELECT VERSION()").cell().contains("MariaDB");
            assert_eq!(is_mariadb, bed.kind == Kind::MariaDb);
            let connections = root.query("SELECT @@max_connections").cell();
            assert!(connections.parse::<u32>().expect("a number") >= 1000);
        }
    }
}

#[test]
fn replicas_follow_and_refuse_writes() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let login = Login::plain().schema(&schema);
        let mut primary = Wire::connect(bed.address(Node::Primary), &login);
        primary.ok("CREATE TABLE t(a INT PRIMARY KEY)");
        primary.ok("INSERT INTO t VALUES (7)");
        bed.wait_replicas();
        for node in Node::REPLICAS {
            let mut replica = Wire::connect(bed.address(node), &login);
            assert_eq!(replica.query("SELECT a FROM t").cell(), "7");
            assert_eq!(replica.query("INSERT INTO t VALUES (8)").error_code(), 1290);
        }
        let second = Wire::try_connect(bed.address(Node::Second), &login);
        assert!(
            matches!(second, Err(Refused::Error { code: 1049, .. })),
            "the second primary has its own data"
        );
    }
}

#[test]
fn every_account_logs_in() {
    for bed in Bed::both() {
        let address = bed.address(Node::Primary);
        let mut accounts = vec![("app", "app-pw"), ("plain", "plain-pw"), ("root", "")];
        accounts.push(match bed.kind {
            Kind::MariaDb => ("ed", "ed-pw"),
            Kind::MySql => ("sha", "sha-pw"),
        });
        for (user, password) in accounts {
            for plugin in [
                None,
                Some("mysql_native_password"),
                Some("caching_sha2_password"),
            ] {
                for tls in [false, true] {
                    let mut login = Login::new(user, password);
                    login.plugin = plugin;
                    if tls {
                        login = login.tls(&bed.ca());
                    }
                    let mut wire = Wire::connect(address, &login);
                    let cipher = wire.query("SHOW STATUS LIKE 'Ssl_cipher'").rows();
                    let cipher = cipher[0][1].as_deref().expect("a cipher or nothing");
                    assert_eq!(cipher.is_empty(), !tls, "{user}: {cipher}");
                    let name = wire.query("SELECT CURRENT_USER()").cell();
                    assert!(name.starts_with(user), "{name}");
                    assert_eq!(
                        wire.query("SELECT CONNECTION_ID()").cell(),
                        wire.id.to_string()
                    );
                }
            }
        }
    }
}

#[test]
fn caching_sha2_by_key_and_from_the_cache() {
    let bed = Bed::mysql();
    // A server that nobody else logs in to now, whose cache this test may empty.
    let address = bed.address(Node::Second);
    let steps = |wire: &Wire| -> Vec<Vec<u8>> {
        let packets = wire.login_packets.iter();
        packets.map(|packet| packet.payload[..2].to_vec()).collect()
    };
    bed.root(Node::Second).ok("FLUSH PRIVILEGES");
    let cold = Wire::connect(address, &Login::new("sha", "sha-pw"));
    assert_eq!(
        steps(&cold),
        [vec![1, 4], vec![1, b'-'], vec![0, 0]],
        "full, by RSA key"
    );
    let warm = Wire::connect(address, &Login::new("sha", "sha-pw"));
    assert_eq!(steps(&warm), [vec![1, 3], vec![0, 0]], "from the cache");
    bed.root(Node::Second).ok("FLUSH PRIVILEGES");
    let tls = Wire::connect(address, &Login::new("sha", "sha-pw").tls(&bed.ca()));
    assert_eq!(steps(&tls), [vec![1, 4], vec![0, 0]], "full, over TLS");
}

#[test]
fn unix_sockets_work() {
    for bed in Bed::both() {
        let socket = &bed.server(Node::Primary).socket;
        let mut wire = Wire::try_connect_unix(socket, &Login::app()).expect("log-in");
        assert_eq!(wire.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn refusals_are_told() {
    for bed in Bed::both() {
        let address = bed.address(Node::Primary);
        let refused = Wire::try_connect(address, &Login::new("app", "wrong")).unwrap_err();
        let Refused::Error { code, state, text } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((code, state.as_str()), (1045, "28000"), "{text}");
        assert!(text.contains("using password: YES"), "{text}");

        let plain = Wire::try_connect(address, &Login::new("tlsonly", "tlsonly-pw"));
        assert!(
            matches!(plain, Err(Refused::Error { code: 1045, .. })),
            "{plain:?}"
        );
        let tls = Login::new("tlsonly", "tlsonly-pw").tls(&bed.ca());
        Wire::connect(address, &tls);

        let other = Login::app().tls(&bed.tls.join("other-cacert.pem"));
        let refused = Wire::try_connect(address, &other);
        assert!(matches!(refused, Err(Refused::Tls(_))), "{refused:?}");
    }
}

#[test]
fn users_change() {
    for bed in Bed::both() {
        for login in Login::app().shapes(bed.kind) {
            let mut wire = Wire::connect(bed.address(Node::Primary), &login);
            let packets = wire.change_user(&Login::plain()).expect("plain");
            assert_eq!(packets.last().expect("a verdict").part, Part::Ok);
            assert!(
                wire.query("SELECT CURRENT_USER()")
                    .cell()
                    .starts_with("plain")
            );
            let refused = wire.change_user(&Login::new("plain", "wrong"));
            assert!(
                matches!(refused, Err(Refused::Error { code: 1045, .. })),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn ends_of_connections_are_told() {
    for bed in Bed::both() {
        let mut root = bed.root(Node::Primary);
        let mut wire = Wire::connect(bed.address(Node::Primary), &Login::app());
        root.ok(&format!("KILL {}", wire.id));
        let ended = wire.try_query("SELECT 1").expect_err("killed");
        assert!(
            matches!(ended, Ended::Closed { .. } | Ended::Reset),
            "{ended:?}"
        );

        let mut wire = Wire::connect(bed.address(Node::Primary), &Login::app());
        wire.set_timeout(Duration::from_millis(50));
        assert_eq!(
            wire.try_query("SELECT SLEEP(1)").expect_err("slow"),
            Ended::Timeout
        );
    }
}

#[test]
fn the_general_log_tells_where_a_statement_ran() {
    for bed in Bed::both() {
        let marks = bed.marks();
        let tag = common::unique_name("tag");
        let mut primary = Wire::connect(bed.address(Node::Primary), &Login::app());
        let mut replica = Wire::connect(bed.address(Node::Replica2), &Login::app());
        primary.ok(&format!("DO 1 /* {tag} */"));
        replica.ok(&format!("SELECT 'first\nsecond' /* {tag} */"));
        let statement = replica.prepare(&format!("SELECT ? /* {tag} */"));
        replica.execute(&statement, &[Param::Int(9)]);
        assert_eq!(marks.nodes(&tag), [Node::Primary, Node::Replica2]);
        assert!(marks.only_on(&tag, &[Node::Replica2, Node::Primary]));
        assert!(!marks.only_on(&tag, &Node::REPLICAS));
        assert!(!marks.only_on("no such tag", &Node::ALL));
        let found = marks.find(&tag);
        let mut commands: Vec<(Node, &str)> = found
            .iter()
            .map(|(node, entry)| (*node, entry.command.as_str()))
            .collect();
        // MySQL prepares again where the type of a parameter is another than it guessed.
        commands.dedup();
        assert_eq!(
            commands,
            [
                (Node::Primary, "Query"),
                (Node::Replica2, "Query"),
                (Node::Replica2, "Prepare"),
                (Node::Replica2, "Execute")
            ]
        );
        assert_eq!(found[0].1.connection, u64::from(primary.id));
        assert_eq!(
            found[1].1.text,
            format!("SELECT 'first\nsecond' /* {tag} */")
        );
        assert!(bed.marks().find(&tag).is_empty(), "all that was before");

        let marks = bed.marks();
        let table = common::unique_name("made");
        primary.ok(&format!("CREATE TABLE bed.{table}(a INT)"));
        primary.ok(&format!("DROP TABLE bed.{table}"));
        bed.wait_replicas();
        assert_eq!(
            marks.nodes(&table),
            [Node::Primary],
            "not what replication applies"
        );
    }
}

#[test]
fn both_formats_of_general_logs_are_cut_into_entries() {
    let mariadb = "261129 20:11:36\t     4 Query\tSELECT 1\nFROM t\n\t\t     4 Prepare\tSELECT ?\n\t\t    14 Quit\t\n";
    let mysql = "Tcp port: 1\nTime                 Id Command    Argument\n2026-11-29T20:11:36.369344Z\t    8 Init DB\tshop\n2026-11-29T20:11:36.369345Z\t    8 Query\tSELECT '\t\t 4'\n";
    let entry = |connection, command: &str, text: &str| Entry {
        connection,
        command: command.to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(
        parse_general_log(mariadb),
        [
            entry(4, "Query", "SELECT 1\nFROM t"),
            entry(4, "Prepare", "SELECT ?"),
            entry(14, "Quit", "")
        ]
    );
    assert_eq!(
        parse_general_log(mysql),
        [
            entry(8, "Init DB", "shop"),
            entry(8, "Query", "SELECT '\t\t 4'")
        ]
    );
}

#[test]
fn atlas_starts_and_ends() {
    for bed in Bed::both() {
        let mut atlas = Atlas::start(config_for(&bed));
        let other = Atlas::start(config_for(&bed));
        assert_ne!(atlas.address(), other.address());
        let mut wire = Wire::connect(atlas.address(), &Login::plain());
        assert_eq!(wire.query("SELECT 1").cell(), "1");
        assert!(atlas.memory_kib("VmRSS") > 1000);
        assert!(atlas.open_files() > 5);
        atlas.signal("TERM");
        assert_eq!(atlas.wait(Duration::from_secs(20)).code(), Some(0));
        assert!(matches!(
            Wire::greet(atlas.address()),
            Err(Refused::Connect(_))
        ));
        let mut wire = Wire::connect(other.address(), &Login::plain());
        assert_eq!(wire.query("SELECT 2").cell(), "2");
    }
}

#[test]
fn a_refused_configuration_shows_the_log() {
    let told = Atlas::try_start("[server]\nlisten = [\"{listen}\"]\nno_such_key = 1\n", &[]);
    let log = told.expect_err("no such key");
    assert!(log.contains("no_such_key"), "{log}");
    assert!(!log.contains("{listen}"), "{log}");
}

#[test]
fn configurations_are_written_once_per_key() {
    let config: Config = config_for(&Bed::mariadb())
        .server("workers = 1")
        .server("workers = 2")
        .all_users("read_from = \"primary\"")
        .append("[log]\nlevel = \"debug\"");
    let text = String::from(config);
    assert_eq!(text.matches("workers").count(), 1, "{text}");
    assert!(text.contains("workers = 2"));
    assert_eq!(text.matches("read_from").count(), 3);
    assert!(text.trim_end().ends_with("level = \"debug\""));
}

mod own_bed {
    use super::*;

    #[test]
    fn servers_are_killed_and_revived() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let bed = Bed::own(kind);
            let schema = bed.schema();
            let login = Login::app().schema(&schema);
            let mut wire = Wire::connect(bed.address(Node::Primary), &login);
            wire.ok("CREATE TABLE t(a INT)");
            wire.ok("INSERT INTO t VALUES (1)");
            bed.signal(Node::Primary, "KILL");
            assert!(wire.try_query("SELECT 1").is_err());
            let refused = Wire::try_connect(bed.address(Node::Primary), &login);
            assert!(matches!(refused, Err(Refused::Connect(_))), "{refused:?}");
            bed.revive(Node::Primary);
            let mut wire = Wire::connect(bed.address(Node::Primary), &login);
            assert_eq!(
                wire.query("SELECT a FROM t").cell(),
                "1",
                "a committed row survives"
            );
            wire.ok("INSERT INTO t VALUES (2)");
            bed.wait_replicas();

            let mut replica = Wire::connect(bed.address(Node::Replica1), &login);
            bed.signal(Node::Replica1, "STOP");
            replica.set_timeout(Duration::from_millis(100));
            assert_eq!(
                replica.try_query("SELECT 1").expect_err("stopped"),
                Ended::Timeout
            );
            bed.signal(Node::Replica1, "CONT");
            common::eventually("the replica answers again", || {
                replica.try_reply(Expect::Text).is_ok()
            });
        }
    }
}
