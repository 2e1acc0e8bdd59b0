//! Letting clients go: no more are accepted, and each session ends where nothing is lost by it.
//!
//! A client that has been quiet between two transactions is told so and closed. One that has just spoken may be about to speak
//! again, and would get the error for its statement: it is given a moment, and only when that has gone on for a while its session
//! ends directly behind a reply. Who holds a transaction has until the end of the drain.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::leaving::Farewell;
use super::slots::Key;
use super::timer::Timer;
use super::{Target, Worker};
use crate::session::{Done, Fault, Parting};
use crate::wire::Capabilities;

/// Why clients are to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// The service ends: soon.
    Stop,
    /// Another process serves whoever comes from now on: there is no hurry.
    HandOver,
}

/// A drain under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    /// A session ends when its client has said nothing for so long.
    quiet: Duration,
    /// A log-in has so long for each of its steps.
    log_in_quiet: Duration,
    /// From then on sessions end directly behind a reply.
    patient_until: Instant,
    /// Everything ends.
    end: Instant,
    /// When there was nobody left who is served.
    empty_since: Option<Instant>,
}

/// Sessions are looked at so often.
const TICK: Duration = Duration::from_millis(25);
/// Clients that were told have so long to hear it, when they are all that is left.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Turns of accepting for who waits in a listener's queue when it is closed.
const LAST_ACCEPTS: usize = 64;

impl Drain {
    fn new(manner: Manner, timeout: Duration, now: Instant) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        let (quiet, log_in_quiet, patience) = match manner {
            Manner::Stop => (
                Duration::from_millis(100),
                SECOND,
                (timeout / 2).min(SECOND),
            ),
            // A log-in has the time that it always has: its own deadline ends it.
            Manner::HandOver => (SECOND, Duration::MAX, timeout / 4 * 3),
        };
        Self {
            quiet,
            log_in_quiet,
            patient_until: now + patience,
            end: now + timeout,
            empty_since: None,
        }
    }

    /// Both at once: the sooner of the two.
    fn and(self, other: Self) -> Self {
        Self {
            quiet: self.quiet.min(other.quiet),
            log_in_quiet: self.log_in_quiet.min(other.log_in_quiet),
            patient_until: self.patient_until.min(other.patient_until),
            end: self.end.min(other.end),
            empty_since: self.empty_since,
        }
    }
}

impl Worker {
    pub(super) fn begin_drain(&mut self, manner: Manner) {
        let now = Instant::now();
        let timeout = self.live.snapshot.config.server.drain_timeout;
        let drain = Drain::new(manner, timeout, now);
        if let Some(before) = self.drain {
            self.drain = Some(before.and(drain));
            return;
        }
        self.drain = Some(drain);
        self.stop_accepting(manner);
        self.timers.add(now, Timer::Drain);
    }

    fn stop_accepting(&mut self, manner: Manner) {
        if manner == Manner::Stop {
            // With the socket the kernel would reset whoever waits in its queue.
            for place in 0..self.listeners.len() {
                if self.listeners.get(place).is_some_and(|l| l.outlives()) {
                    continue;
                }
                (0..LAST_ACCEPTS).find(|_| !self.accept(place));
            }
        }
        for mut listener in std::mem::take(&mut self.listeners) {
            listener.deregister(self.poll.registry());
        }
        // What was accepted for other workers is in their mailboxes before this is seen.
        self.shared.accepting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Looks at everybody, and whether it is over.
    pub(super) fn drain_tick(&mut self) {
        let others_accept = self.shared.accepting.load(Ordering::Acquire) > 0;
        self.read_mailbox();
        for key in self.clients.keys() {
            self.look(key);
        }
        let Some(drain) = &mut self.drain else {
            return;
        };
        if self.now >= drain.end {
            return self.cut_off();
        }
        let is_served = self.clients.iter().any(|(_, c)| !c.session.is_closed());
        if is_served || others_accept {
            drain.empty_since = None;
        } else {
            let since = *drain.empty_since.get_or_insert(self.now);
            if self.clients.len() == 0 || self.now.saturating_duration_since(since) >= LAST_WORDS {
                return self.leave();
            }
        }
        self.timers.add(self.now + TICK, Timer::Drain);
    }

    /// Ends a client's session if it is time and nothing would be lost. For one that is not wanted any more it is always time.
    pub(super) fn look(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let session = &client.session;
        if session.is_closed() || client.leg_of().is_some() {
            return;
        }
        let is_free = session.is_between_transactions()
            && client.received.is_empty()
            && !client.conn.is_behind()
            && !client.conn.is_handshaking();
        if !is_free {
            client.heard = self.now;
            return;
        }
        let quiet = self.now.saturating_duration_since(client.heard);
        let is_time = match self.drain {
            None => client.is_dismissed,
            Some(drain) if session.is_logged_in() => {
                quiet >= drain.quiet || self.now >= drain.patient_until || client.is_dismissed
            }
            Some(drain) => quiet >= drain.log_in_quiet,
        };
        // Bytes that have arrived and were not read yet are a command.
        if is_time && client.conn.is_alive() {
            let fault = if client.is_dismissed {
                Fault::Dismissed
            } else {
                Fault::Draining
            };
            self.dismiss(key, &fault);
        }
    }

    /// Tells a client that this is the end, and why. The error is numbered as the reply to what the client
    /// says next, which it may be saying already.
    pub(super) fn dismiss(&mut self, key: Key, fault: &Fault) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut packet = Vec::new();
        let capabilities = if client.session.is_logged_in() {
            Capabilities::PROTOCOL_41
        } else {
            Capabilities::NONE
        };
        let seq = match fault {
            // As MySQL numbers it, by which drivers take the connection for lost.
            Fault::Inactive => 0,
            _ => client.session.next_reply_seq(),
        };
        fault.write(&mut packet, seq, capabilities);
        client.conn.write(&packet);
        client.farewell = Farewell::Due;
        self.count(&[Done::Refused(fault.code().0)], None);
        self.tell(key, |session, _, _, out| session.on_client_closed(out));
        self.finish_client(key);
    }

    /// The time is over. Who waits between two commands is told.
    fn cut_off(&mut self) {
        for key in self.clients.keys() {
            let Some(client) = self.clients.get(key) else {
                continue;
            };
            let session = &client.session;
            if session.is_closed() || client.leg_of().is_some() {
                continue;
            }
            if !session.is_between_transactions() {
                self.shared.cut_off.fetch_add(1, Ordering::Relaxed);
            }
            if session.is_idle() {
                self.dismiss(key, &Fault::Draining);
            }
        }
        self.leave();
    }

    fn leave(&mut self) {
        for key in self.clients.keys() {
            self.drop_client(key);
        }
        // Servers count a connection that ends without a word as a fault.
        for key in self.backends.keys() {
            self.drop_backend(key, Parting::Quit);
        }
        self.stopped = true;
    }

    /// A client's way into the loop again after a turn of accepting that left some waiting.
    pub(super) fn accept_on(&mut self, place: usize) {
        if self.accept(place) {
            self.again.push_back(Target::Listener(place));
        }
    }
}
