//! Statements that show what a table is like: DESCRIBE, SHOW COLUMNS, SHOW INDEX, SHOW CREATE TABLE. They are read token by token.

use std::ops::Range;

use super::dress::Shows;
use super::map::Placement;
use super::shape::{Act, Shape};
use crate::sql::{self, Dialect, Tok};

/// One word or name, or a sign.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: Vec<u8>,
    is_word: bool,
    pub(super) is_dot: bool,
    pub(super) is_comma: bool,
    /// A semicolon.
    pub(super) is_end: bool,
    pub(super) opens: bool,
    pub(super) closes: bool,
    pub(super) place: Range<usize>,
}

impl Item {
    /// It is one of these words, and no name in quotes.
    pub(super) fn is_one_of(&self, words: &[&str]) -> bool {
        let is_it = |word: &&str| self.name.eq_ignore_ascii_case(word.as_bytes());
        self.is_word && words.iter().any(is_it)
    }
}

/// The first tokens of a text.
pub(super) fn items(text: &[u8], d: &Dialect, count: usize) -> Vec<Item> {
    let tokens = sql::Tokens::new(text, d).take(count);
    tokens.map(|t| Item::new(text, &t, d)).collect()
}

impl Item {
    pub(super) fn new(text: &[u8], t: &sql::Token, d: &Dialect) -> Self {
        let bytes = text.get(t.start..t.end).unwrap_or_default();
        Self {
            name: match t.tok {
                Tok::Word => bytes.to_vec(),
                _ => sql::decode(bytes, d).unwrap_or_default(),
            },
            is_word: t.tok == Tok::Word,
            is_dot: t.tok == Tok::Dot,
            is_comma: t.tok == Tok::Comma,
            is_end: t.tok == Tok::Semicolon,
            opens: t.tok == Tok::Open,
            closes: t.tok == Tok::Close,
            place: t.start..t.end,
        }
    }
}

/// The table that a statement describes: where its answer has names, the schema if it is named, and the name.
fn subject(items: &[Item]) -> Option<(Shows, Option<&Item>, &Item)> {
    let is = |at: usize, words: &[&str]| items.get(at).is_some_and(|item| item.is_one_of(words));
    let mut at = 0;
    let mut shows = Shows::Data;
    if is(0, &["desc", "describe", "explain"]) {
        at = 1;
    } else if is(0, &["show"]) {
        at += 1;
        while is(at, &["extended", "full"]) {
            at += 1;
        }
        if is(at, &["create"]) && is(at + 1, &["table"]) {
            shows = Shows::Create;
            at += 2;
        } else if is(at + 1, &["from", "in"]) {
            if is(at, &["index", "indexes", "keys"]) {
                shows = Shows::Table;
            } else if !is(at, &["columns", "fields"]) {
                return None;
            }
            at += 2;
        } else {
            return None;
        }
    } else {
        return None;
    }
    let first = items.get(at)?;
    let (schema_item, name) = match items.get(at + 1) {
        Some(dot) if dot.is_dot => (Some(first), items.get(at + 2)?),
        _ => (None, first),
    };
    let behind = at + if schema_item.is_some() { 3 } else { 1 };
    let may_follow = shows != Shows::Create && is(0, &["show"]);
    if may_follow && is(behind, &["from", "in"]) {
        // The schema that is named last counts.
        return match (schema_item, items.get(behind + 1)) {
            (None, Some(schema)) => Some((shows, Some(schema), name)),
            _ => None,
        };
    }
    Some((shows, schema_item, name))
}

/// Whether a statement that describes no sharded table describes one that every group has (which of them is asked makes no difference), or
/// one of a schema that stands behind its name.
pub(super) fn is_of_another(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> bool {
    let items = items(text, d, 16);
    subject(&items).is_some_and(|(_, schema_item, name)| {
        let schema = schema_item.map_or(schema, |schema| Some(&*schema.name));
        let is_behind = schema_item.is_some_and(|item| item.place.start > name.place.start);
        is_behind || schema.is_some_and(|schema| placement.is_global(schema, &name.name))
    })
}

/// The shape of a statement that describes a sharded table; `None` for any other.
pub(super) fn describe(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> Option<Shape> {
    let items = items(text, d, 16);
    let (shows, schema_item, name) = subject(&items)?;
    let of = match schema_item {
        Some(schema) => placement.table(&schema.name, &name.name),
        None => placement.table(schema?, &name.name),
    }?;
    let schema = schema_item.map(|schema| schema.place.clone());
    let mut shape = Shape::about(Act::Describe, of, name.place.clone(), schema);
    shape.shows = shows;
    Some(shape)
}
