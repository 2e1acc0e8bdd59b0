//! What all workers and control see: published values and counters. No locks but those of `gate`, of failed log-ins, of a
//! process without descriptors, of writes over several groups, and of the logs of statements, which workers take once a turn at most.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::accounts::AccountFigures;
use super::condition::Condition;
use super::decisions::Decisions;
use super::doors::Doors;
use super::live::Live;
use super::logs::Logs;
use super::mailbox::{Mailbox, Message};
use super::meter::Meter;
use super::notices::Notices;
use super::overrun::Overruns;
use super::spare::Spare;
use crate::auth::Failures;
use crate::pool::Offer;

/// See the module's words.
#[derive(Debug)]
pub struct Shared {
    /// What is in force.
    pub live: ArcSwap<Live>,
    /// The version of the snapshot that each worker goes by.
    pub applied: Vec<AtomicU64>,
    /// What clients are told.
    pub offer: ArcSwap<Offer>,
    /// Clients of each worker.
    pub loads: Vec<AtomicUsize>,
    /// Each worker's mailbox.
    pub mailboxes: Vec<Mailbox>,
    /// What each worker has counted.
    pub meters: Vec<Meter>,
    /// Where the moments of what workers share are counted from.
    pub started: std::time::Instant,
    /// Wrong passwords. The lock is taken by log-ins that fail.
    pub failures: Mutex<Failures>,
    /// Workers that accept clients.
    pub accepting: AtomicUsize,
    /// Clients that the end of a drain took out of what they were doing.
    pub cut_off: AtomicUsize,
    /// What goes to the logs of statements.
    pub logs: Logs,
    /// What workers have noticed.
    pub notices: Notices,
    /// Statements that were ended, until they are told of.
    pub overruns: Overruns,
    /// The listening sockets.
    pub doors: Doors,
    /// What is left to tell a client that there are no descriptors.
    pub spare: Spare,
    /// Whether this instance wants clients.
    pub condition: Condition,
    /// Writes over several groups.
    pub decisions: Decisions,
    /// How often clients have changed definitions.
    pub definitions: Arc<AtomicU64>,
}

impl Shared {
    /// What all workers have counted of an account, an index into the snapshot's.
    #[must_use]
    pub fn account_figures(&self, account: usize) -> AccountFigures {
        let mut figures = AccountFigures::default();
        for meter in &self.meters {
            meter.accounts.add_to(account, &mut figures);
        }
        figures
    }

    /// State for a process that begins with `live` and has a worker behind each mailbox.
    #[must_use]
    pub fn new(live: Live, offer: Offer, mailboxes: Vec<Mailbox>) -> Self {
        let version = live.snapshot.version;
        Self {
            live: ArcSwap::from_pointee(live),
            applied: mailboxes.iter().map(|_| AtomicU64::new(version)).collect(),
            offer: ArcSwap::from_pointee(offer),
            loads: mailboxes.iter().map(|_| AtomicUsize::new(0)).collect(),
            started: std::time::Instant::now(),
            failures: Mutex::default(),
            accepting: AtomicUsize::new(mailboxes.len()),
            cut_off: AtomicUsize::new(0),
            meters: mailboxes.iter().map(|_| Meter::default()).collect(),
            mailboxes,
            logs: Logs::default(),
            notices: Notices::default(),
            overruns: Overruns::default(),
            doors: Doors::default(),
            spare: Spare::default(),
            condition: Condition::default(),
            decisions: Decisions::default(),
            definitions: Arc::default(),
        }
    }

    /// What is in force, to be looked at more than once.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// Puts something else in force. Workers take it up when they come to it: [`Self::has_been_applied`] tells.
    pub fn publish(&self, live: Arc<Live>) {
        self.live.store(live);
        self.announce();
    }

    /// Has every worker look at what is in force, and at what waits for it.
    pub fn announce(&self) {
        for mailbox in &self.mailboxes {
            // A mailbox that is full is being emptied, and whoever reads it looks at what is in force then.
            let _ = mailbox.send(Message::Changed);
        }
    }

    /// Whether all workers go by this version, or a later one.
    #[must_use]
    pub fn has_been_applied(&self, version: u64) -> bool {
        let is_there = |applied: &AtomicU64| applied.load(Ordering::SeqCst) >= version;
        self.applied.iter().all(is_there)
    }

    /// Clients of all workers.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.loads
            .iter()
            .map(|load| load.load(Ordering::Relaxed))
            .sum()
    }

    /// The worker with the fewest clients, the asking one where it is among them.
    #[must_use]
    pub fn least_loaded(&self, own: usize) -> usize {
        let load = |worker: usize| {
            self.loads
                .get(worker)
                .map_or(usize::MAX, |load| load.load(Ordering::Relaxed))
        };
        let least = (0..self.loads.len())
            .min_by_key(|worker| load(*worker))
            .unwrap_or(own);
        if load(least) < load(own) { least } else { own }
    }
}

/// Where the offer is published, for a worker's cache of it: looking whether it has changed costs a statement less than loading
/// it, which takes turns with whoever publishes.
#[derive(Debug)]
pub(super) struct Published(pub(super) Arc<Shared>);

impl Deref for Published {
    type Target = ArcSwap<Offer>;

    fn deref(&self) -> &ArcSwap<Offer> {
        &self.0.offer
    }
}
