//! A server's replication by its own figures: which statement asks for them, and what the answer says. Pure.

use std::time::Duration;

use super::connection::Answer;
use crate::pool::{Replication, ServerFacts};
use crate::sql::Server;

/// The statement. On MariaDB it needs SLAVE MONITOR (before 10.5 REPLICATION CLIENT), on MySQL REPLICATION CLIENT.
pub(super) fn question(facts: &ServerFacts) -> &'static str {
    match facts.server() {
        Server::MariaDb => "SHOW ALL SLAVES STATUS",
        Server::MySql if facts.version_number() >= 80_022 => "SHOW REPLICA STATUS",
        Server::MySql => "SHOW SLAVE STATUS",
    }
}

/// What the account lacks when it may not ask.
pub(super) fn privilege(facts: &ServerFacts) -> &'static str {
    match facts.server() {
        Server::MariaDb if facts.version_number() >= 100_500 => "SLAVE MONITOR",
        Server::MariaDb | Server::MySql => "REPLICATION CLIENT",
    }
}

/// What the answer says, and why when it says nothing.
pub(super) fn read(answer: &Answer) -> (Replication, String) {
    match answer {
        Answer::Refused { code, message } => (Replication::Hidden, format!("{code} {message}")),
        Answer::Done => (Replication::Hidden, "it gives no rows".to_owned()),
        Answer::Rows(names, rows) => {
            let column = |wanted: &[&[u8]]| {
                names
                    .iter()
                    .position(|name| wanted.iter().any(|word| name.eq_ignore_ascii_case(word)))
            };
            let receiver = column(&[b"Replica_IO_Running", b"Slave_IO_Running"]);
            let applier = column(&[b"Replica_SQL_Running", b"Slave_SQL_Running"]);
            let lag = column(&[b"Seconds_Behind_Source", b"Seconds_Behind_Master"]);
            if rows.is_empty() {
                return (
                    Replication::Absent,
                    "it replicates from no other server".to_owned(),
                );
            }
            let (Some(receiver), Some(applier), Some(lag)) = (receiver, applier, lag) else {
                let why = "the columns of its replication are not known";
                return (Replication::Hidden, why.to_owned());
            };
            let cell = |row: &[Option<Vec<u8>>], at: usize| row.get(at).cloned().flatten();
            let worst = rows
                .iter()
                .map(|row| one(&cell(row, receiver), &cell(row, applier), &cell(row, lag)))
                .max_by_key(|replication| badness(*replication))
                .unwrap_or(Replication::Absent);
            (worst, String::new())
        }
    }
}

type Cell = Option<Vec<u8>>;

fn one(receiver: &Cell, applier: &Cell, lag: &Cell) -> Replication {
    let is = |cell: &Cell, word: &[u8]| {
        cell.as_deref()
            .is_some_and(|cell| cell.eq_ignore_ascii_case(word))
    };
    // "No" or nothing; a receiver without a connection says Connecting or Preparing.
    if !is(applier, b"Yes") || receiver.is_none() || is(receiver, b"No") {
        return Replication::Stopped;
    }
    let seconds = lag
        .as_deref()
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse::<u64>().ok());
    match seconds {
        Some(seconds) if is(receiver, b"Yes") => Replication::Behind(Duration::from_secs(seconds)),
        Some(_) | None => Replication::Disconnected,
    }
}

/// An order of badness, to find the worst of several sources.
fn badness(replication: Replication) -> (u8, Duration) {
    match replication {
        Replication::Behind(lag) => (0, lag),
        Replication::Absent => (1, Duration::ZERO),
        Replication::Hidden => (2, Duration::ZERO),
        Replication::Disconnected => (3, Duration::ZERO),
        Replication::Stopped => (4, Duration::ZERO),
        Replication::Silent | Replication::Unmeasured => (5, Duration::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Offer;

    fn facts(version: &str) -> ServerFacts {
        let mut facts = Offer::default().facts;
        facts.version = version.as_bytes().to_vec();
        facts
    }

    #[test]
    fn each_server_is_asked_in_its_words() {
        for (version, wanted, needed) in [
            (
                "5.5.5-10.3.39-MariaDB",
                "SHOW ALL SLAVES STATUS",
                "REPLICATION CLIENT",
            ),
            (
                "11.4.2-MariaDB-log",
                "SHOW ALL SLAVES STATUS",
                "SLAVE MONITOR",
            ),
            ("5.7.44-log", "SHOW SLAVE STATUS", "REPLICATION CLIENT"),
            ("8.0.21", "SHOW SLAVE STATUS", "REPLICATION CLIENT"),
            ("8.0.22", "SHOW REPLICA STATUS", "REPLICATION CLIENT"),
            ("9.7.0", "SHOW REPLICA STATUS", "REPLICATION CLIENT"),
        ] {
            let facts = facts(version);
            assert_eq!(
                (question(&facts), privilege(&facts)),
                (wanted, needed),
                "{version}"
            );
        }
    }

    fn rows(rows: &[[Option<&str>; 3]]) -> Replication {
        let names = [
            "Slave_IO_State",
            "Slave_IO_Running",
            "Slave_SQL_Running",
            "Seconds_Behind_Master",
        ];
        let names = names.map(|name| name.as_bytes().to_vec()).to_vec();
        let cell = |text: &Option<&str>| text.map(|text| text.as_bytes().to_vec());
        let rows = rows
            .iter()
            .map(|[io, sql, lag]| vec![None, cell(io), cell(sql), cell(lag)])
            .collect();
        read(&Answer::Rows(names, rows)).0
    }

    #[test]
    fn answers() {
        let yes = Some("Yes");
        let behind = |seconds| Replication::Behind(Duration::from_secs(seconds));
        for (row, wanted) in [
            ([yes, yes, Some("0")], behind(0)),
            ([yes, yes, Some("4294967296")], behind(4_294_967_296)),
            ([Some("Connecting"), yes, None], Replication::Disconnected),
            ([Some("Preparing"), yes, None], Replication::Disconnected),
            // MariaDB shows what it knew last.
            (
                [Some("Connecting"), yes, Some("5")],
                Replication::Disconnected,
            ),
            ([yes, yes, None], Replication::Disconnected),
            ([yes, yes, Some("-1")], Replication::Disconnected),
            ([yes, Some("No"), None], Replication::Stopped),
            ([Some("No"), yes, None], Replication::Stopped),
            ([Some("No"), Some("No"), Some("0")], Replication::Stopped),
            ([None, None, None], Replication::Stopped),
        ] {
            assert_eq!(rows(&[row]), wanted, "{row:?}");
        }
        assert_eq!(rows(&[]), Replication::Absent);
    }

    #[test]
    fn the_worst_source_counts() {
        let yes = Some("Yes");
        let (good, late) = ([yes, yes, Some("1")], [yes, yes, Some("7")]);
        let (lost, stopped) = ([Some("Connecting"), yes, None], [yes, Some("No"), None]);
        assert_eq!(
            rows(&[good, late, good]),
            Replication::Behind(Duration::from_secs(7))
        );
        assert_eq!(rows(&[lost, late]), Replication::Disconnected);
        assert_eq!(rows(&[good, stopped, lost]), Replication::Stopped);
    }

    #[test]
    fn what_tells_nothing() {
        let refused = Answer::Refused {
            code: 1227,
            message: "Access denied".to_owned(),
        };
        assert_eq!(
            read(&refused),
            (Replication::Hidden, "1227 Access denied".to_owned())
        );
        assert_eq!(read(&Answer::Done).0, Replication::Hidden);
        let strange = Answer::Rows(vec![b"a".to_vec()], vec![vec![None]]);
        assert_eq!(read(&strange).0, Replication::Hidden);
    }
}
