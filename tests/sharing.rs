//! Few server connections for many clients: every reply is the client's own, nothing of one session is seen in another, and the
//! bounds of `[pool]` hold. What the servers count is asked of the servers.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use atlas::wire::Capabilities;
use common::{
    Atlas, Bed, Expect, Login, Node, Param, Reply, Schema, Statement, Wire, config_for, eventually,
    unique_name,
};

/// A generator of small numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn binary_cell(reply: &Reply) -> String {
    let cell = reply.binary_rows()[0][0].clone().expect("no NULL");
    // Behind its length.
    String::from_utf8(cell[1..].to_vec()).expect("UTF-8")
}

fn connections_of(bed: &Bed, node: Node, schema: &Schema) -> usize {
    let mut root = bed.root(node);
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'plain' AND db = '{}'",
        schema.name()
    );
    root.query(&sql).cell().parse().expect("a count")
}

/// A client and what a connection of its own would know.
struct Client {
    wire: Wire,
    id: u64,
    count: u64,
    variable: Option<u64>,
    time_zone: &'static str,
    div: u64,
    autocommit: bool,
    inserted: Option<u64>,
    prepared: Option<Statement>,
}

const ZONES: [&str; 3] = ["+01:00", "+05:30", "-03:00"];

impl Client {
    fn new(atlas: &Atlas, login: &Login, id: u64) -> Self {
        let mut wire = Wire::connect(atlas.address(), login);
        wire.set_timeout(Duration::from_secs(30));
        Self {
            wire,
            id,
            count: 0,
            variable: None,
            time_zone: "SYSTEM",
            div: 4,
            autocommit: true,
            inserted: None,
            prepared: None,
        }
    }

    fn tag(&mut self) -> String {
        self.count += 1;
        format!("c{}-{}", self.id, self.count)
    }

    fn check_state(&mut self) {
        let tag = self.tag();
        let sql = format!(
            "SELECT '{tag}', @v, @@time_zone, @@div_precision_increment, @@autocommit, DATABASE() IS NULL"
        );
        let reply = self.wire.query(&sql);
        let row = reply.rows().remove(0);
        let cell = |n: usize| row[n].clone().map(|c| c.to_string());
        assert_eq!(cell(0).as_deref(), Some(tag.as_str()));
        assert_eq!(cell(1), self.variable.map(|v| v.to_string()), "{tag}: @v");
        assert_eq!(cell(2).as_deref(), Some(self.time_zone), "{tag}");
        assert_eq!(cell(3), Some(self.div.to_string()), "{tag}");
        assert_eq!(
            cell(4).as_deref(),
            Some(if self.autocommit { "1" } else { "0" })
        );
        assert_eq!(cell(5).as_deref(), Some("0"));
    }

    fn act(&mut self, dice: &mut Dice, lock: &str) {
        let tag = self.tag();
        match dice.below(14) {
            0 => {
                let value = dice.below(1000);
                self.wire.ok(&format!("SET @v = {value}"));
                self.variable = Some(value);
            }
            1 => {
                self.time_zone = ZONES[usize::try_from(dice.below(3)).expect("below 3")];
                self.wire
                    .ok(&format!("SET time_zone = '{}'", self.time_zone));
            }
            2 => {
                self.div = 1 + dice.below(9);
                let sql = format!("SET SESSION div_precision_increment = {}", self.div);
                self.wire.ok(&sql);
            }
            3 => {
                self.wire.command(b"\x1f").assert_ok();
                self.variable = None;
                self.time_zone = "SYSTEM";
                self.div = 4;
                self.autocommit = true;
                self.inserted = Some(0);
                self.prepared = None;
            }
            4 => {
                self.wire
                    .ok(&format!("INSERT INTO a(tag) VALUES ('{tag}')"));
                let id = self.wire.query("SELECT LAST_INSERT_ID()").cell();
                let found = self
                    .wire
                    .query(&format!("SELECT tag FROM a WHERE id = {id} /*master*/"));
                assert_eq!(found.cell(), tag);
                self.inserted = id.parse().ok();
                if !self.autocommit {
                    self.wire.ok("COMMIT");
                }
            }
            5 => {
                if let Some(id) = self.inserted {
                    let now = self.wire.query("SELECT LAST_INSERT_ID()").cell();
                    assert_eq!(now, id.to_string(), "{tag}");
                }
            }
            6 => {
                // A transaction that is rolled back, and one that is not.
                self.wire.ok("BEGIN");
                self.wire
                    .ok(&format!("INSERT INTO b(tag) VALUES ('{tag}')"));
                let sql = format!("SELECT COUNT(*) FROM b WHERE tag = '{tag}'");
                assert_eq!(self.wire.query(&sql).cell(), "1");
                self.wire.ok("ROLLBACK");
                assert_eq!(self.wire.query(&format!("{sql} /*master*/")).cell(), "0");
                if !self.autocommit {
                    self.wire.ok("COMMIT");
                }
            }
            7 => {
                self.wire.ok("CREATE TEMPORARY TABLE mine(tag VARCHAR(40))");
                self.wire.ok(&format!("INSERT INTO mine VALUES ('{tag}')"));
                assert_eq!(self.wire.query("SELECT tag FROM mine").cell(), tag);
                self.wire.ok("DROP TEMPORARY TABLE mine");
                if !self.autocommit {
                    self.wire.ok("COMMIT");
                }
            }
            8 => {
                let error = self.wire.query("SELECT nothing FROM nowhere");
                assert_eq!(error.error_code(), 1146);
                let shown = self.wire.query("SHOW WARNINGS").rows();
                assert_eq!(shown.len(), 1, "{tag}");
                if !self.autocommit {
                    self.wire.ok("COMMIT");
                }
            }
            9 => {
                if self.prepared.is_none() {
                    self.prepared = Some(self.wire.prepare("SELECT CONCAT(?, '-', ?)"));
                }
                let statement = self.prepared.take().expect("prepared");
                let reply = self.wire.execute(
                    &statement,
                    &[
                        Param::from(tag.as_str()),
                        Param::Int(i64::try_from(self.id).expect("small")),
                    ],
                );
                assert_eq!(binary_cell(&reply), format!("{tag}-{}", self.id));
                self.prepared = Some(statement);
            }
            10 => {
                let name = format!("{lock}{}", self.id);
                let sql = format!("SELECT GET_LOCK('{name}', 5)");
                assert_eq!(self.wire.query(&sql).cell(), "1");
                let sql = format!("SELECT RELEASE_LOCK('{name}')");
                assert_eq!(self.wire.query(&sql).cell(), "1");
            }
            11 => {
                let rows = 1 + dice.below(3);
                let sql = format!("SELECT n FROM three LIMIT {rows}");
                assert_eq!(self.wire.query(&sql).rows().len() as u64, rows);
                let found = self.wire.query("SELECT FOUND_ROWS()").cell();
                assert_eq!(found, rows.to_string(), "{tag}");
                let sql = format!("UPDATE b SET tag = '{tag}' WHERE tag = 'nobody'");
                self.wire.ok(&sql);
                assert_eq!(self.wire.query("SELECT ROW_COUNT()").cell(), "0");
                if !self.autocommit {
                    self.wire.ok("COMMIT");
                }
            }
            12 => {
                self.autocommit = dice.below(2) == 0;
                let sql = format!("SET autocommit = {}", u8::from(self.autocommit));
                self.wire.ok(&sql);
            }
            _ => self.check_state(),
        }
    }
}

const TABLES: &str = "CREATE TABLE a(id INT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(40)); \
    CREATE TABLE b(tag VARCHAR(40), KEY(tag)); \
    CREATE TABLE three(n INT); INSERT INTO three VALUES (1), (2), (3)";

fn schema_with_tables(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!("USE {}", schema.name()));
    for sql in TABLES.split("; ") {
        root.ok(sql);
    }
    bed.wait_replicas();
    schema
}

const FEW: usize = 8;

#[test]
fn many_clients_on_few_connections() {
    for bed in Bed::both() {
        let schema = schema_with_tables(&bed);
        let pool = format!(
            "[pool]\nmin_idle = 2\nmax_connections = {FEW}\nconnect_rate = 500\nacquire_timeout = \"30s\""
        );
        let atlas = Atlas::start(config_for(&bed).append(&pool));
        let lock = unique_name("few");
        let over = AtomicBool::new(false);
        let (atlas, bed, schema, over, lock) = (&atlas, &bed, &schema, &over, lock.as_str());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..12_u64)
                .map(|thread| {
                    scope.spawn(move || {
                        // Four kinds of clients, none of whose connections the others can use.
                        let login = match thread % 4 {
                            0 => Login::plain(),
                            1 => Login::plain().charset(8),
                            2 => Login::plain().without(Capabilities::DEPRECATE_EOF),
                            _ => Login::plain().charset(33),
                        };
                        let login = login.schema(schema);
                        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 + thread);
                        let mut clients: Vec<Client> = (0..20)
                            .map(|n| Client::new(atlas, &login, thread * 100 + n))
                            .collect();
                        for _ in 0..400 {
                            let at = usize::try_from(dice.below(20)).expect("below 20");
                            clients[at].act(&mut dice, lock);
                            if dice.below(40) == 0 {
                                // One leaves, with or without a word, and another comes.
                                let id = clients[at].id + 1000;
                                let old = std::mem::replace(
                                    &mut clients[at],
                                    Client::new(atlas, &login, id),
                                );
                                if dice.below(2) == 0 {
                                    old.wire.quit();
                                }
                            }
                        }
                        for client in &mut clients {
                            client.check_state();
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    for node in [Node::Primary, Node::Replica1, Node::Replica2] {
                        // A server lists one that was closed for a moment longer.
                        eventually("there are few", || connections_of(bed, node, schema) <= FEW);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let failed = threads.into_iter().filter_map(|t| t.join().err()).count();
            over.store(true, Ordering::Relaxed);
            assert_eq!(failed, 0);
        });
    }
}

/// A36, B26, B29: many more clients than connections, which are opened no faster than at the rate.
#[test]
fn a_storm_of_clients_is_served_at_the_rate() {
    for bed in Bed::both() {
        let schema = schema_with_tables(&bed);
        let pool = "[pool]\nmin_idle = 0\nmax_connections = 20\nconnect_rate = 10\nacquire_timeout = \"30s\"";
        let atlas = Atlas::start(config_for(&bed).append(pool));
        let login = Login::plain().schema(&schema);
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let mut clients: Vec<Wire> = (0..15)
                        .map(|_| Wire::connect(atlas.address(), &login))
                        .collect();
                    for client in &mut clients {
                        client.set_timeout(Duration::from_secs(30));
                        assert_eq!(client.query("SELECT COUNT(*) FROM three").cell(), "3");
                        assert_eq!(client.query("SELECT 7 /*master*/").cell(), "7");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(answered.load(Ordering::Relaxed), 300);
        for node in [Node::Primary, Node::Replica1, Node::Replica2] {
            eventually("there are few", || {
                connections_of(&bed, node, &schema) <= 20
            });
        }
    }
}

#[test]
fn who_waits_too_long_is_told_for_what() {
    for bed in Bed::both() {
        let schema = schema_with_tables(&bed);
        let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"300ms\"";
        let atlas = Atlas::start(config_for(&bed).append(pool));
        let login = Login::plain().schema(&schema);
        let mut holder = Wire::connect(atlas.address(), &login);
        holder.ok("BEGIN");
        let mut other = Wire::connect(atlas.address(), &Login::plain());
        let started = Instant::now();
        let (code, state, text) = other
            .query("SELECT 1 /*master*/")
            .error()
            .expect("no connection is free");
        assert!(started.elapsed() >= Duration::from_millis(250));
        assert_eq!((code, state.as_str()), (1203, "42000"), "{text}");
        let server = bed.address(Node::Primary).to_string();
        assert!(
            text.contains(&server) && text.contains("max_connections"),
            "{text}"
        );
        // The wait is over as soon as the connection is free, for a client of another kind too.
        let payload = other.query_payload(b"SELECT 2 /*master*/");
        other.send(&payload);
        holder.ok("COMMIT");
        assert_eq!(other.reply(Expect::Text).cell(), "2");
        assert_eq!(holder.query("SELECT 3 /*master*/").cell(), "3");
        eventually("there is one", || {
            connections_of(&bed, Node::Primary, &schema) == 1
        });
    }
}

/// B40.
#[test]
fn connections_that_servers_closed_are_not_handed_out() {
    for bed in Bed::both() {
        let schema = schema_with_tables(&bed);
        let atlas = Atlas::start(config_for(&bed).append("[pool]\nmin_idle = 0"));
        let login = Login::plain().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        for round in 0..5 {
            client.ok(&format!("INSERT INTO a(tag) VALUES ('{round}')"));
            client.query("SELECT 1").assert_ok();
            for node in [Node::Primary, Node::Replica1, Node::Replica2] {
                let mut root = bed.root(node);
                let list = format!(
                    "SELECT id FROM information_schema.processlist WHERE user = 'plain' AND db = '{}'",
                    schema.name()
                );
                for row in root.query(&list).rows() {
                    let id = row[0].clone().expect("an id");
                    root.query(&format!("KILL {id}"));
                }
                eventually("they are gone", || root.query(&list).rows().is_empty());
            }
            // A write may not be lost either.
            client.ok(&format!("UPDATE a SET tag = 'x' WHERE tag = '{round}'"));
            client.query("SELECT 1").assert_ok();
        }
        assert_eq!(
            client
                .query("SELECT COUNT(*) FROM a WHERE tag = 'x' /*master*/")
                .cell(),
            "5"
        );
    }
}

/// B28.
#[test]
fn the_least_number_is_there_before_the_first_client_and_comes_back() {
    for bed in Bed::both() {
        let name = unique_name("idle");
        let mut root = bed.root(Node::Primary);
        root.ok(&format!("CREATE USER {name}@'%' IDENTIFIED BY 'pw'"));
        bed.wait_replicas();
        let config = config_for(&bed)
            .user(&name, "pw", &[])
            .append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\n[pool]\nmin_idle = 3");
        // The first account of the group is the one that they are opened for.
        let text = String::from(config);
        let own = text
            .find(&format!("[[users]]\nname = \"{name}\""))
            .expect("it is there");
        let first = text.find("[[users]]").expect("users");
        let end = text[own..]
            .find("\n\n")
            .map_or(text.len(), |at| own + at + 2);
        let moved = format!(
            "{}{}{}{}",
            &text[..first],
            &text[own..end],
            &text[first..own],
            &text[end..]
        );
        let atlas = Atlas::start(moved);
        atlas.wait_log("ready");
        let list = format!("SELECT id FROM information_schema.processlist WHERE user = '{name}'");
        let ids = |root: &mut Wire| -> Vec<String> {
            let rows = root.query(&list).rows();
            rows.iter()
                .map(|row| row[0].clone().expect("an id").to_string())
                .collect()
        };
        assert_eq!(ids(&mut root).len(), 3);
        let old = ids(&mut root);
        for id in &old {
            root.query(&format!("KILL {id}"));
        }
        eventually("three others are there", || {
            let now = ids(&mut root);
            now.len() == 3 && now.iter().all(|id| !old.contains(id))
        });
        root.ok(&format!("DROP USER {name}@'%'"));
    }
}

#[test]
fn a_connection_with_a_kill_on_its_way_is_nobodys_next() {
    for bed in Bed::both() {
        let schema = schema_with_tables(&bed);
        let atlas = Atlas::start(config_for(&bed).append("[pool]\nmin_idle = 0"));
        let login = Login::plain().schema(&schema);
        let mut busy = Wire::connect(atlas.address(), &login);
        let mut killer = Wire::connect(atlas.address(), &login);
        let mark = unique_name("nap");
        let payload =
            busy.query_payload(format!("SELECT SLEEP(60) /*{mark}*/ /*master*/").as_bytes());
        busy.send(&payload);
        let mut root = bed.root(Node::Primary);
        let list = format!(
            "SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP%{mark}%' AND id <> CONNECTION_ID()"
        );
        let mut found = None;
        eventually("it sleeps", || {
            found = root
                .query(&list)
                .rows()
                .first()
                .and_then(|row| row[0].clone());
            found.is_some()
        });
        let id = found.expect("it sleeps");
        killer.ok(&format!("KILL QUERY {}", busy.id));
        // Servers give 1 or an error.
        let _ = busy.reply(Expect::Text);
        // On MariaDB one without a table would leave the error to be shown, and the connection with its session.
        let seven = busy.query("SELECT 7 FROM (SELECT 1) AS t /*master*/");
        assert_eq!(seven.cell(), "7");
        let there = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        eventually("its connection is closed", || {
            root.query(&there).cell() == "0"
        });
        assert_eq!(killer.query("SELECT 8 /*master*/").cell(), "8");
    }
}
