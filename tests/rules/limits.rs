//! Limits of accounts and of rules, and the figures of accounts.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::{self, Atlas, Bed, Config, Kind, Login, Wire, config_for, eventually};
use super::{refused, rule, shown, viewer, with_admin};

/// A25: so many statements at a time, and so many a second; for an account, and by a rule.
#[test]
fn limits() {
    for bed in Bed::both() {
        let limited = |limits: &str| {
            [
                format!("limits = {limits}"),
                "backend = { user = \"app\", password = \"app-pw\" }".to_owned(),
            ]
        };
        let user = |config: Config, name: &str, limits: &str| {
            let lines = limited(limits);
            config.user(name, "pw", &[&lines[0], &lines[1]])
        };
        let rules = rule(
            "reports",
            "match = { user = \"app\", regex = \"report\" }\naction = \"limit\"\nconcurrency = 1\nmessage = \"one report at a time\"",
        );
        let config = with_admin(config_for(&bed));
        let config = user(config, "few", "{ concurrency = 2 }");
        let config = user(config, "slow", "{ rate = 5 }").append(&rules);
        let atlas = Atlas::start(config);
        let login = |name: &str| Wire::connect(atlas.address(), &Login::new(name, "pw"));
        // Two run; a third is refused at once, and its session goes on.
        let mut busy = [login("few"), login("few")];
        for client in &mut busy {
            client.send(&client.query_payload(b"SELECT SLEEP(30)"));
        }
        let mut viewer = viewer(&atlas);
        let running = |viewer: &mut Wire, name: &str| {
            let rows = shown(viewer, "SHOW ACCOUNTS");
            let row = rows.iter().find(|row| row[0] == name).expect("the account");
            row[11].clone()
        };
        eventually("both run", || running(&mut viewer, "few") == "2");
        let mut third = login("few");
        let text = refused(&mut third, "SELECT 1");
        assert_eq!(
            text,
            "Proxy Warning - more than 2 statements at a time (limits.concurrency of account \"few\")"
        );
        // What ends something is let through.
        third.ok("ROLLBACK");
        // A client that goes makes room; so does one whose statement is over.
        let [first, second] = busy;
        drop(first);
        eventually("there is room", || running(&mut viewer, "few") == "1");
        third.ok("SELECT 1");
        drop(second);
        eventually("nothing runs", || running(&mut viewer, "few") == "0");
        for _ in 0..5 {
            third.ok("SELECT 1");
            let broken = third.query("SELECT nonsense FROM nowhere.at_all");
            assert!(broken.error().is_some());
        }
        assert_eq!(running(&mut viewer, "few"), "0");

        let mut slow = login("slow");
        let (passed, denied) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for _ in 0..200 {
            match slow.query("SELECT 1").error() {
                None => passed.fetch_add(1, Ordering::Relaxed),
                Some((code, _, text)) => {
                    assert_eq!(code, 1105);
                    assert_eq!(
                        text,
                        "Proxy Warning - more than 5 statements a second (limits.rate of account \"slow\")"
                    );
                    denied.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
        let passed = passed.into_inner();
        assert!(passed >= 5 && denied.into_inner() > 0, "{passed}");
        let rows = shown(&mut viewer, "SHOW ACCOUNTS");
        let row = rows
            .iter()
            .find(|row| row[0] == "slow")
            .expect("the account");
        assert_eq!(
            (row[5].clone(), row[13].clone()),
            (passed.to_string(), "5".to_owned()),
            "{row:?}"
        );
        // Log-in and what drivers say then counts for nobody else.
        eventually("a second later there is room", || {
            slow.query("SELECT 1").error().is_none()
        });

        let mut reporter = Wire::connect(atlas.address(), &Login::app());
        reporter.send(&reporter.query_payload(b"SELECT SLEEP(30), 'report'"));
        let mut other = Wire::connect(atlas.address(), &Login::app());
        eventually("the report runs", || {
            shown(&mut viewer, "SHOW RULES")[0][10] == "1"
        });
        let text = refused(&mut other, "SELECT 'report'");
        assert_eq!(
            text,
            "Proxy Warning - one report at a time: more than 1 statements at a time (rule \"reports\")"
        );
        other.ok("SELECT 'something else'");
    }
}

/// A25: who did how much, and how often it was refused.
#[test]
fn figures_of_accounts() {
    let bed = Bed::of(Kind::MariaDb);
    let config = with_admin(config_for(&bed)).server("http_listen = \"127.0.0.1:0\"");
    let atlas = Atlas::start(config);
    let mut app = Wire::connect(atlas.address(), &Login::app());
    let mut plain = Wire::connect(atlas.address(), &Login::plain());
    for _ in 0..3 {
        app.ok("SELECT 1");
    }
    app.ok("DO 1");
    assert_eq!(plain.query("SELECT nonsense").error_code(), 1054);
    assert_eq!(plain.query("/*group:nowhere*/ SELECT 1").error_code(), 1105);
    let mut viewer = viewer(&atlas);
    let rows = shown(&mut viewer, "SHOW ACCOUNTS");
    let of = |name: &str| rows.iter().find(|row| row[0] == name).expect("the account");
    // Group, clients, of them idle, limit, statements, on the primary, on replicas, errors, refused.
    assert_eq!(
        of("app")[1..10],
        ["main", "1", "0", "NULL", "4", "1", "3", "0", "0"]
    );
    // A replica's word counts only where the primary says the same.
    assert_eq!(of("plain")[5..10], ["1", "1", "0", "1", "1"]);
    let http = common::http_of(&atlas.log()).expect("the log names the port");
    let (_, metrics) = common::http_get(http, "/metrics");
    for line in [
        "atlas_account_clients{account=\"app\"} 1",
        "atlas_account_statements_total{account=\"app\",route=\"replica\"} 3",
        "atlas_account_errors_total{account=\"plain\"} 1",
        "atlas_account_refused_total{account=\"plain\"} 1",
    ] {
        assert!(
            metrics.lines().any(|known| known == line),
            "{line}\n{metrics}"
        );
    }
}
