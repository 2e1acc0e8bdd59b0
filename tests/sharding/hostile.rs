//! Statements that mean no good: each gets an answer or a clear error, and others go on meanwhile.

use std::time::Duration;

use crate::Stage;
use crate::common::{Bed, Node, Wire};

/// The statement, and what the answer may be.
fn statements() -> Vec<(&'static str, Vec<u8>)> {
    let rows = |bytes: usize, table: &str| {
        let mut text = format!("INSERT INTO {table} VALUES (4, 'x')");
        let mut number = 8;
        while text.len() < bytes {
            text.push_str(&format!(", ({number}, 'x')"));
            number += 4;
        }
        text.into_bytes()
    };
    let chain = |part: &str, count: usize| {
        let mut text = "SELECT uid FROM ord WHERE uid = 2".to_owned();
        for _ in 0..count {
            text.push_str(part);
        }
        text.into_bytes()
    };
    let nested = |open: &str, close: &str, count: usize| {
        format!(
            "SELECT uid FROM ord WHERE uid = {}2{}",
            open.repeat(count),
            close.repeat(count)
        )
        .into_bytes()
    };
    let mut invalid =
        b"SELECT uid, '\xff\xfe\xc3' FROM ord WHERE uid = 2 AND code <> '\xf0\x28\x8c".to_vec();
    invalid.extend_from_slice(b"'");
    vec![
        ("rows of 16 MB", rows(16 << 20, "log")),
        ("rows of 900 KB", rows(900_000, "log")),
        ("a chain of AND", chain(" AND amt = 2", 8000)),
        ("a chain of OR", chain(" OR uid = 2", 8000)),
        ("a chain of +", chain("+1", 40_000)),
        (
            "a chain of UNION",
            chain(" UNION ALL SELECT uid FROM ord WHERE uid = 2", 1500),
        ),
        ("a chain of NOT", nested("NOT ", "", 20_000)),
        ("parentheses", nested("(", ")", 30_000)),
        ("minus signs", nested("- ", "", 40_000)),
        ("subqueries", nested("(SELECT ", ")", 8000)),
        ("functions", nested("ABS(", ")", 8000)),
        ("CASE", nested("CASE WHEN 1 THEN ", " END", 4000)),
        (
            "an executable comment",
            b"SELECT uid FROM ord WHERE uid = 2 /*!50000 OR uid = 3 */".to_vec(),
        ),
        (
            "one of another version",
            b"SELECT uid FROM ord WHERE uid = 2 /*!99999 OR uid = 3 */".to_vec(),
        ),
        (
            "one of MariaDB",
            b"SELECT uid FROM ord WHERE uid = 2 /*M!50000 OR uid = 3 */".to_vec(),
        ),
        (
            "one that names the table",
            b"SELECT uid FROM /*!50000 ord */ WHERE uid = 3".to_vec(),
        ),
        (
            "one without an end",
            b"SELECT uid FROM ord WHERE uid = 3 /*!50000".to_vec(),
        ),
        (
            "a string without an end",
            b"SELECT uid FROM ord WHERE uid = 3 AND code = 'x".to_vec(),
        ),
        ("invalid UTF-8", invalid),
        (
            "zero bytes",
            b"SELECT uid FROM ord\0 WHERE uid\0= 3".to_vec(),
        ),
        (
            "a name of nothing",
            b"SELECT uid FROM `` WHERE uid = 3; SELECT 1 FROM ord".to_vec(),
        ),
        ("nothing but a name", b"ord".to_vec()),
        ("a list of 60,000", {
            let list: Vec<String> = (0..60_000).map(|n| (n * 2).to_string()).collect();
            format!("SELECT uid FROM ord WHERE uid IN ({})", list.join(",")).into_bytes()
        }),
    ]
}

fn raw(wire: &mut Wire, sql: &[u8]) -> crate::common::Reply {
    let payload = wire.query_payload(sql);
    wire.command(&payload)
}

#[test]
fn hostile_statements_are_answered_or_refused() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        // What a server itself takes of these is its own business.
        bed.root(Node::Primary)
            .ok("SET GLOBAL max_allowed_packet = 67108864");
        bed.root(Node::Second)
            .ok("SET GLOBAL max_allowed_packet = 67108864");
        let mut other = stage.client();
        for (what, sql) in statements() {
            let (mut client, mut direct) = (stage.client(), stage.direct());
            for wire in [&mut client, &mut direct] {
                wire.set_timeout(Duration::from_secs(60));
            }
            let reply = raw(&mut client, &sql);
            match reply.error() {
                Some((1105, _, text)) => {
                    let (_, reason) = text
                        .split_once("Not Support SQL: ")
                        .unwrap_or_else(|| panic!("{what}: {text}"));
                    assert!(reason.len() > 10 && reason.len() < 500, "{what}: {text}");
                }
                told => {
                    let wanted = raw(&mut direct, &sql);
                    assert_eq!(
                        told.map(|(code, ..)| code),
                        wanted.error().map(|(code, ..)| code),
                        "{:?}: {what}",
                        bed.kind
                    );
                    if wanted.error().is_none() && wanted.results()[0].len() > 1 {
                        let mut rows = [reply.rows(), wanted.rows()];
                        rows.iter_mut().for_each(|rows| rows.sort());
                        assert_eq!(rows[0], rows[1], "{:?}: {what}", bed.kind);
                    }
                }
            }
            assert_eq!(
                other.query("SELECT uid FROM ord WHERE uid = 3").cell(),
                "3",
                "after {what}"
            );
        }
    }
}

/// Bytes that are signs of their own in one character set and the second half of a letter in another.
#[test]
fn character_sets_in_which_a_letter_ends_in_a_sign() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("ALTER TABLE log ADD u VARCHAR(40) CHARACTER SET utf16, ADD g VARCHAR(40) CHARACTER SET gbk");
        }
        for (set, bytes) in [
            ("gbk", &b"\xbf\x5c"[..]),
            ("gbk", b"\x81\x60"),
            ("sjis", b"\x83\x5c"),
            ("sjis", b"\x95\x5c\x95\x60"),
            ("big5", b"\xa5\x5c"),
            ("latin1", b"\xe9\xa0\xff"),
            ("utf8mb4", b"\xf0\x9f\x98\x80"),
        ] {
            for wire in [&mut client, &mut direct] {
                wire.ok(&format!("SET NAMES {set}"));
            }
            let with = |head: &str, tail: &str| [head.as_bytes(), bytes, tail.as_bytes()].concat();
            for sql in [
                with("INSERT INTO log (id, s, u, g) VALUES (4, '", "', 'a', 'b')"),
                with("REPLACE INTO log (s, id) VALUES ('", "', 4), ('),(', 5)"),
                with("UPDATE log SET s = '", "' WHERE id = 4"),
                with("UPDATE log SET u = CONCAT(u, '", "') WHERE id IN (4, 5)"),
                with("SELECT id, s FROM log WHERE s = '", "' AND id = 4"),
                with(
                    "SELECT id, HEX(s), HEX(u), HEX(g), '",
                    "' FROM log WHERE id IN (4, 5)",
                ),
                with(
                    "SELECT id FROM log WHERE id = 4 AND s <> '",
                    " OR id = 3' -- '",
                ),
                with("SELECT id AS `", "` FROM log WHERE id = 4"),
                b"DELETE FROM log WHERE id IN (4, 5)".to_vec(),
            ] {
                let text = sql.escape_ascii().to_string();
                let reply = raw(&mut client, &sql);
                if reply.error_code() == 1105 {
                    // Nothing was done; nor is it on the other side.
                    continue;
                }
                let wanted = raw(&mut direct, &sql);
                let rows = |reply: &crate::common::Reply| {
                    let mut packets: Vec<Vec<u8>> = match reply.results().first() {
                        Some(result) if reply.error().is_none() && result.len() > 1 => result
                            .iter()
                            .filter(|packet| packet.part == crate::common::Part::Row)
                            .map(|packet| packet.payload.clone())
                            .collect(),
                        _ => Vec::new(),
                    };
                    packets.sort();
                    packets
                };
                assert_eq!(
                    (reply.error_code(), rows(&reply)),
                    (wanted.error_code(), rows(&wanted)),
                    "{:?} {set}: {text}",
                    bed.kind
                );
            }
        }
    }
}
