//! Many clients of the Rust crate mysql that work at random, each in its thread. See README.md beside this file.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::{FromValue, Queryable};
use mysql::{Conn, Error, Opts, OptsBuilder, Row};

pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

const ZONES: [&str; 3] = ["+01:00", "+05:30", "-03:00"];
const STACK: usize = 256 * 1024;

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) clients: usize,
    pub(crate) acts: usize,
    pub(crate) cuts: usize,
}

/// A client, and what a connection of its own would know.
struct Client {
    name: String,
    schema: String,
    options: Opts,
    /// None while it has ended one and begins the next: a client that holds one and asks for another is two.
    db: Option<Conn>,
    dice: u64,
    count: usize,
    variable: Option<u64>,
    zone: &'static str,
    div: u64,
    done: Done,
}

/// Lets them work for that long; the first fault ends all.
pub(crate) fn run(
    options: OptsBuilder,
    schema: &str,
    clients: usize,
    time: Duration,
    seed: u64,
) -> Result<Done, Fault> {
    let options = Opts::from(options.db_name(Some(schema)));
    let end = Instant::now() + time;
    let over = AtomicBool::new(false);
    let total = Mutex::new((Done::default(), None::<Fault>));
    std::thread::scope(|scope| {
        let (over, total, options) = (&over, &total, &options);
        for number in 0..clients {
            let live = move || -> Result<Done, Fault> {
                let mut client = Client::new(number, schema, options, seed)?;
                while Instant::now() < end && !over.load(Ordering::Relaxed) {
                    client.act()?;
                }
                client.see()?;
                client.done.clients = 1;
                Ok(client.done)
            };
            let started =
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        let result = live();
                        let Ok(mut total) = total.lock() else { return };
                        match result {
                            Ok(done) => {
                                total.0.clients += done.clients;
                                total.0.acts += done.acts;
                                total.0.cuts += done.cuts;
                            }
                            Err(fault) => {
                                over.store(true, Ordering::Relaxed);
                                total.1.get_or_insert(fault);
                            }
                        }
                    });
            if let Err(error) = started {
                over.store(true, Ordering::Relaxed);
                if let Ok(mut total) = total.lock() {
                    total.1.get_or_insert_with(|| error.into());
                }
            }
        }
    });
    let (done, fault) = total.into_inner()?;
    match fault {
        Some(fault) => Err(fault),
        None => Ok(done),
    }
}

impl Client {
    fn new(number: usize, schema: &str, options: &Opts, seed: u64) -> Result<Self, Fault> {
        Ok(Self {
            name: format!("rs{seed}-{number}"),
            schema: schema.to_owned(),
            options: options.clone(),
            db: Some(Conn::new(options.clone())?),
            dice: 0x9e37_79b9_7f4a_7c15 ^ (seed << 32) ^ (number as u64 + 1),
            count: 0,
            variable: None,
            zone: "SYSTEM",
            div: 4,
            done: Done::default(),
        })
    }

    fn db(&mut self) -> Result<&mut Conn, Fault> {
        self.db.as_mut().ok_or_else(|| "no connection".into())
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    fn tag(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.name, self.count)
    }

    fn same<T: PartialEq + Debug>(&self, what: &str, got: &T, want: &T) -> Result<(), Fault> {
        if got == want {
            return Ok(());
        }
        Err(format!("{}: {what}: got {got:?}, not {want:?}", self.name).into())
    }

    /// The only value of the only row.
    fn one<T: FromValue + PartialEq + Debug>(
        &mut self,
        what: &str,
        want: &T,
        sql: &str,
    ) -> Result<(), Fault> {
        let rows: Vec<Row> = self.db()?.query(sql)?;
        let mut cells: Vec<Option<T>> = rows.into_iter().map(|mut row| row.take(0)).collect();
        let got = match cells.len() {
            1 => cells.pop().flatten(),
            _ => None,
        };
        if got.as_ref() == Some(want) {
            return Ok(());
        }
        Err(format!("{}: {what}: got {got:?}, not {want:?}", self.name).into())
    }

    fn act(&mut self) -> Result<(), Fault> {
        match self.below(13) {
            0 | 1 => self.see(),
            2 | 3 => self.set(),
            4 => self.reset(),
            5 => self.insert(),
            6 => self.transaction(),
            7 => self.temporary(),
            8 => self.error(),
            9 => self.prepared(),
            10 => self.lock(),
            11 => self.follow(),
            _ => self.cut(),
        }?;
        self.done.acts += 1;
        Ok(())
    }

    fn see(&mut self) -> Result<(), Fault> {
        type State = (String, Option<u64>, String, u64, u8, String);
        let tag = self.tag();
        let sql = format!(
            "SELECT '{tag}', @v, @@time_zone, @@div_precision_increment, @@autocommit, DATABASE()"
        );
        let got: Option<State> = self.db()?.query_first(sql)?;
        let want = (
            tag,
            self.variable,
            self.zone.to_owned(),
            self.div,
            1,
            self.schema.clone(),
        );
        self.same("state", &got, &Some(want))
    }

    fn set(&mut self) -> Result<(), Fault> {
        let sql = match self.below(3) {
            0 => {
                let value = self.below(1000);
                self.variable = Some(value);
                format!("SET @v = {value}")
            }
            1 => {
                self.zone = ZONES
                    .get(usize::try_from(self.below(3))?)
                    .ok_or("three zones")?;
                format!("SET time_zone = '{}'", self.zone)
            }
            _ => {
                self.div = 1 + self.below(9);
                format!("SET SESSION div_precision_increment = {}", self.div)
            }
        };
        Ok(self.db()?.query_drop(sql)?)
    }

    fn reset(&mut self) -> Result<(), Fault> {
        self.db()?.reset()?;
        self.fresh();
        self.see()
    }

    fn fresh(&mut self) {
        self.variable = None;
        self.zone = "SYSTEM";
        self.div = 4;
    }

    fn insert(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        self.db()?
            .query_drop(format!("INSERT INTO a(tag) VALUES ('{tag}')"))?;
        let id = self.db()?.last_insert_id();
        self.one("LAST_INSERT_ID()", &id, "SELECT LAST_INSERT_ID()")?;
        let sql = format!("SELECT tag FROM a WHERE id = {id} /*master*/");
        self.one("row", &tag, &sql)
    }

    fn transaction(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        let count = format!("SELECT COUNT(*) FROM b WHERE tag = '{tag}' /*master*/");
        self.db()?.query_drop("BEGIN")?;
        self.db()?
            .query_drop(format!("INSERT INTO b(tag) VALUES ('{tag}')"))?;
        self.one("own row", &1_u64, &count)?;
        let keep = self.below(2);
        let end = if keep == 1 { "COMMIT" } else { "ROLLBACK" };
        self.db()?.query_drop(end)?;
        self.one("row after it", &keep, &count)
    }

    fn temporary(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        self.db()?
            .query_drop("CREATE TEMPORARY TABLE mine(tag VARCHAR(60))")?;
        self.db()?
            .query_drop(format!("INSERT INTO mine VALUES ('{tag}')"))?;
        self.one("temporary table", &tag, "SELECT tag FROM mine")?;
        Ok(self.db()?.query_drop("DROP TEMPORARY TABLE mine")?)
    }

    fn error(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        match self.db()?.query_drop(format!("SELECT `{tag}` FROM three")) {
            Err(Error::MySqlError(error)) if error.code == 1054 && error.message.contains(&tag) => {
            }
            other => return Err(format!("{}: error: {other:?}", self.name).into()),
        }
        let warnings: Vec<(String, u16, String)> = self.db()?.query("SHOW WARNINGS")?;
        match warnings.as_slice() {
            [(_, 1054, message)] if message.contains(&tag) => Ok(()),
            other => Err(format!("{}: warnings: {other:?}", self.name).into()),
        }
    }

    fn prepared(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        let got: Option<String> = self
            .db()?
            .exec_first("SELECT CONCAT(?, ?)", (tag.as_str(), "!"))?;
        self.same("prepared", &got, &Some(format!("{tag}!")))?;
        let n = self.below(3) + 1;
        let got: Option<u64> = self
            .db()?
            .exec_first("SELECT n FROM three WHERE n = ?", (n,))?;
        self.same("prepared", &got, &Some(n))
    }

    fn lock(&mut self) -> Result<(), Fault> {
        match self.below(3) {
            0 => self.get_and_release("lock"),
            1 => {
                self.db()?.query_drop("LOCK TABLES three READ")?;
                self.one("locked table", &3_u64, "SELECT COUNT(*) FROM three")?;
                Ok(self.db()?.query_drop("UNLOCK TABLES")?)
            }
            _ => {
                self.db()?.query_drop("BEGIN")?;
                let sql = "SELECT n FROM three WHERE n = 2 LOCK IN SHARE MODE";
                self.one("locking read", &2_u64, sql)?;
                Ok(self.db()?.query_drop("ROLLBACK")?)
            }
        }
    }

    fn get_and_release(&mut self, what: &str) -> Result<(), Fault> {
        let name = self.name.clone();
        self.one(what, &1_u8, &format!("SELECT GET_LOCK('{name}', 60)"))?;
        self.one("unlock", &1_u8, &format!("SELECT RELEASE_LOCK('{name}')"))
    }

    fn follow(&mut self) -> Result<(), Fault> {
        let rows = 1 + self.below(3);
        let got: Vec<u64> = self
            .db()?
            .query(format!("SELECT n FROM three LIMIT {rows}"))?;
        self.same("rows", &(got.len() as u64), &rows)?;
        self.one("FOUND_ROWS()", &rows, "SELECT FOUND_ROWS()")?;
        self.db()?
            .query_drop("UPDATE b SET tag = 'x' WHERE tag = 'nobody'")?;
        self.one("ROW_COUNT()", &0_u64, "SELECT ROW_COUNT()")
    }

    /// Leaves anywhere (the crate always says goodbye) and comes again.
    fn cut(&mut self) -> Result<(), Fault> {
        let tag = self.tag();
        let place = self.below(4);
        match place {
            1 => {
                self.db()?.query_drop("BEGIN")?;
                self.db()?
                    .query_drop(format!("INSERT INTO b(tag) VALUES ('{tag}')"))?;
            }
            2 => {
                let name = self.name.clone();
                self.one("lock", &1_u8, &format!("SELECT GET_LOCK('{name}', 60)"))?;
            }
            3 => self
                .db()?
                .query_drop("CREATE TEMPORARY TABLE mine(tag VARCHAR(60))")?,
            _ => {}
        }
        drop(self.db.take());
        self.db = Some(Conn::new(self.options.clone())?);
        self.fresh();
        if place == 1 {
            // The server notices it a little later.
            let late = Instant::now() + Duration::from_secs(60);
            let sql = format!("SELECT COUNT(*) FROM b WHERE tag = '{tag}' /*master*/");
            while self.db()?.query_first::<u64, _>(&sql)? != Some(0) {
                self.same("time left for a rollback", &(Instant::now() < late), &true)?;
                std::thread::sleep(Duration::from_millis(50));
            }
        } else if place == 2 {
            self.get_and_release("lock of one that has gone")?;
        }
        self.done.cuts += 1;
        self.see()
    }
}
