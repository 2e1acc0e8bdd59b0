//! `CHECK CONNECTIONS`: who is connected to the servers without this instance. Applications that go around the proxy have neither its
//! limits nor its rules, and nobody sees them here.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::reports;
use crate::admin::Table;
use crate::control::ask::ask;
use crate::control::probe::settings;
use crate::pool::HostId;
use crate::worker::{Live, Question, Shared};

/// How long all workers together may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The connections of this instance: host, and the server's number.
type Own = HashSet<(HostId, u64)>;

/// A server's connections by account and address: how many there are, how many of them run something, and the longest of those.
type Found = BTreeMap<(String, String), (usize, usize, u64)>;

pub(super) fn check(shared: &Shared, live: &Live) -> Table {
    let mut table = Table::new([
        "backend_ndx#",
        "group",
        "address",
        "user",
        "host",
        "connections#",
        "running#",
        "longest_s#",
        "note",
    ]);
    let backends = reports::all(live);
    // Before and after: what was closed meanwhile is in the one, what was opened in the other.
    let mut own = own(shared);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = |host| move || settings::ask(live, host, "SHOW PROCESSLIST");
        let asked: Vec<_> = backends
            .iter()
            .map(|backend| scope.spawn(ask(backend.host)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|_| Err("the check failed".to_owned()))
        };
        asked.into_iter().map(join).collect()
    });
    own.extend(self::own(shared));
    let monitor = &live.snapshot.config.monitor.user;
    for (backend, answer) in backends.iter().zip(answers) {
        let head = [
            Some(backend.number().to_string()),
            Some(backend.group.to_owned()),
            Some(backend.address.to_string()),
        ];
        let mut say =
            |user: Option<&str>, host: Option<&str>, counts: [Option<String>; 3], note: &str| {
                let mut row = head.to_vec();
                row.extend([user, host].map(|text| text.map(str::to_owned)));
                row.extend(counts);
                row.push(Some(note.to_owned()));
                table.push_row(row);
            };
        let rows = match answer {
            Ok(rows) => rows,
            Err(why) => {
                say(None, None, [None, None, None], &why);
                continue;
            }
        };
        let sees_own = rows
            .iter()
            .filter_map(|row| row.first()?.parse().ok())
            .any(|id| own.contains(&(backend.host, id)));
        let has_own = own.iter().any(|(host, _)| *host == backend.host);
        if has_own && !sees_own {
            let note = "the monitor's account sees none but its own connections: it lacks PROCESS";
            say(None, None, [None, None, None], note);
            continue;
        }
        for ((user, host), (count, running, longest)) in
            strangers(&rows, monitor, |id| own.contains(&(backend.host, id)))
        {
            let counts = [count, running].map(|count| Some(count.to_string()));
            let [count, running] = counts;
            say(
                Some(&user),
                Some(&host),
                [count, running, Some(longest.to_string())],
                "",
            );
        }
    }
    table
}

fn own(shared: &Shared) -> Own {
    ask(shared, PATIENCE, Question::Connections)
        .into_iter()
        .flatten()
        .map(|(host, id)| (host, u64::from(id)))
        .collect()
}

/// Those of a process list that are neither this instance's, nor the monitor's, nor the server's own.
fn strangers(rows: &[Vec<String>], monitor: &str, is_own: impl Fn(u64) -> bool) -> Found {
    let mut found = Found::new();
    for row in rows {
        let [id, user, host, _, command, time, ..] = row.as_slice() else {
            continue;
        };
        let of_server = matches!(
            user.as_str(),
            "system user" | "event_scheduler" | "unauthenticated user" | ""
        );
        // Replication is no application.
        let replicates = command.starts_with("Binlog Dump");
        if of_server || replicates || user == monitor || id.parse().is_ok_and(&is_own) {
            continue;
        }
        // Each connection has a port of its own.
        let host = host
            .rsplit_once(':')
            .map_or(host.as_str(), |(host, _)| host);
        let (count, running, longest) = found.entry((user.clone(), host.to_owned())).or_default();
        *count += 1;
        if command != "Sleep" {
            *running += 1;
            *longest = (*longest).max(time.parse().unwrap_or(0));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A28.
    #[test]
    fn who_is_a_stranger() {
        let row = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let rows: Vec<_> = [
            "1|system user||NULL|Connect|99|Waiting|",
            "2|event_scheduler|localhost|NULL|Daemon|99|Waiting|",
            "3|repl|10.0.0.2:4000|NULL|Binlog Dump GTID|99||",
            "4|monitor|10.0.0.9:4001|NULL|Sleep|0||",
            "5|shop|10.0.0.9:4002|shop|Query|3||SELECT 1",
            "6|shop|10.0.0.7:4003|shop|Query|30||SELECT 1",
            "7|shop|10.0.0.7:4004|shop|Sleep|3000||",
            "8|dba|localhost|NULL|Execute|4||SELECT 1",
            "9|unauthenticated user|10.0.0.7:9|NULL|Connect|1||",
            "x|y",
        ]
        .into_iter()
        .map(row)
        .collect();
        let found = strangers(&rows, "monitor", |id| id == 5);
        let wanted = [
            (("dba", "localhost"), (1, 1, 4)),
            (("shop", "10.0.0.7"), (2, 1, 30)),
        ];
        let wanted = wanted
            .into_iter()
            .map(|((user, host), counts)| ((user.to_owned(), host.to_owned()), counts));
        assert_eq!(found, wanted.collect());
    }
}
