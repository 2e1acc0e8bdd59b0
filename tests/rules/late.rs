//! A KILL QUERY that a server is told and answers late, or never: it must not end the session's next statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas::wire::Status;

use super::common::{Arrival, Atlas, Login, Scripted, Talk, Wire, eventually};

/// What a scripted server and its test tell each other.
#[derive(Default)]
struct Flags {
    /// The KILL has come.
    is_told: AtomicBool,
    /// It may be answered.
    may_answer: AtomicBool,
    /// It was.
    is_answered: AtomicBool,
    /// The next statement came before that.
    was_early: AtomicBool,
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn serve(flags: &Flags, loses: bool, talk: &mut Talk<'_>, arrival: &Arrival) {
    match arrival.sql().as_str() {
        "BEGIN" => {
            talk.status = Status(Status::AUTOCOMMIT.0 | Status::IN_TRANS.0);
            talk.ok();
        }
        "SELECT slow" => {
            wait_for(&flags.is_told);
            talk.rows(&["slow"], &[&["1"]]);
        }
        "SELECT next" => {
            let is_early = !flags.is_answered.load(Ordering::SeqCst);
            flags.was_early.store(is_early, Ordering::SeqCst);
            talk.rows(&["next"], &[&["2"]]);
        }
        sql if sql.starts_with("KILL QUERY") => {
            flags.is_told.store(true, Ordering::SeqCst);
            if loses {
                return talk.close();
            }
            wait_for(&flags.may_answer);
            flags.is_answered.store(true, Ordering::SeqCst);
            talk.ok();
        }
        _ => talk.ok(),
    }
}

fn start(loses: bool) -> (Arc<Flags>, Scripted, Atlas, Wire) {
    let flags = Arc::new(Flags::default());
    let known = flags.clone();
    let server = Scripted::start(move |talk, arrival| serve(&known, loses, talk, arrival));
    let atlas = Atlas::start(format!(
        "[server]\nlisten = [\"{{listen}}\"]\n\
         [[groups]]\nname = \"main\"\nprimary = \"{}\"\n\
         [[users]]\nname = \"hasty\"\npassword = \"pw\"\nlimits = {{ statement_timeout = \"100ms\" }}\n\
         [pool]\nmin_idle = 0\nconnect_timeout = \"300ms\"\n",
        server.address()
    ));
    let client = Wire::connect(atlas.address(), &Login::new("hasty", "pw"));
    (flags, server, atlas, client)
}

#[test]
fn the_next_statement_waits_for_the_answer() {
    let (flags, server, _atlas, mut client) = start(false);
    client.ok("BEGIN");
    assert_eq!(client.query("SELECT slow").error_code(), 3024);
    client.send(&client.query_payload(b"SELECT next"));
    // Longer than anything that could end the waiting: with or without this time the outcome is the same.
    std::thread::sleep(Duration::from_millis(1200));
    assert!(!server.statements().contains(&"SELECT next".to_owned()));
    flags.may_answer.store(true, Ordering::SeqCst);
    let reply = client.reply(super::common::Expect::Text);
    assert_eq!(reply.cell(), "2");
    assert!(!flags.was_early.load(Ordering::SeqCst));
    // Over the same connection: the transaction is still there.
    let arrivals = server.arrivals();
    let on = |sql: &str| {
        arrivals
            .iter()
            .find(|a| a.sql() == sql)
            .map(|a| a.connection)
    };
    assert_eq!(on("BEGIN"), on("SELECT next"));
}

#[test]
fn without_an_answer_the_connection_is_given_up() {
    let (flags, server, _atlas, mut client) = start(true);
    client.ok("BEGIN");
    let slow = client.try_query("SELECT slow");
    assert!(flags.is_told.load(Ordering::SeqCst));
    // Nobody knows whether the KILL comes yet, so the transaction is lost as with its server.
    if slow.is_ok() {
        eventually("the session has ended", || {
            client.try_query("SELECT next").is_err()
        });
    }
    assert!(!server.statements().contains(&"SELECT next".to_owned()));
}
