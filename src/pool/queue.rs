//! Who waits for a connection to one host, of all workers, and when a new one may be opened. Decides; opens nothing, and
//! reads no clock: moments are times since some start that all workers have in common.

use std::collections::VecDeque;
use std::time::Duration;

use super::Shape;

/// Somebody who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter<W> {
    /// Who.
    pub who: W,
    /// What connection.
    pub shape: Shape,
    /// Since when.
    pub since: Duration,
}

/// What the first in the queue is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant<W> {
    /// Open a connection; it has been counted.
    Open(Waiter<W>),
    /// Nothing yet: the rate of new connections is used up until so long from now.
    Later(Duration),
    /// All connections are in use, or idle and of another shape.
    Full(Waiter<W>),
    /// Nobody waits.
    Nobody,
}

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at a time.
    pub max: usize,
    /// New connections in any second.
    pub rate: usize,
}

/// See the module's words.
#[derive(Debug)]
pub struct Queue<W> {
    waiters: VecDeque<Waiter<W>>,
    open: usize,
    /// When connections were opened within the last second, the oldest first; never more than the rate.
    opened: VecDeque<Duration>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiters: VecDeque::new(),
            open: 0,
            opened: VecDeque::new(),
        }
    }
}

/// The span of the rate.
const SECOND: Duration = Duration::from_secs(1);

impl<W: Copy + PartialEq> Queue<W> {
    /// Whether a connection may be opened now; if so it is counted.
    ///
    /// # Errors
    /// How long the rate forbids it; `None` when the number does.
    pub fn try_open(&mut self, now: Duration, bounds: Bounds) -> Result<(), Option<Duration>> {
        if self.open >= bounds.max {
            return Err(None);
        }
        while let Some(oldest) = self.opened.front() {
            let left = SECOND.saturating_sub(now.saturating_sub(*oldest));
            if left.is_zero() {
                self.opened.pop_front();
            } else if self.opened.len() >= bounds.rate {
                return Err(Some(left));
            } else {
                break;
            }
        }
        self.opened.push_back(now);
        self.open += 1;
        Ok(())
    }

    /// A counted connection is gone.
    pub fn closed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Connections that are counted.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Goes to the end of the queue.
    pub fn push(&mut self, waiter: Waiter<W>) {
        self.waiters.push_back(waiter);
    }

    /// Waits no longer.
    pub fn remove(&mut self, who: W) -> bool {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| waiter.who != who);
        self.waiters.len() < before
    }

    /// Sends everybody away.
    pub fn disperse(&mut self) -> Vec<Waiter<W>> {
        self.waiters.drain(..).collect()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// A connection of this shape became free: the first who can use it. `None` also when the first of all has waited for longer
    /// than `patience` for another shape: then the connection is rather closed for a new one in its place.
    pub fn take_for(
        &mut self,
        shape: Shape,
        now: Duration,
        patience: Duration,
    ) -> Option<Waiter<W>> {
        let first = self.waiters.front()?;
        let waited = now.saturating_sub(first.since);
        let at = if first.shape == shape {
            0
        } else if waited > patience {
            return None;
        } else {
            self.waiters.iter().position(|w| w.shape == shape)?
        };
        self.waiters.remove(at)
    }

    /// What can be done for the first in the queue other than to wait for a connection of its shape.
    pub fn grant(&mut self, now: Duration, bounds: Bounds) -> Grant<W> {
        let Some(first) = self.waiters.front().copied() else {
            return Grant::Nobody;
        };
        match self.try_open(now, bounds) {
            Ok(()) => {
                self.waiters.pop_front();
                Grant::Open(first)
            }
            Err(Some(wait)) => Grant::Later(wait),
            Err(None) => Grant::Full(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Capabilities;

    fn shape(charset: u16) -> Shape {
        Shape {
            account: 0,
            capabilities: Capabilities::NONE,
            charset,
            has_schema: false,
        }
    }

    const PATIENCE: Duration = Duration::from_millis(100);

    fn waiter(who: u32, charset: u16, since: Duration) -> Waiter<u32> {
        Waiter {
            who,
            shape: shape(charset),
            since,
        }
    }

    #[test]
    fn never_more_than_the_bound_nor_than_the_rate_in_any_second() {
        let bounds = Bounds { max: 120, rate: 50 };
        let start = Duration::from_secs(1000);
        let mut queue: Queue<u32> = Queue::default();
        let mut opened = Vec::new();
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            while queue.try_open(now, bounds).is_ok() {
                opened.push(ms);
            }
            // Some close again, so that the rate goes on being asked for.
            if ms % 7 == 0 {
                queue.closed();
            }
            assert!(queue.open() <= bounds.max);
        }
        assert!(opened.len() > 400);
        for pair in opened.windows(bounds.rate + 1) {
            assert!(pair[bounds.rate] - pair[0] >= 1000, "{pair:?}");
        }
    }

    #[test]
    fn the_rate_says_how_long() {
        let bounds = Bounds { max: 10, rate: 1 };
        let now = Duration::from_secs(1000);
        let mut queue: Queue<u32> = Queue::default();
        assert_eq!(queue.try_open(now, bounds), Ok(()));
        let later = now + Duration::from_millis(300);
        assert_eq!(
            queue.try_open(later, bounds),
            Err(Some(Duration::from_millis(700)))
        );
        assert_eq!(queue.try_open(now + SECOND, bounds), Ok(()));
    }

    #[test]
    fn first_come_first_served_by_shape() {
        let now = Duration::from_secs(1000);
        let mut queue = Queue::default();
        for (who, charset) in [(1, 33), (2, 45), (3, 45), (4, 33)] {
            queue.push(waiter(who, charset, now));
        }
        assert_eq!(
            queue.take_for(shape(45), now, PATIENCE).map(|w| w.who),
            Some(2)
        );
        assert_eq!(
            queue.take_for(shape(33), now, PATIENCE).map(|w| w.who),
            Some(1)
        );
        assert_eq!(queue.take_for(shape(8), now, PATIENCE).map(|w| w.who), None);
        assert!(queue.remove(4));
        assert!(!queue.remove(4));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn who_has_waited_long_for_another_shape_is_not_passed_over() {
        let now = Duration::from_secs(1000);
        let mut queue = Queue::default();
        queue.push(waiter(1, 33, now));
        queue.push(waiter(2, 45, now));
        let late = now + PATIENCE * 2;
        assert_eq!(queue.take_for(shape(45), late, PATIENCE), None);
        let bounds = Bounds { max: 1, rate: 10 };
        assert_eq!(queue.grant(late, bounds), Grant::Open(waiter(1, 33, now)));
        assert_eq!(queue.grant(late, bounds), Grant::Full(waiter(2, 45, now)));
        queue.closed();
        assert_eq!(queue.grant(late, bounds), Grant::Open(waiter(2, 45, now)));
        assert_eq!(queue.grant(late, bounds), Grant::Nobody);
    }
}
