//! Statements that name sharded tables: whether one does, what becomes of it, and the group where it runs.
//!
//! A session's connections are in one group at a time. It goes to another by giving them back, which costs nothing where nothing ties
//! them to it; a transaction that has done something, temporary tables, locks keep it where it is.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use super::hold::Hold;
use super::sharded_stmt::may_prepare;
use super::{Cx, Fault, Link, Output, Outputs, Parting, Role, Session};
use crate::route::Pins;
use crate::shard::{Asked, Leg, Lookout, Numbers, Placement, Plan, Refused};
use crate::sql::{self, Dialect, Kind, Statement, Traits};
use crate::wire::Status;

/// The name of a schema in a group.
pub(super) fn there<'n>(
    placement: Option<&'n Placement>,
    group: Option<usize>,
    name: &'n [u8],
) -> &'n [u8] {
    match (placement, group, std::str::from_utf8(name)) {
        (Some(placement), Some(group), Ok(name)) => placement.schema_on(group, name).as_bytes(),
        _ => name,
    }
}

impl Session {
    /// What becomes of a text that names a sharded table; nothing for any other. `is_listed`: a rule lets it pass.
    pub(super) fn plan(
        &self,
        cx: &Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        is_listed: bool,
    ) -> Option<Plan> {
        let placement = cx.snapshot.placement.as_ref()?;
        if !placement.words().occur_in(sql) && !may_prepare(statement.kind) {
            return None;
        }
        let d = self.dialect();
        match self.named_by(cx, sql, statement.kind, &d) {
            Ok(None) => None,
            Err(Fault::Sharded(refused)) => Some(Plan::Refuse(refused)),
            Err(_) => None,
            Ok(Some(placement)) => {
                let asked = self.asked(cx, sql, &d, is_listed);
                placement.plan_text_with(asked, self.state.schema(), &cx.texts.columns)
            }
        }
    }

    /// Whether a text is to be looked at for names of sharded tables: its bytes tell, or it may have a server prepare another.
    #[inline(never)]
    pub(super) fn may_name(&self, cx: &Cx<'_>, sql: &[u8], kind: Kind) -> bool {
        let placement = cx.snapshot.placement.as_ref();
        let is_named = |of: &Arc<Placement>| of.words().occur_in(sql) || may_prepare(kind);
        !self.diary.is_leg && placement.is_some_and(is_named)
    }

    /// The same for a text that is to be run and may name one: what comes again is not parsed again.
    fn plan_again(&self, cx: &mut Cx<'_>, sql: &[u8], statement: &Statement<'_>) -> Option<Plan> {
        let is_listed = self.is_allowed();
        let placement = cx.snapshot.placement.as_ref()?;
        if !matches!(statement.kind, Kind::Read | Kind::Write) || self.state.is_schema_unknown() {
            return self.plan(cx, sql, statement, is_listed);
        }
        let d = self.dialect();
        // It is not known whether `"x"` is a name or a string.
        if self.state.ansi_quotes().is_none() && sql.contains(&b'"') {
            return self.plan(cx, sql, statement, is_listed);
        }
        let asked = self.asked(cx, sql, &d, is_listed);
        let texts = &mut *cx.texts;
        let schema = self.state.schema();
        texts.shapes.plan(placement, asked, schema, &texts.columns)
    }

    fn asked<'a>(&self, cx: &Cx<'_>, text: &'a [u8], d: &'a Dialect, is_listed: bool) -> Asked<'a> {
        Asked {
            is_listed,
            is_lax: self.state.is_strict() != Some(true),
            columns: None,
            text,
            d,
            home: self.account(cx.snapshot).group,
            here: self.group_index(cx.snapshot),
            params: &[],
            numbers: self
                .attempt
                .ids
                .map_or(Numbers::None, |first| Numbers::Written(first.get())),
        }
    }

    /// The map by which a text is to be read; nothing if it names none of its tables.
    ///
    /// # Errors
    /// It may name one, and it is not known how it is to be read.
    pub(super) fn named_by<'c>(
        &self,
        cx: &Cx<'c>,
        sql: &[u8],
        kind: Kind,
        d: &Dialect,
    ) -> Result<Option<&'c Arc<Placement>>, Fault> {
        let Some(placement) = cx
            .snapshot
            .placement
            .as_ref()
            .filter(|_| !self.diary.is_leg)
        else {
            return Ok(None);
        };
        if may_prepare(kind) {
            let schema = self.state.schema();
            let schema = schema.filter(|_| !self.state.is_schema_unknown());
            if placement.may_be_prepared(&sql::prepared_texts(sql, d), d, schema) {
                return Err(Fault::Sharded(Refused::PREPARE));
            }
        }
        if !placement.words().occur_in(sql) {
            return Ok(None);
        }
        if matches!(kind, Kind::Prepare | Kind::Execute) {
            return Err(Fault::Sharded(Refused::PREPARE));
        }
        if self.state.is_schema_unknown() {
            let schemas = placement.tables.iter().map(|table| table.schema.as_bytes());
            let mut schemas = schemas.chain(placement.globals.iter().map(|g| g.0.as_bytes()));
            return if schemas.any(|schema| placement.is_mentioned(sql, d, Some(schema))) {
                Err(Fault::Sharded(Refused::SCHEMA))
            } else {
                Ok(None)
            };
        }
        if !placement.is_mentioned(sql, d, self.state.schema()) {
            return Ok(None);
        }
        // It is not known whether `"x"` is a name or a string: both must be read alike.
        if self.state.ansi_quotes().is_none() && sql.contains(&b'"') {
            return Err(Fault::Sharded(Refused::QUOTES));
        }
        Ok(Some(placement))
    }

    /// The head of a text too long to be looked at whole names a sharded table.
    pub(super) fn check_head(&self, cx: &Cx<'_>, head: &[u8]) -> Result<(), Fault> {
        match &cx.snapshot.placement {
            Some(placement) if placement.words().occur_in(head) && !self.diary.is_leg => {
                let d = self.dialect();
                let is_mentioned = self.state.is_schema_unknown()
                    || placement.is_mentioned(head, &d, self.state.schema());
                if is_mentioned {
                    Err(Fault::Sharded(Refused::LONG))
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// Looks for names of sharded tables in what comes behind the head of a text that is too long to be looked at whole.
    pub(super) fn look_out(&mut self, cx: &Cx<'_>, head: &[u8]) {
        let quotes = self.state.ansi_quotes();
        let placement = cx.snapshot.placement.as_ref();
        self.lookout = placement.map(|placement| {
            let mut lookout = Lookout::new(placement, &self.dialect(), quotes);
            // The head has been looked at more closely.
            lookout.sees(head);
            Box::new(lookout)
        });
    }

    /// The one shard that a text needs, which may name a sharded table; nothing for one that names none, and for one that several shards are asked.
    ///
    /// # Errors
    /// It is not run.
    pub(super) fn leg(
        &mut self,
        cx: &mut Cx<'_>,
        (sql, may_name): (&[u8], bool),
        statement: &Statement<'_>,
    ) -> Result<Option<Leg>, Fault> {
        self.unlisted = None;
        if !may_name || self.scatter.is_some() || self.series.is_some() {
            return Ok(None);
        }
        cx.texts.columns.expire(cx.now);
        let mut plan = self.plan_again(cx, sql, statement);
        if let Some(Plan::Ids { count, group }) = plan {
            self.take_ids(cx, count, group)?;
            plan = self.plan_again(cx, sql, statement);
        }
        match plan {
            None => Ok(None),
            Some(Plan::Scatter { legs, limit }) => {
                self.begin_scatter(cx, legs, limit, statement)?;
                Ok(None)
            }
            Some(Plan::Parts(parts)) => {
                self.begin_series(parts, statement)?;
                Ok(None)
            }
            Some(Plan::Across(parts)) => {
                self.begin_across(cx, parts, false, sql, statement)?;
                Ok(None)
            }
            Some(Plan::Everywhere(parts)) => {
                self.begin_across(cx, parts, true, sql, statement)?;
                Ok(None)
            }
            Some(Plan::Each(parts)) => {
                self.begin_definitions(cx, parts, statement)?;
                Ok(None)
            }
            Some(Plan::Columns(table)) if !statement.traits.contains(Traits::DIAGNOSTICS) => {
                // Counted from 1.
                self.unlisted = u32::try_from(table + 1).ok().and_then(NonZeroU32::new);
                Ok(None)
            }
            Some(plan) => self.one(plan).map(Some),
        }
    }

    pub(super) fn one(&self, plan: Plan) -> Result<Leg, Fault> {
        match plan {
            Plan::One(leg) => Ok(leg),
            Plan::Refuse(refused) => Err(Fault::Sharded(refused)),
            Plan::Scatter { .. } if self.is_in_transaction() => Err(Fault::OtherGroupInTransaction),
            Plan::Scatter { .. } => Err(Fault::Sharded(Refused::SEVERAL)),
            Plan::Across(_) | Plan::Everywhere(_) if self.is_in_transaction() => {
                Err(Fault::OtherGroupInTransaction)
            }
            Plan::Parts(_) | Plan::Across(_) | Plan::Everywhere(_) | Plan::Each(_) => {
                Err(Fault::Sharded(Refused::PARTS))
            }
            Plan::Columns(_) => Err(Fault::Sharded(Refused::UNLISTED)),
            Plan::Ids { .. } => Err(Fault::Sharded(Refused::IDS)),
        }
    }

    /// Generates keys for the command at the front, which has them until it is over, however often it is looked at.
    ///
    /// # Errors
    /// None can be generated.
    pub(super) fn take_ids(
        &mut self,
        cx: &mut Cx<'_>,
        count: usize,
        group: usize,
    ) -> Result<(), Fault> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let first = cx.lender.ids(count, group).map_err(Fault::Sharded)?;
        self.attempt.ids = NonZeroU64::new(first);
        Ok(())
    }

    /// Whether the command at the front needs more than to be sent to one place.
    pub(super) fn is_in_pieces(&self) -> bool {
        self.legs.is_some()
            || self.scatter.is_some()
            || self.series.is_some()
            || self.unlisted.is_some()
    }

    /// Does the next of what it needs; true when the client has its answer.
    ///
    /// # Errors
    /// It cannot be done.
    pub(super) fn piece(
        &mut self,
        cx: &mut Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if let Some(table) = self.unlisted.take() {
            let table = usize::try_from(table.get() - 1).unwrap_or(usize::MAX);
            return self.ask_columns(cx, table, out).map(|()| false);
        }
        if self.across().is_some() {
            self.begin_branches(cx, sql, statement, out);
            return Ok(true);
        }
        if self.series.is_some() {
            return self.series_on(cx, sql, statement, out);
        }
        self.scatter_on(cx, sql, statement, out)
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.status.contains(Status::IN_TRANS)
            || self.is_to_begin
            || !self.status.contains(Status::AUTOCOMMIT)
    }

    /// Has the session in the group where a text runs. False when that is under way: the command is looked at again.
    ///
    /// # Errors
    /// It cannot leave the group that it is in.
    pub(super) fn go_where(
        &mut self,
        cx: &Cx<'_>,
        leg: Option<&Leg>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if cx.snapshot.placement.is_none() && self.moved_to.is_none() {
            return Ok(true);
        }
        let (kind, traits) = (statement.kind, statement.traits);
        let is_there = match leg {
            Some(leg) => self.go_to(cx, leg.group, out)?,
            None => self.go_for(cx, sql, kind, traits, out)?,
        };
        if is_there {
            self.note_begin(sql, kind, traits, leg.is_some());
        }
        Ok(is_there)
    }

    /// The same for a text that names no sharded table.
    pub(super) fn go_for(
        &mut self,
        cx: &Cx<'_>,
        sql: &[u8],
        kind: Kind,
        traits: Traits,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if self.moved_to.is_none() || self.diary.is_leg {
            return Ok(true);
        }
        // What names no table can run anywhere, and some of it must run where the statement before did.
        let asks = traits.intersects(Traits::DIAGNOSTICS | Traits::LAST_INSERT_ID);
        let has_connection = Role::BOTH.iter().any(|role| !self.link(*role).is_absent());
        let may_stay = asks || has_connection || self.is_to_begin;
        if !may_stay || !self.runs_anywhere(sql, kind, traits) {
            return self.go_home(cx, out);
        }
        Ok(true)
    }

    /// Whether a text means the same in every group: it is known to name no table.
    fn runs_anywhere(&self, sql: &[u8], kind: Kind, traits: Traits) -> bool {
        match kind {
            Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Xa
            | Kind::Empty
            | Kind::Kill => true,
            Kind::Show => traits.contains(Traits::DIAGNOSTICS),
            Kind::Read | Kind::Set => {
                let schema = self.state.schema().unwrap_or_default();
                let is_renamed = self.schema_there(schema) != schema;
                let is_odd = traits
                    .intersects(Traits::UNKNOWN_FUNCTION | Traits::MULTI | Traits::SEQUENCE)
                    || is_renamed && sql::asks_schema(sql, &self.dialect());
                !is_odd && !sql::uses_tables(sql, &self.dialect(), kind)
            }
            _ => false,
        }
    }

    /// Has the session in the account's own group.
    ///
    /// # Errors
    /// As for [`Self::go_where`].
    pub(super) fn go_home(&mut self, cx: &Cx<'_>, out: &mut Outputs) -> Result<bool, Fault> {
        if self.moved_to.is_none() || self.diary.is_leg {
            return Ok(true);
        }
        self.go_to(cx, self.account(cx.snapshot).group, out)
    }

    /// Has the session in this group.
    pub(super) fn go_to(
        &mut self,
        cx: &Cx<'_>,
        group: usize,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if self.group_index(cx.snapshot) == group {
            return Ok(true);
        }
        for role in Role::BOTH {
            if !self.link(role).is_ready() {
                continue;
            }
            match self.hold(role) {
                Hold::Free => {}
                Hold::OnCall => {
                    self.ask_before_leaving(role, out);
                    return Ok(false);
                }
                Hold::Held => {
                    self.leave_transaction(cx, role, group, out)?;
                    return Ok(false);
                }
            }
        }
        for role in Role::BOTH {
            if self.shares {
                self.release(role, out);
            } else if self.link(role).is_ready() {
                *self.link_mut(role) = Link::Absent;
                out.push(Output::CloseBackend {
                    role,
                    parting: Parting::Quit,
                });
            }
        }
        let home = self.account(cx.snapshot).group;
        self.moved_to = Some(group).filter(|group| *group != home);
        self.moved_by = self.moved_to.and_then(|_| cx.snapshot.placement.clone());
        self.has_moved = true;
        Ok(true)
    }

    /// The name of a schema in the group where the session's connections are.
    pub(super) fn schema_there<'n>(&'n self, name: &'n [u8]) -> &'n [u8] {
        there(self.moved_by.as_deref(), self.moved_to, name)
    }

    /// A connection is held. A transaction in which nothing was done yet is ended, to be begun in the other group.
    fn leave_transaction(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        group: usize,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        let pins = self.state.pins();
        let is_in = role == Role::Primary && self.status.contains(Status::IN_TRANS);
        if is_in && (self.begun.is_empty() || pins.bind_connection()) {
            return Err(Fault::OtherGroupInTransaction);
        }
        if is_in {
            self.end_untouched(role, out);
            return Ok(());
        }
        let name = |group: usize| {
            let group = cx.snapshot.groups.get(group);
            group.map_or_else(String::new, |group| group.name.clone())
        };
        Err(Fault::Tied {
            held: if pins.bind_connection() {
                pins.as_str()
            } else {
                "a prepared statement's data or warnings"
            },
            group: name(self.group_index(cx.snapshot)),
            asked: name(group),
        })
    }

    /// Notes whether anything is done in the transaction that a statement begins or is in.
    fn note_begin(&mut self, sql: &[u8], kind: Kind, traits: Traits, names_sharded: bool) {
        match kind {
            Kind::Begin => {
                self.is_to_begin = false;
                self.begun = Box::default();
                // SET TRANSACTION was for this one only.
                if !self.state.pins().any_of(Pins::ONE_SHOT) && !traits.contains(Traits::MULTI) {
                    self.begun = sql.into();
                }
            }
            Kind::Commit | Kind::Rollback => {
                self.is_to_begin = false;
                self.begun = Box::default();
            }
            _ if self.begun.is_empty() || self.is_to_begin => {}
            Kind::Set | Kind::Show | Kind::Read | Kind::Empty
                if !names_sharded && self.runs_anywhere(sql, kind, traits) => {}
            _ => self.begun = Box::default(),
        }
    }

    /// The name in a COM_FIELD_LIST.
    pub(super) fn check_table(&self, cx: &Cx<'_>, payload: &[u8]) -> Result<(), Fault> {
        let name = payload.split(|b| *b == 0).next().unwrap_or_default();
        let is_sharded = cx.snapshot.placement.as_ref().is_some_and(|placement| {
            let schema = self.state.schema().unwrap_or_default();
            placement.table(schema, name).is_some()
        });
        if is_sharded {
            Err(Fault::Sharded(Refused::FIELDS))
        } else {
            Ok(())
        }
    }
}
