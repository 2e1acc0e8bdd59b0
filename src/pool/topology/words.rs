//! What goes into the machine of a group's roles and what comes out of it.

use crate::pool::HostId;

/// How a server is known to others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its server_id; 0 when it is not known.
    pub server_id: u64,
    /// Its server_uuid, on MySQL.
    pub uuid: Vec<u8>,
}

/// From where a server replicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Host and port, as the server was told.
    pub address: String,
    /// Who is there, as far as the server knows.
    pub identity: Identity,
}

/// What a member of a MySQL replication group sees of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupView {
    /// It takes part.
    pub is_online: bool,
    /// It is a secondary.
    pub is_secondary: bool,
    /// More than half of the members reach it.
    pub has_majority: bool,
    /// The server_uuid of each member that takes part.
    pub members: Vec<Vec<u8>>,
}

/// What a check saw of a server's part in its group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Who it is.
    pub identity: Identity,
    /// Whether it is read-only; nothing when it did not tell.
    pub is_read_only: Option<bool>,
    /// From where it replicates; sources whose receiver is stopped do not count.
    pub sources: Vec<Source>,
    /// Its replication group, if it is in one.
    pub view: Option<GroupView>,
    /// It was asked on the connection of the check before, so that it has not been away since.
    pub is_continuous: bool,
}

impl Sight {
    /// By itself it takes writes and replicates from nobody.
    #[must_use]
    pub fn claims(&self) -> bool {
        self.is_read_only == Some(false) && self.sources.is_empty()
    }
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The server answered.
    Answered(Sight),
    /// It did not.
    Silent,
}

/// What operators are to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It is the primary from here on.
    Elected {
        /// Who.
        host: HostId,
        /// Who was it before.
        before: Option<HostId>,
    },
    /// It is no longer the primary, and nobody is yet.
    Vacated {
        /// Who was it.
        host: HostId,
        /// What it was seen to be.
        why: String,
    },
    /// It takes writes beside the primary and is left alone.
    Fenced {
        /// Who.
        host: HostId,
        /// It was away or was replaced, so that it is not taken for promoted before it was seen closed or replicating.
        must_rejoin: bool,
    },
    /// A server that was fenced is a replica.
    Rejoined {
        /// Who.
        host: HostId,
    },
    /// More than one could become the primary and nothing tells which.
    Tied {
        /// Who could.
        hosts: Vec<HostId>,
    },
}

/// Where a server is not what the configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// The primary takes no writes.
    ClosedPrimary {
        /// Who.
        host: HostId,
        /// What it is.
        why: &'static str,
    },
    /// The primary replicates from one that takes writes.
    FollowingPrimary {
        /// Who.
        host: HostId,
        /// From where.
        source: HostId,
    },
    /// A replica takes writes and replicates from none.
    OpenReplica {
        /// Who.
        host: HostId,
    },
}

/// Why an operator's choice cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SwitchRefused {
    /// It is no server of the group.
    #[error("it is no server of the group")]
    NoMember,
    /// It does not answer.
    #[error("it does not answer checks")]
    Silent,
    /// It takes no writes.
    #[error("it takes no writes: {0}")]
    Closed(&'static str),
    /// It does not tell whether it takes writes, or from where it replicates.
    #[error("it does not tell its role, for which the monitor's account may want a privilege")]
    Untold,
    /// It replicates from another one of the group.
    #[error("it replicates from another server of the group")]
    Replicates,
}
