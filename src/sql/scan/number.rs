//! Numbers, and names that start with digits.

use super::class::CLASS;
use super::{Scanner, Tok, Token};

impl Scanner<'_> {
    /// A number, or a name that starts with digits.
    pub(super) fn number(&self, start: usize) -> Token {
        let number = |end| Token {
            tok: Tok::Number,
            start,
            end,
        };
        if start > 0 && self.sql.get(start - 1) == Some(&b'.') {
            return self.word(start); // t.1e5 is a column
        }
        let byte = |at: usize| self.sql.get(at).copied().unwrap_or(0);
        if byte(start) == b'0' && matches!(byte(start + 1), b'x' | b'b') {
            let is_digit = if byte(start + 1) == b'x' {
                u8::is_ascii_hexdigit
            } else {
                |b: &u8| matches!(b, b'0' | b'1')
            };
            let end = start
                + 2
                + self
                    .rest(start + 2)
                    .iter()
                    .take_while(|b| is_digit(b))
                    .count();
            let is_number = end > start + 2 && !CLASS[byte(end) as usize].is_word();
            return if is_number {
                number(end)
            } else {
                self.word(start)
            };
        }
        let end = self.digits_end(start);
        match byte(end) {
            b'.' => number(self.exponent_end(self.digits_end(end + 1))),
            b'e' | b'E' => match self.exponent_end(end) {
                same if same == end => self.word(start),
                exponent_end => number(exponent_end),
            },
            b if CLASS[b as usize].is_word() => self.word(start),
            _ => number(end),
        }
    }

    #[inline]
    fn digits_end(&self, from: usize) -> usize {
        from + self
            .rest(from)
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    }

    /// Where the exponent ends that starts at `from`; `from` if there is none.
    fn exponent_end(&self, from: usize) -> usize {
        let [b'e' | b'E', rest @ ..] = self.rest(from) else {
            return from;
        };
        let digits_at = from + 1 + usize::from(matches!(rest, [b'+' | b'-', ..]));
        match self.digits_end(digits_at) {
            same if same == digits_at => from,
            end => end,
        }
    }

    /// `.`, or a number that starts with it.
    pub(super) fn dot(&self, start: usize) -> Token {
        let follows_name = start > 0
            && self
                .sql
                .get(start - 1)
                .is_some_and(|b| CLASS[*b as usize].is_word());
        if !follows_name && self.sql.get(start + 1).is_some_and(u8::is_ascii_digit) {
            return Token {
                tok: Tok::Number,
                start,
                end: self.exponent_end(self.digits_end(start + 1)),
            };
        }
        Token {
            tok: Tok::Dot,
            start,
            end: start + 1,
        }
    }
}
