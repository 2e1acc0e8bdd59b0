//! The action `mirror`: what is copied where, what is not, what is counted, and that clients notice nothing of it. Where a copy ran is
//! told by the general log of the servers that it goes to.

use std::time::{Duration, Instant};

use super::common::{
    Atlas, Bed, Config, Entry, Kind, Login, Marks, Node, Schema, Scripted, Wire, config_for,
    eventually, http_get, http_of,
};
use super::{reload, rule, shown, viewer, with_admin};

const MIRROR: &str = "match = { regex = \"mirrored\" }\naction = \"mirror\"\nto = \"next\"";

/// A group `next` at that address, and the accounts in `main`.
pub(super) fn with_next(config: Config, address: std::net::SocketAddr, rules: &[String]) -> Config {
    with_admin(config)
        .server("http_listen = \"127.0.0.1:0\"")
        .all_users("group = \"main\"")
        .append(&format!(
            "[[groups]]\nname = \"next\"\nprimary = \"{address}\""
        ))
        .append(&rules.join("\n"))
}

/// What is counted of the first rule: copies, those that differ, failed, dropped, skipped.
pub(super) fn counts(viewer: &mut Wire) -> [u64; 5] {
    let row = &shown(viewer, "SHOW RULES")[0];
    [12, 13, 14, 15, 16].map(|at: usize| row[at].parse().expect("a number"))
}

/// Threads that run copies.
fn threads(atlas: &Atlas) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", atlas.pid())).expect("a process");
    let names = tasks.flatten().map(|task| {
        // One that has ended meanwhile has no name.
        std::fs::read_to_string(task.path().join("comm")).unwrap_or_default()
    });
    names.filter(|name| name == "mirror\n").count()
}

/// The schema, on the second server too.
pub(super) struct Both<'b> {
    bed: &'b Bed,
    schema: Schema,
}

impl<'b> Both<'b> {
    pub(super) fn on(bed: &'b Bed) -> Self {
        let schema = bed.schema();
        let mut main = bed.root(Node::Primary);
        let mut next = bed.root(Node::Second);
        next.ok(&format!("CREATE DATABASE {schema}"));
        for (server, rows) in [(&mut main, "(1), (2), (3)"), (&mut next, "(1), (2)")] {
            for sql in [
                "CREATE TABLE {s}.t(a INT PRIMARY KEY, b VARCHAR(400))",
                "INSERT INTO {s}.t(a) VALUES (1), (2), (3)",
                "CREATE TABLE {s}.u(a INT)",
                &format!("INSERT INTO {{s}}.u VALUES {rows}"),
            ] {
                server.ok(&sql.replace("{s}", schema.name()));
            }
        }
        main.ok(&format!("CREATE TABLE {schema}.here(a INT)"));
        bed.wait_replicas();
        Self { bed, schema }
    }

    pub(super) fn client(&self, atlas: &Atlas) -> Wire {
        Wire::connect(atlas.address(), &Login::app().schema(&self.schema))
    }
}

impl Both<'_> {
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl Drop for Both<'_> {
    fn drop(&mut self) {
        if let Ok(mut root) = Wire::try_connect(self.bed.address(Node::Second), &Login::root()) {
            let _ = root.try_query(&format!("DROP DATABASE IF EXISTS {}", self.schema));
        }
    }
}

fn on_next(marks: &Marks, tag: &str) -> Vec<Entry> {
    let entries = marks.entries(Node::Second).into_iter();
    entries.filter(|entry| entry.text.contains(tag)).collect()
}

#[test]
fn reads_are_copied_and_compared() {
    for bed in Bed::both() {
        let both = Both::on(&bed);
        let sampled = rule(
            "some",
            "match = { regex = \"sampled\" }\naction = \"mirror\"\nto = \"next\"\nsample = 10",
        );
        let rules = [rule("all", MIRROR), sampled];
        let atlas = Atlas::start(with_next(
            config_for(&bed),
            bed.address(Node::Second),
            &rules,
        ));
        let marks = bed.marks();
        let mut client = both.client(&atlas);
        let mut viewer = viewer(&atlas);
        // As texts and prepared, in the schema and in the state of the session.
        client.ok("SELECT a, 'mirrored-text' FROM t");
        let prepared =
            client.prepare("SELECT a, 'mirrored-prepared' FROM t WHERE a = ? AND ? = 'x'");
        client.execute(&prepared, &[2.into(), "it's".into()]);
        client.ok("SET sql_mode = 'ANSI_QUOTES', @mine = 3");
        client.ok("SELECT \"a\", 'mirrored-state' FROM t WHERE a = @mine");
        // One with another outcome there, and one that fails.
        client.ok("SELECT a, 'mirrored-rows' FROM u");
        client.ok("SELECT a, 'mirrored-error' FROM here");
        // The same error is no difference.
        let broken = client.query("SELECT nothing, 'mirrored-broken' FROM t");
        assert_eq!(broken.error().map(|(code, ..)| code), Some(1054));
        eventually("six are copied", || counts(&mut viewer) == [5, 1, 1, 0, 0]);
        for (tag, wanted) in [
            ("mirrored-text", "SELECT a, 'mirrored-text' FROM t"),
            (
                "mirrored-state",
                "SELECT \"a\", 'mirrored-state' FROM t WHERE a = @mine",
            ),
            ("mirrored-rows", "SELECT a, 'mirrored-rows' FROM u"),
        ] {
            let found = on_next(&marks, tag);
            assert_eq!(found.len(), 1, "{tag}: {found:?}");
            assert_eq!(found[0].text, wanted);
        }
        let found = on_next(&marks, "mirrored-prepared");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].command, "Query");
        assert!(found[0].text.contains("WHERE a = 2 AND 'it"), "{found:?}");
        // What the client got came from its own servers.
        assert!(marks.nodes("mirrored-text").len() == 2);

        // Not what has a meaning of its own where it runs, nor writes, nor what the rule is not about.
        client.ok("SET sql_mode = ''");
        client.ok("BEGIN");
        client.ok("SELECT 'mirrored-transaction' FROM t");
        client.ok("COMMIT");
        client.ok("INSERT INTO t VALUES (4, 'mirrored-write')");
        client.ok("SELECT 'mirrored-lock' FROM t WHERE a = 1 FOR UPDATE");
        client.ok("CREATE TEMPORARY TABLE own(a INT)");
        client.ok("SELECT 'mirrored-temporary' FROM own");
        client.ok("SELECT 'other' FROM t");
        eventually("the others are skipped", || {
            counts(&mut viewer) == [5, 1, 1, 0, 4]
        });
        for tag in ["-transaction", "-write", "-lock", "-temporary", "'other'"] {
            assert_eq!(on_next(&marks, tag), [], "{tag}");
        }

        let mut other = both.client(&atlas);
        for n in 0..1000 {
            other.ok(&format!("SELECT {n}, 'sampled' FROM t WHERE a = 1"));
        }
        let of_some = |viewer: &mut Wire| {
            let row = &shown(viewer, "SHOW RULES")[1];
            [12, 13, 14, 15].map(|at: usize| row[at].parse::<usize>().expect("a number"))
        };
        eventually("a share is copied", || {
            on_next(&marks, "'sampled'").len() == of_some(&mut viewer)[0]
                && (60..=140).contains(&of_some(&mut viewer)[0])
        });
        assert_eq!(of_some(&mut viewer)[1..], [0, 0, 0]);
        assert_eq!(
            shown(&mut viewer, "SHOW RULES")[1][7],
            "mirror 10 of 100 to next"
        );

        let (_, metrics) = http_get(http_of(&atlas.log()).expect("a port"), "/metrics");
        for line in [
            "atlas_mirrored_total{rule=\"all\",outcome=\"same\"} 4",
            "atlas_mirrored_total{rule=\"all\",outcome=\"differs\"} 1",
            "atlas_mirrored_total{rule=\"all\",outcome=\"failed\"} 1",
            "atlas_mirrored_total{rule=\"all\",outcome=\"skipped\"} 4",
        ] {
            assert!(metrics.contains(line), "{line}\n{metrics}");
        }
        // What came out otherwise is told, without its literals.
        let log = atlas.log();
        let told: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("rule \"all\": a copy came out otherwise: "))
            .collect();
        assert!(!told.is_empty(), "{log}");
        assert!(
            told.iter().all(|line| !line.contains("mirrored")),
            "{told:?}"
        );
    }
}

#[test]
fn writes_are_copied_when_asked() {
    for bed in Bed::both() {
        let both = Both::on(&bed);
        let rules = [rule(
            "all",
            "match = { regex = \"mirrored\" }\naction = \"mirror\"\nto = \"next\"\nwrites = true",
        )];
        let atlas = Atlas::start(with_next(
            config_for(&bed),
            bed.address(Node::Second),
            &rules,
        ));
        let marks = bed.marks();
        let mut client = both.client(&atlas);
        let insert = client.prepare("INSERT INTO t VALUES (?, CONCAT('mirrored', ?))");
        for n in 10..40 {
            client.execute(&insert, &[n.into(), n.into()]);
            client.ok(&format!(
                "UPDATE t SET b = CONCAT(b, '-{n}') WHERE b LIKE 'mirrored%'"
            ));
        }
        client.ok("DELETE FROM t WHERE b LIKE 'mirrored1%' AND a < 15");
        // What failed is not said again, nor what may be rolled back.
        let twice = client.query("INSERT INTO t VALUES (1, 'mirrored-twice')");
        assert_eq!(twice.error().map(|(code, ..)| code), Some(1062));
        client.ok("BEGIN");
        client.ok("INSERT INTO t VALUES (50, 'mirrored-transaction')");
        client.ok("ROLLBACK");
        let mut viewer = viewer(&atlas);
        eventually("61 are copied", || counts(&mut viewer) == [61, 0, 0, 0, 2]);
        assert_eq!(on_next(&marks, "mirrored-twice"), []);
        assert_eq!(on_next(&marks, "mirrored-transaction"), []);
        let sum = format!(
            "SELECT COUNT(*), SUM(CRC32(CONCAT(a, IFNULL(b, '')))) FROM {}.t",
            both.schema
        );
        let rows = |node| bed.root(node).ok(&sum).rows();
        assert_eq!(rows(Node::Primary), rows(Node::Second));
    }
}

/// A server that hangs, or is not there, is nothing that clients notice; and no more waits for it than may.
#[test]
fn nobody_waits_for_a_copy() {
    let bed = Bed::of(Kind::MySql);
    let both = Both::on(&bed);
    let hung = Scripted::start(|talk, arrival| {
        if arrival.sql().contains("mirrored") {
            while talk.hear().is_some() {}
        } else {
            talk.ok();
        }
    });
    let slow = rule("slow", &format!("{MIRROR}\ntimeout = \"1h\""));
    let config = |address, rules: &[String]| with_next(config_for(&bed), address, rules);
    let atlas = Atlas::start(config(hung.address(), &[slow]));
    let mut client = both.client(&atlas);
    let mut viewer = viewer(&atlas);
    let copied = |hung: &Scripted| {
        let statements = hung.statements().into_iter();
        statements.filter(|sql| sql.contains("mirrored")).count()
    };
    for n in 0..4 {
        client.ok(&format!("SELECT {n}, 'mirrored' FROM t"));
    }
    eventually("each of the four threads waits", || copied(&hung) == 4);
    let before = atlas.memory_kib("VmRSS");
    let padding = "x".repeat(2000);
    for n in 0..3000 {
        client.ok(&format!(
            "SELECT {n}, 'mirrored {padding}' FROM t WHERE a = 1"
        ));
    }
    assert_eq!(counts(&mut viewer), [0, 0, 0, 3000 - 1024, 0]);
    assert_eq!(copied(&hung), 4);
    let grown = atlas.memory_kib("VmRSS").saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB");
    // A server that is not there.
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = nowhere.local_addr().expect("bound");
    drop(nowhere);
    let dead = rule("dead", MIRROR);
    reload(&atlas, config(address, &[dead]));
    let begun = Instant::now();
    for n in 0..200 {
        client.ok(&format!("SELECT {n}, 'mirrored' FROM t"));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    eventually("they have failed", || counts(&mut viewer)[2] == 200);
    // A rule that is gone leaves no thread behind, but for copies that still run.
    reload(&atlas, config(address, &[rule("none", "action = \"log\"")]));
    eventually("its threads are gone", || threads(&atlas) == 4);
}
