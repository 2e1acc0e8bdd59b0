//! What brings a session's state to a connection and the command behind it: a read that a replica answers leaves with it, unanswered;
//! a write waits. Servers that answer late, or refuse, are played by a script.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Arrival, Atlas, Login, Scripted, Talk, Wire, eventually};

fn atlas(primary: &Scripted, replica: &Scripted, account: &str) -> Atlas {
    Atlas::start(format!(
        "[server]\nlisten = [\"{{listen}}\"]\nworkers = 1\n[pool]\nmin_idle = 0\nmax_connections = 1\n\
         [[groups]]\nname = \"main\"\nprimary = \"{}\"\nreplicas = [{{ address = \"{}\" }}]\n\
         [[users]]\nname = \"u\"\npassword = \"p\"\n{account}\n",
        primary.address(),
        replica.address(),
    ))
}

fn client(atlas: &Atlas) -> Wire {
    Wire::connect(atlas.address(), &Login::new("u", "p"))
}

/// Answers every statement by a row with its own text, and a SET by OK.
fn echo(talk: &mut Talk<'_>, arrival: &Arrival) {
    let sql = arrival.sql();
    if sql.starts_with("SET ") || sql.is_empty() {
        talk.ok();
    } else {
        talk.rows(&["sql"], &[&[&sql]]);
    }
}

fn is_zone(arrival: &Arrival) -> bool {
    let sql = arrival.sql();
    sql.starts_with("SET ") && sql.contains("time_zone = '+03:00'")
}

/// Takes up the read that has arrived behind the present command, before that is answered.
fn next_read(talk: &mut Talk<'_>) -> String {
    let read = talk.hear().expect("the read has left with the state");
    String::from_utf8_lossy(&read[1..]).into_owned()
}

#[test]
fn a_read_leaves_with_the_state_that_it_needs() {
    let primary = Scripted::start(echo);
    let replica = Scripted::start(|talk, arrival| {
        if !is_zone(arrival) {
            return echo(talk, arrival);
        }
        let read = next_read(talk);
        talk.ok();
        talk.seq = 1;
        talk.rows(&["sql"], &[&[&read, "behind"]]);
    });
    let atlas = atlas(&primary, &replica, "");
    let (mut client, mut other) = (client(&atlas), client(&atlas));
    assert_eq!(client.query("SELECT 1").cell(), "SELECT 1");
    client.ok("SET time_zone = '+03:00'");
    for n in 2..5 {
        let read = format!("SELECT {n}");
        assert_eq!(client.query(&read).cell(), read);
        // It is the other's in between, in the state that it began with.
        assert_eq!(other.query("SELECT 9").cell(), "SELECT 9");
    }
}

#[test]
fn the_answer_of_a_read_in_a_wrong_state_is_thrown_away() {
    let refuses = |talk: &mut Talk<'_>, arrival: &Arrival| {
        if !is_zone(arrival) {
            return echo(talk, arrival);
        }
        next_read(talk);
        talk.error(1298, "Unknown or incorrect time zone");
        talk.seq = 1;
        talk.rows(&["sql"], &[&["in a wrong state"]]);
    };
    for (account, falls_back) in [("", true), ("read_from = \"replica-only\"", false)] {
        let (primary, replica) = (Scripted::start(echo), Scripted::start(refuses));
        let atlas = atlas(&primary, &replica, account);
        let mut client = client(&atlas);
        assert_eq!(client.query("SELECT 1").cell(), "SELECT 1");
        client.ok("SET time_zone = '+03:00'");
        let connection = replica.arrivals().last().expect("a read").connection;
        let reply = client.query("SELECT 2");
        if falls_back {
            assert_eq!(reply.cell(), "SELECT 2");
            assert!(primary.statements().contains(&"SELECT 2".to_owned()));
        } else {
            assert_eq!(reply.error_code(), 1298);
        }
        eventually("the connection is given up", || {
            replica.is_closed(connection)
        });
        // Nothing of it is left to be taken for an answer.
        client.ok("SET time_zone = DEFAULT");
        assert_eq!(client.query("SELECT 3").cell(), "SELECT 3");
    }
}

/// A KILL QUERY that meets the state ahead of a read: whoever said it would not have the read run elsewhere instead.
#[test]
fn a_read_whose_state_is_interrupted_ends() {
    let refuses = |talk: &mut Talk<'_>, arrival: &Arrival| {
        if !is_zone(arrival) {
            return echo(talk, arrival);
        }
        next_read(talk);
        talk.error(1317, "Query execution was interrupted");
        talk.seq = 1;
        talk.rows(&["sql"], &[&["in a wrong state"]]);
    };
    for account in ["", "read_from = \"replica-only\""] {
        let (primary, replica) = (Scripted::start(echo), Scripted::start(refuses));
        let atlas = atlas(&primary, &replica, account);
        let mut client = client(&atlas);
        assert_eq!(client.query("SELECT 1").cell(), "SELECT 1");
        client.ok("SET time_zone = '+03:00'");
        assert_eq!(client.query("SELECT 2").error_code(), 1317);
        for server in [&primary, &replica] {
            let seen = server.statements();
            assert!(!seen.contains(&"SELECT 2".to_owned()), "{seen:?}");
        }
        client.ok("SET time_zone = DEFAULT");
        assert_eq!(client.query("SELECT 3").cell(), "SELECT 3");
    }
}

#[test]
fn a_write_waits_for_the_state() {
    let said = AtomicUsize::new(0);
    let primary = Scripted::start(move |talk, arrival| {
        // The first is the client's own statement.
        if is_zone(arrival) && said.fetch_add(1, Ordering::Relaxed) > 0 {
            return talk.error(1298, "Unknown or incorrect time zone");
        }
        echo(talk, arrival);
    });
    let replica = Scripted::start(echo);
    let atlas = atlas(&primary, &replica, "");
    let (mut client, mut other) = (client(&atlas), client(&atlas));
    client.ok("SET time_zone = '+03:00'");
    assert_eq!(other.query("INSERT 1").cell(), "INSERT 1");
    assert_eq!(client.query("INSERT 2").error_code(), 1298);
    assert_eq!(other.query("INSERT 3").cell(), "INSERT 3");
    let statements = primary.statements();
    assert!(
        !statements.contains(&"INSERT 2".to_owned()),
        "{statements:?}"
    );
}
