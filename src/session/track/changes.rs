//! Which packets of a reply tell of changed session state. They are shown to the session whole.

use super::{Expect, OkHead, State, Tracker};
use crate::wire::{Header, Status};

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
        let is_ok = match (self.state, seen.first()) {
            (State::First, Some(0)) => !matches!(self.expect, Expect::Prepare | Expect::Single),
            (State::Rows, Some(0xfe)) => self.deprecate_eof,
            _ => false,
        };
        if !self.reads_changes || !is_ok || header.len > LONGEST {
            return Some(false);
        }
        let tells =
            OkHead::parse(seen).is_some_and(|ok| ok.status.contains(Status::SESSION_STATE_CHANGED));
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
