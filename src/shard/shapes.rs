//! Shapes of texts that differ in their literals only: a statement that comes again, with other literals, is not parsed again.
//!
//! A text is told by what stands between its literals, byte by byte. When it comes for the second time it is read with a parameter's sign
//! in the place of each literal, and the shape is kept; from then on the literals are read where the scanner finds them, and are the
//! parameters. What such a shape says of a text is never less than the truth, as with any statement that has parameters. Where it would
//! say less than the text itself (`-5` is no literal, `DATE '…'` is no parameter) it is not kept, and the text is read each time.
//!
//! Not here: statements whose columns a server was asked for, and prepared ones, whose shape is kept with them.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::Columns;
use super::cond::{Cond, Operand};
use super::key::Scalar;
use super::map::Placement;
use super::plan::{Asked, Plan};
use super::shape::{Rows, Shape};
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
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Shapes {
    placement: Option<Arc<Placement>>,
    known: HashMap<Box<[u8]>, (Dialect, Known)>,
    /// What was known before there was too much.
    before: HashMap<Box<[u8]>, (Dialect, Known)>,
    // Used anew for each text.
    outline: Vec<u8>,
    literals: Vec<Literal>,
    values: Vec<Scalar>,
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
            self.before.clear();
        }
        if !self.take_outline(asked.text, asked.d, schema) {
            return placement.plan_text_with(asked, schema, columns);
        }
        self.recall();
        match self.known.get_mut(&*self.outline) {
            Some((d, known)) if d == asked.d => match known {
                Known::Other => None,
                Known::Odd => placement.plan_text_with(asked, schema, columns),
                Known::Once => {
                    let plan = placement.plan_text_with(asked, schema, columns);
                    *known = learn(placement, asked, schema, &self.literals, plan.as_ref());
                    plan
                }
                Known::Shape(kept) => {
                    kept.move_to(&self.literals);
                    read_values(&mut self.values, &self.literals, &kept.matter, asked);
                    let params = &self.values;
                    Some(placement.plan(&kept.shape, Asked { params, ..asked }))
                }
            },
            _ => {
                let key = self.outline.as_slice().into();
                self.known.insert(key, (*asked.d, Known::Once));
                placement.plan_text_with(asked, schema, columns)
            }
        }
    }

    /// How many texts are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.before.len()
    }

    /// Has what is known of the outline among what is in use.
    fn recall(&mut self) {
        if self.known.contains_key(&*self.outline) {
            return;
        }
        if self.known.len() >= KEPT_MAX {
            self.before = std::mem::take(&mut self.known);
        }
        if let Some((key, known)) = self.before.remove_entry(&*self.outline) {
            self.known.insert(key, known);
        }
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
) -> Known {
    let Some(plan) = plan else {
        return Known::Other;
    };
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
    };
    kept.move_to(literals);
    let mut values = Vec::new();
    read_values(&mut values, literals, &kept.matter, asked);
    let params = &values;
    if placement.plan(&kept.shape, Asked { params, ..asked }) == *plan {
        Known::Shape(Box::new(kept))
    } else {
        Known::Odd
    }
}

impl Kept {
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

fn read_values(values: &mut Vec<Scalar>, literals: &[Literal], matter: &[bool], asked: Asked<'_>) {
    values.clear();
    values.extend(literals.iter().zip(matter).map(|(literal, matters)| {
        let source = asked.text.get(literal.start..literal.end);
        let value = source.filter(|_| *matters).and_then(|source| {
            if literal.is_text {
                sql::decode(source, asked.d).map(Scalar::Text)
            } else {
                number_of_bytes(source)
            }
        });
        value.unwrap_or(Scalar::Unknown)
    }));
}

fn number_of_bytes(source: &[u8]) -> Option<Scalar> {
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
