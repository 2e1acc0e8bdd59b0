//! What is known of a host's part in its group beside its role: for whoever gives the role up, and for checks. Decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};

/// See the module's words.
#[derive(Debug, Default)]
pub struct Standing {
    doubted: AtomicBool,
    closed: AtomicBool,
    hasty: AtomicBool,
}

impl Standing {
    /// Whether a server that leads may do so no more: it has refused a write as read-only, and no check has looked since.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Relaxed)
    }

    /// Notes that doubt, or its end; returns whether that changed.
    pub fn set_doubted(&self, doubted: bool) -> bool {
        self.doubted.swap(doubted, Ordering::Relaxed) != doubted
    }

    /// Whether the last check saw that it takes no writes.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Notes whether it was seen to take no writes.
    pub fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// Whether the roles of its group are in question, so that it is to be checked more often.
    #[must_use]
    pub fn is_hasty(&self) -> bool {
        self.hasty.load(Ordering::Relaxed)
    }

    /// Notes whether they are.
    pub fn set_hasty(&self, hasty: bool) {
        self.hasty.store(hasty, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_its_own() {
        let standing = Standing::default();
        assert!(!standing.is_doubted() && !standing.is_closed() && !standing.is_hasty());
        assert!(standing.set_doubted(true) && !standing.set_doubted(true));
        assert!(standing.is_doubted() && !standing.is_closed() && !standing.is_hasty());
        standing.set_closed(true);
        standing.set_hasty(true);
        assert!(standing.set_doubted(false) && standing.is_closed() && standing.is_hasty());
    }
}
