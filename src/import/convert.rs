//! What became of each key of the original's `[mysql-proxy]` and `[group-N]`.

use super::cnf::{Cnf, Entry, Group};
use super::paper::{Paper, list, string};
use super::{Findings, Seal, accounts, servers, shards};
use crate::config;

/// Keys whose meaning is gone, each with what there is to say about it.
const GONE: &[(&str, &str)] = &[
    ("admin-lua-script", "there are no scripts"),
    ("lua-path", "there are no scripts"),
    ("lua-cpath", "there are no scripts"),
    ("proxy-lua-script", "there are no scripts"),
    ("plugins", "there are no plugins"),
    ("plugin-dir", "there are no plugins"),
    ("no-proxy", "it did nothing"),
    ("proxy-skip-profiling", "it did nothing"),
    ("proxy-fix-bug-25371", "it did nothing"),
    ("proxy-pool-no-change-user", "it did nothing"),
    (
        "basedir",
        "relative paths start from the folder of the configuration",
    ),
    ("verbose-shutdown", "a stop is always in the log"),
    ("log-backtrace-on-crash", "a fault is always in the log"),
    (
        "log-use-syslog",
        "the log goes to stderr, which systemd keeps in its journal",
    ),
    (
        "log-path",
        "the log goes to stderr, which systemd keeps in its journal",
    ),
    ("instance", "there are no names of instances"),
    (
        "daemon",
        "it runs in the foreground: see scripts/atlas.service",
    ),
    (
        "keepalive",
        "systemd starts it again after a fault: see scripts/atlas.service",
    ),
    ("user", "User= in the systemd unit"),
    (
        "max-open-files",
        "the limit is raised as far as it may be: LimitNOFILE= in the systemd unit",
    ),
    (
        "charset",
        "clients choose their character set themselves; it cannot be overridden",
    ),
    ("wait-timeout", "idle clients are not closed by Atlas"),
];

/// Keys that are turned into something.
const KEPT: &[&str] = &[
    "proxy-address",
    "admin-address",
    "manager-address",
    "admin-username",
    "admin-password",
    "proxy-backend-addresses",
    "proxy-read-only-backend-addresses",
    "pwds",
    "proxy-password",
    "tables",
    "client-ips",
    "lvs-ips",
    "sql-log",
    "sql-log-slow",
    "event-threads",
    "max_conn_for_a_backend",
    "min-idle-connections",
    "log-level",
];

/// The keys of a `[group-N]`.
const OF_A_GROUP: &[&str] = &[
    "proxy-backend-addresses",
    "proxy-read-only-backend-addresses",
];

pub(super) fn convert(
    old: &Cnf,
    key_file: Option<&str>,
    findings: &mut Findings,
    seal: Seal<'_>,
) -> String {
    let none = Group {
        name: String::new(),
        line: 1,
        entries: Vec::new(),
    };
    let main = old.groups.iter().find(|group| group.name == "mysql-proxy");
    if main.is_none() {
        findings.error(
            1,
            "",
            "there is no [mysql-proxy]: this is no configuration of the original",
        );
    }
    let main = main.unwrap_or(&none);
    let mut paper = Paper::default();
    head(&mut paper, findings);
    gone(&mut paper, main, findings);
    server(&mut paper, main, key_file, findings);
    accounts::admin(&mut paper, main, findings, seal);
    pool(&mut paper, main);
    servers::group(&mut paper, "main", main, findings);
    let mut has_shards = false;
    for other in &old.groups {
        if let Some(number) = other.name.strip_prefix("group-") {
            has_shards = true;
            strangers(other, findings);
            servers::group(&mut paper, &shards::group_name(number), other, findings);
        } else if !other.name.starts_with("shardrule-") && other.name != "mysql-proxy" {
            findings.warning(
                other.line,
                "",
                format!(
                    "[{}] was not looked at by the original: left out",
                    other.name
                ),
            );
        }
    }
    accounts::users(&mut paper, main, has_shards, findings, seal);
    shards::sub_tables(&mut paper, main, findings);
    shards::rules(&mut paper, old, findings);
    safety(&mut paper);
    log(&mut paper, main, findings);
    paper.into_text()
}

fn head(paper: &mut Paper, findings: &Findings) {
    paper.comment(&format!(
        "Made by `atlas import-cnf` from {}.",
        findings.file
    ));
    paper.comment("`atlas check` tells whether it can be used. What is different for everybody:");
    for text in [
        "locking reads, SET, and whatever else only the primary can answer no longer go to replicas;",
        "replicas that are more than 10 s behind serve no reads (groups.max_lag), which the first account must be able to ask for;",
        "clients are told the primary's own version, not 5.0.81-log (server.server_version);",
        "the log goes to stderr.",
    ] {
        paper.comment(&format!("  - {text}"));
    }
}

/// Keys without a place in the new configuration: those that the operator should know of become comments.
fn gone(paper: &mut Paper, main: &Group, findings: &mut Findings) {
    let mut is_first = true;
    for entry in &main.entries {
        if KEPT.contains(&entry.key.as_str()) {
            continue;
        }
        let Some((key, why)) = GONE.iter().find(|(key, _)| *key == entry.key) else {
            findings.warning(
                entry.line,
                &entry.key,
                "the original did not know this key either: left out",
            );
            continue;
        };
        if std::mem::take(&mut is_first) {
            paper.blank();
            paper.comment("Keys that have no place here, with their lines in the old file:");
        }
        paper.comment(&format!("  {}: {key} = {}: {why}", entry.line, entry.value));
    }
}

/// Keys that stand in a group where the original did not look for them.
fn strangers(group: &Group, findings: &mut Findings) {
    for entry in &group.entries {
        if OF_A_GROUP.contains(&entry.key.as_str()) {
            continue;
        }
        let is_known =
            KEPT.contains(&entry.key.as_str()) || GONE.iter().any(|(key, _)| *key == entry.key);
        let text = if is_known {
            format!(
                "stands in [{}], where the original did not see it: left out; it belongs under [mysql-proxy]",
                group.name
            )
        } else {
            "the original did not know this key: left out".to_owned()
        };
        findings.warning(entry.line, &entry.key, text);
    }
}

fn server(paper: &mut Paper, main: &Group, key_file: Option<&str>, findings: &mut Findings) {
    paper.section("[server]");
    match main.get("proxy-address") {
        Some(entry) => {
            let address = listen_address(&entry.value);
            if let Err(why) = config::listen_address(&address) {
                findings.error(entry.line, &entry.key, why);
            }
            paper.key("listen", &list(&[string(&address)]));
        }
        None => findings.error(
            main.line,
            "proxy-address",
            "missing: the original needs it; here it is 0.0.0.0:1234 by default",
        ),
    }
    if let Some(entry) = admin_address(main) {
        let address = listen_address(&entry.value);
        match address.parse::<std::net::SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() => {
                findings.warning(
                    entry.line,
                    &entry.key,
                    "the admin port can be reached from other machines: 127.0.0.1 is safer",
                );
            }
            Ok(_) => {}
            Err(_) => findings.error(
                entry.line,
                &entry.key,
                "an IP address and a port are needed",
            ),
        }
        paper.key("admin_listen", &string(&address));
    }
    if let Some(path) = key_file {
        paper.key("key_file", &string(path));
    }
    if let Some(entry) = main.get("event-threads") {
        paper.comment(&format!(
            "event-threads = {}: one event loop for each core is enough, so that is what 0 means.",
            entry.value
        ));
        paper.key("workers", "0");
    }
    client_networks(paper, main, findings);
    if let Some(entry) = main.get("lvs-ips") {
        paper.comment(&format!("lvs-ips = {}: what takes this instance offline (USR2) is seen by those who ask for /readyz,", entry.value));
        paper.comment("which needs http_listen, such as \"127.0.0.1:9104\". If the director sends PROXY headers, name it in proxy_protocol_from.");
    }
}

fn admin_address(main: &Group) -> Option<&Entry> {
    main.get("admin-address")
        .or_else(|| main.get("manager-address"))
}

/// The original's way to write an address: 3306 without a port, everything without a host, a path for a unix socket.
fn listen_address(text: &str) -> String {
    match text.rsplit_once(':') {
        _ if text.starts_with('/') => format!("unix:{text}"),
        Some(("", port)) => format!("0.0.0.0:{port}"),
        Some(("localhost", port)) => format!("127.0.0.1:{port}"),
        Some(_) => text.to_owned(),
        None => format!("{text}:3306"),
    }
}

fn client_networks(paper: &mut Paper, main: &Group, findings: &mut Findings) {
    let Some(entry) = main
        .get("client-ips")
        .filter(|entry| entry.items().next().is_some())
    else {
        return;
    };
    let mut networks = Vec::new();
    for item in entry.items() {
        let octets = item.trim_end_matches('.').split('.').count();
        match config::network(item) {
            Ok(_) if octets == 1 && !item.contains([':', '/']) => {
                findings.warning(
                    entry.line,
                    &entry.key,
                    format!("{item} never let anybody in: left out; {item}.0.0.0/8 would"),
                );
            }
            Ok(_) => networks.push(string(item)),
            Err(why) => {
                findings.error(entry.line, &entry.key, why);
                networks.push(string(item));
            }
        }
    }
    let directors = main.get("lvs-ips");
    for item in directors.iter().flat_map(|entry| entry.items()) {
        match config::network(item) {
            Ok(_) => networks.push(string(item)),
            Err(why) => findings.warning(directors.map_or(1, |entry| entry.line), "lvs-ips", why),
        }
    }
    if directors.is_some_and(|entry| entry.items().next().is_some()) {
        paper.comment(
            "client-ips, and the addresses of lvs-ips, which were meant to get in and did not.",
        );
    }
    if networks.is_empty() {
        // An empty list would let everybody in.
        findings.error(
            entry.line,
            &entry.key,
            "nobody could connect: name who may; only this machine may until then",
        );
        networks.push(string("127.0.0.1"));
    }
    paper.key("client_networks", &list(&networks));
}

fn pool(paper: &mut Paper, main: &Group) {
    let (max, min) = (
        main.get("max_conn_for_a_backend"),
        main.get("min-idle-connections"),
    );
    if max.is_none() && min.is_none() {
        return;
    }
    paper.section("[pool]");
    let bound = max.map(|entry| (entry, entry.number().min(100_000)));
    match bound {
        Some((_, 0)) => paper
            .comment("max_conn_for_a_backend = 0: there is always a bound; 200 unless it is set."),
        Some((entry, bound)) => {
            paper.comment(&format!("max_conn_for_a_backend = {}: it bounded nothing; here it does, all workers together.", entry.value));
            paper.key("max_connections", &bound.to_string());
        }
        None => {}
    }
    if let Some(entry) = min {
        let most = bound.map_or(200, |(_, bound)| if bound == 0 { 200 } else { bound });
        paper.comment(&format!("min-idle-connections = {}: version 2 did nothing with it; here so many are opened at the start.", entry.value));
        paper.key("min_idle", &entry.number().min(most).to_string());
    }
}

fn safety(paper: &mut Paper) {
    paper.section("[safety]");
    paper.comment("What the original always refused; here it can be turned off.");
    paper.key("require_where", "true");
    paper.key("refuse_sleep", "true");
}

fn log(paper: &mut Paper, main: &Group, findings: &mut Findings) {
    paper.section("[log]");
    let level = main
        .get("log-level")
        .map_or("critical", |entry| entry.value.as_str());
    let now = match level {
        "error" | "critical" => "error",
        "warning" => "warn",
        "debug" => "debug",
        "message" | "info" => "info",
        other => {
            let line = main.get("log-level").map_or(main.line, |entry| entry.line);
            findings.warning(
                line,
                "log-level",
                format!("{other} is no level of the original: it is info now"),
            );
            "info"
        }
    };
    if matches!(level, "error" | "critical") {
        paper.comment(&format!("log-level = {level}: \"info\" also tells what happens rarely, such as servers that come and go."));
    }
    paper.key("level", &string(now));
    let is_on = main.get("sql-log").filter(|entry| {
        ["ON", "REALTIME"]
            .iter()
            .any(|word| entry.value.eq_ignore_ascii_case(word))
    });
    let slow = main.get("sql-log-slow").filter(|entry| entry.number() > 0);
    match (is_on, slow) {
        (Some(_), Some(slow)) => {
            paper.comment(&format!(
                "sql-log with sql-log-slow = {}: in MySQL's slow-log format.",
                slow.value
            ));
            let threshold = string(&format!("{}ms", slow.number().min(86_400_000)));
            paper.key(
                "slow",
                &format!(
                    "{{ file = {}, threshold = {threshold} }}",
                    string(&log_file(main, "slow.log"))
                ),
            );
        }
        (Some(log), None) => {
            paper.comment(&format!(
                "sql-log = {}: every statement, as JSON lines.",
                log.value
            ));
            paper.key(
                "audit",
                &format!("{{ file = {} }}", string(&log_file(main, "audit.json"))),
            );
        }
        (None, Some(slow)) => {
            paper.comment(&format!("sql-log-slow = {}: without effect, because sql-log was OFF. Here the slow log stands alone:", slow.value));
            paper.comment(&format!(
                "slow = {{ file = \"slow.log\", threshold = \"{}ms\" }}",
                slow.number().min(86_400_000)
            ));
        }
        (None, None) => {}
    }
}

/// A file in the folder of the old logs.
fn log_file(main: &Group, name: &str) -> String {
    let folder = main
        .get("log-path")
        .map_or("", |entry| entry.value.trim_end_matches('/'));
    let instance = main
        .get("instance")
        .map_or(String::new(), |entry| format!("{}-", entry.value));
    if folder.is_empty() {
        format!("{instance}{name}")
    } else {
        format!("{folder}/{instance}{name}")
    }
}
