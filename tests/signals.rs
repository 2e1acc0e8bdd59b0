//! Signals at every moment: before there is anybody to act on them, many at once, and while the configuration cannot be read.

mod common;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::*;

/// The time that an end without a reason to wait may take on a busy machine.
const SOON: Duration = Duration::from_secs(15);

/// Signals whose handlers a process has set up, as a mask.
fn caught(atlas: &Atlas) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", atlas.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    line.map_or(0, |mask| {
        u64::from_str_radix(mask.trim(), 16).expect("a mask")
    })
}

fn is_caught(atlas: &Atlas, signal: u32) -> bool {
    caught(atlas) & (1 << (signal - 1)) != 0
}

const HUP: u32 = 1;
const TERM: u32 = 15;

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// What comes before the process serves is acted on when it does. The configuration is read from a pipe, so that the moment lasts.
#[test]
fn before_it_serves() {
    let bed = Bed::mariadb();
    let config = config_for(&bed).server("http_listen = \"127.0.0.1:0\"");
    let begin = || {
        let mut text = String::new();
        let atlas = Atlas::begin(|dir, path, address| {
            pipe(path);
            text = fill_in(&String::from(config.clone()), address, dir);
        });
        (atlas, text)
    };
    let (mut atlas, text) = begin();
    eventually("it holds HUP", || is_caught(&atlas, HUP));
    for _ in 0..20 {
        for signal in ["HUP", "USR1", "USR2"] {
            atlas.signal(signal);
        }
    }
    fs::write(atlas.config_path(), text).expect("write the configuration");
    atlas.wait_log("ready: ");
    assert_eq!(
        Wire::connect(atlas.address(), &Login::plain())
            .query("SELECT 1")
            .cell(),
        "1"
    );
    let http = http_of(&atlas.log()).expect("the log names the port");
    // Of the two the process cannot tell which came first.
    atlas.wait_log("line for health checks");
    assert_eq!(http_get(http, "/healthz").0, 200);
    // A pipe cannot be read again: that is said, and nothing waits for it.
    atlas.wait_log("atlas.toml: not a regular file");
    atlas.signal("HUP");
    atlas.signal("TERM");
    assert!(atlas.wait(SOON).success());
    // With nothing begun TERM is the end.
    let (mut atlas, _) = begin();
    eventually("it holds HUP", || is_caught(&atlas, HUP));
    atlas.signal("TERM");
    assert!(!atlas.wait(SOON).success());
}

/// Told to stop while it waits for servers, it waits no longer.
#[test]
fn while_it_waits_for_servers() {
    // Accepts by the kernel, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let primary = silent.local_addr().expect("an address");
    let mut atlas = Atlas::begin(|_, path, address| {
        fs::write(path, waiting(primary, address)).expect("write");
    });
    eventually("it acts on TERM", || is_caught(&atlas, TERM));
    atlas.signal("HUP");
    atlas.signal("TERM");
    assert!(atlas.wait(SOON).success(), "nothing was cut off");
    assert!(!atlas.dir().join("atlas.upgrade").exists());
    // A second one is no worse.
    let mut atlas = Atlas::begin(|_, path, address| {
        fs::write(path, waiting(primary, address)).expect("write");
    });
    eventually("it acts on TERM", || is_caught(&atlas, TERM));
    atlas.signal("TERM");
    atlas.wait_log("stopping: ");
    if atlas.ended().is_none() {
        let pid = atlas.pid().to_string();
        // It may end at this very moment.
        let _ = Command::new("sh")
            .args(["-c", "kill -s TERM \"$0\"", &pid])
            .output();
    }
    atlas.wait(SOON);
}

/// A configuration whose checks take an hour, which a start waits for.
fn waiting(primary: SocketAddr, address: SocketAddr) -> String {
    format!(
        "[server]\nlisten = [\"{address}\"]\n[monitor]\nuser = \"m\"\npassword = \"m\"\ntimeout = \"1h\"\n[[groups]]\nname = \"main\"\nprimary = \"{primary}\"\n[[users]]\nname = \"u\"\npassword = \"u\"\n"
    )
}

/// Whatever stands in the place of the configuration: nothing changes, nothing waits, and the next good one is taken.
#[test]
fn whatever_is_in_the_place_of_the_file() {
    let bed = Bed::mariadb();
    let config = config_for(&bed);
    let mut atlas = Atlas::start(config.clone());
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    let path = atlas.config_path();
    let place: [(&str, Put<'_>); 7] = [
        ("No such file or directory", &|_| {}),
        ("Is a directory|not a regular file", &|path| {
            fs::create_dir(path).expect("a folder")
        }),
        ("not a regular file", &pipe),
        ("Too many levels of symbolic links", &|path| {
            std::os::unix::fs::symlink("atlas.toml", path).expect("a link");
        }),
        ("not a regular file", &|path| {
            std::os::unix::fs::symlink("/dev/zero", path).expect("a link");
        }),
        ("not UTF-8 text", &|path| {
            fs::write(path, b"\xff\xfe[\0s\0").expect("write")
        }),
        ("at least one [[groups]]", &|path| {
            fs::write(path, "").expect("write")
        }),
    ];
    let done = |log: &str| log.matches("reload (signal): ").count();
    for (wanted, put) in place {
        clear(&path);
        put(&path);
        let log = atlas.log();
        atlas.signal("HUP");
        eventually("it was looked at", || done(&atlas.log()) > done(&log));
        let told = atlas.log().split_off(log.len());
        assert!(
            wanted.split('|').any(|text| told.contains(text)),
            "{wanted}: {told}"
        );
        assert!(told.contains("nothing has changed"), "{told}");
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
    clear(&path);
    atlas.write_config(config.server("max_connections = 77"));
    atlas.signal("HUP");
    atlas.wait_log("server.max_connections");
    // A pipe that somebody holds open and writes nothing into is no other.
    clear(&path);
    pipe(&path);
    let held = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .expect("open");
    atlas.signal("HUP");
    drop(client);
    atlas.signal("TERM");
    assert!(atlas.wait(SOON).success());
    drop(held);
}

/// Puts something in the place of the configuration.
type Put<'p> = &'p dyn Fn(&Path);

fn clear(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir(path).expect("remove");
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path).expect("remove");
    }
}

/// HUP after HUP: what is in force in the end is what the file said last, and no client notices.
#[test]
fn a_storm_of_them() {
    let bed = Bed::mariadb();
    let config = config_for(&bed);
    let mut atlas = Atlas::start(config.clone().server("http_listen = \"127.0.0.1:0\""));
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = Wire::connect(atlas.address(), &Login::plain());
                    for _ in 0..20 {
                        assert_eq!(client.query("SELECT 1").cell(), "1");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    client.quit();
                }
            });
        }
        let pid = atlas.pid().to_string();
        let script = "for i in $(seq 500); do kill -s HUP \"$0\"; kill -s USR2 \"$0\"; kill -s USR1 \"$0\"; done";
        let storm = || {
            let outcome = Command::new("sh").args(["-c", script, &pid]).status();
            assert!(outcome.expect("sh").success());
        };
        storm();
        atlas.write_config(
            config
                .server("http_listen = \"127.0.0.1:0\"")
                .server("drain_timeout = \"29s\""),
        );
        storm();
        eventually("the last one is in force", || {
            atlas.log().contains("server.drain_timeout")
        });
        let before = answered.load(Ordering::Relaxed);
        eventually("clients are served", || {
            answered.load(Ordering::Relaxed) > before + 100
        });
        is_over.store(true, Ordering::Relaxed);
    });
    atlas.signal("TERM");
    assert!(atlas.wait(SOON).success());
}
