//! Legs: sessions that ask one shard each for a client's session, which hears them in its client's place. What such a session sends to its
//! client is kept until that one has dealt with it, and as long as there is something its server is not read.

use super::client::Client;
use super::conn::{Conn, Socket};
use super::decisions::Wish;
use super::deferred::Deferred;
use super::side::KillWish;
use super::slots::Key;
use super::{Target, Worker};
use crate::session::{Turn, Verdict};
use crate::shard::Xid;

/// What a client has to do with legs.
#[derive(Debug)]
pub(super) enum Spread {
    /// It is no client but a leg of this one's statement, with this number.
    Leg(Key, usize),
    /// The legs of its statement, by number.
    Legs(Vec<Option<Key>>),
}

impl Client {
    /// Whose leg it is, and its number.
    pub(super) fn leg_of(&self) -> Option<(Key, usize)> {
        match self.spread.as_deref() {
            Some(Spread::Leg(of, number)) => Some((*of, *number)),
            Some(Spread::Legs(_)) | None => None,
        }
    }

    pub(super) fn has_legs(&self) -> bool {
        matches!(self.spread.as_deref(), Some(Spread::Legs(_)))
    }

    /// Its legs as they are now.
    pub(super) fn legs(&self) -> Vec<Key> {
        match self.spread.as_deref() {
            Some(Spread::Legs(legs)) => legs.iter().copied().flatten().collect(),
            Some(Spread::Leg(..)) | None => Vec::new(),
        }
    }

    fn note_leg(&mut self, number: usize, leg: Key) {
        let spread = self
            .spread
            .get_or_insert_with(|| Box::new(Spread::Legs(Vec::new())));
        if let Spread::Legs(legs) = &mut **spread {
            legs.resize(number, None);
            legs.push(Some(leg));
        }
    }

    fn leg(&self, number: usize) -> Option<Key> {
        match self.spread.as_deref() {
            Some(Spread::Legs(legs)) => legs.get(number).copied().flatten(),
            Some(Spread::Leg(..)) | None => None,
        }
    }

    /// Its leg with this number, which is its leg no more.
    pub(super) fn forget_leg(&mut self, number: usize) -> Option<Key> {
        match self.spread.as_deref_mut() {
            Some(Spread::Legs(legs)) => legs.get_mut(number)?.take(),
            Some(Spread::Leg(..)) | None => None,
        }
    }

    /// The same for all that are left.
    pub(super) fn take_legs(&mut self) -> Vec<Key> {
        let legs = self.legs();
        if self.has_legs() {
            self.spread = None;
        }
        legs
    }
}

impl Worker {
    /// Begins a leg of a client's statement and says this to it.
    pub(super) fn begin_leg(&mut self, of: Key, number: usize, bytes: &[u8]) {
        let client = self.clients.get(of);
        let session = client.and_then(|c| c.session.for_leg(number, &self.live.snapshot));
        let Some(session) = session else {
            return;
        };
        let conn = Conn::new(Socket::Inner);
        let leg = self.add_client(conn, session, Some(Spread::Leg(of, number)));
        if let Some(session) = self.clients.get_mut(leg) {
            session.received.append(bytes, &mut self.buffers);
        }
        if let Some(client) = self.clients.get_mut(of) {
            client.note_leg(number, leg);
        }
        self.again.push_back(Target::Client(leg));
    }

    /// Says more to a leg that has answered what it was told before.
    pub(super) fn tell_leg(&mut self, of: Key, number: usize, bytes: &[u8]) {
        let Some(client) = self.clients.get(of) else {
            return;
        };
        let dress = client.session.dress_of_leg(number, &self.live.snapshot);
        let Some(leg) = client.leg(number) else {
            return;
        };
        if let Some(leg) = self.clients.get_mut(leg) {
            leg.session.wear(dress);
            leg.received.append(bytes, &mut self.buffers);
        }
        self.again.push_back(Target::Client(leg));
    }

    /// A client's reads are to see what its leg has written.
    pub(super) fn learn_from(&mut self, of: Key, leg: Key) {
        let written = self.clients.get(leg).map(|leg| leg.session.written());
        if let (Some(client), Some(written)) = (self.clients.get_mut(of), written) {
            client.session.note_written(&written);
        }
    }

    /// A client's transaction over several groups has come to this.
    pub(super) fn note_turn(&mut self, of: Key, xid: Xid, turn: Turn) {
        let decisions = &self.shared.decisions;
        match turn {
            Turn::Begin => decisions.begin(xid, self.index),
            Turn::Over { is_clean } => decisions.over(xid, is_clean),
            Turn::Decide => {
                let asker = (self.index, of);
                if !decisions.ask(Wish { xid, asker }) {
                    let client = of;
                    self.deferred
                        .push_back(Deferred::NotDecided { client, xid });
                }
            }
        }
    }

    /// A client's transaction is to be done, or not.
    pub(super) fn decided(&mut self, of: Key, xid: Xid, verdict: Verdict) {
        self.tell(of, |session, cx, _, out| {
            session.on_decided(cx, xid, verdict, out)
        });
        self.pump_client(of);
    }

    /// Lets a client's session hear its legs, until its client takes no more or nothing can be done with what is there.
    pub(super) fn hear_legs(&mut self, of: Key) {
        let mut has_heard = true;
        while has_heard {
            has_heard = false;
            let Some(client) = self.clients.get(of) else {
                return;
            };
            // What comes is as little for a client that is slow as it is from a server.
            for leg in client.legs() {
                has_heard |= self.hear_leg(of, leg);
            }
        }
        self.pump_client(of);
    }

    /// False when nothing was done.
    fn hear_leg(&mut self, of: Key, leg: Key) -> bool {
        if self
            .clients
            .get(of)
            .is_none_or(|client| client.conn.is_behind())
        {
            return false;
        }
        let Some(client) = self.clients.get_mut(leg) else {
            return false;
        };
        let Some((_, number)) = client.leg_of() else {
            return false;
        };
        let is_closed = client.session.is_closed();
        if client.conn.is_behind() {
            let mut bytes = client.conn.take_kept();
            let heed = self.tell_of(of, &mut bytes, |session, cx, input, _, out| {
                session.on_leg(cx, number, input, out)
            });
            let (Some(heed), Some(client)) = (heed, self.clients.get_mut(leg)) else {
                return true;
            };
            client.conn.put_back(bytes, heed.consumed, heed.wants_more);
            if !client.conn.is_behind() {
                self.again
                    .extend(client.backends.into_iter().flatten().map(Target::Backend));
                self.again.push_back(Target::Client(leg));
            }
            if heed.consumed > 0 || !(heed.wants_more && is_closed) {
                return heed.consumed > 0;
            }
        }
        if is_closed {
            if let Some(client) = self.clients.get_mut(of) {
                client.forget_leg(number);
            }
            self.drop_client(leg);
            self.tell(of, |session, cx, _, out| {
                session.on_leg_lost(cx, number, out)
            });
        }
        is_closed
    }

    /// Has what these run killed on their servers.
    pub(super) fn kill_legs(&mut self, legs: &[Key]) {
        for leg in legs {
            let running = self.clients.get(*leg).and_then(|leg| leg.session.running());
            if let Some((role, thread_id)) = running {
                self.kill_on_server(*leg, role, thread_id, KillWish::Statement);
            }
        }
    }
}
