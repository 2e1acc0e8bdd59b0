//! One client's session: the pure machine between a client's bytes and its two server connections.
//!
//! Drive it like this: hand the client's unconsumed bytes to [`Session::on_client`] whenever there are more of them or
//! [`Session::wants`] says that it would look at them again; hand a server's bytes to [`Session::on_backend`]; tell it of
//! connections that opened, failed or were lost. After each call carry out the [`Outputs`] in order.
//!
//! ```text
//! login ─► command: parse ─► route ─► connection there? in the right state? ─► forward ─► reply ─► command …
//!                                       │ Open, wait       │ replay, swallow
//! ```
//!
//! A command stays at the front of the client's bytes until nothing can make it run again: reads until the first byte of
//! the reply (so that another replica may answer), statements that change the session until their reply's end (so that
//! their effects are noted only when they happened). Everything else is consumed as it is forwarded.

mod across;
mod afterwards;
mod area;
mod asked;
mod bound;
mod bring;
mod causal;
mod changed;
mod command;
mod departure;
mod diary;
mod digests;
mod dressing;
mod ending;
mod expect;
mod facts;
mod fan;
mod farewell;
mod fault;
mod found;
mod govern;
mod history;
mod hold;
mod io;
mod known;
mod legs;
mod local;
mod locks;
mod logical;
mod login;
mod long;
mod loss;
mod minutes;
mod moved;
mod names;
mod note;
mod overrun;
mod params;
mod parts;
mod plain;
mod prepared;
mod rebind;
mod renew;
mod replay;
mod reply;
mod report;
mod rest;
mod routing;
mod scatter;
mod seen;
mod series;
mod sharded;
mod sharded_stmt;
mod state;
mod stmt;
mod sync;
mod texts;
mod track;
mod tracking;
mod unlisted;
mod unprepared;
mod unserved;
mod upload;
mod upstream;
mod wish;

pub use crate::route::{Pins, Role};
pub use across::{Turn, Verdict};
pub use digests::{Digest, Digests};
pub use expect::{BadReply, Beginning, Expect, Outcome, TrackEvent, Walk};
pub use fault::Fault;
pub use io::{Access, Ask, Done, Lend, NoLender, Output, Outputs, Parting};
pub use known::Known;
pub use legs::{Heed, Written};
pub use local::{client_id, worker_of};
pub use minutes::Told;
pub use overrun::{Excess, Interruption};
pub use parts::Peer;
use parts::{Attempt, Identity, InsertId, Last, Link, Numbers, Reply, Running, Upload, What};
pub use report::{Pinned, Report};
pub use texts::Texts;
pub use track::Tracker;
pub use upstream::{Credentials, Failure, Ready, Step, TlsWish, Upstream, Wish};

use std::sync::Arc;
use std::time::Duration;

use crate::pool::{Offer, Shape};
use crate::route::Reason;
use crate::shard::{Dress, Lookout, Placement};
use crate::snapshot::{Account, Group, Snapshot};
use crate::sql::{Dialect, Server};
use crate::wire::{Capabilities, Status};

/// What a session may look at while it works; made anew by the shell for each call.
pub struct Cx<'a> {
    /// Accounts, groups, hosts.
    pub snapshot: &'a Snapshot,
    /// What clients are told of the servers.
    pub offer: &'a Offer,
    /// Twenty fresh random bytes, none of them zero.
    pub nonce: &'a mut dyn FnMut() -> [u8; 20],
    /// The moment, counted from some start.
    pub now: Duration,
    /// Who has idle server connections.
    pub lender: &'a mut dyn Lend,
    /// Texts of prepared statements that sessions have in common.
    pub texts: &'a mut Texts,
}

impl std::fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").finish_non_exhaustive()
    }
}

/// Whether and when the session wants to see the client's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Not now: a reply, a connection or the end is awaited. Do not read from the client.
    Nothing,
    /// When this many unconsumed bytes are there (in one piece).
    Bytes(usize),
}

/// A command up to this size (bytes, with its header) is looked at whole; of a longer one only the head.
pub const COMMAND_WHOLE_MAX: usize = 1024 * 1024;

/// See the module's words.
#[derive(Debug)]
pub struct Session {
    id: u32,
    phase: Phase,
    capabilities: Capabilities,
    identity: Box<Identity>,
    account: usize,
    links: [Link; 2],
    state: state::State,
    statements: stmt::Statements,
    /// Status flags as the client knows them: those of the primary's last reply.
    status: Status,
    /// Those of a fresh session on the primary.
    fresh_status: Status,
    /// The last reply of the primary did not tell them.
    is_in_doubt: bool,
    /// The client has seen the primary's flags since its session began.
    status_is_known: bool,
    server: Server,
    version: u32,
    /// The connection that ran the previous statement, and whether it is still the same one.
    last: Option<Last>,
    /// The same for the last statement that gave rows.
    last_rows: Option<Last>,
    /// The same for the connection that has the warnings and errors to be shown.
    warned: Option<Last>,
    last_route: Option<(Role, Reason)>,
    want: usize,
    upload: Option<Upload>,
    reply: Option<Reply>,
    sync: Option<sync::Sync>,
    waiting: Option<Role>,
    /// Another client, of this id, is being killed for this one.
    killing: Option<u32>,
    /// The facts of the statement that is being prepared.
    preparing: Option<Box<stmt::Prepared>>,
    attempt: Attempt,
    overrun: Option<Box<overrun::Overrun>>,
    diary: diary::Diary,
    /// What is to be written down of the command at the front.
    minutes: Option<Box<minutes::Minutes>>,
    insert_id: InsertId,
    numbers: Numbers,
    /// The warnings and errors to be shown, where the connection that had them was given back.
    kept: Option<Box<area::Area>>,
    /// What servers told of changes.
    tracked: tracking::Tracked,
    /// The reply to a statement that has to do with user locks.
    lock_reply: Option<Box<locks::LockReply>>,
    /// When the session's last write was answered.
    wrote: Option<Duration>,
    /// Server connections are given back between transactions.
    shares: bool,
    /// A command is over since connections were last given back.
    is_done: bool,
    /// Connections that are to be given up as soon as nothing ties them to the session.
    retired: [bool; 2],
    /// The group that its connections are in, where that is not the account's own.
    moved_to: Option<usize>,
    /// The names of schemas there.
    moved_by: Option<Arc<Placement>>,
    /// Its connections have been in another group: questions about earlier statements are not simply asked of the one at hand.
    has_moved: bool,
    /// The statement that began the transaction, as long as nothing has been done in it.
    begun: Box<[u8]>,
    /// The client is in a transaction that is not begun on any server yet.
    is_to_begin: bool,
    /// The command at the front is asked of several shards.
    scatter: Option<Box<scatter::Scatter>>,
    /// The command at the front is a write in parts.
    series: Option<Box<series::Series>>,
    /// The columns of this table are needed for it.
    unlisted: Option<std::num::NonZeroU32>,
    /// Looks for names in the rest of a long statement.
    lookout: Option<Box<Lookout>>,
    /// What the client is told when it has sent the rest of a command that is not run.
    late: Option<Box<upload::Late>>,
    /// Names in the reply to the command at the front that are not the client's.
    dress: Option<Arc<Dress>>,
    /// The same for what SHOW WARNINGS tells of the statement before.
    warned_dress: Option<Arc<Dress>>,
    /// A command is asked of several shards, each by a session of its own, which `diary.is_leg` is true of.
    legs: Option<Box<legs::Legs>>,
}

#[derive(Debug)]
enum Phase {
    Login(Box<login::Login>),
    Command,
    Closed,
}

/// A read is tried on so many connections before it goes to the primary or fails.
const READ_ATTEMPTS: u8 = 3;

impl Session {
    /// A session for a client that has just connected. The greeting is in the outputs, unless a balancer has to speak first.
    pub fn new(id: u32, peer: Peer, cx: &mut Cx<'_>, out: &mut Outputs) -> Self {
        let nonce = (cx.nonce)();
        let facts = &cx.offer.facts;
        let identity = Identity::of(peer, nonce);
        let status = facts
            .status
            .intersection(Status::AUTOCOMMIT | Status::NO_BACKSLASH_ESCAPES);
        let server = (facts.server(), facts.version_number());
        let mut session = Self::fresh(id, identity, status, server);
        session.diary = diary::Diary::begun(cx.now);
        session.begin(cx, out);
        session
    }

    fn fresh(
        id: u32,
        identity: Identity,
        fresh_status: Status,
        (server, version): (Server, u32),
    ) -> Self {
        Self {
            id,
            phase: Phase::Login(Box::new(login::Login::new())),
            capabilities: Capabilities::NONE,
            identity: Box::new(identity),
            account: 0,
            links: Default::default(),
            state: state::State::default(),
            statements: stmt::Statements::default(),
            status: fresh_status,
            fresh_status,
            is_in_doubt: false,
            status_is_known: false,
            server,
            version,
            last: None,
            last_rows: None,
            warned: None,
            last_route: None,
            want: 4,
            upload: None,
            reply: None,
            sync: None,
            waiting: None,
            killing: None,
            preparing: None,
            attempt: Attempt::default(),
            overrun: None,
            diary: diary::Diary::default(),
            minutes: None,
            insert_id: InsertId::Known(0),
            numbers: Numbers::FRESH,
            kept: None,
            tracked: tracking::Tracked::default(),
            wrote: None,
            lock_reply: None,
            shares: false,
            is_done: false,
            retired: [false; 2],
            moved_to: None,
            moved_by: None,
            has_moved: false,
            begun: Box::default(),
            is_to_begin: false,
            scatter: None,
            series: None,
            unlisted: None,
            lookout: None,
            late: None,
            dress: None,
            warned_dress: None,
            legs: None,
        }
    }

    /// See [`Wants`].
    #[must_use]
    pub fn wants(&self) -> Wants {
        let is_over = match &self.phase {
            Phase::Closed => true,
            Phase::Login(login) => !login.awaits_client(),
            Phase::Command => false,
        };
        let is_busy = self.waiting.is_some() || self.sync.is_some() || self.killing.is_some();
        if is_over || is_busy || self.legs.is_some() || self.awaits_interruption() {
            return Wants::Nothing;
        }
        match (&self.upload, &self.reply) {
            (Some(upload), _) => Wants::Bytes(if upload.left == 0 { 4 } else { 1 }),
            (None, Some(_)) => Wants::Nothing,
            (None, None) => Wants::Bytes(self.want),
        }
    }

    /// Looks at the client's unconsumed bytes, from the first.
    pub fn on_client(&mut self, cx: &mut Cx<'_>, input: &mut [u8], out: &mut Outputs) {
        let mut at = 0;
        loop {
            if self.wants() == Wants::Nothing {
                break;
            }
            let rest = input.get_mut(at..).unwrap_or_default();
            let before = out.list.len();
            let consumed = if self.upload.is_some() {
                self.upload_on(cx, rest, at, out)
            } else if let Wants::Bytes(n) = self.wants()
                && rest.len() < n
            {
                break;
            } else if matches!(self.phase, Phase::Login(_)) {
                self.on_login(cx, rest, out)
            } else {
                self.on_command(cx, rest, at, out)
            };
            at += consumed;
            if consumed == 0 && out.list.len() == before && self.upload.is_none() {
                break;
            }
            if consumed == 0 && !self.is_idle() {
                break;
            }
        }
        if at > 0 {
            out.push(Output::Consume(at));
        }
    }

    fn account<'s>(&self, snapshot: &'s Snapshot) -> &'s Account {
        &snapshot.accounts[self.account]
    }

    fn group<'s>(&self, snapshot: &'s Snapshot) -> &'s Group {
        &snapshot.groups[self.group_index(snapshot)]
    }

    fn capabilities_of(&self, role: Role) -> Capabilities {
        self.link(role)
            .known()
            .map_or(self.capabilities, |known| known.capabilities)
    }

    fn link(&self, role: Role) -> &Link {
        &self.links[role as usize]
    }

    fn link_mut(&mut self, role: Role) -> &mut Link {
        &mut self.links[role as usize]
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            server: self.server,
            version: self.version,
            charset: self.state.charset(),
            ansi_quotes: self.state.ansi_quotes().unwrap_or(false),
            no_backslash_escapes: self.status.contains(Status::NO_BACKSLASH_ESCAPES),
        }
    }

    #[cold]
    fn close(&mut self, out: &mut Outputs) {
        self.on_client_closed(out);
        out.push(Output::CloseClient);
    }

    /// Sends an error as the whole reply to the command at the front and goes on.
    #[cold]
    fn refuse(&mut self, fault: &Fault, seq: u8, out: &mut Outputs) {
        let capabilities = self.capabilities;
        let code = fault.code().0;
        if matches!(self.phase, Phase::Command) {
            out.done.push(Done::Refused(code));
            self.write_refused(fault, out);
        } else {
            out.done.push(Done::TurnedAway(code));
            out.told.push(Told::TurnedAway(code));
        }
        out.client(|buffer| {
            fault.write(buffer, seq, capabilities);
        });
    }

    /// Sends an error and ends the session.
    #[cold]
    fn refuse_and_close(&mut self, fault: &Fault, seq: u8, out: &mut Outputs) {
        self.refuse(fault, seq, out);
        self.close(out);
    }
}
