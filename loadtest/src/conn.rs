//! The command `conn`: connect + authenticate + SELECT 1 + close, as often as it goes.

use std::time::Duration;

use crate::bed::{Bed, Samples, values};
use crate::database::Threads;
use crate::error::{Error, Result};
use crate::figures::{count, middle, with_range};
use crate::group;
use crate::options::Options;
use crate::programs::this_program;
use crate::record::{Record, Table};
use crate::targets::Target;
use crate::usage::Meter;

/// Measures every number of client threads.
///
/// # Errors
/// When a target cannot be started or refuses log-ins.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bed = Bed::start(options, Threads::PerConnection)?;
    for threads in &options.threads {
        let mut samples = Samples::of(&bed.targets);
        for round in 0..options.rounds {
            for index in bed.order(round) {
                let Some(target) = bed.targets.get(index) else {
                    continue;
                };
                let sample = one(options, &bed, target, *threads)?;
                let labels = Record::new()
                    .text("measure", "conn")
                    .number("threads", count(*threads))
                    .number("round", count(round));
                bed.json.put(&labels.with(&sample))?;
                samples.add(&target.name, sample);
            }
        }
        print(*threads, &samples);
    }
    Ok(())
}

fn one(options: &Options, bed: &Bed, target: &Target, threads: usize) -> Result<Record> {
    let mut command = this_program();
    command.args([
        "client",
        "conn",
        &format!("{}={}", target.name, target.address),
    ]);
    command.args([
        format!("--threads={threads}"),
        format!("--secs={}", options.secs),
    ]);
    let meter = Meter::start(bed.parties(target));
    let output = group::run(
        command,
        bed.client_place(),
        Duration::from_secs(options.secs + 60),
        &bed.folder,
        "client",
    )?;
    let usage = meter.stop();
    let result = Record::from_line(&output);
    let connections = result
        .get("connections")
        .ok_or_else(|| Error::Failed(format!("the client said: {output}")))?;
    Ok(result.with(&usage.per(connections)))
}

fn print(threads: usize, samples: &Samples) {
    let mut table = Table::new(
        &format!("connect + authenticate + SELECT 1 + close, {threads} client threads"),
        &[
            "target",
            "n",
            "conn/s",
            "p50 us",
            "p99 us",
            "proxy CPU us",
            "server CPU us",
            "errors",
            "foreign",
        ],
    );
    for (name, records) in samples.iter() {
        let of = |figure| values(records, figure);
        let proxy = of("proxy_us");
        table.row(&[
            name.to_owned(),
            records.len().to_string(),
            with_range(&of("conn_per_s"), 0),
            middle(&of("p50_us"), 0),
            middle(&of("p99_us"), 0),
            if proxy.iter().any(|us| *us > 0.0) {
                middle(&proxy, 0)
            } else {
                "-".into()
            },
            middle(&of("server_us"), 0),
            format!("{:.0}", of("errors").iter().sum::<f64>()),
            middle(&of("foreign"), 2),
        ]);
    }
    table.print();
}
