//! Prepared statements: the reply to a prepare, and the parts of an execute that a proxy reads or changes.

use std::ops::Range;

use super::query::attribute_count;
use super::{Capabilities, Command, Malformed, PacketWriter, Reader};

/// The first packet of the reply to COM_STMT_PREPARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOk {
    /// The statement's id on this connection.
    pub statement_id: u32,
    /// Columns of the result; 0 when there is none.
    pub columns: u16,
    /// Parameters.
    pub params: u16,
    /// Warnings of the prepare.
    pub warnings: u16,
    /// Whether definitions follow (1) or not (0); there with [`Capabilities::OPTIONAL_RESULTSET_METADATA`].
    pub metadata: Option<u8>,
}

impl PrepareOk {
    /// Reads the packet.
    ///
    /// # Errors
    /// Another first byte, or a field cut off.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("prepare OK", payload);
        if r.u8("status")? != 0 {
            return Err(r.malformed("status", "is not 00"));
        }
        let statement_id = r.u32("statement id")?;
        let columns = r.u16("columns")?;
        let params = r.u16("parameters")?;
        r.u8("filler")?;
        Ok(Self {
            statement_id,
            columns,
            params,
            warnings: r.u16("warnings")?,
            metadata: r.rest().first().copied(),
        })
    }

    /// Writes the packet; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(0);
        w.u32(self.statement_id);
        w.u16(self.columns);
        w.u16(self.params);
        w.u8(0);
        w.u16(self.warnings);
        if let Some(flag) = self.metadata {
            w.u8(flag);
        }
        w.finish()
    }
}

/// COM_STMT_EXECUTE as far as a proxy needs it; offsets count from the command byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The statement's id; MariaDB takes `ffffffff` for the last prepared.
    pub statement_id: u32,
    /// Cursor flags, and 8 for a parameter count.
    pub flags: u8,
    /// Always 1.
    pub iterations: u32,
    /// The parameter types: two bytes each, with a name behind each under [`Capabilities::QUERY_ATTRIBUTES`]. `None` when the
    /// client leaves them out because they are those of the last execute.
    pub types: Option<Range<usize>>,
    /// Where the byte lies that says whether types are there; `None` without parameters.
    pub type_flag_at: Option<usize>,
    /// Where the values start.
    pub values_at: usize,
}

impl Execute {
    /// The flag that announces a parameter count for a statement without parameters under [`Capabilities::QUERY_ATTRIBUTES`]; where
    /// the statement has parameters the count is there with or without it.
    pub const PARAMETER_COUNT_AVAILABLE: u8 = 8;

    /// Reads an execute of a statement that has `n_params` parameters, under the capabilities of the connection.
    ///
    /// # Errors
    /// Another command, or a field cut off.
    pub fn parse(payload: &[u8], n_params: u16, caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new("COM_STMT_EXECUTE", payload);
        if r.u8("command")? != Command::StmtExecute.code() {
            return Err(r.malformed("command", "is not 17"));
        }
        let statement_id = r.u32("statement id")?;
        let flags = r.u8("flags")?;
        let iterations = r.u32("iterations")?;
        let named = caps.contains(Capabilities::QUERY_ATTRIBUTES);
        let counted = named && (n_params > 0 || flags & Self::PARAMETER_COUNT_AVAILABLE != 0);
        let count = if counted {
            attribute_count(&mut r)?
        } else {
            n_params
        };
        let count = usize::from(count);
        let mut execute = Self {
            statement_id,
            flags,
            iterations,
            types: None,
            type_flag_at: None,
            values_at: r.position(),
        };
        if count == 0 {
            return Ok(execute);
        }
        r.bytes(count.div_ceil(8), "NULL bitmap")?;
        execute.type_flag_at = Some(r.position());
        if r.u8("new parameters flag")? != 0 {
            let start = r.position();
            for _ in 0..count {
                r.u16("parameter type")?;
                if named {
                    r.lenenc_bytes("parameter name")?;
                }
            }
            execute.types = Some(start..r.position());
        }
        execute.values_at = r.position();
        Ok(execute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::{hex, payload_of};

    const NONE: Capabilities = Capabilities::NONE;
    const ATTRIBUTES: Capabilities = Capabilities::QUERY_ATTRIBUTES;

    #[test]
    fn prepare_ok() {
        for (payload, metadata) in [
            ("00 01000000 0100 0100 00 0000", None),
            ("00 01000000 0100 0100 00 0000 01", Some(1)),
        ] {
            let ok = PrepareOk {
                statement_id: 1,
                columns: 1,
                params: 1,
                warnings: 0,
                metadata,
            };
            let payload = hex(payload);
            assert_eq!(PrepareOk::parse(&payload), Ok(ok));
            assert_eq!(payload_of(|out| ok.write(out, 1)), payload);
            for cut in 0..12 {
                assert!(PrepareOk::parse(&payload[..cut]).is_err());
            }
        }
        assert!(PrepareOk::parse(b"\xff\x28\x04#42000no").is_err());
    }

    #[test]
    fn execute() {
        let parsed = |types, type_flag_at, values_at| Execute {
            statement_id: 7,
            flags: 0,
            iterations: 1,
            types,
            type_flag_at,
            values_at,
        };
        let head = "17 07000000 00 01000000";
        for (rest, n_params, expected) in [
            ("", 0, parsed(None, None, 10)),
            (
                "00 01 0800 fd00 01000000 0161",
                2,
                parsed(Some(12..16), Some(11), 16),
            ),
            ("00 00 01000000 0161", 2, parsed(None, Some(11), 12)),
            (
                "0000 01 0800 0800 0800 0800 0800 0800 0800 0800 0800",
                9,
                parsed(Some(13..31), Some(12), 31),
            ),
        ] {
            let payload = hex(&format!("{head} {rest}"));
            assert_eq!(Execute::parse(&payload, n_params, NONE), Ok(expected));
        }
    }

    /// The count comes with every execute of a statement that has parameters, the flag is for those that have none (MySQL 9.7).
    #[test]
    fn execute_with_attributes() {
        for (payload, n_params, types, type_flag_at, values_at) in [
            ("17 01000000 00 01000000", 0, None, None, 10),
            ("17 01000000 08 01000000 00", 0, None, None, 11),
            (
                "17 01000000 08 01000000 01 00 01 fe00 0161 0178",
                0,
                Some(13..17),
                Some(12),
                17,
            ),
            (
                "17 01000000 00 01000000 01 00 01 0800 00 0100000000000000",
                1,
                Some(13..16),
                Some(12),
                16,
            ),
            (
                "17 01000000 08 01000000 02 00 01 0800 00 fe00 0161 0100000000000000 0178",
                1,
                Some(13..20),
                Some(12),
                20,
            ),
            (
                "17 01000000 08 01000000 01 00 00 0100000000000000",
                1,
                None,
                Some(12),
                13,
            ),
        ] {
            let execute = Execute::parse(&hex(payload), n_params, ATTRIBUTES).unwrap();
            assert_eq!(
                (execute.types, execute.type_flag_at, execute.values_at),
                (types, type_flag_at, values_at),
                "{payload}"
            );
        }
    }

    #[test]
    fn execute_cut_off() {
        let payload = hex("17 01000000 08 01000000 02 00 01 0800 00 fe00 0161");
        assert!(Execute::parse(&payload, 1, ATTRIBUTES).is_ok());
        for cut in 0..payload.len() {
            assert!(
                Execute::parse(&payload[..cut], 1, ATTRIBUTES).is_err(),
                "cut at {cut}"
            );
        }
        let error = Execute::parse(b"\x16SELECT 1", 0, NONE).unwrap_err();
        assert_eq!(error.field, "command");
    }
}
