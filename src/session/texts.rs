//! Texts of prepared statements, each kept once however many sessions prepare it, and what of them a server connection has
//! prepared. Ids of clients are in `stmt`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::digests::Digests;
use super::history::History;
use super::minutes::Spare;
use crate::route::Room;
use crate::shard::{Columns, Shapes};

/// A text as it is prepared: what it means hangs on the session's state at that moment (schema, sql_mode, character set).
#[derive(Debug)]
pub(super) struct Text {
    pub(super) sql: Box<[u8]>,
    /// What of the state counts for it.
    pub(super) state: History,
    /// Definitions may have changed from one to the next.
    era: u64,
    hash: u64,
}

impl Text {
    /// No definition was changed since it was kept.
    pub(super) fn is_of(&self, era: u64) -> bool {
        self.era == era
    }

    fn is(&self, sql: &[u8], state: &History, era: u64) -> bool {
        *self.sql == *sql && self.state == *state && self.era == era
    }
}

fn hash_of(sql: &[u8], state: &History, era: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    sql.hash(&mut hasher);
    era.hash(&mut hasher);
    state.hash().hash(&mut hasher);
    hasher.finish()
}

/// The texts that some session has prepared, and the kinds of all that were sent.
#[derive(Debug, Default)]
pub struct Texts {
    by_hash: HashMap<u64, Weak<Text>>,
    /// Forgotten entries are swept out when the map has grown to this.
    sweep_at: usize,
    era: u64,
    /// Definitions that clients of all workers have changed.
    definitions: Option<Arc<AtomicU64>>,
    /// Kinds of statements, text or prepared.
    pub(super) digests: Digests,
    /// Columns of sharded tables.
    pub(super) columns: Columns,
    /// Statements about them that come again.
    pub(super) shapes: Shapes,
    /// Room for what is written down.
    pub(super) spare: Spare,
    /// Room for what rules look at.
    room: Room,
    /// The run whose decisions about transactions over several groups can be written down.
    run: Option<u64>,
}

impl Texts {
    /// Sets the run whose decisions can be written down; nothing where none can.
    pub fn set_run(&mut self, run: Option<u64>) {
        self.run = run;
    }

    pub(super) fn run(&self) -> Option<u64> {
        self.run
    }

    /// The one copy of a text.
    pub(super) fn keep(&mut self, sql: &[u8], state: &History) -> Arc<Text> {
        let state = state.reading();
        let era = self.era;
        let hash = hash_of(sql, &state, era);
        if let Some(text) = self.by_hash.get(&hash).and_then(Weak::upgrade)
            && text.is(sql, &state, era)
        {
            return text;
        }
        let text = Arc::new(Text {
            sql: sql.into(),
            state,
            era,
            hash,
        });
        if self.by_hash.len() >= self.sweep_at.max(64) {
            self.by_hash.retain(|_, text| text.strong_count() > 0);
            self.sweep_at = self.by_hash.len() * 2;
        }
        self.by_hash.insert(hash, Arc::downgrade(&text));
        text
    }

    pub(super) fn room(&mut self) -> &mut Room {
        &mut self.room
    }

    /// A definition was changed: who prepares a text from here on is told of other columns than those before, and shares nothing
    /// with them.
    pub(super) fn definitions_changed(&mut self) {
        self.era = self.era.wrapping_add(1);
        self.columns.clear();
    }

    /// A client has changed one: others than workers want to know of it too.
    pub(super) fn tell_of_definition(&self) {
        if let Some(definitions) = &self.definitions {
            definitions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has definitions that clients change be counted here.
    pub fn count_definitions(&mut self, definitions: Arc<AtomicU64>) {
        self.definitions = Some(definitions);
    }

    /// Kinds of statements.
    #[must_use]
    pub fn digests(&mut self) -> &mut Digests {
        &mut self.digests
    }

    /// Counts changes of definitions.
    pub(super) fn era(&self) -> u64 {
        self.era
    }
}

/// A statement that is prepared on a connection.
#[derive(Debug)]
struct Held {
    text: Weak<Text>,
    /// The server's number.
    id: u32,
    /// The parameter types that the server knows of it.
    types: Option<Arc<[u8]>>,
    /// When it was prepared, see [`Texts::era`].
    era: u64,
    used: u64,
}

/// Of what is a hash already: an execution looks several times. Who makes texts that crowd together gains long looks among the few
/// hundred that a connection holds.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The statements that are prepared on a connection.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// By the text's hash. Two texts of one hash take turns.
    held: HashMap<u64, Held, BuildHasherDefault<Hashed>>,
    clock: u64,
}

impl Cache {
    /// The server's number of a text.
    pub(super) fn find(&self, text: &Arc<Text>) -> Option<u32> {
        self.get(text).map(|held| held.id)
    }

    /// When a text was prepared.
    pub(super) fn era_of(&self, text: &Arc<Text>) -> Option<u64> {
        self.get(text).map(|held| held.era)
    }

    fn get(&self, text: &Arc<Text>) -> Option<&Held> {
        let held = self.held.get(&text.hash)?;
        std::ptr::eq(held.text.as_ptr(), Arc::as_ptr(text)).then_some(held)
    }

    /// Whether some statement has this number.
    pub(super) fn has_id(&self, id: u32) -> bool {
        self.held.values().any(|held| held.id == id)
    }

    /// Notes a use; gives the types that the server knows.
    pub(super) fn touch(&mut self, text: &Arc<Text>) -> Option<&mut Option<Arc<[u8]>>> {
        self.clock += 1;
        let clock = self.clock;
        let held = self.held.get_mut(&text.hash)?;
        if !std::ptr::eq(held.text.as_ptr(), Arc::as_ptr(text)) {
            return None;
        }
        held.used = clock;
        Some(&mut held.types)
    }

    /// A text was prepared. `close` is told which of the server's statements are to be closed in turn: at most `max` stay.
    pub(super) fn insert(
        &mut self,
        text: &Arc<Text>,
        (id, era): (u32, u64),
        max: usize,
        close: &mut dyn FnMut(u32),
    ) {
        self.clock += 1;
        let held = Held {
            text: Arc::downgrade(text),
            id,
            types: None,
            era,
            used: self.clock,
        };
        if let Some(old) = self.held.insert(text.hash, held) {
            close(old.id);
        }
        while self.held.len() > max.max(1) {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.used);
            let Some((hash, id)) = oldest.map(|(hash, held)| (*hash, held.id)) else {
                break;
            };
            self.held.remove(&hash);
            close(id);
        }
    }

    /// The statement is of no use any more; gives its number.
    pub(super) fn remove(&mut self, text: &Arc<Text>) -> Option<u32> {
        self.get(text)?;
        self.held.remove(&text.hash).map(|held| held.id)
    }

    /// Takes out what no session uses any more.
    pub(super) fn sweep(&mut self, close: &mut dyn FnMut(u32)) {
        self.keep(&mut |text| text.strong_count() > 0, close);
    }

    /// Takes out what is none of these.
    pub(super) fn keep_of(&mut self, own: &[&Arc<Text>], close: &mut dyn FnMut(u32)) {
        let is_own = |text: &Weak<Text>| own.iter().any(|own| Arc::as_ptr(own) == text.as_ptr());
        self.keep(&mut |text| is_own(text), close);
    }

    fn keep(&mut self, stays: &mut dyn FnMut(&Weak<Text>) -> bool, close: &mut dyn FnMut(u32)) {
        self.held.retain(|_, held| {
            let stays = stays(&held.text);
            if !stays {
                close(held.id);
            }
            stays
        });
    }

    pub(super) fn clear(&mut self) {
        self.held = HashMap::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> History {
        History::after_login(Some(b"s"))
    }

    #[test]
    fn a_text_is_kept_once() {
        let mut texts = Texts::default();
        let a = texts.keep(b"SELECT ?", &state());
        let b = texts.keep(b"SELECT ?", &state());
        assert!(Arc::ptr_eq(&a, &b));
        let other = History::after_login(Some(b"t"));
        assert!(!Arc::ptr_eq(&a, &texts.keep(b"SELECT ?", &other)));
    }

    #[test]
    fn forgotten_texts_do_not_pile_up() {
        let mut texts = Texts::default();
        for n in 0..10_000 {
            texts.keep(format!("SELECT {n}").as_bytes(), &state());
        }
        assert!(texts.by_hash.len() <= 64);
    }

    #[test]
    fn the_least_recently_used_is_closed_at_the_bound() {
        let mut texts = Texts::default();
        let kept: Vec<_> = (0..4)
            .map(|n| texts.keep(format!("SELECT {n}").as_bytes(), &state()))
            .collect();
        let mut cache = Cache::default();
        let mut closed = Vec::new();
        for (id, text) in (10..13).zip(&kept) {
            cache.insert(text, (id, 0), 3, &mut |id| closed.push(id));
        }
        assert!(cache.touch(&kept[0]).is_some());
        cache.insert(&kept[3], (13, 0), 3, &mut |id| closed.push(id));
        assert_eq!(closed, [11]);
        assert_eq!(cache.find(&kept[0]), Some(10));
        assert_eq!(cache.find(&kept[1]), None);
        assert_eq!(cache.held.len(), 3);
    }

    #[test]
    fn what_nobody_uses_is_swept_out() {
        let mut texts = Texts::default();
        let text = texts.keep(b"SELECT 1", &state());
        let mut cache = Cache::default();
        cache.insert(&text, (7, 0), 10, &mut |_| {});
        let mut closed = Vec::new();
        cache.sweep(&mut |id| closed.push(id));
        assert!(closed.is_empty());
        drop(text);
        cache.sweep(&mut |id| closed.push(id));
        assert_eq!(closed, [7]);
        assert!(cache.is_empty());
    }

    #[test]
    fn only_ones_own_stay() {
        let mut texts = Texts::default();
        let kept: Vec<_> = (0..3)
            .map(|n| texts.keep(format!("SELECT {n}").as_bytes(), &state()))
            .collect();
        let mut cache = Cache::default();
        for (id, text) in (10..13).zip(&kept) {
            cache.insert(text, (id, 0), 10, &mut |_| {});
        }
        let mut closed = Vec::new();
        cache.keep_of(&[&kept[1]], &mut |id| closed.push(id));
        closed.sort_unstable();
        assert_eq!(closed, [10, 12]);
        assert_eq!(cache.find(&kept[1]), Some(11));
    }
}
