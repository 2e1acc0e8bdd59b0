//! Random statements: what Atlas answers is what one server with all the rows answers, and the rows are the same in the end.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Stage;
use crate::common::{Atlas, Bed, Login, Node, Wire, config_for};
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

    /// A statement, and what kind it is of.
    fn statement(&mut self) -> (&'static str, String) {
        let place = self.place();
        let joined = || {
            place
                .replace("uid ", "ord.uid ")
                .replace("ord.ord", "ord")
                .replace("(uid,", "(ord.uid,")
        };
        match self.roll(20) {
            0 => (
                "aggregate",
                format!("SELECT COUNT(*), MAX(amt), MIN(code) FROM ord WHERE {place}"),
            ),
            1 => (
                "GROUP BY",
                format!(
                    "SELECT code, SUM(amt) FROM ord WHERE {place} GROUP BY code ORDER BY code LIMIT 1, 2"
                ),
            ),
            2 => (
                "DISTINCT",
                format!("SELECT DISTINCT amt FROM ord WHERE {place}"),
            ),
            3 => (
                "join",
                format!(
                    "SELECT ord.uid, i.sku FROM ord JOIN item i ON i.uid = ord.uid WHERE {}",
                    joined()
                ),
            ),
            4 => (
                "outer join",
                format!(
                    "SELECT ord.uid, i.sku FROM ord LEFT JOIN item i ON i.uid = ord.uid AND i.sku > 20 WHERE {}",
                    joined()
                ),
            ),
            5 => (
                "subquery",
                format!(
                    "SELECT uid FROM ord WHERE {place} AND EXISTS (SELECT 1 FROM item i WHERE i.uid = ord.uid AND i.sku > 20)"
                ),
            ),
            6 => (
                "subquery",
                format!(
                    "SELECT uid, (SELECT MAX(sku) FROM item WHERE item.uid = ord.uid) FROM ord WHERE {place}"
                ),
            ),
            7 => (
                "derived table",
                format!("SELECT x.uid FROM (SELECT uid FROM ord WHERE {place}) x ORDER BY 1 DESC"),
            ),
            8 => (
                "UPDATE",
                format!("UPDATE ord SET amt = amt + 1 WHERE {place}"),
            ),
            9 => (
                "UPDATE",
                format!("UPDATE ord SET amt = 5, n = uid WHERE {place}"),
            ),
            10 => (
                "DELETE",
                format!("DELETE FROM ord WHERE {place} AND uid > 5"),
            ),
            11 | 12 => {
                let mut rows = String::new();
                let key = self.key() + 6;
                let step = self.one(&["2", "1", "0", "3"]).parse::<i64>().unwrap();
                for row in 0..=self.roll(2) {
                    let separator = if row == 0 { "" } else { ", " };
                    let key = i64::try_from(row).unwrap() * step + key;
                    let _ = write!(
                        rows,
                        "{separator}({key}, {}, 'a', {})",
                        self.roll(9),
                        self.one(&["NULL", "1", "'7'"])
                    );
                }
                let columns = self.one(&["", " (uid, amt, code, n)"]);
                let verb = self.one(&["INSERT", "INSERT IGNORE", "REPLACE", "INSERT"]);
                let tail = if verb == "INSERT" {
                    self.one(&["", " ON DUPLICATE KEY UPDATE amt = VALUES(amt) + 1"])
                } else {
                    ""
                };
                (
                    "INSERT",
                    format!("{verb} INTO ord{columns} VALUES {rows}{tail}"),
                )
            }
            13 => {
                let (key, rest) = (self.key(), self.condition(2));
                (
                    "UNION",
                    format!(
                        "SELECT uid FROM ord WHERE uid = {key} UNION ALL SELECT amt FROM ord WHERE uid = {key} AND ({rest}) ORDER BY 1"
                    ),
                )
            }
            14 => (
                "ORDER BY",
                format!(
                    "SELECT uid, amt FROM ord WHERE {place} ORDER BY amt DESC, uid LIMIT {}",
                    self.roll(5)
                ),
            ),
            15 => (
                "global table",
                format!(
                    "SELECT ord.uid, z.name FROM ord JOIN zone z ON z.id = ord.amt WHERE {}",
                    joined()
                ),
            ),
            16 => (
                "locking read",
                format!("SELECT uid, n FROM ord WHERE {place} FOR UPDATE"),
            ),
            _ => (
                "plain",
                format!("SELECT uid, amt, code, n FROM ord WHERE {place}"),
            ),
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

/// A third group, on the second server, and two ranges: `ord` and `item` are by three groups below 5, and by two above.
fn three_groups(stage: &Stage<'_>) -> Atlas {
    let (bed, schema) = (stage.bed, &stage.schema);
    let mut second = bed.root(Node::Second);
    second.ok(&format!("CREATE DATABASE {schema}_c"));
    for table in ["ord", "item", "zone"] {
        second.ok(&format!(
            "CREATE TABLE {schema}_c.{table} LIKE {schema}_b.{table}"
        ));
        second.ok(&format!(
            "INSERT INTO {schema}_c.{table} SELECT * FROM {schema}_b.{table} WHERE '{table}' = 'zone'"
        ));
    }
    for table in ["ord", "item"] {
        second.ok(&format!("TRUNCATE {schema}_b.{table}"));
        bed.root(Node::Primary)
            .ok(&format!("TRUNCATE {schema}.{table}"));
    }
    bed.wait_replicas();
    let group = |name: &str, there: &str| {
        format!(
            "[[groups]]\nname = \"{name}\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_{there}\" }}",
            bed.address(Node::Second)
        )
    };
    let table = |name: &str| {
        format!(
            "[[tables]]\nname = \"{schema}.{name}\"\nkey = \"uid\"\nranges = [{{ to = 5, groups = [\"s2\", \"main\", \"s1\"] }}, {{ from = 5, groups = [\"s1\", \"main\"] }}]\n"
        )
    };
    Atlas::start(
        config_for(bed)
            .all_users("group = \"main\"")
            .all_users("causal = \"session\"")
            .append(&group("s1", "b"))
            .append(&group("s2", "c"))
            .append(&table("ord"))
            .append(&table("item"))
            .append(&format!("[sharding]\nglobal_tables = [\"{schema}.zone\"]")),
    )
}

/// So many statements are tried of each server; more of them where the environment says so.
fn count() -> u32 {
    let told = std::env::var("ATLAS_RANDOM_STATEMENTS").ok();
    told.and_then(|told| told.parse().ok()).unwrap_or(1500)
}

/// A statement's warnings are in another order where its parts are.
fn warnings(wire: &mut Wire) -> Vec<String> {
    let reply = wire.query("SHOW WARNINGS");
    let mut rows: Vec<String> = reply.rows().iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[test]
fn answers_are_those_of_one_server() {
    for (bed, seed) in Bed::both().iter().zip([1, 2]) {
        let stage = Stage::new(bed, "transaction");
        let atlas = three_groups(&stage);
        let login = Login::plain().schema(&stage.schema);
        let (mut client, mut direct) = (Wire::connect(atlas.address(), &login), stage.direct());
        // Comparisons of texts with numbers in changes are errors otherwise.
        for wire in [&mut client, &mut direct] {
            wire.ok("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'");
            wire.ok("TRUNCATE ord");
            for uid in -3..13 {
                wire.ok(&format!(
                    "INSERT INTO ord VALUES ({uid}, {}, 'a', NULL)",
                    uid * uid % 7
                ));
            }
        }
        direct.ok("TRUNCATE item");
        for wire in [&mut client, &mut direct] {
            for uid in -2..9 {
                wire.ok(&format!(
                    "INSERT INTO item (uid, sku) VALUES ({uid}, {})",
                    uid * 10
                ));
            }
        }
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        let mut dice = Dice(seed);
        let mut classes: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
        for round in 0..count() {
            let (class, sql) = dice.statement();
            let tried = classes.entry(class).or_default();
            tried.0 += 1;
            let reply = client.query(&sql);
            if let Some((1105, _, text)) = reply.error() {
                let (_, reason) = text
                    .split_once("Not Support SQL: ")
                    .unwrap_or_else(|| panic!("{sql}: {text}"));
                *reasons.entry(reason.to_owned()).or_default() += 1;
                continue;
            }
            tried.1 += 1;
            let wanted = direct.query(&sql);
            let (told, wanted) = if sql.contains("ORDER BY") {
                (seen(&reply), seen(&wanted))
            } else {
                (sorted(&seen(&reply)), sorted(&seen(&wanted)))
            };
            assert_eq!(told, wanted, "{:?} {round}: {sql}", bed.kind);
            // Of reads several servers may have warned, which is said.
            if matches!(class, "INSERT" | "UPDATE" | "DELETE") {
                let told = warnings(&mut client).join("\n");
                let wanted = warnings(&mut direct).join("\n").replace(&whole, &schema);
                assert_eq!(told, wanted, "{:?} {round}: {sql}", bed.kind);
            }
        }
        let answered: u32 = classes.values().map(|(_, answered)| answered).sum();
        for (class, (tried, answered)) in &classes {
            println!("{:?} {class}: {answered} of {tried}", bed.kind);
        }
        for (reason, count) in &reasons {
            println!("{:?} refused {count}: {reason}", bed.kind);
        }
        assert!(answered > count() / 3, "only {answered} were answered");
        let rows = |wire: &mut Wire, key: i64| {
            seen(&wire.query(&format!("SELECT * FROM ord WHERE uid = {key}")))
        };
        for key in -10..30 {
            assert_eq!(rows(&mut client, key), rows(&mut direct, key), "{key}");
        }
        let _ = bed
            .root(Node::Second)
            .try_query(&format!("DROP DATABASE {schema}_c"));
    }
}
