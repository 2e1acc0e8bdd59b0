//! Which node this instance is where Atlas generates keys: a lock on the primary of a table's first group, held by the check's connection
//! and confirmed at each check. What that is worth is `shard::Ids`'s to know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::connection::{Answer, Connection};
use super::{Fault, Prober, random};
use crate::shard::{Lease, NODES};

/// Numbers that are tried in one check.
const TRIES: usize = 8;

/// The server's clock in milliseconds, in whatever time zone.
const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000";

/// Numbers of connections that hold a lock.
static HOLDERS: AtomicU64 = AtomicU64::new(1);

/// A lock that a connection holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    number: u16,
    holder: u64,
}

impl Prober {
    /// Whether a table's keys hang on this server.
    fn names_nodes(&self) -> bool {
        let snapshot = &self.live.snapshot;
        let group = self.entry().group;
        let placement = snapshot.placement.as_ref();
        snapshot.leads(self.host)
            && placement.is_some_and(|placement| placement.generates_by(group))
    }

    /// Has the lock, and says so; or has it no more, where nobody needs it.
    pub(super) fn be_a_node(&self, connection: &mut Connection, deadline: Instant) {
        let (nodes, group) = (&self.live.nodes, self.entry().group);
        if !self.names_nodes() {
            if let Some(held) = connection.node.take() {
                nodes.lose(group, held.holder);
                let release = format!("DO RELEASE_LOCK('atlas.node.{}')", held.number);
                connection.is_spent |= connection.ask(&release, deadline).is_err();
            }
            return;
        }
        for _ in 0..TRIES {
            let at = nodes.moment();
            let held = connection.node.take();
            let is_new = held.is_none();
            let held = held.unwrap_or_else(|| Held {
                number: u16::try_from(random() % u32::from(NODES)).unwrap_or(0),
                holder: HOLDERS.fetch_add(1, Ordering::Relaxed),
            });
            match ask(connection, held.number, is_new, deadline) {
                Ok(Some(told)) => {
                    connection.node = Some(held);
                    let lease = Lease {
                        node: held.number,
                        holder: held.holder,
                        told,
                        at,
                    };
                    return nodes.confirm(group, lease);
                }
                // Another instance has it, or the server has taken it away.
                Ok(None) => nodes.lose(group, held.holder),
                Err(fault) => {
                    log::warn!("cannot be a node on {}: {fault}", self.address());
                    connection.is_spent = true;
                    return;
                }
            }
        }
    }
}

/// The server's clock, if the lock is this connection's.
fn ask(
    connection: &mut Connection,
    number: u16,
    is_new: bool,
    deadline: Instant,
) -> Result<Option<u64>, Fault> {
    let question = if is_new {
        format!("GET_LOCK('atlas.node.{number}', 0)")
    } else {
        format!("IS_USED_LOCK('atlas.node.{number}') = CONNECTION_ID()")
    };
    match connection.ask(&format!("SELECT {question}, {CLOCK}"), deadline)? {
        Answer::Rows(_, rows) => {
            let cell = |at: usize| rows.first()?.get(at)?.as_deref();
            let told = || std::str::from_utf8(cell(1)?).ok()?.parse().ok();
            Ok(told().filter(|_| cell(0) == Some(b"1")))
        }
        Answer::Done => Ok(None),
        Answer::Refused { code, message } => Err(Fault::Refused { code, message }),
    }
}
