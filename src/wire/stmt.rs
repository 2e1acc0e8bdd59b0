//! Prepared statements: the reply to a prepare, and the parts of an execute that a proxy reads or changes.

use std::ops::Range;

use super::{Capabilities, Command, Malformed, Reader};

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
        // 5.0 servers sent fewer fields.
        let warnings = if r.remaining() >= 3 {
            r.u8("filler")?;
            r.u16("warnings")?
        } else {
            0
        };
        Ok(Self {
            statement_id,
            columns,
            params,
            warnings,
            metadata: r.rest().first().copied(),
        })
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
    /// The flag that announces a parameter count under [`Capabilities::QUERY_ATTRIBUTES`].
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
        let counted = named && flags & Self::PARAMETER_COUNT_AVAILABLE != 0;
        let count = if counted {
            usize::try_from(r.lenenc("parameter count")?)
                .map_err(|_| r.malformed("parameter count", "is too large"))?
        } else {
            usize::from(n_params)
        };
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
        if r.u8("new parameters flag")? == 1 {
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
