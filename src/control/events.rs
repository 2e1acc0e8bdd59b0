//! What has happened that an operator may ask for later: a bounded list of events, each with its time and who caused it. Every
//! event is in the log as well.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The newest so many are kept.
const KEPT: usize = 1000;

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// Counts all events since the start, from 1.
    pub number: u64,
    /// When.
    pub at: SystemTime,
    /// Who caused it: an account of the admin port with its address, `signal`, or `atlas` itself.
    pub who: String,
    /// What kind, a word or two: `reload`, `primary`, `offline`.
    pub kind: &'static str,
    /// What happened, for people.
    pub text: String,
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Events(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    events: VecDeque<Event>,
}

impl Events {
    /// Notes an event and tells the log.
    pub fn record(&self, who: &str, kind: &'static str, text: String) {
        log::info!("{kind} ({who}): {text}");
        let mut kept = self.lock();
        kept.count += 1;
        let event = Event {
            number: kept.count,
            at: SystemTime::now(),
            who: who.to_owned(),
            kind,
            text,
        };
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(event);
    }

    /// Those that are kept, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        self.lock().events.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic elsewhere leaves at most an event uncounted.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let events = Events::default();
        for n in 1..=KEPT + 7 {
            events.record("atlas", "test", n.to_string());
        }
        let all = events.all();
        assert_eq!(all.len(), KEPT);
        assert_eq!((all[0].number, all[0].text.as_str()), (8, "8"));
        assert_eq!(all[KEPT - 1].number, 1007);
    }
}
