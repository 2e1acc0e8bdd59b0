//! The first words of a statement: what kind it is.
//!
//! A small state machine is fed every token until it has decided. It knows the statements of MySQL
//! 9.7 and MariaDB 10.11; what it does not know is [`Kind::Unknown`].

use super::block::Block;
use super::keyword::Kw;
use super::scan::Tok;
use super::{Kind, Traits};

/// How far the first words have been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the first word; parentheses may stand here.
    #[default]
    Start,
    /// Behind BEGIN: a transaction or a block.
    Begin,
    /// Behind START.
    Start2,
    /// Behind ROLLBACK.
    Rollback,
    /// Behind SET.
    Set,
    /// Inside the assignments of SET STATEMENT, before FOR.
    SetStatement,
    /// Behind SHOW and its modifiers.
    Show,
    /// Behind SHOW CREATE.
    ShowCreate,
    /// Behind SHOW LAST.
    ShowLast,
    /// Behind SHOW LAST ROUTE, where nothing may follow.
    ShowLastRoute,
    /// Behind EXPLAIN or DESCRIBE, or ANALYZE, and their options.
    Explain,
    /// Behind FORMAT in those.
    ExplainFormat,
    /// Behind FORMAT `=`.
    ExplainFormatValue,
    /// Behind EXPLAIN FOR.
    ExplainFor,
    /// Behind EXPLAIN FOR SCHEMA.
    ExplainSchema,
    /// Behind EXPLAIN ROUTE: Atlas's own statement, or a table of that name.
    ExplainRoute,
    /// Behind EXPLAIN ROUTE and a word that starts no statement: a column, if nothing follows.
    ExplainRouteWord,
    /// Behind CREATE or ALTER, before the word that says what.
    Create,
    /// Behind DROP.
    Drop,
    /// Behind LOAD.
    Load,
    /// The kind is known.
    Done,
}

/// What the first words have shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    state: State,
    /// The kind as far as it is known; right when the statement ends here.
    pub(super) kind: Kind,
    /// EXPLAIN ANALYZE and MariaDB's ANALYZE run what they explain.
    runs_explained: bool,
    /// A write stands under the EXPLAIN.
    explains_write: bool,
    /// The statement may hold `;`.
    pub(super) block: Option<Block>,
    /// The text of the statement is stored, not run.
    pub(super) is_stored: bool,
    /// A user variable among its arguments may be assigned: LOAD, CALL, GET DIAGNOSTICS, a block.
    pub(super) may_assign: bool,
    /// EXPLAIN was the first word, and no other follows yet: ROUTE may.
    may_be_route: bool,
    /// The first word was ANALYZE: TABLE may follow.
    may_analyze_table: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            state: State::Start,
            kind: Kind::Empty,
            runs_explained: false,
            explains_write: false,
            block: None,
            is_stored: false,
            may_assign: false,
            may_be_route: false,
            may_analyze_table: false,
        }
    }
}

impl Head {
    /// True if no further token changes anything.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// True if the words that come are parts of a query (or of the options of its EXPLAIN).
    #[inline]
    pub(super) fn is_query(&self) -> bool {
        match self.kind {
            Kind::Read => true,
            Kind::Explain => !self.explains_write,
            _ => false,
        }
    }

    /// True if a statement is expected to start: at the beginning, and behind SET STATEMENT … FOR.
    pub(super) fn is_at_start(&self) -> bool {
        self.state == State::Start
    }

    /// Takes the next token into account. `text` is its text, `depth` the open parentheses before it.
    pub(super) fn token(&mut self, tok: Tok, kw: Kw, text: &[u8], depth: u32, traits: &mut Traits) {
        self.state = match self.state {
            State::Start => match tok {
                Tok::Open => State::Start,
                Tok::Word => self.first_word(kw, traits),
                _ => self.unknown(),
            },
            State::Begin => match kw {
                Kw::Work => State::Begin,
                _ => self.anonymous_block(Block::begun(), traits),
            },
            State::Start2 => {
                self.kind = if kw == Kw::Transaction {
                    Kind::Begin
                } else {
                    Kind::Admin
                };
                State::Done
            }
            State::Rollback => match kw {
                Kw::Work => State::Rollback,
                Kw::To => self.is(Kind::Savepoint),
                _ => State::Done,
            },
            State::Set if kw == Kw::Statement => State::SetStatement,
            State::Set => {
                *traits |= Traits::EFFECTS;
                State::Done
            }
            State::SetStatement if kw == Kw::For && depth == 0 => {
                *traits |= Traits::FOR_ITSELF;
                self.then(Kind::Unknown, State::Start)
            }
            State::SetStatement => State::SetStatement,
            State::Show | State::ShowCreate | State::ShowLast | State::ShowLastRoute => {
                self.show(tok, kw, text, traits)
            }
            State::Explain
            | State::ExplainFormat
            | State::ExplainFormatValue
            | State::ExplainFor
            | State::ExplainSchema
            | State::ExplainRoute
            | State::ExplainRouteWord => self.explain(tok, kw, traits),
            State::Create => self.create(kw, traits),
            State::Drop => match kw {
                Kw::Prepare => self.is(Kind::Deallocate),
                _ => State::Done,
            },
            State::Load => match kw {
                Kw::Object => self.is(Kind::Admin),
                _ => State::Done,
            },
            State::Done => State::Done,
        };
    }

    /// The statement ends: whatever needed another word does not get it.
    pub(super) fn end(&mut self, traits: &mut Traits) {
        match self.state {
            State::ShowLastRoute => self.kind = Kind::ShowLastRoute,
            State::Set | State::SetStatement => *traits |= Traits::EFFECTS,
            _ => {}
        }
        if self.kind == Kind::Unknown {
            *traits |= Traits::EFFECTS;
        }
    }

    fn is(&mut self, kind: Kind) -> State {
        self.kind = kind;
        State::Done
    }

    fn then(&mut self, kind: Kind, state: State) -> State {
        self.kind = kind;
        state
    }

    fn unknown(&mut self) -> State {
        self.block = Some(Block::loose());
        self.is(Kind::Unknown)
    }

    fn anonymous_block(&mut self, block: Block, traits: &mut Traits) -> State {
        *traits |= Traits::CALL | Traits::EFFECTS;
        self.block = Some(block);
        self.may_assign = true;
        self.is(Kind::Write)
    }
}

impl Head {
    fn first_word(&mut self, kw: Kw, traits: &mut Traits) -> State {
        let effects = match kw {
            Kw::Get => Traits::EFFECTS | Traits::DIAGNOSTICS | Traits::AREA,
            Kw::Call => Traits::EFFECTS | Traits::CALL,
            Kw::Handler
            | Kw::Drop
            | Kw::Rename
            | Kw::Use
            | Kw::Prepare
            | Kw::Execute
            | Kw::Deallocate
            | Kw::Lock
            | Kw::Unlock
            | Kw::Backup
            | Kw::Flush
            | Kw::Binlog => Traits::EFFECTS,
            _ => Traits::NONE,
        };
        *traits |= effects;
        match kw {
            Kw::Select | Kw::With | Kw::Values | Kw::Table => self.is(Kind::Read),
            Kw::Insert | Kw::Replace | Kw::Update | Kw::Delete | Kw::OtherWrite | Kw::Handler => {
                self.is(Kind::Write)
            }
            Kw::Call | Kw::Get => {
                self.may_assign = true;
                self.is(Kind::Write)
            }
            Kw::Load => {
                self.may_assign = true;
                *traits |= Traits::LOAD;
                self.then(Kind::Write, State::Load)
            }
            Kw::Create | Kw::Alter => self.then(Kind::Ddl, State::Create),
            Kw::Drop => self.then(Kind::Ddl, State::Drop),
            Kw::Rename | Kw::Truncate | Kw::Privilege => self.is(Kind::Ddl),
            Kw::Begin => self.then(Kind::Begin, State::Begin),
            Kw::Start => self.then(Kind::Unknown, State::Start2),
            Kw::Commit => self.is(Kind::Commit),
            Kw::Rollback => self.then(Kind::Rollback, State::Rollback),
            Kw::Savepoint | Kw::Release => self.is(Kind::Savepoint),
            Kw::Xa => self.is(Kind::Xa),
            Kw::Set => self.then(Kind::Set, State::Set),
            Kw::Use => self.is(Kind::Use),
            Kw::Show => self.then(Kind::Show, State::Show),
            Kw::Explain => {
                self.may_be_route = true;
                self.then(Kind::Explain, State::Explain)
            }
            Kw::Describe => self.then(Kind::Explain, State::Explain),
            Kw::Analyze => {
                self.runs_explained = true;
                self.may_analyze_table = true;
                self.then(Kind::Unknown, State::Explain)
            }
            Kw::Prepare => self.is(Kind::Prepare),
            Kw::Execute => self.is(Kind::Execute),
            Kw::Deallocate => self.is(Kind::Deallocate),
            Kw::Lock | Kw::Backup => self.is(Kind::Lock),
            Kw::Unlock => self.is(Kind::Unlock),
            Kw::Kill => self.is(Kind::Kill),
            Kw::Flush | Kw::Admin | Kw::Binlog => self.is(Kind::Admin),
            Kw::If | Kw::Case | Kw::Loop | Kw::While | Kw::Repeat | Kw::For | Kw::Declare => {
                self.anonymous_block(Block::loose(), traits)
            }
            _ => self.unknown(),
        }
    }

    fn create(&mut self, kw: Kw, traits: &mut Traits) -> State {
        match kw {
            Kw::Temporary => {
                *traits |= Traits::EFFECTS;
                State::Create
            }
            Kw::Routine | Kw::Package => {
                self.block = Some(if kw == Kw::Package {
                    Block::loose()
                } else {
                    Block::body()
                });
                self.is_stored = true;
                State::Done
            }
            // What a view asks, whoever reads it asks.
            Kw::Object => {
                self.is_stored = true;
                State::Done
            }
            Kw::Table => State::Done,
            _ => State::Create,
        }
    }

    fn show(&mut self, tok: Tok, kw: Kw, text: &[u8], traits: &mut Traits) -> State {
        let is_one_of = |words: &[&str]| {
            tok == Tok::Word
                && words
                    .iter()
                    .any(|w| text.eq_ignore_ascii_case(w.as_bytes()))
        };
        if self.state == State::Show && (kw == Kw::Create || is_one_of(UNCOUNTED)) {
            *traits |= Traits::UNCOUNTED;
        }
        match self.state {
            State::Show if is_one_of(&["full", "extended"]) => return State::Show,
            State::Show if kw == Kw::Create => return State::ShowCreate,
            State::Show if is_one_of(&["last"]) => return State::ShowLast,
            State::ShowLast if kw == Kw::Route => return State::ShowLastRoute,
            State::Show if is_one_of(OF_THE_LAST_STATEMENT) => *traits |= Traits::DIAGNOSTICS,
            State::Show if is_one_of(OF_THE_SCHEMA) => *traits |= Traits::READ_ONLY_SAFE_SHOW,
            State::ShowCreate if is_one_of(CREATED) => *traits |= Traits::READ_ONLY_SAFE_SHOW,
            _ => {}
        }
        State::Done
    }

    fn explain(&mut self, tok: Tok, kw: Kw, traits: &mut Traits) -> State {
        match self.state {
            State::ExplainFormat if tok == Tok::Equal => return State::ExplainFormatValue,
            State::ExplainFormatValue => return State::Explain,
            State::ExplainFor if kw == Kw::Connection => {
                *traits |= Traits::SERVER_STATE;
                return State::Done;
            }
            State::ExplainFor => return State::ExplainSchema,
            State::ExplainSchema => return State::Explain,
            State::ExplainRoute if tok == Tok::Open || kw.starts_statement() => {
                return self.is(Kind::ExplainRoute);
            }
            State::ExplainRoute => return State::ExplainRouteWord,
            State::ExplainRouteWord => return self.is(Kind::ExplainRoute),
            _ => {}
        }
        if self.may_be_route && kw == Kw::Route {
            return State::ExplainRoute;
        }
        self.may_be_route = false;
        let may_analyze_table = std::mem::take(&mut self.may_analyze_table);
        match kw {
            Kw::Table | Kw::Tables if may_analyze_table => self.is(Kind::Admin),
            Kw::Analyze => {
                self.runs_explained = true;
                State::Explain
            }
            Kw::Format => State::ExplainFormat,
            Kw::ExplainOption => State::Explain,
            Kw::For => State::ExplainFor,
            Kw::Into => State::Explain,
            Kw::Select | Kw::With | Kw::Values | Kw::Table => self.is(Kind::Explain),
            Kw::Insert | Kw::Replace | Kw::Update | Kw::Delete => {
                self.explained_write(traits);
                State::Done
            }
            _ => match tok {
                Tok::Open => self.is(Kind::Explain),
                Tok::UserVar => State::Explain,
                // The name of a table (its kind is known), or not EXPLAIN at all.
                _ => State::Done,
            },
        }
    }

    /// A write stands under the EXPLAIN.
    pub(super) fn explained_write(&mut self, traits: &mut Traits) {
        if self.runs_explained {
            self.kind = Kind::Write;
        } else {
            self.kind = Kind::Explain;
            self.explains_write = true;
            *traits |= Traits::EXPLAINS_WRITE;
        }
    }
}

/// SHOW of what the previous statement left on its connection.
const OF_THE_LAST_STATEMENT: &[&str] = &["warnings", "errors", "count", "profile", "profiles"];

/// SHOW whose rows no table of information_schema has, so that no query gives them.
const UNCOUNTED: &[&str] = &[
    "warnings",
    "errors",
    "profiles",
    "privileges",
    "processlist",
    "grants",
    "engine",
    "binary",
    "master",
    "replica",
    "replicas",
    "slave",
    "all",
    "binlog",
    "relaylog",
    "authors",
    "contributors",
    "explain",
    "analyze",
];

/// SHOW of what is the same on a replica: definitions, not states. (Events are switched off on
/// replicas; grants, variables, logs and processes are a server's or a session's own.)
const OF_THE_SCHEMA: &[&str] = &[
    "tables",
    "table",
    "columns",
    "fields",
    "index",
    "indexes",
    "keys",
    "databases",
    "schemas",
    "triggers",
    "character",
    "charset",
    "collation",
    "procedure",
    "function",
    "package",
];

/// SHOW CREATE of the same.
const CREATED: &[&str] = &[
    "table",
    "view",
    "database",
    "schema",
    "procedure",
    "function",
    "trigger",
    "sequence",
    "package",
    "library",
];
