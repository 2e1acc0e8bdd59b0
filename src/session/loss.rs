//! Server connections that are gone: what may be tried elsewhere, what the client is told, and when it is hung up on.

use super::hold::Hold;
use super::{
    Attempt, BadReply, Cx, Fault, InsertId, Link, Output, Outputs, Parting, Phase, READ_ATTEMPTS,
    Reply, Role, Running, Session, What,
};
use crate::pool::HostId;
use crate::wire::{Capabilities, Status};

impl Session {
    /// Forgets everything that belongs to the user of before.
    pub(super) fn forget_session(&mut self) {
        self.statements.clear();
        self.last = None;
        self.warned = None;
        self.kept = None;
        self.wrote = None;
        self.tracked.writes = super::causal::Writes::default();
        self.last_route = None;
        self.moved_to = None;
        self.moved_by = None;
        self.begun = Box::default();
        self.is_to_begin = false;
        self.insert_id = InsertId::Known(0);
        self.numbers.row_count = super::Numbers::FRESH.row_count;
        self.forget_status();
    }

    /// The session is as fresh as its next connection to the primary.
    pub(super) fn forget_status(&mut self) {
        self.status = self.fresh_status;
        self.is_in_doubt = false;
        self.status_is_known = false;
    }

    pub(super) fn drop_link(&mut self, role: Role, out: &mut Outputs) {
        if !self.link(role).is_absent() {
            out.push(Output::CloseBackend {
                role,
                parting: Parting::Quit,
            });
        }
        *self.link_mut(role) = Link::Absent;
        self.note_loss(role);
    }

    /// Losing the primary's connection now would lose something that the client relies on.
    pub(super) fn is_bound(&self) -> bool {
        self.status.contains(Status::IN_TRANS)
            || !self.status.contains(Status::AUTOCOMMIT)
            || self.state.pins().bind_connection()
            || self.statements.bound_to_primary()
            // What the server told of columns, and leaves out since, is told anew by none other.
            || (self.capabilities.contains(Capabilities::MARIADB_CACHE_METADATA)
                && !self.statements.is_empty())
    }

    /// The bytes of a server make no sense: its connection is of no use, and the client is told if it can be.
    pub(super) fn on_bad_reply(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        bad: BadReply,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        out.push(Output::CloseBackend {
            role,
            parting: Parting::Kill,
        });
        let why = bad.to_string();
        self.on_backend_lost(cx, role, &why, client, out);
    }

    /// A server was told to end the session's statement, and whether it has heard that nobody will say any more. What came late would hit
    /// the next statement there, so the connection is given up.
    pub fn on_interruption_lost(&mut self, cx: &Cx<'_>, client: &mut [u8], out: &mut Outputs) {
        let Some(overrun) = self.overrun.take() else {
            return;
        };
        let role = overrun.role;
        if self.link(role).is_ready() {
            let runs = self.running().is_some_and(|(on, _)| on == role);
            let parting = if runs { Parting::Kill } else { Parting::Quit };
            out.push(Output::CloseBackend { role, parting });
            self.on_backend_lost(cx, role, "it does not answer a KILL QUERY", client, out);
        }
    }

    /// A server connection is gone; the shell has closed it or is about to.
    pub fn on_backend_lost(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        why: &str,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let host = self.link(role).known().map(|known| known.host);
        *self.link_mut(role) = Link::Absent;
        if let Some(upload) = &mut self.upload
            && upload.to == Some(role)
        {
            upload.to = None;
        }
        let (bound, pinned) = (self.is_bound(), self.is_pinned());
        self.note_loss(role);
        let what = format!("{} {}: {why}", role_name(role), host_name(cx, host));
        if let Some(sync) = self.sync.take_if(|sync| sync.is_on(role)) {
            // A read that went behind it has had no answer, and is still there to be said again.
            if let Some(reply) = self.reply.take_if(|reply| reply.role == role) {
                self.say_again(&reply.command, client);
            }
            if sync.asks_alive() {
                return self.close(out);
            }
            if sync.asks_numbers() {
                // No command waits for it, or one that asks what was there: it is looked at again.
                if role == Role::Primary && pinned {
                    self.close(out);
                }
                return;
            }
            if role == Role::Primary && bound && self.awaits_backend().is_none() {
                // The command was not sent, but what it would have found there is gone.
                return self.refuse_and_close(&Fault::Lost(what), 1, out);
            }
            return self.lost_before_sending(cx, role, host, what, client, out);
        }
        if self.awaits_backend().is_some() {
            return self.lost_before_sending(cx, role, host, what, client, out);
        }
        match self.reply.take() {
            Some(reply) if reply.role == role => self.lost_in_reply(reply, host, what, client, out),
            other => {
                self.reply = other;
                if role == Role::Primary && bound && !matches!(self.phase, Phase::Closed) {
                    // What the client built up there is gone; like the server itself, say nothing and hang up.
                    self.close(out);
                }
            }
        }
    }

    pub(super) fn note_loss(&mut self, role: Role) {
        // What was given back before is another connection.
        let places = [&mut self.last, &mut self.last_rows, &mut self.warned];
        for last in places.into_iter().flatten() {
            last.lost |= last.role == role;
        }
        if role == Role::Primary {
            self.statements.forget_own();
            if self.insert_id == InsertId::OnConnection {
                self.insert_id = InsertId::Lost;
            }
        }
    }

    /// Nothing of the client's command had been sent yet.
    fn lost_before_sending(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        host: Option<HostId>,
        what: String,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        if self.awaits_backend().is_some() {
            self.attempt.failures = self.attempt.failures.saturating_add(1);
            if self.attempt.failures < READ_ATTEMPTS {
                return self.open(role, out);
            }
            return self.login_synced(Some(Fault::Lost(what)), out);
        }
        match role {
            Role::Replica => self.replica_failed(host, what),
            Role::Primary => {
                self.attempt.failures = self.attempt.failures.saturating_add(1);
                if self.attempt.failures >= READ_ATTEMPTS {
                    self.fail_command(cx, &Fault::Lost(what), client, out);
                }
            }
        }
    }

    fn lost_in_reply(
        &mut self,
        reply: Reply,
        host: Option<HostId>,
        what: String,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let Reply {
            role,
            tracker,
            command,
        } = reply;
        self.preparing = None;
        if command.may_retry && tracker.at_start() {
            self.say_again(&command, client);
            return self.replica_failed(host, what);
        }
        if command.retained > 0 {
            out.push(Output::Consume(command.retained));
        }
        self.attempt = Attempt::default();
        // In the middle of a packet of the server, or of packets of its own, the client cannot be told.
        let is_released = role == Role::Primary && self.was_released(&command, client);
        if !tracker.at_boundary() || self.is_mid_upload() || is_released {
            return self.close(out);
        }
        let fault = Fault::Lost(what);
        if role == Role::Primary {
            // The statement may have run or not, and the session's place in a transaction is gone with the connection.
            self.refuse_and_close(&fault, tracker.next_seq(), out);
        } else {
            self.refuse(&fault, tracker.next_seq(), out);
        }
    }

    /// Whether the statement that runs on this connection would be said again elsewhere, were it lost now.
    #[must_use]
    pub fn may_move(&self, role: Role) -> bool {
        self.reply.as_ref().is_some_and(|reply| {
            reply.role == role && reply.command.may_retry && reply.tracker.at_start()
        })
    }

    /// Whether an answer is due on this connection, to the client or to Atlas itself.
    #[must_use]
    pub fn awaits(&self, role: Role) -> bool {
        self.is_syncing(role) || self.reply.as_ref().is_some_and(|reply| reply.role == role)
    }

    /// A read is about to be lost with its connection after it had run for a while: it takes a new one to its server, if that
    /// goes on, to tell.
    pub fn ask_first(&mut self) {
        self.attempt.asks_first = true;
    }

    /// A read was lost with its connection after it had run for a while, and its server goes on: somebody killed it, who would
    /// not have it run again.
    pub fn note_cut(&mut self, server: &str) {
        self.attempt.cut = true;
        self.attempt.why = format!("replica {server} goes on, so the connection was killed").into();
    }

    /// The last-moment check found that the connection's host is not the primary: nothing was sent. The statement is looked at
    /// again and waits for the primary, unless it has to do with something that was there only.
    pub fn on_write_refused(
        &mut self,
        cx: &Cx<'_>,
        host: HostId,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        if self.is_closed() {
            return;
        }
        let was_held = self.hold(Role::Primary) == Hold::Held;
        // The connection waits for what was not sent.
        out.push(Output::CloseBackend {
            role: Role::Primary,
            parting: Parting::Silent,
        });
        *self.link_mut(Role::Primary) = Link::Absent;
        self.note_loss(Role::Primary);
        self.preparing = None;
        let reply = self.reply.take();
        if self.upload.take().is_some() && reply.is_none() {
            // Data for a statement, of which nobody may say a word.
            return self.close(out);
        }
        // Nothing of a long statement has left either: it begins anew.
        self.lookout = None;
        if was_held {
            let what = format!("{} is no longer the primary", host_name(cx, Some(host)));
            let seq = reply.map_or(1, |reply| reply.tracker.next_seq());
            return self.refuse_and_close(&Fault::Lost(what), seq, out);
        }
        if let Some(reply) = reply {
            self.say_again(&reply.command, client);
        }
    }

    /// A command that has left is to be said once more: it stands at the front of the client's bytes, as the client sent it but for an
    /// id, and its time goes on.
    pub(super) fn say_again(&mut self, command: &Running, client: &mut [u8]) {
        self.diary.retry();
        if let (What::Execute { id, .. }, Some(place)) = (command.what, client.get_mut(5..9)) {
            place.copy_from_slice(&id.to_le_bytes());
        }
    }

    /// The client is in the middle of packets of its own, so that an answer would not be in turn.
    fn is_mid_upload(&self) -> bool {
        self.upload
            .as_ref()
            .is_some_and(|upload| upload.is_file || upload.more || upload.seq > 0)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Primary => "primary",
        Role::Replica => "replica",
    }
}

pub(super) fn host_name(cx: &Cx<'_>, host: Option<HostId>) -> String {
    host.and_then(|host| cx.snapshot.hosts.get(host.index()))
        .map_or_else(|| "(unknown)".to_owned(), |entry| entry.address.to_string())
}
