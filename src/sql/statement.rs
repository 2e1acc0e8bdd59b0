//! What is known of a statement: its kind, its traits, its routing hint, and why it must run on
//! the primary.
//!
//! Not here: how these are found (`classify`), and what a session does with them.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

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

/// A set of things that a statement contains.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Traits(u32);

impl Traits {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
    pub const LOCKING: Self = Self(1);
    /// INTO in a query: OUTFILE, DUMPFILE or variables.
    pub const INTO: Self = Self(1 << 1);
    /// LAST_INSERT_ID(), `@@identity` and the like: answered by the connection that inserted.
    pub const LAST_INSERT_ID: Self = Self(1 << 2);
    /// GET_LOCK and its kin: the lock belongs to one connection.
    pub const LOCK_FUNCTION: Self = Self(1 << 3);
    /// NEXTVAL, LASTVAL, SETVAL, NEXT VALUE FOR: a sequence moves.
    pub const SEQUENCE: Self = Self(1 << 4);
    /// A call of something that is no built-in function of the server: it may write.
    pub const UNKNOWN_FUNCTION: Self = Self(1 << 5);
    /// CONNECTION_ID() and what else names the server's connection.
    pub const CONNECTION_ID: Self = Self(1 << 6);
    /// ROW_COUNT(), FOUND_ROWS(), SHOW WARNINGS, `@@warning_count`, GET DIAGNOSTICS: the answer
    /// lives on the connection that ran the previous statement.
    pub const DIAGNOSTICS: Self = Self(1 << 7);
    /// SQL_CALC_FOUND_ROWS: a FOUND_ROWS() will ask this connection.
    pub const CALC_FOUND_ROWS: Self = Self(1 << 8);
    /// Mentions `@x`.
    pub const USER_VAR_READ: Self = Self(1 << 9);
    /// Assigns to `@x` (`:=`, INTO @x, SET @x).
    pub const USER_VAR_WRITE: Self = Self(1 << 10);
    /// More than one statement.
    pub const MULTI: Self = Self(1 << 11);
    /// A version comment whose text runs.
    pub const EXECUTABLE: Self = Self(1 << 12);
    /// A string, a quoted name or a comment does not end.
    pub const UNTERMINATED: Self = Self(1 << 13);
    /// Session state may change: ask `effects`.
    pub const EFFECTS: Self = Self(1 << 14);
    /// CALL or an anonymous block: does what it likes.
    pub const CALL: Self = Self(1 << 15);
    /// A SHOW that only reads schema, as DESCRIBE does.
    pub const READ_ONLY_SAFE_SHOW: Self = Self(1 << 16);
    /// The statement under an EXPLAIN would write (EXPLAIN itself does not).
    pub const EXPLAINS_WRITE: Self = Self(1 << 17);
    /// The answer tells about one server (`@@read_only`, positions of its log) or waits for it.
    pub const SERVER_STATE: Self = Self(1 << 18);
    /// The text can be read in two ways, or servers refuse it; what is known holds for one reading.
    pub const DOUBTFUL: Self = Self(1 << 19);
    /// A comment asks for the primary (also where the hint that is reported is a group).
    pub const PRIMARY_HINT: Self = Self(1 << 20);

    /// True if every member of `other` is in `self`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if a member of `other` is in `self`.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if nothing is in `self`.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `self` without the members of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    const NAMES: [(Self, &'static str); 21] = [
        (Self::LOCKING, "locking"),
        (Self::INTO, "into"),
        (Self::LAST_INSERT_ID, "last-insert-id"),
        (Self::LOCK_FUNCTION, "lock-function"),
        (Self::SEQUENCE, "sequence"),
        (Self::UNKNOWN_FUNCTION, "unknown-function"),
        (Self::CONNECTION_ID, "connection-id"),
        (Self::DIAGNOSTICS, "diagnostics"),
        (Self::CALC_FOUND_ROWS, "calc-found-rows"),
        (Self::USER_VAR_READ, "user-var-read"),
        (Self::USER_VAR_WRITE, "user-var-write"),
        (Self::MULTI, "multi"),
        (Self::EXECUTABLE, "executable"),
        (Self::UNTERMINATED, "unterminated"),
        (Self::EFFECTS, "effects"),
        (Self::CALL, "call"),
        (Self::READ_ONLY_SAFE_SHOW, "read-only-safe-show"),
        (Self::EXPLAINS_WRITE, "explains-write"),
        (Self::SERVER_STATE, "server-state"),
        (Self::DOUBTFUL, "doubtful"),
        (Self::PRIMARY_HINT, "primary-hint"),
    ];
}

impl BitOr for Traits {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Traits {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl fmt::Debug for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(
                Self::NAMES
                    .iter()
                    .filter(|(t, _)| self.contains(*t))
                    .map(|(_, name)| name),
            )
            .finish()
    }
}

/// Why a statement must run on the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A string, a quoted name or a comment does not end.
    Unterminated,
    /// The text can be read in two ways.
    Doubtful,
    /// More than one statement.
    MultiStatement,
    /// It changes data.
    Write,
    /// It changes schema or privileges.
    Ddl,
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA.
    TransactionControl,
    /// SET, USE.
    Set,
    /// PREPARE, EXECUTE, DEALLOCATE by text.
    PreparedText,
    /// LOCK, UNLOCK.
    Lock,
    /// Administration, KILL.
    Admin,
    /// A SHOW about the session, one server or replication.
    Show,
    /// Nothing to run.
    Empty,
    /// First words that are not known.
    UnknownStatement,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
    LockingRead,
    /// INTO in a query.
    Into,
    /// LAST_INSERT_ID() and the like.
    LastInsertId,
    /// GET_LOCK and its kin.
    LockFunction,
    /// A sequence moves.
    Sequence,
    /// A call of something that is no built-in function.
    UnknownFunction,
    /// `@x := …`.
    UserVariableAssignment,
    /// The connection's id.
    ConnectionId,
    /// ROW_COUNT(), FOUND_ROWS(), warnings.
    Diagnostics,
    /// About one server.
    ServerState,
    /// `/*master*/`.
    HintPrimary,
}

impl Reason {
    /// A short stable name, for counters and explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unterminated => "unterminated",
            Self::Doubtful => "doubtful",
            Self::MultiStatement => "multi-statement",
            Self::Write => "write",
            Self::Ddl => "ddl",
            Self::TransactionControl => "transaction-control",
            Self::Set => "set",
            Self::PreparedText => "prepared-text",
            Self::Lock => "lock",
            Self::Admin => "admin",
            Self::Show => "show",
            Self::Empty => "empty",
            Self::UnknownStatement => "unknown-statement",
            Self::LockingRead => "locking-read",
            Self::Into => "into",
            Self::LastInsertId => "last-insert-id",
            Self::LockFunction => "lock-function",
            Self::Sequence => "sequence",
            Self::UnknownFunction => "unknown-function",
            Self::UserVariableAssignment => "user-variable-assignment",
            Self::ConnectionId => "connection-id",
            Self::Diagnostics => "diagnostics",
            Self::ServerState => "server-state",
            Self::HintPrimary => "hint-primary",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Statement<'_> {
    /// Why this statement must run on the primary; `None` means a plain read.
    ///
    /// This is the rule for a fresh session outside a transaction; a session's own state can only
    /// add reasons. When in doubt: primary.
    #[must_use]
    pub fn wants_primary(&self) -> Option<Reason> {
        let t = self.traits;
        let by_kind = match self.kind {
            _ if t.contains(Traits::UNTERMINATED) => Some(Reason::Unterminated),
            _ if t.contains(Traits::DOUBTFUL) => Some(Reason::Doubtful),
            _ if t.contains(Traits::MULTI) => Some(Reason::MultiStatement),
            Kind::Read => None,
            Kind::Write => Some(Reason::Write),
            Kind::Ddl => Some(Reason::Ddl),
            Kind::Begin | Kind::Commit | Kind::Rollback | Kind::Savepoint | Kind::Xa => {
                Some(Reason::TransactionControl)
            }
            Kind::Set | Kind::Use => Some(Reason::Set),
            Kind::Show if t.contains(Traits::READ_ONLY_SAFE_SHOW) => None,
            Kind::Show if t.contains(Traits::DIAGNOSTICS) => Some(Reason::Diagnostics),
            Kind::Show | Kind::ShowLastRoute => Some(Reason::Show),
            Kind::Explain if t.contains(Traits::EXPLAINS_WRITE) => Some(Reason::Write),
            Kind::Explain => None,
            Kind::Prepare | Kind::Execute | Kind::Deallocate => Some(Reason::PreparedText),
            Kind::Lock | Kind::Unlock => Some(Reason::Lock),
            Kind::Admin | Kind::Kill | Kind::ExplainRoute => Some(Reason::Admin),
            Kind::Empty => Some(Reason::Empty),
            Kind::Batch => Some(Reason::MultiStatement),
            Kind::Unknown => Some(Reason::UnknownStatement),
        };
        const BY_TRAIT: [(Traits, Reason); 10] = [
            (Traits::LOCKING, Reason::LockingRead),
            (Traits::INTO, Reason::Into),
            (Traits::LAST_INSERT_ID, Reason::LastInsertId),
            (Traits::LOCK_FUNCTION, Reason::LockFunction),
            (Traits::SEQUENCE, Reason::Sequence),
            (Traits::USER_VAR_WRITE, Reason::UserVariableAssignment),
            (Traits::DIAGNOSTICS, Reason::Diagnostics),
            (Traits::CONNECTION_ID, Reason::ConnectionId),
            (Traits::SERVER_STATE, Reason::ServerState),
            (Traits::UNKNOWN_FUNCTION, Reason::UnknownFunction),
        ];
        by_kind
            .or_else(|| {
                BY_TRAIT
                    .iter()
                    .find(|(x, _)| t.contains(*x))
                    .map(|(_, reason)| *reason)
            })
            .or_else(|| {
                let asks = t.contains(Traits::PRIMARY_HINT) || self.hint == Some(Hint::Primary);
                asks.then_some(Reason::HintPrimary)
            })
    }
}
