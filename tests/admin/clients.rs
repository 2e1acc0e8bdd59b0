//! Clients as operators see them, and their end.

use super::common::{Ended, Expect, Kind, Login, Wire, eventually};
use super::stage::{Stage, error, rows};

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
                "RELEASE_LOCK(), RELEASE_ALL_LOCKS()"
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
