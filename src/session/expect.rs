//! What the tracker is told and what it tells: kinds of replies, events, outcomes. Walking is in `track`.

use super::track::PEEK_TERMINAL;
use crate::shard::Part;
use crate::wire::{EofPacket, Header, PrepareOk, Reader, Status};

/// What a command's reply looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// OK, ERR, a request for a local file, or result sets: COM_QUERY, COM_STMT_EXECUTE and their kin.
    Response,
    /// The same for a COM_STMT_EXECUTE that asks for a cursor: where the server opens one, no rows follow the definitions. The
    /// status alone does not tell: MariaDB has the flag in it also while a stored program has a cursor of its own open.
    Cursor,
    /// COM_STMT_PREPARE.
    Prepare,
    /// Column definitions up to an EOF: COM_FIELD_LIST.
    FieldList,
    /// Rows up to an EOF: COM_STMT_FETCH.
    Fetch,
    /// One OK, EOF or ERR packet.
    Terminal,
    /// One packet with no header byte: COM_STATISTICS.
    Single,
}

impl Expect {
    /// Results, one or several.
    pub(super) fn is_response(self) -> bool {
        matches!(self, Self::Response | Self::Cursor)
    }
}

/// Something in the reply that the session acts upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackEvent {
    /// The first packet of a prepare reply; its payload starts at `at` of the walked bytes.
    Prepared {
        /// Offset of the payload.
        at: usize,
        /// What it says.
        ok: PrepareOk,
    },
    /// The server asks the client for a file; the client's packets are to be forwarded until an empty one.
    LocalInfile,
    /// A packet that tells of changed session state ends the walked bytes; its header is at `at`. Only of a tracker
    /// [`with_changes`](super::Tracker::with_changes).
    Changes {
        /// Offset of the packet.
        at: usize,
    },
    /// A packet that may have names of tables in it ends the walked bytes; its header is at `at`. Only of a tracker
    /// [`with_names`](super::Tracker::with_names).
    Named {
        /// Offset of the packet.
        at: usize,
        /// What it is.
        part: Part,
    },
    /// A row more than there may be begins behind the walked bytes. Only of a tracker
    /// [`with_rows_at_most`](super::Tracker::with_rows_at_most).
    TooManyRows,
    /// The error of a statement that somebody ended, and the reply with it; its header is at `at` of the walked bytes. Only of a
    /// tracker that [`expects_interruption`](super::Tracker::expects_interruption).
    Interrupted {
        /// Offset of the packet.
        at: usize,
    },
    /// The reply is complete.
    End,
}

/// What a walk over bytes found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// So many of the bytes are understood and may be passed on; the rest is to be shown again with more behind it.
    pub consumed: usize,
    /// What stopped the walk; `None` when it needs more bytes.
    pub event: Option<TrackEvent>,
}

impl Walk {
    /// A walk that needs more bytes.
    pub(super) fn short(consumed: usize) -> Self {
        Self {
            consumed,
            event: None,
        }
    }
}

/// The server sent what no server sends; the connection is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed reply: {0}")]
pub struct BadReply(pub &'static str);

/// The first bytes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Too few to tell.
    Unknown,
    /// An ERR packet.
    Error {
        /// Its code.
        code: u16,
        /// Its sequence id is that of a reply. An error that the server sends of its own accord has another.
        in_turn: bool,
    },
    /// Anything else, sound or not.
    Other,
}

impl Beginning {
    /// Of these bytes, when the reply's first packet should have this sequence id (if that is known).
    pub(super) fn of(bytes: &[u8], seq: Option<u8>) -> Self {
        let Some(header) = Header::parse(bytes) else {
            return Self::Unknown;
        };
        match (header.len, bytes.get(4..)) {
            (3.., None | Some([] | [0xff] | [0xff, _])) => Self::Unknown,
            (3.., Some(&[0xff, low, high, ..])) => Self::Error {
                code: u16::from_le_bytes([low, high]),
                in_turn: seq.is_none_or(|seq| seq == header.seq),
            },
            _ => Self::Other,
        }
    }
}

/// What the ends of the results said, for the session's view of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Status flags of the last packet that carried them.
    pub status: Option<Status>,
    /// Error code, if the reply ended with one.
    pub error: Option<u16>,
    /// `last_insert_id` of the last OK packet that had one.
    pub insert_id: u64,
    /// Results that ended well, from 0 again after the last number.
    pub results: u16,
    /// Some result was followed by another.
    pub many: bool,
    /// There was a result set.
    pub rows: bool,
    /// Rows of the last result set.
    pub row_count: u64,
    /// Affected rows of the last result, as ROW_COUNT() tells them: -1 for rows and errors.
    pub affected: i64,
    /// Warnings that the last packet with a count of them told of.
    pub warnings: u16,
    /// What the last OK packet says in words.
    pub said: Words,
}

/// The words of an OK packet. Those behind an UPDATE begin with the number of rows that were looked up, in any language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Info {
    /// There are none.
    None,
    /// There are some, and this is the first number in them.
    First(u16),
    /// There are some, and no number in what was seen of them, or a large one.
    Unread,
}

/// The same in two bytes: every client has room for what replies say.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Words(u16);

impl Words {
    /// Of what stands behind the head of an OK packet. Its first byte is that of the words, which is no digit, or says how many they
    /// are; behind them there may be changes of session state.
    pub(super) fn of(behind: &[u8]) -> Self {
        let Some((1.., words)) = behind.split_first() else {
            return Self(0);
        };
        Self(
            first_number(words)
                .and_then(|n| n.checked_add(2))
                .unwrap_or(1),
        )
    }

    /// What they say.
    #[must_use]
    pub fn info(self) -> Info {
        match self.0 {
            0 => Info::None,
            1 => Info::Unread,
            n => Info::First(n - 2),
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.info().fmt(f)
    }
}

fn first_number(words: &[u8]) -> Option<u16> {
    let start = words.iter().position(u8::is_ascii_digit)?;
    let digits = words.get(start..)?;
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    // One that goes to the end may go on behind it.
    let whole = digits
        .get(..len)
        .filter(|whole| whole.len() < digits.len())?;
    std::str::from_utf8(whole).ok()?.parse().ok()
}

/// The fixed head of an OK packet. `wire::OkPacket` wants the whole packet, of which the tracker sees the first bytes only.
pub(super) struct OkHead {
    pub(super) affected: u64,
    pub(super) insert_id: u64,
    pub(super) status: Status,
    pub(super) warnings: u16,
    pub(super) said: Words,
}

impl OkHead {
    /// The end of rows in either framing: an EOF packet says less.
    pub(super) fn of_rows(header: Header, seen: &[u8]) -> Result<Self, BadReply> {
        if header.len != 5 {
            return Self::parse(seen).ok_or(BadReply("OK packet"));
        }
        let eof = EofPacket::parse(seen).map_err(|_| BadReply("EOF packet"))?;
        Ok(Self {
            affected: 0,
            insert_id: 0,
            status: eof.status,
            warnings: eof.warnings,
            said: Words::default(),
        })
    }

    pub(super) fn parse(seen: &[u8]) -> Option<Self> {
        let mut reader = Reader::new("OK", seen);
        reader.u8("header").ok()?;
        let affected = reader.lenenc("affected rows").ok()?;
        let insert_id = reader.lenenc("insert id").ok()?;
        let status = Status(reader.u16("status").ok()?);
        let warnings = reader.u16("warnings").unwrap_or(0);
        let behind = seen.get(seen.len() - reader.remaining()..PEEK_TERMINAL.min(seen.len()));
        let said = Words::of(behind.unwrap_or_default());
        Some(Self {
            affected,
            insert_id,
            status,
            warnings,
            said,
        })
    }
}
