//! Whether this instance wants clients: what health checks are told, and written by control only. Nothing on a statement's way
//! looks at it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// See the module's words.
#[derive(Debug, Default)]
pub struct Condition {
    is_serving: AtomicBool,
    is_offline: AtomicBool,
    is_draining: AtomicBool,
    lost_workers: AtomicUsize,
}

/// What a health check is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Clients are not accepted yet.
    Starting,
    /// Clients are welcome.
    Ready,
    /// An operator sends clients elsewhere; those that come are served.
    Offline,
    /// It is stopping.
    Draining,
}

impl Readiness {
    /// One word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Offline => "offline",
            Self::Draining => "draining",
        }
    }
}

impl Condition {
    /// What a health check is told now.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        if self.is_draining.load(Ordering::Acquire) {
            Readiness::Draining
        } else if !self.is_serving.load(Ordering::Acquire) {
            Readiness::Starting
        } else if self.is_offline.load(Ordering::Acquire) {
            Readiness::Offline
        } else {
            Readiness::Ready
        }
    }

    /// Workers that have ended because of a fault.
    #[must_use]
    pub fn lost_workers(&self) -> usize {
        self.lost_workers.load(Ordering::Relaxed)
    }

    /// Clients are accepted from now on.
    pub fn set_serving(&self) {
        self.is_serving.store(true, Ordering::Release);
    }

    /// Takes it offline for health checks, or online again; returns whether that changed.
    pub fn set_offline(&self, offline: bool) -> bool {
        self.is_offline.swap(offline, Ordering::AcqRel) != offline
    }

    /// The stop has begun; there is no way back. Whether that is news.
    pub fn set_draining(&self) -> bool {
        !self.is_draining.swap(true, Ordering::AcqRel)
    }

    /// A worker has ended because of a fault.
    pub fn lose_worker(&self) {
        self.lost_workers.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_start_to_stop() {
        let condition = Condition::default();
        assert_eq!(condition.readiness(), Readiness::Starting);
        // An operator may say so before it is ready.
        assert!(condition.set_offline(true) && !condition.set_offline(true));
        assert_eq!(condition.readiness(), Readiness::Starting);
        condition.set_serving();
        assert_eq!(condition.readiness(), Readiness::Offline);
        assert!(condition.set_offline(false));
        assert_eq!(condition.readiness(), Readiness::Ready);
        assert!(condition.set_draining() && !condition.set_draining());
        condition.set_offline(false);
        assert_eq!(condition.readiness(), Readiness::Draining);
    }
}
