//! `EXPLAIN ROUTE` on the admin port: where a statement would go from a fresh session of an account, and why, with what is known of
//! the servers now. Nothing is run.

use crate::admin::{Refusal, Table};
use crate::config::{NoReplica, ReadFrom};
use crate::route::{self, Pins, Reason, Role, View};
use crate::sql::{self, Dialect, Kind};
use crate::worker::{Live, Shared};

pub(super) fn explain(
    shared: &Shared,
    live: &Live,
    user: Option<&str>,
    sql: &str,
) -> Result<Table, Refusal> {
    let snapshot = &live.snapshot;
    let index = match user {
        None => snapshot
            .accounts
            .iter()
            .position(|account| !account.is_gone)
            .unwrap_or(0),
        Some(name) => snapshot.account(name.as_bytes()).ok_or_else(|| {
            Refusal::new(format!(
                "there is no account '{name}': see SELECT * FROM pwds"
            ))
        })?,
    };
    let account = &snapshot.accounts[index];
    let group = &snapshot.groups[account.group];
    let offer = shared.offer.load();
    let facts = &offer.facts;
    let dialect = Dialect {
        ansi_quotes: facts.ansi_quotes.unwrap_or(false),
        ..Dialect::new(facts.server(), facts.version_number())
    };
    let statement = sql::classify(sql.as_bytes(), &dialect);
    let view = View {
        in_transaction: false,
        autocommit: true,
        must_see_writes: false,
        pins: Pins::default(),
        last: None,
        last_rows: None,
        warned: None,
        read_from: account.read_from,
    };
    let is_local = matches!(statement.kind, Kind::ExplainRoute | Kind::ShowLastRoute);
    let decided = route::decide(&statement, &view);
    let serving = |host: &crate::pool::HostId| live.hosts.get(*host).may_serve();
    let has_replica = group.replicas.iter().any(|(host, _)| serving(host));
    let falls_back =
        group.no_replica == NoReplica::Primary && account.read_from != ReadFrom::ReplicaOnly;
    let (word, reason) = match decided.role {
        _ if is_local => ("local", "answered-by-atlas"),
        Role::Primary => ("primary", decided.reason.as_str()),
        Role::Replica if has_replica => ("replica", decided.reason.as_str()),
        Role::Replica if falls_back => ("primary", Reason::NoReplica.as_str()),
        Role::Replica => ("refused", Reason::NoReplica.as_str()),
    };
    let mut table = Table::new(["step", "detail"]);
    let mut say = |step: &str, detail: String| table.push([step.to_owned(), detail]);
    say(
        "account",
        String::from_utf8_lossy(&account.name).into_owned(),
    );
    say("class", statement.kind.as_str().to_owned());
    say("route", word.to_owned());
    say("group", group.name.clone());
    say("reason", reason.to_owned());
    let address = |host: crate::pool::HostId| snapshot.hosts[host.index()].address.to_string();
    match group.primary {
        Some(host) => {
            let state = super::reports::state(live, host);
            say("candidate", format!("primary {}: {state}", address(host)));
        }
        None => say("candidate", "there is no primary now".to_owned()),
    }
    for (host, weight) in &group.replicas {
        let known = live.hosts.get(*host);
        let verdict = if known.is_offline() {
            "is offline"
        } else if !known.is_up() {
            "is down"
        } else if !known.may_serve() {
            "its data are not fresh enough"
        } else if word == "replica" {
            "may answer"
        } else {
            "not asked: the primary is needed"
        };
        say(
            "candidate",
            format!("replica {} weight {weight}: {verdict}", address(*host)),
        );
    }
    Ok(table)
}
