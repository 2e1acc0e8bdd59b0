//! Session state as data: the statements that give a fresh server connection the state of a session, and the shortest way
//! from the state that a connection has to the one that is wanted. Notes effects nowhere (that is `state`), sends nothing.

mod made_from;

pub(super) use made_from::MadeFrom;

use std::hash::{DefaultHasher, Hash, Hasher};

use super::replay::{Replay, is_reading};

/// The variables by which a session limits the memory of its connection, of MariaDB and of MySQL.
const MEMORY_LIMITS: [&[u8]; 2] = [b"max_session_mem_used", b"connection_memory_limit"];

/// One piece of state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    /// What it is about; a later entry of the same key takes its place.
    pub(super) key: Vec<u8>,
    pub(super) replay: Replay,
    /// How its text reads does not depend on character set and sql_mode.
    pub(super) neutral: bool,
    /// Its value names state before it.
    pub(super) depends: bool,
    /// What else went into its value.
    pub(super) made_from: MadeFrom,
}

impl Entry {
    /// It means the same whatever was said before it.
    fn stands_alone(&self) -> bool {
        self.neutral
            && !self.depends
            && self.made_from != MadeFrom::Settings
            && matches!(self.replay, Replay::Assign(_) | Replay::InitDb(_))
            || self.key == b"names"
    }

    /// Without what was said before it under this key it may have another value.
    fn hangs_on(&self, key: &[u8]) -> bool {
        self.depends || (is_reading(key) && !self.neutral) || self.made_from.hangs_on(key)
    }

    fn say(&self) -> Say<'_> {
        match &self.replay {
            Replay::Query(text) => Say::Query(text),
            // A SET finds all its values before it assigns the first.
            Replay::Assign(text) => Say::Assign {
                text,
                alone: self.depends
                    || !self.neutral
                    || self.made_from == MadeFrom::Settings
                    || is_reading(&self.key)
                    || sets_character_set(&self.key),
            },
            Replay::InitDb(name) => Say::InitDb(name),
            Replay::Reset => Say::Reset { restore: false },
        }
    }
}

/// What was said since the log-in, in order. Two connections of the same log-in with equal histories are in the same state.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The schema of the log-in.
    base: Option<Box<[u8]>>,
    entries: Vec<Entry>,
    hash: u64,
    limits_memory: bool,
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        // The first comparison settles nearly all.
        self.hash == other.hash && self.base == other.base && self.entries == other.entries
    }
}

impl Eq for History {}

/// Something to say to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say<'a> {
    /// COM_RESET_CONNECTION. MySQL forgets the log-in's character set by it, which is to be said again when `restore` is set.
    Reset {
        /// The log-in's character set is wanted.
        restore: bool,
    },
    /// COM_INIT_DB.
    InitDb(&'a [u8]),
    /// A statement.
    Query(&'a [u8]),
    /// An assignment, without the SET.
    Assign {
        /// The text.
        text: &'a [u8],
        /// It must not stand in one SET with others.
        alone: bool,
    },
}

impl History {
    /// The state after a log-in that named this schema.
    pub(super) fn after_login(schema: Option<&[u8]>) -> Self {
        let mut history = Self {
            base: schema.map(Into::into),
            ..Self::default()
        };
        history.rehash();
        history
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// The session has limited what the server may spend on it, statements that are prepared on its connection among it.
    pub(super) fn limits_memory(&self) -> bool {
        self.limits_memory
    }

    /// Of this state what decides how a text is read and what its names mean.
    pub(super) fn reading(&self) -> Self {
        let of_texts =
            |e: &&Entry| e.key == b"schema" || is_reading(&e.key) || sets_character_set(&e.key);
        let mut reading = Self {
            base: self.base.clone(),
            entries: self.entries.iter().filter(of_texts).cloned().collect(),
            ..Self::default()
        };
        reading.rehash();
        reading
    }

    /// Whether [`Self::bring`] does without a reset.
    pub(super) fn comes_to(&self, wanted: &Self) -> bool {
        let mut resets = false;
        self.bring(wanted, &mut |say| {
            resets |= matches!(say, Say::Reset { .. })
        });
        !resets
    }

    /// Whether [`Self::bring`] wants what a log-in gives.
    pub(super) fn begins_anew_for(&self, wanted: &Self) -> bool {
        let mut begins = false;
        self.bring(wanted, &mut |say| {
            begins |= matches!(say, Say::Reset { restore: true });
        });
        begins
    }

    /// Bytes that its replays take.
    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|e| e.replay.len()).sum()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.rehash();
    }

    /// Another entry of this key is to be pushed: takes out those of before, unless something behind one was made or read in its
    /// light.
    pub(super) fn drop_replaced(&mut self, key: &[u8]) {
        let (mut end, mut next_depends) = (self.entries.len(), false);
        for at in (0..end).rev() {
            let Some(entry) = self.entries.get(at).filter(|e| e.key == key) else {
                continue;
            };
            let depends = entry.depends;
            let behind = self.entries.get(at + 1..end).unwrap_or_default();
            let stays = next_depends || behind.iter().any(|e| e.hangs_on(key));
            end = at;
            next_depends = stays && depends;
            if !stays {
                self.entries.remove(at);
            }
        }
        self.rehash();
    }

    /// The same for entries that set different things under one key: an entry of this very text is to be pushed.
    pub(super) fn drop_repeated(&mut self, key: &[u8], replay: &Replay) {
        let is_same = |e: &Entry| e.key == key && e.replay == *replay;
        let Some(at) = self.entries.iter().rposition(is_same) else {
            return;
        };
        let behind = self.entries.get(at + 1..).unwrap_or_default();
        if !behind.iter().any(|e| e.key != key && e.hangs_on(key)) {
            self.entries.remove(at);
            self.rehash();
        }
    }

    /// What a schema brings with it has come.
    pub(super) fn forget_schemas_own(&mut self) {
        let is_own = |e: &Entry| {
            matches!(
                e.key.as_slice(),
                b"character_set_database" | b"collation_database"
            )
        };
        if self.entries.iter().any(is_own) {
            self.entries.retain(|e| !is_own(e));
            self.rehash();
        }
    }

    /// Forgets entries; the log-in's schema stays.
    pub(super) fn clear(&mut self) {
        self.entries = Vec::new();
        self.rehash();
    }

    /// There is no schema any more.
    pub(super) fn forget_schema(&mut self) {
        self.base = None;
        self.entries.retain(|e| e.key != b"schema");
        self.rehash();
    }

    fn rehash(&mut self) {
        let mut hasher = DefaultHasher::new();
        self.base.hash(&mut hasher);
        self.entries.hash(&mut hasher);
        self.hash = hasher.finish();
        self.limits_memory = MEMORY_LIMITS.into_iter().any(|key| self.has(key));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.entries.iter().any(|e| e.key == key)
    }

    /// The schema that a connection in this state is in.
    pub(super) fn schema(&self) -> Option<&[u8]> {
        self.entries
            .iter()
            .rev()
            .find_map(|e| match &e.replay {
                Replay::InitDb(name) => Some(name.as_slice()),
                _ => None,
            })
            .or(self.base.as_deref())
    }

    /// What brings a connection in state `self` to state `wanted`, in order. A connection cannot leave every schema, so one
    /// that has a schema is never brought to a state without (see `Shape`).
    pub(super) fn bring<'a>(&self, wanted: &'a Self, say: &mut dyn FnMut(Say<'a>)) {
        if self == wanted {
            return;
        }
        let goes_on = self.base == wanted.base && wanted.entries.starts_with(&self.entries);
        if goes_on {
            let rest = wanted.entries.get(self.entries.len()..).unwrap_or_default();
            return rest.iter().for_each(|entry| say(entry.say()));
        }
        let is_fresh = self.entries.is_empty() && !wanted.has(b"reset");
        let hangs_on_schema = wanted.has(b"character set");
        if self.may_differ_in_parts(wanted) || (is_fresh && !hangs_on_schema) {
            if !wanted.has(b"schema")
                && let Some(base) = wanted.base.as_deref()
                && self.schema() != Some(base)
            {
                say(Say::InitDb(base));
            }
            for entry in &wanted.entries {
                let has = match entry.key.as_slice() {
                    // Of several the last counts.
                    b"schema" => {
                        self.schema() == wanted.schema() || wanted.schema() != entry.replay.schema()
                    }
                    key => self
                        .entries
                        .iter()
                        .any(|e| e.key == key && e.replay == entry.replay),
                };
                if !has {
                    say(entry.say());
                }
            }
            return;
        }
        let (reset, entries) = match wanted.entries.split_first() {
            Some((first, rest)) if first.replay == Replay::Reset => (true, rest),
            _ => (false, wanted.entries.as_slice()),
        };
        say(Say::Reset { restore: !reset });
        if let Some(base) = wanted.base.as_deref()
            && self.schema() != Some(base)
        {
            say(Say::InitDb(base));
        }
        entries.iter().for_each(|entry| say(entry.say()));
    }

    /// The two can be told apart piece by piece: every piece stands alone, and `self` has none that `wanted` lacks.
    fn may_differ_in_parts(&self, wanted: &Self) -> bool {
        let both = || self.entries.iter().chain(&wanted.entries);
        let has_texts = both().any(|e| e.made_from == MadeFrom::CharacterSets);
        both().all(Entry::stands_alone)
            && (!has_texts || self.texts_come_last() && wanted.texts_come_last())
            && self
                .entries
                .iter()
                .all(|e| e.key == b"schema" || wanted.has(&e.key))
            && (self.character_sets().eq(wanted.character_sets())
                || !has_texts && both().all(|e| !sets_character_set(&e.key) || e.key == b"names"))
    }

    /// No character set was changed behind a text that has its collation from one.
    fn texts_come_last(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|e| e.made_from == MadeFrom::CharacterSets);
        !entries.any(|e| sets_character_set(&e.key))
    }

    fn character_sets(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| sets_character_set(&e.key))
    }
}

/// State of this key overlaps with that of others of its kind: SET NAMES sets several variables.
pub(super) fn sets_character_set(key: &[u8]) -> bool {
    matches!(key, b"names" | b"character set")
        || key.starts_with(b"character_set")
        || key.starts_with(b"collation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(key: &str, text: &str) -> Entry {
        Entry {
            key: key.into(),
            replay: Replay::Assign(text.into()),
            neutral: true,
            depends: false,
            made_from: MadeFrom::Itself,
        }
    }

    fn schema(name: &str) -> Entry {
        Entry {
            key: b"schema".to_vec(),
            replay: Replay::InitDb(name.into()),
            neutral: true,
            depends: false,
            made_from: MadeFrom::Itself,
        }
    }

    fn names(text: &str) -> Entry {
        Entry {
            key: b"names".to_vec(),
            replay: Replay::Query(text.into()),
            neutral: true,
            depends: false,
            made_from: MadeFrom::Itself,
        }
    }

    fn reset() -> Entry {
        Entry {
            key: b"reset".to_vec(),
            replay: Replay::Reset,
            neutral: true,
            depends: false,
            made_from: MadeFrom::Itself,
        }
    }

    fn depending(key: &str, text: &str) -> Entry {
        Entry {
            depends: true,
            ..assign(key, text)
        }
    }

    fn history(base: Option<&str>, entries: &[Entry]) -> History {
        let mut history = History::after_login(base.map(str::as_bytes));
        entries.iter().cloned().for_each(|e| history.push(e));
        history
    }

    fn said(known: &History, wanted: &History) -> Vec<String> {
        let mut list = Vec::new();
        known.bring(wanted, &mut |say| {
            list.push(match say {
                Say::Reset { restore } => format!("reset restore={restore}"),
                Say::InitDb(name) => format!("use {}", String::from_utf8_lossy(name)),
                Say::Query(text) | Say::Assign { text, .. } => {
                    String::from_utf8_lossy(text).into_owned()
                }
            });
        });
        list
    }

    #[test]
    fn equal_states_need_nothing() {
        let a = history(Some("s"), &[assign("x", "x = 1")]);
        assert!(said(&a, &a.clone()).is_empty());
    }

    #[test]
    fn a_fresh_connection_is_told_everything() {
        let wanted = history(
            Some("s"),
            &[names("SET NAMES utf8mb4"), assign("x", "x = 1")],
        );
        let fresh = history(Some("s"), &[]);
        assert_eq!(said(&fresh, &wanted), ["SET NAMES utf8mb4", "x = 1"]);
    }

    #[test]
    fn only_what_differs_is_said() {
        let known = history(Some("s"), &[assign("x", "x = 1"), assign("@a", "@a = 1")]);
        let wanted = history(
            Some("s"),
            &[
                assign("x", "x = 1"),
                assign("@a", "@a = 2"),
                assign("y", "y = 3"),
            ],
        );
        assert_eq!(said(&known, &wanted), ["@a = 2", "y = 3"]);
    }

    #[test]
    fn another_schema_is_one_command() {
        let known = history(Some("s"), &[schema("t"), assign("x", "x = 1")]);
        assert_eq!(
            said(&known, &history(Some("s"), &[assign("x", "x = 1")])),
            ["use s"]
        );
        assert_eq!(
            said(
                &history(Some("u"), &[]),
                &history(Some("s"), &[schema("t")])
            ),
            ["use t"]
        );
        assert!(
            said(
                &history(Some("t"), &[]),
                &history(Some("s"), &[schema("t")])
            )
            .is_empty()
        );
    }

    #[test]
    fn what_cannot_be_unsaid_is_reset() {
        let known = history(Some("s"), &[assign("x", "x = 1")]);
        assert_eq!(
            said(&known, &history(Some("s"), &[])),
            ["reset restore=true"]
        );
        assert_eq!(
            said(&known, &history(Some("t"), &[assign("y", "y = 1")])),
            ["reset restore=true", "use t", "y = 1"]
        );
    }

    #[test]
    fn pieces_that_hang_on_others_are_said_in_order_from_the_start() {
        let known = history(None, &[assign("x", "x = 1"), depending("y", "y = @@x")]);
        let wanted = history(None, &[assign("x", "x = 2"), depending("y", "y = @@x")]);
        assert_eq!(
            said(&known, &wanted),
            ["reset restore=true", "x = 2", "y = @@x"]
        );
    }

    #[test]
    fn a_session_that_was_reset_has_the_servers_own_character_set() {
        let wanted = history(Some("s"), &[reset(), assign("x", "x = 1")]);
        let known = history(Some("t"), &[names("SET NAMES latin1")]);
        assert_eq!(
            said(&known, &wanted),
            ["reset restore=false", "use s", "x = 1"]
        );
        assert_eq!(
            said(&wanted, &history(Some("s"), &[])),
            ["reset restore=true"]
        );
    }
}
