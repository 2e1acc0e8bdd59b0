//! What ends a pin, in words for operators (`SHOW PINS`).

use super::State;
use crate::route::Pins;

const RESET: &str = "COM_RESET_CONNECTION, or the end of the session";

impl State {
    /// What ends a pin, in words for operators.
    #[must_use]
    pub(in crate::session) fn ends(&self, pin: Pins) -> &'static str {
        match pin {
            Pins::TEMPORARY_TABLES if !self.temporary_uncounted => {
                "DROP TEMPORARY TABLE of the last one, COM_RESET_CONNECTION, or the end of the session"
            }
            Pins::LOCKED_TABLES => "UNLOCK TABLES, or what else ends such a lock",
            Pins::ONE_SHOT => "the end of the next transaction",
            Pins::USER_LOCKS if self.locks.are_counted() => {
                "RELEASE_LOCK() of the last one, RELEASE_ALL_LOCKS()"
            }
            Pins::USER_LOCKS => "RELEASE_ALL_LOCKS()",
            Pins::NAMED_OBJECTS if self.objects.are_counted() => {
                "DEALLOCATE PREPARE, HANDLER CLOSE of the last one"
            }
            Pins::PREPARED_QUESTION if self.objects.are_counted() => {
                "DEALLOCATE PREPARE of the statement"
            }
            Pins::USER_VARIABLES if self.names_the_unknown() => {
                "SET of each of the variables to a constant, COM_RESET_CONNECTION, or the end of the session"
            }
            _ => RESET,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Effect;

    #[test]
    fn what_is_not_counted_has_another_end() {
        let mut state = State::default();
        state.note(&Effect::HandlerOpen(b"t"), false);
        assert!(state.ends(Pins::NAMED_OBJECTS).contains("HANDLER CLOSE"));
        state.note(&Effect::HandlerOpen(b"\xe9"), false);
        assert_eq!(state.ends(Pins::NAMED_OBJECTS), RESET);
        assert_eq!(state.ends(Pins::OPAQUE), RESET);
        assert!(state.ends(Pins::USER_VARIABLES).starts_with("SET of each"));
        state.note(&Effect::Call, false);
        assert_eq!(state.ends(Pins::USER_VARIABLES), RESET);
    }
}
