//! What differs between two configurations, told key by key as the files write it. Passwords are never shown, and order and
//! comments do not count.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};

/// One key that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key, such as `pool.max_connections` or `groups[main].replicas[10.0.0.2:3306].weight`.
    pub key: String,
    /// The value before; none when there was none.
    pub before: Option<String>,
    /// The value now; none when there is none.
    pub after: Option<String>,
    /// It has an effect only when the process starts.
    pub needs_restart: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
        let (before, after) = (or_none(&self.before), or_none(&self.after));
        write!(f, "{}: {before} -> {after}", self.key)?;
        if self.needs_restart {
            f.write_str(" (has an effect at the next start)")?;
        }
        Ok(())
    }
}

/// Keys that are looked at only when the process starts.
const AT_START: &[&str] = &[
    "server.listen",
    "server.admin_listen",
    "server.http_listen",
    "server.workers",
    "server.pin_workers",
];

/// What differs from `before` to `after`, two texts that are valid configurations; in the order of keys.
#[must_use]
pub fn diff(before: &str, after: &str) -> Vec<Difference> {
    let (before, after) = (leaves(before), leaves(after));
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut differences = Vec::new();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        if old == new {
            continue;
        }
        let shown = |value: Option<&Leaf>| {
            value.map(|leaf| match leaf {
                Leaf::Shown(text) => text.clone(),
                Leaf::Secret(_) => "(not shown)".to_owned(),
            })
        };
        let is_at_start = |name: &&&str| {
            key.strip_prefix(**name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        differences.push(Difference {
            key: key.clone(),
            before: shown(old),
            after: shown(new),
            needs_restart: AT_START.iter().find(is_at_start).is_some(),
        });
    }
    differences
}

#[derive(PartialEq, Eq)]
enum Leaf {
    Shown(String),
    Secret(String),
}

/// All values that are no tables, by their keys.
fn leaves(text: &str) -> BTreeMap<String, Leaf> {
    let mut leaves = BTreeMap::new();
    // What is no TOML is no configuration either, and has been refused.
    if let Ok(table) = DeTable::parse(text) {
        add_table(table.get_ref(), "", &mut leaves);
    }
    leaves
}

fn add_table(table: &DeTable<'_>, prefix: &str, leaves: &mut BTreeMap<String, Leaf>) {
    for (name, value) in table {
        let name = name.get_ref();
        let key = if prefix.is_empty() {
            name.to_string()
        } else {
            format!("{prefix}.{name}")
        };
        add(value.get_ref(), &key, name.contains("password"), leaves);
    }
}

fn add(value: &DeValue<'_>, key: &str, is_secret: bool, leaves: &mut BTreeMap<String, Leaf>) {
    match value {
        DeValue::Table(table) => add_table(table, key, leaves),
        DeValue::Array(items)
            if items
                .iter()
                .any(|item| matches!(item.get_ref(), DeValue::Table(_))) =>
        {
            for (place, item) in items.iter().enumerate() {
                // A list of tables is known by their names: where they stand says nothing but in `rules`.
                let own = match item.get_ref() {
                    DeValue::Table(table) => identity(table),
                    DeValue::String(text) => Some(text.to_string()),
                    _ => None,
                };
                let key = match own {
                    Some(name) => format!("{key}[{name}]"),
                    None => format!("{key}[{place}]"),
                };
                match item.get_ref() {
                    DeValue::Table(table) => {
                        leaves.insert(key.clone(), Leaf::Shown("present".to_owned()));
                        add_table(table, &key, leaves);
                    }
                    DeValue::String(_) => {
                        leaves.insert(key, Leaf::Shown("present".to_owned()));
                    }
                    other => add(other, &key, is_secret, leaves),
                }
            }
        }
        other => {
            let text = written(other);
            let leaf = if is_secret {
                Leaf::Secret(text)
            } else {
                Leaf::Shown(text)
            };
            leaves.insert(key.to_owned(), leaf);
        }
    }
}

/// What tells the tables of a list apart.
fn identity(table: &DeTable<'_>) -> Option<String> {
    ["name", "address"].iter().find_map(|key| {
        let value = table.iter().find(|(name, _)| name.get_ref() == key)?.1;
        value.get_ref().as_str().map(str::to_owned)
    })
}

fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(digits) => digits.to_string(),
        DeValue::Float(digits) => digits.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => value.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(_) => "{..}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> Vec<String> {
        let differences = diff(before, after);
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_differs_is_told_and_passwords_are_not() {
        let before = "[server]\nlisten = \"a:1\"\n[pool]\nmin_idle = 4\n[[groups]]\nname = \"main\"\nprimary = \"h\"\nreplicas = [{ address = \"r1\", weight = 2 }, \"r2\"]\n[[users]]\nname = \"u\"\npassword = [\"one\", \"two\"]\n";
        let after = "# Other words.\n[server]\nlisten = [\"a:1\", \"a:2\"]\n[[users]]\npassword = \"three\"\nname = \"u\"\n[[users]]\nname = \"v\"\n[[groups]]\nname = \"main\"\nprimary = \"h\"\nreplicas = [\"r2\", { address = \"r1\", weight = 3 }]\n";
        assert_eq!(
            told(before, after),
            [
                "groups[main].replicas[r1].weight: 2 -> 3",
                "pool.min_idle: 4 -> (none)",
                "server.listen: \"a:1\" -> [\"a:1\", \"a:2\"] (has an effect at the next start)",
                "users[u].password: (not shown) -> (not shown)",
                "users[v]: (none) -> present",
                "users[v].name: (none) -> \"v\"",
            ]
        );
        assert!(told(before, before).is_empty());
        assert!(told(before, &before.replace("min_idle", "# more\nmin_idle")).is_empty());
    }
}
