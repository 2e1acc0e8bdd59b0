//! The audit log: who came and went, who was refused, what was said and what came of it; and which part of that is asked for.

use super::common::{Atlas, Bed, Login, Node, Param, Wire, config_for, eventually};

/// A line of the log, by its keys. The lines are flat but for the labels.
#[derive(Debug, Clone)]
pub(crate) struct Line(pub(crate) serde_json::Value);

impl Line {
    pub(crate) fn text(&self, key: &str) -> &str {
        self.0
            .get(key)
            .and_then(|value| value.as_str())
            .unwrap_or("")
    }

    pub(crate) fn number(&self, key: &str) -> i64 {
        self.0
            .get(key)
            .and_then(serde_json::Value::as_i64)
            .unwrap_or(-1)
    }

    fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some()
    }
}

pub(crate) fn lines(atlas: &Atlas, name: &str) -> Vec<Line> {
    let text = std::fs::read_to_string(atlas.dir().join(name)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| {
            Line(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        })
        .collect()
}

fn find(atlas: &Atlas, what: impl Fn(&Line) -> bool, name: &str) -> Line {
    let mut found = None;
    eventually(&format!("the audit log has {name}"), || {
        found = lines(atlas, "audit.log").into_iter().find(&what);
        found.is_some()
    });
    found.expect("found")
}

fn of(atlas: &Atlas, tag: &str) -> Line {
    find(atlas, |line| line.text("statement").contains(tag), tag)
}

/// Commands that are no statements and change what statements mean: another schema, a fresh session, another account.
#[test]
fn commands_are_written_down() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let atlas =
            Atlas::start(config_for(&bed).append("[log]\naudit = { file = \"audit.log\" }\n"));
        let mut client = Wire::connect(atlas.address(), &Login::plain());
        let init = |name: &str| [b"\x02", name.as_bytes()].concat();
        assert!(client.command(&init(schema.name())).error().is_none());
        assert_eq!(client.ok("SELECT DATABASE()").cell(), schema.name());
        let nowhere = client.command(&init("no`where"));
        let (code, ..) = nowhere.error().expect("there is none");
        assert!(client.command(b"\x1f").error().is_none());
        client.change_user(&Login::app()).expect("let in");
        assert_eq!(client.ok("SELECT 1").cell(), "1");
        // One that has no server connection to reset.
        assert!(client.command(b"\x1f").error().is_none());
        client.quit();
        let gone = |line: &Line| line.text("event") == "log-out";
        find(&atlas, gone, "the log-out");
        let said: Vec<String> = lines(&atlas, "audit.log")
            .iter()
            .map(|line| match line.text("event") {
                "statement" => format!("{} {}", line.text("statement"), line.number("error")),
                event => format!("{event} {}", line.text("account")),
            })
            .collect();
        assert_eq!(
            said,
            [
                "log-in plain".to_owned(),
                format!("USE `{schema}` 0"),
                "SELECT DATABASE() 0".to_owned(),
                format!("USE `no``where` {code}"),
                "session-reset plain".to_owned(),
                "log-in app".to_owned(),
                "SELECT 1 0".to_owned(),
                "session-reset app".to_owned(),
                "log-out app".to_owned(),
            ]
        );
        let used = of(&atlas, &format!("USE `{schema}`"));
        for (key, value) in [("kind", "use"), ("route", "primary"), ("reason", "set")] {
            assert_eq!(used.text(key), value, "{key}: {used:?}");
        }
    }
}

/// B47, A25: who, when, what, where, and with what outcome.
#[test]
fn everything_is_written_down() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        root.ok(&format!(
            "CREATE TABLE {schema}.t(a INT PRIMARY KEY, b VARCHAR(20))"
        ));
        bed.wait_replicas();
        let config = config_for(&bed)
            .all_users("labels = { business = \"shop\" }")
            .append("[log]\naudit = { file = \"audit.log\" }\n[[rules]]\nname = \"no\"\nmatch = { regex = \"forbidden\" }\naction = \"reject\"\n");
        let atlas = Atlas::start(config);
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
        let id: i64 = client
            .ok("SELECT CONNECTION_ID()")
            .cell()
            .parse()
            .expect("an id");
        client.ok("INSERT INTO t VALUES (1, 'one'), (2, 'two')");
        client.ok("BEGIN");
        client.ok("SELECT b, 'in it' FROM t");
        client.ok("COMMIT");
        // What is executed next is read from a replica.
        bed.wait_replicas();
        client
            .query("SELECT nothing FROM nowhere /* broken */")
            .error()
            .expect("no table");
        client
            .query("SELECT 1, 'forbidden'")
            .error()
            .expect("the rule");
        client.query("SHOW LAST ROUTE").rows();
        let prepared = client.prepare("SELECT b, 'executed' FROM t WHERE a = ? OR b = ?");
        client.execute(&prepared, &[Param::Int(2), Param::Null]);
        client
            .command(b"\x16SELECT forbidden FROM t")
            .error()
            .expect("the rule");
        client
            .command(b"\x16SELECT broken preparation")
            .error()
            .expect("no column");
        client.quit();
        let refused = Wire::try_connect(atlas.address(), &Login::new("plain", "wrong"));
        refused.expect_err("a wrong password");
        let refused = Wire::try_connect(atlas.address(), &Login::new("nobody", "x"));
        refused.expect_err("nobody");

        let insert = of(&atlas, "INSERT INTO t");
        for (key, value) in [
            ("event", "statement"),
            ("account", "plain"),
            ("client", "127.0.0.1"),
            ("schema", schema.name()),
            ("kind", "write"),
            ("statement", "INSERT INTO t VALUES (1, 'one'), (2, 'two')"),
            ("route", "primary"),
            ("group", "main"),
        ] {
            assert_eq!(insert.text(key), value, "{key}: {insert:?}");
        }
        assert_eq!(
            insert.text("server"),
            bed.address(Node::Primary).to_string()
        );
        assert_eq!(insert.0["labels"]["business"], "shop");
        for (key, value) in [
            ("connection", id),
            ("affected", 2),
            ("rows", 0),
            ("error", 0),
        ] {
            assert_eq!(insert.number(key), value, "{key}: {insert:?}");
        }
        assert!(insert.0["milliseconds"].as_f64().expect("a number") > 0.0);
        assert_eq!(insert.text("digest").len(), 16);
        let read = of(&atlas, "'in it'");
        assert_eq!(
            (read.text("reason"), read.number("rows")),
            ("in-transaction", 2)
        );
        assert!(!read.has("affected"));
        assert_eq!(of(&atlas, "/* broken */").number("error"), 1146);
        let ruled = of(&atlas, "'forbidden'");
        assert_eq!(
            (ruled.number("error"), ruled.text("route")),
            (1105, "atlas")
        );
        assert_eq!(of(&atlas, "SHOW LAST ROUTE").text("route"), "atlas");
        let executed = of(&atlas, "'executed'");
        assert_eq!(
            executed.text("statement"),
            "SELECT b, 'executed' FROM t WHERE a = 2 OR b = NULL"
        );
        assert_eq!(executed.number("rows"), 1);
        assert_eq!(of(&atlas, "SELECT forbidden").number("error"), 1105);
        assert_eq!(of(&atlas, "broken preparation").number("error"), 1054);

        let came = find(&atlas, |line| line.text("event") == "log-in", "the log-in");
        assert_eq!(
            (came.number("connection"), came.text("schema")),
            (id, schema.name())
        );
        let went = |line: &Line| line.text("event") == "log-out" && line.number("connection") == id;
        find(&atlas, went, "the log-out");
        for account in ["plain", "nobody"] {
            let is_it = |line: &Line| {
                line.text("event") == "log-in-refused" && line.text("account") == account
            };
            let refused = find(&atlas, is_it, account);
            assert_eq!(
                (refused.number("error"), refused.text("client")),
                (1045, "127.0.0.1")
            );
        }
        // In the order in which they happened, each once.
        let said: Vec<String> = lines(&atlas, "audit.log")
            .iter()
            .filter(|line| line.number("connection") == id)
            .map(|line| match line.text("event") {
                "statement" => line.text("kind").to_owned(),
                event => event.to_owned(),
            })
            .collect();
        assert_eq!(
            said,
            [
                "log-in",
                "read",
                "write",
                "begin",
                "read",
                "commit",
                "read",
                "read",
                "show-last-route",
                "read",
                "read",
                "prepare",
                "log-out"
            ]
        );
    }
}

/// A client that goes while its statement runs is written down with it.
#[test]
fn what_was_not_answered_is_written_down() {
    let bed = Bed::mysql();
    let atlas = Atlas::start(config_for(&bed).append("[log]\naudit = { file = \"audit.log\" }"));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    let payload = client.query_payload(b"SELECT SLEEP(30) /* left alone */");
    let marks = bed.marks();
    client.send(&payload);
    eventually("it runs", || !marks.find("left alone").is_empty());
    drop(client);
    let line = of(&atlas, "left alone");
    assert_eq!(line.0["aborted"], true, "{line:?}");
}

#[test]
fn what_is_asked_for_is_written_down() {
    let bed = Bed::mariadb();
    let schema = bed.schema();
    bed.root(Node::Primary)
        .ok(&format!("CREATE TABLE {schema}.t(a INT)"));
    bed.wait_replicas();
    for (lines_of_it, wanted) in [
        (
            "statements = \"write\"",
            vec!["INSERT INTO t VALUES (7)", "SELECT a FROM t FOR UPDATE"],
        ),
        ("statements = \"errors\"", vec!["SELECT nothing"]),
        ("statements = \"none\"", vec![]),
        (
            "text = \"masked\"",
            vec![
                "select ?",
                "insert into t values (?)",
                "select a from t for update",
                "select nothing",
            ],
        ),
        ("text = \"none\"", vec!["", "", "", ""]),
    ] {
        let audit = format!("[log]\naudit = {{ file = \"audit.log\", {lines_of_it} }}");
        let atlas = Atlas::start(config_for(&bed).append(&audit));
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
        client.ok("SELECT 7");
        client.ok("INSERT INTO t VALUES (7)");
        client.ok("SELECT a FROM t FOR UPDATE");
        client.query("SELECT nothing").error().expect("no column");
        client.quit();
        find(
            &atlas,
            |line| line.text("event") == "log-out",
            "the log-out",
        );
        let said: Vec<String> = lines(&atlas, "audit.log")
            .iter()
            .filter(|line| line.text("event") == "statement")
            .map(|line| line.text("statement").to_owned())
            .collect();
        assert_eq!(said, wanted, "{lines_of_it}");
    }
}
