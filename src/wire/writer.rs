//! Appends packets to a buffer: fields, the length put in afterwards, and continuation of payloads of 16 MiB and more.

use super::{HEADER_LEN, Header, MAX_PAYLOAD};

/// Frames one logical payload, with continuation packets when it is [`MAX_PAYLOAD`] or longer. Gives the next sequence id.
pub fn write_payload(out: &mut Vec<u8>, mut seq: u8, payload: &[u8]) -> u8 {
    let mut rest = payload;
    loop {
        let (chunk, after) = rest.split_at_checked(MAX_PAYLOAD).unwrap_or((rest, &[]));
        let header = Header {
            len: chunk.len(),
            seq,
        };
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(chunk);
        seq = seq.wrapping_add(1);
        if !header.is_continued() {
            return seq;
        }
        rest = after;
    }
}

/// Writes one logical payload field by field. Nothing is valid in the buffer until [`PacketWriter::finish`].
#[derive(Debug)]
#[must_use = "finish() writes the header"]
pub struct PacketWriter<'a> {
    out: &'a mut Vec<u8>,
    seq: u8,
    body_at: usize,
}

impl<'a> PacketWriter<'a> {
    /// Starts a packet at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>, seq: u8) -> Self {
        out.extend_from_slice(&[0; HEADER_LEN]);
        let body_at = out.len();
        Self { out, seq, body_at }
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// The low three bytes, little-endian.
    pub fn u24(&mut self, value: u32) {
        let [a, b, c, _] = value.to_le_bytes();
        self.bytes(&[a, b, c]);
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// A length-encoded integer in its shortest form.
    pub fn lenenc(&mut self, value: u64) {
        let [a, b, c, ..] = value.to_le_bytes();
        match value {
            0..=0xfa => self.u8(a),
            0xfb..=0xff_ff => self.bytes(&[0xfc, a, b]),
            0x1_00_00..=0xff_ff_ff => self.bytes(&[0xfd, a, b, c]),
            _ => {
                self.u8(0xfe);
                self.u64(value);
            }
        }
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Bytes and a NUL. A NUL inside would end the string early, so what follows one is left out.
    pub fn nul_bytes(&mut self, bytes: &[u8]) {
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        self.bytes(bytes.get(..end).unwrap_or(bytes));
        self.u8(0);
    }

    /// The length of `bytes`, length-encoded, and the bytes.
    pub fn lenenc_bytes(&mut self, bytes: &[u8]) {
        self.lenenc(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Writes the header, and splits the payload when it is [`MAX_PAYLOAD`] or longer. Gives the next sequence id.
    pub fn finish(self) -> u8 {
        let Self { out, seq, body_at } = self;
        let len = out.len().saturating_sub(body_at);
        let header_at = body_at.saturating_sub(HEADER_LEN);
        if len < MAX_PAYLOAD {
            if let Some(header) = out.get_mut(header_at..body_at) {
                header.copy_from_slice(&Header { len, seq }.to_bytes());
            }
            return seq.wrapping_add(1);
        }
        let body = out.split_off(body_at);
        out.truncate(header_at);
        write_payload(out, seq, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Packets;

    /// B151 and B152: lengths around 16 MiB - 1, with an empty packet behind an exact multiple; ids go on and wrap.
    #[test]
    fn continuation() {
        for (len, lens) in [
            (0, &[0][..]),
            (1, &[1]),
            (MAX_PAYLOAD - 1, &[MAX_PAYLOAD - 1]),
            (MAX_PAYLOAD, &[MAX_PAYLOAD, 0]),
            (MAX_PAYLOAD + 1, &[MAX_PAYLOAD, 1]),
            (2 * MAX_PAYLOAD, &[MAX_PAYLOAD, MAX_PAYLOAD, 0]),
            (2 * MAX_PAYLOAD + 1, &[MAX_PAYLOAD, MAX_PAYLOAD, 1]),
        ] {
            let payload = vec![b'x'; len];
            let mut framed = vec![9];
            let next = write_payload(&mut framed, 254, &payload);

            let mut written = vec![9];
            let mut w = PacketWriter::begin(&mut written, 254);
            w.bytes(&payload);
            assert_eq!(w.finish(), next);
            assert!(written == framed, "both ways give the same bytes for {len}");

            let mut packets = Packets::new(&framed[1..]);
            let headers: Vec<Header> = packets.by_ref().map(|(header, _)| header).collect();
            assert_eq!(packets.rest(), b"");
            let expected: Vec<Header> = lens
                .iter()
                .zip([254, 255, 0])
                .map(|(&len, seq)| Header { len, seq })
                .collect();
            assert_eq!(headers, expected);
            assert_eq!(next, headers.last().unwrap().seq.wrapping_add(1));
        }
    }

    #[test]
    fn fields() {
        let mut out = Vec::new();
        let mut w = PacketWriter::begin(&mut out, 3);
        w.u8(1);
        w.u16(0x0102);
        w.u24(0x01_0203);
        w.u32(0x0102_0304);
        w.u64(0x0102_0304_0506_0708);
        w.nul_bytes(b"ab");
        w.nul_bytes(b"c\0d");
        w.lenenc_bytes(b"ef");
        assert_eq!(w.finish(), 4);
        assert_eq!(
            out,
            b"\x1a\0\0\x03\x01\x02\x01\x03\x02\x01\x04\x03\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01ab\0c\0\x02ef"
        );
    }

    #[test]
    fn shortest_length_encoding() {
        for (value, bytes) in [
            (0, &b"\x00"[..]),
            (250, b"\xfa"),
            (251, b"\xfc\xfb\x00"),
            (0xffff, b"\xfc\xff\xff"),
            (0x01_0000, b"\xfd\x00\x00\x01"),
            (0xff_ffff, b"\xfd\xff\xff\xff"),
            (0x0100_0000, b"\xfe\x00\x00\x00\x01\x00\x00\x00\x00"),
            (u64::MAX, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
        ] {
            let mut out = Vec::new();
            let mut w = PacketWriter::begin(&mut out, 0);
            w.lenenc(value);
            w.finish();
            assert_eq!(&out[HEADER_LEN..], bytes);
        }
    }
}
