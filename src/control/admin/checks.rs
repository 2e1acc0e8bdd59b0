//! `CHECK BACKENDS`: settings of the servers that do not fit Atlas's own, or those of the group's other servers. They are asked when
//! somebody wants to know.

use std::collections::HashMap;

use super::reports::{self, Backend};
use crate::admin::Table;
use crate::control::probe::settings;
use crate::worker::Live;

/// What is asked.
const ASK: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wait_timeout', 'max_connections', 'max_allowed_packet', \
    'sql_mode', 'character_set_server', 'collation_server', 'lower_case_table_names', 'time_zone', 'system_time_zone', 'version', \
    'read_only', 'transaction_isolation', 'tx_isolation', 'innodb_lock_wait_timeout')";

/// Settings that must be alike on all servers of a group: a statement means the same wherever it runs.
const ALIKE: &[&str] = &[
    "max_allowed_packet",
    "sql_mode",
    "character_set_server",
    "collation_server",
    "lower_case_table_names",
    "time_zone",
    "system_time_zone",
    "transaction_isolation",
    "tx_isolation",
];

type Settings = HashMap<String, String>;

pub(super) fn check(live: &Live) -> Table {
    let backends = reports::all(live);
    let answers: Vec<Result<Settings, String>> = std::thread::scope(|scope| {
        // All at once: one that hangs takes its time from nobody.
        let asked: Vec<_> = backends
            .iter()
            .map(|backend| scope.spawn(|| ask(live, backend)))
            .collect();
        asked
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("the check failed".to_owned()))
            })
            .collect()
    });
    let mut table = Table::new([
        "backend_ndx#",
        "group",
        "address",
        "level",
        "setting",
        "value",
        "should_be",
        "why",
    ]);
    for (backend, answer) in backends.iter().zip(&answers) {
        let mut findings = Vec::new();
        match answer {
            Err(why) => findings.push(finding(
                "error",
                "connection",
                why,
                "",
                "the monitor's account cannot ask it",
            )),
            Ok(settings) => {
                let primary = backends.iter().zip(&answers).find_map(|(other, answer)| {
                    let is_it = other.group == backend.group && other.is_primary();
                    answer.as_ref().ok().filter(|_| is_it)
                });
                findings.extend(own(live, backend, settings));
                if let Some(primary) = primary.filter(|_| !backend.is_primary()) {
                    findings.extend(compared(settings, primary));
                }
            }
        }
        if findings.is_empty() {
            findings.push(finding("ok", "", "", "", ""));
        }
        for [level, setting, value, should_be, why] in findings {
            table.push([
                backend.number().to_string(),
                backend.group.to_owned(),
                backend.address.to_string(),
                level,
                setting,
                value,
                should_be,
                why,
            ]);
        }
    }
    table
}

type Finding = [String; 5];

fn finding(level: &str, setting: &str, value: &str, should_be: &str, why: &str) -> Finding {
    [level, setting, value, should_be, why].map(str::to_owned)
}

fn ask(live: &Live, backend: &Backend<'_>) -> Result<Settings, String> {
    let rows = settings::ask(live, backend.host, ASK)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let [name, value] = <[String; 2]>::try_from(row).ok()?;
            Some((name, value))
        })
        .collect())
}

/// A server's settings by themselves, and beside Atlas's.
fn own(live: &Live, backend: &Backend<'_>, settings: &Settings) -> Vec<Finding> {
    let pool = &live.snapshot.config.pool;
    let mut findings = Vec::new();
    let text = |name: &str| settings.get(name).map_or("", String::as_str);
    let number = |name: &str| text(name).parse::<u64>().ok();
    if let Some(limit) = number("max_connections")
        && limit < pool.max_connections as u64
    {
        let why = "Atlas may open more connections than the server takes (pool.max_connections)";
        let should_be = format!("at least {}", pool.max_connections);
        findings.push(finding(
            "warning",
            "max_connections",
            &limit.to_string(),
            &should_be,
            why,
        ));
    }
    if let Some(timeout) = number("wait_timeout")
        && timeout <= pool.idle_timeout.as_secs()
    {
        let why = "idle connections are closed below it instead of after pool.idle_timeout";
        let should_be = format!("above {}", pool.idle_timeout.as_secs());
        findings.push(finding(
            "note",
            "wait_timeout",
            &timeout.to_string(),
            &should_be,
            why,
        ));
    }
    let is_read_only = matches!(text("read_only"), "ON" | "1");
    if backend.is_primary() && is_read_only {
        findings.push(finding(
            "error",
            "read_only",
            "ON",
            "OFF",
            "it is the primary: writes fail",
        ));
    }
    if !backend.is_primary() && !is_read_only && !text("read_only").is_empty() {
        findings.push(finding(
            "warning",
            "read_only",
            "OFF",
            "ON",
            "a replica that takes writes can come to differ from its primary",
        ));
    }
    findings
}

/// A replica's settings beside its primary's.
fn compared(settings: &Settings, primary: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ALIKE {
        if let (Some(own), Some(wanted)) = (settings.get(*name), primary.get(*name))
            && own != wanted
        {
            findings.push(finding(
                "warning",
                name,
                own,
                wanted,
                "the primary has another value: a read may be answered differently",
            ));
        }
    }
    let version = |settings: &Settings| settings.get("version").cloned().unwrap_or_default();
    let (own, wanted) = (version(settings), version(primary));
    if own.contains("MariaDB") != wanted.contains("MariaDB") {
        findings.push(finding(
            "error",
            "version",
            &own,
            &wanted,
            "the group has servers of two products",
        ));
    } else if own != wanted {
        findings.push(finding(
            "note",
            "version",
            &own,
            &wanted,
            "the primary has another version",
        ));
    }
    findings
}
