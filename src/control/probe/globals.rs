//! Global tables: whether the primary of every group has each of them, and all define it alike; and with `auto` which tables these are.
//! Looked at when the servers have been checked once, after every change of what is in force, and from time to time; what is not as it
//! should be is told once, and once more when it is in order again. By a thread of its own, over connections that last no longer than a
//! look. What is made of what was seen is `search`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Fault;
use super::connection::{Answer, Connection, Target};
use super::definitions::{Definition, columns, difference, quoted};
use super::rows::{self, Rows};
use super::search::{self, Search, Table};
use crate::config::HostAddress;
use crate::control::desk::Desk;
use crate::pool::HostId;
use crate::shard::{Found, Placement};
use crate::sql::Server;
use crate::worker::{Live, Shared};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(60);
/// The same where tables are found.
const EVERY_SEARCH: Duration = Duration::from_secs(15);
/// The same while something is not known yet, or on its way out.
const SOON: Duration = Duration::from_secs(1);
/// Between two looks at whether something else is in force.
const TICK: Duration = Duration::from_millis(500);
/// The same at first: clients wait for it.
const FIRST_TICK: Duration = Duration::from_millis(5);
/// One server has answered by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// Tables that a schema may have.
const TABLES_MAX: usize = 100_000;

/// Starts the thread.
///
/// # Errors
/// It could not be started.
pub fn start(desk: Arc<Desk>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("globals".to_owned())
        .spawn(move || run(&desk))?;
    Ok(())
}

/// Waits until it is known which tables every group has, or the deadline has come.
pub fn await_known(shared: &Shared, deadline: Instant) {
    let is_known = || {
        let live = shared.live();
        let placement = live.snapshot.placement.as_ref();
        placement.is_none_or(|placement| placement.doubt().is_empty())
    };
    while !is_known() && Instant::now() < deadline {
        std::thread::sleep(FIRST_TICK);
    }
}

fn run(desk: &Desk) {
    while !desk.checks().first_round_is_over() {
        std::thread::sleep(FIRST_TICK);
    }
    let mut told = BTreeSet::new();
    let mut search = Search::default();
    let mut seen: Option<Last> = None;
    loop {
        let live = desk.shared().live();
        let version = live.snapshot.version;
        let definitions = desk.shared().definitions.load(Ordering::Relaxed);
        let is_due = |last: &Last| last.is_over(version, definitions, Instant::now());
        if seen.as_ref().is_none_or(is_due)
            && let Some(placement) = &live.snapshot.placement
        {
            let mut wrong = BTreeSet::new();
            let schemas = Found::schemas_of(&live.snapshot.config);
            let mut every = EVERY;
            if schemas.is_empty() && placement.globals.is_empty() {
                told.clear();
            } else {
                let looked = look(&live, placement, &schemas, &mut wrong);
                if !schemas.is_empty() {
                    every = find(desk, &mut search, &schemas, looked, placement, &mut wrong);
                }
                tell(desk, &mut told, wrong, placement.globals.len());
            }
            seen = Some(Last {
                version,
                definitions,
                at: Instant::now(),
                every,
            });
        }
        std::thread::sleep(TICK);
    }
}

/// The last look.
struct Last {
    /// What was in force.
    version: u64,
    /// How often clients had changed definitions before it.
    definitions: u64,
    at: Instant,
    /// From one to the next.
    every: Duration,
}

impl Last {
    /// It is time for another.
    fn is_over(&self, version: u64, definitions: u64, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.at);
        // Where clients change definitions all the time, groups are asked from time to time only.
        let is_new = self.definitions != definitions && self.every != EVERY && age >= SOON;
        self.version != version || is_new || age >= self.every
    }
}

fn tell(desk: &Desk, told: &mut BTreeSet<String>, wrong: BTreeSet<String>, count: usize) {
    for text in wrong.difference(told) {
        log::warn!("{text}");
        desk.events().record("atlas", "global table", text.clone());
    }
    if wrong.is_empty() && !told.is_empty() {
        let text = format!("all {count} global tables are in every group, and alike");
        desk.events().record("atlas", "global table", text);
    }
    *told = wrong;
}

/// Has what was seen be in force, and says what is new; gives the time to the next look.
fn find(
    desk: &Desk,
    search: &mut Search,
    schemas: &BTreeSet<String>,
    looked: Looked,
    placement: &Placement,
    wrong: &mut BTreeSet<String>,
) -> Duration {
    let before = desk.globals();
    let seen = search::Seen {
        schemas,
        groups: &looked.groups,
        tables: looked.tables,
        is_complete: looked.is_complete,
        apart: looked.apart,
    };
    let result = search.judge(&before, &seen, Instant::now());
    wrong.extend(result.wrong);
    if result.found != before {
        let is_first = before.schemas != result.found.schemas;
        if let Err(error) = desk.put_globals(result.found.clone()) {
            log::error!(
                "the tables that were found in every group cannot be put in force: {error}"
            );
            return EVERY_SEARCH;
        }
        let names = |tables: &mut dyn Iterator<Item = &(String, String)>| {
            let names: Vec<String> = tables.map(|(s, n)| format!("{s}.{n}")).collect();
            names.join(", ")
        };
        let added = names(&mut result.found.tables.difference(&before.tables));
        let gone = before.tables.difference(&result.found.tables);
        // What the configuration leaves out is no news.
        let gone = names(&mut gone.filter(|name| placement.globals.contains(name)));
        if !added.is_empty() {
            let text = format!("found in every group, and global from here on: {added}");
            desk.events().record("atlas", "global table", text);
        } else if is_first && gone.is_empty() {
            let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
            let text = format!(
                "no other table of schema {} is in every group",
                schemas.join(", ")
            );
            desk.events().record("atlas", "global table", text);
        }
        if !gone.is_empty() {
            let text = format!("in one group at most, and global no longer: {gone}");
            log::warn!("{text}");
            desk.events().record("atlas", "global table", text);
        }
    }
    let is_open = result.is_leaving || !placement.doubt().is_empty() && !looked.is_complete;
    if is_open { SOON } else { EVERY_SEARCH }
}

/// What the primaries said.
struct Looked {
    /// Names of the groups that answered.
    groups: Vec<String>,
    /// Tables that may be global.
    tables: BTreeMap<(String, String), Table>,
    /// Every group answered.
    is_complete: bool,
    /// Tables that a group which answered does not have.
    apart: BTreeSet<(String, String)>,
}

/// A group that is asked.
struct Group {
    place: usize,
    name: String,
    kind: Server,
    connection: Connection,
    deadline: Instant,
    /// Schema, by the name that clients know, and name of its tables.
    tables: BTreeSet<(String, String)>,
}

/// Looks at all groups, and says what is wrong with the tables that are known.
fn look(
    live: &Live,
    placement: &Placement,
    schemas: &BTreeSet<String>,
    wrong: &mut BTreeSet<String>,
) -> Looked {
    let mut groups: Vec<Group> = Vec::new();
    let mut is_complete = true;
    for (place, group) in live.snapshot.groups.iter().enumerate() {
        if group.is_gone {
            continue;
        }
        let deadline = Instant::now() + PATIENCE;
        let opened = match group.primary {
            Some(primary) => connect(live, place, primary, deadline),
            None => Err("it has no primary".into()),
        };
        let listed = opened.and_then(|mut connection| {
            let mut tables = BTreeSet::new();
            for schema in schemas {
                let there = placement.schema_on(place, schema);
                let names = base_tables(&mut connection, there, deadline)?;
                if !placement.is_seen_in(place, schema, &names) {
                    wrong.insert(format!(
                        "the sharded tables of schema {schema} are not in group {}, or the monitor's account may not see them there: which tables every group has is not known",
                        group.name
                    ));
                    return Err("its sharded tables are not seen".into());
                }
                tables.extend(names.into_iter().map(|name| (schema.clone(), name)));
            }
            Ok((connection, tables))
        });
        match listed {
            // That it does not answer its checks tell; what it has is not known, and says nothing.
            Err(fault) => {
                is_complete = false;
                log::debug!("the tables of group {} are not known: {fault}", group.name);
            }
            Ok((connection, tables)) => groups.push(Group {
                place,
                name: group.name.clone(),
                kind: connection.facts.server(),
                connection,
                deadline,
                tables,
            }),
        }
    }
    let sets: Vec<_> = groups.iter().map(|group| &group.tables).collect();
    let apart = search::in_some(&sets);
    let mut known: BTreeMap<(String, String), Table> = BTreeMap::new();
    if is_complete {
        let taken = placement.taken(&live.snapshot.config);
        let all: Vec<&BTreeSet<(String, String)>> =
            groups.iter().map(|group| &group.tables).collect();
        let names = search::in_every(&all, &taken);
        known.extend(names.into_iter().map(|name| (name, Table::default())));
    }
    for name in &placement.globals {
        known.entry(name.clone()).or_default().is_known = true;
    }
    groups.retain_mut(|group| {
        let described = describe(group, placement, &mut known);
        if let Err(fault) = &described {
            is_complete = false;
            log::debug!("the tables of group {} are not known: {fault}", group.name);
        }
        described.is_ok()
    });
    if is_complete && known.len() <= search::FOUND_MAX {
        let deadline = Instant::now() + PATIENCE;
        let mut is_lost = false;
        for (name, table) in &mut known {
            if is_lost {
                table.has_other_rows = placement.is_unlike(&name.0, &name.1);
            } else if !table.is_known && table.is_alike_in(groups.len()) {
                table.has_other_rows = match compare(&mut groups, placement, name, deadline) {
                    Rows::Alike => false,
                    Rows::Others => true,
                    Rows::Unknown(unknown) => {
                        let (schema, name) = name;
                        let why = unknown.why;
                        log::debug!("the rows of {schema}.{name} are not compared: {why}");
                        is_lost |= unknown.is_lost;
                        placement.is_unlike(schema, name)
                    }
                };
            }
        }
    }
    for ((schema, name), table) in &known {
        if table.is_known {
            for group in &groups {
                if !table.definitions.iter().any(|d| d.group == group.name) {
                    wrong.insert(format!(
                        "global table {schema}.{name} is not in group {}, or the monitor's account may not see it there",
                        group.name
                    ));
                }
            }
        }
        let Some((first, others)) = table.definitions.split_first() else {
            continue;
        };
        for other in others {
            if let Some(how) = difference(first, other) {
                let (what, end) = if table.is_known {
                    ("global table", "")
                } else {
                    ("table", "; it is not taken for a global table")
                };
                wrong.insert(format!(
                    "{what} {schema}.{name} is defined otherwise in group {} than in group {}: {how}{end}",
                    other.group, first.group
                ));
            }
        }
    }
    Looked {
        groups: groups.into_iter().map(Group::leave).collect(),
        tables: known,
        is_complete,
        apart,
    }
}

/// Whether a table has the same rows in all groups. What is written to it at the moment may be seen in one group before the other.
fn compare(
    groups: &mut [Group],
    placement: &Placement,
    (schema, name): &(String, String),
    deadline: Instant,
) -> Rows {
    const TRIES: usize = 3;
    let mut rows = Rows::Alike;
    for _ in 0..TRIES {
        let seen = groups.iter_mut().map(|group| {
            let there = placement.schema_on(group.place, schema);
            rows::of(&mut group.connection, (there, name), deadline)
        });
        rows = rows::compare(&seen.collect::<Vec<_>>());
        if rows != Rows::Others {
            break;
        }
        std::thread::sleep(TICK / 5);
    }
    rows
}

impl Group {
    /// Ends the connection; gives the name.
    fn leave(self) -> String {
        self.connection.quit(self.deadline);
        self.name
    }
}

/// Notes how a group defines these tables.
fn describe(
    group: &mut Group,
    placement: &Placement,
    known: &mut BTreeMap<(String, String), Table>,
) -> Result<(), Fault> {
    let schemas: BTreeSet<String> = known.keys().map(|(schema, _)| schema.clone()).collect();
    let deadline = Instant::now() + PATIENCE;
    for schema in schemas {
        let of = known.iter_mut().filter(|((s, _), _)| *s == schema);
        let of: Vec<(&str, &mut Table)> = of.map(|((_, n), t)| (n.as_str(), t)).collect();
        let names: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
        let there = placement.schema_on(group.place, &schema);
        let mut columns = columns(&mut group.connection, there, &names, deadline)?;
        for (name, table) in of {
            // On some file systems names have no case.
            let found = columns.remove(name.as_bytes()).or_else(|| {
                let is_it = |key: &&Vec<u8>| key.eq_ignore_ascii_case(name.as_bytes());
                let key = columns.keys().find(is_it)?.clone();
                columns.remove(&key)
            });
            if let Some(columns) = found {
                table.definitions.push(Definition {
                    group: group.name.clone(),
                    kind: group.kind,
                    columns,
                });
            }
        }
    }
    Ok(())
}

/// The tables of a schema, without views.
fn base_tables(
    connection: &mut Connection,
    schema: &str,
    deadline: Instant,
) -> Result<BTreeSet<String>, Fault> {
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'BASE TABLE'",
        quoted(schema)
    );
    match connection.ask_many(&sql, TABLES_MAX, deadline)? {
        Answer::Rows(_, rows) => Ok(rows
            .into_iter()
            .filter_map(|row| String::from_utf8(row.into_iter().next()??).ok())
            .collect()),
        Answer::Done => Ok(BTreeSet::new()),
        Answer::Refused { code, message } => Err(Fault::Refused { code, message }),
    }
}

/// A connection to a group's primary, by the account of checks.
pub(in crate::control) fn connect(
    live: &Live,
    place: usize,
    host: HostId,
    deadline: Instant,
) -> Result<Connection, Fault> {
    at(live, place, host, |target| {
        Connection::open(target, deadline)
    })
}

/// Where a host is, and how it is connected to.
pub(in crate::control) fn at<T>(
    live: &Live,
    place: usize,
    host: HostId,
    connect: impl FnOnce(&Target<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (Some(group), Some(entry)) = (
        live.snapshot.groups.get(place),
        live.snapshot.hosts.get(host.index()),
    ) else {
        return Err("it is configured no more".into());
    };
    // Names are resolved by checks.
    let resolved: Vec<_> = match &entry.address {
        HostAddress::Name(..) => live.hosts.get(host).address().into_iter().collect(),
        HostAddress::Ip(_) | HostAddress::Unix(_) => Vec::new(),
    };
    let target = Target {
        address: &entry.address,
        resolved: &resolved,
        tls_mode: group.config.tls.mode,
        tls: live.tls.backends.get(place).and_then(Option::as_ref),
        monitor: &live.snapshot.config.monitor,
    };
    connect(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_clients_change_are_looked_at_soon() {
        let at = Instant::now();
        let last = |every| Last {
            version: 1,
            definitions: 4,
            at,
            every,
        };
        let search = last(EVERY_SEARCH);
        assert!(!search.is_over(1, 4, at + SOON));
        assert!(!search.is_over(1, 5, at + SOON / 2));
        assert!(search.is_over(1, 5, at + SOON));
        assert!(search.is_over(2, 4, at));
        assert!(search.is_over(1, 4, at + EVERY_SEARCH));
        // Where nothing is found, they are nobody's business.
        assert!(!last(EVERY).is_over(1, 5, at + SOON));
    }
}
