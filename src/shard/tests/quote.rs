//! What servers quote of texts that were rewritten.

use super::placement;
use crate::shard::{Dress, Numbers, Plan, QUOTES};
use crate::sql::{Dialect, Server};

/// A message about this text as it is sent for one shard, with what the server quotes behind `near` and its line, for the client.
fn told(sql: &str, server: Server, near: &str, line: usize) -> String {
    let placement = std::sync::Arc::new(placement());
    let Some(Plan::One(leg)) = placement.plan_text(super::asked(sql, Numbers::None), Some(b"t1"))
    else {
        panic!("{sql}: for one shard");
    };
    let dress = Dress::new(&placement, &leg).unwrap();
    let dress = dress.quoting(sql.as_bytes(), &leg, &Dialect::new(server, 0));
    let message = format!("You have an error, it's near '{near}' at line {line}");
    let known = dress.message(QUOTES, message.as_bytes());
    known.map_or(message, |known| String::from_utf8(known).unwrap())
}

#[test]
fn the_clients_text_is_quoted_from_the_same_place() {
    let sql = "SELECT 'it''s', x FROM log WHERE log.id = 2 AND x > 'a text that is so long that not all of it is told'";
    for (server, near, known) in [
        (
            Server::MariaDb,
            "FROM `log_12` AS log WHERE log.id = 2 AND x > 'a text that is so long that no...",
            "FROM log WHERE log.id = 2 AND x > 'a text that is so long that not all of it ...",
        ),
        (
            Server::MySql,
            "FROM `log_12` AS log WHERE log.id = 2 AND x > 'a text that is so long that not a",
            "FROM log WHERE log.id = 2 AND x > 'a text that is so long that not all of it is ",
        ),
        // Of the name itself the client knows its own; what is in front of it has not moved.
        (
            Server::MySql,
            "`log_12` AS log WHERE log.id = 2 AND x > 'a text that is so long that not all of",
            "log WHERE log.id = 2 AND x > 'a text that is so long that not all of it is told'",
        ),
        (Server::MySql, "is told'", "is told'"),
        (Server::MariaDb, "", ""),
        // Not from this text: names alone.
        (Server::MySql, "FROM `log_12` AS log, y", "FROM log, y"),
        (Server::MariaDb, "no such thing", "no such thing"),
    ] {
        let wanted = format!("You have an error, it's near '{known}' at line 1");
        assert_eq!(told(sql, server, near, 1), wanted, "{server:?}");
    }
}

#[test]
fn a_megabyte_takes_no_time() {
    let long = "log ".repeat(250_000);
    let sql = format!("SELECT x FROM log WHERE id = 2 AND x = '{long}' AND y");
    let told = told(&sql, Server::MySql, "' AND y", 1);
    assert!(told.ends_with("near '' AND y' at line 1"), "{told}");
}
