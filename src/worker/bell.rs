//! Wakes the thread that checks a server: something that happened calls for a look now, not at the next interval.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// See the module's words.
#[derive(Debug, Default)]
pub struct Bell {
    has_rung: Mutex<bool>,
    condition: Condvar,
}

impl Bell {
    /// Asks for a look.
    pub fn ring(&self) {
        *self.has_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }

    /// Waits for so long, or until somebody rings or has rung since the last time.
    pub fn wait(&self, timeout: Duration) {
        let has_rung = self.has_rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .condition
            .wait_timeout_while(has_rung, timeout, |has_rung| !*has_rung);
        let (mut has_rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *has_rung = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_hears_also_what_rang_before() {
        let bell = Bell::default();
        bell.ring();
        bell.wait(Duration::MAX);
        std::thread::scope(|scope| {
            scope.spawn(|| bell.wait(Duration::MAX));
            bell.ring();
        });
        bell.wait(Duration::ZERO);
    }
}
