//! The text for a shard: the client's own bytes, with other names where a sharded table is named.

use std::ops::Range;

use super::fill::{Edit, Numbers};
use super::map::{Placement, Shard};
use super::plan::Asked;
use super::refused::Refused;
use super::shape::Shape;
use crate::sql::{self, Dialect};

/// A parameter of a text that was made for a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The client's of this number.
    Client(usize),
    /// This id.
    Id(u64),
}

/// What is made of a text for a shard.
#[derive(Debug, Default)]
pub(super) struct Spliced {
    /// The text; nothing when it is the client's own.
    pub(super) text: Option<Vec<u8>>,
    /// Its parameters; nothing when they are the client's own.
    pub(super) params: Option<Vec<Given>>,
    /// What was put into it.
    pub(super) put: Vec<Put>,
}

/// What stands in a text for a shard in the place of something else: that place in the client's text, and its length.
pub(super) type Put = (Range<usize>, usize);

/// The text of a statement for one shard of each table that it names, all in this group, with these rows of an INSERT if any are given.
///
/// # Errors
/// A name would have to be rewritten that cannot be.
pub(super) fn splice(
    placement: &Placement,
    shape: &Shape,
    (shards, group): (&[usize], usize),
    rows: &[usize],
    asked: Asked<'_>,
) -> Result<Spliced, Refused> {
    let edits = edits(placement, shape, (shards, group), rows, asked)?;
    let has_own = shape.fill.is_some() && matches!(asked.numbers, Numbers::Bound(_));
    if edits.is_empty() {
        return Ok(Spliced::default());
    }
    let text = asked.text;
    let mut out = Vec::with_capacity(text.len() + 64 * edits.len());
    let mut params = Vec::new();
    let mut signs = shape.params.iter().enumerate().peekable();
    let mut put = Vec::with_capacity(edits.len());
    let mut at = 0;
    for (place, name, id) in edits {
        let Some(kept) = text.get(at..place.start) else {
            return Err(Refused::new("two of its names stand in one place"));
        };
        out.extend_from_slice(kept);
        out.extend_from_slice(&name);
        at = place.end;
        put.push((place.clone(), name.len()));
        while let Some((number, sign)) = signs.next_if(|(_, sign)| **sign < place.end) {
            if *sign < place.start {
                params.push(Given::Client(number));
            }
        }
        params.extend(id.map(Given::Id));
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    params.extend(signs.map(|(number, _)| Given::Client(number)));
    Ok(Spliced {
        text: Some(out),
        params: (has_own || !rows.is_empty()).then_some(params),
        put,
    })
}

/// What is done with the text for that, in the order of its places.
///
/// # Errors
/// As for [`splice`].
pub(super) fn edits(
    placement: &Placement,
    shape: &Shape,
    (shards, group): (&[usize], usize),
    rows: &[usize],
    asked: Asked<'_>,
) -> Result<Vec<Edit>, Refused> {
    let (text, d) = (asked.text, asked.d);
    let mut edits: Vec<Edit> = Vec::new();
    for (number, (named, shard)) in shape.refs.iter().zip(shards).enumerate() {
        let Some((table, shard)) = placement
            .tables
            .get(named.table)
            .and_then(|table| Some((table, table.shards.get(*shard)?)))
        else {
            return Err(Refused::new("its shard is not known"));
        };
        let schema = placement.schema_on(shard.group, &table.schema);
        let is_moved = schema != table.schema;
        if is_moved && let Some(place) = &named.schema {
            edits.push((place.clone(), quoted(schema, d)?, None));
        }
        let is_renamed = shard.name != table.name;
        if is_renamed {
            let written = text.get(named.name.clone()).unwrap_or_default();
            let mut name = quoted(&shard.name, d)?;
            if named.may_have_alias && !named.has_alias {
                // Its columns go on being named by its own name, as it is written.
                name.extend_from_slice(b" AS ");
                name.extend_from_slice(written);
            }
            edits.push((named.name.clone(), name, None));
        }
        for qualifier in shape.qualifiers.iter().filter(|q| q.of == number) {
            if is_moved && let Some(place) = &qualifier.schema {
                edits.push((place.clone(), quoted(schema, d)?, None));
            }
            if is_renamed && !named.may_have_alias && !named.has_alias {
                edits.push((qualifier.name.clone(), quoted(&shard.name, d)?, None));
            }
        }
    }
    if let Some((place, names)) = &shape.listed {
        let mut list = b" (".to_vec();
        for (at, name) in names.iter().enumerate() {
            list.extend_from_slice(if at == 0 { b"" } else { b", " });
            list.extend(quoted_bytes(name, d)?);
        }
        list.push(b')');
        edits.push((place.clone(), list, None));
    }
    let cut = cuts(shape, rows);
    let is_cut = |place: &Range<usize>| {
        cut.iter()
            .any(|(gone, _, _)| gone.start <= place.start && place.end <= gone.end && gone != place)
    };
    if let Some(fill) = shape
        .fill
        .as_ref()
        .filter(|_| asked.numbers != Numbers::None)
    {
        let mut filled = fill.edits(asked.numbers, &quoted(&fill.column, d)?);
        filled.retain(|(place, _, _)| !is_cut(place));
        edits.extend(filled);
    }
    edits.extend(cut);
    for (schema, place) in &shape.globals {
        let there = placement.schema_on(group, schema);
        if there != schema {
            edits.push((place.clone(), quoted(there, d)?, None));
        }
    }
    for listing in &shape.listings {
        listing.edits(placement, group, (text, d), &mut edits)?;
    }
    if !shape.catalog.is_empty() {
        let names = placement.names_in(group);
        for place in &shape.catalog {
            place.edits(&names, text, d, &mut edits);
        }
    }
    edits.sort_by_key(|(place, _, _)| place.start);
    edits.dedup();
    Ok(edits)
}

/// What is taken out of an INSERT so that these of its rows are left; nothing where none are named.
fn cuts(shape: &Shape, rows: &[usize]) -> Vec<Edit> {
    let place = |row: usize| shape.row_places.get(row);
    let (Some(first), Some(last)) = (shape.row_places.first(), shape.row_places.last()) else {
        return Vec::new();
    };
    let kept: Vec<&Range<usize>> = rows.iter().filter_map(|row| place(*row)).collect();
    let (Some(head), Some(tail)) = (kept.first(), kept.last()) else {
        return Vec::new();
    };
    let mut cuts = vec![(first.start..head.start, Vec::new(), None)];
    for pair in kept.windows(2) {
        if let [one, next] = pair {
            cuts.push((one.end..next.start, b", ".to_vec(), None));
        }
    }
    cuts.push((tail.end..last.end, Vec::new(), None));
    cuts.retain(|(place, _, _)| !place.is_empty());
    cuts
}

fn quoted(name: &str, d: &Dialect) -> Result<Vec<u8>, Refused> {
    quoted_bytes(name.as_bytes(), d)
}

fn quoted_bytes(name: &[u8], d: &Dialect) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::with_capacity(name.len() + 2);
    if sql::push_name(&mut out, name, d) {
        Ok(out)
    } else {
        Err(Refused::new(
            "a physical name or that of a column cannot be written in the client's character set",
        ))
    }
}

/// The group of a shard.
pub(super) fn group(placement: &Placement, table: usize, shard: usize) -> Option<usize> {
    let table = placement.tables.get(table)?;
    table.shards.get(shard).map(|Shard { group, .. }| *group)
}
