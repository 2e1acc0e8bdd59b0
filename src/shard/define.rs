//! Statements that define a sharded table: CREATE, ALTER, DROP and TRUNCATE TABLE, CREATE and DROP INDEX. They are read token by token, and
//! concern every physical table.

use super::describe::{Item, items};
use super::map::Placement;
use super::mention;
use super::refused::Refused;
use super::shape::{Act, Shape};
use crate::sql::Dialect;

/// Statements longer than this are not read.
const LENGTH_MAX: usize = 1024 * 1024;

/// Words of a definition with a place among them.
struct Words<'a>(&'a [Item]);

impl Words<'_> {
    fn is(&self, at: usize, words: &[&str]) -> bool {
        self.0.get(at).is_some_and(|item| item.is_one_of(words))
    }

    /// Behind these words, where they stand here, each of them or none.
    fn behind(&self, at: usize, words: &[&str]) -> usize {
        let all = words
            .iter()
            .enumerate()
            .all(|(n, word)| self.is(at + n, &[word]));
        if all { at + words.len() } else { at }
    }

    /// Where the name of the table stands; nothing for another statement.
    fn table(&self) -> Option<usize> {
        let index = |at: usize| {
            let at = self.behind(self.behind(at, &["if", "not", "exists"]), &["if", "exists"]);
            let on = (at + 1..at + 5).find(|at| self.is(*at, &["on"]))?;
            Some(on + 1)
        };
        if self.is(0, &["truncate"]) {
            Some(self.behind(1, &["table"]))
        } else if self.is(0, &["alter"]) {
            let at = self.behind(self.behind(1, &["online"]), &["ignore"]);
            self.is(at, &["table"])
                .then(|| self.behind(at + 1, &["if", "exists"]))
        } else if self.is(0, &["create"]) {
            let mut at = self.behind(1, &["or", "replace"]);
            if self.is(at, &["table"]) {
                return Some(self.behind(at + 1, &["if", "not", "exists"]));
            }
            while self.is(at, &["online", "offline", "unique", "fulltext", "spatial"]) {
                at += 1;
            }
            self.is(at, &["index"]).then(|| index(at + 1)).flatten()
        } else if self.is(0, &["drop"]) {
            if self.is(1, &["table"]) {
                return Some(self.behind(2, &["if", "exists"]));
            }
            self.is(1, &["index"]).then(|| index(2)).flatten()
        } else {
            None
        }
    }
}

/// The shape of a statement that defines a sharded table; nothing for any other.
///
/// # Errors
/// It does more than can be done to every physical table.
pub(super) fn define(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> Result<Option<Shape>, Refused> {
    if text.len() > LENGTH_MAX {
        return Ok(None);
    }
    let head = items(text, d, 16);
    let Some(at) = Words(&head).table() else {
        return Ok(None);
    };
    let all = items(text, d, usize::MAX);
    let words = Words(&all);
    let Some(first) = all.get(at) else {
        return Ok(None);
    };
    let (schema_item, name, behind) = match (all.get(at + 1), all.get(at + 2)) {
        (Some(dot), Some(name)) if dot.is_dot => (Some(first), name, at + 3),
        _ => (None, first, at + 1),
    };
    let of = match (schema_item, schema) {
        (Some(schema), _) => placement.table(&schema.name, &name.name),
        (None, Some(schema)) => placement.table(schema, &name.name),
        (None, None) => None,
    };
    let Some(of) = of else {
        return Ok(None);
    };
    let key = placement
        .tables
        .get(of)
        .map_or("", |table| table.key.as_str());
    check(&words, behind, key)?;
    let mut rest = text.to_vec();
    let places = schema_item
        .into_iter()
        .chain([name])
        .map(|item| item.place.clone());
    for place in places {
        if let Some(bytes) = rest.get_mut(place) {
            bytes.fill(b' ');
        }
    }
    if mention::is_acted_on(placement, &rest, d, schema) {
        return Err(Refused::new(
            "a definition that names another sharded or global table",
        ));
    }
    let schema = schema_item.map(|schema| schema.place.clone());
    Ok(Some(Shape::about(
        Act::Define,
        of,
        name.place.clone(),
        schema,
    )))
}

/// What must not be done to the tables one by one, or not at all.
fn check(words: &Words<'_>, behind: usize, key: &str) -> Result<(), Refused> {
    let refuse = |reason: &str| Err(Refused::new(reason));
    let is_drop = words.is(0, &["drop"]) && words.is(1, &["table"]);
    if is_drop && words.0.get(behind).is_some_and(|item| item.is_comma) {
        return refuse("DROP TABLE of several tables, one of them sharded: drop them one by one");
    }
    let is_alter = words.is(0, &["alter"]);
    let is_create = words.is(0, &["create"]);
    let mut depth = 0_usize;
    for at in behind..words.0.len() {
        let Some(item) = words.0.get(at) else { break };
        depth = (depth + usize::from(item.opens)).saturating_sub(usize::from(item.closes));
        if item.is_end && at + 1 < words.0.len() {
            return refuse("a definition of a sharded table among other statements: send it alone");
        }
        if is_create && (words.is(at, &["select"]) || depth <= 1 && words.is(at, &["like"])) {
            return refuse("CREATE TABLE ... LIKE or SELECT of a sharded table: write its columns");
        }
        if !is_alter || depth > 0 {
            continue;
        }
        if words.is(at, &["rename"]) && !words.is(at + 1, &["column", "index", "key"])
            || words.is(at, &["exchange", "discard", "import"])
        {
            return refuse(
                "RENAME, EXCHANGE, DISCARD or IMPORT of a sharded table: do it to its tables in each group, by their names there, and change the configuration where it names the table",
            );
        }
        if words.is(at, &["drop", "change", "modify", "rename"]) {
            let column = words.behind(words.behind(at + 1, &["column"]), &["if", "exists"]);
            let is_key = |item: &Item| item.name.eq_ignore_ascii_case(key.as_bytes());
            if words.0.get(column).is_some_and(is_key) {
                return Err(Refused::new(format!(
                    "it changes the shard key {key}: rows would be looked for in the wrong place"
                )));
            }
        }
    }
    Ok(())
}
