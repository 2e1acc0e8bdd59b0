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

impl StateChange<'_> {
    /// The entry that tells of a schema, as a block of its own. Names of schemas have no more than 64 characters; of a longer one
    /// nothing is told.
    #[must_use]
    pub fn schema_entry(schema: &[u8]) -> Vec<u8> {
        match u8::try_from(schema.len()) {
            Ok(len @ ..250) => [&[1, len.saturating_add(1), len], schema].concat(),
            _ => Vec::new(),
        }
    }
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
            // The pages have a length in front of the character; both servers send the character only.
            2 => StateChange::StateChanged(data == b"1" || data == b"\x011"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(block: &[u8]) -> Vec<StateChange<'_>> {
        StateChanges::new(block).map(Result::unwrap).collect()
    }

    #[test]
    fn schemas_are_told_of_as_they_are_read() {
        for name in [&b"shop"[..], b"", &[b'x'; 249]] {
            let block = StateChange::schema_entry(name);
            assert_eq!(changes(&block), [StateChange::Schema(name)]);
        }
        assert!(StateChange::schema_entry(&[b'x'; 250]).is_empty());
    }

    /// SET NAMES latin1 on MariaDB: three entries, one variable each.
    #[test]
    fn one_entry_for_each_variable() {
        let block = b"\x00\x1f\x14character_set_client\x09latin1_xx\x00\x0f\x0aautocommit\x03OFF\x01\x07\x06sbtest";
        assert_eq!(
            changes(block),
            [
                StateChange::Variable {
                    name: b"character_set_client",
                    value: b"latin1_xx"
                },
                StateChange::Variable {
                    name: b"autocommit",
                    value: b"OFF"
                },
                StateChange::Schema(b"sbtest"),
            ]
        );
    }

    #[test]
    fn several_variables_in_one_entry() {
        let pair = |name, value| StateChange::Variable { name, value };
        assert_eq!(
            changes(b"\x00\x08\x01a\x01b\x01c\x01d\x02\x02\x011"),
            [
                pair(b"a", b"b"),
                pair(b"c", b"d"),
                StateChange::StateChanged(true)
            ]
        );
    }

    #[test]
    fn every_type() {
        for (block, change) in [
            (&b"\x01\x01\x00"[..], StateChange::Schema(b"")),
            (b"\x02\x02\x011", StateChange::StateChanged(true)),
            (b"\x02\x02\x010", StateChange::StateChanged(false)),
            (b"\x03\x08\x00\x06uuid:1", StateChange::Gtids(b"uuid:1")),
            (
                b"\x04\x07\x06START;",
                StateChange::Characteristics(b"START;"),
            ),
            (
                b"\x05\x09\x08T_R___S_",
                StateChange::TransactionState(b"T_R___S_"),
            ),
            (b"\x2a\x03xyz", StateChange::Other(42, b"xyz")),
        ] {
            assert_eq!(changes(block), [change]);
        }
    }

    #[test]
    fn an_error_ends_the_walk() {
        for block in [
            &b"\x01"[..],
            b"\x01\x05\x04abc",
            b"\x01\x03\x04abc\x01\x02\x01x",
            b"\x00\x02\x01a\x01\x02\x01x",
            b"\x03\x00\x01\x02\x01x",
            b"\x01\xfb",
        ] {
            let changes: Vec<_> = StateChanges::new(block).collect();
            assert!(matches!(changes[..], [Err(_)]), "{block:02x?}: {changes:?}");
        }
        assert_eq!(changes(b""), []);
    }
}
