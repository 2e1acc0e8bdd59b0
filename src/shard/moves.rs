//! What a new configuration says of rows that are there already: those of which it says that they lie elsewhere would be found no more,
//! and written a second time, since Atlas moves none. A table that is no longer sharded is looked for in the accounts' own groups, by its
//! own name; one that is newly sharded was there before, if it was anywhere: what servers have is not known here, and so that is only said.

use std::collections::BTreeSet;

use super::key::Key;
use super::map::{Range, Table};
use crate::config::Config;

/// A physical table: group, schema and name there.
type Place<'a> = (&'a str, &'a str, &'a str);

/// A configuration's tables, its groups known by their names.
struct Map<'a> {
    config: &'a Config,
    tables: Vec<Table>,
}

impl<'a> Map<'a> {
    fn new(config: &'a Config) -> Self {
        let places: Vec<usize> = (0..config.groups.len()).collect();
        let tables = config.tables.iter();
        Self {
            config,
            tables: tables.map(|table| Table::new(table, &places)).collect(),
        }
    }

    /// Where the rows of each bucket of a range are.
    fn places<'m>(&'m self, table: &'m Table, range: &Range) -> Vec<Place<'m>> {
        let shards = range.buckets.iter().filter_map(|at| table.shards.get(*at));
        let place = |shard: &'m super::Shard| {
            let group = self.config.groups.get(shard.group)?;
            let schema = group.schemas.get(&table.schema);
            let schema = schema.map_or(table.schema.as_str(), String::as_str);
            Some((group.name.as_str(), schema, shard.name.as_str()))
        };
        shards.filter_map(place).collect()
    }

    /// All rows of a table are where it would be if it were not sharded, whichever account asks.
    fn is_at_home(&self, table: &Table, other: &Self) -> bool {
        let homes = other.config.users.iter().map(|user| user.group);
        let homes = homes.filter_map(|group| other.config.groups.get(group));
        let homes: Vec<Place<'_>> = homes
            .map(|group| {
                let schema = group.schemas.get(&table.schema);
                let schema = schema.map_or(table.schema.as_str(), String::as_str);
                (group.name.as_str(), schema, table.name.as_str())
            })
            .collect();
        let mut all = table
            .ranges
            .iter()
            .flat_map(|range| self.places(table, range));
        all.all(|place| homes.iter().all(|home| *home == place))
    }

    fn has(&self, table: &Table) -> bool {
        let is_it = |other: &Table| other.schema == table.schema && other.name == table.name;
        self.tables.iter().any(is_it)
    }
}

/// Tables that are sharded after a change and were not before; a text for each of which rows may be elsewhere already.
#[must_use]
pub fn newly(before: &Config, after: &Config) -> Vec<String> {
    let (old, new) = (Map::new(before), Map::new(after));
    let tables = new.tables.iter().filter(|table| !old.has(table));
    let apart = tables.filter(|table| !new.is_at_home(table, &old));
    let told = apart.map(|table| {
        format!(
            "{0}.{1} is sharded now: rows that a table of that name has already are found only where the map has them, Atlas moves none",
            table.schema, table.name
        )
    });
    told.collect()
}

/// What rows would be looked for elsewhere after a change of the configuration; a text for each table that has some.
#[must_use]
pub fn moves(before: &Config, after: &Config) -> Vec<String> {
    let (old, new) = (Map::new(before), Map::new(after));
    let pairs = old.tables.iter().filter_map(|was| {
        let is_it = |table: &&Table| table.schema == was.schema && table.name == was.name;
        new.tables.iter().find(is_it).map(|is| (was, is))
    });
    let told = pairs.filter_map(|(was, is)| {
        let how = moved((&old, was), (&new, is))?;
        Some(format!("{}.{}: {how}", was.schema, was.name))
    });
    let gone = old
        .tables
        .iter()
        .filter(|was| !new.has(was) && !old.is_at_home(was, &new));
    let gone = gone.map(|was| {
        format!(
            "{}.{}: it would not be sharded any more, and looked for whole in the accounts' own groups",
            was.schema, was.name
        )
    });
    told.chain(gone).collect()
}

fn moved((old, was): (&Map<'_>, &Table), (new, is): (&Map<'_>, &Table)) -> Option<String> {
    if !was.key.eq_ignore_ascii_case(&is.key) {
        return Some(format!("its key was {} and would be {}", was.key, is.key));
    }
    if was.key_type != is.key_type {
        return Some("its key would be of another type".to_owned());
    }
    // Between two neighbours nothing changes in either.
    let ends = was.ranges.iter().chain(&is.ranges);
    let ends = ends.flat_map(|range| [range.from.as_ref(), range.to.as_ref()]);
    let from: BTreeSet<Option<&Key>> = ends.chain([None]).collect();
    from.into_iter().find_map(|from| {
        let begin = from.map_or_else(
            || "the lowest".to_owned(),
            |key| String::from_utf8_lossy(&key.to_text()).into_owned(),
        );
        let range = at(&was.ranges, from)?;
        let Some(other) = at(&is.ranges, from) else {
            return Some(format!("keys from {begin} on would be in no range"));
        };
        let (there, then) = (old.places(was, range), new.places(is, other));
        let one = there.first();
        let is_one = there.iter().chain(&then).all(|place| Some(place) == one);
        let is_same = is_one || was.hash == is.hash && there == then;
        (!is_same).then(|| {
            format!(
                "rows with keys from {begin} on would be looked for elsewhere: they are hashed over {} tables, and would be over {}, or over others",
                there.len(),
                then.len()
            )
        })
    })
}

/// The range of a key, or of all that are lower than any that is named.
fn at<'r>(ranges: &'r [Range], key: Option<&Key>) -> Option<&'r Range> {
    ranges.iter().find(|range| match key {
        Some(key) => range.holds(key),
        None => range.from.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn config(tables: &str) -> Config {
        let text = format!(
            "[[groups]]\nname = \"a\"\nprimary = \"h:1\"\n[[groups]]\nname = \"b\"\nprimary = \"i:1\"\nschemas = {{ s = \"s_b\" }}\n\
             [[users]]\nname = \"u\"\npassword = \"\"\ngroup = \"a\"\n{tables}"
        );
        config::load(&text, "atlas.toml", &|_| None).unwrap()
    }

    fn table(rest: &str) -> String {
        format!("[[tables]]\nname = \"s.t\"\nkey = \"k\"\n{rest}\n")
    }

    #[test]
    fn c4_rows_that_are_there_stay_where_they_are_looked_for() {
        let of = |ranges: &str| table(&format!("ranges = [{ranges}]"));
        let two = "{ to = 10, groups = [\"a\"] }, { from = 10, to = 20, groups = [\"a\", \"b\"], tables = 2 }";
        let base = config(&of(two));
        let moves_to = |tables: &str| moves(&base, &config(tables)).join("\n");
        // Nothing, more above, more below a whole, other tables.
        for same in [
            of(two),
            of(&format!("{two}, {{ from = 20, groups = [\"b\"] }}")),
            of(&two.replacen(
                "{ to = 10",
                "{ to = 5, groups = [\"a\"] }, { from = 5, to = 10",
                1,
            )),
            of(two) + &of(two).replace("s.t", "s.u"),
        ] {
            assert_eq!(moves_to(&same), "", "{same}");
        }
        for (other, why) in [
            (
                of(two).replace("tables = 2", "tables = 4"),
                "from 10 on would be looked for elsewhere: they are hashed over 4 tables, and would be over 8",
            ),
            (
                of(two).replace("[\"a\", \"b\"]", "[\"b\", \"a\"]"),
                "from 10 on",
            ),
            (
                of(two).replace("to = 10, groups = [\"a\"]", "to = 10, groups = [\"b\"]"),
                "from the lowest on",
            ),
            (
                of(two).replace("tables = 2", "tables = 2, first = 1"),
                "from 10 on",
            ),
            (
                of(two)
                    .replace("to = 10,", "to = 12,")
                    .replace("from = 10", "from = 12"),
                "from 10 on",
            ),
            (
                of("{ to = 10, groups = [\"a\"] }"),
                "keys from 10 on would be in no range",
            ),
            (of(two) + "hash = \"crc32\"\n", "from 10 on"),
            (String::new(), "it would not be sharded any more"),
            (
                of(two).replace("key = \"k\"", "key = \"j\""),
                "its key was k and would be j",
            ),
        ] {
            let told = moves_to(&other);
            assert!(
                told.starts_with("s.t: ") && told.contains(why),
                "{other}: {told}"
            );
        }
        // The group's schema has another name.
        let mut renamed = config(&of(two));
        for group in &mut renamed.groups {
            group.schemas.clear();
        }
        assert!(moves(&base, &renamed).join("").contains("from 10 on"));
    }

    #[test]
    fn c4_what_is_whole_in_its_own_group_may_be_either() {
        let at_home = config(&table("ranges = [{ groups = [\"a\"] }]"));
        let parts = config(&table("ranges = [{ groups = [\"a\"], tables = 2 }]"));
        let elsewhere = config(&table("ranges = [{ groups = [\"b\"] }]"));
        let none = config("");
        assert!(moves(&at_home, &none).is_empty());
        assert!(newly(&none, &at_home).is_empty());
        for other in [&parts, &elsewhere] {
            assert_eq!(moves(other, &none).len(), 1);
            let told = newly(&none, other);
            assert!(
                told.len() == 1 && told[0].starts_with("s.t is sharded now"),
                "{told:?}"
            );
            assert!(newly(other, other).is_empty());
        }
    }
}
