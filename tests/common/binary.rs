//! The pieces of packets that tests write and read: length-encoded numbers, text rows, binary rows, parameters.

use ::atlas::wire::Capabilities;

/// A value for a parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Null,
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Sent before by COM_STMT_SEND_LONG_DATA: has a type, but no value here.
    Long,
}

impl From<i64> for Param {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Param {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl Param {
    pub fn type_code(&self) -> u8 {
        match self {
            Self::Null => 0x06,
            Self::Int(_) => 0x08,
            Self::Double(_) => 0x05,
            Self::Text(_) => 0xfd,
            Self::Bytes(_) | Self::Long => 0xfc,
        }
    }

    /// Appends the value as COM_STMT_EXECUTE carries it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null | Self::Long => {}
            Self::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Text(value) => put_bytes(out, value.as_bytes()),
            Self::Bytes(value) => put_bytes(out, value),
        }
    }
}

/// The payload of COM_STMT_EXECUTE. With `types` false the types of the execution before are used again.
pub(super) fn execute_payload(
    statement: u32,
    cursor: u8,
    params: &[Param],
    types: bool,
    caps: Capabilities,
) -> Vec<u8> {
    let attributes = caps.contains(Capabilities::QUERY_ATTRIBUTES);
    let mut out = vec![0x17];
    out.extend_from_slice(&statement.to_le_bytes());
    // 8: PARAMETER_COUNT_AVAILABLE.
    out.push(if attributes && !params.is_empty() {
        cursor | 8
    } else {
        cursor
    });
    out.extend_from_slice(&1u32.to_le_bytes());
    if params.is_empty() {
        return out;
    }
    if attributes {
        put_lenenc(&mut out, params.len() as u64);
    }
    let mut nulls = vec![0u8; params.len().div_ceil(8)];
    for (i, _) in params
        .iter()
        .enumerate()
        .filter(|(_, param)| **param == Param::Null)
    {
        nulls[i / 8] |= 1 << (i % 8);
    }
    out.extend_from_slice(&nulls);
    out.push(u8::from(types));
    if types {
        for param in params {
            out.extend_from_slice(&[param.type_code(), 0]);
            if attributes {
                // The parameter's name.
                out.push(0);
            }
        }
    }
    for param in params {
        param.write(&mut out);
    }
    out
}

pub(super) fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..0xfb => out.push(bytes[0]),
        0xfb..0x1_0000 => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..0x100_0000 => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A length-encoded number at `at`, which moves behind it. Panics where the packet is too short: a test wants to know.
pub(super) fn lenenc(bytes: &[u8], at: &mut usize) -> u64 {
    let first = bytes[*at];
    let width = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => panic!(
            "{first:#04x} is no length, at {at} of {}",
            bytes.escape_ascii()
        ),
        _ => {
            *at += 1;
            return u64::from(first);
        }
    };
    let mut value = [0; 8];
    value[..width].copy_from_slice(&bytes[*at + 1..*at + 1 + width]);
    *at += 1 + width;
    u64::from_le_bytes(value)
}

/// A length-encoded string at `at`, which moves behind it.
pub(super) fn lenenc_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> &'a [u8] {
    let len = usize::try_from(lenenc(bytes, at)).expect("fits");
    *at += len;
    &bytes[*at - len..*at]
}

/// The cells of a text row; None is NULL.
pub(super) fn split_row(row: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut cells = Vec::new();
    let mut at = 0;
    while at < row.len() {
        if row[at] == 0xfb {
            at += 1;
            cells.push(None);
        } else {
            cells.push(Some(lenenc_bytes(row, &mut at).to_vec()));
        }
    }
    cells
}

/// A text row of these cells.
pub(super) fn join_row(cells: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut row = Vec::new();
    for cell in cells {
        match cell {
            None => row.push(0xfb),
            Some(cell) => put_bytes(&mut row, cell),
        }
    }
    row
}

/// The type code of a column definition.
pub(super) fn column_type(definition: &[u8], caps: Capabilities) -> u8 {
    let mut at = 0;
    let names = if caps.contains(Capabilities::MARIADB_EXTENDED_METADATA) {
        7
    } else {
        6
    };
    for _ in 0..names {
        lenenc_bytes(definition, &mut at);
    }
    // The length of the fixed part, the character set, the width of the column.
    definition[at + 1 + 2 + 4]
}

/// The cells of a binary row, each with the bytes of its value (with the length in front where the type has one); None is NULL.
pub(super) fn split_binary_row(row: &[u8], types: &[u8]) -> Vec<Option<Vec<u8>>> {
    assert_eq!(row[0], 0, "a binary row starts with 00");
    let mut at = 1 + (types.len() + 2).div_ceil(8);
    let mut cells = Vec::new();
    for (i, type_code) in types.iter().enumerate() {
        // The first two bits of the map are not used.
        let bit = i + 2;
        if row[1 + bit / 8] & 1 << (bit % 8) != 0 {
            cells.push(None);
            continue;
        }
        let from = at;
        match type_code {
            0x01 => at += 1,
            0x02 | 0x0d => at += 2,
            0x03 | 0x04 | 0x09 => at += 4,
            0x05 | 0x08 => at += 8,
            // Dates and times have a one-byte length.
            0x07 | 0x0a | 0x0b | 0x0c => at += 1 + usize::from(row[at]),
            _ => {
                lenenc_bytes(row, &mut at);
            }
        }
        cells.push(Some(row[from..at].to_vec()));
    }
    assert_eq!(at, row.len(), "a binary row ends with its last cell");
    cells
}
