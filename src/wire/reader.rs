//! A checked cursor over one payload, and the error that names what was wrong.

/// A payload that does not have the shape of its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {packet}: {field} {why}")]
pub struct Malformed {
    /// The packet being read.
    pub packet: &'static str,
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

const CUT_OFF: &str = "is cut off";

/// Reads fields from a payload, front to back. After an error the position is not defined.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    packet: &'static str,
    whole: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`; `packet` is the name that errors carry.
    #[must_use]
    pub fn new(packet: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            packet,
            whole: bytes.len(),
            rest: bytes,
        }
    }

    /// An error about `field` of this packet.
    #[must_use]
    pub fn malformed(&self, field: &'static str, why: &'static str) -> Malformed {
        Malformed {
            packet: self.packet,
            field,
            why,
        }
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Bytes read so far, which is the offset of the next field in the payload.
    #[must_use]
    pub fn position(&self) -> usize {
        self.whole.saturating_sub(self.rest.len())
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array(field).map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Three bytes, little-endian.
    pub fn u24(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field)
            .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// A length-encoded integer. The NULL mark of text rows (fb) and the error mark (ff) are not numbers.
    pub fn lenenc(&mut self, field: &'static str) -> Result<u64, Malformed> {
        match self.u8(field)? {
            0xfb => Err(self.malformed(field, "is NULL")),
            0xfc => self.u16(field).map(u64::from),
            0xfd => self.u24(field).map(u64::from),
            0xfe => self.u64(field),
            0xff => Err(self.malformed(field, "is not a length-encoded integer")),
            small => Ok(u64::from(small)),
        }
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or_else(|| self.malformed(field, CUT_OFF))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// `N` bytes.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.malformed(field, CUT_OFF))?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// The bytes before the next NUL, which is skipped and must be there.
    pub fn nul(&mut self, field: &'static str) -> Result<&'a [u8], Malformed> {
        let end = memchr::memchr(0, self.rest)
            .ok_or_else(|| self.malformed(field, "has no final zero byte"))?;
        let bytes = self.bytes(end, field)?;
        self.u8(field)?;
        Ok(bytes)
    }

    /// The bytes before the next NUL, or before the end of the payload when there is none: servers put a zero byte behind
    /// what they received, and so accept a last string without its own.
    pub fn nul_or_rest(&mut self) -> &'a [u8] {
        match memchr::memchr(0, self.rest).and_then(|end| self.rest.split_at_checked(end)) {
            Some((bytes, rest)) => {
                self.rest = rest.get(1..).unwrap_or_default();
                bytes
            }
            None => self.rest(),
        }
    }

    /// A length-encoded integer and that many bytes.
    pub fn lenenc_bytes(&mut self, field: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc(field)?;
        let len = usize::try_from(len).map_err(|_| self.malformed(field, CUT_OFF))?;
        self.bytes(len, field)
    }
}
