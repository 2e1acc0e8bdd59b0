//! Statements that overrun, step by step: a session of the account with limits, its server, and a KILL that is answered early, late or
//! never.

use std::time::Duration;

use super::worker::{Link, Worker};
use crate::session::{Role, Wants};

const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
const ROW: &[u8] = &[1, b'7'];
const INTERRUPTED: &[u8] = b"\xff\x25\x05#70100interrupted";
const DONE: u8 = 0;
const CALLED_OFF: u8 = 1;
const FAILED: u8 = 2;

/// A session (MySQL or MariaDB) with a read on the primary that has been sent.
fn reading(choice: u8) -> Worker {
    let mut worker = Worker::new(choice);
    worker.log_in(b"held", false);
    worker.command(b"\x03/*master*/ SELECT a FROM t");
    worker.opened(Role::Primary);
    worker.pump();
    assert!(worker.sent.iter().any(|sent| !sent.own), "it was sent");
    worker.sent.clear();
    worker
}

fn both(mut run: impl FnMut(&mut Worker, u16)) {
    for (choice, code) in [(0, 3024), (4, 1969)] {
        run(&mut reading(choice), code);
    }
}

fn begins(worker: &mut Worker) {
    for payload in [&[1_u8][..], COLUMN, EOF] {
        worker.packet(Role::Primary, payload);
    }
}

fn rows(worker: &mut Worker, count: usize) {
    for _ in 0..count {
        worker.packet(Role::Primary, ROW);
    }
}

/// What the client was told last: the sequence id, and the code of the error.
fn told(worker: &Worker) -> (u8, u16) {
    let bytes = &worker.to_client;
    assert_eq!(bytes.get(4), Some(&0xff), "{bytes:?}");
    (bytes[3], u16::from_le_bytes([bytes[5], bytes[6]]))
}

/// The next command is taken up only now.
fn goes_on(worker: &mut Worker) {
    worker.command(b"\x03/*master*/ SELECT 2");
    assert!(worker.sent.iter().any(|sent| !sent.own), "the next is sent");
}

fn waits(worker: &mut Worker) {
    assert_eq!(worker.session.wants(), Wants::Nothing);
}

#[test]
fn in_time_nothing_happens() {
    both(|worker, _| {
        assert_eq!(worker.watch.alarm, Some(Duration::from_secs(1)));
        begins(worker);
        rows(worker, 2);
        worker.packet(Role::Primary, EOF);
        worker.ring();
        assert_eq!(worker.watch.killing, None);
        goes_on(worker);
        // Its own second counts from when it was sent.
        assert_eq!(worker.watch.alarm, Some(Duration::from_secs(2)));
        worker.watch.now = Duration::from_millis(1500);
        let alarm = worker.watch.alarm.take();
        worker.tell(&mut [], |session, cx, _, _, out| session.on_alarm(cx, out));
        assert_eq!((worker.watch.alarm, worker.watch.killing), (alarm, None));
    });
}

/// The KILL is answered before the statement ends, or after it.
#[test]
fn the_error_is_the_servers_for_its_own_limit() {
    both(|worker, code| {
        worker.ring();
        assert!(worker.watch.kills(Role::Primary));
        worker.answer_kill(DONE);
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!((told(worker), worker.watch.spared), ((1, code), 1));
        goes_on(worker);
    });
    both(|worker, code| {
        worker.ring();
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (1, code));
        waits(worker);
        worker.answer_kill(DONE);
        assert_eq!(worker.watch.spared, 1);
        goes_on(worker);
    });
}

/// Behind rows the error has the server's place; a read of which there are none yet gets it in place of its rows.
#[test]
fn what_has_come_before() {
    both(|worker, code| {
        begins(worker);
        rows(worker, 1);
        worker.ring();
        worker.answer_kill(DONE);
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (5, code));
    });
    both(|worker, code| {
        worker.ring();
        worker.answer_kill(DONE);
        worker.to_client.clear();
        begins(worker);
        rows(worker, 1);
        assert_eq!(worker.to_client, b"");
        worker.packet(Role::Primary, EOF);
        assert_eq!(told(worker), (1, code));
        goes_on(worker);
    });
    // It was over in time, on its server: the client has part of it and gets the rest.
    both(|worker, _| {
        begins(worker);
        worker.ring();
        rows(worker, 1);
        worker.packet(Role::Primary, EOF);
        assert_eq!(worker.to_client.get(4), Some(&0xfe));
        assert!(worker.watch.is_called_off);
        waits(worker);
        worker.answer_kill(CALLED_OFF);
        assert_eq!(worker.watch.spared, 1);
        goes_on(worker);
    });
}

/// What fails otherwise is told as it is.
#[test]
fn another_error_is_the_servers() {
    both(|worker, _| {
        worker.ring();
        worker.packet(Role::Primary, b"\xff\xbd\x04#40001deadlock");
        assert_eq!(told(worker), (1, 1213));
        waits(worker);
        worker.answer_kill(DONE);
        goes_on(worker);
    });
}

#[test]
fn one_row_too_many() {
    both(|worker, _| {
        begins(worker);
        rows(worker, 2);
        assert_eq!(worker.watch.killing, None, "two it may have");
        worker.to_client.clear();
        rows(worker, 3);
        assert!(worker.watch.kills(Role::Primary));
        worker.answer_kill(DONE);
        rows(worker, 1);
        assert_eq!(worker.to_client, b"");
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (6, 1105));
        goes_on(worker);
    });
    // All in one piece, and over before anybody could be told.
    both(|worker, _| {
        let mut bytes = Vec::new();
        for (seq, payload) in (1..).zip([&[1_u8][..], COLUMN, EOF, ROW, ROW, ROW, ROW, EOF]) {
            crate::wire::write_payload(&mut bytes, seq, payload);
        }
        worker.arrives(Role::Primary, &bytes);
        assert_eq!(told(worker), (6, 1105));
        waits(worker);
        worker.answer_kill(CALLED_OFF);
        goes_on(worker);
    });
}

/// It is tried again, and the session never speaks to a connection that a KILL may still hit.
#[test]
fn a_kill_that_fails() {
    both(|worker, code| {
        worker.ring();
        worker.answer_kill(FAILED);
        assert_eq!(worker.watch.alarm, Some(Duration::from_secs(2)));
        worker.ring();
        assert!(worker.watch.kills(Role::Primary));
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (1, code));
        worker.answer_kill(FAILED);
        assert_eq!(worker.watch.spared, 0, "nobody else is to have it");
        goes_on(worker);
    });
}

/// MySQL has a SLEEP of its own return, and goes on with the next statement: it is told again, whichever of the two comes first.
#[test]
fn a_text_of_several_goes_on() {
    const MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
    let first = |worker: &mut Worker| {
        rows(worker, 1);
        worker.packet(Role::Primary, MORE);
    };
    both(|worker, code| {
        begins(worker);
        worker.ring();
        worker.answer_kill(DONE);
        assert_eq!(worker.watch.killing, None);
        first(worker);
        assert!(worker.watch.kills(Role::Primary));
        worker.answer_kill(DONE);
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (6, code));
        goes_on(worker);
    });
    both(|worker, code| {
        begins(worker);
        worker.ring();
        first(worker);
        worker.answer_kill(DONE);
        assert!(worker.watch.kills(Role::Primary));
        worker.packet(Role::Primary, INTERRUPTED);
        assert_eq!(told(worker), (6, code));
        waits(worker);
        worker.answer_kill(DONE);
        goes_on(worker);
    });
}

#[test]
fn the_connection_is_lost_meanwhile() {
    both(|worker, _| {
        worker.ring();
        worker.links[Role::Primary as usize] = Link::Absent;
        worker.tell(&mut [], |session, cx, _, client, out| {
            session.on_backend_lost(cx, Role::Primary, "gone", client, out);
        });
        assert_eq!(told(worker).1, 1927);
        worker.answer_kill(FAILED);
    });
}
