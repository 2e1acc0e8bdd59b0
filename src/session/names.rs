//! What a prepared statement is called on either side, and the server's errors that name one.

use crate::wire::{ErrPacket, Header};

/// What a statement is called on either side of Atlas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    /// The number that the client sent.
    pub(super) sent: u32,
    /// The number that went to the server.
    pub(super) server: u32,
}

impl Names {
    /// The payload of the server's ERR packet at the front of the bytes with the client's number in its text; `None` when
    /// it is no error that names a statement.
    pub(super) fn error_for_client(self, bytes: &[u8]) -> Option<Vec<u8>> {
        // Unknown statement, no open cursor.
        const NAMING: [u16; 2] = [1243, 1421];
        let header = Header::parse(bytes)?;
        let payload = bytes.get(4..4 + header.len)?;
        let error = ErrPacket::parse(payload).ok()?;
        if !NAMING.contains(&error.code) {
            return None;
        }
        let number = format!("({})", self.server);
        let at = payload
            .windows(number.len())
            .position(|window| window == number.as_bytes())?;
        let mut renamed = payload.get(..at)?.to_vec();
        renamed.extend_from_slice(format!("({})", self.sent).as_bytes());
        renamed.extend_from_slice(payload.get(at + number.len()..)?);
        Some(renamed)
    }
}
