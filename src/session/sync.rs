//! What Atlas itself says to a connection while a command waits: its replies are swallowed here, and what they bring is
//! noted. What is said is decided in `bring` and `hold`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::hold::close_statement;
use super::known::Conditions;
use super::reply::{INTERRUPTED, is_going_away};
use super::unserved::server_fault;
use super::{Cx, Expect, Known, Output, Outputs, Parting, Role, Session, TrackEvent, Tracker};

/// What Atlas has said to a connection and waits to be answered.
#[derive(Debug)]
pub(super) struct Sync {
    role: Role,
    said: VecDeque<Said>,
    tracker: Tracker,
    /// The answer so far, where it matters.
    answer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// A piece of session state.
    State,
    /// The same by COM_SET_OPTION, to which the answer may be an EOF.
    Option,
    /// The same, of a kind that the server may refuse.
    Whatever,
    /// A statement that leaves nothing to be shown by SHOW WARNINGS.
    Clear,
    /// A query for the number that FOUND_ROWS() then gives.
    Found,
    /// The beginning of the client's transaction, which began in another group and has done nothing there.
    Begin,
    /// The client's statement, as one of several shards is asked it.
    Leg,
    /// What a write in parts needs.
    Part,
    /// The question for the columns of a sharded table.
    Columns(usize),
    /// A prepare of the client's statement.
    Prepare(u32),
    /// The question what the server tells everybody of session state.
    Shown,
    /// The question in which order.
    Order,
    /// That it is to tell of all.
    Track,
    /// The question whether the replica has what the session wrote.
    CaughtUp,
    /// The question for the warnings that would be forgotten with the connection.
    Warnings,
    /// GET DIAGNOSTICS of one of the conditions, or what forgets the answers.
    Condition,
    /// The question for those answers.
    Conditions,
    /// The question for the numbers.
    Numbers,
    /// Whether the connection is still there, behind a statement that may have ended it.
    Alive,
    /// Not Atlas's own: a replica's refusal of a read that the primary is to answer instead.
    Refusal(Expect),
}

/// MariaDB's ER_STATEMENT_TIMEOUT.
const TIMED_OUT: u16 = 1969;

impl Said {
    /// Whether all goes on where the server answers with this error. That it was ended, by a KILL for the client's statement behind it
    /// or by the time that the session gives its statements, is no word of what the server takes: then the state is not there.
    fn may_fail_with(self, code: u16) -> bool {
        match self {
            Self::Refusal(_) | Self::Shown | Self::Order | Self::CaughtUp => true,
            Self::Whatever | Self::Track | Self::Found => !matches!(code, INTERRUPTED | TIMED_OUT),
            _ => false,
        }
    }
}

impl Sync {
    pub(super) fn is_on(&self, role: Role) -> bool {
        self.role == role
    }

    /// What is being said now, and to which connection.
    pub(super) fn saying(&self) -> Option<(Role, Said)> {
        Some((self.role, *self.said.front()?))
    }

    /// All that is said is state, of which nothing is wanted but that it is taken.
    pub(super) fn brings_state(&self) -> bool {
        let is_state = |said: &Said| {
            matches!(
                said,
                Said::State | Said::Option | Said::Whatever | Said::Track
            )
        };
        self.said.iter().all(is_state)
    }

    pub(super) fn asks_numbers(&self) -> bool {
        let asks = [
            Said::Warnings,
            Said::Condition,
            Said::Conditions,
            Said::Numbers,
        ];
        self.said.front().is_some_and(|said| asks.contains(said))
    }

    pub(super) fn asks_alive(&self) -> bool {
        self.said.front() == Some(&Said::Alive)
    }

    /// The answer is kept until it is whole.
    fn keeps_answer(&self) -> bool {
        let is_kept = |said: &Said| {
            matches!(
                said,
                Said::Shown | Said::Order | Said::CaughtUp | Said::Part | Said::Columns(_)
            )
        };
        self.asks_numbers() || self.said.front().is_some_and(is_kept)
    }
}

impl Session {
    /// Passes over the refusal that is coming in.
    pub(super) fn swallow_refusal(&mut self, role: Role, expect: Expect) {
        self.start_sync(role, VecDeque::from([Said::Refusal(expect)]));
    }

    pub(super) fn start_sync(&mut self, role: Role, said: VecDeque<Said>) {
        let tracker = self.tracker_for(role, said.front().copied());
        self.sync = Some(Sync {
            role,
            said,
            tracker,
            answer: Vec::new(),
        });
    }

    fn tracker_for(&self, role: Role, said: Option<Said>) -> Tracker {
        let expect = match said {
            Some(Said::Prepare(_)) => Expect::Prepare,
            Some(Said::Refusal(expect)) => expect,
            Some(Said::Alive) => Expect::Single,
            Some(
                Said::Warnings
                | Said::Conditions
                | Said::Numbers
                | Said::Clear
                | Said::Found
                | Said::Shown
                | Said::CaughtUp
                | Said::Leg
                | Said::Part
                | Said::Columns(_)
                | Said::State
                | Said::Whatever
                | Said::Condition
                | Said::Order
                | Said::Track
                | Said::Begin,
            ) => Expect::Response,
            Some(Said::Option) | None => Expect::Terminal,
        };
        let tracker = Tracker::new(expect, self.capabilities_of(role)).without_files();
        if matches!(said, Some(Said::Warnings | Said::Numbers | Said::Part))
            && self.tells_more(role)
        {
            return tracker.with_changes();
        }
        tracker
    }

    /// Whether this connection's bytes are answers to Atlas itself.
    pub(super) fn is_syncing(&self, role: Role) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync.role == role)
    }

    /// Swallows answers; gives the bytes dealt with.
    pub(super) fn on_sync(
        &mut self,
        cx: &mut Cx<'_>,
        input: &[u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        let Some(mut sync) = self.sync.take() else {
            return 0;
        };
        let role = sync.role;
        let walk = match sync.tracker.walk(input) {
            Ok(walk) => walk,
            Err(bad) => {
                self.sync = Some(sync);
                self.on_bad_reply(cx, role, bad, client, out);
                return input.len();
            }
        };
        let before = sync.answer.len();
        let is_leg = sync.said.front() == Some(&Said::Leg);
        if is_leg || sync.keeps_answer() {
            let seen = input.get(..walk.consumed).unwrap_or_default();
            sync.answer.extend_from_slice(seen);
        }
        if is_leg {
            let taken = self.scatter.as_ref().map_or(0, |scatter| scatter.size());
            let size = u64::try_from(taken + sync.answer.len()).unwrap_or(u64::MAX);
            if size > cx.snapshot.config.sharding.merge_bytes_max {
                self.scatter_too_big(cx, role, client, out);
                return input.len();
            }
        }
        match walk.event {
            None => self.sync = Some(sync),
            // The client's, when it asks for it.
            Some(TrackEvent::Changes { at }) if !sync.tracker.is_over() => {
                self.take_changes_of(role, &mut sync.answer, before + at);
                self.sync = Some(sync);
            }
            Some(TrackEvent::Prepared { ok, .. }) => {
                if let Some(Said::Prepare(id)) = sync.said.front()
                    && let Some(text) = self.statements.get_mut(*id).and_then(|s| s.text.clone())
                {
                    self.note_prepared(cx, role, &text, ok.statement_id, out);
                }
                self.sync = Some(sync);
            }
            // Trackers of what Atlas says refuse such a request, and look neither for names nor for bounds.
            Some(
                TrackEvent::LocalInfile
                | TrackEvent::Named { .. }
                | TrackEvent::TooManyRows
                | TrackEvent::Interrupted { .. },
            ) => self.sync = Some(sync),
            Some(event @ (TrackEvent::End | TrackEvent::Changes { .. })) => {
                if let TrackEvent::Changes { at } = event {
                    self.take_changes_of(role, &mut sync.answer, before + at);
                }
                let outcome = sync.tracker.outcome();
                if let Some(status) = outcome.status
                    && let Some(known) = self.link_mut(role).known_mut()
                {
                    known.status = status;
                }
                if (outcome.warnings > 0 || outcome.error.is_some())
                    && let Some(known) = self.link_mut(role).known_mut()
                {
                    known.conditions = Conditions::Others;
                }
                let was = sync.said.pop_front();
                self.note_found_of(role, was, outcome.error);
                if was == Some(Said::Warnings) {
                    if outcome.error.is_none() {
                        let answer = std::mem::take(&mut sync.answer);
                        let answer = self.dressed_warnings(role, answer);
                        self.note_warnings(role, answer);
                    }
                    sync.answer.clear();
                    sync.tracker = self.tracker_for(role, sync.said.front().copied());
                    self.sync = Some(sync);
                    return walk.consumed;
                }
                if was == Some(Said::Leg) {
                    self.leg_answered(cx, role, outcome, &sync.answer, client, out);
                    self.is_over_in_time(out);
                    return walk.consumed;
                }
                if was == Some(Said::Part) {
                    self.part_answered(cx, outcome, &sync.answer, client, out);
                    self.is_over_in_time(out);
                    return walk.consumed;
                }
                if let (Some(Said::Columns(table)), None) = (was, outcome.error) {
                    self.columns_told(cx, table, &sync.answer, client, out);
                    return walk.consumed;
                }
                if was == Some(Said::Shown) {
                    // Without an answer nothing of it is the client's.
                    self.note_shown(role, &std::mem::take(&mut sync.answer));
                }
                if was == Some(Said::CaughtUp) {
                    self.note_caught_up(cx, &std::mem::take(&mut sync.answer));
                }
                if was == Some(Said::Order) {
                    self.note_order(role, &std::mem::take(&mut sync.answer));
                }
                if was == Some(Said::Track)
                    && outcome
                        .error
                        .is_some_and(|code| Said::Track.may_fail_with(code))
                {
                    self.note_track_refused(role);
                }
                if let Some(Said::Condition | Said::Conditions) = was {
                    if was == Some(Said::Conditions) && outcome.error.is_none() {
                        self.note_conditions(role, &sync.answer);
                    }
                    sync.answer.clear();
                    if sync.said.is_empty() {
                        // Now it can go.
                        self.is_done = true;
                    } else {
                        sync.tracker = self.tracker_for(role, sync.said.front().copied());
                        self.sync = Some(sync);
                    }
                    return walk.consumed;
                }
                if was == Some(Said::Numbers) {
                    // An error does not tell that it left a transaction open.
                    if let Some(status) = outcome.status.filter(|_| role == Role::Primary) {
                        self.note_status(status);
                    }
                    self.note_numbers(role, &sync.answer, out);
                    sync.answer.clear();
                    if self.link(role).is_ready() && !sync.said.is_empty() {
                        self.is_done = false;
                        sync.tracker = self.tracker_for(role, sync.said.front().copied());
                        self.sync = Some(sync);
                    }
                    return walk.consumed;
                }
                if let (Some(code), Some(was)) = (outcome.error, was)
                    && !was.may_fail_with(code)
                {
                    let answer = input.get(..walk.consumed).unwrap_or_default();
                    return self
                        .sync_refused(cx, role, was, (code, answer), client, out)
                        .unwrap_or(input.len());
                }
                sync.tracker = self.tracker_for(role, sync.said.front().copied());
                if !sync.said.is_empty() {
                    self.sync = Some(sync);
                } else if matches!(
                    was,
                    Some(Said::State | Said::Option | Said::Whatever | Said::Track | Said::Begin)
                ) {
                    self.is_to_begin &= was != Some(Said::Begin);
                    self.synced(role, out);
                } else if was == Some(Said::Alive) || self.retired[role as usize] {
                    // Given up before the command is looked at again.
                    self.is_done = true;
                }
            }
        }
        walk.consumed
    }

    /// What FOUND_ROWS() gives behind what was said.
    fn note_found_of(&mut self, role: Role, was: Option<Said>, error: Option<u16>) {
        let Some(known) = self.link_mut(role).known_mut() else {
            return;
        };
        match was {
            Some(Said::State | Said::Option | Said::Whatever | Said::Begin | Said::Warnings) => {}
            Some(Said::Condition | Said::Prepare(_) | Said::Alive) => {}
            Some(Said::Found) if error.is_none() => {}
            Some(Said::Clear) if error.is_none() => known.found_rows = Some(0),
            _ => known.found_rows = None,
        }
    }

    /// Takes the changes out of the packet that ends an answer.
    fn take_changes_of(&mut self, role: Role, answer: &mut Vec<u8>, at: usize) {
        let len = answer
            .get_mut(at..)
            .map_or(0, |packet| self.take_changes(role, packet));
        answer.truncate(at + len);
    }

    /// The connection is in the session's state.
    fn synced(&mut self, role: Role, out: &mut Outputs) {
        let status = self.link(role).known().map(|known| known.status);
        if let Some(status) = status
            && role == Role::Primary
        {
            self.note_status(status);
        }
        self.login_synced(None, out);
    }

    /// A statement is prepared on a connection.
    pub(super) fn note_prepared(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        text: &Arc<super::texts::Text>,
        id: u32,
        out: &mut Outputs,
    ) {
        let max = cx.snapshot.config.pool.statements;
        if let Some(known) = self.links[role as usize].known_mut() {
            known
                .statements
                .insert(text, (id, cx.texts.era()), max, &mut |id| {
                    close_statement(role, id, out)
                });
        }
    }

    /// The server would not take what Atlas said. Without the session's state the connection is of no use; that a statement
    /// cannot be prepared is the statement's own fault, and whatever the connection holds (a transaction!) stays. `None` when
    /// the connection is gone.
    fn sync_refused(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        said: Said,
        (code, answer): (u16, &[u8]),
        client: &mut [u8],
        out: &mut Outputs,
    ) -> Option<usize> {
        if is_going_away(code) {
            out.push(Output::CloseBackend {
                role,
                parting: Parting::Silent,
            });
            self.on_backend_lost(cx, role, "the server is going away", client, out);
            return None;
        }
        // A read that went behind it is answered by what follows, and what follows goes with the connection.
        if let Some(reply) = self.reply.take_if(|reply| reply.role == role) {
            self.say_again(&reply.command, client);
            if let Some(excess) = self.excess_on(role) {
                // Its time is up, and the KILL has met what went before it.
                let fault = self.excess_fault(cx, excess);
                self.drop_link(role, out);
                self.fail_command(cx, &fault, client, out);
                return None;
            }
        }
        if code == INTERRUPTED && role == Role::Replica && self.awaits_backend().is_none() {
            // Somebody has ended what the client waits for, or the server is being stopped: as where it meets the statement itself.
            let host = self.link(role).known().map(|known| known.host);
            self.attempt.is_interrupted = true;
            self.ask_first();
            out.push(Output::Cut { role });
            self.drop_link(role, out);
            self.replica_failed(host, "the statement was interrupted".to_owned());
            return None;
        }
        let fault = server_fault(&self.dressed_answer(role, answer));
        if self.awaits_backend().is_some() {
            self.drop_link(role, out);
            self.login_synced(Some(fault), out);
            return None;
        }
        if matches!(said, Said::Prepare(_)) && self.part_not_prepared(&fault) {
            return Some(answer.len());
        }
        let stays = matches!(said, Said::Prepare(_) | Said::Columns(_) | Said::Found);
        if !stays {
            self.drop_link(role, out);
        }
        match role {
            // It may not have what the primary has yet: a schema, a table, a role.
            Role::Replica if self.may_fall_back(cx) => {
                self.attempt.force_primary = true;
                self.attempt.why = fault.to_string().into();
            }
            Role::Replica | Role::Primary => self.fail_command(cx, &fault, client, out),
        }
        stays.then_some(answer.len())
    }

    /// A connection is there.
    pub fn on_backend_ready(&mut self, role: Role, known: Box<Known>, out: &mut Outputs) {
        if self.waiting == Some(role) {
            self.waiting = None;
        }
        self.take_up(role, known, out);
        self.login_backend_ready(role, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_no_refusal() {
        for (said, refused, ended) in [
            (Said::Whatever, true, false),
            (Said::Track, true, false),
            (Said::Shown, true, true),
            (Said::State, false, false),
        ] {
            assert_eq!(said.may_fail_with(1273), refused, "{said:?}");
            for code in [INTERRUPTED, TIMED_OUT] {
                assert_eq!(said.may_fail_with(code), ended, "{said:?} {code}");
            }
        }
    }
}
