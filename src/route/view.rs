//! What of a session matters to a route: which connections it has, what is going on, and what holds its reads. Plain
//! values; `session` keeps them true.

use crate::config::ReadFrom;
use crate::sql::{Kind, Traits};

/// Which of a session's two server connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The connection to the primary.
    Primary = 0,
    /// The connection to a replica.
    Replica = 1,
}

impl Role {
    /// Both, for loops.
    pub const BOTH: [Self; 2] = [Self::Primary, Self::Replica];

    /// The other of the two.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Primary => Self::Replica,
            Self::Replica => Self::Primary,
        }
    }
}

/// What of a session matters to a route.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Status flag of the primary's last reply.
    pub in_transaction: bool,
    /// Status flag of the primary's last reply.
    pub autocommit: bool,
    /// The account's reads are to see writes that a replica may not have yet.
    pub must_see_writes: bool,
    /// What holds reads on the primary.
    pub pins: Pins,
    /// The connection that ran the previous statement.
    pub last: Option<Role>,
    /// The connection that ran the last statement with rows.
    pub last_rows: Option<Role>,
    /// The connection that has the session's warnings and errors: an error of a command that is no statement counts too.
    pub warned: Option<Role>,
    /// The account's rule.
    pub read_from: ReadFrom,
}

impl View {
    /// The same for a statement that reads nothing, so that only what is going on matters.
    #[must_use]
    pub fn of_nothing(self) -> Self {
        Self {
            must_see_writes: false,
            pins: Pins::default(),
            ..self
        }
    }

    /// Whether the session's state keeps a read on the primary.
    #[must_use]
    pub fn is_held(&self, uses_variables: bool) -> bool {
        self.pins.hold_reads() || (uses_variables && self.pins.any_of(Pins::USER_VARIABLES))
    }

    /// The connection that knows what a question about previous statements asks.
    #[must_use]
    pub fn asked(&self, kind: Kind, traits: Traits) -> Option<Role> {
        match kind {
            // SHOW WARNINGS, SHOW ERRORS and GET DIAGNOSTICS; the others are counts, which only statements change.
            Kind::Show => self.warned,
            _ if traits.contains(Traits::AREA) => self.warned,
            _ if traits.contains(Traits::FOUND_ROWS) => self.last_rows,
            _ => self.last,
        }
    }
}

/// Reasons for which reads stay on the primary's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pins(u16);

impl Pins {
    /// A session variable was set to something that only the primary's connection knows.
    pub const OPAQUE: Self = Self(1);
    /// Temporary tables exist.
    pub const TEMPORARY_TABLES: Self = Self(1 << 1);
    /// LOCK TABLES is in force.
    pub const LOCKED_TABLES: Self = Self(1 << 2);
    /// A procedure ran and failed, or ran where its server does not tell of changes: it may have left temporary tables.
    pub const CALL: Self = Self(1 << 3);
    /// SET TRANSACTION waits for the next transaction.
    pub const ONE_SHOT: Self = Self(1 << 4);
    /// More state than a session may have replayed.
    pub const HISTORY: Self = Self(1 << 5);
    /// User variables were assigned in a way that only the primary's connection knows. Concerns statements with `@`.
    pub const USER_VARIABLES: Self = Self(1 << 6);
    /// User locks may be held. Keeps the connection, not the reads.
    pub const USER_LOCKS: Self = Self(1 << 7);
    /// Statements prepared by SQL, open handlers: keeps the connection, not the reads.
    pub const NAMED_OBJECTS: Self = Self(1 << 8);

    /// It has set global variables, and goes on with the values that its connection began with. Keeps the connection, not the reads.
    pub const OLD_DEFAULTS: Self = Self(1 << 9);

    /// SET insert_id waits for an INSERT, which must be the session's own. Keeps the connection, not the reads.
    pub const INSERT_ID: Self = Self(1 << 10);

    /// Stored code changed session state, and nobody says what.
    pub const UNSEEN: Self = Self(1 << 11);

    /// A procedure ran of which the server told all but user locks and variables that it may have assigned. Keeps the connection, and
    /// the reads of variables.
    pub const ROUTINE: Self = Self(1 << 12);

    /// A statement prepared by SQL may ask about the one before it, which has to run where that is.
    pub const PREPARED_QUESTION: Self = Self(1 << 13);

    /// Pins that keep every read on the primary.
    const READS: Self = Self(0b11_1111 | 1 << 13);

    /// Whether any of `other` is set.
    #[must_use]
    pub fn any_of(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a read must stay on the primary.
    #[must_use]
    pub fn hold_reads(self) -> bool {
        self.any_of(Self::READS)
    }

    /// Whether something would be lost with the primary's connection.
    #[must_use]
    pub fn bind_connection(self) -> bool {
        self.0 != 0
    }

    /// Both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds reasons.
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes reasons away.
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Each by itself, with its name in `EXPLAIN ROUTE`, logs and `SHOW PINS`.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::UNSEEN, "unseen-change"),
        (Self::TEMPORARY_TABLES, "temporary-table"),
        (Self::LOCKED_TABLES, "lock-tables"),
        (Self::CALL, "call"),
        (Self::ONE_SHOT, "set-transaction"),
        (Self::OPAQUE, "session-state"),
        (Self::HISTORY, "too-much-session-state"),
        (Self::USER_VARIABLES, "user-variables"),
        (Self::USER_LOCKS, "user-lock"),
        (Self::PREPARED_QUESTION, "prepared-question"),
        (Self::NAMED_OBJECTS, "prepared-sql"),
        (Self::ROUTINE, "stored-code"),
        (Self::OLD_DEFAULTS, "set-global"),
        (Self::INSERT_ID, "insert-id"),
    ];

    /// The first reason, in words that `EXPLAIN ROUTE` and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(pin, _)| self.any_of(*pin))
            .map_or("none", |(_, name)| name)
    }
}
