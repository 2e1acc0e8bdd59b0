//! The log on stderr: one line per record, with the time in UTC.

#![expect(
    clippy::disallowed_methods,
    reason = "a log line carries the time of day"
)]

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::LogLevel;

/// Starts the log; later calls only change its level.
pub(super) fn start(level: LogLevel) {
    let format = |out: &mut env_logger::fmt::Formatter, record: &log::Record<'_>| {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        writeln!(
            out,
            "{} {:<5} {}",
            timestamp(now.as_secs(), now.subsec_millis()),
            record.level(),
            record.args()
        )
    };
    // The filter lets everything through: the level is log's own maximum, which a reload can change.
    let _ = env_logger::Builder::new()
        .filter_level(log::LevelFilter::Trace)
        .format(format)
        .try_init();
    log::set_max_level(level.into());
}

/// RFC 3339, in UTC, from seconds since 1970.
fn timestamp(seconds: u64, millis: u32) -> String {
    let (mut day, clock) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // By whole eras of 400 years first, so that the loop is short whatever the clock says.
    let mut year = 1970 + day / 146_097 * 400;
    day %= 146_097;
    loop {
        let days = if is_leap(year) { 366 } else { 365 };
        if day < days {
            break;
        }
        day -= days;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    format!(
        "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z",
        day + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (seconds, wanted) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_709_251_199, "2024-02-29T23:59:59.007Z"),
            (1_735_689_599, "2024-12-31T23:59:59.007Z"),
            (1_795_956_245, "2026-11-29T12:44:05.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(timestamp(seconds, 7), wanted);
        }
    }
}
