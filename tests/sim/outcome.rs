//! What running a statement comes to, and what it touches beside its session.

use std::collections::BTreeSet;

use atlas::wire::Status;

use crate::changes::Told;
use crate::memory::{Flavour, Memory};
use crate::statement::{Statement, leaves_warnings};

/// What lies outside the connection.
pub trait Outside {
    fn databases(&mut self) -> &mut Databases;
    /// Rows with these tags stay.
    fn committed(&mut self, tags: &[u32]);
    fn next_insert_id(&mut self) -> u64;
}

/// Databases and their base tables. Every database has the tables `t` and its like without being told.
#[derive(Debug, Clone, Default)]
pub struct Databases {
    pub names: BTreeSet<String>,
    pub tables: BTreeSet<(String, String)>,
}

/// What a statement answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Ok {
        affected: u64,
        insert_id: u64,
        schema_dropped: bool,
    },
    /// A result set with so many rows; after so many an error, if one comes.
    Rows {
        rows: usize,
        value: String,
        error_after: Option<usize>,
    },
    /// The client is asked for a file.
    File,
    Error(u16),
}

impl Outcome {
    /// What a statement leaves for questions about it. On MariaDB warnings stay when a statement that uses no tables gives none.
    pub fn leave_behind(&self, memory: &mut Memory, statement: &Statement, tag: u32, many: bool) {
        let shows = matches!(
            statement,
            Statement::ShowWarnings | Statement::ShowNoWarnings
        );
        let affected = match self {
            Self::Ok { affected, .. } => i64::try_from(*affected).unwrap_or(0),
            Self::Rows { .. } | Self::File | Self::Error(_) => -1,
        };
        memory.previous.counts(tag, affected);
        let failed = matches!(self, Self::Error(_));
        let is_maria = memory.defaults.flavour == Flavour::MariaDb;
        let stays = is_maria && !failed && !many && leaves_warnings(statement);
        if !shows && !stays {
            let late = matches!(
                self,
                Self::Rows {
                    error_after: Some(_),
                    ..
                }
            );
            memory.previous.warn(tag, failed || late);
        }
        match self {
            // MySQL counts the rows of a query that came to its end.
            Self::Rows {
                error_after: Some(_),
                ..
            } if !is_maria => {}
            Self::Rows { rows, .. } if !shows => {
                memory.previous.found = tag;
                memory.previous.rows = i64::try_from(*rows).unwrap_or(0);
            }
            _ => {}
        }
    }

    pub fn one_row(value: String) -> Self {
        Self::Rows {
            rows: 1,
            value,
            error_after: None,
        }
    }
}

/// One executed statement.
#[derive(Debug, Clone)]
pub struct Done {
    pub tag: u32,
    pub outcome: Outcome,
    /// It must not run anywhere but on the primary.
    pub needs_primary: bool,
    /// It changes data, the databases or a transaction: never twice.
    pub writes: bool,
    pub mentions_user_variables: bool,
    /// It asks about the statement before it, wherever that ran and whatever has been set since.
    pub asks: bool,
    /// What the server tells of it.
    pub told: Told,
    /// The session behind it.
    pub after: After,
}

/// What can be told of a session to the outside.
#[derive(Debug, Clone, Default)]
pub struct After {
    pub status: Status,
    pub common: String,
    pub users: String,
    pub own: String,
}

impl After {
    pub fn of(memory: &Memory) -> Self {
        Self {
            status: memory.status(),
            common: memory.common(),
            users: memory.users(),
            own: memory.own(),
        }
    }
}
