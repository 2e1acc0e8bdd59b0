//! The fuzz target of replays: whatever a client sets, what is said to the other connection can be said, and says the same.

use super::packets::commands;
use super::worker::Worker;
use crate::session::Role;

/// A byte of choices as in `session_bytes`, then statements, one a line, which all succeed on the primary. What is replayed on a
/// replica is then said by another client, whose own replay must be that again (or less of it, where one statement has made
/// another superfluous).
pub fn session_state(data: &[u8]) {
    let Some((&choice, texts)) = data.split_first() else {
        return;
    };
    // Logged in, as the account that has replicas; query attributes would only stand in the way.
    let choice = choice & 0b0011_1100;
    let says: Vec<Vec<u8>> = texts
        .split(|b| *b == b'\n')
        .filter(|text| !text.is_empty())
        .map(|text| [b"\x03", text].concat())
        .collect();
    let Some(replays) = replays(choice, &says) else {
        return;
    };
    for replay in &replays {
        assert!(matches!(replay.first(), Some(0x02 | 0x03 | 0x1b | 0x1f)));
    }
    let again = self::replays(choice, &replays).expect("what was replayed keeps no reads away");
    let mut rest = replays.iter();
    for replay in &again {
        assert!(
            rest.any(|other| other == replay),
            "{:?} is replayed for {:?}",
            String::from_utf8_lossy(replay),
            replays
                .iter()
                .map(|replay| String::from_utf8_lossy(replay))
                .collect::<Vec<_>>()
        );
    }
}

/// What a replica has been told when a client that has said this reads; `None` if the read goes to the primary.
fn replays(choice: u8, says: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let mut worker = Worker::new(choice);
    worker.log_in(b"app", choice & 32 != 0);
    let read = b"\x03SELECT 1".to_vec();
    let mut told = Vec::new();
    let mut has_read = false;
    for payload in says.iter().take(50).chain([&read]) {
        has_read = false;
        let connections = worker.opened[Role::Replica as usize];
        worker.command(payload);
        let sent = worker.settle();
        if !worker.session.is_logged_in() {
            return None;
        }
        if worker.opened[Role::Replica as usize] != connections {
            // Another connection, which knows nothing yet.
            told.clear();
        }
        for sent in sent.iter().filter(|sent| sent.role == Role::Replica) {
            if sent.own {
                // What the server is to tell of is no state of the session.
                let is_state = |said: &&[u8]| {
                    let has = |word: &[u8]| said.windows(word.len()).any(|w| w == word);
                    !has(b"session_track") && !has(b"EXECUTE IMMEDIATE") && !has(b"DO 0")
                };
                let own = commands(&sent.bytes);
                told.extend(own.into_iter().filter(is_state).map(<[u8]>::to_vec));
            } else {
                has_read = true;
            }
        }
    }
    has_read.then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_pass() {
        crate::fuzzing::replay("session_state", session_state);
    }
}
