//! Who may use whom. What decides is pure: it names no sockets, clocks, threads, files or random source, so that it can be
//! tested with made-up inputs alone.

use crate::paths::{is_test_file, paths, without_tests};
use crate::{report, sources};

/// Each room of `src`, and the rooms that it may name with `crate::`. A room may always name itself.
#[rustfmt::skip]
const ROOMS: &[(&str, &[&str])] = &[
    // Pure formats. `Secret` is at home in `auth`.
    ("wire", &[]),
    ("sql", &[]),
    ("auth", &["wire"]),
    ("config", &["auth"]),
    ("metrics", &[]),
    ("record", &["wire", "sql", "config"]),
    ("mirror", &["wire", "sql", "config", "record"]),
    ("import", &["auth", "config"]),
    // Pure decisions. What a server said about itself (its capabilities, whose grammar it has) is kept by `pool`.
    ("pool", &["wire", "sql", "config"]),
    ("shard", &["sql", "wire", "config"]),
    ("route", &["sql", "config", "mirror", "shard", "pool"]),
    ("snapshot", &["wire", "sql", "auth", "config", "shard", "route", "pool"]),
    ("session", &["wire", "sql", "auth", "config", "record", "mirror", "shard", "route", "pool", "snapshot"]),
    ("admin", &["wire", "auth", "config"]),
    // The shell of the data plane.
    ("worker", &["wire", "sql", "auth", "config", "metrics", "record", "mirror", "import", "pool", "shard", "route", "snapshot", "session"]),
    // The control plane.
    ("control", &["wire", "sql", "auth", "config", "metrics", "record", "mirror", "import", "pool", "shard", "route", "snapshot", "session", "worker", "admin"]),
    // Bodies of the fuzz targets.
    ("fuzzing", &["wire", "sql", "auth", "config", "pool", "shard", "snapshot", "session"]),
    // Assembly.
    ("server", &["auth", "config", "metrics", "pool", "shard", "route", "snapshot", "session", "worker", "admin", "control"]),
    ("cli", &["sql", "config", "import", "shard", "route", "snapshot", "session", "control", "server"]),
    ("lib", &[]),
    ("main", &[]),
];

/// Rooms that decide or describe, and do nothing.
const PURE: &[&str] = &[
    "wire", "sql", "auth", "config", "metrics", "record", "mirror", "import", "pool", "shard",
    "route", "session", "snapshot", "admin",
];

/// What a pure room must not name: a path is banned with everything below it.
const BANNED: &[&str] = &[
    "mio",
    "socket2",
    "libc",
    "rustls",
    "signal_hook",
    "env_logger",
    "std::thread",
    "std::fs",
    "std::process",
    "std::env",
    "std::os",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "std::net::*",
    "Instant::now",
    "SystemTime::now",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "aws_lc_rs::rand",
    "rand",
    "getrandom",
    "fastrand",
];

/// The room of a file: `src/wire/header.rs` and `src/wire.rs` are both of `wire`.
fn room(name: &str) -> &str {
    let name = name.trim_start_matches("src/");
    name.split('/')
        .next()
        .unwrap_or(name)
        .trim_end_matches(".rs")
}

#[test]
fn rooms_use_only_what_is_below_them() {
    let mut findings = Vec::new();
    for (name, text) in sources(&["src"]) {
        let room = room(&name);
        let Some((_, allowed)) = ROOMS.iter().find(|(other, _)| *other == room) else {
            findings.push(format!(
                "{name}: the room `{room}` is not in the table of layers"
            ));
            continue;
        };
        if is_test_file(&name) {
            continue;
        }
        for (line, path) in paths(without_tests(&text)) {
            if path.starts_with("super::super::") && name.matches('/').count() < 3 {
                findings.push(format!(
                    "{name}:{line}: `{path}` leaves its room: write crate::"
                ));
            }
            let Some(used) = path
                .strip_prefix("crate::")
                .and_then(|path| path.split("::").next())
            else {
                continue;
            };
            let is_room = ROOMS.iter().any(|(other, _)| *other == used);
            if is_room && used != room && !allowed.contains(&used) {
                findings.push(format!(
                    "{name}:{line}: `{room}` may not use `{used}` ({path})"
                ));
            }
        }
    }
    report(&findings);
}

#[test]
fn the_table_of_layers_has_no_circle() {
    // Each room uses only rooms above it in the table.
    for (index, (name, allowed)) in ROOMS.iter().enumerate() {
        for used in *allowed {
            let at = ROOMS.iter().position(|(other, _)| other == used);
            assert!(at.is_some_and(|at| at < index), "{name} uses {used}");
        }
    }
}

#[test]
fn what_decides_does_nothing() {
    let mut findings = Vec::new();
    for (name, text) in sources(&["src"]) {
        if !PURE.contains(&room(&name)) || is_test_file(&name) {
            continue;
        }
        for (line, path) in paths(without_tests(&text)) {
            let is_banned = |banned: &&&str| {
                path == ***banned
                    || path
                        .strip_prefix(**banned)
                        .is_some_and(|rest| rest.starts_with("::"))
            };
            if let Some(banned) = BANNED.iter().find(is_banned)
                && (path.contains("::") || text.contains(&format!("use {path}")))
            {
                findings.push(format!("{name}:{line}: a pure room names `{banned}`"));
            }
        }
    }
    report(&findings);
}
