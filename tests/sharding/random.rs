//! Random statements on tables of random keys and rules over three groups: what Atlas answers is what one server with all the rows
//! answers (rows, columns, numbers, errors, warnings), and the rows are the same in the end. What it refuses is counted by its reason.
//!
//! `ATLAS_RANDOM_STATEMENTS` of them are tried of each product, and `ATLAS_RANDOM_SEED` gives others.

mod compare;
mod dice;
mod ground;
mod statements;
mod writes;

use std::collections::BTreeMap;

use crate::common::{Atlas, Bed, Kind, Login, Node, Param, Reply, Statement, Wire, config_for};
use crate::stage::seen;
use compare::{lines, told};
use dice::{Dice, Keys};
use ground::Ground;
use statements::{Rows, Tried};

/// A number in the environment.
fn number(name: &str, or: u64) -> u64 {
    let told = std::env::var(name).ok();
    told.map_or(or, |told| told.parse().expect("a number"))
}

/// Atlas in front of three groups with these grounds.
fn atlas(bed: &Bed, grounds: &[Ground]) -> Atlas {
    let names = |group: usize| {
        let names: Vec<String> = grounds.iter().map(|ground| ground.renamed(group)).collect();
        names.join(", ")
    };
    let mut config = config_for(bed)
        .all_users("group = \"main\"")
        .all_users("causal = \"session\"");
    for group in [1, 2] {
        config = config.append(&format!(
            "[[groups]]\nname = \"s{group}\"\nprimary = \"{}\"\nschemas = {{ {} }}\n",
            bed.address(Node::Second),
            names(group)
        ));
    }
    for ground in grounds {
        config = config.append(&ground.toml());
    }
    let zones: Vec<String> = grounds
        .iter()
        .map(|g| format!("{}.zone", g.schema))
        .collect();
    Atlas::start(config.append(&format!(
        "[sharding]\nglobal_writes = \"xa\"\nglobal_tables = {zones:?}"
    )))
}

/// A client of Atlas and one of the server that has all.
struct Both {
    ours: Wire,
    theirs: Wire,
    /// Statements of each class: how many were tried, and how many answered.
    classes: BTreeMap<&'static str, (u64, u64)>,
    reasons: BTreeMap<String, u64>,
    in_transaction: bool,
    round: u64,
}

/// Why it is not run, if it is not.
fn refusal(reply: &Reply) -> Option<String> {
    let (code, _, text) = reply.error()?;
    match code {
        1105 => {
            let (_, reason) = text
                .split_once("Sharing Hit Multi Dbgroup Not Support SQL: ")
                .unwrap_or_else(|| panic!("{text}"));
            Some(reason.to_owned())
        }
        1179 => Some("1179: another group within a transaction".to_owned()),
        _ => None,
    }
}

impl Both {
    fn new(atlas: &Atlas, bed: &Bed) -> Self {
        let login = Login::plain();
        Self {
            ours: Wire::connect(atlas.address(), &login),
            theirs: Wire::connect(bed.address(Node::Primary), &login),
            classes: BTreeMap::new(),
            reasons: BTreeMap::new(),
            in_transaction: false,
            round: 0,
        }
    }

    fn each(&mut self, ours: &str, theirs: &str) {
        self.ours.ok(ours);
        self.theirs.ok(theirs);
    }

    fn same(&mut self, sql: &str) {
        self.each(sql, sql);
    }

    /// Goes to a ground, and puts rows into it.
    fn enter(&mut self, ground: &Ground, dice: &mut Dice) {
        (dice.keys, dice.base) = (ground.keys, ground.base);
        self.each(
            &format!("USE {}", ground.schema),
            &format!("USE {}", ground.whole),
        );
        for table in ["ord", "item", "far"] {
            self.same(&format!("TRUNCATE {table}"));
        }
        dice.params = None;
        for _ in 0..14 {
            let (key, amt) = (dice.key(), dice.roll(9));
            let code = dice.one(&["'a'", "'b'", "NULL"]);
            self.same(&format!(
                "REPLACE INTO ord VALUES ({key}, {amt}, {code}, {amt})"
            ));
            self.same(&format!(
                "INSERT INTO item (uid, sku) VALUES ({key}, {amt} * 10)"
            ));
            self.same(&format!("REPLACE INTO far (uid, m) VALUES ({key}, {amt})"));
        }
    }

    /// Sometimes a transaction begins, or ends.
    fn turn(&mut self, dice: &mut Dice) {
        let turn = dice.roll(if self.in_transaction { 12 } else { 60 });
        let sql = match (turn, self.in_transaction) {
            (0, true) => "COMMIT",
            (1, true) => "ROLLBACK",
            (2, true) => "SAVEPOINT s",
            (0, false) => dice.one(&["BEGIN", "START TRANSACTION", "SET autocommit = 0"]),
            _ => return,
        };
        self.same(sql);
        if sql != "SAVEPOINT s" {
            self.in_transaction = turn == 0 && !self.in_transaction;
        }
        if !self.in_transaction {
            self.same("SET autocommit = 1");
        }
    }

    /// Tries a statement, and says what is different.
    fn try_one(&mut self, tried: &Tried, ground: &Ground, dice: &mut Dice) -> Result<(), String> {
        let (schema, whole) = (ground.schema.name(), ground.whole.name());
        let mut ours = tried.sql.replace("{db}", schema);
        if let Rows::Some(limit) = tried.rows {
            ours += &format!(" LIMIT {limit}");
        }
        let theirs = tried.sql.replace("{db}", whole);
        let Some(params) = &tried.params else {
            let reply = self.ours.query(&ours);
            return self.compare(tried, (reply, None), &theirs, ground, dice);
        };
        let prepared = match self.ours.try_prepare(&ours) {
            Ok(prepared) => prepared,
            Err(reply) if refusal(&reply).is_some() => {
                return self.compare(tried, (*reply, None), &theirs, ground, dice);
            }
            Err(reply) => {
                let there = self.theirs.try_prepare(&theirs);
                let there = there.map(|_| None).unwrap_or_else(|there| there.error());
                return if there == reply.error() {
                    Ok(())
                } else {
                    Err(format!("{:?} here, and there {there:?}", reply.error()))
                };
            }
        };
        let there = match self.theirs.try_prepare(&theirs) {
            Ok(there) => there,
            Err(reply) => {
                self.ours.close_statement(&prepared);
                let reply = reply.error();
                return Err(format!("prepared here, and there {reply:?}"));
            }
        };
        let mut outcome = Ok(());
        let mut params = params.clone();
        for _ in 0..=dice.roll(3) {
            let reply = self.ours.execute(&prepared, &params);
            let with = Some((&there, params.as_slice()));
            outcome = self.compare(tried, (reply, with), &theirs, ground, dice);
            if let Err(what) = &mut outcome {
                *what = format!("{params:?}\n{what}");
                break;
            }
            params = params.iter().map(|param| dice.again(param)).collect();
        }
        self.ours.close_statement(&prepared);
        self.theirs.close_statement(&there);
        outcome
    }

    fn compare(
        &mut self,
        tried: &Tried,
        (reply, with): (Reply, Option<(&Statement, &[Param])>),
        theirs: &str,
        ground: &Ground,
        dice: &Dice,
    ) -> Result<(), String> {
        let (schema, whole) = (ground.schema.name(), ground.whole.name());
        let counts = self.classes.entry(tried.class).or_default();
        counts.0 += 1;
        if let Some(reason) = refusal(&reply) {
            *self.reasons.entry(reason).or_default() += 1;
            return Ok(());
        }
        counts.1 += 1;
        let wanted = match with {
            Some((statement, params)) => self.theirs.execute(statement, params),
            None => self.theirs.query(theirs),
        };
        let is_binary = with.is_some();
        let is_odd = tried.is_odd || dice.is_odd;
        let told = |reply: &Reply| told(reply, is_binary, (tried.rows, is_odd), whole, schema);
        // Two rows of one statement may both fail: which is told of is the one that was tried first. Before that there may have been
        // warnings, which are undone with their shard.
        let fails_alike = match (tried.class, reply.error(), wanted.error()) {
            ("INSERT of several rows" | "write to a global table", Some(ours), Some(theirs)) => {
                ours.0 == theirs.0
            }
            _ => false,
        };
        if fails_alike {
            return Ok(());
        }
        let asks_counts = self.round.is_multiple_of(5);
        let counts = |wire: &mut Wire| seen(&wire.query("SELECT ROW_COUNT()"));
        if asks_counts {
            let (ours, theirs) = (counts(&mut self.ours), counts(&mut self.theirs));
            if ours != theirs {
                return Err(format!("ROW_COUNT(): {ours}, and there {theirs}"));
            }
        }
        let is_same = match tried.rows {
            Rows::Some(limit) if reply.error().is_none() => {
                let (some, mut all) = (lines(&reply, is_binary), lines(&wanted, is_binary));
                let wanted = all.len().min(usize::try_from(limit).unwrap());
                let each_is_there = some.iter().all(|row| {
                    let at = all.iter().position(|other| other == row);
                    at.map(|at| all.swap_remove(at)).is_some()
                });
                some.len() == wanted && each_is_there
            }
            _ => told(&reply) == told(&wanted),
        };
        // The rows of an UPDATE are counted as they are found.
        let has_rows = !tried.class.contains("UPDATE");
        let (ours, theirs) = (
            self.warnings(true, has_rows),
            self.warnings(false, has_rows).replace(whole, schema),
        );
        // Several servers may have warned of a read, which is said; and each of them of the rows that it looked at.
        let is_told = !is_odd
            && !asks_counts
            && (tried.class == "reads that warn"
                || !tried.sql.trim_start_matches('(').starts_with(['S', 'W']));
        if is_same && (!is_told || ours == theirs) {
            return Ok(());
        }
        Err(format!(
            "--- ours\n{}\n{ours}\n--- theirs\n{}\n{theirs}",
            told(&reply),
            told(&wanted)
        ))
    }

    /// Without their order: that of parts is another one.
    fn warnings(&mut self, is_ours: bool, has_rows: bool) -> String {
        let wire = if is_ours {
            &mut self.ours
        } else {
            &mut self.theirs
        };
        let mut rows = lines(&wire.query("SHOW WARNINGS"), false);
        if !has_rows {
            for row in &mut rows {
                row.truncate(row.find(" at row ").unwrap_or(row.len()));
            }
        }
        rows.sort();
        rows.join("\n")
    }

    /// The rows of all tables are the same.
    fn check(&mut self, ground: &Ground, bed: &Bed) -> Result<(), String> {
        for table in ["ord", "item", "far", "zone"] {
            let sql = format!("SELECT * FROM {table}");
            let (mut ours, mut theirs) = (
                lines(&self.ours.ok(&sql), false),
                lines(&self.theirs.ok(&sql), false),
            );
            ours.sort();
            theirs.sort();
            if ours != theirs {
                return Err(format!("{table}: {ours:?}\n{theirs:?}"));
            }
        }
        let zones = ground.zones(bed);
        if zones.iter().any(|zone| *zone != zones[0]) {
            return Err(format!("the global table differs: {zones:?}"));
        }
        Ok(())
    }

    fn leave(&mut self) {
        if self.in_transaction {
            self.same("ROLLBACK");
            self.same("SET autocommit = 1");
            self.in_transaction = false;
        }
    }

    fn report(&self, kind: Kind) {
        for (class, (tried, answered)) in &self.classes {
            let share = answered * 100 / tried;
            println!("{kind:?} | {class} | {tried} | {answered} | {share} %");
        }
        for (reason, count) in &self.reasons {
            println!("{kind:?} refused {count}: {reason}");
        }
        let sum = |of: fn(&(u64, u64)) -> u64| self.classes.values().map(of).sum::<u64>();
        let (tried, answered) = (sum(|c| c.0), sum(|c| c.1));
        println!("{kind:?} all: {tried} tried, {answered} answered and compared");
        assert!(answered > tried / 3, "only {answered} were answered");
    }
}

fn try_all(bed: &Bed, seed: u64) {
    let mut dice = Dice::new(seed);
    let kinds = [Keys::Int, Keys::Text, Keys::Date, Keys::Int];
    let grounds: Vec<Ground> = (0..8)
        .map(|at| Ground::new(bed, &mut dice, kinds[at % 4]))
        .collect();
    let atlas = atlas(bed, &grounds);
    let mut both = Both::new(&atlas, bed);
    // Comparisons of texts with numbers in changes are errors otherwise, of whichever row is looked at.
    both.same("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'");
    let count = number("ATLAS_RANDOM_STATEMENTS", 1500);
    let each = (count / 40).clamp(50, 500);
    let mut different = Vec::new();
    for round in 0..count {
        let at = usize::try_from(round / each).unwrap() % grounds.len();
        let ground = &grounds[at];
        if round % each == 0 {
            both.leave();
            both.enter(ground, &mut dice);
        }
        both.turn(&mut dice);
        both.round = round;
        let tried = dice.statement();
        let mut outcome = both.try_one(&tried, ground, &mut dice);
        if outcome.is_ok() && round % each == each - 1 {
            both.leave();
            outcome = both.check(ground, bed);
        }
        if let Err(what) = outcome {
            let (kind, sql, ground_told) = (bed.kind, &tried.sql, ground.told());
            different.push(format!(
                "{kind:?} seed {seed} round {round}: {sql}\n{what}\n{ground_told}"
            ));
            println!("DIFFERENT {}\n", different.last().unwrap());
            both.leave();
            both.enter(ground, &mut dice);
            if different.len() >= 20 {
                break;
            }
        }
    }
    both.report(bed.kind);
    for ground in &grounds {
        ground.drop(bed);
    }
    assert!(different.is_empty(), "{} are different", different.len());
}

#[test]
fn answers_are_those_of_mariadb() {
    try_all(&Bed::mariadb(), number("ATLAS_RANDOM_SEED", 1));
}

#[test]
fn answers_are_those_of_mysql() {
    try_all(&Bed::mysql(), number("ATLAS_RANDOM_SEED", 2));
}
