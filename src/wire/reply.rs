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
            ..Self::default()
        };
        if caps.contains(Capabilities::PROTOCOL_41) {
            ok.status = Status(r.u16("status")?);
            ok.warnings = r.u16("warnings")?;
        } else if caps.contains(Capabilities::TRANSACTIONS) {
            ok.status = Status(r.u16("status")?);
        }
        if !caps.contains(Capabilities::SESSION_TRACK) {
            ok.info = r.rest();
            return Ok(ok);
        }
        // Both servers end the packet after the warnings when there is neither text nor state.
        if r.remaining() > 0 {
            ok.info = r.lenenc_bytes("info")?;
            if ok.status.contains(Status::SESSION_STATE_CHANGED) && r.remaining() > 0 {
                ok.state = r.lenenc_bytes("session state")?;
            }
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
        let tracks = caps.contains(Capabilities::SESSION_TRACK);
        let with_state = tracks && !self.state.is_empty();
        let status = if with_state {
            self.status | Status::SESSION_STATE_CHANGED
        } else {
            self.status.without(Status::SESSION_STATE_CHANGED)
        };
        let mut w = PacketWriter::begin(out, seq);
        w.u8(header);
        w.lenenc(self.affected);
        w.lenenc(self.insert_id);
        if caps.contains(Capabilities::PROTOCOL_41) {
            w.u16(status.0);
            w.u16(self.warnings);
        } else if caps.contains(Capabilities::TRANSACTIONS) {
            w.u16(status.0);
        }
        if !tracks {
            w.bytes(self.info);
        } else if with_state || !self.info.is_empty() {
            w.lenenc_bytes(self.info);
            if with_state {
                w.lenenc_bytes(self.state);
            }
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
    /// Reads an EOF packet; the lone byte fe is the shape from before 4.1.
    ///
    /// # Errors
    /// Another first byte, or a field cut off.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("EOF", payload);
        if r.u8("header")? != EOF {
            return Err(r.malformed("header", "is not fe"));
        }
        if r.remaining() == 0 {
            return Ok(Self::default());
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
}
