//! What the tests of this room share, and the tests that look at more than one packet.

use super::{HEADER_LEN, Header};

mod login;
mod properties;
mod proxy;

/// Bytes from hexadecimal digits; spaces are for the eye.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The payload of the one packet that `write` appends; checks its header and the next sequence id.
pub(super) fn payload_of(write: impl FnOnce(&mut Vec<u8>) -> u8) -> Vec<u8> {
    let mut out = Vec::new();
    let next = write(&mut out);
    let header = Header::parse(&out).unwrap();
    let payload = out.split_off(HEADER_LEN);
    assert_eq!(header.len, payload.len());
    assert_eq!(header.seq.wrapping_add(1), next);
    payload
}
