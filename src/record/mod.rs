//! What is written down of statements and of clients' coming and going: the facts, and their texts, in MySQL's slow-log format (`slow`)
//! and as JSON lines (`json`). Sessions make the facts, workers hand them over, `control` writes the files; none of that is here.
//!
//! Texts are bounded where they are kept. What has to do with passwords is never written with its literals (`mask`).

mod json;
mod mask;
mod slow;
mod time;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use json::write as write_json;
pub use slow::write as write_slow;

use crate::config::AuditText;
use crate::sql::{Dialect, Kind};
use crate::wire::Capabilities;

/// Something that is to be written down.
#[derive(Debug)]
pub struct Entry {
    /// When it was over.
    pub at: SystemTime,
    /// The client's id.
    pub connection: u32,
    /// Where the client is; nothing for a unix socket of this machine.
    pub client: Option<IpAddr>,
    /// The account, an index into the snapshot's; nothing where nobody is logged in.
    pub account: Option<usize>,
    /// The name that a client without an account gave.
    pub claimed: Vec<u8>,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Debug)]
pub enum What {
    /// A client has logged in, as this account or as another one than before.
    LogIn {
        /// Its schema.
        schema: Option<Box<[u8]>>,
    },
    /// A client that was logged in has gone.
    LogOut,
    /// A client has had its session reset.
    Reset,
    /// A client was not let in, and was told this error.
    Refused(u16),
    /// A statement is over.
    Statement(Box<Statement>),
}

/// A statement that is over.
#[derive(Debug)]
pub struct Statement {
    /// What the client said.
    pub said: Said,
    /// How that is to be read.
    pub dialect: Dialect,
    /// The schema that it ran in.
    pub schema: Option<Box<[u8]>>,
    /// What it is.
    pub kind: Kind,
    /// It may have changed something.
    pub is_write: bool,
    /// Who answered.
    pub place: Place,
    /// The groups of a sharded statement in several parts, indexes into the snapshot's.
    pub groups: Vec<usize>,
    /// When it began, counted as the sessions' moments are.
    pub since: Duration,
    /// How long the client waited for the whole of the answer.
    pub took: Duration,
    /// How much of that it waited for a connection.
    pub acquired: Duration,
    /// How much of that the connection was brought into the session's state.
    pub synced: Duration,
    /// Rows that it gave.
    pub rows: u64,
    /// Rows that it changed; nothing where it gave some, or where that is not known.
    pub affected: Option<u64>,
    /// The code of the error that the client was told; 0 for none.
    pub error: u16,
    /// The client has gone before the answer was over.
    pub is_aborted: bool,
}

/// Who answered a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A server.
    Server {
        /// Its role in the session.
        route: &'static str,
        /// Why it.
        reason: &'static str,
        /// Which, an index into the snapshot's hosts.
        host: usize,
        /// The server's id of the connection.
        connection: u32,
    },
    /// The servers of several groups.
    Shards,
    /// Atlas itself.
    Atlas,
}

/// What a client has said, as far as that is kept.
#[derive(Debug)]
pub enum Said {
    /// A text.
    Text {
        /// Its beginning, or all of it.
        text: Vec<u8>,
        /// How long it is.
        len: usize,
    },
    /// An execution of a prepared statement.
    Execution {
        /// The beginning of the statement's text, or all of it.
        text: Vec<u8>,
        /// How long that is.
        len: usize,
        /// The execution's packet; empty where it is not kept.
        packet: Vec<u8>,
        /// How many parameters there are.
        params: u16,
        /// Their types, as the client sent them last.
        types: Option<Arc<[u8]>>,
        /// What the packet is read by.
        capabilities: Capabilities,
    },
}

impl Said {
    fn text(&self) -> (&[u8], usize) {
        match self {
            Self::Text { text, len } | Self::Execution { text, len, .. } => (text, *len),
        }
    }

    /// The whole statement with the values of its parameters; nothing where not all of that is known.
    #[must_use]
    pub fn spelled(&self, dialect: &Dialect) -> Option<Vec<u8>> {
        let (text, len) = self.text();
        match self {
            _ if text.len() < len => None,
            Self::Text { text, .. } => Some(text.clone()),
            Self::Execution { .. } => values::fill(self, dialect),
        }
    }

    /// About how many bytes it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.capacity(),
            Self::Execution { text, packet, .. } => text.capacity() + packet.capacity(),
        }
    }
}

impl Entry {
    /// About how many bytes it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        const ITSELF: usize = 512;
        let said = match &self.what {
            What::Statement(statement) => statement.said.size(),
            What::LogIn { .. } | What::LogOut | What::Reset | What::Refused(_) => 0,
        };
        ITSELF + self.claimed.capacity() + said
    }
}

/// What the numbers in an entry are called now.
#[derive(Debug, Clone, Default)]
pub struct Names<'a> {
    /// The account's.
    pub account: &'a [u8],
    /// What the configuration says of it.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// The server's address.
    pub server: String,
    /// The group's name.
    pub group: &'a str,
    /// The names of the groups of a sharded statement.
    pub groups: Vec<&'a str>,
}

/// A statement's text as it is to be written, its number, and whether all of it is there.
struct Written {
    text: Vec<u8>,
    digest: u64,
    is_whole: bool,
    len: usize,
}

impl Statement {
    /// The text with the values of its parameters, without literals, or nothing of it; and the number of its kind.
    fn written(&self, how: AuditText) -> Written {
        let (text, len) = self.said.text();
        let mut form = Vec::new();
        let digest = crate::sql::digest(text, &self.dialect, &mut form);
        let is_whole = text.len() == len;
        let is_masked = how == AuditText::Masked || mask::is_secret(text);
        let text = match (how, is_masked) {
            (AuditText::None, _) => Vec::new(),
            (_, true) => {
                crate::sql::normalise(text, &self.dialect, text.len().max(64), &mut form);
                form
            }
            (_, false) => values::filled(&self.said, &self.dialect),
        };
        Written {
            text,
            digest,
            is_whole,
            len,
        }
    }
}
