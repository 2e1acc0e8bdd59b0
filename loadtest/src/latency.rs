//! The command `latency`: what a proxy adds at a distance and a fixed rate. Three network namespaces in a row, everything on one core
//! that is kept awake, one client process that takes the targets in random order query by query.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::awake::KeptAwake;
use crate::bed::{Samples, values};
use crate::database::{Database, Threads};
use crate::error::{Error, Result};
use crate::figures::{count, middle, with_range};
use crate::group;
use crate::guard;
use crate::machine;
use crate::network::{self, Network, Place};
use crate::options::{Kind, Options};
use crate::programs::this_program;
use crate::record::{JsonLines, Record, Table, say};
use crate::sys;
use crate::targets::{self, Site, Target};
use crate::usage::{Meter, Parties};

/// How far the second direct target may be from the first, in percent of the median, before a run counts as disturbed.
const PAIR_BOUND_PERCENT: f64 = 0.5;

struct Setting {
    kind: Kind,
    threads: usize,
    rtt: Duration,
    rate: f64,
}

/// Measures every round trip, kind and number of threads.
///
/// # Errors
/// Without root, `ip`, TUN devices, or a control group with `cpu.idle`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let descriptors = sys::raise_descriptors(targets::DESCRIPTORS);
    let mut json = JsonLines::create(&options.json)?;
    let folder = guard::temporary_folder()?;
    let mut network = Network::new(&folder)?;
    let address = |ip: &str, port| {
        ip.parse()
            .map(|ip| SocketAddr::new(ip, port))
            .map_err(|_| Error::Failed(format!("{ip} is no address")))
    };
    let server = address(network::SERVER, 3306)?;
    eprintln!("starting the server and the targets");
    let place = network.placement(Place::Server, None)?;
    let database = Database::start(
        &folder,
        server.port(),
        place,
        Threads::PerConnection,
        options.rows,
    )?;
    let core = options.is_pinned.then_some(options.core);
    if let Some(core) = core {
        machine::pin_session(database.sid(), core);
    }
    // The links must carry packets before proxies look for the server.
    let first = options
        .rtts
        .first()
        .copied()
        .unwrap_or(Duration::from_millis(1));
    network.set_round_trip(first, core)?;
    let proxy_place = || network.placement(Place::Proxy, core);
    let site = Site {
        folder: &folder,
        listen: address(network::PROXY, 0)?.ip(),
        server,
        core: options.core,
        descriptors,
        is_here: false,
        place: &proxy_place,
    };
    let mut targets = targets::start(options, &site)?;
    // The base comes first and its pair second, also when the options name only proxies.
    targets.retain(|t| t.name != "direct");
    targets.insert(0, Target::direct("direct", server));
    targets.insert(1, Target::direct("direct2", server));
    let awake = KeptAwake::start(&folder)?;
    for rtt in &options.rtts {
        network.set_round_trip(*rtt, core)?;
        for kind in &options.kinds {
            for threads in &options.threads {
                let rate = options
                    .rate
                    .unwrap_or(if *threads == 1 { 400.0 } else { 1000.0 });
                let setting = Setting {
                    kind: *kind,
                    threads: *threads,
                    rtt: *rtt,
                    rate,
                };
                let mut samples = Samples::of(&targets);
                for run in 0..options.rounds {
                    let others = || awake.cpu() + network.links_cpu() + proxies_cpu(&targets);
                    let parties = Parties {
                        proxy: None,
                        server: database.sid(),
                        core: options.core,
                        others: &others,
                    };
                    let meter = Meter::start(parties);
                    let command = client(options, &setting, &targets)?;
                    let limit = Duration::from_secs(options.secs + 120);
                    let output = group::run(
                        command,
                        network.placement(Place::Client, core)?,
                        limit,
                        &folder,
                        "client",
                    );
                    let foreign = Record::new().number("foreign_core", meter.stop().foreign_core);
                    for target in &mut targets {
                        target.fail_if_ended()?;
                    }
                    for record in output?.lines().map(Record::from_line) {
                        let labels = Record::new()
                            .text("measure", "latency")
                            .text("kind", kind.name)
                            .number("threads", count(*threads))
                            .number("rtt_us", rtt.as_secs_f64() * 1e6)
                            .number("rate", rate)
                            .number("run", count(run));
                        json.put(&labels.with(&record).with(&foreign))?;
                        let name = record.get_text("target").to_owned();
                        samples.add(&name, record.with(&foreign));
                    }
                }
                print(&setting, &samples);
            }
        }
    }
    Ok(())
}

fn proxies_cpu(targets: &[Target]) -> Duration {
    targets
        .iter()
        .filter_map(Target::sid)
        .map(machine::session_cpu)
        .sum()
}

fn client(options: &Options, setting: &Setting, targets: &[Target]) -> Result<Command> {
    let mut command = this_program();
    command
        .args(["client", "point"])
        .args(targets.iter().map(|t| format!("{}={}", t.name, t.address)));
    command.args([
        format!("--threads={}", setting.threads),
        format!("--rate={}", setting.rate),
        format!("--secs={}", options.secs),
        format!("--windows={}", options.windows),
        format!("--block={}", options.block),
        format!("--rows={}", options.rows),
    ]);
    if setting.kind.is_prepared {
        command.arg("--prepared");
    }
    Ok(command)
}

fn print(setting: &Setting, samples: &Samples) {
    let Setting {
        kind,
        threads,
        rtt,
        rate,
    } = setting;
    let mut table = Table::new(
        &format!(
            "{}, round trip {} us, {threads} threads, {rate}/s over all targets",
            kind.name,
            rtt.as_micros()
        ),
        &[
            "target",
            "runs",
            "n",
            "p50 us",
            "p95 us",
            "p99 us",
            "d p50 us",
            "± us",
            "d p50 %",
            "d to relay us",
            "± us",
            "errors",
        ],
    );
    for (name, records) in samples.iter() {
        let of = |figure| values(records, figure);
        table.row(&[
            name.to_owned(),
            records.len().to_string(),
            middle(&of("n"), 0),
            with_range(&of("p50_us"), 0),
            middle(&of("p95_us"), 0),
            middle(&of("p99_us"), 0),
            with_range(&of("d_us"), 1),
            middle(&of("d_interval_us"), 1),
            with_range(&of("d_percent"), 2),
            middle(&of("d_relay_us"), 1),
            middle(&of("d_relay_interval_us"), 1),
            middle(&of("errors"), 0),
        ]);
    }
    table.print();
    say(&verdict(
        &samples.values("direct2", "d_percent"),
        &samples.values("direct", "foreign_core"),
    ));
}

/// Whether the figures may be believed: the A/A pair must agree in most of the runs.
fn verdict(pair: &[f64], foreign: &[f64]) -> String {
    let good = pair
        .iter()
        .filter(|p| p.abs() <= PAIR_BOUND_PERCENT)
        .count();
    let is_valid = good * 2 > pair.len();
    let shown: Vec<_> = pair.iter().map(|p| format!("{p:+.2} %")).collect();
    format!(
        "A/A pair (direct2 to direct): {}; bound ±{PAIR_BOUND_PERCENT} %; in bounds in {good} of {} runs: {}. Foreign share of the core: {}.",
        shown.join(", "),
        pair.len(),
        if is_valid {
            "valid"
        } else {
            "NOT VALID, the machine is too busy"
        },
        middle(foreign, 3)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_decides() {
        assert!(verdict(&[0.1, -0.4, 0.9], &[0.0]).contains(": valid."));
        assert!(verdict(&[0.6, -0.7, 0.1], &[0.0]).contains("NOT VALID"));
        assert!(verdict(&[], &[]).contains("NOT VALID"));
    }
}
