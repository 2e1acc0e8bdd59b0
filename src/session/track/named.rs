//! Which packets of a reply may have names of tables in them. They are shown to the session whole.

use super::{State, Tracker};
use crate::shard::Part;
use crate::wire::{Header, MAX_PAYLOAD};

/// A packet longer than that is passed on as it is: no server has names of that length.
const LONGEST: usize = 256 * 1024;

impl Tracker {
    /// The same for the reply to a statement that was rewritten; `rows` says that the rows have names in them too.
    #[must_use]
    pub fn with_names(mut self, rows: bool) -> Self {
        self.reads_names = Some(rows);
        self
    }

    /// What the packet is, of which these first bytes are here, if it may have names in it; `None` when more of it is needed.
    pub(super) fn may_name(&self, header: Header, seen: &[u8]) -> Option<Option<Part>> {
        let Some(rows) = self.reads_names else {
            return Some(None);
        };
        let part = match (self.state, seen.first()) {
            (State::Columns(_), Some(first)) if *first != 0xff => Part::Definition,
            (State::First | State::Columns(_) | State::Parameters(_) | State::Rows, Some(0xff)) => {
                Part::Error
            }
            (State::Rows, Some(first)) if rows && !self.ends_rows(header, *first) => Part::Row,
            _ => return Some(None),
        };
        if header.len > LONGEST {
            return Some(None);
        }
        (seen.len() >= header.len).then_some(Some(part))
    }

    fn ends_rows(&self, header: Header, first: u8) -> bool {
        let is_short = header.len < 9 || self.deprecate_eof && header.len < MAX_PAYLOAD;
        first == 0xfe && is_short
    }
}
