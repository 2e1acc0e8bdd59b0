//! The role of the primary goes elsewhere: statements that a server refuses because it takes no writes any more wait for the next
//! primary, and connections to the one before are given up.

use std::collections::VecDeque;

use super::hold::Hold;
use super::loss::host_name;
use super::sync::Said;
use super::{Access, Cx, InsertId, Output, Outputs, Parting, Role, Session, What};
use crate::config::Topology;
use crate::sql::{Kind, Traits};
use crate::wire::{ErrPacket, Header, Status};

/// What a server answers to a write when it is read-only: ER_OPTION_PREVENTS_STATEMENT, which names the option, and
/// ER_READ_ONLY_MODE.
const OPTION_PREVENTS: u16 = 1290;
const READ_ONLY_MODE: u16 = 1836;

/// A statement that is refused so often while checks call the server writable is refused for another reason.
const REFUSALS_MAX: u8 = 3;

impl Session {
    /// Whether a statement that leaves for the primary is to be kept until the server has begun to answer, so that it can be said
    /// to another one. Where nothing follows the servers' roles, there is no other one.
    pub(super) fn may_wait_for_primary(&self, cx: &Cx<'_>, traits: Traits) -> bool {
        self.group(cx.snapshot).config.topology == Topology::Follow
            && !self.status.contains(Status::IN_TRANS)
            && !traits.intersects(Traits::CALL | Traits::DIAGNOSTICS)
            && !self.state.pins().bind_connection()
            && !self.statements.bound_to_primary()
    }

    /// Whether the error that begins the reply says that the server takes no writes any more, to a statement that can wait for one
    /// that does. The whole statement was refused: an autocommitted one is undone, and of several the first did not run.
    pub(super) fn may_wait(&self, code: u16, reply: &[u8], client: &[u8]) -> bool {
        let Some(command) = self.reply.as_ref().map(|reply| reply.command) else {
            return false;
        };
        let (kind, text) = match command.what {
            What::Query { kind, at, .. } => (kind, client.get(at..command.retained)),
            What::Execute { kind, .. } => (kind, None),
            _ => return false,
        };
        let may_have_run = match kind {
            Kind::Execute | Kind::Unknown => true,
            // An EXECUTE may be a CALL, which does one thing after the other.
            Kind::Batch => {
                let is_execute = |word: &[u8]| word.eq_ignore_ascii_case(b"execute");
                text.is_none_or(|text| text.windows(7).any(is_execute))
            }
            _ => false,
        };
        command.waits
            && command.retained > 0
            && !may_have_run
            && refuses_writes(code, reply)
            && self.attempt.refusals < REFUSALS_MAX
    }

    /// Passes over the refusal that is coming in, and gives the connection up; the statement is looked at again.
    pub(super) fn await_primary(&mut self, client: &mut [u8], out: &mut Outputs) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        self.preparing = None;
        self.say_again(&reply.command, client);
        self.attempt.refusals = self.attempt.refusals.saturating_add(1);
        self.attempt.why = "the server is read-only".into();
        out.push(Output::PrimaryIsReadOnly);
        let role = reply.role;
        self.retired[role as usize] = true;
        let mut said = VecDeque::from([Said::Refusal(reply.tracker.expect())]);
        if self.insert_id == InsertId::OnConnection {
            // What is known there alone goes along.
            let start = out.arena.len();
            let capabilities = self.capabilities_of(role);
            super::bring::write_query(&mut out.arena, capabilities, super::hold::ASK);
            out.push(Output::SendToBackend {
                role,
                range: start..out.arena.len(),
                access: Access::Read,
            });
            said.push_back(Said::Numbers);
        }
        self.start_sync(role, said);
    }

    /// The host of the primary's connection has lost its role. `is_closed` says that it is there and takes no writes. A transaction
    /// there is lost, as it would be with the server; everything else goes on with the next primary.
    pub fn on_demoted(
        &mut self,
        cx: &Cx<'_>,
        is_closed: bool,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let role = Role::Primary;
        if self.is_closed() || !self.link(role).is_ready() {
            return;
        }
        if self.is_sending_statement(role) {
            let host = self.link(role).known().map(|known| known.host);
            let what = format!("{} is no longer the primary", host_name(cx, host));
            return self.stop_demoted_upload(cx, what, out);
        }
        let is_running = self.reply.as_ref().is_some_and(|reply| reply.role == role);
        let is_lost = self.hold(role) == Hold::Held || (is_running && !is_closed);
        if !is_lost {
            // What runs there is refused by the server itself, or has been done.
            return self.on_retire(role, out);
        }
        let parting = if is_running {
            Parting::Kill
        } else if self.is_syncing(role) {
            Parting::Silent
        } else {
            Parting::Quit
        };
        out.push(Output::CloseBackend { role, parting });
        self.on_backend_lost(cx, role, "it is no longer the primary", client, out);
    }
}

/// Whether the error that begins a reply is that of a server that takes no writes.
pub(super) fn refuses_writes(code: u16, reply: &[u8]) -> bool {
    code == READ_ONLY_MODE || code == OPTION_PREVENTS && names_read_only(reply)
}

/// Whether an ERR packet speaks of `read-only`, `read_only` or `super-read-only`.
fn names_read_only(reply: &[u8]) -> bool {
    let payload = Header::parse(reply).and_then(|header| reply.get(4..4 + header.len));
    let error = payload.map(ErrPacket::parse);
    matches!(error, Some(Ok(error)) if error.message.windows(9).any(|w| w == b"read-only" || w == b"read_only"))
}
