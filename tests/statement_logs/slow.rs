//! The slow log: its grammar as `pt-query-digest` has it, what is in it, and that it goes on in another file.

use std::collections::HashMap;

use super::common::{Atlas, Bed, Login, Node, Param, Wire, config_for, eventually};

/// An entry as `pt-query-digest` takes it (SlowLogParser): the pairs of its comment lines and settings, and the statement.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) pairs: HashMap<String, String>,
    pub(crate) sql: String,
}

/// Reads a slow log: entries end with `;` before a line that begins with `#`.
pub(crate) fn parse(text: &str) -> Vec<Slow> {
    let entries = text.split(";\n#").filter(|entry| !entry.trim().is_empty());
    entries.map(parse_entry).collect()
}

fn parse_entry(entry: &str) -> Slow {
    let entry = format!("#{}", entry.trim_start_matches('#'));
    let mut pairs = HashMap::new();
    let mut rest = entry.as_str();
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some(time) = line.strip_prefix("# Time: ") {
            let is_time = time.len() >= 19
                && time[..19]
                    .chars()
                    .all(|c| c.is_ascii_digit() || "-: T".contains(c));
            assert!(is_time, "{line}");
            pairs.insert("ts".to_owned(), time.to_owned());
        } else if let Some(who) = line.strip_prefix("# User@Host: ") {
            let (user, at) = who.split_once('[').expect(line);
            let (_, at) = at.split_once("] @ ").expect(line);
            let (host, at) = at.split_once(" [").expect(line);
            let (ip, id) = at.split_once("]").expect(line);
            let id = id.trim().strip_prefix("Id:").expect(line).trim();
            for (name, value) in [
                ("user", user),
                ("host", host),
                ("ip", ip),
                ("Thread_id", id),
            ] {
                pairs.insert(name.to_owned(), value.to_owned());
            }
        } else if let Some(list) = line.strip_prefix("# ") {
            let words: Vec<&str> = list.split_whitespace().collect();
            for pair in words.chunks(2) {
                let [name, value] = pair else {
                    panic!("no pairs: {line}");
                };
                let name = name.strip_suffix(':').expect(line);
                assert!(name.starts_with(char::is_uppercase), "{line}");
                pairs.insert(name.to_owned(), (*value).to_owned());
            }
        } else if let Some(schema) = line.strip_prefix("use ") {
            pairs.insert("db".to_owned(), schema.trim_end_matches(';').to_owned());
        } else if let Some(stamp) = line.strip_prefix("SET timestamp=") {
            pairs.insert(
                "timestamp".to_owned(),
                stamp.trim_end_matches(';').to_owned(),
            );
        } else {
            let sql = rest.trim_end().trim_end_matches(';').to_owned();
            return Slow { pairs, sql };
        }
        rest = after;
    }
}

fn log_of(atlas: &Atlas, name: &str) -> Vec<Slow> {
    let text = std::fs::read(atlas.dir().join(name)).unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

fn find(atlas: &Atlas, name: &str, tag: &str) -> Slow {
    let mut found = None;
    eventually(&format!("the slow log has {tag}"), || {
        found = log_of(atlas, name)
            .into_iter()
            .find(|slow| slow.sql.contains(tag));
        found.is_some()
    });
    found.expect("found")
}

/// B43: by account, schema and label.
#[test]
fn what_takes_long_is_written_down() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        root.ok(&format!(
            "CREATE TABLE {schema}.t(a INT PRIMARY KEY, b VARCHAR(20))"
        ));
        root.ok(&format!("INSERT INTO {schema}.t VALUES (1, 'x'), (2, 'y')"));
        bed.wait_replicas();
        let config = config_for(&bed)
            .all_users("labels = { business = \"web shop\", team = \"t1\" }")
            .append(
                "[log]\ntext_max = \"256B\"\nslow = { file = \"slow.log\", threshold = \"200ms\" }",
            );
        let atlas = Atlas::start(config);
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
        client.ok("SELECT 'fast one'");
        client.ok("SELECT a, SLEEP(0.15), '\n# Time: 1'\n# a comment\n, 'slow read' FROM t");
        client.ok("UPDATE t SET b = SLEEP(0.3), a = a /* slow write */ WHERE a = 1");
        let (code, ..) = client
            .query("INSERT INTO t SELECT a, SLEEP(0.3) /* slow error */ FROM t WHERE a = 1")
            .error()
            .expect("it is there");
        assert_eq!(code, 1062);
        let prepared = client.prepare("SELECT SLEEP(?), ?, b, 'prepared' FROM t WHERE a = ?");
        client.execute(
            &prepared,
            &[
                Param::Double(0.3),
                Param::Text("it's".to_owned()),
                Param::Int(2),
            ],
        );
        client.ok(&format!(
            "SELECT SLEEP(0.3), 'long', '{}'",
            "x".repeat(1000)
        ));
        client.ok("SELECT SLEEP(0.3) AS password, 'Secr3t'");

        let read = find(&atlas, "slow.log", "'slow read'");
        let seconds: f64 = read.pairs["Query_time"].parse().expect("a number");
        assert!((0.3..5.0).contains(&seconds), "{read:?}");
        for (name, value) in [
            ("user", "plain"),
            ("ip", "127.0.0.1"),
            ("Rows_sent", "2"),
            ("Lock_time", "0.000000"),
            ("Rows_examined", "0"),
            ("Schema", schema.name()),
            ("db", schema.name()),
            ("Last_errno", "0"),
            ("Route", "replica"),
            ("Reason", "plain-read"),
            ("Group", "main"),
            ("Kind", "read"),
            ("Label_business", "web_shop"),
            ("Label_team", "t1"),
        ] {
            assert_eq!(read.pairs[name], value, "{name} {read:?}");
        }
        // Which server it was says the server.
        let replica = Node::REPLICAS
            .into_iter()
            .find(|node| bed.address(*node).to_string() == read.pairs["Server"])
            .expect("a replica");
        assert!(bed.address(replica) != bed.address(Node::Primary));
        assert_eq!(
            read.sql,
            "SELECT a, SLEEP(0.15), '\n # Time: 1'\n # a comment\n, 'slow read' FROM t"
        );
        let write = find(&atlas, "slow.log", "slow write");
        let affected = &write.pairs["Rows_affected"];
        assert_eq!(
            (affected.as_str(), write.pairs["Route"].as_str()),
            ("1", "primary")
        );
        assert_eq!(
            write.pairs["Server"],
            bed.address(Node::Primary).to_string()
        );
        let error = find(&atlas, "slow.log", "slow error");
        assert_eq!(error.pairs["Last_errno"], "1062");
        let executed = find(&atlas, "slow.log", "prepared");
        assert_eq!(
            executed.sql,
            "SELECT SLEEP(3e-1), 'it''s', b, 'prepared' FROM t WHERE a = 2"
        );
        let long = find(&atlas, "slow.log", "'long'");
        assert!(
            long.sql.len() < 320 && long.sql.contains("/* cut: the statement has 1029 bytes */"),
            "{long:?}"
        );
        assert_eq!(long.pairs["Statement_bytes"], "1029");
        find(&atlas, "slow.log", "as password, ?");
        let text = std::fs::read_to_string(atlas.dir().join("slow.log")).expect("the log");
        assert!(
            !text.contains("fast one") && !text.contains("Secr3t"),
            "{text}"
        );
        // A statement that was written down can be said to a server as it is.
        let mut direct = Wire::connect(bed.address(Node::Primary), &Login::plain().schema(&schema));
        direct.ok(&executed.sql);
    }
}

/// HUP has the file opened again, also where another one has come in its place; nothing is lost or torn meanwhile.
#[test]
fn it_goes_on_in_another_file() {
    let bed = Bed::mariadb();
    let config =
        config_for(&bed).append("[log]\nslow = { file = \"slow.log\", threshold = \"0s\" }");
    let atlas = Atlas::start(config);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let (atlas, stop) = (&atlas, &stop);
                scope.spawn(move || {
                    let mut client = Wire::connect(atlas.address(), &Login::plain());
                    let mut said = 0_u64;
                    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                        client.ok(&format!("SELECT 'tag {n}-{said}'"));
                        said += 1;
                    }
                    said
                })
            })
            .collect();
        for round in 0..10 {
            let reloads = |log: &str| log.matches("reload (signal): ").count();
            let before = reloads(&atlas.log());
            let moved = atlas.dir().join(format!("slow.log.{round}"));
            std::fs::rename(atlas.dir().join("slow.log"), moved).expect("moved");
            atlas.signal("HUP");
            eventually("it has been opened again", || {
                reloads(&atlas.log()) > before && atlas.dir().join("slow.log").exists()
            });
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect::<Vec<_>>()
    });
    let all = || {
        let rounds = (0..10).map(|round| format!("slow.log.{round}"));
        let names = rounds.chain(["slow.log".to_owned()]);
        names
            .flat_map(|name| log_of(&atlas, &name))
            .collect::<Vec<_>>()
    };
    let wanted: u64 = said.iter().sum();
    eventually("everything is written", || all().len() as u64 >= wanted);
    let mut counts: HashMap<String, u32> = HashMap::new();
    for slow in all() {
        *counts.entry(slow.sql).or_default() += 1;
    }
    for (n, said) in said.iter().enumerate() {
        for at in 0..*said {
            assert_eq!(counts.get(&format!("SELECT 'tag {n}-{at}'")), Some(&1));
        }
    }
}
