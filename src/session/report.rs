//! A session as operators see it: who it is, what it does, and why it keeps its server connection.

use std::time::Duration;

use super::{Peer, Phase, Pins, Role, Session};
use crate::sql::Dialect;
use crate::wire::Status;

/// See the module's words. Moments are counted as [`super::Cx::now`] is.
#[derive(Debug)]
pub struct Report {
    /// Its id.
    pub id: u32,
    /// The account's name.
    pub user: Vec<u8>,
    /// Where the client is.
    pub peer: Peer,
    /// The account, an index into the snapshot's; nothing before the log-in is through.
    pub account: Option<usize>,
    /// Its schema.
    pub schema: Option<Vec<u8>>,
    /// What it does, in a word or two.
    pub doing: &'static str,
    /// Since when.
    pub since: Duration,
    /// The connection that works for it.
    pub role: Option<Role>,
    /// The beginning of its last statement, with literals.
    pub head: Vec<u8>,
    /// How that is to be read.
    pub dialect: Dialect,
    /// A transaction is open.
    pub in_transaction: bool,
    /// Statements that it has prepared.
    pub prepared: usize,
    /// Why it keeps its connection to the primary.
    pub pins: Vec<Pinned>,
}

/// A reason for which a session keeps its connection.
#[derive(Debug)]
pub struct Pinned {
    /// The reason, as `EXPLAIN ROUTE` names it.
    pub reason: &'static str,
    /// Since when, as far as that is known.
    pub since: Option<Duration>,
    /// The beginning of the statement that caused it, with literals.
    pub cause: Vec<u8>,
    /// What ends it.
    pub ends: &'static str,
}

impl Session {
    /// The id that the client was told.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The session now.
    #[must_use]
    pub fn report(&self) -> Report {
        let doing = match &self.phase {
            Phase::Login(_) => "log-in",
            Phase::Closed => "closing",
            Phase::Command if self.legs.is_some() => "asking shards",
            Phase::Command if self.sync.is_some() => "bringing state",
            Phase::Command if self.waiting.is_some() => "waiting for a connection",
            Phase::Command if self.upload.is_some() => "sending",
            Phase::Command if self.reply.is_some() => "statement",
            Phase::Command => "idle",
        };
        let role = self.reply.as_ref().map(|reply| reply.role).or(self.waiting);
        Report {
            id: self.id,
            user: self.identity.user.clone(),
            peer: self.identity.peer,
            account: matches!(self.phase, Phase::Command).then_some(self.account),
            schema: self.state.schema().map(<[u8]>::to_vec),
            doing,
            since: self.diary.since,
            role,
            head: self.diary.head.text().to_vec(),
            dialect: self.dialect(),
            in_transaction: self.status.contains(Status::IN_TRANS),
            prepared: self.statements.len(),
            pins: self.pinned(),
        }
    }

    /// Whether a transaction is open, and the pins that are set.
    #[must_use]
    pub fn ties(&self) -> (bool, Pins) {
        let in_transaction = self.status.contains(Status::IN_TRANS);
        (in_transaction, self.state.pins())
    }

    fn pinned(&self) -> Vec<Pinned> {
        let mut pins = Vec::new();
        if self.status.contains(Status::IN_TRANS) {
            let (since, cause) = self.diary.transaction.clone().unzip();
            pins.push(Pinned {
                reason: "transaction",
                since,
                cause: cause.map(<[u8]>::into_vec).unwrap_or_default(),
                ends: "COMMIT or ROLLBACK",
            });
        }
        let set = self.state.pins();
        for (pin, reason) in Pins::ALL {
            if !set.any_of(pin) {
                continue;
            }
            let mark = self.diary.marks.iter().find(|mark| mark.pin == pin);
            pins.push(Pinned {
                reason,
                since: mark.map(|mark| mark.since),
                cause: mark.map(|mark| mark.cause.to_vec()).unwrap_or_default(),
                ends: self.state.ends(pin),
            });
        }
        let others = [
            (
                self.statements.bound_to_primary(),
                "prepared-statement",
                "closing the statement, its cursor or its long data",
            ),
            (
                !self.shares && matches!(self.phase, Phase::Command),
                "sharing-session",
                "the end of the session: its account has sharing = \"session\"",
            ),
        ];
        for (is_so, reason, ends) in others {
            if is_so {
                pins.push(Pinned {
                    reason,
                    since: None,
                    cause: Vec::new(),
                    ends,
                });
            }
        }
        pins
    }
}
