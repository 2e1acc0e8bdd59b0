//! The parameters of an execution as values that a key can be compared with.

use std::ops::Range;

use crate::config::day_of;
use crate::shard::{self, Scalar};
use crate::wire::{Capabilities, Execute, Malformed, Reader};

/// Types of parameters, by the numbers of the protocol (manual page "Column Definition Flags and Types").
mod types {
    pub(super) const DECIMAL: u8 = 0;
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const VARCHAR: u8 = 15;
    pub(super) const BIT: u8 = 16;
    pub(super) const NEWDECIMAL: u8 = 246;
    pub(super) const JSON: u8 = 245;
    pub(super) const ENUM: u8 = 247;
    pub(super) const SET: u8 = 248;
    pub(super) const GEOMETRY: u8 = 255;
}

/// The values, in order; `None` where the packet cannot be read. `kinds` are the parameter types as the client sent them, with names
/// between if it sends names.
pub(super) fn values(
    payload: &[u8],
    execute: &Execute,
    kinds: &[u8],
    has_names: bool,
) -> Option<Vec<Scalar>> {
    let mut kinds = Reader::new("parameter types", kinds);
    let mut list = Vec::new();
    while kinds.remaining() > 0 {
        let kind = kinds.u16("type").ok()?;
        if has_names {
            kinds.lenenc_bytes("name").ok()?;
        }
        let [kind, flags] = kind.to_le_bytes();
        list.push((kind, flags & 0x80 != 0));
    }
    let nulls_at = execute.type_flag_at?.checked_sub(list.len().div_ceil(8))?;
    let mut values = Reader::new("parameters", payload.get(execute.values_at..)?);
    list.iter()
        .enumerate()
        .map(|(at, (kind, unsigned))| {
            let nulls = payload.get(nulls_at + at / 8)?;
            if nulls >> (at % 8) & 1 == 1 {
                return Some(Scalar::Null);
            }
            value(&mut values, *kind, *unsigned).ok()
        })
        .collect()
}

/// The value of this number alone; `None` where there is none that can be read.
pub(super) fn value_of(
    payload: &[u8],
    execute: &Execute,
    kinds: &[u8],
    has_names: bool,
    number: usize,
) -> Option<Scalar> {
    let mut types = Reader::new("parameter types", kinds);
    let mut count = kinds.len() / 2;
    if has_names {
        count = 0;
        while types.remaining() > 0 {
            types.u16("type").ok()?;
            types.lenenc_bytes("name").ok()?;
            count += 1;
        }
        types = Reader::new("parameter types", kinds);
    }
    let nulls_at = execute.type_flag_at?.checked_sub(count.div_ceil(8))?;
    let mut values = Reader::new("parameters", payload.get(execute.values_at..)?);
    for at in 0..=number.min(count) {
        let [kind, flags] = types.u16("type").ok()?.to_le_bytes();
        if has_names {
            types.lenenc_bytes("name").ok()?;
        }
        let is_null = payload.get(nulls_at + at / 8)? >> (at % 8) & 1 == 1;
        let value = match is_null {
            true => Scalar::Null,
            false => value(&mut values, kind, flags & 0x80 != 0).ok()?,
        };
        if at == number {
            return Some(value);
        }
    }
    None
}

/// Of a parameter's type, and of its value.
pub(super) type Place = (Range<usize>, Option<Range<usize>>);

/// Where the type of each parameter stands among the types, and its value in the packet (nothing for NULL); `None` where the packet
/// cannot be read.
pub(super) fn places(
    payload: &[u8],
    execute: &Execute,
    kinds: &[u8],
    has_names: bool,
) -> Option<Vec<Place>> {
    let mut types = Reader::new("parameter types", kinds);
    let mut list = Vec::new();
    while types.remaining() > 0 {
        let start = types.position();
        let [kind, flags] = types.u16("type").ok()?.to_le_bytes();
        if has_names {
            types.lenenc_bytes("name").ok()?;
        }
        list.push((start..types.position(), kind, flags & 0x80 != 0));
    }
    let nulls_at = execute.type_flag_at?.checked_sub(list.len().div_ceil(8))?;
    let mut values = Reader::new("parameters", payload.get(execute.values_at..)?);
    list.into_iter()
        .enumerate()
        .map(|(at, (place, kind, unsigned))| {
            let nulls = payload.get(nulls_at + at / 8)?;
            if nulls >> (at % 8) & 1 == 1 {
                return Some((place, None));
            }
            let start = execute.values_at + values.position();
            value(&mut values, kind, unsigned).ok()?;
            Some((place, Some(start..execute.values_at + values.position())))
        })
        .collect()
}

/// The first parameter of an execution, if it is a text. `kinds` are the types that the client sent last.
pub(super) fn first_text(
    payload: &[u8],
    params: u16,
    capabilities: Capabilities,
    kinds: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let execute = Execute::parse(payload, params, capabilities).ok()?;
    let kinds = match &execute.types {
        Some(range) => payload.get(range.clone())?,
        None => kinds?,
    };
    let has_names = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
    match values(payload, &execute, kinds, has_names)?.first()? {
        Scalar::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn value(r: &mut Reader<'_>, kind: u8, unsigned: bool) -> Result<Scalar, Malformed> {
    const NAME: &str = "value";
    let int = |signed: i128, plain: i128| Scalar::Int(if unsigned { plain } else { signed });
    Ok(match kind {
        types::TINY => {
            let n = r.u8(NAME)?;
            int(n.cast_signed().into(), n.into())
        }
        types::SHORT | types::YEAR => {
            let n = r.u16(NAME)?;
            int(n.cast_signed().into(), n.into())
        }
        types::LONG | types::INT24 => {
            let n = r.u32(NAME)?;
            int(n.cast_signed().into(), n.into())
        }
        types::LONGLONG => {
            let n = r.u64(NAME)?;
            int(n.cast_signed().into(), n.into())
        }
        types::FLOAT => Scalar::Float(f32::from_bits(r.u32(NAME)?).into()),
        types::DOUBLE => Scalar::Float(f64::from_bits(r.u64(NAME)?)),
        types::NULL => Scalar::Null,
        types::DATE | types::DATETIME | types::TIMESTAMP => {
            let length = usize::from(r.u8(NAME)?);
            date(r.bytes(length, NAME)?)
        }
        types::TIME => {
            let length = usize::from(r.u8(NAME)?);
            r.bytes(length, NAME)?;
            Scalar::Unknown
        }
        types::DECIMAL | types::NEWDECIMAL => {
            let text = r.lenenc_bytes(NAME)?;
            let number = std::str::from_utf8(text).ok().and_then(shard::number);
            number.unwrap_or(Scalar::Unknown)
        }
        types::BIT | types::JSON | types::ENUM | types::SET | types::GEOMETRY => {
            r.lenenc_bytes(NAME)?;
            Scalar::Unknown
        }
        // Texts and blobs.
        types::VARCHAR | 249..=254 => Scalar::Text(r.lenenc_bytes(NAME)?.to_vec()),
        _ => return Err(r.malformed(NAME, "is of a type that is not known")),
    })
}

/// Year, month and day, with or without a time of day and millionths of a second.
fn date(bytes: &[u8]) -> Scalar {
    let [y1, y2, month, day, time @ ..] = bytes else {
        return Scalar::Unknown;
    };
    let year = u16::from_le_bytes([*y1, *y2]);
    let has_time = time.iter().any(|part| *part != 0);
    // Where no fraction is kept it is rounded, perhaps into the next day.
    if time.starts_with(&[23, 59, 59]) && time.iter().skip(3).any(|part| *part != 0) {
        return Scalar::Unknown;
    }
    day_of(year.into(), (*month).into(), (*day).into())
        .map_or(Scalar::Unknown, |day| Scalar::Date(day, has_time))
}

/// The parameter types in a COM_STMT_BULK_EXECUTE, when it has them.
pub(super) fn bulk_types(payload: &[u8], params: u16) -> Option<&[u8]> {
    const SENDS_TYPES: u16 = 128;
    let flags = u16::from_le_bytes(payload.get(5..7)?.try_into().ok()?);
    let end = 7 + 2 * usize::from(params);
    (flags & SENDS_TYPES != 0)
        .then(|| payload.get(7..end))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: &[u8], nulls: u8, bytes: &[u8]) -> Option<Vec<Scalar>> {
        let mut payload = b"\x17\x01\0\0\0\0\x01\0\0\0".to_vec();
        payload.push(nulls);
        payload.push(1);
        payload.extend_from_slice(kinds);
        payload.extend_from_slice(bytes);
        let count = u16::try_from(kinds.len() / 2).unwrap();
        let execute = Execute::parse(&payload, count, Capabilities::NONE).unwrap();
        values(&payload, &execute, kinds, false)
    }

    #[test]
    fn the_first_if_it_is_a_text() {
        let payload = |kind: u8, value: &[u8]| {
            let mut payload = b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01".to_vec();
            payload.extend_from_slice(&[kind, 0]);
            payload.extend_from_slice(value);
            payload
        };
        let first = |payload: &[u8]| first_text(payload, 1, Capabilities::NONE, None);
        assert_eq!(first(&payload(253, b"\x01a")), Some(b"a".to_vec()));
        assert_eq!(first(&payload(1, b"\x01")), None);
        assert_eq!(first(&payload(253, b"\x05a")), None);
        assert_eq!(first(b"\x17"), None);
    }

    #[test]
    fn every_type() {
        let one =
            |kind: u8, flags: u8, bytes: &[u8]| of(&[kind, flags], 0, bytes).map(|v| v[0].clone());
        let day = day_of(2024, 1, 5).unwrap();
        for (kind, flags, bytes, wanted) in [
            (1, 0, &b"\xff"[..], Scalar::Int(-1)),
            (1, 0x80, b"\xff", Scalar::Int(255)),
            (2, 0, b"\xff\xff", Scalar::Int(-1)),
            (13, 0x80, b"\xe8\x07", Scalar::Int(2024)),
            (3, 0, b"\xfe\xff\xff\xff", Scalar::Int(-2)),
            (9, 0x80, b"\xfe\xff\xff\xff", Scalar::Int(0xffff_fffe)),
            (8, 0, b"\0\0\0\0\0\0\0\x80", Scalar::Int(i64::MIN.into())),
            (
                8,
                0x80,
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                Scalar::Int(u64::MAX.into()),
            ),
            (4, 0, b"\0\0\x40\x40", Scalar::Float(3.0)),
            (5, 0, b"\0\0\0\0\0\0\x08\x40", Scalar::Float(3.0)),
            (246, 0, b"\x05-3.50", Scalar::Between(-4)),
            (0, 0, b"\x013", Scalar::Int(3)),
            (253, 0, b"\x02-1", Scalar::Text(b"-1".to_vec())),
            (252, 0, b"\x02ab", Scalar::Text(b"ab".to_vec())),
            (15, 0, b"\0", Scalar::Text(Vec::new())),
            (10, 0, b"\x04\xe8\x07\x01\x05", Scalar::Date(day, false)),
            (
                12,
                0,
                b"\x07\xe8\x07\x01\x05\x0a\0\0",
                Scalar::Date(day, true),
            ),
            (
                12,
                0,
                b"\x07\xe8\x07\x01\x05\0\0\0",
                Scalar::Date(day, false),
            ),
            (
                7,
                0,
                b"\x0b\xe8\x07\x01\x05\0\0\0\x01\0\0\0",
                Scalar::Date(day, true),
            ),
            (
                12,
                0,
                b"\x0b\xe8\x07\x01\x05\x17\x3b\x3b\x01\0\0\0",
                Scalar::Unknown,
            ),
            (10, 0, b"\0", Scalar::Unknown),
            (11, 0, b"\x08\0\0\0\0\0\x01\x01\x01", Scalar::Unknown),
            (16, 0, b"\x01\x01", Scalar::Unknown),
            (6, 0, b"", Scalar::Null),
        ] {
            assert_eq!(
                one(kind, flags, bytes),
                Some(wanted),
                "type {kind} {bytes:?}"
            );
        }
        assert_eq!(one(8, 0, b"\0"), None);
        assert_eq!(one(200, 0, b"\0"), None);
        assert_eq!(
            of(&[8, 0, 253, 0, 1, 0], 0b001, b"\x01x\x05"),
            Some(vec![
                Scalar::Null,
                Scalar::Text(b"x".to_vec()),
                Scalar::Int(5)
            ])
        );
    }
}
