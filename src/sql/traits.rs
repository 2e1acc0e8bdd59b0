//! What a statement contains beside its kind: the set of its traits.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

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

    /// LOAD DATA and its kin: the server may ask the client for a file.
    pub const LOAD: Self = Self(1 << 21);

    /// Variables for this statement only: a hint (`/*+ SET_VAR() */`), SET STATEMENT.
    pub const FOR_ITSELF: Self = Self(1 << 23);

    /// FOUND_ROWS(), which is among the diagnostics: the answer lives on the connection that last gave rows, whatever else
    /// ran since.
    pub const FOUND_ROWS: Self = Self(1 << 22);

    /// GET DIAGNOSTICS, which is among the diagnostics: it leaves everything that it is asked about as it is.
    pub const AREA: Self = Self(1 << 24);

    /// FOUND_ROWS() behind it may give another number than that of the rows of its answer.
    pub const COUNTS_OTHERWISE: Self = Self(1 << 25);

    /// FOUND_ROWS() behind it may give a number that its answer does not tell, or the one that it gave before.
    pub const MAY_COUNT: Self = Self(1 << 26);

    /// It gives rows which FOUND_ROWS() does not count: behind it that gives what it gave before.
    pub const UNCOUNTED: Self = Self(1 << 27);

    /// UPDATE of one table by its text: on MySQL FOUND_ROWS() gives the number of rows that were looked up.
    pub const MATCHES: Self = Self(1 << 28);

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

    const NAMES: [(Self, &'static str); 29] = [
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
        (Self::LOAD, "load"),
        (Self::FOUND_ROWS, "found-rows"),
        (Self::FOR_ITSELF, "for-itself"),
        (Self::AREA, "area"),
        (Self::COUNTS_OTHERWISE, "counts-otherwise"),
        (Self::MAY_COUNT, "may-count"),
        (Self::UNCOUNTED, "uncounted"),
        (Self::MATCHES, "matches"),
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
