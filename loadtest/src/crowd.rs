//! The command `crowd`: many clients that ask all the time, through few server connections and through as many as there are clients.
//! The server has a core of its own, as it has a machine of its own where proxies are used: the question is how much it gets done.

use crate::bed::{Bed, Samples, values};
use crate::database::Threads;
use crate::error::Result;
use crate::figures::{count, count64, median, middle, with_range};
use crate::options::Options;
use crate::record::{Record, Table};
use crate::targets::Target;

/// Measures every target with all clients.
///
/// # Errors
/// When a target cannot be started or a statement fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bed = Bed::start(options, Threads::PerConnection)?;
    let mut samples = Samples::of(&bed.targets);
    for round in 0..options.rounds {
        for index in bed.order(round) {
            let Some(target) = bed.targets.get(index) else {
                continue;
            };
            let sample = one(options, &bed, target)?;
            let labels = Record::new()
                .text("measure", "crowd")
                .number("round", count(round));
            bed.json.put(&labels.with(&sample))?;
            eprintln!(
                "round {} {}: {:.0} q/s, at most {:.0} server connections",
                round + 1,
                target.name,
                sample.get("qps").unwrap_or(0.0),
                sample.get("server_connections").unwrap_or(0.0),
            );
            samples.add(&target.name, sample);
        }
        for target in &mut bed.targets {
            target.fail_if_ended()?;
        }
    }
    print(options, &samples);
    Ok(())
}

fn one(options: &Options, bed: &Bed, target: &Target) -> Result<Record> {
    let words = [
        format!("--threads={}", options.clients),
        format!("--rows={}", options.rows),
    ];
    bed.database.forget_most_connections()?;
    let sample = bed.client(target, "crowd", &words, options.secs, "statements")?;
    let connections = bed.database.most_connections()?;
    Ok(sample.number("server_connections", count64(connections)))
}

fn print(options: &Options, samples: &Samples) {
    let mut table = Table::new(
        &format!(
            "text point queries, {} clients, Atlas with at most {} server connections",
            options.clients,
            options
                .server_connections
                .map_or_else(|| "as many".into(), |n| n.to_string()),
        ),
        &[
            "target",
            "n",
            "QPS",
            "x direct",
            "p50 ms",
            "p99 ms",
            "most server connections",
            "proxy CPU s/M",
            "server CPU s/M",
            "client CPU s/M",
            "errors",
            "foreign",
        ],
    );
    let direct = median(&samples.values("direct", "qps"));
    for (name, records) in samples.iter() {
        let of = |figure| values(records, figure);
        let qps = of("qps");
        let ratio = direct.zip(median(&qps)).filter(|(direct, _)| *direct > 0.0);
        table.row(&[
            name.to_owned(),
            records.len().to_string(),
            with_range(&qps, 0),
            ratio.map_or_else(
                || "-".into(),
                |(direct, qps)| format!("{:.2}", qps / direct),
            ),
            middle(&of("p50_ms"), 1),
            middle(&of("p99_ms"), 1),
            middle(&of("server_connections"), 0),
            middle(&of("proxy_us"), 1),
            with_range(&of("server_us"), 1),
            middle(&of("client_us"), 1),
            format!("{:.0}", of("errors").iter().sum::<f64>()),
            middle(&of("foreign"), 2),
        ]);
    }
    table.print();
}
