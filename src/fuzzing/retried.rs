//! Reads that are said once more, step by step: a replica's connection is lost before it has answered.

use std::time::Duration;

use super::worker::{Link, Worker};
use crate::session::{Done, Failure, Role};

const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
const ROW: &[u8] = &[1, b'7'];

/// The second begins: the clock goes forward only.
fn at(worker: &mut Worker, second: u64) {
    worker.watch.now = Duration::from_secs(second);
}

fn lose(worker: &mut Worker, role: Role) {
    worker.links[role as usize] = Link::Absent;
    worker.tell(&mut [], |session, cx, _, client, out| {
        session.on_backend_lost(cx, role, "gone", client, out);
    });
    worker.pump();
}

/// A connection comes for which the session has waited.
fn comes(worker: &mut Worker, role: Role) {
    let now = worker.watch.now;
    worker.session.note_acquired(now);
    worker.opened(role);
    worker.pump();
}

/// What has left of the client's own commands since this was asked.
fn sent(worker: &mut Worker) -> Vec<Vec<u8>> {
    let sent = std::mem::take(&mut worker.sent).into_iter();
    sent.filter(|sent| !sent.own)
        .map(|sent| sent.bytes)
        .collect()
}

fn prepared(worker: &mut Worker, role: Role, id: u8) {
    worker.packet(role, &[0, id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    worker.packet(role, COLUMN);
    worker.packet(role, EOF);
}

/// What the client waits for counts from its command, what Atlas adds from when it was last said.
#[test]
fn its_time_goes_on() {
    for choice in [0, 4] {
        let mut worker = Worker::new(choice);
        worker.log_in(b"app", false);
        at(&mut worker, 1);
        worker.command(b"\x03SELECT a FROM t");
        comes(&mut worker, Role::Replica);
        assert_eq!(sent(&mut worker).len(), 1);
        at(&mut worker, 4);
        lose(&mut worker, Role::Replica);
        at(&mut worker, 6);
        comes(&mut worker, Role::Replica);
        assert_eq!(sent(&mut worker).len(), 1);
        at(&mut worker, 9);
        for payload in [&[1_u8][..], COLUMN, EOF, ROW, EOF] {
            worker.packet(Role::Replica, payload);
        }
        let Some(Done::Statement {
            took,
            acquired,
            synced,
            ..
        }) = worker.watch.done
        else {
            panic!("{:?}", worker.watch.done);
        };
        let seconds = [took, acquired, synced].map(|time| time.as_secs());
        assert_eq!(seconds, [8, 2, 0], "{choice}");
    }
}

/// An execution that went behind what brings the state names the statement by the number that it has there. Lost with the connection,
/// it is looked at again as the client sent it.
#[test]
fn an_execution_is_the_clients_again() {
    for choice in [0, 4] {
        let mut worker = Worker::new(choice);
        worker.log_in(b"app", false);
        worker.command(b"\x16SELECT a FROM t WHERE a = 1");
        comes(&mut worker, Role::Replica);
        assert_eq!(sent(&mut worker).len(), 1);
        prepared(&mut worker, Role::Replica, 77);
        worker.command(b"\x03SET SESSION sort_buffer_size = 100000");
        worker.settle();
        worker.sent.clear();
        let execute = |id| [10, 0, 0, 0, 0x17, id, 0, 0, 0, 0, 1, 0, 0, 0].to_vec();
        worker.command(&execute(1)[4..]);
        assert_eq!(sent(&mut worker), [execute(77)], "{choice}: unanswered");
        lose(&mut worker, Role::Replica);
        comes(&mut worker, Role::Replica);
        // What brings the new connection to the state.
        worker.packet(Role::Replica, &[0, 0, 0, 2, 0, 0, 0]);
        worker.pump();
        worker.sent.clear();
        prepared(&mut worker, Role::Replica, 78);
        worker.pump();
        assert_eq!(sent(&mut worker), [execute(78)], "{choice}");
    }
}

/// A question goes to where the statement ran that it is about. Where no replica is there any more it is answered or refused, and not
/// looked at again for ever.
#[test]
fn a_question_does_not_wait_for_a_replica_that_is_gone() {
    let questions = ["SHOW WARNINGS", "SELECT FOUND_ROWS()", "SELECT ROW_COUNT()"];
    let cases = questions
        .iter()
        .flat_map(|sql| [(sql, false), (sql, true)])
        .flat_map(|(sql, is_prepared)| [(sql, is_prepared, 0), (sql, is_prepared, 4)]);
    let mut asked = 0;
    for (sql, is_prepared, choice) in cases {
        let mut worker = Worker::new(choice);
        worker.log_in(b"app", false);
        worker.command(b"\x03SELECT a FROM t");
        comes(&mut worker, Role::Replica);
        for payload in [&[1_u8][..], COLUMN, EOF, ROW, EOF] {
            worker.packet(Role::Replica, payload);
        }
        worker.settle();
        worker.idle.known = Default::default();
        if is_prepared {
            worker.command(&[b"\x16", sql.as_bytes()].concat());
            for role in Role::BOTH {
                if worker.links[role as usize] == Link::Opening {
                    comes(&mut worker, role);
                    prepared(&mut worker, role, 77);
                }
            }
            worker.idle.known = Default::default();
            worker.command(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
        } else {
            worker.command(&[b"\x03", sql.as_bytes()].concat());
        }
        let mut tries = 0;
        while worker.links[Role::Replica as usize] == Link::Opening {
            worker.links[Role::Replica as usize] = Link::Absent;
            worker.tell(&mut [], |session, cx, _, client, out| {
                let failure = Failure::NoHost;
                session.on_backend_failed(cx, Role::Replica, None, &failure, client, out);
            });
            worker.pump();
            tries += 1;
            assert!(tries < 10, "{sql} {is_prepared} {choice}");
        }
        asked += tries;
    }
    assert!(asked >= 4, "few of them were asked of a replica: {asked}");
}
