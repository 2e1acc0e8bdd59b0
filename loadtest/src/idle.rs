//! The command `idle`: resident memory of a proxy per client that is connected and does nothing.

use std::thread;
use std::time::Duration;

use crate::bed::Bed;
use crate::database::Threads;
use crate::error::{Error, Result};
use crate::figures::{count, count64};
use crate::machine;
use crate::mysql::Connection;
use crate::options::Options;
use crate::record::{Record, Table, say};

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
        &format!("{} idle clients, {what}", clients),
        &[
            "target",
            "RSS before MiB",
            "RSS after MiB",
            "KiB per client",
            "idle CPU %",
            "server connections",
        ],
    );
    for index in 0..bed.targets.len() {
        let Some(target) = bed.targets.get_mut(index) else {
            continue;
        };
        let Some(sid) = target.sid() else { continue };
        eprintln!("{}: {} clients", target.name, clients);
        let before = machine::session_memory_kib(sid, "VmRSS");
        let connections_before = bed.database.connections()?;
        let mut open = Vec::with_capacity(clients);
        for n in 0..clients {
            let login = Connection::open(target.address);
            let ready = login.and_then(|mut c| {
                if options.is_login_only {
                    Ok(c)
                } else {
                    c.query("SELECT 1").map(|_| c)
                }
            });
            open.push(
                ready.map_err(|e| {
                    Error::Failed(format!("{}, client {}: {e}", target.name, n + 1))
                })?,
            );
        }
        thread::sleep(SETTLE);
        let after = machine::session_memory_kib(sid, "VmRSS");
        let cpu = machine::session_cpu(sid);
        thread::sleep(SETTLE);
        let idle_percent = machine::session_cpu(sid).saturating_sub(cpu).as_secs_f64()
            / SETTLE.as_secs_f64()
            * 100.0;
        let server_connections = bed
            .database
            .connections()?
            .saturating_sub(connections_before);
        open.into_iter().for_each(Connection::quit);
        let per_client = (count64(after) - count64(before)) / count(clients);
        target.fail_if_ended()?;
        table.row(&[
            target.name.clone(),
            format!("{:.1}", count64(before) / 1024.0),
            format!("{:.1}", count64(after) / 1024.0),
            format!("{per_client:.2}"),
            format!("{idle_percent:.1}"),
            server_connections.to_string(),
        ]);
        let record = Record::new()
            .text("measure", "idle")
            .text("target", &target.name)
            .number("clients", count(clients))
            .number("rss_before_kib", count64(before))
            .number("rss_after_kib", count64(after))
            .number("kib_per_client", per_client)
            .number("idle_cpu_percent", idle_percent)
            .number("server_connections", count64(server_connections));
        bed.json.put(&record)?;
        // The server needs a moment to see that they are gone.
        thread::sleep(SETTLE);
    }
    table.print();
    Ok(())
}
