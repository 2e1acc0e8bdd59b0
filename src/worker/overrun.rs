//! Statements that have run for long enough, or given enough rows: when their sessions are to look at the time, and what operators are
//! told of them. What is done about such a statement is the session's; how its server is told is in `side`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Worker;
use super::slots::Key;
use super::timer::Timer;
use crate::session::Excess;

/// An account is told of once in this time.
const INTERVAL: Duration = Duration::from_secs(60);

/// The deadlines in the worker's heap that are one client's, the earliest last.
///
/// A statement's deadline is not taken out when the statement is over, so that a statement costs nothing but a look at whether one
/// is there already that comes in time. Each is earlier than the one before it and was set later, for a shorter time: there are as many
/// as there are different limits, and mostly one.
#[derive(Debug, Default)]
pub(super) struct Alarms(Vec<Instant>);

impl Alarms {
    /// The session is to look at this moment; true when the heap needs an entry for it.
    fn set(&mut self, at: Instant) -> bool {
        let is_needed = self.0.last().is_none_or(|earliest| at < *earliest);
        if is_needed {
            self.0.push(at);
        }
        is_needed
    }

    /// Those that were due by now are in the heap no more.
    fn passed(&mut self, now: Instant) {
        while self.0.pop_if(|earliest| *earliest <= now).is_some() {}
    }
}

/// What a worker keeps of such statements. Few clients have limits, so it is not kept with each.
#[derive(Debug, Default)]
pub(super) struct Watch {
    alarms: HashMap<Key, Alarms>,
    /// Statements that are to be killed. There are `side::KILLS_MAX` at most.
    kills: Vec<Victim>,
}

/// A statement that is to be killed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Victim {
    /// The connection over which it is.
    pub(super) side: Key,
    /// Whose it is.
    pub(super) client: Key,
    /// When its command began.
    pub(super) began: Duration,
    /// The client's session waits for the answer.
    pub(super) waits: bool,
}

impl Watch {
    /// A statement is to be killed.
    pub(super) fn begin(&mut self, victim: Victim) {
        self.kills.push(victim);
    }

    /// The statement that is killed over this connection.
    pub(super) fn victim(&self, side: Key) -> Option<Victim> {
        self.kills.iter().find(|kill| kill.side == side).copied()
    }

    /// Another connection has taken its place.
    pub(super) fn replace(&mut self, side: Key, next: Key) {
        for kill in &mut self.kills {
            if kill.side == side {
                kill.side = next;
            }
        }
    }

    /// The connection over which a statement of this client, whose session waits for it, is being killed.
    pub(super) fn side_of(&self, client: Key) -> Option<Key> {
        let is_it = |kill: &&Victim| kill.waits && kill.client == client;
        self.kills.iter().find(is_it).map(|kill| kill.side)
    }

    /// That is over; the client whose session waits for it.
    pub(super) fn end(&mut self, side: Key) -> Option<Key> {
        let at = self.kills.iter().position(|kill| kill.side == side)?;
        let victim = self.kills.swap_remove(at);
        victim.waits.then_some(victim.client)
    }

    /// A client is gone.
    pub(super) fn forget(&mut self, client: Key) {
        if !self.alarms.is_empty() {
            self.alarms.remove(&client);
        }
        self.kills.retain(|kill| kill.client != client);
    }
}

/// What was told of each account, and what has not been told yet. All workers share it: they come here when a statement is ended.
#[derive(Debug, Default)]
pub struct Overruns(Mutex<HashMap<(usize, Excess), (Instant, u64)>>);

impl Overruns {
    /// One more of an account; gives the number to be told of, if it is time.
    fn note(&self, account: usize, excess: Excess, now: Instant) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match told.get_mut(&(account, excess)) {
            None => {
                told.insert((account, excess), (now, 0));
                Some(1)
            }
            Some((last, untold)) if now.saturating_duration_since(*last) < INTERVAL => {
                *untold += 1;
                None
            }
            Some((last, untold)) => {
                *last = now;
                Some(std::mem::take(untold) + 1)
            }
        }
    }
}

impl Worker {
    /// A session is to look at its statement at this moment.
    pub(super) fn set_alarm(&mut self, key: Key, moment: Duration) {
        let at = self.shared.started + moment;
        if self.watch.alarms.entry(key).or_default().set(at) {
            self.timers.add(at, Timer::Statement(key));
        }
    }

    /// The moment has come.
    pub(super) fn statement_alarm(&mut self, key: Key, now: Instant) {
        let Some(alarms) = self.watch.alarms.get_mut(&key) else {
            return;
        };
        alarms.passed(now);
        self.tell(key, |session, cx, _, out| session.on_alarm(cx, out));
        self.pump_client(key);
    }

    /// A statement of an account was ended: operators are told, once in a while.
    #[cold]
    pub(super) fn note_overrun(&self, account: usize, excess: Excess) {
        let Some(count) = self.shared.overruns.note(account, excess, self.now) else {
            return;
        };
        let accounts = &self.live.snapshot.accounts;
        let name = accounts
            .get(account)
            .map_or_else(Default::default, |account| {
                String::from_utf8_lossy(&account.name)
            });
        let why = match excess {
            Excess::Time => "ran for longer than limits.statement_timeout or a rule lets it",
            Excess::Rows => "had more rows than limits.result_rows lets it",
        };
        let text = match count {
            1 => format!("a statement of account \"{name}\" was ended: it {why}"),
            _ => format!(
                "statements of account \"{name}\" were ended, {count} since this was told last: the last {why}"
            ),
        };
        self.shared.notices.tell("limit", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_few_entries() {
        let start = Instant::now();
        let mut alarms = Alarms::default();
        let mut entries = 0;
        // Statements one after the other, with two limits, each over long before its deadline.
        for n in 0..10_000 {
            let now = start + Duration::from_millis(n);
            alarms.passed(now);
            let limit = Duration::from_millis(if n % 7 == 0 { 30_000 } else { 100 });
            entries += usize::from(alarms.set(now + limit));
            assert!(alarms.0.len() <= 2, "{alarms:?}");
            assert!(alarms.0.is_sorted_by(|a, b| a > b));
        }
        assert!(entries < 150, "{entries}");
    }

    #[test]
    fn none_is_missed() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut alarms = Alarms::default();
        assert!(alarms.set(at(100)));
        assert!(!alarms.set(at(100)) && !alarms.set(at(150)));
        assert!(alarms.set(at(50)));
        alarms.passed(at(50));
        assert!(!alarms.set(at(120)), "that at 100 ms looks");
        alarms.passed(at(100));
        assert!(alarms.set(at(120)));
    }

    #[test]
    fn an_account_is_told_of_once_in_a_while() {
        let overruns = Overruns::default();
        let start = Instant::now();
        let note = |account, excess, seconds| {
            overruns.note(account, excess, start + Duration::from_secs(seconds))
        };
        assert_eq!(note(1, Excess::Time, 0), Some(1));
        assert_eq!(note(1, Excess::Time, 1), None);
        assert_eq!(note(1, Excess::Rows, 2), Some(1));
        assert_eq!(note(2, Excess::Time, 3), Some(1));
        assert_eq!(note(1, Excess::Time, 59), None);
        assert_eq!(note(1, Excess::Time, 60), Some(3));
        assert_eq!(note(1, Excess::Time, 61), None);
    }
}
