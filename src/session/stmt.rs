//! Prepared statements of a session: the client's ids, and what each statement is. What of them a connection has prepared
//! goes with the connection (`texts::Cache`).
//! The bytes of the commands are the business of `wire::Execute` and of `session::prepared`.

use std::sync::Arc;

use super::fault::Fault;
use super::texts::Text;

/// One prepared statement.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The text, from which it is prepared wherever it runs; `None` for one too long to be kept.
    pub(super) text: Option<Arc<Text>>,
    /// The text has answers in it where this one, the client's, asks about the statement before.
    pub(super) asks: Option<Arc<Text>>,
    /// It names sharded tables: what the client prepared. Its text is then that of the shard of the last execution.
    pub(super) logical: Option<Box<super::logical::Logical>>,
    /// The map of shards of the snapshot with this number has none of its tables, as it was prepared in this schema.
    pub(super) unsharded: (u64, Option<Box<[u8]>>),
    /// Without a text it exists on the primary's connection only, under this number.
    pub(super) own: Option<u32>,
    /// The text is a plain read: where it runs is decided at each execution.
    pub(super) is_read: bool,
    /// The answer lives on the connection that ran the previous statement.
    pub(super) is_diagnostic: bool,
    /// The text carries the hint for a replica.
    pub(super) is_hinted: bool,
    /// What it has to do with the settings of session tracking.
    pub(super) settings: super::tracking::Settings,
    /// What is to be noted when it ran.
    pub(super) traits: crate::sql::Traits,
    /// What the text is.
    pub(super) kind: crate::sql::Kind,
    /// Number of parameters.
    pub(super) params: u16,
    /// The last parameter types that the client sent (two bytes a parameter; more with names).
    pub(super) types: Option<Arc<[u8]>>,
    /// Long data was sent to the primary and not yet executed or reset.
    pub(super) long_data: bool,
    /// A cursor may be open on the primary: the next execution closes it, so it has to run there.
    pub(super) cursor: bool,
    /// Until when changes of definitions are known to the client, see `Texts::era`.
    pub(super) told: u64,
    /// It was executed with more data than is looked at in one piece.
    pub(super) is_long: bool,
    /// Long data could not be sent, which the client learns when it executes: long data itself has no reply.
    pub(super) lost_data: Option<Box<Fault>>,
}

impl Prepared {
    /// The client sent its parameter types; they are kept when they are new.
    pub(super) fn note_types(&mut self, types: &[u8]) {
        if self.types.as_deref() != Some(types) {
            self.types = Some(types.into());
        }
    }

    /// What the client prepared; nothing where that was too long to be kept.
    pub(super) fn sent(&self) -> &[u8] {
        match (&self.logical, self.own_text()) {
            (Some(logical), _) => logical.sql(),
            (None, Some(text)) => &text.sql,
            (None, None) => b"",
        }
    }

    /// The text without answers in it.
    pub(super) fn own_text(&self) -> Option<&Arc<Text>> {
        self.asks.as_ref().or(self.text.as_ref())
    }
}

/// All prepared statements of a session.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Sorted by id, since ids only grow.
    list: Vec<(u32, Box<Prepared>)>,
    last_id: u32,
    /// Some were closed while the connections on which they are prepared were not the session's.
    has_closed: bool,
}

impl Statements {
    /// The id for the next prepare. Servers count failed prepares too.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1).max(1);
        self.last_id
    }

    /// Adds a statement under an id from [`Self::next_id`].
    pub(super) fn insert(&mut self, id: u32, statement: Box<Prepared>) {
        self.list.push((id, statement));
    }

    /// The id of the last preparation, whether it succeeded or not.
    pub(super) fn last_id(&self) -> u32 {
        self.last_id
    }

    /// Finds a statement.
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Prepared> {
        let at = self.position(id)?;
        self.list.get_mut(at).map(|(_, statement)| &mut **statement)
    }

    /// Takes a statement out.
    pub(super) fn remove(&mut self, id: u32) -> Option<Box<Prepared>> {
        let at = self.position(id)?;
        Some(self.list.remove(at).1)
    }

    /// The texts from which they are prepared.
    pub(super) fn texts(&self) -> Vec<&Arc<Text>> {
        self.list
            .iter()
            .filter_map(|(_, s)| s.text.as_ref())
            .collect()
    }

    /// A statement was closed that some connection still holds.
    pub(super) fn note_closed(&mut self) {
        self.has_closed = true;
    }

    /// Whether there was one since this was asked.
    pub(super) fn take_closed(&mut self) -> bool {
        std::mem::take(&mut self.has_closed)
    }

    /// Some statement has long data or a cursor on the primary's connection, or exists there only.
    #[must_use]
    pub(super) fn bound_to_primary(&self) -> bool {
        self.list
            .iter()
            .any(|(_, s)| s.long_data || s.cursor || s.is_long || s.own.is_some())
    }

    /// Some statement with parameters was prepared and not executed yet.
    #[must_use]
    pub(super) fn awaits_execution(&self) -> bool {
        self.list
            .iter()
            .any(|(_, s)| s.params > 0 && s.types.is_none())
    }

    /// Some statement asks about the one before it.
    #[must_use]
    pub(super) fn has_diagnostics(&self) -> bool {
        self.list.iter().any(|(_, s)| s.is_diagnostic)
    }

    /// Some statement exists on the primary's connection only, under this number.
    #[must_use]
    pub(super) fn has_own(&self, id: u32) -> bool {
        self.list.iter().any(|(_, s)| s.own == Some(id))
    }

    /// The primary's connection is gone, and what existed there only.
    pub(super) fn forget_own(&mut self) {
        for (_, statement) in &mut self.list {
            statement.own = None;
            statement.is_long = false;
            statement.cursor = false;
            statement.long_data = false;
        }
    }

    /// Forgets the statements but goes on counting, as a connection that was reset does.
    pub(super) fn reset(&mut self) {
        self.list = Vec::new();
    }

    /// How many there are.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all; ids start again as on a new connection.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.list.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}
