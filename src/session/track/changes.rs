//! Which packets of a reply tell of changed session state. They are shown to the session whole.

use super::{Expect, OkHead, State, Tracker};
use crate::wire::{EofPacket, Header, Status};

/// A packet longer than that is passed on as it is; servers' own variables are far from it.
const LONGEST: usize = 256 * 1024;

impl Tracker {
    /// The same for a connection whose server tells of more than the client is to know.
    #[must_use]
    pub fn with_changes(mut self) -> Self {
        self.reads_changes = true;
        self
    }

    /// Whether the packet, of which these first bytes are here, tells of changes; `None` when more of it is needed.
    pub(super) fn tells_changes(&self, header: Header, seen: &[u8]) -> Option<bool> {
        if !self.reads_changes || header.len > LONGEST {
            return Some(false);
        }
        let head = match (self.state, seen.first()) {
            (State::First, Some(0)) if !matches!(self.expect, Expect::Prepare | Expect::Single) => {
                OkHead::parse(seen).map(|ok| ok.status)
            }
            (State::Rows, Some(0xfe)) if self.deprecate_eof => {
                OkHead::parse(seen).map(|ok| ok.status)
            }
            // It has no room for what changed, but says so all the same.
            (State::Rows | State::ColumnsEof, Some(0xfe)) if header.len < 9 => {
                EofPacket::parse(seen).ok().map(|eof| eof.status)
            }
            _ => None,
        };
        let tells = head.is_some_and(|status| status.contains(Status::SESSION_STATE_CHANGED));
        if tells && seen.len() < header.len {
            return None;
        }
        Some(tells)
    }

    /// Nothing of the reply is left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::End && self.at_boundary()
    }
}
