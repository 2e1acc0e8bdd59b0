//! Assembly: from a checked configuration to running threads, and back. No decisions beyond what to start in which order.

#![expect(
    clippy::disallowed_methods,
    reason = "this starts the threads and binds the sockets that the rest of the house is spared from"
)]

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use mio::{Poll, Waker};

use crate::config::{
    BackendTlsMode, Config, GroupConfig, HostAddress, ListenAddress, PinWorkers, ServerTlsMode,
};
use crate::control::{http, notify, probe, signal};
use crate::pool::{HostId, Hosts, Offer};
use crate::snapshot::Snapshot;
use crate::worker::tls::{BackendTls, ServerTls};
use crate::worker::{
    Condition, Gate, Listener, Shared, Target, Worker, allowed_cores, mailbox, pin_to,
    raise_descriptor_limit,
};

/// Runs the proxy until it is told to stop. The exit code tells whether all transactions came to their end.
#[must_use]
pub fn run(config: Config, _path: &Path) -> ExitCode {
    match start(config).and_then(Running::wait) {
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
    sockets: Vec<std::path::PathBuf>,
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
        for path in self.sockets {
            let _ = std::fs::remove_file(path);
        }
        let left = self.shared.clients();
        if left > 0 {
            log::warn!("{left} clients were cut off");
        }
        log::info!("stopped");
        result.map(|()| left == 0 && !self.forced.load(Ordering::Relaxed))
    }
}

fn start(config: Config) -> io::Result<Running> {
    match raise_descriptor_limit() {
        Ok(limit) => warn_of_few_descriptors(&config, limit),
        Err(error) => log::warn!("cannot raise the limit of open files: {error}"),
    }
    let count = match config.server.workers {
        0 => std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(64),
        n => n.min(64),
    };
    let (tcp, unix, sockets) = bind(&config, count)?;
    let http = config.server.http_listen.map(http::bind).transpose()?;
    let client_tls = client_tls(&config)?;
    let backend_tls = config
        .groups
        .iter()
        .map(backend_tls)
        .collect::<io::Result<_>>()?;
    let snapshot = Arc::new(Snapshot::new(config));
    let addresses = snapshot.hosts.iter().map(|host| match host.address {
        HostAddress::Ip(address) => Some(address),
        HostAddress::Name(..) | HostAddress::Unix(_) => None,
    });
    let hosts = Hosts::new(addresses);
    let mut polls = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..count {
        let poll = Poll::new()?;
        let (sender, receiver) = mailbox(Waker::new(poll.registry(), Target::Mailbox.token())?);
        polls.push((poll, receiver));
        mailboxes.push(sender);
    }
    let gates = snapshot
        .hosts
        .iter()
        .map(|_| Gate::new(count, &snapshot.config.pool))
        .collect();
    let shared = Arc::new(Shared {
        gates,
        snapshot,
        hosts,
        offer: ArcSwap::from_pointee(Offer::default()),
        client_tls,
        backend_tls,
        loads: (0..count).map(|_| AtomicUsize::new(0)).collect(),
        mailboxes,
        condition: Condition::default(),
    });
    if let Some(listener) = http {
        http::start(listener, shared.clone())?;
    }
    let forced = Arc::new(AtomicBool::new(false));
    signal::start(shared.clone(), forced.clone())?;
    first_checks(&shared)?;
    let mut unix = Some(unix);
    let mut workers = Vec::new();
    for (index, ((poll, receiver), listeners)) in polls.into_iter().zip(tcp).enumerate() {
        let mut listeners: Vec<Listener> = listeners;
        // One queue cannot be split over workers: the first accepts and hands out.
        listeners.extend(unix.take().unwrap_or_default());
        let mut worker = Worker::new(index, poll, shared.clone(), receiver, listeners)?;
        let shared = shared.clone();
        let core = core_for(&shared.snapshot.config.server.pin_workers, index);
        let handle = std::thread::Builder::new()
            .name(format!("worker-{index}"))
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
    shared.condition.set_serving();
    notify::ready("serving clients");
    log::info!(
        "ready: {count} workers, server version {}",
        String::from_utf8_lossy(&shared.offer.load().facts.version)
    );
    Ok(Running {
        workers,
        shared,
        forced,
        sockets,
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

type Bound = (Vec<Vec<Listener>>, Vec<Listener>, Vec<std::path::PathBuf>);

/// Binds every address: TCP once for each worker, a unix socket once.
fn bind(config: &Config, count: usize) -> io::Result<Bound> {
    let mut tcp: Vec<Vec<Listener>> = (0..count).map(|_| Vec::new()).collect();
    let mut unix = Vec::new();
    let mut paths = Vec::new();
    for address in &config.server.listen {
        match address {
            ListenAddress::Tcp(address) => {
                let mut bound: SocketAddr = *address;
                for listeners in &mut tcp {
                    let listener = Listener::tcp(bound).map_err(|error| {
                        io::Error::other(format!("cannot listen on {bound}: {error}"))
                    })?;
                    // With port 0 the first decides.
                    bound = listener.local_addr()?;
                    listeners.push(Listener::from_tcp(listener));
                }
                log::info!("listening on {bound}");
            }
            ListenAddress::Unix(path) => {
                let listener = bind_unix(path)?;
                listener.set_nonblocking(true)?;
                unix.push(Listener::from_unix(listener));
                paths.push(path.clone());
                log::info!("listening on unix:{}", path.display());
            }
        }
    }
    Ok((tcp, unix, paths))
}

/// Binds a unix socket, in place of one that nobody serves any more.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let explain = |error: io::Error| {
        io::Error::other(format!("cannot listen on unix:{}: {error}", path.display()))
    };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_served = std::os::unix::net::UnixStream::connect(path).is_ok();
            let is_socket = std::fs::symlink_metadata(path)
                .is_ok_and(|meta| std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type()));
            if is_served || !is_socket {
                return Err(explain(error));
            }
            std::fs::remove_file(path).map_err(explain)?;
            UnixListener::bind(path).map_err(explain)
        }
        other => other.map_err(explain),
    }
}

/// Waits until every host was checked once, or the checks have had their time: clients are to be told what the servers can do.
fn first_checks(shared: &Arc<Shared>) -> io::Result<()> {
    let done = Arc::new(AtomicUsize::new(0));
    probe::start(shared, &done)?;
    // The first random bytes of a process take a fifth of a second, in which the library gathers entropy: no client is to wait
    // for that, and no worker.
    if aws_lc_rs::rand::fill(&mut [0]).is_err() {
        return Err(io::Error::other("no random bytes"));
    }
    let deadline =
        Instant::now() + shared.snapshot.config.monitor.timeout + Duration::from_millis(500);
    while done.load(Ordering::Acquire) < shared.snapshot.hosts.len() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    for group in &shared.snapshot.groups {
        if shared.hosts.get(group.primary).facts().is_none() {
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
    let pool = &shared.snapshot.config.pool;
    if !shared
        .snapshot
        .accounts
        .iter()
        .any(|account| account.shares)
    {
        return;
    }
    let wanted = pool
        .min_idle
        .min(pool.max_connections)
        .min(pool.connect_rate as usize);
    let deadline = Instant::now() + pool.connect_timeout;
    for (gate, host) in shared.gates.iter().zip(0..) {
        let is_up = || shared.hosts.get(HostId(host)).is_up();
        while gate.idle() < wanted && is_up() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
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

fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::other(format!("cannot read {}: {error}", path.display())))
}

fn client_tls(config: &Config) -> io::Result<Option<ServerTls>> {
    let tls = &config.server.tls;
    if tls.mode == ServerTlsMode::Off {
        return Ok(None);
    }
    let ca = tls.ca.as_deref().map(read).transpose()?;
    ServerTls::load(&read(&tls.cert)?, &read(&tls.key)?, ca.as_deref())
        .map(Some)
        .map_err(|error| io::Error::other(format!("server.tls: {error}")))
}

fn backend_tls(group: &GroupConfig) -> io::Result<Option<BackendTls>> {
    let tls = &group.tls;
    if tls.mode == BackendTlsMode::Off {
        return Ok(None);
    }
    let ca = tls.ca.as_deref().map(read).transpose()?;
    let identity = match &tls.identity {
        None => None,
        Some((cert, key)) => Some((read(cert)?, read(key)?)),
    };
    let identity = identity
        .as_ref()
        .map(|(cert, key)| (cert.as_slice(), key.as_slice()));
    BackendTls::load(tls.mode, ca.as_deref(), identity)
        .map(Some)
        .map_err(|error| io::Error::other(format!("TLS of group {}: {error}", group.name)))
}
