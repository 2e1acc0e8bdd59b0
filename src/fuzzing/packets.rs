//! What the bytes are that leave a session.

use crate::wire::Header;

/// The payloads of packets that begin a command.
pub(super) fn commands(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some(header) = Header::parse(bytes) {
        let (packet, rest) = bytes.split_at((4 + header.len).min(bytes.len()));
        if header.seq == 0 {
            all.push(&packet[4..]);
        }
        bytes = rest;
    }
    all
}

/// What Atlas says of its own accord is packets.
pub(super) fn packets_are_whole(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let header = Header::parse(bytes).expect("a header");
        bytes = bytes.get(4 + header.len..).expect("a whole packet");
    }
}
