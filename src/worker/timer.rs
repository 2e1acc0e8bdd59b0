//! Deadlines of one worker: a heap with lazy cancelling. An entry for something that is gone or no longer waits is passed
//! over when it is due. Statements have no entries here but where their time is limited, and then a client has a few at most (see
//! `overrun`), so the heap is no part of the hot path. And the look at the clock, once a turn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::Worker;
use super::slots::Key;
use crate::pool::HostId;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A client has not logged in.
    Login(Key),
    /// A client whose log-in has failed is to be told.
    Denial(Key),
    /// A client that was told goodbye has not taken it.
    Linger(Key),
    /// A server connection is not ready.
    Connect(Key),
    /// A connection to the primary (false) or to a replica (true) of this client is to be tried again.
    Reopen(Key, bool),
    /// A server has not closed a connection to which goodbye was said.
    Leave(Key),
    /// A client's request of this number waits for a connection to the primary (false) or to a replica (true) for too long.
    Acquire(Key, bool, u64, HostId),
    /// Something can be done for those who wait for a connection to this host.
    Grant(HostId),
    /// Idle server connections are to be looked through.
    Sweep,
    /// Accepting was paused for want of descriptors.
    Accept(usize),
    /// A client's statement may have run for long enough.
    Statement(Key),
    /// A drain goes on.
    Drain,
}

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, Timer)>>);

impl Timers {
    /// Adds a deadline.
    pub(super) fn add(&mut self, at: Instant, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    /// The next deadline.
    #[must_use]
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Timer> {
        if self.0.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            self.0.pop().map(|Reverse((_, timer))| timer)
        } else {
            None
        }
    }
}

impl Worker {
    /// Once a turn: no deadline is more precise than a turn.
    pub(super) fn look_at_clock(&mut self) {
        self.now = Instant::now();
        self.moment = self.now.saturating_duration_since(self.shared.started);
    }

    /// How long the next wait may be; the kernel is told of the next deadline.
    pub(super) fn wait(&mut self) -> Option<Duration> {
        let limit = self.wakeup.set(self.timers.next(), self.now);
        if self.again.is_empty() {
            limit
        } else {
            Some(Duration::ZERO)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_in_order_and_not_before() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.add(now + Duration::from_secs(2), Timer::Accept(2));
        timers.add(now + Duration::from_secs(1), Timer::Accept(1));
        assert_eq!(timers.due(now), None);
        assert_eq!(timers.next(), Some(now + Duration::from_secs(1)));
        assert_eq!(
            timers.due(now + Duration::from_secs(3)),
            Some(Timer::Accept(1))
        );
        assert_eq!(
            timers.due(now + Duration::from_secs(3)),
            Some(Timer::Accept(2))
        );
        assert_eq!(timers.next(), None);
    }
}
