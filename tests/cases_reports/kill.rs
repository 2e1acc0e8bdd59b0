//! Reports about KILL, in each of its forms, and about statements that were killed.

use std::net::TcpListener;
use std::time::Duration;

use super::common::{
    Atlas, Bed, Ended, Expect, Login, Node, Wire, config_for, eventually, http_get, http_of,
};
use super::stage::{Stage, table};

#[test]
fn b156_a_killed_statement_is_told_once() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for (sql, on) in [
            ("SELECT SLEEP(50)", None),
            ("SELECT SLEEP(51) FROM t FOR UPDATE", Some(Node::Primary)),
        ] {
            let payload = client.query_payload(sql.as_bytes());
            client.send(&payload);
            let mut found = None;
            eventually("it runs", || {
                found = stage.trail().into_iter().find(|seen| seen.is(sql));
                found.is_some()
            });
            let seen = found.expect("it runs");
            assert!(on.is_none_or(|node| node == seen.node));
            stage
                .bed
                .root(seen.node)
                .ok(&format!("KILL QUERY {}", seen.entry.connection));
            let reply = client.reply(Expect::Text);
            // A sleep that is cut short may give 1 instead of an error.
            assert!(
                reply.error_code() == 1317 || table(&reply)[0] == "1",
                "{reply:?}"
            );
            assert_eq!(client.query("SELECT 7").cell(), "7");
            assert!(
                !stage.trail().iter().any(|seen| seen.is(sql)),
                "it ran again"
            );
        }
    }
}

/// Sends a statement and waits until it runs.
fn start(stage: &Stage, client: &mut Wire, sql: &str) {
    stage.trail();
    let payload = client.query_payload(sql.as_bytes());
    client.send(&payload);
    eventually(sql, || stage.trail().iter().any(|seen| seen.is(sql)));
}

#[test]
fn b162_kill_knows_the_ids_that_clients_were_told() {
    for stage in Stage::both() {
        let process_kill = |id: u32| [&[0x0c][..], &id.to_le_bytes()].concat();
        let mut killer = stage.client();
        // Another client, in the middle of a statement.
        let mut other = stage.client();
        start(&stage, &mut other, "SELECT SLEEP(60)");
        let id = other.id;
        if stage.is_mariadb() {
            killer.command(&process_kill(id)).assert_ok();
        } else {
            // MySQL 9 has the statement only.
            assert_eq!(killer.command(&process_kill(id)).error_code(), 1047);
            killer.ok(&format!("KILL {id}"));
        }
        let ended = other.try_reply(Expect::Text);
        assert!(
            matches!(&ended, Err(Ended::Closed { .. } | Ended::Reset))
                || matches!(&ended, Ok(reply) if reply.error().is_some()),
            "{ended:?}"
        );
        eventually("the sleep is gone", || {
            let rows = stage.root().query("SHOW PROCESSLIST").rows();
            let rest = |node| stage.bed.root(node).query("SHOW PROCESSLIST").rows();
            ![rows, rest(Node::Replica1), rest(Node::Replica2)]
                .concat()
                .iter()
                .any(|row| {
                    row[3].as_deref() == Some(stage.schema.name())
                        && row[7].as_deref() == Some("SELECT SLEEP(60)")
                })
        });
        // An idle one, by a statement.
        let mut idle = stage.client();
        idle.query("SELECT 1").assert_ok();
        killer.ok(&format!("KILL {}", idle.id));
        let after = idle.try_query("SELECT 1");
        assert!(
            !matches!(&after, Ok(reply) if reply.error().is_none()),
            "{after:?}"
        );
        // Only the statement of another.
        for sleep in ["SELECT SLEEP(60)", "SELECT SLEEP(60) FROM t FOR UPDATE"] {
            let mut busy = stage.client();
            start(&stage, &mut busy, sleep);
            killer.ok(&format!("KILL QUERY {}", busy.id));
            let reply = busy.reply(Expect::Text);
            assert!(
                reply.error_code() == 1317 || table(&reply)[0] == "1",
                "{reply:?}"
            );
            assert_eq!(busy.query("SELECT 7").cell(), "7");
        }
        // Nobody's id: the server's own words.
        let mut direct = stage.direct();
        for payload in [
            process_kill(99_999_999),
            b"\x03KILL 99999999".to_vec(),
            b"\x03KILL QUERY 99999999".to_vec(),
        ] {
            assert_eq!(
                killer.command(&payload).error(),
                direct.command(&payload).error()
            );
        }
        // One that was a client's.
        let of = |stage: &Stage, id: u32| {
            if stage.is_mariadb() {
                process_kill(id)
            } else {
                format!("\x03KILL {id}").into_bytes()
            }
        };
        assert_eq!(killer.command(&of(&stage, id)).error_code(), 1094);
        // One's own.
        let own = killer.id;
        let reply = killer.try_command(&of(&stage, own));
        match reply {
            Ok(reply) => assert!(matches!(reply.error_code(), 1927 | 1317), "{reply:?}"),
            Err(ended) => assert!(matches!(ended, Ended::Closed { .. } | Ended::Reset)),
        }
        assert!(killer.read_to_close().is_empty());
    }
}

/// A server lets an account without the right to do so end its own connections only.
#[test]
fn b162_clients_of_another_account_are_not_killed() {
    for stage in Stage::both() {
        let mut killer = stage.client();
        let mut other = stage.client_as(&Login::app().schema(&stage.schema));
        other.query("SELECT 1").assert_ok();
        let id = other.id;
        for payload in [
            format!("\x03KILL {id}").into_bytes(),
            format!("\x03KILL QUERY {id}").into_bytes(),
            [&[0x0c][..], &id.to_le_bytes()].concat(),
        ] {
            if payload[0] == 0x0c && !stage.is_mariadb() {
                // MySQL 9 has the statement only.
                assert_eq!(killer.command(&payload).error_code(), 1047);
                continue;
            }
            let (code, state, text) = killer.command(&payload).error().expect("not its own");
            assert_eq!((code, state.as_str()), (1095, "HY000"), "{text}");
            assert_eq!(text, format!("You are not owner of thread {id}"));
        }
        assert_eq!(other.query("SELECT 1").cell(), "1");
    }
}

/// Whoever kills a connection wants its statement to end, not to begin anew on another server. A server that dies is another matter.
#[test]
fn b094_a_statement_killed_with_its_connection_is_not_started_again() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for sql in ["SELECT SLEEP(100)", "SELECT SLEEP(100) FROM t FOR UPDATE"] {
            start(&stage, &mut client, sql);
            // A while: one that is cut at once may not have arrived.
            std::thread::sleep(Duration::from_millis(300));
            let rows = |node| stage.bed.root(node).query("SHOW PROCESSLIST").rows();
            let (node, id) = Node::ALL
                .iter()
                .flat_map(|node| rows(*node).into_iter().map(|row| (*node, row)))
                .find(|(_, row)| {
                    row[3].as_deref() == Some(stage.schema.name()) && row[7].as_deref() == Some(sql)
                })
                .map(|(node, row)| (node, row[0].clone().expect("an id")))
                .expect("it runs");
            stage.bed.root(node).ok(&format!("KILL {id}"));
            let reply = client.try_reply(Expect::Text);
            match &reply {
                Ok(reply) => assert!(matches!(reply.error_code(), 1927 | 1317), "{reply:?}"),
                Err(ended) => assert!(
                    matches!(ended, Ended::Closed { .. } | Ended::Reset),
                    "{ended:?}"
                ),
            }
            assert!(
                !stage.trail().iter().any(|seen| seen.is(sql)),
                "it ran again"
            );
            if node != Node::Primary {
                assert_eq!(client.query("SELECT 7").cell(), "7");
            }
        }
    }
}

/// A statement that waits for a connection, or for a primary, has not begun: KILL QUERY ends it all the same, and its place in the line.
#[test]
fn b156_a_statement_that_waits_is_killed() {
    let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"1h\"";
    for bed in Bed::both() {
        let config = config_for(&bed).server("http_listen = \"127.0.0.1:0\"");
        let atlas = Atlas::start(config.clone().append(pool));
        let http = http_of(&atlas.log()).expect("the log names the port");
        let client = || Wire::connect(atlas.address(), &Login::plain());
        let (mut holder, mut killer) = (client(), client());
        holder.ok("BEGIN");
        for sql in ["SELECT 1 /*master*/", "DO 1"] {
            let mut waiting = client();
            let payload = waiting.query_payload(sql.as_bytes());
            waiting.send(&payload);
            let role = "role=\"primary\",state=\"waiting\"} 1";
            eventually("it stands in the line", || {
                http_get(http, "/metrics").1.contains(role)
            });
            killer.ok(&format!("KILL QUERY {}", waiting.id));
            assert_eq!(waiting.reply(Expect::Text).error_code(), 1317, "{sql}");
            assert!(!http_get(http, "/metrics").1.contains(role));
            holder.ok("COMMIT");
            assert_eq!(waiting.query("SELECT 7 /*master*/").cell(), "7");
            holder.ok("BEGIN");
        }
        // Nobody is the primary: what is at that address hears nothing.
        let gone = TcpListener::bind("127.0.0.1:0").expect("bind");
        let primary = gone.local_addr().expect("an address");
        drop(gone);
        let text = String::from(config.group("primary_wait = \"1h\"")).replace(
            &bed.address(Node::Primary).to_string(),
            &primary.to_string(),
        );
        let atlas = Atlas::start(text);
        let client = || Wire::connect(atlas.address(), &Login::plain());
        let (mut waiting, mut killer) = (client(), client());
        for sql in ["DO 1", "BEGIN"] {
            let payload = waiting.query_payload(sql.as_bytes());
            waiting.send(&payload);
            // A KILL that comes before the statement does is for nothing, as on a server.
            let mut code = None;
            while code.is_none() {
                killer.ok(&format!("KILL QUERY {}", waiting.id));
                if waiting.speaks_within(Duration::from_millis(100)) {
                    code = Some(waiting.reply(Expect::Text).error_code());
                }
            }
            assert_eq!(code, Some(1317), "{sql}");
        }
    }
}

/// A block whose first result has come is cut: what has come is not sent again, and the block does not begin anew.
#[test]
fn b204_a_block_that_is_cut_does_not_begin_again() {
    let stage = Stage::both().into_iter().find(Stage::is_mariadb);
    let stage = stage.expect("one of the two");
    let mut client = stage.client();
    let sql = "BEGIN NOT ATOMIC SELECT 1; SELECT SLEEP(50); SELECT 2; END";
    let payload = client.query_payload(sql.as_bytes());
    client.send(&payload);
    let find = || {
        let rows = stage.root().query("SHOW PROCESSLIST").rows();
        let mut rows = rows.into_iter();
        rows.find(|row| {
            row[3].as_deref() == Some(stage.schema.name())
                && row[7]
                    .as_deref()
                    .is_some_and(|text| text.contains("SLEEP(50)"))
        })
    };
    let mut found = None;
    eventually("it sleeps", || {
        found = find();
        found.is_some()
    });
    stage.trail();
    let id = found.and_then(|row| row[0].clone()).expect("an id");
    stage.root().ok(&format!("KILL {id}"));
    let ended = client.try_reply(Expect::Text);
    if let Ok(reply) = &ended {
        assert!(matches!(reply.error_code(), 1927 | 1317), "{reply:?}");
        let ones = reply
            .packets
            .iter()
            .filter(|packet| packet.payload == b"\x011");
        assert_eq!(ones.count(), 1, "{reply:?}");
    }
    assert!(
        !stage
            .trail()
            .iter()
            .any(|seen| seen.entry.text.contains("SLEEP(50)")),
        "it ran again"
    );
}
