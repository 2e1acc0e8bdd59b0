//! From what a statement is to the connection that it runs on: the decision of `route`, in both readings of a text where it
//! has two, and what becomes of it when the group cannot follow.

use super::{Ask, Cx, Fault, InsertId, Last, Link, Outputs, Role, Session};
use crate::config::{Causal, NoReplica, ReadFrom};
use crate::route::{self, Pins, Reason, Route, View};
use crate::sql::{self, Hint, Kind, Statement, Traits};
use crate::wire::Status;

impl Session {
    /// What of the session matters to a route.
    pub(super) fn view(&self, cx: &Cx<'_>) -> View {
        let account = self.account(cx.snapshot);
        View {
            must_see_writes: match (account.causal, self.wrote) {
                (Causal::Off, _) | (Causal::Window(_), None) => false,
                (Causal::Window(window), Some(wrote)) => cx.now.saturating_sub(wrote) < window,
                (Causal::Session(_), _) => self.wrote_unseen(cx),
                (Causal::Global, _) => true,
            },
            in_transaction: self.status.contains(Status::IN_TRANS) || self.is_to_begin,
            autocommit: self.status.contains(Status::AUTOCOMMIT),
            pins: self.state.pins(),
            last: self.last.map(|last| last.role),
            last_rows: self.last_rows.map(|last| last.role),
            warned: self.warned.map(|last| last.role),
            read_from: account.read_from,
        }
    }

    /// The route of a text, in both readings where it is not known how `"` is read.
    pub(super) fn decide(&self, cx: &Cx<'_>, sql: &[u8], statement: &Statement<'_>) -> Route {
        let view = self.view(cx);
        let route = route::decide(statement, &view);
        if route.role == Role::Replica && self.state.ansi_quotes().is_none() && sql.contains(&b'"')
        {
            let other = sql::Dialect {
                ansi_quotes: true,
                ..self.dialect()
            };
            let second = route::decide(&sql::classify(sql, &other), &view);
            if second.role == Role::Primary {
                return second;
            }
        }
        route
    }

    /// A hint for another group than the session's cannot be followed, and must not be passed over in silence.
    pub(super) fn check_hint(&self, cx: &Cx<'_>, statement: &Statement<'_>) -> Result<(), Fault> {
        match statement.hint {
            Some(Hint::Group(name)) if name != self.group(cx.snapshot).name.as_bytes() => {
                Err(Fault::OtherGroup {
                    asked: String::from_utf8_lossy(name).into_owned(),
                    own: self.group(cx.snapshot).name.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Brings a decision together with what there is: replicas that exist and answer, connections that still hold what is
    /// asked for.
    ///
    /// # Errors
    /// The statement cannot be answered as it should be.
    pub(super) fn settle(
        &self,
        cx: &Cx<'_>,
        route: &mut Route,
        kind: Kind,
        traits: Traits,
    ) -> Result<(), Fault> {
        if self.attempt.cut && self.attempt.is_interrupted {
            return Err(Fault::Interrupted);
        }
        if self.attempt.cut {
            return Err(Fault::Lost(self.attempt.why.to_string()));
        }
        // Of several statements in one text it is most likely the one before it there that is asked about.
        if traits.contains(Traits::DIAGNOSTICS) && !traits.contains(Traits::MULTI) {
            match self.last_asked(kind, traits) {
                Some(last) if last.lost => return Err(Fault::LostPrevious),
                Some(last) if last.role != route.role => return Err(Fault::PreviousElsewhere),
                Some(_) | None => {}
            }
        }
        if self.insert_id == InsertId::Lost && traits.contains(Traits::LAST_INSERT_ID) {
            return Err(Fault::LostPrevious);
        }
        if route.role != Role::Replica || route.reason == Reason::Follows {
            return Ok(());
        }
        let group = self.group(cx.snapshot);
        if !self.attempt.force_primary && !group.replicas.is_empty() {
            return Ok(());
        }
        if !self.may_fall_back(cx) {
            let why = if group.replicas.is_empty() {
                "none is configured"
            } else {
                &self.attempt.why
            };
            return Err(Fault::NoReplica {
                group: group.name.clone(),
                why: why.to_owned(),
            });
        }
        *route = Route {
            role: Role::Primary,
            reason: Reason::NoReplica,
        };
        Ok(())
    }

    /// The connection that a question about previous statements is about, as [`crate::route::View::asked`] has it.
    fn last_asked(&self, kind: Kind, traits: Traits) -> Option<Last> {
        match kind {
            Kind::Show => self.warned,
            _ if traits.contains(Traits::FOUND_ROWS) => self.last_rows,
            _ => self.last,
        }
    }

    /// Whether the primary may answer a read that no replica answers.
    pub(super) fn may_fall_back(&self, cx: &Cx<'_>) -> bool {
        self.account(cx.snapshot).read_from != ReadFrom::ReplicaOnly
            && self.group(cx.snapshot).no_replica != NoReplica::Error
    }

    /// Makes sure that a question about previous statements is asked of the connection that ran them: one that was given back is
    /// taken again, if nobody has used it since. False when it cannot be had.
    pub(super) fn follow_up(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        kind: Kind,
        traits: Traits,
        out: &mut Outputs,
    ) -> bool {
        if !self.shares && !self.has_moved {
            return true;
        }
        let Some(last) = self
            .last_asked(kind, traits)
            .filter(|last| last.role == role)
        else {
            return false;
        };
        match self.link(role) {
            Link::Ready(known) => known.serial == last.serial,
            Link::Opening => true,
            Link::Absent if !self.shares => false,
            Link::Absent => {
                let ask: Ask = self.ask(cx, role, Some(last.serial));
                match cx.lender.lend(&ask) {
                    Some(known) => {
                        self.take_up(role, known, out);
                        true
                    }
                    None => false,
                }
            }
        }
    }

    /// The text with the answers in it that no server connection can give: the client's id, and the numbers of statements whose
    /// connection (`previous` says so) was given back. `None` when it goes as it is.
    ///
    /// # Errors
    /// A question is left that nobody can answer any more.
    pub(super) fn answers(
        &self,
        sql: &[u8],
        traits: Traits,
        previous: bool,
    ) -> Result<Option<Vec<u8>>, Fault> {
        // While it holds locks its connection is its own, and others may look for it by the server's number.
        let locks = Pins::USER_LOCKS.union(Pins::LOCKED_TABLES);
        let asks_id = traits.contains(Traits::CONNECTION_ID)
            && !traits.contains(Traits::LOCK_FUNCTION)
            && !self.state.pins().any_of(locks);
        if !previous && !asks_id {
            return Ok(None);
        }

        let numbers = if previous {
            self.numbers
        } else {
            super::Numbers::default()
        };
        let answers = sql::Answers {
            row_count: numbers.row_count,
            found_rows: numbers.found_rows,
            // With more its connection would not have been given back.
            warnings: previous.then_some(match (&self.kept_warnings, self.warned) {
                (Some(_), Some(last)) => last.warnings,
                _ => 0,
            }),
            connection_id: asks_id.then_some(self.id),
        };
        let done = sql::answered(sql, &self.dialect(), &answers);
        if previous && done.is_open {
            return Err(Fault::LostPrevious);
        }
        Ok((done.count > 0).then_some(done.text))
    }
}

/// Whether a statement may look at LAST_INSERT_ID(): by itself, in a routine or in a trigger.
pub(super) fn looks_at_id(kind: Kind, traits: Traits) -> bool {
    let may = Traits::LAST_INSERT_ID | Traits::UNKNOWN_FUNCTION | Traits::CALL;
    traits.intersects(may)
        || matches!(
            kind,
            Kind::Write | Kind::Batch | Kind::Execute | Kind::Unknown
        )
}
