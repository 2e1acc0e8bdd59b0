//! Listening sockets: bound anew, taken over from the process that had them, or passed by a service manager.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::given::{self, Given, Sockets};
use crate::config::{Config, ListenAddress};
use crate::control::handover::Inherited;
use crate::worker::{Doors, Listener};

/// What clients connect to.
pub(super) struct Bound {
    /// Of each worker.
    pub(super) tcp: Vec<Vec<Listener>>,
    /// One queue each, which cannot be split over workers.
    pub(super) whole: Vec<Listener>,
    /// Files of unix sockets.
    pub(super) paths: Vec<PathBuf>,
}

/// Every address: TCP once for each worker, a unix socket once. What was taken over has who waits in its queue, so all of it is
/// used, however many workers there are.
pub(super) fn clients(
    config: &Config,
    count: usize,
    passed: &mut Sockets,
    inherited: &mut Inherited,
    doors: &Doors,
) -> io::Result<Bound> {
    let mut bound = Bound {
        tcp: (0..count).map(|_| Vec::new()).collect(),
        whole: Vec::new(),
        paths: Vec::new(),
    };
    for socket in passed.take("clients", inherited) {
        log::info!("listening on {}, as passed", socket.address());
        let label = given::label("clients");
        bound.whole.push(match socket {
            Given::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                keep(doors, &label, &socket)?;
                Listener::from_tcp(socket).outliving()
            }
            Given::Unix(socket) => {
                socket.set_nonblocking(true)?;
                keep(doors, &label, &socket)?;
                Listener::from_unix(socket).outliving()
            }
        });
    }
    // Who is passed sockets is told by that where to listen.
    let configured = config
        .server
        .listen
        .iter()
        .filter(|_| bound.whole.is_empty());
    for address in configured.collect::<Vec<_>>() {
        match address {
            ListenAddress::Tcp(address) => {
                let label = format!("clients {address}");
                let old = inherited.take(&label);
                let sockets = tcp(*address, old, count)?;
                for (place, socket) in sockets.into_iter().enumerate() {
                    keep(doors, &label, &socket)?;
                    if let Some(listeners) = bound.tcp.get_mut(place % count) {
                        listeners.push(Listener::from_tcp(socket));
                    }
                }
            }
            ListenAddress::Unix(path) => {
                let label = format!("clients unix:{}", path.display());
                let listener = match inherited.take(&label).pop() {
                    Some(socket) => UnixListener::from(socket),
                    None => bind_unix(path)?,
                };
                listener.set_nonblocking(true)?;
                keep(doors, &label, &listener)?;
                bound.whole.push(Listener::from_unix(listener));
                bound.paths.push(path.clone());
                log::info!("listening on unix:{}", path.display());
            }
        }
    }
    for label in inherited.left() {
        if let Some(path) = label.strip_prefix("clients unix:") {
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(bound)
}

/// The sockets of one address that there were, and as many more as make `count`.
fn tcp(address: SocketAddr, old: Vec<OwnedFd>, count: usize) -> io::Result<Vec<TcpListener>> {
    let mut sockets: Vec<TcpListener> = old.into_iter().map(TcpListener::from).collect();
    let mut bound = match sockets.first() {
        Some(socket) => socket.local_addr()?,
        None => address,
    };
    while sockets.len() < count {
        let socket = Listener::tcp(bound)
            .map_err(|error| io::Error::other(format!("cannot listen on {bound}: {error}")))?;
        // With port 0 the first decides.
        bound = socket.local_addr()?;
        sockets.push(socket);
    }
    log::info!("listening on {bound}");
    Ok(sockets)
}

/// A port of which one thread has the only socket.
pub(super) fn single(
    purpose: &str,
    address: Option<SocketAddr>,
    passed: &mut Sockets,
    inherited: &mut Inherited,
    doors: &Doors,
) -> io::Result<Option<TcpListener>> {
    let given = passed.take(purpose, inherited).pop();
    let (label, listener) = match (given, address) {
        (Some(Given::Tcp(socket)), _) => (given::label(purpose), socket),
        (Some(Given::Unix(_)), _) => {
            return Err(io::Error::other(format!(
                "a unix socket was passed for the {purpose} port, which is TCP"
            )));
        }
        (None, None) => return Ok(None),
        (None, Some(address)) => {
            let label = format!("{purpose} {address}");
            let listener = match inherited.take(&label).pop() {
                Some(socket) => TcpListener::from(socket),
                None => TcpListener::bind(address).map_err(|error| {
                    io::Error::other(format!(
                        "cannot listen on {address} ({purpose} port): {error}"
                    ))
                })?,
            };
            (label, listener)
        }
    };
    listener.set_nonblocking(true)?;
    keep(doors, &label, &listener)?;
    let bound = listener.local_addr()?;
    match purpose {
        "http" => log::info!("listening on http://{bound}"),
        _ => log::info!("listening on {bound} ({purpose} port)"),
    }
    Ok(Some(listener))
}

fn keep(doors: &Doors, label: &str, socket: &impl AsFd) -> io::Result<()> {
    doors.add(label.to_owned(), socket.as_fd().try_clone_to_owned()?);
    Ok(())
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
