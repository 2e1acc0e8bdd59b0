//! Tables that every group has: those that the configuration names, those that were found on the servers, and what is not said of a
//! table while that is not known. Looking at servers is `control`'s.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::map::{Placement, Shard, Table, is_name};
use super::refused::Refused;
use crate::config::Config;
use crate::sql::{self, Dialect, Tok};

/// What was found on the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Schemas that were looked through in every group.
    pub schemas: BTreeSet<String>,
    /// Schema and name of each table that every group has, and all alike.
    pub tables: BTreeSet<(String, String)>,
    /// Those that are defined alike and have other rows in one group than in another.
    pub unlike: BTreeSet<(String, String)>,
    /// While not all groups have answered: those that some group was seen not to have.
    pub apart: BTreeSet<(String, String)>,
}

impl Found {
    /// The schemas that are to be looked through: those with sharded tables, which others are joined with.
    #[must_use]
    pub fn schemas_of(config: &Config) -> BTreeSet<String> {
        let mut schemas: BTreeSet<String> = BTreeSet::new();
        for table in config
            .tables
            .iter()
            .filter(|_| config.sharding.finds_globals)
        {
            if !schemas
                .iter()
                .any(|s| s.eq_ignore_ascii_case(&table.schema))
            {
                schemas.insert(table.schema.clone());
            }
        }
        schemas
    }
}

/// Tables that every group has.
#[derive(Debug, Default)]
pub(super) struct Globals {
    pub(super) tables: Vec<(String, String)>,
    /// With other rows in one than in another: they are none, and must not be changed in one group.
    pub(super) unlike: Vec<(String, String)>,
    /// Schemas of which it is not known which others are.
    pub(super) doubt: Vec<String>,
    /// Tables in them that are none.
    pub(super) apart: Vec<(String, String)>,
}

/// Those of a configuration.
pub(super) fn globals(config: &Config, tables: &[Table], found: &Found) -> Globals {
    let sharding = &config.sharding;
    let split = |name: &String| {
        let (schema, name) = name.split_once('.')?;
        Some((schema.to_owned(), name.to_owned()))
    };
    let mut all: Vec<(String, String)> = sharding.global_tables.iter().filter_map(split).collect();
    let mut unlike = Vec::new();
    let doubt = Found::schemas_of(config).into_iter();
    let doubt = doubt.filter(|schema| !found.schemas.contains(schema));
    if sharding.finds_globals {
        let taken = taken(config, tables);
        let is_free = |table: &&(String, String)| !taken.contains(&folded(&table.0, &table.1));
        all.extend(found.tables.iter().filter(is_free).cloned());
        unlike.extend(found.unlike.iter().filter(is_free).cloned());
    }
    let mut apart: Vec<(String, String)> = found.apart.iter().cloned().collect();
    for tables in [&mut all, &mut unlike, &mut apart] {
        tables.sort_by(|a, b| order(a, b.0.as_bytes(), b.1.as_bytes()));
        tables.dedup_by(|a, b| order(a, b.0.as_bytes(), b.1.as_bytes()).is_eq());
    }
    unlike.retain(|table| find(&all, table.0.as_bytes(), table.1.as_bytes()).is_none());
    Globals {
        tables: all,
        unlike,
        doubt: doubt.collect(),
        apart,
    }
}

fn find<'t>(
    tables: &'t [(String, String)],
    schema: &[u8],
    name: &[u8],
) -> Option<&'t (String, String)> {
    let at = tables.binary_search_by(|table| order(table, schema, name));
    at.ok().and_then(|at| tables.get(at))
}

/// Names in lower case of tables that are none of those, whoever has them: sharded ones, and what is left out.
fn taken(config: &Config, tables: &[Table]) -> BTreeSet<(String, String)> {
    let left_out = config.sharding.not_global.iter();
    let left_out = left_out.filter_map(|name| name.split_once('.'));
    tables
        .iter()
        .flat_map(|table| {
            let shards = table.shards.iter().map(|shard| shard.name.as_str());
            let names = shards.chain([table.name.as_str()]);
            names.map(|name| (table.schema.as_str(), name))
        })
        .chain(left_out)
        .map(|(schema, name)| folded(schema, name))
        .collect()
}

fn folded(schema: &str, name: &str) -> (String, String) {
    (schema.to_ascii_lowercase(), name.to_ascii_lowercase())
}

/// Names in order, without regard to case.
fn order(known: &(String, String), schema: &[u8], name: &[u8]) -> Ordering {
    let folded = |known: &str, name: &[u8]| {
        let known = known.bytes().map(|b| b.to_ascii_lowercase());
        known.cmp(name.iter().map(u8::to_ascii_lowercase))
    };
    folded(&known.0, schema).then_with(|| folded(&known.1, name))
}

impl Placement {
    fn global(&self, schema: &[u8], name: &[u8]) -> Option<&(String, String)> {
        find(&self.globals, schema, name)
    }

    /// Whether every group has the table of this name.
    pub(super) fn is_global(&self, schema: &[u8], name: &[u8]) -> bool {
        self.global(schema, name).is_some()
    }

    /// The schema of a table that every group has, as the configuration writes it.
    pub(super) fn global_schema(&self, schema: &[u8], name: &[u8]) -> Option<&str> {
        self.global(schema, name).map(|global| global.0.as_str())
    }

    /// Names in lower case of tables that are not global, wherever they are.
    #[must_use]
    pub fn taken(&self, config: &Config) -> BTreeSet<(String, String)> {
        taken(config, &self.tables)
    }

    /// Whether a sharded table is among the tables of a schema that were seen in a group, if one is to be there.
    #[must_use]
    pub fn is_seen_in(&self, group: usize, schema: &str, names: &BTreeSet<String>) -> bool {
        let tables = self.tables.iter();
        let mut shards = tables
            .filter(|table| is_name(&table.schema, schema.as_bytes()))
            .flat_map(|table| table.shards.iter().filter(|shard| shard.group == group))
            .peekable();
        let names: BTreeSet<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect();
        let is_seen = |shard: &Shard| names.contains(&shard.name.to_ascii_lowercase());
        shards.peek().is_none() || shards.any(is_seen)
    }

    /// Schemas of which it is not known yet which of their tables every group has.
    #[must_use]
    pub fn doubt(&self) -> &[String] {
        &self.doubt
    }

    fn is_in_doubt(&self, schema: &[u8]) -> bool {
        self.doubt.iter().any(|known| is_name(known, schema))
    }

    /// Whether a text may change a table that every group may have: it must not be changed in one group while that is not known.
    pub(super) fn may_change_in_doubt(
        &self,
        text: &[u8],
        d: &Dialect,
        schema: Option<&[u8]>,
    ) -> bool {
        !self.doubt.is_empty() && self.changes_in(text, d, schema)
    }

    /// Whether every group has a table of this name, with other rows.
    #[must_use]
    pub fn is_unlike(&self, schema: &str, name: &str) -> bool {
        find(&self.unlike, schema.as_bytes(), name.as_bytes()).is_some()
    }

    /// Whether a table is known not to be in every group, while that is not known of all.
    pub(super) fn is_apart(&self, schema: &[u8], name: &[u8]) -> bool {
        !self.is_in_doubt(schema) || find(&self.apart, schema, name).is_some()
    }

    /// Whether a text may change a table that every group has with other rows than another.
    pub(super) fn may_change_unlike(
        &self,
        text: &[u8],
        d: &Dialect,
        schema: Option<&[u8]>,
    ) -> bool {
        let is_it = |schema: &[u8], name: &[u8]| find(&self.unlike, schema, name).is_some();
        !self.unlike.is_empty()
            && self.names(text, d, schema, is_it)
            && begins_with(text, d, &CHANGES_ROWS)
    }

    /// What is said of such a text.
    pub(super) fn unlike_rows(&self) -> Refused {
        let names = self
            .unlike
            .iter()
            .map(|(schema, name)| format!("{schema}.{name}"));
        Refused::new(format!(
            "every group has a table that it may change, but not with the same rows ({}): make them alike, and it is a global table from the next look on; or leave it out (`!schema.table` in `global_tables`)",
            names.collect::<Vec<_>>().join(", ")
        ))
    }

    fn changes_in(&self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        let is_one_of = |word: &[u8], words: &[&str]| {
            words
                .iter()
                .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
        };
        let (mut is_first, mut is_with, mut changes) = (true, false, false);
        let mut names_schema = schema.is_some_and(|schema| self.is_in_doubt(schema));
        for t in sql::Tokens::new(text, d) {
            let bytes = text.get(t.start..t.end).unwrap_or_default();
            match t.tok {
                Tok::Semicolon => (is_first, is_with) = (true, false),
                Tok::Word if is_first => {
                    is_with = is_one_of(bytes, &["with"]);
                    changes |= is_one_of(bytes, &CHANGES);
                    is_first = false;
                }
                Tok::Word if is_with => changes |= is_one_of(bytes, &["update", "delete"]),
                _ => {}
            }
            names_schema |= match t.tok {
                Tok::Word => self.is_in_doubt(bytes),
                Tok::Name | Tok::Text => self.is_in_doubt(&super::mention::unquote(bytes)),
                _ => false,
            };
        }
        changes && names_schema
    }

    /// What is said of such a text.
    pub(super) fn in_doubt(&self) -> Refused {
        Refused::new(format!(
            "it is not known yet which tables of schema {} every group has, and it may change one of them: `global_tables = \"auto\"` waits for an answer of the primary of every group; name the tables there to do without",
            self.doubt.join(", ")
        ))
    }
}

/// What changes tables or their definitions begins with one of these.
const CHANGES: [&str; 10] = [
    "insert", "replace", "update", "delete", "load", "truncate", "alter", "drop", "create",
    "rename",
];

/// The same without what makes something new.
const CHANGES_ROWS: [&str; 9] = [
    "insert", "replace", "update", "delete", "load", "truncate", "alter", "drop", "rename",
];

/// Whether one of the statements of a text begins with one of these words, or may, behind WITH.
fn begins_with(text: &[u8], d: &Dialect, words: &[&str]) -> bool {
    let (mut is_first, mut is_with) = (true, false);
    sql::Tokens::new(text, d).any(|t| {
        let bytes = text.get(t.start..t.end).unwrap_or_default();
        let is_one = || {
            words
                .iter()
                .any(|w| bytes.eq_ignore_ascii_case(w.as_bytes()))
        };
        match t.tok {
            Tok::Semicolon => {
                (is_first, is_with) = (true, false);
                false
            }
            Tok::Word if std::mem::take(&mut is_first) => {
                is_with = bytes.eq_ignore_ascii_case(b"with");
                is_one()
            }
            Tok::Word => is_with && is_one(),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn config(globals: &str) -> Config {
        let text = format!(
            "[[groups]]\nname = \"a\"\nprimary = \"h:1\"\n[[groups]]\nname = \"b\"\nprimary = \"i:1\"\n\
             [[users]]\nname = \"u\"\npassword = \"\"\ngroup = \"a\"\n\
             [[tables]]\nname = \"s.ord\"\nkey = \"k\"\nranges = [{{ groups = [\"a\", \"b\"], tables = 2 }}]\n\
             [sharding]\nglobal_tables = {globals}\n"
        );
        config::load(&text, "atlas.toml", &|_| None).unwrap()
    }

    fn found(tables: &[&str]) -> Found {
        let tables = tables
            .iter()
            .map(|name| ("s".to_owned(), (*name).to_owned()));
        Found {
            schemas: ["s".to_owned()].into(),
            tables: tables.collect(),
            ..Found::default()
        }
    }

    fn names(placement: &Placement) -> Vec<&str> {
        placement
            .globals
            .iter()
            .map(|(_, name)| name.as_str())
            .collect()
    }

    #[test]
    fn what_is_found_and_what_is_not_meant() {
        let all = found(&["zone", "Color", "ord", "ORD_0", "ord_3", "ord_4", "log"]);
        let auto = config(r#"["auto", "!s.LOG", "s.color", "s.plan"]"#);
        let placement = Placement::with(&auto, &[0, 1], &all).unwrap();
        assert!(placement.doubt().is_empty());
        assert_eq!(names(&placement), ["color", "ord_4", "plan", "zone"]);
        for name in ["zone", "ZONE", "Color", "plan"] {
            assert!(placement.is_global(b"S", name.as_bytes()), "{name}");
            assert!(placement.words().has(name.as_bytes()), "{name}");
        }
        assert!(!placement.is_global(b"s", b"ord") && !placement.is_global(b"t", b"zone"));
        // What was found counts for nothing where it is not asked for.
        let named = Placement::with(&config(r#"["s.plan"]"#), &[0, 1], &all).unwrap();
        assert_eq!(names(&named), ["plan"]);
        assert!(Found::schemas_of(&config("[]")).is_empty());
    }

    #[test]
    fn what_has_other_rows_is_read_and_not_changed() {
        let d = Dialect::new(sql::Server::MySql, 80_036);
        let names = ["Color", "ord", "plan"];
        let unlike = names.map(|name| ("s".to_owned(), name.to_owned()));
        let found = Found {
            unlike: unlike.into(),
            ..found(&["zone"])
        };
        let auto = config(r#"["auto", "s.plan"]"#);
        let placement = Placement::with(&auto, &[0, 1], &found).unwrap();
        for (text, schema, wanted) in [
            ("UPDATE color SET a = 1", Some("s"), true),
            ("INSERT INTO s.`color` VALUES (1)", None, true),
            ("REPLACE COLOR SET a = 1", Some("S"), true),
            ("TRUNCATE color", Some("s"), true),
            ("DROP TABLE IF EXISTS x, color", Some("s"), true),
            ("ALTER TABLE color ADD b INT", Some("s"), true),
            ("RENAME TABLE color TO x", Some("s"), true),
            ("WITH a AS (SELECT 1) DELETE FROM color", Some("s"), true),
            ("SELECT 1; DELETE FROM color", Some("s"), true),
            ("DELETE FROM color", Some("other"), false),
            ("DELETE FROM color", None, false),
            ("SELECT * FROM color", Some("s"), false),
            ("WITH a AS (SELECT 1) SELECT * FROM color", Some("s"), false),
            ("CREATE TABLE IF NOT EXISTS color (a INT)", Some("s"), false),
            ("UPDATE t SET color = 1", Some("s"), false),
            ("UPDATE plan SET a = 1", Some("s"), false),
        ] {
            let schema = schema.map(str::as_bytes);
            let text = text.as_bytes();
            let got = placement.may_change_unlike(text, &d, schema);
            assert_eq!(got, wanted, "{}", String::from_utf8_lossy(text));
            if wanted {
                assert!(placement.words().occur_in(text));
                assert!(placement.is_mentioned(text, &d, schema));
                assert!(placement.read(text, &d, schema).is_err());
            }
        }
        let read = placement.read(b"SELECT * FROM color", &d, Some(b"s"));
        assert!(matches!(read, Ok(None)), "{read:?}");
    }

    #[test]
    fn in_doubt_nothing_is_changed() {
        let d = Dialect::new(sql::Server::MySql, 80_036);
        let auto = config(r#""auto""#);
        let placement = Placement::with(&auto, &[0, 1], &Found::default()).unwrap();
        assert_eq!(placement.doubt(), ["s"]);
        for (text, schema, wanted) in [
            ("UPDATE t SET a = 1", Some("s"), true),
            ("update t set a = 1", Some("S"), true),
            ("UPDATE t SET a = 1", Some("other"), false),
            ("UPDATE t SET a = 1", None, false),
            ("UPDATE s.t SET a = 1", Some("other"), true),
            ("DELETE FROM `s`.t", None, true),
            ("SELECT 1; INSERT INTO t VALUES (1)", Some("s"), true),
            ("WITH a AS (SELECT 1) UPDATE t SET a = 1", Some("s"), true),
            ("WITH a AS (SELECT 1) SELECT * FROM a", Some("s"), false),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", Some("s"), true),
            ("SELECT * FROM t", Some("s"), false),
            ("SHOW CREATE TABLE t", Some("s"), false),
            ("BEGIN", Some("s"), false),
            ("", Some("s"), false),
        ] {
            let schema = schema.map(str::as_bytes);
            let got = placement.may_change_in_doubt(text.as_bytes(), &d, schema);
            assert_eq!(got, wanted, "{text}");
            assert!(placement.words().occur_in(text.as_bytes()), "{text}");
            if wanted {
                assert!(
                    placement.read(text.as_bytes(), &d, schema).is_err(),
                    "{text}"
                );
            }
        }
        // What some group was seen not to have is no global table.
        let apart = ["misc", "Color"].map(|name| ("s".to_owned(), name.to_owned()));
        let some = Found {
            apart: apart.into(),
            ..Found::default()
        };
        let placement = Placement::with(&auto, &[0, 1], &some).unwrap();
        for (text, schema, wanted) in [
            ("UPDATE misc SET a = 1", Some("s"), true),
            ("INSERT INTO s.color SELECT * FROM misc", Some("s"), true),
            (
                "DELETE FROM misc WHERE a IN (SELECT a FROM COLOR)",
                Some("s"),
                true,
            ),
            (
                "UPDATE misc SET a = (SELECT 1 FROM other.zone)",
                Some("s"),
                true,
            ),
            ("INSERT INTO misc SELECT * FROM zone", Some("s"), false),
            ("UPDATE zone SET a = 1", Some("s"), false),
            ("UPDATE misc, zone SET misc.a = 1", Some("s"), false),
            ("TRUNCATE misc", Some("s"), false),
            ("UPDATE misc SET a = 1; DELETE FROM zone", Some("s"), false),
            ("LOAD DATA INFILE 'x' INTO TABLE misc", Some("s"), false),
        ] {
            let schema = schema.map(str::as_bytes);
            let read = placement.read(text.as_bytes(), &d, schema);
            assert_eq!(matches!(read, Ok(None)), wanted, "{text}: {read:?}");
        }
        let known = Placement::new(&auto, &[0, 1]).unwrap();
        assert!(!known.may_change_in_doubt(b"UPDATE t SET a = 1", &d, Some(b"s")));
    }
}
