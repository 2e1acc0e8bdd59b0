//! The measuring client processes: started by the commands as children of their own, pinned and in their namespace, so that their CPU
//! time can be told apart. Each prints one line of `name=value` words per target or run.

mod crowd;
mod point;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use lexopt::prelude::*;

use crate::error::{Error, Result};
use crate::figures::{count, count64};
use crate::mysql::{ClientError, Connection};
use crate::record::{Record, say};
use crate::sys;

/// What a client child is told.
#[derive(Debug, Clone)]
struct Task {
    targets: Vec<(String, SocketAddr)>,
    threads: usize,
    secs: u64,
    /// Statements a second over all threads and targets.
    rate: f64,
    windows: usize,
    block: usize,
    rows: u32,
    is_prepared: bool,
    sql: String,
    /// Bytes per second that are taken at most; 0 is as fast as they come.
    bytes_per_second: u64,
}

/// Runs `client point|conn|bulk|crowd …`.
///
/// # Errors
/// When a target cannot be reached or a statement fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mode, rest) = arguments
        .split_first()
        .ok_or_else(|| Error::Usage("client wants a mode".into()))?;
    let task = parse(rest)?;
    match mode.as_str() {
        "point" => point::run(&task),
        "conn" => connect_again_and_again(&task),
        "bulk" => bulk(&task),
        "crowd" => crowd::run(&task),
        _ => Err(Error::Usage(format!("there is no client {mode}"))),
    }
}

fn parse(words: &[String]) -> Result<Task> {
    let mut task = Task {
        targets: Vec::new(),
        threads: 1,
        secs: 1,
        rate: 400.0,
        windows: 20,
        block: 1,
        rows: 100_000,
        is_prepared: false,
        sql: String::new(),
        bytes_per_second: 0,
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("threads") => task.threads = parser.value()?.parse()?,
            Long("secs") => task.secs = parser.value()?.parse()?,
            Long("rate") => task.rate = parser.value()?.parse()?,
            Long("windows") => task.windows = parser.value()?.parse()?,
            Long("block") => task.block = parser.value()?.parse()?,
            Long("rows") => task.rows = parser.value()?.parse()?,
            Long("prepared") => task.is_prepared = true,
            Long("sql") => task.sql = parser.value()?.string()?,
            Long("bytes-per-second") => task.bytes_per_second = parser.value()?.parse()?,
            Value(target) => {
                let text = target.string()?;
                let (name, address) = text
                    .split_once('=')
                    .ok_or_else(|| Error::Usage("NAME=ADDRESS".into()))?;
                let address = address
                    .parse()
                    .map_err(|_| Error::Usage(format!("{address} is not an address")))?;
                task.targets.push((name.to_owned(), address));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if task.targets.is_empty() {
        return Err(Error::Usage("a client wants targets".into()));
    }
    Ok(task)
}

impl Task {
    fn only_target(&self) -> Result<(&str, SocketAddr)> {
        self.targets
            .first()
            .map(|(n, a)| (n.as_str(), *a))
            .ok_or_else(|| Error::Usage("a client wants a target".into()))
    }
}

/// Adds who it was to an error of the measuring client.
fn through(name: &str) -> impl Fn(ClientError) -> Error {
    move |e| Error::Failed(format!("{name}: {e}"))
}

/// A histogram of nanoseconds up to a minute.
fn histogram(digits: u8) -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 60_000_000_000, digits).map_err(|e| Error::Failed(e.to_string()))
}

/// Microseconds at a quantile.
fn micros(h: &Histogram<u64>, quantile: f64) -> f64 {
    count64(h.value_at_quantile(quantile)) / 1000.0
}

/// connect + authenticate + SELECT 1 + close, as fast as the threads can.
fn connect_again_and_again(task: &Task) -> Result<()> {
    let (name, address) = task.only_target()?;
    let start = Instant::now();
    let until = start + Duration::from_secs(task.secs);
    let one_thread = move || -> Result<(Histogram<u64>, u64)> {
        let (mut times, mut errors) = (histogram(3)?, 0);
        while Instant::now() < until {
            let from = sys::now_ns();
            let done =
                Connection::open(address).and_then(|mut c| c.query("SELECT 1").map(|_| c.quit()));
            match done {
                Ok(()) => times.saturating_record(sys::now_ns() - from),
                Err(_) if errors < 100 => errors += 1,
                Err(e) => return Err(Error::Failed(e.to_string())),
            }
        }
        Ok((times, errors))
    };
    let handles: Vec<_> = (0..task.threads)
        .map(|_| thread::spawn(one_thread))
        .collect();
    let (mut all, mut errors) = (histogram(3)?, 0);
    for handle in handles {
        let (times, failed) = handle
            .join()
            .map_err(|_| Error::Failed("a client thread panicked".into()))??;
        all.add(times).map_err(|e| Error::Failed(e.to_string()))?;
        errors += failed;
    }
    let line = Record::new()
        .text("target", name)
        .number("connections", count64(all.len()))
        .number(
            "conn_per_s",
            count64(all.len()) / start.elapsed().as_secs_f64(),
        )
        .number("errors", count64(errors))
        .number("p50_us", micros(&all, 0.50))
        .number("p99_us", micros(&all, 0.99));
    say(&line.to_line());
    Ok(())
}

/// One large result, read as fast as it comes or held back to a rate.
fn bulk(task: &Task) -> Result<()> {
    let (name, address) = task.only_target()?;
    let mut connection = Connection::open(address).map_err(through(name))?;
    let start = Instant::now();
    let mut first_row = None;
    let mut taken = 0;
    let mut watch = |bytes: usize, rows: u64| {
        taken += bytes;
        if rows > 0 && first_row.is_none() {
            first_row = Some(start.elapsed());
        }
        if task.bytes_per_second > 0 {
            let due = Duration::from_secs_f64(count(taken) / count64(task.bytes_per_second));
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    };
    let reply = connection
        .query_watched(&task.sql, &mut watch)
        .map_err(through(name))?;
    let seconds = start.elapsed().as_secs_f64();
    let line = Record::new()
        .text("target", name)
        .number("rows", count64(reply.rows))
        .number("bytes", count64(reply.row_bytes))
        .number("seconds", seconds)
        .number("mb_per_s", count64(reply.row_bytes) / 1e6 / seconds)
        .number(
            "first_row_ms",
            first_row.map_or(0.0, |d| d.as_secs_f64() * 1e3),
        );
    say(&line.to_line());
    connection.quit();
    Ok(())
}
