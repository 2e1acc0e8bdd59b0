//! A place between tokens, for the cold paths that read a statement word by word.

use super::keyword::Kw;
use super::scan::{Scanner, Tok, Token};
use super::{Dialect, TableName, Traits, word};

/// Walks a text token by token, with the current token at hand.
pub(super) struct Cursor<'a> {
    scan: Scanner<'a>,
    current: Token,
    /// Where the last token ended that was stepped over.
    last_end: usize,
    /// The current token stands behind `.` or `@@`, where no word is a keyword.
    is_part_of_name: bool,
    /// Where the current statement starts.
    statement_start: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(sql: &'a [u8], d: &Dialect) -> Self {
        let mut scan = Scanner::new(sql, d);
        let current = scan.next();
        Self {
            scan,
            current,
            last_end: 0,
            is_part_of_name: false,
            statement_start: current.start,
        }
    }

    /// What the current token is.
    pub(super) fn tok(&self) -> Tok {
        self.current.tok
    }

    /// What the token behind the current one is.
    pub(super) fn peek(&self) -> Token {
        self.scan.clone().next()
    }

    /// The current token is a word with nothing but an empty pair of parentheses behind it.
    pub(super) fn is_call_without_arguments(&self) -> bool {
        let mut scan = self.scan.clone();
        scan.next().tok == Tok::Open && scan.next().tok == Tok::Close
    }

    /// Where the current token starts.
    pub(super) fn start(&self) -> usize {
        self.current.start
    }

    /// Where the last token ended that was stepped over.
    pub(super) fn last_end(&self) -> usize {
        self.last_end
    }

    /// Where the current statement's first word is, as the last [`Self::start_statement`] left it.
    pub(super) fn statement_start(&self) -> usize {
        self.statement_start
    }

    /// The current token is a statement's first word.
    pub(super) fn start_statement(&mut self) {
        self.statement_start = self.current.start;
    }

    /// What the scanner had to say so far.
    pub(super) fn found(&self) -> Traits {
        self.scan.found
    }

    /// The current token's text.
    pub(super) fn text(&self) -> &'a [u8] {
        self.scan.text(self.current)
    }

    /// The text between two places.
    pub(super) fn span(&self, start: usize, end: usize) -> &'a [u8] {
        self.scan.span(start, end)
    }

    /// How many version comments have been entered or left so far: text between two tokens for which
    /// this differs is not code by itself.
    pub(super) fn version_comment_edges(&self) -> u32 {
        self.scan.version_comment_edges()
    }

    /// What the current token is to the classifier; [`Kw::Name`] for all but keywords.
    pub(super) fn kw(&self) -> Kw {
        match self.current.tok {
            Tok::Word if !self.is_part_of_name => {
                word::lookup(self.text()).map_or(Kw::Name, |w| w.kw)
            }
            _ => Kw::Name,
        }
    }

    /// True at `;` and at the end of the text.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.current.tok, Tok::Semicolon | Tok::End)
    }

    /// True if the current token is this word, in any case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.current.tok == Tok::Word && self.text().eq_ignore_ascii_case(word.as_bytes())
    }

    /// True if the current token is one of these words.
    pub(super) fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    pub(super) fn step(&mut self) {
        self.last_end = self.current.end;
        self.is_part_of_name = matches!(self.current.tok, Tok::Dot | Tok::SysVar);
        self.current = self.scan.next();
    }

    /// Steps over the current token if it is this one.
    pub(super) fn eat(&mut self, tok: Tok) -> bool {
        let is = self.current.tok == tok;
        if is {
            self.step();
        }
        is
    }

    /// Steps over the current word if it is this one.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.step();
        }
        is
    }

    /// Steps over a name and gives it without its quotes; `None` at anything else.
    pub(super) fn eat_name(&mut self) -> Option<&'a [u8]> {
        let name = match self.current.tok {
            Tok::Word => self.text(),
            Tok::Name | Tok::Text => unquoted(self.text()),
            _ => return None,
        };
        self.step();
        Some(name)
    }

    /// Steps over `a`, `a.b` or `a.b.c` and gives the last part.
    pub(super) fn eat_last_name(&mut self) -> Option<&'a [u8]> {
        self.eat_table_name().map(|table| table.name)
    }

    /// Steps over `a`, `a.b` or `a.b.c` and gives the last two parts.
    pub(super) fn eat_table_name(&mut self) -> Option<TableName<'a>> {
        let mut schema = None;
        let mut name = self.eat_name()?;
        while self.eat(Tok::Dot) {
            schema = Some(name);
            name = self.eat_name()?;
        }
        Some(TableName { schema, name })
    }

    /// Steps over `IF EXISTS` or `IF NOT EXISTS`.
    pub(super) fn eat_if_exists(&mut self) {
        if self.eat_word("if") {
            self.eat_word("not");
            self.eat_word("exists");
        }
    }
}

/// A quoted name or string without its quotes; anything else as it is.
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [open @ (b'\'' | b'"' | b'`'), inside @ .., close] if open == close => inside,
        _ => text,
    }
}
