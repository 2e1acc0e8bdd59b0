//! The data plane's shell: one event loop with its listeners, clients, server connections and timers. It carries bytes
//! between sockets and sessions and does what sessions ask for; what is right to do is decided in `session`.
//!
//! A turn of the loop: wait, note what became ready, let each ready connection work within a budget, fire due timers. Sockets
//! are registered once, edge-triggered; readiness is remembered in `conn`. A point query costs two waits, two reads and two
//! writes.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the shell: sockets and the clock are its business"
)]

mod accounts;
mod apply;
mod ask;
mod backend;
mod backend_login;
mod bell;
mod breaking;
mod buffer;
mod client;
mod condition;
mod conn;
mod decisions;
mod deferred;
mod doors;
mod drain;
mod gate;
mod leaving;
mod legs;
mod lend;
mod lender;
mod listener;
mod live;
mod logs;
mod mailbox;
mod meter;
mod notes;
mod notices;
mod opening;
mod overrun;
mod perform;
mod rest;
mod shared;
mod side;
mod silent;
mod slots;
mod spare;
mod stages;
mod sys;
mod timer;
pub mod tls;
mod token;
mod told;
mod wakeup;
mod warm;

pub use accounts::{AccountFigures, AccountMeter};
pub use backend::is_exhaustion;
pub use bell::Bell;
pub use condition::{Condition, Readiness};
pub use conn::Socket;
pub use decisions::{Decisions, Left, Wish};
pub use doors::Doors;
pub use drain::Manner;
pub use gate::{Gate, Who};
pub use lend::Moving;
pub use listener::Listener;
pub use live::{Live, Nodes, Tls};
pub use logs::{Logs, Queue, Work};
pub use mailbox::{Killed, Kinds, Mailbox, Message, Question, Sessions, Ties, mailbox};
pub use meter::{CLASSES, Classes, Counts, Meter};
pub use notices::{Notice, Notices};
pub use overrun::Overruns;
pub use shared::Shared;
pub use slots::Key;
pub use spare::Spare;
pub use sys::{allowed_cores, pin_to, raise_descriptor_limit};
pub use token::Target;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use arc_swap::Cache;
use mio::{Events, Poll, Registry};

use self::backend::Backend;
use self::buffer::Pool;
use self::client::Client;
use self::deferred::Deferred;
use self::drain::Drain;
use self::notes::Notes;
use self::overrun::Watch;
use self::shared::Published;
use self::slots::Slots;
use self::timer::{Timer, Timers};
use self::told::Pending;
use self::wakeup::Wakeup;
use crate::pool::{Offer, Shelf};
use crate::route::Balance;
use crate::session::{Outputs, Role, Texts};

/// Bytes read from a server at a time. The same as the plain relay that benchmarks compare with.
const SCRATCH: usize = 64 * 1024;
/// Idle server connections are looked through so often.
const SWEEP: Duration = Duration::from_millis(500);
/// A connection works through so many reads before others have their turn.
const READS_PER_TURN: usize = 8;

/// One event loop.
#[derive(Debug)]
pub struct Worker {
    index: usize,
    poll: Poll,
    /// The poll's, for sockets whose interest changes.
    registry: Arc<Registry>,
    shared: Arc<Shared>,
    /// What this worker goes by.
    live: Arc<Live>,
    offer: Cache<Published, Arc<Offer>>,
    messages: Receiver<Message>,
    listeners: Vec<Listener>,
    clients: Slots<Client>,
    backends: Slots<Backend>,
    balances: Vec<Balance>,
    /// Idle server connections of each host.
    shelves: Vec<Shelf<Key>>,
    /// Sessions that would give a connection back, the longest first.
    on_call: VecDeque<(Key, Role)>,
    /// Sessions that have set how long they may be idle.
    resting: Vec<Key>,
    texts: Texts,
    /// The last number given to a use of a server connection.
    serials: u64,
    /// The last number given to a request for a server connection.
    tickets: u64,
    /// The time at the beginning of the turn.
    now: Instant,
    /// The same counted from the process's start, as sessions and shelves have it.
    moment: Duration,
    /// When those who wait for a connection to each host are looked at again.
    grants: Vec<Option<Instant>>,
    /// When connections may be opened for nobody again.
    warm_after: Instant,
    /// That a server refuses an account is told again from then on.
    refusals_after: Instant,
    timers: Timers,
    wakeup: Wakeup,
    /// Statements whose time is limited, and those that are being ended.
    watch: Watch,
    notes: Notes,
    /// What goes to the logs of statements.
    pending: Pending,
    buffers: Pool,
    scratch: Vec<u8>,
    /// Pieces of a reply that leave together; empty between two outputs.
    gathered: Vec<u8>,
    outputs: Outputs,
    /// Connections that had more to do than their turn allowed.
    again: VecDeque<Target>,
    /// What came up while outputs were carried out.
    deferred: VecDeque<Deferred>,
    client_count: u32,
    /// Turns of the loop, of which some are measured.
    turns: u32,
    drain: Option<Drain>,
    stopped: bool,
}

impl Worker {
    /// A worker over its poll (whose waker the mailbox has) and its listeners.
    ///
    /// # Errors
    /// The kernel's, when a listener cannot be registered.
    pub fn new(
        index: usize,
        poll: Poll,
        shared: Arc<Shared>,
        messages: Receiver<Message>,
        mut listeners: Vec<Listener>,
    ) -> std::io::Result<Self> {
        for (place, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Target::Listener(place).token())?;
        }
        let live = shared.live();
        let hosts = live.snapshot.hosts.len();
        let balances = live
            .snapshot
            .groups
            .iter()
            .map(|_| Balance::default())
            .collect();
        // What has come into force since the beginning is what this one begins with.
        if let Some(applied) = shared.applied.get(index) {
            applied.store(live.snapshot.version, std::sync::atomic::Ordering::SeqCst);
        }
        let mut texts = Texts::default();
        texts.set_run(shared.decisions.run());
        texts.count_definitions(shared.definitions.clone());
        Ok(Self {
            live,
            index,
            registry: Arc::new(poll.registry().try_clone()?),
            wakeup: Wakeup::new(poll.registry())?,
            poll,
            offer: Cache::new(Published(shared.clone())),
            shared,
            messages,
            listeners,
            clients: Slots::default(),
            backends: Slots::default(),
            balances,
            shelves: (0..hosts).map(|_| Shelf::default()).collect(),
            on_call: VecDeque::new(),
            texts,
            serials: (index as u64) << 48,
            tickets: 0,
            now: Instant::now(),
            moment: Duration::ZERO,
            grants: vec![None; hosts],
            warm_after: Instant::now(),
            refusals_after: Instant::now(),
            resting: Vec::new(),
            timers: Timers::default(),
            watch: Watch::default(),
            notes: Notes::default(),
            pending: Pending::default(),
            buffers: Pool::default(),
            scratch: vec![0; SCRATCH],
            gathered: Vec::new(),
            outputs: Outputs::default(),
            again: VecDeque::new(),
            deferred: VecDeque::new(),
            client_count: 0,
            turns: 0,
            drain: None,
            stopped: false,
        })
    }

    /// Runs until told to stop, or drained.
    ///
    /// # Errors
    /// Waiting for events failed, which leaves nothing to do.
    pub fn run(&mut self) -> std::io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.look_at_clock();
        self.timers.add(self.now, Timer::Sweep);
        if self.drain.is_some() {
            // It goes on after a panic.
            self.timers.add(self.now, Timer::Drain);
        }
        while !self.stopped {
            let limit = self.wait();
            match self.poll.poll(&mut events, limit) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    self.look_at_clock();
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.look_at_clock();
            // All that is known is noted before anything is decided: a connection that has been closed is given to nobody.
            for event in &events {
                self.note_event(event);
            }
            // Those that had more to do come first, once.
            for _ in 0..self.again.len() {
                if let Some(target) = self.again.pop_front() {
                    self.work(target);
                }
            }
            let is_measured = self.begin_turn();
            for event in &events {
                if is_measured {
                    self.measured(event);
                } else {
                    self.work(Target::from_token(event.token()));
                }
            }
            self.fire(self.now);
            self.hand_over();
        }
        Ok(())
    }

    /// Puts the worker back to a known state after a panic: its clients are lost, its listeners and mailbox go on. Nothing
    /// is shared with other workers but published values and counters, so they are not concerned.
    pub fn recover(&mut self) {
        for client in self.clients.drain() {
            self.live.uncount_client(client.admitted);
        }
        for backend in self.backends.drain() {
            if backend.is_counted
                && let Some(gate) = self.live.gates.get(backend.host.index())
            {
                gate.closed();
            }
        }
        self.shared.decisions.leave(self.index);
        self.shelves.iter_mut().for_each(|s| *s = Shelf::default());
        for gate in &self.live.gates {
            gate.set_idle(self.index, 0);
        }
        self.on_call = VecDeque::new();
        self.resting = Vec::new();
        self.grants.fill(None);
        self.timers = Timers::default();
        self.watch = Watch::default();
        self.buffers = Pool::default();
        self.scratch = vec![0; SCRATCH];
        self.gathered = Vec::new();
        self.outputs = Outputs::default();
        self.again = (0..self.listeners.len()).map(Target::Listener).collect();
        self.again.push_back(Target::Mailbox);
        self.deferred = VecDeque::new();
        if let Some(load) = self.shared.loads.get(self.index) {
            load.store(0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    fn note_event(&mut self, event: &mio::event::Event) {
        let closed = event.is_read_closed() || event.is_error();
        match Target::from_token(event.token()) {
            Target::Client(key) => {
                if let Some(client) = self.clients.get_mut(key) {
                    client
                        .conn
                        .ready(event.is_readable(), event.is_writable(), closed);
                }
            }
            Target::Backend(key) => {
                if let Some(backend) = self.backends.get_mut(key) {
                    backend
                        .conn
                        .ready(event.is_readable(), event.is_writable(), closed);
                }
            }
            Target::Mailbox | Target::Listener(_) | Target::Wakeup => {}
        }
    }

    fn work(&mut self, target: Target) {
        match target {
            Target::Mailbox => self.read_mailbox(),
            Target::Wakeup => self.wakeup.rang(),
            Target::Listener(place) => self.accept_on(place),
            Target::Client(key) => self.work_client(key),
            Target::Backend(key) => self.work_backend(key),
        }
        self.settle_deferred();
    }

    #[inline(never)]
    fn read_mailbox(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            // Whoever sent it may go by what is in force since just now.
            self.keep_current();
            match message {
                Message::Client(socket, peer) => self.adopt(socket, peer),
                Message::Kill {
                    id,
                    query_only,
                    asker: (worker, client),
                    account,
                } => {
                    let killed = self.kill_client(id, query_only, Some(account));
                    if let Some(mailbox) = self.shared.mailboxes.get(worker) {
                        let _ = mailbox.send(Message::KillDone { client, killed });
                    }
                }
                Message::KillDone { client, killed } => self
                    .deferred
                    .push_back(Deferred::KillDone { client, killed }),
                Message::Decided {
                    client,
                    xid,
                    verdict,
                } => self.decided(client, xid, verdict),
                Message::Lend(moving) => self.receive(*moving),
                Message::Grant { who, host } => self.use_grant(who, host),
                Message::Serve(host) => {
                    // This worker may have been on its way for a while, with more messages coming, and has not seen what else has.
                    self.drop_unfit(host, true);
                    self.serve_others(host);
                }
                Message::Elsewhere { who, host } => self.go_elsewhere(who, host),
                Message::Drain(manner) => self.begin_drain(manner),
                Message::Changed => {
                    self.texts.set_run(self.shared.decisions.run());
                    self.ask_again();
                }
                Message::Ask(question) => self.answer(question),
                Message::Room => self.hear_stalled(),
                Message::Stop => self.stopped = true,
            }
            self.settle_deferred();
        }
    }

    fn fire(&mut self, now: Instant) {
        while let Some(timer) = self.timers.due(now) {
            self.fired(timer, now);
            self.settle_deferred();
        }
    }

    #[inline(never)]
    fn fired(&mut self, timer: Timer, now: Instant) {
        match timer {
            Timer::Login(key) => {
                if self
                    .clients
                    .get(key)
                    .is_some_and(|client| client.session.awaits_log_in())
                {
                    log::debug!("a client did not log in in time and is dropped");
                    self.drop_client(key);
                }
            }
            Timer::Denial(key) => self.tell_denial(key),
            Timer::Linger(key) => {
                if self
                    .clients
                    .get(key)
                    .is_some_and(|client| client.session.is_closed())
                {
                    self.drop_client(key);
                }
            }
            Timer::Connect(key) => self.connect_timed_out(key),
            Timer::Leave(key) => self.leave_timed_out(key),
            Timer::Reopen(client, is_replica) => {
                let role = if is_replica {
                    Role::Replica
                } else {
                    Role::Primary
                };
                self.reopen(client, role);
            }
            Timer::Acquire(client, is_replica, ticket, host) => {
                let role = if is_replica {
                    Role::Replica
                } else {
                    Role::Primary
                };
                self.acquire_timed_out(client, role, ticket, host);
            }
            Timer::Grant(host) => self.grant_due(host),
            Timer::Sweep => {
                self.sweep();
                // A word of it may have been lost.
                self.hear_stalled();
                self.end_rests();
                self.timers.add(now + SWEEP, Timer::Sweep);
            }
            Timer::Accept(place) => self.accept_again(place),
            Timer::Statement(key) => self.statement_alarm(key, now),
            Timer::Drain => self.drain_tick(),
        }
    }
}
