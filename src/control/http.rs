//! The HTTP port: health checks, metrics, a status page. One thread with its own event loop, apart from the data path: what it
//! may cost is bounded by the number of connections, the size of a request's head, and a deadline for each connection. It
//! needs no account, so it shows nothing that is secret.
//!
//! Every connection carries one request. Reading it and writing the answer are `exchange`'s, what is answered `pages`'.

mod exchange;
mod pages;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use self::exchange::{Head, Progress};
use self::pages::Pages;
use crate::worker::{Shared, is_exhaustion};

/// Connections at a time. One more takes the place of the oldest, so that whoever sends nothing keeps no health check away.
const CONNECTIONS_MAX: usize = 64;
/// How long a request may take to arrive, and its answer to leave.
const DEADLINE: Duration = Duration::from_secs(5);
/// Bytes that are read and thrown away behind a request. Closing with some unread would be a reset, which can overtake the answer.
const REST_MAX: usize = 64 * 1024;
/// How long accepting rests when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(200);
const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Starts the thread that serves the port, until the process ends or another one has it. The listener does not block.
///
/// # Errors
/// The thread or its event loop could not be made.
pub fn start(listener: StdTcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let mut server = Server::new(TcpListener::from_std(listener), shared)?;
    std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            if let Err(error) = server.run() {
                log::error!("the HTTP port is not served any more: {error}");
            }
        })?;
    Ok(())
}

struct Server {
    poll: Poll,
    /// Until another process has it.
    listener: Option<TcpListener>,
    shared: Arc<Shared>,
    connections: Slab<Connection>,
    /// When to look at the listener again, which may hold more: edge-triggered events do not tell twice.
    accept_at: Option<Instant>,
    pages: Pages,
}

struct Connection {
    stream: TcpStream,
    deadline: Instant,
    phase: Phase,
}

enum Phase {
    Reading(Vec<u8>),
    Writing {
        answer: Vec<u8>,
        written: usize,
    },
    /// All is said; what still arrives is counted.
    Closing(usize),
}

impl Server {
    fn new(mut listener: TcpListener, shared: Arc<Shared>) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        shared.doors.wake_at_hand_over(waker);
        let pages = Pages::new(shared.clone());
        Ok(Self {
            poll,
            listener: Some(listener),
            shared,
            connections: Slab::with_capacity(CONNECTIONS_MAX),
            accept_at: None,
            pages,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        loop {
            match self.poll.poll(&mut events, self.timeout(Instant::now())) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_at = Some(Instant::now()),
                    WAKER => self.close_when_handed_over(),
                    Token(index) => self.drive(index),
                }
            }
            let now = Instant::now();
            self.connections
                .retain(|_, connection| connection.deadline > now);
            if self.accept_at.is_some_and(|at| at <= now) {
                self.accept_at = self.accept(now);
            }
        }
    }

    fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.connections.iter().map(|(_, c)| c.deadline);
        deadlines
            .chain(self.accept_at)
            .min()
            .map(|next| next.saturating_duration_since(now))
    }

    fn close_when_handed_over(&mut self) {
        if self.shared.doors.are_handed_over()
            && let Some(mut listener) = self.listener.take()
        {
            // The socket lives on elsewhere, so closing it does not do this.
            let _ = self.poll.registry().deregister(&mut listener);
        }
    }

    /// Takes in those who wait, and tells when to look again.
    fn accept(&mut self, now: Instant) -> Option<Instant> {
        // As many as there is room for in one turn; each gets a look at what it has sent before the next turn.
        for _ in 0..CONNECTIONS_MAX {
            let Some(listener) = &self.listener else {
                return None;
            };
            match listener.accept() {
                Ok((stream, _)) => self.take_in(stream, now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if is_exhaustion(&error) => return Some(now + PAUSE),
                // Of one connection only: it was gone before it was taken.
                Err(_) => {}
            }
        }
        Some(now)
    }

    fn take_in(&mut self, stream: TcpStream, now: Instant) {
        if self.connections.len() >= CONNECTIONS_MAX {
            let oldest = self.connections.iter().min_by_key(|(_, c)| c.deadline);
            if let Some((index, _)) = oldest {
                self.connections.remove(index);
            }
        }
        let index = self.connections.insert(Connection {
            stream,
            deadline: now + DEADLINE,
            phase: Phase::Reading(Vec::new()),
        });
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = self.connections.get_mut(index).is_some_and(|connection| {
            self.poll
                .registry()
                .register(&mut connection.stream, Token(index), both)
                .is_ok()
        });
        if registered {
            self.drive(index);
        } else {
            self.connections.try_remove(index);
        }
    }

    /// Does for a connection what can be done now.
    fn drive(&mut self, index: usize) {
        // Gone: the event was of the place's previous connection.
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let is_kept = match connection.drive(&self.pages) {
            Ok(is_kept) => is_kept,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        if !is_kept {
            self.connections.remove(index);
        }
    }
}

impl Connection {
    /// Goes on until the socket has no more, which is the error `WouldBlock`, or there is no more to do: then false.
    fn drive(&mut self, pages: &Pages) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            match &mut self.phase {
                Phase::Reading(head) => {
                    let n = uninterrupted(|| self.stream.read(&mut buffer))?;
                    if n == 0 {
                        return Ok(false);
                    }
                    head.extend_from_slice(buffer.get(..n).unwrap_or_default());
                    let answer = match exchange::parse(head) {
                        Progress::More => continue,
                        Progress::Request(Head { path, has_body }) => {
                            pages.answer(&path).to_bytes(has_body)
                        }
                        Progress::Wrong(status) => exchange::refusal(status).to_bytes(true),
                    };
                    self.phase = Phase::Writing { answer, written: 0 };
                }
                Phase::Writing { answer, written } => {
                    let rest = answer.get(*written..).unwrap_or_default();
                    if rest.is_empty() {
                        self.stream.shutdown(Shutdown::Write)?;
                        self.phase = Phase::Closing(0);
                        continue;
                    }
                    *written += match uninterrupted(|| self.stream.write(rest))? {
                        0 => return Ok(false),
                        n => n,
                    };
                }
                Phase::Closing(read) => match uninterrupted(|| self.stream.read(&mut buffer))? {
                    0 => return Ok(false),
                    n if *read + n > REST_MAX => return Ok(false),
                    n => *read += n,
                },
            }
        }
    }
}

fn uninterrupted(mut act: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match act() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
