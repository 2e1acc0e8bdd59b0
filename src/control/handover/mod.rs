//! One process takes over from another, so that a new version serves without one connection attempt failing: the listening sockets
//! themselves go over, with whoever waits in their queues, and the old process lets its clients go in their own time.
//!
//! ```text
//! new                                   old
//! "take over 1" ──────────────────────►
//!               ◄────────────────────── "socket LABEL" with a descriptor, for each; "that is all"
//! checks servers, accepts beside the old one
//! "ready" ────────────────────────────►
//!               ◄────────────────────── "yours"; accepts no more, its sessions end
//! ```
//!
//! Until "ready" the old process goes on as if nothing had happened, whatever becomes of the new one. `atlas upgrade` has the old
//! process start the new one, from the file that it was itself started from.

mod line;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::line::Line;
use super::{Desk, notify, stop};
use crate::config::ServerConfig;
use crate::worker::{Doors, Manner, Message, Readiness, Shared};

const TAKE_OVER: &str = "take over 1";
const UPGRADE: &str = "upgrade 1";
const SOCKET: &str = "socket ";
const ALL: &str = "that is all";
const READY: &str = "ready";
const YOURS: &str = "yours";
const NO: &str = "no: ";
const DONE: &str = "done ";
/// What who comes meanwhile is told.
const UNDER_WAY: &str = "an upgrade is under way";
/// The socket of `Doors` on which the next take-over is asked for.
const OWN_LABEL: &str = "upgrade";

/// How long each step may take that nobody has to work for.
const STEP: Duration = Duration::from_secs(10);
/// How long a new process may take to be ready.
const START: Duration = Duration::from_secs(120);

/// Where a process listens for its successor.
#[must_use]
pub fn socket_path(server: &ServerConfig, config: &Path) -> PathBuf {
    match &server.upgrade_socket {
        Some(path) => path.clone(),
        None => config.with_extension("upgrade"),
    }
}

/// What was taken over.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(String, OwnedFd)>,
    line: Option<Line>,
}

impl Inherited {
    /// Asks the process that listens at this path for its sockets; nothing is inherited when there is none.
    ///
    /// # Errors
    /// It does not give them.
    pub fn ask(path: &Path) -> io::Result<Self> {
        let line = match Line::connect(path) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                log::info!("nobody to take over from at {}", path.display());
                return Ok(Self::default());
            }
            other => other.map_err(|error| explain(path, &error))?,
        };
        let sockets = receive(&line).map_err(|error| explain(path, &error))?;
        Ok(Self {
            sockets,
            line: Some(line),
        })
    }

    /// The sockets of this label.
    pub fn take(&mut self, label: &str) -> Vec<OwnedFd> {
        let taken = self.sockets.extract_if(.., |(other, _)| other == label);
        taken.map(|(_, socket)| socket).collect()
    }

    /// Labels of the sockets that nobody has taken: the new configuration does not have them.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(|(label, _)| label.as_str())
    }

    /// Whether there is a process that serves until [`Self::claim`].
    #[must_use]
    pub fn has_predecessor(&self) -> bool {
        self.line.is_some()
    }

    /// Everything is ready here: the old process may go.
    pub fn claim(self) {
        let Some(line) = self.line else {
            return;
        };
        let answer = line.set_timeout(STEP).and_then(|()| line.say(READY));
        match answer.and_then(|()| line.hear()) {
            Ok((text, _)) if text == YOURS => log::info!("took over"),
            // Nothing depends on it: the sockets are here.
            other => log::warn!("the process before this one has ended otherwise: {other:?}"),
        }
    }
}

fn explain(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot take over by {}: {error}", path.display()))
}

fn receive(line: &Line) -> io::Result<Vec<(String, OwnedFd)>> {
    line.set_timeout(STEP)?;
    line.say(TAKE_OVER)?;
    let mut sockets = Vec::new();
    loop {
        let (text, socket) = line.hear()?;
        match (text.strip_prefix(SOCKET), socket) {
            (Some(label), Some(socket)) => sockets.push((label.to_owned(), socket)),
            (None, _) if text == ALL => return Ok(sockets),
            _ => return Err(io::Error::other(text)),
        }
    }
}

/// The socket on which this process is asked for its sockets: taken over, or bound. None where that is not possible, which makes an
/// upgrade impossible, and nothing else. `doors` get a copy of it for the next process, before there are clients that could
/// take the last descriptor.
///
/// # Errors
/// Another process serves with this configuration, or there are no more descriptors.
pub fn listen(
    path: &Path,
    inherited: &mut Inherited,
    doors: &Doors,
) -> io::Result<Option<OwnedFd>> {
    let listener = match inherited.take(OWN_LABEL).pop() {
        Some(socket) => socket,
        None => match line::listen(path) {
            Ok(listener) => listener,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(io::Error::other(format!(
                    "another process serves already, and listens at {}: stop it, or take over from it with `atlas run --take-over`",
                    path.display()
                )));
            }
            Err(error) => {
                log::warn!(
                    "no upgrade without loss: cannot listen at {} (server.upgrade_socket): {error}",
                    path.display()
                );
                return Ok(None);
            }
        },
    };
    doors.add(OWN_LABEL.to_owned(), listener.try_clone()?);
    Ok(Some(listener))
}

/// Who can be taken over from.
#[derive(Debug)]
pub struct Incumbent {
    /// The socket from [`listen`].
    pub listener: OwnedFd,
    /// What the sockets are kept in.
    pub shared: Arc<Shared>,
    /// Where events go.
    pub desk: Arc<Desk>,
    /// The program to start for an upgrade.
    pub program: PathBuf,
}

/// Starts the thread that gives the sockets to whoever takes over.
///
/// # Errors
/// The thread could not be made.
pub fn start(incumbent: Incumbent) -> io::Result<()> {
    std::thread::Builder::new()
        .name("upgrade".to_owned())
        .spawn(move || incumbent.run())?;
    Ok(())
}

impl Incumbent {
    fn run(&self) {
        while !self.shared.doors.are_handed_over() {
            let line = match Line::accept(&self.listener) {
                Ok(line) => line,
                Err(error) => {
                    log::warn!("nobody can take over for now: {error}");
                    std::thread::sleep(PAUSE);
                    continue;
                }
            };
            if let Err(why) = self.answer(&line) {
                log::warn!("no upgrade: {why}");
                let _ = line.say(&format!("{NO}{why}"));
            }
        }
    }

    fn answer(&self, line: &Line) -> Result<(), String> {
        line.set_timeout(STEP).map_err(|e| e.to_string())?;
        let Some(peer) = line.peer().map_err(|e| e.to_string())? else {
            refuse(line, "asked for by another user");
            log::warn!("no upgrade: asked for by another user");
            return Ok(());
        };
        let (request, _) = match line.hear() {
            Ok(heard) => heard,
            // Somebody looked whether this process is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if self.shared.condition.readiness() == Readiness::Draining {
            return Err("the process is stopping".to_owned());
        }
        match request.as_str() {
            TAKE_OVER => self.give(line, peer),
            UPGRADE => {
                let successor = self.upgrade()?;
                line.say(&format!("{DONE}{successor}"))
                    .map_err(|e| e.to_string())
            }
            _ => Err("what is asked for is not known to this version".to_owned()),
        }
    }

    /// Gives the sockets to another process, and lets it serve when it is ready.
    fn give(&self, line: &Line, successor: u32) -> Result<(), String> {
        let doors = &self.shared.doors;
        let pass = || {
            for (label, socket) in doors.copies()? {
                line.pass(&format!("{SOCKET}{label}"), &socket)?;
            }
            line.say(ALL)?;
            line.set_timeout(START)
        };
        pass().map_err(|error: io::Error| error.to_string())?;
        match self.hear_alone(line) {
            Ok((text, _)) if text == READY => {}
            Ok(_) => return Err("the new process does not know what to say".to_owned()),
            Err(error) => return Err(format!("the new process did not become ready: {error}")),
        }
        doors.hand_over();
        // Before the new process speaks for itself to a service manager.
        notify::handed_over(successor);
        let clients = self.shared.clients();
        self.desk.events().record(
            "atlas",
            "upgrade",
            format!("process {successor} serves from here on; {clients} clients stay until they are done"),
        );
        stop::tell_all(&self.shared, || Message::Drain(Manner::HandOver));
        // It accepts already, whether it hears this or not.
        let _ = line.say(YOURS);
        Ok(())
    }

    /// Waits for a word of the successor, for as long as it takes to start, and tells whoever else comes meanwhile that it is under way.
    fn hear_alone(&self, line: &Line) -> io::Result<(String, Option<OwnedFd>)> {
        line::set_accept_timeout(&self.listener, Some(LOOK))?;
        let is_over = AtomicBool::new(false);
        let refuse_others = || {
            while !is_over.load(Ordering::Relaxed) {
                match Line::accept(&self.listener) {
                    Ok(other) => refuse(&other, UNDER_WAY),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => std::thread::sleep(LOOK),
                }
            }
        };
        let heard = std::thread::scope(|scope| {
            let name = "upgrade-others".to_owned();
            std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, refuse_others)?;
            let heard = line.hear();
            is_over.store(true, Ordering::Relaxed);
            heard
        });
        line::set_accept_timeout(&self.listener, None)?;
        heard
    }

    /// Starts a successor and gives it the sockets; its number.
    fn upgrade(&self) -> Result<u32, String> {
        notify::reloading("starting a new process");
        let result = self.spawn().and_then(|mut child| {
            let outcome = self.await_successor(&mut child);
            if outcome.is_err() {
                // Our own child, by its handle.
                let _ = child.kill();
                let _ = child.wait();
            }
            outcome
        });
        let _ = line::set_accept_timeout(&self.listener, None);
        if result.is_err() {
            notify::ready("serving clients; an upgrade failed");
        }
        result
    }

    fn spawn(&self) -> Result<Child, String> {
        Command::new(&self.program)
            .arg("run")
            .arg("--take-over")
            .arg("-c")
            .arg(self.desk.path())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))
    }

    fn await_successor(&self, child: &mut Child) -> Result<u32, String> {
        let deadline = Instant::now() + START;
        line::set_accept_timeout(&self.listener, Some(LOOK)).map_err(|e| e.to_string())?;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("the new process ended: {status}; its log says why"));
            }
            let Ok(line) = Line::accept(&self.listener) else {
                continue;
            };
            if line.peer().ok().flatten() != Some(child.id()) {
                refuse(&line, UNDER_WAY);
                continue;
            }
            let asks = line.set_timeout(STEP).and_then(|()| line.hear());
            return match asks {
                Ok((text, _)) if text == TAKE_OVER => {
                    self.give(&line, child.id()).map(|()| child.id())
                }
                other => Err(format!("the new process says {other:?}")),
            };
        }
        Err("the new process does not ask for the sockets".to_owned())
    }
}

/// Says no to whoever is not to be listened to. What was said is taken off the line first: closing it with that unread would be a reset,
/// which overtakes the answer.
fn refuse(line: &Line, why: &str) {
    let _ = line.set_timeout(LOOK).and_then(|()| line.hear());
    let _ = line.say(&format!("{NO}{why}"));
}

/// The listener rests for so long when something is wrong with it.
const PAUSE: Duration = Duration::from_secs(1);
/// So often a process that was started is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Asks the process that serves at this path to have a new one take its place; gives the new one's number.
///
/// # Errors
/// Why nothing has changed.
pub fn ask_upgrade(path: &Path) -> io::Result<u32> {
    let ask = || {
        let line = Line::connect(path)?;
        line.set_timeout(START + 2 * STEP)?;
        line.say(UPGRADE)?;
        let (text, _) = line.hear()?;
        match text.strip_prefix(DONE).map(str::parse) {
            Some(Ok(successor)) => Ok(successor),
            _ => Err(io::Error::other(
                text.strip_prefix(NO).unwrap_or(&text).to_owned(),
            )),
        }
    };
    ask().map_err(|error: io::Error| {
        io::Error::other(format!("no upgrade by {}: {error}", path.display()))
    })
}
