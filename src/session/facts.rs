//! What a shell may ask of a session at any time: whose it is, where its connections belong, what it waits for and what it runs. What
//! operators are shown is in `report`.

use super::{Peer, Phase, Role, Session, Shape, Snapshot, Wants};

impl Session {
    /// Whether log-in is over.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        matches!(self.phase, Phase::Command)
    }

    /// Where the client comes from: what its balancer said, where there is one.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.identity.peer
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Whether it waits for a connection for this place.
    #[must_use]
    pub fn waits_for(&self, role: Role) -> bool {
        self.waiting == Some(role) && !self.is_closed()
    }

    /// The next word is the client's.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.wants() != Wants::Nothing && self.upload.is_none()
    }

    /// Which of the session's connections runs a statement now, with the server's id of it.
    #[must_use]
    pub fn running(&self) -> Option<(Role, u32)> {
        let asked = || Role::BOTH.into_iter().find(|role| self.is_asked(*role));
        let role = match &self.reply {
            Some(reply) => reply.role,
            None => asked()?,
        };
        Some((role, self.link(role).known()?.thread_id))
    }

    /// What its connections must be like.
    #[must_use]
    pub fn shape(&self, role: Role, snapshot: &Snapshot) -> Shape {
        Shape {
            account: self.account(snapshot).backend[role as usize].id,
            capabilities: Shape::lasting(self.abilities()),
            charset: self.identity.charset,
            has_schema: self.state.schema().is_some(),
        }
    }

    /// Whether connections of others may serve this session, and its own others.
    #[must_use]
    pub fn shares(&self) -> bool {
        self.shares
    }

    /// The group that the session's connections are in.
    #[must_use]
    pub fn group_index(&self, snapshot: &Snapshot) -> usize {
        self.moved_to
            .unwrap_or_else(|| self.account(snapshot).group)
    }

    /// The account of a client that is logged in, an index into the snapshot's.
    #[must_use]
    pub fn account_logged_in(&self) -> Option<usize> {
        (matches!(self.phase, Phase::Command) && !self.diary.is_leg).then_some(self.account)
    }

    /// The account that the client logged in as, an index into the snapshot's.
    #[must_use]
    pub fn account_index(&self) -> usize {
        self.account
    }
}
