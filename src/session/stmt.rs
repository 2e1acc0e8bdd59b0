//! Prepared statements of a session: the client's ids, what each statement is, and its ids on the two connections.
//! The bytes of the commands are the business of `wire::Execute` and of `session::prepared`.

use super::fault::Fault;
use crate::route::Role;

/// One prepared statement.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The text, kept where the statement may have to be prepared again on the other connection or changes the session.
    pub(super) text: Option<Box<[u8]>>,
    /// The text is a plain read: where it runs is decided at each execution.
    pub(super) is_read: bool,
    /// The answer lives on the connection that ran the previous statement.
    pub(super) is_diagnostic: bool,
    /// The text carries the hint for a replica.
    pub(super) is_hinted: bool,
    /// What is to be noted when it ran.
    pub(super) traits: crate::sql::Traits,
    /// What the text is.
    pub(super) kind: crate::sql::Kind,
    /// Number of parameters.
    pub(super) params: u16,
    /// Its id on the primary's and on the replica's connection.
    pub(super) server_ids: [Option<u32>; 2],
    /// The last parameter types that the client sent (two bytes a parameter; more with names).
    pub(super) types: Option<Box<[u8]>>,
    /// Which connection knows those types.
    pub(super) types_known: [bool; 2],
    /// Long data was sent to the primary and not yet executed or reset.
    pub(super) long_data: bool,
    /// A cursor may be open on the primary: the next execution closes it, so it has to run there.
    pub(super) cursor: bool,
    /// Long data could not be sent, which the client learns when it executes: long data itself has no reply.
    pub(super) lost_data: Option<Box<Fault>>,
}

/// All prepared statements of a session.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Sorted by id, since ids only grow.
    list: Vec<(u32, Box<Prepared>)>,
    last_id: u32,
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

    /// A connection is gone and its ids with it.
    pub(super) fn forget_backend(&mut self, role: Role) {
        for (_, statement) in &mut self.list {
            statement.server_ids[role as usize] = None;
            statement.types_known[role as usize] = false;
        }
    }

    /// Some statement has long data on the primary or is known only there by its server id.
    #[must_use]
    pub(super) fn bound_to_primary(&self) -> bool {
        self.list.iter().any(|(_, s)| {
            s.long_data || (s.text.is_none() && s.server_ids[Role::Primary as usize].is_some())
        })
    }

    /// Forgets the statements but goes on counting, as a connection that was reset does.
    pub(super) fn reset(&mut self) {
        self.list = Vec::new();
    }

    /// Whether there is none.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether some statement has this id on the primary's connection.
    #[must_use]
    pub(super) fn is_server_id(&self, id: u32) -> bool {
        self.list
            .iter()
            .any(|(_, s)| s.server_ids[Role::Primary as usize] == Some(id))
    }

    /// Forgets all; ids start again as on a new connection.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.list.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}
