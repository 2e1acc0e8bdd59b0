//! Finds the end of a reply from packet headers and first bytes; counts rows and bytes and keeps only the first row. The connection
//! does not speak DEPRECATE_EOF, so result sets and prepare replies have their EOF packets.
//!
//! ```text
//! Result:  First -> (OK) Done | Columns(n) -> ColumnsEnd -> Rows -> Done (or First again when more results follow)
//! Prepare: First -> Skip(packets of parameters and columns with their EOFs) -> Done
//! ```

use super::ClientError;
use super::login::error_packet;

/// How much of a packet is kept: enough for errors, OK packets and short first rows.
const KEPT: usize = 512;

const MORE_RESULTS: u16 = 0x8;

/// What the walker takes the first packet for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Result,
    Prepare,
}

/// What a reply was.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Rows of all its result sets.
    pub(crate) rows: u64,
    /// Bytes of the payloads of those rows.
    pub(crate) row_bytes: u64,
    /// The id that a prepare gave.
    pub(super) statement_id: u32,
    first_row: Vec<u8>,
}

impl Reply {
    /// The values of the first row of a text result, as far as they were kept.
    pub(crate) fn first_row(&self) -> Vec<String> {
        let mut rest = self.first_row.as_slice();
        let mut values = Vec::new();
        while let Some((&len, tail)) = rest.split_first() {
            // A value of 251 bytes or more, or NULL (0xfb), ends the list: nothing here asks for such.
            let Some((value, tail)) = tail
                .split_at_checked(usize::from(len))
                .filter(|_| len < 0xfb)
            else {
                break;
            };
            values.push(String::from_utf8_lossy(value).into_owned());
            rest = tail;
        }
        values
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Columns(u64),
    ColumnsEnd,
    Rows,
    Skip(u32),
    Done,
}

/// The walker of one reply.
#[derive(Debug)]
pub(super) struct Walk {
    expect: Expect,
    state: State,
    header: [u8; 4],
    header_len: usize,
    /// Payload bytes of the current packet still to come.
    missing: usize,
    /// Length of the current packet.
    len: usize,
    /// The packet before this one was full, so this one continues it.
    is_continuation: bool,
    kept: Vec<u8>,
    reply: Reply,
}

impl Walk {
    pub(super) fn new(expect: Expect) -> Self {
        Self {
            expect,
            state: State::First,
            header: [0; 4],
            header_len: 0,
            missing: 0,
            len: 0,
            is_continuation: false,
            kept: Vec::new(),
            reply: Reply::default(),
        }
    }

    /// Whole rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.reply.rows
    }

    pub(super) fn into_reply(self) -> Reply {
        self.reply
    }

    /// Takes the next bytes of the stream; true when the reply is complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<bool, ClientError> {
        loop {
            while self.header_len < 4 {
                let Some((first, rest)) = bytes.split_first() else {
                    return Ok(self.state == State::Done);
                };
                self.header[self.header_len] = *first;
                self.header_len += 1;
                bytes = rest;
                if self.header_len == 4 {
                    let [a, b, c, _] = self.header;
                    self.len = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
                    self.missing = self.len;
                    if !self.is_continuation {
                        self.kept.clear();
                    }
                }
            }
            let (now, rest) = bytes.split_at(self.missing.min(bytes.len()));
            let room = KEPT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(now.get(..room).unwrap_or(now));
            self.missing -= now.len();
            bytes = rest;
            if self.missing > 0 {
                return Ok(false);
            }
            self.header_len = 0;
            self.packet_end()?;
            if self.state == State::Done && bytes.is_empty() {
                return Ok(true);
            }
            if self.state == State::Done {
                return Err(ClientError::Protocol("bytes after a reply"));
            }
        }
    }

    fn packet_end(&mut self) -> Result<(), ClientError> {
        let continues = std::mem::replace(&mut self.is_continuation, self.len == 0xff_ffff);
        if self.state == State::Rows && (continues || self.is_continuation) {
            self.reply.row_bytes += u64::try_from(self.len).unwrap_or(0);
            if !self.is_continuation {
                self.reply.rows += 1;
            }
            return Ok(());
        }
        if let Some(error) = error_packet(&self.kept) {
            // 0xff cannot start a text row: no row's first value is longer than 16 MiB.
            if matches!(self.state, State::First | State::Rows) {
                return Err(error);
            }
        }
        let is_eof = self.kept.first() == Some(&0xfe) && self.len < 9;
        self.state = match self.state {
            State::First if self.expect == Expect::Prepare => self.prepare_ok()?,
            State::First => match self.kept.split_first() {
                Some((0x00, rest)) => {
                    after(ok_status(rest).ok_or(ClientError::Protocol("an OK packet"))?)
                }
                Some((0xfb, _)) | None => {
                    return Err(ClientError::Protocol("a reply's first packet"));
                }
                Some((_, _)) => State::Columns(
                    lenenc(&self.kept)
                        .ok_or(ClientError::Protocol("a column count"))?
                        .0,
                ),
            },
            State::Columns(0 | 1) => State::ColumnsEnd,
            State::Columns(n) => State::Columns(n - 1),
            State::ColumnsEnd if is_eof => State::Rows,
            State::ColumnsEnd => return Err(ClientError::Protocol("the end of the columns")),
            State::Rows if is_eof => {
                let status = self
                    .kept
                    .get(3..5)
                    .and_then(|s| s.try_into().ok())
                    .map(u16::from_le_bytes);
                after(status.ok_or(ClientError::Protocol("an EOF packet"))?)
            }
            State::Rows => {
                if self.reply.rows == 0 {
                    self.reply.first_row.clone_from(&self.kept);
                }
                self.reply.rows += 1;
                self.reply.row_bytes += u64::try_from(self.len).unwrap_or(0);
                State::Rows
            }
            State::Skip(0 | 1) => State::Done,
            State::Skip(n) => State::Skip(n - 1),
            State::Done => return Err(ClientError::Protocol("bytes after a reply")),
        };
        Ok(())
    }

    /// COM_STMT_PREPARE_OK: id, number of columns, number of parameters; each list that is not empty ends with an EOF.
    fn prepare_ok(&mut self) -> Result<State, ClientError> {
        let Some((&[0, a, b, c, d, e, f, g, h], _)) = self.kept.split_first_chunk::<9>() else {
            return Err(ClientError::Protocol("a prepare reply"));
        };
        self.reply.statement_id = u32::from_le_bytes([a, b, c, d]);
        let list = |n: u16| if n == 0 { 0 } else { u32::from(n) + 1 };
        Ok(
            match list(u16::from_le_bytes([e, f])) + list(u16::from_le_bytes([g, h])) {
                0 => State::Done,
                packets => State::Skip(packets),
            },
        )
    }
}

fn after(status: u16) -> State {
    if status & MORE_RESULTS == 0 {
        State::Done
    } else {
        State::First
    }
}

/// The status flags of an OK packet behind its first byte: after affected rows and insert id.
fn ok_status(rest: &[u8]) -> Option<u16> {
    let at = lenenc(rest)?.1;
    let at = at + lenenc(rest.get(at..)?)?.1;
    Some(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?))
}

/// A length-encoded integer and how many bytes it takes.
fn lenenc(bytes: &[u8]) -> Option<(u64, usize)> {
    let extra = match *bytes.first()? {
        small @ 0..=0xfa => return Some((u64::from(small), 1)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let mut wide = [0; 8];
    wide.get_mut(..extra)?
        .copy_from_slice(bytes.get(1..=extra)?);
    Some((u64::from_le_bytes(wide), extra + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (seq, p) in payloads.iter().enumerate() {
            let len = u32::try_from(p.len()).expect("short").to_le_bytes();
            out.extend_from_slice(&[len[0], len[1], len[2], u8::try_from(seq + 1).expect("few")]);
            out.extend_from_slice(p);
        }
        out
    }

    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const EOF_MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
    const OK: &[u8] = &[0, 1, 0, 2, 0, 0, 0];

    /// Feeds the reply cut in two at every byte; all ways must agree.
    fn walk(expect: Expect, stream: &[u8]) -> Result<Reply, ClientError> {
        for cut in 1..stream.len() {
            let mut walk = Walk::new(expect);
            assert!(
                !walk.feed(&stream[..cut])?,
                "done at {cut} of {}",
                stream.len()
            );
            assert!(walk.feed(&stream[cut..])?, "not done, cut at {cut}");
        }
        let mut walk = Walk::new(expect);
        assert!(walk.feed(stream)?);
        Ok(walk.into_reply())
    }

    #[test]
    fn a_result_set_is_walked_and_its_first_row_kept() {
        let stream = packets(&[
            &[2],
            b"def1",
            b"def2",
            EOF,
            b"\x03one\x0242",
            b"\x03two\x0243",
            EOF,
        ]);
        let reply = walk(Expect::Result, &stream).expect("a result");
        assert_eq!((reply.rows, reply.row_bytes), (2, 14));
        assert_eq!(reply.first_row(), ["one", "42"]);
    }

    #[test]
    fn a_row_that_begins_like_an_eof_is_a_row() {
        let long = [&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0][..], b"x"].concat();
        let reply =
            walk(Expect::Result, &packets(&[&[1], b"def", EOF, &long, EOF])).expect("a result");
        assert_eq!(reply.rows, 1);
    }

    #[test]
    fn ok_more_results_and_errors() {
        assert_eq!(walk(Expect::Result, &packets(&[OK])).expect("ok").rows, 0);
        let two = packets(&[
            &[1],
            b"def",
            EOF,
            b"\x01a",
            EOF_MORE,
            &[1],
            b"def",
            EOF,
            b"\x01b",
            EOF,
        ]);
        assert_eq!(walk(Expect::Result, &two).expect("two results").rows, 2);
        let error = packets(&[b"\xff\x7a\x04#42S02no such table"]);
        assert!(matches!(
            Walk::new(Expect::Result).feed(&error),
            Err(ClientError::Server(1146, _))
        ));
        let late = packets(&[&[1], b"def", EOF, b"\x01a", b"\xff\x25\x05#70100killed"]);
        assert!(matches!(
            Walk::new(Expect::Result).feed(&late),
            Err(ClientError::Server(1317, _))
        ));
    }

    #[test]
    fn bytes_after_the_end_are_an_error() {
        let mut stream = packets(&[OK]);
        stream.push(1);
        assert!(Walk::new(Expect::Result).feed(&stream).is_err());
    }

    #[test]
    fn prepare_replies() {
        let ok = |columns: u8, params: u8| [0, 9, 1, 0, 0, columns, 0, params, 0, 0, 0, 0];
        let full = packets(&[&ok(1, 2), b"param", b"param", EOF, b"column", EOF]);
        assert_eq!(
            walk(Expect::Prepare, &full).expect("prepared").statement_id,
            265
        );
        assert_eq!(
            walk(Expect::Prepare, &packets(&[&ok(0, 0)]))
                .expect("prepared")
                .statement_id,
            265
        );
        assert!(walk(Expect::Prepare, &packets(&[&ok(0, 1), b"param", EOF])).is_ok());
    }

    #[test]
    fn a_row_of_many_packets_is_one_row() {
        let mut stream = packets(&[&[1], b"def", EOF]);
        let full = vec![b'x'; 0xff_ffff];
        for part in [&full[..], b"tail"] {
            let len = u32::try_from(part.len()).expect("24 bits").to_le_bytes();
            stream.extend_from_slice(&[len[0], len[1], len[2], 5]);
            stream.extend_from_slice(part);
        }
        stream.extend_from_slice(&packets(&[EOF]));
        let mut walk = Walk::new(Expect::Result);
        assert!(walk.feed(&stream).expect("a result"));
        assert_eq!(
            (walk.rows(), walk.into_reply().row_bytes),
            (1, 0xff_ffff + 4)
        );
    }

    #[test]
    fn lengths() {
        assert_eq!(lenenc(&[250]), Some((250, 1)));
        assert_eq!(lenenc(&[0xfc, 1, 2]), Some((513, 3)));
        assert_eq!(lenenc(&[0xfd, 1, 0, 1]), Some((65537, 4)));
        assert_eq!(
            lenenc(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1]),
            Some((1 + (1 << 56), 9))
        );
        assert_eq!(lenenc(&[0xfc, 1]), None);
        assert_eq!(lenenc(&[]), None);
    }
}
