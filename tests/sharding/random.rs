//! Random statements: what Atlas answers is what one server with all the rows answers, and the rows are the same in the end.

use std::fmt::Write;

use crate::Stage;
use crate::common::{Bed, Wire};
use crate::stage::seen;

/// A generator of numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let at = self.roll(of.len() as u64);
        of[usize::try_from(at).unwrap()]
    }

    fn key(&mut self) -> i64 {
        i64::try_from(self.roll(14)).unwrap() - 2
    }

    /// A value as it may be written.
    fn value(&mut self) -> String {
        let key = self.key();
        match self.roll(12) {
            0 => format!("'{key}'"),
            1 => format!("{key}.0"),
            2 => format!("{} + 1", key - 1),
            3 => "NULL".to_owned(),
            4 => format!("{}.5", key.abs()),
            5 => format!("' {key}x'"),
            6 => format!("0x{:02x}", key.abs()),
            _ => key.to_string(),
        }
    }

    fn condition(&mut self, depth: u64) -> String {
        let op = |dice: &mut Self| dice.one(&["=", "<>", "<", "<=", ">", ">=", "<=>"]);
        match self.roll(if depth == 0 { 8 } else { 14 }) {
            0 | 1 => format!("uid {} {}", op(self), self.value()),
            2 => format!("{} {} ord.uid", self.value(), op(self)),
            3 => format!(
                "uid {}IN ({}, {})",
                self.one(&["", "NOT "]),
                self.value(),
                self.value()
            ),
            4 => format!(
                "uid {}BETWEEN {} AND {}",
                self.one(&["", "NOT "]),
                self.value(),
                self.value()
            ),
            5 => format!("amt {} {}", op(self), self.roll(9)),
            6 => self
                .one(&[
                    "n IS NULL",
                    "code = 'a'",
                    "uid IS NOT NULL",
                    "1",
                    "NULL",
                    "1 = 2",
                ])
                .to_owned(),
            7 => format!(
                "(uid, amt) IN (({}, {}), ({}, 5))",
                self.value(),
                self.roll(9),
                self.value()
            ),
            8 | 9 => format!(
                "({} AND {})",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
            10 | 11 => format!(
                "({} OR {})",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
            12 => format!("NOT ({})", self.condition(depth - 1)),
            _ => format!(
                "({}) {}",
                self.condition(depth - 1),
                self.one(&["IS TRUE", "IS NOT TRUE", "IS FALSE", "XOR amt = 5"])
            ),
        }
    }

    /// A condition that most often holds for one shard only.
    fn place(&mut self) -> String {
        let key = self.key();
        let rest = self.condition(3);
        match self.roll(5) {
            0 => rest,
            1 => format!("uid IN ({key}, {}, '{}') AND {rest}", key + 2, key + 4),
            2 => format!("({rest}) AND ord.uid = '{key}'"),
            3 => format!("uid >= {key} AND uid <= {key} AND {rest}"),
            _ => format!("uid = {key} AND ({rest})"),
        }
    }

    fn statement(&mut self) -> String {
        let place = self.place();
        match self.roll(14) {
            0 => format!("SELECT COUNT(*), MAX(amt), MIN(code) FROM ord WHERE {place}"),
            1 => format!(
                "SELECT code, SUM(amt) FROM ord WHERE {place} GROUP BY code ORDER BY code LIMIT 1, 2"
            ),
            2 => format!("SELECT DISTINCT amt FROM ord WHERE {place}"),
            3 => format!(
                "SELECT ord.uid, i.sku FROM ord JOIN item i ON i.uid = ord.uid WHERE {}",
                place
                    .replace("uid ", "ord.uid ")
                    .replace("ord.ord", "ord")
                    .replace("(uid,", "(ord.uid,")
            ),
            4 => format!(
                "SELECT ord.uid, i.sku FROM ord LEFT JOIN item i ON i.uid = ord.uid AND i.sku > 20 WHERE {}",
                place
                    .replace("uid ", "ord.uid ")
                    .replace("ord.ord", "ord")
                    .replace("(uid,", "(ord.uid,")
            ),
            5 => format!(
                "SELECT uid FROM ord WHERE {place} AND EXISTS (SELECT 1 FROM item i WHERE i.uid = ord.uid AND i.sku > 20)"
            ),
            6 => format!(
                "SELECT uid, (SELECT MAX(sku) FROM item WHERE item.uid = ord.uid) FROM ord WHERE {place}"
            ),
            7 => format!("SELECT x.uid FROM (SELECT uid FROM ord WHERE {place}) x ORDER BY 1 DESC"),
            8 => format!("UPDATE ord SET amt = amt + 1 WHERE {place}"),
            9 => format!("UPDATE ord SET amt = 5, n = uid WHERE {place}"),
            10 => format!("DELETE FROM ord WHERE {place} AND uid > 5"),
            11 => {
                let mut rows = String::new();
                let key = self.key() + 6;
                for row in 0..=self.roll(2) {
                    let separator = if row == 0 { "" } else { ", " };
                    let _ = write!(
                        rows,
                        "{separator}({}, {}, 'a')",
                        i64::try_from(row).unwrap() * 2 + key,
                        self.roll(9)
                    );
                }
                format!(
                    "{} INTO ord (uid, amt, code) VALUES {rows}",
                    self.one(&["INSERT", "INSERT IGNORE", "REPLACE"])
                )
            }
            _ => format!("SELECT uid, amt, code, n FROM ord WHERE {place}"),
        }
    }
}

fn sorted(reply: &str) -> String {
    let mut rows: Vec<&str> = reply
        .split("], [")
        .map(|row| row.trim_matches(['[', ']']))
        .collect();
    rows.sort_unstable();
    rows.join("\n")
}

#[test]
fn answers_are_those_of_one_server() {
    for (bed, seed) in Bed::both().iter().zip([1, 2]) {
        let stage = Stage::new(bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        // Comparisons of texts with numbers in changes are errors otherwise.
        for wire in [&mut client, &mut direct] {
            wire.ok("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'");
        }
        let mut dice = Dice(seed);
        let mut answered = 0;
        for _ in 0..1200 {
            let sql = dice.statement();
            let reply = client.query(&sql);
            if let Some((1105, _, text)) = reply.error() {
                assert!(text.contains("Not Support SQL: "), "{sql}: {text}");
                continue;
            }
            answered += 1;
            let wanted = direct.query(&sql);
            assert_eq!(sorted(&seen(&reply)), sorted(&seen(&wanted)), "{sql}");
        }
        assert!(answered > 500, "only {answered} were answered");
        let rows = |wire: &mut Wire, key: i64| {
            seen(&wire.query(&format!("SELECT * FROM ord WHERE uid = {key}")))
        };
        for key in -10..30 {
            assert_eq!(rows(&mut client, key), rows(&mut direct, key), "{key}");
        }
    }
}
