//! Statements that overrun: they run for longer, or give more rows, than the account or a rule lets them.
//!
//! Such a statement is ended on its server, by a KILL QUERY over a connection of its own, so that the session keeps its connection and
//! what it has there. The session says nothing more to that connection before the KILL is answered: no KILL can come late and hit the
//! next statement, since servers take none for a connection that runs nothing.
//!
//! ```text
//! sent ─► deadline ─┐
//! reply ─► one row  ┴► Interrupt ─► the reply ends ─► error to the client, if it was not told yet ─┐
//!          too many              └► the KILL is answered ──────────────────────────────────────────┴► next command
//! ```
//!
//! What a server let finish before the KILL came is told as it is, but for reads of which the client has nothing yet: some servers have
//! SLEEP() return early rather than fail. The statement of a session that asks several shards by others has no connection of its own:
//! its legs are ended.

use std::time::Duration;

use super::legs::Legs;
use super::reply::INTERRUPTED;
use super::sync::Said;
use super::{Beginning, Cx, Done, Fault, Output, Outputs, Role, Session, TrackEvent, What};
use crate::sql::{Kind, Server, Traits};

/// How long until a KILL that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// A client that is in the middle of a row is looked at again after this.
const SOON: Duration = Duration::from_millis(50);

/// A read without any of this has done nothing that an error would hide.
const DOES_SOMETHING: Traits = Traits::EFFECTS
    .union(Traits::INTO)
    .union(Traits::LOCK_FUNCTION)
    .union(Traits::SEQUENCE)
    .union(Traits::UNKNOWN_FUNCTION)
    .union(Traits::USER_VAR_WRITE)
    .union(Traits::MULTI)
    .union(Traits::CALL);

/// What a statement has too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Excess {
    /// It ran for longer than it may.
    Time,
    /// Its result has more rows than it may.
    Rows,
}

/// What became of an [`Output::Interrupt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The server has answered the KILL.
    Done,
    /// The statement was over before the KILL was sent, which it was not then.
    CalledOff,
    /// The server could not be told, or has not answered.
    Failed,
}

/// Where the KILL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    /// To be tried again.
    Due,
    /// On its way.
    Asked,
    /// The server has answered it.
    Answered,
}

/// A statement that is being ended.
#[derive(Debug)]
pub(super) struct Overrun {
    excess: Excess,
    pub(super) role: Role,
    kill: Kill,
    /// Nothing more of the reply is for the client, who gets an error with this sequence id when it is over.
    swallows: Option<u8>,
    /// Results that the statement had given when the server was told.
    results: u16,
}

impl Session {
    /// Another statement, or the same once more, is on its way.
    #[inline]
    pub(super) fn overrun_is_over(&mut self) {
        debug_assert!(
            self.overrun
                .as_ref()
                .is_none_or(|overrun| overrun.kill != Kill::Asked),
            "nothing is said before a KILL is answered"
        );
        self.overrun = None;
    }

    /// The moment of an [`Output::Alarm`] has come.
    pub fn on_alarm(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        let Some(deadline) = self.attempt.deadline() else {
            return;
        };
        if deadline > cx.now {
            return out.push(Output::Alarm(deadline));
        }
        if let Some(overrun) = &self.overrun {
            if overrun.kill == Kill::Due {
                self.interrupt(out);
            }
            return;
        }
        if self.legs.is_some() {
            return self.end_legs_in_time(cx, out);
        }
        // What waits for a connection has an end of its own, and what begins its next part is looked at when that was sent.
        if let Some(role) = self.bounded_role() {
            self.overruns(Excess::Time, role, None, out);
        }
    }

    /// The connection on which the client's own statement, or a piece of it, runs.
    fn bounded_role(&self) -> Option<Role> {
        match (&self.reply, &self.sync) {
            (Some(reply), _) => Some(reply.role),
            (None, Some(sync)) => sync.asks_a_piece(self.series_does_part()),
            (None, None) => None,
        }
    }

    /// The statement on this connection has too much of something: the server is told to end it.
    fn overruns(&mut self, excess: Excess, role: Role, swallows: Option<u8>, out: &mut Outputs) {
        if let Some(reply) = &mut self.reply {
            reply.command.may_retry = false;
            reply.command.waits = false;
            reply.tracker.expects_interruption();
        }
        self.overrun = Some(Box::new(Overrun {
            excess,
            role,
            kill: Kill::Due,
            swallows,
            results: 0,
        }));
        out.done.push(Done::Overran(excess));
        self.interrupt(out);
    }

    /// Has the server told.
    fn interrupt(&mut self, out: &mut Outputs) {
        let Some(overrun) = &mut self.overrun else {
            return;
        };
        let role = overrun.role;
        let Some(known) = self.links[role as usize].known() else {
            return;
        };
        overrun.kill = Kill::Asked;
        overrun.results = self
            .reply
            .as_ref()
            .map_or(0, |reply| reply.tracker.outcome().results);
        let thread_id = known.thread_id;
        out.push(Output::Interrupt { role, thread_id });
    }

    /// What became of an [`Output::Interrupt`].
    pub fn on_interrupted(&mut self, cx: &Cx<'_>, word: Interruption, out: &mut Outputs) {
        let is_running = self.bounded_role().is_some();
        let Some(overrun) = &mut self.overrun else {
            return;
        };
        if !is_running {
            let role = overrun.role;
            if word != Interruption::Failed && self.link(role).is_ready() {
                out.push(Output::Spare { role });
            }
            self.overrun = None;
            self.give_back(out);
            return;
        }
        match word {
            Interruption::Done => {
                overrun.kill = Kill::Answered;
                let given = self.reply.as_ref().map(|reply| reply.tracker.outcome());
                if given.is_some_and(|outcome| outcome.results != overrun.results) {
                    // It may have ended one statement of several, before this was heard of.
                    self.interrupt(out);
                }
            }
            Interruption::CalledOff | Interruption::Failed => {
                overrun.kill = Kill::Due;
                let again = cx.now + AGAIN;
                self.attempt.set_deadline(Some(again));
                out.push(Output::Alarm(again));
            }
        }
    }

    /// A reply has one row too many, which begins behind what was passed on.
    #[cold]
    pub(super) fn has_too_many_rows(&mut self, out: &mut Outputs) {
        if let Some(reply) = &self.reply {
            let (role, seq) = (reply.role, reply.tracker.next_seq());
            self.overruns(Excess::Rows, role, Some(seq), out);
        }
    }

    /// Whether the client's next command waits for the answer to a KILL.
    #[inline]
    pub(super) fn awaits_interruption(&self) -> bool {
        self.reply.is_none()
            && self
                .overrun
                .as_ref()
                .is_some_and(|overrun| overrun.kill == Kill::Asked)
    }

    /// What the statement on this connection has too much of, if it is being ended.
    pub(super) fn excess_on(&self, role: Role) -> Option<Excess> {
        let overrun = self.overrun.as_ref()?;
        (overrun.role == role).then_some(overrun.excess)
    }

    /// The error of a statement that has too much of something.
    pub(super) fn excess_fault(&self, cx: &Cx<'_>, excess: Excess) -> Fault {
        let account = String::from_utf8_lossy(&self.account(cx.snapshot).name);
        let bound = self.attempt.bound.as_deref();
        let rule = bound.and_then(|bound| bound.rule.as_ref());
        let (timeout, rows) = bound.map_or_else(Default::default, |b| (b.timeout, b.rows));
        match excess {
            Excess::Rows => Fault::Ruled(format!(
                "the result has more than {rows} rows (limits.result_rows of account \"{account}\")"
            )),
            Excess::Time => Fault::TimedOut {
                is_mysql: self.server == Server::MySql,
                limit: match rule {
                    Some(rule) => format!("{timeout:?}, rule \"{rule}\""),
                    None => {
                        format!("{timeout:?}, limits.statement_timeout of account \"{account}\"")
                    }
                },
            },
        }
    }

    /// Looks at bytes of the reply to a statement that is being ended.
    #[cold]
    pub(super) fn on_overrun(
        &mut self,
        cx: &mut Cx<'_>,
        rest: &mut [u8],
        at: usize,
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        let (Some(reply), Some(overrun)) = (&mut self.reply, &mut self.overrun) else {
            return 0;
        };
        let role = reply.role;
        if reply.tracker.at_start() && overrun.swallows.is_none() {
            match reply.tracker.beginning(rest) {
                Beginning::Unknown => return 0,
                // It has done nothing, and would be said again if it were not over.
                Beginning::Error { code, .. } if code == super::unprepared::NEED_REPREPARE => {
                    overrun.swallows = Some(reply.tracker.next_seq());
                }
                Beginning::Error { code, in_turn } => {
                    if let Some(step) = self.on_refusal(cx, (code, in_turn), rest, client, out) {
                        return step;
                    }
                }
                Beginning::Other => {
                    if hides_nothing(reply.command.what) {
                        overrun.swallows = Some(reply.tracker.next_seq());
                    }
                }
            }
        }
        let (Some(reply), Some(overrun)) = (&mut self.reply, &mut self.overrun) else {
            return 0;
        };
        let walk = match reply.tracker.walk(rest) {
            Ok(walk) => walk,
            Err(bad) => {
                self.on_bad_reply(cx, role, bad, client, out);
                return rest.len();
            }
        };
        let (swallows, excess) = (overrun.swallows, overrun.excess);
        let is_over = reply.tracker.is_over();
        // The KILL ended one statement of several, and the server goes on with the next.
        let goes_on = overrun.kill == Kill::Answered
            && reply.tracker.outcome().results != overrun.results
            && !is_over;
        let seq = swallows.unwrap_or_else(|| reply.tracker.next_seq().wrapping_sub(1));
        if let Some(lock_reply) = &mut self.lock_reply {
            lock_reply.note(rest.get(..walk.consumed).unwrap_or_default());
        }
        let mut passed = walk.consumed;
        let mut named = None;
        let mut is_told = swallows.is_some();
        match walk.event {
            Some(TrackEvent::Changes { at: packet }) => {
                let whole = rest.get_mut(packet..walk.consumed).unwrap_or_default();
                passed = packet + self.take_changes(role, whole);
            }
            Some(TrackEvent::Named { at: packet, part }) => named = Some((packet, part)),
            Some(TrackEvent::Interrupted { at: packet }) => {
                passed = packet;
                is_told = true;
            }
            Some(TrackEvent::LocalInfile) => self.await_file(role, out),
            // No row is too many any more, and it is no reply to a prepare.
            Some(TrackEvent::TooManyRows | TrackEvent::Prepared { .. } | TrackEvent::End)
            | None => {}
        }
        if swallows.is_none() && passed > 0 {
            match named {
                Some((packet, part)) => {
                    self.pass_named(role, part, (at, packet, passed), rest, out);
                }
                None => out.push(Output::ForwardToClient(at..at + passed)),
            }
        }
        if is_over && is_told {
            let fault = self.excess_fault(cx, excess);
            if let Some(reply) = &mut self.reply {
                reply.tracker.fails_with(fault.code().0);
            }
            let capabilities = self.capabilities;
            out.client(|buffer| {
                fault.write(buffer, seq, capabilities);
            });
        }
        if walk.consumed > 0 {
            self.first_byte_passed(out);
        }
        if goes_on {
            self.interrupt(out);
        }
        if is_over {
            self.end_reply(cx, client, out);
            self.is_over_in_time(out);
        }
        walk.consumed
    }

    /// The statement that was being ended, or a piece of it, is over: what is left is the answer to the KILL.
    pub(super) fn is_over_in_time(&mut self, out: &mut Outputs) {
        let Some(overrun) = &self.overrun else {
            return;
        };
        let (role, kill) = (overrun.role, overrun.kill);
        match kill {
            Kill::Asked => return out.push(Output::CallOff { role }),
            Kill::Answered => out.push(Output::Spare { role }),
            // None is on its way.
            Kill::Due => {}
        }
        self.overrun = None;
        self.is_done = true;
    }

    /// What a piece of the client's statement that was being ended has come to, if it was: an error in its place.
    pub(super) fn piece_overran(&mut self, cx: &Cx<'_>, error: Option<u16>) -> Option<Fault> {
        let overrun = self.overrun.as_ref()?;
        let is_ended = error.is_none_or(|code| code == INTERRUPTED);
        is_ended.then(|| self.excess_fault(cx, overrun.excess))
    }

    /// The legs of the session's statement have had their time.
    #[cold]
    fn end_legs_in_time(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        match self.legs.as_deref() {
            Some(Legs::Read(reading)) if !reading.may_be_told() => {
                self.attempt.set_deadline(Some(cx.now + SOON));
                out.push(Output::Alarm(cx.now + SOON));
            }
            Some(Legs::Read(_)) => {
                out.done.push(Done::Overran(Excess::Time));
                let fault = self.excess_fault(cx, Excess::Time);
                self.fail_legs(cx, &fault, out);
            }
            Some(Legs::Write(across)) if across.may_be_ended() => {
                out.done.push(Done::Overran(Excess::Time));
                self.attempt.set_deadline(None);
                let fault = self.excess_fault(cx, Excess::Time);
                out.push(Output::InterruptLegs);
                self.end_across(cx, fault, out);
            }
            // It is being decided, or undone, which has to come to its end.
            Some(Legs::Write(_)) | None => {}
        }
    }
}

/// An error in place of the whole answer hides nothing that the statement did.
fn hides_nothing(what: What) -> bool {
    match what {
        What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
            kind == Kind::Read && !traits.intersects(DOES_SOMETHING)
        }
        _ => false,
    }
}

impl super::sync::Sync {
    /// The connection, if what is said is a piece of the client's statement.
    fn asks_a_piece(&self, does_part: bool) -> Option<Role> {
        match self.saying()? {
            (role, Said::Leg) => Some(role),
            (role, Said::Part) if does_part => Some(role),
            _ => None,
        }
    }
}
