//! Compound statements: which `;` ends a statement and which lies inside one.
//!
//! `BEGIN … END` and `CASE … END` are counted. A body that is not held together by BEGIN, such as a
//! bare IF or an Oracle-style package, is not taken apart: all that follows then belongs to it, and
//! it is reported as opaque.

use super::keyword::Kw;

/// Follows the words of a compound statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    depth: u32,
    has_begun: bool,
    /// The body may hold `;` without a BEGIN.
    loose: bool,
    is_opaque: bool,
}

impl Block {
    /// The body of a routine, trigger or event that is being made: an ordinary statement or BEGIN … END.
    pub(super) fn body() -> Self {
        Self::default()
    }

    /// A package, or a compound statement that starts with another word than BEGIN.
    pub(super) fn loose() -> Self {
        Self {
            loose: true,
            ..Self::default()
        }
    }

    /// The inside of a BEGIN that has been read.
    pub(super) fn begun() -> Self {
        Self {
            depth: 1,
            has_begun: true,
            ..Self::default()
        }
    }

    /// Takes a word into account that follows the word `prev` (or another token).
    pub(super) fn word(&mut self, kw: Kw, prev: Kw) {
        match (prev, kw) {
            // XA BEGIN and XA END are statements.
            (Kw::Xa, _) => {}
            // END IF closes what was not counted: take back that its END closed something.
            (Kw::End, Kw::If | Kw::Loop | Kw::While | Kw::Repeat | Kw::For) => self.depth += 1,
            (Kw::End, Kw::Case) => {}
            (_, Kw::End) => self.depth = self.depth.saturating_sub(1),
            (_, Kw::Begin) => {
                self.depth += 1;
                self.has_begun = true;
            }
            (_, Kw::Case) => self.depth += 1,
            (_, Kw::Then | Kw::Loop | Kw::While | Kw::Repeat | Kw::Declare) => self.loose = true,
            _ => {}
        }
    }

    /// True if the `;` that was just met ends the statement.
    pub(super) fn ends_here(&mut self) -> bool {
        let is_inside = self.depth > 0 || self.loose && !self.has_begun;
        self.is_opaque |= is_inside && self.depth == 0;
        !is_inside
    }

    /// True if what follows the first `;` may or may not have belonged to the body.
    pub(super) fn is_opaque(&self) -> bool {
        self.is_opaque
    }
}
