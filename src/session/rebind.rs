//! Executions of prepared statements with some of the client's parameters only: a part of a write has those of its own rows.
//!
//! The values go as the client sent them, whatever their type is.

use std::ops::Range;

use super::params::places;
use crate::shard::Given;
use crate::wire::{Command, Execute, PacketWriter};

/// The type of an id: BIGINT UNSIGNED.
const ID: [u8; 2] = [8, 0x80];

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

    /// Those of a statement without parameters.
    pub(super) fn none(flags: u8, has_names: bool) -> Self {
        Self {
            payload: Box::default(),
            kinds: Box::default(),
            entries: Vec::new(),
            flags,
            params: 0,
            has_names,
        }
    }

    /// Writes an execution of the statement with this number of the server's, with these parameters (with all of the client's if none are
    /// named), and no cursor; gives their types.
    pub(super) fn write(&self, out: &mut Vec<u8>, id: u32, some: Option<&[Given]>) -> Vec<u8> {
        let all: Vec<Given>;
        let chosen = match some {
            Some(some) => some,
            None => {
                all = (0..self.params).map(Given::Client).collect();
                &all
            }
        };
        let attributes = self.entries.get(self.params..).unwrap_or_default();
        let count = chosen.len() + attributes.len();
        let mut kinds = Vec::new();
        let mut nulls = vec![0_u8; count.div_ceil(8)];
        let mut values = Vec::new();
        let given = chosen.iter().map(|given| match given {
            Given::Client(number) => Err(self.entries.get(*number)),
            Given::Id(id) => Ok(*id),
        });
        let given = given.chain(attributes.iter().map(|entry| Err(Some(entry))));
        for (at, given) in given.enumerate() {
            let is_null = match given {
                Ok(id) => {
                    kinds.extend_from_slice(&ID);
                    if self.has_names {
                        kinds.push(0);
                    }
                    values.extend_from_slice(&id.to_le_bytes());
                    false
                }
                Err(Some(entry)) => {
                    kinds.extend_from_slice(self.kinds.get(entry.kind.clone()).unwrap_or_default());
                    let value = self.payload.get(entry.value.clone());
                    values.extend_from_slice(value.unwrap_or_default());
                    entry.is_null
                }
                Err(None) => true,
            };
            if let Some(byte) = nulls.get_mut(at / 8) {
                *byte |= u8::from(is_null) << (at % 8);
            }
        }
        let mut w = PacketWriter::begin(out, 0);
        w.u8(Command::StmtExecute.code());
        w.u32(id);
        let counted = Execute::PARAMETER_COUNT_AVAILABLE;
        w.u8(self.flags & counted);
        w.u32(1);
        if self.has_names && (!chosen.is_empty() || self.flags & counted != 0) {
            w.lenenc(count as u64);
        }
        if count > 0 {
            w.bytes(&nulls);
            w.u8(1);
            w.bytes(&kinds);
            w.bytes(&values);
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
        let some = some.map(|some| some.iter().copied().map(Given::Client).collect::<Vec<_>>());
        values.write(&mut out, 9, some.as_deref());
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
        assert_eq!(
            values.write(&mut out, 9, Some(&[Given::Client(0)])),
            b"\x03\0"
        );
    }

    #[test]
    fn an_id_among_them() {
        let values = values(PLAIN, 3, Capabilities::NONE).unwrap();
        let mut out = Vec::new();
        let kinds = values.write(&mut out, 9, Some(&[Given::Id(258), Given::Client(2)]));
        assert_eq!(kinds, b"\x08\x80\xfd\0");
        assert!(out.ends_with(b"\0\x01\x08\x80\xfd\0\x02\x01\0\0\0\0\0\0\x02ab"));
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
