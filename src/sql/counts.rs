//! What FOUND_ROWS() gives behind a statement, as far as its text tells: the number of rows of its answer, another number, the one that it
//! gave before, or one that nobody but the server can tell.
//!
//! Servers count what was found before an OFFSET took rows away, what a query finds that only feeds something else (INSERT … SELECT, an
//! UPDATE of several tables), on MySQL what an UPDATE looks up; and they do not count the rows of many a SHOW. In doubt the server is
//! asked. Not here: what an answer says to that, which is `session::found`.

use super::keyword::Kw;
use super::scan::Tok;
use super::{Kind, Server, Traits};

/// Watches one statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The first word, if it is a known one.
    verb: Option<Kw>,
    /// OFFSET, in words or as the first of two numbers, and what else makes the answer shorter than what was found.
    takes_away: bool,
    unites: bool,
    limits: bool,
    /// Tokens since LIMIT, itself among them; 0 for none.
    behind_limit: u8,
    /// A query stands in a statement that is none, or several tables are named where it could be one.
    feeds: bool,
    /// The tables of an UPDATE or a DELETE have been named.
    is_past_tables: bool,
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
        if !self.is_past_tables {
            self.feeds |= match self.verb {
                Some(Kw::Update) => matches!(tok, Tok::Comma | Tok::Open),
                // DELETE t FROM, and words of its own between the two.
                Some(Kw::Delete) => true,
                _ => false,
            };
        }
    }

    /// A keyword.
    pub(super) fn keyword(&mut self, kw: Kw) {
        self.behind_limit = 0;
        let verb = *self.verb.get_or_insert(kw);
        match kw {
            Kw::Union => self.unites = true,
            Kw::Offset => self.takes_away = true,
            Kw::Limit => {
                self.limits = true;
                self.behind_limit = 1;
            }
            Kw::Select => self.feeds = true,
            Kw::Table | Kw::Values if verb == Kw::Create => self.feeds |= kw == Kw::Values,
            Kw::Table if matches!(verb, Kw::Insert | Kw::Replace) => self.feeds = true,
            Kw::Using if verb == Kw::Delete => self.feeds = true,
            // A join.
            Kw::From if verb == Kw::Update && !self.is_past_tables => self.feeds = true,
            _ => {}
        }
        self.is_past_tables |= match verb {
            Kw::Update => kw == Kw::Set,
            Kw::Delete => kw == Kw::From,
            _ => true,
        };
    }

    /// What the statement has come to; `traits` are those that it has.
    pub(super) fn end(self, kind: Kind, server: Server, traits: Traits) -> Traits {
        if traits.contains(Traits::CALL) {
            return Traits::NONE;
        }
        let is_mariadb = server == Server::MariaDb;
        let may_count = match kind {
            Kind::Read if traits.contains(Traits::INTO) => true,
            Kind::Read if self.verb == Some(Kw::Values) && !self.unites && is_mariadb => {
                return Traits::UNCOUNTED;
            }
            Kind::Read if self.takes_away || self.unites && self.limits => {
                return Traits::COUNTS_OTHERWISE;
            }
            Kind::Explain => true,
            // GRANT SELECT feeds nothing.
            Kind::Ddl => self.feeds && is_mariadb && self.verb == Some(Kw::Create),
            Kind::Write if self.verb == Some(Kw::OtherWrite) => self.feeds || !is_mariadb,
            Kind::Write if self.verb == Some(Kw::Update) && !self.feeds => {
                return Traits::MATCHES;
            }
            Kind::Write => {
                let is_own = matches!(
                    self.verb,
                    Some(Kw::Insert | Kw::Replace | Kw::Delete | Kw::Load | Kw::Handler | Kw::Get)
                );
                self.feeds || !is_own
            }
            Kind::Set | Kind::Prepare | Kind::Kill | Kind::Xa => self.feeds,
            _ => false,
        };
        if may_count {
            Traits::MAY_COUNT
        } else {
            Traits::NONE
        }
    }
}
