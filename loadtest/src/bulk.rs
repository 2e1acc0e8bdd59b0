//! The command `bulk`: one large result to a fast and to a slow reader.

use std::time::Duration;

use crate::bed::{Bed, Samples, values};
use crate::database::Threads;
use crate::error::{Error, Result};
use crate::figures::{count, count64, middle, with_range};
use crate::group;
use crate::machine;
use crate::options::Options;
use crate::programs::this_program;
use crate::record::{Record, Table};
use crate::targets::Target;
use crate::usage::Meter;

/// Size of one row's only value, and how the row is called in the tables.
const ROWS: [(u64, &str); 2] = [(1000, "1 kB"), (1_000_000, "1 MB")];

/// Measures both sizes of rows with both readers; the slow reader once.
///
/// # Errors
/// When a target cannot be started or the result does not arrive whole.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bed = Bed::start(options, Threads::PerConnection)?;
    for (row_bytes, row_name) in ROWS {
        for (reader, bytes_per_second, rounds) in [
            ("fast", 0, options.rounds),
            ("slow", options.slow_mb_per_second * 1_000_000, 1),
        ] {
            let mut samples = Samples::of(&bed.targets);
            for round in 0..rounds {
                for index in bed.order(round) {
                    let Some(target) = bed.targets.get(index) else {
                        continue;
                    };
                    eprintln!(
                        "{row_name} rows, {reader} reader, round {}: {}",
                        round + 1,
                        target.name
                    );
                    let sample = one(options, &bed, target, row_bytes, bytes_per_second)?;
                    let labels = Record::new()
                        .text("measure", "bulk")
                        .text("rows", row_name)
                        .text("reader", reader);
                    bed.json
                        .put(&labels.number("round", count(round)).with(&sample))?;
                    samples.add(&target.name, sample);
                }
            }
            print(
                &format!("{} MiB in {row_name} rows, {reader} reader", options.mib),
                &samples,
            );
        }
    }
    Ok(())
}

fn one(
    options: &Options,
    bed: &Bed,
    target: &Target,
    row_bytes: u64,
    bytes_per_second: u64,
) -> Result<Record> {
    let bytes = options.mib * 1024 * 1024;
    let rows = bytes.div_ceil(row_bytes);
    let mut command = this_program();
    command.args([
        "client",
        "bulk",
        &format!("{}={}", target.name, target.address),
    ]);
    command.arg(format!(
        "--sql=SELECT REPEAT('x', {row_bytes}) FROM seq_1_to_{rows}"
    ));
    command.arg(format!("--bytes-per-second={bytes_per_second}"));
    let memory = |key| {
        target
            .sid()
            .map_or(0, |sid| machine::session_memory_kib(sid, key))
    };
    target.sid().into_iter().for_each(machine::reset_peak);
    let before = memory("VmRSS");
    let paced = bytes.checked_div(bytes_per_second).unwrap_or(0);
    let limit = Duration::from_secs(60 + paced + options.mib / 4);
    let meter = Meter::start(bed.parties(target));
    let output = group::run(command, bed.client_place(), limit, &bed.folder, "client")?;
    let usage = meter.stop();
    let growth = count64(memory("VmHWM")) - count64(before);
    let result = Record::from_line(&output);
    if result.get("rows") != Some(count64(rows)) {
        return Err(Error::Failed(format!(
            "{}: {rows} rows expected, the client said: {output}",
            target.name
        )));
    }
    Ok(result
        .number("proxy_s", usage.proxy)
        .number("server_s", usage.server)
        .number("foreign", usage.foreign)
        .number("rss_before_kib", count64(before))
        .number("peak_growth_kib", growth))
}

fn print(title: &str, samples: &Samples) {
    let mut table = Table::new(
        title,
        &[
            "target",
            "n",
            "MB/s",
            "first row ms",
            "proxy CPU s",
            "server CPU s",
            "peak RSS growth KiB",
            "foreign",
        ],
    );
    for (name, records) in samples.iter() {
        let of = |figure| values(records, figure);
        let is_proxy = of("rss_before_kib").iter().any(|kib| *kib > 0.0);
        let proxy = |text: String| if is_proxy { text } else { "-".into() };
        table.row(&[
            name.to_owned(),
            records.len().to_string(),
            with_range(&of("mb_per_s"), 0),
            with_range(&of("first_row_ms"), 1),
            proxy(middle(&of("proxy_s"), 2)),
            middle(&of("server_s"), 2),
            proxy(with_range(&of("peak_growth_kib"), 0)),
            middle(&of("foreign"), 2),
        ]);
    }
    table.print();
}
