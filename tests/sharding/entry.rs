//! What was asked of sharding at the entry, by its number: one set of rules, who governs statements, log-ins, growth without an outage.
//! What is about rows and keys is in `requirements`, what the original promised in `original`.

mod original;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::common::{Atlas, Bed, Config, Kind, Login, Node, Refused, Wire, config_for, eventually};
use crate::stage::Stage;

/// The ranges of `ord`: by the parity of its key.
const EVEN_ODD: &str = "{ groups = [\"main\", \"s1\"] }";

/// Two groups over the servers of a stage, `ord` in these ranges, and a port for operators.
fn config(stage: &Stage<'_>, ranges: &str) -> Config {
    config_with(stage, config_for(stage.bed), ranges)
}

fn config_with(stage: &Stage<'_>, config: Config, ranges: &str) -> Config {
    let schema = &stage.schema;
    config
        .server("admin_listen = \"127.0.0.1:0\"")
        .all_users("group = \"main\"")
        .all_users("causal = \"session\"")
        .append(&format!(
            "[admin]\nusers = [{{ name = \"admin\", password = \"admin-pw\", role = \"operator\" }}]\n\
             [[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}\n\
             [[tables]]\nname = \"{schema}.ord\"\nkey = \"uid\"\nranges = [{ranges}]\n\
             [[tables]]\nname = \"{schema}.log\"\nkey = \"id\"\nranges = [{{ groups = [\"main\", \"s1\"], tables = 2 }}]\n",
            stage.bed.address(Node::Second)
        ))
}

fn client(stage: &Stage<'_>, atlas: &Atlas) -> Wire {
    Wire::connect(atlas.address(), &Login::plain().schema(&stage.schema))
}

fn operator(atlas: &Atlas) -> Wire {
    let log = atlas.log();
    let (before, _) = log.rsplit_once(" (admin port)").expect("it is told");
    let address: SocketAddr = before.rsplit(' ').next().unwrap().parse().unwrap();
    Wire::connect(address, &Login::new("admin", "admin-pw"))
}

fn rules(atlas: &Atlas) -> String {
    format!("{:?}", operator(atlas).query("SHOW TABLES").rows())
}

/// Each instance tells the rules that it goes by, and so two can be held against each other; a version is in force on all its event
/// loops or on none, and a file that cannot be taken changes nothing.
#[test]
fn b2_each_instance_tells_which_rules_it_goes_by() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let with = |ranges| config(&stage, ranges).server("workers = 4");
        let below = "{ to = 1000, groups = [\"main\", \"s1\"] }";
        let grown = format!("{below}, {{ from = 1000, groups = [\"s1\"] }}");
        let (one, other) = (Atlas::start(with(below)), Atlas::start(with(below)));
        assert_eq!(rules(&one), rules(&other));
        one.write_config(with(&grown));
        let reply = operator(&one).query("RELOAD CONFIG");
        reply.assert_ok();
        assert_ne!(rules(&one), rules(&other), "the difference is seen");
        assert!(rules(&one).contains("1000") && one.log().contains("version 2"));
        // Every loop has them by now: whoever connects meets the new ones, and those of the other the old ones.
        let insert = |uid: i64| format!("INSERT INTO ord (uid, amt) VALUES ({uid}, 1)");
        for at in 0..16 {
            client(&stage, &one).ok(&insert(2000 + at));
            let old = client(&stage, &other).query(&insert(3000)).error();
            assert!(old.unwrap().2.contains("holds the shard key 3000"));
        }
        other.write_config(with(&grown));
        operator(&other).query("RELOAD CONFIG").assert_ok();
        assert_eq!(rules(&one), rules(&other));
        client(&stage, &other).ok(&insert(3000));
        let before = rules(&one);
        one.write_config(with(
            "{ to = 1000, groups = [\"main\"] }, { from = 999, groups = [\"s1\"] }",
        ));
        assert!(operator(&one).query("RELOAD CONFIG").error().is_some());
        assert_eq!(rules(&one), before);
    }
}

/// A new process takes over while clients write and read shards in and outside of transactions: none of them sees an error but those
/// that a client has to expect between two statements, and no row is lost or there twice.
#[test]
fn b3_a_new_version_comes_without_an_outage() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let config =
            config(&stage, EVEN_ODD).server("listen = [\"{listen}\", \"unix:{dir}/atlas.sock\"]");
        let mut atlas = Atlas::start(config);
        let (over, next) = (AtomicBool::new(false), AtomicI64::new(1000));
        let written: Vec<i64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut written = Vec::new();
                        let login = Login::plain().schema(&stage.schema);
                        let mut wire = client(&stage, &atlas);
                        while !over.load(Ordering::Relaxed) {
                            let uid = next.fetch_add(1, Ordering::Relaxed);
                            let sql = format!("INSERT INTO ord (uid, amt) VALUES ({uid}, 7)");
                            let is_done = wire.try_query(&sql).is_ok_and(|reply| {
                                // 1053: said to who was idle, and has run nothing.
                                assert!(
                                    matches!(reply.error(), None | Some((1053, ..))),
                                    "{reply:?}"
                                );
                                reply.error().is_none()
                            });
                            if is_done {
                                written.push(uid);
                            } else {
                                wire = Wire::try_connect(atlas.address(), &login)
                                    .expect("a new process answers");
                                wire.ok(&sql.replace("INSERT", "REPLACE"));
                                written.push(uid);
                            }
                        }
                        written
                    })
                })
                .collect();
            let mut processes = Vec::new();
            for _ in 0..3 {
                let last = processes.last().unwrap_or(&atlas);
                let before = next.load(Ordering::Relaxed);
                let new = last.successor();
                eventually("work goes on", || {
                    next.load(Ordering::Relaxed) > before + 20
                });
                processes.push(new);
            }
            over.store(true, Ordering::Relaxed);
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut there: Vec<i64> = Vec::new();
        for (node, schema) in [
            (Node::Primary, stage.schema.to_string()),
            (Node::Second, format!("{}_b", stage.schema)),
        ] {
            let rows = bed
                .root(node)
                .query(&format!(
                    "SELECT uid FROM {schema}.ord WHERE amt = 7 AND uid >= 1000"
                ))
                .rows();
            let uids: Vec<i64> = rows
                .iter()
                .map(|row| row[0].as_deref().unwrap().parse().unwrap())
                .collect();
            let rest = i64::from(node == Node::Second);
            assert!(uids.iter().all(|uid| uid % 2 == rest), "{node:?}");
            there.extend(uids);
        }
        let mut written = written;
        written.sort_unstable();
        there.sort_unstable();
        assert!(
            written.len() > 60 && written == there,
            "{} and {}",
            written.len(),
            there.len()
        );
        atlas.signal("KILL");
        let _ = atlas.ended();
    }
}

/// A list of what is not wanted, a limit on the rate, and one log of what was slow: for statements of shards as for others.
#[test]
fn b4_shards_are_governed_at_the_entry() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let config = config(&stage, EVEN_ODD)
            .user("few", "plain-pw", &["backend = { user = \"plain\", password = \"plain-pw\" }", "group = \"main\"", "limits = { rate = 2 }"])
            .append(
                "[[rules]]\nname = \"no scans\"\nmatch = { regex = \"(?i)from ord where code\" }\naction = \"reject\"\nmessage = \"not here\"\n\
                 [log]\nslow = { file = \"slow.log\", threshold = \"200ms\" }",
            );
        let atlas = Atlas::start(config);
        let mut client = client(&stage, &atlas);
        let marks = bed.marks();
        for sql in [
            "SELECT amt FROM ord WHERE code = 'a'",
            "SELECT uid FROM ord WHERE code = 'a' AND uid = 1",
        ] {
            let (code, _, text) = client.query(sql).error().unwrap();
            assert_eq!(code, 1105);
            assert!(text.contains("not here"), "{text}");
        }
        for node in Node::ALL {
            assert!(
                !marks
                    .entries(node)
                    .iter()
                    .any(|entry| entry.text.contains("code = 'a'"))
            );
        }
        client.ok("SELECT amt FROM ord WHERE uid = 1");
        client.ok("SELECT SLEEP(0.3), amt FROM ord WHERE uid = 1");
        client.ok("SELECT SLEEP(0.3), amt FROM ord WHERE uid IN (1, 2)");
        let slow = || std::fs::read_to_string(atlas.dir().join("slow.log")).unwrap_or_default();
        eventually("both are in the log", || {
            slow().matches("SLEEP(0.3), amt FROM ord").count() == 2
        });
        let text = slow();
        assert!(
            text.contains("s1") && !text.contains("SELECT amt FROM ord WHERE uid = 1;"),
            "{text}"
        );
        let mut few = Wire::connect(
            atlas.address(),
            &Login::new("few", "plain-pw").schema(&stage.schema),
        );
        let replies: Vec<_> = (0..40)
            .map(|_| few.query("SELECT amt FROM ord WHERE uid IN (1, 2)"))
            .collect();
        let refused = replies.iter().filter_map(|reply| reply.error());
        let refused: Vec<_> = refused.map(|(_, _, text)| text).collect();
        assert!(
            !refused.is_empty() && refused.len() < 40,
            "{}",
            refused.len()
        );
        assert!(
            refused
                .iter()
                .all(|text| text.contains("limits.rate of account \"few\"")),
            "{refused:?}"
        );
    }
}

/// A release platform asks whether a file would be taken, without a server, and puts it in force by a signal; what is wrong is told
/// with its line, and changes nothing.
#[test]
fn b7_a_file_is_judged_before_it_is_put_in_force() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    let atlas = Atlas::start(config(&stage, "{ to = 1000, groups = [\"main\", \"s1\"] }"));
    let check = || {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["check", "-c"])
            .arg(atlas.config_path())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    assert_eq!(check().0, 0);
    let before = rules(&atlas);
    for (ranges, told) in [
        (
            "{ to = 1000, groups = [\"main\"] }, { from = 999, groups = [\"s1\"] }",
            "overlaps",
        ),
        (
            "{ to = 1000, groups = [\"main\"] }, { from = 1001, groups = [\"s1\"] }",
            "in no range",
        ),
        ("{ groups = [\"main\", \"nowhere\"] }", "nowhere"),
        ("{ groups = [] }", "no group"),
        ("{ groups = [\"main\"], tables = 0 }", "tables"),
        ("{ from = 5, to = 5, groups = [\"main\"] }", "is empty"),
    ] {
        atlas.write_config(config(&stage, ranges));
        let (code, text) = check();
        assert_eq!(code, 1, "{ranges}: {text}");
        // With the line, whatever it is told of: the range, or the table that has it.
        let problem = text.lines().find(|line| line.contains("tables[0]"));
        let (place, problem) = problem
            .unwrap_or_else(|| panic!("{text}"))
            .split_once(": ")
            .unwrap();
        let line = place.rsplit(':').next().unwrap();
        assert!(
            line.parse::<u32>().is_ok() && problem.contains(told),
            "{ranges}: {text}"
        );
        let refusals = |log: &str| log.matches("refused, nothing has changed").count();
        let count = refusals(&atlas.log());
        atlas.signal("HUP");
        eventually("it is refused", || refusals(&atlas.log()) > count);
        assert_eq!(rules(&atlas), before);
    }
    atlas.write_config(config(
        &stage,
        "{ to = 1000, groups = [\"main\", \"s1\"] }, { from = 1000, groups = [\"s1\"] }",
    ));
    assert_eq!(check().0, 0);
    atlas.signal("HUP");
    atlas.wait_log("version 2");
}

/// What is refused says which table and which key; a rule lists by account too, and a rule that only notes lets one find out.
#[test]
fn b12_reads_of_all_shards_are_for_those_that_are_listed() {
    for bed in Bed::both() {
        let rules = "[[rules]]\nname = \"reports\"\nmatch = { user = \"app\", kind = \"read\" }\naction = \"allow\"\n";
        let stage = Stage::listed(&bed, rules);
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let sql = "SELECT amt FROM ord WHERE amt < 5";
        let (code, state, text) = client.query(sql).error().unwrap();
        assert_eq!((code, state.as_str()), (1105, "HY000"));
        let named = format!("a read of {}.ord without its shard key uid", stage.schema);
        assert!(
            text.contains(&named) && text.contains("`action = \"allow\"`"),
            "{text}"
        );
        let mut listed = Wire::connect(stage.atlas.address(), &Login::app().schema(&stage.schema));
        let mut rows = listed.query(sql).rows();
        let mut wanted = direct.query(sql).rows();
        rows.sort();
        wanted.sort();
        assert_eq!(rows, wanted);
        // A write of all shards is none of that.
        assert_eq!(
            listed.query("DELETE FROM ord WHERE amt < 5").error_code(),
            1105
        );
    }
}

/// Clients that offer either plugin, first or when asked, and accounts of the servers of every plugin: each reaches all groups.
#[test]
fn b20_either_plugin_on_both_sides_of_every_group() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let own = match bed.kind {
            Kind::MariaDb => Login::new("ed", "ed-pw"),
            Kind::MySql => Login::new("sha", "sha-pw"),
        };
        let mut root = bed.root(Node::Primary);
        let mut second = bed.root(Node::Second);
        for first in ["caching_sha2_password", "mysql_native_password"] {
            let atlas = Atlas::start(
                config(&stage, EVEN_ODD).server(&format!("auth_plugin = \"{first}\"")),
            );
            for login in [Login::plain(), Login::app(), own.clone()] {
                for server in [&mut root, &mut second] {
                    let on = format!("{}%", stage.schema);
                    server.ok(&format!("GRANT SELECT ON `{on}`.* TO '{}'@'%'", login.user));
                }
                for plugin in ["caching_sha2_password", "mysql_native_password"] {
                    // The second log-in of an account takes the short way.
                    for _ in 0..2 {
                        let login = login.clone().schema(&stage.schema).plugin(plugin);
                        let mut wire = Wire::connect(atlas.address(), &login);
                        assert_eq!(
                            wire.query("SELECT amt FROM ord WHERE uid IN (1, 2)")
                                .rows()
                                .len(),
                            2
                        );
                    }
                }
                let wrong = Login::new(&login.user, "wrong");
                let refused = Wire::try_connect(atlas.address(), &wrong).expect_err("it is wrong");
                assert!(
                    matches!(refused, Refused::Error { code: 1045, .. }),
                    "{refused:?}"
                );
            }
        }
    }
}
