//! Strings and quoted names: where they end.

use memchr::{memchr, memchr2};

use super::class::CLASS;
use super::{Scanner, Server, Tok, Token, Traits};

/// The first version that is known to have dollar-quoted strings.
const DOLLAR_TEXT_SINCE: u32 = 9_00_00;

impl Scanner<'_> {
    /// A string. A doubled quote needs no care: it is read as two strings side by side, which is
    /// also how servers join strings.
    #[inline]
    pub(super) fn text_token(&mut self, start: usize, quote: u8) -> Token {
        let from = start + 1;
        let end = if self.d.no_backslash_escapes {
            memchr(quote, self.rest(from)).map(|n| from + n)
        } else if self.has_wide_chars() {
            self.wide_text_end(from, quote)
        } else {
            self.escaped_text_end(from, quote)
        };
        match end {
            Some(at) => Token {
                tok: Tok::Text,
                start,
                end: at + 1,
            },
            None => self.unterminated(Tok::Text, start),
        }
    }

    #[inline]
    fn escaped_text_end(&self, mut from: usize, quote: u8) -> Option<usize> {
        loop {
            let at = from + memchr2(quote, b'\\', self.rest(from))?;
            if self.sql.get(at) == Some(&quote) {
                return Some(at);
            }
            // One byte is skipped, also where a longer character begins: so do the servers.
            from = at + 2;
        }
    }

    /// As `escaped_text_end`, for sets in which a second byte may look like a backslash (never like a
    /// quote, so that without backslashes nothing is special).
    fn wide_text_end(&self, mut at: usize, quote: u8) -> Option<usize> {
        loop {
            match *self.sql.get(at)? {
                b if b == quote => return Some(at),
                b'\\' => at += 2,
                b if b < 0x80 => at += 1,
                _ => at += self.char_len(at),
            }
        }
    }

    /// A quoted name, one token with the doubled quotes inside it.
    pub(super) fn name(&mut self, start: usize, quote: u8) -> Token {
        let mut from = start + 1;
        loop {
            let end = if self.has_wide_chars() && quote == b'`' {
                self.wide_name_end(from, quote)
            } else {
                memchr2(quote, 0, self.rest(from)).map(|n| from + n)
            };
            let Some(at) = end else {
                return self.unterminated(Tok::Name, start);
            };
            if self.sql.get(at) != Some(&quote) {
                // A zero byte in a name: servers refuse the statement.
                self.found |= Traits::DOUBTFUL;
                return Token {
                    tok: Tok::Name,
                    start,
                    end: at + 1,
                };
            }
            if self.sql.get(at + 1) != Some(&quote) {
                return Token {
                    tok: Tok::Name,
                    start,
                    end: at + 1,
                };
            }
            from = at + 2;
        }
    }

    /// As `wide_text_end`, for a second byte that may look like a backquote.
    fn wide_name_end(&self, mut at: usize, quote: u8) -> Option<usize> {
        loop {
            match *self.sql.get(at)? {
                b if b == quote || b == 0 => return Some(at),
                b if b < 0x80 => at += 1,
                _ => at += self.char_len(at),
            }
        }
    }

    /// A word that starts with `$`, or MySQL's `$tag$ … $tag$` (bodies of routines in other languages).
    pub(super) fn word_or_dollar_text(&mut self, start: usize) -> Token {
        let follows_dot = start > 0 && self.sql.get(start - 1) == Some(&b'.');
        let rest = self.rest(start + 1);
        let tag_len = rest
            .iter()
            .take_while(|b| CLASS[**b as usize].is_word() && **b != b'$')
            .count();
        if follows_dot || self.d.server != Server::MySql || rest.get(tag_len) != Some(&b'$') {
            return self.word(start);
        }
        if self.d.version < DOLLAR_TEXT_SINCE {
            self.found |= Traits::DOUBTFUL;
        }
        let body = start + tag_len + 2;
        let tag = self.span(start, body);
        match memchr::memmem::find(self.rest(body), tag) {
            Some(n) => Token {
                tok: Tok::Text,
                start,
                end: body + n + tag.len(),
            },
            None => self.unterminated(Tok::Text, start),
        }
    }
}
