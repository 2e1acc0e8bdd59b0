//! The command `conn`: connect + authenticate + SELECT 1 + close, as often as it goes.

use crate::bed::{Bed, Samples, values};
use crate::database::Threads;
use crate::error::Result;
use crate::figures::{count, middle, with_range};
use crate::options::Options;
use crate::record::{Record, Table};
use crate::targets::Target;

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
    let threads = format!("--threads={threads}");
    bed.client(target, "conn", &[threads], options.secs, "connections")
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
