//! Running copies of statements (the rule action `mirror`): for each rule so many threads, each with a connection of its own to the group
//! that the rule names. What a copy is, how many wait, and what is counted is `mirror`'s.
//!
//! A copy that cannot be run is counted and forgotten: nobody waits for it. Results are read and thrown away as they come.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::probe::Fault;
use super::probe::connection::enter;
use super::probe::globals::at;
use super::probe::link::Link;
use crate::mirror::{Comparison, Copy, Mirror, Outcome, Setting};
use crate::pool::HostId;
use crate::route::Role;
use crate::session::{Credentials, Expect, Ready, TrackEvent, Tracker, Wish};
use crate::snapshot::{Group, Snapshot};
use crate::sql::{self, Server};
use crate::wire::{Capabilities, Command, PacketWriter};
use crate::worker::{Live, Shared};

/// Between two looks at which rules there are.
const TICK: Duration = Duration::from_millis(500);
/// A thread that has nothing left looks again after so long before it has to be woken.
const PACE: Duration = Duration::from_millis(5);
/// A connection that nothing was copied over for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Opening a connection and bringing it into a session's state takes so long at most.
const OPENING: Duration = Duration::from_secs(2);
/// The server ends a copy itself when its time is over; it is given up so much later.
const GRACE: Duration = Duration::from_secs(1);
/// After a connection could not be opened, none is tried for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// Operators are told of a rule's copies that came out otherwise so often at most.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// So much of a statement is told.
const TOLD_MAX: usize = 400;

/// Starts the thread that has each rule's threads be there.
///
/// # Errors
/// It could not be started.
pub fn start(shared: Arc<Shared>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("mirrors".to_owned())
        .spawn(move || follow(&shared))?;
    Ok(())
}

fn follow(shared: &Arc<Shared>) {
    let mut running: Vec<Arc<Mirror>> = Vec::new();
    loop {
        let wanted = mirrors(&shared.live().snapshot);
        let is_in = |list: &[Arc<Mirror>], mirror: &Arc<Mirror>| {
            list.iter().any(|known| Arc::ptr_eq(known, mirror))
        };
        running.retain(|mirror| {
            let stays = is_in(&wanted, mirror);
            if !stays {
                mirror.close();
            }
            stays
        });
        for mirror in wanted {
            if !is_in(&running, &mirror) {
                begin(shared, &mirror);
                running.push(mirror);
            }
        }
        std::thread::sleep(TICK);
    }
}

/// The rules of a snapshot that copy.
fn mirrors(snapshot: &Snapshot) -> Vec<Arc<Mirror>> {
    let rules = snapshot.rules.iter().flat_map(|rules| rules.iter());
    rules.filter_map(|rule| rule.mirror.clone()).collect()
}

fn begin(shared: &Arc<Shared>, mirror: &Arc<Mirror>) {
    let told = Arc::new(Mutex::new(Told::default()));
    for number in 0..mirror.config.copies {
        let mut runner = Runner {
            shared: shared.clone(),
            mirror: mirror.clone(),
            told: told.clone(),
            number: number as usize,
            connection: None,
            not_before: None,
        };
        let thread = std::thread::Builder::new()
            .name("mirror".to_owned())
            .spawn(move || runner.run());
        if let Err(error) = thread {
            log::error!(
                "rule \"{}\": cannot start a thread for copies: {error}",
                mirror.rule
            );
        }
    }
}

/// What operators were told last of a rule's copies, and how many they were not told of since.
#[derive(Default)]
struct Told {
    at: Option<Instant>,
    untold: u64,
}

/// One of the threads of a rule.
struct Runner {
    shared: Arc<Shared>,
    mirror: Arc<Mirror>,
    told: Arc<Mutex<Told>>,
    number: usize,
    connection: Option<Connection>,
    /// The last connection could not be opened.
    not_before: Option<Instant>,
}

struct Connection {
    link: Link,
    capabilities: Capabilities,
    host: HostId,
    epoch: u64,
    account: usize,
    setting: Setting,
}

impl Runner {
    fn run(&mut self) {
        loop {
            let copy = match self.mirror.try_take() {
                Some(copy) => copy,
                None => {
                    // What comes meanwhile is run then, and nobody has to wake this thread for it.
                    std::thread::sleep(PACE);
                    match self.mirror.take(IDLE) {
                        (Some(copy), _) => copy,
                        (None, true) => return self.leave(),
                        (None, false) => {
                            self.leave();
                            continue;
                        }
                    }
                }
            };
            self.copy(&copy);
        }
    }

    fn copy(&mut self, copy: &Copy) {
        let Some(text) = copy.said.spelled(&copy.dialect) else {
            return self.mirror.note_skipped();
        };
        let outcome = self
            .connect(copy)
            .and_then(|()| self.run_on_it(copy, &text));
        let (outcome, took) = match outcome {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.connection = None;
                self.mirror.note_failed();
                return self.tell(copy, &text, &fault.to_string());
            }
        };
        let comparison = copy.outcome.compare(outcome);
        self.mirror.note(comparison, copy.took, took);
        if comparison != Comparison::Same {
            let how = format!("{outcome}, of the client's {}", copy.outcome);
            self.tell(copy, &text, &how);
        }
    }

    /// Has a connection be there that is in the session's state.
    fn connect(&mut self, copy: &Copy) -> Result<(), Fault> {
        let shared = self.shared.clone();
        let live = shared.live();
        let mut groups = live.snapshot.groups.iter().enumerate();
        let is_it = |group: &Group| *group.name == *self.mirror.group && !group.is_gone;
        let (place, group) = groups
            .find(|(_, group)| is_it(group))
            .ok_or("the group is configured no more")?;
        let host = self.host(&live, group, copy.is_write)?;
        let epoch = live.hosts.get(host).epoch();
        let fits = |connection: &Connection| {
            connection.host == host
                && connection.epoch == epoch
                && connection.account == copy.account
                && connection.setting == copy.setting
        };
        if self.connection.as_ref().is_some_and(fits) {
            return Ok(());
        }
        self.leave();
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return Err("the server could not be reached a moment ago".into());
        }
        self.not_before = Some(Instant::now() + PAUSE);
        let role = if group.primary == Some(host) {
            Role::Primary
        } else {
            Role::Replica
        };
        let account = live.snapshot.accounts.get(copy.account);
        let backend = account.and_then(|account| account.backend.get(role as usize));
        let backend = backend.ok_or("the account is configured no more")?;
        let credentials = Credentials {
            user: backend.user.clone(),
            passwords: backend.passwords.clone(),
        };
        let deadline = Instant::now() + OPENING;
        let (link, ready) = log_in(&live, place, host, &copy.setting, &credentials, deadline)?;
        let mut connection = Connection {
            link,
            capabilities: ready.capabilities,
            host,
            epoch,
            account: copy.account,
            setting: copy.setting.clone(),
        };
        // The server's own limit, so that what is given up does not run on. It may not know it; then the thread's holds.
        let limit = match ready.facts.server() {
            Server::MariaDb => format!(
                "SET max_statement_time = {}",
                self.mirror.config.timeout.as_secs_f64()
            ),
            Server::MySql => format!(
                "SET max_execution_time = {}",
                self.mirror.config.timeout.as_millis()
            ),
        };
        connection.say(Command::Query, limit.as_bytes(), deadline)?;
        for payload in &copy.setting.commands {
            let (code, rest) = payload.split_first().ok_or("an empty command")?;
            let outcome = connection.say(Command::from(*code), rest, deadline)?;
            if outcome.error != 0 {
                return Err(format!(
                    "the session's state is not taken: error {}: {}",
                    outcome.error,
                    String::from_utf8_lossy(rest)
                )
                .into());
            }
        }
        self.not_before = None;
        self.connection = Some(connection);
        Ok(())
    }

    /// Where the copy goes: writes to the primary, reads to the replicas in turn if there are any.
    fn host(&self, live: &Live, group: &Group, is_write: bool) -> Result<HostId, Fault> {
        let may_serve = |host: &HostId| live.hosts.get(*host).may_serve();
        let replicas = group.replicas.iter().map(|(host, _)| *host);
        let mut replicas: VecDeque<HostId> = replicas.filter(may_serve).collect();
        if !is_write && !replicas.is_empty() {
            let turn = self.number % replicas.len();
            replicas.rotate_left(turn);
            if let Some(host) = replicas.pop_front() {
                return Ok(host);
            }
        }
        let primary = group.primary.filter(|host| {
            let host = live.hosts.get(*host);
            host.is_up() && !host.is_offline() && (host.leads() || !is_write)
        });
        primary.ok_or_else(|| format!("no server of group {} answers", group.name).into())
    }

    fn run_on_it(&mut self, copy: &Copy, text: &[u8]) -> Result<(Outcome, Duration), Fault> {
        let connection = self.connection.as_mut().ok_or("there is no connection")?;
        // At the last moment, as for every write.
        if copy.is_write && !self.shared.live().hosts.get(connection.host).leads() {
            return Err("the server is the primary no more".into());
        }
        let begun = Instant::now();
        let deadline = begun + self.mirror.config.timeout + GRACE;
        let outcome = connection.say(Command::Query, text, deadline)?;
        Ok((outcome, begun.elapsed()))
    }

    /// Closes the connection, if there is one.
    fn leave(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            let packet = packet(Command::Quit, b"");
            let _ = connection.link.send(&packet, Instant::now() + OPENING);
        }
    }

    /// Tells operators of a copy that came out otherwise, if it is time; of the statement without what may be secret.
    fn tell(&self, copy: &Copy, text: &[u8], how: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.at.is_some_and(|at| at.elapsed() < TOLD_EVERY) {
            told.untold += 1;
            return;
        }
        told.at = Some(Instant::now());
        let more = match std::mem::take(&mut told.untold) {
            0 => String::new(),
            count => format!(" ({count} more since this was told last)"),
        };
        drop(told);
        let mut form = Vec::new();
        sql::normalise(text, &copy.dialect, TOLD_MAX, &mut form);
        let form = String::from_utf8_lossy(&form);
        let rule = &self.mirror.rule;
        let line = format!("rule \"{rule}\": a copy came out otherwise: {form}: {how}{more}");
        log::warn!("{line}");
        self.shared.notices.tell("mirror", line);
    }
}

/// Logs in to a host of a group for a copy, by each of the passwords in turn.
fn log_in(
    live: &Live,
    place: usize,
    host: HostId,
    setting: &Setting,
    credentials: &Credentials,
    deadline: Instant,
) -> Result<(Link, Box<Ready>), Fault> {
    let mut attempt = 0;
    loop {
        let wish = |tls, local| {
            let bare = Wish::bare(tls, local);
            Wish {
                charset: setting.charset,
                capabilities: bare.capabilities | setting.capabilities,
                ..bare
            }
        };
        let entered = at(live, place, host, |target| {
            enter(target, wish, credentials.clone(), attempt, deadline)
        });
        match entered {
            Ok((link, _, ready)) => return Ok((link, ready)),
            Err(Fault::Refused { code: 1045, .. }) if attempt + 1 < credentials.passwords.len() => {
                attempt += 1;
            }
            Err(other) => return Err(other),
        }
    }
}

impl Connection {
    /// Says a command and reads its whole reply.
    fn say(&mut self, command: Command, body: &[u8], deadline: Instant) -> Result<Outcome, Fault> {
        self.link.send(&packet(command, body), deadline)?;
        let mut tracker = Tracker::new(Expect::Response, self.capabilities).without_files();
        loop {
            let walk = tracker
                .walk(&self.link.received)
                .map_err(|error| error.to_string())?;
            self.link.received.drain(..walk.consumed);
            match walk.event {
                Some(TrackEvent::End) => break,
                Some(_) => return Err("it gives no answer that can be read".into()),
                None => self.link.receive(deadline)?,
            }
        }
        let outcome = tracker.outcome();
        Ok(Outcome {
            rows: if outcome.rows { outcome.row_count } else { 0 },
            affected: u64::try_from(outcome.affected).ok(),
            error: outcome.error.unwrap_or(0),
        })
    }
}

fn packet(command: Command, body: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(body.len() + 5);
    let mut writer = PacketWriter::begin(&mut packet, 0);
    writer.u8(command.code());
    writer.bytes(body);
    writer.finish();
    packet
}
