//! A command that no server serves: what the client is told of a connection that did not come to be, and of a server that
//! refused what Atlas said to it. Connections that are lost once they were there are in `loss`.

use super::{
    Cx, Failure, Fault, Link, Output, Outputs, READ_ATTEMPTS, Role, Session, departure::Front,
};
use crate::pool::HostId;
use crate::wire::{ErrPacket, Header};

impl Session {
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
        *self.link_mut(role) = Link::Absent;
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
        self.attempt.why = why.into();
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
pub(super) fn server_fault(bytes: &[u8]) -> Fault {
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
