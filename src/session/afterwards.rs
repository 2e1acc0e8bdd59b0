//! What is noted of a plain read when the client has the answer: nobody waits for that. Where the caches have gone cold since the last
//! statement it is a fifth of what there is to do.
//!
//! The shell writes what it was asked to write, and then calls [`Session::afterwards`] before anything else is told to the session.

use std::time::Duration;

use super::{Outputs, Session, Texts};

impl Session {
    /// Whether [`Self::afterwards`] has anything to do.
    #[must_use]
    #[inline]
    pub fn owes(&self) -> bool {
        self.diary.owes_end
    }

    /// Notes what was put off.
    pub fn afterwards(&mut self, now: Duration, texts: &mut Texts, out: &mut Outputs) {
        if std::mem::take(&mut self.diary.owes_end) {
            self.end_plain(now, texts, out);
            if std::mem::take(&mut self.is_done) {
                self.give_back(out);
            }
        }
    }
}
