//! Limits on statements: how many a second, and how many at a time. All workers share what is counted; nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What is counted of an account or a rule, for as long as it is configured.
#[derive(Debug, Default)]
pub struct Limiter {
    running: AtomicU32,
    /// When the next statement would come that comes at the rate, in nanoseconds since the process began.
    due: AtomicU64,
    refused: AtomicU64,
}

/// A statement that runs, as long as the value lasts.
#[derive(Debug)]
pub struct Permit(Arc<Limiter>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which limit was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// So many a second.
    Rate(u32),
    /// So many at a time.
    Concurrency(u32),
}

/// What a rate lets come at once: the statements of so long a time.
const BURST: Duration = Duration::from_secs(1);

impl Limiter {
    /// A statement comes, under these limits (0 for none). Moments are counted alike by all who ask.
    ///
    /// # Errors
    /// It is one too many.
    pub fn enter(
        self: &Arc<Self>,
        rate: u32,
        concurrency: u32,
        now: Duration,
    ) -> Result<Option<Permit>, Exceeded> {
        let permit = match concurrency {
            0 => None,
            limit => Some(self.start(limit)?),
        };
        if rate > 0 && !self.comes(rate, now) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Exceeded::Rate(rate));
        }
        Ok(permit)
    }

    fn start(self: &Arc<Self>, limit: u32) -> Result<Permit, Exceeded> {
        if self.running.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(Permit(self.clone()));
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Exceeded::Concurrency(limit))
    }

    fn comes(&self, rate: u32, now: Duration) -> bool {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let step = (nanos(BURST) / u64::from(rate)).max(1);
        let (now, burst) = (nanos(now), nanos(BURST));
        let next = |due: u64| {
            let due = due.max(now);
            // So far ahead are those that have come already.
            let ahead = (due - now).saturating_add(step);
            (ahead <= burst.max(step)).then(|| due.saturating_add(step))
        };
        self.due
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
    }

    /// Statements that run now, of those that are counted.
    pub fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    /// Statements that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_a_time() {
        let limiter = Arc::new(Limiter::default());
        let enter = || limiter.enter(0, 2, Duration::ZERO);
        let (one, two) = (enter().unwrap(), enter().unwrap());
        assert_eq!(enter().unwrap_err(), Exceeded::Concurrency(2));
        assert_eq!((limiter.running(), limiter.refused()), (2, 1));
        drop(one);
        let three = enter().unwrap();
        assert!(three.is_some());
        assert_eq!(enter().unwrap_err(), Exceeded::Concurrency(2));
        drop((two, three));
        assert_eq!(limiter.running(), 0);
        // Without a limit nobody is counted.
        assert!(limiter.enter(0, 0, Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn so_many_a_second() {
        let limiter = Arc::new(Limiter::default());
        let mut passed = 0;
        for n in 0..10_000_u64 {
            // A thousand a second for ten seconds.
            let now = Duration::from_millis(n);
            passed += u32::from(limiter.enter(100, 0, now).is_ok());
        }
        // Those of a second at once, and ten seconds' worth.
        assert!((1095..=1101).contains(&passed), "{passed}");
        let later = Duration::from_secs(60);
        let at_once = (0..1000).filter(|_| limiter.enter(100, 0, later).is_ok());
        assert_eq!(at_once.count(), 100);
        // The slowest and the fastest that can be configured.
        let slow = Arc::new(Limiter::default());
        assert!(slow.enter(1, 0, later).is_ok());
        assert!(slow.enter(1, 0, later).is_err());
        assert!(slow.enter(1, 0, later + BURST).is_ok());
        let fast = Arc::new(Limiter::default());
        assert!(fast.enter(u32::MAX, 0, later).is_ok());
    }

    proptest::proptest! {
        /// Whatever comes when, no second has more than twice the rate, and limits given anew are followed.
        #[test]
        fn never_more(steps in proptest::collection::vec(0_u64..50, 1..400), rate in 1_u32..40) {
            let limiter = Arc::new(Limiter::default());
            let mut now = 0;
            let mut passed: Vec<u64> = Vec::new();
            for step in steps {
                now += step;
                if limiter.enter(rate, 0, Duration::from_millis(now)).is_ok() {
                    passed.push(now);
                }
            }
            for (at, first) in passed.iter().enumerate() {
                let within = passed[at..].iter().filter(|time| **time < first + 1000).count();
                proptest::prop_assert!(within <= 2 * rate as usize);
            }
        }
    }
}
