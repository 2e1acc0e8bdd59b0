//! Figures of accounts: what the clients of each have done. One writer each, its worker; whoever reads adds them up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::route::Role;
use crate::session::{Done, Excess};

/// Accounts whose figures lie together.
const PART: usize = 64;
/// So many parts have room for all accounts that a process can ever have.
const PARTS: usize = 65_536 / PART;

/// What one worker has counted.
#[derive(Debug)]
pub struct AccountMeter(Box<[OnceLock<Box<[Cells; PART]>>]>);

#[derive(Debug, Default)]
struct Cells {
    statements: [AtomicU64; 2],
    errors: AtomicU64,
    refused: AtomicU64,
    /// For their time, and for their rows.
    ended: [AtomicU64; 2],
    micros: AtomicU64,
}

/// What all workers have counted of an account.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AccountFigures {
    /// Statements that primaries answered, and replicas.
    pub statements: [u64; 2],
    /// Those that were answered by an error.
    pub errors: u64,
    /// Statements that Atlas refused.
    pub refused: u64,
    /// Statements that were ended for their time, and for their rows.
    pub ended: [u64; 2],
    /// How long clients waited for all answers together, in microseconds.
    pub micros: u64,
}

impl Default for AccountMeter {
    fn default() -> Self {
        Self((0..PARTS).map(|_| OnceLock::new()).collect())
    }
}

/// Adds to a figure that nobody else writes.
fn add(figure: &AtomicU64, n: u64) {
    let sum = figure.load(Ordering::Relaxed).wrapping_add(n);
    figure.store(sum, Ordering::Relaxed);
}

impl AccountMeter {
    /// Notes what a client of the account (an index into the snapshot's) has done.
    pub(super) fn note(&self, account: usize, done: Done) {
        let Some(part) = self.0.get(account / PART) else {
            return;
        };
        let part = part.get_or_init(|| Box::new(std::array::from_fn(|_| Cells::default())));
        let Some(cells) = part.get(account % PART) else {
            return;
        };
        match done {
            Done::Statement {
                role, took, error, ..
            } => {
                let [primary, replica] = &cells.statements;
                add(
                    if role == Role::Primary {
                        primary
                    } else {
                        replica
                    },
                    1,
                );
                add(&cells.micros, u64::try_from(took.as_micros()).unwrap_or(0));
                if error.is_some() {
                    add(&cells.errors, 1);
                }
            }
            Done::Refused(_) => add(&cells.refused, 1),
            Done::Overran(excess) => {
                let [time, rows] = &cells.ended;
                add(
                    match excess {
                        Excess::Time => time,
                        Excess::Rows => rows,
                    },
                    1,
                );
            }
            Done::TurnedAway(_) => {}
        }
    }

    /// Adds what was counted of an account to its figures.
    pub fn add_to(&self, account: usize, figures: &mut AccountFigures) {
        let part = self.0.get(account / PART).and_then(OnceLock::get);
        let Some(cells) = part.and_then(|part| part.get(account % PART)) else {
            return;
        };
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        for (sum, figure) in figures.statements.iter_mut().zip(&cells.statements) {
            *sum = sum.wrapping_add(read(figure));
        }
        for (sum, figure) in figures.ended.iter_mut().zip(&cells.ended) {
            *sum = sum.wrapping_add(read(figure));
        }
        for (sum, figure) in [
            (&mut figures.errors, &cells.errors),
            (&mut figures.refused, &cells.refused),
            (&mut figures.micros, &cells.micros),
        ] {
            *sum = sum.wrapping_add(read(figure));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::route::Reason;
    use crate::sql::Kind;

    #[test]
    fn figures_of_all_workers() {
        let workers = [AccountMeter::default(), AccountMeter::default()];
        let statement = |role, error| Done::Statement {
            kind: Kind::Read,
            role,
            reason: Reason::PlainRead,
            took: Duration::from_micros(7),
            acquired: Duration::ZERO,
            synced: Duration::ZERO,
            error,
        };
        for worker in &workers {
            worker.note(65, statement(Role::Replica, None));
            worker.note(65, statement(Role::Primary, Some(1064)));
            worker.note(65, Done::Refused(1105));
            worker.note(64, Done::Refused(1105));
            worker.note(65, Done::Overran(Excess::Time));
            worker.note(65, Done::Overran(Excess::Rows));
            worker.note(65, Done::Overran(Excess::Rows));
            // There are never so many.
            worker.note(usize::MAX, Done::Refused(1105));
        }
        let of = |account| {
            let mut figures = AccountFigures::default();
            workers
                .iter()
                .for_each(|worker| worker.add_to(account, &mut figures));
            figures
        };
        let wanted = AccountFigures {
            statements: [2, 2],
            errors: 2,
            refused: 2,
            ended: [2, 4],
            micros: 28,
        };
        assert_eq!(of(65), wanted);
        assert_eq!(of(64).refused, 2);
        assert_eq!(of(3), AccountFigures::default());
        assert_eq!(of(usize::MAX), AccountFigures::default());
    }
}
