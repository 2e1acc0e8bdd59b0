//! What came up while a session's outputs were carried out, and is told to it, or to another, when they have been.

use super::slots::Key;
use super::{Killed, Worker};
use crate::pool::HostId;
use crate::session::{Failure, Interruption, Known, Role, Verdict};
use crate::shard::Xid;

/// Something to be told to a session after its outputs have been carried out.
#[derive(Debug)]
pub(super) enum Deferred {
    OpenFailed {
        client: Key,
        role: Role,
        host: Option<HostId>,
        failure: Failure,
    },
    WriteRefused {
        client: Key,
        host: HostId,
    },
    /// The same for a piece of what had left in part.
    RestRefused {
        client: Key,
        host: HostId,
    },
    KillDone {
        client: Key,
        killed: Killed,
    },
    Denied {
        client: Key,
    },
    /// What became of a KILL for this client's own statement.
    Interrupted {
        client: Key,
        word: Interruption,
    },
    /// Whether a server has heard of a KILL for this client's own statement nobody will say any more.
    InterruptionLost {
        client: Key,
    },
    /// Legs of this client's statement have said something, or can be heard again.
    Legs {
        client: Key,
    },
    /// The decision about this client's transaction cannot be written down.
    NotDecided {
        client: Key,
        xid: Xid,
    },
    EndLeg {
        leg: Key,
    },
    Lent {
        client: Key,
        role: Role,
        known: Box<Known>,
    },
    /// Somebody waits for a connection to this host, and a session has one that it would give back.
    Reclaim(HostId),
}

impl Worker {
    /// Tells all of it, and what comes up by that.
    #[inline]
    pub(super) fn settle_deferred(&mut self) {
        if !self.deferred.is_empty() {
            self.settle_all();
        }
    }

    #[inline(never)]
    fn settle_all(&mut self) {
        while let Some(deferred) = self.deferred.pop_front() {
            match deferred {
                Deferred::OpenFailed {
                    client,
                    role,
                    host,
                    failure,
                } => {
                    self.tell(client, |session, cx, bytes, out| {
                        session.on_backend_failed(cx, role, host, &failure, bytes, out)
                    });
                    self.work_client(client);
                }
                Deferred::Lent {
                    client,
                    role,
                    known,
                } => {
                    self.tell(client, |session, cx, _, out| {
                        session.note_acquired(cx.now);
                        session.on_backend_ready(role, known, out)
                    });
                    self.pump_client(client);
                }
                Deferred::WriteRefused { client, host } => {
                    self.tell(client, |session, cx, bytes, out| {
                        session.on_write_refused(cx, host, bytes, out)
                    });
                    self.work_client(client);
                }
                Deferred::RestRefused { client, host } => {
                    self.tell(client, |session, cx, bytes, out| {
                        session.on_rest_refused(cx, host, bytes, out)
                    });
                    self.work_client(client);
                }
                Deferred::Denied { client } => self.tell_denial(client),
                Deferred::Interrupted { client, word } => {
                    self.tell(client, |session, cx, _, out| {
                        session.on_interrupted(cx, word, out);
                    });
                    self.pump_client(client);
                }
                Deferred::InterruptionLost { client } => {
                    self.tell(client, |session, cx, bytes, out| {
                        session.on_interruption_lost(cx, bytes, out);
                    });
                    self.work_client(client);
                }
                Deferred::Reclaim(host) => {
                    self.reclaim(host);
                }
                Deferred::NotDecided { client, xid } => self.decided(client, xid, Verdict::No),
                Deferred::Legs { client } => self.hear_legs(client),
                Deferred::EndLeg { leg } => self.client_gone(leg),
                Deferred::KillDone { client, killed } => {
                    self.tell(client, |session, _, _, out| {
                        if killed == Killed::NotOwner {
                            session.on_kill_refused(out);
                        } else {
                            session.on_kill_done(killed == Killed::Done, out);
                        }
                    });
                    self.work_client(client);
                }
            }
        }
    }
}
