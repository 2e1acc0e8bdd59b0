//! The one place where what is in force is changed: a reload of the file, a command of an operator, another primary. Each change is
//! checked whole before anything of it holds, is published at once, and is an event. What the values mean is not known here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::certificates::read_tls;
use super::checks::{Checks, publish_offer};
use super::events::Events;
use super::load::{LoadError, Loaded, load_again, load_text};
use super::roles::Watch;
use super::statements;
use crate::config::{Config, Difference, Topology, diff};
use crate::pool::{Freshness, HostId};
use crate::shard::{self, Found};
use crate::snapshot::{GroupRoles, Seen, Snapshot, TooMany};
use crate::worker::{Live, Shared, Tls};

/// Workers take up what is in force within microseconds, unless the machine stalls; who waits for them waits so long at most.
const APPLIED_WITHIN: Duration = Duration::from_secs(5);

/// See the module's words.
pub struct Desk {
    shared: Arc<Shared>,
    checks: Arc<Checks>,
    path: PathBuf,
    events: Events,
    /// Held by who reads the file, and taken before `state`: a disk that stands still keeps no server's role from changing.
    reading: Mutex<()>,
    state: Mutex<State>,
    /// What the servers' roles are seen to be. Taken before `state`.
    watch: Mutex<Watch>,
}

struct State {
    /// The text in force.
    text: Zeroizing<String>,
    /// What the file held when it was read or written last.
    file: Zeroizing<Vec<u8>>,
    /// What was seen of the servers.
    seen: Seen,
}

/// What a change came to.
#[derive(Debug)]
pub struct Applied {
    /// The version that is in force.
    pub version: u64,
    /// What differs from the one before.
    pub differences: Vec<Difference>,
    /// Warnings and notes on the configuration, a line each.
    pub notes: Vec<String>,
}

/// Why nothing was changed.
#[derive(Debug)]
pub enum Refused {
    /// The configuration cannot be read or used.
    Load(LoadError),
    /// A certificate or key cannot be used.
    Tls(io::Error),
    /// A log cannot be opened.
    Log(io::Error),
    /// There is no more room; a restart makes some.
    Keys(TooMany),
    /// Rows of these tables would be looked for where they are not.
    Moves(Vec<String>),
    /// What was asked for makes no sense as things are; the text says why.
    Request(String),
}

impl fmt::Display for Refused {
    /// One or more lines, without an end of line behind the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => f.write_str(error.to_string().trim_end()),
            Self::Tls(error) | Self::Log(error) => error.fmt(f),
            Self::Keys(error) => error.fmt(f),
            Self::Request(why) => f.write_str(why),
            Self::Moves(tables) => write!(
                f,
                "{}; Atlas moves no rows: when they are where the file says, RELOAD CONFIG FORCE or a restart takes it as it is",
                tables.join("; ")
            ),
        }
    }
}

impl std::error::Error for Refused {}

impl Desk {
    /// The desk of a process that runs by `loaded`, which was read from `path`.
    #[must_use]
    pub fn new(shared: Arc<Shared>, checks: Arc<Checks>, path: &Path, loaded: Loaded) -> Self {
        Self {
            shared,
            checks,
            path: path.to_owned(),
            events: Events::default(),
            reading: Mutex::default(),
            state: Mutex::new(State {
                file: loaded.text.as_bytes().to_vec().into(),
                text: loaded.text,
                seen: Seen::default(),
            }),
            watch: Mutex::default(),
        }
    }

    /// What has happened.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The file that the configuration was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again and puts it in force; one by which rows of sharded tables would lie elsewhere only if it is forced.
    ///
    /// # Errors
    /// Nothing has changed, and why.
    pub fn reload(&self, who: &str, is_forced: bool) -> Result<Applied, Refused> {
        // In turn, so that of two the later one holds what was read later.
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = load_again(&self.path)
            .map_err(Refused::Load)
            .and_then(|loaded| {
                let mut state = self.lock();
                let before = &self.shared.live().snapshot.config;
                let moved = shard::moves(before, &loaded.config);
                if !moved.is_empty() && !is_forced {
                    return Err(Refused::Moves(moved));
                }
                let newly = shard::newly(before, &loaded.config);
                let file = loaded.text.as_bytes().to_vec();
                let mut applied = self.put(&mut state, loaded)?;
                applied.notes.extend(newly);
                state.file = file.into();
                Ok(applied)
            });
        self.tell(who, "reload", "the configuration was read again", &outcome);
        outcome
    }

    /// Changes the text in force, without the file.
    ///
    /// # Errors
    /// Nothing has changed, and why.
    pub fn change(
        &self,
        who: &str,
        what: &str,
        edit: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Applied, Refused> {
        let mut state = self.lock();
        let outcome = edit(&state.text)
            .map_err(Refused::Request)
            .and_then(|text| load_text(text.into(), &self.path).map_err(Refused::Load))
            .and_then(|loaded| self.put(&mut state, loaded));
        self.tell(who, "change", what, &outcome);
        outcome
    }

    /// Gives the hosts of a group these roles, if they have others. When it returns, no worker sends a write to the primary of
    /// before, and the new one may get them.
    ///
    /// # Errors
    /// Nothing has changed, and why.
    pub(super) fn put_roles(&self, group: &str, roles: GroupRoles) -> Result<(), Refused> {
        let mut state = self.lock();
        let live = self.shared.live();
        if state.seen.roles.get(group) == Some(&roles) {
            return Ok(());
        }
        let mut next = state.seen.clone();
        next.roles.insert(group.to_owned(), roles);
        let config = live.snapshot.config.clone();
        let snapshot = live.snapshot.next(config, &next).map_err(Refused::Keys)?;
        self.publish(&live, snapshot, live.tls.clone());
        state.seen = next;
        Ok(())
    }

    /// Has these tables be global, if other ones are.
    ///
    /// # Errors
    /// Nothing has changed, and why.
    pub(super) fn put_globals(&self, found: Found) -> Result<(), Refused> {
        let mut state = self.lock();
        let live = self.shared.live();
        // A reload may have come meanwhile.
        if state.seen.globals == found || !live.snapshot.config.sharding.finds_globals {
            return Ok(());
        }
        let mut next = state.seen.clone();
        next.globals = found;
        let config = live.snapshot.config.clone();
        let snapshot = live.snapshot.next(config, &next).map_err(Refused::Keys)?;
        let version = self.publish(&live, snapshot, live.tls.clone());
        self.await_applied(version);
        state.seen = next;
        Ok(())
    }

    /// The tables that were found in every group.
    pub(super) fn globals(&self) -> Found {
        self.lock().seen.globals.clone()
    }

    pub(super) fn checks(&self) -> &Checks {
        &self.checks
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn watch(&self) -> MutexGuard<'_, Watch> {
        // What was seen is seen again at the next look.
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a host out, so that it gets no new work and its connections close as they become free, or takes it back in. Returns
    /// whether that changed anything.
    pub fn set_offline(&self, who: &str, host: HostId, offline: bool) -> bool {
        let _state = self.lock();
        let live = self.shared.live();
        let Some(entry) = live.snapshot.hosts.get(host.index()) else {
            return false;
        };
        let has_changed = live.hosts.get(host).set_offline(offline);
        if has_changed {
            // The same once more, so that every worker looks at what it has.
            let config = live.snapshot.config.clone();
            let next = live.snapshot.next(config, &_state.seen);
            if let Ok(snapshot) = next {
                self.publish(&live, snapshot, live.tls.clone());
            }
            let word = if offline { "offline" } else { "online" };
            self.events
                .record(who, word, format!("server {} is {word}", entry.address));
        }
        has_changed
    }

    /// The text in force and what the file held when it was read or written last, handed to `write`, which gives what the file
    /// holds now.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn save<E>(
        &self,
        who: &str,
        write: impl FnOnce(&Path, &str, &[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        let written = write(&self.path, &state.text, &state.file)?;
        state.file = written.into();
        let text = format!("the configuration was saved to {}", self.path.display());
        self.events.record(who, "save", text);
        Ok(())
    }

    fn put(&self, state: &mut State, loaded: Loaded) -> Result<Applied, Refused> {
        let live = self.shared.live();
        let differences = diff(&state.text, &loaded.text);
        let notes = loaded
            .config
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        let level = loaded.config.log.level;
        let seen = seen_after(&state.seen, &live.snapshot, &loaded.config);
        let snapshot = live
            .snapshot
            .next(loaded.config, &seen)
            .map_err(Refused::Keys)?;
        let tls = read_tls(&snapshot).map_err(Refused::Tls)?;
        statements::check(&snapshot.config.log).map_err(Refused::Log)?;
        let version = self.publish(&live, snapshot, Arc::new(tls));
        self.shared.logs.reopen();
        // Who asked for it is told that it is in force.
        self.await_applied(version);
        log::set_max_level(level.into());
        state.text = loaded.text;
        state.seen = seen;
        Ok(Applied {
            version,
            differences,
            notes,
        })
    }

    /// Puts a snapshot in force. No two hosts of a group lead at any moment: the one before has ceased to, in the eyes of every
    /// worker, when the next one begins.
    fn publish(&self, before: &Live, snapshot: Snapshot, tls: Arc<Tls>) -> u64 {
        let version = snapshot.version;
        let next = Arc::new(before.next(snapshot, tls, self.shared.mailboxes.len()));
        let mut has_demoted = false;
        for (id, entry) in (0..).map(HostId).zip(&before.snapshot.hosts) {
            let host = before.hosts.get(id);
            let was_used = !entry.is_gone;
            let is_used = next
                .snapshot
                .hosts
                .get(id.index())
                .is_some_and(|e| !e.is_gone);
            if host.leads() && !next.snapshot.leads(id) {
                host.set_leads(false);
                host.retire_connections();
                // It may follow nobody yet, so that it is fresh no longer: a check tells.
                if asks_for_lag(&next, id) {
                    host.set_freshness(Freshness::Unknown);
                }
                has_demoted = true;
            } else if was_used && (!is_used || is_reached_otherwise(before, &next, id)) {
                host.retire_connections();
            }
        }
        self.shared.publish(next.clone());
        if has_demoted {
            self.await_applied(version);
        }
        for host in next.present() {
            next.hosts.get(host).set_leads(next.snapshot.leads(host));
        }
        // Those who wait for a primary look again.
        self.shared.announce();
        if let Err(error) = self.checks.follow() {
            log::error!("cannot start the checks of a server: {error}");
        }
        publish_offer(&self.shared);
        version
    }

    fn await_applied(&self, version: u64) {
        let deadline = Instant::now() + APPLIED_WITHIN;
        while !self.shared.has_been_applied(version) {
            if Instant::now() > deadline {
                // A worker that has ended is not waited for, and one that stands still sends nothing.
                log::warn!("a worker has not taken up version {version} within {APPLIED_WITHIN:?}");
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn tell(&self, who: &str, kind: &'static str, what: &str, outcome: &Result<Applied, Refused>) {
        let text = match outcome {
            Ok(applied) => {
                for note in &applied.notes {
                    log::warn!("{note}");
                }
                let mut text = format!("{what}: version {}", applied.version);
                if applied.differences.is_empty() {
                    text.push_str(", nothing differs");
                }
                for difference in &applied.differences {
                    text.push_str("; ");
                    text.push_str(&difference.to_string());
                }
                text
            }
            Err(refused) => {
                log::error!("{what}: refused, nothing has changed:\n{refused}");
                format!("{what}: refused, nothing has changed: {refused}")
            }
        };
        self.events.record(who, kind, text);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is held is replaced by whole values after everything that can fail.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who has which role under another configuration: what the servers were seen to be stays, where it is still asked for.
fn seen_after(seen: &Seen, before: &Snapshot, config: &Config) -> Seen {
    let mut next = Seen::default();
    if config.sharding.finds_globals {
        next.globals = seen.globals.clone();
    }
    for group in config
        .groups
        .iter()
        .filter(|g| g.topology == Topology::Follow)
    {
        let known = before
            .groups
            .iter()
            .find(|known| known.name == group.name && !known.is_gone);
        let as_it_was = || {
            let primary = known?.primary?;
            Some(GroupRoles {
                primary: Some(before.hosts[primary.index()].address.clone()),
                fenced: Vec::new(),
            })
        };
        if let Some(roles) = seen.roles.get(&group.name).cloned().or_else(as_it_was) {
            next.roles.insert(group.name.clone(), roles);
        }
    }
    next
}

/// Whether anybody wants to know how far the host is behind, should it be a replica.
fn asks_for_lag(live: &Live, host: HostId) -> bool {
    let entry = live.snapshot.hosts.get(host.index());
    entry
        .and_then(|entry| live.snapshot.groups.get(entry.group))
        .is_some_and(|group| !group.config.max_lag.is_zero())
}

/// Connections to the host are made otherwise than before.
fn is_reached_otherwise(before: &Live, next: &Live, host: HostId) -> bool {
    let tls = |live: &Live| {
        let entry = live.snapshot.hosts.get(host.index())?;
        let tls = &live.snapshot.groups.get(entry.group)?.config.tls;
        Some((tls.mode, tls.ca.clone(), tls.identity.clone()))
    };
    tls(before) != tls(next)
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
