//! Shapes of texts that differ in their literals only: a statement that comes again, with other literals, is not parsed again.
//!
//! A text is told by what stands between its literals, byte by byte. When it comes for the second time it is read with a parameter's sign
//! in the place of each literal, and the shape is kept; from then on the literals are read where the scanner finds them, and are the
//! parameters. What such a shape says of a text is never less than the truth, as with any statement that has parameters. Where it would
//! say less than the text itself (`-5` is no literal, `DATE '…'` is no parameter) it is not kept, and the text is read each time.
//!
//! Of those that are about one key of one table, which is most, not even the shape is planned again: see `point`.
//!
//! Not here: statements whose columns a server was asked for, and prepared ones, whose shape is kept with them.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::Columns;
use super::cond::{Cond, Operand};
use super::key::Scalar;
use super::map::Placement;
use super::plan::{Asked, Leg, Plan};
use super::point::Point;
use super::shape::{Act, Rows, Shape};
use super::values::number_of;
use crate::sql::{self, Dialect, Tok, Traits};

/// Longer texts, and those with more literals, are read each time.
const TEXT_MAX: usize = 4096;
const LITERALS_MAX: usize = 128;

/// They stand for literals where texts are told apart; no text has them elsewhere.
const TEXT: u8 = 1;
const NUMBER: u8 = 2;

/// So many texts are kept, and as many that were not used since.
const KEPT_MAX: usize = 512;

/// A literal.
#[derive(Clone, Copy, Debug)]
struct Literal {
    start: usize,
    end: usize,
    is_text: bool,
}

/// What is known of a text.
#[derive(Debug)]
enum Known {
    /// It came once.
    Once,
    /// It is to be read each time.
    Odd,
    /// It names no table of the configuration.
    Other,
    /// Its shape, with places as they were in the last text.
    Shape(Box<Kept>),
}

#[derive(Debug)]
struct Kept {
    shape: Shape,
    /// Places as they are in the text whose literals are signs.
    places: Vec<usize>,
    /// Which literals matter.
    matter: Vec<bool>,
    /// It is about one key.
    point: Option<Point>,
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Shapes {
    placement: Option<Arc<Placement>>,
    /// By a text's outline, the place in the list.
    known: HashMap<Box<[u8]>, usize>,
    list: Vec<(Dialect, Known)>,
    /// What was known before there was too much.
    before: HashMap<Box<[u8]>, (Dialect, Known)>,
    // Used anew for each text.
    outline: Vec<u8>,
    literals: Vec<Literal>,
    values: Vec<Scalar>,
    spare: Vec<u8>,
}

impl Shapes {
    /// What [`Placement::plan_text_with`] says.
    pub fn plan(
        &mut self,
        placement: &Arc<Placement>,
        asked: Asked<'_>,
        schema: Option<&[u8]>,
        columns: &Columns,
    ) -> Option<Plan> {
        let is_same = |old: &Arc<Placement>| Arc::ptr_eq(old, placement);
        if !self.placement.as_ref().is_some_and(is_same) {
            self.placement = Some(placement.clone());
            self.known.clear();
            self.list.clear();
            self.before.clear();
        }
        if !self.take_outline(asked.text, asked.d, schema) {
            return placement.plan_text_with(asked, schema, columns);
        }
        let place = match self.known.get(&*self.outline) {
            Some(place) => Some(*place),
            None => self.recall(),
        };
        let Some((_, known)) = place
            .and_then(|place| self.list.get_mut(place))
            .filter(|(d, _)| d == asked.d)
        else {
            self.keep(place, *asked.d);
            return placement.plan_text_with(asked, schema, columns);
        };
        match known {
            Known::Other => None,
            Known::Odd => placement.plan_text_with(asked, schema, columns),
            Known::Once => {
                let plan = placement.plan_text_with(asked, schema, columns);
                let literals = &self.literals;
                *known = learn(placement, asked, schema, literals, plan.as_ref(), columns);
                plan
            }
            Known::Shape(kept) => {
                let mut shard = None;
                if let Some(point) = kept
                    .point
                    .as_ref()
                    .filter(|point| !point.is_stored() || !asked.is_lax)
                {
                    let literal = self.literals.get(point.param());
                    let value = literal.and_then(|literal| value_of(literal, asked));
                    shard = value.and_then(|value| point.shard(placement, &value));
                    if let Some(there) = shard.and_then(|shard| point.there(shard)) {
                        let moved = moved(&self.literals);
                        let leg = there.leg(asked.text, moved, std::mem::take(&mut self.spare));
                        debug_assert!(kept.agrees(placement, &self.literals, asked, &leg));
                        return Some(Plan::One(leg));
                    }
                }
                kept.move_to(&self.literals);
                read_values(&mut self.values, &self.literals, &kept.matter, asked);
                let params = &self.values;
                let asked = Asked {
                    params,
                    columns: Some(columns),
                    ..asked
                };
                let plan = placement.plan(&kept.shape, asked);
                if let (Some(shard), Plan::One(leg)) = (shard, &plan) {
                    kept.note(placement, (shard, leg), &self.literals, asked);
                }
                Some(plan)
            }
        }
    }

    /// Takes back the room of a text that was made.
    pub fn reuse(&mut self, text: Vec<u8>) {
        if text.capacity() <= 2 * TEXT_MAX {
            self.spare = text;
        }
    }

    /// How many texts are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.before.len()
    }

    /// Has what is known of the outline among what is in use, if anything is.
    fn recall(&mut self) -> Option<usize> {
        let (key, known) = self.before.remove_entry(&*self.outline)?;
        Some(self.put(key, known))
    }

    /// Notes that the outline came, in the place of one that was read otherwise.
    fn keep(&mut self, place: Option<usize>, d: Dialect) {
        match place.and_then(|place| self.list.get_mut(place)) {
            Some(kept) => *kept = (d, Known::Once),
            None => {
                self.put(self.outline.as_slice().into(), (d, Known::Once));
            }
        }
    }

    fn put(&mut self, key: Box<[u8]>, known: (Dialect, Known)) -> usize {
        if self.list.len() >= KEPT_MAX {
            let mut list: Vec<_> = std::mem::take(&mut self.list)
                .into_iter()
                .map(Some)
                .collect();
            let known = std::mem::take(&mut self.known).into_iter();
            let mut take = |place: usize| list.get_mut(place).and_then(Option::take);
            self.before = known
                .filter_map(|(key, place)| Some((key, take(place)?)))
                .collect();
        }
        let place = self.list.len();
        self.list.push(known);
        self.known.insert(key, place);
        place
    }

    /// Takes the text apart; false for one that is to be read each time.
    fn take_outline(&mut self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        self.outline.clear();
        self.literals.clear();
        if text.len() > TEXT_MAX || memchr::memchr3(0, TEXT, NUMBER, text).is_some() {
            return false;
        }
        let mut tokens = sql::Tokens::new(text, d);
        let (mut at, mut before) = (0, Tok::End);
        for t in tokens.by_ref() {
            let first = text.get(t.start).copied();
            let is_literal = match t.tok {
                Tok::Text if before == Tok::Text => return false,
                // A string in double quotes may be a name in another sql_mode.
                Tok::Text if first == Some(b'"') => return false,
                Tok::Other if first == Some(b'?') => return false,
                // `x'33'`, `_latin1'a'`: the word belongs to it.
                Tok::Text => t.start != at || before != Tok::Word,
                // `\N`, `0x…`, `0b…` are part of the rest.
                Tok::Number => text
                    .get(t.start..t.end)
                    .is_some_and(|number| number_of_bytes(number).is_some()),
                _ => false,
            };
            if is_literal {
                if self.literals.len() >= LITERALS_MAX {
                    return false;
                }
                let (sign, is_text) = if t.tok == Tok::Text {
                    (TEXT, true)
                } else {
                    (NUMBER, false)
                };
                self.push_until(text, t.start);
                self.outline.push(sign);
                self.literals.push(Literal {
                    start: t.start,
                    end: t.end,
                    is_text,
                });
            }
            (at, before) = (t.end, t.tok);
        }
        let odd = Traits::EXECUTABLE | Traits::UNTERMINATED | Traits::DOUBTFUL;
        self.push_until(text, text.len());
        self.outline.push(0);
        if let Some(schema) = schema {
            self.outline.push(b'.');
            self.outline.extend_from_slice(schema);
        }
        !tokens.found().intersects(odd)
    }

    /// What stands behind the last literal, up to this place.
    fn push_until(&mut self, text: &[u8], end: usize) {
        let from = self.literals.last().map_or(0, |literal| literal.end);
        self.outline
            .extend_from_slice(text.get(from..end).unwrap_or_default());
    }
}

/// What is to be kept of a text that comes again.
fn learn(
    placement: &Placement,
    asked: Asked<'_>,
    schema: Option<&[u8]>,
    literals: &[Literal],
    plan: Option<&Plan>,
    columns: &Columns,
) -> Known {
    let Some(plan) = plan else {
        return Known::Other;
    };
    let columns = Some(columns);
    let asked = Asked { columns, ..asked };
    let mut signs = Vec::with_capacity(asked.text.len());
    let mut at = 0;
    for literal in literals {
        signs.extend_from_slice(asked.text.get(at..literal.start).unwrap_or_default());
        signs.push(b'?');
        at = literal.end;
    }
    signs.extend_from_slice(asked.text.get(at..).unwrap_or_default());
    let Ok(Some(mut shape)) = placement.read(&signs, asked.d, schema) else {
        return Known::Odd;
    };
    if shape.is_unlisted()
        || shape.asks_names()
        || shape.has_own_ids
        || shape.params.len() != literals.len()
    {
        return Known::Odd;
    }
    shape.params.clear();
    let mut places = Vec::new();
    shape.each_place(&mut |place| places.push(*place));
    let mut matter = vec![false; literals.len()];
    mark(&shape, &mut matter);
    let mut kept = Kept {
        shape,
        places,
        matter,
        point: None,
    };
    if kept.plan(placement, literals, asked) == *plan {
        kept.point = Point::new(placement, &kept.shape);
        Known::Shape(Box::new(kept))
    } else {
        Known::Odd
    }
}

impl Kept {
    /// The plan of a text with these literals.
    fn plan(&mut self, placement: &Placement, literals: &[Literal], asked: Asked<'_>) -> Plan {
        self.move_to(literals);
        let mut values = Vec::new();
        read_values(&mut values, literals, &self.matter, asked);
        let params = &values;
        placement.plan(&self.shape, Asked { params, ..asked })
    }

    /// The short way has led where the ordinary one does, or where no row is.
    fn agrees(
        &mut self,
        placement: &Arc<Placement>,
        literals: &[Literal],
        asked: Asked<'_>,
        leg: &Leg,
    ) -> bool {
        let Plan::One(planned) = self.plan(placement, literals, asked) else {
            return false;
        };
        let mut values = Vec::new();
        read_values(&mut values, literals, &self.matter, asked);
        let is_empty = self.shape.act != Act::Insert && placement.is_nowhere(&self.shape, &values);
        is_empty || planned.group == leg.group && planned.text == leg.text
    }

    /// Notes what a shard is sent, where the places are those in a text with these literals.
    fn note(
        &mut self,
        placement: &Arc<Placement>,
        of: (usize, &Leg),
        literals: &[Literal],
        asked: Asked<'_>,
    ) {
        if let Some(point) = &mut self.point {
            point.note(placement, &self.shape, of, asked);
            point.move_places(of.0, |place| {
                let before = literals.iter().filter(|literal| literal.end <= place);
                before.fold(place, |place, literal| {
                    place - (literal.end - literal.start - 1)
                })
            });
        }
    }

    /// Has the places be those in a text with these literals.
    fn move_to(&mut self, literals: &[Literal]) {
        let mut places = self.places.iter();
        self.shape.each_place(&mut |place| {
            let Some(signs) = places.next() else {
                return;
            };
            // Of each literal before it there was a sign of one byte.
            let mut moved = *signs;
            for literal in literals {
                if literal.start >= moved {
                    break;
                }
                moved += literal.end - literal.start - 1;
            }
            *place = moved;
        });
    }
}

/// How far the literals before them move places of the text whose literals are signs; asked in order.
fn moved(literals: &[Literal]) -> impl FnMut(usize) -> usize {
    let mut rest = literals.iter().peekable();
    let mut by = 0;
    move |place| {
        while let Some(literal) = rest.next_if(|literal| literal.start < place + by) {
            by += literal.end - literal.start - 1;
        }
        place + by
    }
}

fn read_values(values: &mut Vec<Scalar>, literals: &[Literal], matter: &[bool], asked: Asked<'_>) {
    values.clear();
    values.extend(literals.iter().zip(matter).map(|(literal, matters)| {
        let value = matters.then(|| value_of(literal, asked)).flatten();
        value.unwrap_or(Scalar::Unknown)
    }));
}

fn value_of(literal: &Literal, asked: Asked<'_>) -> Option<Scalar> {
    let source = asked.text.get(literal.start..literal.end)?;
    if literal.is_text {
        sql::decode(source, asked.d).map(Scalar::Text)
    } else {
        number_of_bytes(source)
    }
}

fn number_of_bytes(source: &[u8]) -> Option<Scalar> {
    if source.len() <= 18 && source.iter().all(u8::is_ascii_digit) {
        let digits = source.iter().map(|digit| i64::from(digit - b'0'));
        return Some(Scalar::Int(
            digits.fold(0, |number, digit| number * 10 + digit).into(),
        ));
    }
    number_of(std::str::from_utf8(source).ok()?)
}

/// Marks the parameters that matter.
fn mark(shape: &Shape, matter: &mut [bool]) {
    let mut one = |operand: &Operand| {
        if let Operand::Param(number) = operand
            && let Some(matters) = matter.get_mut(*number)
        {
            *matters = true;
        }
    };
    for fact in &shape.facts {
        mark_cond(&fact.cond, &mut one);
    }
    if let Some(Rows::Values(values)) = &shape.rows {
        values.iter().for_each(&mut one);
    }
    shape.limit.iter().for_each(one);
}

fn mark_cond(cond: &Cond, one: &mut dyn FnMut(&Operand)) {
    match cond {
        Cond::Open | Cond::Known(_) | Cond::IsNull(_) | Cond::SameKey(..) => {}
        Cond::Compare(_, _, operand) => one(operand),
        Cond::In(_, list) => list.iter().for_each(one),
        Cond::Between(_, low, high) => {
            one(low);
            one(high);
        }
        Cond::All(list) | Cond::Any(list) => list.iter().for_each(|cond| mark_cond(cond, one)),
        Cond::Not(cond) | Cond::Is(_, cond) => mark_cond(cond, one),
    }
}
