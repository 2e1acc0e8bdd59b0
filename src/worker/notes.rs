//! Lines that sessions have for the log: so many a second, since whoever reads the log may be slower than clients are.

use std::time::{Duration, Instant};

use super::Worker;

/// Lines of a second, of one worker.
const LINES_MAX: u32 = 50;

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// When the second began, and how many lines it has had.
    begun: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Notes {
    /// Whether a line may be written, and how many were left out before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over =
            |begun: Instant| now.saturating_duration_since(begun) >= Duration::from_secs(1);
        if self.begun.is_none_or(is_over) {
            self.begun = Some(now);
            self.lines = 0;
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Worker {
    /// Writes a line into the log.
    pub(super) fn note(&mut self, line: &str) {
        match self.notes.admit(self.now) {
            Some(0) => log::info!("{line}"),
            Some(left_out) => log::info!("{line} ({left_out} such lines before it were left out)"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded() {
        let mut notes = Notes::default();
        let start = Instant::now();
        let mut written = 0;
        for n in 0..10_000_u64 {
            written += u32::from(
                notes
                    .admit(start + Duration::from_micros(n * 300))
                    .is_some(),
            );
        }
        // Three seconds.
        assert_eq!(written, 3 * LINES_MAX);
        let told = notes.admit(start + Duration::from_secs(10));
        // Those of the third second; of the others was told.
        assert!(told.is_some_and(|told| told > 3000), "{told:?}");
    }
}
