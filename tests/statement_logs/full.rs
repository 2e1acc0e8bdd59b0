//! Logs that cannot be written: statements wait or records are dropped, as it is configured; Atlas says so once, and goes on when they can
//! be again. `/dev/full` is a disk without room.

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::audit::lines;
use super::common::{Atlas, Bed, Login, Wire, config_for, eventually, http_get, http_of};

/// So many statements of this size are more than may wait to be written.
const STATEMENTS: usize = 1400;
const SIZE: usize = 15_000;

fn config(bed: &Bed, log: &str) -> super::common::Config {
    config_for(bed)
        .server("http_listen = \"127.0.0.1:0\"")
        .server("workers = 2")
        .append(log)
}

fn metric(atlas: &Atlas, name: &str) -> u64 {
    let http = http_of(&atlas.log()).expect("the log names the port");
    let text = http_get(http, "/metrics").1;
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .expect(name);
    line.rsplit(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number")
}

fn long(n: usize) -> String {
    format!("SELECT {n}, '{}'", "x".repeat(SIZE))
}

/// The name of the log in a folder of its own is a link, first to a disk that is full, then to a file.
fn full_disk(atlas_dir: &std::path::Path, name: &str) {
    symlink("/dev/full", atlas_dir.join(name)).expect("a link");
}

/// As `eventually`, for what a busy machine takes its time for: megabytes go through a program that is not optimised.
fn patiently(what: &str, mut done: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(std::time::Instant::now() < end, "not within 120 s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn records_are_dropped_and_counted() {
    let bed = Bed::mariadb();
    for (log, key, name) in [
        (
            "[log]\nslow = { file = \"logs/it\", threshold = \"0s\" }",
            "slow",
            "slow log",
        ),
        (
            "[log]\naudit = { file = \"logs/it\", when_full = \"drop\" }",
            "audit",
            "audit log",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        full_disk(dir.path(), "it");
        let log = log.replace("logs/", &format!("{}/", dir.path().display()));
        let atlas = Atlas::start(config(&bed, &log));
        let mut client = Wire::connect(atlas.address(), &Login::plain());
        for n in 0..STATEMENTS {
            client.ok(&long(n));
        }
        let dropped = format!("atlas_log_dropped_total{{log=\"{key}\"}}");
        eventually("some are dropped", || metric(&atlas, &dropped) > 0);
        let said = format!("{name} (atlas): ");
        atlas.wait_log(&said);
        assert_eq!(atlas.log().matches(&said).count(), 1, "{}", atlas.log());
        assert!(atlas.log().contains("what finds no room is dropped"));
        std::fs::remove_file(dir.path().join("it")).expect("the link");
        atlas.signal("HUP");
        atlas.wait_log("is written again");
        let file = dir.path().join("it");
        let text =
            || String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
        // The statements, and of the audit log the log-in.
        let told = STATEMENTS as u64 + u64::from(key == "audit");
        let count =
            |name: &str| metric(&atlas, &format!("atlas_log_{name}_total{{log=\"{key}\"}}"));
        let counted = || count("entries") + count("dropped");
        patiently("what had room is written", || counted() == told);
        client.ok("SELECT 'after it'");
        patiently("it goes on", || text().contains("after it"));
        patiently("that is counted", || counted() == told + 1);
        // What had found room is there, each entry whole, none twice.
        let here = if key == "slow" {
            super::slow::parse(&text()).len()
        } else {
            text().lines().count()
        };
        assert_eq!(here as u64, count("entries"));
    }
}

#[test]
fn statements_wait_and_none_is_lost() {
    for bed in Bed::both() {
        let dir = tempfile::tempdir().expect("a folder");
        full_disk(dir.path(), "it");
        let log = format!(
            "[log]\naudit = {{ file = \"{}/it\" }}",
            dir.path().display()
        );
        let atlas = Atlas::start(config(&bed, &log));
        let answered = std::sync::atomic::AtomicUsize::new(0);
        let count = || answered.load(std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut client = Wire::connect(atlas.address(), &Login::plain());
                client.set_timeout(Duration::from_secs(60));
                for n in 0..STATEMENTS {
                    client.ok(&long(n));
                    answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
                client.quit();
            });
            // It stands still, and the process says why.
            atlas.wait_log("statements wait when too much has come together");
            let mut before = (usize::MAX, std::time::Instant::now());
            eventually("the client waits", || {
                if count() != before.0 {
                    before = (count(), std::time::Instant::now());
                }
                before.0 > 0 && before.1.elapsed() > Duration::from_millis(1500)
            });
            let stood_at = count();
            assert!(stood_at < STATEMENTS && !client.is_finished());
            // Metrics and another reload are not kept from their work.
            assert_eq!(metric(&atlas, "atlas_log_dropped_total{log=\"audit\"}"), 0);
            std::fs::remove_file(dir.path().join("it")).expect("the link");
            atlas.signal("HUP");
            client.join().expect("the client");
        });
        assert_eq!(count(), STATEMENTS);
        let file = dir.path().join("it");
        let said = || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.lines()
                .filter(|line| line.contains("\"event\":\"statement\""))
                .count()
        };
        patiently("all are written", || said() == STATEMENTS);
        // Each once, in order.
        let text = std::fs::read_to_string(&file).expect("the log");
        let numbers = text.lines().filter_map(|line| {
            let (_, said) = line.split_once("\"statement\":\"SELECT ")?;
            said.split_once(',')?.0.parse::<usize>().ok()
        });
        assert!(numbers.eq(0..STATEMENTS));
    }
}

/// A process that ends writes what it has, or says that it cannot.
#[test]
fn the_end_of_the_process() {
    let bed = Bed::mysql();
    let mut atlas = Atlas::start(config(&bed, "[log]\naudit = { file = \"audit.log\" }"));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    for n in 0..500 {
        client.ok(&format!("SELECT 'last words {n}'"));
    }
    atlas.signal("TERM");
    let mut status = None;
    eventually("it ends", || {
        status = atlas.ended();
        status.is_some()
    });
    assert!(status.expect("ended").success(), "{}", atlas.log());
    let all = lines(&atlas, "audit.log");
    assert_eq!(
        all.iter()
            .filter(|line| line.text("statement").contains("last words"))
            .count(),
        500
    );
    assert_eq!(
        all.last().map(|line| line.text("event").to_owned()),
        Some("log-out".to_owned())
    );

    let dir = tempfile::tempdir().expect("a folder");
    full_disk(dir.path(), "it");
    let log = format!(
        "[log]\naudit = {{ file = \"{}/it\" }}",
        dir.path().display()
    );
    let mut atlas = Atlas::start(config(&bed, &log));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("SELECT 1");
    atlas.wait_log("audit log (atlas): ");
    atlas.signal("TERM");
    eventually("it ends all the same", || atlas.ended().is_some());
    assert!(
        atlas.log().contains("entries of the audit log are lost"),
        "{}",
        atlas.log()
    );
}

#[test]
fn a_file_that_cannot_be_opened() {
    let bed = Bed::mariadb();
    let log = Atlas::try_start(
        config(&bed, "[log]\naudit = { file = \"no/folder/audit.log\" }"),
        &[],
    )
    .expect_err("there is no such folder");
    let wanted = "log.audit.file: no/folder/audit.log: there is no folder no/folder";
    assert!(log.contains(wanted), "{log}");
    // At a reload nothing changes.
    let atlas = Atlas::start(config(&bed, ""));
    atlas.write_config(config(
        &bed,
        "[log]\nslow = { file = \"no/folder/slow.log\" }",
    ));
    atlas.signal("HUP");
    atlas.wait_log("log.slow.file: no/folder/slow.log: there is no folder no/folder");
    atlas.write_config(config(
        &bed,
        "[log]\nslow = { file = \"slow.log\", threshold = \"0s\" }",
    ));
    atlas.signal("HUP");
    let slow = atlas.dir().join("slow.log");
    eventually("it is there", || slow.exists());
    Wire::connect(atlas.address(), &Login::plain()).ok("SELECT 'now'");
    let has = |word: &str| {
        std::fs::read_to_string(&slow)
            .unwrap_or_default()
            .contains(word)
    };
    eventually("it is written", || has("'now'"));
    // And taken out again.
    atlas.write_config(config(&bed, ""));
    atlas.signal("HUP");
    atlas.wait_log("version 3");
    Wire::connect(atlas.address(), &Login::plain()).ok("SELECT 'later'");
    Wire::connect(atlas.address(), &Login::plain()).ok("SELECT 'later'");
    assert!(!has("later"));
}

/// A log may go into a pipe that somebody reads; nobody waits for a reader that is not there, or that stands still.
#[test]
fn a_pipe() {
    let bed = Bed::mariadb();
    let mut atlas = Atlas::start(config(&bed, ""));
    let pipe = atlas.dir().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let with_pipe = config(
        &bed,
        "[log]\naudit = { file = \"pipe\", when_full = \"drop\" }",
    );
    atlas.write_config(with_pipe.clone());
    atlas.signal("HUP");
    atlas.wait_log("the audit log pipe cannot be opened");
    // Both ends, so that it opens at once.
    let mut ends = std::fs::OpenOptions::new();
    let reader = ends.read(true).write(true).open(&pipe).expect("open");
    atlas.signal("HUP");
    atlas.wait_log("log.audit.file: (none)");
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    client.ok("SELECT 'in the pipe'");
    let mut heard = std::io::BufRead::lines(std::io::BufReader::new(&reader));
    let mut found = heard.by_ref().map(|line| line.expect("a line"));
    assert!(found.any(|line| line.contains("'in the pipe'")));
    // More than a pipe holds: who reads it no more holds up neither a client nor the end.
    let long = format!("SELECT '{}'", "x".repeat(15_000));
    for _ in 0..40 {
        client.ok(&long);
    }
    drop(client);
    atlas.signal("TERM");
    assert!(atlas.wait(Duration::from_secs(30)).success());
    drop(reader);
}
