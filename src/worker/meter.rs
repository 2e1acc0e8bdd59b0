//! What a worker counts: statements by kind, route and reason, how long they took, errors, bytes. Each worker writes its own and no
//! lines of others; whoever reads may see one figure a moment before another.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::stages::{STAGE_NAMES, STAGES, Stage};
use super::{AccountMeter, Worker};
use crate::route::{Pins, Reason, Role};
use crate::session::Done;
use crate::sql::{self, Kind};

/// Upper ends of the classes of times, in microseconds; one more class is without an end.
pub const CLASSES: [u64; 21] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 60_000_000,
];

/// Codes of errors that are counted by themselves; further ones are counted together, as code 0.
const CODES_MAX: usize = 64;

const KINDS: [Kind; 24] = [
    Kind::Read,
    Kind::Write,
    Kind::Ddl,
    Kind::Begin,
    Kind::Commit,
    Kind::Rollback,
    Kind::Savepoint,
    Kind::Xa,
    Kind::Set,
    Kind::Use,
    Kind::Show,
    Kind::Explain,
    Kind::Prepare,
    Kind::Execute,
    Kind::Deallocate,
    Kind::Lock,
    Kind::Unlock,
    Kind::Admin,
    Kind::Empty,
    Kind::Batch,
    Kind::Unknown,
    Kind::ExplainRoute,
    Kind::ShowLastRoute,
    Kind::Kill,
];

const STATEMENT_REASONS: [sql::Reason; 24] = [
    sql::Reason::Unterminated,
    sql::Reason::Doubtful,
    sql::Reason::MultiStatement,
    sql::Reason::Write,
    sql::Reason::Ddl,
    sql::Reason::TransactionControl,
    sql::Reason::Set,
    sql::Reason::PreparedText,
    sql::Reason::Lock,
    sql::Reason::Admin,
    sql::Reason::Show,
    sql::Reason::Empty,
    sql::Reason::UnknownStatement,
    sql::Reason::LockingRead,
    sql::Reason::Into,
    sql::Reason::LastInsertId,
    sql::Reason::LockFunction,
    sql::Reason::Sequence,
    sql::Reason::UnknownFunction,
    sql::Reason::UserVariableAssignment,
    sql::Reason::ConnectionId,
    sql::Reason::Diagnostics,
    sql::Reason::ServerState,
    sql::Reason::HintPrimary,
];

/// Reasons that are neither a statement's own nor a pin.
const PLAIN_REASONS: [Reason; 8] = [
    Reason::PlainRead,
    Reason::InTransaction,
    Reason::AutocommitOff,
    Reason::Follows,
    Reason::Causal,
    Reason::Account,
    Reason::NoReplica,
    Reason::Rule,
];

const REASONS: usize = PLAIN_REASONS.len() + Pins::ALL.len() + STATEMENT_REASONS.len();
const ROUTES: usize = 2;

/// Where a reason is counted.
fn place(reason: Reason) -> usize {
    let pins = PLAIN_REASONS.len();
    match reason {
        Reason::PlainRead => 0,
        Reason::InTransaction => 1,
        Reason::AutocommitOff => 2,
        Reason::Follows => 3,
        Reason::Causal => 4,
        Reason::Account => 5,
        Reason::NoReplica => 6,
        Reason::Rule => 7,
        Reason::Pinned(set) => {
            let first = Pins::ALL.iter().position(|(pin, _)| set.any_of(*pin));
            pins + first.unwrap_or(0)
        }
        Reason::Statement(reason) => pins + Pins::ALL.len() + reason as usize,
    }
}

/// The name of the reason that is counted at a place.
fn reason_at(place: usize) -> &'static str {
    let (pins, statement) = (PLAIN_REASONS.len(), PLAIN_REASONS.len() + Pins::ALL.len());
    if let Some(reason) = PLAIN_REASONS.get(place) {
        reason.as_str()
    } else if let Some((_, name)) = Pins::ALL.get(place - pins) {
        name
    } else {
        place
            .checked_sub(statement)
            .and_then(|place| STATEMENT_REASONS.get(place))
            .map_or("unknown", |reason| reason.as_str())
    }
}

/// See the module's words.
#[derive(Debug)]
#[repr(align(128))]
pub struct Meter {
    /// By kind, then route, then reason.
    statements: Box<[AtomicU64]>,
    seconds: [Times; ROUTES],
    added: [Times; STAGES],
    errors: [(AtomicU32, AtomicU64); CODES_MAX],
    refused: [(AtomicU32, AtomicU64); CODES_MAX],
    /// Bytes sent to clients.
    to_clients: AtomicU64,
    /// Bytes sent to servers.
    to_servers: AtomicU64,
    slow: AtomicU64,
    /// By account.
    pub accounts: AccountMeter,
}

/// How many times fell into each class, and their sum.
#[derive(Debug, Default)]
struct Times {
    classes: [AtomicU64; CLASSES.len() + 1],
    micros: AtomicU64,
}

/// Adds to a figure that only this thread writes.
fn add(figure: &AtomicU64, n: u64) {
    figure.store(
        figure.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}

impl Times {
    fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = CLASSES.iter().take_while(|end| micros > **end).count();
        if let Some(figure) = self.classes.get(class) {
            add(figure, 1);
        }
        add(&self.micros, micros);
    }
}

/// Counts a code, at its own place while there are any left.
fn count_code(places: &[(AtomicU32, AtomicU64); CODES_MAX], code: u16) {
    let wanted = u32::from(code);
    for (known, figure) in places {
        let held = known.load(Ordering::Relaxed);
        if held == wanted || held == 0 {
            if held == 0 {
                known.store(wanted, Ordering::Relaxed);
            }
            return add(figure, 1);
        }
    }
    // The last one is for all others from here on.
    let [.., (known, figure)] = places;
    known.store(OTHERS, Ordering::Relaxed);
    add(figure, 1);
}

/// Stands for the codes that have no place of their own: no code is that large.
const OTHERS: u32 = 1 << 16;

impl Default for Meter {
    fn default() -> Self {
        let codes = || std::array::from_fn(|_| (AtomicU32::new(0), AtomicU64::new(0)));
        Self {
            statements: (0..KINDS.len() * ROUTES * REASONS)
                .map(|_| AtomicU64::new(0))
                .collect(),
            seconds: Default::default(),
            added: Default::default(),
            errors: codes(),
            refused: codes(),
            to_clients: AtomicU64::new(0),
            to_servers: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            accounts: AccountMeter::default(),
        }
    }
}

impl Meter {
    fn note(&self, done: Done, slow_from: Duration) {
        match done {
            Done::Statement {
                kind,
                role,
                reason,
                took,
                acquired,
                synced,
                error,
            } => {
                let at = (kind as usize * ROUTES + role as usize) * REASONS + place(reason);
                if let Some(figure) = self.statements.get(at) {
                    add(figure, 1);
                }
                self.seconds[role as usize].add(took);
                self.add(Stage::Acquire, acquired);
                self.add(Stage::Sync, synced);
                if took >= slow_from {
                    add(&self.slow, 1);
                }
                if let Some(code) = error {
                    count_code(&self.errors, code);
                }
            }
            Done::Refused(code) => {
                count_code(&self.errors, code);
            }
            Done::TurnedAway(code) => count_code(&self.refused, code),
            // Counted of its account, and the error that tells the client of it here.
            Done::Overran(_) => {}
        }
    }

    /// Notes what Atlas itself has added.
    pub(super) fn add(&self, stage: Stage, time: Duration) {
        self.added[stage as usize].add(time);
    }

    fn sent(&self, to_client: usize, to_server: usize) {
        add(&self.to_clients, to_client as u64);
        add(&self.to_servers, to_server as u64);
    }
}

impl Worker {
    /// Counts what a session has done, of that account if it is logged in.
    pub(super) fn count(&self, done: &[Done], account: Option<usize>) {
        if let Some(meter) = self.shared.meters.get(self.index) {
            let slow_from = self.live.snapshot.config.log.slow_threshold;
            for done in done {
                meter.note(*done, slow_from);
                if let Some(account) = account {
                    meter.accounts.note(account, *done);
                    if let Done::Overran(excess) = *done {
                        self.note_overrun(account, excess);
                    }
                }
            }
        }
    }

    /// Counts what was sent.
    pub(super) fn count_bytes(&self, to_client: usize, to_server: usize) {
        if let Some(meter) = self.shared.meters.get(self.index) {
            meter.sent(to_client, to_server);
        }
    }
}

/// What all workers have counted.
#[derive(Debug, Default)]
pub struct Counts {
    /// Statements by kind, route and reason.
    pub statements: Vec<(&'static str, &'static str, &'static str, u64)>,
    /// How long they took, by route.
    pub seconds: Vec<(&'static str, Classes)>,
    /// What Atlas has added to that, by stage.
    pub added: Vec<(&'static str, Classes)>,
    /// Errors that clients were told, by code; 0 for codes without a place of their own.
    pub errors: Vec<(u32, u64)>,
    /// Clients that were turned away, by the code that they were told.
    pub refused: Vec<(u32, u64)>,
    /// Bytes sent to clients.
    pub to_clients: u64,
    /// Bytes sent to servers.
    pub to_servers: u64,
    /// Statements that took as long as the slow log asks for.
    pub slow: u64,
}

/// Times by class.
#[derive(Debug, Default, Clone)]
pub struct Classes {
    /// How many in each of [`CLASSES`], and above.
    pub counts: [u64; CLASSES.len() + 1],
    /// Their sum.
    pub sum: Duration,
}

impl Classes {
    fn add(&mut self, times: &Times) {
        for (count, figure) in self.counts.iter_mut().zip(&times.classes) {
            *count = count.wrapping_add(figure.load(Ordering::Relaxed));
        }
        self.sum += Duration::from_micros(times.micros.load(Ordering::Relaxed));
    }
}

/// The names of routes, in the order of [`Role`].
const ROUTE_NAMES: [(Role, &str); ROUTES] =
    [(Role::Primary, "primary"), (Role::Replica, "replica")];

impl Counts {
    /// Adds up what workers have counted.
    pub fn of<'m>(meters: impl Iterator<Item = &'m Meter>) -> Self {
        let mut counts = Self::default();
        let mut statements = vec![0_u64; KINDS.len() * ROUTES * REASONS];
        let mut seconds: [Classes; ROUTES] = Default::default();
        let mut added: [Classes; STAGES] = Default::default();
        for meter in meters {
            for (sum, figure) in statements.iter_mut().zip(&meter.statements) {
                *sum += figure.load(Ordering::Relaxed);
            }
            for (sum, times) in seconds.iter_mut().zip(&meter.seconds) {
                sum.add(times);
            }
            for (sum, times) in added.iter_mut().zip(&meter.added) {
                sum.add(times);
            }
            add_codes(&mut counts.errors, &meter.errors);
            add_codes(&mut counts.refused, &meter.refused);
            counts.to_clients += meter.to_clients.load(Ordering::Relaxed);
            counts.to_servers += meter.to_servers.load(Ordering::Relaxed);
            counts.slow += meter.slow.load(Ordering::Relaxed);
        }
        for (at, sum) in statements
            .into_iter()
            .enumerate()
            .filter(|(_, sum)| *sum > 0)
        {
            let kind = KINDS
                .get(at / REASONS / ROUTES)
                .map_or("", |kind| kind.as_str());
            let route = ROUTE_NAMES
                .get(at / REASONS % ROUTES)
                .map_or("", |(_, name)| name);
            counts
                .statements
                .push((kind, route, reason_at(at % REASONS), sum));
        }
        counts.seconds = ROUTE_NAMES
            .iter()
            .map(|(_, name)| *name)
            .zip(seconds)
            .collect();
        counts.added = STAGE_NAMES
            .iter()
            .map(|(_, name)| *name)
            .zip(added)
            .collect();
        counts.errors.sort_unstable();
        counts.refused.sort_unstable();
        counts
    }
}

fn add_codes(sums: &mut Vec<(u32, u64)>, places: &[(AtomicU32, AtomicU64); CODES_MAX]) {
    for (code, figure) in places {
        let (code, count) = (code.load(Ordering::Relaxed), figure.load(Ordering::Relaxed));
        let code = if code == OTHERS { 0 } else { code };
        if count == 0 {
            continue;
        }
        match sums.iter_mut().find(|(known, _)| *known == code) {
            Some((_, sum)) => *sum += count,
            None => sums.push((code, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_reason_has_its_place() {
        for (place, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, place, "{kind:?}");
        }
        for (at, reason) in STATEMENT_REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, at, "{reason:?}");
            assert_eq!(
                reason_at(place(Reason::Statement(*reason))),
                reason.as_str()
            );
        }
        for reason in PLAIN_REASONS {
            assert_eq!(reason_at(place(reason)), reason.as_str());
        }
        for (pin, name) in Pins::ALL {
            assert_eq!(reason_at(place(Reason::Pinned(pin))), name);
        }
        for (at, (role, _)) in ROUTE_NAMES.iter().enumerate() {
            assert_eq!(*role as usize, at);
        }
    }

    #[test]
    fn figures_of_all_workers() {
        let meters = [Meter::default(), Meter::default()];
        for (n, meter) in (1..).zip(&meters) {
            for _ in 0..n {
                meter.note(
                    Done::Statement {
                        kind: Kind::Kill,
                        role: Role::Replica,
                        reason: Reason::Statement(sql::Reason::HintPrimary),
                        took: Duration::from_millis(3),
                        acquired: Duration::ZERO,
                        synced: Duration::from_micros(30),
                        error: Some(1064),
                    },
                    Duration::from_millis(3),
                );
            }
            meter.note(Done::Refused(1105), Duration::MAX);
            meter.note(Done::TurnedAway(1040), Duration::MAX);
            meter.sent(10, 0);
        }
        for code in 1..200 {
            meters[0].note(Done::Refused(code), Duration::MAX);
        }
        let counts = Counts::of(meters.iter());
        assert_eq!(counts.statements, [("kill", "replica", "hint-primary", 3)]);
        let (_, classes) = &counts.seconds[1];
        assert_eq!(
            (classes.counts[9], classes.sum),
            (3, Duration::from_millis(9))
        );
        let counted = |wanted: &str| {
            let (_, classes) = counts
                .added
                .iter()
                .find(|(name, _)| *name == wanted)
                .unwrap();
            (classes.counts[0], classes.counts[3], classes.sum)
        };
        assert_eq!(counted("acquire"), (3, 0, Duration::ZERO));
        assert_eq!(counted("sync"), (0, 3, Duration::from_micros(90)));
        assert_eq!(counted("relay"), (0, 0, Duration::ZERO));
        assert_eq!((counts.slow, counts.to_clients), (3, 20));
        assert_eq!(counts.refused, [(1040, 2)]);
        // Every error is counted, those without a place of their own together.
        assert_eq!(
            counts.errors.iter().map(|(_, count)| count).sum::<u64>(),
            3 + 2 + 199
        );
        assert_eq!(counts.errors[0].0, 0);
        assert!(counts.errors.contains(&(1064, 3)) && counts.errors.contains(&(1105, 2)));
    }
}
