//! Tables of what is: servers, connections to them, accounts, networks, rules.

use std::time::{Duration, UNIX_EPOCH};

use crate::admin::{Table, timestamp};
use crate::config::{
    Bound, Broadcast, Hash, HostAddress, KeyType, RuleAction, RuleConfig, RuleTarget,
};
use crate::control::Events;
use crate::control::ask::ask;
use crate::mirror::Figures;
use crate::pool::HostId;
use crate::worker::{Counts, Live, Question, Shared};

/// Workers answer within that.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server, as it is in force.
pub(super) struct Backend<'l> {
    pub(super) host: HostId,
    pub(super) group: &'l str,
    pub(super) address: &'l HostAddress,
    role: BackendRole,
    pub(super) weight: u32,
}

#[derive(PartialEq, Eq)]
enum BackendRole {
    Primary,
    Replica,
    /// It must not be used for anything.
    Fenced,
}

impl Backend<'_> {
    /// Its number for operators, which it keeps for as long as the process lives.
    pub(super) fn number(&self) -> usize {
        self.host.index() + 1
    }

    pub(super) fn is_primary(&self) -> bool {
        self.role == BackendRole::Primary
    }
}

/// All servers that are configured, in the order of their numbers.
pub(super) fn all(live: &Live) -> Vec<Backend<'_>> {
    live.present()
        .filter_map(|host| {
            let entry = live.snapshot.hosts.get(host.index())?;
            let group = live.snapshot.groups.get(entry.group)?;
            let weight = group.replicas.iter().find(|(other, _)| *other == host);
            let role = match (group.primary == Some(host), weight) {
                (true, _) => BackendRole::Primary,
                (false, Some(_)) => BackendRole::Replica,
                (false, None) => BackendRole::Fenced,
            };
            Some(Backend {
                host,
                group: &group.name,
                address: &entry.address,
                role,
                weight: weight.map_or(1, |(_, weight)| *weight),
            })
        })
        .collect()
}

/// The original's words for what a server is up to.
pub(super) fn state(live: &Live, host: HostId) -> &'static str {
    let known = live.hosts.get(host);
    if known.is_offline() {
        "offline"
    } else if !known.is_up() {
        "down"
    } else if known.facts().is_none() {
        // It has not been checked yet.
        "unknown"
    } else {
        "up"
    }
}

fn kind(backend: &Backend<'_>) -> &'static str {
    match backend.role {
        BackendRole::Primary => "rw",
        BackendRole::Replica => "ro",
        BackendRole::Fenced => "unknown",
    }
}

/// `SELECT * FROM backends`.
pub(super) fn backends(live: &Live) -> Table {
    let mut table = Table::new(["backend_ndx#", "address", "state", "type"]);
    for backend in all(live) {
        table.push([
            backend.number().to_string(),
            backend.address.to_string(),
            state(live, backend.host).to_owned(),
            kind(&backend).to_owned(),
        ]);
    }
    table
}

/// `SHOW BACKENDS`.
pub(super) fn backends_detail(live: &Live) -> Table {
    let mut table = Table::new([
        "backend_ndx#",
        "group",
        "address",
        "role",
        "state",
        "serves_reads",
        "weight#",
        "share_percent#",
        "lag_ms#",
        "data",
        "resolved",
        "version",
        "open#",
        "idle#",
        "waiting#",
    ]);
    for backend in all(live) {
        let host = live.hosts.get(backend.host);
        let gate = &live.gates[backend.host.index()];
        let facts = host.facts();
        table.push_row(vec![
            Some(backend.number().to_string()),
            Some(backend.group.to_owned()),
            Some(backend.address.to_string()),
            Some(
                match backend.role {
                    BackendRole::Primary => "primary",
                    BackendRole::Replica => "replica",
                    BackendRole::Fenced => "fenced",
                }
                .to_owned(),
            ),
            Some(state(live, backend.host).to_owned()),
            Some(yes_no(
                backend.role == BackendRole::Replica && host.may_serve(),
            )),
            Some(backend.weight.to_string()),
            Some(host.share().to_string()),
            host.lag().map(|lag| lag.as_millis().to_string()),
            Some(format!("{:?}", host.freshness()).to_lowercase()),
            host.address().map(|address| address.to_string()),
            facts.map(|facts| String::from_utf8_lossy(&facts.version).into_owned()),
            Some(gate.open().to_string()),
            Some(gate.idle().to_string()),
            Some(gate.waiting().to_string()),
        ]);
    }
    table
}

/// `SHOW POOLS`.
pub(super) fn pools(live: &Live) -> Table {
    let pool = &live.snapshot.config.pool;
    let mut table = Table::new([
        "group",
        "address",
        "open#",
        "idle#",
        "in_use#",
        "waiting#",
        "min_idle#",
        "max#",
        "connect_rate#",
    ]);
    for backend in all(live) {
        let gate = &live.gates[backend.host.index()];
        let (open, idle) = (gate.open(), gate.idle());
        table.push([
            backend.group.to_owned(),
            backend.address.to_string(),
            open.to_string(),
            idle.to_string(),
            open.saturating_sub(idle).to_string(),
            gate.waiting().to_string(),
            pool.min_idle.to_string(),
            pool.max_connections.to_string(),
            pool.connect_rate.to_string(),
        ]);
    }
    table
}

/// `SELECT * FROM clients`.
pub(super) fn clients(live: &Live) -> Table {
    let mut table = Table::new(["client"]);
    for network in &live.snapshot.config.server.client_networks.0 {
        table.push([network_text(network)]);
    }
    table
}

/// A network of one address is shown as that.
pub(super) fn network_text(network: &ipnet::IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

/// `SELECT * FROM pwds`. The original showed what could be turned back into the password.
pub(super) fn accounts(live: &Live) -> Table {
    let mut table = Table::new(["username", "password"]);
    for user in &live.snapshot.config.users {
        let is_empty = user.passwords.iter().all(|password| password.is_empty());
        let shown = if is_empty { "" } else { "******" };
        table.push([user.name.clone(), shown.to_owned()]);
    }
    table
}

/// `SHOW RULES`.
pub(super) fn rules(live: &Live) -> Table {
    let mut table = Table::new([
        "rule",
        "user",
        "digest",
        "regex",
        "kind",
        "schema",
        "network",
        "action",
        "message",
        "hits#",
        "running#",
        "limited#",
        "copies#",
        "differing#",
        "failed#",
        "dropped#",
        "skipped#",
        "client_ms",
        "copy_ms",
    ]);
    for rule in &live.snapshot.config.rules {
        let matches = &rule.matches;
        let kind = matches
            .writes
            .map(|writes| if writes { "write" } else { "read" });
        let rules = live.snapshot.rules.as_ref();
        // Not of one whose action this version does not act on.
        let counted = rules.and_then(|rules| rules.named(&rule.name));
        let limits = matches!(rule.action, RuleAction::Limit { .. });
        let copied = counted.and_then(|rule| rule.mirror.as_ref());
        let copied = copied.map(|mirror| mirror.figures());
        let of_copies = |count: fn(&Figures) -> u64| copied.as_ref().map(|f| count(f).to_string());
        table.push_row(vec![
            Some(rule.name.clone()),
            matches.user.clone(),
            matches.digest.map(|digest| format!("{digest:016x}")),
            matches
                .regex
                .as_ref()
                .map(|regex| regex.as_str().to_owned()),
            kind.map(str::to_owned),
            matches.schema.clone(),
            matches.network.as_ref().map(network_text),
            Some(action(rule)),
            Some(rule.message.clone()),
            counted.map(|rule| rule.hits().to_string()),
            counted
                .filter(|_| limits)
                .map(|rule| rule.limiter.running().to_string()),
            counted
                .filter(|_| limits)
                .map(|rule| rule.limiter.refused().to_string()),
            of_copies(|figures| figures.same + figures.differs),
            of_copies(|figures| figures.differs),
            of_copies(|figures| figures.failed),
            of_copies(|figures| figures.dropped),
            of_copies(|figures| figures.skipped),
            copied.as_ref().map(|f| average(f, f.client_time)),
            copied.as_ref().map(|f| average(f, f.copy_time)),
        ]);
    }
    table
}

/// Milliseconds for each copy that has run.
fn average(figures: &Figures, time: Duration) -> String {
    let count = (figures.same + figures.differs).max(1);
    let micros = time.as_micros() / u128::from(count);
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn action(rule: &RuleConfig) -> String {
    let word = rule.action.as_str();
    match rule.action {
        RuleAction::Route(RuleTarget::Primary) => format!("{word} to primary"),
        RuleAction::Route(RuleTarget::Replica) => format!("{word} to replica"),
        RuleAction::Limit { rate, concurrency } => {
            format!("{word} rate {rate} concurrency {concurrency}")
        }
        RuleAction::Mirror(mirror) => {
            let writes = if mirror.writes { " with writes" } else { "" };
            format!(
                "{word} {} of 100 to {}{writes}",
                mirror.sample, rule.copies_to
            )
        }
        _ => word.to_owned(),
    }
}

/// `SHOW TABLES`: the ranges of each sharded table, and the tables that every group has.
pub(super) fn tables(live: &Live) -> Table {
    let config = &live.snapshot.config;
    let mut table = Table::new([
        "table",
        "key",
        "key_type",
        "hash",
        "from",
        "to",
        "groups",
        "tables#",
        "first#",
        "broadcast",
        "kind",
    ]);
    for sharded in &config.tables {
        for range in &sharded.ranges {
            let groups: Vec<&str> = range
                .groups
                .iter()
                .filter_map(|group| config.groups.get(*group))
                .map(|group| group.name.as_str())
                .collect();
            table.push([
                format!("{}.{}", sharded.schema, sharded.table),
                sharded.key.clone(),
                match sharded.key_type {
                    KeyType::Int => "int",
                    KeyType::String => "string",
                    KeyType::Date => "date",
                }
                .to_owned(),
                match sharded.hash {
                    Hash::Mod => "mod",
                    Hash::Crc32 => "crc32",
                    Hash::Atlas32 => "atlas32",
                }
                .to_owned(),
                bound(&range.from),
                bound(&range.to),
                groups.join(", "),
                range.tables.to_string(),
                range.first.to_string(),
                match sharded.broadcast {
                    Broadcast::Allow => "allow",
                    Broadcast::Listed => "listed",
                    Broadcast::Deny => "deny",
                }
                .to_owned(),
                "sharded".to_owned(),
            ]);
        }
    }
    let Some(placement) = &live.snapshot.placement else {
        return table;
    };
    let mut say = |name: String, kind: &str| {
        let mut row = vec![Some(name)];
        row.resize(10, None);
        row.push(Some(kind.to_owned()));
        table.push_row(row);
    };
    for (schema, name) in &placement.globals {
        let name = format!("{schema}.{name}");
        let is_named = config.sharding.global_tables.contains(&name);
        say(name, if is_named { "global" } else { "global, found" });
    }
    for schema in placement.doubt() {
        say(format!("{schema}.*"), "not known yet");
    }
    table
}

fn bound(bound: &Bound) -> String {
    match bound {
        Bound::Min => "min".to_owned(),
        Bound::Int(number) => number.to_string(),
        Bound::Text(text) => text.clone(),
        Bound::Date(day) => crate::config::print_day(*day),
        Bound::Max => "max".to_owned(),
    }
}

pub(super) fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// Has the workers count what they have answered, which they do when the client has the answer.
pub(super) fn wait_until_counted(shared: &Shared) {
    ask(shared, PATIENCE, Question::Counted);
}

/// `SHOW ROUTES`: how many statements went where, by reason.
pub(super) fn routes(shared: &Shared) -> Table {
    let mut table = Table::new(["kind", "route", "reason", "statements#"]);
    wait_until_counted(shared);
    let mut counts = Counts::of(shared.meters.iter()).statements;
    counts.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    for (kind, route, reason, count) in counts {
        table.push([
            kind.to_owned(),
            route.to_owned(),
            reason.to_owned(),
            count.to_string(),
        ]);
    }
    table
}

/// `SHOW EVENTS`, the newest last.
pub(super) fn events(events: &Events) -> Table {
    let mut table = Table::new(["number#", "time", "who", "kind", "event"]);
    for event in events.all() {
        let at = event.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        table.push([
            event.number.to_string(),
            timestamp(at),
            event.who,
            event.kind.to_owned(),
            event.text,
        ]);
    }
    table
}
