//! The command `syscalls`: what a proxy asks of the kernel per statement, counted by strace with one client.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::database::Threads;
use crate::error::{Doing, Error, Result};
use crate::figures::{count, count64};
use crate::group::Group;
use crate::machine;
use crate::mysql::{ClientError, Connection};
use crate::options::{Kind, Options};
use crate::programs::find_program;
use crate::record::{Record, Table};
use crate::sys::{self, Placement};
use crate::targets::Target;

/// Counts for every proxy among the targets.
///
/// # Errors
/// When strace is not installed or may not trace.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bed = Bed::start(options, Threads::PerConnection)?;
    for kind in &options.kinds {
        let mut table = Table::new(
            &format!(
                "system calls per statement, {}, 1 client, {} statements",
                kind.name, options.statements
            ),
            &["target", "calls", "which"],
        );
        for target in bed.targets.iter().filter(|t| t.sid().is_some()) {
            let counts = count_calls(options, target, *kind, &bed.folder)?;
            let per = |calls: u64| count64(calls) / count(options.statements);
            let total = per(counts.values().sum());
            let mut sorted: Vec<_> = counts
                .iter()
                .map(|(name, calls)| (name, per(*calls)))
                .collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
            // What comes up now and then (timers, the end of tracing) is in the sum but not in the list.
            let which = sorted
                .iter()
                .filter(|(_, calls)| *calls >= 0.01)
                .map(|(name, calls)| format!("{calls:.2} {name}"));
            table.row(&[
                target.name.clone(),
                format!("{total:.2}"),
                which.collect::<Vec<_>>().join(", "),
            ]);
            let labels = Record::new()
                .text("measure", "syscalls")
                .text("kind", kind.name)
                .text("target", &target.name);
            let record = sorted
                .iter()
                .fold(labels.number("total", total), |r, (name, calls)| {
                    r.number(name, *calls)
                });
            bed.json.put(&record)?;
        }
        table.print();
    }
    Ok(())
}

fn count_calls(
    options: &Options,
    target: &Target,
    kind: Kind,
    folder: &Path,
) -> Result<BTreeMap<String, u64>> {
    let strace =
        find_program("strace").ok_or_else(|| Error::Missing("strace is not installed".into()))?;
    let failed = |e: ClientError| Error::Failed(format!("{}: {e}", target.name));
    let mut client = Connection::open(target.address).map_err(failed)?;
    let prepared = if kind.is_prepared {
        Some(
            client
                .prepare("SELECT c FROM sbtest1 WHERE id=?")
                .map_err(failed)?,
        )
    } else {
        None
    };
    let mut select = |times: usize| -> Result<(), ClientError> {
        for id in (1..=1000).cycle().take(times) {
            match prepared {
                Some(statement) => client.execute(statement, id)?,
                None => client.query(&format!("SELECT c FROM sbtest1 WHERE id={id}"))?,
            };
        }
        Ok(())
    };
    select(100).map_err(failed)?;
    let summary = folder.join("strace.txt");
    // strace -c writes nothing when it counted nothing; an old summary must not stand in for it.
    let _ = fs::remove_file(&summary);
    let mut command = Command::new(strace);
    command.args(["-c", "-f", "-o"]).arg(&summary);
    for pid in target.sid().into_iter().flat_map(machine::session_pids) {
        command.args(["-p", &pid.to_string()]);
    }
    let mut tracer = Group::start(command, Placement::default(), folder, "strace")?;
    wait_for(|| tracer.last_words().contains("attached") || tracer.has_ended());
    thread::sleep(Duration::from_millis(200));
    if tracer.has_ended() {
        return Err(Error::Failed(format!("strace: {}", tracer.last_words())));
    }
    select(options.statements).map_err(failed)?;
    // strace counts a call when it returns, which may be after its bytes were seen here.
    thread::sleep(Duration::from_millis(100));
    sys::signal(tracer.sid(), sys::SIGINT);
    wait_for(|| tracer.has_ended());
    let text = fs::read_to_string(&summary).doing(|| format!("read {}", summary.display()))?;
    client.quit();
    Ok(parse(&text))
}

fn wait_for(mut is_done: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(5);
    while !is_done() && Instant::now() < give_up {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Calls by name from strace's summary: `% time  seconds  usecs/call  calls  [errors]  syscall`.
fn parse(summary: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in summary.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (Some(first), Some(name)) = (words.first(), words.last()) else {
            continue;
        };
        let Some(calls) = words.get(3).and_then(|w| w.parse::<u64>().ok()) else {
            continue;
        };
        if first.parse::<f64>().is_ok() && words.len() >= 5 && *name != "total" {
            *counts.entry((*name).to_owned()).or_insert(0) += calls;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_with_and_without_errors() {
        let summary = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 40.00    0.004000           2      2000           epoll_wait
 35.00    0.003500           1      2001         3 recvfrom
 25.00    0.002500           1      2000           sendto
------ ----------- ----------- --------- --------- ----------------
100.00    0.010000           1      6001         3 total
";
        let counts = parse(summary);
        let expected = [("epoll_wait", 2000), ("recvfrom", 2001), ("sendto", 2000)];
        assert_eq!(
            counts
                .iter()
                .map(|(n, c)| (n.as_str(), *c))
                .collect::<Vec<_>>(),
            expected
        );
        assert!(parse("").is_empty());
    }
}
