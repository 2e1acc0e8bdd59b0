//! What is known of a statement: its kind, its traits, its routing hint.
//!
//! Not here: how these are found (`classify`), and what a session does with them.

use super::Traits;

/// The facts about one statement text (which may hold several statements).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// What the statement does.
    pub kind: Kind,
    /// What else it contains.
    pub traits: Traits,
    /// The routing hint in its comments.
    pub hint: Option<Hint<'a>>,
}

/// A routing hint found in a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint<'a> {
    /// `/*master*/` or `/*primary*/`.
    Primary,
    /// `/*slave*/` or `/*replica*/`.
    Replica,
    /// `/*group:NAME*/`.
    Group(&'a [u8]),
}

/// What a statement does, by its first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A query without side effects by its kind: SELECT, TABLE, VALUES, WITH … SELECT.
    Read,
    /// INSERT, UPDATE, DELETE, REPLACE, LOAD, CALL, DO, HANDLER, an anonymous block …
    Write,
    /// CREATE, ALTER, DROP, RENAME, TRUNCATE, GRANT, REVOKE.
    Ddl,
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK of the whole transaction.
    Rollback,
    /// SAVEPOINT, RELEASE SAVEPOINT, ROLLBACK TO.
    Savepoint,
    /// XA.
    Xa,
    /// SET in all its forms but SET STATEMENT.
    Set,
    /// USE.
    Use,
    /// SHOW.
    Show,
    /// EXPLAIN, DESCRIBE, DESC.
    Explain,
    /// PREPARE … FROM.
    Prepare,
    /// EXECUTE, EXECUTE IMMEDIATE.
    Execute,
    /// DEALLOCATE PREPARE, DROP PREPARE.
    Deallocate,
    /// LOCK TABLES, LOCK INSTANCE, BACKUP LOCK.
    Lock,
    /// UNLOCK TABLES, UNLOCK INSTANCE.
    Unlock,
    /// FLUSH, RESET, ANALYZE TABLE, CHANGE …, START REPLICA and the rest of administration.
    Admin,
    /// Nothing but blanks, comments and `;`.
    Empty,
    /// Several statements that are not all reads.
    Batch,
    /// First words that are not known.
    Unknown,
    /// Atlas's own EXPLAIN ROUTE.
    ExplainRoute,
    /// Atlas's own SHOW LAST ROUTE.
    ShowLastRoute,
    /// KILL.
    Kill,
}

impl Kind {
    /// A short stable name, for counters and explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Ddl => "ddl",
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
            Self::Savepoint => "savepoint",
            Self::Xa => "xa",
            Self::Set => "set",
            Self::Use => "use",
            Self::Show => "show",
            Self::Explain => "explain",
            Self::Prepare => "prepare",
            Self::Execute => "execute",
            Self::Deallocate => "deallocate",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Admin => "admin",
            Self::Empty => "empty",
            Self::Batch => "batch",
            Self::Unknown => "unknown",
            Self::ExplainRoute => "explain-route",
            Self::ShowLastRoute => "show-last-route",
            Self::Kill => "kill",
        }
    }
}
