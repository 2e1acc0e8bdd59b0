//! Moments as text.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::print_day;

/// A moment as RFC 3339 has it, in UTC with microseconds: what MySQL writes with `log_timestamps = UTC`.
pub(super) struct Moment(pub(super) SystemTime);

impl Moment {
    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> u64 {
        self.since_1970().0
    }

    fn since_1970(&self) -> (u64, u32) {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_secs(), since.subsec_micros())
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 86_400;
        let (seconds, micros) = self.since_1970();
        let day = print_day(i32::try_from(seconds / DAY).unwrap_or(i32::MAX));
        let (hour, minute, second) = (seconds % DAY / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{day}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_796_048_577_120_000, "2026-11-30T14:22:57.120000Z"),
        ] {
            let moment = Moment(UNIX_EPOCH + Duration::from_micros(micros));
            assert_eq!(moment.to_string(), text);
            assert_eq!(moment.seconds(), micros / 1_000_000);
        }
    }
}
