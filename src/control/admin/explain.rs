//! `EXPLAIN ROUTE` on the admin port: where a statement would go from a fresh session of an account, and why, with what is known of
//! the servers now. Nothing is run.

use crate::admin::{Refusal, Table};
use crate::config::{NoReplica, ReadFrom};
use crate::route::{self, Pins, Reason, Role, Room, Sent, Verdict, View};
use crate::shard::{self, Asked, Plan};
use crate::snapshot::Account;
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
    let mut room = Room::default();
    let verdict = snapshot.rules.as_ref().map_or(Verdict::None, |rules| {
        let sent = Sent {
            user: &account.name,
            schema: account.schema.as_deref(),
            // Rules about networks are about clients that come over one.
            address: None,
            text: sql.as_bytes(),
            is_whole: true,
            dialect: &dialect,
        };
        rules.judge(sent, &statement, &mut room)
    });
    let is_local = matches!(statement.kind, Kind::ExplainRoute | Kind::ShowLastRoute);
    let decided = route::decide_for(&statement, &view, verdict.target());
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
    if let Some(rule) = verdict.rule() {
        say("rule", rule);
    }
    if let Some(refusal) = verdict.refusal().filter(|_| !is_local) {
        say("route", "refused".to_owned());
        say("reason", refusal);
        return Ok(table);
    }
    if !is_local && let Some(plan) = plan(live, account, sql, dialect, verdict.allows())? {
        let name = |place: usize| live.snapshot.groups.get(place).map(|group| &*group.name);
        explain_plan(plan, sql, word, reason, name, say);
        return Ok(table);
    }
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

/// The shards of a statement about sharded tables; nothing for others.
fn plan(
    live: &Live,
    account: &Account,
    sql: &str,
    dialect: Dialect,
    is_listed: bool,
) -> Result<Option<Plan>, Refusal> {
    let Some(placement) = &live.snapshot.placement else {
        return Ok(None);
    };
    let asked = Asked {
        is_listed,
        ..Asked::of(sql.as_bytes(), &dialect, account.group)
    };
    // The parser's depth needs more room than a thread of this port has.
    let planned = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("explain".to_owned())
            .stack_size(shard::STACK)
            .spawn_scoped(scope, || {
                placement.plan_text(asked, account.schema.as_deref())
            });
        thread.map(|thread| thread.join().ok())
    });
    match planned {
        Ok(Some(plan)) => Ok(plan),
        Ok(None) => Err(Refusal::new("the statement could not be looked at")),
        Err(error) => Err(Refusal::new(format!(
            "the statement cannot be looked at now: {error}"
        ))),
    }
}

/// The steps that `EXPLAIN ROUTE` has on the data port too.
fn explain_plan<'g>(
    plan: Plan,
    sql: &str,
    role: &str,
    reason: &str,
    name: impl Fn(usize) -> Option<&'g str>,
    mut say: impl FnMut(&str, String),
) {
    let (legs, what) = match plan {
        Plan::Refuse(refused) => {
            say("route", "refused".to_owned());
            return say("reason", refused.reason().to_owned());
        }
        Plan::One(leg) => (vec![leg], "one-shard"),
        Plan::Scatter { legs, .. } => (legs, "several-shards"),
        Plan::Parts(legs) => (legs, "several-tables"),
        Plan::Across(legs) => (legs, "several-groups"),
        Plan::Everywhere(legs) => (legs, "every-group"),
        Plan::Each(legs) => (legs, "every-table"),
        Plan::Columns(_) => (Vec::new(), "by-the-columns-that-a-server-tells"),
        Plan::Ids { .. } => (Vec::new(), "with-generated-keys"),
    };
    say("route", "sharded".to_owned());
    say("role", role.to_owned());
    say("reason", format!("{what}: {reason}"));
    for leg in legs {
        let text = leg.text.as_deref().unwrap_or(sql.as_bytes()).trim_ascii();
        let text = String::from_utf8_lossy(text);
        say(
            "shard",
            format!("{}: {text}", name(leg.group).unwrap_or_default()),
        );
    }
}
