//! The way to one host, which all workers share: how many connections there are, who waits for one. The lock is taken when
//! connections are opened, closed or waited for; a statement that finds an idle one looks at a counter only.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::slots::Key;
use super::warm::Template;
use crate::config::{BreakerConfig, PoolConfig};
use crate::pool::{Bounds, Breaker, Grant, Queue, Shape, Turn, Waiter};
use crate::route::Role;

/// Who waits for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The worker.
    pub worker: usize,
    /// Its client.
    pub client: Key,
    /// For which of its places.
    pub role: Role,
    /// The number of the request, so that an answer that comes late is not taken for that to the next.
    pub ticket: u64,
}

/// See the module's words.
#[derive(Debug)]
pub struct Gate {
    queue: Mutex<Queue<Who>>,
    /// Length of the queue, for looking at without the lock.
    waiting: AtomicUsize,
    /// Idle connections of each worker.
    idle: Vec<AtomicUsize>,
    /// The bounds of `[pool]`, which a reload changes.
    max: AtomicUsize,
    rate: AtomicUsize,
    /// Where moments are counted from.
    start: Instant,
    breaker: Mutex<(Breaker, BreakerConfig)>,
    /// Until when no connections are opened, in milliseconds and one more; 0 for no such time. For looking at without the lock.
    stopped_until: AtomicU64,
    /// How the last connection that may be shared was made.
    template: Mutex<Option<Template>>,
    /// Asks for a look at the host.
    pub bell: Bell,
}

/// Someone who has waited for so long for a connection of another shape than those that become free gets one opened anew.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// Of a gate that has not been told any.
const NO_LIMITS: BreakerConfig = BreakerConfig {
    failure_ratio: 1.0,
    window: Duration::from_secs(10),
    open_for: Duration::from_secs(5),
};

impl Gate {
    /// The way to a host, with nothing on it and nothing allowed yet.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            idle: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            max: AtomicUsize::new(0),
            rate: AtomicUsize::new(0),
            start: Instant::now(),
            breaker: Mutex::new((Breaker::default(), NO_LIMITS)),
            stopped_until: AtomicU64::new(0),
            template: Mutex::default(),
            bell: Bell::default(),
        }
    }

    /// Takes the bounds of a configuration.
    pub fn set_bounds(&self, pool: &PoolConfig) {
        self.max.store(pool.max_connections, Ordering::Relaxed);
        self.rate
            .store(pool.connect_rate as usize, Ordering::Relaxed);
        self.breaker().1 = pool.breaker.clone();
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            max: self.max.load(Ordering::Relaxed),
            rate: self.rate.load(Ordering::Relaxed),
        }
    }

    /// As the queue counts time.
    pub(super) fn moment(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// How the last connection that may be shared was made.
    pub(super) fn template(&self) -> Option<Template> {
        self.template
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets how the last one was made, where that is not done any more.
    pub(super) fn drop_template(&self, is_current: impl Fn(u16) -> bool) {
        let mut template = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        template.take_if(|template| !is_current(template.shape.account));
    }

    /// Notes how a connection is made.
    pub(super) fn set_template(&self, template: Template) {
        *self.template.lock().unwrap_or_else(PoisonError::into_inner) = Some(template);
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Who>> {
        // Nothing can be half done in there: each call leaves it whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaker(&self) -> MutexGuard<'_, (Breaker, BreakerConfig)> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_stop(&self, breaker: &Breaker) {
        let until = breaker.stop().map_or(0, |(_, until)| {
            u64::try_from(until.as_millis()).map_or(u64::MAX, |ms| ms.saturating_add(1))
        });
        self.stopped_until.store(until, Ordering::Release);
    }

    /// Whether the breaker lets connections be opened.
    #[must_use]
    pub fn admits(&self, now: Instant) -> bool {
        match self.stopped_until.load(Ordering::Acquire) {
            0 => true,
            until => self.moment(now).as_millis() >= u128::from(until - 1),
        }
    }

    /// Somebody opens a connection: where that is the one that tries after a stop, the others wait for what it comes to.
    fn note_try(&self, now: Instant) {
        if self.stopped_until.load(Ordering::Acquire) != 0 {
            let (breaker, limits) = &mut *self.breaker();
            breaker.may_open(self.moment(now), limits);
            self.note_stop(breaker);
        }
    }

    /// How long none have been opened, where they are not.
    #[must_use]
    pub fn stopped_for(&self, now: Instant) -> Option<Duration> {
        if self.admits(now) {
            return None;
        }
        let (since, _) = self.breaker().0.stop()?;
        Some(self.moment(now).saturating_sub(since))
    }

    /// Whether the breaker is not closed, for whoever looks at figures.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped_until.load(Ordering::Acquire) != 0
    }

    /// Notes how opening a connection went.
    pub(super) fn note_opening(
        &self,
        is_success: bool,
        begun: Instant,
        now: Instant,
    ) -> Option<Turn> {
        let (breaker, limits) = &mut *self.breaker();
        let turn = breaker.note(is_success, self.moment(begun), self.moment(now), limits);
        self.note_stop(breaker);
        turn
    }

    /// Notes that a check, begun at that moment, has opened a connection and logged in. Whether one may try now, which could not
    /// before.
    pub fn note_check(&self, begun: Instant, now: Instant) -> bool {
        if !self.is_stopped() {
            return false;
        }
        let (breaker, _) = &mut *self.breaker();
        let is_cut_short = breaker.note_check(self.moment(begun), self.moment(now));
        self.note_stop(breaker);
        is_cut_short
    }

    /// Sends everybody away who waits.
    pub(super) fn disperse(&self) -> Vec<Waiter<Who>> {
        let mut queue = self.queue();
        let waiters = queue.disperse();
        self.waiting.store(0, Ordering::Release);
        waiters
    }

    /// Connections that exist or are being opened.
    #[must_use]
    pub fn open(&self) -> usize {
        self.queue().open()
    }

    /// Idle connections of all workers.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Notes how many a worker has idle.
    pub(super) fn set_idle(&self, worker: usize, count: usize) {
        if let Some(idle) = self.idle.get(worker) {
            idle.store(count, Ordering::Release);
        }
    }

    /// Another worker that has an idle connection.
    pub(super) fn who_has_idle(&self, but: usize) -> Option<usize> {
        (0..self.idle.len())
            .find(|worker| *worker != but && self.idle[*worker].load(Ordering::Acquire) > 0)
    }

    /// Whether a connection may be opened now, past nobody who waits; if so it is counted.
    pub(super) fn try_open(&self, now: Instant) -> bool {
        let mut queue = self.queue();
        let may = queue.is_empty() && queue.try_open(self.moment(now), self.bounds()).is_ok();
        if may {
            // Of those who ask after a stop one is to be known as the one that tries.
            self.note_try(now);
        }
        may
    }

    /// The same for one that nobody waits for.
    pub(super) fn try_open_idle(&self, now: Instant, min_idle: usize) -> bool {
        let mut queue = self.queue();
        queue.open() < min_idle && queue.try_open(self.moment(now), self.bounds()).is_ok()
    }

    /// A counted connection is gone.
    pub(super) fn closed(&self) {
        self.queue().closed();
    }

    /// Goes to the end of the queue.
    pub(super) fn wait(&self, who: Who, shape: Shape, since: Instant) {
        let mut queue = self.queue();
        let since = self.moment(since);
        queue.push(Waiter { who, shape, since });
        self.waiting.store(queue.len(), Ordering::Release);
    }

    /// Waits no longer.
    pub(super) fn leave(&self, who: Who) -> bool {
        let mut queue = self.queue();
        let was_there = queue.remove(who);
        self.waiting.store(queue.len(), Ordering::Release);
        was_there
    }

    /// Whoever is to have a free connection of this shape.
    pub(super) fn take_for(&self, shape: Shape, now: Instant) -> Option<Waiter<Who>> {
        let mut queue = self.queue();
        let waiter = queue.take_for(shape, self.moment(now), PATIENCE);
        self.waiting.store(queue.len(), Ordering::Release);
        waiter
    }

    /// What can be done for the first in the queue.
    pub(super) fn grant(&self, now: Instant) -> Grant<Who> {
        let mut queue = self.queue();
        let grant = queue.grant(self.moment(now), self.bounds());
        self.waiting.store(queue.len(), Ordering::Release);
        grant
    }
}
