//! Questions to a server besides its checks: a connection of its own by the monitor's account, for one statement.

use std::time::Instant;

use super::connection::{Answer, Connection, Target};
use crate::pool::HostId;
use crate::worker::Live;

/// The rows that a server answers with, as texts.
///
/// # Errors
/// Why there are none, for the operator.
pub(in crate::control) fn ask(
    live: &Live,
    host: HostId,
    statement: &str,
) -> Result<Vec<Vec<String>>, String> {
    let snapshot = &live.snapshot;
    let entry = snapshot.hosts.get(host.index()).ok_or("it is gone")?;
    let group = snapshot.groups.get(entry.group).ok_or("it is gone")?;
    let resolved: Vec<_> = live.hosts.get(host).address().into_iter().collect();
    let target = Target {
        address: &entry.address,
        resolved: &resolved,
        tls_mode: group.config.tls.mode,
        tls: live.tls.backends.get(entry.group).and_then(Option::as_ref),
        monitor: &snapshot.config.monitor,
    };
    let deadline = Instant::now() + 2 * snapshot.config.monitor.timeout;
    let mut connection = Connection::open(&target, deadline).map_err(|fault| fault.to_string())?;
    match connection
        .ask(statement, deadline)
        .map_err(|fault| fault.to_string())?
    {
        Answer::Rows(_, rows) => Ok(rows
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned())
                    .collect()
            })
            .collect()),
        Answer::Done => Ok(Vec::new()),
        Answer::Refused { code, message } => Err(format!("{code} {message}")),
    }
}
