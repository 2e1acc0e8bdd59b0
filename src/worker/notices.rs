//! What workers have noticed that an operator wants to know of: control makes events of it. Bounded; what finds no room is in the
//! log only.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// So many wait to be read.
const WAITING_MAX: usize = 256;

/// Something noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What kind, a word.
    pub kind: &'static str,
    /// What, for people.
    pub text: String,
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Notices {
    waiting: Mutex<VecDeque<Notice>>,
    arrived: Condvar,
}

impl Notices {
    /// Tells of something.
    pub fn tell(&self, kind: &'static str, text: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push_back(Notice { kind, text });
            self.arrived.notify_one();
        } else {
            log::warn!("{kind}: {text}");
        }
    }

    /// The next one; waits for it.
    pub fn next(&self) -> Notice {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(notice) = waiting.pop_front() {
                return notice;
            }
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
