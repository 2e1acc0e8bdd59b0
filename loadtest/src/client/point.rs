//! Point selects at a fixed rate on several targets at once. Every thread holds a connection to each target and takes them in a
//! random order, query by query, so that drift and noise of the machine hit all alike. Each target is compared with the first one
//! (and with the relay) per window of time; the spread over the windows gives the interval.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use super::{Task, histogram, micros, through};
use crate::database::TABLES;
use crate::error::{Error, Result};
use crate::figures::{count, count64, mean_interval, median};
use crate::mysql::{ClientError, Connection, Prepared};
use crate::record::{Record, say};
use crate::sys;

/// Seconds that are not counted at the beginning.
const WARM_SECS: u64 = 2;
/// Errors of one thread after which measuring makes no sense.
const ERRORS_MAX: usize = 100;

/// One answered query.
#[derive(Debug, Clone, Copy)]
struct Sample {
    latency_ns: u64,
    /// From the moment when the query was due, which counts the wait behind a slow one before it.
    response_ns: u64,
    window: usize,
}

/// A connection to a target with its prepared statements, if any.
#[derive(Debug)]
struct Line {
    connection: Connection,
    statements: Vec<Prepared>,
    sql: String,
}

impl Line {
    /// Connects; a proxy that was just started gets 15 seconds.
    fn open(name: &str, task: &Task, address: std::net::SocketAddr) -> Result<Self> {
        let give_up = Instant::now() + Duration::from_secs(15);
        let mut connection = loop {
            match Connection::open(address).and_then(|mut c| c.query("SELECT 1").map(|_| c)) {
                Ok(c) => break c,
                Err(e) if Instant::now() > give_up => return Err(through(name)(e)),
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        };
        let mut statements = Vec::new();
        if task.is_prepared {
            for table in 1..=TABLES {
                let sql = format!("SELECT c FROM sbtest{table} WHERE id=?");
                statements.push(connection.prepare(&sql).map_err(through(name))?);
            }
        }
        Ok(Self {
            connection,
            statements,
            sql: String::new(),
        })
    }

    /// One point select; true when it gave its row.
    fn select(&mut self, table: usize, id: u64) -> Result<bool, ClientError> {
        let reply = match self.statements.get(table) {
            Some(statement) => self
                .connection
                .execute(*statement, u32::try_from(id).unwrap_or(1))?,
            None => {
                self.sql.clear();
                let _ = write!(self.sql, "SELECT c FROM sbtest{} WHERE id={id}", table + 1);
                self.connection.query(&self.sql)?
            }
        };
        Ok(reply.rows == 1)
    }
}

/// Xorshift: cheap, and the same order of targets and rows in every run.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(thread: usize) -> Self {
        let mut r = Self(
            0x2545_f491_4f6c_dd1d
                ^ (u64::try_from(thread).unwrap_or(0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        for _ in 0..10 {
            r.next();
        }
        r
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n.max(1)).unwrap_or(1)).unwrap_or(0)
    }
}

/// When a thread starts, counts and ends, and how far apart its queries are.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    start: u64,
    counted_from: u64,
    end: u64,
    gap: u64,
    windows: usize,
}

impl Schedule {
    fn new(task: &Task, start: u64) -> Self {
        let second = 1_000_000_000;
        let counted_from = start + WARM_SECS * second;
        let per_thread = Duration::from_secs_f64(count(task.threads) / task.rate);
        let gap = u64::try_from(per_thread.as_nanos()).unwrap_or(second);
        Self {
            start,
            counted_from,
            end: counted_from + task.secs * second,
            gap,
            windows: task.windows,
        }
    }

    /// The window of a moment that counts.
    fn window(&self, at: u64) -> Option<usize> {
        let into = at.checked_sub(self.counted_from)?;
        let share = u128::from(into) * u128::try_from(self.windows).ok()?
            / u128::from(self.end - self.counted_from);
        usize::try_from(share).ok()
    }
}

/// Samples per target, and how many queries failed.
type Taken = (Vec<Vec<Sample>>, usize);

/// Measures, then prints one line per target.
pub(super) fn run(task: &Task) -> Result<()> {
    let mut lines = Vec::new();
    for _ in 0..task.threads {
        let open = task
            .targets
            .iter()
            .map(|(name, address)| Line::open(name, task, *address));
        lines.push(open.collect::<Result<Vec<_>>>()?);
    }
    let schedule = Schedule::new(task, sys::now_ns() + 200_000_000);
    let handles: Vec<_> = lines
        .into_iter()
        .enumerate()
        .map(|(index, lines)| {
            let task = task.clone();
            thread::spawn(move || one_thread(&task, schedule, index, lines))
        })
        .collect();
    let mut all: Vec<Vec<Sample>> = vec![Vec::new(); task.targets.len()];
    let mut errors = 0;
    for handle in handles {
        let (samples, failed) = handle
            .join()
            .map_err(|_| Error::Failed("a client thread panicked".into()))??;
        all.iter_mut()
            .zip(samples)
            .for_each(|(to, from)| to.extend(from));
        errors += failed;
    }
    for record in evaluate(task, &all)? {
        say(&record.number("errors", count(errors)).to_line());
    }
    Ok(())
}

fn one_thread(
    task: &Task,
    schedule: Schedule,
    index: usize,
    mut lines: Vec<Line>,
) -> Result<Taken> {
    sys::precise_timers();
    let mut random = Random::new(index);
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); lines.len()];
    let mut errors = 0;
    // The threads are spread over one gap.
    let offset =
        schedule.gap * u64::try_from(index).unwrap_or(0) / u64::try_from(task.threads).unwrap_or(1);
    let mut due = schedule.start + offset;
    let mut order: Vec<usize> = (0..lines.len()).collect();
    loop {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for target in order
            .iter()
            .flat_map(|t| std::iter::repeat_n(*t, task.block))
        {
            let Some(line) = lines.get_mut(target) else {
                continue;
            };
            sys::sleep_until(due);
            let id = 1 + random.next() % u64::from(task.rows);
            let table = random.below(usize::try_from(TABLES).unwrap_or(1));
            let sent = sys::now_ns();
            if sent >= schedule.end {
                lines.into_iter().for_each(|l| l.connection.quit());
                return Ok((samples, errors));
            }
            let answer = line.select(table, id);
            let done = sys::now_ns();
            match answer {
                Ok(true) => {
                    if let (Some(window), Some(to)) =
                        (schedule.window(sent), samples.get_mut(target))
                    {
                        to.push(Sample {
                            latency_ns: done - sent,
                            response_ns: done - due.min(sent),
                            window,
                        });
                    }
                }
                // The connection is of no use any more.
                Err(e) => return Err(through(task.targets.get(target).map_or("?", |(n, _)| n))(e)),
                Ok(false) if errors < ERRORS_MAX => errors += 1,
                Ok(false) => return Err(Error::Failed("too many queries gave no row".into())),
            }
            due += schedule.gap;
        }
    }
}

/// The figures of each target; differences are to the first target and to the one called `relay`.
fn evaluate(task: &Task, all: &[Vec<Sample>]) -> Result<Vec<Record>> {
    let medians: Vec<Vec<Option<f64>>> = all
        .iter()
        .map(|s| window_medians(s, task.windows))
        .collect();
    let relay = task.targets.iter().position(|(name, _)| name == "relay");
    let mut records = Vec::new();
    let mut base_p50 = 0.0;
    for (index, ((name, _), samples)) in task.targets.iter().zip(all).enumerate() {
        let (mut latency, mut response) = (histogram(4)?, histogram(3)?);
        for s in samples {
            latency.saturating_record(s.latency_ns);
            response.saturating_record(s.response_ns);
        }
        let p50 = micros(&latency, 0.50);
        let mut record = Record::new()
            .text("target", name)
            .number("n", count64(latency.len()))
            .number("p50_us", p50)
            .number("average_us", latency.mean() / 1000.0)
            .number("p95_us", micros(&latency, 0.95))
            .number("p99_us", micros(&latency, 0.99))
            .number("p999_us", micros(&latency, 0.999))
            .number("response_p99_us", micros(&response, 0.99));
        if index == 0 {
            base_p50 = p50;
        } else if let Some((mean, half)) = difference(&medians, index, 0) {
            record = record
                .number("d_us", mean)
                .number("d_interval_us", half)
                .number("d_percent", 100.0 * (p50 / base_p50 - 1.0));
        }
        if let Some((mean, half)) = relay
            .filter(|r| *r != index)
            .and_then(|r| difference(&medians, index, r))
        {
            record = record
                .number("d_relay_us", mean)
                .number("d_relay_interval_us", half);
        }
        records.push(record);
    }
    Ok(records)
}

/// The median latency of each window in microseconds, `None` of a window without samples.
fn window_medians(samples: &[Sample], windows: usize) -> Vec<Option<f64>> {
    let mut by_window: Vec<Vec<f64>> = vec![Vec::new(); windows];
    for s in samples {
        if let Some(window) = by_window.get_mut(s.window) {
            window.push(count64(s.latency_ns) / 1000.0);
        }
    }
    by_window.iter().map(|w| median(w)).collect()
}

/// Mean and interval of the per-window differences of two targets.
fn difference(medians: &[Vec<Option<f64>>], this: usize, base: usize) -> Option<(f64, f64)> {
    let pairs = medians.get(this)?.iter().zip(medians.get(base)?);
    let differences: Vec<f64> = pairs.filter_map(|(a, b)| Some((*a)? - (*b)?)).collect();
    mean_interval(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(names: &[&str]) -> Task {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        Task {
            targets: names.iter().map(|n| ((*n).to_owned(), address)).collect(),
            threads: 2,
            secs: 10,
            rate: 400.0,
            windows: 4,
            block: 1,
            rows: 1000,
            is_prepared: false,
            sql: String::new(),
            bytes_per_second: 0,
        }
    }

    #[test]
    fn windows_divide_the_counted_time() {
        let s = Schedule::new(&task(&["direct"]), 1_000_000_000);
        assert_eq!(s.gap, 5_000_000);
        assert_eq!(s.window(s.counted_from - 1), None);
        assert_eq!(s.window(s.counted_from), Some(0));
        assert_eq!(s.window(s.counted_from + 2_500_000_000), Some(1));
        assert_eq!(s.window(s.end - 1), Some(3));
    }

    #[test]
    fn a_constant_difference_is_found_under_drift() {
        // The machine gets slower from window to window; the proxy always adds 30 us, the relay 20 us.
        let at = |added: u64| -> Vec<Sample> {
            let sample = |window: usize, jitter: u64| {
                let drift = 100_000 * u64::try_from(window).expect("few windows");
                let latency_ns = 1_000_000 + drift + added + jitter;
                Sample {
                    latency_ns,
                    response_ns: latency_ns + 1_000_000,
                    window,
                }
            };
            (0..4)
                .flat_map(|w| [0, 500, 1000].map(|j| sample(w, j)))
                .collect()
        };
        let records = evaluate(
            &task(&["direct", "relay", "proxy"]),
            &[at(0), at(20_000), at(30_000)],
        )
        .expect("figures");
        let close = |record: usize, figure: &str, expected: f64| {
            let got = records[record].get(figure).expect(figure);
            assert!(
                (got - expected).abs() < 0.2,
                "{figure} of {record}: {got}, not {expected}"
            );
        };
        close(0, "p50_us", 1101.0);
        close(1, "d_us", 20.0);
        close(2, "d_us", 30.0);
        close(2, "d_interval_us", 0.0);
        close(2, "d_relay_us", 10.0);
        assert_eq!(records[0].get("d_us"), None);
        assert!(records[0].get("response_p99_us").expect("a figure") > 2000.0);
    }

    #[test]
    fn an_empty_window_is_left_out() {
        let sample = |window, latency_ns| Sample {
            latency_ns,
            response_ns: latency_ns,
            window,
        };
        let medians = [
            window_medians(&[sample(0, 1000), sample(1, 1000), sample(2, 1000)], 3),
            window_medians(&[sample(0, 3000), sample(2, 3000), sample(9, 1)], 3),
        ];
        assert_eq!(medians[1], [Some(3.0), None, Some(3.0)]);
        assert_eq!(difference(&medians, 1, 0), Some((2.0, 0.0)));
    }

    #[test]
    fn random_numbers_stay_below() {
        let mut r = Random::new(3);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[r.below(5)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(r.below(0), 0);
    }
}
