//! Prepared statements that name sharded tables: which shard an execution needs, by its parameters.
//!
//! Such a statement is prepared by the text of some shard. An execution puts the text of its own shard in that place, which is then
//! prepared there as the text of any other statement is.

use std::sync::Arc;

use super::departure::Front;
use super::logical::{Given, Logical};
use super::params;
use super::rebind::Values;
use super::texts::Text;
use super::{Cx, Fault, Outputs, Session};
use crate::shard::{Asked, Dress, Leg, Numbers, Plan, Point, Refused, Scalar};
use crate::sql::{Dialect, Kind, Statement, Traits};
use crate::wire::{Capabilities, Execute};

/// Where a statement is prepared.
#[derive(Debug)]
pub(super) struct Whereto {
    pub(super) leg: Option<Leg>,
    pub(super) logical: Option<Box<Logical>>,
}

impl Session {
    /// Has the session where a text is to be prepared; nothing while that is under way.
    ///
    /// # Errors
    /// It cannot be run, or the session cannot leave the group that it is in.
    pub(super) fn prepare_where(
        &mut self,
        cx: &Cx<'_>,
        sql: &[u8],
        whole: bool,
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> Result<Option<Whereto>, Fault> {
        let nowhere = Whereto {
            leg: None,
            logical: None,
        };
        if self.diary.is_leg || cx.snapshot.placement.is_none() && self.moved_to.is_none() {
            return Ok(Some(nowhere));
        }
        if !whole {
            self.check_head(cx, sql)?;
            self.look_out(cx, sql);
            return Ok(self.go_home(cx, out)?.then_some(nowhere));
        }
        match self.read_named(cx, sql, statement.kind)? {
            None => {
                let (kind, traits) = (statement.kind, statement.traits);
                Ok(self.go_for(cx, sql, kind, traits, out)?.then_some(nowhere))
            }
            Some((leg, logical)) => Ok(self.go_to(cx, leg.group, out)?.then(|| Whereto {
                leg: Some(leg),
                logical: Some(Box::new(logical)),
            })),
        }
    }

    pub(super) fn read_named(
        &self,
        cx: &Cx<'_>,
        sql: &[u8],
        kind: Kind,
    ) -> Result<Option<(Leg, Logical)>, Fault> {
        let dialect = self.dialect();
        let Some(placement) = self.named_by(cx, sql, kind, &dialect)? else {
            return Ok(None);
        };
        let schema = self.state.schema();
        let shape = placement
            .read(sql, &dialect, schema)
            .map_err(Fault::Sharded)?;
        let Some(shape) = shape else {
            return Ok(None);
        };
        let asked = Asked {
            here: self.group_index(cx.snapshot),
            ..Asked::of(sql, &dialect, self.account(cx.snapshot).group)
        };
        let leg = placement.any_leg(&shape, asked).map_err(Fault::Sharded)?;
        let logical = Logical {
            sql: sql.into(),
            dialect,
            schema: schema.map(Into::into),
            placement: placement.clone(),
            point: Point::new(placement, &shape),
            shape,
            of_shards: Vec::new(),
            ready: Vec::new(),
        };
        Ok(Some((leg, logical)))
    }

    /// Has the session where an execution runs, and the statement's text be that of its shard.
    ///
    /// # Errors
    /// As for [`Self::prepare_where`].
    pub(super) fn execute_where(
        &mut self,
        cx: &mut Cx<'_>,
        id: u32,
        front: &Front<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if self.diary.is_leg || cx.snapshot.placement.is_none() && self.moved_to.is_none() {
            return Ok(true);
        }
        if self.series.is_some() {
            return Ok(true);
        }
        self.dress = None;
        let home = self.account(cx.snapshot).group;
        let here = self.group_index(cx.snapshot);
        let ids = self
            .attempt
            .ids
            .map_or(Numbers::None, |first| Numbers::Bound(first.get()));
        let capabilities = self.capabilities;
        let is_listed = self.is_allowed();
        let dialect = self.dialect();
        let Some(statement) = self.statements.get_mut(id) else {
            return Ok(true);
        };
        if statement.lost_data.is_some() {
            return Ok(true);
        }
        let Some(logical) = &mut statement.logical else {
            still_unsharded(cx, statement, &dialect)?;
            let (kind, traits) = (statement.kind, statement.traits);
            let text = statement.text.clone();
            let sql = text.as_ref().map_or(&b""[..], |text| &text.sql);
            let is_there = self.go_for(cx, sql, kind, traits, out)?;
            if is_there {
                self.begun = Box::default();
                self.dress_for(cx, None, kind, traits);
            }
            return Ok(is_there);
        };
        if !front.is_whole() {
            return Err(Fault::Sharded(Refused::LONG));
        }
        let Some(placement) = &cx.snapshot.placement else {
            return Err(Fault::Sharded(Refused::GONE));
        };
        if !Arc::ptr_eq(&logical.placement, placement) {
            let schema = logical.schema.as_deref();
            let shape = placement
                .read(&logical.sql, &logical.dialect, schema)
                .map_err(Fault::Sharded)?;
            logical.shape = shape.ok_or(Fault::Sharded(Refused::GONE))?;
            logical.placement = placement.clone();
            logical.point = Point::new(placement, &logical.shape);
            logical.ready.clear();
        }
        let payload = front.payload();
        let execute = Execute::parse(payload, statement.params, capabilities).ok();
        let has_names = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
        let kinds = execute.as_ref().and_then(|execute| match &execute.types {
            Some(range) => payload.get(range.clone()),
            None => statement.types.as_deref(),
        });
        let key = execute.as_ref().zip(kinds).zip(
            logical
                .point
                .as_ref()
                .filter(|point| !point.is_stored() || self.state.is_strict() == Some(true)),
        );
        let key = key.and_then(|((execute, kinds), point)| {
            params::value_of(payload, execute, kinds, has_names, point.param())
        });
        if let Some((there, text)) = key.and_then(|key| logical.ready(&key, cx.texts.era())) {
            let (group, dress, text) = (there.group, there.dress.clone(), text.clone());
            return self.execute_there(cx, id, (group, dress, text), out);
        }
        let bound = execute
            .as_ref()
            .zip(kinds)
            .and_then(|(execute, kinds)| params::values(payload, execute, kinds, has_names));
        let bound: Vec<Scalar> = bound.unwrap_or_default();
        if logical.shape.rows.is_some() {
            cx.texts.columns.expire(cx.now);
        }
        let asked = Asked {
            is_listed,
            is_lax: self.state.is_strict() != Some(true),
            columns: Some(&cx.texts.columns),
            here,
            params: &bound,
            numbers: ids,
            ..Asked::of(&logical.sql, &logical.dialect, home)
        };
        let placement = placement.clone();
        let with_columns;
        let mut shape = &logical.shape;
        if shape.is_unlisted() {
            let schema = logical.schema.as_deref();
            with_columns = placement
                .read_with(&logical.sql, &logical.dialect, schema, &cx.texts.columns)
                .map_err(Fault::Sharded)?;
            shape = with_columns.as_ref().unwrap_or(shape);
        }
        let plan = placement.plan(shape, asked);
        if let Plan::Columns(table) = plan {
            return self.ask_columns(cx, table, out).map(|()| false);
        }
        if let Plan::Ids { count, group } = plan {
            self.take_ids(cx, count, group)?;
            return self.execute_where(cx, id, front, out);
        }
        let plan = match plan {
            // Its parameters are not those of the client's packet.
            Plan::One(leg) if leg.params.is_some() => Plan::Parts(vec![leg]),
            plan => plan,
        };
        let is_in_parts = matches!(
            plan,
            Plan::Parts(_) | Plan::Across(_) | Plan::Everywhere(_) | Plan::Each(_)
        );
        if is_in_parts {
            let values = execute.as_ref().zip(kinds).and_then(|(execute, kinds)| {
                Values::new(payload, execute, kinds, statement.params, has_names)
            });
            let flags = execute.as_ref().map_or(0, |execute| execute.flags);
            let values = match values {
                Some(values) => values,
                None if statement.params == 0 => Values::none(flags, has_names),
                None => return Err(Fault::TypesUnknown),
            };
            let sql = logical.sql.clone();
            let told = execute.and_then(|execute| execute.types);
            if let Some(types) = told.and_then(|range| payload.get(range)) {
                statement.note_types(types);
            }
            let of = Statement {
                kind: statement.kind,
                traits: statement.traits,
                hint: None,
            };
            match plan {
                Plan::Each(parts) => self.begin_definitions(cx, parts, &of)?,
                Plan::Parts(parts) => {
                    self.begin_series(parts, &of)?;
                    self.bind_series(id, &sql, values);
                }
                Plan::Across(parts) => {
                    self.execute_across(cx, parts, false, (&sql, &of, values), out)?
                }
                Plan::Everywhere(parts) => {
                    self.execute_across(cx, parts, true, (&sql, &of, values), out)?;
                }
                _ => {}
            }
            return Ok(true);
        }
        let leg = match plan {
            Plan::Scatter { legs, limit } if self.may_fan_out() => {
                self.execute_spread(cx, id, front, (legs, limit), out)?;
                return Ok(true);
            }
            plan => self.one(plan)?,
        };
        if !self.go_to(cx, leg.group, out)? {
            return Ok(false);
        }
        if !self.is_to_begin {
            self.begun = Box::default();
        }
        self.dress_for(cx, Some(&leg), Kind::Unknown, Traits::NONE);
        if let Some(statement) = self.statements.get_mut(id)
            && let (Some(logical), Some(now)) = (&mut statement.logical, &mut statement.text)
        {
            let text = leg.text.as_deref().unwrap_or(&logical.sql);
            if *now.sql != *text {
                let of_shard = cx.texts.keep(text, &now.state);
                let before = std::mem::replace(now, of_shard);
                logical.keep(before, cx.texts.era());
            }
            let params = &bound;
            let given = Given { params, home, here };
            logical.learn((given, &leg), now, cx.texts.era());
        }
        Ok(true)
    }

    /// Has the session where an execution runs that is about one key, and the statement's text be this one.
    ///
    /// # Errors
    /// The session cannot leave the group that it is in.
    fn execute_there(
        &mut self,
        cx: &Cx<'_>,
        id: u32,
        (group, dress, text): (usize, Option<Arc<Dress>>, Arc<Text>),
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if !self.go_to(cx, group, out)? {
            return Ok(false);
        }
        if !self.is_to_begin {
            self.begun = Box::default();
        }
        self.wear_for_statement(dress);
        if let Some(statement) = self.statements.get_mut(id)
            && let (Some(logical), Some(now)) = (&mut statement.logical, &mut statement.text)
            && !Arc::ptr_eq(now, &text)
        {
            let before = std::mem::replace(now, text);
            let is_ready = |ready: &(usize, Arc<Text>)| Arc::ptr_eq(&ready.1, &before);
            if !logical.ready.iter().any(is_ready) {
                logical.keep(before, cx.texts.era());
            }
        }
        Ok(true)
    }

    /// Executes a write in several groups.
    ///
    /// # Errors
    /// It cannot be done.
    fn execute_across(
        &mut self,
        cx: &mut Cx<'_>,
        parts: Vec<Leg>,
        is_copied: bool,
        (sql, of, values): (&[u8], &Statement<'_>, Values),
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        self.begin_across(cx, parts, is_copied, sql, of)?;
        self.bind_across(values);
        let dialect = self.dialect();
        self.diary.begin(cx, sql, &dialect);
        self.begin_branches(cx, sql, of, out);
        Ok(())
    }

    /// Executes a statement on several shards, each of which prepares it first.
    ///
    /// # Errors
    /// It cannot be executed so.
    fn execute_spread(
        &mut self,
        cx: &mut Cx<'_>,
        id: u32,
        front: &Front<'_>,
        (legs, limit): (Vec<Leg>, Option<u64>),
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        let (capabilities, payload) = (self.capabilities, front.payload());
        let dialect = self.dialect();
        let Some(statement) = self.statements.get_mut(id) else {
            return Ok(());
        };
        let (Some(logical), Ok(parsed)) = (
            &statement.logical,
            Execute::parse(payload, statement.params, capabilities),
        ) else {
            return Err(Fault::MalformedCommand);
        };
        let sql = logical.sql.clone();
        if let Some(range) = &parsed.types {
            statement.note_types(payload.get(range.clone()).unwrap_or_default());
        }
        let execution = whole_execution(payload, &parsed, statement.types.as_deref());
        let execution = execution.ok_or(Fault::TypesUnknown)?;
        statement.cursor = false;
        super::scatter::check_read(statement.kind, statement.traits)?;
        self.spread(cx, legs, limit)?;
        self.diary.begin(cx, &sql, &dialect);
        self.last_route = None;
        self.execute_on_shards(cx, &sql, execution, out);
        Ok(())
    }

    /// By what it is known of a statement that is prepared now which tables it means.
    pub(super) fn meant(&self, cx: &Cx<'_>) -> (u64, Option<Box<[u8]>>) {
        (cx.snapshot.version, self.state.schema().map(Into::into))
    }

    /// Has the session where a prepared statement runs that must not name a sharded table.
    ///
    /// # Errors
    /// It does, or the session cannot leave the group that it is in.
    pub(super) fn unsharded_where(
        &mut self,
        cx: &Cx<'_>,
        id: u32,
        refused: Refused,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if self.diary.is_leg || cx.snapshot.placement.is_none() && self.moved_to.is_none() {
            return Ok(true);
        }
        let dialect = self.dialect();
        match self.statements.get_mut(id) {
            Some(statement) if statement.logical.is_some() => {
                return Err(Fault::Sharded(refused));
            }
            Some(statement) => still_unsharded(cx, statement, &dialect)?,
            None => {}
        }
        self.go_home(cx, out)
    }
}

/// A statement that named no sharded table when it was prepared names none by what is in force now, as far as its text tells.
///
/// # Errors
/// It may.
fn still_unsharded(
    cx: &Cx<'_>,
    statement: &mut super::stmt::Prepared,
    dialect: &Dialect,
) -> Result<(), Fault> {
    let version = cx.snapshot.version;
    let (by, schema) = &statement.unsharded;
    if *by == version {
        return Ok(());
    }
    let text = statement.sent();
    if let Some(placement) = &cx.snapshot.placement
        && placement.words().occur_in(text)
        && placement.is_mentioned(text, dialect, schema.as_deref())
    {
        return Err(Fault::Sharded(Refused::NEW));
    }
    statement.unsharded.0 = version;
    Ok(())
}

/// An execution as the first of a connection: of the statement with number 1, the types of its parameters told, and without a cursor,
/// in place of which a server may answer with the rows at once. `None` when the types are not known.
fn whole_execution(payload: &[u8], parsed: &Execute, types: Option<&[u8]>) -> Option<Vec<u8>> {
    const ID: std::ops::Range<usize> = 1..5;
    const FLAGS: usize = 5;
    let mut whole = match (&parsed.types, parsed.type_flag_at) {
        (None, Some(at)) => {
            let mut whole = payload.get(..at)?.to_vec();
            whole.push(1);
            whole.extend_from_slice(types?);
            whole.extend_from_slice(payload.get(parsed.values_at..)?);
            whole
        }
        _ => payload.to_vec(),
    };
    whole.get_mut(ID)?.copy_from_slice(&1_u32.to_le_bytes());
    *whole.get_mut(FLAGS)? &= Execute::PARAMETER_COUNT_AVAILABLE;
    Some(whole)
}

/// Whether a text of the kind may have a server prepare or execute another, which is not seen as one.
pub(super) fn may_prepare(kind: Kind) -> bool {
    matches!(kind, Kind::Prepare | Kind::Execute | Kind::Batch)
}
