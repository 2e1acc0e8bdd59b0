//! The load test as a user runs it, short: with a real server, the direct connection and the relay. Needs MariaDB, sysbench and strace,
//! which `scripts/test` installs. Not whether figures are good: a busy machine must not fail these.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A folder that stands in for the temporary folder of the machine, so that what is left behind can be seen.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("make a folder");
        Self(path)
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        command.args(words.split_ascii_whitespace());
        command
            .arg("--json")
            .arg(self.json())
            .env("TMPDIR", &self.0);
        command
    }

    fn json(&self) -> PathBuf {
        self.0.join("samples.jsonl")
    }

    /// The values of one figure, line by line.
    fn figure(&self, name: &str) -> Vec<f64> {
        let samples = fs::read_to_string(self.json()).expect("samples");
        let of = |line: &str| -> f64 {
            let (_, rest) = line
                .split_once(&format!("\"{name}\":"))
                .unwrap_or_else(|| panic!("no {name} in {line}"));
            let end = rest.find([',', '}']).expect("an end");
            rest[..end].parse().expect("a number")
        };
        samples.lines().map(of).collect()
    }

    /// Neither files nor processes.
    fn assert_nothing_left(&self) {
        let files: Vec<_> = self.files().filter(|p| *p != self.json()).collect();
        assert!(files.is_empty(), "left behind: {files:?}");
        let processes = self.processes();
        assert!(processes.is_empty(), "left running: {processes:?}");
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        fs::read_dir(&self.0)
            .expect("the folder")
            .flatten()
            .map(|e| e.path())
    }

    /// The command lines of all processes that were started with this temporary folder.
    fn processes(&self) -> Vec<String> {
        let setting = format!("TMPDIR={}", self.0.display());
        let read = |path: PathBuf| {
            String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).replace('\0', "\n")
        };
        let processes = fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .map(|e| e.path());
        processes
            .filter(|p| read(p.join("environ")).lines().any(|l| l == setting))
            .map(|p| read(p.join("cmdline")))
            .collect()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    out.into_owned()
}

#[test]
fn a_quick_run_fills_its_tables_and_leaves_nothing() {
    let temporary = Temporary::new("cpu");
    let output = temporary
        .command("cpu --quick --targets direct,relay")
        .output()
        .expect("run");
    let tables = text(&output);
    for kind in [
        "**point-text, 8 client threads",
        "**point-prepared, 8 client threads",
    ] {
        assert!(tables.contains(kind), "{kind} is not in {tables}");
    }
    assert_eq!(tables.matches("| relay | 1 |").count(), 2, "{tables}");
    assert!(temporary.figure("queries").iter().all(|n| *n > 100.0));
    assert_eq!(temporary.figure("errors"), [0.0; 4]);
    // direct, relay, direct, relay
    let proxy = temporary.figure("proxy_us");
    assert!(
        matches!(proxy[..], [0.0, a, 0.0, b] if a > 1.0 && b > 1.0),
        "{proxy:?}"
    );
    assert!(temporary.figure("server_us").iter().all(|us| *us > 1.0));
    temporary.assert_nothing_left();
}

#[test]
fn a_relay_needs_six_system_calls_a_statement() {
    let temporary = Temporary::new("syscalls");
    text(
        &temporary
            .command("syscalls --quick --targets direct,relay")
            .output()
            .expect("run"),
    );
    let totals = temporary.figure("total");
    assert!(
        totals.len() == 2 && totals.iter().all(|n| (5.99..6.1).contains(n)),
        "{totals:?}"
    );
    temporary.assert_nothing_left();
}

#[test]
fn a_crowd_has_a_server_connection_for_each_without_a_proxy() {
    let temporary = Temporary::new("crowd");
    let output = temporary
        .command("crowd --quick --clients 60 --server-core 0 --targets direct,relay")
        .output()
        .expect("run");
    let table = text(&output);
    assert!(table.contains("| relay | 1 |"), "{table}");
    assert_eq!(temporary.figure("errors"), [0.0; 2]);
    assert!(temporary.figure("qps").iter().all(|n| *n > 100.0));
    // With the connection that asks.
    let connections = temporary.figure("server_connections");
    assert!(
        connections.iter().all(|n| (60.0..70.0).contains(n)),
        "{connections:?}"
    );
    temporary.assert_nothing_left();
}

#[test]
fn a_large_result_passes_the_relay_without_growing_it() {
    let temporary = Temporary::new("bulk");
    let output = temporary
        .command("bulk --quick --mib 8 --targets relay")
        .output()
        .expect("run");
    text(&output);
    assert!(
        temporary
            .figure("peak_growth_kib")
            .iter()
            .all(|kib| *kib < 1024.0)
    );
    temporary.assert_nothing_left();
}

/// Interrupts a run as soon as `is_reached`.
fn interrupted(name: &str, is_reached: impl Fn(&Temporary) -> bool) {
    let temporary = Temporary::new(name);
    let mut child = temporary
        .command("cpu --quick --targets relay --secs 60")
        .spawn()
        .expect("run");
    let give_up = Instant::now() + Duration::from_secs(60);
    while !is_reached(&temporary) {
        assert!(Instant::now() < give_up, "{name} is not reached");
        std::thread::sleep(Duration::from_millis(50));
    }
    let id = child.id().to_string();
    // The shell's own kill: a bare Debian has no program of that name.
    assert!(
        Command::new("sh")
            .args(["-c", "kill -s TERM \"$0\"", &id])
            .status()
            .expect("kill")
            .success()
    );
    assert_eq!(child.wait().expect("an end").code(), Some(143));
    temporary.assert_nothing_left();
}

#[test]
fn a_run_interrupted_while_the_server_is_installed_leaves_nothing() {
    interrupted("install", |t| {
        t.processes()
            .iter()
            .any(|p| p.contains("mariadb-install-db"))
    });
}

#[test]
fn a_run_interrupted_while_it_measures_leaves_nothing() {
    interrupted("measure", |t| {
        t.processes().iter().any(|p| p.contains("sysbench"))
    });
}
