//! The command `idle`: resident memory of a proxy per client that is connected and does nothing.

use std::thread;
use std::time::Duration;

use crate::bed::Bed;
use crate::database::{Database, Threads};
use crate::error::{Error, Result};
use crate::figures::{count, count64};
use crate::machine;
use crate::mysql::Connection;
use crate::options::Options;
use crate::record::{Record, Table, say};
use crate::targets::Target;

/// How long the clients stay idle before memory is read, and how long idle CPU is watched.
const SETTLE: Duration = Duration::from_secs(2);

/// Measures every proxy among the targets.
///
/// # Errors
/// When a target cannot be started or does not take that many clients.
pub(crate) fn run(options: &Options) -> Result<()> {
    // A thread per connection would be ten thousand threads for the targets that hold a server connection per client.
    let mut bed = Bed::start(options, Threads::Pool)?;
    let clients = usize::try_from(bed.clients_max)
        .unwrap_or(usize::MAX)
        .min(options.clients);
    if clients < options.clients {
        say(&format!(
            "{clients} clients instead of {}: the limit of descriptors allows no more",
            options.clients
        ));
    }
    let what = if options.is_login_only {
        "logged in"
    } else {
        "each after one SELECT 1"
    };
    let mut table = Table::new(
        &format!("{clients} idle clients, {what}"),
        &[
            "target",
            "clients",
            "RSS before MiB",
            "RSS after MiB",
            "KiB per client",
            "idle CPU %",
            "server connections",
        ],
    );
    let mut refusals = Vec::new();
    for target in bed.targets.iter_mut().filter(|t| t.sid().is_some()) {
        eprintln!("{}: {clients} clients", target.name);
        let (record, refusal) = measure(options, target, &bed.database, clients)?;
        refusals.extend(refusal);
        let shown = |figure, scale: f64, decimals: usize| {
            format!("{:.decimals$}", record.get(figure).unwrap_or(0.0) / scale)
        };
        table.row(&[
            target.name.clone(),
            shown("clients", 1.0, 0),
            shown("rss_before_kib", 1024.0, 1),
            shown("rss_after_kib", 1024.0, 1),
            shown("kib_per_client", 1.0, 2),
            shown("idle_cpu_percent", 1.0, 1),
            shown("server_connections", 1.0, 0),
        ]);
        bed.json.put(&record)?;
        // The server needs a moment to see that the clients are gone.
        thread::sleep(SETTLE);
    }
    table.print();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Failed(refusals.join("; ")))
    }
}

/// The figures of one proxy, and why it did not take all clients, if so; the figures are of those that it took.
fn measure(
    options: &Options,
    target: &mut Target,
    database: &Database,
    clients: usize,
) -> Result<(Record, Option<String>)> {
    let sid = target.sid().unwrap_or(0);
    let before = machine::session_memory_kib(sid, "VmRSS");
    let connections_before = database.connections()?;
    let (open, refusal) = connect(options, target, clients);
    thread::sleep(SETTLE);
    let after = machine::session_memory_kib(sid, "VmRSS");
    let cpu = machine::session_cpu(sid);
    thread::sleep(SETTLE);
    let idle = machine::session_cpu(sid).saturating_sub(cpu);
    let server_connections = database.connections()?.saturating_sub(connections_before);
    let taken = count(open.len().max(1));
    open.into_iter().for_each(Connection::quit);
    target.fail_if_ended()?;
    let record = Record::new()
        .text("measure", "idle")
        .text("target", &target.name)
        .number("clients", taken)
        .number("rss_before_kib", count64(before))
        .number("rss_after_kib", count64(after))
        .number("kib_per_client", (count64(after) - count64(before)) / taken)
        .number(
            "idle_cpu_percent",
            idle.as_secs_f64() / SETTLE.as_secs_f64() * 100.0,
        )
        .number("server_connections", count64(server_connections));
    Ok((record, refusal))
}

/// Opens clients one after the other until all are there or one is refused.
fn connect(
    options: &Options,
    target: &Target,
    clients: usize,
) -> (Vec<Connection>, Option<String>) {
    let mut open = Vec::with_capacity(clients);
    while open.len() < clients {
        let login = Connection::open(target.address);
        let ready = login.and_then(|mut c| {
            if !options.is_login_only {
                c.query("SELECT 1")?;
            }
            Ok(c)
        });
        match ready {
            Ok(c) => open.push(c),
            Err(e) => {
                let refusal = format!("{}, client {}: {e}", target.name, open.len() + 1);
                return (open, Some(refusal));
            }
        }
    }
    (open, None)
}
