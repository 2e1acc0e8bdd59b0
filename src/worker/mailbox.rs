//! What threads say to a worker. Bounded; whoever finds it full has a way without it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use mio::Waker;

use super::conn::Socket;
use super::drain::Manner;
use super::gate::Who;
use super::lend::Moving;
use super::slots::Key;
use crate::pool::HostId;
use crate::session::{Digest, Peer, Pins, Report, Verdict};
use crate::shard::Xid;

/// A message.
#[derive(Debug)]
pub enum Message {
    /// A client accepted by another worker, before its log-in. It is counted as this worker's already.
    Client(Socket, Peer),
    /// Kill a client of this worker, for a client of another.
    Kill {
        /// The id.
        id: u32,
        /// Only its statement.
        query_only: bool,
        /// Who asks: worker and client.
        asker: (usize, Key),
        /// The asker's account.
        account: usize,
    },
    /// The answer to `Kill`.
    KillDone {
        /// Who asked.
        client: Key,
        /// How it went.
        killed: Killed,
    },
    /// A transaction over several groups is to be done, or not, by a client of this worker.
    Decided {
        /// Whose it is.
        client: Key,
        /// Which.
        xid: Xid,
        /// Whether.
        verdict: Verdict,
    },
    /// A server connection for a client of this worker who waits for one.
    Lend(Box<Moving>),
    /// A client of this worker who waits may open a connection to this host: it has been counted.
    Grant {
        /// Who.
        who: Who,
        /// Which host.
        host: HostId,
    },
    /// A client of this worker waits for a connection to this host, and there will be none.
    Elsewhere {
        /// Who.
        who: Who,
        /// Which host.
        host: HostId,
    },
    /// Somebody waits for a connection to this host: idle ones are to be given.
    Serve(HostId),
    /// The audit log has room again.
    Room,
    /// Something else is in force.
    Changed,
    /// Control wants to know something, or has a client ended.
    Ask(Question),
    /// Stop accepting; end sessions as they become free.
    Drain(Manner),
    /// End now.
    Stop,
}

/// What control asks a worker. The answer goes where the question says; nobody waits for a worker that has ended.
#[derive(Debug)]
pub enum Question {
    /// What its clients do.
    Sessions(SyncSender<Sessions>),
    /// The kinds of statements that it has seen.
    Digests(SyncSender<Kinds>),
    /// What ties its clients to their connections.
    Ties(SyncSender<Ties>),
    /// The servers' numbers of its connections.
    Connections(SyncSender<Vec<(HostId, u32)>>),
    /// Whether it has counted what it has done: it has between two turns, which is when it answers.
    Counted(SyncSender<()>),
    /// End the client with this id, or its statement; an operator asks, whom no account binds.
    Kill {
        /// The id.
        id: u32,
        /// Only its statement.
        query_only: bool,
        /// Where the answer goes.
        answer: SyncSender<Killed>,
    },
}

/// What a worker's clients do.
#[derive(Debug)]
pub struct Sessions {
    /// The moment of it, counted as the reports count.
    pub now: Duration,
    /// As many as there is room for.
    pub reports: Vec<Report>,
    /// Those that were left out.
    pub left_out: usize,
}

/// Kinds of statements with their numbers, and how many statements were of kinds that were dropped.
pub type Kinds = (Vec<(u64, Digest)>, u64);

/// How many clients have an open transaction, and how many each of the pins.
#[derive(Debug, Default)]
pub struct Ties {
    /// Open transactions.
    pub transactions: usize,
    /// In the order of [`Pins::ALL`].
    pub pins: [usize; Pins::ALL.len()],
}

/// How a KILL went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It is on its way.
    Done,
    /// There is no such client.
    Unknown,
    /// It is not one of the asker's account.
    NotOwner,
}

const CAPACITY: usize = 4096;

/// The sending side; cloned for every thread that may send.
#[derive(Debug)]
pub struct Mailbox {
    sender: SyncSender<Message>,
    waker: Waker,
}

impl Mailbox {
    /// Sends and wakes. A message that finds no room comes back.
    ///
    /// # Errors
    /// The mailbox is full, or its worker is gone.
    pub fn send(&self, message: Message) -> Result<(), Message> {
        self.sender.try_send(message).map_err(|error| match error {
            std::sync::mpsc::TrySendError::Full(message)
            | std::sync::mpsc::TrySendError::Disconnected(message) => message,
        })?;
        // A waker fails only when its poll is gone, and then nobody reads the message either.
        let _ = self.waker.wake();
        Ok(())
    }
}

/// A mailbox that wakes through `waker`, and its receiving side.
#[must_use]
pub fn mailbox(waker: Waker) -> (Mailbox, Receiver<Message>) {
    let (sender, receiver) = sync_channel(CAPACITY);
    (Mailbox { sender, waker }, receiver)
}
