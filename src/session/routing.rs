//! From what a statement is to the connection that it runs on: the decision of `route`, in both readings of a text where it
//! has two, and what becomes of it when the group cannot follow.

use super::area::AreaStep;
use super::known::Conditions;
use super::{Ask, Cx, Fault, InsertId, Last, Link, Outputs, Role, Session};
use crate::config::{Causal, NoReplica, ReadFrom};
use crate::route::{self, Pins, Reason, Route, View};
use crate::sql::{self, Hint, Kind, Server, Statement, Traits};
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
        let asks = traits.contains(Traits::DIAGNOSTICS) && !traits.contains(Traits::MULTI);
        // Conditions of which only the connection knew; numbers may be known, and are looked for where the question is answered.
        let shows = kind == Kind::Show || traits.contains(Traits::AREA);
        if asks && shows && self.has_lost_conditions() {
            return Err(Fault::LostPrevious);
        }
        if self.insert_id == InsertId::Lost && traits.contains(Traits::LAST_INSERT_ID) {
            return Err(Fault::LostPrevious);
        }
        if route.role != Role::Replica {
            return Ok(());
        }
        let group = self.group(cx.snapshot);
        let follows = route.reason == Reason::Follows;
        // A question follows to where a replica was, which may be there no more.
        if !self.attempt.force_primary && (follows || !group.replicas.is_empty()) {
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
        route.role = Role::Primary;
        if !follows {
            route.reason = Reason::NoReplica;
        }
        Ok(())
    }

    /// There were warnings or errors to be shown, and they are gone with their connection.
    fn has_lost_conditions(&self) -> bool {
        self.kept.is_none() && self.warned.is_some_and(|last| last.lost && last.holds)
    }

    /// The connection that a question about previous statements is about, as [`crate::route::View::asked`] has it.
    fn last_asked(&self, kind: Kind, traits: Traits) -> Option<Last> {
        match kind {
            Kind::Show => self.warned,
            _ if traits.contains(Traits::AREA) => self.warned,
            _ if traits.contains(Traits::FOUND_ROWS) => self.last_rows,
            _ => self.last,
        }
    }

    /// A question whose text stays as it is can be asked only where the statements ran that it is about.
    ///
    /// # Errors
    /// It goes elsewhere.
    pub(super) fn check_follows(
        &self,
        route: Route,
        kind: Kind,
        traits: Traits,
    ) -> Result<(), Fault> {
        let asks = traits.contains(Traits::DIAGNOSTICS) && !traits.contains(Traits::MULTI);
        let last = self.last_asked(kind, traits).filter(|_| asks);
        match last {
            Some(last) if last.role != route.role => Err(Fault::PreviousElsewhere),
            Some(_) | None => Ok(()),
        }
    }

    /// What becomes of what a text asks about the statements before it. Where it goes elsewhere than they went, because it also
    /// needs what only the primary has, the answers are fetched and put into it.
    pub(super) fn answer_questions(
        &mut self,
        cx: &mut Cx<'_>,
        route: &mut Route,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> AreaStep {
        let (kind, traits) = (statement.kind, statement.traits);
        let mut asks = false;
        if traits.contains(Traits::DIAGNOSTICS) {
            let is_alone = !traits.contains(Traits::MULTI);
            let asked = self
                .last_asked(kind, traits)
                .filter(|_| is_alone)
                .map_or(route.role, |last| last.role);
            self.diary.has_counted |= traits.contains(Traits::FOUND_ROWS);
            asks = !self.follow_up(cx, asked, kind, traits, out);
            if is_alone && !asks && self.found_in_doubt(traits) && self.link(asked).is_ready() {
                self.ask_before_leaving(asked, out);
                return AreaStep::Waits;
            }
            asks |= is_alone && self.found_are_kept(asked, traits);
            if traits.contains(Traits::AREA) {
                // It sets variables.
                route.role = Role::Primary;
            }
            let others = is_alone && !asks && self.shows_others(asked);
            match self.ask_area(cx, (*route, asked), (sql, statement), (asks, others), out) {
                AreaStep::Forward => {}
                step => return step,
            }
            if kind == Kind::Show || traits.contains(Traits::AREA) {
                asks = false;
            } else if asked != route.role {
                if !asks && self.has_unasked(asked) {
                    self.ask_before_leaving(asked, out);
                    return AreaStep::Waits;
                }
                asks = true;
            } else if let Some(place) = self
                .counts_elsewhere(asked, sql)
                .filter(|_| is_alone && !asks)
            {
                self.ask_before_leaving(place, out);
                return AreaStep::Waits;
            } else if !asks && (others || self.kept.is_some() || self.last.is_none()) {
                // The rest is the connection's to say.
                let knows = is_alone && (others || self.kept.is_some());
                let counts = sql::Answers {
                    row_count: self.numbers.row_count.filter(|_| self.last.is_none()),
                    warnings: knows.then(|| self.count_conditions(false)),
                    errors: knows.then(|| self.count_conditions(true)),
                    connection_id: self.told_id(traits),
                    ..sql::Answers::default()
                };
                let done = sql::answered(sql, &self.dialect(), &counts);
                if done.count > 0 {
                    return AreaStep::Text(done.text);
                }
            }
        }
        match self.answers(sql, traits, asks) {
            Ok(None) => AreaStep::Forward,
            Ok(Some(text)) => AreaStep::Text(text),
            Err(fault) => AreaStep::Refuse(fault),
        }
    }

    /// How many warnings and errors are kept, or errors only.
    fn count_conditions(&self, errors: bool) -> u16 {
        self.kept.as_ref().map_or(0, |area| area.count(errors))
    }

    /// The text asks how many conditions there are, and those that MariaDB would have kept are on the other connection than the one
    /// that ran the last statement, and had none to add.
    fn counts_elsewhere(&self, asked: Role, sql: &[u8]) -> Option<Role> {
        let place = asked.other();
        let is_there = |last: &Last| last.holds && !last.lost && last.role == place;
        self.warned.filter(is_there)?;
        let counts = sql::Answers {
            warnings: Some(0),
            errors: Some(0),
            ..sql::Answers::default()
        };
        let asks = sql::answered(sql, &self.dialect(), &counts).count > 0;
        (asks && self.link(place).is_ready()).then_some(place)
    }

    /// Whether the connection may show conditions that are not the session's, which has none.
    pub(super) fn shows_others(&self, role: Role) -> bool {
        let has_others = self
            .link(role)
            .known()
            .is_some_and(|known| known.conditions == Conditions::Others);
        has_others && self.server == Server::MariaDb && !self.warned.is_some_and(|last| last.holds)
    }

    /// Whether the connection has answers that the session does not.
    pub(super) fn has_unasked(&self, role: Role) -> bool {
        let serial = self.link(role).known().map(|known| known.serial);
        let holds =
            |last: Option<Last>| last.is_some_and(|last| last.holds && Some(last.serial) == serial);
        holds(self.warned) || holds(self.last_rows)
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
        let last = self.last_asked(kind, traits);
        let is_lost = last.is_some_and(|last| last.lost);
        if !self.shares && !self.has_moved && self.kept.is_none() && !is_lost {
            return true;
        }
        let Some(last) = last.filter(|last| last.role == role) else {
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

    /// What a text that asks for the connection's id is told.
    fn told_id(&self, traits: Traits) -> Option<u32> {
        // While it holds locks its connection is its own, and others may look for it by the server's number.
        let locks = Pins::USER_LOCKS.union(Pins::LOCKED_TABLES);
        let asks_id = traits.contains(Traits::CONNECTION_ID)
            && !traits.contains(Traits::LOCK_FUNCTION)
            && !self.state.pins().any_of(locks);
        asks_id.then_some(self.id)
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
        let connection_id = self.told_id(traits);
        if !previous && connection_id.is_none() {
            return Ok(None);
        }
        let numbers = if previous {
            self.numbers.clone()
        } else {
            super::Numbers::default()
        };
        let knows = previous && !self.has_lost_conditions();
        let answers = sql::Answers {
            row_count: numbers.row_count,
            found_rows: numbers.found_rows.number(),
            // With more its connection would not have been given back.
            warnings: knows.then(|| self.count_conditions(false)),
            errors: knows.then(|| self.count_conditions(true)),
            connection_id,
        };
        let done = sql::answered(sql, &self.dialect(), &answers);
        if previous && done.is_open {
            let is_lost = numbers.found_rows.number().is_some()
                || self.last.is_some_and(|last| last.lost)
                || !traits.contains(Traits::FOUND_ROWS);
            return Err(if is_lost {
                Fault::LostPrevious
            } else {
                Fault::FoundRowsInDoubt
            });
        }
        Ok((done.count > 0).then_some(done.text))
    }
}

/// Where an execution goes that asks about the statement before; its text stays as it is, so that only what it reads beside that can
/// keep it on the primary.
pub(super) fn follow_unread(
    sql: &[u8],
    dialect: &sql::Dialect,
    (kind, traits): (Kind, Traits),
    view: View,
) -> Route {
    let reads_more = memchr::memchr(b'@', sql).is_some() || sql::uses_tables(sql, dialect, kind);
    let view = if reads_more { view } else { view.of_nothing() };
    route::follow(kind, traits, &view)
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
