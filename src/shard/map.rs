//! From keys to shards: the map that the configuration's `[[tables]]` describe.

use std::collections::BTreeMap;

use super::globals::{Found, Globals, globals};
use super::hash;
use super::key::{INT_MAX, INT_MIN, Key, fold};
use super::keyset::KeySet;
use super::mention::Words;
use crate::config::{Bound, Broadcast, Config, Hash, KeyType, TableConfig};

/// More keys than these are not looked at one by one.
const KEYS_MAX: i128 = 4096;

/// One physical table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the group that has it.
    pub group: usize,
    /// Its name there.
    pub name: String,
}

/// A sharded table.
#[derive(Debug)]
pub struct Table {
    /// Its schema, by the name that clients know.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The column that decides the shard.
    pub key: String,
    /// Type of that column.
    pub key_type: KeyType,
    /// Its physical tables.
    pub shards: Vec<Shard>,
    /// What becomes of reads that need several shards.
    pub broadcast: Broadcast,
    /// Writes over several groups are done as transactions over all of them.
    pub multi_shard_xa: bool,
    /// The column that Atlas is to fill.
    pub id_column: Option<String>,
    pub(super) hash: Hash,
    pub(super) ranges: Vec<Range>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Range {
    /// The first key in it; nothing stands for no limit.
    pub(super) from: Option<Key>,
    /// The first key behind it.
    pub(super) to: Option<Key>,
    /// The shard of each bucket.
    pub(super) buckets: Vec<usize>,
}

/// Everything that is known of where tables are.
#[derive(Debug)]
pub struct Placement {
    /// Sharded tables.
    pub tables: Vec<Table>,
    /// Schema and name of tables that every group has, in order.
    pub globals: Vec<(String, String)>,
    /// The same of those that every group has with other rows.
    pub(super) unlike: Vec<(String, String)>,
    /// Schemas of which it is not known which others every group has.
    pub(super) doubt: Vec<String>,
    /// Tables in them that some group does not have.
    pub(super) apart: Vec<(String, String)>,
    /// Writes to these are done in all groups, as transactions over all of them.
    pub global_xa: bool,
    /// The groups.
    pub(super) groups: Vec<usize>,
    /// Physical names of schemas by logical name, in each group that has its own.
    schemas: BTreeMap<usize, BTreeMap<String, String>>,
    words: Words,
}

impl Placement {
    /// The map of a configuration whose groups have these numbers, where nothing can be found on servers; `None` if nothing is sharded.
    #[must_use]
    pub fn new(config: &Config, places: &[usize]) -> Option<Self> {
        let found = Found {
            schemas: Found::schemas_of(config),
            ..Found::default()
        };
        Self::with(config, places, &found)
    }

    /// The same with what was found.
    #[must_use]
    pub fn with(config: &Config, places: &[usize], found: &Found) -> Option<Self> {
        if config.tables.is_empty() {
            return None;
        }
        let tables: Vec<Table> = config
            .tables
            .iter()
            .map(|table| Table::new(table, places))
            .collect();
        let Globals {
            tables: globals,
            unlike,
            doubt,
            apart,
        } = globals(config, &tables, found);
        let names = tables.iter().map(|table| table.name.as_str());
        let others = globals.iter().chain(&unlike);
        let names = names.chain(others.map(|(_, name)| name.as_str()));
        let words = Words::new(names, !doubt.is_empty());
        let mut placement = Self {
            tables,
            globals,
            unlike,
            doubt,
            apart,
            global_xa: config.sharding.global_xa,
            groups: places.to_vec(),
            schemas: places
                .iter()
                .zip(&config.groups)
                .filter(|(_, group)| !group.schemas.is_empty())
                .map(|(place, group)| (*place, group.schemas.clone()))
                .collect(),
            words,
        };
        if placement.has_other_names() {
            placement.words.look_for_questions();
        }
        Some(placement)
    }

    /// The words by which statements are told apart that may name one of these tables.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Whether keys are generated that hang on this group's primary.
    #[must_use]
    pub fn generates_by(&self, group: usize) -> bool {
        self.tables.iter().any(|table| {
            let first = table.shards.first().map(|shard| shard.group);
            table.id_column.is_some() && first == Some(group)
        })
    }

    /// The name of a schema on a group's servers.
    #[must_use]
    pub fn schema_on<'a>(&'a self, group: usize, logical: &'a str) -> &'a str {
        self.schemas
            .get(&group)
            .and_then(|schemas| schemas.get(logical))
            .map_or(logical, String::as_str)
    }

    /// Schemas that have a name of their own on a group's servers: that name, and the one that clients know.
    pub(super) fn schemas_of(&self, group: usize) -> impl Iterator<Item = (&str, &str)> {
        let schemas = self.schemas.get(&group).into_iter().flatten();
        let pairs = schemas.map(|(known, there)| (there.as_str(), known.as_str()));
        pairs.filter(|(there, known)| there != known)
    }

    /// The sharded table of this name. Names are compared without regard to case, as servers on some file systems do.
    #[must_use]
    pub fn table(&self, schema: &[u8], name: &[u8]) -> Option<usize> {
        self.tables
            .iter()
            .position(|table| is_name(&table.schema, schema) && is_name(&table.name, name))
    }
}

pub(super) fn is_name(known: &str, name: &[u8]) -> bool {
    known.as_bytes().eq_ignore_ascii_case(name)
}

impl Table {
    pub(super) fn new(config: &TableConfig, places: &[usize]) -> Self {
        let mut shards: Vec<Shard> = Vec::new();
        let ranges = config
            .ranges
            .iter()
            .map(|range| {
                let buckets = range.groups.iter().enumerate().flat_map(|(at, group)| {
                    (0..range.tables).map(move |table| (at, *group, table))
                });
                let buckets = buckets
                    .map(|(at, group, table)| {
                        let number = u64::try_from(at).unwrap_or(u64::MAX)
                            * u64::from(range.tables)
                            + u64::from(table)
                            + u64::from(range.first);
                        let name = if range.tables == 1 {
                            config.table.clone()
                        } else {
                            format!("{}_{number}", config.table)
                        };
                        let group = places.get(group).copied().unwrap_or(usize::MAX);
                        let shard = Shard { group, name };
                        shards.iter().position(|s| *s == shard).unwrap_or_else(|| {
                            shards.push(shard);
                            shards.len() - 1
                        })
                    })
                    .collect();
                Range {
                    from: bound(&range.from),
                    to: bound(&range.to),
                    buckets,
                }
            })
            .collect();
        Self {
            schema: config.schema.clone(),
            name: config.table.clone(),
            key: config.key.clone(),
            key_type: config.key_type,
            shards,
            broadcast: config.broadcast,
            multi_shard_xa: config.multi_shard_xa,
            id_column: config.id_column.clone(),
            hash: config.hash,
            ranges,
        }
    }

    /// Whether another table's rows with equal keys are always on the same shards, in number and in group.
    #[must_use]
    pub fn is_placed_like(&self, other: &Self) -> bool {
        self.key_type == other.key_type
            && self.hash == other.hash
            && self.ranges == other.ranges
            && self.shards.len() == other.shards.len()
            && self
                .shards
                .iter()
                .zip(&other.shards)
                .all(|(a, b)| a.group == b.group)
    }

    /// The shard of a key; `None` where no range holds it.
    #[must_use]
    pub fn shard_of(&self, key: &Key) -> Option<usize> {
        let range = self.ranges.iter().find(|range| range.holds(key))?;
        let count = u32::try_from(range.buckets.len()).ok()?;
        let bucket = hash::bucket(self.hash, key, count);
        range.buckets.get(usize::try_from(bucket).ok()?).copied()
    }

    /// The shards on which keys of this set may be, in order.
    #[must_use]
    pub fn shards_of(&self, keys: &KeySet) -> Vec<usize> {
        let mut found = vec![false; self.shards.len()];
        let mut add = |shard: usize| {
            if let Some(found) = found.get_mut(shard) {
                *found = true;
            }
        };
        if let Some(texts) = keys.texts() {
            for text in texts {
                if let Some(shard) = self.shard_of(&Key::Text(text.clone())) {
                    add(shard);
                }
            }
        } else {
            for range in &self.ranges {
                let Some(spans) = keys.spans() else {
                    range.buckets.iter().for_each(|shard| add(*shard));
                    continue;
                };
                for (from, to) in range.part(spans, self.key_type) {
                    let count = to - from + 1;
                    let is_hashed = range.buckets.len() > 1;
                    let walks = self.hash == Hash::Mod
                        && usize::try_from(count).is_ok_and(|count| count < range.buckets.len());
                    if is_hashed && (walks || self.hash != Hash::Mod && count <= KEYS_MAX) {
                        for number in from..=to {
                            if let Some(shard) = self.number(number).and_then(|k| self.shard_of(&k))
                            {
                                add(shard);
                            }
                        }
                    } else {
                        range.buckets.iter().for_each(|shard| add(*shard));
                    }
                }
            }
        }
        let numbers = found.iter().enumerate().filter(|(_, found)| **found);
        numbers.map(|(shard, _)| shard).collect()
    }

    fn number(&self, number: i128) -> Option<Key> {
        match self.key_type {
            KeyType::Int => Some(Key::Int(number)),
            KeyType::Date => i32::try_from(number).ok().map(Key::Date),
            KeyType::String => None,
        }
    }
}

impl Range {
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.from.as_ref().is_none_or(|from| from <= key)
            && self.to.as_ref().is_none_or(|to| key < to)
    }

    /// What of these spans lies in the range.
    fn part(&self, spans: &[(i128, i128)], key_type: KeyType) -> Vec<(i128, i128)> {
        let (min, max) = match key_type {
            KeyType::Date => (i128::from(i32::MIN), i128::from(i32::MAX)),
            KeyType::Int | KeyType::String => (INT_MIN, INT_MAX),
        };
        let from = self.from.as_ref().map_or(min, ordinal).max(min);
        let to = self.to.as_ref().map_or(max, |to| ordinal(to) - 1).min(max);
        spans
            .iter()
            .map(|span| (span.0.max(from), span.1.min(to)))
            .filter(|(from, to)| from <= to)
            .collect()
    }
}

fn ordinal(key: &Key) -> i128 {
    match key {
        Key::Int(number) => *number,
        Key::Date(day) => i128::from(*day),
        Key::Text(_) => 0,
    }
}

/// An end of a range; nothing stands for no limit.
fn bound(bound: &Bound) -> Option<Key> {
    match bound {
        Bound::Min | Bound::Max => None,
        Bound::Int(number) => Some(Key::Int(i128::from(*number))),
        Bound::Date(day) => Some(Key::Date(*day)),
        Bound::Text(text) => fold(text.as_bytes()).map(Key::Text),
    }
}
