//! Groups of servers: the original's masters and slaves.

use super::Findings;
use super::cnf::{Entry, Group, leading_number};
use super::paper::{Paper, list, string};
use crate::config;

/// A server's address in the new form.
fn host(item: &str, of: &Entry, findings: &mut Findings) -> String {
    let address = match item.rsplit_once(':') {
        _ if item.starts_with('/') => format!("unix:{item}"),
        Some(_) => item.to_owned(),
        None => format!("{item}:3306"),
    };
    if let Err(why) = config::host_address(&address) {
        findings.error(of.line, &of.key, why);
    }
    address
}

pub(super) fn group(paper: &mut Paper, name: &str, old: &Group, findings: &mut Findings) {
    paper.section("[[groups]]");
    paper.key("name", &string(name));
    let masters = old.get("proxy-backend-addresses");
    let mut items = masters.iter().flat_map(|entry| entry.items());
    match (masters, items.next()) {
        (Some(entry), Some(item)) => paper.key("primary", &string(&host(item, entry, findings))),
        _ => {
            paper.comment(
                "proxy-backend-addresses was not set: this is what the original took then.",
            );
            paper.key("primary", &string("127.0.0.1:3306"));
        }
    }
    for standby in items {
        let line = masters.map_or(old.line, |entry| entry.line);
        findings.warning(line, "proxy-backend-addresses", format!("{standby}: a group has one primary; the original took this one when the first was away"));
        paper.comment(&format!("A standby of the original, {standby}, has no place here: with topology = \"follow\" Atlas finds the primary among"));
        paper.comment(
            "all servers that are listed; list it with the replicas if it may serve reads.",
        );
    }
    let Some(entry) = old.get("proxy-read-only-backend-addresses") else {
        return;
    };
    let replicas = replicas(paper, entry, findings);
    if !replicas.is_empty() {
        paper.key("replicas", &list(&replicas));
    }
}

fn replicas(paper: &mut Paper, entry: &Entry, findings: &mut Findings) -> Vec<String> {
    let mut found: Vec<(String, u64)> = Vec::new();
    for item in entry.items() {
        let (address, weight) = item
            .rsplit_once('@')
            .map_or((item, 1), |(address, weight)| {
                (address, leading_number(weight))
            });
        let address = host(address.trim(), entry, findings);
        if weight == 0 {
            findings.warning(
                entry.line,
                &entry.key,
                format!("{address} has weight 0 and got no reads: left out"),
            );
            paper.comment(&format!("{address} had weight 0, which means no reads."));
        } else if found.iter().any(|(other, _)| *other == address) {
            findings.error(
                entry.line,
                &entry.key,
                format!(
                    "{address} is listed twice, which the original refuses: the first one counts"
                ),
            );
        } else {
            found.push((address, weight));
        }
    }
    let most = found.iter().map(|(_, weight)| *weight).max().unwrap_or(1);
    if most > 1000 {
        paper.comment("The weights were larger than 1000: they are scaled down.");
    }
    found
        .into_iter()
        .map(|(address, weight)| match weight {
            1 if most <= 1000 => format!("{{ address = {} }}", string(&address)),
            _ => {
                let scaled = if most > 1000 {
                    scale(weight, most)
                } else {
                    weight
                };
                format!("{{ address = {}, weight = {scaled} }}", string(&address))
            }
        })
        .collect()
}

fn scale(weight: u64, most: u64) -> u64 {
    let scaled = u128::from(weight) * 1000 / u128::from(most.max(1));
    u64::try_from(scaled).unwrap_or(1000).max(1)
}
