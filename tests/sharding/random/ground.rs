//! Grounds: schemas with tables of random keys and rules, over three groups, beside the same tables whole on one server.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::dice::{Dice, Keys};
use crate::common::{Bed, Node, Schema};

/// One schema: `ord`, `item` and `far` are sharded, the first two alike; `zone` is in every group, `misc` in the first only.
pub(super) struct Ground {
    /// The schema by which clients of Atlas know it.
    pub(super) schema: Schema,
    /// The schema that has all rows.
    pub(super) whole: Schema,
    pub(super) keys: Keys,
    /// The least number that is a key.
    pub(super) base: i128,
    column: &'static str,
    rule: Rule,
    far: Rule,
    is_xa: bool,
}

/// How a table is spread.
struct Rule {
    hash: &'static str,
    ranges: Vec<Range>,
}

struct Range {
    from: Option<&'static str>,
    to: Option<&'static str>,
    groups: Vec<usize>,
    tables: usize,
    first: usize,
}

const GROUPS: [&str; 3] = ["main", "s1", "s2"];

const INTS: [&str; 4] = ["BIGINT", "INT", "SMALLINT", "BIGINT UNSIGNED"];
/// The least key of unsigned columns: the next ones cross the end of what is signed.
const UNSIGNED: i128 = i64::MAX as i128 - 7;
const TEXTS: [&str; 5] = [
    "VARCHAR(12)",
    "CHAR(12)",
    "VARCHAR(12) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "VARCHAR(12) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "VARCHAR(12) CHARACTER SET latin1",
];
const DATES: [&str; 2] = ["DATE", "DATETIME"];

impl Rule {
    fn new(dice: &mut Dice, keys: Keys, base: i128) -> Self {
        let hash = match keys {
            Keys::Int => dice.one(&["mod", "mod", "crc32", "atlas32"]),
            Keys::Text => dice.one(&["crc32", "atlas32"]),
            Keys::Date => "crc32",
        };
        let bounds: &[&'static str] = match keys {
            Keys::Int if base == UNSIGNED => &["5", "9223372036854775802", "9223372036854775807"],
            Keys::Int => &["0", "5", "8"],
            Keys::Text => &["\"5\"", "\"b\"", "\"m\""],
            Keys::Date => &["\"2024-01-03\"", "\"2024-01-06\"", "\"2024-01-09\""],
        };
        let bounds: Vec<&'static str> = bounds
            .iter()
            .copied()
            .filter(|_| dice.roll(3) == 0)
            .collect();
        let ranges = (0..=bounds.len()).map(|at| {
            let mut groups = vec![0, 1, 2];
            for place in [2, 1] {
                groups.swap(place, dice.below(place + 1));
            }
            groups.truncate(1 + dice.below(3));
            Range {
                from: at.checked_sub(1).map(|before| bounds[before]),
                to: bounds.get(at).copied(),
                groups,
                tables: [1, 1, 2, 3][dice.below(4)],
                first: [0, 0, 10][dice.below(3)],
            }
        });
        Self {
            hash,
            ranges: ranges.collect(),
        }
    }

    /// The physical tables, each with its group.
    fn physical(&self, table: &str) -> BTreeSet<(usize, String)> {
        let mut all = BTreeSet::new();
        for range in &self.ranges {
            for (at, group) in range.groups.iter().enumerate() {
                for number in 0..range.tables {
                    let number = at * range.tables + number + range.first;
                    all.insert(match range.tables {
                        1 => (*group, table.to_owned()),
                        _ => (*group, format!("{table}_{number}")),
                    });
                }
            }
        }
        all
    }

    fn toml(&self, table: &str, keys: Keys, is_xa: bool) -> String {
        let key_type = match keys {
            Keys::Int => "int",
            Keys::Text => "string",
            Keys::Date => "date",
        };
        let writes = if is_xa { "xa" } else { "deny" };
        let mut toml = format!(
            "[[tables]]\nname = \"{table}\"\nkey = \"uid\"\nkey_type = \"{key_type}\"\nhash = \"{}\"\nmulti_shard_writes = \"{writes}\"\nranges = [",
            self.hash
        );
        for range in &self.ranges {
            let end = |name: &str, end: Option<&str>| {
                end.map_or_else(String::new, |end| format!("{name} = {end}, "))
            };
            let names: Vec<&str> = range.groups.iter().map(|group| GROUPS[*group]).collect();
            let _ = write!(
                toml,
                "{{ {}{}groups = {names:?}, tables = {}, first = {} }}, ",
                end("from", range.from),
                end("to", range.to),
                range.tables,
                range.first
            );
        }
        toml + "]\n"
    }
}

impl Ground {
    pub(super) fn new(bed: &Bed, dice: &mut Dice, keys: Keys) -> Self {
        let of: &[&'static str] = match keys {
            Keys::Int => &INTS,
            Keys::Text => &TEXTS,
            Keys::Date => &DATES,
        };
        let column = of[dice.below(of.len())];
        let base = match column {
            "BIGINT UNSIGNED" => UNSIGNED,
            _ => -3,
        };
        let ground = Self {
            schema: bed.schema(),
            whole: bed.schema(),
            keys,
            base,
            column,
            rule: Rule::new(dice, keys, base),
            far: Rule::new(dice, keys, base),
            is_xa: dice.roll(2) == 0,
        };
        ground.make(bed);
        ground
    }

    /// The name of its schema in a group.
    fn there(&self, group: usize) -> String {
        match group {
            0 => self.schema.to_string(),
            _ => format!("{}_{}", self.schema, GROUPS[group]),
        }
    }

    fn columns(&self, table: &str) -> String {
        let key = self.column;
        match table {
            "ord" => {
                format!("(uid {key} PRIMARY KEY, amt INT, code VARCHAR(10), n INT DEFAULT 3)")
            }
            "item" => format!("(uid {key}, sku INT, KEY (uid))"),
            "far" => format!("(uid {key} PRIMARY KEY, m INT)"),
            "zone" => "(id INT PRIMARY KEY, name VARCHAR(40))".to_owned(),
            _ => "(k INT, name VARCHAR(40))".to_owned(),
        }
    }

    fn make(&self, bed: &Bed) {
        let mut servers = [bed.root(Node::Primary), bed.root(Node::Second)];
        for group in [1, 2] {
            servers[1].ok(&format!("CREATE DATABASE {}", self.there(group)));
        }
        let every = |table: &str| (0..3).map(|group| (group, table.to_owned())).collect();
        for (table, places) in [
            ("ord", self.rule.physical("ord")),
            ("item", self.rule.physical("item")),
            ("far", self.far.physical("far")),
            ("zone", every("zone")),
            ("misc", BTreeSet::from([(0, "misc".to_owned())])),
        ] {
            let columns = self.columns(table);
            servers[0].ok(&format!("CREATE TABLE {}.{table} {columns}", self.whole));
            for (group, name) in places {
                let server = &mut servers[usize::from(group != 0)];
                server.ok(&format!(
                    "CREATE TABLE {}.{name} {columns}",
                    self.there(group)
                ));
            }
        }
        let mut wholes = vec![(0, self.whole.to_string())];
        wholes.extend((0..3).map(|group| (usize::from(group != 0), self.there(group))));
        for (at, (server, schema)) in wholes.into_iter().enumerate() {
            servers[server].ok(&format!(
                "INSERT INTO {schema}.zone VALUES (1, 'one'), (2, 'two'), (4, NULL), (5, 'five')"
            ));
            if at < 2 {
                servers[server].ok(&format!(
                    "INSERT INTO {schema}.misc VALUES (1, 'm'), (5, 'n')"
                ));
            }
        }
        bed.wait_replicas();
    }

    /// Its part of the configuration, for `[[tables]]`.
    pub(super) fn toml(&self) -> String {
        let table = |name: &str, rule: &Rule| {
            rule.toml(&format!("{}.{name}", self.schema), self.keys, self.is_xa)
        };
        format!(
            "{}{}{}",
            table("ord", &self.rule),
            table("item", &self.rule),
            table("far", &self.far)
        )
    }

    /// The name of its schema, for a group's `schemas`.
    pub(super) fn renamed(&self, group: usize) -> String {
        format!("{} = \"{}\"", self.schema, self.there(group))
    }

    /// What it is, for who reads of a difference.
    pub(super) fn told(&self) -> String {
        format!("{} {}", self.column, self.toml())
    }

    /// The rows of its global table in each group.
    pub(super) fn zones(&self, bed: &Bed) -> Vec<String> {
        let rows = (0..3).map(|group| {
            let node = [Node::Primary, Node::Second][usize::from(group != 0)];
            let sql = format!("SELECT * FROM {}.zone ORDER BY id", self.there(group));
            format!("{:?}", bed.root(node).ok(&sql).rows())
        });
        rows.collect()
    }

    pub(super) fn drop(&self, bed: &Bed) {
        for group in [1, 2] {
            let _ = bed
                .root(Node::Second)
                .try_query(&format!("DROP DATABASE IF EXISTS {}", self.there(group)));
        }
    }
}
