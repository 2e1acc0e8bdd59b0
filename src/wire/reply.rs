//! The three packets that end a reply or a part of it: OK, ERR, EOF. Session-state blocks inside OK are read in `state`.

use super::{Capabilities, Malformed, PacketWriter, Reader, StateChanges, Status};

const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;

/// An OK packet, also in the shape that ends a result set under [`Capabilities::DEPRECATE_EOF`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket<'a> {
    /// Rows changed.
    pub affected: u64,
    /// The first generated key.
    pub insert_id: u64,
    /// Status flags.
    pub status: Status,
    /// Warnings of the statement.
    pub warnings: u16,
    /// Text for humans, such as `Rows matched: 1`.
    pub info: &'a [u8],
    /// The session-state block; see [`OkPacket::changes`].
    pub state: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// Reads an OK packet with header 00 or fe under the capabilities of the connection.
    ///
    /// # Errors
    /// Another first byte, or a field cut off.
    pub fn parse(payload: &'a [u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new("OK", payload);
        if !matches!(r.u8("header")?, OK | EOF) {
            return Err(r.malformed("header", "is neither 00 nor fe"));
        }
        let mut ok = Self {
            affected: r.lenenc("affected rows")?,
            insert_id: r.lenenc("insert id")?,
            status: Status(r.u16("status")?),
            warnings: r.u16("warnings")?,
            ..Self::default()
        };
        // Both servers end the packet here when there is neither text nor state.
        if r.remaining() > 0 {
            ok.info = r.lenenc_bytes("info")?;
        }
        if caps.contains(Capabilities::SESSION_TRACK)
            && ok.status.contains(Status::SESSION_STATE_CHANGED)
            && r.remaining() > 0
        {
            ok.state = r.lenenc_bytes("session state")?;
        }
        Ok(ok)
    }

    /// The session-state changes that the packet reports, in order.
    #[must_use]
    pub fn changes(&self) -> StateChanges<'a> {
        StateChanges::new(self.state)
    }

    /// Writes the packet with header 00; gives the next sequence id. [`Status::SESSION_STATE_CHANGED`] and the block go together: both
    /// or neither, whatever the status says, and only to a client that asked for [`Capabilities::SESSION_TRACK`].
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        self.write_as(OK, out, seq, caps)
    }

    /// Writes the packet with header fe, as it ends a result set under [`Capabilities::DEPRECATE_EOF`].
    pub fn write_end(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        self.write_as(EOF, out, seq, caps)
    }

    fn write_as(&self, header: u8, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let with_state = caps.contains(Capabilities::SESSION_TRACK) && !self.state.is_empty();
        let status = if with_state {
            self.status | Status::SESSION_STATE_CHANGED
        } else {
            self.status.without(Status::SESSION_STATE_CHANGED)
        };
        let mut w = PacketWriter::begin(out, seq);
        w.u8(header);
        w.lenenc(self.affected);
        w.lenenc(self.insert_id);
        w.u16(status.0);
        w.u16(self.warnings);
        // The pages call the text the rest of the packet; both servers write its length, whatever the capabilities.
        if with_state || !self.info.is_empty() {
            w.lenenc_bytes(self.info);
        }
        if with_state {
            w.lenenc_bytes(self.state);
        }
        w.finish()
    }
}

/// An ERR packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The server's error number. [`ErrPacket::PROGRESS`] is not an error.
    pub code: u16,
    /// The SQL state; errors before the log-in may come without.
    pub sqlstate: Option<[u8; 5]>,
    /// The text, in the session's character set.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// The code of MariaDB's progress reports, which come before the reply proper
    /// under [`Capabilities::MARIADB_PROGRESS`].
    pub const PROGRESS: u16 = 0xffff;

    /// Reads an ERR packet; the mark `#` tells whether there is a SQL state.
    ///
    /// # Errors
    /// Another first byte, or no code.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("ERR", payload);
        if r.u8("header")? != ERR {
            return Err(r.malformed("header", "is not ff"));
        }
        let code = r.u16("code")?;
        let rest = r.rest();
        let (sqlstate, message) = match rest.split_first_chunk() {
            Some((&[b'#', a, b, c, d, e], message)) if code != Self::PROGRESS => {
                (Some([a, b, c, d, e]), message)
            }
            _ => (None, rest),
        };
        Ok(Self {
            code,
            sqlstate,
            message,
        })
    }

    /// Writes the packet; gives the next sequence id. The SQL state is left out when it is `None`, or the client is older than 4.1.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(ERR);
        w.u16(self.code);
        if caps.contains(Capabilities::PROTOCOL_41)
            && let Some(state) = self.sqlstate
        {
            w.u8(b'#');
            w.bytes(&state);
        }
        w.bytes(self.message);
        w.finish()
    }
}

/// An EOF packet, as it was before [`Capabilities::DEPRECATE_EOF`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EofPacket {
    /// Warnings of the statement.
    pub warnings: u16,
    /// Status flags.
    pub status: Status,
}

impl EofPacket {
    /// Reads an EOF packet.
    ///
    /// # Errors
    /// Another first byte, or a field cut off.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("EOF", payload);
        if r.u8("header")? != EOF {
            return Err(r.malformed("header", "is not fe"));
        }
        Ok(Self {
            warnings: r.u16("warnings")?,
            status: Status(r.u16("status")?),
        })
    }

    /// Writes the packet; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(EOF);
        w.u16(self.warnings);
        w.u16(self.status.0);
        w.finish()
    }

    /// Writes the end of rows: this packet, or an OK packet in its place where these capabilities do without; gives the next sequence id.
    pub fn write_end(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        if !caps.contains(Capabilities::DEPRECATE_EOF) {
            return self.write(out, seq);
        }
        let end = OkPacket {
            status: self.status,
            warnings: self.warnings,
            ..OkPacket::default()
        };
        end.write_end(out, seq, caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::StateChange;
    use crate::wire::tests::{hex, payload_of};

    const CAPS: Capabilities = Capabilities::PROTOCOL_41;
    const TRACK: Capabilities = CAPS.union(Capabilities::SESSION_TRACK);

    /// B160: as both servers send them, with and without SESSION_TRACK.
    #[test]
    fn ok() {
        let update = [
            &b"\x00\x01\x00\x22\x00\x00\x00\x28"[..],
            b"Rows matched: 2  Changed: 1  Warnings: 0",
        ]
        .concat();
        for caps in [CAPS, TRACK] {
            let ok = OkPacket::parse(&update, caps).unwrap();
            assert_eq!(
                ok,
                OkPacket {
                    affected: 1,
                    status: Status::AUTOCOMMIT | Status::NO_INDEX_USED,
                    info: b"Rows matched: 2  Changed: 1  Warnings: 0",
                    ..OkPacket::default()
                }
            );
            assert_eq!(payload_of(|out| ok.write(out, 1, caps)), update);

            let bare = hex("00 00 00 0200 0000");
            let ok = OkPacket::parse(&bare, caps).unwrap();
            assert_eq!(ok.status, Status::AUTOCOMMIT);
            assert_eq!(payload_of(|out| ok.write(out, 1, caps)), bare);
        }
    }

    #[test]
    fn ok_after_log_in_with_a_schema() {
        let payload = hex("00 00 00 0240 0000 00 09 01 07 06 736274657374");
        let ok = OkPacket::parse(&payload, TRACK).unwrap();
        let changes: Vec<_> = ok.changes().collect();
        assert_eq!(changes, [Ok(StateChange::Schema(b"sbtest"))]);
        assert_eq!(payload_of(|out| ok.write(out, 2, TRACK)), payload);
    }

    /// B176: the flag and the block go together, and only to clients that asked.
    #[test]
    fn the_state_flag_never_goes_without_its_block() {
        let changed = Status::AUTOCOMMIT | Status::SESSION_STATE_CHANGED;
        let with_block = OkPacket {
            status: Status::AUTOCOMMIT,
            state: b"\x01\x02\x01x",
            ..OkPacket::default()
        };
        assert_eq!(
            payload_of(|out| with_block.write(out, 1, TRACK)),
            hex("00 00 00 0240 0000 00 04 01020178")
        );
        assert_eq!(
            payload_of(|out| with_block.write(out, 1, CAPS)),
            hex("00 00 00 0200 0000")
        );
        let without_block = OkPacket {
            status: changed,
            ..OkPacket::default()
        };
        assert_eq!(
            payload_of(|out| without_block.write(out, 1, TRACK)),
            hex("00 00 00 0200 0000")
        );
    }

    #[test]
    fn ok_at_the_end_of_rows() {
        let payload = hex("fe 00 00 0200 0100");
        let ok = OkPacket::parse(&payload, TRACK).unwrap();
        assert_eq!((ok.status, ok.warnings), (Status::AUTOCOMMIT, 1));
        assert_eq!(payload_of(|out| ok.write_end(out, 9, TRACK)), payload);
    }

    /// B169: an OK of one byte, and one cut anywhere else.
    #[test]
    fn ok_cut_off() {
        let payload = hex("00 01 00 0240 0000 02 6869 04 01020178");
        assert!(OkPacket::parse(&payload, TRACK).is_ok());
        for cut in 0..payload.len() {
            // After the warnings and after the text an end is an end.
            let is_whole = cut == 7 || cut == 10;
            assert_eq!(
                OkPacket::parse(&payload[..cut], TRACK).is_ok(),
                is_whole,
                "cut at {cut}"
            );
        }
        assert_eq!(OkPacket::parse(b"\x01", TRACK).unwrap_err().field, "header");
    }

    #[test]
    fn err() {
        let denied = ErrPacket {
            code: 1045,
            sqlstate: Some(*b"28000"),
            message: b"Access denied",
        };
        let payload = b"\xff\x15\x04#28000Access denied";
        assert_eq!(ErrPacket::parse(payload), Ok(denied));
        assert_eq!(payload_of(|out| denied.write(out, 1, CAPS)), payload);
        assert_eq!(
            payload_of(|out| denied.write(out, 1, Capabilities::NONE)),
            b"\xff\x15\x04Access denied"
        );
    }

    /// B178: before the handshake there is no SQL state.
    #[test]
    fn err_without_state() {
        let payload = b"\xff\x10\x04Too many connections";
        let full = ErrPacket::parse(payload).unwrap();
        assert_eq!((full.code, full.sqlstate), (1040, None));
        assert_eq!(full.message, b"Too many connections");
        assert_eq!(payload_of(|out| full.write(out, 0, CAPS)), payload);
        let short = ErrPacket::parse(b"\xff\x10\x04#ab").unwrap();
        assert_eq!((short.sqlstate, short.message), (None, &b"#ab"[..]));
    }

    #[test]
    fn a_progress_report_has_no_state() {
        let report = ErrPacket::parse(b"\xff\xff\xff#abcdefgh").unwrap();
        assert_eq!(report.code, ErrPacket::PROGRESS);
        assert_eq!(report.sqlstate, None);
    }

    #[test]
    fn err_without_code() {
        for payload in [&b""[..], b"\xff", b"\xff\x10", b"\x00\x10\x04"] {
            assert!(ErrPacket::parse(payload).is_err());
        }
    }

    #[test]
    fn eof() {
        let eof = EofPacket {
            warnings: 1,
            status: Status::AUTOCOMMIT | Status::MORE_RESULTS,
        };
        let payload = hex("fe 0100 0a00");
        assert_eq!(EofPacket::parse(&payload), Ok(eof));
        assert_eq!(payload_of(|out| eof.write(out, 1)), payload);
        for payload in [&b""[..], b"\x00\0\0\0\0", b"\xfe", b"\xfe\0\0\0"] {
            assert!(EofPacket::parse(payload).is_err());
        }
    }
}
