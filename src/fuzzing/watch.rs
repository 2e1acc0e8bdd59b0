//! The part of a worker that watches over the time of statements and ends them.

use std::time::Duration;

use super::worker::{Link, Worker};
use crate::session::{Done, Interruption, Output, Role};

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) now: Duration,
    pub(super) alarm: Option<Duration>,
    /// The connection for whose statement a KILL is on its way.
    pub(super) killing: Option<Role>,
    /// The session has said that it needs not be sent.
    pub(super) is_called_off: bool,
    /// So often it said that nothing is on its way any more.
    pub(super) spared: u32,
    /// What was told last to whoever counts.
    pub(super) done: Option<Done>,
}

impl Watch {
    /// Whether a KILL is on its way to this connection.
    pub(super) fn kills(&self, role: Role) -> bool {
        self.killing == Some(role)
    }

    pub(super) fn has_something(&self) -> bool {
        self.alarm.is_some() || self.killing.is_some()
    }

    /// Carries an output out that is its business.
    pub(super) fn carry_out(&mut self, output: &Output, links: &[Link; 2]) {
        match *output {
            Output::Alarm(at) => self.alarm = Some(at),
            Output::Interrupt { role, thread_id } => {
                assert_eq!((links[role as usize], thread_id), (Link::Ready, 7));
                assert_eq!(self.killing.replace(role), None, "two at a time");
            }
            Output::CallOff { role } => {
                assert_eq!(self.killing, Some(role), "none is on its way");
                self.is_called_off = true;
            }
            Output::Spare { role } => {
                assert_eq!(self.killing, None, "one is on its way to {role:?}");
                self.spared += 1;
            }
            _ => {}
        }
    }
}

impl Worker {
    /// The moment comes at which the session is to look at its statement.
    pub(super) fn ring(&mut self) {
        if let Some(at) = self.watch.alarm.take() {
            self.watch.now = self.watch.now.max(at);
            self.tell(&mut [], |session, cx, _, _, out| session.on_alarm(cx, out));
        }
    }

    /// The KILL that is on its way has come to something.
    pub(super) fn answer_kill(&mut self, kind: u8) {
        if self.watch.killing.take().is_some() {
            let word = match kind % 3 {
                0 => Interruption::Done,
                1 if std::mem::take(&mut self.watch.is_called_off) => Interruption::CalledOff,
                _ => Interruption::Failed,
            };
            self.tell(&mut [], |session, cx, _, _, out| {
                session.on_interrupted(cx, word, out);
            });
        }
    }
}
