//! A server's part in its group by its own words: its settings, from where it replicates, its replication group. Which statements
//! ask for that, and what the answers say. How far it is behind is `replication`'s. Pure.

use std::time::Duration;

use super::connection::Answer;
use crate::pool::{GroupView, Identity, ServerFacts, Sight, Source};
use crate::sql::Server;

/// The statement for the settings. It needs no privilege.
pub(super) fn settings(facts: &ServerFacts) -> &'static str {
    match facts.server() {
        Server::MariaDb => {
            "SELECT @@global.sql_mode, @@global.init_connect, @@global.wait_timeout, @@global.read_only, @@global.server_id"
        }
        Server::MySql if facts.version_number() >= 50_708 => {
            "SELECT @@global.sql_mode, @@global.init_connect, @@global.wait_timeout, @@global.read_only OR @@global.super_read_only, @@global.server_id, @@global.server_uuid"
        }
        Server::MySql => {
            "SELECT @@global.sql_mode, @@global.init_connect, @@global.wait_timeout, @@global.read_only, @@global.server_id, @@global.server_uuid"
        }
    }
}

/// What settings say.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) ansi_quotes: Option<bool>,
    pub(super) is_strict: Option<bool>,
    pub(super) init_connect: bool,
    pub(super) wait_timeout: Option<Duration>,
    pub(super) sight: Sight,
}

/// What the answer to [`settings`] says; a server that does not tell is not down for it.
pub(super) fn read_settings(facts: &ServerFacts, answer: &Answer) -> Settings {
    let Answer::Rows(_, rows) = answer else {
        return Settings::default();
    };
    let cell = |at: usize| rows.first()?.get(at)?.as_deref();
    let number = |at: usize| std::str::from_utf8(cell(at)?).ok()?.parse::<u64>().ok();
    let has_mode = |words: &[&[u8]]| {
        cell(0).map(|mode| {
            let mut modes = mode.split(|b| *b == b',');
            modes.any(|mode| words.iter().any(|word| mode.eq_ignore_ascii_case(word)))
        })
    };
    Settings {
        ansi_quotes: has_mode(&[b"ANSI_QUOTES"]),
        is_strict: has_mode(&[b"STRICT_TRANS_TABLES", b"STRICT_ALL_TABLES"]),
        init_connect: cell(1).is_some_and(|text| !text.is_empty()),
        wait_timeout: number(2).map(Duration::from_secs),
        sight: Sight {
            identity: Identity {
                server_id: number(4).unwrap_or_default(),
                uuid: cell(5)
                    .filter(|_| facts.server() == Server::MySql)
                    .unwrap_or_default()
                    .to_vec(),
            },
            // Newer versions of MariaDB have several ways to be read-only, each with its word.
            is_read_only: cell(3).map(|value| value != b"0" && !value.eq_ignore_ascii_case(b"OFF")),
            ..Sight::default()
        },
    }
}

/// From where a server replicates, as the answer to `replication::question` has it. A receiver that is stopped brings nothing.
pub(super) fn sources(answer: &Answer) -> Vec<Source> {
    let Answer::Rows(names, rows) = answer else {
        return Vec::new();
    };
    let column = |wanted: [&[u8]; 2]| {
        names
            .iter()
            .position(|name| wanted.iter().any(|word| name.eq_ignore_ascii_case(word)))
    };
    let receiver = column([b"Replica_IO_Running", b"Slave_IO_Running"]);
    let host = column([b"Source_Host", b"Master_Host"]);
    let port = column([b"Source_Port", b"Master_Port"]);
    let id = column([b"Source_Server_Id", b"Master_Server_Id"]);
    let uuid = column([b"Source_UUID", b"Master_UUID"]);
    let text = |row: &[Option<Vec<u8>>], at: Option<usize>| {
        let cell = at.and_then(|at| row.get(at)?.as_deref());
        String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()
    };
    let runs = |row: &&Vec<Option<Vec<u8>>>| {
        let state = text(row, receiver);
        !state.is_empty() && !state.eq_ignore_ascii_case("no")
    };
    rows.iter()
        .filter(runs)
        .map(|row| {
            let host = text(row, host);
            let port = text(row, port);
            Source {
                address: if host.contains(':') {
                    format!("[{host}]:{port}")
                } else {
                    format!("{host}:{port}")
                },
                identity: Identity {
                    server_id: text(row, id).parse().unwrap_or_default(),
                    uuid: text(row, uuid).into_bytes(),
                },
            }
        })
        .collect()
}

/// The statement for the replication group. It needs SELECT on that table; who may not ask goes by the other figures.
pub(super) const GROUP: &str = "SELECT * FROM performance_schema.replication_group_members";

/// Whether a server can be in a replication group.
pub(super) fn has_groups(facts: &ServerFacts) -> bool {
    facts.server() == Server::MySql && facts.version_number() >= 50_717
}

/// What the answer to [`GROUP`] says; nothing when the server takes no part in one.
pub(super) fn view(answer: &Answer, own: &Identity) -> Option<GroupView> {
    let Answer::Rows(names, rows) = answer else {
        return None;
    };
    let column = |wanted: &[u8]| {
        names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(wanted))
    };
    let (id, state) = (column(b"MEMBER_ID")?, column(b"MEMBER_STATE")?);
    // Version 5.7 has no roles there; its secondaries are read-only.
    let role = column(b"MEMBER_ROLE");
    let cell =
        |row: &[Option<Vec<u8>>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let is =
        |row: &[Option<Vec<u8>>], at: usize, word: &[u8]| cell(row, at).eq_ignore_ascii_case(word);
    let mine = rows
        .iter()
        .find(|row| !own.uuid.is_empty() && cell(row, id) == own.uuid)?;
    if is(mine, state, b"OFFLINE") {
        return None;
    }
    let reached = rows.iter().filter(|row| !is(row, state, b"UNREACHABLE"));
    Some(GroupView {
        is_online: is(mine, state, b"ONLINE"),
        is_secondary: role.is_some_and(|role| is(mine, role, b"SECONDARY")),
        has_majority: reached.clone().count() * 2 > rows.len(),
        members: reached.map(|row| cell(row, id)).collect(),
    })
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

    fn rows(names: &[&str], rows: &[&[Option<&str>]]) -> Answer {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Answer::Rows(
            names.iter().map(|name| bytes(name)).collect(),
            rows.iter()
                .map(|row| row.iter().map(|cell| cell.map(bytes)).collect())
                .collect(),
        )
    }

    #[test]
    fn each_server_is_asked_for_what_it_has() {
        for (version, has_super, has_uuid, has_groups) in [
            ("5.5.5-10.3.39-MariaDB", false, false, false),
            ("12.0.2-MariaDB", false, false, false),
            ("5.6.51", false, true, false),
            ("5.7.44-log", true, true, true),
            ("9.7.0", true, true, true),
        ] {
            let facts = facts(version);
            let asked = settings(&facts);
            assert_eq!(asked.contains("super_read_only"), has_super, "{version}");
            assert_eq!(asked.contains("server_uuid"), has_uuid, "{version}");
            assert_eq!(super::has_groups(&facts), has_groups, "{version}");
        }
    }

    #[test]
    fn settings_are_read() {
        let read = |version: &str, cells: &[Option<&str>]| {
            read_settings(&facts(version), &rows(&[""; 6], &[cells]))
        };
        for (value, closed) in [
            (Some("0"), Some(false)),
            (Some("1"), Some(true)),
            (Some("OFF"), Some(false)),
            (Some("ON"), Some(true)),
            (Some("NO_LOCK_NO_ADMIN"), Some(true)),
            (None, None),
        ] {
            let settings = read(
                "11.4.2-MariaDB",
                &[Some(""), None, Some("60"), value, Some("7")],
            );
            assert_eq!(settings.sight.is_read_only, closed, "{value:?}");
            assert_eq!(settings.sight.identity.server_id, 7);
            assert_eq!(settings.wait_timeout, Some(Duration::from_secs(60)));
            assert_eq!(settings.ansi_quotes, Some(false));
            assert_eq!(settings.is_strict, Some(false));
        }
        let cells = [
            Some("ANSI_QUOTES,strict_trans_tables,X"),
            Some("SET @a = 1"),
            Some("1"),
            Some("0"),
            Some("3"),
            Some("u"),
        ];
        let settings = read("8.0.36", &cells);
        assert_eq!(settings.ansi_quotes, Some(true));
        assert_eq!(settings.is_strict, Some(true));
        assert!(settings.init_connect);
        assert_eq!(settings.sight.identity.uuid, b"u");
        // Servers that tell less, or nothing.
        assert_eq!(read("8.0.36", &[Some("")]).sight, Sight::default());
        let silent = read_settings(&facts("8.0.36"), &Answer::Done);
        assert_eq!((silent.ansi_quotes, silent.is_strict), (None, None));
    }

    #[test]
    fn sources_are_those_whose_receiver_runs() {
        let maria = [
            "Connection_name",
            "Master_Host",
            "Master_Port",
            "Slave_IO_Running",
            "Master_Server_Id",
        ];
        let row = |io| [Some(""), Some("10.0.0.1"), Some("3306"), io, Some("5")];
        for (io, count) in [
            (Some("Yes"), 1),
            (Some("Connecting"), 1),
            (Some("Preparing"), 1),
            (Some("No"), 0),
            (None, 0),
        ] {
            let found = sources(&rows(&maria, &[&row(io)]));
            assert_eq!(found.len(), count, "{io:?}");
            for source in found {
                assert_eq!(source.address, "10.0.0.1:3306");
                assert_eq!(source.identity.server_id, 5);
            }
        }
        let mysql = [
            "Source_Host",
            "Source_Port",
            "Replica_IO_Running",
            "Source_UUID",
        ];
        let found = sources(&rows(
            &mysql,
            &[&[Some("::1"), Some("3306"), Some("Yes"), Some("u-1")]],
        ));
        assert_eq!(found[0].address, "[::1]:3306");
        assert_eq!(found[0].identity.uuid, b"u-1");
        assert_eq!(sources(&Answer::Done), []);
    }

    fn group(members: &[[&str; 3]]) -> Option<GroupView> {
        let names = ["CHANNEL_NAME", "MEMBER_ID", "MEMBER_STATE", "MEMBER_ROLE"];
        let cells: Vec<[Option<&str>; 4]> = members
            .iter()
            .map(|[id, state, role]| [Some("c"), Some(*id), Some(*state), Some(*role)])
            .collect();
        let all: Vec<&[Option<&str>]> = cells.iter().map(<[_; 4]>::as_slice).collect();
        let own = Identity {
            server_id: 1,
            uuid: b"a".to_vec(),
        };
        view(&rows(&names, &all), &own)
    }

    #[test]
    fn the_view_of_a_replication_group() {
        let (b, c) = (["b", "ONLINE", "SECONDARY"], ["c", "ONLINE", "SECONDARY"]);
        let seen = group(&[["a", "ONLINE", "PRIMARY"], b, c]).unwrap();
        assert!(seen.is_online && !seen.is_secondary && seen.has_majority);
        assert_eq!(seen.members, [b"a", b"b", b"c"]);
        let seen = group(&[["a", "ONLINE", "SECONDARY"], ["b", "ONLINE", "PRIMARY"]]).unwrap();
        assert!(seen.is_secondary);
        let (b, c) = (["b", "UNREACHABLE", ""], ["c", "UNREACHABLE", ""]);
        let seen = group(&[["a", "ONLINE", "PRIMARY"], b, c]).unwrap();
        assert!(!seen.has_majority && seen.members == [b"a"]);
        assert!(!group(&[["a", "RECOVERING", ""], c]).unwrap().is_online);
        // The plugin is there and does nothing, or has stopped.
        assert_eq!(group(&[["", "OFFLINE", ""]]), None);
        assert_eq!(group(&[["a", "OFFLINE", ""]]), None);
        assert_eq!(group(&[]), None);
        assert_eq!(view(&Answer::Done, &Identity::default()), None);
    }
}
