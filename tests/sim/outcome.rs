//! What running a statement comes to, and what it touches beside its session.

use std::collections::BTreeSet;

use atlas::wire::Status;

use crate::memory::Memory;

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
