//! Clients that write and read all the time, and keep an account of what they were told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Atlas, Bed, Login, Node, Param, Wire};

/// What one client was told.
#[derive(Default)]
pub struct Account {
    /// Writes that were answered with OK: client and number.
    pub written: BTreeSet<(usize, usize)>,
    /// Writes of which it is not known whether they ran.
    pub unknown: BTreeSet<(usize, usize)>,
    /// Errors, each with the moment when it came.
    pub errors: Vec<(Instant, String)>,
    /// How often it had to connect.
    pub connections: usize,
    /// When the writes were answered.
    pub answered: Vec<Instant>,
}

pub struct Load {
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Account>>,
}

/// What a client does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// One INSERT after the other.
    Insert,
    /// The same, prepared.
    Prepared,
    /// Transactions of two INSERTs.
    Transaction,
    /// Reads.
    Read,
}

/// Creates the table of the load.
pub fn table(bed: &Bed, primary: Node) {
    bed.root(primary)
        .ok("CREATE TABLE bed.writes(client INT, n INT, part INT, PRIMARY KEY(client, n, part))");
    let others: Vec<Node> = crate::stage::GROUP
        .into_iter()
        .filter(|node| *node != primary)
        .collect();
    bed.wait_for(primary, &others);
}

impl Load {
    pub fn start(address: std::net::SocketAddr, habits: &[Habit]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let threads = habits
            .iter()
            .enumerate()
            .map(|(client, habit)| {
                let (is_over, done, habit) = (is_over.clone(), done.clone(), *habit);
                std::thread::spawn(move || run(address, client, habit, &is_over, &done))
            })
            .collect();
        Self {
            is_over,
            done,
            threads,
        }
    }

    /// Waits until so many more commands were answered.
    pub fn goes_on(&self, count: usize) {
        let from = self.done.load(Ordering::Relaxed);
        let end = Instant::now() + Duration::from_secs(30);
        while self.done.load(Ordering::Relaxed) < from + count {
            assert!(Instant::now() < end, "the load stands still");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn end(self) -> Account {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Account::default();
        for thread in self.threads {
            let one = thread.join().expect("a client panicked");
            all.written.extend(one.written);
            all.unknown.extend(one.unknown);
            all.errors.extend(one.errors);
            all.connections += one.connections;
            all.answered.extend(one.answered);
        }
        all.answered.sort_unstable();
        all
    }
}

impl Account {
    /// No client was told of an error.
    pub fn assert_no_errors(&self, atlas: &Atlas) {
        assert!(self.errors.is_empty(), "{:?}\n{}", self.errors, atlas.log());
    }

    /// Every server has exactly what clients were told that it was written.
    pub fn assert_written(&self, bed: &Bed, nodes: &[Node]) {
        for node in nodes {
            let lost: Vec<_> = self
                .written
                .difference(&found(bed, *node))
                .copied()
                .collect();
            assert!(lost.is_empty(), "{} lacks {lost:?}", node.name());
        }
        self.assert_no_strangers(bed, nodes);
    }

    /// No server has what no client has written.
    pub fn assert_no_strangers(&self, bed: &Bed, nodes: &[Node]) {
        for node in nodes {
            let strange: Vec<_> = found(bed, *node)
                .difference(&self.written)
                .filter(|write| !self.unknown.contains(write))
                .copied()
                .collect();
            assert!(strange.is_empty(), "{} has {strange:?}", node.name());
        }
    }
}

/// What a server has of the writes.
pub fn found(bed: &Bed, node: Node) -> BTreeSet<(usize, usize)> {
    let rows = bed
        .root(node)
        .query("SELECT client, n FROM bed.writes")
        .rows();
    let number = |cell: &Option<String>| cell.as_ref().unwrap().parse().unwrap();
    rows.iter()
        .map(|row| (number(&row[0]), number(&row[1])))
        .collect()
}

fn run(
    address: std::net::SocketAddr,
    client: usize,
    habit: Habit,
    is_over: &AtomicBool,
    done: &AtomicUsize,
) -> Account {
    let mut account = Account::default();
    let mut n = 0;
    while !is_over.load(Ordering::Relaxed) {
        account.connections += 1;
        let mut wire = match Wire::try_connect(address, &Login::plain()) {
            Ok(wire) => wire,
            Err(refused) => {
                account
                    .errors
                    .push((Instant::now(), format!("{refused:?}")));
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
        };
        wire.set_timeout(Duration::from_secs(25));
        let statement = (habit == Habit::Prepared)
            .then(|| wire.prepare("INSERT INTO bed.writes VALUES(?, ?, 0)"));
        while !is_over.load(Ordering::Relaxed) {
            n += 1;
            let insert =
                |part: usize| format!("INSERT INTO bed.writes VALUES({client}, {n}, {part})");
            let texts = match habit {
                Habit::Insert => vec![insert(0)],
                Habit::Prepared => vec![String::new()],
                Habit::Transaction => {
                    vec![
                        "BEGIN".to_owned(),
                        insert(0),
                        insert(1),
                        "COMMIT".to_owned(),
                    ]
                }
                Habit::Read => vec!["SELECT n FROM bed.writes LIMIT 1".to_owned()],
            };
            // So that replicas keep up, which apply one by one.
            std::thread::sleep(Duration::from_millis(2));
            let mut failure = None;
            for text in &texts {
                let reply = match &statement {
                    Some(statement) => {
                        let params = [
                            Param::Int(i64::try_from(client).unwrap()),
                            Param::Int(i64::try_from(n).unwrap()),
                        ];
                        let payload = wire.execute_payload(statement.id, 0, &params, true);
                        wire.try_command(&payload)
                    }
                    None => wire.try_query(text),
                };
                failure = match reply {
                    // Behind a lost connection the session ends.
                    Ok(reply) => reply
                        .error()
                        .map(|error| (format!("{error:?}"), error.0 != 1927)),
                    Err(ended) => Some((format!("{ended:?}"), false)),
                };
                if failure.is_some() {
                    break;
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
            match failure {
                None if habit == Habit::Read => {}
                None => {
                    account.written.insert((client, n));
                    account.answered.push(Instant::now());
                }
                Some((error, goes_on)) => {
                    account.unknown.insert((client, n));
                    account.errors.push((Instant::now(), error));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
    }
    account
}
