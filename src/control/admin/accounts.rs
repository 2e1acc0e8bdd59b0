//! `SHOW ACCOUNTS`: who uses this instance, how much, within which limits; and what an operator might do about it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clients;
use crate::admin::Table;
use crate::worker::{Live, Shared};

/// A client that has said nothing for so long has no need of its connection now.
const IDLE_LONG: Duration = Duration::from_secs(60);
/// Fewer clients than these are nobody's trouble.
const CLIENTS_MIN: usize = 20;
/// Of ten clients so many have to be idle for a word about it.
const IDLE_OF_TEN: usize = 8;

pub(super) fn accounts(shared: &Shared, live: &Live) -> Table {
    let mut table = Table::new([
        "account",
        "group",
        "clients#",
        "idle_minute#",
        "max_connections#",
        "statements#",
        "on_primary#",
        "on_replicas#",
        "errors#",
        "refused#",
        "mean_us#",
        "running#",
        "max_running#",
        "max_rate#",
        "limited#",
        "labels",
        "advice",
    ]);
    let idle = clients::idle_for(shared, IDLE_LONG);
    for (index, account) in live.snapshot.accounts.iter().enumerate() {
        if account.is_gone {
            continue;
        }
        let group = live.snapshot.groups.get(account.group);
        let figures = shared.account_figures(index);
        let clients = live.clients_of(index);
        let idle = idle.get(&index).copied().unwrap_or(0);
        let [primary, replicas] = figures.statements;
        let statements = primary.saturating_add(replicas);
        // Without a limit nobody counts them.
        let running = (account.limits.concurrency > 0).then(|| account.limiter.running());
        let limit = |limit: u64| (limit > 0).then(|| limit.to_string());
        table.push_row(vec![
            Some(String::from_utf8_lossy(&account.name).into_owned()),
            group.map(|group| group.name.clone()),
            Some(clients.to_string()),
            Some(idle.to_string()),
            limit(account.max_connections as u64),
            Some(statements.to_string()),
            Some(primary.to_string()),
            Some(replicas.to_string()),
            Some(figures.errors.to_string()),
            Some(figures.refused.to_string()),
            Some((figures.micros / statements.max(1)).to_string()),
            running.map(|running| running.to_string()),
            limit(account.limits.concurrency.into()),
            limit(account.limits.rate.into()),
            Some(account.limiter.refused().to_string()),
            Some(labels(&account.labels)),
            Some(advice(clients, idle, account.max_connections)),
        ]);
    }
    table
}

/// `name=text` of each, with commas between.
fn labels(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(name, text)| format!("{name}={text}"));
    pairs.collect::<Vec<_>>().join(", ")
}

/// A37: connections that nobody needs are not harmless, for they all come to life at once.
fn advice(clients: usize, idle: usize, limit: usize) -> String {
    if clients < CLIENTS_MIN || idle * 10 < clients * IDLE_OF_TEN {
        return String::new();
    }
    let bound = if limit == 0 {
        "; the account has no max_connections"
    } else {
        ""
    };
    format!(
        "{idle} of {clients} clients have been idle for a minute: the application's pools could be smaller{bound}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A37.
    #[test]
    fn a_word_about_idle_clients() {
        for (clients, idle, limit, wanted) in [
            (19, 19, 0, ""),
            (20, 15, 0, ""),
            (
                20,
                16,
                0,
                "16 of 20 clients have been idle for a minute: the application's pools could be smaller; the account has no max_connections",
            ),
            (
                2000,
                1999,
                2500,
                "1999 of 2000 clients have been idle for a minute: the application's pools could be smaller",
            ),
            (0, 0, 0, ""),
        ] {
            assert_eq!(advice(clients, idle, limit), wanted);
        }
    }
}
