//! Where a statement goes: one function over what the statement is and what the session is in the middle of.
//! Choosing a host among replicas is `balance`; what operators say of statements is `rules`, how many there may be is `limit`. Nothing
//! here knows connections.

mod balance;
mod limit;
mod rules;
mod view;

pub use balance::{Balance, Candidate};
pub use limit::{Exceeded, Limiter, Permit};
pub use rules::{Room, Rule, Rules, Sent, Verdict, decide_for, hinted, redirect};
pub use view::{Pins, Role, View};

use crate::config::ReadFrom;
use crate::sql::{self, Hint, Statement, Traits};

/// Why a statement goes where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A plain read; it may be answered by a replica.
    PlainRead,
    /// The statement itself wants the primary.
    Statement(sql::Reason),
    /// A transaction is open.
    InTransaction,
    /// autocommit is off.
    AutocommitOff,
    /// The session's state is on the primary only.
    Pinned(Pins),
    /// It asks about the previous statement, so it follows that one.
    Follows,
    /// A write came before that the read is to see.
    Causal,
    /// The account reads from the primary.
    Account,
    /// A rule has it answered by the primary.
    Rule,
    /// No replica may serve it and the group's policy sends it to the primary.
    NoReplica,
}

impl Reason {
    /// The stable name that `atlas route`, `EXPLAIN ROUTE` and counters show.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlainRead => "plain-read",
            Self::Statement(reason) => reason.as_str(),
            Self::InTransaction => "in-transaction",
            Self::AutocommitOff => "autocommit-off",
            Self::Pinned(pins) => pins.as_str(),
            Self::Follows => "follows-previous-statement",
            Self::Causal => "causal",
            Self::Account => "account-reads-primary",
            Self::Rule => "rule",
            Self::NoReplica => "no-replica",
        }
    }
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Which of the session's connections.
    pub role: Role,
    /// Why.
    pub reason: Reason,
}

/// Decides for a text statement. A prepared one is decided by [`decide_read`] with the facts noted at its prepare.
#[must_use]
pub fn decide(statement: &Statement<'_>, view: &View) -> Route {
    if let Some(reason) = statement.wants_primary() {
        let elsewhere = Traits::CONNECTION_ID | Traits::SERVER_STATE | Traits::UNKNOWN_FUNCTION;
        if reason == sql::Reason::Diagnostics && !statement.traits.intersects(elsewhere) {
            return follow(statement.kind, statement.traits, view);
        }
        return Route {
            role: Role::Primary,
            reason: Reason::Statement(reason),
        };
    }
    let uses_variables = statement.traits.contains(Traits::USER_VAR_READ);
    // The hint for the primary is among the statement's own reasons; that for a replica overrides the account's rule only.
    let hinted = matches!(statement.hint, Some(Hint::Replica));
    decide_read(view, uses_variables, hinted)
}

/// Decides for a statement known to be a plain read.
#[must_use]
pub fn decide_read(view: &View, uses_variables: bool, hinted: bool) -> Route {
    let primary = |reason| Route {
        role: Role::Primary,
        reason,
    };
    if view.in_transaction {
        return primary(Reason::InTransaction);
    }
    if !view.autocommit {
        return primary(Reason::AutocommitOff);
    }
    if view.is_held(uses_variables) {
        return primary(Reason::Pinned(view.pins));
    }
    if view.must_see_writes && !hinted && view.read_from != ReadFrom::ReplicaOnly {
        return primary(Reason::Causal);
    }
    if view.read_from == ReadFrom::Primary && !hinted {
        return primary(Reason::Account);
    }
    Route {
        role: Role::Replica,
        reason: Reason::PlainRead,
    }
}

/// A statement about the previous one goes where that one ran, unless a transaction has begun since (a replica's reply would
/// tell the client that none is open), or it also reads what only the primary has: then what it asks is fetched.
#[must_use]
pub fn follow(kind: sql::Kind, traits: Traits, view: &View) -> Route {
    let reads_more = kind != sql::Kind::Show
        && (view.must_see_writes || view.is_held(traits.contains(Traits::USER_VAR_READ)));
    let may_leave = view.autocommit && !view.in_transaction && !reads_more;
    let place = view.asked(kind, traits).filter(|_| may_leave);
    Route {
        role: place.unwrap_or(Role::Primary),
        reason: Reason::Follows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_follows_unless_it_needs_the_primary() {
        let fresh = View {
            in_transaction: false,
            autocommit: true,
            must_see_writes: false,
            pins: Pins::default(),
            last: Some(Role::Replica),
            last_rows: Some(Role::Replica),
            warned: Some(Role::Replica),
            read_from: ReadFrom::Replica,
        };
        let with = |pins| View { pins, ..fresh };
        let late = View {
            must_see_writes: true,
            ..fresh
        };
        let (asks, reads) = (
            Traits::DIAGNOSTICS,
            Traits::DIAGNOSTICS | Traits::USER_VAR_READ,
        );
        for (kind, traits, view, role) in [
            (sql::Kind::Read, asks, fresh, Role::Replica),
            (sql::Kind::Read, reads, fresh, Role::Replica),
            (
                sql::Kind::Read,
                asks,
                with(Pins::USER_VARIABLES),
                Role::Replica,
            ),
            (
                sql::Kind::Read,
                reads,
                with(Pins::USER_VARIABLES),
                Role::Primary,
            ),
            (
                sql::Kind::Read,
                asks,
                with(Pins::TEMPORARY_TABLES),
                Role::Primary,
            ),
            (
                sql::Kind::Show,
                asks,
                with(Pins::TEMPORARY_TABLES),
                Role::Replica,
            ),
            (sql::Kind::Read, asks, late, Role::Primary),
            (sql::Kind::Read, asks, late.of_nothing(), Role::Replica),
            (sql::Kind::Show, asks, late, Role::Replica),
        ] {
            let route = follow(kind, traits, &view);
            assert_eq!(route.role, role, "{kind:?} {traits:?} {view:?}");
        }
    }
}
