//! Bringing a connection to the session's state before it is used: opening it, replaying what it lacks, preparing a
//! statement on it. Replies to what Atlas itself says are swallowed here.

use std::collections::VecDeque;

use super::reply::is_going_away;
use super::{
    Access, Cx, Expect, Failure, Fault, LinkState, Output, Outputs, Parting, READ_ATTEMPTS, Ready,
    Replay, Role, Session, TrackEvent, Tracker, command::Front,
};
use crate::pool::HostId;
use crate::wire::{Capabilities, Command, ErrPacket, Header, PacketWriter, Status};

/// What Atlas has said to a connection and waits to be answered.
#[derive(Debug)]
pub(super) struct Sync {
    role: Role,
    said: VecDeque<Said>,
    tracker: Tracker,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    /// A piece of session state.
    State,
    /// A prepare of the client's statement.
    Prepare(u32),
    /// Not Atlas's own: a replica's refusal of a read that the primary is to answer instead.
    Refusal(Expect),
}

impl Session {
    /// Whether the connection may be used now. If not, what is missing has been asked for and the command waits.
    pub(super) fn ensure(&mut self, cx: &mut Cx<'_>, role: Role, out: &mut Outputs) -> bool {
        let _ = cx;
        match self.link(role).state {
            LinkState::Opening => false,
            LinkState::Absent => {
                self.open(role, out);
                false
            }
            LinkState::Ready => {
                if self.link(role).applied == self.state.serial() && !self.needs_autocommit(role) {
                    return true;
                }
                self.replay(role, out)
            }
        }
    }

    /// The client has autocommit on, which the server's default may not be: reads leave the primary only with it, and it
    /// outlives a connection to the primary that held nothing else.
    fn needs_autocommit(&self, role: Role) -> bool {
        self.status.contains(Status::AUTOCOMMIT)
            && !self.link(role).status.contains(Status::AUTOCOMMIT)
    }

    pub(super) fn open(&mut self, role: Role, out: &mut Outputs) {
        self.link_mut(role).state = LinkState::Opening;
        self.waiting = Some(role);
        let avoid = if role == Role::Replica {
            self.attempt.avoid
        } else {
            None
        };
        out.push(Output::Open { role, avoid });
    }

    fn replay(&mut self, role: Role, out: &mut Outputs) -> bool {
        let capabilities = self.link(role).capabilities;
        let mut said = VecDeque::new();
        let start = out.arena.len();
        if self.needs_autocommit(role) {
            write_query(&mut out.arena, capabilities, b"SET autocommit = 1");
            said.push_back(Said::State);
        }
        for replay in self.state.since(self.link(role).applied) {
            write_replay(&mut out.arena, capabilities, replay);
            said.push_back(Said::State);
        }
        if said.is_empty() {
            let serial = self.state.serial();
            self.link_mut(role).applied = serial;
            return true;
        }
        // State of the connection, not data: it may go to a replica.
        out.push(Output::SendToBackend {
            role,
            range: start..out.arena.len(),
            access: Access::Read,
        });
        self.start_sync(role, said);
        false
    }

    /// Passes over the refusal that is coming in.
    pub(super) fn swallow_refusal(&mut self, role: Role, expect: Expect) {
        self.start_sync(role, VecDeque::from([Said::Refusal(expect)]));
    }

    fn start_sync(&mut self, role: Role, said: VecDeque<Said>) {
        let tracker = self.tracker_for(role, said.front().copied());
        self.sync = Some(Sync {
            role,
            said,
            tracker,
        });
    }

    fn tracker_for(&self, role: Role, said: Option<Said>) -> Tracker {
        let expect = match said {
            Some(Said::Prepare(_)) => Expect::Prepare,
            Some(Said::Refusal(expect)) => expect,
            Some(Said::State) | None => Expect::Terminal,
        };
        Tracker::new(expect, self.link(role).capabilities).without_files()
    }

    /// Whether the statement is prepared on that connection; if not, that is on its way and the command waits.
    pub(super) fn ensure_prepared(&mut self, role: Role, id: u32, out: &mut Outputs) -> bool {
        let Some(statement) = self.statements.get_mut(id) else {
            return true;
        };
        if statement.server_ids[role as usize].is_some() {
            return true;
        }
        let Some(text) = &statement.text else {
            return true;
        };
        out.backend(role, Access::Read, |buffer| {
            let mut packet = PacketWriter::begin(buffer, 0);
            packet.u8(Command::StmtPrepare.code());
            packet.bytes(text);
            packet.finish();
        });
        self.start_sync(role, VecDeque::from([Said::Prepare(id)]));
        false
    }

    /// Whether this connection's bytes are answers to Atlas itself.
    pub(super) fn is_syncing(&self, role: Role) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync.role == role)
    }

    /// Swallows answers; gives the bytes dealt with.
    pub(super) fn on_sync(
        &mut self,
        cx: &mut Cx<'_>,
        input: &[u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        let Some(mut sync) = self.sync.take() else {
            return 0;
        };
        let role = sync.role;
        let walk = match sync.tracker.walk(input) {
            Ok(walk) => walk,
            Err(bad) => {
                self.sync = Some(sync);
                self.on_bad_reply(cx, role, bad, client, out);
                return input.len();
            }
        };
        match walk.event {
            None => self.sync = Some(sync),
            Some(TrackEvent::Prepared { ok, .. }) => {
                if let Some(Said::Prepare(id)) = sync.said.front()
                    && let Some(statement) = self.statements.get_mut(*id)
                {
                    statement.server_ids[role as usize] = Some(ok.statement_id);
                    statement.types_known[role as usize] = false;
                }
                self.sync = Some(sync);
            }
            // Trackers of what Atlas says refuse such a request.
            Some(TrackEvent::LocalInfile) => self.sync = Some(sync),
            Some(TrackEvent::End) => {
                let outcome = sync.tracker.outcome();
                if let Some(status) = outcome.status {
                    self.link_mut(role).status = status;
                }
                let was = sync.said.pop_front();
                if let (Some(code), Some(was)) = (outcome.error, was)
                    && !matches!(was, Said::Refusal(_))
                {
                    let answer = input.get(..walk.consumed).unwrap_or_default();
                    return self
                        .sync_refused(cx, role, was, (code, answer), client, out)
                        .unwrap_or(input.len());
                }
                sync.tracker = self.tracker_for(role, sync.said.front().copied());
                if !sync.said.is_empty() {
                    self.sync = Some(sync);
                } else if matches!(was, Some(Said::State)) {
                    let serial = self.state.serial();
                    self.link_mut(role).applied = serial;
                    if role == Role::Primary {
                        let status = self.link(role).status;
                        self.note_status(status);
                    }
                }
            }
        }
        walk.consumed
    }

    /// The server would not take what Atlas said. Without the session's state the connection is of no use; that a statement
    /// cannot be prepared is the statement's own fault, and whatever the connection holds (a transaction!) stays. `None` when
    /// the connection is gone.
    fn sync_refused(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        said: Said,
        (code, answer): (u16, &[u8]),
        client: &mut [u8],
        out: &mut Outputs,
    ) -> Option<usize> {
        if is_going_away(code) {
            out.push(Output::CloseBackend {
                role,
                parting: Parting::Silent,
            });
            self.on_backend_lost(cx, role, "the server is going away", client, out);
            return None;
        }
        let fault = server_fault(answer);
        let stays = matches!(said, Said::Prepare(_));
        if !stays {
            self.drop_link(role, out);
        }
        match role {
            // It may not have what the primary has yet: a schema, a table, a role.
            Role::Replica if self.may_fall_back(cx) => {
                self.attempt.force_primary = true;
                self.attempt.why = fault.to_string();
            }
            Role::Replica | Role::Primary => self.fail_command(cx, &fault, client, out),
        }
        stays.then_some(answer.len())
    }

    /// A connection is there.
    pub fn on_backend_ready(&mut self, role: Role, host: HostId, ready: &Ready, out: &mut Outputs) {
        if self.waiting == Some(role) {
            self.waiting = None;
        }
        let link = self.link_mut(role);
        link.state = LinkState::Ready;
        link.host = Some(host);
        link.thread_id = ready.thread_id;
        link.capabilities = ready.capabilities;
        link.status = ready.status;
        link.applied = 0;
        if role == Role::Primary {
            self.fresh_status = ready.status.intersection(Status::OF_SESSION);
            if !self.status_is_known {
                self.status = self.fresh_status;
                self.status_is_known = true;
            }
            // Otherwise the client has set what it has set, and the connection is brought to that before it is used.
            self.server = ready.facts.server();
            self.version = ready.facts.version_number();
        }
        self.login_backend_ready(ready, out);
    }

    /// A connection did not come to be. `host` is the one that was asked.
    pub fn on_backend_failed(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        host: Option<HostId>,
        failure: &Failure,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        if self.waiting == Some(role) {
            self.waiting = None;
        }
        *self.link_mut(role) = super::Link::default();
        if self.login_backend_failed(cx, role, failure, out) {
            return;
        }
        let fault = self.fault_of(cx, role, failure);
        match role {
            Role::Primary => self.fail_command(cx, &fault, client, out),
            Role::Replica => {
                self.replica_failed(host, fault.to_string());
                if matches!(failure, Failure::NoHost) {
                    self.attempt.force_primary = true;
                }
            }
        }
    }

    /// Notes that a replica did not serve the command at the front. The command is looked at again.
    pub(super) fn replica_failed(&mut self, host: Option<HostId>, why: String) {
        self.attempt.failures = self.attempt.failures.saturating_add(1);
        self.attempt.avoid = host.or(self.attempt.avoid);
        self.attempt.why = why;
        if self.attempt.failures >= READ_ATTEMPTS {
            self.attempt.force_primary = true;
        }
    }

    /// Answers the command at the front of the client's bytes with an error.
    pub(super) fn fail_command(
        &mut self,
        cx: &Cx<'_>,
        fault: &Fault,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let _ = cx;
        let Some(header) = Header::parse(client) else {
            return;
        };
        let mut front = Front {
            bytes: client,
            at: 0,
            len: header.len,
        };
        let consumed = match self.takes_long_data(&front) {
            Some(statement) => {
                statement.lost_data = Some(Box::new(fault.clone()));
                self.attempt = super::Attempt::default();
                self.skip(&mut front)
            }
            None => self.refuse_front(front, fault, out),
        };
        out.push(Output::Consume(consumed));
        self.want = 4;
    }

    pub(super) fn fault_of(&self, cx: &Cx<'_>, role: Role, failure: &Failure) -> Fault {
        let group = self.group(cx.snapshot).name.clone();
        let without = |why: String| match role {
            Role::Primary => Fault::NoPrimary {
                group: group.clone(),
                why,
            },
            Role::Replica => Fault::NoReplica {
                group: group.clone(),
                why,
            },
        };
        match failure {
            Failure::NoHost => without("no server answers".to_owned()),
            Failure::Unreachable(why) => without(why.clone()),
            Failure::Refused {
                code,
                sqlstate,
                message,
            } => Fault::Server {
                code: *code,
                sqlstate: *sqlstate,
                message: message.clone(),
            },
            Failure::Exhausted(why) => Fault::Exhausted(why.clone()),
            Failure::Incompatible => Fault::Incompatible(group),
        }
    }
}

/// The error in the last packet of these bytes, which end with an ERR packet.
fn server_fault(bytes: &[u8]) -> Fault {
    let mut rest = bytes;
    let mut last: &[u8] = b"";
    while let Some(header) = Header::parse(rest) {
        last = rest
            .get(4..(4 + header.len).min(rest.len()))
            .unwrap_or_default();
        rest = rest.get(4 + header.len..).unwrap_or_default();
    }
    match ErrPacket::parse(last) {
        Ok(err) => Fault::Server {
            code: err.code,
            sqlstate: err.sqlstate.unwrap_or(*b"HY000"),
            message: String::from_utf8_lossy(err.message).into_owned(),
        },
        Err(_) => Fault::BadReply("the server refused the session's state".to_owned()),
    }
}

/// COM_QUERY, with no query attributes where the connection expects some.
fn write_query(buffer: &mut Vec<u8>, capabilities: Capabilities, sql: &[u8]) {
    let mut packet = PacketWriter::begin(buffer, 0);
    packet.u8(Command::Query.code());
    if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
        packet.bytes(&[0, 1]);
    }
    packet.bytes(sql);
    packet.finish();
}

fn write_replay(buffer: &mut Vec<u8>, capabilities: Capabilities, replay: &Replay) {
    let command = |buffer: &mut Vec<u8>, command: Command, body: &[u8]| {
        let mut packet = PacketWriter::begin(buffer, 0);
        packet.u8(command.code());
        packet.bytes(body);
        packet.finish();
    };
    match replay {
        Replay::Query(text) => write_query(buffer, capabilities, text),
        Replay::InitDb(name) => command(buffer, Command::InitDb, name),
        Replay::SetOption(option) => command(buffer, Command::SetOption, &option.to_le_bytes()),
        Replay::Reset => command(buffer, Command::ResetConnection, b""),
    }
}
