//! Rules and `[safety]`: what is refused is not run, what is refused at load changes nothing, and what operators are shown of it. Limits
//! are in `limits`, copies in `mirror`.

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod late;
mod limits;
mod mirror;
mod numbered;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use atlas::wire::Capabilities;
use common::{Atlas, Bed, Config, Login, Node, Schema, Wire, config_for, eventually};

fn with_admin(config: Config) -> Config {
    config
        .server("admin_listen = \"127.0.0.1:0\"")
        .append("[admin]\nusers = [{ name = \"eye\", password = \"admin-pw\" }]")
}

fn viewer(atlas: &Atlas) -> Wire {
    let log = atlas.log();
    let (before, _) = log
        .split_once(" (admin port)")
        .expect("the log names the port");
    let address = before.rsplit(' ').next().expect("a word");
    Wire::connect(
        address.parse().expect("an address"),
        &Login::new("eye", "admin-pw"),
    )
}

/// A table of the admin port, NULL as "NULL".
fn shown(viewer: &mut Wire, command: &str) -> Vec<Vec<String>> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let rows = viewer.ok(command).rows().into_iter();
    rows.map(|row| row.into_iter().map(text).collect())
        .collect()
}

fn rule(name: &str, lines: &str) -> String {
    format!("[[rules]]\nname = \"{name}\"\n{lines}\n")
}

/// Asks for a reload, waits for its end, and gives what the log says of it.
fn reload(atlas: &Atlas, config: impl Into<String>) -> String {
    let done = |log: &str| log.matches("reload (signal): ").count();
    let before = done(&atlas.log());
    atlas.write_config(config);
    atlas.signal("HUP");
    eventually("the reload has come to an end", || {
        done(&atlas.log()) > before
    });
    let log = atlas.log();
    log.rsplit("reload (signal): ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn audit(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!("CREATE TABLE {schema}.audit(a INT)"));
    root.ok(&format!("INSERT INTO {schema}.audit VALUES (1), (2), (3)"));
    bed.wait_replicas();
    schema
}

fn refused(wire: &mut Wire, sql: &str) -> String {
    let (code, state, text) = wire
        .query(sql)
        .error()
        .unwrap_or_else(|| panic!("{sql} is run"));
    assert_eq!((code, state.as_str()), (1105, "HY000"), "{sql}: {text}");
    text
}

/// The error that a preparation gets.
fn prepare(wire: &mut Wire, sql: &str) -> Option<String> {
    let payload = [&[0x16][..], sql.as_bytes()].concat();
    wire.command(&payload).error().map(|(_, _, text)| text)
}

#[test]
fn what_is_rejected_reaches_no_server() {
    for bed in Bed::both() {
        let schema = audit(&bed);
        let rules = rule(
            "no full delete",
            "match = { regex = \"(?i)^delete from audit\" }\naction = \"reject\"\nmessage = \"not here\"",
        );
        let atlas = Atlas::start(with_admin(config_for(&bed)).append(&rules));
        let mut client = Wire::connect(
            atlas.address(),
            &Login::app()
                .schema(&schema)
                .with(Capabilities::MULTI_STATEMENTS),
        );
        let marks = bed.marks();
        let told = "Proxy Warning - not here (rule \"no full delete\")";
        for sql in [
            "DELETE FROM audit",
            "delete/* tag */from\n\taudit where a = 1",
            "/*!50000 DELETE*/ FROM audit",
            "SELECT 1; DELETE FROM audit",
            "PREPARE s FROM 'DELETE FROM audit'",
            "/*replica*/ DELETE FROM audit",
        ] {
            assert_eq!(refused(&mut client, sql), told, "{sql}");
        }
        let prepared = prepare(&mut client, "DELETE FROM audit WHERE a = ?");
        assert_eq!(prepared.as_deref(), Some(told));
        // In a transaction too, which goes on.
        client.ok("BEGIN");
        client.ok("INSERT INTO audit VALUES (4)");
        refused(&mut client, "DELETE FROM audit");
        client.ok("COMMIT");
        assert!(
            marks
                .find("audit")
                .iter()
                .all(|(_, entry)| !entry.text.to_lowercase().contains("delete")),
            "{:?}",
            marks.find("audit")
        );
        assert_eq!(
            client.query("/*master*/ SELECT COUNT(*) FROM audit").cell(),
            "4"
        );
        // One that the rule is not about.
        client.ok("DELETE a FROM audit AS a WHERE a.a = 4");

        let mut viewer = viewer(&atlas);
        let rows = shown(&mut viewer, "SHOW RULES");
        assert_eq!(rows[0][0], "no full delete");
        assert_eq!(rows[0][9], "8", "hits: {rows:?}");
        let explained = shown(&mut viewer, "EXPLAIN ROUTE DELETE FROM audit");
        let has = |step: &str, detail: &str| {
            explained
                .iter()
                .any(|row| row[0] == step && row[1] == detail)
        };
        assert!(
            has("route", "refused") && has("rule", "no full delete: reject"),
            "{explained:?}"
        );
        let own = client.ok("EXPLAIN ROUTE DELETE FROM audit").rows();
        assert!(
            own.contains(&vec![Some("route".to_owned()), Some("refused".to_owned())]),
            "{own:?}"
        );
    }
}

/// A rule that came into force since a statement was prepared counts for its executions.
#[test]
fn prepared_before_the_rule() {
    for bed in Bed::both() {
        let schema = audit(&bed);
        let atlas = Atlas::start(config_for(&bed));
        let mut client = Wire::connect(atlas.address(), &Login::app().schema(&schema));
        let statement = client.prepare("DELETE FROM audit WHERE a = 1");
        let rules = rule("no", "match = { kind = \"write\" }\naction = \"reject\"");
        reload(&atlas, config_for(&bed).append(&rules));
        let reply = client.execute(&statement, &[]);
        assert_eq!(reply.error_code(), 1105, "{reply:?}");
        assert_eq!(
            client.query("/*master*/ SELECT COUNT(*) FROM audit").cell(),
            "3"
        );
        reload(&atlas, config_for(&bed));
        assert_eq!(client.execute(&statement, &[]).error(), None);
        assert_eq!(
            client.query("/*master*/ SELECT COUNT(*) FROM audit").cell(),
            "2"
        );
    }
}

/// B261, B265: what cannot be meant is refused with the number of the rule, and the rules of before go on.
#[test]
fn a_rule_that_cannot_be_read_changes_nothing() {
    let bed = Bed::mariadb();
    let good = rule(
        "no sevens",
        "match = { regex = \"seven\" }\naction = \"reject\"",
    );
    let atlas = Atlas::start(config_for(&bed).append(&good));
    let mut client = Wire::connect(atlas.address(), &Login::app());
    for (lines, told) in [
        (
            "match = { digest = \"0x 1F2A\" }\naction = \"reject\"",
            "rules[1].match.digest",
        ),
        (
            "match = { digest = \"\" }\naction = \"reject\"",
            "rules[1].match.digest",
        ),
        (
            "match = { digest = \"0xZZ\" }\naction = \"reject\"",
            "rules[1].match.digest",
        ),
        (
            "match = { digest = \"0123456789abcdef0\" }\naction = \"reject\"",
            "rules[1].match.digest",
        ),
        (
            "match = { regex = '(a)\\9' }\naction = \"reject\"",
            "rules[1].match.regex",
        ),
        (
            "match = { regex = '(' }\naction = \"reject\"",
            "rules[1].match.regex",
        ),
        (
            "match = { regex = 'a{1000}{1000}{1000}' }\naction = \"log\"",
            "rules[1].match.regex",
        ),
        (
            "match = { digest = \"1f2a\" }\nreplace = \"SELECT 1\"\naction = \"allow\"",
            "rules[1].replace",
        ),
        (
            "match = { digest = \"1f2a\" }\nreplace = \"\"",
            "rules[1].action",
        ),
        ("action = \"route\"", "rules[1].to"),
    ] {
        let said = reload(
            &atlas,
            config_for(&bed).append(&good).append(&rule("bad", lines)),
        );
        assert!(said.contains(told), "{lines}\n{said}");
        assert_eq!(
            refused(&mut client, "SELECT 'seven'"),
            "Proxy Warning - the statement is refused (rule \"no sevens\")"
        );
        assert_eq!(client.query("SELECT 8").cell(), "8");
    }
}

/// B264: rules are exchanged while clients work, one set with an expression on which others run for ever: no error, no statement that
/// is judged by half of a set, no reload that takes long. `ATLAS_RELOADS=1000` for as many.
#[test]
fn rules_change_under_load() {
    let rounds: usize = std::env::var("ATLAS_RELOADS").map_or(40, |n| n.parse().expect("a number"));
    let clients: usize =
        std::env::var("ATLAS_CLIENTS").map_or(40, |n| n.parse().expect("a number"));
    for bed in Bed::both() {
        // Of either set one rule has the statement refused, with its own word; of half of both sets none, or the other's.
        let set = |word: &str| {
            let slow = match word {
                "odd" => "(([a-z]+)+[0-9]?)*!$",
                _ => "^never$",
            };
            let rules = [
                rule(
                    "slow",
                    &format!("match = {{ regex = '{slow}' }}\naction = \"reject\""),
                ),
                rule(
                    &format!("{word} allows"),
                    &format!("match = {{ regex = \"{word}\" }}\naction = \"allow\""),
                ),
                rule(
                    &format!("{word} rejects"),
                    "match = { regex = \"judge\" }\naction = \"reject\"",
                ),
            ];
            config_for(&bed)
                .append("[pool]\nconnect_rate = 1000\n")
                .append(&rules.concat())
        };
        let atlas = Atlas::start(set("odd"));
        let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut wire = Wire::connect(atlas.address(), &Login::plain());
                    let text = format!("SELECT '{}' /* none */", "a".repeat(300));
                    while !is_over.load(Ordering::Relaxed) {
                        wire.ok(&text);
                        // Each set lets one of the two through and refuses the other.
                        let refusals: Vec<String> = ["SELECT 'judge odd'", "SELECT 'judge even'"]
                            .into_iter()
                            .filter_map(|sql| wire.query(sql).error())
                            .map(|(_, _, text)| text)
                            .collect();
                        for text in &refusals {
                            let whole = ["odd", "even"].iter().any(|word| {
                                *text == format!("Proxy Warning - the statement is refused (rule \"{word} rejects\")")
                            });
                            assert!(whole, "{text}");
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 1..=rounds {
                let before = done.load(Ordering::Relaxed);
                let said = reload(&atlas, set(["odd", "even"][round % 2]));
                assert!(said.contains("rules["), "{said}");
                eventually("clients go on", || done.load(Ordering::Relaxed) > before);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(!atlas.log().contains("panicked"), "{}", atlas.log());
    }
}

#[test]
fn reads_go_where_a_rule_says() {
    for bed in Bed::both() {
        let rules = [
            rule(
                "fresh",
                "match = { regex = \"fresh\" }\naction = \"route\"\nto = \"primary\"",
            ),
            rule(
                "reports",
                "match = { user = \"reports\", kind = \"read\" }\naction = \"route\"\nto = \"replica\"",
            ),
        ];
        let config = config_for(&bed)
            .user(
                "reports",
                "r-pw",
                &[
                    "read_from = \"primary\"",
                    "backend = { user = \"app\", password = \"app-pw\" }",
                ],
            )
            .append(&rules.concat());
        let atlas = Atlas::start(config);
        let port = |node| bed.address(node).port().to_string();
        let mut app = Wire::connect(atlas.address(), &Login::app());
        assert_eq!(
            app.query("SELECT @@server_id, 'fresh'").cell(),
            port(Node::Primary)
        );
        let replicas = Node::REPLICAS.map(port);
        assert!(replicas.contains(&app.query("SELECT @@server_id").cell()));
        let rows = app.ok("SHOW LAST ROUTE").rows();
        assert_eq!(rows[0][1].as_deref(), Some("replica"));
        app.ok("SELECT 'fresh'");
        let rows = app.ok("SHOW LAST ROUTE").rows();
        assert_eq!(rows[1][1].as_deref(), Some("rule"), "{rows:?}");
        let mut reports = Wire::connect(atlas.address(), &Login::new("reports", "r-pw"));
        assert!(replicas.contains(&reports.query("SELECT @@server_id").cell()));
        let statement = reports.prepare("SELECT @@server_id");
        let answer = reports.execute(&statement, &[]);
        assert_eq!(answer.error(), None);
        // Neither moves a write, nor leaves a transaction.
        reports.ok("BEGIN");
        assert_eq!(
            reports.query("SELECT @@server_id").cell(),
            port(Node::Primary)
        );
        reports.ok("COMMIT");
    }
}

#[test]
fn what_a_rule_writes_down() {
    let bed = Bed::mysql();
    let rules = rule(
        "audit reads",
        "match = { regex = \"secrets\" }\naction = \"log\"",
    );
    let atlas = Atlas::start(config_for(&bed).append(&rules));
    let mut client = Wire::connect(atlas.address(), &Login::app());
    client.ok("SELECT 'secrets', 4711");
    atlas.wait_log("rule \"audit reads\": app@127.0.0.1: select ?, ...");
    assert!(
        !atlas.log().contains("4711"),
        "literals are nobody's business"
    );
}

#[test]
fn unsafe_statements() {
    for bed in Bed::both() {
        let schema = audit(&bed);
        let safety = "[safety]\nrequire_where = true\nrefuse_sleep = true\n";
        let may = rule(
            "clean-up",
            "match = { user = \"plain\", regex = \"^DELETE FROM audit$\" }\naction = \"allow\"",
        );
        let atlas = Atlas::start(config_for(&bed).append(&may).append(safety));
        let mut app = Wire::connect(
            atlas.address(),
            &Login::app()
                .schema(&schema)
                .with(Capabilities::MULTI_STATEMENTS),
        );
        for sql in [
            "DELETE FROM audit",
            "UPDATE audit SET a = 1",
            "SELECT 1; UPDATE audit SET a = 1",
            "PREPARE s FROM 'DELETE FROM audit'",
        ] {
            let text = refused(&mut app, sql);
            assert_eq!(
                text,
                "Proxy Warning - UPDATE and DELETE need a WHERE (safety.require_where)"
            );
        }
        assert!(prepare(&mut app, "UPDATE audit SET a = ?").is_some());
        for sql in ["SELECT SLEEP(1)", "SELECT BENCHMARK(10, 1)", "DO SLEEP(1)"] {
            let text = refused(&mut app, sql);
            assert_eq!(
                text,
                "Proxy Warning - SLEEP and BENCHMARK are refused (safety.refuse_sleep)"
            );
        }
        app.ok("UPDATE audit SET a = 2 WHERE a = 1");
        assert_eq!(
            app.query("/*master*/ SELECT COUNT(*) FROM audit").cell(),
            "3"
        );
        let mut plain = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
        plain.ok("DELETE FROM audit");
    }
}
