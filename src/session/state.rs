//! The session's state as the client set it: what must be brought to a connection before it is used, and what keeps the
//! session's reads on the primary. Reads `sql::Effect`s, makes replays; sends nothing.
//!
//! State is a short history of statements that give the same state on another connection. An entry leaves when a later
//! one replaces it. What cannot be said again elsewhere becomes a pin: its state lives on the primary only.

mod collation;
mod ends;
mod objects;
mod reported;
mod temporary;
mod variables;

pub(super) use objects::{Stored, UNKNOWN_STATEMENT};

use std::sync::Arc;
use std::time::Duration;

use super::history::{Entry, History, MadeFrom};
use super::locks::{LockAnswer, UserLocks};
use super::replay::{Replay, is_off, is_reading, literal_word, neutral, seconds};
use crate::route::Pins;
use crate::sql::{Charset, Effect, Kind, LockUse, Scope, Server, Traits, Value};

/// A session replays at most so many statements…
const HISTORY_ENTRIES: usize = 64;
/// …of so many bytes in all; beyond, its reads stay on the primary.
const HISTORY_BYTES: usize = 16 * 1024;

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct State {
    schema: Option<Vec<u8>>,
    /// Shared with what is known of the connections that are in this state.
    history: Arc<History>,
    pins: Pins,
    temporary: Vec<temporary::Name>,
    /// There may be temporary tables beside those that are counted.
    temporary_uncounted: bool,
    locks: UserLocks,
    objects: objects::Objects,
    /// User variables of whose values nothing is known.
    unknown: variables::Unknown,
    /// What the text ran that was noted last, if that was EXECUTE and it is known.
    executed: Option<(Kind, Traits)>,
    charset: Charset,
    /// `None` when only the server knows.
    ansi_quotes: Option<bool>,
    default_ansi_quotes: Option<bool>,
    /// Values are refused that a column cannot hold; `None` when only the server knows.
    is_strict: Option<bool>,
    default_is_strict: Option<bool>,
    /// The client may be in another schema than it seems.
    schema_unknown: bool,
    /// LAST_INSERT_ID() was set, of which the session is to be told.
    id_was_set: bool,
    /// What later sessions begin with was changed, which the shell is to be told.
    defaults_changed: bool,
    /// The session has set its wait_timeout.
    idle_limit: Option<Duration>,
    /// Keys that the text being noted has assigned so far.
    assigned: Vec<Vec<u8>>,
    /// Variables that were assigned a value which only the server knows, until it has told of it.
    unresolved: Vec<Vec<u8>>,
    /// Settings of session tracking were set.
    tracks_itself: bool,
}

impl State {
    /// The state of a session that has just logged in.
    #[must_use]
    pub(super) fn new(
        schema: Option<Vec<u8>>,
        charset: Charset,
        ansi_quotes: Option<bool>,
        is_strict: Option<bool>,
    ) -> Self {
        Self {
            history: Arc::new(History::after_login(schema.as_deref())),
            schema,
            charset,
            ansi_quotes,
            default_ansi_quotes: ansi_quotes,
            is_strict,
            default_is_strict: is_strict,
            ..Self::default()
        }
    }

    /// COM_RESET_CONNECTION: everything but the schema is gone. MariaDB returns to the log-in's character set, MySQL to the
    /// server's own, which is another state than that after a log-in.
    pub(super) fn reset(&mut self, charset: Charset, server: Server) {
        let schema = self.schema.take();
        let schema_unknown = self.schema_unknown;
        let (quotes, is_strict) = (self.default_ansi_quotes, self.default_is_strict);
        *self = Self::new(schema, charset, quotes, is_strict);
        if schema_unknown {
            // Until it is said again.
            self.set_opaque();
        }
        if server == Server::MySql {
            self.append(Entry {
                key: b"reset".to_vec(),
                replay: Replay::Reset,
                neutral: true,
                depends: false,
                made_from: MadeFrom::Itself,
            });
        }
    }

    /// The current schema as far as it is known.
    #[must_use]
    pub(super) fn schema(&self) -> Option<&[u8]> {
        self.schema.as_deref()
    }

    /// The client may be in another schema than it seems.
    #[must_use]
    pub(super) fn is_schema_unknown(&self) -> bool {
        self.schema_unknown
    }

    /// What holds reads or the connection.
    #[must_use]
    pub(super) fn pins(&self) -> Pins {
        self.pins
    }

    /// How the client's bytes are to be read.
    #[must_use]
    pub(super) fn charset(&self) -> Charset {
        self.charset
    }

    /// Whether `"` quotes identifiers; `None` when unknown.
    #[must_use]
    pub(super) fn ansi_quotes(&self) -> Option<bool> {
        self.ansi_quotes
    }

    /// What a connection in this state was told since its log-in.
    #[must_use]
    pub(super) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// A connection is in an equal state: from here on the two are told apart without comparing.
    pub(super) fn adopt(&mut self, equal: &Arc<History>) {
        self.history = equal.clone();
    }

    /// The state changed in a way that was not understood; the schema may be another one.
    pub(super) fn set_opaque(&mut self) {
        self.pins.set(Pins::OPAQUE);
        self.schema_unknown = true;
    }

    /// How long the session may be idle, where it has said so itself.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        self.idle_limit
    }

    /// Whether there is anything that the end of a reply takes or gives up.
    pub(super) fn has_notes(&self) -> bool {
        self.id_was_set || self.defaults_changed || self.has_executed() || self.has_unresolved()
    }

    /// Whether a statement set LAST_INSERT_ID(), since this was asked last.
    pub(super) fn take_id_was_set(&mut self) -> bool {
        std::mem::take(&mut self.id_was_set)
    }

    /// Whether a statement changed what later sessions begin with, since this was asked last.
    pub(super) fn take_defaults_changed(&mut self) -> bool {
        std::mem::take(&mut self.defaults_changed)
    }

    /// The effects that follow are those of one text. A SET finds all its values before it assigns the first one, so a value
    /// that looks at what the text itself assigns cannot be replayed by assignments one after the other.
    pub(super) fn begin_text(&mut self) {
        self.assigned.clear();
    }

    /// The text that was noted has several statements: those behind a change of sql_mode or character set were read by the
    /// server in another way than here, unless the text reads the same in all.
    pub(super) fn end_batch(&mut self, text: &[u8]) {
        if !neutral(text) && self.assigned.iter().any(|key| is_reading(key)) {
            self.set_opaque();
            self.set_user_variables_unknown();
        }
    }

    /// A function of the GET_LOCK family ran and gave this answer. `parameter` is the statement's first one.
    pub(super) fn use_lock(
        &mut self,
        lock: LockUse<'_>,
        parameter: Option<&[u8]>,
        answer: LockAnswer,
    ) {
        self.locks.note(lock, parameter, answer);
        if self.locks.are_held() {
            self.pins.set(Pins::USER_LOCKS);
        } else {
            self.pins.clear(Pins::USER_LOCKS);
        }
    }

    /// A transaction began and ended, so SET TRANSACTION no longer waits.
    pub(super) fn transaction_done(&mut self) {
        self.pins.clear(Pins::ONE_SHOT);
    }

    /// A schema was dropped: if it was the current one there is none now. The status flag of the reply does not tell: it
    /// stands for any schema.
    fn drop_schema(&mut self, name: &[u8]) {
        match self.schema.as_deref() {
            Some(current) if current == name => {
                self.schema = None;
                let history = Arc::make_mut(&mut self.history);
                history.forget_schema();
                history.forget_schemas_own();
                if self.has_character_set() {
                    // It took the collation of a schema that cannot be gone to any more.
                    self.pins.set(Pins::OPAQUE);
                }
            }
            // Whether these two are the same hangs on the server's settings.
            Some(current) if current.eq_ignore_ascii_case(name) => self.pins.set(Pins::OPAQUE),
            _ => {}
        }
    }

    /// SET CHARACTER SET is part of the history.
    fn has_character_set(&self) -> bool {
        self.history
            .entries()
            .iter()
            .any(|e| e.key == b"character set")
    }

    /// The schema was changed, by USE or COM_INIT_DB.
    pub(super) fn use_schema(&mut self, name: &[u8]) {
        Arc::make_mut(&mut self.history).forget_schemas_own();
        self.place_schema(name);
    }

    fn place_schema(&mut self, name: &[u8]) {
        let had_one = self.schema.replace(name.to_vec()).is_some();
        self.schema_unknown = false;
        let replace = !self.has_character_set();
        if !replace && !had_one {
            // SET CHARACTER SET saw no schema, which a connection opened with this one cannot come back to.
            self.pins.set(Pins::OPAQUE);
        }
        let replay = Replay::InitDb(name.to_vec());
        let entries = self.history.entries();
        let newest = entries.iter().rev().find(|e| e.key == b"schema");
        if newest.is_none_or(|e| e.replay != replay) {
            let neutral = name.is_ascii();
            self.record(b"schema", replay, neutral, !replace, MadeFrom::Itself);
        }
    }

    /// Notes an effect of a statement that succeeded on the primary's connection. `bound` says that the statement was
    /// executed with parameters, so that a `?` in its text stands for a value not to be seen there.
    pub(super) fn note(&mut self, effect: &Effect<'_>, bound: bool) {
        match *effect {
            Effect::SetVariable {
                scope: Scope::Session,
                name,
                value,
            } => self.set_variable(name, value, bound),
            Effect::SetVariable {
                scope: Scope::OneShot,
                ..
            } => self.pins.set(Pins::ONE_SHOT),
            Effect::SetVariable {
                scope: Scope::Global | Scope::Persist,
                ..
            } => {
                // The session itself keeps what it began with, which only its connection has.
                self.pins.set(Pins::OLD_DEFAULTS);
                self.defaults_changed = true;
            }
            Effect::SetUserVariable { name, value } => self.set_user_variable(name, value, bound),
            Effect::Names { charset, collation } => self.set_names(charset, collation),
            Effect::CharacterSet(charset) => self.set_character_set(charset),
            Effect::SetTransaction {
                scope: Scope::Session,
                text,
            } => self.set_transaction(text),
            Effect::SetTransaction {
                scope: Scope::OneShot,
                ..
            } => self.pins.set(Pins::ONE_SHOT),
            Effect::SetTransaction { .. } => {}
            Effect::Use(name) => self.use_schema(name),
            Effect::CreateTemporary(table) => self.add_temporary(table),
            Effect::DropTables { table, .. } => self.drop_temporary(table),
            Effect::LockTables => self.pins.set(Pins::LOCKED_TABLES),
            Effect::UnlockTables => self.pins.clear(Pins::LOCKED_TABLES),
            Effect::HandlerOpen(name) => self.open_handler(name),
            Effect::HandlerClose(name) => self.close_handler(name),
            Effect::Deallocate(name) => self.deallocate(name),
            // These are noted with the dialect that they are read in.
            Effect::Prepare { .. } => self.prepared_unnamed(),
            Effect::Execute(_) | Effect::ExecuteImmediate(_) => {
                self.set_opaque();
                self.set_user_variables_unknown();
            }
            Effect::Call => {
                self.pins.set(Pins::ROUTINE);
                self.set_user_variables_unknown();
            }
            Effect::SetRole(text) => {
                let mut statement = b"SET ROLE ".to_vec();
                statement.extend_from_slice(text);
                let replay = Replay::Query(statement);
                self.record(b"role", replay, neutral(text), false, MadeFrom::Itself);
            }
            Effect::DropDatabase(name) => self.drop_schema(name),
            // One of them may have another name now.
            Effect::RenameTables => {
                self.temporary_uncounted |= self.pins.any_of(Pins::TEMPORARY_TABLES);
            }
            Effect::SetPassword => {}
            Effect::Opaque => {
                self.set_opaque();
                self.set_user_variables_unknown();
            }
        }
    }

    fn set_variable(&mut self, name: &[u8], value: Value<'_>, bound: bool) {
        let name = name.to_ascii_lowercase();
        self.tracks_itself |= name.starts_with(b"session_track");
        match name.as_slice() {
            // The status flags of replies tell, and reads go elsewhere only while it is on.
            b"autocommit" => return,
            // The connection knows, and is asked before it is given back.
            b"last_insert_id" | b"identity" => {
                self.id_was_set = true;
                return;
            }
            b"insert_id" => return self.pins.set(Pins::INSERT_ID),
            // Counted here: the connection serves others meanwhile.
            b"wait_timeout" => self.idle_limit = seconds(value.text),
            b"sql_mode" => self.note_mode(value.text),
            // What it collects stays with the connection, and would tell of others there.
            b"profiling" => self.pins.set(Pins::OPAQUE),
            // RAND() goes on from there, on this connection.
            b"rand_seed1" | b"rand_seed2" => return self.pins.set(Pins::OPAQUE),
            // `id IS NULL` finds what this connection has inserted last.
            b"sql_auto_is_null" if !is_off(value.text) => self.pins.set(Pins::OPAQUE),
            b"character_set_client" => {
                match literal_word(value.text).map(|w| Charset::from_name(&w)) {
                    Some(charset) => self.charset = charset,
                    None => self.pins.set(Pins::OPAQUE),
                }
            }
            _ => {}
        }
        let can_replay = self.can_replay(value, bound);
        self.assigned.push(name.clone());
        if !can_replay {
            self.unresolved.push(name);
            return;
        }
        self.assign(&name, value);
    }

    /// SET SESSION TRANSACTION: one of them sets the isolation level, another the access mode, so none takes another's place.
    fn set_transaction(&mut self, text: &[u8]) {
        let replay = Replay::Query(text.to_vec());
        Arc::make_mut(&mut self.history).drop_repeated(b"transaction", &replay);
        self.append(Entry {
            key: b"transaction".to_vec(),
            replay,
            neutral: neutral(text),
            depends: false,
            made_from: MadeFrom::Itself,
        });
    }

    fn assign(&mut self, name: &[u8], value: Value<'_>) {
        let mut text = b"SESSION ".to_vec();
        text.extend_from_slice(name);
        text.extend_from_slice(b" = ");
        text.extend_from_slice(value.text);
        let depends = value.text.contains(&b'@');
        let neutral = neutral(value.text);
        let made_from = MadeFrom::of_setting(value.text);
        self.record(name, Replay::Assign(text), neutral, depends, made_from);
    }

    fn can_replay(&self, value: Value<'_>, bound: bool) -> bool {
        let has_marker = bound && value.text.contains(&b'?');
        let is_unknown = value.user_vars && self.pins.any_of(Pins::USER_VARIABLES);
        value.replayable && !has_marker && !is_unknown && !self.looks_at_assigned(value.text)
    }

    /// The value may hang on something that the same text has assigned before it.
    fn looks_at_assigned(&self, value: &[u8]) -> bool {
        self.assigned.iter().any(|key| match key.first() {
            Some(b'@') => value.contains(&b'@'),
            _ if is_reading(key) => value.contains(&b'@') || !neutral(value),
            _ => value.windows(2).any(|pair| pair == b"@@"),
        })
    }

    fn set_names(&mut self, charset: Option<&[u8]>, collation: Option<&[u8]>) {
        let mut text = b"SET NAMES ".to_vec();
        text.extend_from_slice(charset.unwrap_or(b"DEFAULT"));
        if let Some(collation) = collation {
            text.extend_from_slice(b" COLLATE ");
            text.extend_from_slice(collation);
        }
        self.charset_from(charset);
        self.assigned.push(b"names".to_vec());
        self.record(b"names", Replay::Query(text), true, false, MadeFrom::Itself);
    }

    fn set_character_set(&mut self, charset: Option<&[u8]>) {
        let mut text = b"SET CHARACTER SET ".to_vec();
        text.extend_from_slice(charset.unwrap_or(b"DEFAULT"));
        self.charset_from(charset);
        self.assigned.push(b"character set".to_vec());
        // The connection's collation becomes that of the schema at this moment: the schema is replayed before it, and schema
        // changes behind it do not take its place.
        if let Some(schema) = self.schema.clone() {
            self.place_schema(&schema);
        }
        let replay = Replay::Query(text);
        self.record(b"character set", replay, true, false, MadeFrom::Itself);
    }

    fn charset_from(&mut self, charset: Option<&[u8]>) {
        // DEFAULT is the server's own, which is a plain set on any server that anyone runs behind a proxy.
        match charset
            .map_or(Some(Vec::new()), literal_word)
            .map(|w| Charset::from_name(&w))
        {
            Some(charset) => self.charset = charset,
            // Not a plain name: only the server knows.
            None => self.pins.set(Pins::OPAQUE),
        }
    }

    fn record(
        &mut self,
        key: &[u8],
        replay: Replay,
        neutral: bool,
        depends: bool,
        made_from: MadeFrom,
    ) {
        if !depends {
            Arc::make_mut(&mut self.history).drop_replaced(key);
        }
        self.append(Entry {
            key: key.to_vec(),
            replay,
            neutral,
            depends,
            made_from,
        });
    }

    fn append(&mut self, entry: Entry) {
        let bytes = self.history.bytes().saturating_add(entry.replay.len());
        if self.history.entries().len() >= HISTORY_ENTRIES || bytes > HISTORY_BYTES {
            self.pins.set(Pins::HISTORY);
            self.set_user_variables_unknown();
            Arc::make_mut(&mut self.history).clear();
        }
        if !self.pins.any_of(Pins::HISTORY) {
            Arc::make_mut(&mut self.history).push(entry);
        }
    }
}
