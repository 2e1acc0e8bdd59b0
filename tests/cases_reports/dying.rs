//! Reports about servers that die, hang or are full, played by a script: what may be said again elsewhere, and what never.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::broken::{WITH_EOF, WITHOUT_EOF, atlas, atlas_with, client, client_with, echo};
use super::common::{Arrival, Login, Refused, Scripted, Talk, Wire};
use super::stage::table;

#[test]
fn b178_a_server_that_is_full_says_so_to_the_client() {
    let primary = Scripted::start(echo);
    let replica = Scripted::start(echo);
    // Where connections are shared the late would be served by those of the early.
    let atlas = atlas_with(&primary, &[&replica], "sharing = \"session\"");
    let mut early = client(atlas.address());
    assert_eq!(early.query("INSERT 1").cell(), "INSERT 1");
    primary.refuse(1040, "Too many connections");
    replica.refuse(1040, "Too many connections");
    let mut late = client(atlas.address());
    let started = Instant::now();
    for sql in ["INSERT 2", "SELECT 2"] {
        let (code, state, text) = late.query(sql).error().expect("the server is full");
        assert_eq!((code, state.as_str()), (1040, "08004"), "{text}");
    }
    let login = Login {
        schema: Some("s".to_owned()),
        ..Login::new("u", "p")
    };
    let refused = Wire::try_connect(atlas.address(), &login);
    assert!(
        matches!(refused, Err(Refused::Error { code: 1040, .. })),
        "{refused:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    // Who is in goes on.
    assert_eq!(early.query("INSERT 3").cell(), "INSERT 3");
}

/// A replica that dies at a given point of its answer to a SELECT.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    BeforeTheFirstByte,
    WithinTheFirstHeader,
    AfterTheColumns,
    AfterRow3,
    WithinARow,
    AfterTheLastRow,
}

fn dies(talk: &mut Talk<'_>, at: Death) {
    if at == Death::WithinTheFirstHeader {
        talk.raw(&[1, 0]);
    }
    if matches!(at, Death::BeforeTheFirstByte | Death::WithinTheFirstHeader) {
        return talk.close();
    }
    talk.columns(&["n"]);
    let rows = match at {
        Death::AfterTheColumns => 0,
        Death::AfterRow3 | Death::WithinARow => 3,
        _ => 10,
    };
    for n in 0..rows {
        talk.row(&[&n.to_string()]);
    }
    if at == Death::WithinARow {
        talk.raw(&[200, 0, 0, talk.seq, 199, b'x', b'x']);
    }
    talk.close();
}

#[test]
fn b194_a_read_moves_elsewhere_only_before_its_first_byte() {
    for at in [
        Death::BeforeTheFirstByte,
        Death::WithinTheFirstHeader,
        Death::AfterTheColumns,
        Death::AfterRow3,
        Death::WithinARow,
        Death::AfterTheLastRow,
    ] {
        for capabilities in [WITHOUT_EOF, WITH_EOF] {
            let primary = Scripted::start(echo);
            let script = move |talk: &mut Talk<'_>, _: &Arrival| dies(talk, at);
            let ten = |talk: &mut Talk<'_>, _: &Arrival| {
                let rows: Vec<String> = (0..10).map(|n| n.to_string()).collect();
                let rows: Vec<[&str; 1]> = rows.iter().map(|row| [row.as_str()]).collect();
                let rows: Vec<&[&str]> = rows.iter().map(|row| &row[..]).collect();
                talk.rows(&["n"], &rows);
            };
            let (bad, good) = (Scripted::start(script), Scripted::start(ten));
            let atlas = atlas(&primary, &[&bad, &good]);
            let mut told = 0;
            // Replicas take turns, so one of two comes to the dying one.
            for _ in 0..4 {
                let mut session = client_with(atlas.address(), capabilities);
                let before = bad.arrivals().len();
                let reply = session.try_query("SELECT n FROM t");
                let met_the_dying = bad.arrivals().len() > before;
                let moves = matches!(at, Death::BeforeTheFirstByte | Death::WithinTheFirstHeader);
                match reply {
                    Ok(reply) if reply.error().is_none() => {
                        assert_eq!(table(&reply).len(), 10, "{at:?}");
                        assert!(!met_the_dying || moves, "{at:?}: it looks whole");
                    }
                    Ok(reply) => {
                        assert!(met_the_dying && !moves, "{at:?}: {reply:?}");
                        assert_eq!(reply.error_code(), 1927, "{at:?}");
                        told += 1;
                        // The session goes on.
                        let _ = session.query("INSERT 1").cell();
                    }
                    Err(ended) => {
                        // In the middle of a row there is no place for an error.
                        assert!(
                            met_the_dying && at == Death::WithinARow,
                            "{at:?}: {ended:?}"
                        );
                        told += 1;
                    }
                }
            }
            let moves = matches!(at, Death::BeforeTheFirstByte | Death::WithinTheFirstHeader);
            assert!(
                !bad.arrivals().is_empty(),
                "{at:?}: the dying replica was never asked"
            );
            assert_eq!(told == 0, moves, "{at:?}");
            assert!(
                !primary
                    .statements()
                    .iter()
                    .any(|sql| sql.starts_with("SELECT")),
                "{at:?}"
            );
        }
    }
}

#[test]
fn b194_with_every_replica_dying_the_primary_answers() {
    let primary = Scripted::start(echo);
    let dying = || Scripted::start(|talk, _| talk.reset());
    let (first, second) = (dying(), dying());
    let atlas = atlas(&primary, &[&first, &second]);
    let mut session = client(atlas.address());
    assert_eq!(session.query("SELECT 1").cell(), "SELECT 1");
    assert_eq!(primary.statements(), ["SELECT 1"]);
}

#[test]
fn b195_a_write_whose_answer_was_lost_is_not_sent_again() {
    for sql in [
        "INSERT INTO u2(v) VALUES(1)",
        "UPDATE t SET v=v+1",
        "SELECT ff()",
        "COMMIT",
        "CALL p()",
        "SELECT v FROM t FOR UPDATE",
        "/*!50000 DELETE FROM t */",
    ] {
        let primary = Scripted::start(move |talk, arrival| {
            if arrival.sql() == sql {
                talk.reset()
            } else {
                echo(talk, arrival)
            }
        });
        let replica = Scripted::start(echo);
        let atlas = atlas(&primary, &[&replica]);
        let mut session = client(atlas.address());
        let reply = session.try_query(sql);
        assert!(
            !matches!(&reply, Ok(reply) if reply.error().is_none()),
            "{sql}: {reply:?}"
        );
        // Another one comes through, so what was to be sent again would have been by now.
        let mut other = client(atlas.address());
        assert_eq!(other.query("INSERT 'after'").cell(), "INSERT 'after'");
        assert_eq!(
            primary
                .statements()
                .iter()
                .filter(|text| *text == sql)
                .count(),
            1
        );
        assert!(replica.statements().is_empty(), "{sql}");
    }
}

#[test]
fn b195_nor_as_a_prepared_statement() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let primary = Scripted::start(move |talk, arrival| match arrival.payload[0] {
        // One statement without parameters or columns.
        0x16 => talk.packet(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        0x17 => {
            seen.fetch_add(1, Ordering::SeqCst);
            talk.reset();
        }
        _ => echo(talk, arrival),
    });
    let atlas = atlas(&primary, &[]);
    let mut session = client(atlas.address());
    let insert = session.prepare("INSERT INTO u2(v) VALUES(1)");
    let payload = session.execute_payload(insert.id, 0, &[], true);
    let reply = session.try_command(&payload);
    assert!(
        !matches!(&reply, Ok(reply) if reply.error().is_none()),
        "{reply:?}"
    );
    let mut other = client(atlas.address());
    other.query("INSERT 'after'").assert_ok();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn b196_a_replica_that_says_nothing_holds_nobody_up() {
    let primary = Scripted::start(echo);
    let (mute, good) = (Scripted::start(echo), Scripted::start(echo));
    let atlas = atlas_with(
        &primary,
        &[&mute, &good],
        "[pool]\nconnect_timeout = \"300ms\"",
    );
    mute.fall_silent();
    let started = Instant::now();
    for _ in 0..4 {
        let mut session = client(atlas.address());
        assert_eq!(session.query("SELECT 1").cell(), "SELECT 1");
    }
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert!(
        !primary
            .statements()
            .iter()
            .any(|sql| sql.starts_with("SELECT"))
    );
    assert_eq!(good.statements().len(), 4);
}
