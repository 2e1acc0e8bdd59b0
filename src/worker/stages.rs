//! What Atlas itself adds to a statement's time, stage by stage. How long statements wait for their connections their sessions tell;
//! what the loop does between two waits is measured here, in some of its turns: reading the clock for each statement would cost more
//! than the stages do.

use std::time::Instant;

use super::{Target, Worker};

/// What Atlas adds to a statement's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Something has arrived, and the loop has not come to it.
    Queue,
    /// What a client has sent is looked at, and sent on.
    Route,
    /// There is no connection.
    Acquire,
    /// The connection is brought into the session's state.
    Sync,
    /// What a server has sent is looked at, and sent on.
    Relay,
}

pub(super) const STAGES: usize = 5;

/// The names of stages, in the order of [`Stage`].
pub(super) const STAGE_NAMES: [(Stage, &str); STAGES] = [
    (Stage::Queue, "queue"),
    (Stage::Route, "route"),
    (Stage::Acquire, "acquire"),
    (Stage::Sync, "sync"),
    (Stage::Relay, "relay"),
];

/// One turn in so many is measured. A prime: where one client asks and waits, turns for it and for its server alternate, and every
/// second one would show one side alone.
const TURNS: u32 = 31;

impl Worker {
    /// A turn of the loop begins; whether it is measured.
    pub(super) fn begin_turn(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(TURNS)
    }

    /// Handles an event, with a look at the clock before and after.
    #[cold]
    pub(super) fn measured(&mut self, event: &mio::event::Event) {
        let begun = Instant::now();
        let target = Target::from_token(event.token());
        self.work(target);
        let stage = match target {
            Target::Client(_) => Stage::Route,
            Target::Backend(_) => Stage::Relay,
            Target::Mailbox | Target::Listener(_) | Target::Wakeup => return,
        };
        if event.is_readable()
            && let Some(meter) = self.shared.meters.get(self.index)
        {
            meter.add(Stage::Queue, begun.saturating_duration_since(self.now));
            meter.add(stage, begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_place() {
        for (at, (stage, _)) in STAGE_NAMES.iter().enumerate() {
            assert_eq!(*stage as usize, at);
        }
    }
}
