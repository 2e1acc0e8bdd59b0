//! The bytes of a statement to its kind and traits, in one pass over the tokens.
//!
//! Two machines are fed: `Head` finds the kind from the first words, and the one here watches for
//! words, calls and variables that tie a statement to the primary, wherever they stand.

use super::function::{self, Class};
use super::head::Head;
use super::keyword::Kw;
use super::scan::{Scanner, Tok, Token};
use super::schema;
use super::word::{self, Word};
use super::{Dialect, Kind, Server, Statement, Traits};

/// Kind, traits and hint of a statement text.
///
/// Nothing is allocated, and every byte is looked at once.
#[must_use]
pub fn classify<'a>(sql: &'a [u8], d: &Dialect) -> Statement<'a> {
    let mut machine = Machine::new(sql, d);
    machine.run();
    machine.statement()
}

/// The kind of a statement by its first word alone, for a text of which only the first bytes are
/// here. [`Kind::Unknown`] when one word does not decide, or when it may be cut off.
///
/// [`Kind::Read`] does not mean that a replica may answer: a lock or an INTO may follow.
#[must_use]
pub fn classify_prefix(first_bytes: &[u8], d: &Dialect) -> Kind {
    let mut scan = Scanner::new(first_bytes, d);
    let mut token = scan.next();
    while token.tok == Tok::Open {
        token = scan.next();
    }
    if token.tok != Tok::Word || token.end == first_bytes.len() {
        return Kind::Unknown;
    }
    let kw = word::lookup(scan.text(token)).map_or(Kw::Name, |w| w.kw);
    match kw {
        Kw::With
        | Kw::Begin
        | Kw::Start
        | Kw::Rollback
        | Kw::Explain
        | Kw::Analyze
        | Kw::Describe => Kind::Unknown,
        Kw::Load | Kw::Set | Kw::Drop | Kw::Show => Kind::Unknown,
        _ => {
            let mut head = Head::default();
            head.token(token.tok, kw, &[], 0, &mut Traits::default());
            head.kind
        }
    }
}

/// A token as the next ones see it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    tok: Tok,
    kw: Kw,
    word: Option<&'static Word>,
    start: usize,
    end: usize,
}

const NOTHING: Seen = Seen {
    tok: Tok::End,
    kw: Kw::Name,
    word: None,
    start: 0,
    end: 0,
};

struct Machine<'a, 'd> {
    scan: Scanner<'a>,
    d: &'d Dialect,
    /// The kind of the statements that have ended; `None` before the first.
    kind: Option<Kind>,
    traits: Traits,
    // From here on: of the current statement.
    head: Head,
    /// The token before the current one, and the one before that.
    prev: Seen,
    before: Seen,
    /// Open parentheses.
    depth: u32,
    /// Where the list of a WITH is being read: its depth.
    with_depth: Option<u32>,
    /// INSERT or REPLACE: a function, if `(` follows.
    may_be_write: bool,
    /// Behind `@@`, in the name.
    in_system_variable: bool,
    /// Behind INTO, in a list of variables.
    in_into: bool,
    /// Behind `information_schema.`
    in_information_schema: bool,
}

impl<'a, 'd> Machine<'a, 'd> {
    fn new(sql: &'a [u8], d: &'d Dialect) -> Self {
        Self {
            scan: Scanner::new(sql, d),
            d,
            kind: None,
            traits: Traits::NONE,
            head: Head::default(),
            prev: NOTHING,
            before: NOTHING,
            depth: 0,
            with_depth: None,
            may_be_write: false,
            in_system_variable: false,
            in_into: false,
            in_information_schema: false,
        }
    }

    fn run(&mut self) {
        loop {
            let t = self.scan.next();
            if self.may_be_write {
                self.may_be_write = false;
                if t.tok != Tok::Open {
                    self.write_verb();
                }
            }
            let mut seen = Seen {
                tok: t.tok,
                kw: Kw::Name,
                word: None,
                start: t.start,
                end: t.end,
            };
            match t.tok {
                Tok::Word => self.word(t, &mut seen),
                Tok::Open => self.open(t),
                Tok::Close => self.depth = self.depth.saturating_sub(1),
                Tok::Semicolon if self.ends_statement() => {
                    self.end_statement();
                    continue;
                }
                Tok::End => {
                    self.end_statement();
                    return;
                }
                Tok::UserVar => self.user_variable(t),
                Tok::SysVar => self.in_system_variable = true,
                Tok::Dot => self.dot(),
                Tok::Name => self.name(t),
                Tok::Assign if self.prev.tok == Tok::UserVar => {
                    self.add(Traits::USER_VAR_WRITE | Traits::EFFECTS)
                }
                _ => {}
            }
            if !self.head.is_done() {
                self.feed_head(t, seen.kw);
                if seen.kw == Kw::For && self.head.is_at_start() {
                    seen = NOTHING; // SET STATEMENT … FOR UPDATE … is no lock
                }
                if self.head.kind == Kind::ExplainRoute {
                    self.end_statement();
                    return;
                }
            }
            self.before = self.prev;
            self.prev = seen;
        }
    }

    fn statement(&self) -> Statement<'a> {
        let mut traits = self.traits | self.scan.found;
        if traits.contains(Traits::DOUBTFUL) {
            traits |= Traits::EFFECTS;
        }
        if self.scan.hints.primary {
            traits |= Traits::PRIMARY_HINT;
        }
        Statement {
            kind: self.kind.unwrap_or(Kind::Empty),
            traits,
            hint: self.scan.hints.hint(),
        }
    }

    #[cold]
    fn feed_head(&mut self, t: Token, kw: Kw) {
        let depth = if t.tok == Tok::Open {
            self.depth.saturating_sub(1)
        } else {
            self.depth
        };
        self.head
            .token(t.tok, kw, self.scan.text(t), depth, &mut self.traits);
    }

    fn add(&mut self, traits: Traits) {
        if !self.head.is_stored {
            self.traits |= traits;
        }
    }

    fn word(&mut self, t: Token, seen: &mut Seen) {
        let text = self.scan.text(t);
        if self.in_information_schema {
            self.information_schema_table(text);
        }
        if self.in_system_variable {
            self.in_system_variable = matches!(self.prev.tok, Tok::SysVar | Tok::Dot);
            if self.in_system_variable {
                return self.system_variable(text);
            }
        }
        if self.prev.tok == Tok::Dot {
            // Never a keyword. In MariaDB's Oracle mode this may be a sequence.
            let is_sequence = self.d.server == Server::MariaDb
                && text.len() == 7
                && word::lookup(text).is_some_and(|w| w.kw == Kw::SequenceColumn);
            return if is_sequence {
                self.add(Traits::SEQUENCE)
            };
        }
        seen.word = word::lookup(text);
        seen.kw = seen.word.map_or(Kw::Name, |w| w.kw);
        if self.with_depth == Some(self.depth) && !self.continues_with(seen.kw) {
            self.with_depth = None;
        }
        if seen.kw != Kw::Name {
            self.keyword(seen.kw);
        }
    }

    fn keyword(&mut self, kw: Kw) {
        if let Some(block) = &mut self.head.block {
            block.word(kw, self.prev.kw);
        }
        let (before, prev) = (self.before.kw, self.prev.kw);
        self.in_into = false;
        match kw {
            Kw::Update if prev == Kw::For => self.add(Traits::LOCKING),
            Kw::Share if prev == Kw::For || prev == Kw::In && before == Kw::Lock => {
                self.add(Traits::LOCKING)
            }
            Kw::Update | Kw::Delete => self.write_verb(),
            Kw::Insert | Kw::Replace => self.may_be_write = true,
            Kw::Into if self.head.is_query() => {
                self.add(Traits::INTO);
                self.in_into = true;
            }
            Kw::For if prev == Kw::Value && before == Kw::Next => self.add(Traits::SEQUENCE),
            Kw::With => self.with_depth = Some(self.depth),
            Kw::CalcFoundRows => self.add(Traits::CALC_FOUND_ROWS),
            Kw::Rename if self.head.kind == Kind::Ddl => self.add(Traits::EFFECTS),
            _ => {}
        }
    }

    /// True if the list of a WITH goes on with this word: another name, or AS.
    fn continues_with(&self, kw: Kw) -> bool {
        matches!(kw, Kw::As | Kw::Recursive)
            || matches!(self.prev.kw, Kw::With | Kw::Recursive)
            || self.prev.tok == Tok::Comma
    }

    /// INSERT, UPDATE, DELETE, REPLACE as a statement's verb, not as a function or a lock.
    fn write_verb(&mut self) {
        if !self.head.is_done() {
            return;
        }
        match self.head.kind {
            Kind::Read => self.head.kind = Kind::Write,
            Kind::Explain => self.head.explained_write(&mut self.traits),
            _ => {}
        }
    }

    /// `(`: what stands before it may be called.
    fn open(&mut self, t: Token) {
        let (before, prev) = (self.before, self.prev);
        match prev.tok {
            Tok::Word if before.tok != Tok::Dot => {
                let group = prev.word.and_then(|w| function::group(w.group));
                match group.filter(|g| g.is_built_in(self.d, t.start != prev.end)) {
                    Some(group) => self.built_in(group.class),
                    None => self.unknown_call(),
                }
            }
            Tok::Word | Tok::Name => self.unknown_call(),
            _ => {}
        }
        self.depth += 1;
    }

    fn built_in(&mut self, class: Class) {
        match class {
            Class::Pure | Class::Volatile => {}
            Class::LastInsertId => self.add(Traits::LAST_INSERT_ID),
            Class::Lock => self.add(Traits::LOCK_FUNCTION),
            Class::Sequence => self.add(Traits::SEQUENCE),
            Class::ConnectionId => self.add(Traits::CONNECTION_ID),
            Class::Diagnostics => self.add(Traits::DIAGNOSTICS),
            Class::ServerState => self.add(Traits::SERVER_STATE),
        }
    }

    /// A name before `(` that is not built in: a call, unless the place says that it cannot be one.
    fn unknown_call(&mut self) {
        if !matches!(
            self.head.kind,
            Kind::Read | Kind::Explain | Kind::Show | Kind::Set
        ) {
            return;
        }
        let before = self.before;
        let is_named_query = self.with_depth == Some(self.depth);
        // Behind an operand a name is an alias with columns, as in `) x (a, b)`; behind AS an alias or
        // a type; behind PROCEDURE an analysis. JSON_TABLE is a table where tables stand.
        let is_no_call = is_named_query
            || matches!(before.tok, Tok::Close | Tok::Text | Tok::Number)
            || matches!(before.kw, Kw::As | Kw::Routine)
            || self.prev.kw == Kw::JsonTable && (before.kw == Kw::From || before.tok == Tok::Comma);
        if !is_no_call {
            self.add(Traits::UNKNOWN_FUNCTION);
        }
    }

    fn user_variable(&mut self, t: Token) {
        let (prev, kind) = (self.prev, self.head.kind);
        let is_host =
            matches!(prev.tok, Tok::Text | Tok::Name) || kind == Kind::Ddl && prev.end == t.start;
        let is_target =
            kind == Kind::Set && self.depth == 0 && (prev.kw == Kw::Set || prev.tok == Tok::Comma)
                || self.in_into;
        if is_host {
        } else if is_target {
            self.add(Traits::USER_VAR_WRITE | Traits::EFFECTS);
        } else if self.head.may_assign {
            self.add(Traits::USER_VAR_READ | Traits::USER_VAR_WRITE | Traits::EFFECTS);
        } else {
            self.add(Traits::USER_VAR_READ);
        }
    }

    fn system_variable(&mut self, name: &[u8]) {
        let Some(word) = word::lookup(name) else {
            return;
        };
        let is_last_id =
            function::group(word.group).is_some_and(|g| g.class == Class::LastInsertId);
        match word.kw {
            Kw::LastIdVariable => self.add(Traits::LAST_INSERT_ID),
            Kw::DiagnosticsVariable => self.add(Traits::DIAGNOSTICS),
            Kw::ConnectionVariable => self.add(Traits::CONNECTION_ID),
            Kw::ServerVariable => self.add(Traits::SERVER_STATE),
            _ if is_last_id => self.add(Traits::LAST_INSERT_ID),
            _ => {}
        }
    }

    fn name(&mut self, t: Token) {
        if !self.in_information_schema && !self.in_system_variable {
            return;
        }
        let text = self.scan.text(t);
        let inside = text
            .get(1..text.len().saturating_sub(1))
            .unwrap_or_default();
        if self.in_information_schema {
            self.information_schema_table(inside);
        }
        if self.in_system_variable && matches!(self.prev.tok, Tok::SysVar | Tok::Dot) {
            self.system_variable(inside);
        }
    }

    fn dot(&mut self) {
        if !matches!(self.prev.tok, Tok::Word | Tok::Name) || !self.head.is_query() {
            return;
        }
        match schema::kind(self.scan.span(self.prev.start, self.prev.end)) {
            Some(schema::Kind::Information) => self.in_information_schema = true,
            Some(schema::Kind::Performance) => self.add(Traits::SERVER_STATE),
            None => {}
        }
    }

    fn information_schema_table(&mut self, name: &[u8]) {
        self.in_information_schema = false;
        if !schema::is_replicated(name) {
            self.add(Traits::SERVER_STATE);
        }
    }

    /// True if the `;` that was just met is the end of a statement.
    fn ends_statement(&mut self) -> bool {
        let Some(block) = &mut self.head.block else {
            return true;
        };
        let ends = block.ends_here();
        if block.is_opaque() {
            self.traits |= Traits::MULTI | Traits::EFFECTS;
        }
        ends
    }

    fn end_statement(&mut self) {
        self.head.end(&mut self.traits);
        let kind = self.head.kind;
        if kind != Kind::Empty {
            self.kind = Some(match self.kind {
                None => kind,
                Some(earlier) => {
                    self.traits |= Traits::MULTI;
                    if (earlier, kind) == (Kind::Read, Kind::Read) {
                        Kind::Read
                    } else {
                        Kind::Batch
                    }
                }
            });
        }
        self.head = Head::default();
        (self.prev, self.before) = (NOTHING, NOTHING);
        self.depth = 0;
        self.with_depth = None;
        self.may_be_write = false;
        self.in_system_variable = false;
        self.in_into = false;
        self.in_information_schema = false;
    }
}
