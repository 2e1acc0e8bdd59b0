//! The short way of plain reads: a SELECT without any trait or hint, from a session that is in the middle of nothing, that names no
//! sharded table and meets no rule or limit, with a reply that arrives whole and tells of nothing.
//!
//! Nearly all statements of a busy client are of this kind. What is decided and noted here is what the ordinary way decides and notes;
//! it is a matter of cost only. That way has many turnings, and where the caches have gone cold since the last statement each line
//! of its code is waited for. At the first sign of anything else this gives up before anything was changed.

use std::time::Duration;

use super::departure::Departure;
use super::{
    Access, Attempt, Cx, Expect, Outcome, Output, Outputs, Role, Running, Session, Texts, What,
};
use crate::config::{Causal, ReadFrom};
use crate::route::{Pins, Reason, Route};
use crate::sql::{Kind, Statement, Traits};
use crate::wire::Status;

/// Flags that tell of a cursor, of rows that were described otherwise, or of a change.
const TELLING: Status = Status(
    Status::CURSOR_EXISTS.0
        | Status::LAST_ROW_SENT.0
        | Status::METADATA_CHANGED.0
        | Status::PS_OUT_PARAMS.0
        | Status::SESSION_STATE_CHANGED.0,
);

impl Session {
    /// Where the statement goes, if it is a plain read. `may_name`: of a sharded table, perhaps.
    #[inline]
    pub(super) fn plain_route(
        &self,
        cx: &Cx<'_>,
        statement: &Statement<'_>,
        may_name: bool,
    ) -> Option<Route> {
        let is_plain = statement.kind == Kind::Read
            && statement.traits == Traits::NONE
            && statement.hint.is_none();
        let is_free = !cx.snapshot.governs(self.account);
        let is_sharded = self.moved_to.is_some() || self.dress.is_some() || self.is_in_pieces();
        if !is_plain || !is_free || is_sharded {
            return None;
        }
        let is_away = self.warned_dress.is_none() && self.begun.is_empty() && !self.diary.is_leg;
        if cx.snapshot.placement.is_some() && (may_name || !is_away) {
            return None;
        }
        let at_rest = !self.has_area()
            && self.status & (Status::IN_TRANS | Status::AUTOCOMMIT) == Status::AUTOCOMMIT
            && !self.is_to_begin
            && self.state.pins() == Pins::default()
            && self.state.ansi_quotes().is_some();
        let is_first_try = !self.attempt.cut && !self.attempt.force_primary;
        let account = self.account(cx.snapshot);
        if !at_rest || !is_first_try || account.causal != Causal::Off {
            return None;
        }
        let (role, reason) = if account.read_from == ReadFrom::Primary {
            (Role::Primary, Reason::Account)
        } else if !self.group(cx.snapshot).replicas.is_empty() {
            (Role::Replica, Reason::PlainRead)
        } else if self.may_fall_back(cx) {
            (Role::Primary, Reason::NoReplica)
        } else {
            return None;
        };
        Some(Route { role, reason })
    }

    /// Whether the ordinary way comes to the same: looked at wherever debug assertions are, so by all tests and the simulation.
    pub(super) fn is_ordinary(
        &self,
        cx: &Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        route: Route,
    ) -> bool {
        let mut ordinary = self.decide(cx, sql, statement);
        let settled = self.settle(cx, &mut ordinary, statement.kind, statement.traits);
        settled.is_ok() && ordinary == route && self.plan(cx, sql, statement, false).is_none()
    }

    /// How such a read leaves. Its text begins `at` so many bytes behind the packet's head.
    #[inline]
    pub(super) fn plain_departure(&self, cx: &Cx<'_>, route: Route, at: usize) -> Departure {
        let is_read = route.role == Role::Replica;
        let waits = !is_read && self.may_wait_for_primary(cx, Traits::NONE);
        Departure {
            role: route.role,
            access: if is_read { Access::Read } else { Access::Write },
            expect: Some(Expect::Response),
            what: What::Query {
                at,
                traits: Traits::NONE,
                kind: Kind::Read,
            },
            retain: is_read || waits,
            may_retry: is_read,
            waits,
            keeps_last: false,
            keeps_area: false,
            names: None,
            dresses: false,
        }
    }

    /// Whether a reply that came whole is one to a plain read and tells of nothing; the status flags in it.
    #[inline]
    pub(super) fn ends_plainly(&self) -> Option<Status> {
        let reply = self.reply.as_ref()?;
        let (What::Query { kind, traits, .. } | What::Execute { kind, traits, .. }) =
            reply.command.what
        else {
            return None;
        };
        if !is_plain(kind, traits) {
            return None;
        }
        let Outcome {
            status: Some(status),
            error: None,
            insert_id: 0,
            ..
        } = reply.tracker.outcome()
        else {
            return None;
        };
        let tells = status & TELLING != Status::NONE
            || self.upload.is_some()
            || self.tracked.told.state
            || self.state.has_notes();
        (!tells).then_some(status)
    }

    /// Ends such a reply.
    pub(super) fn end_plain(&mut self, now: Duration, texts: &mut Texts, out: &mut Outputs) {
        let (Some(status), Some(reply)) = (self.ends_plainly(), &self.reply) else {
            return;
        };
        let (role, command) = (reply.role, reply.command);
        let id = match command.what {
            What::Execute { id, .. } => Some(id),
            _ => None,
        };
        // The same, so that what is not so is not looked for in what is inlined here.
        let outcome = Outcome {
            error: None,
            insert_id: 0,
            ..reply.tracker.outcome()
        };
        self.tell_done(now, texts, out);
        self.reply = None;
        self.is_done = true;
        if let Some(known) = self.link_mut(role).known_mut() {
            known.status = status;
        }
        if let Some(id) = id
            && let Some(statement) = self.statements.get_mut(id)
        {
            statement.long_data = false;
            statement.cursor = false;
        }
        let plain = Running {
            what: What::Query {
                at: 0,
                traits: Traits::NONE,
                kind: Kind::Read,
            },
            ..command
        };
        if role == Role::Primary {
            self.note_status(status);
            self.note_done(plain, outcome);
        }
        self.note_last(role, plain, outcome);
        self.lock_reply = None;
        self.attempt = Attempt::default();
        if command.retained > 0 {
            out.push(Output::Consume(command.retained));
        }
        self.note_in_diary(now);
    }
}

fn is_plain(kind: Kind, traits: Traits) -> bool {
    kind == Kind::Read && traits == Traits::NONE
}
