//! The listening sockets of the process, each with what it is for, beside the handles that those who accept on them have: so that
//! another process can be given them all, and so that a stop really closes them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mio::Waker;

/// See the module's words.
#[derive(Debug, Default)]
pub struct Doors {
    state: Mutex<State>,
    is_handed_over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    sockets: Vec<(String, OwnedFd)>,
    /// Of threads that accept and read no mailbox.
    wakers: Vec<Waker>,
}

impl Doors {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each call leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a further handle of a listening socket.
    pub fn add(&self, label: String, socket: OwnedFd) {
        self.state().sockets.push((label, socket));
    }

    /// Handles of all of them, to be passed on.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn copies(&self) -> std::io::Result<Vec<(String, OwnedFd)>> {
        let state = self.state();
        let copy = |(label, socket): &(String, OwnedFd)| Ok((label.clone(), socket.try_clone()?));
        state.sockets.iter().map(copy).collect()
    }

    /// Wakes this thread when it is to accept no more.
    pub fn wake_at_hand_over(&self, waker: Waker) {
        self.state().wakers.push(waker);
    }

    /// The sockets are to be closed: those who accept on them have the only handles from here on.
    pub fn forget(&self) {
        self.state().sockets.clear();
    }

    /// Another process has them all and accepts on them.
    pub fn hand_over(&self) {
        self.is_handed_over.store(true, Ordering::Release);
        let mut state = self.state();
        state.sockets.clear();
        for waker in &state.wakers {
            // It fails when its thread is gone.
            let _ = waker.wake();
        }
    }

    /// Whether another process has them.
    #[must_use]
    pub fn are_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Acquire)
    }
}
