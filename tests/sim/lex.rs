//! The model servers' scanner: a few kinds of tokens, read as sql_mode and the client's character set say. It is written
//! apart from Atlas's own, so that the two can disagree.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A bare or quoted name, in lower case.
    Word(String),
    /// A string, decoded.
    Text(Vec<u8>),
    /// `@name`.
    User(String),
    /// `@@name`, without a scope in front.
    System(String),
    Number(String),
    Symbol(u8),
}

/// How bytes are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    pub ansi_quotes: bool,
    pub no_backslash_escapes: bool,
    /// Two-byte characters whose second byte may look like ASCII.
    pub gbk: bool,
}

/// The statements of a text, each as its tokens; and the tag in a comment `/* tag:N */`, of each or of one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    pub statements: Vec<(u32, Vec<Token>)>,
    /// A string or comment has no end.
    pub is_open: bool,
}

pub fn scan(text: &[u8], reading: Reading) -> Scanned {
    let mut lexer = Lexer {
        text,
        at: 0,
        reading,
        tag: 0,
        is_open: false,
    };
    let mut statements = Vec::new();
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token() {
        if token == Token::Symbol(b';') {
            statements.push((lexer.tag, std::mem::take(&mut tokens)));
        } else {
            tokens.push(token);
        }
    }
    if !tokens.is_empty() {
        statements.push((lexer.tag, tokens));
    }
    Scanned {
        statements,
        is_open: lexer.is_open,
    }
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    reading: Reading,
    tag: u32,
    is_open: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn token(&mut self) -> Option<Token> {
        loop {
            let byte = self.peek(0)?;
            match byte {
                b if b.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == Some(b'*') => self.comment(),
                b'-' if self.peek(1) == Some(b'-') => self.line(),
                b'#' => self.line(),
                b'\'' => return Some(Token::Text(self.quoted(byte))),
                b'"' if self.reading.ansi_quotes => {
                    return Some(Token::Word(lower(&self.quoted(byte))));
                }
                b'"' => return Some(Token::Text(self.quoted(byte))),
                b'`' => return Some(Token::Word(lower(&self.quoted(byte)))),
                b'@' if self.peek(1) == Some(b'@') => {
                    self.at += 2;
                    let name = self.word();
                    let name = ["session.", "local.", "global."]
                        .iter()
                        .find_map(|scope| name.strip_prefix(scope))
                        .unwrap_or(&name)
                        .to_owned();
                    return Some(Token::System(name));
                }
                b'@' => {
                    self.at += 1;
                    let name = match self.peek(0) {
                        Some(quote @ (b'`' | b'\'' | b'"')) => lower(&self.quoted(quote)),
                        _ => self.word(),
                    };
                    return Some(Token::User(name));
                }
                b if b.is_ascii_digit() => return Some(Token::Number(self.word())),
                b if is_word(b) => return Some(Token::Word(self.word())),
                b => {
                    self.at += 1;
                    return Some(Token::Symbol(b));
                }
            }
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(|b| is_word(b) || b == b'.') {
            self.at += 1;
        }
        lower(&self.text[start..self.at])
    }

    fn comment(&mut self) {
        let body = &self.text[self.at + 2..];
        let Some(end) = body.windows(2).position(|w| w == b"*/") else {
            self.is_open = true;
            self.at = self.text.len();
            return;
        };
        let inner = String::from_utf8_lossy(&body[..end]);
        if let Some(tag) = inner.trim().strip_prefix("tag:") {
            self.tag = tag.parse().unwrap_or(0);
        }
        self.at += end + 4;
    }

    fn line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }

    fn quoted(&mut self, quote: u8) -> Vec<u8> {
        self.at += 1;
        let mut out = Vec::new();
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if self.reading.gbk && byte >= 0x81 && self.peek(0).is_some_and(|b| b >= 0x40) {
                out.push(byte);
                out.push(self.text[self.at]);
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != Some(quote) {
                    return out;
                }
                self.at += 1;
                out.push(quote);
            } else if byte == b'\\' && quote != b'`' && !self.reading.no_backslash_escapes {
                if let Some(next) = self.peek(0) {
                    out.push(next);
                    self.at += 1;
                }
            } else {
                out.push(byte);
            }
        }
        self.is_open = true;
        out
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

fn lower(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect()
}
