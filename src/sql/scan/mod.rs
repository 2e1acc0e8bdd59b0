//! The lexer: bytes to tokens, spans only, nothing allocated.
//!
//! It follows the lexers of MySQL 9.7 and MariaDB 10.11 (manual pages "Comments", "String Literals",
//! "Schema Object Names"; every rule was checked against the running servers): quotes by sql_mode,
//! multi-byte characters by character set, `-- `, `#` and `/* */`, version comments whose text runs.
//! Comments are not tokens; the hints in them are kept. What words mean is not known here.

mod class;
mod comment;
mod number;
mod quoted;
mod version;

use self::class::{CLASS, Class};
use super::hint::Hints;
use super::{Charset, Dialect, Server, Traits};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
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
pub struct Token {
    /// What it is.
    pub tok: Tok,
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// The tokens of a text, for those who make a syntax tree of them.
#[derive(Clone, Debug)]
pub struct Tokens<'a>(Scanner<'a>);

impl<'a> Tokens<'a> {
    /// Those of this text.
    #[must_use]
    pub fn new(sql: &'a [u8], d: &Dialect) -> Self {
        Self(Scanner::new(sql, d))
    }

    /// EXECUTABLE, UNTERMINATED, DOUBTFUL as met so far.
    #[must_use]
    pub fn found(&self) -> Traits {
        self.0.found
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        Some(self.0.next()).filter(|token| token.tok != Tok::End)
    }
}

/// Walks the tokens of a text. Clones are cheap: one looks ahead by cloning.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
    d: Dialect,
    /// A version comment whose text runs is open: `*/` closes it.
    in_version: bool,
    /// How often one was entered or left.
    version_edges: u32,
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
            version_edges: 0,
            found: Traits::NONE,
            hints: Hints::default(),
        }
    }

    /// How many times the text of a version comment began or ended so far.
    pub(super) fn version_comment_edges(&self) -> u32 {
        self.version_edges
    }

    /// Where the next token is looked for.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// How the text is read.
    pub(super) fn dialect(&self) -> &Dialect {
        &self.d
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
                        self.version_edges = self.version_edges.wrapping_add(1);
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
    pub(super) fn char_len(&self, at: usize) -> usize {
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
        self.d.charset.is_wide()
    }

    #[inline]
    fn rest(&self, from: usize) -> &'a [u8] {
        self.sql.get(from..).unwrap_or_default()
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
}
