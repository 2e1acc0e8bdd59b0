//! Running sysbench and reading what it prints.

use std::process::Command;
use std::time::Duration;

use crate::bed::Bed;
use crate::database::TABLES;
use crate::error::{Error, Result};
use crate::figures::{count, count64};
use crate::group;
use crate::mysql::{PASSWORD, SCHEMA, USER};
use crate::options::{Kind, Options};
use crate::programs::find_program;
use crate::record::Record;
use crate::targets::Target;
use crate::usage::Meter;

/// One closed-loop run of `secs` seconds against a target.
///
/// # Errors
/// When sysbench is not installed, fails, or prints no result.
pub(crate) fn run(
    options: &Options,
    bed: &Bed,
    target: &Target,
    kind: Kind,
    threads: usize,
) -> Result<Record> {
    let program = find_program("sysbench")
        .ok_or_else(|| Error::Missing("sysbench is not installed".into()))?;
    let mut command = Command::new(program);
    command.arg(kind.script).args([
        format!("--mysql-host={}", target.address.ip()),
        format!("--mysql-port={}", target.address.port()),
        format!("--mysql-user={USER}"),
        format!("--mysql-password={PASSWORD}"),
        format!("--mysql-db={SCHEMA}"),
        format!("--tables={TABLES}"),
        format!("--table-size={}", options.rows),
        format!("--threads={threads}"),
        format!("--time={}", options.secs),
        format!(
            "--db-ps-mode={}",
            if kind.is_prepared { "auto" } else { "disable" }
        ),
        "--histogram=on".into(),
        "--percentile=99".into(),
        "--rand-type=uniform".into(),
        // deadlock, record changed, lock wait timeout: part of oltp_read_write with many threads
        "--mysql-ignore-errors=1213,1020,1205".into(),
        "run".into(),
    ]);
    let limit = Duration::from_secs(options.secs + 60);
    let meter = Meter::start(bed.parties(target));
    let output = group::run(command, bed.client_place(), limit, &bed.folder, "sysbench");
    let usage = meter.stop();
    let output = output.map_err(|e| Error::Failed(format!("through {}: {e}", target.name)))?;
    let result = parse(&output)
        .ok_or_else(|| Error::Failed(format!("sysbench printed no result: {output}")))?;
    let queries = result.get("queries").unwrap_or(0.0);
    let average = average_ms(&result, threads);
    Ok(result
        .with(&usage.per(queries))
        .number("average_ms", average))
}

/// The mean time of a transaction in a closed loop follows from the rate; sysbench's own is rounded to 10 us.
fn average_ms(result: &Record, threads: usize) -> f64 {
    result
        .get("tps")
        .filter(|tps| *tps > 0.0)
        .map_or(0.0, |tps| count(threads) / tps * 1000.0)
}

/// Statements, rates, errors and quantiles (in ms, of transactions; a point query is one).
fn parse(output: &str) -> Option<Record> {
    let after = |name: &str| {
        output
            .lines()
            .find_map(|l| l.trim_start().strip_prefix(name))
            .map(str::trim_start)
    };
    let first = |text: &str| text.split_ascii_whitespace().next()?.parse::<f64>().ok();
    let rate = |text: &str| first(text.split_once('(')?.1);
    let queries = after("queries:")?;
    let histogram: Vec<(f64, u64)> = output.lines().filter_map(histogram_line).collect();
    Some(
        Record::new()
            .number("queries", first(queries)?)
            .number("qps", rate(queries)?)
            .number("tps", rate(after("transactions:")?)?)
            .number("p50_ms", quantile(&histogram, 0.50))
            .number("p95_ms", quantile(&histogram, 0.95))
            .number("p99_ms", quantile(&histogram, 0.99))
            .number("max_ms", first(after("max:")?)?)
            .number("errors", first(after("ignored errors:")?)?),
    )
}

/// A line like `0.034 |*****   123`: a value in ms and how often it was seen.
fn histogram_line(line: &str) -> Option<(f64, u64)> {
    let (value, bar) = line.split_once('|')?;
    Some((
        value.trim().parse().ok()?,
        bar.rsplit(['*', ' ']).next()?.parse().ok()?,
    ))
}

fn quantile(histogram: &[(f64, u64)], q: f64) -> f64 {
    let wanted = count64(histogram.iter().map(|(_, n)| n).sum()) * q;
    let mut seen = 0;
    for (value, n) in histogram {
        seen += n;
        if count64(seen) >= wanted {
            return *value;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.200 |*****                                    50
       0.300 |**************************************** 400
       0.400 |*****                                    45
       9.000 |                                         5
 
SQL statistics:
    queries performed:
        read:                            500
    transactions:                        500    (250.12 per sec.)
    queries:                             500    (250.25 per sec.)
    ignored errors:                      2      (1.00 per sec.)

Latency (ms):
         min:                                    0.20
         avg:                                    0.30
         max:                                    9.07
";

    #[test]
    fn what_sysbench_prints_is_read() {
        let r = parse(OUTPUT).expect("a result");
        let figures = [
            "queries", "qps", "tps", "p50_ms", "p95_ms", "p99_ms", "max_ms", "errors",
        ]
        .map(|f| r.get(f).expect(f));
        assert_eq!(figures, [500.0, 250.25, 250.12, 0.3, 0.4, 0.4, 9.07, 2.0]);
        assert!((average_ms(&r, 8) - 31.98).abs() < 0.01);
    }

    #[test]
    fn other_output_is_no_result() {
        assert!(parse("FATAL: unable to connect to MySQL server").is_none());
        assert!(histogram_line("queries: | x").is_none());
        assert!(quantile(&[], 0.5).abs() < 1e-9);
    }
}
