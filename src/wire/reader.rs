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

    /// Skips the next byte if it is `byte`.
    pub fn skip_if(&mut self, byte: u8) -> bool {
        match self.rest {
            &[first, ref rest @ ..] if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
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

    /// Like [`Reader::nul_or_rest`], but at least one byte must be there, were it the NUL.
    pub fn nul_or_nonempty_rest(&mut self, field: &'static str) -> Result<&'a [u8], Malformed> {
        if self.rest.is_empty() {
            return Err(self.malformed(field, "is missing"));
        }
        Ok(self.nul_or_rest())
    }

    /// A length-encoded integer and that many bytes.
    pub fn lenenc_bytes(&mut self, field: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc(field)?;
        let len = usize::try_from(len).map_err(|_| self.malformed(field, CUT_OFF))?;
        self.bytes(len, field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let mut r = Reader::new(
            "test",
            &[1, 2, 1, 3, 2, 1, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1],
        );
        assert_eq!(r.u8("a"), Ok(1));
        assert_eq!(r.u16("b"), Ok(0x0102));
        assert_eq!(r.u24("c"), Ok(0x01_0203));
        assert_eq!(r.position(), 6);
        assert_eq!(r.u32("d"), Ok(0x0102_0304));
        assert_eq!(r.u64("e"), Ok(0x0102_0304_0506_0708));
        assert_eq!(r.remaining(), 0);
        assert_eq!(
            r.u8("f"),
            Err(Malformed {
                packet: "test",
                field: "f",
                why: "is cut off"
            })
        );
    }

    #[test]
    fn length_encoded() {
        for (bytes, value) in [
            (&b"\x00"[..], Some(0)),
            (b"\xfa", Some(250)),
            (b"\xfb", None),
            (b"\xfc\xfb\x00", Some(251)),
            (b"\xfc\x01\x00", Some(1)),
            (b"\xfd\x00\x00\x01", Some(0x01_0000)),
            (b"\xfe\x00\x00\x00\x01\x00\x00\x00\x00", Some(0x0100_0000)),
            (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff", Some(u64::MAX)),
            (b"\xff\x00\x00", None),
            (b"\xfc\x01", None),
            (b"\xfd\x01\x02", None),
            (b"\xfe\x01\x02\x03\x04\x05\x06\x07", None),
            (b"", None),
        ] {
            assert_eq!(
                Reader::new("test", bytes).lenenc("n").ok(),
                value,
                "{bytes:02x?}"
            );
        }
    }

    #[test]
    fn strings() {
        let mut r = Reader::new("test", b"ab\0\x02cd\0rest");
        assert_eq!(r.nul("a"), Ok(&b"ab"[..]));
        assert_eq!(r.lenenc_bytes("b"), Ok(&b"cd"[..]));
        assert_eq!(r.nul_or_nonempty_rest("c"), Ok(&b""[..]));
        assert_eq!(
            r.clone().nul("d").unwrap_err().why,
            "has no final zero byte"
        );
        assert_eq!(r.clone().bytes(5, "d").unwrap_err().why, "is cut off");
        assert_eq!(r.nul_or_rest(), b"rest");
        assert_eq!(r.nul_or_rest(), b"");
        assert_eq!(r.nul_or_nonempty_rest("e").unwrap_err().why, "is missing");
    }

    #[test]
    fn a_length_beyond_the_address_space_is_cut_off() {
        let mut r = Reader::new("test", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffx");
        assert_eq!(
            r.lenenc_bytes("a").unwrap_err().to_string(),
            "malformed test: a is cut off"
        );
    }
}
