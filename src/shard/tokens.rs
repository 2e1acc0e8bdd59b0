//! A statement's tokens in the shape that the parser wants. Atlas's own scanner reads the bytes, since it reads them as the servers
//! do: by sql_mode, character set and version. The parser's places are then byte offsets. What the parser does not know of the
//! servers' grammar and what makes no difference to where a statement goes is left out or said otherwise here.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::refused::Refused;
use crate::sql::{self, Dialect, Tok, Traits};

/// Operators that one expression may hold one behind the other: the parser makes of them a tree that is as deep.
const OPERATORS_MAX: usize = 1000;
/// UNION, EXCEPT, INTERSECT in one statement, for the same reason.
const UNIONS_MAX: usize = 100;
/// Parentheses in parentheses.
const DEPTH_MAX: usize = 64;

/// What the parser is given, and what it is not told.
#[derive(Debug)]
pub(super) struct Fed {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// There is an operator whose place in an expression is another one for the servers than for the parser.
    pub(super) is_doubtful: bool,
    /// Ends in LOCK IN SHARE MODE.
    pub(super) is_locking: bool,
    /// Where the signs of parameters stand.
    pub(super) params: Vec<usize>,
}

/// See the module's words.
///
/// # Errors
/// The parser must not see it.
pub(super) fn feed(text: &[u8], d: &Dialect) -> Result<Fed, Refused> {
    let mut feeder = Feeder {
        text,
        all: sql::Tokens::new(text, d).collect(),
        at: 0,
        fed: Fed {
            tokens: Vec::new(),
            is_doubtful: false,
            is_locking: false,
            params: Vec::new(),
        },
        counts: vec![0],
        unions: 0,
    };
    let mut scan = sql::Tokens::new(text, d);
    scan.by_ref().for_each(drop);
    if scan
        .found()
        .intersects(Traits::UNTERMINATED | Traits::DOUBTFUL)
    {
        return Err(Refused::new(
            "a string or a comment has no end, or the text can be read in two ways",
        ));
    }
    feeder.run()?;
    Ok(feeder.fed)
}

/// A span of bytes as the parser keeps it.
pub(super) fn span(start: usize, end: usize) -> Span {
    let place = |at: usize| Location {
        line: 1,
        column: at as u64 + 1,
    };
    Span {
        start: place(start),
        end: place(end),
    }
}

/// The bytes of a span that came from here; `None` for one that the parser made up.
pub(super) fn bytes(span: Span) -> Option<std::ops::Range<usize>> {
    let at = |place: Location| usize::try_from(place.column.checked_sub(1)?).ok();
    let (start, end) = (at(span.start)?, at(span.end)?);
    (span.start.line == 1 && start < end).then_some(start..end)
}

/// Makes a token of a string's content.
type Make = fn(String) -> Token;

struct Feeder<'a> {
    text: &'a [u8],
    all: Vec<sql::Token>,
    at: usize,
    fed: Fed,
    /// Operators since the last comma, for each open parenthesis.
    counts: Vec<usize>,
    unions: usize,
}

impl Feeder<'_> {
    fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> Option<sql::Token> {
        self.all.get(self.at + ahead).copied()
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.peek(ahead).is_some_and(|t| {
            t.tok == Tok::Word
                && self
                    .slice(t.start, t.end)
                    .eq_ignore_ascii_case(word.as_bytes())
        })
    }

    fn push(&mut self, token: Token, start: usize, end: usize) {
        self.fed.tokens.push(TokenWithSpan {
            token,
            span: span(start, end),
        });
    }

    fn count(&mut self) -> Result<(), Refused> {
        if let Some(last) = self.counts.last_mut() {
            *last += 1;
        }
        if self.counts.iter().sum::<usize>() > OPERATORS_MAX {
            return Err(Refused::new(format!(
                "an expression has more than {OPERATORS_MAX} operators: use IN (...) in place of many ORs"
            )));
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Refused> {
        let is_update = self.is_word(0, "update");
        if is_update || self.is_word(0, "delete") {
            let verb = self.next_word();
            if let Some((token, start, end)) = verb {
                self.push(token, start, end);
            }
            // They change no rows but how a server goes about it.
            while ["low_priority", "quick", "ignore"]
                .iter()
                .any(|word| self.is_word(0, word))
            {
                self.at += 1;
            }
        }
        let mut lists_tables = is_update;
        while let Some(t) = self.peek(0) {
            let (start, end) = (t.start, t.end);
            match t.tok {
                Tok::Word => {
                    if self.share_mode() {
                        continue;
                    }
                    lists_tables &= !self.is_word(0, "set");
                    self.word()?;
                    continue;
                }
                Tok::Name => {
                    let name = self.name(start, end);
                    self.push(Token::make_word(&name, Some('`')), start, end);
                }
                Tok::Text => {
                    self.string(start);
                    continue;
                }
                Tok::Number => self.number(start, end),
                Tok::UserVar => {
                    let name = latin(self.slice(start, end));
                    self.push(Token::make_word(&name, None), start, end);
                }
                Tok::SysVar => {
                    let end = match self.peek(1) {
                        Some(name) if name.start == end => {
                            self.at += 1;
                            name.end
                        }
                        _ => end,
                    };
                    let name = latin(self.slice(start, end));
                    self.push(Token::make_word(&name, None), start, end);
                }
                Tok::Assign => self.push(Token::Assignment, start, end),
                Tok::Semicolon => self.push(Token::SemiColon, start, end),
                Tok::Open => {
                    self.counts.push(0);
                    if self.counts.len() > DEPTH_MAX {
                        return Err(Refused::new(format!(
                            "it has more than {DEPTH_MAX} parentheses in parentheses"
                        )));
                    }
                    self.push(Token::LParen, start, end);
                }
                Tok::Close => {
                    if self.counts.len() > 1 {
                        self.counts.pop();
                    }
                    self.push(Token::RParen, start, end);
                }
                Tok::Comma => {
                    if let Some(last) = self.counts.last_mut() {
                        *last = 0;
                    }
                    if lists_tables && self.counts.len() == 1 {
                        self.push(Token::make_keyword("CROSS"), start, end);
                        self.push(Token::make_keyword("JOIN"), start, end);
                    } else {
                        self.push(Token::Comma, start, end);
                    }
                }
                Tok::Dot => self.push(Token::Period, start, end),
                Tok::Equal | Tok::Other => {
                    self.operator()?;
                    continue;
                }
                Tok::End => break,
            }
            self.at += 1;
        }
        Ok(())
    }

    fn next_word(&mut self) -> Option<(Token, usize, usize)> {
        let t = self.peek(0)?;
        self.at += 1;
        Some((
            Token::make_word(&latin(self.slice(t.start, t.end)), None),
            t.start,
            t.end,
        ))
    }

    /// LOCK IN SHARE MODE, which is left out.
    fn share_mode(&mut self) -> bool {
        let words = ["lock", "in", "share", "mode"];
        let is_it = words
            .iter()
            .enumerate()
            .all(|(at, word)| self.is_word(at, word));
        if is_it {
            self.at += words.len();
            self.fed.is_locking = true;
        }
        is_it
    }

    fn word(&mut self) -> Result<(), Refused> {
        const COUNTED: [&str; 14] = [
            "and", "or", "xor", "not", "is", "in", "like", "between", "div", "mod", "regexp",
            "rlike", "collate", "binary",
        ];
        let any = |feeder: &Self, words: &[&str]| words.iter().any(|word| feeder.is_word(0, word));
        let follows_dot = self
            .fed
            .tokens
            .last()
            .is_some_and(|last| last.token == Token::Period);
        let opens = self.peek(1).is_some_and(|t| t.tok == Tok::Open);
        if !follows_dot {
            if any(self, &COUNTED) {
                self.count()?;
            }
            if any(self, &["union", "except", "intersect"]) {
                self.unions += 1;
                if self.unions > UNIONS_MAX {
                    return Err(Refused::new(format!(
                        "it unites more than {UNIONS_MAX} queries"
                    )));
                }
            }
            // Between AND and OR for the servers; above both for the parser.
            self.fed.is_doubtful |= self.is_word(0, "xor");
        }
        let is_modulo = !follows_dot && !opens && self.is_word(0, "mod");
        let prefixed = self.prefixed_text();
        let Some((token, start, end)) = self.next_word() else {
            return Ok(());
        };
        if is_modulo {
            self.push(Token::Mod, start, end);
        } else if let Some((make, text_end)) = prefixed {
            self.at += 1;
            let content = latin(self.slice(end + 1, text_end.saturating_sub(1)));
            self.push(make(content), start, text_end);
        } else {
            self.push(token, start, end);
        }
        Ok(())
    }

    /// `x'…'`, `b'…'`, `N'…'`: what is made of it, and where it ends.
    fn prefixed_text(&self) -> Option<(Make, usize)> {
        let (word, text) = (self.peek(0)?, self.peek(1)?);
        let is_one = text.tok == Tok::Text
            && text.start == word.end
            && self.text.get(text.start) == Some(&b'\'');
        let make: Make = match self.slice(word.start, word.end) {
            b"x" | b"X" => Token::HexStringLiteral,
            b"b" | b"B" => Token::SingleQuotedByteStringLiteral,
            b"n" | b"N" => Token::NationalStringLiteral,
            _ => return None,
        };
        is_one.then_some((make, text.end))
    }

    /// A string, with those that follow it at once: they are one. Its value is read from its bytes when it is wanted.
    fn string(&mut self, start: usize) {
        let mut end = start;
        while let Some(t) = self.peek(0).filter(|t| t.tok == Tok::Text) {
            end = t.end;
            self.at += 1;
        }
        self.push(Token::SingleQuotedString(String::new()), start, end);
    }

    fn name(&self, start: usize, end: usize) -> String {
        let inside = self.slice(start + 1, end.saturating_sub(1));
        let quote = self.text.get(start).copied().unwrap_or(b'`');
        let quote = char::from(quote);
        latin(inside).replace(&format!("{quote}{quote}"), &quote.to_string())
    }

    fn number(&mut self, start: usize, end: usize) {
        let token = match self.slice(start, end) {
            [b'0', b'x', digits @ ..] => Token::HexStringLiteral(latin(digits)),
            [b'0', b'b', digits @ ..] => Token::SingleQuotedByteStringLiteral(latin(digits)),
            b"\\N" => Token::make_keyword("NULL"),
            number => Token::Number(latin(number), false),
        };
        self.push(token, start, end);
    }

    fn operator(&mut self) -> Result<(), Refused> {
        const LONG: [(&[u8], Token); 10] = [
            (b"<=>", Token::Spaceship),
            (b"->>", Token::LongArrow),
            (b"->", Token::Arrow),
            (b"<=", Token::LtEq),
            (b">=", Token::GtEq),
            (b"<>", Token::Neq),
            (b"!=", Token::Neq),
            (b"<<", Token::ShiftLeft),
            (b">>", Token::ShiftRight),
            (b"&&", Token::Overlap),
        ];
        let start = self.peek(0).map_or(0, |t| t.start);
        let rest = self.text.get(start..).unwrap_or_default();
        // Bytes that stand side by side; a comment between would be seen here as a `/`.
        let (token, len) = if rest.starts_with(b"||") {
            // Or a concatenation, in another sql_mode.
            self.fed.is_doubtful = true;
            (Token::make_keyword("OR"), 2)
        } else if let Some((bytes, token)) = LONG.iter().find(|(bytes, _)| rest.starts_with(bytes))
        {
            let token = match token {
                Token::Overlap => Token::make_keyword("AND"),
                other => other.clone(),
            };
            (token, bytes.len())
        } else {
            (self.sign(rest.first().copied())?, 1)
        };
        if !matches!(token, Token::Placeholder(_) | Token::LBrace | Token::RBrace) {
            self.count()?;
        }
        self.push(token, start, start + len);
        while self.peek(0).is_some_and(|t| t.start < start + len) {
            self.at += 1;
        }
        Ok(())
    }

    fn sign(&mut self, byte: Option<u8>) -> Result<Token, Refused> {
        Ok(match byte {
            Some(b'=') => Token::Eq,
            Some(b'<') => Token::Lt,
            Some(b'>') => Token::Gt,
            Some(b'+') => Token::Plus,
            Some(b'-') => Token::Minus,
            Some(b'*') => Token::Mul,
            Some(b'/') => Token::Div,
            Some(b'%') => Token::Mod,
            Some(b'^') => Token::Caret,
            Some(b'|') => Token::Pipe,
            Some(b'&') => Token::Ampersand,
            Some(b'~') => Token::Tilde,
            Some(b'{') => Token::LBrace,
            Some(b'}') => Token::RBrace,
            Some(b'!') => {
                // Binds closer than a comparison for the servers.
                self.fed.is_doubtful = true;
                Token::make_keyword("NOT")
            }
            Some(b'?') => {
                let token = Token::Placeholder(format!("?{}", self.fed.params.len()));
                self.fed.params.push(self.peek(0).map_or(0, |t| t.start));
                token
            }
            _ => return Err(Refused::new("it has a sign that is not known")),
        })
    }
}

/// Bytes as characters, one each, whatever character set they are in.
pub(super) fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// The bytes that [`latin`] was given.
pub(super) fn unlatin(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| u8::try_from(c).unwrap_or(b'?'))
        .collect()
}
