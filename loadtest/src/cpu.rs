//! The command `cpu`: what a statement costs. Everything is on one core and in a closed loop, so there are no wake-ups across cores
//! and no idle gaps, and CPU time per statement repeats well.

use crate::bed::{Bed, Samples, values};
use crate::database::Threads;
use crate::error::Result;
use crate::figures::{count, median, middle, with_range};
use crate::options::{Kind, Options};
use crate::record::{Record, Table, say};
use crate::sysbench;

/// Measures every kind of workload with every number of threads.
///
/// # Errors
/// When a program is missing or a run fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bed = Bed::start(options, Threads::PerConnection)?;
    let mut disturbed = 0;
    let mut total = 0;
    for kind in &options.kinds {
        let threads = if kind.is_point() {
            &options.threads
        } else {
            &options.oltp_threads
        };
        for threads in threads {
            let samples = measure(options, &mut bed, *kind, *threads)?;
            let foreign: Vec<f64> = samples
                .iter()
                .flat_map(|(_, records)| values(records, "foreign"))
                .collect();
            total += foreign.len();
            disturbed += foreign.iter().filter(|f| **f > options.max_foreign).count();
            print(options, *kind, *threads, &samples);
        }
    }
    if disturbed > 0 {
        say(&format!(
            "NOT QUIET: in {disturbed} of {total} samples other programs took more than {} of the machine: \
             compare within a table only, and repeat on a quiet machine",
            options.max_foreign
        ));
    }
    Ok(())
}

fn measure(options: &Options, bed: &mut Bed, kind: Kind, threads: usize) -> Result<Samples> {
    let mut samples = Samples::of(&bed.targets);
    for round in 0..options.rounds {
        for index in bed.order(round) {
            let Some(target) = bed.targets.get(index) else {
                continue;
            };
            let mut best: Option<Record> = None;
            for _ in 0..options.attempts {
                let sample = sysbench::run(options, bed, target, kind, threads)?;
                let foreign = |r: &Record| r.get("foreign").unwrap_or(1.0);
                let is_quiet = foreign(&sample) <= options.max_foreign;
                if best.as_ref().is_none_or(|b| foreign(&sample) < foreign(b)) {
                    best = Some(sample);
                }
                if is_quiet {
                    break;
                }
            }
            let Some(sample) = best else { continue };
            eprintln!(
                "{} threads={threads} round {} {}: {:.0} q/s, proxy {:.1} us, server {:.1} us, foreign {:.2}",
                kind.name,
                round + 1,
                target.name,
                sample.get("qps").unwrap_or(0.0),
                sample.get("proxy_us").unwrap_or(0.0),
                sample.get("server_us").unwrap_or(0.0),
                sample.get("foreign").unwrap_or(0.0),
            );
            let labels = Record::new()
                .text("measure", "cpu")
                .text("kind", kind.name)
                .text("target", &target.name)
                .number("threads", count(threads))
                .number("round", count(round));
            bed.json.put(&labels.with(&sample))?;
            samples.add(&target.name, sample);
        }
        for target in &mut bed.targets {
            target.fail_if_ended()?;
        }
    }
    Ok(samples)
}

fn print(options: &Options, kind: Kind, threads: usize, samples: &Samples) {
    let place = if options.is_pinned {
        "one core"
    } else {
        "not pinned"
    };
    let mut table = Table::new(
        &format!("{}, {threads} client threads, {place}", kind.name),
        &[
            "target",
            "n",
            "QPS",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "proxy CPU s/M",
            "x relay",
            "server CPU s/M",
            "client CPU s/M",
            "errors",
            "foreign",
            "foreign on core",
        ],
    );
    let floor = median(&samples.values("relay", "proxy_us"));
    for (name, records) in samples.iter() {
        let of = |figure| values(records, figure);
        let proxy = of("proxy_us");
        let is_proxy = proxy.iter().any(|us| *us > 0.0);
        let ratio = floor
            .zip(median(&proxy))
            .filter(|(floor, _)| is_proxy && *floor > 0.0);
        table.row(&[
            name.to_owned(),
            records.len().to_string(),
            with_range(&of("qps"), 0),
            middle(&of("p50_ms"), 3),
            middle(&of("p95_ms"), 3),
            middle(&of("p99_ms"), 3),
            if is_proxy {
                with_range(&proxy, 1)
            } else {
                "-".into()
            },
            ratio.map_or_else(|| "-".into(), |(floor, us)| format!("{:.2}", us / floor)),
            with_range(&of("server_us"), 1),
            middle(&of("client_us"), 1),
            format!("{:.0}", of("errors").iter().sum::<f64>()),
            middle(&of("foreign"), 2),
            middle(&of("foreign_core"), 2),
        ]);
    }
    table.print();
}
