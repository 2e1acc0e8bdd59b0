//! The short look at a text says what the full one says, and says something about the statements that are most.

use proptest::prelude::*;

use super::agree::{dialect, text};
use super::*;
use crate::sql::Kind;
use crate::sql::plain::plain_kind;
use crate::sql::readings_agree;

fn agree(sql: &[u8], d: &Dialect) {
    assert!(
        readings_agree(sql, d),
        "{d:?} {}",
        String::from_utf8_lossy(sql)
    );
}

#[test]
fn common_statements_are_plain() {
    for d in BOTH {
        for (sql, kind) in [
            ("SELECT c FROM sbtest1 WHERE id=5021", Kind::Read),
            ("select c from sbtest1 where id=?", Kind::Read),
            (
                "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100",
                Kind::Read,
            ),
            (
                "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 9 ORDER BY c LIMIT 10",
                Kind::Read,
            ),
            (
                " \n SELECT `t`.`a`, t.b, u.* FROM `s`.`t` JOIN u ON (t.id = u.id) WHERE x IN (1, 2.5) AND y LIKE 'a''b%'",
                Kind::Read,
            ),
            (
                "SELECT COUNT(*), MAX( a ) FROM t WHERE a > NOW() - INTERVAL 7 DAY AND b <> -1",
                Kind::Read,
            ),
            ("SELECT a/b FROM t WHERE a<=>NULL", Kind::Read),
            ("UPDATE sbtest1 SET k=k+1 WHERE id=5021", Kind::Write),
            (
                "INSERT INTO sbtest1 (id, k, c, pad) VALUES (5021, 17, 'some text', '')",
                Kind::Write,
            ),
            (
                "INSERT INTO t(a) VALUES (f(a)) ON DUPLICATE KEY UPDATE a = VALUES(a)",
                Kind::Write,
            ),
            ("UPDATE `s,`.`set` AS x SET a = 1, b = f(2)", Kind::Write),
            ("DELETE FROM t WHERE id=5021", Kind::Write),
        ] {
            let traits = match sql.strip_prefix("UPDATE") {
                Some(_) => Traits::MATCHES,
                None => Traits::NONE,
            };
            let found = plain_kind(sql.as_bytes(), &d);
            assert_eq!(found, Some((kind, traits)), "{sql}");
            agree(sql.as_bytes(), &d);
        }
    }
}

#[test]
fn whatever_may_mean_more_is_left_to_the_full_look() {
    for d in BOTH {
        for sql in [
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT a INTO OUTFILE 'x' FROM t",
            "SELECT SQL_CALC_FOUND_ROWS a FROM t",
            "SELECT a FROM t LIMIT 1, 2",
            "SELECT a FROM t LIMIT ?,?",
            "SELECT a FROM t LIMIT 2 OFFSET 1",
            "SELECT a FROM t UNION SELECT 1",
            "SELECT a FROM t FETCH FIRST ROW WITH TIES",
            "INSERT INTO t SELECT a FROM u",
            "INSERT INTO t TABLE u",
            "UPDATE t, u SET t.a = 1",
            "UPDATE t JOIN u SET t.a = 1",
            "UPDATE t FROM u SET t.a = 1",
            "UPDATE t SET a = (SELECT 1)",
            "DELETE t FROM t",
            "DELETE FROM t USING t",
            "SELECT f(a) FROM t",
            "SELECT s.now() FROM t",
            "SELECT `now`() FROM t",
            "SELECT LAST_INSERT_ID()",
            "SELECT last_insert_id ( )",
            "SELECT @a",
            "SELECT @@read_only",
            "SELECT a /* master */ FROM t",
            "SELECT a -- b",
            "SELECT a # b",
            "SELECT 1; SELECT 2",
            "SELECT 'a\\'b'",
            "SELECT \"a\"",
            "SELECT `a``b` FROM t",
            "SELECT a FROM information_schema.processlist",
            "SELECT a FROM `information_schema`.processlist",
            "SELECT s.nextval FROM t",
            "SELECT t.1e5 FROM t",
            "SELECT 1.5for FROM t",
            "SELECT 0x41 FROM t",
            "SELECT 'a",
            "SELECT `a",
            "SELECT a\0",
            "INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x",
            "INSERT INTO t SELECT a FROM u FOR UPDATE",
            "INSERT INTO t VALUES (GET_LOCK('a', 1))",
            "REPLACE INTO t VALUES (1)",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "SHOW TABLES",
            "SELECT",
            "",
        ] {
            assert_eq!(plain_kind(sql.as_bytes(), &d), None, "{sql}");
        }
    }
}

/// Pieces of statements, with and without what the short look must notice.
const PIECES: &str = "a b id t x1 1a 12 1.5 1. .5 1e5 0x1f ` `a` `a``b` 'x' 'y 'a\\'b' \" . .. , ( ) (( = <> < > * + - -- / /* */ % & | ! ~ ^ ? ; : := \
    @ @a @@x # $ $$ a$b information_schema performance_schema nextval currval now max count sleep last_insert_id found_rows \
    get_lock rand ff f user values select insert update delete replace into for with share lock in mode as from where and or \
    not between by order group limit value next of case when then end table procedure analyse json_table sql_calc_found_rows offset except intersect \
    sql_calc_bound_rows row distinct all union on duplicate key set exists interval day \\N \u{e9} {d } [ ]";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn both_looks_agree_on_statements(
        head in prop::sample::select(&["SELECT ", "select\t", "INSERT ", "INSERT INTO t ", "UPDATE ", "DELETE ", " SELECT ", "SELECT("][..]),
        pieces in prop::collection::vec(
            (prop::sample::select(PIECES.split_whitespace().collect::<Vec<_>>()), prop::sample::select(&["", "", " ", "\n"][..])),
            0..12,
        ),
        d in dialect(),
    ) {
        let mut sql = head.to_owned();
        for (piece, blank) in pieces {
            sql.push_str(piece);
            sql.push_str(blank);
        }
        agree(sql.as_bytes(), &d);
    }

    #[test]
    fn both_looks_agree_on_any_text(
        head in prop::sample::select(&["SELECT ", "INSERT ", ""][..]),
        tail in text(),
        d in dialect(),
    ) {
        agree(&[head.as_bytes(), &tail].concat(), &d);
    }
}
