//! Executions of prepared statements with some of the client's parameters only: a part of a write has those of its own rows.
//!
//! The values go as the client sent them, whatever their type is.

use std::ops::Range;

use super::params::places;
use crate::wire::{Command, Execute, PacketWriter};

/// One parameter, or a query attribute behind them.
#[derive(Debug)]
struct Entry {
    /// Its type, and its name where the client sends names.
    kind: Range<usize>,
    is_null: bool,
    /// Nothing for NULL.
    value: Range<usize>,
}

/// The parameters of an execution, to be sent again in other numbers.
#[derive(Debug)]
pub(super) struct Values {
    payload: Box<[u8]>,
    kinds: Box<[u8]>,
    entries: Vec<Entry>,
    flags: u8,
    /// Of the statement; what is behind them are query attributes.
    params: usize,
    has_names: bool,
}

impl Values {
    /// Those of an execution of a statement with this many parameters. `kinds` are their types as the client sent them. Nothing where
    /// the packet cannot be read.
    pub(super) fn new(
        payload: &[u8],
        execute: &Execute,
        kinds: &[u8],
        params: u16,
        has_names: bool,
    ) -> Option<Self> {
        let places = places(payload, execute, kinds, has_names)?;
        let entries = places
            .into_iter()
            .map(|(kind, value)| Entry {
                kind,
                is_null: value.is_none(),
                value: value.unwrap_or_default(),
            })
            .collect();
        Some(Self {
            payload: payload.into(),
            kinds: kinds.into(),
            entries,
            flags: execute.flags,
            params: params.into(),
            has_names,
        })
    }

    /// Writes an execution of the statement with this number of the server's, with the parameters of these numbers (with all if none are
    /// named), and no cursor; gives their types.
    pub(super) fn write(&self, out: &mut Vec<u8>, id: u32, some: Option<&[usize]>) -> Vec<u8> {
        let all: Vec<usize>;
        let chosen = match some {
            Some(some) => some,
            None => {
                all = (0..self.params).collect();
                &all
            }
        };
        let attributes = self.entries.get(self.params..).unwrap_or_default().iter();
        let entries: Vec<&Entry> = chosen
            .iter()
            .filter_map(|number| self.entries.get(*number))
            .chain(attributes)
            .collect();
        let mut kinds = Vec::new();
        for entry in &entries {
            kinds.extend_from_slice(self.kinds.get(entry.kind.clone()).unwrap_or_default());
        }
        let mut w = PacketWriter::begin(out, 0);
        w.u8(Command::StmtExecute.code());
        w.u32(id);
        let counted = Execute::PARAMETER_COUNT_AVAILABLE;
        let is_counted = self.has_names && (!chosen.is_empty() || self.flags & counted != 0);
        w.u8(self.flags & counted);
        w.u32(1);
        if is_counted {
            w.lenenc(entries.len() as u64);
        }
        if !entries.is_empty() {
            let mut nulls = vec![0_u8; entries.len().div_ceil(8)];
            for (at, entry) in entries.iter().enumerate() {
                if let Some(byte) = nulls.get_mut(at / 8) {
                    *byte |= u8::from(entry.is_null) << (at % 8);
                }
            }
            w.bytes(&nulls);
            w.u8(1);
            w.bytes(&kinds);
            for entry in &entries {
                w.bytes(self.payload.get(entry.value.clone()).unwrap_or_default());
            }
        }
        w.finish();
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Capabilities, Packets};

    /// Three parameters: a number, NULL, a text.
    const PLAIN: &[u8] = b"\x17\x07\0\0\0\x01\x01\0\0\0\x02\x01\x03\0\x06\0\xfd\0\x05\0\0\0\x02ab";

    fn values(payload: &[u8], params: u16, capabilities: Capabilities) -> Option<Values> {
        let execute = Execute::parse(payload, params, capabilities).ok()?;
        let kinds = payload.get(execute.types.clone()?)?;
        let has_names = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
        Values::new(payload, &execute, kinds, params, has_names)
    }

    fn written(values: &Values, some: Option<&[usize]>) -> Vec<u8> {
        let mut out = Vec::new();
        values.write(&mut out, 9, some);
        Packets::new(&out)
            .flat_map(|(_, payload)| payload.to_vec())
            .collect()
    }

    #[test]
    fn some_of_the_parameters() {
        let values = values(PLAIN, 3, Capabilities::NONE).unwrap();
        for (some, wanted) in [
            (
                None,
                &b"\x17\x09\0\0\0\0\x01\0\0\0\x02\x01\x03\0\x06\0\xfd\0\x05\0\0\0\x02ab"[..],
            ),
            (
                Some(&[2, 1][..]),
                b"\x17\x09\0\0\0\0\x01\0\0\0\x02\x01\xfd\0\x06\0\x02ab",
            ),
            (
                Some(&[0]),
                b"\x17\x09\0\0\0\0\x01\0\0\0\0\x01\x03\0\x05\0\0\0",
            ),
            (Some(&[]), b"\x17\x09\0\0\0\0\x01\0\0\0"),
        ] {
            assert_eq!(written(&values, some), wanted, "{some:?}");
        }
        let mut out = Vec::new();
        assert_eq!(values.write(&mut out, 9, Some(&[0])), b"\x03\0");
    }

    #[test]
    fn query_attributes_stay() {
        let payload: &[u8] =
            b"\x17\x07\0\0\0\x08\x01\0\0\0\x03\0\x01\x03\0\0\x01\0\0\xfd\0\x01q\x05\0\0\0\x07\x01z";
        let values = values(payload, 2, Capabilities::QUERY_ATTRIBUTES).unwrap();
        assert_eq!(
            written(&values, Some(&[1])),
            b"\x17\x09\0\0\0\x08\x01\0\0\0\x02\0\x01\x01\0\0\xfd\0\x01q\x07\x01z"
        );
        assert_eq!(
            written(&values, Some(&[])),
            b"\x17\x09\0\0\0\x08\x01\0\0\0\x01\0\x01\xfd\0\x01q\x01z"
        );
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        for cut in 20..PLAIN.len() {
            assert!(
                values(&PLAIN[..cut], 3, Capabilities::NONE).is_none(),
                "{cut}"
            );
        }
    }
}
