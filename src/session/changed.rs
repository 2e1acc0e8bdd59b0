//! What a statement that ran on a connection changed of the session, as its text says.

use std::sync::Arc;

use super::locks::LockAnswer;
use super::state::{Stored, UNKNOWN_STATEMENT};
use super::tracking::Tracking;
use super::{Outcome, Role, Session};
use crate::sql::{self, Dialect, Effect, Kind, LockUse, Traits};

impl Session {
    /// Notes what a statement changed. Its text comes with whether it had parameters.
    pub(super) fn note_statement(
        &mut self,
        kind: Kind,
        traits: Traits,
        (sql, bound): (&[u8], bool),
        outcome: Outcome,
        dialect: &Dialect,
    ) {
        if traits.contains(Traits::LOCK_FUNCTION) {
            self.note_locks(traits, sql, outcome, dialect);
        }
        if traits.intersects(Traits::UNKNOWN_FUNCTION | Traits::CALL) {
            self.state.set_user_variables_unknown();
        }
        if traits.contains(Traits::CALL) && (outcome.error.is_some() || !self.is_told_all()) {
            // MariaDB tells of what a failing statement left with the next one that changes something itself.
            self.state.set_called();
        }
        if kind == Kind::Execute {
            return self.note_executed(sql, outcome, dialect);
        }
        let assigns = traits.contains(Traits::USER_VAR_WRITE);
        if !traits.contains(Traits::EFFECTS) {
            if assigns {
                self.state.set_user_variables_unknown();
            }
            return;
        }
        let state = &mut self.state;
        match outcome.error {
            None => {
                state.begin_text();
                sql::effects(sql, dialect, &mut |effect| {
                    state.note_read(&effect, bound, dialect);
                });
                if assigns {
                    state.check_assigned();
                }
                if traits.contains(Traits::MULTI) {
                    state.end_batch(sql);
                }
            }
            // Of a batch some statements may have run before the one that failed.
            Some(_) if traits.contains(Traits::MULTI) => {
                state.set_opaque();
                state.set_user_variables_unknown();
            }
            // Servers know the variable from then on, though it has no value.
            Some(_) if assigns => state.set_assigned_unknown(sql, dialect),
            Some(code) => sql::effects(sql, dialect, &mut |effect| {
                state.note_missing(&effect, code);
            }),
        }
    }

    /// An EXECUTE changes what its text changes, if that is known.
    fn note_executed(&mut self, sql: &[u8], outcome: Outcome, dialect: &Dialect) {
        match self
            .stored_in(sql, dialect)
            .filter(|stored| self.state.is_at_home(stored))
        {
            Some(stored) => {
                self.state.set_executed(&stored);
                let text = (&*stored.sql, stored.has_markers);
                self.note_statement(stored.kind, stored.traits, text, outcome, &stored.dialect);
            }
            None if outcome.error == Some(UNKNOWN_STATEMENT) => {}
            None => {
                self.state.set_opaque();
                self.state.set_user_variables_unknown();
            }
        }
    }

    /// What an EXECUTE runs, if that is known.
    pub(super) fn stored_in(&self, sql: &[u8], dialect: &Dialect) -> Option<Arc<Stored>> {
        let mut stored = None;
        sql::effects(sql, dialect, &mut |effect: Effect<'_>| {
            stored = self
                .state
                .stored(&effect, dialect)
                .or_else(|| stored.take());
        });
        stored
    }

    fn note_locks(&mut self, traits: Traits, sql: &[u8], outcome: Outcome, dialect: &Dialect) {
        let reply = self.lock_reply.take();
        let answer = reply
            .as_ref()
            .map_or(LockAnswer::Unknown, |reply| reply.answer(outcome));
        let lock = if traits.contains(Traits::MULTI) {
            LockUse::Unknown
        } else {
            sql::lock_use(sql, dialect)
        };
        let parameter = reply.as_ref().and_then(|reply| reply.parameter.as_deref());
        self.state.use_lock(lock, parameter, answer);
    }

    /// Whether the server of the primary's connection tells of all changes of session state.
    fn is_told_all(&self) -> bool {
        let known = self.link(Role::Primary).known();
        known.is_some_and(|known| matches!(known.tracking, Tracking::Full { .. }))
    }
}
