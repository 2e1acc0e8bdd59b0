//! What wakes a worker at its next deadline: a timer of the kernel that stays set while events come. A time limit on the wait itself
//! would be set and taken back by the kernel in every turn, which costs two of each statement's microseconds where everything is busy and
//! seven where the caches have gone cold (`scripts/loadtest`). What is due is `timer`'s business.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::Target;

/// See the module's words.
#[derive(Debug)]
pub(super) struct Wakeup {
    clock: OwnedFd,
    /// It rings then, if it has not rung yet.
    set_for: Option<Instant>,
}

impl Wakeup {
    /// One that is not set, and tells of its ringing as [`Target::Wakeup`].
    ///
    /// # Errors
    /// The kernel's: there is no descriptor left.
    pub(super) fn new(registry: &Registry) -> std::io::Result<Self> {
        let clock = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // Each ringing is an edge of its own, so nothing needs to be read.
        registry.register(
            &mut SourceFd(&clock.as_raw_fd()),
            Target::Wakeup.token(),
            Interest::READABLE,
        )?;
        Ok(Self {
            clock,
            set_for: None,
        })
    }

    /// It has rung.
    pub(super) fn rang(&mut self) {
        self.set_for = None;
    }

    /// Sees to it that it rings by the next deadline. The time limit that a wait needs in spite of it: none as a rule, zero for a
    /// deadline that has come.
    ///
    /// One that is set for an earlier time, of a deadline that was given up, is left: it rings for nothing once.
    pub(super) fn set(&mut self, next: Option<Instant>, now: Instant) -> Option<Duration> {
        let next = next?;
        if self.set_for.is_some_and(|at| at <= next) {
            return None;
        }
        let left = next.saturating_duration_since(now);
        // Zero would stop the clock.
        if left.is_zero() {
            return Some(left);
        }
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        match timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &once) {
            Ok(_) => {
                self.set_for = Some(next);
                None
            }
            // Then the wait has the limit.
            Err(_) => Some(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll};

    use super::*;

    fn rings(poll: &mut Poll, limit: Option<Duration>) -> bool {
        let mut events = Events::with_capacity(4);
        poll.poll(&mut events, limit).expect("a wait");
        events
            .iter()
            .any(|e| Target::from_token(e.token()) == Target::Wakeup && e.is_readable())
    }

    #[test]
    fn it_rings_at_each_deadline_and_is_set_again() {
        let mut poll = Poll::new().expect("a poll");
        let mut wakeup = Wakeup::new(poll.registry()).expect("an wakeup");
        for _ in 0..3 {
            let (now, wait) = (Instant::now(), Duration::from_millis(5));
            assert_eq!(wakeup.set(Some(now + wait), now), None);
            // There is no limit: it would not come back without the wakeup.
            assert!(rings(&mut poll, None));
            assert!(now.elapsed() >= wait);
            wakeup.rang();
        }
        assert!(!rings(&mut poll, Some(Duration::ZERO)), "it was set once");
    }

    #[test]
    fn an_earlier_deadline_is_rung_for() {
        let mut poll = Poll::new().expect("a poll");
        let mut wakeup = Wakeup::new(poll.registry()).expect("an wakeup");
        let now = Instant::now();
        let hour = now + Duration::from_secs(3600);
        assert_eq!(wakeup.set(Some(hour), now), None);
        assert_eq!(
            wakeup.set(Some(now + Duration::from_millis(1)), now),
            None,
            "earlier"
        );
        assert!(rings(&mut poll, None));
        wakeup.rang();
        assert_eq!(wakeup.set(Some(hour), now), None);
        assert!(!rings(&mut poll, Some(Duration::ZERO)));
    }

    #[test]
    fn what_is_due_is_not_waited_for() {
        let poll = Poll::new().expect("a poll");
        let mut wakeup = Wakeup::new(poll.registry()).expect("an wakeup");
        let now = Instant::now();
        assert_eq!(wakeup.set(None, now), None);
        assert_eq!(wakeup.set(Some(now), now), Some(Duration::ZERO));
    }
}
