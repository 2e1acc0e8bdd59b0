//! The lexer: bytes to tokens, spans only, nothing allocated.
//!
//! It follows the lexers of MySQL 9.7 and MariaDB 10.11 (manual pages "Comments", "String Literals",
//! "Schema Object Names"; every rule was checked against the running servers): quotes by sql_mode,
//! multi-byte characters by character set, `-- `, `#` and `/* */`, version comments whose text runs.
//! Comments are not tokens; the hints in them are kept. What words mean is not known here.

use memchr::{memchr, memchr2};

use super::comment::{self, Version};
use super::hint::Hints;
use super::{Charset, Dialect, Server, Traits};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// The text is over.
    End,
    /// An unquoted name or keyword.
    Word,
    /// A quoted name, quotes included.
    Name,
    /// A string, quotes included (and nothing else: `x` of `x'4D'` is a word).
    Text,
    /// A number, or `\N`.
    Number,
    /// `@name`, `` @`name` ``, `@'name'`, sign included.
    UserVar,
    /// `@@`, without the name.
    SysVar,
    /// `:=`
    Assign,
    /// `;`
    Semicolon,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `=`
    Equal,
    /// Any other byte.
    Other,
}

/// One token and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Walks the tokens of a text. Clones are cheap: one looks ahead by cloning.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
    d: Dialect,
    /// A version comment whose text runs is open: `*/` closes it.
    in_version: bool,
    /// EXECUTABLE, UNTERMINATED, DOUBTFUL as met so far.
    pub(super) found: Traits,
    /// The hints met so far.
    pub(super) hints: Hints<'a>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(sql: &'a [u8], d: &Dialect) -> Self {
        Self {
            sql,
            at: 0,
            d: *d,
            in_version: false,
            found: Traits::NONE,
            hints: Hints::default(),
        }
    }

    /// The bytes of a token.
    #[inline]
    pub(super) fn text(&self, t: Token) -> &'a [u8] {
        self.sql.get(t.start..t.end).unwrap_or_default()
    }

    /// The bytes from one position to another.
    pub(super) fn span(&self, start: usize, end: usize) -> &'a [u8] {
        self.sql.get(start..end).unwrap_or_default()
    }

    /// The next token; [`Tok::End`] again and again after the last.
    #[inline]
    pub(super) fn next(&mut self) -> Token {
        loop {
            let start = self.at;
            let Some(&b) = self.sql.get(start) else {
                return self.end();
            };
            let one = |tok| Token {
                tok,
                start,
                end: start + 1,
            };
            let t = match CLASS[b as usize] {
                Class::Space => {
                    self.at = start + 1;
                    continue;
                }
                Class::Letter => self.word(start),
                Class::High => {
                    if matches!(self.d.charset, Charset::SingleByte { blank } if blank == b) {
                        self.at = start + 1;
                        continue;
                    }
                    self.word(start)
                }
                Class::Dollar => self.word_or_dollar_text(start),
                Class::Digit => self.number(start),
                Class::Quote => self.text_token(start, b'\''),
                Class::DoubleQuote if self.d.ansi_quotes => self.name(start, b'"'),
                Class::DoubleQuote => self.text_token(start, b'"'),
                Class::Backquote => self.name(start, b'`'),
                Class::Dot => self.dot(start),
                Class::Open => one(Tok::Open),
                Class::Close => one(Tok::Close),
                Class::Comma => one(Tok::Comma),
                Class::Equal => one(Tok::Equal),
                Class::Semicolon => {
                    if self.in_version {
                        // Servers refuse the rest of such a text; what they ran before is not known.
                        self.found |= Traits::DOUBTFUL;
                    }
                    one(Tok::Semicolon)
                }
                Class::Slash => {
                    if self.peek(1) == b'*' {
                        self.block_comment(start);
                        continue;
                    }
                    one(Tok::Other)
                }
                Class::Star => {
                    if self.in_version && self.peek(1) == b'/' {
                        self.in_version = false;
                        self.at = start + 2;
                        continue;
                    }
                    one(Tok::Other)
                }
                Class::Dash => {
                    if self.peek(1) == b'-' && self.ends_dashes(start + 2) {
                        self.line_comment(start + 2);
                        continue;
                    }
                    one(Tok::Other)
                }
                Class::Hash => {
                    self.line_comment(start + 1);
                    continue;
                }
                Class::At => self.variable(start),
                Class::Colon => {
                    if self.peek(1) == b'=' {
                        Token {
                            tok: Tok::Assign,
                            start,
                            end: start + 2,
                        }
                    } else {
                        one(Tok::Other)
                    }
                }
                Class::Backslash => {
                    // MariaDB's other spelling of NULL, which ends where it ends: `\NFROM t`.
                    if self.peek(1) == b'N' {
                        Token {
                            tok: Tok::Number,
                            start,
                            end: start + 2,
                        }
                    } else {
                        one(Tok::Other)
                    }
                }
                Class::Nul => {
                    // A syntax error, except at the very end; a parser may take it for the end.
                    self.found |= Traits::DOUBTFUL;
                    one(Tok::Other)
                }
                Class::Other => one(Tok::Other),
            };
            self.at = t.end;
            return t;
        }
    }

    fn end(&mut self) -> Token {
        if self.in_version {
            self.found |= Traits::UNTERMINATED;
        }
        Token {
            tok: Tok::End,
            start: self.sql.len(),
            end: self.sql.len(),
        }
    }

    /// The byte `ahead` of the current position; 0 behind the end, as servers see it.
    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn unterminated(&mut self, tok: Tok, start: usize) -> Token {
        self.found |= Traits::UNTERMINATED;
        Token {
            tok,
            start,
            end: self.sql.len(),
        }
    }

    /// Where the unquoted name ends of which `from` is a part or the end.
    #[inline]
    fn word_end(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        if matches!(self.d.charset, Charset::Plain) {
            return from
                + rest
                    .iter()
                    .take_while(|b| CLASS[**b as usize].is_word())
                    .count();
        }
        let mut len = 0;
        while let Some(&b) = rest.get(len) {
            if !CLASS[b as usize].is_word()
                || matches!(self.d.charset, Charset::SingleByte { blank } if blank == b)
            {
                break;
            }
            len += self.char_len(from + len);
        }
        (from + len).min(self.sql.len())
    }

    #[inline]
    fn word(&self, start: usize) -> Token {
        Token {
            tok: Tok::Word,
            start,
            end: self.word_end(start),
        }
    }

    /// How many bytes the character at `at` has, by the rules with which servers step over characters:
    /// a first byte without a fitting second byte stands for itself.
    fn char_len(&self, at: usize) -> usize {
        let byte = |i: usize| self.sql.get(at + i).copied().unwrap_or(0);
        let (first, second) = (byte(0), byte(1));
        let double = match self.d.charset {
            Charset::Plain | Charset::SingleByte { .. } => false,
            Charset::Gbk => {
                matches!(first, 0x81..=0xfe) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
            }
            Charset::Gb18030 => {
                if matches!((first, second), (0x81..=0xfe, 0x30..=0x39))
                    && matches!((byte(2), byte(3)), (0x81..=0xfe, 0x30..=0x39))
                {
                    return 4;
                }
                matches!(first, 0x81..=0xfe) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
            }
            Charset::Big5 => {
                matches!(first, 0xa1..=0xf9) && matches!(second, 0x40..=0x7e | 0xa1..=0xfe)
            }
            Charset::Sjis => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                    && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
            }
        };
        if double { 2 } else { 1 }
    }

    fn has_wide_chars(&self) -> bool {
        !matches!(self.d.charset, Charset::Plain | Charset::SingleByte { .. })
    }

    /// A string. A doubled quote needs no care: it is read as two strings side by side, which is
    /// also how servers join strings.
    #[inline]
    fn text_token(&mut self, start: usize, quote: u8) -> Token {
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
    fn rest(&self, from: usize) -> &'a [u8] {
        self.sql.get(from..).unwrap_or_default()
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
    fn name(&mut self, start: usize, quote: u8) -> Token {
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

    /// A number, or a name that starts with digits.
    fn number(&self, start: usize) -> Token {
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
    fn dot(&self, start: usize) -> Token {
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

    /// `@name` or `@@`.
    fn variable(&mut self, start: usize) -> Token {
        let mut t = match self.peek(1) {
            b'@' => {
                return Token {
                    tok: Tok::SysVar,
                    start,
                    end: start + 2,
                };
            }
            b'`' => self.name(start + 1, b'`'),
            b'"' if self.d.ansi_quotes => self.name(start + 1, b'"'),
            quote @ (b'\'' | b'"') => self.text_token(start + 1, quote),
            _ => {
                let is_part =
                    |b: &u8| *b == b'.' || CLASS[*b as usize].is_word() && !self.is_blank(*b);
                let len = self
                    .rest(start + 1)
                    .iter()
                    .take_while(|b| is_part(b))
                    .count();
                Token {
                    tok: Tok::UserVar,
                    start,
                    end: start + 1 + len,
                }
            }
        };
        t.tok = Tok::UserVar;
        t.start = start;
        t
    }

    fn is_blank(&self, b: u8) -> bool {
        matches!(self.d.charset, Charset::SingleByte { blank } if blank == b)
    }

    /// A word that starts with `$`, or MySQL's `$tag$ … $tag$` (bodies of routines in other languages).
    fn word_or_dollar_text(&mut self, start: usize) -> Token {
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

    /// True if `--` before `at` starts a comment: a blank, a control character or the end follows.
    fn ends_dashes(&mut self, at: usize) -> bool {
        match self.sql.get(at) {
            None | Some(0..=b' ' | 0x7f) => true,
            Some(0x80..) => match self.d.charset {
                Charset::SingleByte { blank } => {
                    let is_blank = self.sql.get(at) == Some(&blank);
                    if !is_blank {
                        // Several 8-bit sets have control characters here.
                        self.found |= Traits::DOUBTFUL;
                    }
                    is_blank
                }
                _ => false,
            },
            Some(_) => false,
        }
    }

    /// A comment to the end of the line; a version comment around it does not end inside.
    fn line_comment(&mut self, body: usize) {
        let end = memchr(b'\n', self.rest(body)).map_or(self.sql.len(), |n| body + n);
        self.hints.see(self.span(body, end));
        self.at = end;
    }

    fn block_comment(&mut self, start: usize) {
        let body = start + 2;
        match comment::version(self.rest(body), &self.d) {
            None => match comment_end(self.rest(body)) {
                Some(len) => {
                    self.hints.see(self.span(body, body + len));
                    self.at = body + len + 2;
                }
                None => self.unterminated_comment(),
            },
            Some(Version {
                runs: true,
                marker_len,
                doubtful,
            }) => {
                self.found |= Traits::EXECUTABLE;
                if doubtful {
                    self.found |= Traits::DOUBTFUL;
                }
                self.in_version = true;
                self.at = body + marker_len;
            }
            Some(Version {
                runs: false,
                marker_len,
                ..
            }) => {
                let inside = body + marker_len;
                match skipped_end(self.rest(inside)) {
                    Some(len) => self.at = inside + len,
                    None => self.unterminated_comment(),
                }
            }
        }
    }

    fn unterminated_comment(&mut self) {
        self.found |= Traits::UNTERMINATED;
        self.at = self.sql.len();
    }
}

/// How long the comment text is that `*/` ends.
fn comment_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let star = from + memchr(b'*', text.get(from..)?)?;
        if text.get(star + 1) == Some(&b'/') {
            return Some(star);
        }
        from = star + 1;
    }
}

/// Where the code behind a version comment starts that does not run; one level of plain comments
/// may be nested in such a comment.
fn skipped_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'*', b'/', text.get(from..)?)?;
        match (text.get(at)?, text.get(at + 1)) {
            (b'*', Some(b'/')) => return Some(at + 2),
            (b'/', Some(b'*')) => from = at + 2 + comment_end(text.get(at + 2..)?)? + 2,
            _ => from = at + 1,
        }
    }
}

/// The first version that is known to have dollar-quoted strings.
const DOLLAR_TEXT_SINCE: u32 = 9_00_00;

/// What a byte starts outside strings and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Class {
    // The first four are the bytes of a word.
    Letter,
    High,
    Dollar,
    Digit,
    Space,
    Quote,
    DoubleQuote,
    Backquote,
    Dot,
    Open,
    Close,
    Comma,
    Equal,
    Semicolon,
    Slash,
    Star,
    Dash,
    Hash,
    At,
    Colon,
    Backslash,
    Nul,
    Other,
}

impl Class {
    #[inline]
    const fn is_word(self) -> bool {
        self as u8 <= Self::Digit as u8
    }
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut b = 0;
    while b < 256 {
        // The index is below 256, so the cast loses nothing.
        #[expect(clippy::cast_possible_truncation, reason = "b < 256")]
        let byte = b as u8;
        table[b] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Class::Letter,
            0x80.. => Class::High,
            b'$' => Class::Dollar,
            b'0'..=b'9' => Class::Digit,
            b'\t'..=b'\r' | b' ' => Class::Space,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            b'`' => Class::Backquote,
            b'.' => Class::Dot,
            b'(' => Class::Open,
            b')' => Class::Close,
            b',' => Class::Comma,
            b'=' => Class::Equal,
            b';' => Class::Semicolon,
            b'/' => Class::Slash,
            b'*' => Class::Star,
            b'-' => Class::Dash,
            b'#' => Class::Hash,
            b'@' => Class::At,
            b':' => Class::Colon,
            b'\\' => Class::Backslash,
            0 => Class::Nul,
            _ => Class::Other,
        };
        b += 1;
    }
    table
};
