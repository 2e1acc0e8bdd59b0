//! Session variables whose values the server told: those that a statement set to what only the server could work out, and those
//! that stored code set.

use super::State;
use crate::route::Pins;
use crate::session::history::sets_character_set;
use crate::session::replay::{mode_has_ansi_quotes, mode_is_strict, seconds};
use crate::sql::{Charset, Value};

impl State {
    /// For another session in the same state, as far as it can be said again elsewhere.
    #[must_use]
    pub(in crate::session) fn again(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            history: self.history.clone(),
            charset: self.charset,
            ansi_quotes: self.ansi_quotes,
            default_ansi_quotes: self.default_ansi_quotes,
            is_strict: self.is_strict,
            default_is_strict: self.default_is_strict,
            tracks_itself: self.tracks_itself,
            ..Self::default()
        }
    }

    /// sql_mode is this.
    pub(in crate::session) fn note_mode(&mut self, text: &[u8]) {
        self.ansi_quotes = mode_has_ansi_quotes(text, self.default_ansi_quotes);
        self.is_strict = mode_is_strict(text, self.default_is_strict);
    }

    /// Whether values are refused that a column cannot hold; `None` when unknown.
    #[must_use]
    pub(in crate::session) fn is_strict(&self) -> Option<bool> {
        self.is_strict
    }

    /// The session has set what its server is to tell of, and gets that.
    #[must_use]
    pub(in crate::session) fn tracks_itself(&self) -> bool {
        self.tracks_itself
    }

    /// Some variable got a value that is not known yet.
    #[must_use]
    pub(in crate::session) fn has_unresolved(&self) -> bool {
        !self.unresolved.is_empty()
    }

    /// The server told no more: what is not known now only the connection knows.
    pub(in crate::session) fn give_up_unresolved(&mut self) {
        if self.has_unresolved() {
            self.unresolved.clear();
            self.pins.set(Pins::OPAQUE);
        }
    }

    /// Something changed, and nobody says what.
    pub(in crate::session) fn set_unseen(&mut self) {
        self.pins.set(Pins::UNSEEN);
        self.pins.set(Pins::OPAQUE);
        self.set_user_variables_unknown();
    }

    /// A variable has this value now. `was_read` says that the statement's own assignments have been noted.
    pub(in crate::session) fn set_reported(&mut self, name: &[u8], value: &[u8], was_read: bool) {
        let name = name.to_ascii_lowercase();
        let unresolved = self.unresolved.iter().position(|n| *n == name);
        match unresolved {
            Some(at) => {
                self.unresolved.remove(at);
            }
            None if was_read && self.explains(&name) => return,
            None => {}
        }
        match name.as_slice() {
            // The status flags of replies tell.
            b"autocommit" => return,
            b"last_insert_id" | b"identity" => {
                self.id_was_set = true;
                return;
            }
            b"insert_id" => return self.pins.set(Pins::INSERT_ID),
            // What is told of them is not what they are to be set to.
            b"timestamp" | b"rand_seed1" | b"rand_seed2" | b"gtid_next" | b"profiling"
            | b"pseudo_thread_id" => return self.pins.set(Pins::OPAQUE),
            b"character_set_client" => self.charset = Charset::from_name(value),
            b"wait_timeout" => self.idle_limit = seconds(value),
            _ if name.starts_with(b"session_track") => return,
            _ => {}
        }
        let Some(text) = literal(value).filter(|_| !sets_character_set(&name)) else {
            // Several variables make a character set, of which not all are told.
            return self.pins.set(Pins::OPAQUE);
        };
        if name == b"sql_mode" {
            self.note_mode(&text);
        }
        let value = Value {
            text: &text,
            replayable: true,
            user_vars: false,
        };
        self.assign(&name, value);
    }

    /// The text that was noted has set it.
    fn explains(&self, name: &[u8]) -> bool {
        const KNOWN_OTHERWISE: [&[u8]; 7] = [
            b"autocommit",
            b"last_insert_id",
            b"insert_id",
            b"tx_isolation",
            b"transaction_isolation",
            b"tx_read_only",
            b"transaction_read_only",
        ];
        let is_set =
            |key: &Vec<u8>| key == name || sets_character_set(key) && sets_character_set(name);
        KNOWN_OTHERWISE.contains(&name) || self.assigned.iter().any(is_set)
    }
}

/// What gives a value that the server told: a number or a text.
fn literal(value: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(value).ok()?;
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite)
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b'.' || b == b'-');
    if is_number {
        return Some(value.to_vec());
    }
    let is_plain = text
        .bytes()
        .all(|b| (b' '..=b'~').contains(&b) && !matches!(b, b'\'' | b'"' | b'\\' | b'|'));
    is_plain.then(|| [b"'", value, b"'"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Effect, Scope};

    fn replays(state: &State) -> Vec<String> {
        let mut list = Vec::new();
        crate::session::history::History::default().bring(state.history(), &mut |say| {
            list.push(format!("{say:?}"));
        });
        list
    }

    fn set(state: &mut State, name: &[u8], text: &[u8], replayable: bool) {
        state.begin_text();
        let value = Value {
            text,
            replayable,
            user_vars: false,
        };
        let scope = Scope::Session;
        state.note(&Effect::SetVariable { scope, name, value }, false);
    }

    #[test]
    fn a_value_that_only_the_server_knew_is_known_when_it_is_told() {
        let mut state = State::default();
        set(&mut state, b"Time_Zone", b"(SELECT tz FROM c)", false);
        assert!(state.has_unresolved() && !state.pins().bind_connection());
        state.set_reported(b"time_zone", b"+03:00", true);
        state.give_up_unresolved();
        assert!(!state.pins().bind_connection());
        let mut same = State::default();
        set(&mut same, b"time_zone", b"'+03:00'", true);
        assert_eq!(replays(&state), replays(&same));
        set(&mut state, b"time_zone", b"(SELECT tz FROM c)", false);
        state.give_up_unresolved();
        assert!(state.pins().any_of(Pins::OPAQUE));
    }

    #[test]
    fn what_the_statement_says_itself_is_not_noted_again() {
        let mut state = State::default();
        set(&mut state, b"sql_select_limit", b"DEFAULT", true);
        let before = replays(&state);
        state.set_reported(b"sql_select_limit", b"18446744073709551615", true);
        assert_eq!(replays(&state), before);
        state.set_reported(b"sql_safe_updates", b"ON", true);
        assert_eq!(replays(&state).len(), 2);
    }

    #[test]
    fn values_that_stored_code_set_are_session_state() {
        let mut state = State::default();
        state.set_reported(b"sql_mode", b"ANSI_QUOTES", false);
        assert_eq!(state.ansi_quotes(), Some(true));
        assert_eq!(state.is_strict(), Some(false));
        state.set_reported(b"sql_select_limit", b"77", false);
        assert!(!state.pins().bind_connection());
        assert_eq!(replays(&state).len(), 2);
        state.set_reported(b"collation_connection", b"utf8mb4_bin", false);
        assert!(state.pins().any_of(Pins::OPAQUE));
    }

    #[test]
    fn literals() {
        let text = |value: &[u8]| literal(value).map(|l| String::from_utf8(l).expect("UTF-8"));
        assert_eq!(text(b"-1.5").as_deref(), Some("-1.5"));
        assert_eq!(text(b"").as_deref(), Some("''"));
        assert_eq!(text(b"+01:00").as_deref(), Some("'+01:00'"));
        assert_eq!(text(b"it's"), None);
        assert_eq!(text("\u{e9}".as_bytes()), None);
    }
}
