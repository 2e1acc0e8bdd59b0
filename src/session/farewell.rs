//! Statements by which a session may end itself: KILL of its own connection in whatever form, COMMIT RELEASE, and what runs them
//! unseen. The session then ends as a connection of its own would, instead of going on with another one. Connections that are lost
//! for other reasons are the business of `loss`, KILL of clients by number that of `local`.

use std::collections::VecDeque;

use super::bring::write_command;
use super::replay::{Replay, literal_word};
use super::reply::{INTERRUPTED, KILLED};
use super::sync::Said;
use super::{
    Access, Attempt, Link, Outcome, Output, Outputs, Parting, Role, Running, Session, What,
};
use crate::sql::{self, Kind, Traits};
use crate::wire::{Command, ErrPacket, Header};

/// ER_NO_SUCH_THREAD.
pub(super) const UNKNOWN_THREAD: u16 = 1094;

/// What is known of the connection behind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It goes on.
    No,
    /// The server says so when it is asked.
    Perhaps,
    /// It was told so.
    Yes,
}

impl Session {
    /// A reply of the primary has ended, and the client has it: whether the session ends with it. `sql` is its text where that is still
    /// there.
    pub(super) fn look_for_end(
        &mut self,
        (command, outcome): (Running, Outcome),
        sql: &[u8],
        executed: Option<Kind>,
        out: &mut Outputs,
    ) {
        if self.is_closed() || !self.link(Role::Primary).is_ready() || self.diary.is_leg {
            return;
        }
        match self.ending(command.what, outcome, sql, executed) {
            Ending::No => {}
            Ending::Yes => self.end_with_connection(out),
            Ending::Perhaps => {
                // It leaves everything as it is that may be asked about the statement.
                out.backend(Role::Primary, Access::Read, |buffer| {
                    write_command(buffer, Command::Statistics, b"");
                });
                self.start_sync(Role::Primary, VecDeque::from([Said::Alive]));
            }
        }
    }

    fn ending(&self, what: What, outcome: Outcome, sql: &[u8], executed: Option<Kind>) -> Ending {
        match outcome.error {
            Some(code) if KILLED.contains(&code) => return Ending::Yes,
            // MySQL says the same when it ends the statement and when it ends the connection.
            Some(INTERRUPTED) => return Ending::Perhaps,
            Some(_) => return Ending::No,
            None => {}
        }
        let may_end = match what {
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                self.may_release((kind, traits), sql, executed)
            }
            What::LongQuery(kind) => outcome.many || matches!(kind, Kind::Commit | Kind::Rollback),
            _ => false,
        };
        if may_end { Ending::Perhaps } else { Ending::No }
    }

    /// Whether the server ends the connection behind this COMMIT or ROLLBACK.
    pub(super) fn releases(&self, sql: &[u8], dialect: &sql::Dialect) -> bool {
        sql::releases_connection(sql, dialect, self.releases_by_default())
    }

    /// Whether a COMMIT RELEASE or its kin may be among what a text runs. One that is known to be one is noted by itself, see `releases`.
    fn may_release(
        &self,
        (kind, traits): (Kind, Traits),
        sql: &[u8],
        executed: Option<Kind>,
    ) -> bool {
        let is_end = |kind| matches!(kind, Kind::Commit | Kind::Rollback);
        if traits.contains(Traits::MULTI) {
            return self.may_release_by_default() || sql::names_release(sql);
        }
        if kind == Kind::Execute {
            // Of a text that is not known the session is tied to its connection in any case.
            return executed.is_some_and(is_end);
        }
        is_end(kind) && (self.may_release_by_default() || traits.contains(Traits::FOR_ITSELF))
    }

    /// `completion_type` was set so that transactions end with their connection.
    #[must_use]
    fn releases_by_default(&self) -> bool {
        self.completion_type()
            .flatten()
            .is_some_and(|word| word == b"2" || word.eq_ignore_ascii_case(b"release"))
    }

    /// The same, where it is not known what completion_type was set to.
    fn may_release_by_default(&self) -> bool {
        const NOT: [&[u8]; 4] = [b"0", b"1", b"no_chain", b"chain"];
        self.completion_type().is_some_and(|word| {
            word.is_none_or(|word| !NOT.iter().any(|not| word.eq_ignore_ascii_case(not)))
        })
    }

    /// Whether completion_type was set, and to which word.
    fn completion_type(&self) -> Option<Option<Vec<u8>>> {
        let entries = self.state.history().entries().iter().rev();
        let mut set = entries.filter(|e| e.key == b"completion_type");
        match &set.next()?.replay {
            Replay::Assign(text) => Some(text.split(|b| *b == b'=').nth(1).and_then(literal_word)),
            _ => None,
        }
    }

    /// The connection was lost within a reply of several results, behind one of them, as it is where a statement of the text has ended it.
    pub(super) fn was_released(&self, command: &Running, client: &[u8]) -> bool {
        let What::Query { at, kind, traits } = command.what else {
            return false;
        };
        let sql = client.get(at..command.retained).unwrap_or_default();
        traits.contains(Traits::MULTI) && self.may_release((kind, traits), sql, None)
    }

    /// The server ends the connection, and the session with it.
    pub(super) fn end_with_connection(&mut self, out: &mut Outputs) {
        if self.link(Role::Primary).is_ready() {
            out.push(Output::CloseBackend {
                role: Role::Primary,
                parting: Parting::Silent,
            });
        }
        *self.link_mut(Role::Primary) = Link::Absent;
        self.note_loss(Role::Primary);
        self.close(out);
    }

    /// The server does not know the thread that a KILL names: it worked out the number, which is a client's. The bytes dealt with; nothing
    /// where the server's word is the client's to see.
    #[cold]
    pub(super) fn kill_worked_out(
        &mut self,
        rest: &[u8],
        client: &[u8],
        out: &mut Outputs,
    ) -> Option<usize> {
        let header = Header::parse(rest)?;
        let error = ErrPacket::parse(rest.get(4..4 + header.len)?).ok()?;
        let id = last_number(error.message).filter(|id| super::local::is_client_id(*id))?;
        let command = self.reply.as_ref()?.command;
        let is_query = self.kills_query(&command, client)?;
        self.reply = None;
        self.lock_reply = None;
        self.attempt = Attempt::default();
        self.is_done = true;
        // It was a statement, and what came before it cannot be asked of its connection any more.
        self.last = None;
        self.numbers.row_count = Some(0);
        self.warned = None;
        self.kept = None;
        if command.retained > 0 {
            out.push(Output::Consume(command.retained));
        }
        self.kill(id, is_query, out);
        Some(4 + header.len)
    }

    /// Whether the KILL is one of the statement only; `None` where it is no KILL by itself.
    fn kills_query(&mut self, command: &Running, client: &[u8]) -> Option<bool> {
        let dialect = self.dialect();
        match command.what {
            What::Query { at, kind, .. } => {
                let sql = client.get(at..command.retained)?;
                match kind {
                    Kind::Kill => sql::kills_query(sql, &dialect),
                    Kind::Execute => {
                        let stored = self.stored_in(sql, &dialect)?;
                        (stored.kind == Kind::Kill)
                            .then(|| sql::kills_query(&stored.sql, &stored.dialect))?
                    }
                    _ => None,
                }
            }
            What::Execute {
                id,
                kind: Kind::Kill,
                ..
            } => {
                let text = self.statements.get_mut(id)?.text.clone()?;
                sql::kills_query(&text.sql, &dialect)
            }
            _ => None,
        }
    }
}

/// The number that a message names last.
fn last_number(message: &[u8]) -> Option<u32> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let end = message.iter().rposition(is_digit)? + 1;
    let before = message.get(..end)?;
    let start = before.iter().rposition(|byte| !is_digit(byte));
    let digits = before.get(start.map_or(0, |at| at + 1)..)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_the_number_at_the_end() {
        for (message, id) in [
            (&b"Unknown thread id: 1090519041"[..], Some(1_090_519_041)),
            (b"Thread 12 inconnu: 7.", Some(7)),
            (b"7", Some(7)),
            (b"Unknown thread id: 99999999999", None),
            (b"none", None),
            (b"", None),
        ] {
            assert_eq!(last_number(message), id);
        }
    }
}
