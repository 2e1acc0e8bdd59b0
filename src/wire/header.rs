//! The 4-byte packet header. What a payload means lives elsewhere.

/// Bytes of a packet header: three of length, one of sequence id.
pub const HEADER_LEN: usize = 4;

/// The largest payload of one packet. A payload of exactly this size is continued by the next packet, which may be empty.
pub const MAX_PAYLOAD: usize = 0xff_ff_ff;

/// A packet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Payload bytes after the header, at most [`MAX_PAYLOAD`].
    pub len: usize,
    /// Sequence id.
    pub seq: u8,
}

impl Header {
    /// The header at the start of `bytes`; `None` while fewer than [`HEADER_LEN`] bytes are there.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, seq] = bytes.first_chunk()?;
        let [a, b, c] = [a, b, c].map(usize::from);
        Some(Self {
            len: a | b << 8 | c << 16,
            seq,
        })
    }

    /// The header's bytes; only the low 24 bits of the length exist on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        debug_assert!(self.len <= MAX_PAYLOAD);
        let [a, b, c, ..] = self.len.to_le_bytes();
        [a, b, c, self.seq]
    }

    /// Whether the next packet continues this one's payload.
    #[must_use]
    pub fn is_continued(self) -> bool {
        self.len == MAX_PAYLOAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sequence() {
        for (bytes, len, seq) in [
            ([0, 0, 0, 0], 0, 0),
            ([1, 0, 0, 255], 1, 255),
            ([0x34, 0x12, 0, 7], 0x1234, 7),
            ([0xff, 0xff, 0xff, 1], MAX_PAYLOAD, 1),
        ] {
            let header = Header { len, seq };
            assert_eq!(Header::parse(&bytes), Some(header));
            assert_eq!(header.to_bytes(), bytes);
            assert_eq!(header.is_continued(), len == MAX_PAYLOAD);
        }
    }

    #[test]
    fn short_input_is_no_header() {
        assert_eq!(Header::parse(&[]), None);
        assert_eq!(Header::parse(&[1, 0, 0]), None);
    }
}
