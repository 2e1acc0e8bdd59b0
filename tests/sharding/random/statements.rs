//! Random statements on the tables of a ground, each of a class.

use super::dice::Dice;
use crate::common::Param;

/// A statement. `{db}` in it stands for the schema's name.
pub(super) struct Tried {
    pub(super) class: &'static str,
    pub(super) sql: String,
    /// It is prepared, and these are its first values.
    pub(super) params: Option<Vec<Param>>,
    pub(super) rows: Rows,
    /// A server may warn of each row that it compares.
    pub(super) is_odd: bool,
}

/// How the rows of two answers are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// As they come.
    InOrder,
    /// Without regard to their order.
    AnyOrder,
    /// They are so many, or all, of what there is without LIMIT.
    Some(u64),
}
use Rows::{AnyOrder, InOrder};

pub(super) type Made = (&'static str, String, Rows);

impl Dice {
    pub(super) fn statement(&mut self) -> Tried {
        self.params = (self.roll(4) == 0).then(Vec::new);
        self.is_odd = false;
        let (class, sql, rows) = match self.roll(40) {
            0..=5 => self.plain(),
            6..=12 => self.joined(),
            13..=18 => self.nested(),
            19..=26 => self.together(),
            27..=30 => self.insert(),
            31..=35 => self.change(),
            36 | 37 => self.global(),
            _ => self.unlike(),
        };
        Tried {
            class,
            sql,
            rows,
            params: self.params.take(),
            is_odd: self.is_odd,
        }
    }

    fn plain(&mut self) -> Made {
        let columns = self.one(&[
            "uid, amt, code, n",
            "*",
            "ord.*",
            "amt + 1, code",
            "{db}.ord.uid, ord.amt",
            "UPPER(code), uid x",
        ]);
        let table = self.one(&["ord", "`ord`", "{db}.ord", "{db}.`ord`"]);
        let key = self.one(&["uid", "ord.uid", "`uid`", "UID"]);
        let place = self.place(key);
        match self.roll(6) {
            0 => {
                let limit = self.roll(5);
                let sql = format!("SELECT {columns} FROM {table} WHERE {place}");
                ("LIMIT alone", sql, Rows::Some(limit))
            }
            1 => (
                "locking read",
                format!("SELECT uid, n FROM ord WHERE {place} FOR UPDATE"),
                AnyOrder,
            ),
            2 => {
                self.params = self.params.as_ref().map(|_| Vec::new());
                let place = self.place("o.uid");
                (
                    "alias",
                    format!("SELECT o.*, o.amt AS a FROM ord AS o WHERE {place}"),
                    AnyOrder,
                )
            }
            _ => (
                "plain",
                format!("SELECT {columns} FROM {table} WHERE {place}"),
                AnyOrder,
            ),
        }
    }

    fn joined(&mut self) -> Made {
        let (class, from, key) = match self.roll(14) {
            0 => ("join", "ord JOIN item i ON i.uid = ord.uid", "ord.uid"),
            1 => ("join", "ord, item i WHERE i.uid = ord.uid AND", "i.uid"),
            2 => ("join", "ord JOIN item i USING (uid)", "ord.uid"),
            3 => (
                "join",
                "ord a JOIN ord b ON a.uid = b.uid JOIN item i ON i.uid = b.uid",
                "a.uid",
            ),
            4 => (
                "join",
                "ord STRAIGHT_JOIN item i ON (i.uid = ord.uid AND i.sku > 20)",
                "i.uid",
            ),
            5 => (
                "outer join",
                "ord LEFT JOIN item i ON i.uid = ord.uid AND i.sku > 20",
                "ord.uid",
            ),
            6 => (
                "outer join",
                "ord LEFT JOIN item i ON i.uid = ord.uid",
                "i.uid",
            ),
            7 => (
                "outer join",
                "ord RIGHT JOIN item i ON i.uid = ord.uid",
                "ord.uid",
            ),
            8 => (
                "outer join",
                "(ord JOIN item i ON i.uid = ord.uid) LEFT JOIN zone z ON z.id = i.sku",
                "i.uid",
            ),
            9 => (
                "join placed otherwise",
                "ord JOIN far f ON f.uid = ord.uid JOIN item i ON i.uid = f.uid",
                "ord.uid",
            ),
            10 => (
                "join on another column",
                "ord JOIN item i ON i.uid = ord.amt",
                "ord.uid",
            ),
            11 => (
                "global table",
                "ord JOIN item i ON i.uid = ord.uid JOIN zone z ON z.id = ord.amt",
                "ord.uid",
            ),
            12 => (
                "global table",
                "zone z LEFT JOIN ord ON ord.amt = z.id LEFT JOIN item i ON i.uid = ord.uid",
                "ord.uid",
            ),
            _ => (
                "unsharded table",
                "ord JOIN item i ON i.uid = ord.uid JOIN misc ON misc.k = ord.amt",
                "ord.uid",
            ),
        };
        let key = match from {
            _ if from.contains("ord a") => self.one(&[key, "b.uid", "i.uid"]),
            _ => key,
        };
        let place = self.place(key);
        let place = if from.contains("ord a") {
            // Both have these columns.
            place
                .replace("amt", "a.amt")
                .replace(" n ", " b.n ")
                .replace("code", "a.code")
        } else {
            place
        };
        let columns = if from.contains("ord a") {
            "a.uid, b.amt, i.sku"
        } else {
            "i.uid, i.sku, amt"
        };
        let word = if from.contains("WHERE") { "" } else { "WHERE " };
        (
            class,
            format!("SELECT {columns} FROM {from} {word}({place})"),
            AnyOrder,
        )
    }

    fn nested(&mut self) -> Made {
        let place = self.place("ord.uid");
        match self.roll(9) {
            0 => (
                "subquery",
                format!(
                    "SELECT uid FROM ord WHERE {place} AND EXISTS (SELECT 1 FROM item i WHERE i.uid = ord.uid AND i.sku > 20)"
                ),
                AnyOrder,
            ),
            1 => (
                "subquery",
                format!(
                    "SELECT uid, (SELECT MAX(sku) FROM item WHERE item.uid = ord.uid) FROM ord WHERE {place}"
                ),
                AnyOrder,
            ),
            2 => (
                "subquery",
                format!(
                    "SELECT uid FROM ord WHERE {place} AND uid IN (SELECT uid FROM item WHERE {})",
                    self.place("item.uid")
                ),
                AnyOrder,
            ),
            3 => (
                "subquery",
                format!(
                    "SELECT uid FROM ord WHERE {place} AND amt IN (SELECT id FROM zone WHERE name IS NOT NULL)"
                ),
                AnyOrder,
            ),
            4 => (
                "derived table",
                format!("SELECT x.uid FROM (SELECT uid FROM ord WHERE {place}) x"),
                AnyOrder,
            ),
            5 => (
                "derived table",
                format!(
                    "SELECT COUNT(*), MAX(x.a) FROM (SELECT uid, amt a FROM ord WHERE {place} ORDER BY amt, uid LIMIT 2) x"
                ),
                AnyOrder,
            ),
            6 => (
                "WITH",
                format!(
                    "WITH c AS (SELECT uid, amt FROM ord WHERE {place}) SELECT c.uid, c.amt + 1 FROM c {}",
                    ["", "JOIN item i ON i.uid = c.uid", "WHERE amt > 2"][self.below(3)]
                ),
                AnyOrder,
            ),
            7 => {
                let key = self.key();
                let (all, rest) = (self.one(&[" ALL", ""]), self.condition("uid", 1));
                let again = if key == "?" { self.key() } else { key.clone() };
                // Values stand in the order in which they were made.
                let sql = if self.params.is_some() {
                    format!(
                        "SELECT amt FROM ord WHERE uid = 'x' OR {place} UNION{all} SELECT amt FROM ord WHERE uid = {key} AND ({rest}) OR uid = {again} AND 1"
                    )
                } else {
                    format!(
                        "SELECT amt FROM ord WHERE uid = {key} UNION{all} SELECT amt FROM ord WHERE uid = {again} AND ({rest})"
                    )
                };
                ("UNION", sql, AnyOrder)
            }
            _ => {
                let key = self.key();
                let other = self.key();
                (
                    "UNION",
                    format!(
                        "(SELECT uid, amt FROM ord WHERE ({place}) AND uid = {key}) UNION ALL (SELECT uid, sku FROM item WHERE uid = {other}) ORDER BY 2 LIMIT 50"
                    ),
                    AnyOrder,
                )
            }
        }
    }

    /// What a server does with all rows together.
    fn together(&mut self) -> Made {
        let place = self.place("uid");
        let of = |select: &str, tail: &str| format!("SELECT {select} FROM ord WHERE {place}{tail}");
        match self.roll(14) {
            0 => (
                "aggregate",
                of("COUNT(*), MAX(amt), MIN(code)", ""),
                AnyOrder,
            ),
            1 => (
                "aggregate",
                of("AVG(amt), SUM(n), COUNT(DISTINCT code), SUM(amt) / 3", ""),
                AnyOrder,
            ),
            2 => (
                "aggregate",
                of("BIT_OR(amt), GROUP_CONCAT(amt ORDER BY amt), STD(amt)", ""),
                AnyOrder,
            ),
            3 => (
                "GROUP BY",
                of("code, SUM(amt)", " GROUP BY code ORDER BY code LIMIT 1, 2"),
                InOrder,
            ),
            4 => (
                "GROUP BY",
                of(
                    "code, COUNT(*)",
                    " GROUP BY code HAVING COUNT(*) > 1 ORDER BY 2, 1",
                ),
                InOrder,
            ),
            5 => (
                "GROUP BY",
                of("amt, COUNT(*)", " GROUP BY amt WITH ROLLUP"),
                AnyOrder,
            ),
            6 => ("DISTINCT", of("DISTINCT amt", ""), AnyOrder),
            7 => (
                "DISTINCT",
                of("DISTINCT amt, code", " ORDER BY amt, code LIMIT 3"),
                InOrder,
            ),
            8 => {
                let limit = self.roll(5);
                (
                    "ORDER BY",
                    of(
                        "uid, amt",
                        &format!(" ORDER BY amt DESC, uid LIMIT {limit}"),
                    ),
                    InOrder,
                )
            }
            9 => ("ORDER BY", of("*", " ORDER BY uid"), InOrder),
            10 => (
                "OFFSET",
                of("uid", " ORDER BY uid LIMIT 2 OFFSET 1"),
                InOrder,
            ),
            11 => (
                "window function",
                of("uid, ROW_NUMBER() OVER (ORDER BY uid)", ""),
                AnyOrder,
            ),
            12 => ("HAVING", of("uid, amt", " HAVING amt > 3"), AnyOrder),
            _ => (
                "reads that warn",
                of("uid, CAST(CONCAT(amt, 'x') AS SIGNED)", " ORDER BY uid"),
                InOrder,
            ),
        }
    }

    /// What is not about rows.
    fn unlike(&mut self) -> Made {
        match self.roll(4) {
            0 => ("SHOW COLUMNS", "SHOW COLUMNS FROM ord".to_owned(), InOrder),
            1 => (
                "SHOW CREATE TABLE",
                "SHOW CREATE TABLE ord".to_owned(),
                InOrder,
            ),
            2 => ("DESCRIBE", "DESCRIBE {db}.item".to_owned(), InOrder),
            _ => (
                "unsharded alone",
                format!("SELECT k, name FROM misc WHERE k < {}", self.small()),
                AnyOrder,
            ),
        }
    }
}
