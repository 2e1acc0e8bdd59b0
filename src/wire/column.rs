//! Result set heads: the column count packet and column definitions.

use super::{Capabilities, Malformed, PacketWriter, Reader};

/// The length of a definition's fixed fields, which stands before them.
const FIXED_LEN: u64 = 12;
/// utf8mb4_general_ci, which both servers know by this id.
const UTF8MB4: u16 = 45;
/// What both servers say of a VARCHAR of the greatest length. It limits nothing: values may be longer.
const TEXT_LENGTH: u32 = 65_535;
/// Decimals of a string.
const NO_FIXED_DECIMALS: u8 = 0x1f;
/// The collation of what is no text.
const BINARY: u16 = 63;
/// Digits of the longest number, with its sign.
const NUMBER_LENGTH: u32 = 21;
/// BINARY and NUM.
const NUMBER_FLAGS: u16 = 0x8080;

/// The first packet of a result set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnCount {
    /// Columns of each row, at least 1.
    pub columns: u64,
    /// Whether the column definitions follow.
    pub has_definitions: bool,
}

impl ColumnCount {
    /// Reads the packet. Under [`Capabilities::OPTIONAL_RESULTSET_METADATA`] (MySQL) and [`Capabilities::MARIADB_CACHE_METADATA`] a
    /// flag follows the count; MySQL's page has them the other way round, the server has not.
    ///
    /// # Errors
    /// Not a count: OK, ERR and LOCAL INFILE packets are the caller's to see first.
    pub fn parse(payload: &[u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new("column count", payload);
        let columns = r.lenenc("columns")?;
        if columns == 0 {
            return Err(r.malformed("columns", "is 0"));
        }
        let has_definitions = !has_metadata_flag(caps) || r.u8("metadata flag")? != 0;
        Ok(Self {
            columns,
            has_definitions,
        })
    }

    /// Writes the packet; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.lenenc(self.columns);
        if has_metadata_flag(caps) {
            w.u8(u8::from(self.has_definitions));
        }
        w.finish()
    }
}

fn has_metadata_flag(caps: Capabilities) -> bool {
    caps.contains(Capabilities::OPTIONAL_RESULTSET_METADATA)
        || caps.contains(Capabilities::MARIADB_CACHE_METADATA)
}

/// One column definition (Protocol::ColumnDefinition41).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnDef<'a> {
    /// Schema.
    pub schema: &'a [u8],
    /// Table, by its alias.
    pub table: &'a [u8],
    /// Table, by its own name.
    pub org_table: &'a [u8],
    /// Column, by its alias.
    pub name: &'a [u8],
    /// Column, by its own name.
    pub org_name: &'a [u8],
    /// MariaDB's extended type information, there with [`Capabilities::MARIADB_EXTENDED_METADATA`].
    pub extended: &'a [u8],
    /// Collation id.
    pub charset: u16,
    /// The longest value, in bytes.
    pub length: u32,
    /// Type of the values.
    pub kind: u8,
    /// Column flags.
    pub flags: u16,
    /// Digits after the point.
    pub decimals: u8,
}

impl<'a> ColumnDef<'a> {
    /// The type of variable-length strings.
    pub const VAR_STRING: u8 = 0xfd;
    /// The type of whole numbers of eight bytes.
    pub const LONGLONG: u8 = 0x08;

    /// A column of texts in utf8mb4.
    #[must_use]
    pub fn text(name: &'a [u8]) -> Self {
        Self {
            name,
            charset: UTF8MB4,
            length: TEXT_LENGTH,
            kind: Self::VAR_STRING,
            decimals: NO_FIXED_DECIMALS,
            ..Self::default()
        }
    }

    /// A column of whole numbers.
    #[must_use]
    pub fn number(name: &'a [u8]) -> Self {
        Self {
            name,
            charset: BINARY,
            length: NUMBER_LENGTH,
            kind: Self::LONGLONG,
            flags: NUMBER_FLAGS,
            ..Self::default()
        }
    }

    /// Reads a definition. The default value behind it in replies to COM_FIELD_LIST is left alone.
    ///
    /// # Errors
    /// A field cut off.
    pub fn parse(payload: &'a [u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new("column definition", payload);
        r.lenenc_bytes("catalog")?;
        let mut column = Self {
            schema: r.lenenc_bytes("schema")?,
            table: r.lenenc_bytes("table")?,
            org_table: r.lenenc_bytes("original table")?,
            name: r.lenenc_bytes("name")?,
            org_name: r.lenenc_bytes("original name")?,
            ..Self::default()
        };
        if caps.contains(Capabilities::MARIADB_EXTENDED_METADATA) {
            column.extended = r.lenenc_bytes("extended metadata")?;
        }
        if r.lenenc("length of fixed fields")? < FIXED_LEN {
            return Err(r.malformed("length of fixed fields", "is below 12"));
        }
        column.charset = r.u16("character set")?;
        column.length = r.u32("length")?;
        column.kind = r.u8("type")?;
        column.flags = r.u16("flags")?;
        column.decimals = r.u8("decimals")?;
        Ok(column)
    }

    /// Writes the definition; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.lenenc_bytes(b"def");
        w.lenenc_bytes(self.schema);
        w.lenenc_bytes(self.table);
        w.lenenc_bytes(self.org_table);
        w.lenenc_bytes(self.name);
        w.lenenc_bytes(self.org_name);
        if caps.contains(Capabilities::MARIADB_EXTENDED_METADATA) {
            w.lenenc_bytes(self.extended);
        }
        w.lenenc(FIXED_LEN);
        w.u16(self.charset);
        w.u32(self.length);
        w.u8(self.kind);
        w.u16(self.flags);
        w.u8(self.decimals);
        w.u16(0);
        w.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::{hex, payload_of};

    const MARIADB: Capabilities = Capabilities::MARIADB_CACHE_METADATA;
    const MYSQL: Capabilities = Capabilities::OPTIONAL_RESULTSET_METADATA;

    /// The count comes first, then the flag, on both servers.
    #[test]
    fn counts() {
        for (payload, caps, columns, has_definitions) in [
            (&b"\x02"[..], Capabilities::NONE, 2, true),
            (b"\x02\x01", MYSQL, 2, true),
            (b"\x02\x00", MYSQL, 2, false),
            (b"\x03\x01", MARIADB, 3, true),
            (b"\x01\x00", MARIADB, 1, false),
            (b"\xfc\x00\x10\x01", MYSQL, 4096, true),
        ] {
            let count = ColumnCount {
                columns,
                has_definitions,
            };
            assert_eq!(ColumnCount::parse(payload, caps), Ok(count));
            assert_eq!(payload_of(|out| count.write(out, 1, caps)), payload);
        }
    }

    /// B169: what is no count.
    #[test]
    fn no_counts() {
        for payload in [
            &b""[..],
            b"\x00",
            b"\xfb",
            b"\xff",
            b"\xfe\x00\x00\x00",
            b"\x02",
        ] {
            assert!(ColumnCount::parse(payload, MYSQL).is_err());
        }
    }

    /// `SELECT id FROM sbtest.hello h` in utf8mb4, by the servers' layout.
    #[test]
    fn definition() {
        let payload = hex(
            "03646566 06736274657374 0168 0568656c6c6f 026964 026964 0c 3f00 0b000000 03 0350 00 0000",
        );
        let column = ColumnDef {
            schema: b"sbtest",
            table: b"h",
            org_table: b"hello",
            name: b"id",
            org_name: b"id",
            extended: b"",
            charset: 63,
            length: 11,
            kind: 3,
            flags: 0x5003,
            decimals: 0,
        };
        assert_eq!(ColumnDef::parse(&payload, Capabilities::NONE), Ok(column));
        assert_eq!(
            payload_of(|out| column.write(out, 2, Capabilities::NONE)),
            payload
        );
        for cut in 0..payload.len() - 2 {
            assert!(
                ColumnDef::parse(&payload[..cut], Capabilities::NONE).is_err(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn extended_metadata_stands_before_the_fixed_fields() {
        let caps = Capabilities::MARIADB_EXTENDED_METADATA;
        for (block, extended) in [("0601046a736f6e", &b"\x01\x04json"[..]), ("00", b"")] {
            let payload = hex(&format!(
                "03646566 00 00 00 016a 00 {block} 0c 2d00 ffffffff fc 9000 00 0000"
            ));
            let column = ColumnDef::parse(&payload, caps).unwrap();
            assert_eq!((column.name, column.extended), (&b"j"[..], extended));
            assert_eq!(
                (column.charset, column.length, column.kind),
                (45, u32::MAX, 0xfc)
            );
            assert_eq!(payload_of(|out| column.write(out, 2, caps)), payload);
        }
    }

    #[test]
    fn fixed_fields_too_short() {
        let payload = hex("03646566 00 00 00 0161 00 0b 3f00 0b000000 03 0350 00 0000");
        let error = ColumnDef::parse(&payload, Capabilities::NONE).unwrap_err();
        assert_eq!(error.field, "length of fixed fields");
    }
}
