//! Statements and where they go, over a small map: what the reports of other projects' faults call F-SH, and some more.

mod define;
mod dress;
mod goes;
mod ids;
mod logic;
mod lookout;
mod names;
mod parts;
mod quote;
mod refuses;
mod shapes;
mod texts;

use super::{Asked, Numbers, Placement, Plan, Scalar};
use crate::sql::{Dialect, Server};

const MAP: &str = r#"
    groups = [
        { name = "s0", primary = "h0" },
        { name = "s1", primary = "h1", schemas = { t1 = "t1_b" } },
        { name = "s2", primary = "h2" },
    ]
    users = [{ name = "u", password = "x", group = "s0" }]
    [[tables]]
    name = "t1.ord"
    key = "uid"
    ranges = [{ groups = ["s0", "s2"] }]
    [[tables]]
    name = "t1.item"
    key = "uid"
    ranges = [{ groups = ["s0", "s2"] }]
    [[tables]]
    name = "t1.log"
    key = "id"
    ranges = [
        { to = 0, groups = ["s0"], tables = 2 },
        { from = 0, to = 1000, groups = ["s0", "s1"], tables = 2, first = 10 },
        { from = 1000, to = 2000, groups = ["s2"] },
    ]
    [[tables]]
    name = "t1.sk-list"
    key = "k"
    key_type = "string"
    hash = "crc32"
    ranges = [{ groups = ["s0", "s1", "s2"] }]
    [[tables]]
    name = "t1.day"
    key = "d"
    key_type = "date"
    ranges = [{ to = "2024-01-01", groups = ["s0"] }, { from = "2024-01-01", groups = ["s2"] }]
    [[tables]]
    name = "t1.quiet"
    key = "uid"
    broadcast = "deny"
    ranges = [{ groups = ["s0", "s2"] }]
    [[tables]]
    name = "t1.known"
    key = "uid"
    broadcast = "listed"
    ranges = [{ groups = ["s0", "s2"] }]
    [[tables]]
    name = "t1.wide"
    key = "uid"
    multi_shard_writes = "xa"
    ranges = [{ groups = ["s0", "s2"], tables = 2 }]
    [sharding]
    global_tables = ["t1.zone"]
"#;

/// A text without parameters, for the account of the group `s0`.
fn asked<'a>(sql: &'a str, numbers: Numbers) -> Asked<'a> {
    Asked {
        is_listed: false,
        is_lax: false,
        columns: None,
        text: sql.as_bytes(),
        d: &D,
        home: 0,
        here: 0,
        params: &[],
        numbers,
    }
}

fn placement() -> Placement {
    placement_of(MAP)
}

fn placement_of(map: &str) -> Placement {
    let config = crate::config::load(map, "f", &|_| None).unwrap();
    Placement::new(&config, &[0, 1, 2]).unwrap()
}

const D: Dialect = Dialect::new(Server::MariaDb, 101_119);

fn plan_with(placement: &Placement, sql: &str, params: &[Scalar]) -> Option<Plan> {
    let asked = Asked {
        params,
        ..asked(sql, Numbers::None)
    };
    placement.plan_text(asked, Some(b"t1"))
}

fn in_words(leg: &super::Leg) -> String {
    match &leg.text {
        Some(text) => format!("{}: {}", leg.group, String::from_utf8_lossy(text)),
        None => leg.group.to_string(),
    }
}

/// In words: `-` for an unsharded statement, the group's number, a list of groups and texts, or the reason why not.
fn goes_with(placement: &Placement, sql: &str, params: &[Scalar]) -> String {
    let text = in_words;
    match plan_with(placement, sql, params) {
        None => "-".to_owned(),
        Some(Plan::One(leg)) => text(&leg),
        Some(Plan::Scatter { legs, limit }) => {
            let legs: Vec<String> = legs.iter().map(text).collect();
            let limit = limit.map_or_else(String::new, |limit| format!(" limit {limit}"));
            format!("[{}]{limit}", legs.join(", "))
        }
        Some(Plan::Parts(legs)) => {
            let legs: Vec<String> = legs.iter().map(text).collect();
            format!("({})", legs.join(", "))
        }
        Some(Plan::Across(legs)) => {
            let legs: Vec<String> = legs.iter().map(text).collect();
            format!("across ({})", legs.join(", "))
        }
        Some(Plan::Everywhere(legs)) => {
            let legs: Vec<String> = legs.iter().map(text).collect();
            format!("everywhere ({})", legs.join(", "))
        }
        Some(Plan::Each(legs)) => {
            let legs: Vec<String> = legs.iter().map(text).collect();
            format!("each ({})", legs.join(", "))
        }
        Some(Plan::Columns(table)) => format!("columns of {table}"),
        Some(Plan::Ids { count, group }) => format!("{count} ids of {group}"),
        Some(Plan::Refuse(refused)) => refused.reason().to_owned(),
    }
}

fn goes(sql: &str) -> String {
    goes_with(&placement(), sql, &[])
}

/// Compares what is said with what is wanted, and shows all differences at once.
fn check<'a>(
    cases: impl IntoIterator<Item = (String, &'a str)>,
    fits: impl Fn(&str, &str) -> bool,
) {
    let wrong: Vec<String> = cases
        .into_iter()
        .map(|(sql, wanted)| (goes(&sql), sql, wanted))
        .filter(|(told, _, wanted)| !fits(told, wanted))
        .map(|(told, sql, wanted)| {
            let start: String = sql.chars().take(300).collect();
            format!("{start}\n    goes   {told}\n    wanted {wanted}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
