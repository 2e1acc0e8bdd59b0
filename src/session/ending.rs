//! Ends: of a command that is answered instead of being sent, and of a session whose client is gone, or that a shell asks whether it may
//! end and how it would be told.

use super::departure::Front;
use super::hold::Hold;
use super::{
    Access, Attempt, Fault, InsertId, Link, Output, Outputs, Parting, Phase, Pins, Role, Session,
    Turn, Upload,
};
use crate::wire::{MAX_PAYLOAD, Status};

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

    /// The client's socket was closed. Whatever still runs for it is killed with its connection.
    pub fn on_client_closed(&mut self, out: &mut Outputs) {
        self.write_aborted(out);
        let running = self.running().map(|(role, _)| role);
        let uploads_to = self.upload.as_ref().and_then(|upload| upload.to);
        for role in Role::BOTH {
            let is_busy = running == Some(role)
                || uploads_to == Some(role)
                || self.is_syncing(role)
                || !matches!(self.phase, Phase::Command);
            let is_free = self.shares && !is_busy && self.hold(role) != Hold::Held;
            let parting = if running == Some(role) || self.is_asked(role) {
                Parting::Kill
            } else if uploads_to == Some(role) {
                Parting::Silent
            } else {
                Parting::Quit
            };
            match std::mem::take(self.link_mut(role)) {
                Link::Ready(mut known) if is_free => {
                    if role == Role::Primary && self.insert_id == InsertId::OnConnection {
                        known.insert_id = None;
                    }
                    out.push(Output::Release { role, known });
                }
                Link::Absent => {}
                Link::Ready(_) | Link::Opening => {
                    out.push(Output::CloseBackend { role, parting });
                }
            }
        }
        if let Some(xid) = self.across() {
            let is_clean = false;
            out.push(Output::Across(xid, Turn::Over { is_clean }));
        }
        self.legs = None;
        self.phase = Phase::Closed;
    }

    /// Answers the command at the front with an error instead of sending it.
    #[cold]
    pub(super) fn refuse_front(
        &mut self,
        mut front: Front<'_>,
        fault: &Fault,
        out: &mut Outputs,
    ) -> usize {
        let consumed = self.skip(&mut front);
        self.diary.left();
        self.attempt = Attempt::default();
        let reported = self.end_pieces(fault);
        let fault = reported.as_ref().unwrap_or(fault);
        if front.len == MAX_PAYLOAD {
            self.refuse_behind(fault);
            return consumed;
        }
        self.refuse(fault, 1, out);
        self.give_back(out);
        consumed
    }

    /// Passes over the command at the front, also over what has not arrived of it.
    #[cold]
    pub(super) fn skip(&mut self, front: &mut Front<'_>) -> usize {
        let here = front.total().min(front.bytes.len());
        if !front.is_whole() {
            self.upload = Some(Upload {
                to: None,
                access: Access::Read,
                left: front.total() - here,
                more: front.len == MAX_PAYLOAD,
                seq: 0,
                is_file: false,
            });
        }
        here
    }
}
