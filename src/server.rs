//! Assembly: from a checked configuration to running threads, and back. No decisions beyond what to start in which order.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this starts the threads and binds the sockets that the rest of the house is spared from"
)]

mod given;
mod sockets;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Poll, Waker};

use crate::config::{Config, PinWorkers, WORKERS_MAX};
use crate::control::handover::{self, Incumbent, Inherited};
use crate::control::{
    Checks, Desk, Loaded, admin, await_global_tables, decisions, http, mirrors, notices, notify,
    read_tls, roles, signal, statements, watch_global_tables,
};
use crate::pool::Offer;
use crate::shard;
use crate::snapshot::{Account, Snapshot};
use crate::worker::{
    Doors, Listener, Live, Readiness, Shared, Target, Worker, allowed_cores, mailbox, pin_to,
    raise_descriptor_limit,
};

/// Runs the proxy until it is told to stop. The exit code tells whether all transactions came to their end. `takes_over`: another
/// process that serves with this configuration gives it its sockets.
#[must_use]
pub fn run(loaded: Loaded, path: &Path, takes_over: bool, held: signal::Held) -> ExitCode {
    match start(loaded, path, takes_over, held).and_then(Running::wait) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            log::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Running {
    workers: Vec<JoinHandle<io::Result<()>>>,
    shared: Arc<Shared>,
    forced: Arc<AtomicBool>,
    /// Of the logs of statements.
    writers: statements::Writers,
    /// Files of unix sockets.
    files: Vec<PathBuf>,
}

impl Running {
    /// Waits for the end. True when nothing was cut off.
    fn wait(self) -> io::Result<bool> {
        let mut result = Ok(());
        for worker in self.workers {
            match worker.join() {
                Ok(outcome) => result = result.and(outcome),
                Err(_) => {
                    result = Err(io::Error::other(
                        "a worker ended with a panic; this is a fault of Atlas, please report it",
                    ))
                }
            }
        }
        self.writers.finish(&self.shared);
        if !self.shared.doors.are_handed_over() {
            for path in self.files {
                let _ = std::fs::remove_file(path);
            }
        }
        let left = self.shared.clients() + self.shared.cut_off.load(Ordering::Relaxed);
        if left > 0 {
            log::warn!("{left} clients were cut off");
        }
        log::info!("stopped");
        result.map(|()| left == 0 && !self.forced.load(Ordering::Relaxed))
    }
}

fn start(loaded: Loaded, path: &Path, takes_over: bool, held: signal::Held) -> io::Result<Running> {
    let config = loaded.config.clone();
    match raise_descriptor_limit() {
        Ok(limit) => warn_of_few_descriptors(&config, limit),
        Err(error) => log::warn!("cannot raise the limit of open files: {error}"),
    }
    let count = match config.server.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let count = count.min(WORKERS_MAX);
    let program = std::env::current_exe()?;
    let upgrade_path = handover::socket_path(&config.server, path);
    let mut inherited = if takes_over {
        Inherited::ask(&upgrade_path)?
    } else {
        Inherited::default()
    };
    let doors = Doors::default();
    let upgrade = handover::listen(&upgrade_path, &mut inherited, &doors)?;
    let mut passed = given::Sockets::from_environment()?;
    let bound = sockets::clients(&config, count, &mut passed, &mut inherited, &doors)?;
    let mut single = |purpose, address: Option<SocketAddr>| {
        sockets::single(purpose, address, &mut passed, &mut inherited, &doors)
    };
    let http = single("http", config.server.http_listen)?;
    let admin = single("admin", config.server.admin_listen)?;
    let snapshot = Snapshot::new(config);
    let tls = read_tls(&snapshot)?;
    let mut polls = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..count {
        let poll = Poll::new()?;
        let (sender, receiver) = mailbox(Waker::new(poll.registry(), Target::Mailbox.token())?);
        polls.push((poll, receiver));
        mailboxes.push(sender);
    }
    let live = Live::new(snapshot, tls, count);
    let mut shared = Shared::new(live, Offer::default(), mailboxes);
    shared.doors = doors;
    let shared = Arc::new(shared);
    let checks = Checks::start(&shared)?;
    let desk = Arc::new(Desk::new(shared.clone(), checks.clone(), path, loaded));
    if let Some(listener) = http {
        http::start(listener, shared.clone())?;
    }
    let forced = Arc::new(AtomicBool::new(false));
    if let Some(listener) = admin {
        admin::start(listener, shared.clone(), desk.clone(), forced.clone())?;
    }
    let writers = statements::start(&shared)?;
    mirrors::start(shared.clone())?;
    notices::start(shared.clone(), desk.clone())?;
    roles::start(desk.clone())?;
    watch_global_tables(desk.clone())?;
    decisions::start(shared.clone(), desk.clone())?;
    signal::start(held, shared.clone(), desk.clone(), forced.clone())?;
    first_checks(&shared, &checks)?;
    let patience = shared.live().snapshot.config.monitor.timeout;
    await_global_tables(&shared, Instant::now() + patience);
    let mut whole = Some(bound.whole);
    let mut workers = Vec::new();
    for (index, ((poll, receiver), listeners)) in polls.into_iter().zip(bound.tcp).enumerate() {
        let mut listeners: Vec<Listener> = listeners;
        // One queue cannot be split over workers: the first accepts and hands out.
        listeners.extend(whole.take().unwrap_or_default());
        let mut worker = Worker::new(index, poll, shared.clone(), receiver, listeners)?;
        let shared = shared.clone();
        let core = core_for(&shared.live().snapshot.config.server.pin_workers, index);
        let handle = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(shard::STACK)
            .spawn(move || {
                if let Some(core) = core
                    && let Err(error) = pin_to(core)
                {
                    log::warn!("cannot pin worker {index} to core {core}: {error}");
                }
                let outcome = run_worker(index, &mut worker);
                if outcome.is_err() {
                    shared.condition.lose_worker();
                }
                outcome
            })?;
        workers.push(handle);
    }
    await_idle(&shared);
    let mut files = bound.paths;
    if inherited.has_predecessor() && is_stopping(&shared) {
        log::info!("told to stop before it took over: the process of before goes on");
        files.clear();
        return Ok(Running {
            workers,
            shared,
            forced,
            writers,
            files,
        });
    }
    shared.condition.set_serving();
    if let Some(listener) = upgrade {
        files.push(upgrade_path);
        handover::start(Incumbent {
            listener,
            shared: shared.clone(),
            desk,
            program,
        })?;
    }
    inherited.claim();
    notify::ready("serving clients");
    log::info!(
        "ready: {count} workers, server version {}",
        String::from_utf8_lossy(&shared.offer.load().facts.version)
    );
    Ok(Running {
        workers,
        shared,
        forced,
        writers,
        files,
    })
}

/// Runs a worker; after a panic it starts anew without its clients, a few times.
fn run_worker(index: usize, worker: &mut Worker) -> io::Result<()> {
    for _ in 0..PANICS_MAX {
        // After a panic nothing of the worker's state is used but what `recover` keeps.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run())) {
            Ok(outcome) => return outcome,
            Err(_) => {
                log::error!(
                    "worker {index} panicked and starts anew, its clients are lost; this is a fault of Atlas, please report it"
                );
                worker.recover();
            }
        }
    }
    Err(io::Error::other(format!(
        "worker {index} panicked {PANICS_MAX} times"
    )))
}

/// A worker that panics more often than this is not started again.
const PANICS_MAX: usize = 10;

/// Waits until every host was checked once, or the checks have had their time: clients are to be told what the servers can do.
fn first_checks(shared: &Shared, checks: &Checks) -> io::Result<()> {
    // The first random bytes of a process take a fifth of a second, in which the library gathers entropy: no client is to wait
    // for that, and no worker.
    if aws_lc_rs::rand::fill(&mut [0]).is_err() {
        return Err(io::Error::other("no random bytes"));
    }
    let live = shared.live();
    let deadline =
        Instant::now() + live.snapshot.config.monitor.timeout + Duration::from_millis(500);
    let roles_are_known = || {
        let live = shared.live();
        live.snapshot
            .groups
            .iter()
            .all(|group| group.primary.is_some())
    };
    while !(checks.first_round_is_over() && roles_are_known())
        && Instant::now() < deadline
        && !is_stopping(shared)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    let live = shared.live();
    for group in &live.snapshot.groups {
        let has_answered = |host| live.hosts.get(host).facts().is_some();
        if !group.primary.is_some_and(has_answered) {
            log::warn!(
                "the primary of group {} has not answered yet: clients are told of a default version",
                group.name
            );
        }
    }
    Ok(())
}

/// Waits until `min_idle` connections to every host that answers are there, for as long as opening them may take.
fn await_idle(shared: &Shared) {
    let live = shared.live();
    let pool = &live.snapshot.config.pool;
    if !live.snapshot.accounts.iter().any(|account| account.shares) {
        return;
    }
    let wanted = pool
        .min_idle
        .min(pool.max_connections)
        .min(pool.connect_rate as usize);
    let deadline = Instant::now() + pool.connect_timeout;
    for host in live.present() {
        let group = live.snapshot.hosts.get(host.index()).map(|h| h.group);
        let of_group = |account: &Account| account.shares && Some(account.group) == group;
        if !live.snapshot.accounts.iter().any(of_group) {
            // None are opened before a session needs one.
            continue;
        }
        let is_up = || live.hosts.get(host).is_up();
        let idle = || {
            live.gates
                .get(host.index())
                .map_or(wanted, |gate| gate.idle())
        };
        while idle() < wanted && is_up() && Instant::now() < deadline && !is_stopping(shared) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Whether nothing is to be waited for any more: told to stop while it starts, a process ends without having served.
fn is_stopping(shared: &Shared) -> bool {
    shared.condition.readiness() == Readiness::Draining
}

fn warn_of_few_descriptors(config: &Config, limit: u64) {
    // A client and its two server connections.
    let wanted = (config.server.max_connections as u64)
        .saturating_mul(3)
        .saturating_add(100);
    if limit < wanted {
        log::warn!(
            "the limit of open files is {limit}; max_connections = {} may need {wanted} (raise it with ulimit -n or LimitNOFILE)",
            config.server.max_connections
        );
    }
}

fn core_for(pin: &PinWorkers, index: usize) -> Option<usize> {
    let cores = match pin {
        PinWorkers::No => return None,
        PinWorkers::Yes => allowed_cores(),
        PinWorkers::Cores(cores) => cores.clone(),
    };
    cores.get(index.checked_rem(cores.len())?).copied()
}
