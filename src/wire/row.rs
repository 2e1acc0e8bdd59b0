//! Rows: a view of text rows, and emission of rows whose values are all strings in both protocols.

use super::{Malformed, PacketWriter, Reader};

const NULL: u8 = 0xfb;

/// Walks the values of a text row, `None` for NULL. After an error it ends.
///
/// The caller knows by the first byte that the payload is a row: ff is ERR; fe is EOF, or the OK that ends the rows, when the packet is
/// shorter than a value of 16 MiB would be.
#[derive(Debug, Clone)]
pub struct TextRow<'a> {
    rest: Reader<'a>,
}

impl<'a> TextRow<'a> {
    /// Starts at the first column.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            rest: Reader::new("row", payload),
        }
    }
}

impl<'a> Iterator for TextRow<'a> {
    type Item = Result<Option<&'a [u8]>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.remaining() == 0 {
            return None;
        }
        if self.rest.skip_if(NULL) {
            return Some(Ok(None));
        }
        let value = self.rest.lenenc_bytes("value");
        if value.is_err() {
            self.rest.rest();
        }
        Some(value.map(Some))
    }
}

/// How values stand in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// As COM_QUERY answers.
    Text,
    /// As COM_STMT_EXECUTE answers.
    Binary,
}

impl RowFormat {
    /// Writes one row of strings, `None` for NULL; gives the next sequence id.
    pub fn write_row(self, out: &mut Vec<u8>, seq: u8, values: &[Option<&[u8]>]) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        match self {
            Self::Text => {
                for value in values {
                    match value {
                        Some(bytes) => w.lenenc_bytes(bytes),
                        None => w.u8(NULL),
                    }
                }
            }
            Self::Binary => {
                w.u8(0);
                write_null_bitmap(&mut w, values);
                for bytes in values.iter().flatten() {
                    w.lenenc_bytes(bytes);
                }
            }
        }
        w.finish()
    }
}

/// One bit for each column, set for NULL, after two bits that are not used.
fn write_null_bitmap(w: &mut PacketWriter<'_>, values: &[Option<&[u8]>]) {
    let mut bitmap = vec![0_u8; values.len().saturating_add(9) / 8];
    for (bit, value) in (2_usize..).zip(values) {
        if value.is_none()
            && let Some(byte) = bitmap.get_mut(bit / 8)
        {
            *byte |= 1 << (bit % 8);
        }
    }
    w.bytes(&bitmap);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::payload_of;

    #[test]
    fn text() {
        let long = [b'x'; 300];
        let values = [Some(&b"1"[..]), None, Some(b""), Some(&long)];
        let payload = payload_of(|out| RowFormat::Text.write_row(out, 3, &values));
        assert_eq!(payload[..6], *b"\x011\xfb\x00\xfc\x2c");
        let read: Result<Vec<_>, _> = TextRow::new(&payload).collect();
        assert_eq!(read.unwrap(), values);
    }

    #[test]
    fn text_cut_off() {
        for payload in [&b"\x011\x05ab"[..], b"\x011\xff", b"\x011\xfc\x01"] {
            let values: Vec<_> = TextRow::new(payload).collect();
            assert!(matches!(values[..], [Ok(Some(b"1")), Err(_)]), "{values:?}");
        }
    }

    /// The bitmap starts with two unused bits, and its bytes grow with every eight columns.
    #[test]
    fn binary() {
        let one = [Some(&b"ab"[..])];
        assert_eq!(
            payload_of(|out| RowFormat::Binary.write_row(out, 3, &one)),
            b"\x00\x00\x02ab"
        );
        for (columns, last_byte, bytes) in [
            (1, 0b100, 1),
            (6, 0b1000_0000, 1),
            (7, 0b1, 2),
            (14, 0b1000_0000, 2),
            (15, 1, 3),
        ] {
            let mut values = vec![Some(&b""[..]); columns];
            values[columns - 1] = None;
            let payload = payload_of(|out| RowFormat::Binary.write_row(out, 3, &values));
            assert_eq!(payload.len(), 1 + bytes + columns - 1);
            assert_eq!(payload[bytes], last_byte, "{columns} columns");
        }
    }
}
