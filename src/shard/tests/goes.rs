//! The shards of statements whose texts stay as they are.

use super::{Scalar, check, goes_with, placement};

#[test]
fn conditions() {
    let cases = [
        ("uid = 3", "2"),
        ("3 = uid", "2"),
        ("ord.uid = 2", "0"),
        ("t1.ord.uid = 2", "0"),
        ("T1.ORD.UID = 2", "0"),
        ("`uid`=2", "0"),
        ("uid = -1", "2"),
        ("uid = '-1'", "2"),
        ("uid IN (-1, -2)", "[0, 2]"),
        ("uid IN (1, '3', 5.0, 0x07, 4+5, -(-11))", "2"),
        ("uid = ' 3'", "2"),
        ("uid = '03'", "2"),
        ("uid = 1 + 2", "2"),
        ("uid = 3.5", "[0, 2]"),
        ("uid = ABS(3)", "[0, 2]"),
        ("uid = x'33'", "[0, 2]"),
        ("uid = @x", "[0, 2]"),
        ("uid <=> 3", "2"),
        ("uid = TRUE", "2"),
        ("uid IS NULL", "0"),
        ("uid = NULL", "0"),
        ("uid IN (NULL)", "0"),
        ("uid IN (3, NULL)", "2"),
        ("uid <=> NULL", "0"),
        ("uid NOT IN (1, NULL)", "0"),
        ("uid = 1 OR uid = 2 AND amt = 2", "[0, 2]"),
        ("(uid = 1 OR uid = 2) AND amt = 2", "[0, 2]"),
        ("(uid = 1 OR uid = 3) AND amt = 2", "2"),
        ("uid = 1 OR 1 = 1", "[0, 2]"),
        ("uid = 1 OR 1 = 2", "2"),
        ("uid = 1 OR amt = 8", "[0, 2]"),
        ("uid = 1 AND amt = 8", "2"),
        ("NOT uid = 1", "[0, 2]"),
        ("NOT (uid <> 1)", "2"),
        ("NOT (uid = 1 OR amt = 2)", "[0, 2]"),
        ("NOT (uid <> 1 OR amt = 2)", "2"),
        ("uid <> 1", "[0, 2]"),
        ("uid = 1 OR uid = NULL", "2"),
        ("uid = 1 XOR uid = 2", "[0, 2]"),
        ("uid = 1 || uid = 3", "[0, 2]"),
        ("uid = 1 && amt = 3", "2"),
        ("!uid = 1", "[0, 2]"),
        ("uid = 1 AND uid = 2", "0"),
        ("uid = 1 AND 0", "0"),
        ("uid BETWEEN 3 AND 3", "2"),
        ("uid BETWEEN 3 AND 4", "[0, 2]"),
        ("uid BETWEEN 4 AND 3", "0"),
        ("uid NOT BETWEEN 3 AND 3", "[0, 2]"),
        ("uid > 2 AND uid < 4", "2"),
        ("uid >= 3 AND uid <= 3", "2"),
        ("(uid, amt) = (3, 4)", "2"),
        ("(amt, uid) IN ((1, 3), (2, 5))", "2"),
        ("(amt, uid) IN ((1, 3), (2, 4))", "[0, 2]"),
        ("(amt, uid) NOT IN ((1, 3), (2, 5))", "[0, 2]"),
        ("(uid = 3) IS TRUE", "2"),
        ("(uid = 3) IS NOT FALSE", "[0, 2]"),
        ("(uid <> 3) IS FALSE", "2"),
        ("uid LIKE '3'", "[0, 2]"),
        ("BINARY uid = 3", "[0, 2]"),
        ("uid = 3 COLLATE utf8mb4_bin", "[0, 2]"),
        ("uid = (SELECT 3)", "[0, 2]"),
        ("uid = 9223372036854775807", "2"),
        ("uid = 18446744073709551615", "2"),
        ("uid = '9223372036854775807'", "[0, 2]"),
        ("amt = 3", "[0, 2]"),
        ("amt = 3 LIMIT 5", "[0, 2] limit 5"),
    ];
    let of = |(condition, wanted)| (format!("SELECT * FROM ord WHERE {condition}"), wanted);
    check(cases.map(of), |told, wanted| told == wanted);
}

#[test]
fn statements() {
    let cases = [
        ("SELECT 1", "-"),
        ("SELECT ord FROM x", "-"),
        ("SELECT x.ord FROM x WHERE ord = 1", "-"),
        ("SELECT 'from ord' FROM x", "-"),
        ("SELECT * FROM other.ord WHERE uid = 1", "-"),
        ("SELECT * FROM x PROCEDURE ANALYSE()", "-"),
        ("SELECT ord FROM x PROCEDURE ANALYSE()", "-"),
        ("ALTER TABLE x ADD COLUMN ord INT", "-"),
        ("CREATE TABLE x (a INT, ord INT)", "-"),
        ("CREATE TABLE x (ord INT)", "-"),
        ("INSERT INTO x (ord) VALUES (1)", "-"),
        ("UPDATE x SET ord = 1 WHERE ord = 2", "-"),
        ("SELECT * FROM zone", "0"),
        ("SELECT  `ord`.* FROM `ord` WHERE uid=2", "0"),
        (
            "SELECT `t1`.`ord`.`uid` FROM `t1`.`ord` WHERE `ord`.`uid`=2",
            "0",
        ),
        ("SELECT o.*, o.uid AS x FROM ord o WHERE o.uid=2", "0"),
        ("select/**/uid/**/from/**/ord/**/where/**/uid=3", "2"),
        ("SELECT * FROM /*!50000ord */ WHERE uid = 3", "2"),
        ("SELECT * FROM ord WHERE uid=3 LOCK IN SHARE MODE", "2"),
        ("SELECT * FROM ord WHERE uid=3 FOR UPDATE", "2"),
        (
            "SELECT COUNT(*), MAX(amt) FROM ord WHERE uid=3 GROUP BY code ORDER BY 1 LIMIT 2, 3",
            "2",
        ),
        ("SELECT amt MOD 3 FROM ord WHERE uid = 3", "2"),
        ("SELECT * FROM ord WHERE uid=3;", "2"),
        ("UPDATE `ord` Q SET Q.`amt` = 7 WHERE Q.`uid` = 1", "2"),
        (
            "UPDATE t1.ord AS o SET amt=8 WHERE o.uid=3 ORDER BY uid LIMIT 1",
            "2",
        ),
        ("UPDATE LOW_PRIORITY IGNORE ord SET amt=8 WHERE uid=3", "2"),
        (
            "UPDATE ord, item SET ord.amt = item.sku WHERE ord.uid = item.uid AND item.uid = 2",
            "0",
        ),
        ("DELETE o FROM ord AS o WHERE o.uid = 1", "2"),
        ("DELETE FROM o USING ord AS o WHERE o.uid = 1", "2"),
        ("DELETE FROM ord WHERE uid = 1 ORDER BY amt LIMIT 1", "2"),
        ("DELETE QUICK FROM ord WHERE uid = 2", "0"),
        ("UPDATE ord SET amt = 1 WHERE uid = 1 AND uid = 2", "0"),
        ("INSERT INTO ord (uid, amt) VALUES (3, 1)", "2"),
        (
            "INSERT INTO ord (amt, uid) VALUES (1, 3), (2, '5'), (4, 7.0), (0, 0x09), (1, -1)",
            "2",
        ),
        ("INSERT INTO ord SET amt = 1, uid = 50", "0"),
        ("REPLACE ord(uid,amt) VALUES(3,1)", "2"),
        ("REPLACE INTO ord (uid, amt) VALUE (2, 20)", "0"),
        ("INSERT INTO ord (uid, amt) VALUES ROW(3, 1)", "2"),
        (
            "INSERT IGNORE INTO ord (uid) VALUES (3) ON DUPLICATE KEY UPDATE amt = VALUES(amt) + 1",
            "2",
        ),
        (
            "INSERT INTO ord (uid, amt) SELECT uid, sku FROM item WHERE uid = 3",
            "2",
        ),
        (
            "INSERT INTO ord (uid, amt) SELECT 3, sku FROM item WHERE uid = 5",
            "2",
        ),
        ("INSERT INTO ord (uid, amt) SELECT 3, 4", "2"),
        ("INSERT INTO x (a) SELECT amt FROM ord WHERE uid = 2", "0"),
        (
            "UPDATE ord o JOIN zone z ON z.id = o.amt SET o.code = z.name WHERE o.uid = 3",
            "2",
        ),
        ("EXPLAIN SELECT * FROM ord WHERE uid = 3", "2"),
        ("EXPLAIN UPDATE ord SET amt = 1 WHERE uid = 3", "2"),
        ("DESCRIBE ord", "0"),
        ("DESC t1.ord uid", "0"),
        ("SHOW CREATE TABLE ord", "0"),
        ("SHOW FULL COLUMNS FROM ord", "0"),
        ("SHOW INDEX FROM ord", "0"),
        (
            "SELECT * FROM ord LIMIT 0, 0",
            "LIMIT with an offset over several shards: page by key (WHERE id > last ... LIMIT n)",
        ),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
}

#[test]
fn joins_and_subqueries() {
    let cases = [
        (
            "SELECT i.sku FROM ord o JOIN item i ON o.uid=i.uid WHERE o.uid=2",
            "0",
        ),
        (
            "SELECT i.sku FROM ord o JOIN item i ON o.uid=i.uid",
            "[0, 2]",
        ),
        (
            "SELECT i.sku FROM ord o JOIN item i USING (uid) WHERE o.uid = 3",
            "2",
        ),
        ("SELECT i.sku FROM ord o JOIN item i USING (uid)", "[0, 2]"),
        (
            "SELECT i.sku FROM ord o, item i WHERE o.uid=i.uid AND i.uid IN (1, 3)",
            "2",
        ),
        (
            "SELECT * FROM ord o LEFT JOIN item i ON o.uid=i.uid WHERE o.uid=3",
            "2",
        ),
        (
            "SELECT * FROM ord o LEFT JOIN item i ON o.uid=i.uid",
            "[0, 2]",
        ),
        (
            "SELECT * FROM item i RIGHT JOIN ord o ON o.uid=i.uid",
            "[0, 2]",
        ),
        (
            "SELECT * FROM ord o LEFT JOIN item i ON o.uid=i.uid WHERE i.uid = 3",
            "[0, 2]",
        ),
        (
            "SELECT * FROM ord o JOIN zone z ON z.id = o.amt WHERE o.uid = 3",
            "2",
        ),
        ("SELECT * FROM ord o JOIN zone z ON z.id = o.amt", "[0, 2]"),
        (
            "SELECT * FROM ord o JOIN misc m ON m.uid = o.uid WHERE o.uid = 2",
            "0",
        ),
        (
            "SELECT * FROM ord WHERE uid = 2 AND EXISTS (SELECT 1 FROM item i WHERE i.uid = ord.uid)",
            "0",
        ),
        (
            "SELECT * FROM ord WHERE uid = 3 AND amt IN (SELECT sku FROM item WHERE uid = 5)",
            "2",
        ),
        (
            "SELECT (SELECT MAX(sku) FROM item i WHERE i.uid = o.uid) FROM ord o WHERE o.uid = 3",
            "2",
        ),
        ("SELECT * FROM (SELECT * FROM ord WHERE uid = 3) x", "2"),
        (
            "WITH c AS (SELECT * FROM ord WHERE uid = 3) SELECT * FROM c JOIN item ON item.uid = 5",
            "2",
        ),
        (
            "SELECT uid FROM ord WHERE uid=1 UNION SELECT uid FROM ord WHERE uid=3",
            "2",
        ),
        (
            "(SELECT uid FROM ord WHERE uid=1) UNION ALL (SELECT uid FROM item WHERE uid=1) ORDER BY 1",
            "2",
        ),
        (
            "SELECT * FROM ord a JOIN ord b ON a.uid = b.uid WHERE a.uid = 3",
            "2",
        ),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
}

#[test]
fn parameters() {
    let placement = placement();
    let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
    let of = |sql: &str, params: &[Scalar]| goes_with(&placement, sql, params);
    let equal = "SELECT * FROM ord WHERE uid = ?";
    for (value, wanted) in [
        (Scalar::Int(-1), "2"),
        (text("-1"), "2"),
        (Scalar::Float(3.0), "2"),
        (Scalar::Float(3.5), "[0, 2]"),
        (Scalar::Null, "0"),
        (Scalar::Unknown, "[0, 2]"),
    ] {
        assert_eq!(of(equal, std::slice::from_ref(&value)), wanted, "{value:?}");
    }
    assert_eq!(of(equal, &[]), "[0, 2]");
    let sql = "SELECT ? FROM ord WHERE amt IN (?, ?) AND uid IN (?, ?) LIMIT ?";
    let params = [9, 8, 7, 1, 3, 5].map(Scalar::Int);
    assert_eq!(of(sql, &params), "2");
    let params = [9, 8, 7, 1, 2, 5].map(Scalar::Int);
    assert_eq!(of(sql, &params), "[0, 2] limit 5");
    let sql = "INSERT INTO ord (amt, uid) VALUES (?, ?), (?, ?)";
    assert_eq!(of(sql, &[1, 3, 2, 5].map(Scalar::Int)), "2");
    assert_eq!(
        of(sql, &[1, 3, 2, 4].map(Scalar::Int)),
        "its rows belong on shards of several groups: insert them apart, or allow such writes with `multi_shard_writes = \"xa\"`"
    );
}
