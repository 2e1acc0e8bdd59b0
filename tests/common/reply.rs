//! Where replies end, and what is in them. A reading of "Command Phase" in the MySQL source documentation and of MariaDB's protocol
//! pages that shares no code with Atlas, so that the two can disagree.

use ::atlas::wire::{Capabilities, Status};

use super::binary::{column_type, lenenc, split_binary_row, split_row};
use super::packet::{Ended, Link, Packet, Part};

/// What kind of reply a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// None at all: COM_QUIT, COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA.
    Nothing,
    /// One OK, EOF or ERR.
    Single,
    /// Results with text rows: COM_QUERY, COM_PROCESS_INFO.
    Text,
    /// Results with binary rows: COM_STMT_EXECUTE.
    Binary,
    /// The same, when it asks for a cursor: rows may stay on the server until they are fetched.
    Cursor,
    /// COM_STMT_PREPARE.
    Prepare,
    /// Rows of a cursor: COM_STMT_FETCH.
    Fetch,
    /// Column definitions only: COM_FIELD_LIST.
    Fields,
    /// A bare text: COM_STATISTICS.
    Statistics,
}

impl Expect {
    /// By the command's first byte, and by the flags of an execution. COM_CHANGE_USER is a conversation, see [`super::Wire::change_user`]; unknown commands get an ERR.
    pub fn of(payload: &[u8]) -> Self {
        match payload.first().copied().unwrap_or(0) {
            0x01 | 0x18 | 0x19 => Self::Nothing,
            0x03 | 0x0a => Self::Text,
            0x17 if payload.get(5).is_some_and(|flags| flags & 7 != 0) => Self::Cursor,
            0x17 | 0xfa => Self::Binary,
            0x16 => Self::Prepare,
            0x1c => Self::Fetch,
            0x04 => Self::Fields,
            0x09 => Self::Statistics,
            _ => Self::Single,
        }
    }
}

/// All packets of one reply, up to its end or to the server's request for a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub packets: Vec<Packet>,
    /// The capabilities that the connection has: they decide about the shapes.
    pub capabilities: Capabilities,
}

impl Reply {
    /// The last OK, EOF or ERR's place in the sequence decides how the command went.
    pub fn last(&self) -> &Packet {
        self.packets.last().expect("this command has a reply")
    }

    /// The error that ended the reply: code, SQL state, text.
    pub fn error(&self) -> Option<(u16, String, String)> {
        let packet = self.packets.last()?;
        (packet.part == Part::Err).then(|| error_of(packet))
    }

    /// The code of the error that ended the reply, or 0.
    pub fn error_code(&self) -> u16 {
        self.error().map_or(0, |(code, _, _)| code)
    }

    /// Panics when an error ended the reply.
    pub fn assert_ok(&self) -> &Self {
        if let Some((code, state, text)) = self.error() {
            panic!("ERROR {code} ({state}): {text}");
        }
        self
    }

    /// The status flags of the last OK or EOF; none after an error.
    pub fn status(&self) -> Status {
        let last = self.last();
        match last.part {
            Part::Ok | Part::End | Part::Eof => status_of(last, self.capabilities),
            _ => Status::NONE,
        }
    }

    /// Affected rows and insert id of the last OK packet.
    pub fn affected_and_insert_id(&self) -> (u64, u64) {
        let last = self.last();
        assert_eq!(last.part, Part::Ok, "{last:?}");
        let mut at = 1;
        let affected = lenenc(&last.payload, &mut at);
        (affected, lenenc(&last.payload, &mut at))
    }

    /// The packets of each result: cut behind each OK, end of rows, or ERR.
    pub fn results(&self) -> Vec<&[Packet]> {
        self.packets
            .split_inclusive(|packet| matches!(packet.part, Part::Ok | Part::End | Part::Err))
            .collect()
    }

    /// The text rows of all results, in order; None is NULL. For binary rows see [`Self::binary_rows`].
    pub fn rows(&self) -> Vec<Vec<Option<String>>> {
        let rows = self
            .packets
            .iter()
            .filter(|packet| packet.part == Part::Row);
        rows.map(|row| {
            let cells = split_row(&row.payload).into_iter();
            cells
                .map(|cell| cell.map(|cell| String::from_utf8_lossy(&cell).into_owned()))
                .collect()
        })
        .collect()
    }

    /// The binary rows of the first result set, each cell with the bytes of its value; the columns' definitions must be in this reply.
    pub fn binary_rows(&self) -> Vec<Vec<Option<Vec<u8>>>> {
        let first = self.results().into_iter().next().unwrap_or_default();
        let columns = first.iter().filter(|packet| packet.part == Part::Column);
        let types: Vec<u8> = columns
            .map(|column| column_type(&column.payload, self.capabilities))
            .collect();
        let rows = first.iter().filter(|packet| packet.part == Part::Row);
        rows.map(|row| split_binary_row(&row.payload, &types))
            .collect()
    }

    /// The first cell of the first text row; panics when there is none, or it is NULL.
    pub fn cell(&self) -> String {
        self.assert_ok();
        let first = self
            .rows()
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        first
            .flatten()
            .unwrap_or_else(|| panic!("no cell: {:?}", self.packets))
    }
}

pub(super) fn error_of(packet: &Packet) -> (u16, String, String) {
    let code = u16::from_le_bytes([
        packet.payload.get(1).copied().unwrap_or(0),
        packet.payload.get(2).copied().unwrap_or(0),
    ]);
    let rest = packet.payload.get(3..).unwrap_or_default();
    // Without the marker: an ERR before the handshake, or of a client before 4.1.
    let (state, text) = if rest.first() == Some(&b'#') && rest.len() >= 6 {
        (&rest[1..6], &rest[6..])
    } else {
        (&rest[..0], rest)
    };
    (
        code,
        String::from_utf8_lossy(state).into_owned(),
        String::from_utf8_lossy(text).into_owned(),
    )
}

pub(super) fn status_of(packet: &Packet, caps: Capabilities) -> Status {
    let payload = &packet.payload;
    let at = if payload[0] == 0xfe && !caps.contains(Capabilities::DEPRECATE_EOF) {
        3
    } else {
        let mut at = 1;
        lenenc(payload, &mut at);
        lenenc(payload, &mut at);
        at
    };
    Status(u16::from_le_bytes([payload[at], payload[at + 1]]))
}

/// Reads one reply and hands each packet to `sink`. `seq` is the sequence id that the first one must have.
pub(super) struct ReplyReader<'a> {
    pub(super) link: &'a mut Link,
    pub(super) capabilities: Capabilities,
    pub(super) seq: u8,
    pub(super) sink: &'a mut dyn FnMut(Packet),
}

impl ReplyReader<'_> {
    pub(super) fn read(&mut self, expect: Expect) -> Result<(), Ended> {
        match expect {
            Expect::Nothing => Ok(()),
            Expect::Single => {
                let packet = self.next()?;
                let part = match packet.first() {
                    0xff => Part::Err,
                    0xfe => Part::Eof,
                    0x00 => Part::Ok,
                    other => panic!("{other:#04x} is no OK, EOF or ERR: {packet:?}"),
                };
                self.give(packet, part);
                Ok(())
            }
            Expect::Statistics => {
                let packet = self.next()?;
                let part = if packet.first() == 0xff {
                    Part::Err
                } else {
                    Part::Text
                };
                self.give(packet, part);
                Ok(())
            }
            Expect::Text | Expect::Binary | Expect::Cursor => {
                self.results(expect == Expect::Cursor)
            }
            Expect::Prepare => self.prepared(),
            Expect::Fetch => self.until_end(Part::Row).map(|_| ()),
            Expect::Fields => self.until_end(Part::Column).map(|_| ()),
        }
    }

    /// The next packet, which must carry the next sequence id: every client refuses another.
    fn next(&mut self) -> Result<Packet, Ended> {
        let packet = self.link.read()?;
        assert_eq!(packet.seq, self.seq, "sequence id of {packet:?}");
        self.seq = self
            .seq
            .wrapping_add(u8::try_from(packet.frames % 256).expect("small"));
        Ok(packet)
    }

    fn give(&mut self, packet: Packet, part: Part) {
        (self.sink)(packet.in_part(part));
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.capabilities.contains(capability)
    }

    fn results(&mut self, asks_for_cursor: bool) -> Result<(), Ended> {
        loop {
            let packet = self.next()?;
            let status = match packet.first() {
                0x00 => {
                    let status = status_of(&packet, self.capabilities);
                    self.give(packet, Part::Ok);
                    status
                }
                0xff if self.is_progress(&packet) => {
                    self.give(packet, Part::Progress);
                    continue;
                }
                0xff => {
                    self.give(packet, Part::Err);
                    return Ok(());
                }
                0xfb => {
                    self.give(packet, Part::FileRequest);
                    return Ok(());
                }
                _ => match self.result_set(packet, asks_for_cursor)? {
                    Some(status) => status,
                    None => return Ok(()),
                },
            };
            if !status.contains(Status::MORE_RESULTS) {
                return Ok(());
            }
        }
    }

    /// The rest of a result set, from its column count on. None when an error ended it.
    fn result_set(
        &mut self,
        count: Packet,
        asks_for_cursor: bool,
    ) -> Result<Option<Status>, Ended> {
        let mut at = 0;
        let columns = lenenc(&count.payload, &mut at);
        let has_flag = self.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
            || self.has(Capabilities::MARIADB_CACHE_METADATA);
        let definitions = !has_flag || count.payload.get(at) != Some(&0);
        self.give(count, Part::Count);
        if definitions {
            for _ in 0..columns {
                let packet = self.next()?;
                self.give(packet, Part::Column);
            }
        }
        let mut more = Status::NONE;
        if !self.has(Capabilities::DEPRECATE_EOF) {
            let packet = self.next()?;
            if packet.first() == 0xff {
                self.give(packet, Part::Err);
                return Ok(None);
            }
            assert_eq!(packet.first(), 0xfe, "after the columns: {packet:?}");
            let status = status_of(&packet, self.capabilities);
            if status.contains(Status::PS_OUT_PARAMS) {
                // MySQL says only here that another result follows the OUT parameters, not at their end.
                more = status & Status::MORE_RESULTS;
            }
            // MariaDB has the flag also while a stored program's own cursor is open.
            let is_cursor = asks_for_cursor && status.contains(Status::CURSOR_EXISTS);
            self.give(packet, if is_cursor { Part::End } else { Part::Eof });
            if is_cursor {
                return Ok(Some(status));
            }
        }
        let status = self.until_end(Part::Row)?;
        Ok(status.map(|status| status | more))
    }

    /// Packets of `part` up to an EOF, an OK in its place, or an ERR (then None).
    fn until_end(&mut self, part: Part) -> Result<Option<Status>, Ended> {
        loop {
            let packet = self.next()?;
            if packet.first() == 0xff {
                if self.is_progress(&packet) {
                    self.give(packet, Part::Progress);
                    continue;
                }
                self.give(packet, Part::Err);
                return Ok(None);
            }
            if self.is_end(&packet) {
                let status = status_of(&packet, self.capabilities);
                self.give(packet, Part::End);
                return Ok(Some(status));
            }
            self.give(packet, part);
        }
    }

    /// fe opens a row too, when its first cell has 16 MiB or more.
    fn is_end(&self, packet: &Packet) -> bool {
        let longest = if self.has(Capabilities::DEPRECATE_EOF) {
            0xff_ff_fe
        } else {
            8
        };
        packet.first() == 0xfe && packet.payload.len() <= longest
    }

    fn is_progress(&self, packet: &Packet) -> bool {
        self.has(Capabilities::MARIADB_PROGRESS) && packet.payload.get(1..3) == Some(&[0xff, 0xff])
    }

    fn prepared(&mut self) -> Result<(), Ended> {
        let packet = self.next()?;
        if packet.first() == 0xff {
            self.give(packet, Part::Err);
            return Ok(());
        }
        let count = |at: usize| u16::from_le_bytes([packet.payload[at], packet.payload[at + 1]]);
        let columns = count(5);
        let params = count(7);
        let definitions = !self.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
            || packet.payload.get(12) != Some(&0);
        self.give(packet, Part::Prepared);
        for (count, part) in [(params, Part::Param), (columns, Part::Column)] {
            for _ in 0..if definitions { count } else { 0 } {
                let packet = self.next()?;
                self.give(packet, part);
            }
            // MySQL sends it even where it was told to leave the definitions out.
            if count > 0 && !self.has(Capabilities::DEPRECATE_EOF) {
                let packet = self.next()?;
                assert_eq!(packet.first(), 0xfe, "after definitions: {packet:?}");
                self.give(packet, Part::Eof);
            }
        }
        Ok(())
    }
}
