//! The model servers' grammar: what the tokens of one statement ask for.

use crate::lex::Token;

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Select(Select),
    /// INSERT, UPDATE, DELETE, REPLACE of base tables.
    Write,
    /// A write whose trigger sets a variable.
    Audited,
    /// LOAD DATA LOCAL.
    Load,
    Begin {
        read_only: bool,
    },
    Commit,
    Rollback,
    Savepoint,
    /// The parts of a SET list, in order.
    Set(Vec<Assignment>),
    /// `SET TRANSACTION`: read only or not.
    SetOneShot(bool),
    SetSessionTransaction(bool),
    Use(String),
    CreateTemporary(Name),
    CreateTable(Name),
    DropTable {
        temporary: bool,
        if_exists: bool,
        name: Name,
    },
    RenameTable(Name, Name),
    CreateDatabase(String),
    DropDatabase(String),
    LockTables,
    UnlockTables,
    ShowWarnings,
    /// The same with LIMIT 0.
    ShowNoWarnings,
    Prepare(String, Vec<u8>),
    Execute(String),
    Deallocate(String),
    /// A procedure that makes a temporary table and sets a user variable.
    Call,
    Do,
    Bogus,
}

/// A name that may have a schema in front.
pub type Name = (Option<String>, String);

/// A SELECT as far as the model looks at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Select {
    pub from: Option<Name>,
    pub locks_rows: bool,
    pub columns: Vec<Value>,
    /// Atlas has put the answer to a question about the statement before into the text.
    pub is_answered: bool,
    /// `INTO @x`.
    pub into: Option<String>,
    pub mentions_user_variables: bool,
}

impl Select {
    /// A stored function may use tables.
    fn calls_stored(&self) -> bool {
        let is_stored = |value: &Value| matches!(value, Value::Call(name, _) if name == "stored");
        self.columns.iter().any(is_stored)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
    User(String, Value),
    Variable(String, Value),
    /// `SET GLOBAL`: of no concern here.
    Global,
    Names(Option<String>, Option<String>),
    CharacterSet(Option<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Vec<u8>),
    Word(String),
    User(String),
    System(String),
    Assign(String, Box<Self>),
    Concat(Vec<Self>),
    /// A parameter marker.
    Marker,
    Call(String, Vec<Self>),
}

/// Reads one statement.
pub fn parse(tokens: &[Token]) -> Statement {
    Parser { tokens, at: 0 }
        .statement()
        .unwrap_or(Statement::Bogus)
}

/// A question about the statement before it.
pub fn asks_of_previous(statement: &Statement) -> bool {
    match statement {
        Statement::ShowWarnings | Statement::ShowNoWarnings => true,
        Statement::Select(select) if select.is_answered => true,
        Statement::Select(select) => select.columns.iter().any(
            |value| matches!(value, Value::Call(name, _) if name == "found_rows" || name == "row_count"),
        ),
        _ => false,
    }
}

/// It uses no tables, so that on MariaDB the warnings before it stay.
pub fn leaves_warnings(statement: &Statement) -> bool {
    asks_of_previous(statement)
        || matches!(statement, Statement::Select(select) if select.from.is_none() && !select.calls_stored())
        || matches!(
            statement,
            Statement::Set(_)
                | Statement::SetOneShot(_)
                | Statement::SetSessionTransaction(_)
                | Statement::Use(_)
                | Statement::Begin { .. }
                | Statement::Commit
                | Statement::Rollback
                | Statement::Savepoint
                | Statement::Prepare(..)
                | Statement::Deallocate(_)
        )
}

/// Whether a statement must run on the primary, and whether it changes data.
pub fn nature(statement: &Statement) -> (bool, bool) {
    match statement {
        Statement::Select(select) => {
            let calls = select.columns.iter().any(|value| match value {
                Value::Call(name, _) => {
                    matches!(
                        name.as_str(),
                        "get_lock" | "release_lock" | "last_insert_id" | "stored"
                    )
                }
                Value::Assign(..) => true,
                _ => false,
            });
            (calls || select.locks_rows || select.into.is_some(), false)
        }
        Statement::ShowWarnings | Statement::ShowNoWarnings | Statement::Bogus => (false, false),
        Statement::Write
        | Statement::Audited
        | Statement::Load
        | Statement::CreateTable(_)
        | Statement::CreateDatabase(_)
        | Statement::DropDatabase(_)
        | Statement::DropTable { .. } => (true, true),
        Statement::Begin { .. }
        | Statement::Commit
        | Statement::Rollback
        | Statement::Savepoint
        | Statement::Set(_)
        | Statement::SetOneShot(_)
        | Statement::SetSessionTransaction(_)
        | Statement::Use(_)
        | Statement::CreateTemporary(_)
        | Statement::RenameTable(..)
        | Statement::LockTables
        | Statement::UnlockTables
        | Statement::Prepare(..)
        | Statement::Execute(_)
        | Statement::Deallocate(_)
        | Statement::Call
        | Statement::Do => (true, false),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn is(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn symbol(&mut self, symbol: u8) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> Option<String> {
        match self.tokens.get(self.at)? {
            Token::Word(word) => {
                self.at += 1;
                Some(word.clone())
            }
            _ => None,
        }
    }

    fn name(&mut self) -> Option<Name> {
        let word = self.word()?;
        Some(match word.split_once('.') {
            Some((schema, table)) => (Some(schema.to_owned()), table.to_owned()),
            None => (None, word),
        })
    }

    fn statement(&mut self) -> Option<Statement> {
        let first = self.word()?;
        Some(match first.as_str() {
            "select" => return self.select(),
            "insert" if self.is("into") && self.is("audited") => Statement::Audited,
            "insert" | "update" | "delete" | "replace" => Statement::Write,
            "load" => Statement::Load,
            "begin" => Statement::Begin { read_only: false },
            "start" => Statement::Begin {
                read_only: self.is("transaction") && self.is("read") && self.is("only"),
            },
            "commit" => Statement::Commit,
            "rollback" if self.is("to") => Statement::Savepoint,
            "rollback" => Statement::Rollback,
            "savepoint" | "release" => Statement::Savepoint,
            "set" => return self.set(),
            "use" => Statement::Use(self.word()?),
            "create" if self.is("temporary") && self.is("table") => {
                Statement::CreateTemporary(self.name()?)
            }
            "create" if self.is("database") => Statement::CreateDatabase(self.word()?),
            "create" if self.is("table") => Statement::CreateTable(self.name()?),
            "drop" if self.is("database") => Statement::DropDatabase(self.word()?),
            "drop" if self.is("prepare") => Statement::Deallocate(self.word()?),
            "drop" => {
                let temporary = self.is("temporary");
                if !self.is("table") {
                    return None;
                }
                let if_exists = self.is("if") && self.is("exists");
                Statement::DropTable {
                    temporary,
                    if_exists,
                    name: self.name()?,
                }
            }
            "alter" if self.is("table") => {
                let from = self.name()?;
                if !self.is("rename") || !self.is("to") {
                    return None;
                }
                Statement::RenameTable(from, self.name()?)
            }
            "lock" => Statement::LockTables,
            "unlock" => Statement::UnlockTables,
            "show" if self.is("warnings") => match self.is("limit") {
                true => Statement::ShowNoWarnings,
                false => Statement::ShowWarnings,
            },
            "prepare" => {
                let name = self.word()?;
                let is_from = self.is("from");
                match self.tokens.get(self.at) {
                    Some(Token::Text(text)) if is_from => Statement::Prepare(name, text.clone()),
                    _ => return None,
                }
            }
            "execute" => Statement::Execute(self.word()?),
            "deallocate" if self.is("prepare") => Statement::Deallocate(self.word()?),
            "call" => Statement::Call,
            "do" => Statement::Do,
            _ => return None,
        })
    }

    fn select(&mut self) -> Option<Statement> {
        let mut select = Select {
            mentions_user_variables: self.tokens.iter().any(|t| matches!(t, Token::User(_))),
            ..Select::default()
        };
        loop {
            select.columns.push(self.value()?);
            if self.is("as") {
                self.name()?;
                select.is_answered = true;
            }
            if !self.symbol(b',') {
                break;
            }
        }
        if self.is("from") {
            select.from = Some(self.name()?);
        }
        if self.is("into") {
            match self.tokens.get(self.at) {
                Some(Token::User(name)) => select.into = Some(name.clone()),
                _ => return None,
            }
            self.at += 1;
        }
        if self.is("for") {
            select.locks_rows = self.is("update") || self.is("share");
        }
        (self.at == self.tokens.len()).then_some(Statement::Select(select))
    }

    fn value(&mut self) -> Option<Value> {
        let token = self.tokens.get(self.at)?.clone();
        self.at += 1;
        Some(match token {
            Token::Text(text) => Value::Text(text),
            Token::Number(number) => Value::Word(number),
            Token::Symbol(b'-') => match self.tokens.get(self.at)?.clone() {
                Token::Number(number) => {
                    self.at += 1;
                    Value::Word(format!("-{number}"))
                }
                _ => return None,
            },
            Token::System(name) => Value::System(name),
            Token::User(name) => {
                if self.symbol(b':') && self.symbol(b'=') {
                    Value::Assign(name, Box::new(self.value()?))
                } else {
                    Value::User(name)
                }
            }
            Token::Symbol(b'?') => Value::Marker,
            Token::Symbol(b'(') => {
                // A sub-select without tables is its value.
                let _ = self.is("select");
                let inner = self.value()?;
                if !self.symbol(b')') {
                    return None;
                }
                inner
            }
            Token::Word(word) if self.symbol(b'(') => {
                let mut arguments = Vec::new();
                while !self.symbol(b')') {
                    arguments.push(self.value()?);
                    self.symbol(b',');
                }
                match word.as_str() {
                    "concat" => Value::Concat(arguments),
                    _ => Value::Call(word, arguments),
                }
            }
            Token::Word(word) => Value::Word(word),
            Token::Symbol(_) => return None,
        })
    }

    fn set(&mut self) -> Option<Statement> {
        if self.is("transaction") {
            return Some(Statement::SetOneShot(self.is("read") && self.is("only")));
        }
        let start = self.at;
        if self.is("session") && self.is("transaction") {
            return Some(Statement::SetSessionTransaction(
                self.is("read") && self.is("only"),
            ));
        }
        self.at = start;
        let mut list = Vec::new();
        loop {
            list.push(self.assignment()?);
            if !self.symbol(b',') {
                break;
            }
        }
        (self.at == self.tokens.len()).then_some(Statement::Set(list))
    }

    fn assignment(&mut self) -> Option<Assignment> {
        if self.is("names") {
            let charset = self.charset()?;
            let collation = if self.is("collate") {
                self.charset()?
            } else {
                None
            };
            return Some(Assignment::Names(charset, collation));
        }
        if self.is("character") {
            self.is("set");
            return Some(Assignment::CharacterSet(self.charset()?));
        }
        let is_global = self.is("global");
        let _ = self.is("session") || self.is("local");
        let target = self.tokens.get(self.at)?.clone();
        self.at += 1;
        let _ = self.symbol(b':');
        if !self.symbol(b'=') {
            return None;
        }
        let value = self.value()?;
        Some(match target {
            Token::User(name) => Assignment::User(name, value),
            Token::Word(_) if is_global => Assignment::Global,
            Token::Word(name) | Token::System(name) => Assignment::Variable(name, value),
            _ => return None,
        })
    }

    /// A character set or collation; `None` inside is DEFAULT.
    fn charset(&mut self) -> Option<Option<String>> {
        match self.tokens.get(self.at)?.clone() {
            Token::Word(word) => {
                self.at += 1;
                Some((word != "default").then_some(word))
            }
            Token::Text(text) => {
                self.at += 1;
                Some(Some(String::from_utf8_lossy(&text).into_owned()))
            }
            _ => None,
        }
    }
}
