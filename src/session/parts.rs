//! The pieces that a session is made of: plain data, no behaviour.

use super::known::Known;
use super::names::Names;
use super::{Access, Tracker};
use crate::pool::HostId;
use crate::route::Role;

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Ip(std::net::IpAddr),
    /// A unix socket of this machine.
    Local,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(ip) => ip.to_canonical().fmt(f),
            Self::Local => f.write_str("localhost"),
        }
    }
}

/// Where the client comes from and what its log-in packet said, as far as server connections repeat it.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) peer: Peer,
    pub(super) user: Vec<u8>,
    pub(super) max_packet: u32,
    pub(super) charset: u16,
    pub(super) attributes: Box<[u8]>,
    pub(super) nonce: [u8; 20],
}

impl Identity {
    /// That of a client from which nothing has come yet, and the nonce that it is told.
    pub(super) fn of(peer: Peer, nonce: [u8; 20]) -> Self {
        Self {
            peer,
            user: Vec::new(),
            max_packet: 0,
            charset: 0,
            attributes: Box::default(),
            nonce,
        }
    }
}

/// One of a session's two places for server connections.
#[derive(Debug, Default)]
pub(super) enum Link {
    #[default]
    Absent,
    /// One was asked for.
    Opening,
    Ready(Box<Known>),
}

impl Link {
    pub(super) fn known(&self) -> Option<&Known> {
        match self {
            Self::Ready(known) => Some(known),
            Self::Absent | Self::Opening => None,
        }
    }

    pub(super) fn known_mut(&mut self) -> Option<&mut Known> {
        match self {
            Self::Ready(known) => Some(known),
            Self::Absent | Self::Opening => None,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// The connection of a statement about which questions may come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) role: Role,
    /// The connection's use, see [`Known`]; another number means that it was given back.
    pub(super) serial: u64,
    /// It has what can be learned nowhere else.
    pub(super) holds: bool,
    /// Warnings and errors that it has.
    pub(super) warnings: u16,
    /// It failed.
    pub(super) failed: bool,
    pub(super) lost: bool,
}

/// What LAST_INSERT_ID() is to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertId {
    Known(u64),
    /// What the primary's connection gives. A reply does not tell: an id that the statement itself gave is not one.
    OnConnection,
    /// That connection is gone.
    Lost,
}

/// Answers to questions about statements whose connection was given back; `None` where only that connection knew.
#[derive(Debug, Default, Clone)]
pub(super) struct Numbers {
    pub(super) row_count: Option<i64>,
    pub(super) found_rows: Found,
}

/// What FOUND_ROWS() is to give.
#[derive(Debug, Default, Clone)]
pub(super) enum Found {
    Are(u64),
    /// What its connection gives.
    #[default]
    There,
    /// The same, where that may not be this session's number.
    InDoubt(Box<super::found::Doubt>),
}

impl Found {
    /// The number, if it is known.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Are(number) => Some(*number),
            Self::There | Self::InDoubt(_) => None,
        }
    }
}

impl Numbers {
    /// Those of a session that has said nothing yet.
    pub(super) const FRESH: Self = Self {
        row_count: Some(0),
        found_rows: Found::Are(0),
    };
}

/// The rest of a command longer than what was seen of it.
#[derive(Debug)]
pub(super) struct Upload {
    /// Where it goes; `None` when nobody wants it any more.
    pub(super) to: Option<Role>,
    pub(super) access: Access,
    /// Bytes left of the current frame.
    pub(super) left: usize,
    /// Another frame of the same packet follows.
    pub(super) more: bool,
    /// The current frame's sequence id.
    pub(super) seq: u8,
    /// It is a file for LOAD DATA LOCAL: ends with an empty packet.
    pub(super) is_file: bool,
}

/// The reply that is being received for the client's command.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) role: Role,
    pub(super) tracker: Tracker,
    pub(super) command: Running,
}

/// What must be remembered of a command until its reply has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub(super) what: What,
    /// Bytes at the front of the client's input that are still this command.
    pub(super) retained: usize,
    /// It may be sent again elsewhere as long as no byte of its reply was passed on.
    pub(super) may_retry: bool,
    /// Should the primary refuse it as a server that takes no writes, it can wait for the next one.
    pub(super) waits: bool,
    /// It asks about the previous statement or is no statement, so it does not become the previous one.
    pub(super) keeps_last: bool,
    /// It uses no tables: on MariaDB the conditions of the statement before stay, if it leaves none.
    pub(super) keeps_area: bool,
    /// What the statement of the command is called on either side.
    pub(super) names: Option<Names>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A text; the SQL starts at this offset of the retained bytes. Its traits decide what is noted.
    Query {
        at: usize,
        traits: crate::sql::Traits,
        kind: crate::sql::Kind,
    },
    /// COMMIT RELEASE or ROLLBACK RELEASE: the server ends the connection when it has answered.
    Release,
    /// A text too long to be looked at whole.
    LongQuery(crate::sql::Kind),
    /// A prepare for this client id; the facts wait in `Session::statements`.
    Prepare {
        id: u32,
        /// It ends the warnings of the statement before.
        clears: bool,
    },
    /// An execution of the statement with this id of the client's.
    Execute {
        id: u32,
        kind: crate::sql::Kind,
        traits: crate::sql::Traits,
    },
    /// COM_INIT_DB; the name is in the retained bytes.
    InitDb,
    /// COM_SET_OPTION with this option.
    SetOption(u16),
    /// COM_STMT_FETCH of the statement with this id of the client's.
    Fetch(u32),
    /// COM_RESET_CONNECTION.
    Reset,
    /// Nothing to be noted.
    Plain,
}

/// Words that there seldom are; small where there are none, since every client has room for them.
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "a third of the room where there is nothing"
)]
pub(super) struct Why(Option<Box<String>>);

impl From<String> for Why {
    fn from(words: String) -> Self {
        Self(Some(Box::new(words)))
    }
}

impl From<&str> for Why {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl std::ops::Deref for Why {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().map_or("", String::as_str)
    }
}

/// What has been tried for the command at the front.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) avoid: Option<HostId>,
    pub(super) failures: u8,
    pub(super) force_primary: bool,
    /// So often the server has asked for the statement to be prepared again.
    pub(super) preparations: u8,
    /// So often a primary has refused it as a server that takes no writes.
    pub(super) refusals: u8,
    pub(super) why: Why,
    /// What rules and limits say of it.
    pub(super) governed: super::govern::Governed,
    /// A rule has it copied.
    pub(super) copying: Option<Box<super::minutes::Copying>>,

    /// What it may use. Few have limits, and every client has room for this.
    pub(super) bound: Option<Box<super::bound::Bound>>,
    /// What it has to do with the settings of session tracking.
    pub(super) settings: super::tracking::Settings,
    /// Whether its server goes on is asked before it is said again, which takes a new connection.
    pub(super) asks_first: bool,
    /// The server said that it was interrupted.
    pub(super) is_interrupted: bool,
    /// The first of the keys that were generated for it.
    pub(super) ids: Option<std::num::NonZeroU64>,
    /// Its connection was cut while the server goes on: it is not tried again.
    pub(super) cut: bool,
    /// Its connection was brought to the session's FOUND_ROWS().
    pub(super) brought_found: bool,
}
