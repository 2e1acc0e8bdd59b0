//! Clients as operators see them, and their end.

use super::common::{Ended, Expect, Kind, Login, Node, Wire, eventually};
use super::stage::{Stage, columns, error, rows};

fn session(sessions: &[Vec<String>], id: u32) -> &Vec<String> {
    sessions
        .iter()
        .find(|row| row[0] == id.to_string())
        .unwrap_or_else(|| panic!("{id} in {sessions:?}"))
}

#[test]
fn sessions_and_pins() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::new(kind);
        let schema = stage.bed.schema();
        let mut viewer = stage.viewer();
        let mut client = Wire::connect(stage.atlas.address(), &Login::plain().schema(&schema));
        client.ok("SELECT 'secret', 1");
        let sessions = rows(&mut viewer, "SHOW SESSIONS");
        let row = session(&sessions, client.id);
        assert_eq!(
            row[1..6],
            ["plain", "127.0.0.1", schema.name(), "main", "idle"]
        );
        assert_eq!(
            (row[8].as_str(), row[9].as_str(), row[11].as_str()),
            ("no", "", "select ?, ...")
        );
        client.ok("CREATE TEMPORARY TABLE tt(a INT)");
        client.ok("SELECT GET_LOCK('admin_pins', 1)");
        client.ok("START TRANSACTION");
        let id = client.id.to_string();
        let of_client = |viewer: &mut Wire| {
            let mut pins = rows(viewer, "SHOW PINS");
            pins.retain(|row| row[0] == id);
            pins.into_iter()
                .map(|row| [row[3].clone(), row[5].clone(), row[6].clone()])
                .collect::<Vec<_>>()
        };
        let pins = of_client(&mut viewer);
        let find = |reason: &str| {
            pins.iter()
                .find(|pin| pin[0] == reason)
                .unwrap_or_else(|| panic!("{reason}: {pins:?}"))
        };
        assert_eq!(
            find("transaction")[1..],
            ["start transaction", "COMMIT or ROLLBACK"]
        );
        assert_eq!(
            find("temporary-table")[1],
            "create temporary table tt(a int)"
        );
        assert_eq!(
            find("user-lock")[1..],
            [
                "select get_lock(?, ...)",
                "RELEASE_LOCK() of the last one, RELEASE_ALL_LOCKS()"
            ]
        );
        let listed = rows(&mut viewer, "SHOW FULL PROCESSLIST");
        assert_eq!(session(&listed, client.id)[4], "Sleep");
        client.ok("COMMIT");
        client.ok("DROP TEMPORARY TABLE tt");
        client.ok("SELECT RELEASE_LOCK('admin_pins')");
        assert_eq!(of_client(&mut viewer), Vec::<[String; 3]>::new());
    }
}

/// One that has not logged in is there since it came, not since Atlas did.
#[test]
fn a_client_in_its_login() {
    let stage = Stage::new(Kind::MariaDb);
    let mut viewer = stage.viewer();
    let before = std::time::Instant::now();
    let _half = Wire::greet(stage.atlas.address()).expect("a greeting");
    let sessions = rows(&mut viewer, "SHOW SESSIONS");
    let age = before.elapsed().as_millis();
    let row = sessions
        .iter()
        .find(|row| row[5] == "log-in")
        .unwrap_or_else(|| panic!("{sessions:?}"));
    assert!(row[6].parse::<u128>().expect("ms") <= age, "{row:?}");
}

/// Counters by reason, and statements by kind; neither shows a literal.
#[test]
fn routes_and_digests() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| config.server("workers = 2"));
        let schema = stage.bed.schema();
        let mut viewer = stage.viewer();
        let login = Login::plain().schema(&schema);
        let mut clients: Vec<Wire> = (0..4)
            .map(|_| Wire::connect(stage.atlas.address(), &login))
            .collect();
        clients[0].ok("CREATE TABLE t(a INT, b VARCHAR(20))");
        let statement = clients[1].prepare("INSERT INTO t VALUES (?, 'Secr3t')");
        for (n, client) in (0..).zip(&mut clients) {
            for m in 0..5 {
                client.ok(&format!("/* trace={n}{m} */ SELECT {m}, 'Secr3t{n}'"));
                client.ok(&format!(
                    "INSERT INTO t VALUES ({n}, 'Secr3t'), ({m}, 'Secr3t')"
                ));
            }
            client.query("SELECT no_such_column FROM t");
        }
        clients[1].execute(&statement, &[super::common::Param::Int(7)]);
        let routes = rows(&mut viewer, "SHOW ROUTES");
        let count = |kind: &str, route: &str, reason: &str| {
            let row = routes.iter().find(|row| row[..3] == [kind, route, reason]);
            row.map_or(0, |row| row[3].parse::<u64>().expect("a number"))
        };
        assert!(count("read", "replica", "plain-read") >= 20, "{routes:?}");
        assert_eq!(count("write", "primary", "write"), 21, "{routes:?}");
        assert_eq!(count("ddl", "primary", "ddl"), 1, "{routes:?}");
        let digests = rows(&mut viewer, "SHOW DIGESTS");
        let find = |form: &str| {
            digests
                .iter()
                .find(|row| row[1] == form)
                .unwrap_or_else(|| panic!("{form}: {digests:?}"))
        };
        assert_eq!(find("select ?, ...")[2..5], ["20", "20", "0"]);
        assert_eq!(find("insert into t values (?, ...), ...")[2], "20");
        assert_eq!(find("select no_such_column from t")[4], "4");
        // With the parameter in its text, as the client prepared it.
        assert!(
            digests
                .iter()
                .any(|row| row[1].starts_with("insert into t values (?") && row[2] == "1"),
            "{digests:?}"
        );
        assert!(digests.iter().all(|row| row[0].len() == 16));
        for text in [
            format!("{digests:?}"),
            format!("{:?}", rows(&mut viewer, "SHOW SESSIONS")),
            stage.atlas.log(),
        ] {
            assert!(!text.contains("Secr3t"), "{text}");
        }
    }
}

/// A client of any worker, by its id; its statement only, or all of it.
#[test]
fn kill() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| config.server("workers = 2"));
        let mut admin = stage.operator();
        let mut clients: Vec<Wire> = (0..4).map(|_| stage.client()).collect();
        for client in &mut clients {
            client.send(&client.query_payload(b"/*master*/ SELECT SLEEP(30)"));
        }
        eventually("all run", || {
            let sessions = rows(&mut admin, "SHOW SESSIONS");
            sessions.iter().filter(|row| row[5] == "statement").count() == 4
        });
        for (place, client) in clients.iter_mut().enumerate() {
            if place % 2 == 0 {
                admin.ok(&format!("KILL QUERY {}", client.id));
                // MySQL's SLEEP() gives 1 when it is cut short, MariaDB's an error; both at once.
                let reply = client.reply(Expect::Text);
                assert!(
                    reply.error().is_some_and(|(code, ..)| code == 1317) || reply.cell() == "1"
                );
                assert_eq!(client.query("SELECT 5").cell(), "5");
            } else {
                admin.ok(&format!("KILL {};", client.id));
                let ended = client.try_reply(Expect::Text);
                assert!(
                    matches!(ended, Err(Ended::Closed { .. } | Ended::Reset)),
                    "{ended:?}"
                );
            }
        }
        assert_eq!(
            error(&mut admin, "KILL 7"),
            (1094, "HY000".to_owned(), "Unknown thread id: 7".to_owned())
        );
        let events = rows(&mut admin, "SHOW EVENTS");
        assert_eq!(events.iter().filter(|row| row[3] == "kill").count(), 4);
    }
}

/// A28: who is connected to a server without this instance; not its own connections, those of checks, and replication.
#[test]
fn connections_that_go_around() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| {
            config.append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\n")
        });
        let mut viewer = stage.viewer();
        assert_eq!(
            columns(&mut viewer, "CHECK CONNECTIONS"),
            [
                "backend_ndx",
                "group",
                "address",
                "user",
                "host",
                "connections",
                "running",
                "longest_s",
                "note"
            ]
        );
        // Connections through this instance, as another account than that of the other tests.
        let own = match kind {
            Kind::MariaDb => Login::new("ed", "ed-pw"),
            Kind::MySql => Login::new("sha", "sha-pw"),
        };
        let mut client = Wire::connect(stage.atlas.address(), &own);
        client.ok("BEGIN");
        client.ok("SELECT 1");
        let address = stage.bed.address(Node::Primary);
        let mut counted = || {
            let rows = rows(&mut viewer, "CHECK CONNECTIONS");
            let on_primary = rows.into_iter().filter(|row| row[2] == address.to_string());
            on_primary
                .filter(|row| row[3] == "repl" || row[3] == own.user)
                .map(|row| row[3..7].to_vec())
                .collect::<Vec<_>>()
        };
        assert!(counted().is_empty(), "its own, and replication");
        let mut around = [Wire::connect(address, &own), Wire::connect(address, &own)];
        around[0].send(&around[0].query_payload(b"SELECT SLEEP(30)"));
        eventually("they are seen, and what one does", || {
            counted() == [[own.user.as_str(), "127.0.0.1", "2", "1"]]
        });
        drop(around);
        client.ok("ROLLBACK");
    }
}

/// A25, A37: what each account does, and a word about clients that only wait; the figures themselves are tried in tests/rules.
#[test]
fn accounts_and_what_they_do() {
    let stage = Stage::with(Kind::MySql, |config| {
        config.all_users("max_connections = 30\nlimits = { rate = 1000, concurrency = 7 }\nlabels = { team = \"x\", business = \"shop\" }")
    });
    let mut viewer = stage.viewer();
    let mut client = stage.client();
    client.ok("SELECT 1");
    assert_eq!(
        columns(&mut viewer, "SHOW ACCOUNTS"),
        [
            "account",
            "group",
            "clients",
            "idle_minute",
            "max_connections",
            "statements",
            "on_primary",
            "on_replicas",
            "errors",
            "refused",
            "mean_us",
            "running",
            "max_running",
            "max_rate",
            "limited",
            "labels",
            "advice"
        ]
    );
    let listed = rows(&mut viewer, "SHOW ACCOUNTS");
    let row = listed
        .iter()
        .find(|row| row[0] == "plain")
        .expect("the account");
    assert_eq!(row[1..8], ["main", "1", "0", "30", "1", "0", "1"]);
    assert_eq!(
        row[11..],
        ["0", "7", "1000", "0", "business=shop, team=x", ""]
    );
}
