//! The cases of `sharding/merge` among the faults that other projects were told of, by their numbers: each is answered as one server
//! with all the rows answers it, or refused with the reason, and never anything else.

mod writes;

use crate::Stage;
use crate::common::{Bed, Param, Reply, Wire};
use crate::stage::seen;

/// What may become of a statement.
#[derive(Clone, Copy, PartialEq)]
enum May {
    /// It is answered.
    Answer,
    /// It is refused.
    Refuse,
    /// Either.
    Both,
}
use May::{Answer, Both, Refuse};

fn sorted(reply: &Reply, sql: &str) -> String {
    let told = seen(reply);
    if sql.contains("ORDER BY") {
        return told;
    }
    let mut rows: Vec<&str> = told
        .split("], [")
        .map(|row| row.trim_matches(['[', ']']))
        .collect();
    rows.sort_unstable();
    rows.join("\n")
}

fn is_refused(reply: &Reply) -> bool {
    let Some((1105, state, text)) = reply.error() else {
        return false;
    };
    assert_eq!(state, "HY000");
    let reason = text
        .strip_prefix("Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: ")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(!reason.is_empty());
    true
}

fn try_one(client: &mut Wire, direct: &mut Wire, id: &str, sql: &str, may: May) {
    let reply = client.query(sql);
    if is_refused(&reply) {
        assert!(may != Answer, "{id}: {sql}: {reply:?}");
        return;
    }
    assert!(may != Refuse, "{id}: {sql}: {reply:?}");
    let wanted = direct.query(sql);
    assert_eq!(sorted(&reply, sql), sorted(&wanted, sql), "{id}: {sql}");
}

fn try_all(cases: &[(&str, May, &[&str])]) {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for (id, may, statements) in cases {
            for sql in *statements {
                // The second time it is a statement that comes again.
                let is_read = sql.starts_with("SELECT") || sql.starts_with('(');
                for _ in 0..if is_read { 3 } else { 1 } {
                    try_one(&mut client, &mut direct, id, sql, *may);
                }
            }
            let sql = "SELECT uid, amt, code, n FROM ord";
            try_one(&mut client, &mut direct, id, sql, Answer);
        }
    }
}

/// What a server does with all rows together.
#[test]
fn b212_b213_b216_b217_b218_b220_b222_b224_b225_b226_b228_b229_b237_b250_b251_b256_b258() {
    try_all(&[
        (
            "B212",
            Both,
            &[
                "SELECT code, COUNT(*) c FROM ord GROUP BY code ORDER BY code",
                "SELECT DISTINCT code FROM ord ORDER BY code",
                "SELECT COUNT(DISTINCT code) FROM ord",
            ],
        ),
        (
            "B213",
            Both,
            &[
                "SELECT uid, code FROM ord ORDER BY code, uid",
                "SELECT uid, code FROM ord ORDER BY code DESC, uid LIMIT 3",
                "SELECT uid, code FROM ord ORDER BY BINARY code, uid",
            ],
        ),
        (
            "B216",
            Both,
            &[
                "SELECT uid FROM ord ORDER BY amt DESC, uid LIMIT 2 OFFSET 3",
                "SELECT uid FROM ord ORDER BY amt DESC, uid LIMIT 3,2",
                "SELECT uid FROM ord ORDER BY uid LIMIT 18446744073709551615 OFFSET 4",
            ],
        ),
        (
            "B217",
            Both,
            &[
                "SELECT code, COUNT(*) c FROM ord GROUP BY code ORDER BY c DESC, code LIMIT 1",
                "SELECT amt, COUNT(*) FROM ord GROUP BY amt ORDER BY COUNT(*), amt LIMIT 2",
            ],
        ),
        (
            "B218",
            Both,
            &[
                "SELECT SUM(amt)/1000 FROM ord",
                "SELECT SUM(amt)-SUM(n) FROM ord",
                "SELECT CONCAT(FLOOR(SUM(amt)),'MB') FROM ord",
                "SELECT MAX(amt)+1, -MIN(amt) FROM ord",
                "SELECT IF(COUNT(*)>3,1,0) FROM ord",
            ],
        ),
        (
            "B220",
            Both,
            &[
                "SELECT AVG(amt) FROM ord GROUP BY code ORDER BY code",
                "SELECT AVG(n) FROM ord",
            ],
        ),
        (
            "B222",
            Both,
            &[
                "SELECT code, SUM(amt) s FROM ord GROUP BY code HAVING s > 8 ORDER BY code",
                "SELECT code, SUM(amt) s FROM ord GROUP BY code HAVING COUNT(*) = 3",
            ],
        ),
        (
            "B224",
            Both,
            &[
                "SELECT COUNT(DISTINCT n), SUM(DISTINCT n), COUNT(n), SUM(n), MIN(n) FROM ord WHERE n IS NULL",
                "SELECT COUNT(DISTINCT n), SUM(DISTINCT n), COUNT(n), SUM(n), MIN(n) FROM ord",
            ],
        ),
        (
            "B225",
            Both,
            &[
                "SELECT DISTINCT 1 FROM ord",
                "SELECT DISTINCT amt+0 FROM ord ORDER BY 1",
                "SELECT DISTINCT n IS NULL FROM ord",
            ],
        ),
        (
            "B226",
            Both,
            &[
                "SELECT o.uid FROM ord o ORDER BY o.amt DESC, o.uid LIMIT 3",
                "SELECT code FROM ord ORDER BY n, uid",
            ],
        ),
        (
            "B228",
            Both,
            &["SELECT amt FROM ord GROUP BY amt ORDER BY amt"],
        ),
        (
            "B229",
            Both,
            &[
                "SELECT uid, n FROM ord ORDER BY n, uid",
                "SELECT uid, n FROM ord ORDER BY n DESC, uid",
            ],
        ),
        (
            "B229",
            Answer,
            &[
                "SELECT uid, n FROM ord",
                "SELECT n FROM ord WHERE uid IN (1, 2)",
            ],
        ),
        (
            "B237",
            Both,
            &[
                "SELECT COUNT(*) FROM (SELECT uid FROM ord LIMIT 4) x",
                "SELECT * FROM (SELECT uid FROM ord ORDER BY uid LIMIT 1) x",
            ],
        ),
        (
            "B250",
            Both,
            &[
                "SELECT COUNT(o.uid) FROM ord o, zone z GROUP BY z.name ORDER BY z.name LIMIT 3",
                "SELECT COUNT(o.uid) FROM ord o, zone z GROUP BY z.name ORDER BY z.name",
            ],
        ),
        (
            "B251",
            Both,
            &[
                "SELECT uid FROM ord WHERE uid=1 UNION SELECT uid FROM ord WHERE uid=2 UNION SELECT uid FROM ord WHERE uid=1",
                "(SELECT amt FROM ord) UNION (SELECT amt FROM ord) ORDER BY 1 LIMIT 3",
            ],
        ),
        (
            "B251",
            Answer,
            &[
                "SELECT uid FROM ord WHERE amt > 100",
                "SELECT uid FROM ord WHERE amt = 8",
            ],
        ),
        (
            "B256",
            Both,
            &[
                "SELECT DISTINCT code FROM ord ORDER BY code LIMIT 3",
                "SELECT DISTINCT n, COUNT(*) OVER (PARTITION BY n) FROM ord ORDER BY 1 LIMIT 2",
            ],
        ),
        (
            "B258",
            Both,
            &[
                "SELECT GROUP_CONCAT(uid ORDER BY uid) FROM ord",
                "SELECT GROUP_CONCAT(DISTINCT amt ORDER BY amt DESC SEPARATOR '-') FROM ord",
                "SELECT code, GROUP_CONCAT(uid ORDER BY uid) FROM ord GROUP BY code ORDER BY code",
            ],
        ),
    ]);
}

/// Which shards a condition is about.
#[test]
fn b208_b210_b215_b230_b232_b234_b235_b236_b238() {
    try_all(&[
        (
            "B210",
            Answer,
            &[
                "SELECT  `ord`.* FROM `ord` WHERE uid=2",
                "SELECT o.*, o.uid AS x FROM ord o WHERE o.uid=2",
                "SELECT `ord`.`uid` FROM `ord` WHERE `ord`.`uid`=2",
            ],
        ),
        (
            "B215",
            Answer,
            &[
                "SELECT amt FROM ord WHERE uid=2 LIMIT 0,1",
                "SELECT amt FROM ord WHERE uid=2 ORDER BY amt LIMIT 1,10",
                "SELECT amt FROM ord WHERE uid IN (2, 4, 6) ORDER BY uid LIMIT 1,1",
            ],
        ),
        (
            "B232",
            Answer,
            &[
                "SELECT uid FROM ord WHERE uid='3'",
                "SELECT uid FROM ord WHERE uid IN('1','2')",
                "SELECT uid FROM ord WHERE uid=3.0",
                "SELECT uid FROM ord WHERE uid=0x03",
                "SELECT uid FROM ord WHERE uid='03'",
                "SELECT uid FROM ord WHERE uid=' 3'",
                "SELECT uid FROM ord WHERE uid=1+2",
                "SELECT uid FROM ord WHERE uid=-(-3)",
                "SELECT c FROM sk WHERE k='12345'",
                "SELECT c FROM sk WHERE k IN('12345')",
                "SELECT c FROM sk WHERE k=12345",
            ],
        ),
        (
            "B234",
            Answer,
            &[
                "SELECT * FROM ord WHERE uid IS NULL",
                "SELECT * FROM ord WHERE uid = NULL",
                "SELECT * FROM ord WHERE uid IN (NULL)",
                "SELECT * FROM ord WHERE uid IN (3,NULL)",
                "SELECT * FROM ord WHERE uid <=> NULL",
                "SELECT * FROM ord WHERE uid NOT IN (1,NULL)",
            ],
        ),
        (
            "B235",
            Answer,
            &[
                "SELECT uid FROM ord WHERE uid=1 OR uid=2 AND amt=2",
                "SELECT uid FROM ord WHERE (uid=1 OR uid=2) AND amt=2",
                "SELECT uid FROM ord WHERE uid=1 OR 1=1",
                "SELECT uid FROM ord WHERE uid=1 OR amt=8",
                "SELECT uid FROM ord WHERE NOT uid=1",
                "SELECT uid FROM ord WHERE uid<>1",
                "SELECT uid FROM ord WHERE uid=1 OR uid=NULL",
                "SELECT uid FROM ord WHERE uid=1 XOR uid=2",
                "SELECT uid FROM ord WHERE uid=1 || uid=2",
                "SELECT uid FROM ord WHERE uid=1 AND uid=2",
            ],
        ),
        (
            "B236",
            Both,
            &[
                "SELECT uid FROM ord WHERE amt = (SELECT amt FROM ord WHERE uid=6) ORDER BY uid",
                "SELECT uid FROM ord WHERE amt = (SELECT MAX(amt) FROM ord)",
                "SELECT uid FROM ord WHERE uid IN (SELECT uid FROM ord WHERE uid IN (2,3))",
                "SELECT uid FROM ord WHERE EXISTS (SELECT 1 FROM item i WHERE i.uid=ord.uid)",
            ],
        ),
        (
            "B238",
            Answer,
            &[
                "SELECT i.sku FROM ord o JOIN item i ON o.uid=i.uid WHERE o.uid=2",
                "SELECT i.sku FROM ord o JOIN item i ON o.uid=i.uid",
            ],
        ),
        (
            "B238",
            Both,
            &[
                "SELECT i.sku FROM ord o JOIN item i ON o.amt=i.uid",
                "SELECT i.sku FROM ord o, item i WHERE o.uid=i.uid OR o.amt=1",
                "SELECT o.uid, i.sku FROM ord o LEFT JOIN item i ON o.uid=i.uid AND i.sku > 20",
                "SELECT o.uid, i.sku FROM ord o LEFT JOIN item i ON o.amt=i.sku",
            ],
        ),
        (
            "B208",
            Answer,
            &[
                "UPDATE `ord` Q SET Q.`amt` = 7 WHERE Q.`uid` = 1",
                "UPDATE ord AS o SET amt=8 WHERE o.uid=3 ORDER BY uid LIMIT 1",
                "DELETE o FROM ord AS o WHERE o.uid = 1",
            ],
        ),
        (
            "B230",
            Answer,
            &[
                "INSERT INTO ord(uid,amt) VALUES(-1,2),(-3,3)",
                "INSERT INTO ord(uid,amt) VALUES(-2,99),(0,2)",
                "INSERT INTO ord(uid,amt) VALUES(-9223372036854775808,5)",
                "SELECT amt FROM ord WHERE uid=-1",
                "SELECT amt FROM ord WHERE uid='-1'",
                "SELECT amt FROM ord WHERE uid IN(-1,-2)",
                "SELECT amt FROM ord WHERE uid=-9223372036854775808",
                "SELECT amt FROM ord WHERE uid='-9223372036854775808'",
            ],
        ),
    ]);
}

/// Rows of INSERT and REPLACE.
#[test]
fn b233_b239_b240_b244_b245_b260() {
    try_all(&[
        (
            "B233",
            Answer,
            &[
                "INSERT INTO sk(k,c) VALUES(0x74657374,1)",
                "INSERT INTO sk(k,c) VALUES('0x74657374',2)",
                "SELECT c FROM sk WHERE k='test'",
                "SELECT c FROM sk WHERE k=0x74657374",
                "SELECT c FROM sk WHERE k='0x74657374'",
                "SELECT c FROM sk WHERE k=x'74657374'",
            ],
        ),
        (
            "B239",
            Answer,
            &[
                "INSERT INTO ord VALUES(20,1,'x',NULL)",
                "INSERT INTO ord SET uid=50, amt=1",
            ],
        ),
        (
            "B239",
            Refuse,
            &[
                "INSERT INTO ord(amt) VALUES(1)",
                "INSERT INTO ord() VALUES()",
                "INSERT INTO ord(uid,amt) VALUES(DEFAULT,1)",
            ],
        ),
        (
            "B240",
            Both,
            &[
                "INSERT INTO ord(uid,amt) VALUES(30,1),(31,2),('32',3),(33.0,4),(0x22,5),(-35,6),(NULL,7)",
                "INSERT INTO ord(uid,amt) VALUES(30,1),(31,2),('32',3),(33.0,4),(0x22,5),(-35,6)",
            ],
        ),
        (
            "B240",
            Answer,
            &[
                "INSERT INTO ord(uid,code) VALUES(130,'),('), /* ; */ (132,';'), -- x\n ('134','\\'')",
                "SELECT code FROM ord WHERE uid IN (130, 132, 134)",
            ],
        ),
        (
            "B244",
            Answer,
            &[
                "REPLACE INTO ord VALUE(2,20,'A',5)",
                "REPLACE ord(uid,amt) VALUES(4,2),(6,2)",
            ],
        ),
        (
            "B245",
            Both,
            &[
                "INSERT INTO zone SELECT uid, code FROM ord",
                "INSERT INTO ord(uid,amt) SELECT uid+1000, amt FROM ord WHERE uid IN(2,3)",
                "INSERT INTO zone(id) VALUES(UUID_SHORT())",
                "UPDATE zone SET name=NOW(6)",
            ],
        ),
        (
            "B260",
            Answer,
            &[
                "INSERT INTO `sk` (`k`,`c`) VALUES ('a','1')",
                "INSERT INTO sk VALUES('a''b',3)",
                "INSERT INTO sk VALUES(_utf8mb4'c',4)",
                "SELECT c FROM sk WHERE k = 'A'",
                "SELECT c FROM sk WHERE K='A  '",
                "SELECT c FROM sk WHERE k = 'a\\'b'",
                "SELECT c FROM sk WHERE k = 'c'",
            ],
        ),
        (
            "B260",
            Refuse,
            &["INSERT INTO sk VALUES(CONCAT('d','e'),5)"],
        ),
    ]);
}

/// The same values as parameters.
#[test]
fn b215_b230_b234_b241_as_prepared_statements() {
    let int = Param::Int;
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for (sql, executions) in [
            (
                "INSERT INTO ord (uid, amt) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE amt = ? + VALUES(amt)",
                vec![
                    vec![int(2), int(1), int(4), int(1), int(5)],
                    vec![int(-2), int(1), int(-4), int(1), int(5)],
                    vec![int(-3), int(1), int(-1), int(1), int(5)],
                    vec![int(i64::MIN), int(1), int(8), int(1), int(5)],
                ],
            ),
            (
                "SELECT amt FROM ord WHERE uid = ?",
                vec![
                    vec![int(-2)],
                    vec![int(i64::MIN)],
                    vec![Param::from("-2")],
                    vec![Param::Double(-2.0)],
                    vec![Param::Null],
                ],
            ),
            (
                "SELECT uid FROM ord WHERE uid IN (2, 4, 6) ORDER BY uid LIMIT ? OFFSET ?",
                vec![vec![int(1), int(1)], vec![int(5), int(2)]],
            ),
            (
                "SELECT uid FROM ord WHERE uid IN (?, ?)",
                vec![vec![int(3), Param::Null]],
            ),
        ] {
            let (here, there) = (client.prepare(sql), direct.prepare(sql));
            for params in executions {
                let (reply, wanted) = (
                    client.execute(&here, &params),
                    direct.execute(&there, &params),
                );
                let told = |reply: &Reply| match reply.results().first() {
                    Some(rows) if rows.len() > 1 => format!("{:?}", reply.binary_rows()),
                    _ => seen(reply),
                };
                assert_eq!(told(&reply), told(&wanted), "{sql} {params:?}");
            }
        }
    }
}
