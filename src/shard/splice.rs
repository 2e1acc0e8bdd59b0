//! The text for a shard: the client's own bytes, with other names where a sharded table is named.

use std::ops::Range;

use super::map::{Placement, Shard};
use super::refused::Refused;
use super::shape::Shape;
use crate::sql::{self, Dialect};

/// The text of a statement for one shard of each table that it names, all in this group, with these rows of an INSERT if any are given;
/// nothing when that is the client's own text.
///
/// # Errors
/// A name would have to be rewritten that cannot be.
pub(super) fn splice(
    placement: &Placement,
    shape: &Shape,
    (shards, group): (&[usize], usize),
    rows: &[usize],
    text: &[u8],
    d: &Dialect,
) -> Result<Option<Vec<u8>>, Refused> {
    let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
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
            edits.push((place.clone(), quoted(schema, d)?));
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
            edits.push((named.name.clone(), name));
        }
        for qualifier in shape.qualifiers.iter().filter(|q| q.of == number) {
            if is_moved && let Some(place) = &qualifier.schema {
                edits.push((place.clone(), quoted(schema, d)?));
            }
            if is_renamed && !named.may_have_alias && !named.has_alias {
                edits.push((qualifier.name.clone(), quoted(&shard.name, d)?));
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
        edits.push((place.clone(), list));
    }
    if let (Some(first), Some(last), false) = (
        shape.row_places.first(),
        shape.row_places.last(),
        rows.is_empty(),
    ) {
        let mut some = Vec::new();
        for row in rows {
            if !some.is_empty() {
                some.extend_from_slice(b", ");
            }
            let place = shape.row_places.get(*row).cloned();
            some.extend_from_slice(place.and_then(|place| text.get(place)).unwrap_or_default());
        }
        edits.push((first.start..last.end, some));
    }
    for (schema, place) in &shape.globals {
        let there = placement.schema_on(group, schema);
        if there != schema {
            edits.push((place.clone(), quoted(there, d)?));
        }
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.sort_by_key(|(place, _)| place.start);
    edits.dedup();
    let mut out = Vec::with_capacity(text.len() + 64 * edits.len());
    let mut at = 0;
    for (place, name) in edits {
        let Some(kept) = text.get(at..place.start) else {
            return Err(Refused::new("two of its names stand in one place"));
        };
        out.extend_from_slice(kept);
        out.extend_from_slice(&name);
        at = place.end;
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok(Some(out))
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
