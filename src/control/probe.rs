//! Checks of servers: one thread for each host keeps one connection open by the monitor's account, asks at every interval how
//! the server is, and publishes what it learns. Blocking I/O with deadlines: nothing waits for these threads but the start, and
//! a server that hangs holds up its own thread only. What the answers decide is `pool`'s.

mod chance;
pub(super) mod connection;
mod definitions;
pub(super) mod globals;
mod heartbeat;
pub(super) mod link;
mod member;
mod node;
mod part;
mod replication;
mod rows;
mod search;
pub(super) mod settings;
mod tell;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::chance::random;
use self::connection::{Connection, Findings, Questions, Target};
pub(super) use self::member::Views;
use super::checks::{Checks, publish_offer};
use super::names::Name;
use super::roles::Looked;
use crate::config::{HostAddress, MonitorConfig, Topology};
use crate::pool::{
    Change, Freshness, Health, Host, HostId, LagGate, LagPolicy, Look, Outcome, Pace, Ramp,
    Replication, ServerFacts, Sight,
};
use crate::snapshot::{Group, HostEntry};
use crate::worker::{Gate, Live, is_exhaustion};

/// What a check found.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answers, but not to the monitor's account. What is refused is a log-in; the server may serve others well.
    Refused { code: u16, message: String },
    /// It does not answer.
    Down(String),
    /// This machine is short of something, which says nothing of the server.
    Ours(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { code, message } => write!(f, "{code} {message}"),
            Self::Down(why) | Self::Ours(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if is_exhaustion(&error) {
            Self::Ours(error.to_string())
        } else {
            Self::Down(error.to_string())
        }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Down(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Self::Down(why.to_owned())
    }
}

/// Server shutdown in progress: the one refusal that says something of the server.
const SHUTDOWN: u16 = 1053;

/// Between the starts of two checks at least.
const PAUSE: Duration = Duration::from_millis(20);
/// While roles are in question, so many checks are made in an interval.
const HASTE: u32 = 5;

pub(super) struct Prober {
    checks: Arc<Checks>,
    /// What this round goes by.
    live: Arc<Live>,
    host: HostId,
    /// The host's name, if it is known by one.
    name: Option<Arc<Name>>,
    /// What the host must fulfil as a replica; nothing when nobody wants to know.
    lag_policy: Option<LagPolicy>,
    connection: Option<Connection>,
    health: Health,
    gate: LagGate,
    ramp: Ramp,
    /// It was the primary at the last check.
    has_led: bool,
    /// Whether it could serve after the last check.
    could_serve: bool,
    /// The log has the refusal of the account already.
    is_refused: bool,
    /// It has no part in its replication group.
    is_outside: bool,
    /// The log has it already that the replication is not to be known.
    is_hidden: bool,
}

impl Prober {
    pub(super) fn new(
        checks: Arc<Checks>,
        live: Arc<Live>,
        host: HostId,
        name: Option<Arc<Name>>,
    ) -> Self {
        Self {
            checks,
            live,
            host,
            name,
            lag_policy: None,
            connection: None,
            health: Health::default(),
            gate: LagGate::default(),
            ramp: Ramp::default(),
            has_led: false,
            could_serve: true,
            is_refused: false,
            is_outside: false,
            is_hidden: false,
        }
    }

    pub(super) fn run(mut self) {
        let mut is_first = true;
        loop {
            let started = Instant::now();
            self.take_up();
            if self.entry().is_gone && self.checks.may_end(self.host) {
                if !is_first {
                    self.checks.first_round.fetch_sub(1, Ordering::AcqRel);
                }
                return;
            }
            let begun = self.moment();
            let outcome = self.check();
            self.note(outcome, begun);
            if std::mem::take(&mut is_first) {
                self.checks.first_round.fetch_add(1, Ordering::Release);
            }
            // From start to start: a check that takes its whole time puts off no other.
            let next = started + self.health.next(&self.pace(), random());
            self.rest(started, next);
        }
    }

    /// Waits for the next check: until the moment that is due, or somebody asks for one. Failures that come in by the hundred
    /// ask by the hundred.
    fn rest(&self, started: Instant, next: Instant) {
        std::thread::sleep((started + PAUSE).saturating_duration_since(Instant::now()));
        let left = next.saturating_duration_since(Instant::now());
        let left = if self.published().standing.is_hasty() {
            left.min(self.monitor().interval / HASTE)
        } else {
            left
        };
        match self.live.gates.get(self.host.index()) {
            Some(gate) => gate.bell.wait(left),
            None => std::thread::sleep(left),
        }
    }

    /// Goes by what is in force now.
    fn take_up(&mut self) {
        let live = self.checks.shared.live();
        if !Arc::ptr_eq(&live, &self.live) {
            let (before, now) = (&self.live.snapshot.config, &live.snapshot.config);
            if before.monitor.user != now.monitor.user
                || before.monitor.passwords != now.monitor.passwords
            {
                // As whom it is asked must be seen to work.
                self.connection = None;
            }
            self.live = live;
        }
        let group = &self.group().config;
        // The primary is not behind itself.
        let leads = self.live.snapshot.leads(self.host);
        let is_asked = !leads && !group.max_lag.is_zero();
        let policy = LagPolicy {
            max: group.max_lag,
            is_strict: group.is_max_lag_given,
            rise: self.monitor().rise,
        };
        if !is_asked && self.lag_policy.is_some() {
            self.published().set_freshness(Freshness::Fresh);
            self.published().set_lag(None);
        }
        self.lag_policy = is_asked.then_some(policy);
        if std::mem::replace(&mut self.has_led, leads) && !leads {
            self.gate = LagGate::of_former_primary();
        }
    }

    /// Control's clock.
    fn moment(&self) -> Duration {
        self.checks.moment()
    }

    fn monitor(&self) -> &MonitorConfig {
        &self.live.snapshot.config.monitor
    }

    fn pace(&self) -> Pace {
        let monitor = self.monitor();
        Pace {
            interval: monitor.interval,
            fall: monitor.fall,
            rise: monitor.rise,
        }
    }

    fn entry(&self) -> &HostEntry {
        &self.live.snapshot.hosts[self.host.index()]
    }

    fn address(&self) -> &HostAddress {
        &self.entry().address
    }

    fn group(&self) -> &Group {
        &self.live.snapshot.groups[self.entry().group]
    }

    fn published(&self) -> &Host {
        self.live.hosts.get(self.host)
    }

    fn note(&mut self, outcome: Result<Findings, Fault>, begun: Duration) {
        let could_serve = self.could_serve && self.published().may_serve();
        match outcome {
            Ok(findings) => {
                self.is_refused = false;
                self.note_pulse(
                    findings.sight.identity.server_id,
                    findings.heartbeat.as_ref(),
                );
                // One that is about to be the primary, or to be fenced, is asked as a replica for the last time.
                self.note_membership(&findings.sight);
                let follows = self.group().config.topology == Topology::Follow;
                let is_replica = !follows || !findings.sight.claims();
                self.tell_roles(Look::Answered(findings.sight), begun);
                // First how fresh it is: one that comes back is to be known for what it is when the first read looks.
                let said = findings.replication.filter(|_| is_replica);
                self.note_replication(said.map(|said| self.by_heartbeat(said, findings.heartbeat)));
                self.answered();
            }
            Err(Fault::Refused { code, message }) if code != SHUTDOWN => {
                let told = format!("{code} {message}");
                if !std::mem::replace(&mut self.is_refused, true) {
                    log::warn!(
                        "server {} refuses the monitor's account: {told}",
                        self.address()
                    );
                }
                self.note_pulse(0, Some(&Err(told.clone())));
                self.tell_roles(Look::Answered(Sight::default()), begun);
                self.note_replication(Some(self.by_heartbeat((Replication::Hidden, told), None)));
                self.answered();
            }
            Err(Fault::Ours(why)) => log::warn!("cannot check {}: {why}", self.address()),
            Err(Fault::Refused { message: why, .. } | Fault::Down(why)) => {
                self.note_pulse(0, None);
                self.tell_roles(Look::Silent, begun);
                self.failed(&why);
            }
        }
        let may_serve = self.published().may_serve();
        let share = self.ramp.note(may_serve, could_serve);
        self.published().set_share(share);
        if std::mem::replace(&mut self.could_serve, may_serve) != may_serve {
            self.tell_of_group(may_serve);
        }
    }

    /// Hands over what was seen of the server's role.
    fn tell_roles(&self, look: Look, begun: Duration) {
        let is_closed = match &look {
            Look::Answered(sight) => {
                sight.is_read_only == Some(true)
                    || sight.view.as_ref().is_some_and(|view| view.is_secondary)
            }
            Look::Silent => false,
        };
        self.published().standing.set_closed(is_closed);
        let host = self.host;
        // Who listens has ended only when everything ends.
        let _ = self.checks.looks.send(Looked { host, look, begun });
    }

    /// What is asked beside the settings.
    fn questions(&self, deadline: Instant) -> Questions {
        let follows = self.group().config.topology == Topology::Follow;
        Questions {
            replication: follows || self.lag_policy.is_some(),
            group: follows,
            heartbeat: self.heartbeat_question(deadline),
        }
    }

    fn answered(&mut self) {
        let host = self.live.hosts.get(self.host);
        host.set_answered(self.moment());
        let change = self
            .health
            .note(Outcome::Answered, host.is_up(), &self.pace());
        if change == Some(Change::Up) && host.set_up(true) {
            log::info!("server {} answers checks again", self.address());
        }
    }

    fn failed(&mut self, why: &str) {
        let host = self.live.hosts.get(self.host);
        let change = self
            .health
            .note(Outcome::Failed, host.is_up(), &self.pace());
        let failures = self.health.failures();
        if let Some(name) = &self.name {
            name.look_again();
        }
        if failures == 1 {
            log::warn!("check of server {} failed: {why}", self.address());
        }
        if change == Some(Change::Down) && host.set_up(false) {
            log::warn!(
                "server {} is out: {failures} checks failed, the last with: {why}",
                self.address()
            );
        }
        // What it said last is of no more use.
        host.set_lag(None);
    }

    fn note_replication(&mut self, said: Option<(Replication, String)>) {
        let (Some(policy), Some((said, why))) = (self.lag_policy, said) else {
            return;
        };
        let answered = self
            .group()
            .primary
            .and_then(|host| self.live.hosts.get(host).answered());
        let primary_seen = answered.map(|at| self.checks.start + at);
        let before = self.published().freshness();
        let now = self.gate.note(said, Instant::now(), primary_seen, &policy);
        let lag = match said {
            Replication::Behind(_) | Replication::Disconnected => self.gate.lag(primary_seen),
            Replication::Stopped
            | Replication::Absent
            | Replication::Hidden
            | Replication::Unmeasured
            | Replication::Silent => None,
        };
        self.published().set_freshness(now);
        self.published().set_lag(lag);
        self.tell_of_hidden(said, &why, &policy);
        if before == now {
            return;
        }
        let address = self.address();
        let limit = policy.max;
        match (now, lag) {
            (Freshness::Fresh, _) => {
                log::info!("replica {address} is fresh again: it serves reads")
            }
            (Freshness::Behind, Some(lag)) => log::warn!(
                "replica {address} is {lag:?} behind, more than max_lag ({limit:?}): it serves no reads"
            ),
            (Freshness::Stopped, _) => {
                log::warn!("the replication of {address} is stopped: it serves no reads");
            }
            (Freshness::Behind | Freshness::Unknown, _) => {
                log::warn!("how far replica {address} is behind is not known: it serves no reads");
            }
        }
    }

    fn check(&mut self) -> Result<Findings, Fault> {
        let deadline = Instant::now() + self.monitor().timeout;
        let resolved = self.resolve(deadline)?;
        let questions = self.questions(deadline);
        let leads_there = |connection: &Connection| {
            let peer = connection.peer.filter(|_| self.name.is_some());
            peer.is_none_or(|peer| resolved.contains(&peer))
        };
        // If it does not answer, the server may have restarted or moved: a new connection tells.
        if let Some(mut connection) = self.connection.take().filter(leads_there)
            && let Ok(findings) = connection.examine(&questions, deadline)
        {
            // That this one works says nothing of new ones.
            if self.gate().is_some_and(Gate::is_stopped)
                && let Ok(new) = self.connect(&resolved, deadline)
            {
                new.quit(deadline);
            }
            self.be_a_node(&mut connection, deadline);
            self.keep(connection, &findings);
            return Ok(findings);
        }
        let mut connection = self.connect(&resolved, deadline)?;
        let findings = connection.examine(&questions, deadline)?;
        self.be_a_node(&mut connection, deadline);
        self.keep(connection, &findings);
        Ok(findings)
    }

    /// A new connection; the breaker hears of it.
    fn connect(&self, resolved: &[SocketAddr], deadline: Instant) -> Result<Connection, Fault> {
        let backends = &self.live.tls.backends;
        let target = Target {
            address: self.address(),
            resolved,
            tls_mode: self.group().config.tls.mode,
            tls: backends.get(self.entry().group).and_then(Option::as_ref),
            monitor: self.monitor(),
        };
        let begun = Instant::now();
        let connection = Connection::open(&target, deadline)?;
        if let (Some(_), Some(peer)) = (&self.name, connection.peer) {
            self.move_to(peer);
        }
        if self
            .gate()
            .is_some_and(|gate| gate.note_check(begun, Instant::now()))
        {
            log::info!(
                "a check could log in to {}: the next connection to it is tried",
                self.address()
            );
        }
        Ok(connection)
    }

    fn gate(&self) -> Option<&Gate> {
        self.live.gates.get(self.host.index()).map(AsRef::as_ref)
    }

    /// Publishes what was learnt of the server itself, and keeps the connection for the next check.
    fn keep(&mut self, connection: Connection, findings: &Findings) {
        let mut facts = connection.facts.clone();
        (facts.ansi_quotes, facts.is_strict) = (findings.ansi_quotes, findings.is_strict);
        facts.init_connect = findings.init_connect;
        if let Some(timeout) = findings.wait_timeout {
            self.live.hosts.get(self.host).set_wait_timeout(timeout);
        }
        self.publish(facts);
        if !connection.is_spent {
            self.connection = Some(connection);
        }
    }

    /// The addresses of the host's name, the one in use first; none when it has no name.
    fn resolve(&self, deadline: Instant) -> Result<Vec<SocketAddr>, Fault> {
        let Some(name) = &self.name else {
            return Ok(Vec::new());
        };
        let mut addresses = name.addresses(deadline)?;
        let used = self.published().address();
        match addresses.iter().position(|address| Some(*address) == used) {
            Some(at) => addresses.swap(0, at),
            // Where it was it is no more: traffic must not go on to there, also when nobody answers at the new place.
            None => {
                if let Some(first) = addresses.first() {
                    self.move_to(*first);
                }
            }
        }
        Ok(addresses)
    }

    fn move_to(&self, address: SocketAddr) {
        if self.published().set_address(address) {
            log::info!("server {} is reached at {address}", self.address());
        }
    }

    fn publish(&self, facts: ServerFacts) {
        let host = self.live.hosts.get(self.host);
        if host.facts().is_some_and(|known| *known == facts) {
            return;
        }
        host.set_facts(facts);
        publish_offer(&self.checks.shared);
    }
}
