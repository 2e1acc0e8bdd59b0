//! Side connections: a statement whose client is gone, or that has run for long enough, is killed on its server over a connection of
//! its own, by the account that runs it.

use std::time::Duration;

use super::backend::Purpose;
use super::overrun::Victim;
use super::slots::Key;
use super::{Deferred, Worker};
use crate::route::Role;
use crate::session::{Credentials, Interruption, Parting, Session, TlsWish, Upstream, Wish};

/// Side connections of one worker at a time; beyond, statements of vanished clients run to their end.
const KILLS_MAX: usize = 64;

/// A KILL that was sent and that a session waits for is waited for as long, from the beginning of its connection on.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillWish {
    /// The connection.
    Connection,
    /// What runs on it.
    Statement,
    /// The same, and the client's session waits for the answer.
    StatementAndTell,
}

impl Worker {
    /// The answer to a KILL came: the side connection has done its work.
    pub(super) fn side_connection(&mut self, key: Key) -> bool {
        if !matches!(
            self.backends.get(key).map(|b| b.purpose),
            Some(Purpose::Kill { sent: true, .. })
        ) {
            return true;
        }
        self.answer_interrupt(key, Interruption::Done);
        self.drop_backend(key, Parting::Quit);
        false
    }

    /// Has a statement killed on its server over a connection of its own, by the account that runs it. False when it cannot be.
    pub(super) fn kill_on_server(
        &mut self,
        client: Key,
        role: Role,
        thread_id: u32,
        wish: KillWish,
    ) -> bool {
        let kills = self
            .backends
            .iter()
            .filter(|(_, b)| matches!(b.purpose, Purpose::Kill { .. }))
            .count();
        if kills >= KILLS_MAX {
            log::warn!("too many statements to kill at once: {thread_id} runs on");
            return false;
        }
        let Some(owner) = self.clients.get(client) else {
            return false;
        };
        let Some(backend) = owner.backends[role as usize].and_then(|b| self.backends.get_mut(b))
        else {
            return false;
        };
        backend.is_condemned = true;
        let began = (wish != KillWish::Connection).then(|| owner.session.began());
        let host = backend.host;
        let (tls, local) = self.transport(host);
        let (wanted, credentials) =
            side_wish(&owner.session, role, &self.live.snapshot, tls, local);
        let purpose = Purpose::Kill {
            thread_id,
            query_only: wish != KillWish::Connection,
            sent: false,
        };
        match self.connect(host, purpose, Upstream::new(wanted, credentials, 0)) {
            Ok(side) => {
                if let Some(began) = began {
                    self.watch.begin(Victim {
                        side,
                        client,
                        began,
                        waits: wish == KillWish::StatementAndTell,
                    });
                }
                true
            }
            Err(failure) => {
                log::warn!("cannot kill statement {thread_id}: {failure:?}");
                false
            }
        }
    }

    /// A side connection has logged in: says what it is there for. A statement that is over by now is left in peace, for what runs in its
    /// place is another one.
    pub(super) fn say_kill(&mut self, side: Key) {
        let victim = self.watch.victim(side);
        let Some(backend) = self.backends.get_mut(side) else {
            return;
        };
        let Purpose::Kill {
            thread_id,
            query_only,
            sent,
        } = &mut backend.purpose
        else {
            return;
        };
        let runs = |victim: Victim| {
            let owner = self.clients.get(victim.client);
            owner.is_some_and(|owner| {
                let running = owner.session.running().map(|(_, id)| id);
                // Who waits calls it off when it is over.
                victim.waits || running == Some(*thread_id) && owner.session.began() == victim.began
            })
        };
        if *query_only && !victim.is_some_and(runs) {
            return self.drop_backend(side, Parting::Quit);
        }
        *sent = true;
        let statement = if *query_only { "KILL QUERY" } else { "KILL" };
        let packet = query_packet(&format!("{statement} {thread_id}"));
        backend.conn.write(&packet);
    }

    /// Whether the answer to a KILL is to be waited for beyond `connect_timeout`: it may have been heard, and what comes late would
    /// hit the session's next statement.
    pub(super) fn awaits_kill(&self, side: Key) -> bool {
        let Some(backend) = self.backends.get(side) else {
            return false;
        };
        matches!(backend.purpose, Purpose::Kill { sent: true, .. })
            && self.watch.victim(side).is_some_and(|victim| victim.waits)
            && self.now < backend.begun + PATIENCE
    }

    /// A side connection is gone without an answer.
    #[cold]
    pub(super) fn kill_failed(&mut self, side: Key, was_sent: bool) {
        if !was_sent {
            return self.answer_interrupt(side, Interruption::Failed);
        }
        if let Some(client) = self.watch.end(side) {
            self.deferred
                .push_back(Deferred::InterruptionLost { client });
        }
    }

    /// A session has its own statement ended.
    #[cold]
    pub(super) fn interrupt(&mut self, client: Key, role: Role, thread_id: u32) {
        if !self.kill_on_server(client, role, thread_id, KillWish::StatementAndTell) {
            let word = Interruption::Failed;
            self.deferred
                .push_back(Deferred::Interrupted { client, word });
        }
    }

    /// The statement is over: a KILL for it that was not sent is not.
    #[cold]
    pub(super) fn call_off(&mut self, client: Key, role: Role) {
        let Some(side) = self.watch.side_of(client) else {
            return;
        };
        let purpose = self.backends.get(side).map(|side| side.purpose);
        if matches!(purpose, Some(Purpose::Kill { sent: false, .. })) {
            self.answer_interrupt(side, Interruption::CalledOff);
            self.drop_backend(side, Parting::Silent);
            self.spare(client, role);
        }
    }

    /// No KILL for this connection is on its way any more.
    #[cold]
    pub(super) fn spare(&mut self, client: Key, role: Role) {
        let key = self.backend_of(client, role);
        if let Some(backend) = key.and_then(|key| self.backends.get_mut(key)) {
            backend.is_condemned = false;
        }
    }

    /// Tells the session that waits for it, if one does, what became of a KILL over this side connection.
    #[cold]
    pub(super) fn answer_interrupt(&mut self, side: Key, word: Interruption) {
        if let Some(client) = self.watch.end(side) {
            self.deferred
                .push_back(Deferred::Interrupted { client, word });
        }
    }
}

fn side_wish(
    session: &Session,
    role: Role,
    snapshot: &crate::snapshot::Snapshot,
    tls: TlsWish,
    local: bool,
) -> (Wish, Credentials) {
    let (_, credentials) = session.wish(role, snapshot, tls, local);
    (Wish::bare(tls, local), credentials)
}

pub(super) fn query_packet(sql: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    let mut writer = crate::wire::PacketWriter::begin(&mut packet, 0);
    writer.u8(crate::wire::Command::Query.code());
    writer.bytes(sql.as_bytes());
    writer.finish();
    packet
}
