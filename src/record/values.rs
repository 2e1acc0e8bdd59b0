//! Executions of prepared statements as texts: each `?` is replaced by the value of its parameter, written as a literal. Where a value
//! cannot be told (the packet is not there as a whole, or was sent as long data) all of them stay.
//!
//! Types are those of the manual page "COM_STMT_EXECUTE"; the numbers are those of "Column Definition Flags and Types".

use std::io::Write;

use super::Said;
use crate::sql::{self, Dialect, Tok, Tokens};
use crate::wire::{Capabilities, Execute, Malformed, Reader};

/// The text, with values if it is of an execution.
pub(super) fn filled(said: &Said, dialect: &Dialect) -> Vec<u8> {
    match said {
        Said::Text { text, .. } => text.clone(),
        Said::Execution { text, .. } => fill(said, dialect).unwrap_or_else(|| text.clone()),
    }
}

pub(super) fn fill(said: &Said, dialect: &Dialect) -> Option<Vec<u8>> {
    let Said::Execution {
        text,
        packet,
        params,
        types,
        capabilities,
        ..
    } = said
    else {
        return None;
    };
    if *params == 0 {
        return Some(text.clone());
    }
    let execute = Execute::parse(packet, *params, *capabilities).ok()?;
    let types = match &execute.types {
        Some(range) => packet.get(range.clone())?,
        None => types.as_deref()?,
    };
    let has_names = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
    let mut literals = literals(packet, &execute, types, has_names, dialect)?.into_iter();
    let mut filled = Vec::with_capacity(text.len() * 2);
    let mut at = 0;
    for token in Tokens::new(text, dialect) {
        if token.tok == Tok::Other && text.get(token.start..token.end) == Some(b"?") {
            filled.extend_from_slice(text.get(at..token.start)?);
            match literals.next() {
                Some(literal) => filled.extend_from_slice(&literal),
                None => filled.push(b'?'),
            }
            at = token.end;
        }
    }
    filled.extend_from_slice(text.get(at..)?);
    Some(filled)
}

fn literals(
    packet: &[u8],
    execute: &Execute,
    types: &[u8],
    has_names: bool,
    dialect: &Dialect,
) -> Option<Vec<Vec<u8>>> {
    let mut types = Reader::new("parameter types", types);
    let mut kinds = Vec::new();
    while types.remaining() > 0 {
        let [kind, flags] = types.u16("type").ok()?.to_le_bytes();
        if has_names {
            types.lenenc_bytes("name").ok()?;
        }
        kinds.push((kind, flags & 0x80 != 0));
    }
    let nulls_at = execute.type_flag_at?.checked_sub(kinds.len().div_ceil(8))?;
    let mut values = Reader::new("parameters", packet.get(execute.values_at..)?);
    let literals = kinds.iter().enumerate().map(|(at, (kind, unsigned))| {
        let nulls = packet.get(nulls_at + at / 8)?;
        if nulls >> (at % 8) & 1 == 1 {
            return Some(b"NULL".to_vec());
        }
        let mut literal = Vec::new();
        push(&mut literal, &mut values, *kind, *unsigned, dialect).ok()?;
        Some(literal)
    });
    let literals: Option<Vec<_>> = literals.collect();
    // A value that was sent as long data is not in the packet, and what follows was read in its place.
    literals.filter(|_| values.remaining() == 0)
}

fn push(
    out: &mut Vec<u8>,
    r: &mut Reader<'_>,
    kind: u8,
    unsigned: bool,
    dialect: &Dialect,
) -> Result<(), Malformed> {
    const NAME: &str = "value";
    // Writing into a vector does not fail.
    let _ = match (kind, unsigned) {
        (1, true) => write!(out, "{}", r.u8(NAME)?),
        (1, false) => write!(out, "{}", r.u8(NAME)?.cast_signed()),
        (2 | 13, true) => write!(out, "{}", r.u16(NAME)?),
        (2 | 13, false) => write!(out, "{}", r.u16(NAME)?.cast_signed()),
        (3 | 9, true) => write!(out, "{}", r.u32(NAME)?),
        (3 | 9, false) => write!(out, "{}", r.u32(NAME)?.cast_signed()),
        (8, true) => write!(out, "{}", r.u64(NAME)?),
        (8, false) => write!(out, "{}", r.u64(NAME)?.cast_signed()),
        (4, _) => write!(out, "{:e}", f32::from_bits(r.u32(NAME)?)),
        (5, _) => write!(out, "{:e}", f64::from_bits(r.u64(NAME)?)),
        (6, _) => write!(out, "NULL"),
        (7 | 10 | 12, _) => {
            let length = usize::from(r.u8(NAME)?);
            date(out, r.bytes(length, NAME)?, kind == 10)
        }
        (11, _) => {
            let length = usize::from(r.u8(NAME)?);
            time(out, r.bytes(length, NAME)?)
        }
        (0 | 246, _) => {
            let text = r.lenenc_bytes(NAME)?;
            let is_number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+');
            if !text.is_empty() && text.iter().all(is_number) {
                out.extend_from_slice(text);
            } else {
                sql::push_string(out, text, dialect);
            }
            Ok(())
        }
        (15 | 16 | 245 | 247..=255, _) => {
            let bytes = r.lenenc_bytes(NAME)?;
            let is_blob = matches!(kind, 16 | 249..=252 | 255);
            if is_blob && std::str::from_utf8(bytes).is_err() || bytes.contains(&0) {
                out.extend_from_slice(b"x'");
                for byte in bytes {
                    let _ = write!(out, "{byte:02x}");
                }
                out.push(b'\'');
            } else {
                sql::push_string(out, bytes, dialect);
            }
            Ok(())
        }
        _ => return Err(r.malformed(NAME, "is of a type that is not known")),
    };
    Ok(())
}

/// Year, month, day, and perhaps a time of day and millionths of a second.
fn date(out: &mut Vec<u8>, bytes: &[u8], is_day: bool) -> std::io::Result<()> {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([part(0), part(1)]);
    write!(out, "'{year:04}-{:02}-{:02}", part(2), part(3))?;
    if !is_day || bytes.len() > 4 {
        write!(out, " {:02}:{:02}:{:02}", part(4), part(5), part(6))?;
    }
    micros(out, bytes.get(7..11))?;
    out.write_all(b"'")
}

/// A sign, days, hours, minutes, seconds, and perhaps millionths.
fn time(out: &mut Vec<u8>, bytes: &[u8]) -> std::io::Result<()> {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let sign = if part(0) == 1 { "-" } else { "" };
    let days = u32::from_le_bytes([part(1), part(2), part(3), part(4)]);
    let hours = u64::from(days) * 24 + u64::from(part(5));
    write!(out, "'{sign}{hours:02}:{:02}:{:02}", part(6), part(7))?;
    micros(out, bytes.get(8..12))?;
    out.write_all(b"'")
}

fn micros(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> std::io::Result<()> {
    match bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) {
        Some(bytes) => write!(out, ".{:06}", u32::from_le_bytes(bytes)),
        None => Ok(()),
    }
}
