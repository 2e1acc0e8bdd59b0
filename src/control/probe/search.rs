//! Which tables every group has, from what the groups' primaries were seen to have. Asks nobody.
//!
//! A table is global from the look at which every group answered, had it, and defined it as the others do. From then on it stays so,
//! whatever becomes of it in one group or the other: statements on it would be done in one place only, without a word. Only one that is
//! left in a single group, or in none, for some time is taken for dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::definitions::{Definition, difference};
use crate::shard::Found;

/// More tables are not found: who has so many in every group has something else in mind.
pub(super) const FOUND_MAX: usize = 256;
/// A table that is not there for so long is not only being made anew.
const LOST_FOR: Duration = Duration::from_secs(5);

/// A table that is global, or may be.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// As each group that has it defines it.
    pub(super) definitions: Vec<Definition>,
    /// It is global already.
    pub(super) is_known: bool,
    /// Its rows were seen to be others in one group than in another.
    pub(super) has_other_rows: bool,
}

impl Table {
    /// So many groups have it, and all define it alike.
    pub(super) fn is_alike_in(&self, groups: usize) -> bool {
        self.definitions.len() == groups
            && self
                .definitions
                .split_first()
                .is_some_and(|(first, others)| {
                    let is_it = |other: &Definition| difference(first, other).is_none();
                    others.iter().all(is_it)
                })
    }
}

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    /// The schemas that are looked through.
    pub(super) schemas: &'a BTreeSet<String>,
    /// The groups that answered.
    pub(super) groups: &'a [String],
    pub(super) tables: BTreeMap<(String, String), Table>,
    /// All groups did.
    pub(super) is_complete: bool,
    /// Tables that one of them does not have.
    pub(super) apart: BTreeSet<(String, String)>,
}

/// What is made of it.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) found: Found,
    pub(super) wrong: Vec<String>,
    /// A table may be dropped: another look is to tell.
    pub(super) is_leaving: bool,
}

/// What is kept from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Since when a table is in one group at most.
    lost: BTreeMap<(String, String), Instant>,
}

impl Search {
    /// See the module's words.
    pub(super) fn judge(&mut self, before: &Found, seen: &Seen<'_>, now: Instant) -> Judged {
        let mut found = before.clone();
        if !seen.is_complete {
            // What is in force stays, and what is not known stays so.
            if found.schemas != *seen.schemas {
                found.apart.clone_from(&seen.apart);
            }
            return Judged {
                found,
                ..Judged::default()
            };
        }
        let mut is_leaving = false;
        for name in &before.tables {
            let Some(table) = seen.tables.get(name) else {
                // The configuration has it as something else meanwhile, or leaves it out.
                found.tables.remove(name);
                continue;
            };
            let groups = table.definitions.len();
            if groups > 1 || seen.groups.len() < 2 {
                self.lost.remove(name);
                continue;
            }
            let since = *self.lost.entry(name.clone()).or_insert(now);
            if now.duration_since(since) >= LOST_FOR {
                self.lost.remove(name);
                found.tables.remove(name);
            } else {
                is_leaving = true;
            }
        }
        self.lost.retain(|name, _| before.tables.contains(name));
        let groups = seen.groups.len();
        let new = seen.tables.iter();
        let new = new.filter(|(_, table)| !table.is_known && table.is_alike_in(groups));
        let (unlike, new): (Vec<_>, Vec<_>) = new.partition(|(_, table)| table.has_other_rows);
        let names = |of: Vec<(&(String, String), &Table)>| -> BTreeSet<(String, String)> {
            of.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let (unlike, new) = (names(unlike), names(new));
        let count = found.tables.union(&new).count();
        if count > FOUND_MAX {
            return Judged {
                wrong: vec![format!(
                    "{count} tables are in every group, and alike; `global_tables = \"auto\"` is for {FOUND_MAX} at most: name those that are meant"
                )],
                found,
                is_leaving,
            };
        }
        found.tables.extend(new);
        found.schemas.clone_from(seen.schemas);
        found.apart.clear();
        let told = unlike.iter().map(|(schema, name)| {
            format!(
                "table {schema}.{name} is in every group, and defined alike, but its rows are others in one than in another: it is not taken for a global table, and is not written to until they are the same; leave it out with `!{schema}.{name}` if it is none"
            )
        });
        let wrong = told.collect();
        found.unlike = unlike;
        Judged {
            found,
            wrong,
            is_leaving,
        }
    }
}

/// The tables that are in some of these sets, in whatever case, and not in all.
pub(super) fn in_some(groups: &[&BTreeSet<(String, String)>]) -> BTreeSet<(String, String)> {
    let folded = |of: &BTreeSet<(String, String)>| -> BTreeSet<(String, String)> {
        let names = of.iter();
        names
            .map(|(schema, name)| (schema.to_ascii_lowercase(), name.to_ascii_lowercase()))
            .collect()
    };
    let sets: Vec<_> = groups.iter().map(|of| folded(of)).collect();
    let all = sets.iter().flatten();
    all.filter(|name| !sets.iter().all(|of| of.contains(*name)))
        .cloned()
        .collect()
}

/// The tables that are in each of these sets, without those that are something else; names that differ in case only are none, as it
/// is not known which is meant.
pub(super) fn in_every(
    groups: &[&BTreeSet<(String, String)>],
    taken: &BTreeSet<(String, String)>,
) -> BTreeSet<(String, String)> {
    let folded = |(schema, name): &(String, String)| {
        (schema.to_ascii_lowercase(), name.to_ascii_lowercase())
    };
    let Some((first, others)) = groups.split_first() else {
        return BTreeSet::new();
    };
    let others: Vec<BTreeSet<(String, String)>> = others
        .iter()
        .map(|group| group.iter().map(folded).collect())
        .collect();
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for table in groups.iter().flat_map(|group| group.iter()) {
        *counts.entry(folded(table)).or_default() += 1;
    }
    first
        .iter()
        .filter(|table| !taken.contains(&folded(table)))
        // Once in each.
        .filter(|table| counts.get(&folded(table)) == Some(&groups.len()))
        .filter(|table| others.iter().all(|other| other.contains(&folded(table))))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn name(name: &str) -> (String, String) {
        ("s".to_owned(), name.to_owned())
    }

    fn set(names: &[&str]) -> BTreeSet<(String, String)> {
        names.iter().map(|n| name(n)).collect()
    }

    /// A table as the groups have it, each with one column of this type.
    fn table(of: &str, groups: &[(&str, &str)], is_known: bool) -> ((String, String), Table) {
        let definitions = groups.iter().map(|(group, kind)| Definition {
            group: (*group).to_owned(),
            kind: Server::MySql,
            columns: vec![vec![Some(kind.as_bytes().to_vec())]],
        });
        let definitions = definitions.collect();
        (
            name(of),
            Table {
                definitions,
                is_known,
                has_other_rows: false,
            },
        )
    }

    fn judged(
        search: &mut Search,
        before: &Found,
        tables: Vec<((String, String), Table)>,
        is_complete: bool,
        now: Instant,
    ) -> Judged {
        let seen = Seen {
            schemas: &["s".to_owned()].into(),
            groups: &["a".to_owned(), "b".to_owned()],
            tables: tables.into_iter().collect(),
            is_complete,
            apart: set(&["w"]),
        };
        search.judge(before, &seen, now)
    }

    #[test]
    fn tables_in_every_set() {
        let (a, b) = (
            set(&["x", "Y", "z", "q", "Q", "ord"]),
            set(&["x", "y", "w", "q", "ord"]),
        );
        let taken = set(&["ord"]);
        assert_eq!(in_every(&[&a, &b], &taken), set(&["x", "Y"]));
        assert_eq!(in_every(&[], &taken), set(&[]));
        assert_eq!(in_some(&[&a, &b]), set(&["z", "w"]));
        assert_eq!(in_some(&[&a]), set(&[]));
    }

    #[test]
    fn they_come_and_stay_and_go() {
        let (mut search, start) = (Search::default(), Instant::now());
        let both = |kind: &'static str| [("a", "int"), ("b", kind)];
        // Nothing is known as long as a group has not answered.
        let none = judged(
            &mut search,
            &Found::default(),
            vec![table("x", &both("int"), false)],
            false,
            start,
        );
        assert_eq!((none.found.schemas.len(), none.found.tables.len()), (0, 0));
        // But that one has a table which another has not says that it is none.
        assert_eq!(none.found.apart, set(&["w"]));
        let tables = vec![
            table("x", &both("int"), false),
            table("y", &both("text"), false),
            table("z", &[("a", "int")], false),
        ];
        let first = judged(&mut search, &Found::default(), tables, true, start).found;
        assert_eq!(
            (first.tables.clone(), first.schemas.len()),
            (set(&["x"]), 1)
        );
        // Defined otherwise, or not answered for, it stays.
        for (groups, is_complete) in [(both("text").to_vec(), true), (vec![("a", "int")], false)] {
            let again = judged(
                &mut search,
                &first,
                vec![table("x", &groups, true)],
                is_complete,
                start,
            );
            assert_eq!((again.found, again.is_leaving), (first.clone(), false));
        }
        // Left out by the configuration.
        let out = judged(&mut search, &first, Vec::new(), true, start);
        assert_eq!((out.found.tables, out.is_leaving), (set(&[]), false));
        // Away, back, and away for good.
        let one = || vec![table("x", &[("a", "int")], true)];
        let gone = judged(&mut search, &first, one(), true, start);
        assert_eq!((gone.found, gone.is_leaving), (first.clone(), true));
        let back = judged(
            &mut search,
            &first,
            vec![table("x", &both("int"), true)],
            true,
            start + LOST_FOR,
        );
        assert_eq!((back.found, back.is_leaving), (first.clone(), false));
        let later = start + LOST_FOR * 2;
        assert!(judged(&mut search, &first, one(), true, later).is_leaving);
        assert!(judged(&mut search, &first, one(), true, later + LOST_FOR / 2).is_leaving);
        let left = judged(&mut search, &first, one(), true, later + LOST_FOR);
        assert_eq!((left.found.tables, left.is_leaving), (set(&[]), false));
    }

    #[test]
    fn other_rows_are_told_until_they_are_the_same() {
        let (mut search, now) = (Search::default(), Instant::now());
        let with = |has_other_rows: bool| {
            let (name, x) = table("x", &[("a", "int"), ("b", "int")], false);
            let x = Table {
                has_other_rows,
                ..x
            };
            vec![(name, x)]
        };
        let first = judged(&mut search, &Found::default(), with(true), true, now);
        assert_eq!((first.found.tables.len(), first.wrong.len()), (0, 1));
        assert_eq!(first.found.unlike, set(&["x"]));
        // Nobody has answered: they are no more alike than they were.
        let again = judged(&mut search, &first.found, Vec::new(), false, now);
        assert_eq!(again.found, first.found);
        let then = judged(&mut search, &first.found, with(false), true, now);
        assert_eq!((then.found.unlike.len(), then.wrong.len()), (0, 0));
        assert_eq!(then.found.tables, set(&["x"]));
    }

    #[test]
    fn there_are_not_too_many() {
        let names: Vec<String> = (0..=FOUND_MAX).map(|n| format!("t{n}")).collect();
        let tables = names
            .iter()
            .map(|n| table(n, &[("a", "int"), ("b", "int")], false));
        let result = judged(
            &mut Search::default(),
            &Found::default(),
            tables.collect(),
            true,
            Instant::now(),
        );
        assert_eq!(result.found, Found::default());
        assert!(result.wrong[0].starts_with("257 tables are in every group"));
    }
}
