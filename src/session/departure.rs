//! A command on its way: the packet at the front of the client's bytes, and how it leaves for a server.

use super::names::Names;
use super::{Access, Expect, Role, What};
use crate::wire::MAX_PAYLOAD;

/// How a command leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departure {
    pub(super) role: Role,
    pub(super) access: Access,
    /// `None` for commands that have no reply.
    pub(super) expect: Option<Expect>,
    pub(super) what: What,
    pub(super) retain: bool,
    pub(super) may_retry: bool,
    /// See [`Running::waits`].
    pub(super) waits: bool,
    pub(super) keeps_last: bool,
    /// See [`Running::keeps_area`].
    pub(super) keeps_area: bool,
    /// What the statement of the command is called on either side.
    pub(super) names: Option<Names>,
    /// Names in the reply are to be those that the client knows.
    pub(super) dresses: bool,
}

impl Departure {
    /// To the primary, as something that may change anything, one packet back.
    pub(super) fn plain(expect: Expect) -> Self {
        Self {
            role: Role::Primary,
            access: Access::Write,
            expect: Some(expect),
            what: What::Plain,
            retain: false,
            may_retry: false,
            waits: false,
            keeps_last: true,
            keeps_area: false,
            names: None,
            dresses: false,
        }
    }
}

/// The packet at the front of the client's bytes.
#[derive(Debug)]
pub(super) struct Front<'a> {
    /// The client's bytes from this packet's header on.
    pub(super) bytes: &'a mut [u8],
    /// Where they start in what the shell handed over.
    pub(super) at: usize,
    /// The payload's length; [`MAX_PAYLOAD`] when the packet goes on in another frame.
    pub(super) len: usize,
}

impl Front<'_> {
    /// Length with the header.
    pub(super) fn total(&self) -> usize {
        self.len + 4
    }

    /// The payload as far as it is there.
    pub(super) fn payload(&self) -> &[u8] {
        let end = self.total().min(self.bytes.len());
        self.bytes.get(4..end).unwrap_or_default()
    }

    /// The whole packet is there.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() >= self.total() && self.len < MAX_PAYLOAD
    }
}
