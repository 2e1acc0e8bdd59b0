//! What servers told of changed session state, held against what was expected of the statement: what a value is known of becomes
//! the session's state, and what is not known ties the connection to the session.

use super::tracking::Told;
use super::{Outcome, Output, Outputs, Role, Running, Session, What};
use crate::route::Pins;
use crate::sql::{Kind, Traits};

/// What is known of a statement that changes are told of.
#[derive(Debug, Clone, Copy)]
struct Expected {
    kind: Kind,
    traits: Traits,
    /// Its text was read for what it changes, and it has succeeded.
    was_read: bool,
}

impl Session {
    /// Notes what the reply to a command told of.
    pub(super) fn note_seen(
        &mut self,
        role: Role,
        command: Running,
        outcome: Outcome,
        out: &mut Outputs,
    ) {
        // EXECUTE changes what the text changes that it runs.
        let executed = self.state.take_executed();
        let expected = match command.what {
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                let (kind, traits) = executed.unwrap_or((kind, traits));
                let runs_stored = traits.intersects(Traits::CALL | Traits::UNKNOWN_FUNCTION);
                Expected {
                    kind,
                    traits,
                    was_read: traits.contains(Traits::EFFECTS)
                        && kind != Kind::Execute
                        && !runs_stored
                        && outcome.error.is_none(),
                }
            }
            What::LongQuery(kind) => Expected {
                kind,
                traits: Traits::NONE,
                was_read: false,
            },
            _ => Expected {
                kind: Kind::Use,
                traits: Traits::EFFECTS,
                was_read: true,
            },
        };
        self.hold_against(role, expected, out);
    }

    /// Notes what the reply to a question of Atlas's own told of: of a statement before it, which had failed.
    pub(super) fn note_seen_late(&mut self, role: Role, out: &mut Outputs) {
        let expected = Expected {
            kind: Kind::Show,
            traits: Traits::NONE,
            was_read: false,
        };
        self.hold_against(role, expected, out);
    }

    fn hold_against(&mut self, role: Role, expected: Expected, out: &mut Outputs) {
        if !self.tracked.told.state && !self.state.has_unresolved() {
            return;
        }
        let Told { variables, state } = std::mem::take(&mut self.tracked.told);
        let is_for_itself = expected.traits.contains(Traits::FOR_ITSELF) && !expected.was_read;
        if !is_for_itself {
            for (at, (name, value)) in variables.iter().enumerate() {
                let later = variables.get(at + 1..).unwrap_or_default();
                if !later.iter().any(|(other, _)| other == name) {
                    self.state.set_reported(name, value, expected.was_read);
                }
            }
        }
        self.state.give_up_unresolved();
        // Of a temporary table it is known already.
        let is_known = expected.was_read || is_for_itself || expected.kind == Kind::Ddl;
        if state && !is_known {
            self.note_unseen(role, out);
        } else if role == Role::Replica
            && let history = self.state.history().clone()
            && let Some(known) = self.link_mut(role).known_mut()
        {
            known.history = history;
        }
    }

    /// Something changed that was not expected, and nobody says what: it may be a user variable or a temporary table.
    fn note_unseen(&mut self, role: Role, out: &mut Outputs) {
        match role {
            // The session goes on without what only this connection has, as it would have done had the read gone elsewhere.
            Role::Replica => self.drop_link(role, out),
            Role::Primary => {
                if !self.state.pins().any_of(Pins::UNSEEN) {
                    out.push(Output::Unseen);
                }
                self.state.set_unseen();
            }
        }
    }
}
