//! The admin port: who is connected, and the bytes between sockets and `admin`'s state machines. Each connection has a thread, for
//! commands may wait; how many there are is bounded, and so is the time that each may take to say something. Nothing here is on a
//! statement's way.
//!
//! `operator` carries commands out: `reports`, `accounts`, `clients`, `checks`, `strangers` and `explain` tell what is, `change` and `save` change it.

mod accounts;
mod change;
mod checks;
mod clients;
mod explain;
mod operator;
mod reports;
mod save;
mod strangers;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use self::operator::Operator;
use crate::admin::{Connection, Cx, Refusal, Step};
use crate::auth::{Failures, nonce_from_random};
use crate::control::Desk;
use crate::worker::Shared;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 32;
/// How long a log-in may take.
const LOGIN_TIME: Duration = Duration::from_secs(10);
/// How long somebody who is logged in may say nothing.
const IDLE_TIME: Duration = Duration::from_secs(3600);
/// How long an answer may take to be taken.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// How long accepting rests when it fails.
const PAUSE: Duration = Duration::from_millis(200);
/// Clients' ids lie where no client of the data port has one.
const ID_BIT: u32 = 1 << 31;

/// Starts serving the port, until the process ends or another one has it. The listener does not block. `forced` is to tell of an end that does not wait for clients.
///
/// # Errors
/// The thread could not be made.
pub fn start(
    listener: TcpListener,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    forced: Arc<AtomicBool>,
) -> io::Result<()> {
    if shared.live().snapshot.config.admin.users.is_empty() {
        log::warn!("nobody can log in on the admin port: [admin] has no users");
    }
    let port = Arc::new(Port {
        operator: Operator::new(shared, desk, forced),
        seats: Mutex::default(),
        failures: Mutex::default(),
        start: Instant::now(),
    });
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || {
            if let Err(error) = port.accept(&listener) {
                log::error!("the admin port is not served any more: {error}");
            }
        })?;
    Ok(())
}

struct Port {
    operator: Operator,
    seats: Mutex<Seats>,
    /// Who tried which passwords, apart from those of the data port: that one's clients keep no operator waiting.
    failures: Mutex<Failures>,
    /// Where moments are counted from.
    start: Instant,
}

#[derive(Default)]
struct Seats {
    taken: Vec<Seat>,
    last_id: u32,
}

/// One connection, for whoever has to end it.
struct Seat {
    id: u32,
    stream: TcpStream,
    is_logged_in: bool,
}

impl Port {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        // Nothing can be half done in there.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the answer to a wrong password waits.
    fn put_off(&self, peer: SocketAddr, user: &str) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, delay) = failures.note(peer.ip(), user.as_bytes(), self.start.elapsed());
        delay
    }

    /// Takes people in until another process has the port.
    fn accept(self: &Arc<Self>, listener: &TcpListener) -> io::Result<()> {
        let mut poll = Poll::new()?;
        let doors = &self.operator.shared.doors;
        doors.wake_at_hand_over(Waker::new(poll.registry(), Token(1))?);
        poll.registry().register(
            &mut SourceFd(&listener.as_raw_fd()),
            Token(0),
            Interest::READABLE,
        )?;
        let mut events = Events::with_capacity(2);
        // At first there may be somebody who came before anybody looked.
        while !doors.are_handed_over() {
            match listener.accept() {
                Ok((stream, peer)) => self.take_in(stream, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    match poll.poll(&mut events, None) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        other => other?,
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    log::warn!("cannot accept on the admin port for now: {error}");
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    fn take_in(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(WRITE_TIME));
        let Some(id) = self.seat(&stream) else {
            let mut stream = stream;
            let mut packet = Vec::new();
            Refusal::with(1040, *b"08004", "Too many connections on the admin port")
                .write_alone(&mut packet);
            let _ = stream.write_all(&packet);
            return;
        };
        let port = self.clone();
        let started = std::thread::Builder::new()
            .name("admin-client".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let seated = Seated { port: &port, id };
                if let Err(error) = port.serve(stream, peer, id) {
                    log::debug!("admin connection from {peer}: {error}");
                }
                drop(seated);
            });
        if let Err(error) = started {
            log::warn!("no thread for an admin connection: {error}");
            self.leave(id);
        }
    }

    /// A place for one more. When all are taken, the oldest that is not logged in gives its own up: whoever says nothing keeps
    /// nobody away.
    fn seat(&self, stream: &TcpStream) -> Option<u32> {
        let handle = stream.try_clone().ok()?;
        let mut seats = self.seats();
        if seats.taken.len() >= CONNECTIONS_MAX {
            let oldest = seats.taken.iter().position(|seat| !seat.is_logged_in)?;
            let seat = seats.taken.remove(oldest);
            let _ = seat.stream.shutdown(Shutdown::Both);
        }
        seats.last_id = seats.last_id.wrapping_add(1) & (ID_BIT - 1);
        let id = seats.last_id | ID_BIT;
        seats.taken.push(Seat {
            id,
            stream: handle,
            is_logged_in: false,
        });
        Some(id)
    }

    fn leave(&self, id: u32) {
        self.seats().taken.retain(|seat| seat.id != id);
    }

    /// Whether the connection still has its place.
    fn logged_in(&self, id: u32) -> bool {
        let mut seats = self.seats();
        let seat = seats.taken.iter_mut().find(|seat| seat.id == id);
        seat.is_some_and(|seat| {
            seat.is_logged_in = true;
            true
        })
    }

    fn serve(&self, mut stream: TcpStream, peer: SocketAddr, id: u32) -> io::Result<()> {
        let shared = &self.operator.shared;
        let mut nonce = nonce()?;
        let mut connection = Connection::new(
            id,
            peer.ip().to_canonical().to_string(),
            VERSION.to_owned(),
            shared.live().snapshot.offered_plugin(),
            nonce,
        );
        let mut out = Vec::new();
        connection.greet(&mut out);
        send(&mut stream, &mut out)?;
        let login_end = Instant::now() + LOGIN_TIME;
        let mut received: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        let mut was_logged_in = false;
        loop {
            let live = shared.live();
            let users = &live.snapshot.config.admin.users;
            nonce = self::nonce()?;
            let mut fresh = || nonce;
            let mut cx = Cx {
                users,
                nonce: &mut fresh,
            };
            let (done, step) = connection.on_bytes(&mut cx, &received, &mut out);
            received.drain(..done.min(received.len()));
            match step {
                Step::More => {
                    send(&mut stream, &mut out)?;
                    let wait = if connection.is_logged_in() {
                        IDLE_TIME
                    } else {
                        login_end.saturating_duration_since(Instant::now())
                    };
                    if wait.is_zero() {
                        return Ok(());
                    }
                    stream.set_read_timeout(Some(wait))?;
                    let n = match stream.read(&mut buffer) {
                        Ok(0) => return Ok(()),
                        Ok(n) => n,
                        Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                        Err(error) => return Err(error),
                    };
                    received.extend_from_slice(buffer.get(..n).unwrap_or_default());
                }
                Step::Said => {
                    if connection.is_logged_in() && !was_logged_in {
                        was_logged_in = true;
                        if !self.logged_in(id) {
                            return Ok(());
                        }
                        log::info!("admin port: {} logged in", connection.who());
                    }
                }
                Step::Run(request) => {
                    let answer = self.operator.carry_out(&request);
                    connection.answer(&request, &answer, &mut out);
                    let sent = send(&mut stream, &mut out);
                    self.operator.finish(&request);
                    sent?;
                }
                Step::Denied { why, is_guess } => {
                    log::warn!("admin port: {why}");
                    if is_guess {
                        std::thread::sleep(self.put_off(peer, &connection.who().user));
                    }
                    return part(stream, &mut out);
                }
                Step::Close => return part(stream, &mut out),
            }
        }
    }
}

/// Stack of a connection's thread. Statements are read in loops, not by recursion.
const STACK: usize = 512 * 1024;

/// What drivers take the port for: new enough that they ask what a server of today answers.
const VERSION: &str = concat!("8.0.36-Atlas-admin-", env!("CARGO_PKG_VERSION"));

/// Frees a connection's place when its thread ends, in whatever way.
struct Seated<'p> {
    port: &'p Port,
    id: u32,
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.port.leave(self.id);
    }
}

fn nonce() -> io::Result<[u8; 20]> {
    let mut random = [0; 20];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    Ok(nonce_from_random(random))
}

fn send(stream: &mut TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(out)?;
    out.clear();
    Ok(())
}

/// Says the last, and ends. What is still unread would turn the end into a reset, which can overtake the last words.
fn part(mut stream: TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    send(&mut stream, out)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PAUSE))?;
    let mut rest = [0; 4096];
    for _ in 0..16 {
        match stream.read(&mut rest) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Ok(())
}
