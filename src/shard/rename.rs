//! RENAME TABLE and ALTER TABLE ... RENAME: the configuration names sharded and global tables too, so that neither they nor their tables in
//! a group can be given another name by a statement, and no other table can be given one of theirs.

use super::describe::{Item, items};
use super::map::{Placement, is_name};
use super::refused::Refused;
use crate::sql::Dialect;

/// Why such a statement is not run; nothing for any other.
pub(super) fn refused(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> Option<Refused> {
    let first = items(text, d, 2);
    let starts = |at: usize, words: &[&str]| first.get(at).is_some_and(|i| i.is_one_of(words));
    let is_rename = starts(0, &["rename"]) && starts(1, &["table", "tables"]);
    let is_alter = starts(0, &["alter"]);
    if !is_rename && !is_alter {
        return None;
    }
    let all = items(text, d, usize::MAX);
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|item| item.is_one_of(words));
    let named = |at: usize| Named::at(&all, at, schema);
    let mut depth = 0_usize;
    let mut is_first = true;
    for (at, item) in all.iter().enumerate() {
        depth = (depth + usize::from(item.opens)).saturating_sub(usize::from(item.closes));
        let (of, is_new) = if is_rename && is(at, &["to"]) {
            (named(at + 1), true)
        } else if is_rename && (is(at, &["table", "tables"]) || item.is_comma) {
            let is_guarded = is(at + 1, &["if"]) && is(at + 2, &["exists"]);
            (named(if is_guarded { at + 3 } else { at + 1 }), false)
        } else if is_alter && is_first && is(at, &["table"]) {
            is_first = false;
            let is_guarded = is(at + 1, &["if"]) && is(at + 2, &["exists"]);
            let of = named(if is_guarded { at + 3 } else { at + 1 });
            // What else is done to a sharded table is looked at with its definition.
            let is_renamed = renames(&all).next().is_some();
            let of = of.filter(|of| is_renamed && of.is_global(placement));
            (of, false)
        } else if is_alter && depth == 0 && is_renaming(&all, at) {
            // TO, AS, or a sign.
            let is_between = is(at + 1, &["to", "as"])
                || all.get(at + 1).is_some_and(|item| item.name.is_empty());
            (named(at + 1 + usize::from(is_between)), true)
        } else {
            continue;
        };
        let Some(of) = of else { continue };
        if is_new && (of.is_known(placement) || of.is_physical(placement)) {
            return Some(Refused::new(ONTO));
        }
        if !is_new && of.is_known(placement) {
            return Some(Refused::new(RENAME));
        }
    }
    None
}

/// The places in an ALTER where the table gets another name.
fn renames(items: &[Item]) -> impl Iterator<Item = usize> {
    (0..items.len()).filter(|at| is_renaming(items, *at))
}

fn is_renaming(items: &[Item], at: usize) -> bool {
    let is = |at: usize, words: &[&str]| items.get(at).is_some_and(|item| item.is_one_of(words));
    is(at, &["rename"]) && !is(at + 1, &["column", "index", "key"])
}

/// A table's name in a statement.
struct Named<'a> {
    schema: &'a [u8],
    name: &'a [u8],
}

impl<'a> Named<'a> {
    fn at(items: &'a [Item], at: usize, schema: Option<&'a [u8]>) -> Option<Self> {
        let first = items.get(at)?;
        match items.get(at + 1) {
            Some(dot) if dot.is_dot => Some(Self {
                schema: &first.name,
                name: &items.get(at + 2)?.name,
            }),
            _ => Some(Self {
                schema: schema?,
                name: &first.name,
            }),
        }
    }

    fn is_global(&self, placement: &Placement) -> bool {
        placement.is_global(self.schema, self.name)
    }

    fn is_known(&self, placement: &Placement) -> bool {
        placement.table(self.schema, self.name).is_some() || self.is_global(placement)
    }

    /// A sharded table is called so in some group.
    fn is_physical(&self, placement: &Placement) -> bool {
        let of_schema = |table: &&super::Table| is_name(&table.schema, self.schema);
        let mut shards = (placement.tables.iter().filter(of_schema)).flat_map(|t| &t.shards);
        shards.any(|shard| is_name(&shard.name, self.name))
    }
}

/// What to do to have a table's name be another.
const RENAME: &str = "RENAME of a sharded or global table, whose name the configuration has too: rename its tables in each group, by their names there, and the table in the configuration, and reload";

/// The same of a name that is taken.
const ONTO: &str = "RENAME to the name of a sharded or global table, or to that of one of its tables in a group: the configuration says what is stored there, so choose another name";
