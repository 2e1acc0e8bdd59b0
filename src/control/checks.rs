//! The threads that check servers: one for each host that is configured, started and ended as the configuration changes; and what
//! all of them together say of the servers to clients. What a check does is `probe`'s.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::names::Names;
use super::probe::{Prober, Views};
use super::pulses::Pulses;
use super::roles::Looked;
use crate::config::HostAddress;
use crate::pool::{HostId, Offer};
use crate::snapshot::{Group, HostEntry};
use crate::worker::Shared;

/// The checks of all hosts that are configured.
pub struct Checks {
    pub(super) shared: Arc<Shared>,
    names: Names,
    /// Where moments are counted from.
    pub(super) start: Instant,
    /// Hosts that have a thread.
    checked: Mutex<HashSet<HostId>>,
    /// Hosts whose first check has ended, well or not.
    pub(super) first_round: AtomicUsize,
    pub(super) pulses: Pulses,
    pub(super) views: Views,
    /// Where checks tell what they saw.
    pub(super) looks: SyncSender<Looked>,
    told: Mutex<Option<Receiver<Looked>>>,
}

/// Checks that have ended and were not looked at yet. Whoever finds it full waits.
const LOOKS_MAX: usize = 1024;

impl Checks {
    /// Starts a thread for each host.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(shared: &Arc<Shared>) -> io::Result<Arc<Self>> {
        let (looks, told) = sync_channel(LOOKS_MAX);
        let checks = Arc::new(Self {
            shared: shared.clone(),
            names: Names::default(),
            start: Instant::now(),
            checked: Mutex::default(),
            first_round: AtomicUsize::new(0),
            pulses: Pulses::default(),
            views: Views::default(),
            looks,
            told: Mutex::new(Some(told)),
        });
        checks.follow()?;
        Ok(checks)
    }

    /// Starts what is missing after something else was put in force; what is too much ends by itself.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn follow(self: &Arc<Self>) -> io::Result<()> {
        let live = self.shared.live();
        let mut checked = self.checked();
        for host in live.present() {
            if checked.contains(&host) {
                continue;
            }
            let name = match &live.snapshot.hosts[host.index()].address {
                HostAddress::Name(name, port) => Some(self.names.get(name, *port)?),
                HostAddress::Ip(_) | HostAddress::Unix(_) => None,
            };
            let prober = Prober::new(self.clone(), live.clone(), host, name);
            std::thread::Builder::new()
                .name(format!("check-{}", host.0))
                .spawn(move || prober.run())?;
            checked.insert(host);
        }
        Ok(())
    }

    /// What checks tell of what they saw. Once.
    pub(super) fn take_looks(&self) -> Option<Receiver<Looked>> {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Control's clock.
    pub(super) fn moment(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether every host was checked once.
    #[must_use]
    pub fn first_round_is_over(&self) -> bool {
        let threads = self.checked().len();
        self.first_round.load(Ordering::Acquire) >= threads
    }

    /// The host has no checks from here on, unless it is configured again meanwhile.
    pub(super) fn may_end(&self, host: HostId) -> bool {
        let mut checked = self.checked();
        let is_gone = |entry: &HostEntry| entry.is_gone;
        if !self
            .shared
            .live()
            .snapshot
            .hosts
            .get(host.index())
            .is_none_or(is_gone)
        {
            return false;
        }
        checked.remove(&host);
        true
    }

    fn checked(&self) -> MutexGuard<'_, HashSet<HostId>> {
        // Nothing can be half done in there.
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

/// Tells clients of what the servers that are configured have in common.
pub(super) fn publish_offer(shared: &Shared) {
    let live = shared.live();
    // The primary of the first group comes first: clients are told of its version before anything is known of them.
    let groups = live.snapshot.groups.iter().filter(|group| !group.is_gone);
    let all: Vec<_> = groups
        .flat_map(Group::members)
        .filter_map(|host| live.hosts.get(host).facts())
        .collect();
    if let Some(offer) = Offer::of(all.iter().map(AsRef::as_ref)) {
        shared.offer.store(Arc::new(offer));
    }
}
