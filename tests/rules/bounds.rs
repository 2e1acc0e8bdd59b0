//! `limits.statement_timeout`, the rule action `timeout`, and `limits.result_rows`: statements that are ended on their servers, of which
//! the session and its server connection survive.

use std::time::{Duration, Instant};

use atlas::wire::Capabilities;

use super::common::{
    self, Atlas, Bed, Config, Expect, Kind, Login, Node, Reply, Schema, Wire, config_for,
    eventually,
};
use super::{rule, shown, viewer, with_admin};

/// Far longer than a test may take: who waits for it has not been ended.
const LONG: &str = "SLEEP(3600)";
const TIMEOUT: Duration = Duration::from_secs(1);

/// An account `hasty` whose statements may run for 1 s and one `brief` whose results may have 100 rows.
fn config(bed: &Bed) -> Config {
    let backend = "backend = { user = \"app\", password = \"app-pw\" }";
    with_admin(config_for(bed))
        .user(
            "hasty",
            "pw",
            &["limits = { statement_timeout = \"1s\" }", backend],
        )
        .user("brief", "pw", &["limits = { result_rows = 100 }", backend])
}

fn client(atlas: &Atlas, name: &str, schema: &Schema) -> Wire {
    let login = Login::new(name, "pw").schema(schema);
    Wire::connect(atlas.address(), &login.with(Capabilities::MULTI_STATEMENTS))
}

fn table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!(
        "CREATE TABLE {schema}.t(a INT PRIMARY KEY, b INT)"
    ));
    root.ok(&format!(
        "INSERT INTO {schema}.t VALUES (1, 1), (2, 2), (3, 3)"
    ));
    bed.wait_replicas();
    schema
}

/// The error of a server's own limit, with what Atlas has to say.
fn assert_timed_out(bed: &Bed, reply: &Reply, limit: &str) {
    let words = match bed.kind {
        Kind::MySql => (
            3024,
            "HY000",
            "Query execution was interrupted, maximum statement execution time exceeded",
        ),
        Kind::MariaDb => (
            1969,
            "70100",
            "Query execution was interrupted (max_statement_time exceeded)",
        ),
    };
    let (code, state, text) = reply.error().expect("it is ended");
    assert_eq!((code, state.as_str()), (words.0, words.1), "{text}");
    assert_eq!(text, format!("{}: {limit}", words.2));
}

const HASTY: &str = "1s, limits.statement_timeout of account \"hasty\"";

/// What runs on all servers with this word in it.
fn running(bed: &Bed, word: &str) -> usize {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Sleep' AND info LIKE '%{word}%' AND info NOT LIKE '%processlist%'"
    );
    let nodes = [Node::Primary, Node::REPLICAS[0], Node::REPLICAS[1]];
    let count = |node| {
        bed.root(node)
            .query(&sql)
            .cell()
            .parse::<usize>()
            .expect("a number")
    };
    nodes.into_iter().map(count).sum()
}

#[test]
fn a_statement_is_ended_after_its_time() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        let mut hasty = client(&atlas, "hasty", &schema);
        // On a replica, on the primary, in rows that have begun to come.
        let wide = format!(
            "SELECT a, REPEAT('x', 100000) AS mine_{schema}, IF(a = 2, SLEEP(3600), 0) FROM t ORDER BY a"
        );
        for sql in [
            format!("SELECT {LONG}, 'mine_{schema}'"),
            format!("/*master*/ SELECT {LONG}, 'mine_{schema}'"),
            format!("SELECT {LONG}, 'mine_{schema}' FROM (SELECT 1 UNION SELECT 2) x"),
            wide,
        ] {
            let begun = Instant::now();
            let reply = hasty.query(&sql);
            assert!(begun.elapsed() >= TIMEOUT, "{sql}");
            assert_timed_out(&bed, &reply, HASTY);
            eventually("nothing of it runs", || {
                running(&bed, &format!("mine_{schema}")) == 0
            });
            // In time it is answered as ever.
            assert_eq!(hasty.query("SELECT a FROM t WHERE a = 2").cell(), "2");
        }
        // Others have as long as they like.
        let mut app = Wire::connect(atlas.address(), &Login::app());
        assert_eq!(app.query("SELECT SLEEP(1.5)").cell(), "0");
    }
}

/// The session stays where it is: in its transaction, with its locks and variables, on its server connection.
#[test]
fn the_session_goes_on() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        let mut hasty = client(&atlas, "hasty", &schema);
        let mut locker = bed.root(Node::Primary);
        locker.ok("BEGIN");
        locker.ok(&format!("UPDATE {schema}.t SET b = 9 WHERE a = 3"));
        hasty.ok("SET @mine = 'kept'");
        hasty.ok("BEGIN");
        hasty.ok("INSERT INTO t VALUES (4, 4)");
        let marks = bed.marks();
        hasty.ok("SELECT 'before' FROM t WHERE a = 4");
        for _ in 0..5 {
            let reply = hasty.query("UPDATE t SET b = 5 WHERE a = 3");
            assert_timed_out(&bed, &reply, HASTY);
            // What follows at once is not hit by what ended the one before.
            assert_eq!(hasty.query("SELECT b FROM t WHERE a = 4").cell(), "4");
        }
        hasty.ok("SELECT 'after' FROM t WHERE a = 4");
        let connection = |word: &str| {
            let found = marks.find(word);
            found.first().map(|(node, entry)| (*node, entry.connection))
        };
        assert!(connection("'before'").is_some());
        assert_eq!(connection("'before'"), connection("'after'"));
        assert_eq!(hasty.query("SELECT @mine").cell(), "kept");
        hasty.ok("COMMIT");
        locker.ok("ROLLBACK");
        let sql = format!("SELECT GROUP_CONCAT(a, b ORDER BY a) FROM {schema}.t");
        assert_eq!(bed.root(Node::Primary).query(&sql).cell(), "11,22,33,44");
    }
}

#[test]
fn prepared_statements_and_texts_of_several_have_their_time_too() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        let mut hasty = client(&atlas, "hasty", &schema);
        let statement = hasty.prepare("SELECT SLEEP(?), a FROM t WHERE a = 1");
        for _ in 0..2 {
            let reply = hasty.execute(&statement, &[3600.into()]);
            assert_timed_out(&bed, &reply, HASTY);
            let reply = hasty.execute(&statement, &[0.into()]);
            assert_eq!(reply.binary_rows().len(), 1);
        }
        // One text has one time. What was done before stays done, and what comes behind is not begun.
        let reply = hasty.query(&format!(
            "INSERT INTO t VALUES (7, 7); SELECT {LONG} FROM (SELECT 1 UNION SELECT 2) x; INSERT INTO t VALUES (8, 8)"
        ));
        assert_timed_out(&bed, &reply, HASTY);
        let sql = "/*master*/ SELECT COUNT(*) FROM t WHERE a > 6";
        assert_eq!(hasty.query(sql).cell(), "1");
        // MySQL has a SLEEP of its own return instead of failing, and goes on: each is ended.
        let reply = hasty.query(&format!("SELECT {LONG}; SELECT {LONG}; SELECT 3"));
        match bed.kind {
            Kind::MariaDb => assert_timed_out(&bed, &reply, HASTY),
            Kind::MySql => assert_eq!(reply.results().len(), 3, "{:?}", reply.error()),
        }
        hasty.ok("SELECT 1");
    }
}

/// A file that the client is slow to send takes the client's time, not the statement's.
#[test]
fn a_slow_file_is_waited_for() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        let login = Login::new("hasty", "pw").schema(&schema);
        let mut hasty = Wire::connect(atlas.address(), &login.with(Capabilities::LOCAL_FILES));
        let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ','";
        hasty.send(&hasty.query_payload(sql.as_bytes()));
        let request = hasty.reply(Expect::Text);
        assert_eq!(request.last().payload[0], 0xfb);
        std::thread::sleep(3 * TIMEOUT);
        let seq = request.last().seq.wrapping_add(1);
        hasty.send_as(seq, b"10,10\n");
        hasty.send_as(seq.wrapping_add(1), b"");
        let reply = hasty.try_reply_from(Expect::Text, seq.wrapping_add(2));
        let reply = reply.expect("an answer");
        assert_eq!(reply.affected_and_insert_id().0, 1, "{:?}", reply.error());
        // Once it has been sent the server has the same time as ever.
        let mut locker = bed.root(Node::Primary);
        locker.ok(&format!("LOCK TABLES {schema}.t WRITE"));
        let reply = hasty.query("UPDATE t SET b = 1 WHERE a = 10");
        assert_timed_out(&bed, &reply, HASTY);
        locker.ok("UNLOCK TABLES");
        hasty.ok("UPDATE t SET b = 1 WHERE a = 10");
    }
}

/// A rule's time counts in place of the account's, whichever is longer.
#[test]
fn a_rule_has_its_own_time() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let rules = rule(
            "reports take long",
            "match = { regex = \"report\" }\naction = \"timeout\"\ntimeout = \"0s\"",
        ) + &rule(
            "looks are short",
            "match = { regex = \"look\" }\naction = \"timeout\"\ntimeout = \"100ms\"",
        );
        let atlas = Atlas::start(config(&bed).append(&rules));
        let mut hasty = client(&atlas, "hasty", &schema);
        let mut app = Wire::connect(atlas.address(), &Login::app());
        assert_eq!(hasty.query("SELECT SLEEP(1.5) + 1 AS report").cell(), "1");
        for wire in [&mut hasty, &mut app] {
            let reply = wire.query(&format!("SELECT {LONG} AS look"));
            assert_timed_out(&bed, &reply, "100ms, rule \"looks are short\"");
            wire.ok("SELECT 1 AS look");
        }
        let statement = app.prepare("SELECT SLEEP(?) AS look");
        let reply = app.execute(&statement, &[3600.into()]);
        assert_timed_out(&bed, &reply, "100ms, rule \"looks are short\"");
    }
}

/// Operators see it: in the figures of the account, and as one event, however many statements it was.
#[test]
fn operators_are_told_of_what_was_ended() {
    let bed = Bed::of(Kind::MariaDb);
    let schema = table(&bed);
    let atlas = Atlas::start(config(&bed).server("http_listen = \"127.0.0.1:0\""));
    let mut hasty = client(&atlas, "hasty", &schema);
    let mut brief = client(&atlas, "brief", &schema);
    for _ in 0..3 {
        assert_eq!(hasty.query(&format!("SELECT {LONG}")).error_code(), 1969);
        assert_eq!(brief.query(&rows(101)).error_code(), 1105);
    }
    let address = common::http_of(&atlas.log()).expect("the log names the port");
    let figures = || common::http_get(address, "/metrics").1;
    for line in [
        "atlas_account_ended_total{account=\"hasty\",limit=\"statement_timeout\"} 3",
        "atlas_account_ended_total{account=\"hasty\",limit=\"result_rows\"} 0",
        "atlas_account_ended_total{account=\"brief\",limit=\"result_rows\"} 3",
        "atlas_account_errors_total{account=\"hasty\"} 3",
        "atlas_errors_total{code=\"1969\"} 3",
    ] {
        eventually(line, || figures().lines().any(|known| known == line));
    }
    let mut viewer = viewer(&atlas);
    let told = |viewer: &mut Wire, name: &str| {
        let events = shown(viewer, "SHOW EVENTS");
        let of_account = format!("account \"{name}\"");
        let is_it = |row: &&Vec<String>| row.iter().any(|cell| cell.contains(&of_account));
        events.iter().filter(is_it).count()
    };
    for name in ["hasty", "brief"] {
        eventually("it is told", || told(&mut viewer, name) > 0);
        assert_eq!(told(&mut viewer, name), 1, "{name}");
    }
}

/// A query for so many rows.
fn rows(count: usize) -> String {
    let digits = "(SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
    let from: Vec<String> = (0..9).map(|of| format!("{digits} d{of}")).collect();
    format!("SELECT d0.n FROM {} LIMIT {count}", from.join(", "))
}

const BRIEF: &str =
    "Proxy Warning - the result has more than 100 rows (limits.result_rows of account \"brief\")";

/// The rows before the error, and its text.
fn cut(reply: &Reply) -> (usize, String) {
    let (code, _, text) = reply.error().expect("it is ended");
    assert_eq!(code, 1105, "{text}");
    let columns = 1;
    let is_eof = |payload: &[u8]| payload.first() == Some(&0xfe) && payload.len() < 9;
    let packets = reply
        .packets
        .iter()
        .filter(|packet| !is_eof(&packet.payload));
    // The count, the definitions, and the error itself.
    (packets.count() - 1 - columns - 1, text)
}

#[test]
fn a_result_has_so_many_rows_and_no_more() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        for capabilities in [Capabilities::NONE, Capabilities::DEPRECATE_EOF] {
            let login = Login::new("brief", "pw").schema(&schema);
            let login = login
                .without(Capabilities::DEPRECATE_EOF)
                .with(capabilities);
            let mut brief = Wire::connect(atlas.address(), &login);
            let statement =
                brief.prepare(&rows(1_000_000_000).replace("LIMIT 1000000000", "LIMIT ?"));
            for master in ["", "/*master*/ "] {
                assert_eq!(
                    brief.query(&format!("{master}{}", rows(100))).rows().len(),
                    100
                );
                for count in [101, 1_000_000_000] {
                    let reply = brief.query(&format!("{master}{}", rows(count)));
                    assert_eq!(cut(&reply), (100, BRIEF.to_owned()), "{count}");
                    assert_eq!(brief.query("SELECT 42").cell(), "42");
                }
            }
            let reply = brief.execute(&statement, &[100.into()]);
            assert_eq!(reply.binary_rows().len(), 100);
            for count in [101, 1_000_000_000] {
                let reply = brief.execute(&statement, &[count.into()]);
                assert_eq!(cut(&reply), (100, BRIEF.to_owned()), "{count}");
            }
            assert_eq!(
                brief.execute(&statement, &[7.into()]).binary_rows().len(),
                7
            );
        }
    }
}

/// Nothing is left unread on the connection, which the session keeps: its transaction goes on, and after it others use the connection.
#[test]
fn nothing_is_left_unread() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let one = "[pool]\nmax_connections = 1\nmin_idle = 0";
        let atlas = Atlas::start(config(&bed).append(one));
        let mut brief = client(&atlas, "brief", &schema);
        let mut app = Wire::connect(atlas.address(), &Login::app().schema(&schema));
        for round in 0..4 {
            brief.ok("BEGIN");
            brief.ok(&format!("INSERT INTO t VALUES ({}, 0)", 100 + round));
            for count in [101, 20_000, 1_000_000_000] {
                let reply = brief.query(&rows(count));
                assert_eq!(cut(&reply).0, 100);
                let own = format!("SELECT a FROM t WHERE a = {}", 100 + round);
                assert_eq!(brief.query(&own).cell(), (100 + round).to_string());
            }
            brief.ok("COMMIT");
            assert_eq!(brief.query(&rows(101)).error_code(), 1105);
            assert_eq!(
                app.query(&format!("/*master*/ SELECT {round} + 42")).cell(),
                (round + 42).to_string()
            );
        }
        assert_eq!(app.query("/*master*/ SELECT COUNT(*) FROM t").cell(), "7");
    }
}

/// Each result of several has its rows; what a write has done is told, whatever rows it gives.
#[test]
fn results_are_counted_one_by_one() {
    for bed in Bed::both() {
        let schema = table(&bed);
        let atlas = Atlas::start(config(&bed));
        let mut brief = client(&atlas, "brief", &schema);
        let reply = brief.query(&format!("{}; {}; {}", rows(100), rows(60), rows(60)));
        assert_eq!(reply.results().len(), 3, "{:?}", reply.error());
        let reply = brief.query(&format!("{}; {}", rows(100), rows(1_000_000_000)));
        assert_eq!(reply.error().expect("it is ended").2, BRIEF);
        if bed.kind == Kind::MariaDb {
            let values: Vec<String> = (1000..1200).map(|n| format!("({n}, 0)")).collect();
            let values = values.join(", ");
            let reply = brief.query(&format!("INSERT INTO t VALUES {values} RETURNING a"));
            assert_eq!(reply.rows().len(), 200, "{:?}", reply.error());
        }
        brief.ok("SELECT 1");
    }
}
