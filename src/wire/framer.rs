//! Cuts bytes into packets.

use super::{HEADER_LEN, Header};

/// Walks the whole packets at the front of some bytes: header and payload, continuations each for itself.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been walked: at the end, the packet that is not all there yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = (Header, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = Header::parse(self.rest)?;
        let (_, body) = self.rest.split_at_checked(HEADER_LEN)?;
        let (payload, rest) = body.split_at_checked(header.len)?;
        self.rest = rest;
        Some((header, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_packets_and_a_rest() {
        let bytes = b"\x01\0\0\x00a\0\0\0\x01\x02\0\0\x02bc\x03\0\0\x03de";
        let mut packets = Packets::new(bytes);
        let walked: Vec<_> = packets
            .by_ref()
            .map(|(header, payload)| (header.seq, payload))
            .collect();
        assert_eq!(walked, [(0, &b"a"[..]), (1, b""), (2, b"bc")]);
        assert_eq!(packets.rest(), b"\x03\0\0\x03de");
        assert_eq!(packets.next(), None);
    }
}
