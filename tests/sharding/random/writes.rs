//! Random writes.

use std::fmt::Write;

use super::dice::Dice;
use super::statements::{Made, Rows};
use Rows::{AnyOrder, InOrder};

impl Dice {
    pub(super) fn insert(&mut self) -> Made {
        let verb = self.one(&["INSERT", "INSERT IGNORE", "REPLACE", "INSERT", "INSERT"]);
        if self.roll(6) == 0 {
            let key = self.key();
            let by = format!("uid = {key}");
            return match self.roll(3) {
                0 => (
                    "INSERT ... SELECT",
                    format!("{verb} INTO item (sku, uid) SELECT amt, uid FROM ord WHERE {by}"),
                    AnyOrder,
                ),
                1 => (
                    "INSERT ... SET",
                    format!("{verb} INTO ord SET amt = 4, {by}"),
                    AnyOrder,
                ),
                _ => (
                    "INSERT ... SELECT",
                    format!("{verb} INTO item (uid, sku) SELECT {key}, id FROM zone WHERE id < 3"),
                    AnyOrder,
                ),
            };
        }
        let columns = self.one(&["", " (uid, amt, code, n)", "(`uid`,`amt`,code,n)"]);
        let mut rows = String::new();
        let count = [0, 0, 1, 2, 5][self.below(5)];
        for row in 0..=count {
            let separator = if row == 0 { "" } else { ", " };
            let key = if self.roll(60) == 0 {
                self.value()
            } else {
                self.key()
            };
            let amt = self.small();
            let rest = self.one(&[
                "'a', NULL",
                "'b', 1",
                "'c', '7'",
                "NULL, DEFAULT",
                "'),(', 5",
            ]);
            let _ = write!(rows, "{separator}({key}, {amt}, {rest})");
        }
        let tail = match verb {
            "INSERT" => match self.roll(4) {
                0 => " ON DUPLICATE KEY UPDATE amt = VALUES(amt) + 1".to_owned(),
                1 => format!(" ON DUPLICATE KEY UPDATE n = n + {}", self.small()),
                _ => String::new(),
            },
            _ => String::new(),
        };
        let class = if count == 0 {
            "INSERT"
        } else {
            "INSERT of several rows"
        };
        (
            class,
            format!("{verb} INTO ord{columns} VALUES {rows}{tail}"),
            AnyOrder,
        )
    }

    pub(super) fn change(&mut self) -> Made {
        match self.roll(12) {
            0..=2 => (
                "UPDATE",
                format!("UPDATE ord SET amt = amt + 1 WHERE {}", self.place("uid")),
                AnyOrder,
            ),
            3 => {
                let amt = self.small();
                (
                    "UPDATE",
                    format!(
                        "UPDATE {{db}}.ord o SET o.amt = {amt}, n = 7 WHERE {}",
                        self.place("o.uid")
                    ),
                    AnyOrder,
                )
            }
            4 => (
                "UPDATE",
                format!(
                    "UPDATE ord SET n = amt WHERE {} ORDER BY uid LIMIT 2",
                    self.place("uid")
                ),
                AnyOrder,
            ),
            5 => (
                "joined UPDATE",
                format!(
                    "UPDATE ord JOIN item i ON i.uid = ord.uid SET ord.n = i.sku WHERE {}",
                    self.place("ord.uid")
                ),
                AnyOrder,
            ),
            6 | 7 => (
                "DELETE",
                format!("DELETE FROM ord WHERE {} AND amt > 4", self.place("uid")),
                AnyOrder,
            ),
            8 => (
                "DELETE",
                format!("DELETE FROM item WHERE uid = {}", self.key()),
                AnyOrder,
            ),
            9 => (
                "joined DELETE",
                format!(
                    "DELETE i FROM ord JOIN item i ON i.uid = ord.uid WHERE {}",
                    self.place("ord.uid")
                ),
                AnyOrder,
            ),
            10 => (
                "change of a key",
                format!("UPDATE ord SET uid = {} WHERE amt = 3", self.key()),
                AnyOrder,
            ),
            _ => (
                "joined DELETE",
                format!(
                    "DELETE ord, i FROM ord LEFT JOIN item i ON i.uid = ord.uid WHERE {}",
                    self.place("ord.uid")
                ),
                AnyOrder,
            ),
        }
    }

    pub(super) fn global(&mut self) -> Made {
        let id = self.small();
        match self.roll(7) {
            0 => (
                "write to a global table",
                format!("REPLACE INTO zone VALUES ({id}, 'r'), (9, 'nine')"),
                AnyOrder,
            ),
            1 => (
                "write to a global table",
                format!("INSERT INTO zone (id, name) VALUES ({id}, 'i')"),
                AnyOrder,
            ),
            2 => (
                "write to a global table",
                format!("UPDATE zone SET name = CONCAT(id, 'u') WHERE id >= {id}"),
                AnyOrder,
            ),
            3 => (
                "write to a global table",
                format!("DELETE FROM zone WHERE id = {id}"),
                AnyOrder,
            ),
            4 => (
                "write to a global table",
                format!("UPDATE zone SET name = NOW(6) WHERE id = {id}"),
                AnyOrder,
            ),
            5 => (
                "read of a global table",
                format!(
                    "SELECT name, COUNT(*) FROM zone WHERE id > {id} GROUP BY name ORDER BY name"
                ),
                InOrder,
            ),
            _ => (
                "read of a global table",
                format!("SELECT * FROM {{db}}.zone z WHERE z.id <> {id}"),
                AnyOrder,
            ),
        }
    }
}
