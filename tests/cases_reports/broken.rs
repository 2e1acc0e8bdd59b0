//! Reports about servers that say nonsense, say it out of turn, or die in the middle of it. No real server does that on demand, so these
//! are played by a script.

use std::net::SocketAddr;
use std::time::Duration;

use ::atlas::wire::{Capabilities, Status};

use super::common::{
    Arrival, Atlas, Ended, Expect, Login, Part, Scripted, ScriptedRole, Talk, Wire, eventually,
    frame,
};

/// Atlas in front of servers that are played.
pub(crate) fn atlas(primary: &Scripted, replicas: &[&Scripted]) -> Atlas {
    atlas_with(primary, replicas, "")
}

pub(crate) fn atlas_with(primary: &Scripted, replicas: &[&Scripted], more: &str) -> Atlas {
    let replicas: Vec<String> = replicas
        .iter()
        .map(|replica| format!("{{ address = \"{}\" }}", replica.address()))
        .collect();
    Atlas::start(format!(
        "[server]\nlisten = [\"{{listen}}\"]\nworkers = 1\n[[groups]]\nname = \"main\"\nprimary = \"{}\"\nreplicas = [{}]\n\
         primary_wait = \"500ms\"\n[[users]]\nname = \"u\"\npassword = \"p\"\n{more}\n",
        primary.address(),
        replicas.join(", ")
    ))
}

pub(crate) fn client(address: SocketAddr) -> Wire {
    client_with(address, Login::USUAL)
}

pub(crate) fn client_with(address: SocketAddr, capabilities: Capabilities) -> Wire {
    let login = Login {
        capabilities,
        ..Login::new("u", "p")
    };
    Wire::connect(address, &login)
}

/// Answers every statement by a row with its own text.
pub(crate) fn echo(talk: &mut Talk<'_>, arrival: &Arrival) {
    talk.rows(&["sql"], &[&[&arrival.sql()]]);
}

pub(crate) const WITHOUT_EOF: Capabilities = Login::USUAL;
pub(crate) const WITH_EOF: Capabilities = Login::USUAL.without(Capabilities::DEPRECATE_EOF);

#[test]
fn b054_a_server_with_autocommit_off_is_told_at_most_once() {
    let role = ScriptedRole {
        status: Status::NONE,
        ..ScriptedRole::default()
    };
    let script = |talk: &mut Talk<'_>, arrival: &Arrival| match arrival
        .sql()
        .to_ascii_lowercase()
        .as_str()
    {
        "set autocommit=0" => talk.ok_with(Status::NONE),
        "set autocommit=1" | "set autocommit = 1" => talk.ok_with(Status::AUTOCOMMIT),
        _ => talk.rows(&["1"], &[&["1"]]),
    };
    let primary = Scripted::start_as(role.clone(), script);
    let replica = Scripted::start_as(role, script);
    let atlas = atlas(&primary, &[&replica]);
    let mut client = client(atlas.address());
    client.set_timeout(Duration::from_secs(1));
    client.ok("SET autocommit=0");
    assert_eq!(client.query("SELECT 1").cell(), "1");
    assert_eq!(client.query("SELECT 1").cell(), "1");
    let is_set = |sql: &String| sql.to_ascii_lowercase().contains("autocommit");
    assert_eq!(
        primary
            .statements()
            .iter()
            .filter(|sql| is_set(sql))
            .count(),
        1
    );
    assert!(!replica.statements().iter().any(is_set));
}

#[test]
fn b158_a_connection_left_in_the_middle_of_a_reply_is_not_used_again() {
    let more = Status::AUTOCOMMIT | Status::MORE_RESULTS;
    let primary = Scripted::start(move |talk, arrival| {
        if arrival.sql().starts_with("CALL") {
            talk.columns(&["a"]);
            talk.row(&["1"]);
            talk.end_of_rows(more);
            // The trailing OK comes when nobody asks for it any more.
            std::thread::sleep(Duration::from_millis(100));
            talk.ok();
        } else {
            echo(talk, arrival);
        }
    });
    let atlas = atlas(&primary, &[]);
    let mut leaver = client(atlas.address());
    let payload = leaver.query_payload(b"CALL p()");
    leaver.send(&payload);
    for _ in 0..4 {
        leaver.try_packet().expect("the first result");
    }
    drop(leaver);
    let mut next = client(atlas.address());
    assert_eq!(next.query("SELECT 42").cell(), "SELECT 42");
    let arrivals = primary.arrivals();
    let of = |text: &str| {
        arrivals
            .iter()
            .find(|arrival| arrival.sql().starts_with(text))
            .expect("it came")
            .connection
    };
    assert_ne!(of("CALL"), of("SELECT 42"));
    eventually("the old connection is closed", || {
        primary.is_closed(of("CALL"))
    });
}

/// What no server sends. Each is the whole answer to a statement, in raw bytes; the client must get one error, or its end.
fn nonsense(capabilities: Capabilities) -> Vec<(&'static str, Vec<u8>)> {
    let eof: &[u8] = &[0xfe, 0, 0, 2, 0];
    let has_eof = !capabilities.contains(Capabilities::DEPRECATE_EOF);
    let packets = |payloads: &[&[u8]]| {
        let mut bytes = Vec::new();
        for (seq, payload) in (1..).zip(payloads) {
            bytes.extend(frame(seq, payload));
        }
        bytes
    };
    let definition: &[u8] = b"\x03def\0\0\0\x01a\x01a\x0c-\0\0\x01\0\0\xfd\0\0\0\0\0";
    // Behind a row.
    let result = |last: &[u8]| {
        let mut payloads: Vec<&[u8]> = vec![&[1], definition];
        if has_eof {
            payloads.push(eof);
        }
        payloads.extend([&b"\x01x"[..], last]);
        packets(&payloads)
    };
    vec![
        ("a NULL for a count", packets(&[&[0xfb]])),
        ("ERR without a code", packets(&[&[0xff]])),
        ("half a code", packets(&[&[0xff, 0x10]])),
        ("a length longer than its packet", packets(&[&[0xfc, 1]])),
        (
            "2^60 columns",
            packets(&[&[0xfe, 0, 0, 0, 0, 0, 0, 0, 0x10]]),
        ),
        ("1,000,000 columns", packets(&[&[0xfd, 0x40, 0x42, 0x0f]])),
        ("no columns at all", packets(&[&[0xfc, 0, 0]])),
        ("OK of one byte", packets(&[&[0x00]])),
        ("OK without flags", packets(&[&[0x00, 0, 0]])),
        (
            "OK with a broken count",
            packets(&[&[0x00, 0xfe, 1, 2, 3, 4, 5, 6]]),
        ),
        ("an empty packet", packets(&[&[]])),
        ("an end of rows of nothing", result(&[0xfe])),
        ("an end of rows cut short", result(&[0xfe, 0, 0])),
        ("an error of nothing behind a row", result(&[0xff])),
        (
            "a count with a tail of bytes",
            packets(&[&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]]),
        ),
    ]
}

#[test]
fn b169_nonsense_of_a_server_ends_that_connection_only() {
    let script = |talk: &mut Talk<'_>, arrival: &Arrival| {
        let sql = arrival.sql();
        let replies = nonsense(talk.capabilities);
        match replies.iter().find(|(what, _)| sql.contains(what)) {
            Some((_, bytes)) => talk.raw(bytes),
            None => echo(talk, arrival),
        }
    };
    let primary = Scripted::start(script);
    let replica = Scripted::start(script);
    let atlas = atlas(&primary, &[&replica]);
    let mut steady = client(atlas.address());
    let check = |what: &str,
                 capabilities: Capabilities,
                 sql: &str,
                 server: &Scripted,
                 steady: &mut Wire| {
        let mut victim = client_with(atlas.address(), capabilities);
        victim.set_timeout(Duration::from_secs(3));
        let reply = victim.try_query(sql);
        match &reply {
            Ok(reply) => assert!(reply.error().is_some(), "{what}: {reply:?}"),
            Err(Ended::Closed { .. } | Ended::Reset) => {}
            Err(other) => panic!("{what}: {other:?}"),
        }
        let connection = server.arrivals().last().expect("it arrived").connection;
        eventually(what, || server.is_closed(connection));
        // The client itself may go on if it was told; then on another connection.
        if reply.is_ok() {
            match victim.try_query("SELECT 'next'") {
                Ok(reply) => assert_eq!(reply.cell(), "SELECT 'next'", "{what}"),
                Err(ended) => assert!(!matches!(ended, Ended::Timeout), "{what}: {ended:?}"),
            }
        }
        assert_eq!(steady.query("SELECT 'steady'").cell(), "SELECT 'steady'");
        assert_eq!(steady.query("INSERT 'steady'").cell(), "INSERT 'steady'");
    };
    for (what, _) in nonsense(WITHOUT_EOF) {
        for capabilities in [WITHOUT_EOF, WITH_EOF] {
            check(
                what,
                capabilities,
                &format!("INSERT INTO t VALUES ('{what}')"),
                &primary,
                &mut steady,
            );
            check(
                what,
                capabilities,
                &format!("SELECT '{what}'"),
                &replica,
                &mut steady,
            );
        }
    }
    assert!(!atlas.log().contains("panic"), "{}", atlas.log());
}

/// Sequence ids are counted by everyone who reads the protocol; a proxy that passes on a wrong one has its client hang up on it.
#[test]
fn b169_sequence_ids_that_jump() {
    let primary = Scripted::start(|talk, arrival| {
        if arrival.sql().contains("jump") {
            talk.seq = 7;
            talk.ok();
        } else {
            echo(talk, arrival);
        }
    });
    let atlas = atlas(&primary, &[]);
    let mut steady = client(atlas.address());
    let mut victim = client(atlas.address());
    let payload = victim.query_payload(b"INSERT 'jump'");
    victim.send(&payload);
    // Passed on as it is (the client sees what it would see on a direct connection), or told.
    let packet = victim.try_packet();
    assert!(
        packet.is_ok() || matches!(packet, Err(Ended::Closed { .. })),
        "{packet:?}"
    );
    assert_eq!(steady.query("SELECT 1").cell(), "SELECT 1");
}

#[test]
fn b172_a_word_out_of_turn_ends_the_connection_before_it_is_used() {
    let servers: Vec<Scripted> = (0..2).map(|_| Scripted::start(echo)).collect();
    let atlas = atlas(&servers[0], &[&servers[1]]);
    let farewell = frame(0, b"\xff\x87\x07#70100Connection was killed");
    for (sql, server) in [("SELECT 1", &servers[1]), ("INSERT 1", &servers[0])] {
        for closes in [true, false] {
            let mut client = client(atlas.address());
            assert_eq!(client.query(sql).cell(), sql);
            let connection = server.arrivals().last().expect("it arrived").connection;
            server.interrupt(connection, Some(&farewell));
            if closes {
                server.interrupt(connection, None);
            }
            eventually("the stale connection is thrown away", || {
                server.is_closed(connection)
            });
            // A normal answer, numbered from 1 on: `query` looks at the numbers.
            assert_eq!(client.query(sql).cell(), sql);
            assert_ne!(
                server.arrivals().last().expect("it arrived").connection,
                connection
            );
        }
    }
}

#[test]
fn b172_a_transaction_whose_connection_goes_is_not_taken_up_by_another() {
    let in_transaction = Status::AUTOCOMMIT | Status::IN_TRANS;
    let primary = Scripted::start(move |talk, arrival| {
        if arrival.sql() == "BEGIN" {
            talk.ok_with(in_transaction)
        } else {
            echo(talk, arrival)
        }
    });
    let atlas = atlas(&primary, &[]);
    let mut client = client(atlas.address());
    client.ok("BEGIN");
    let connection = primary.arrivals()[0].connection;
    primary.interrupt(connection, None);
    let after = client.try_query("INSERT 1");
    assert!(
        !matches!(&after, Ok(reply) if reply.error().is_none()),
        "{after:?}"
    );
    assert_eq!(primary.statements(), ["BEGIN"]);
}

#[test]
fn b278_a_request_for_a_file_that_no_statement_explains_is_cut_off() {
    let request = |talk: &mut Talk<'_>, arrival: &Arrival| {
        if arrival.sql().contains("loot") {
            talk.packet(b"\xfb/etc/passwd");
            if let Some(file) = talk.hear() {
                talk.rows(&["loot"], &[&[&String::from_utf8_lossy(&file)]]);
            }
        } else {
            echo(talk, arrival);
        }
    };
    let (primary, replica) = (Scripted::start(request), Scripted::start(request));
    let atlas = atlas(&primary, &[&replica]);
    for sql in [
        "SELECT 'loot'",
        "SHOW TABLES LIKE 'loot'",
        "BEGIN /* loot */",
        "SELECT 'loot' FOR UPDATE",
        "SET @loot = 1",
    ] {
        let mut client = client(atlas.address());
        let reply = client.try_query(sql);
        match reply {
            Ok(reply) => {
                assert!(
                    reply
                        .packets
                        .iter()
                        .all(|packet| packet.part != Part::FileRequest),
                    "{sql}"
                );
                assert!(reply.error().is_some(), "{sql}: {reply:?}");
            }
            Err(ended) => assert!(
                matches!(ended, Ended::Closed { .. } | Ended::Reset),
                "{sql}: {ended:?}"
            ),
        }
    }
    // And to a client that has said that it hands out no files, not even for LOAD DATA LOCAL.
    let mut client = client_with(
        atlas.address(),
        Login::USUAL.without(Capabilities::LOCAL_FILES),
    );
    let reply = client.try_query("LOAD DATA LOCAL INFILE 'loot' INTO TABLE t");
    assert!(
        !matches!(&reply, Ok(reply) if reply.last().part == Part::FileRequest),
        "{reply:?}"
    );
    assert!(
        !primary
            .arrivals()
            .iter()
            .any(|arrival| arrival.payload.starts_with(b"root:"))
    );
}

#[test]
fn b176_tracking_that_a_server_lacks_is_not_offered() {
    let without = ScriptedRole {
        capabilities: ScriptedRole::default()
            .capabilities
            .without(Capabilities::SESSION_TRACK),
        ..ScriptedRole::default()
    };
    let primary = Scripted::start(echo);
    let replica = Scripted::start_as(without, echo);
    let atlas = atlas(&primary, &[&replica]);
    let mut client = client(atlas.address());
    assert!(!client.offered.contains(Capabilities::SESSION_TRACK));
    let payload = client.query_payload(b"SELECT 1");
    client.send(&payload);
    client.reply(Expect::Text).assert_ok();
}
