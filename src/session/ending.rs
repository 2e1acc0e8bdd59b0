//! What a shell asks that wants sessions to end: whether one may, and how it would be told.

use super::{Phase, Pins, Session};
use crate::wire::Status;

impl Session {
    /// Nothing is going on, and no transaction (or what LOCK TABLES began) would be lost by closing: for draining.
    #[must_use]
    pub fn is_between_transactions(&self) -> bool {
        self.is_idle()
            && !self.status.contains(Status::IN_TRANS)
            && !self.state.pins().any_of(Pins::LOCKED_TABLES)
    }

    /// The sequence id of a reply to what the client says next: an error that nobody asked for is read as that reply.
    #[must_use]
    pub fn next_reply_seq(&self) -> u8 {
        match &self.phase {
            Phase::Login(login) => login.next_reply_seq(),
            Phase::Command | Phase::Closed => 1,
        }
    }

    /// Whether the log-in waits for the client, and not for a server or for the time of its answer.
    #[must_use]
    pub fn awaits_log_in(&self) -> bool {
        matches!(&self.phase, Phase::Login(login) if !login.is_denied())
            && self.awaits_backend().is_none()
    }
}
