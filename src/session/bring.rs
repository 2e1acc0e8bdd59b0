//! Bringing a connection to the session's state before it is used: having one, saying what it lacks, preparing a statement
//! on it. Replies to that are the business of `sync`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::history::{History, Say};
use super::hold::Hold;
use super::known::Conditions;
use super::sync::{Said, Sync};
use super::{Access, Cx, InsertId, Known, Link, Output, Outputs, Role, Session};
use crate::wire::{Capabilities, Command, PacketWriter, Status};

/// What Atlas is about to say.
#[derive(Debug, Default)]
struct Saying {
    said: VecDeque<Said>,
    /// Assignments that go into one SET.
    assignments: Vec<u8>,
}

/// Whether a connection may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// At once.
    Now,
    /// At once, behind what brings the state, which is on its way unanswered.
    Behind,
    /// What is missing has been asked for; the command waits.
    Later,
}

impl Session {
    /// Whether the connection may be used now. If not, what is missing has been asked for and the command waits.
    /// `with_id` says that the command may look at LAST_INSERT_ID().
    pub(super) fn ensure(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        with_id: bool,
        out: &mut Outputs,
    ) -> bool {
        self.ensure_for(cx, role, (with_id, None), out) == Readiness::Now
    }

    /// The same for a command that may leave behind what brings the state, unanswered (`pipes` has its text): a plain read that goes
    /// to a replica. Should it turn out that it ran in another state it has done nothing, and its answer is thrown away with the
    /// connection. Anything else waits: what a write did in a state that is not the session's cannot be taken back, and on the
    /// primary a view's functions may write.
    pub(super) fn ensure_for(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        (with_id, pipes): (bool, Option<&[u8]>),
        out: &mut Outputs,
    ) -> Readiness {
        if !self.acquire(cx, role, out) {
            return Readiness::Later;
        }
        let Some(known) = self.link(role).known() else {
            return Readiness::Later;
        };
        let same = Arc::ptr_eq(&known.history, self.state.history()) || self.are_equal(role);
        let Some(known) = self.link(role).known() else {
            return Readiness::Later;
        };
        let begins = role == Role::Primary && self.is_to_begin;
        if same
            && self.tracks_as_wanted(known)
            && !self.has_other_flags(known)
            && !(with_id && self.has_other_id(known))
        {
            return if !begins || self.begin_again(role, out) {
                Readiness::Now
            } else {
                Readiness::Later
            };
        }
        if known.begins_with_more && known.history.begins_anew_for(self.state.history()) {
            self.drop_link(role, out);
            self.open(role, out);
            return Readiness::Later;
        }
        let is_there = self.bring_with(role, with_id, out);
        let brings_all = self.sync.as_ref().is_some_and(Sync::brings_state)
            && self
                .link(role)
                .known()
                .is_some_and(|known| self.tracks_as_wanted(known));
        match is_there {
            true => Readiness::Now,
            false if brings_all && !begins && pipes.is_some_and(reads_alike) => Readiness::Behind,
            false => Readiness::Later,
        }
    }

    /// Whether connection and session are in equal states. If so they share one copy of it from here on: all take that with the
    /// lower address, so that after a while there is only one.
    fn are_equal(&mut self, role: Role) -> bool {
        let Some(known) = self.links[role as usize].known_mut() else {
            return false;
        };
        let own = self.state.history();
        if known.history != *own {
            return false;
        }
        if Arc::as_ptr(&known.history) < Arc::as_ptr(own) {
            self.state.adopt(&known.history);
        } else {
            known.history = own.clone();
        }
        true
    }

    /// Whether there is a connection; if not, one has been asked for.
    pub(super) fn acquire(&mut self, cx: &mut Cx<'_>, role: Role, out: &mut Outputs) -> bool {
        match self.link(role) {
            Link::Ready(_) => true,
            Link::Opening => false,
            Link::Absent => {
                // One that is being given up has the place until the shell has done so.
                let place_is_taken = out.list.iter().any(|output| {
                    matches!(output, Output::CloseBackend { role: of, .. } | Output::Release { role: of, .. } if *of == role)
                });
                if self.shares && !place_is_taken && !self.attempt.asks_first {
                    let ask = self.ask(cx, role, None);
                    if let Some(known) = cx.lender.lend(&ask) {
                        self.take_up(role, known, out);
                        return true;
                    }
                }
                if self.part_before_waiting(role, out) {
                    self.open(role, out);
                }
                false
            }
        }
    }

    /// The client's autocommit and multi-statement flags are not the connection's: reads leave the primary only with
    /// autocommit on, and it outlives the connection that it was set on.
    fn has_other_flags(&self, known: &Known) -> bool {
        known.status.contains(Status::AUTOCOMMIT) != self.status.contains(Status::AUTOCOMMIT)
            || known.multi_statements != self.capabilities.contains(Capabilities::MULTI_STATEMENTS)
    }

    fn has_other_id(&self, known: &Known) -> bool {
        matches!(self.insert_id, InsertId::Known(id) if known.insert_id != Some(id))
    }

    pub(super) fn open(&mut self, role: Role, out: &mut Outputs) {
        *self.link_mut(role) = Link::Opening;
        self.waiting = Some(role);
        let avoid = if role == Role::Replica {
            self.attempt.avoid
        } else {
            None
        };
        out.push(Output::Open { role, avoid });
    }

    /// Brings the connection to the session's state; true when it is there.
    pub(super) fn bring(&mut self, role: Role, out: &mut Outputs) -> bool {
        self.bring_with(role, false, out)
    }

    fn bring_with(&mut self, role: Role, with_id: bool, out: &mut Outputs) -> bool {
        let start = out.arena.len();
        let mut saying = Saying::default();
        let wanted = self.state.history().clone();
        self.say_ask(role, &mut saying.said, out);
        self.say_untrack(role, &mut saying.said, out);
        self.say_state(role, &wanted, &mut saying, out);
        self.say_flags(role, with_id, &mut saying, out);
        self.say_track(role, &mut saying.said, out);
        self.leave(role, saying, start, out)
    }

    /// Says what brings the connection from the state that it is in to this one, and takes it to be there.
    fn say_state(
        &mut self,
        role: Role,
        wanted: &Arc<History>,
        saying: &mut Saying,
        out: &mut Outputs,
    ) {
        let Some(known) = self.links[role as usize].known_mut() else {
            return;
        };
        let from = std::mem::replace(&mut known.history, wanted.clone());
        self.say_difference(role, &from, wanted, saying, out);
    }

    /// Says what lies between two states.
    fn say_difference(
        &mut self,
        role: Role,
        from: &History,
        wanted: &History,
        saying: &mut Saying,
        out: &mut Outputs,
    ) {
        let (placement, group) = (self.moved_by.clone(), self.moved_to);
        let Some(known) = self.links[role as usize].known_mut() else {
            return;
        };
        let capabilities = known.capabilities;
        from.bring(wanted, &mut |say| match say {
            Say::Reset { restore } => {
                saying.flush(capabilities, out);
                write_command(&mut out.arena, Command::ResetConnection, b"");
                saying.said.push_back(Said::State);
                known.was_reset();
                for text in known.after_reset.iter().filter(|_| restore) {
                    write_query(&mut out.arena, capabilities, text);
                    // A collation that the server does not know is not taken at log-in either.
                    saying.said.push_back(Said::Whatever);
                }
            }
            Say::InitDb(name) => {
                saying.flush(capabilities, out);
                let name = super::sharded::there(placement.as_deref(), group, name);
                write_command(&mut out.arena, Command::InitDb, name);
                saying.said.push_back(Said::State);
            }
            Say::Query(text) => {
                saying.flush(capabilities, out);
                write_query(&mut out.arena, capabilities, text);
                saying.said.push_back(Said::State);
            }
            Say::Assign { text, alone } => {
                if alone {
                    saying.flush(capabilities, out);
                }
                saying.assign(text, capabilities, out);
                if alone {
                    saying.flush(capabilities, out);
                }
            }
        });
        saying.flush(capabilities, out);
    }

    fn say_flags(&mut self, role: Role, with_id: bool, saying: &mut Saying, out: &mut Outputs) {
        let autocommit = self.status.contains(Status::AUTOCOMMIT);
        let multi = self.capabilities.contains(Capabilities::MULTI_STATEMENTS);
        let insert_id = self.insert_id;
        let Some(known) = self.links[role as usize].known_mut() else {
            return;
        };
        let capabilities = known.capabilities;
        if known.status.contains(Status::AUTOCOMMIT) != autocommit {
            let text: &[u8] = if autocommit {
                b"autocommit = 1"
            } else {
                b"autocommit = 0"
            };
            saying.assign(text, capabilities, out);
        }
        if let InsertId::Known(id) = insert_id
            && with_id
            && known.insert_id != Some(id)
        {
            saying.assign(
                format!("last_insert_id = {id}").as_bytes(),
                capabilities,
                out,
            );
            known.insert_id = Some(id);
        }
        saying.flush(capabilities, out);
        if known.multi_statements != multi {
            let option = u16::from(!multi);
            write_command(&mut out.arena, Command::SetOption, &option.to_le_bytes());
            saying.said.push_back(Said::Option);
            known.multi_statements = multi;
        }
    }

    /// Makes sure that the connection shows no warnings: the session has none, or its connection would not have been given back.
    pub(super) fn ensure_no_warnings(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        out: &mut Outputs,
    ) -> bool {
        if !self.ensure(cx, role, false, out) {
            return false;
        }
        let Some(known) = self.link_mut(role).known_mut() else {
            return false;
        };
        if std::mem::replace(&mut known.conditions, Conditions::None) == Conditions::None {
            return true;
        }
        // What it knew of statements before is gone with this one.
        known.set_asked();
        // On MariaDB a statement that uses no table keeps the warnings of the one before.
        let start = out.arena.len();
        let capabilities = self.capabilities_of(role);
        write_query(
            &mut out.arena,
            capabilities,
            b"SELECT 1 FROM (SELECT 1) AS t LIMIT 0",
        );
        let saying = Saying {
            said: [Said::Clear].into(),
            ..Saying::default()
        };
        self.leave(role, saying, start, out)
    }

    /// Begins the client's transaction on this connection.
    #[cold]
    fn begin_again(&mut self, role: Role, out: &mut Outputs) -> bool {
        let start = out.arena.len();
        let capabilities = self.capabilities_of(role);
        write_query(&mut out.arena, capabilities, &self.begun);
        let saying = Saying {
            said: [Said::Begin].into(),
            ..Saying::default()
        };
        self.leave(role, saying, start, out)
    }

    /// Ends the client's transaction on this connection: nothing has been done in it, and it is to begin elsewhere.
    pub(super) fn end_untouched(&mut self, role: Role, out: &mut Outputs) {
        self.is_to_begin = true;
        let start = out.arena.len();
        let capabilities = self.capabilities_of(role);
        write_query(&mut out.arena, capabilities, b"ROLLBACK");
        let saying = Saying {
            said: [Said::State].into(),
            ..Saying::default()
        };
        self.leave(role, saying, start, out);
    }

    /// Sends what was said; true when that was nothing.
    fn leave(&mut self, role: Role, saying: Saying, start: usize, out: &mut Outputs) -> bool {
        if saying.said.is_empty() {
            return true;
        }
        // State of the connection, not data: it may go to a replica.
        out.push(Output::SendToBackend {
            role,
            range: start..out.arena.len(),
            access: Access::Read,
        });
        self.start_sync(role, saying.said);
        false
    }

    /// Whether the statement is prepared on that connection.
    pub(super) fn is_prepared(&mut self, cx: &Cx<'_>, role: Role, id: u32) -> bool {
        let Some(statement) = self.statements.get_mut(id) else {
            return true;
        };
        let (Some(text), told) = (&statement.text, statement.told) else {
            return true;
        };
        let era = cx.texts.era();
        match self.links[role as usize].known() {
            // One from before a change would tell the client of it, which is right once only.
            Some(known) => known
                .statements
                .era_of(text)
                .is_some_and(|of| of == era || told != era),
            None => true,
        }
    }

    /// Whether the statement is prepared on that connection; if not, that is on its way and the command waits.
    pub(super) fn ensure_prepared(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        id: u32,
        out: &mut Outputs,
    ) -> bool {
        let Some(statement) = self.statements.get_mut(id) else {
            return true;
        };
        let Some(text) = statement.text.clone() else {
            return true;
        };
        if self.is_prepared(cx, role, id) {
            return true;
        }
        let start = out.arena.len();
        let mut saying = Saying::default();
        // What it means hangs on the state in which it was prepared first, if that can be had back without loss.
        let now = self.state.history().reading();
        let goes_back = text.state != now
            && text.state.schema().is_some() == now.schema().is_some()
            && now.comes_to(&text.state)
            && text.state.comes_to(&now)
            && self.hold(role) == Hold::Free;
        if goes_back {
            self.say_difference(role, &now, &text.state, &mut saying, out);
        }
        write_command(&mut out.arena, Command::StmtPrepare, &text.sql);
        saying.said.push_back(Said::Prepare(id));
        if goes_back {
            self.say_difference(role, &text.state, &now, &mut saying, out);
        }
        self.leave(role, saying, start, out)
    }
}

/// Whether a text means the same whatever the character set and `sql_mode`: it has nothing that may or may not be a quote.
fn reads_alike(text: &[u8]) -> bool {
    text.is_ascii() && memchr::memchr2(b'"', b'\\', text).is_none()
}

/// COM_QUERY, with no query attributes where the connection expects some.
pub(super) fn write_query(buffer: &mut Vec<u8>, capabilities: Capabilities, sql: &[u8]) {
    let mut packet = PacketWriter::begin(buffer, 0);
    packet.u8(Command::Query.code());
    if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
        packet.bytes(&[0, 1]);
    }
    packet.bytes(sql);
    packet.finish();
}

pub(super) fn write_command(buffer: &mut Vec<u8>, command: Command, body: &[u8]) {
    let mut packet = PacketWriter::begin(buffer, 0);
    packet.u8(command.code());
    packet.bytes(body);
    packet.finish();
}

impl Saying {
    /// An assignment goes into one SET with those before and behind it.
    fn assign(&mut self, text: &[u8], capabilities: Capabilities, out: &mut Outputs) {
        // Far from any limit of a packet.
        const LONG: usize = 64 * 1024;
        if self.assignments.len() > LONG {
            self.flush(capabilities, out);
        }
        let join: &[u8] = if self.assignments.is_empty() {
            b"SET "
        } else {
            b", "
        };
        self.assignments.extend_from_slice(join);
        self.assignments.extend_from_slice(text);
    }

    /// Says the assignments so far.
    fn flush(&mut self, capabilities: Capabilities, out: &mut Outputs) {
        if !self.assignments.is_empty() {
            write_query(&mut out.arena, capabilities, &self.assignments);
            self.assignments.clear();
            self.said.push_back(Said::State);
        }
    }
}
