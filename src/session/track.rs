//! The reply tracker: finds where a server's reply ends by walking packet headers and first bytes.
//!
//! It looks at bytes and never changes or keeps them; what is done with a reply is the session's business. Both framings are
//! known: with EOF packets and with `CLIENT_DEPRECATE_EOF`.
//!
//! ```text
//! Response: First ─OK/ERR───────────────────────────────► end (or First again with MORE_RESULTS)
//!           First ─n columns─► Columns ─► ColumnsEof ─► Rows ─EOF/OK/ERR─► end (or First again)
//!                                          └ CURSOR_EXISTS, when asked for ► end
//!           First ─0xfb─► (client sends a file) ─► First
//! Prepare:  First ─OK─► Parameters ─► (EOF) ─► Columns ─► (EOF) ─► end
//! FieldList, Fetch: Rows ─EOF/OK/ERR─► end
//! Terminal: one OK, EOF or ERR;  Single: one packet of any kind
//! ```
//!
//! Followed: "COM_QUERY Response", "COM_STMT_PREPARE Response", "Text Resultset" of MySQL's pages, and what servers send.

use super::expect::{BadReply, Beginning, Expect, OkHead, Outcome, TrackEvent, Walk};
use crate::wire::{Capabilities, EofPacket, ErrPacket, Header, MAX_PAYLOAD, PrepareOk, Status};

/// So much of a terminal packet is needed in one piece; the flags lie within the first 23 bytes.
pub(super) const PEEK_TERMINAL: usize = 64;
/// Errors are needed whole where their text is passed on in other words; servers cut it at 512 bytes.
const PEEK_ERROR: usize = 1024;
/// A count beyond this is nonsense; results have as many columns as their statements ask for.
const MAX_COLUMNS: u64 = 500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Parameters(u32),
    ParametersEof,
    Columns(u32),
    ColumnsEof,
    Rows,
    End,
}

/// Walks one reply. Feed it whatever arrived, from the first byte not yet consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracker {
    expect: Expect,
    state: State,
    /// Bytes of the current packet's payload still to pass.
    body_left: usize,
    /// The current packet fills its frame, so another frame of the same packet follows.
    continued: bool,
    /// Columns announced by a prepare reply, walked after the parameters.
    prepare_columns: u32,
    /// The prepare reply says that its definitions are left out (`resultset_metadata=NONE`).
    definitions_left_out: bool,
    deprecate_eof: bool,
    /// A flag says whether definitions follow: MariaDB leaves out what is cached, MySQL does as `resultset_metadata` says.
    metadata_flag: bool,
    /// The statement may make the server ask for a file of the client.
    may_ask_for_file: bool,
    /// Changes of session state are told of.
    reads_changes: bool,
    /// Packets that may have names of tables in them are told of, and rows too.
    reads_names: Option<bool>,
    /// Rows that a result may have; [`bounds::ANY`] for as many as there are.
    rows_max: u32,
    /// The error of a statement that somebody ended is told of.
    reports_interruption: bool,
    /// What the EOF behind the columns of OUT parameters said of more results: MySQL does not repeat it behind the row.
    more_behind: Status,
    /// The last packet's sequence id.
    seq: u8,
    /// The next packet's; `None` while packets of the client come between.
    next: Option<u8>,
    at_start: bool,
    outcome: Outcome,
}

impl Tracker {
    /// A tracker for one reply on a connection with these negotiated capabilities.
    #[must_use]
    pub fn new(expect: Expect, capabilities: Capabilities) -> Self {
        let state = match expect {
            Expect::FieldList | Expect::Fetch => State::Rows,
            Expect::Response | Expect::Cursor => State::First,
            Expect::Prepare | Expect::Terminal | Expect::Single => State::First,
        };
        Self {
            expect,
            state,
            body_left: 0,
            continued: false,
            prepare_columns: 0,
            definitions_left_out: false,
            deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF),
            metadata_flag: capabilities.contains(Capabilities::OPTIONAL_RESULTSET_METADATA)
                || capabilities.contains(Capabilities::MARIADB_CACHE_METADATA),
            may_ask_for_file: true,
            reads_changes: false,
            reads_names: None,
            rows_max: bounds::ANY,
            reports_interruption: false,
            more_behind: Status::NONE,
            seq: 0,
            next: Some(1),
            at_start: true,
            outcome: Outcome::default(),
        }
    }

    /// The same for a statement that has no business with files of the client.
    pub fn without_files(mut self) -> Self {
        self.may_ask_for_file = false;
        self
    }

    /// The client has more packets to send before the reply goes on, or begins: a command of several frames, a file. Until
    /// [`Self::follows`] any sequence id is taken.
    pub fn waits_for_client(&mut self) {
        self.next = None;
    }

    /// The client's last packet had this sequence id.
    pub fn follows(&mut self, seq: u8) {
        self.next = Some(seq.wrapping_add(1));
        self.seq = seq;
    }

    /// The kind of reply that it walks.
    #[must_use]
    pub fn expect(&self) -> Expect {
        self.expect
    }

    /// Nothing of the reply has been passed on yet.
    #[must_use]
    pub fn at_start(&self) -> bool {
        self.at_start
    }

    /// The walk stands between two packets, so an ERR packet of Atlas's own may be put here.
    #[must_use]
    pub fn at_boundary(&self) -> bool {
        self.body_left == 0 && !self.continued
    }

    /// The sequence number for the next packet to the client.
    #[must_use]
    pub fn next_seq(&self) -> u8 {
        self.next.unwrap_or_else(|| self.seq.wrapping_add(1))
    }

    /// What the reply said so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What can be told of a reply that has not begun, without walking it: whether it is an error, and which.
    #[must_use]
    pub fn beginning(&self, bytes: &[u8]) -> Beginning {
        Beginning::of(bytes, self.next)
    }

    /// Walks `bytes` until an event, their end, or a packet whose needed first bytes are not all there.
    ///
    /// # Errors
    /// The bytes are not a reply of the expected kind.
    pub fn walk(&mut self, bytes: &[u8]) -> Result<Walk, BadReply> {
        self.whole(bytes).map_or_else(|| self.walk_on(bytes), Ok)
    }

    fn walk_on(&mut self, bytes: &[u8]) -> Result<Walk, BadReply> {
        let mut at = 0;
        loop {
            if self.body_left > 0 {
                let rest = bytes.len().saturating_sub(at);
                let step = self.body_left.min(rest);
                at += step;
                self.body_left -= step;
                if self.body_left > 0 {
                    return Ok(Walk::short(at));
                }
            }
            if self.state == State::End && !self.continued {
                return Ok(Walk {
                    consumed: at,
                    event: Some(TrackEvent::End),
                });
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(header) = Header::parse(rest) else {
                return Ok(Walk::short(at));
            };
            if self.next.is_some_and(|next| next != header.seq) {
                return Self::bad(at, BadReply("sequence id"));
            }
            if self.continued {
                self.pass(header);
                at += 4;
                continue;
            }
            let payload = rest.get(4..).unwrap_or_default();
            let need = self.peek(header, payload.first().copied());
            if payload.len() < need {
                return Ok(Walk::short(at));
            }
            if self.is_one_too_many(header, payload.first().copied()) {
                return Ok(Walk {
                    consumed: at,
                    event: Some(TrackEvent::TooManyRows),
                });
            }
            let seen = payload
                .get(..header.len.min(payload.len()))
                .unwrap_or_default();
            let Some(changes) = self.tells_changes(header, seen) else {
                return Ok(Walk::short(at));
            };
            let Some(named) = self.may_name(header, seen) else {
                return Ok(Walk::short(at));
            };
            let event = match self.packet(header, seen, at + 4) {
                Ok(event) => event,
                Err(bad) => return Self::bad(at, bad),
            };
            self.pass(header);
            let told = match (changes, named) {
                _ if self.tells_interruption(header, seen) => Some(TrackEvent::Interrupted { at }),
                (true, _) => Some(TrackEvent::Changes { at }),
                (false, Some(part)) => Some(TrackEvent::Named { at, part }),
                (false, None) => None,
            };
            if told.is_some() {
                self.body_left = 0;
                return Ok(Walk {
                    consumed: at.saturating_add(4 + header.len),
                    event: told,
                });
            }
            at += 4;
            match event {
                // Reported when the walk stands behind the packet's header; its body is passed by the next walk.
                Some(event @ TrackEvent::Prepared { .. }) => {
                    return Ok(Walk {
                        consumed: at,
                        event: Some(event),
                    });
                }
                // A file request is small and must be through before the client's answer is waited for.
                Some(TrackEvent::LocalInfile) => {
                    let end = at.saturating_add(header.len);
                    self.body_left = 0;
                    self.next = None;
                    return Ok(Walk {
                        consumed: end,
                        event: Some(TrackEvent::LocalInfile),
                    });
                }
                // The others are told of above.
                _ => {}
            }
        }
    }

    /// The packet at `at` is no good; what stands before it is, and is passed on first.
    fn bad(at: usize, bad: BadReply) -> Result<Walk, BadReply> {
        if at == 0 {
            return Err(bad);
        }
        Ok(Walk::short(at))
    }

    fn pass(&mut self, header: Header) {
        self.body_left = header.len;
        self.continued = header.len == MAX_PAYLOAD;
        self.seq = header.seq;
        self.next = Some(header.seq.wrapping_add(1));
        self.at_start = false;
    }

    /// How many bytes of the payload must be there before the packet can be judged.
    fn peek(&self, header: Header, first: Option<u8>) -> usize {
        match self.state {
            State::Rows => match first {
                None => header.len.min(1),
                Some(0xff) => header.len.min(PEEK_ERROR),
                Some(0xfe) => header.len.min(PEEK_TERMINAL),
                Some(_) => 0,
            },
            State::Columns(_) | State::Parameters(_) => match first {
                None => header.len.min(1),
                Some(0xff) => header.len.min(PEEK_ERROR),
                Some(_) => 0,
            },
            State::First => match first {
                None => header.len.min(1),
                // A file request is forwarded whole; names are at most 512 bytes on servers.
                Some(0xfb) if self.expect.is_response() => header.len.min(4096),
                Some(0xff) => header.len.min(PEEK_ERROR),
                Some(_) => header.len.min(PEEK_TERMINAL),
            },
            State::ColumnsEof | State::ParametersEof | State::End => header.len.min(PEEK_TERMINAL),
        }
    }

    fn packet(
        &mut self,
        header: Header,
        seen: &[u8],
        at: usize,
    ) -> Result<Option<TrackEvent>, BadReply> {
        let is_error = seen.first() == Some(&0xff);
        match self.state {
            State::First => self.first(header, seen, at),
            // No definition starts with that byte.
            State::Parameters(_) | State::Columns(_) | State::ParametersEof if is_error => {
                self.error(seen)
            }
            State::Parameters(left) => {
                self.state = if left > 1 {
                    State::Parameters(left - 1)
                } else if self.deprecate_eof {
                    self.after_parameters()
                } else {
                    State::ParametersEof
                };
                Ok(None)
            }
            State::ParametersEof => {
                if seen.first() != Some(&0xfe) || header.len >= 9 {
                    return Err(BadReply("no EOF packet behind the parameters"));
                }
                self.state = self.after_parameters();
                Ok(None)
            }
            State::Columns(left) => {
                self.state = if left > 1 {
                    State::Columns(left - 1)
                } else {
                    self.after_columns()
                };
                Ok(None)
            }
            State::ColumnsEof => self.columns_eof(header, seen),
            State::Rows => self.row(header, seen),
            State::End => Err(BadReply("bytes after the end of the reply")),
        }
    }

    fn after_parameters(&self) -> State {
        match self.prepare_columns {
            0 => State::End,
            _ if self.definitions_left_out => self.after_columns(),
            n => State::Columns(n),
        }
    }

    fn after_columns(&self) -> State {
        match (self.expect, self.deprecate_eof) {
            (Expect::Prepare, true) => State::End,
            (_, true) => State::Rows,
            (_, false) => State::ColumnsEof,
        }
    }

    fn first(
        &mut self,
        header: Header,
        seen: &[u8],
        at: usize,
    ) -> Result<Option<TrackEvent>, BadReply> {
        // COM_STATISTICS: a text without a header byte, or an ERR.
        if self.expect == Expect::Single {
            self.state = State::End;
            return Ok(None);
        }
        match seen.first() {
            None => Err(BadReply("empty packet")),
            Some(0xff) => self.error(seen),
            Some(0x00) if self.expect == Expect::Prepare => self.prepared(seen, at),
            Some(0x00) => self.ok(seen),
            Some(0xfe) if self.expect == Expect::Terminal => {
                if header.len != 5 && !self.deprecate_eof {
                    return Err(BadReply("EOF packet"));
                }
                self.end_of_rows(header, seen)?;
                self.state = State::End;
                Ok(None)
            }
            Some(0xfb) if self.expect.is_response() => {
                if !self.may_ask_for_file {
                    return Err(BadReply(
                        "a request for a file of the client that the statement does not explain",
                    ));
                }
                if seen.len() < header.len {
                    return Err(BadReply("file name too long"));
                }
                Ok(Some(TrackEvent::LocalInfile))
            }
            Some(_) if self.expect.is_response() => self.column_count(header, seen),
            Some(_) => Err(BadReply("neither OK nor ERR")),
        }
    }

    fn column_count(
        &mut self,
        header: Header,
        seen: &[u8],
    ) -> Result<Option<TrackEvent>, BadReply> {
        let mut reader = crate::wire::Reader::new("column count", seen);
        let count = reader
            .lenenc("columns")
            .map_err(|_| BadReply("column count"))?;
        if count == 0 || count > MAX_COLUMNS || header.len > 10 {
            return Err(BadReply("column count"));
        }
        self.outcome.rows = true;
        self.outcome.row_count = 0;
        self.definitions_left_out = self.metadata_flag && reader.rest() == [0];
        self.state = if self.definitions_left_out {
            self.after_columns()
        } else {
            State::Columns(u32::try_from(count).unwrap_or(u32::MAX))
        };
        Ok(None)
    }

    fn prepared(&mut self, seen: &[u8], at: usize) -> Result<Option<TrackEvent>, BadReply> {
        let ok = PrepareOk::parse(seen).map_err(|_| BadReply("prepare reply"))?;
        self.prepare_columns = u32::from(ok.columns);
        self.outcome.warnings = ok.warnings;
        self.definitions_left_out = self.metadata_flag && ok.metadata == Some(0);
        self.state = match u32::from(ok.params) {
            0 => self.after_parameters(),
            // MySQL sends the EOF packets even where it leaves the definitions out.
            _ if self.definitions_left_out && self.deprecate_eof => self.after_parameters(),
            _ if self.definitions_left_out => State::ParametersEof,
            n => State::Parameters(n),
        };
        Ok(Some(TrackEvent::Prepared { at, ok }))
    }

    /// The packet behind the column definitions. Where definitions were left out some servers leave this EOF out too,
    /// so anything else is the first row.
    fn columns_eof(&mut self, header: Header, seen: &[u8]) -> Result<Option<TrackEvent>, BadReply> {
        if seen.first() == Some(&0xfe) && header.len < 9 {
            if self.expect == Expect::Prepare {
                self.state = State::End;
                return Ok(None);
            }
            let eof = EofPacket::parse(seen).map_err(|_| BadReply("EOF packet"))?;
            if self.expect == Expect::Cursor && eof.status.contains(Status::CURSOR_EXISTS) {
                self.note(eof.status, eof.warnings);
                self.outcome.results = self.outcome.results.wrapping_add(1);
                self.result_ended(eof.status);
                return Ok(None);
            }
            if eof.status.contains(Status::PS_OUT_PARAMS) {
                self.more_behind = eof.status & Status::MORE_RESULTS;
            }
            self.state = State::Rows;
            return Ok(None);
        }
        if seen.first() == Some(&0xff) {
            return self.error(seen);
        }
        if !self.definitions_left_out {
            return Err(BadReply("no EOF packet behind the columns"));
        }
        self.state = State::Rows;
        self.row(header, seen)
    }

    fn row(&mut self, header: Header, seen: &[u8]) -> Result<Option<TrackEvent>, BadReply> {
        match seen.first() {
            Some(0xff) => self.error(seen),
            // A row may start with 0xfe too (a value of 16 MiB and more), but then its packet fills the frame.
            Some(0xfe) if header.len < 9 || (self.deprecate_eof && header.len < MAX_PAYLOAD) => {
                let more = std::mem::take(&mut self.more_behind);
                let status = self.end_of_rows(header, seen)? | more;
                self.outcome.results = self.outcome.results.wrapping_add(1);
                self.result_ended(status);
                Ok(None)
            }
            _ => {
                self.outcome.row_count = self.outcome.row_count.wrapping_add(1);
                Ok(None)
            }
        }
    }
}

mod bounds;
mod changes;
mod ends;
mod named;
mod whole;

#[cfg(test)]
mod tests;
