//! The contract between a session and the shell that carries it: what the session asks for, and the small types that
//! both speak. No behaviour.

use std::ops::Range;
use std::time::Duration;

use super::across::Turn;
use super::known::Known;
use super::minutes::Told;
use super::overrun::Excess;
use crate::pool::{HostId, Shape};
use crate::route::{Reason, Role};
use crate::shard::{Refused, Xid};
use crate::sql::Kind;

/// Whether the bytes that leave may change data. The shell checks it against the host's current role at the last moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A plain read, or something that concerns the connection only.
    Read,
    /// Everything else; leaves for the group's current primary or not at all.
    Write,
    /// The same, of what streams behind the beginning of a command: that may have left.
    Rest,
}

/// How a server connection is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// It stands between two commands: say COM_QUIT, so that the server does not count an aborted connection.
    Quit,
    /// It stands in the middle of something, or the server has gone already: say nothing more.
    Silent,
    /// A statement may still run on it: say nothing more, and have it killed on the server.
    Kill,
}

/// A server connection that a session would use at once.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// For which of its places.
    pub role: Role,
    /// The group it belongs to, an index into the snapshot's.
    pub group: usize,
    /// What the connection must be like.
    pub shape: Shape,
    /// The state that the session wants, as [`Known::state_hash`] has it: a connection in that state needs no bringing.
    pub state: u64,
    /// A host that has just failed this statement and is to be passed over.
    pub avoid: Option<HostId>,
    /// No other connection will do than the one that was given back with this stamp, unused since.
    pub same: Option<u64>,
}

/// Who has idle server connections to give, and counts clients.
pub trait Lend {
    /// Gives one, if one is there at once.
    fn lend(&mut self, ask: &Ask) -> Option<Box<Known>>;

    /// Counts the client as one of this account (an index into the snapshot's) from here on. False when the account has as many as
    /// it may.
    fn admit(&mut self, _account: usize) -> bool {
        true
    }

    /// Generates so many keys that follow each other, as the node that this instance is by the primary of a group; gives the first.
    ///
    /// # Errors
    /// None can be generated now.
    fn ids(&mut self, _count: u32, _group: usize) -> Result<u64, Refused> {
        Err(Refused::NO_NODE)
    }
}

/// Nobody has.
#[derive(Debug)]
pub struct NoLender;

impl Lend for NoLender {
    fn lend(&mut self, _: &Ask) -> Option<Box<Known>> {
        None
    }
}

/// A thing that the session wants done. Ranges of `Forward*` index the bytes that the handler was given, ranges of
/// `Send*` the arena of the same [`Outputs`].
#[derive(Debug)]
pub enum Output {
    /// Write these bytes of the client's input to a server connection.
    ForwardToBackend {
        /// Which connection.
        role: Role,
        /// Bytes of the input.
        range: Range<usize>,
        /// What the last-moment check is to hold against.
        access: Access,
    },
    /// Write these bytes of the server's input to the client.
    ForwardToClient(Range<usize>),
    /// Write bytes of Atlas's own to a server connection.
    SendToBackend {
        /// Which connection.
        role: Role,
        /// Bytes of the arena.
        range: Range<usize>,
        /// What the last-moment check is to hold against.
        access: Access,
    },
    /// Write bytes of Atlas's own to the client.
    SendToClient(Range<usize>),
    /// The first bytes of the client's unconsumed input are done with.
    Consume(usize),
    /// Open a server connection of this role; answered by `backend_ready` or `backend_failed`.
    Open {
        /// Which connection.
        role: Role,
        /// A host that has just failed this statement and is to be passed over.
        avoid: Option<HostId>,
    },
    /// Give a server connection back: it stands between two commands and holds nothing of this session.
    Release {
        /// Which connection.
        role: Role,
        /// What is known of it.
        known: Box<Known>,
    },
    /// A server connection would be given back if it is asked for by `on_reclaim`.
    OnCall {
        /// Which connection.
        role: Role,
    },
    /// Destroy a server connection.
    CloseBackend {
        /// Which connection.
        role: Role,
        /// How to part.
        parting: Parting,
    },
    /// From here on the client speaks TLS; input that follows belongs to the TLS stream.
    StartTls,
    /// The password was wrong. The client is to be told by [`super::Session::on_denial`], at once or later: who guesses waits.
    Denied,
    /// The client is authenticated as this account (an index into the snapshot's accounts).
    LoggedIn(usize),
    /// A statement on this connection changed what the server's later sessions begin with: idle connections began otherwise.
    DefaultsChanged {
        /// Which connection.
        role: Role,
    },
    /// Stored code changed session state on the primary's connection in a way that is not known: the session keeps it.
    Unseen,
    /// The statement on this connection was ended by the server: it is to be asked whether it goes on, before the statement is said
    /// again elsewhere.
    Cut {
        /// Which connection.
        role: Role,
    },
    /// The primary has refused a statement because it is read-only: whether it still is the primary is to be looked at.
    PrimaryIsReadOnly,
    /// Begin another session for this one, [`super::Session::for_leg`], and say these bytes of the arena to it as its client would. What it
    /// answers is for [`super::Session::on_leg`].
    BeginLeg {
        /// Its number, one more than that of the last.
        leg: usize,
        /// Bytes of the arena.
        range: Range<usize>,
    },
    /// Say more to one of these, which has answered what it was told before.
    TellLeg {
        /// Its number.
        leg: usize,
        /// Bytes of the arena.
        range: Range<usize>,
    },
    /// Note where a transaction over several groups stands.
    Across(Xid, Turn),
    /// End one of these, as if its client had gone.
    EndLeg(usize),
    /// End all that are left: the next begins with 0.
    EndLegs,
    /// Send what is queued, then close the client's socket.
    CloseClient,
    /// A line for the log.
    Note(String),
    /// Call [`super::Session::on_alarm`] at this moment. One earlier or later does no harm.
    Alarm(Duration),
    /// Have the statement on this connection ended by its server; answered by [`super::Session::on_interrupted`].
    Interrupt {
        /// Which connection.
        role: Role,
        /// The server's id of it.
        thread_id: u32,
    },
    /// The statement is over: if the server has not been told yet it needs not be.
    CallOff {
        /// Which connection.
        role: Role,
    },
    /// Nothing is on its way any more that could end a statement on this connection.
    Spare {
        /// Which connection.
        role: Role,
    },
    /// Have the statements of this session's legs ended by their servers.
    InterruptLegs,
    /// Kill another client of this instance, or its statement; answered by `kill_done`.
    Kill {
        /// The id that the other client was told.
        id: u32,
        /// Only its running statement.
        query_only: bool,
    },
}

impl Output {
    /// Whether it is bytes for the client.
    #[must_use]
    pub fn is_for_client(&self) -> bool {
        matches!(self, Self::ForwardToClient(_) | Self::SendToClient(_))
    }
}

/// What a session has done, for whoever counts.
#[derive(Debug, Clone, Copy)]
pub enum Done {
    /// A server answered a statement.
    Statement {
        /// What it is.
        kind: Kind,
        /// Where it ran.
        role: Role,
        /// Why there.
        reason: Reason,
        /// How long the client waited for the whole of the answer.
        took: Duration,
        /// How much of that it waited for a connection.
        acquired: Duration,
        /// How much of that the connection was brought into the session's state.
        synced: Duration,
        /// The code of the error that the server answered with.
        error: Option<u16>,
    },
    /// A statement has had too much of this, and is ended.
    Overran(Excess),
    /// Atlas answered a command with an error of its own, of this code.
    Refused(u16),
    /// A client was not let in.
    TurnedAway(u16),
}

/// Outputs of one call, and the bytes that they refer to. Kept by the shell and used again for every call.
#[derive(Debug, Default)]
pub struct Outputs {
    /// In the order in which they are to be carried out.
    pub list: Vec<Output>,
    /// Bytes made by the session.
    pub arena: Vec<u8>,
    /// What there is to be counted.
    pub done: Vec<Done>,
    /// What there is to be written down.
    pub told: Vec<Told>,
}

impl Outputs {
    /// Forgets everything; an arena that grew large gives its memory back.
    pub fn clear(&mut self) {
        self.list.clear();
        self.done.clear();
        self.told.clear();
        self.arena.clear();
        self.arena.shrink_to(64 * 1024);
    }

    /// Adds an output.
    pub fn push(&mut self, output: Output) {
        self.list.push(output);
    }

    /// Adds bytes for the client, written by `write` into the arena.
    pub fn client(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len();
        write(&mut self.arena);
        self.list
            .push(Output::SendToClient(start..self.arena.len()));
    }

    /// Adds bytes for a server, written by `write` into the arena.
    pub fn backend(&mut self, role: Role, access: Access, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len();
        write(&mut self.arena);
        self.list.push(Output::SendToBackend {
            role,
            range: start..self.arena.len(),
            access,
        });
    }
}
