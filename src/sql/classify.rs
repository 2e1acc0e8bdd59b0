//! The bytes of a statement to its kind and traits, in one pass over the tokens.
//!
//! Two machines are fed: `Head` finds the kind from the first words, and the one here watches for
//! words, calls and variables that tie a statement to the primary, wherever they stand.

use super::counts::Counts;
use super::cursor::unquoted;
use super::function::{self, Class};
use super::head::Head;
use super::keyword::Kw;
use super::plain::plain_kind;
use super::scan::{Scanner, Tok, Token};
use super::schema;
use super::word;
use super::{Dialect, Kind, Server, Statement, Traits};

/// Kind, traits and hint of a statement text.
///
/// Nothing is allocated, and every byte is looked at once, or twice where the first look finds that there is more to a text.
#[must_use]
pub fn classify<'a>(sql: &'a [u8], d: &Dialect) -> Statement<'a> {
    match plain_kind(sql, d) {
        Some(found) => plain(found),
        None => in_full(sql, d),
    }
}

fn plain<'a>((kind, traits): (Kind, Traits)) -> Statement<'a> {
    Statement {
        kind,
        traits,
        hint: None,
    }
}

#[inline(never)]
fn in_full<'a>(sql: &'a [u8], d: &Dialect) -> Statement<'a> {
    let mut machine = Machine::new(sql, d);
    machine.run();
    machine.statement()
}

/// Whether the short look at a text, if it says anything, says what the full one says: for the fuzzer.
pub(crate) fn readings_agree(sql: &[u8], d: &Dialect) -> bool {
    plain_kind(sql, d).is_none_or(|found| plain(found) == in_full(sql, d))
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
    /// Its group of functions, if it is a word that is one.
    group: u16,
    start: usize,
    end: usize,
}

const NOTHING: Seen = Seen {
    tok: Tok::End,
    kw: Kw::Name,
    group: 0,
    start: 0,
    end: 0,
};

/// What the names mean that come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ordinary,
    /// Behind `@@`.
    SystemVariable,
    /// Behind `information_schema.`
    InformationSchema,
}

struct Machine<'a, 'd> {
    scan: Scanner<'a>,
    d: &'d Dialect,
    /// The kind of the statements that have ended; `None` before the first.
    kind: Option<Kind>,
    traits: Traits,
    // From here on: of the current statement.
    head: Head,
    /// The token before the current one.
    prev: Seen,
    /// The one before that.
    before: (Tok, Kw),
    /// Open parentheses.
    depth: u32,
    /// Where the list of a WITH is being read: its depth.
    with_depth: Option<u32>,
    /// INSERT or REPLACE: a function, if `(` follows.
    may_be_write: bool,
    /// What names mean here.
    place: Place,
    /// Behind INTO, in a list of variables.
    in_into: bool,
    counts: Counts,
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
            before: (Tok::End, Kw::Name),
            depth: 0,
            with_depth: None,
            may_be_write: false,
            place: Place::Ordinary,
            in_into: false,
            counts: Counts::default(),
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
                group: 0,
                start: t.start,
                end: t.end,
            };
            match t.tok {
                Tok::Word => self.word(t, &mut seen),
                Tok::Open => self.open(t),
                Tok::Close => self.close(),
                Tok::Semicolon if self.ends_statement() => {
                    self.end_statement();
                    continue;
                }
                Tok::End => {
                    self.end_statement();
                    return;
                }
                Tok::UserVar => self.user_variable(t),
                Tok::SysVar => self.place = Place::SystemVariable,
                Tok::Dot => self.dot(),
                Tok::Name => self.name(t),
                Tok::Assign if self.prev.tok == Tok::UserVar => {
                    self.add(Traits::USER_VAR_WRITE | Traits::EFFECTS)
                }
                _ => {}
            }
            if seen.kw == Kw::Name {
                self.counts.token(t.tok);
            }
            if !self.head.is_done() {
                self.feed_head(t, seen.kw);
                if seen.kw == Kw::For && self.head.is_at_start() {
                    seen = NOTHING; // SET STATEMENT … FOR UPDATE … is no lock
                }
                // What it asks about does not run. (Behind another statement it is the server's to refuse.)
                if self.head.kind == Kind::ExplainRoute && self.kind.is_none() {
                    self.end_statement();
                    return;
                }
            }
            self.before = (self.prev.tok, self.prev.kw);
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

    #[inline]
    fn word(&mut self, t: Token, seen: &mut Seen) {
        let text = self.scan.text(t);
        let is_special = self.prev.tok == Tok::Dot || self.place != Place::Ordinary;
        if is_special && self.part_of_name(text) {
            return;
        }
        if let Some(word) = word::lookup(text) {
            seen.kw = word.kw;
            seen.group = word.group;
        }
        if self.with_depth.is_some() {
            self.list_of_with(seen.kw);
        }
        if seen.kw != Kw::Name {
            self.keyword(seen.kw);
        }
    }

    /// A word behind `.`, behind `@@` or behind `information_schema`; false if it is none of these.
    #[cold]
    fn part_of_name(&mut self, name: &[u8]) -> bool {
        let is_part = matches!(self.prev.tok, Tok::Dot | Tok::SysVar);
        match self.place {
            Place::SystemVariable if is_part => self.system_variable(name),
            Place::SystemVariable => self.place = Place::Ordinary,
            Place::InformationSchema => self.information_schema_table(name),
            // Never a keyword. In MariaDB's Oracle mode this may be a sequence.
            Place::Ordinary => {
                if self.d.server == Server::MariaDb
                    && word::lookup(name).is_some_and(|w| w.kw == Kw::SequenceColumn)
                {
                    self.add(Traits::SEQUENCE);
                }
            }
        }
        is_part
    }

    fn keyword(&mut self, kw: Kw) {
        if let Some(block) = &mut self.head.block {
            block.word(kw, self.prev.kw);
        }
        let (before, prev) = (self.before.1, self.prev.kw);
        self.in_into = false;
        self.counts.keyword(kw);
        match kw {
            Kw::Update if prev == Kw::For => self.add(Traits::LOCKING),
            Kw::Share if prev == Kw::For || prev == Kw::In && before == Kw::Lock => {
                self.add(Traits::LOCKING)
            }
            Kw::Update | Kw::Delete => self.write_verb(),
            Kw::Insert | Kw::Replace => self.may_be_write = true,
            Kw::Into => {
                self.in_into = true;
                if self.head.is_query() {
                    self.add(Traits::INTO);
                }
            }
            Kw::For if prev == Kw::Value && before == Kw::Next => self.add(Traits::SEQUENCE),
            Kw::With => self.with_depth = Some(self.depth),
            Kw::CalcFoundRows => self.add(Traits::CALC_FOUND_ROWS),
            Kw::Rename if self.head.kind == Kind::Ddl => self.add(Traits::EFFECTS),
            _ => {}
        }
    }

    /// Sees whether the list of a WITH goes on with this word: another name, or AS.
    #[cold]
    fn list_of_with(&mut self, kw: Kw) {
        let goes_on = matches!(kw, Kw::As | Kw::Recursive)
            || matches!(self.prev.kw, Kw::With | Kw::Recursive)
            || self.prev.tok == Tok::Comma;
        if self.with_depth == Some(self.depth) && !goes_on {
            self.with_depth = None;
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.with_depth.is_some_and(|depth| depth > self.depth) {
            self.with_depth = None;
        }
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
        let (before, prev) = (self.before.0, self.prev);
        match prev.tok {
            Tok::Word if before != Tok::Dot => {
                match function::group(prev.group)
                    .filter(|g| g.is_built_in(self.d, t.start != prev.end))
                {
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
            Class::FoundRows => self.add(Traits::DIAGNOSTICS | Traits::FOUND_ROWS),
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
        if self.head.kind == Kind::Explain && !self.head.is_done() {
            return; // EXPLAIN FORMAT=JSON (SELECT …
        }
        let (before, before_kw) = self.before;
        let is_named_query = self.with_depth == Some(self.depth);
        // Behind an operand a name is an alias with columns, as in `) x (a, b)`; behind AS an alias or
        // a type; behind PROCEDURE an analysis. JSON_TABLE is a table where tables stand.
        let is_no_call = is_named_query
            || matches!(before, Tok::Close | Tok::Text | Tok::Number)
            || matches!(before_kw, Kw::As | Kw::Routine)
            || self.prev.kw == Kw::JsonTable && (before_kw == Kw::From || before == Tok::Comma);
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
        if self.place != Place::Ordinary {
            self.part_of_name(unquoted(self.scan.text(t)));
        }
    }

    fn dot(&mut self) {
        if !matches!(self.prev.tok, Tok::Word | Tok::Name) || !self.head.is_query() {
            return;
        }
        match schema::kind(self.scan.span(self.prev.start, self.prev.end)) {
            Some(schema::Kind::Information) => self.place = Place::InformationSchema,
            Some(schema::Kind::Performance) => self.add(Traits::SERVER_STATE),
            None => {}
        }
    }

    fn information_schema_table(&mut self, name: &[u8]) {
        self.place = Place::Ordinary;
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
        let counts = std::mem::take(&mut self.counts);
        self.add(counts.end(kind, self.d.server, self.traits));
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
        self.prev = NOTHING;
        self.before = (Tok::End, Kw::Name);
        self.depth = 0;
        self.with_depth = None;
        self.may_be_write = false;
        self.place = Place::Ordinary;
        self.in_into = false;
    }
}
