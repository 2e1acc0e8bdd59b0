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

/// The tables of a configuration that every group has, and the schemas of which it is not known which others are.
pub(super) fn globals(
    config: &Config,
    tables: &[Table],
    found: &Found,
) -> (Vec<(String, String)>, Vec<String>) {
    let sharding = &config.sharding;
    let split = |name: &String| {
        let (schema, name) = name.split_once('.')?;
        Some((schema.to_owned(), name.to_owned()))
    };
    let mut all: Vec<(String, String)> = sharding.global_tables.iter().filter_map(split).collect();
    let doubt = Found::schemas_of(config).into_iter();
    let doubt = doubt.filter(|schema| !found.schemas.contains(schema));
    if sharding.finds_globals {
        let taken = taken(config, tables);
        let is_free = |table: &&(String, String)| !taken.contains(&folded(&table.0, &table.1));
        all.extend(found.tables.iter().filter(is_free).cloned());
    }
    all.sort_by(|a, b| order(a, b.0.as_bytes(), b.1.as_bytes()));
    all.dedup_by(|a, b| order(a, b.0.as_bytes(), b.1.as_bytes()).is_eq());
    (all, doubt.collect())
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
        let at = self
            .globals
            .binary_search_by(|global| order(global, schema, name));
        at.ok().and_then(|at| self.globals.get(at))
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
        if self.doubt.is_empty() {
            return false;
        }
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
        let known = Placement::new(&auto, &[0, 1]).unwrap();
        assert!(!known.may_change_in_doubt(b"UPDATE t SET a = 1", &d, Some(b"s")));
    }
}
