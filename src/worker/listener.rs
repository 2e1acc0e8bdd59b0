//! Listening sockets and what happens to a client before it has a session: who may connect at all, how many, and which
//! worker takes it. SO_REUSEPORT gives every worker its own queue, but spreads few clients unevenly, so a worker hands a
//! client to one that has fewer, before anything was said to it.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::conn::Socket;
use super::timer::Timer;
use super::{Message, Worker};
use crate::session::{Fault, Peer};
use crate::wire::Capabilities;

/// Clients accepted in one turn of the loop.
const ACCEPTS_PER_TURN: usize = 64;
/// How long accepting rests when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// A listening socket of one worker.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    /// Whoever waits in its queue is somebody else's when this process ends.
    outlives: bool,
    /// Whether it waits for descriptors: a timer looks then, not everybody who comes.
    rests: bool,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    /// The first worker accepts for all.
    Unix(UnixListener),
}

impl Listener {
    /// Binds one of the sockets that share a TCP address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn tcp(address: SocketAddr) -> io::Result<StdTcpListener> {
        let socket = RawSocket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    }

    /// Wraps a bound TCP socket.
    #[must_use]
    pub fn from_tcp(listener: StdTcpListener) -> Self {
        Self::of(Kind::Tcp(TcpListener::from_std(listener)))
    }

    /// Wraps a bound unix socket (which must be non-blocking).
    #[must_use]
    pub fn from_unix(listener: StdUnixListener) -> Self {
        Self::of(Kind::Unix(UnixListener::from_std(listener)))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            outlives: false,
            rests: false,
        }
    }

    /// One that a service manager keeps as well, for the next process.
    #[must_use]
    pub fn outliving(mut self) -> Self {
        self.outlives = true;
        self
    }

    pub(super) fn outlives(&self) -> bool {
        self.outlives
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.kind {
            Kind::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Kind::Unix(listener) => registry.register(listener, token, Interest::READABLE),
        }
    }

    pub(super) fn deregister(&mut self, registry: &Registry) {
        // It is dropped next; a failure changes nothing.
        let _ = match &mut self.kind {
            Kind::Tcp(listener) => registry.deregister(listener),
            Kind::Unix(listener) => registry.deregister(listener),
        };
    }

    fn accept(&self) -> io::Result<(Socket, Peer)> {
        match &self.kind {
            Kind::Tcp(listener) => listener
                .accept()
                .map(|(stream, address)| (Socket::Tcp(stream), Peer::Ip(address.ip()))),
            Kind::Unix(listener) => listener
                .accept()
                .map(|(stream, _)| (Socket::Unix(stream), Peer::Local)),
        }
    }
}

impl Worker {
    /// Takes in those who wait; whether there may be more.
    pub(super) fn accept(&mut self, place: usize) -> bool {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(place) else {
                return false;
            };
            if listener.rests {
                return false;
            }
            match listener.accept() {
                Ok((socket, peer)) if self.shared.spare.is_there() => self.admit(socket, peer),
                Ok((socket, peer)) => {
                    self.turn_away(socket, peer, &Fault::TooManyClients);
                    self.shared.spare.replace();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                    // Whoever waits is told instead of being left in the queue.
                    let mut told = None;
                    let turned = self.shared.spare.lend(|| {
                        let (socket, peer) = listener.accept()?;
                        tell(socket, &Fault::TooManyClients);
                        told = Some(peer);
                        Ok(())
                    });
                    if let Some(peer) = told {
                        self.note_turned_away(peer, &Fault::TooManyClients);
                    }
                    match turned {
                        Ok(()) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                        Err(error) => return self.rest_from_accepting(place, &error),
                    }
                }
                Err(error) => return self.rest_from_accepting(place, &error),
            }
        }
        true
    }

    /// Out of descriptors or memory: those that wait keep their place in the queue meanwhile.
    fn rest_from_accepting(&mut self, place: usize, error: &io::Error) -> bool {
        log::warn!("cannot accept clients for now: {error}");
        if let Some(listener) = self.listeners.get_mut(place) {
            listener.rests = true;
        }
        self.timers
            .add(Instant::now() + PAUSE, Timer::Accept(place));
        false
    }

    /// The end of such a rest.
    pub(super) fn accept_again(&mut self, place: usize) {
        if let Some(listener) = self.listeners.get_mut(place) {
            listener.rests = false;
        }
        self.accept_on(place);
    }

    fn admit(&mut self, socket: Socket, peer: Peer) {
        let server = &self.live.snapshot.config.server;
        // Of a balancer's connection the client's address counts, which is yet to be said.
        if let Peer::Ip(ip) = peer
            && !server.proxy_protocol_from.contains(ip)
            && !server.client_networks.allows(ip)
        {
            return self.turn_away(socket, peer, &Fault::HostNotAllowed(peer.to_string()));
        }
        if self.shared.clients() >= server.max_connections {
            return self.turn_away(socket, peer, &Fault::TooManyClients);
        }
        let target = self.shared.least_loaded(self.index);
        if let Some(load) = self.shared.loads.get(target) {
            load.fetch_add(1, Ordering::Relaxed);
        }
        if target != self.index
            && let (Some(mailbox), Some(load)) = (
                self.shared.mailboxes.get(target),
                self.shared.loads.get(target),
            )
        {
            // The socket is not registered anywhere yet, so another loop may have it as it is.
            match mailbox.send(Message::Client(socket, peer)) {
                Ok(()) => return,
                Err(Message::Client(socket, peer)) => {
                    load.fetch_sub(1, Ordering::Relaxed);
                    if let Some(own) = self.shared.loads.get(self.index) {
                        own.fetch_add(1, Ordering::Relaxed);
                    }
                    return self.adopt(socket, peer);
                }
                Err(_) => return,
            }
        }
        self.adopt(socket, peer);
    }

    /// One error packet instead of a greeting, then the end. Servers send no SQL state here.
    fn turn_away(&mut self, socket: Socket, peer: Peer, fault: &Fault) {
        tell(socket, fault);
        self.note_turned_away(peer, fault);
    }
}

fn tell(mut socket: Socket, fault: &Fault) {
    let mut packet = Vec::new();
    fault.write(&mut packet, 0, Capabilities::NONE);
    let _ = socket.write(&packet);
    log::debug!("turned a client away: {fault}");
}
