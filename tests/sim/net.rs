//! The network: byte streams that split, join, delay, stall, end and break. Each direction of a connection is a [`Pipe`].

use std::collections::VecDeque;

use crate::rng::Rng;

/// One direction of a connection. Bytes fly, then lie at the receiver until it reads them.
#[derive(Debug, Default)]
pub struct Pipe {
    flying: VecDeque<u8>,
    arrived: VecDeque<u8>,
    /// The sender has closed its side; the receiver learns of it behind the last byte.
    closed: bool,
    end_arrived: bool,
    /// Nothing gets through any more, in either direction; what has not arrived is lost.
    broken: bool,
    /// A delivery is in the world's queue.
    pub scheduled: bool,
    /// The receiver's side takes at most so many bytes that it has not read.
    pub window: usize,
    /// The connection breaks when so many more bytes have arrived.
    pub breaks_after: Option<usize>,
    /// Nothing arrives before that time.
    pub stalled_until: u64,
}

impl Pipe {
    pub fn new(window: usize) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// Takes what has room; gives the number of bytes taken. A broken or closed pipe swallows all.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        if self.broken || self.closed {
            return bytes.len();
        }
        let n = self.room().min(bytes.len());
        self.flying.extend(&bytes[..n]);
        n
    }

    /// Takes all, as a sender with memory of its own.
    pub fn send_all(&mut self, bytes: &[u8]) {
        if !self.broken && !self.closed {
            self.flying.extend(bytes);
        }
    }

    pub fn room(&self) -> usize {
        self.window
            .saturating_sub(self.flying.len() + self.arrived.len())
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn break_off(&mut self) {
        self.broken = true;
        self.flying.clear();
    }

    /// There is something to deliver.
    pub fn wants_delivery(&self) -> bool {
        !self.flying.is_empty() || (self.closed || self.broken) && !self.end_arrived
    }

    /// Lets some of what flies arrive. True if the connection breaks by it.
    pub fn deliver(&mut self, rng: &mut Rng) -> bool {
        if self.broken {
            self.end_arrived = true;
            return false;
        }
        let mut n = self.flying.len();
        if n > 0 {
            n = match rng.below(4) {
                0 => rng.between(1, n),
                1 => rng.between(1, n.min(9)),
                _ => n,
            };
        }
        let breaks = self.breaks_after.is_some_and(|left| left <= n);
        if breaks {
            n = self.breaks_after.unwrap_or(n);
        }
        self.arrived.extend(self.flying.drain(..n));
        if let Some(left) = &mut self.breaks_after {
            *left -= n;
        }
        if self.flying.is_empty() && self.closed {
            self.end_arrived = true;
        }
        breaks
    }

    /// Reads up to `max` bytes.
    pub fn read(&mut self, max: usize) -> Vec<u8> {
        let n = self.arrived.len().min(max);
        self.arrived.drain(..n).collect()
    }

    /// All was read and no more will come.
    pub fn is_at_end(&self) -> bool {
        self.arrived.is_empty() && self.end_arrived
    }

    /// The receiver can know that the sender is gone, though bytes may lie before the end.
    pub fn end_is_known(&self) -> bool {
        self.end_arrived
    }
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct Link {
    /// Towards the server (or towards Atlas, from a client).
    pub up: Pipe,
    /// Towards the client (or towards Atlas, from a server).
    pub down: Pipe,
}

impl Link {
    pub fn break_off(&mut self) {
        self.up.break_off();
        self.down.break_off();
    }
}
