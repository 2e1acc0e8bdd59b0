//! Flag words: capabilities that both sides negotiate at log-in, and the status that replies carry.

use std::ops::{BitAnd, BitOr};

/// Capability flags. The low 32 bits are the protocol's; the high 32 are MariaDB's extended capabilities, which travel in filler bytes
/// of the greeting and of the log-in reply, and exist only when [`Capabilities::LONG_PASSWORD`] (there called `CLIENT_MYSQL`) is clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Set by MySQL and its clients; MariaDB's `CLIENT_MYSQL`: when clear, the extended capabilities are there.
    pub const LONG_PASSWORD: Self = Self(1);
    /// UPDATE counts found, not changed rows.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// Column flags have two bytes.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// The log-in names a schema.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// `schema.table.column` is refused.
    pub const NO_SCHEMA: Self = Self(1 << 4);
    /// zlib compression.
    pub const COMPRESS: Self = Self(1 << 5);
    /// The client is ODBC.
    pub const ODBC: Self = Self(1 << 6);
    /// LOAD DATA LOCAL.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// Spaces before `(` are allowed.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// The protocol since 4.1. Without it the packets have other shapes.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// `interactive_timeout` holds instead of `wait_timeout`.
    pub const INTERACTIVE: Self = Self(1 << 10);
    /// The connection goes on in TLS.
    pub const SSL: Self = Self(1 << 11);
    /// No effect on the wire.
    pub const IGNORE_SIGPIPE: Self = Self(1 << 12);
    /// Status flags in replies; always set since 4.1.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Was the 4.1 protocol's first name.
    pub const RESERVED: Self = Self(1 << 14);
    /// The 20-byte nonce; the log-in token has a length in front.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// Several statements in one COM_QUERY.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// Several results to COM_QUERY.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// Several results to COM_STMT_EXECUTE.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication plugins are named.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The log-in carries connection attributes.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// The length of the log-in token is length-encoded.
    pub const PLUGIN_AUTH_LENENC_CLIENT_DATA: Self = Self(1 << 21);
    /// The client copes with an expired password.
    pub const CAN_HANDLE_EXPIRED_PASSWORDS: Self = Self(1 << 22);
    /// OK packets carry session-state blocks.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// Result sets end with an OK packet and have no EOF after the column definitions.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// Result sets say whether column definitions follow.
    pub const OPTIONAL_RESULTSET_METADATA: Self = Self(1 << 25);
    /// zstd compression; the log-in ends with a level byte.
    pub const ZSTD_COMPRESSION_ALGORITHM: Self = Self(1 << 26);
    /// COM_QUERY and COM_STMT_EXECUTE carry named attributes.
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);
    /// More than one authentication factor.
    pub const MULTI_FACTOR_AUTHENTICATION: Self = Self(1 << 28);
    /// Reserved for more capability bits.
    pub const CAPABILITY_EXTENSION: Self = Self(1 << 29);
    /// Client-side option; no effect on the wire.
    pub const SSL_VERIFY_SERVER_CERT: Self = Self(1 << 30);
    /// Client-side option; no effect on the wire.
    pub const REMEMBER_OPTIONS: Self = Self(1 << 31);
    /// MariaDB: progress reports in ERR packets of code 65535.
    pub const MARIADB_PROGRESS: Self = Self(1 << 32);
    /// MariaDB: COM_MULTI, since withdrawn.
    pub const MARIADB_COM_MULTI: Self = Self(1 << 33);
    /// MariaDB: COM_STMT_BULK_EXECUTE.
    pub const MARIADB_STMT_BULK_OPERATIONS: Self = Self(1 << 34);
    /// MariaDB: one more block in each column definition.
    pub const MARIADB_EXTENDED_METADATA: Self = Self(1 << 35);
    /// MariaDB: an execute may leave out column definitions that the client knows.
    pub const MARIADB_CACHE_METADATA: Self = Self(1 << 36);
    /// MariaDB: one result for each row of a bulk execute.
    pub const MARIADB_BULK_UNIT_RESULTS: Self = Self(1 << 37);

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is set in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is set in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is set here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Puts the protocol's word and MariaDB's extended word together; the latter counts only when the former leaves
    /// [`Capabilities::LONG_PASSWORD`] clear.
    pub(super) const fn from_words(base: u32, extended: u32) -> Self {
        let base = Self(base as u64);
        if base.contains(Self::LONG_PASSWORD) {
            base
        } else {
            base.union(Self((extended as u64) << 32))
        }
    }

    /// The protocol's 32 bits, and MariaDB's extended 32 bits: none when [`Capabilities::LONG_PASSWORD`] is set.
    pub(super) const fn to_words(self) -> ([u8; 4], [u8; 4]) {
        let [a, b, c, d, e, f, g, h] = self.0.to_le_bytes();
        let extended = if self.contains(Self::LONG_PASSWORD) {
            [0; 4]
        } else {
            [e, f, g, h]
        };
        ([a, b, c, d], extended)
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        self.intersection(other)
    }
}

/// Status flags of OK and EOF packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status(pub u16);

impl Status {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// A transaction is open.
    pub const IN_TRANS: Self = Self(1);
    /// autocommit is on.
    pub const AUTOCOMMIT: Self = Self(2);
    /// One more result follows.
    pub const MORE_RESULTS: Self = Self(8);
    /// No good index was used.
    pub const NO_GOOD_INDEX_USED: Self = Self(0x10);
    /// No index was used.
    pub const NO_INDEX_USED: Self = Self(0x20);
    /// A cursor was opened: rows come by COM_STMT_FETCH.
    pub const CURSOR_EXISTS: Self = Self(0x40);
    /// The cursor has no more rows.
    pub const LAST_ROW_SENT: Self = Self(0x80);
    /// The current schema was dropped.
    pub const DB_DROPPED: Self = Self(0x100);
    /// sql_mode has NO_BACKSLASH_ESCAPES.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(0x200);
    /// A prepared statement was prepared again and its columns differ now.
    pub const METADATA_CHANGED: Self = Self(0x400);
    /// The statement was slow.
    pub const QUERY_WAS_SLOW: Self = Self(0x800);
    /// This result holds the OUT parameters of a procedure.
    pub const PS_OUT_PARAMS: Self = Self(0x1000);
    /// The open transaction is read-only.
    pub const IN_TRANS_READONLY: Self = Self(0x2000);
    /// A session-state block follows in the OK packet.
    pub const SESSION_STATE_CHANGED: Self = Self(0x4000);
    /// MariaDB: sql_mode has ANSI_QUOTES.
    pub const ANSI_QUOTES: Self = Self(0x8000);
    /// The flags that tell of the session; the others tell of one reply, and do not belong into another.
    pub const OF_SESSION: Self = Self::IN_TRANS
        .union(Self::AUTOCOMMIT)
        .union(Self::NO_BACKSLASH_ESCAPES)
        .union(Self::IN_TRANS_READONLY)
        .union(Self::ANSI_QUOTES);

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is set in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is set in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is set here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Status {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitAnd for Status {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        self.intersection(other)
    }
}
