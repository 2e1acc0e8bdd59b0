//! sysbench in the background, with the script `load.lua`, and the account that it gives of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Bed, Node, Wire};

const THREADS: usize = 4;
const TABLES: usize = 2;
/// A multiple of the threads of four loads, which share the tables.
const ROWS: usize = 2000;
/// The account of the load, without rights beyond its data.
const USER: &str = "plain";
const PASSWORD: &str = "plain-pw";

/// What a load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// `oltp_read_write`, each event a transaction; as texts.
    Transactions,
    /// The same statements, each by itself, so that reads go to replicas; prepared.
    Statements,
    /// The same, as texts: sysbench does not get over a lost connection on which it has prepared statements.
    Texts,
}

/// A load that runs.
#[derive(Debug)]
pub struct Sysbench {
    child: Child,
    folder: tempfile::TempDir,
    id: usize,
}

/// What became of it.
#[derive(Debug)]
pub struct Account {
    id: usize,
    /// Statements that were answered.
    pub statements: u64,
    /// The longest event, in milliseconds.
    pub longest: f64,
    /// Errors that sysbench was told: how many of each.
    pub errors: BTreeMap<String, usize>,
    /// For each thread the last number in its ledger, and the numbers of which it is not known whether they were written.
    ledger: BTreeMap<usize, (usize, BTreeSet<usize>)>,
}

/// The tables of all loads, on all servers of the group, made through Atlas.
pub fn tables(bed: &Bed, atlas: SocketAddr) {
    let mut root = bed.root(Node::Primary);
    root.ok(
        "CREATE TABLE bed.ledger(load_id INT, thread INT, n INT, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), \
         PRIMARY KEY(load_id, thread, n), KEY(at))",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let output = command(atlas, 0, Habit::Statements, folder.path())
        .arg("prepare")
        .output()
        .expect("scripts/bed install sysbench");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "sysbench prepare: {said}");
    bed.wait_replicas();
}

fn command(address: SocketAddr, id: usize, habit: Habit, folder: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operations/load.lua");
    let [skips, prepares] = match habit {
        Habit::Transactions => ["off", "disable"],
        Habit::Statements => ["on", "auto"],
        Habit::Texts => ["on", "disable"],
    };
    let mut command = Command::new("sysbench");
    command.arg(script).args([
        "--db-driver=mysql".to_owned(),
        format!("--mysql-host={}", address.ip()),
        format!("--mysql-port={}", address.port()),
        format!("--mysql-user={USER}"),
        format!("--mysql-password={PASSWORD}"),
        "--mysql-db=bed".to_owned(),
        // The script sees to errors.
        "--mysql-ignore-errors=".to_owned(),
        format!("--tables={TABLES}"),
        format!("--table-size={ROWS}"),
        format!("--threads={THREADS}"),
        format!("--skip-trx={skips}"),
        format!("--db-ps-mode={prepares}"),
        format!("--load-id={id}"),
        format!("--over={}", folder.join("over").display()),
        "--time=0".to_owned(),
        "--events=0".to_owned(),
    ]);
    command
}

impl Sysbench {
    /// A load of so many events a second, in which each thread connects anew after `churn` events (0 for never).
    pub fn start(address: SocketAddr, id: usize, habit: Habit, rate: usize, churn: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let out = fs::File::create(folder.path().join("out")).expect("a file");
        let child = command(address, id, habit, folder.path())
            .args([format!("--rate={rate}"), format!("--churn={churn}")])
            .arg("run")
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("one more handle"))
            .stderr(out)
            .spawn()
            .expect("scripts/bed install sysbench");
        Self { child, folder, id }
    }

    fn out(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    /// Waits until so many more of its events have been written down on that server.
    pub fn goes_on(&mut self, root: &mut Wire, count: usize) {
        let sql = format!(
            "SELECT COUNT(*) FROM bed.ledger WHERE load_id = {}",
            self.id
        );
        let mut written = || -> usize { root.query(&sql).cell().parse().expect("a count") };
        let from = written();
        let end = Instant::now() + Duration::from_secs(60);
        while written() < from + count {
            self.assert_runs();
            assert!(
                Instant::now() < end,
                "the load stands still\n{}",
                self.out()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// It has not ended.
    pub fn assert_runs(&mut self) {
        let ended = self.child.try_wait().expect("wait");
        assert!(ended.is_none(), "sysbench ended: {ended:?}\n{}", self.out());
    }

    /// Ends it in order.
    pub fn end(mut self) -> Account {
        fs::write(self.folder.path().join("over"), "").expect("write");
        let end = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.child.try_wait().expect("wait") {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "sysbench goes on\n{}", self.out()),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let out = self.out();
        assert!(status.success(), "sysbench: {status}\n{out}");
        Account::read(self.id, &out)
    }
}

impl Drop for Sysbench {
    fn drop(&mut self) {
        // Its own child, by its handle; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Account {
    fn read(id: usize, out: &str) -> Self {
        let after = |name: &str| {
            let mut lines = out.lines().map(str::trim_start);
            lines
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next())
                .unwrap_or_else(|| panic!("no {name} in\n{out}"))
        };
        let mut errors = BTreeMap::new();
        for line in out.lines().filter_map(|line| line.strip_prefix("error ")) {
            *errors.entry(line.to_owned()).or_default() += 1;
        }
        let ledger = out
            .lines()
            .filter_map(|line| line.strip_prefix("ledger "))
            .map(|line| {
                let mut words = line.split(' ');
                let mut number = || words.next().expect("a word").parse().expect("a number");
                let (thread, last) = (number(), number());
                let unknown = words.next().unwrap_or_default();
                let unknown = unknown.split(',').filter(|word| !word.is_empty());
                let unknown = unknown.map(|word| word.parse().expect("a number"));
                (thread, (last, unknown.collect()))
            })
            .collect();
        Self {
            id,
            statements: after("queries:").parse().expect("a number"),
            longest: after("max:").parse().expect("a number"),
            errors,
            ledger,
        }
    }

    /// How many errors sysbench was told.
    pub fn failures(&self) -> usize {
        self.errors.values().sum()
    }

    /// No statement failed, and no connection was lost or refused.
    pub fn assert_no_errors(&self, log: &str) {
        assert!(self.errors.is_empty(), "{:#?}\n{log}", self.errors);
    }

    /// Each of these servers has what the load was told that it was written, once, and nothing that it has not said; and all have the
    /// same rows in all tables.
    pub fn assert_kept(&self, bed: &Bed, nodes: &[Node]) {
        assert_eq!(self.ledger.len(), THREADS, "each thread gives an account");
        for node in nodes {
            let sql = format!(
                "SELECT thread, n FROM bed.ledger WHERE load_id = {}",
                self.id
            );
            let rows = bed.root(*node).query(&sql).rows();
            let number = |cell: &Option<String>| -> usize {
                cell.as_ref().expect("no NULL").parse().expect("a number")
            };
            let found: BTreeSet<(usize, usize)> = rows
                .iter()
                .map(|row| (number(&row[0]), number(&row[1])))
                .collect();
            let mut allowed = 0;
            for (thread, (last, unknown)) in &self.ledger {
                for n in 1..=*last {
                    let is_there = found.contains(&(*thread, n));
                    let may_lack = unknown.contains(&n);
                    assert!(is_there || may_lack, "{} lacks {thread}/{n}", node.name());
                    allowed += usize::from(is_there);
                }
            }
            assert_eq!(allowed, found.len(), "{} has strangers", node.name());
        }
        let sums = |node: &Node| {
            let sql = "CHECKSUM TABLE bed.ledger, bed.sbtest1, bed.sbtest2";
            bed.root(*node).query(sql).rows()
        };
        for node in nodes {
            assert_eq!(sums(node), sums(&nodes[0]), "{} differs", node.name());
        }
    }
}
