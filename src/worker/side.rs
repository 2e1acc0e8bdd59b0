//! Side connections: a statement whose client is gone is killed on its server over a connection of its own, by the account
//! that runs it.

use super::Worker;
use super::backend::Purpose;
use super::slots::Key;
use crate::route::Role;
use crate::session::{Credentials, Parting, Session, TlsWish, Upstream, Wish};

/// Side connections of one worker at a time; beyond, statements of vanished clients run to their end.
const KILLS_MAX: usize = 64;

impl Worker {
    /// The answer to a KILL came: the side connection has done its work.
    pub(super) fn side_connection(&mut self, key: Key) -> bool {
        if matches!(
            self.backends.get(key).map(|b| b.purpose),
            Some(Purpose::Kill { sent: true, .. })
        ) {
            self.drop_backend(key, Parting::Quit);
            return false;
        }
        true
    }

    /// Has a statement killed on its server over a connection of its own, by the account that runs it.
    pub(super) fn kill_on_server(
        &mut self,
        client: Key,
        role: Role,
        thread_id: u32,
        query_only: bool,
    ) {
        let kills = self
            .backends
            .iter()
            .filter(|(_, b)| matches!(b.purpose, Purpose::Kill { .. }))
            .count();
        if kills >= KILLS_MAX {
            log::warn!("too many statements to kill at once: {thread_id} runs to its end");
            return;
        }
        let Some(owner) = self.clients.get(client) else {
            return;
        };
        let Some(backend) = owner.backends[role as usize].and_then(|b| self.backends.get_mut(b))
        else {
            return;
        };
        backend.is_condemned = true;
        let host = backend.host;
        let (tls, local) = self.transport(host);
        let (wish, credentials) = side_wish(&owner.session, role, &self.live.snapshot, tls, local);
        let purpose = Purpose::Kill {
            thread_id,
            query_only,
            sent: false,
        };
        if let Err(failure) = self.connect(host, purpose, Upstream::new(wish, credentials, 0)) {
            log::warn!("cannot kill statement {thread_id}: {failure:?}");
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
