//! COM_QUERY: where the statement starts, after the query attributes that may stand before it.
//!
//! The server runs what it takes for the statement, so the extents here are those that MySQL computes (the only server that has query
//! attributes). Where MySQL goes on with a length that is not there, or is no length at all, the packet is refused instead.

use std::ops::Range;

use super::{Capabilities, Command, Malformed, Reader};

/// Where the SQL text lies in a COM_QUERY payload (its command byte included).
///
/// # Errors
/// Another command, or, under [`Capabilities::QUERY_ATTRIBUTES`], attributes that do not have their shape: MySQL answers 1835.
#[inline]
pub fn query_text(payload: &[u8], caps: Capabilities) -> Result<Range<usize>, Malformed> {
    // As nearly all clients say it: without attributes, or with none.
    match (payload, caps.contains(Capabilities::QUERY_ATTRIBUTES)) {
        ([0x03, ..], false) => Ok(1..payload.len()),
        ([0x03, 0, 1, ..], true) => Ok(3..payload.len()),
        _ => text_behind_attributes(payload, caps),
    }
}

#[cold]
fn text_behind_attributes(payload: &[u8], caps: Capabilities) -> Result<Range<usize>, Malformed> {
    let mut r = Reader::new("COM_QUERY", payload);
    if r.u8("command")? != Command::Query.code() {
        return Err(r.malformed("command", "is not 03"));
    }
    if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
        skip_attributes(&mut r)?;
    }
    Ok(r.position()..payload.len())
}

/// The number of parameters and attributes, which the server limits to 65535.
pub(super) fn attribute_count(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    let count = r.lenenc("parameter count")?;
    u16::try_from(count).map_err(|_| r.malformed("parameter count", "is above 65535"))
}

fn skip_attributes(r: &mut Reader<'_>) -> Result<(), Malformed> {
    let count = usize::from(attribute_count(r)?);
    if r.lenenc("parameter set count")? != 1 {
        return Err(r.malformed("parameter set count", "is not 1"));
    }
    if count == 0 {
        return Ok(());
    }
    let nulls = r.bytes(count.div_ceil(8), "NULL bitmap")?;
    if r.u8("new parameters flag")? == 0 {
        return Err(r.malformed("new parameters flag", "is 0"));
    }
    let mut types = r.clone();
    for _ in 0..count {
        r.u16("parameter type")?;
        r.lenenc_bytes("parameter name")?;
    }
    for index in 0..count {
        let kind = types.u16("parameter type")?;
        types.lenenc_bytes("parameter name")?;
        let is_null = nulls
            .get(index / 8)
            .is_some_and(|byte| byte & (1 << (index % 8)) != 0);
        if !is_null {
            skip_value(r, kind)?;
        }
    }
    Ok(())
}

/// Skips one value of the binary protocol by its type; the type's highest bit means unsigned.
fn skip_value(r: &mut Reader<'_>, kind: u16) -> Result<(), Malformed> {
    const FIELD: &str = "parameter value";
    let len = match kind & 0x7fff {
        // TINY
        0x01 => 1,
        // SHORT
        0x02 => 2,
        // LONG, FLOAT
        0x03 | 0x04 => 4,
        // DOUBLE, LONGLONG
        0x05 | 0x08 => 8,
        // BOOL
        0xf4 => return Err(r.malformed("parameter type", "is BOOL")),
        // Strings; dates and times, whose length byte reads the same; and whatever else, as the server has it.
        _ => return r.lenenc_bytes(FIELD).map(|_| ()),
    };
    r.bytes(len, FIELD).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Capabilities = Capabilities::QUERY_ATTRIBUTES;

    fn text(payload: &[u8], caps: Capabilities) -> Result<&[u8], Malformed> {
        query_text(payload, caps).map(|range| &payload[range])
    }

    #[test]
    fn without_attributes() {
        assert_eq!(
            text(b"\x03SELECT 1", Capabilities::NONE),
            Ok(&b"SELECT 1"[..])
        );
        assert_eq!(text(b"\x03", Capabilities::NONE), Ok(&b""[..]));
        assert_eq!(text(b"\x03\x00\x01SELECT 1", CAPS), Ok(&b"SELECT 1"[..]));
        assert_eq!(text(b"\x03\x00\x01", CAPS), Ok(&b""[..]));
    }

    #[test]
    fn every_kind_of_value() {
        for (kind, value) in [
            (0x01, &b"\x07"[..]),
            (0x02, b"\x07\x00"),
            (0x03, b"\x07\x00\x00\x00"),
            (0x04, b"\x00\x00\x80\x3f"),
            (0x05, b"\x00\x00\x00\x00\x00\x00\xf0\x3f"),
            (0x08, b"\x07\x00\x00\x00\x00\x00\x00\x00"),
            (0x07, b"\x00"),
            (0x0c, b"\x0b\xda\x07\x0a\x11\x13\x1b\x1e\x01\x00\x00\x00"),
            (0x0b, b"\x08\x01\x78\x00\x00\x00\x13\x1b\x1e"),
            (0x0a, b"\x04\xda\x07\x0a\x11"),
            (0xfe, b"\x03abc"),
            (0xfd, b"\xfc\x03\x00abc"),
            (0x00, b"\x041.50"),
        ] {
            for unsigned in [0x00, 0x80] {
                let payload = [
                    &b"\x03\x02\x01\x02\x01"[..],
                    &[kind, unsigned],
                    b"\x01n",
                    &[kind, unsigned],
                    b"\x00",
                    value,
                    b"DO 1",
                ]
                .concat();
                assert_eq!(text(&payload, CAPS), Ok(&b"DO 1"[..]), "type {kind:02x}");
            }
        }
    }

    #[test]
    fn nulls_have_no_value() {
        let mut payload = b"\x03\x09\x01\xff\x00\x01".to_vec();
        payload.extend(b"\xfe\x00\x00".repeat(9));
        payload.extend(b"\x02abDO 1");
        assert_eq!(text(&payload, CAPS), Ok(&b"DO 1"[..]));
    }

    #[test]
    fn refused() {
        for (payload, field) in [
            (&b""[..], "command"),
            (b"\x16SELECT 1", "command"),
            (b"\x03", "parameter count"),
            (b"\x03\x00", "parameter set count"),
            (b"\x03\x00\x02SELECT 1", "parameter set count"),
            (b"\x03\xfb\x01SELECT 1", "parameter count"),
            (b"\x03\xfd\x00\x00\x01\x01", "parameter count"),
            (b"\x03\xfc\xff\xff\x01\x00", "NULL bitmap"),
            (b"\x03\x01\x01\x00\x00DO 1", "new parameters flag"),
            (
                b"\x03\x01\x01\x00\x01\xf4\x00\x00\x01DO 1",
                "parameter type",
            ),
            (b"\x03\x01\x01\x00\x01\xfe\x00\x09x", "parameter name"),
            (b"\x03\x01\x01\x00\x01\xfe\x00\x00\x09x", "parameter value"),
            (b"\x03\x01\x01\x00\x01\x08\x00\x00DO 1", "parameter value"),
        ] {
            assert_eq!(
                text(payload, CAPS).unwrap_err().field,
                field,
                "{payload:02x?}"
            );
        }
    }
}
