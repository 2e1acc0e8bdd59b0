//! Reports about server connections that are too many, lost, stale or somebody else's, and about accounts with limits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::common::{Bed, Kind, Login, Node, Refused, Wire, eventually};
use super::stage::Stage;

/// One connection to each server, and no second one.
const ONE: &str = "[pool]\nmax_connections = 1\nmin_idle = 0\nconnect_rate = 1000\n";

#[test]
fn b182_a_connection_that_dies_in_a_transaction_is_not_lost_to_the_pool() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, "", |config| config.append(ONE));
        let mut root = stage.root();
        for round in 0..30 {
            let mut client = stage.client();
            client.ok("BEGIN");
            client.ok("INSERT INTO u VALUES (1000)");
            let sql = format!(
                "SELECT id FROM information_schema.processlist WHERE user = 'plain' AND db = '{}'",
                stage.schema
            );
            let id = root.query(&sql).cell();
            root.ok(&format!("KILL {id}"));
            let told = client.try_query("SELECT 1 FROM t");
            assert!(told.is_err() || told.is_ok_and(|reply| reply.error().is_some()));
            drop(client);
            let mut next = stage.client();
            assert_eq!(
                next.query("/*master*/ SELECT COUNT(*) FROM u").cell(),
                "0",
                "{round}"
            );
            next.ok("INSERT INTO u VALUES (1)");
            next.ok("DELETE FROM u");
        }
    }
}

#[test]
fn b183_a_transaction_without_autocommit_keeps_its_connection() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, "", |config| {
            config.append("[pool]\nmax_connections = 3\nmin_idle = 0\nconnect_rate = 1000\n")
        });
        let mut client = stage.client();
        client.ok("SET autocommit = 0");
        client.ok("INSERT INTO u VALUES (1)");
        for n in 2..20 {
            let mut other = stage.client();
            other.ok(&format!("INSERT INTO u VALUES ({n})"));
            other.ok(&format!("DELETE FROM u WHERE id = {n}"));
        }
        client.ok("ROLLBACK");
        assert_eq!(
            client.query("/*master*/ SELECT COUNT(*) FROM u").cell(),
            "0"
        );
        assert_eq!(stage.count("u"), 0);
    }
}

#[test]
fn b185_a_connection_that_idles_beside_a_busy_one_may_be_closed() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        for sharing in ["transaction", "session"] {
            let stage = Stage::with(kind, "", |config| {
                config.all_users(&format!("sharing = \"{sharing}\""))
            });
            let mut client = stage.client();
            client.ok("INSERT INTO u VALUES (1)");
            client.ok("SET wait_timeout = 1");
            client.ok("INSERT INTO u VALUES (2)");
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(3) {
                assert_eq!(client.query("SELECT COUNT(*) FROM t").cell(), "3");
                std::thread::sleep(Duration::from_millis(50));
            }
            client.ok("INSERT INTO u VALUES (3)");
            // A transaction is another matter: it ends with its connection, and its client is told.
            client.ok("BEGIN");
            client.ok("INSERT INTO u VALUES (4)");
            eventually("the server has closed it", || {
                stage.count_uncommitted("u WHERE id = 4") == 0
            });
            let told = client.try_query("INSERT INTO u VALUES (5)");
            assert!(told.is_err() || told.is_ok_and(|reply| reply.error().is_some()));
            assert_eq!(stage.count("u"), 3, "{sharing}");
        }
    }
}

#[test]
fn clients_of_an_account_have_a_limit_of_their_own() {
    let stage = Stage::with(Kind::MariaDb, "", |config| {
        config
            .user(
                "few",
                "few-pw",
                &[
                    "max_connections = 2",
                    "backend = { user = \"plain\", password = \"plain-pw\" }",
                ],
            )
            .user(
                "many",
                "many-pw",
                &["backend = { user = \"plain\", password = \"plain-pw\" }"],
            )
    });
    let few = Login::new("few", "few-pw").schema(&stage.schema);
    let many = Login::new("many", "many-pw").schema(&stage.schema);
    let connect = |login: &Login| Wire::try_connect(stage.atlas.address(), login);
    let (first, mut second) = (connect(&few).expect("one"), connect(&few).expect("two"));
    for _ in 0..3 {
        match connect(&few) {
            Err(Refused::Error { code, state, text }) => {
                assert_eq!((code, state.as_str()), (1226, "42000"), "{text}");
                assert_eq!(
                    text,
                    "User 'few' has exceeded the 'max_connections' resource (current value: 2)"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let mut third = connect(&many).expect("another account has its own");
    // COM_CHANGE_USER changes sides, if there is room.
    assert!(third.change_user(&few).is_err());
    assert_eq!(second.query("SELECT 1").cell(), "1");
    first.quit();
    eventually("there is room again", || connect(&few).is_ok());
    let mut third = connect(&many).expect("still");
    eventually("room for a change", || {
        third.change_user(&few).is_ok() || {
            third = connect(&many).expect("still");
            false
        }
    });
    third.change_user(&few).expect("it counts already");
    assert!(connect(&few).is_err());
    third.change_user(&many).expect("another");
    eventually("its place is free", || connect(&few).is_ok());
}

mod own_bed {
    use super::*;

    #[test]
    fn b092_init_connect_is_true_of_every_session() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let bed = Bed::own(kind);
            for node in [Node::Primary, Node::Replica1, Node::Replica2] {
                bed.root(node)
                    .ok("SET GLOBAL init_connect = 'SET time_zone = \\'+03:00\\'; SET @began = 7'");
            }
            let stage = Stage::on(bed, "", |config| {
                config.append("[pool]\nmax_connections = 3\nmin_idle = 0\nconnect_rate = 1000\n")
            });
            for n in 0..40 {
                let mut client = stage.client();
                let seen = client.query("SELECT @@time_zone, @began");
                let cell = |text: &str| Some(text.to_owned());
                assert_eq!(seen.rows(), [[cell("+03:00"), cell("7")]], "{n}");
                match n % 4 {
                    0 => drop(client.ok("SET time_zone = '+05:00', sql_mode = ''")),
                    1 => drop(client.ok("SET @began = 8, @other = 1")),
                    2 => drop(client.ok("/*master*/ SELECT @x := 1")),
                    _ => drop(client.command(b"\x1f")),
                }
            }
        }
    }

    #[test]
    fn b180_no_server_ever_has_more_connections_than_the_limit() {
        const LIMIT: usize = 5;
        let stage = Stage::on(Bed::own(Kind::MariaDb), "", |config| {
            config.append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"100ms\"\n[pool]\nmax_connections = 5\nmin_idle = 2\nconnect_rate = 1000\nacquire_timeout = \"30s\"\n")
        });
        let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for n in 0..60 {
                let (stop, done) = (&stop, &done);
                let (address, login) = (stage.atlas.address(), stage.login());
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let mut client = Wire::connect(address, &login);
                        let text = format!("SELECT {n} + SLEEP(0.02) FROM t LIMIT 1");
                        assert_eq!(client.query(&text).cell(), n.to_string());
                        client.ok("UPDATE t SET v = v + 1 WHERE id = 1");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let watch = |node: Node, rounds: usize| {
                let mut root = stage.bed.root(node);
                for _ in 0..rounds {
                    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('plain', 'unauthenticated user')";
                    let count: usize = root.query(sql).cell().parse().expect("a count");
                    assert!(count <= LIMIT, "{count} on {}", node.name());
                    std::thread::sleep(Duration::from_millis(20));
                }
            };
            for node in [Node::Replica1, Node::Replica2] {
                watch(Node::Primary, 20);
                stage.bed.signal(node, "KILL");
                watch(Node::Primary, 20);
                stage.bed.revive(node);
                watch(node, 40);
            }
            let before = done.load(Ordering::Relaxed);
            eventually("clients go on", || {
                done.load(Ordering::Relaxed) > before + 60
            });
            stop.store(true, Ordering::Relaxed);
        });
    }

    /// What the server closes while it idles is not handed out, or what was said to it is said again where that is safe.
    #[test]
    fn b184_connections_that_the_server_closes_while_they_idle() {
        let stage = Stage::on(Bed::own(Kind::MariaDb), "", |config| config);
        // Behind Atlas's back: it has asked for this at its start.
        for node in [Node::Primary, Node::Replica1, Node::Replica2] {
            stage.bed.root(node).ok("SET GLOBAL wait_timeout = 1");
        }
        std::thread::scope(|scope| {
            for n in 0..12_u64 {
                let (address, login) = (stage.atlas.address(), stage.login());
                scope.spawn(move || {
                    let mut client = Wire::connect(address, &login);
                    for round in 0..6 {
                        let row = n * 100 + round;
                        assert_eq!(client.query("SELECT COUNT(*) FROM t").cell(), "3");
                        client.ok(&format!("INSERT INTO u VALUES ({row})"));
                        std::thread::sleep(Duration::from_millis(970 + 5 * n));
                    }
                });
            }
        });
        assert_eq!(stage.count("u"), 72);
    }

    #[test]
    fn b189_a_server_that_is_full_is_not_down() {
        let stage = Stage::on(Bed::own(Kind::MySql), "", |config| {
            config.append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"100ms\"\n[pool]\nmax_connections = 50\nmin_idle = 0\nconnect_rate = 1000\n").group("replicas = []")
        });
        let mut root = stage.root();
        let mut held = stage.client();
        held.ok("BEGIN");
        held.ok("INSERT INTO u VALUES (1)");
        root.ok("SET GLOBAL max_connections = 10");
        let mut transactions = Vec::new();
        let mut refused = 0;
        for _ in 0..20 {
            let mut client = stage.client_as(&Login::plain());
            match client.query("BEGIN").error() {
                None => transactions.push(client),
                Some((1040, _, _)) => refused += 1,
                Some(other) => panic!("{other:?}"),
            }
        }
        assert!(refused > 0 && !transactions.is_empty());
        held.ok("INSERT INTO u VALUES (2)");
        root.ok("SET GLOBAL max_connections = 100");
        for _ in 0..20 {
            let mut client = stage.client_as(&Login::plain());
            client.ok("BEGIN");
            transactions.push(client);
        }
        held.ok("COMMIT");
        assert_eq!(stage.count("u"), 2);
        assert!(
            !stage.atlas.log().contains(" is out: "),
            "{}",
            stage.atlas.log()
        );
    }
}
