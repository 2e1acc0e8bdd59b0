//! What sessions have told for the logs of statements: who it was is added, and it is handed over once a turn of the loop. And clients
//! that wait because the audit log cannot take more.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::client::Client;
use super::slots::Key;
use super::{Target, Worker};
use crate::record::{Entry, What};
use crate::session::{Done, Fault, Outputs, Peer, Session, Told};

/// Bytes of a name that a client without an account has given. Servers take no longer ones.
const NAME_MAX: usize = 128;

/// Entries of a turn that are handed over before its end.
const UNTOLD_MAX: usize = 256;

/// Entries that have not been handed over.
#[derive(Debug, Default)]
pub(super) struct Pending {
    slow: Vec<Arc<Entry>>,
    audit: Vec<Arc<Entry>>,
    /// Clients that wait until the audit log has room.
    stalled: HashSet<Key>,
}

fn address(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Ip(ip) => Some(ip),
        Peer::Local => None,
    }
}

fn entry(session: &Session, account: Option<usize>, what: What) -> Entry {
    let user = session.user();
    let claimed = match account {
        Some(_) => Vec::new(),
        None => user.get(..NAME_MAX).unwrap_or(user).to_vec(),
    };
    Entry {
        at: SystemTime::now(),
        connection: session.id(),
        client: address(session.peer()),
        account,
        claimed,
        what,
    }
}

impl Worker {
    /// Takes up what a session has told.
    #[cold]
    pub(super) fn take_down(&mut self, key: Key, outputs: &mut Outputs) {
        let Some(client) = self.clients.get(key) else {
            return outputs.told.clear();
        };
        let log = &self.live.snapshot.config.log;
        let session = &client.session;
        for told in outputs.told.drain(..) {
            let is_audited = log.audit_file.is_some();
            let account = Some(session.account_index());
            match told {
                Told::LoggedIn if is_audited => {
                    let schema = session.schema().map(Into::into);
                    let entry = entry(session, account, What::LogIn { schema });
                    self.pending.audit.push(Arc::new(entry));
                }
                Told::TurnedAway(code) if is_audited => {
                    let entry = entry(session, None, What::Refused(code));
                    self.pending.audit.push(Arc::new(entry));
                }
                Told::Reset if log.takes(Duration::ZERO, true, false).audit => {
                    let entry = entry(session, account, What::Reset);
                    self.pending.audit.push(Arc::new(entry));
                }
                Told::LoggedIn | Told::TurnedAway(_) | Told::Reset => {}
                Told::Copy(mirror, mut copy) => {
                    copy.took = self.moment.saturating_sub(copy.since);
                    mirror.put(copy);
                }
                Told::Statement(mut statement) => {
                    statement.took = self.moment.saturating_sub(statement.since);
                    let failed = statement.error != 0 || statement.is_aborted;
                    let to = log.takes(statement.took, statement.is_write, failed);
                    if !(to.slow || to.audit) {
                        continue;
                    }
                    let entry = Arc::new(entry(session, account, What::Statement(statement)));
                    if to.slow {
                        self.pending.slow.push(entry.clone());
                    }
                    if to.audit {
                        self.pending.audit.push(entry);
                    }
                }
            }
        }
    }

    /// A client goes.
    #[cold]
    pub(super) fn note_gone(&mut self, client: &Client) {
        let session = &client.session;
        if self.live.snapshot.config.log.audit_file.is_some() && session.has_logged_in() {
            let entry = entry(session, Some(session.account_index()), What::LogOut);
            self.pending.audit.push(Arc::new(entry));
        }
    }

    /// A client was turned away before it could say anything.
    #[cold]
    pub(super) fn note_turned_away(&mut self, peer: Peer, fault: &Fault) {
        let (code, _) = fault.code();
        self.count(&[Done::TurnedAway(code)], None);
        if self.live.snapshot.config.log.audit_file.is_none() {
            return;
        }
        // Such clients may be without number, and nobody waits for their sake.
        if self.shared.logs.audit.is_full() {
            self.shared.logs.audit.note_dropped(1);
        } else {
            self.pending.audit.push(Arc::new(Entry {
                at: SystemTime::now(),
                connection: 0,
                client: address(peer),
                account: None,
                claimed: Vec::new(),
                what: What::Refused(code),
            }));
        }
    }

    /// Hands over what the turn has had.
    #[inline]
    pub(super) fn hand_over(&mut self) {
        if !(self.pending.slow.is_empty() && self.pending.audit.is_empty()) {
            self.hand_over_all();
        }
    }

    #[cold]
    fn hand_over_all(&mut self) {
        let keeps_all = self.live.snapshot.config.log.audit_waits();
        if !self.pending.slow.is_empty() {
            self.shared.logs.slow.put(&mut self.pending.slow, false);
        }
        if !self.pending.audit.is_empty() {
            self.shared
                .logs
                .audit
                .put(&mut self.pending.audit, keeps_all);
        }
    }

    /// Whether the client is to say nothing more before the audit log has room. It is heard again then.
    #[inline]
    pub(super) fn must_wait_for_log(&mut self, key: Key) -> bool {
        self.live.snapshot.config.log.audit_waits() && self.waits_for_log(key)
    }

    #[cold]
    fn waits_for_log(&mut self, key: Key) -> bool {
        // What this turn has had counts too.
        if self.pending.audit.len() >= UNTOLD_MAX {
            self.hand_over();
        }
        if !self.shared.logs.audit.is_full() {
            return false;
        }
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        // Legs answer a statement that runs, and one whose end has not been sent is not over.
        if client.leg_of().is_some() || !client.session.is_idle() || client.conn.peer_closed() {
            return false;
        }
        self.pending.stalled.insert(key);
        true
    }

    /// The audit log has room again, or may have.
    pub(super) fn hear_stalled(&mut self) {
        let stalled = self.pending.stalled.drain();
        self.again.extend(stalled.map(Target::Client));
    }
}
