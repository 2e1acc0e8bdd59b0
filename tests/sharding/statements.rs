//! Statements of one shard: their replies are those of the server that has all, and they ran where their rows are.

use crate::Stage;
use crate::common::{Bed, Node, Param, unique_name};
use crate::stage::seen;

/// Each with the parity of the rows that it is about.
const STATEMENTS: &[(&str, u8)] = &[
    ("SELECT * FROM ord WHERE uid = 3", 1),
    ("SELECT * FROM ord WHERE uid = 2", 0),
    ("SELECT  `ord`.* FROM `ord` WHERE uid=2", 0),
    (
        "SELECT `{s}`.`ord`.`uid` FROM `{s}`.`ord` WHERE `ord`.`uid`=3",
        1,
    ),
    ("SELECT o.*, o.uid AS x FROM ord o WHERE o.uid=2", 0),
    ("SELECT uid FROM ord WHERE uid = '3'", 1),
    (
        "SELECT uid FROM ord WHERE uid IN ('1', 3.0, 0x05) ORDER BY uid",
        1,
    ),
    ("SELECT uid FROM ord WHERE uid = 3 AND uid = 2", 0),
    ("SELECT uid FROM ord WHERE uid = NULL", 0),
    ("SELECT uid FROM ord WHERE uid IN (3, NULL)", 1),
    (
        "SELECT COUNT(*), MAX(amt) FROM ord WHERE uid IN (1, 3, 5) GROUP BY code ORDER BY 1, 2 LIMIT 1, 5",
        1,
    ),
    (
        "SELECT i.sku FROM ord o JOIN item i ON o.uid=i.uid WHERE o.uid=3",
        1,
    ),
    (
        "SELECT z.name FROM ord o JOIN zone z ON z.id = o.uid WHERE o.uid = 1",
        1,
    ),
    (
        "SELECT m.k FROM ord o JOIN misc m ON m.uid = o.uid WHERE o.uid = 2",
        0,
    ),
    (
        "SELECT uid FROM ord WHERE uid = 3 AND EXISTS (SELECT 1 FROM item i WHERE i.uid = ord.uid)",
        1,
    ),
    ("SELECT * FROM ord WHERE uid = 3 FOR UPDATE", 1),
    ("UPDATE `ord` Q SET Q.`amt` = 7 WHERE Q.`uid` = 1", 1),
    (
        "UPDATE {s}.ord AS o SET amt=8 WHERE o.uid=3 ORDER BY uid LIMIT 1",
        1,
    ),
    ("UPDATE ord SET amt = 8 WHERE uid = 3", 1),
    ("UPDATE ord SET amt = 9 WHERE uid = 3 AND uid = 4", 0),
    ("INSERT INTO ord (uid, amt) VALUES (31, 1), (33, 2)", 1),
    ("INSERT INTO ord (uid, amt) VALUES (31, 1)", 1),
    (
        "INSERT INTO ord (uid, amt) VALUES (31, 5) ON DUPLICATE KEY UPDATE ord.amt = ord.amt + VALUES(amt)",
        1,
    ),
    ("INSERT INTO ord SET uid = 50, amt = 1", 0),
    ("REPLACE INTO ord (uid, amt) VALUE (50, 20)", 0),
    (
        "INSERT INTO ord (uid, amt) SELECT uid + 0, 1 FROM item WHERE uid = 1 AND 1 = 2 AND uid = 3",
        9,
    ),
    (
        "INSERT INTO ord (amt, uid) SELECT sku, 51 FROM item WHERE uid = 5",
        1,
    ),
    ("DELETE o FROM ord AS o WHERE o.uid = 31", 1),
    (
        "DELETE FROM ord WHERE ord.uid IN (33, 51) ORDER BY ord.amt LIMIT 1",
        1,
    ),
    ("SELECT uid, amt FROM ord WHERE uid IN (31, 33, 51)", 1),
    ("INSERT INTO log (id, s) VALUES (1, 'log')", 0),
    ("INSERT INTO log (id, s) VALUES (2, 'log')", 1),
    (
        "INSERT INTO {s}.log (id, s) VALUES (3, 'log'), (7, 'x') ON DUPLICATE KEY UPDATE log.s = 'y'",
        1,
    ),
    (
        "SELECT log.s, {s}.log.id, log.* FROM {s}.log WHERE {s}.log.id = 3",
        1,
    ),
    (
        "UPDATE log SET log.s = CONCAT(log.s, '!') WHERE log.id = 2",
        1,
    ),
    ("SELECT s FROM log l WHERE l.id = 2 AND s <> 'log'", 1),
    ("SELECT s FROM log WHERE id = 0", 0),
    (
        "DELETE FROM log WHERE log.id = 2 ORDER BY {s}.log.s LIMIT 1",
        1,
    ),
    ("DELETE log FROM log WHERE id = 3", 1),
    ("SELECT * FROM log WHERE id = -1", 1),
    ("INSERT INTO sk (k, c) VALUES ('Test', 1)", 9),
    ("SELECT * FROM sk WHERE k = 'test'", 9),
    ("SELECT * FROM sk WHERE k = 'TEST  '", 9),
    ("SELECT c FROM sk WHERE k = 0x54657374", 9),
    ("INSERT INTO sk (k, c) VALUES ('te' 'ST', 1)", 9),
    ("SELECT nope FROM ord WHERE uid = 1", 1),
    ("SELECT k FROM misc ORDER BY k", 0),
    ("SELECT name FROM zone ORDER BY id", 0),
    ("SELECT * FROM ord WHERE uid = 5 LIMIT 0, 1", 1),
    ("SELECT 1", 9),
    ("SET @a = 3", 9),
    ("SELECT @a, uid FROM ord WHERE uid = 1", 1),
];

/// Two unlike servers would say it in other numbers: the whole of a reply is compared.
#[test]
fn one_shard_answers_as_one_server_does() {
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            let stage = Stage::new(&bed, sharing);
            let (mut client, mut direct) = (stage.client(), stage.direct());
            for (sql, parity) in STATEMENTS {
                let tag = unique_name("st");
                let of = |schema: String| format!("{} /* {tag} */", sql.replace("{s}", &schema));
                let marks = bed.marks();
                let reply = client.query(&of(stage.schema.to_string()));
                let wanted = direct.query(&of(stage.whole.to_string()));
                if *parity == 9 && reply.error().is_some_and(|(code, _, _)| code == 1105) {
                    continue;
                }
                assert_eq!(seen(&reply), seen(&wanted), "{sharing}: {sql}: {reply:?}");
                let places: &[Node] = match parity {
                    0 => &[Node::Primary, Node::Replica1, Node::Replica2],
                    1 => &[Node::Second],
                    _ => &Node::ALL,
                };
                // The direct client's own is on the primary too.
                let others: Vec<Node> = marks
                    .find(&tag)
                    .into_iter()
                    .filter(|(node, entry)| {
                        entry.command != "Connect"
                            && !(*node == Node::Primary
                                && entry.text == of(stage.whole.to_string()))
                    })
                    .map(|(node, _)| node)
                    .collect();
                assert!(!others.is_empty() || *parity != 1, "{sql}");
                assert!(
                    others.iter().all(|node| places.contains(node)),
                    "{sql}: {others:?}"
                );
            }
        }
    }
}

/// The same as prepared statements, whose shard is known with their parameters only.
#[test]
fn prepared_statements_go_where_their_parameters_say() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let text = |text: &str| Param::from(text);
        for (sql, executions) in [
            (
                "SELECT uid, amt, code FROM ord WHERE uid = ?",
                vec![
                    vec![Param::Int(3)],
                    vec![Param::Int(2)],
                    vec![Param::Int(5)],
                    vec![text("3")],
                    vec![text("4")],
                    vec![Param::Double(4.0)],
                    vec![Param::Int(-1)],
                    vec![Param::Null],
                ],
            ),
            (
                "SELECT s FROM log WHERE id IN (?, ?) AND s <> ? LIMIT ?",
                vec![
                    vec![Param::Int(1), Param::Int(5), text("x"), Param::Int(3)],
                    vec![Param::Int(2), Param::Int(6), text("x"), Param::Int(3)],
                ],
            ),
            (
                "INSERT INTO log (s, id) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE s = ?",
                vec![
                    vec![
                        text("a"),
                        Param::Int(1),
                        text("b"),
                        Param::Int(5),
                        text("c"),
                    ],
                    vec![text("a"), Param::Int(2), text("b"), text("6"), text("c")],
                    vec![
                        text("a"),
                        Param::Int(1),
                        text("b"),
                        Param::Int(9),
                        text("c"),
                    ],
                ],
            ),
            (
                "SELECT s, id FROM log WHERE id = ?",
                (0..10).map(|id| vec![Param::Int(id)]).collect(),
            ),
            (
                "UPDATE log SET s = CONCAT(s, ?) WHERE id = ?",
                (0..10).map(|id| vec![text("!"), Param::Int(id)]).collect(),
            ),
            (
                "SELECT k FROM misc WHERE uid = ?",
                vec![vec![Param::Int(1)], vec![Param::Int(2)]],
            ),
            (
                "DELETE FROM log WHERE id = ?",
                (0..10).map(|id| vec![Param::Int(id)]).collect(),
            ),
        ] {
            let here = client.prepare(sql);
            let there = direct.prepare(sql);
            for _ in 0..2 {
                for params in &executions {
                    let reply = client.execute(&here, params);
                    let wanted = direct.execute(&there, params);
                    assert_eq!(
                        (reply.error(), reply.binary_rows()),
                        (wanted.error(), wanted.binary_rows()),
                        "{sql} {params:?}"
                    );
                    if wanted.results().len() == 1 && wanted.results()[0].len() == 1 {
                        assert_eq!(
                            reply.affected_and_insert_id(),
                            wanted.affected_and_insert_id(),
                            "{sql} {params:?}"
                        );
                    }
                }
            }
            client.close_statement(&here);
            direct.close_statement(&there);
        }
    }
}

#[test]
fn what_is_not_run_is_refused_and_reaches_no_server() {
    let bed = Bed::mariadb();
    let stage = Stage::new(&bed, "transaction");
    let mut client = stage.client();
    for (sql, part) in [
        ("SELECT COUNT(*) FROM ord", "COUNT()"),
        ("SELECT * FROM ord ORDER BY uid", "ORDER BY"),
        ("UPDATE ord SET amt = 1", "several shards may have rows"),
        (
            "UPDATE ord SET uid = 5 WHERE uid = 3",
            "changes the shard key",
        ),
        (
            "INSERT INTO ord (amt) VALUES (1)",
            "no value for the shard key",
        ),
        ("UPDATE zone SET name = 'x'", "global table"),
        (
            "SELECT * FROM ord o JOIN misc m WHERE o.uid = 3",
            "unsharded",
        ),
        ("RENAME TABLE ord TO other", "RENAME of a sharded"),
        ("ALTER TABLE ord RENAME TO other", "RENAME"),
        (
            "PREPARE p FROM 'SELECT * FROM ord WHERE uid = 1'",
            "let the client library prepare it",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT * FROM ord WHERE uid = 1'",
            "let the client library prepare it",
        ),
    ] {
        let tag = unique_name("no");
        let marks = bed.marks();
        let reply = client.query(&format!("{sql} /* {tag} */"));
        let (code, state, text) = reply.error().unwrap_or_else(|| panic!("{sql}: {reply:?}"));
        assert_eq!((code, state.as_str()), (1105, "HY000"), "{sql}");
        assert!(
            text.starts_with("Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: "),
            "{text}"
        );
        assert!(text.contains(part), "{sql}: {text}");
        assert!(marks.find(&tag).is_empty(), "{sql}");
    }
    let long = format!(
        "INSERT INTO ord (uid, code) VALUES (1, '{}')",
        "x".repeat(1 << 20)
    );
    assert_eq!(client.query(&long).error_code(), 1105);
    let mut field_list = b"\x04ord\0".to_vec();
    field_list.push(b'%');
    assert_eq!(client.command(&field_list).error_code(), 1105);
    client.ok("SELECT 1");
    let rows = client
        .query("EXPLAIN ROUTE SELECT * FROM log WHERE id = 2")
        .rows();
    let of = |step: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(step));
        row.and_then(|row| row[1].clone()).unwrap_or_default()
    };
    assert_eq!(of("route"), "sharded");
    assert_eq!(of("shard"), "s1: SELECT * FROM `log_2` AS log WHERE id = 2");
}
