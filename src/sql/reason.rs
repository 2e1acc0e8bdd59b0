//! Why a statement must run on the primary: the reasons and the rule.

use std::fmt;

use super::{Hint, Kind, Statement, Traits};

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

/// What in a read is a reason.
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

/// Every trait that may decide about a read.
const DECIDING: Traits = {
    let mut all = Traits::UNTERMINATED
        .union(Traits::DOUBTFUL)
        .union(Traits::MULTI)
        .union(Traits::PRIMARY_HINT);
    let mut i = 0;
    while i < BY_TRAIT.len() {
        all = all.union(BY_TRAIT[i].0);
        i += 1;
    }
    all
};

impl Statement<'_> {
    /// Why this statement must run on the primary; `None` means a plain read.
    ///
    /// This is the rule for a fresh session outside a transaction; a session's own state can only
    /// add reasons. When in doubt: primary.
    #[must_use]
    pub fn wants_primary(&self) -> Option<Reason> {
        let t = self.traits;
        // The plainest reads are the most, and this is all that is looked at for them.
        if self.kind == Kind::Read && !t.intersects(DECIDING) && self.hint != Some(Hint::Primary) {
            return None;
        }
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
