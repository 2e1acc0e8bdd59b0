//! Global tables: whether the primary of every group has each of them, and all define it alike. Looked at when the servers have been
//! checked once, after every change of what is in force, and from time to time; what is not as it should be is told once, and once more
//! when it is in order again. By a thread of its own, over connections that last no longer than a look.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Fault;
use super::connection::{Answer, Connection, Target};
use crate::config::HostAddress;
use crate::control::desk::Desk;
use crate::pool::HostId;
use crate::shard::Placement;
use crate::sql::Server;
use crate::worker::Live;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(60);
/// Between two looks at whether something else is in force.
const TICK: Duration = Duration::from_millis(500);
/// One server has answered by then.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of each column: its name and what both kinds of servers say alike, then what they word each in its own way.
const COLUMNS: &str = "COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_TYPE, COLUMN_DEFAULT, COLLATION_NAME, COLUMN_KEY, EXTRA";
/// So many of them are alike on both.
const ALIKE: usize = 3;

type Column = Vec<Option<Vec<u8>>>;

/// A table as a server describes it.
#[derive(Debug)]
struct Definition {
    group: String,
    kind: Server,
    columns: Vec<Column>,
}

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

fn run(desk: &Desk) {
    while !desk.checks().first_round_is_over() {
        std::thread::sleep(TICK);
    }
    let mut told = BTreeSet::new();
    let mut seen: Option<(u64, Instant)> = None;
    loop {
        let live = desk.shared().live();
        let version = live.snapshot.version;
        let is_due = |(of, at): (u64, Instant)| of != version || at.elapsed() >= EVERY;
        if seen.is_none_or(is_due)
            && let Some(placement) = &live.snapshot.placement
        {
            if let Some(wrong) = look(&live, placement) {
                tell(desk, &mut told, wrong, placement.globals.len());
            }
            seen = Some((version, Instant::now()));
        }
        std::thread::sleep(TICK);
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

/// What is wrong; nothing where there is nothing to be looked at.
fn look(live: &Live, placement: &Placement) -> Option<BTreeSet<String>> {
    if placement.globals.is_empty() {
        return None;
    }
    let mut wrong = BTreeSet::new();
    let mut known: Vec<Vec<Definition>> = placement.globals.iter().map(|_| Vec::new()).collect();
    for (place, group) in live.snapshot.groups.iter().enumerate() {
        let Some(primary) = group.primary.filter(|_| !group.is_gone) else {
            continue;
        };
        let deadline = Instant::now() + PATIENCE;
        let asked = connect(live, place, primary, deadline).and_then(|mut connection| {
            let mut all = Vec::new();
            for (schema, name) in &placement.globals {
                let schema = placement.schema_on(place, schema);
                all.push(columns(&mut connection, schema, name, deadline)?);
            }
            let kind = connection.facts.server();
            connection.quit(deadline);
            Ok((kind, all))
        });
        match asked {
            Err(fault) => {
                // That it does not answer its checks tell; what it has is not known, and says nothing.
                log::debug!(
                    "the global tables of group {} are not known: {fault}",
                    group.name
                );
            }
            Ok((kind, all)) => {
                for ((definitions, global), columns) in
                    known.iter_mut().zip(&placement.globals).zip(all)
                {
                    if columns.is_empty() {
                        wrong.insert(format!(
                            "global table {}.{} is not in group {}, or the monitor's account may not see it there",
                            global.0, global.1, group.name
                        ));
                    } else {
                        definitions.push(Definition {
                            group: group.name.clone(),
                            kind,
                            columns,
                        });
                    }
                }
            }
        }
    }
    for (definitions, (schema, name)) in known.iter().zip(&placement.globals) {
        let Some((first, others)) = definitions.split_first() else {
            continue;
        };
        for other in others {
            if let Some(how) = difference(first, other) {
                wrong.insert(format!(
                    "global table {schema}.{name} is defined otherwise in group {} than in group {}: {how}",
                    other.group, first.group
                ));
            }
        }
    }
    Some(wrong)
}

/// A connection to a group's primary, by the account of checks.
pub(in crate::control) fn connect(
    live: &Live,
    place: usize,
    host: HostId,
    deadline: Instant,
) -> Result<Connection, Fault> {
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
    Connection::open(&target, deadline)
}

fn columns(
    connection: &mut Connection,
    schema: &str,
    name: &str,
    deadline: Instant,
) -> Result<Vec<Column>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        quoted(schema),
        quoted(name)
    );
    match connection.ask(&sql, deadline)? {
        Answer::Rows(_, rows) => Ok(rows),
        Answer::Done => Ok(Vec::new()),
        Answer::Refused { code, message } => Err(Fault::Refused { code, message }),
    }
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"))
}

/// In what two groups' definitions differ; servers of two kinds word some things in two ways, which are passed over.
fn difference(first: &Definition, other: &Definition) -> Option<String> {
    let compared = if first.kind == other.kind {
        usize::MAX
    } else {
        ALIKE
    };
    let named = |column: Option<&Column>| {
        let text = |at: usize| {
            let cell = column.and_then(|column| column.get(at)).cloned().flatten();
            String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned()
        };
        match column {
            None => "none".to_owned(),
            Some(_) => format!("`{}` {}", text(0), text(ALIKE)),
        }
    };
    let count = first.columns.len().max(other.columns.len());
    let at = (0..count).find(|at| {
        let of = |definition: &Definition| {
            let column = definition.columns.get(*at).cloned();
            column.map(|column| column.into_iter().take(compared).collect::<Vec<_>>())
        };
        of(first) != of(other)
    })?;
    Some(format!(
        "column {} is {} there and {} here (type, default, collation and keys are compared too)",
        at + 1,
        named(first.columns.get(at)),
        named(other.columns.get(at)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(kind: Server, columns: &[[&str; 5]]) -> Definition {
        let cell = |text: &&str| Some(text.as_bytes().to_vec());
        Definition {
            group: String::new(),
            kind,
            columns: columns
                .iter()
                .map(|column| column.iter().map(cell).collect())
                .collect(),
        }
    }

    #[test]
    fn definitions_are_compared() {
        const ID: [&str; 5] = ["id", "int", "NO", "int(11)", "NULL"];
        const ID_THERE: [&str; 5] = ["id", "int", "NO", "int", ""];
        const NAME: [&str; 5] = ["name", "varchar", "YES", "varchar(9)", "NULL"];
        let (maria, mysql) = (Server::MariaDb, Server::MySql);
        let first = definition(maria, &[ID, NAME]);
        assert_eq!(difference(&first, &definition(maria, &[ID, NAME])), None);
        let told = difference(&first, &definition(maria, &[ID_THERE, NAME])).unwrap();
        assert!(
            told.starts_with("column 1 is `id` int(11) there and `id` int here"),
            "{told}"
        );
        // As the other kind of server words it.
        assert_eq!(
            difference(&first, &definition(mysql, &[ID_THERE, NAME])),
            None
        );
        let told = difference(&first, &definition(mysql, &[ID])).unwrap();
        assert!(
            told.starts_with("column 2 is `name` varchar(9) there and none here"),
            "{told}"
        );
        let told = difference(&first, &definition(mysql, &[NAME, ID])).unwrap();
        assert!(told.starts_with("column 1 is `id`"), "{told}");
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a'b\\c"), "'a''b\\\\c'");
    }
}
