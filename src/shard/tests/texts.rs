//! What shards are sent.

use super::check;

#[test]
fn names_are_put_in_place() {
    let cases = [
        (
            "SELECT * FROM log WHERE id = -3",
            "0: SELECT * FROM `log_1` AS log WHERE id = -3",
        ),
        (
            "SELECT * FROM log WHERE id = 1",
            "0: SELECT * FROM `log_11` AS log WHERE id = 1",
        ),
        (
            "SELECT * FROM log WHERE id = 2",
            "1: SELECT * FROM `log_12` AS log WHERE id = 2",
        ),
        ("SELECT * FROM log WHERE id = 1000", "2"),
        (
            "SELECT * FROM `log`WHERE id=2",
            "1: SELECT * FROM `log_12` AS `log`WHERE id=2",
        ),
        (
            "SELECT * FROM t1.log WHERE id = 2",
            "1: SELECT * FROM `t1_b`.`log_12` AS log WHERE id = 2",
        ),
        (
            "SELECT t1.log.id, log.x, t1.log.* /* t1.log */ FROM t1 . log WHERE t1.log.id = 2",
            "1: SELECT `t1_b`.log.id, log.x, `t1_b`.log.* /* t1.log */ FROM `t1_b` . `log_12` AS log WHERE `t1_b`.log.id = 2",
        ),
        (
            "SELECT l.id FROM log l WHERE l.id = 2",
            "1: SELECT l.id FROM `log_12` l WHERE l.id = 2",
        ),
        (
            "SELECT /*+ x(log) */ * FROM log FORCE INDEX (log) WHERE id=2 AND s='log' -- log",
            "1: SELECT /*+ x(log) */ * FROM `log_12` AS log FORCE INDEX (log) WHERE id=2 AND s='log' -- log",
        ),
        (
            "UPDATE log SET log.x = 1 WHERE log.id = 2",
            "1: UPDATE `log_12` AS log SET log.x = 1 WHERE log.id = 2",
        ),
        (
            "DELETE FROM log WHERE log.id = 2 ORDER BY t1.log.x LIMIT 1",
            "1: DELETE FROM `log_12` WHERE `log_12`.id = 2 ORDER BY `t1_b`.`log_12`.x LIMIT 1",
        ),
        (
            "DELETE log FROM log WHERE id = 2",
            "1: DELETE log FROM `log_12` AS log WHERE id = 2",
        ),
        (
            "INSERT INTO log (id, x) VALUES (2, 'log') ON DUPLICATE KEY UPDATE log.x = log.x + 1",
            "1: INSERT INTO `log_12` (id, x) VALUES (2, 'log') ON DUPLICATE KEY UPDATE `log_12`.x = `log_12`.x + 1",
        ),
        (
            "SELECT * FROM log a JOIN log b ON a.id = b.id WHERE a.id = 2",
            "1: SELECT * FROM `log_12` a JOIN `log_12` b ON a.id = b.id WHERE a.id = 2",
        ),
        (
            "SELECT * FROM log WHERE id BETWEEN 998 AND 1000",
            "[1: SELECT * FROM `log_12` AS log WHERE id BETWEEN 998 AND 1000, 1: SELECT * FROM `log_13` AS log WHERE id BETWEEN 998 AND 1000, 2]",
        ),
        ("DESC log", "0: DESC `log_0`"),
        ("SHOW CREATE TABLE log", "0: SHOW CREATE TABLE `log_0`"),
        ("SHOW KEYS IN t1.log", "0: SHOW KEYS IN t1.`log_0`"),
        ("SELECT c FROM `sk-list` WHERE k = 'test'", "1"),
        ("SELECT c FROM `sk-list` WHERE k = 'TEST  '", "1"),
        ("SELECT c FROM `sk-list` WHERE k = 0x74657374", "1"),
        ("SELECT c FROM `sk-list` WHERE k = _utf8mb4'test'", "1"),
        (
            "SELECT c FROM `sk-list` WHERE k IN ('te' 'st', \"tEst\")",
            "1",
        ),
        ("SELECT c FROM `sk-list` WHERE k = 12345", "[0, 1, 2]"),
        ("SELECT c FROM `sk-list` WHERE k = 'é'", "[0, 1, 2]"),
        ("SELECT c FROM `sk-list` WHERE k > 'a'", "[0, 1, 2]"),
        ("SELECT c FROM `sk-list` WHERE k <> 'test'", "[0, 1, 2]"),
        ("INSERT INTO `sk-list` (`k`,`c`) VALUES ('Te''st ', 1)", "0"),
        ("SELECT * FROM day WHERE d = '2023-12-31'", "0"),
        ("SELECT * FROM day WHERE d < '2024-01-01'", "0"),
        ("SELECT * FROM day WHERE d <= '2024-01-01'", "[0, 2]"),
        (
            "SELECT * FROM day WHERE d BETWEEN DATE '2024-01-01' AND '2025-01-01 10:00:00'",
            "2",
        ),
        ("SELECT * FROM day WHERE d = 20240101", "[0, 2]"),
    ];
    check(
        cases.map(|(sql, wanted)| (sql.to_owned(), wanted)),
        |told, wanted| told == wanted,
    );
}
