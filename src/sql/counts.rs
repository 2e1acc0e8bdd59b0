//! Whether FOUND_ROWS() behind a query gives another number than that of the rows of its answer: servers count what was found before an
//! OFFSET took rows away or a LIMIT cut off a UNION.
//!
//! In doubt it does: then the server is asked. Not here: statements that are no query, after which it may be another number too.

use super::keyword::Kw;
use super::scan::Tok;

/// Watches one statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// OFFSET, in words or as the first of two numbers.
    takes_away: bool,
    unites: bool,
    limits: bool,
    /// Tokens since LIMIT, itself among them; 0 for none.
    behind_limit: u8,
}

impl Counts {
    /// A token that is no keyword.
    #[inline]
    pub(super) fn token(&mut self, tok: Tok) {
        match self.behind_limit {
            0 => {}
            1 => self.behind_limit = 2,
            _ => {
                self.takes_away |= tok == Tok::Comma;
                self.behind_limit = 0;
            }
        }
    }

    /// A keyword.
    pub(super) fn keyword(&mut self, kw: Kw) {
        self.behind_limit = 0;
        match kw {
            Kw::Union => self.unites = true,
            Kw::Offset => self.takes_away = true,
            Kw::Limit => {
                self.limits = true;
                self.behind_limit = 1;
            }
            _ => {}
        }
    }

    /// What the query has come to.
    pub(super) fn differ(self) -> bool {
        self.takes_away || self.unites && self.limits
    }
}
