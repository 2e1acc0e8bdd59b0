//! User variables: those whose values are known, which are replayed, and those that got a value which only their connection has.

use super::State;
use crate::route::Pins;
use crate::session::history::MadeFrom;
use crate::session::replay::{Replay, neutral};
use crate::sql::{self, Dialect, Effect, Value};

/// Variables that are counted by name; with more, it is taken for unknown which they are.
const NAMES: usize = 64;

/// Variables whose values nobody but their connection knows.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Keys, which begin with `@`.
    names: Vec<Vec<u8>>,
    /// There may be others beside those.
    any: bool,
}

impl Unknown {
    fn add(&mut self, key: Vec<u8>) {
        if self.names.contains(&key) {
            return;
        }
        // Servers compare other letters than these without regard to case and accents too.
        if key.is_ascii() && self.names.len() < NAMES {
            self.names.push(key);
        } else {
            self.any = true;
        }
    }
}

impl State {
    /// Some user variable may have got any value.
    pub(in crate::session) fn set_user_variables_unknown(&mut self) {
        self.unknown.any = true;
        self.pins.set(Pins::USER_VARIABLES);
    }

    /// This one has a value that only the connection has.
    fn set_unknown(&mut self, key: Vec<u8>) {
        self.unknown.add(key);
        self.pins.set(Pins::USER_VARIABLES);
    }

    /// The variables that a text assigns may have got any value, whatever became of the text.
    pub(in crate::session) fn set_assigned_unknown(&mut self, text: &[u8], dialect: &Dialect) {
        let mut found = false;
        sql::effects(text, dialect, &mut |effect| {
            if let Effect::SetUserVariable { name, .. } = effect {
                found = true;
                self.set_unknown(key(name));
            }
        });
        if !found {
            self.set_user_variables_unknown();
        }
    }

    /// The text that was noted assigns user variables, all of which it should have named.
    pub(in crate::session) fn check_assigned(&mut self) {
        if !self.assigned.iter().any(|key| key.starts_with(b"@")) {
            self.set_user_variables_unknown();
        }
    }

    pub(super) fn set_user_variable(&mut self, name: &[u8], value: Value<'_>, bound: bool) {
        let key = key(name);
        let can_replay = self.can_replay(value, bound);
        self.assigned.push(key.clone());
        if !can_replay {
            return self.set_unknown(key);
        }
        let mut text = b"@`".to_vec();
        for byte in name {
            text.push(*byte);
            if *byte == b'`' {
                text.push(b'`');
            }
        }
        text.extend_from_slice(b"` = ");
        text.extend_from_slice(value.text);
        let depends = value.text.contains(&b'@');
        let neutral = neutral(value.text) && name.is_ascii();
        let made_from = MadeFrom::of_user_variable(value.text);
        self.record(&key, Replay::Assign(text), neutral, depends, made_from);
        self.unknown.names.retain(|unknown| *unknown != key);
        if self.unknown.names.is_empty() && !self.unknown.any {
            self.pins.clear(Pins::USER_VARIABLES);
        }
    }

    /// The variables whose values are not known are known by name.
    pub(super) fn names_the_unknown(&self) -> bool {
        !self.unknown.any
    }

    /// The whole number that a variable was set to, if it is known.
    pub(in crate::session) fn number_of_variable(&self, name: &[u8]) -> Option<u64> {
        let value = self.value_of_variable(name)?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    }

    /// The value that a variable was set to, if it is known and means the same in every dialect.
    pub(super) fn value_of_variable(&self, name: &[u8]) -> Option<&[u8]> {
        let key = key(name);
        let is_unknown = self.unknown.any || self.unknown.names.contains(&key);
        if is_unknown || self.pins.any_of(Pins::HISTORY) || name.contains(&b'`') {
            return None;
        }
        let entries = self.history.entries();
        let entry = entries.iter().rev().find(|entry| entry.key == key)?;
        let Replay::Assign(text) = &entry.replay else {
            return None;
        };
        let value = text.get(name.len() + b"@`` = ".len()..)?;
        (entry.neutral && !entry.depends).then_some(value)
    }
}

fn key(name: &[u8]) -> Vec<u8> {
    let mut key = b"@".to_vec();
    key.extend_from_slice(&name.to_ascii_lowercase());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Charset, Server};

    const D: Dialect = Dialect {
        server: Server::MySql,
        version: 90_700,
        charset: Charset::Plain,
        ansi_quotes: false,
        no_backslash_escapes: false,
    };

    fn note(state: &mut State, text: &str) {
        state.begin_text();
        sql::effects(text.as_bytes(), &D, &mut |effect| {
            state.note(&effect, false)
        });
    }

    #[test]
    fn a_variable_is_known_again_when_it_is_set_to_what_is_known() {
        let mut state = State::default();
        let is_pinned = |state: &State| state.pins().any_of(Pins::USER_VARIABLES);
        note(&mut state, "SELECT @a := b, @B := c FROM t");
        assert!(is_pinned(&state) && state.names_the_unknown());
        note(&mut state, "SET @a = 1");
        assert!(is_pinned(&state));
        note(&mut state, "SET @c = 1");
        assert!(is_pinned(&state));
        note(&mut state, "SET @b = 'x'");
        assert!(!is_pinned(&state));
        note(&mut state, "SELECT c INTO @b FROM t");
        assert!(is_pinned(&state));
        note(&mut state, "SET @B = NULL");
        assert!(!is_pinned(&state));
        state.set_assigned_unknown(b"SELECT @x := 1", &D);
        assert!(is_pinned(&state));
        note(&mut state, "SET @x = 1");
        assert!(!is_pinned(&state));
    }

    #[test]
    fn what_is_not_known_by_name_stays_unknown() {
        let names: Vec<String> = (0..=NAMES).map(|n| format!("@v{n} := 1")).collect();
        let many = format!("SELECT {}", names.join(","));
        for text in ["CALL p()", "SELECT @\u{e9} := 1", &many] {
            let mut state = State::default();
            note(&mut state, text);
            for n in 0..=NAMES {
                note(&mut state, &format!("SET @v{n} = 1"));
            }
            assert!(state.pins().any_of(Pins::USER_VARIABLES), "{text}");
            assert!(!state.names_the_unknown());
        }
    }

    #[test]
    fn settings_stay_for_values_made_under_them_and_do_not_pile_up() {
        let mut state = State::default();
        for n in 0..200 {
            note(&mut state, &format!("SET time_zone = '+0{}:00'", n % 7));
            note(&mut state, "SET @a = FROM_UNIXTIME(0)");
            note(&mut state, "SET NAMES utf8mb4 COLLATE utf8mb4_bin");
            note(&mut state, "SET @b = 'b'");
            note(&mut state, "SET NAMES utf8mb4");
            note(&mut state, "SET time_zone = 'SYSTEM'");
            note(&mut state, "SET SESSION TRANSACTION READ ONLY");
            note(&mut state, "SET SESSION TRANSACTION READ WRITE");
        }
        assert!(!state.pins().any_of(Pins::HISTORY));
        let keys: Vec<_> = state.history().entries().iter().map(|e| &*e.key).collect();
        let behind = |later: &[u8], earlier: &[u8]| {
            keys.iter().position(|key| *key == earlier).unwrap()
                < keys.iter().position(|key| *key == later).unwrap()
        };
        assert!(keys.len() < 12, "{keys:?}");
        assert!(behind(b"@a", b"time_zone") && behind(b"@b", b"names"));
    }
}
