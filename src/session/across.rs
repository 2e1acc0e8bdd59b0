//! A write whose rows are in several groups: a transaction over all of them (XA), so that all of it is done or nothing, whoever dies.
//!
//! Each group has a leg, see `legs`, which does its parts in a branch of the transaction. The groups are asked one after the other, always
//! in the same order, so that no two such writes wait for each other's connections or rows in a circle. When all have done their parts all
//! prepare; then the decision is written down, which is control's business; then all commit. Whatever goes wrong before the decision
//! undoes all; what goes wrong after it is finished by control, to which the decision is known. A write to tables that every group has is
//! the same in each.

mod branches;
mod heard;
#[cfg(test)]
mod tests;

pub(super) use branches::Across;
use branches::Bound;

use std::sync::Arc;

use super::legs::{Heed, Legs, leg_capabilities};
use super::rebind::Values;
use super::scatter::ONE_SERVER;
use super::series::total::{Total, ignores};
use super::{Attempt, Cx, Fault, InsertId, Output, Outputs, Role, Session, unlisted};
use crate::shard::{Dress, Leg, Refused, Xid};
use crate::snapshot::Snapshot;
use crate::sql::{Kind, Statement, Traits};

/// Whether a decision was written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was: the transaction is to be done.
    Yes,
    /// It was not: it is to be undone.
    No,
    /// Nobody knows before the log is read again.
    Unknown,
}

/// What others are to be told of a transaction over several groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It begins.
    Begin,
    /// Everything is prepared: it is to be written down that it is to be done; answered by [`Session::on_decided`].
    Decide,
    /// The session is done with it; whether all its parts are known to be over.
    Over {
        /// They are.
        is_clean: bool,
    },
}

impl Session {
    /// Takes up a write in parts of several groups.
    ///
    /// # Errors
    /// It cannot be done.
    pub(super) fn begin_across(
        &mut self,
        cx: &mut Cx<'_>,
        parts: Vec<Leg>,
        is_copied: bool,
        sql: &[u8],
        statement: &Statement<'_>,
    ) -> Result<(), Fault> {
        if self.is_in_transaction() {
            return Err(Fault::OtherGroupInTransaction);
        }
        let is_whole = statement.kind == Kind::Write
            && !statement
                .traits
                .intersects(ONE_SERVER.without(Traits::INTO | Traits::EFFECTS));
        if !is_whole || !self.may_fan_out() {
            return Err(Fault::Sharded(Refused::ACROSS));
        }
        let texts = parts.iter().filter_map(|leg| leg.text.as_ref());
        let size: usize = texts.map(Vec::len).sum();
        let max = cx.snapshot.config.sharding.merge_bytes_max;
        if u64::try_from(size).unwrap_or(u64::MAX) > max {
            return Err(Fault::Sharded(Refused::TOO_BIG));
        }
        let Some(run) = cx.texts.run() else {
            return Err(Fault::Sharded(Refused::NO_LOG));
        };
        let total = Total {
            ignores: ignores(sql, &self.dialect()),
            ..Total::default()
        };
        let capabilities = leg_capabilities(self.capabilities);
        let xid = Xid::new(run, (cx.nonce)());
        self.note_groups(&parts);
        let mut across = Across::new(xid, parts, sql, total, is_copied, capabilities);
        let placement = cx.snapshot.placement.clone();
        across.read_by = placement.map(|placement| Box::new((placement, self.dialect())));
        self.legs = Some(Box::new(Legs::Write(across)));
        Ok(())
    }

    /// What begins is an execution of a prepared statement, with these parameters.
    pub(super) fn bind_across(&mut self, values: Values) {
        if let Some(across) = self.across_mut() {
            across.bound = Some(Bound(values));
        }
    }

    /// Begins the first branch.
    pub(super) fn begin_branches(
        &mut self,
        cx: &Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) {
        let capabilities = leg_capabilities(self.capabilities);
        self.last_route = Some((Role::Primary, self.decide(cx, sql, statement).reason));
        if let Some(across) = self.across_mut() {
            across.begin(capabilities, out);
        }
        self.start_clock(out);
    }

    /// The transaction is not to go on: what runs of it is heard first.
    pub(super) fn end_across(&mut self, cx: &mut Cx<'_>, fault: Fault, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        if let Some(across) = self.across_mut() {
            across.fail(fault, usize::MAX, capabilities, out);
        }
        self.end_across_if_over(cx, out);
    }

    fn across_mut(&mut self) -> Option<&mut Across> {
        match self.legs.as_deref_mut() {
            Some(Legs::Write(across)) => Some(across),
            Some(Legs::Read(_)) | None => None,
        }
    }

    /// The transaction over several groups that is under way.
    #[must_use]
    pub fn across(&self) -> Option<Xid> {
        match self.legs.as_deref() {
            Some(Legs::Write(across)) => Some(across.xid()),
            Some(Legs::Read(_)) | None => None,
        }
    }

    /// Names that a leg is to put in place of those on its servers, by what it is asked now.
    #[must_use]
    pub fn dress_of_leg(&self, leg: usize, snapshot: &Snapshot) -> Option<Arc<Dress>> {
        let placement = snapshot.placement.as_ref()?;
        let (_, part) = self.legs.as_ref()?.leg(leg)?;
        let dress = Dress::new(placement, part)?;
        Some(Arc::new(dress.leaving_quotes()))
    }

    /// The same, for the leg itself.
    pub fn wear(&mut self, dress: Option<Arc<Dress>>) {
        self.dress = dress;
    }

    /// Looks at what a branch says.
    pub(super) fn on_branch(
        &mut self,
        cx: &mut Cx<'_>,
        leg: usize,
        input: &[u8],
        out: &mut Outputs,
    ) -> Heed {
        let capabilities = leg_capabilities(self.capabilities);
        let max = cx.snapshot.config.sharding.merge_bytes_max;
        let all = Heed {
            consumed: input.len(),
            wants_more: false,
        };
        let Some(across) = self.across_mut() else {
            return all;
        };
        let (heed, error) = across.hear(leg, input, max, capabilities, out);
        if error.is_some_and(|code| unlisted::OTHER_COLUMNS.contains(&code)) {
            cx.texts.columns.clear();
        }
        self.end_across_if_over(cx, out);
        heed
    }

    /// A branch's session is over by itself.
    pub(super) fn on_branch_lost(&mut self, cx: &mut Cx<'_>, leg: usize, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        let groups = &cx.snapshot.groups;
        let Some(across) = self.across_mut() else {
            return;
        };
        let name = |group: usize| groups.get(group).map_or("", |group| &group.name);
        across.lost(leg, name, capabilities, out);
        self.end_across_if_over(cx, out);
    }

    /// The decision was written down, or not.
    pub fn on_decided(&mut self, cx: &mut Cx<'_>, xid: Xid, verdict: Verdict, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        if let Some(across) = self.across_mut().filter(|across| across.xid == xid) {
            across.decided(verdict, capabilities, out);
            self.end_across_if_over(cx, out);
        }
    }

    fn end_across_if_over(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        if !self.across_mut().is_some_and(|across| across.is_over()) {
            return;
        }
        let Some(Legs::Write(across)) = self.legs.take().map(|legs| *legs) else {
            return;
        };
        out.push(Output::EndLegs);
        let is_clean = across.is_clean;
        out.push(Output::Across(across.xid, Turn::Over { is_clean }));
        let failed = across.failed.is_some();
        match across.failed {
            Some(fault) => {
                self.refuse(&fault, 1, out);
                self.note_failure(&fault);
            }
            None => {
                let mut total = across.total;
                for group in across.unconfirmed {
                    let name = cx
                        .snapshot
                        .groups
                        .get(group)
                        .map_or("", |group| &group.name);
                    total.add_note(format!(
                        "group {name} has not confirmed its part yet: it is decided, and done there as soon as a server answers"
                    ));
                }
                self.tell_total(&total, out);
                if let Some(id) = total.generated {
                    self.insert_id = InsertId::Known(id);
                }
            }
        }
        self.attempt = Attempt::default();
        self.legs_over(cx, failed, out);
    }
}
