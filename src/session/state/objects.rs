//! What exists by name on one connection only: statements prepared by SQL (PREPARE to DEALLOCATE PREPARE) and open handlers. Both
//! are counted by name, and of a statement it is kept what an EXECUTE of it does to the session.

use std::sync::Arc;

use super::State;
use crate::route::Pins;
use crate::sql::{self, Dialect, Effect, Kind, Source, Traits};

/// So many of each are counted by name.
const NAMES: usize = 64;
/// A text up to this length is kept, if its execution changes the session.
const TEXT: usize = 1024;

/// A text of which it is known what it does.
#[derive(Debug)]
pub(in crate::session) struct Stored {
    /// Empty where it is of no interest.
    pub(in crate::session) sql: Box<[u8]>,
    /// How the server read it.
    pub(in crate::session) dialect: Dialect,
    pub(in crate::session) kind: Kind,
    pub(in crate::session) traits: Traits,
    /// It has values that come with its execution.
    pub(in crate::session) has_markers: bool,
    /// Names without a schema are in this one, whatever the session's is when it is executed.
    schema: Option<Vec<u8>>,
}

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Names in small letters; of a text that was not understood nothing is known.
    statements: Vec<(Vec<u8>, Option<Arc<Stored>>)>,
    /// Names in small letters.
    handlers: Vec<Vec<u8>>,
    /// There may be others beside those, until the session is reset.
    uncounted: bool,
}

impl Objects {
    pub(super) fn are_counted(&self) -> bool {
        !self.uncounted
    }
}

/// ER_UNKNOWN_STMT_HANDLER.
pub(in crate::session) const UNKNOWN_STATEMENT: u16 = 1243;
/// ER_UNKNOWN_TABLE.
const UNKNOWN_TABLE: u16 = 1109;

impl State {
    /// Notes an effect of a text that was read in this dialect.
    pub(in crate::session) fn note_read(
        &mut self,
        effect: &Effect<'_>,
        bound: bool,
        dialect: &Dialect,
    ) {
        match *effect {
            Effect::Prepare { name, from } => self.prepare(name, from, dialect),
            Effect::Execute(_) | Effect::ExecuteImmediate(_) => {
                // One among others: what it changes has a place among what they change.
                let changes = Traits::EFFECTS
                    | Traits::LOCK_FUNCTION
                    | Traits::UNKNOWN_FUNCTION
                    | Traits::CALL;
                let is_quiet = self
                    .stored(effect, dialect)
                    .is_some_and(|stored| !stored.traits.intersects(changes));
                if !is_quiet {
                    self.set_opaque();
                    self.set_user_variables_unknown();
                }
            }
            _ => self.note(effect, bound),
        }
    }

    /// What an EXECUTE runs, if that is known.
    pub(in crate::session) fn stored(
        &self,
        effect: &Effect<'_>,
        dialect: &Dialect,
    ) -> Option<Arc<Stored>> {
        match *effect {
            Effect::Execute(name) => {
                let name = name.to_ascii_lowercase();
                let found = self.objects.statements.iter().find(|(n, _)| *n == name);
                found.and_then(|(_, stored)| stored.clone())
            }
            Effect::ExecuteImmediate(from) => self.read(from, dialect).map(Arc::new),
            _ => None,
        }
    }

    /// What it changes it changes where it was prepared.
    pub(in crate::session) fn is_at_home(&self, stored: &Stored) -> bool {
        let is_there = self.schema == stored.schema && !self.schema_unknown;
        is_there || !stored.traits.contains(Traits::EFFECTS)
    }

    /// What the text that was noted last ran by EXECUTE.
    pub(in crate::session) fn take_executed(&mut self) -> Option<(Kind, Traits)> {
        self.executed.take()
    }

    /// The kind of the text that EXECUTE ran, as long as that was not taken.
    pub(in crate::session) fn executed_kind(&self) -> Option<Kind> {
        self.executed.map(|(kind, _)| kind)
    }

    pub(in crate::session) fn has_executed(&self) -> bool {
        self.executed.is_some()
    }

    pub(in crate::session) fn set_executed(&mut self, stored: &Stored) {
        self.executed = Some((stored.kind, stored.traits));
    }

    /// A procedure ran that failed, or whose changes no server told of.
    pub(in crate::session) fn set_called(&mut self) {
        self.pins.set(Pins::CALL);
    }

    /// A statement failed with this error that would have ended something: perhaps because that is not there any more.
    pub(in crate::session) fn note_missing(&mut self, effect: &Effect<'_>, code: u16) {
        match (effect, code) {
            (Effect::Deallocate(name), UNKNOWN_STATEMENT) => self.deallocate(name),
            (Effect::HandlerClose(name), UNKNOWN_TABLE) => self.close_handler(name),
            _ => {}
        }
    }

    fn prepare(&mut self, name: &[u8], from: Source<'_>, dialect: &Dialect) {
        let stored = self.read(from, dialect).map(Arc::new);
        let name = name.to_ascii_lowercase();
        let statements = &mut self.objects.statements;
        if let Some((_, place)) = statements.iter_mut().find(|(n, _)| *n == name) {
            *place = stored;
        } else if is_counted(&name) && statements.len() < NAMES {
            statements.push((name, stored));
        } else {
            return self.prepared_unnamed();
        }
        self.pin_objects();
    }

    /// A statement was prepared of which nothing is known.
    pub(super) fn prepared_unnamed(&mut self) {
        self.objects.uncounted = true;
        self.pin_objects();
    }

    pub(super) fn deallocate(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        self.objects.statements.retain(|(n, _)| *n != name);
        self.pin_objects();
    }

    pub(super) fn open_handler(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        if is_counted(&name) && self.objects.handlers.len() < NAMES {
            self.objects.handlers.push(name);
        } else {
            self.objects.uncounted = true;
        }
        self.pin_objects();
    }

    pub(super) fn close_handler(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        let handlers = &mut self.objects.handlers;
        if let Some(at) = handlers.iter().position(|n| *n == name) {
            handlers.remove(at);
        }
        self.pin_objects();
    }

    fn pin_objects(&mut self) {
        let Objects {
            statements,
            handlers,
            uncounted,
        } = &self.objects;
        let exist = *uncounted || !statements.is_empty() || !handlers.is_empty();
        let asks = |stored: &Option<Arc<Stored>>| {
            let known = stored.as_ref();
            known.is_none_or(|stored| stored.traits.contains(Traits::DIAGNOSTICS))
        };
        let may_ask = *uncounted || statements.iter().any(|(_, stored)| asks(stored));
        for (pin, is_set) in [
            (Pins::NAMED_OBJECTS, exist),
            (Pins::PREPARED_QUESTION, may_ask),
        ] {
            if is_set {
                self.pins.set(pin);
            } else {
                self.pins.clear(pin);
            }
        }
    }

    /// Reads the text of a statement to be prepared. `None` when it is not known, or not known what it does.
    fn read(&self, from: Source<'_>, dialect: &Dialect) -> Option<Stored> {
        let literal = match from {
            Source::Literal(literal) => literal,
            Source::Variable(name) => self.value_of_variable(name)?,
            Source::Other => return None,
        };
        if !matches!(literal.first(), Some(b'\'' | b'"')) {
            return None;
        }
        // On its way it is converted from one character set to another.
        let text = sql::decode(literal, dialect).filter(|text| text.is_ascii())?;
        let statement = sql::classify(&text, dialect);
        let (kind, traits) = (statement.kind, statement.traits);
        let is_odd = traits.intersects(Traits::MULTI | Traits::DOUBTFUL | Traits::UNTERMINATED)
            || matches!(
                kind,
                Kind::Prepare
                    | Kind::Execute
                    | Kind::Deallocate
                    | Kind::Batch
                    | Kind::Unknown
                    | Kind::ExplainRoute
                    | Kind::ShowLastRoute
            );
        let keeps =
            traits.intersects(Traits::EFFECTS | Traits::LOCK_FUNCTION) || kind == Kind::Kill;
        if is_odd || keeps && text.len() > TEXT {
            return None;
        }
        Some(Stored {
            has_markers: text.contains(&b'?'),
            schema: self.schema.clone(),
            sql: if keeps { text.into() } else { Box::default() },
            dialect: *dialect,
            kind,
            traits,
        })
    }
}

/// Servers compare such names as is done here. A doubled quote is in another name when the quotes are others.
fn is_counted(name: &[u8]) -> bool {
    name.is_ascii() && !name.contains(&b'`') && !name.contains(&b'"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Charset, Server};

    const D: Dialect = Dialect {
        server: Server::MariaDb,
        version: 101_119,
        charset: Charset::Plain,
        ansi_quotes: false,
        no_backslash_escapes: false,
    };

    fn note(state: &mut State, text: &str) {
        state.begin_text();
        sql::effects(text.as_bytes(), &D, &mut |effect| {
            state.note_read(&effect, false, &D);
        });
    }

    fn stored(state: &State, text: &str) -> Option<Kind> {
        let mut found = None;
        sql::effects(text.as_bytes(), &D, &mut |effect| {
            found = state.stored(&effect, &D).map(|stored| stored.kind);
        });
        found
    }

    #[test]
    fn the_pin_ends_with_the_last_of_all() {
        let mut state = State::default();
        for (text, is_pinned) in [
            ("PREPARE s FROM 'SELECT 1'", true),
            ("PREPARE S FROM 'SELECT 2'", true),
            ("PREPARE u FROM 'SELECT ?'", true),
            ("EXECUTE u USING @a", true),
            ("DEALLOCATE PREPARE s", true),
            ("DROP PREPARE `U`", false),
            ("HANDLER t OPEN", true),
            ("HANDLER t OPEN AS u", true),
            ("HANDLER T CLOSE", true),
            ("HANDLER u READ FIRST", true),
            ("HANDLER u CLOSE", false),
            (
                "PREPARE s FROM 'SELECT 1'; EXECUTE s; DROP PREPARE s",
                false,
            ),
        ] {
            note(&mut state, text);
            assert_eq!(state.pins().bind_connection(), is_pinned, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_counted_stays() {
        for name in ["\u{e9}", "`a``b`"] {
            let mut state = State::default();
            note(&mut state, &format!("PREPARE {name} FROM 'SELECT 1'"));
            note(&mut state, &format!("DROP PREPARE {name}"));
            assert!(state.pins().any_of(Pins::NAMED_OBJECTS), "{name}");
            assert!(!state.objects.are_counted());
        }
        let mut state = State::default();
        for n in 0..=NAMES {
            note(&mut state, &format!("HANDLER t{n} OPEN"));
        }
        for n in 0..=NAMES {
            note(&mut state, &format!("HANDLER t{n} CLOSE"));
        }
        assert!(state.pins().any_of(Pins::NAMED_OBJECTS));
    }

    #[test]
    fn one_that_is_not_there_any_more_is_counted_no_more() {
        let mut state = State::default();
        note(&mut state, "PREPARE s FROM 'SELECT 1'");
        note(&mut state, "HANDLER t OPEN");
        state.note_missing(&Effect::Deallocate(b"s"), UNKNOWN_TABLE);
        assert_eq!(state.objects.statements.len(), 1);
        state.note_missing(&Effect::Deallocate(b"s"), UNKNOWN_STATEMENT);
        state.note_missing(&Effect::HandlerClose(b"t"), UNKNOWN_TABLE);
        assert!(!state.pins().bind_connection());
    }

    #[test]
    fn what_an_execution_runs_is_known_by_its_preparation() {
        let mut state = State::default();
        for text in [
            "SET @q = 'INSERT INTO t VALUES (1)', @n = 1",
            "PREPARE a FROM 'SELECT \"x\"'",
            "PREPARE b FROM @q",
            "PREPARE c FROM @other",
        ] {
            note(&mut state, text);
        }
        let text = "EXECUTE IMMEDIATE 'SET @a = 1'";
        assert_eq!(stored(&state, "EXECUTE a"), Some(Kind::Read));
        assert_eq!(stored(&state, "EXECUTE B"), Some(Kind::Write));
        assert_eq!(stored(&state, text), Some(Kind::Set));
        for text in [
            "EXECUTE c",
            "EXECUTE d",
            "EXECUTE IMMEDIATE @n",
            "EXECUTE IMMEDIATE CONCAT('SELECT ', 1)",
            "EXECUTE IMMEDIATE 'EXECUTE a'",
            "EXECUTE IMMEDIATE 'FROBNICATE'",
            "EXECUTE IMMEDIATE 'SELECT 1; SELECT 2'",
        ] {
            assert_eq!(stored(&state, text), None, "{text}");
        }
        note(&mut state, "SELECT b INTO @q FROM t");
        assert_eq!(stored(&state, "EXECUTE IMMEDIATE @q"), None);
    }

    #[test]
    fn reads_stay_while_a_statement_may_ask_about_the_one_before() {
        for (text, holds) in [
            ("'SELECT ?'", false),
            ("'SELECT ROW_COUNT()'", true),
            ("'SHOW WARNINGS'", true),
            ("@unknown", true),
        ] {
            let mut state = State::default();
            note(&mut state, &format!("PREPARE s FROM {text}"));
            assert_eq!(state.pins().hold_reads(), holds, "{text}");
            note(&mut state, "DEALLOCATE PREPARE s");
            assert!(!state.pins().hold_reads());
        }
    }

    #[test]
    fn among_others_an_execution_that_changes_something_is_not_understood() {
        let mut state = State::default();
        let text = "PREPARE s FROM 'SET @a = 1'; EXECUTE s; DROP PREPARE s";
        note(&mut state, text);
        assert!(state.pins().any_of(Pins::OPAQUE));
    }
}
