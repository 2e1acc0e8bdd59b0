//! The fixture of the reports: a primary and two replicas behind one Atlas, a schema with a few tables, and questions to the general
//! logs about where a statement ran.

use std::cell::RefCell;

use super::common::{
    Atlas, Bed, Config, Kind, Login, Node, Reply, Schema, Seen, Trail, Wire, config_for,
};

/// Tables of every test; more come by [`Stage::with`].
const TABLES: &str = "CREATE TABLE t(id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(40));
    INSERT INTO t VALUES (1,10,'a'),(2,20,'b'),(3,30,'c');
    CREATE TABLE u(id INT PRIMARY KEY)";

/// One bed's fixture.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) atlas: Atlas,
    pub(crate) schema: Schema,
    pub(crate) bed: Bed,
    trail: RefCell<Trail>,
}

impl Stage {
    /// On MariaDB and then on MySQL.
    pub(crate) fn both() -> impl Iterator<Item = Self> {
        [Kind::MariaDb, Kind::MySql].into_iter().map(Self::new)
    }

    pub(crate) fn mariadb() -> Self {
        Self::new(Kind::MariaDb)
    }

    pub(crate) fn mysql() -> Self {
        Self::new(Kind::MySql)
    }

    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, "", |config| config)
    }

    /// On both, with more statements (separated by semicolons, run as `app` in the schema) after those that make the tables.
    pub(crate) fn both_with(more: &'static str) -> impl Iterator<Item = Self> {
        [Kind::MariaDb, Kind::MySql]
            .into_iter()
            .map(move |kind| Self::with(kind, more, |config| config))
    }

    pub(crate) fn with(kind: Kind, more: &str, change: impl FnOnce(Config) -> Config) -> Self {
        let bed = Bed::of(kind);
        Self::on(bed, more, change)
    }

    /// On a given bed.
    pub(crate) fn on(bed: Bed, more: &str, change: impl FnOnce(Config) -> Config) -> Self {
        let schema = bed.schema();
        let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
        maker.ok(&format!("{TABLES};{more}"));
        bed.wait_replicas();
        // Behind the maker's connection, which does not count.
        let trail = RefCell::new(Trail::new(&bed, &schema));
        let config = change(config_for(&bed).server("workers = 2"));
        let atlas = Atlas::start(config);
        Self {
            atlas,
            schema,
            bed,
            trail,
        }
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.bed.kind == Kind::MariaDb
    }

    /// How clients of the tests log in.
    pub(crate) fn login(&self) -> Login {
        Login::plain().schema(&self.schema)
    }

    /// A client of Atlas, with the rights of an application: replicas refuse its writes.
    pub(crate) fn client(&self) -> Wire {
        self.client_as(&self.login())
    }

    pub(crate) fn client_as(&self, login: &Login) -> Wire {
        Wire::connect(self.atlas.address(), login)
    }

    /// The same account straight on the primary: the oracle.
    pub(crate) fn direct(&self) -> Wire {
        Wire::connect(self.bed.address(Node::Primary), &self.login())
    }

    /// Root on the primary, in no schema, so that it leaves no trail.
    pub(crate) fn root(&self) -> Wire {
        self.bed.root(Node::Primary)
    }

    /// One number, asked of the primary by another connection.
    pub(crate) fn count(&self, table_and_condition: &str) -> u64 {
        let sql = format!("SELECT COUNT(*) FROM {}.{table_and_condition}", self.schema);
        self.root().query(&sql).cell().parse().expect("a number")
    }

    /// The same with what is not committed yet.
    pub(crate) fn count_uncommitted(&self, table_and_condition: &str) -> u64 {
        let mut root = self.root();
        root.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
        let sql = format!("SELECT COUNT(*) FROM {}.{table_and_condition}", self.schema);
        root.query(&sql).cell().parse().expect("a number")
    }

    /// What the clients' server connections did since the last question.
    pub(crate) fn trail(&self) -> Vec<Seen> {
        self.trail.borrow_mut().statements()
    }

    /// The same with log-ins and farewells.
    pub(crate) fn full_trail(&self) -> Vec<Seen> {
        self.trail.borrow_mut().take()
    }

    /// Runs a statement and tells where it ran. Panics unless it ran exactly once.
    pub(crate) fn run(&self, client: &mut Wire, sql: &str) -> (Reply, Seen) {
        self.trail();
        let reply = client.query(sql);
        let trail = self.trail();
        let mut ran: Vec<&Seen> = trail.iter().filter(|seen| seen.is(sql)).collect();
        if ran.is_empty() && sql.contains(';') {
            // MySQL logs the statements of a batch one by one.
            ran = trail.iter().filter(|seen| seen.is_in(sql)).collect();
            ran.dedup_by_key(|seen| seen.connection());
        }
        let (Some(seen), true) = (ran.pop(), ran.is_empty()) else {
            panic!("{sql}: not seen once, but: {trail:?}\nreply: {reply:?}");
        };
        (reply, seen.clone())
    }

    /// Runs a statement that must go to the primary, where an error may answer it.
    pub(crate) fn on_primary(&self, client: &mut Wire, sql: &str) -> Reply {
        let (reply, seen) = self.run(client, sql);
        assert_eq!(seen.node, Node::Primary, "{sql}: {}", why(client));
        reply
    }

    /// Runs a statement that must go to a replica.
    pub(crate) fn on_replica(&self, client: &mut Wire, sql: &str) -> Reply {
        let (reply, seen) = self.run(client, sql);
        assert!(
            Node::REPLICAS.contains(&seen.node),
            "{sql}: ran on {seen:?}: {}",
            why(client)
        );
        reply
    }
}

/// What Atlas says of the last route, for messages.
fn why(client: &mut Wire) -> String {
    client.try_query("SHOW LAST ROUTE").map_or_else(
        |ended| format!("{ended:?}"),
        |reply| format!("{:?}", table(&reply)),
    )
}

/// The status flags that the tests compare: without those about indexes and tracked state.
pub(crate) fn flags(reply: &Reply) -> u16 {
    assert!(reply.error().is_none(), "{:?}", reply.error());
    // No good index, no index, slow, tracked state changed.
    reply.status().0 & !(0x0010 | 0x0020 | 0x0800 | 0x4000)
}

/// Plays a script of one statement a line, `SQL => outcome`. The outcome is the last status flags in hexadecimal (see [`flags`]) and,
/// behind a blank, the rows of all results (see [`table`]) with `;` between them; or `E` and the error's number. A line without an
/// outcome must succeed.
pub(crate) fn play(client: &mut Wire, script: &str) {
    for line in script.lines().map(str::trim) {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        match line.split_once(" => ") {
            None => {
                client.ok(line);
            }
            Some((sql, expected)) => {
                let reply = client.query(sql);
                assert_eq!(outcome(&reply), expected, "{sql}: {:?}", reply.error());
            }
        }
    }
}

/// The outcome as [`play`] writes it.
pub(crate) fn outcome(reply: &Reply) -> String {
    if let Some((code, ..)) = reply.error() {
        return format!("E{code}");
    }
    let rows = table(reply);
    let flags = flags(reply);
    if rows.is_empty() {
        format!("{flags:04x}")
    } else {
        format!("{flags:04x} {}", rows.join(";"))
    }
}

/// All cells of all rows, NULL as `NULL`, cells of a row separated by commas.
pub(crate) fn table(reply: &Reply) -> Vec<String> {
    reply.assert_ok();
    let rows = reply.rows().into_iter();
    rows.map(|row| {
        let cells: Vec<String> = row
            .into_iter()
            .map(|cell| cell.unwrap_or_else(|| "NULL".to_owned()))
            .collect();
        cells.join(",")
    })
    .collect()
}
