//! The short way of a statement that comes again and is about the rows of one key of one table, which one parameter gives: which shard
//! that is, and what the statement is there, without planning.
//!
//! What else such a statement says can only take rows away, so the key's shard is the one to ask. What is done with its text for a
//! shard hangs on nothing but the shard, and is found once, by the plan of the first statement that is for it.
//!
//! Not here: finding the parameters, which is `shapes`' and the session's.

use std::ops::Range;
use std::sync::Arc;

use super::compare::Comparison;
use super::cond::{Cond, Operand};
use super::dress::{Dress, Shows};
use super::key::{INT_MAX, INT_MIN, Key, Scalar};
use super::map::{Placement, Table};
use super::plan::{Asked, Leg};
use super::shape::{Act, Rows, Shape};
use super::splice;
use crate::config::KeyType;

/// See the module's words.
#[derive(Debug)]
pub struct Point {
    table: usize,
    param: usize,
    /// The key is stored, not compared.
    is_stored: bool,
    /// What is known of each shard.
    shards: Vec<Option<There>>,
}

/// A statement on a shard.
#[derive(Debug)]
pub struct There {
    /// The number of the group that has it.
    pub group: usize,
    /// The client's names; nothing where no name is another than the client's.
    pub dress: Option<Arc<Dress>>,
    /// What comes in which place of the text, in order.
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl Point {
    /// Nothing for a statement that is not of this kind.
    #[must_use]
    pub fn new(placement: &Placement, shape: &Shape) -> Option<Self> {
        let [named] = shape.refs.as_slice() else {
            return None;
        };
        let is_odd = shape.fill.is_some()
            || shape.listed.is_some()
            || shape.is_lax
            || shape.asks_schema
            || shape.names_unsharded
            || shape.asks_names();
        if is_odd {
            return None;
        }
        let (param, is_stored) = match (shape.act, &shape.rows) {
            (Act::Read | Act::Change, None) => {
                let mut chosen = shape
                    .facts
                    .iter()
                    .filter(|fact| fact.of.contains(&(0, false)));
                (chosen.find_map(|fact| key_of(&fact.cond))?, false)
            }
            (Act::Insert, Some(Rows::Values(rows))) => match rows.as_slice() {
                [Operand::Param(number)] => (*number, true),
                _ => return None,
            },
            _ => return None,
        };
        let table = placement.tables.get(named.table)?;
        Some(Self {
            table: named.table,
            param,
            is_stored,
            shards: table.shards.iter().map(|_| None).collect(),
        })
    }

    /// The number of the parameter that is the key.
    #[must_use]
    pub fn param(&self) -> usize {
        self.param
    }

    /// The key is stored, and not compared.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// The shard where the rows of a key lie; nothing where that is not so plain.
    #[must_use]
    pub fn shard(&self, placement: &Placement, value: &Scalar) -> Option<usize> {
        let table = placement.tables.get(self.table)?;
        table.shard_of(&self.key(table, value)?)
    }

    fn key(&self, table: &Table, value: &Scalar) -> Option<Key> {
        match (table.key_type, value) {
            (KeyType::Int, Scalar::Int(number)) => {
                let is_key = (INT_MIN..=INT_MAX).contains(number);
                is_key.then_some(Key::Int(*number))
            }
            _ if self.is_stored => Key::stored(value, table.key_type).ok(),
            (key_type, _) => {
                let keys = Comparison::Equal.truth(key_type, value).yes;
                match (key_type, keys.spans(), keys.texts()) {
                    (KeyType::String, _, Some([text])) => Some(Key::Text(text.clone())),
                    (KeyType::Date, Some([(day, to)]), _) if day == to => {
                        i32::try_from(*day).ok().map(Key::Date)
                    }
                    (KeyType::Int, Some([(number, to)]), _) if number == to => {
                        Some(Key::Int(*number))
                    }
                    _ => None,
                }
            }
        }
    }

    /// What is known of a shard.
    #[must_use]
    pub fn there(&self, shard: usize) -> Option<&There> {
        self.shards.get(shard)?.as_ref()
    }

    /// Whether this leg is what the shard is sent of a text: where no row can be, a plan leads anywhere.
    #[must_use]
    pub fn is_of(&self, shard: usize, leg: &Leg, text: &[u8]) -> bool {
        let there = self.there(shard);
        there.is_some_and(|there| there.is_it(leg, text))
    }

    /// Notes what a shard is sent, if that is what was planned.
    pub fn note(
        &mut self,
        placement: &Arc<Placement>,
        shape: &Shape,
        (shard, leg): (usize, &Leg),
        asked: Asked<'_>,
    ) {
        let table = placement.tables.get(self.table);
        let Some(group) = table.and_then(|table| Some(table.shards.get(shard)?.group)) else {
            return;
        };
        let chosen = (&[shard][..], group);
        let (Ok(edits), Some(place)) = (
            splice::edits(placement, shape, chosen, &[], asked),
            self.shards.get_mut(shard),
        ) else {
            return;
        };
        let there = There {
            group,
            dress: Dress::new(placement, leg).map(Arc::new),
            edits: edits.into_iter().map(|(at, new, _)| (at, new)).collect(),
        };
        if there.is_it(leg, asked.text) {
            *place = Some(there);
        }
    }

    /// Moves the places of what was noted of a shard.
    pub(super) fn move_places(&mut self, shard: usize, to: impl Fn(usize) -> usize) {
        let there = self.shards.get_mut(shard).and_then(Option::as_mut);
        for (place, _) in there.into_iter().flat_map(|there| &mut there.edits) {
            *place = to(place.start)..to(place.end);
        }
    }
}

impl There {
    /// What the shard is sent of a text, in which places have moved to where `moved` says, asked in order. `room` is for its text.
    pub(super) fn leg(&self, text: &[u8], moved: impl FnMut(usize) -> usize, room: Vec<u8>) -> Leg {
        Leg {
            group: self.group,
            text: self.text(text, moved, room),
            renamed: Vec::new(),
            shows: Shows::Data,
            rows: Vec::new(),
            params: None,
            put: Vec::new(),
            dress: self.dress.clone(),
        }
    }

    fn is_it(&self, leg: &Leg, text: &[u8]) -> bool {
        self.group == leg.group && self.text(text, |place| place, Vec::new()) == leg.text
    }

    /// Nothing when it is the client's own.
    fn text(
        &self,
        text: &[u8],
        mut moved: impl FnMut(usize) -> usize,
        mut out: Vec<u8>,
    ) -> Option<Vec<u8>> {
        if self.edits.is_empty() {
            return None;
        }
        out.clear();
        let mut at = 0;
        for (place, new) in &self.edits {
            let start = moved(place.start);
            out.extend_from_slice(text.get(at..start)?);
            out.extend_from_slice(new);
            at = start + place.len();
        }
        out.extend_from_slice(text.get(at..)?);
        Some(out)
    }
}

/// The parameter that the key of the statement's one table equals wherever the condition is true.
fn key_of(cond: &Cond) -> Option<usize> {
    match cond {
        Cond::Compare(0, Comparison::Equal, Operand::Param(number)) => Some(*number),
        Cond::All(list) => list.iter().find_map(key_of),
        _ => None,
    }
}
