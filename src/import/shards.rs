//! Sharded tables: the original's sub-tables (`tables`) and its rules (`[shardrule-N]`). What is placed wrongly is lost, so
//! whatever is ambiguous is an error.

use super::Findings;
use super::cnf::{Cnf, Entry, Group};
use super::paper::{Paper, list, string};
use crate::config;

/// Sub-tables that a table may have.
const SUB_TABLES_MAX: u64 = 10_000;

pub(super) fn group_name(number: &str) -> String {
    format!("group-{}", number.trim())
}

/// `tables = db.table.column.n, …`
pub(super) fn sub_tables(paper: &mut Paper, main: &Group, findings: &mut Findings) {
    let Some(entry) = main.get("tables") else {
        return;
    };
    for item in entry.items() {
        let parts: Vec<&str> = item.split('.').map(str::trim).collect();
        let [schema, table, column, count] = parts[..] else {
            findings.error(
                entry.line,
                &entry.key,
                format!("{item}: incorrect sub-table settings; db.table.column.n is needed"),
            );
            continue;
        };
        let count = count
            .parse::<u64>()
            .ok()
            .filter(|n| (1..=SUB_TABLES_MAX).contains(n));
        let (Some(count), Ok(_)) = (count, config::table_name(&format!("{schema}.{table}"))) else {
            findings.error(
                entry.line,
                &entry.key,
                format!("{item}: incorrect sub-table settings; n is 1 to {SUB_TABLES_MAX}"),
            );
            continue;
        };
        if count == 1 {
            findings.error(entry.line, &entry.key, format!("{item}: with one sub-table the name has no number here: rename {table}_0 to {table}, and no rule is needed"));
            continue;
        }
        findings.warning(entry.line, &entry.key, format!("{item}: rows stay where they are by the original's unsigned 32-bit arithmetic; `mod` would place keys from 2147483648 on, negative ones and texts elsewhere"));
        paper.section("[[tables]]");
        paper.comment(&format!("Sub-tables {table}_0 to {table}_{}.", count - 1));
        paper.key("name", &string(&format!("{schema}.{table}")));
        paper.key("key", &string(column));
        paper.key("hash", &string("atlas32"));
        paper.key(
            "ranges",
            &list(&[format!("{{ groups = [\"main\"], tables = {count} }}")]),
        );
    }
}

/// Every `[shardrule-N]`.
pub(super) fn rules(paper: &mut Paper, old: &Cnf, findings: &mut Findings) {
    let mut tables: Vec<&str> = Vec::new();
    for rule in old
        .groups
        .iter()
        .filter(|group| group.name.starts_with("shardrule-"))
    {
        for entry in &rule.entries {
            if !["table", "type", "shard-key", "groups"].contains(&entry.key.as_str()) {
                findings.warning(
                    entry.line,
                    &entry.key,
                    format!(
                        "stands in [{}], where the original did not look for it: left out",
                        rule.name
                    ),
                );
            }
        }
        let (Some(table), Some(key), Some(groups)) =
            (rule.get("table"), rule.get("shard-key"), rule.get("groups"))
        else {
            findings.error(
                rule.line,
                &rule.name,
                "a rule needs table, shard-key and groups: left out",
            );
            continue;
        };
        if let Err(why) = config::table_name(&table.value) {
            findings.error(table.line, &table.key, why);
            continue;
        }
        if tables.contains(&table.value.as_str()) {
            findings.error(
                table.line,
                &table.key,
                format!("{} has a rule already: left out", table.value),
            );
            continue;
        }
        tables.push(&table.value);
        let is_hash = rule
            .get("type")
            .is_some_and(|entry| entry.value.eq_ignore_ascii_case("hash"));
        if rule
            .get("type")
            .is_none_or(|entry| !entry.value.eq_ignore_ascii_case("range"))
            && !is_hash
        {
            findings.warning(
                rule.line,
                &rule.name,
                "the type is neither range nor hash, which the original takes for range",
            );
        }
        let ranges = if is_hash {
            hash(groups, old, findings)
        } else {
            ranges(groups, old, findings)
        };
        if ranges.is_empty() {
            findings.error(
                groups.line,
                &groups.key,
                "no group is named: the rule is left out",
            );
            continue;
        }
        paper.section("[[tables]]");
        paper.comment(&format!("[{}]: reads without the key go to all groups, as they did; writes without it are refused, which went", rule.name));
        paper.comment("to all groups one after the other.");
        if is_hash {
            paper.comment(
                "The order of the groups is the rule: a row is in number `key mod groups`.",
            );
        } else {
            paper.comment(
                "`to` is the first key behind the range; the original named the last one in it.",
            );
        }
        paper.key("name", &string(&table.value));
        paper.key("key", &string(&key.value));
        paper.key("ranges", &list(&ranges));
    }
}

fn known(number: &str, of: &Entry, old: &Cnf, findings: &mut Findings) -> String {
    let name = group_name(number);
    if !old.groups.iter().any(|group| group.name == name) {
        findings.error(of.line, &of.key, format!("there is no [{name}]"));
    }
    string(&name)
}

fn hash(groups: &Entry, old: &Cnf, findings: &mut Findings) -> Vec<String> {
    let names: Vec<String> = groups
        .items()
        .map(|number| known(number, groups, old, findings))
        .collect();
    if names.is_empty() {
        return names;
    }
    vec![format!("{{ groups = [{}] }}", names.join(", "))]
}

/// A range of the original: both ends are in it.
struct Range {
    group: String,
    first: u64,
    /// Nothing for the largest number there is.
    last: Option<u64>,
}

fn ranges(groups: &Entry, old: &Cnf, findings: &mut Findings) -> Vec<String> {
    let mut ranges = Vec::new();
    for item in groups.items() {
        match range(item) {
            Some((number, first, last)) => ranges.push(Range {
                group: known(number, groups, old, findings),
                first,
                last,
            }),
            None => findings.error(
                groups.line,
                &groups.key,
                format!("{item} is not group:first-last: left out"),
            ),
        }
    }
    ranges.sort_by_key(|range| range.first);
    for pair in ranges.windows(2) {
        let [one, next] = pair else { continue };
        match one.last {
            Some(last) if last < next.first => {
                if last + 1 < next.first {
                    findings.warning(groups.line, &groups.key, format!("the keys {} to {} are in no group", last + 1, next.first - 1));
                }
            }
            _ => findings.error(
                groups.line,
                &groups.key,
                format!("the ranges from {} and from {} overlap (both ends are in a range): say where the keys that are in both are", one.first, next.first),
            ),
        }
    }
    ranges
        .iter()
        .map(|range| {
            // What lies behind the largest key is nothing.
            let to = range
                .last
                .and_then(|last| last.checked_add(1))
                .filter(|to| i64::try_from(*to).is_ok());
            let to = to.map_or_else(|| "\"max\"".to_owned(), |to| to.to_string());
            format!(
                "{{ from = {}, to = {to}, groups = [{}] }}",
                range.first, range.group
            )
        })
        .collect()
}

/// `group:first-last`; the last one may be `*`.
fn range(item: &str) -> Option<(&str, u64, Option<u64>)> {
    let (group, ends) = item.split_once(':')?;
    let (first, last) = ends.split_once('-')?;
    let first = number(first)?;
    let last = match last.trim() {
        "*" => None,
        last => Some(number(last).filter(|last| *last >= first)?),
    };
    Some((group.trim(), first, last))
}

/// A key that a 64-bit column can hold.
fn number(text: &str) -> Option<u64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| i64::try_from(*number).is_ok())
}
