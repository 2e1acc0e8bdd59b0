//! Session-state changes: the block that an OK packet carries under [`Capabilities::SESSION_TRACK`](super::Capabilities::SESSION_TRACK).

use super::{Malformed, Reader};

const PACKET: &str = "session state";

/// One change of session state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A system variable has this value now.
    Variable {
        /// The variable's name.
        name: &'a [u8],
        /// Its value as text.
        value: &'a [u8],
    },
    /// The current schema.
    Schema(&'a [u8]),
    /// Whether session state changed (`session_track_state_change`).
    StateChanged(bool),
    /// GTIDs of a transaction (MySQL), without the encoding byte.
    Gtids(&'a [u8]),
    /// Statements that start a transaction like the present one.
    Characteristics(&'a [u8]),
    /// The eight letters of the transaction's state, such as `T_R___S_`.
    TransactionState(&'a [u8]),
    /// A type not known here, and its data.
    Other(u8, &'a [u8]),
}

/// Walks the changes of a block. After an error it ends.
#[derive(Debug, Clone)]
pub struct StateChanges<'a> {
    block: Reader<'a>,
    /// What is left of an entry of variables: one pair by both servers' habit, but the format allows more.
    variables: Reader<'a>,
}

impl<'a> StateChanges<'a> {
    pub(super) fn new(block: &'a [u8]) -> Self {
        Self {
            block: Reader::new(PACKET, block),
            variables: Reader::new(PACKET, &[]),
        }
    }

    fn entry(&mut self) -> Result<StateChange<'a>, Malformed> {
        if self.variables.remaining() > 0 {
            return self.variable();
        }
        let kind = self.block.u8("type")?;
        let data = self.block.lenenc_bytes("data")?;
        let mut r = Reader::new(PACKET, data);
        Ok(match kind {
            0 => {
                self.variables = r;
                return self.variable();
            }
            1 => StateChange::Schema(r.lenenc_bytes("schema")?),
            2 => StateChange::StateChanged(r.lenenc_bytes("state change")? == b"1"),
            3 => {
                r.u8("GTID encoding")?;
                StateChange::Gtids(r.lenenc_bytes("GTIDs")?)
            }
            4 => StateChange::Characteristics(r.lenenc_bytes("characteristics")?),
            5 => StateChange::TransactionState(r.lenenc_bytes("transaction state")?),
            other => StateChange::Other(other, data),
        })
    }

    fn variable(&mut self) -> Result<StateChange<'a>, Malformed> {
        Ok(StateChange::Variable {
            name: self.variables.lenenc_bytes("variable name")?,
            value: self.variables.lenenc_bytes("variable value")?,
        })
    }
}

impl<'a> Iterator for StateChanges<'a> {
    type Item = Result<StateChange<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.block.remaining() == 0 && self.variables.remaining() == 0 {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.block.rest();
            self.variables.rest();
        }
        Some(entry)
    }
}
