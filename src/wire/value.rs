//! Values of the binary protocol, as far as their extent: parameters of statements and query attributes.

use super::{Malformed, Reader};

/// Skips one binary value of the given type (the low byte of a parameter's type).
///
/// # Errors
/// A type that no server accepts as a parameter, or a value cut off.
pub(super) fn skip(r: &mut Reader<'_>, kind: u8) -> Result<(), Malformed> {
    const FIELD: &str = "parameter value";
    let len = match kind {
        // NULL
        0x06 => 0,
        // TINY, BOOL
        0x01 | 0xf4 => 1,
        // SHORT, YEAR
        0x02 | 0x0d => 2,
        // LONG, FLOAT, INT24
        0x03 | 0x04 | 0x09 => 4,
        // DOUBLE, LONGLONG
        0x05 | 0x08 => 8,
        // TIMESTAMP, DATE, TIME, DATETIME: a length byte and that many bytes
        0x07 | 0x0a..=0x0c => usize::from(r.u8(FIELD)?),
        // DECIMAL, VARCHAR, BIT, VECTOR, JSON, NEWDECIMAL, ENUM, SET, blobs, strings, GEOMETRY
        0x00 | 0x0f | 0x10 | 0xf2 | 0xf5..=0xff => {
            return r.lenenc_bytes(FIELD).map(|_| ());
        }
        _ => return Err(r.malformed("parameter type", "is not known")),
    };
    r.bytes(len, FIELD).map(|_| ())
}
