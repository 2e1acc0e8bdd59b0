//! COM_QUERY: where the statement starts, after the query attributes that may stand before it.

use std::ops::Range;

use super::{Capabilities, Command, Malformed, Reader, value};

const PACKET: &str = "COM_QUERY";

/// Where the SQL text lies in a COM_QUERY payload (its command byte included).
///
/// # Errors
/// Another command, or, under [`Capabilities::QUERY_ATTRIBUTES`], attributes that do not have their shape.
pub fn query_text(payload: &[u8], caps: Capabilities) -> Result<Range<usize>, Malformed> {
    let mut r = Reader::new(PACKET, payload);
    if r.u8("command")? != Command::Query.code() {
        return Err(r.malformed("command", "is not 03"));
    }
    if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
        skip_attributes(&mut r)?;
    }
    Ok(r.position()..payload.len())
}

fn skip_attributes(r: &mut Reader<'_>) -> Result<(), Malformed> {
    let count = r.lenenc("parameter count")?;
    if r.lenenc("parameter set count")? != 1 {
        return Err(r.malformed("parameter set count", "is not 1"));
    }
    if count == 0 {
        return Ok(());
    }
    let count =
        usize::try_from(count).map_err(|_| r.malformed("parameter count", "is too large"))?;
    let nulls = r.bytes(count.div_ceil(8), "NULL bitmap")?;
    if r.u8("new parameters flag")? != 1 {
        return Err(r.malformed("new parameters flag", "is not 1"));
    }
    let mut types = r.clone();
    for _ in 0..count {
        r.u16("parameter type")?;
        r.lenenc_bytes("parameter name")?;
    }
    for index in 0..count {
        let [kind, _sign] = types.array("parameter type")?;
        types.lenenc_bytes("parameter name")?;
        if !is_null(nulls, index) {
            value::skip(r, kind)?;
        }
    }
    Ok(())
}

fn is_null(bitmap: &[u8], index: usize) -> bool {
    bitmap
        .get(index / 8)
        .is_some_and(|byte| byte & (1 << (index % 8)) != 0)
}
