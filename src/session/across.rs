//! A write whose rows are in several groups: a transaction over all of them (XA), so that all of it is done or nothing, whoever dies.
//!
//! Each group has a leg, see `legs`, which does its parts in a branch of the transaction. The groups are asked one after the other, always
//! in the same order, so that no two such writes wait for each other's connections or rows in a circle. When all have done their parts all
//! prepare; then the decision is written down, which is control's business; then all commit. Whatever goes wrong before the decision
//! undoes all; what goes wrong after it is finished by control, to which the decision is known. A write to tables that every group has is
//! the same in each.

mod branches;

pub(super) use branches::Across;
use branches::{Bound, Branch, Stage, Step};

use super::legs::{Heed, Legs, leg_capabilities};
use super::rebind::Values;
use super::scatter::ONE_SERVER;
use super::series::total::{Total, ignores, with_row};
use super::{
    Attempt, Cx, Expect, Fault, InsertId, Output, Outputs, Role, Session, TrackEvent, Tracker,
    unlisted, unserved,
};
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
        mut parts: Vec<Leg>,
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
        let ignores = ignores(sql, &self.dialect());
        parts.sort_by_key(|part| part.group);
        let capabilities = leg_capabilities(self.capabilities);
        let mut branches: Vec<Branch> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match branches.last_mut().filter(|b| b.group == part.group) {
                Some(branch) => branch.parts.end = at + 1,
                None => branches.push(Branch {
                    group: part.group,
                    parts: at..at + 1,
                    at,
                    step: Step::New,
                    prepared: 0,
                    has_ended: false,
                    may_be_prepared: false,
                    tracker: Tracker::new(Expect::Response, capabilities),
                    answer: Vec::new(),
                }),
            }
        }
        self.legs = Some(Box::new(Legs::Write(Across {
            xid: Xid::new(run, (cx.nonce)()),
            parts,
            bound: None,
            sql: sql.into(),
            branches,
            stage: Stage::Work,
            total: Total {
                ignores,
                ..Total::default()
            },
            failed: None,
            unconfirmed: Vec::new(),
            is_clean: true,
            is_copied,
        })));
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
            out.push(Output::Across(across.xid, Turn::Begin));
            across.say(0, Step::Start, capabilities, out);
        }
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
    pub fn dress_of_leg(&self, leg: usize, snapshot: &Snapshot) -> Option<Box<Dress>> {
        let placement = snapshot.placement.as_ref()?;
        let (_, part) = self.legs.as_ref()?.leg(leg)?;
        Dress::new(placement, part).map(Box::new)
    }

    /// The same, for the leg itself.
    pub fn wear(&mut self, dress: Option<Box<Dress>>) {
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
        let Some(branch) = across.branches.get_mut(leg) else {
            return all;
        };
        if matches!(branch.step, Step::Rests | Step::Over) {
            // A goodbye, of which the loss that follows tells.
            return all;
        }
        let walk = match branch.tracker.walk(input) {
            Ok(walk) => walk,
            Err(bad) => {
                branch.answer.clear();
                across.is_clean &= !branch.may_be_prepared;
                let fault = Fault::BadReply(bad.to_string());
                across.refused(leg, fault, capabilities, out);
                self.end_across_if_over(cx, out);
                return all;
            }
        };
        let heard = input.get(..walk.consumed).unwrap_or_default();
        let size = u64::try_from(branch.answer.len() + heard.len()).unwrap_or(u64::MAX);
        if size <= max {
            branch.answer.extend_from_slice(heard);
        }
        let is_over = matches!(walk.event, Some(TrackEvent::End));
        if is_over {
            let outcome = branch.tracker.outcome();
            match outcome.error {
                None => across.done(leg, capabilities, out),
                Some(code) => {
                    let rows = across.parts.get(branch.at).map(|part| &part.rows);
                    let rows = rows.filter(|_| branch.step == Step::Part);
                    let fault = numbered(unserved::server_fault(&branch.answer), rows);
                    // What did not answer as asked may have done it all the same.
                    across.is_clean &= !branch.may_be_prepared;
                    if unlisted::OTHER_COLUMNS.contains(&code) {
                        cx.texts.columns.clear();
                    }
                    across.refused(leg, fault, capabilities, out);
                }
            }
            self.end_across_if_over(cx, out);
        }
        Heed {
            consumed: walk.consumed,
            wants_more: walk.event.is_none(),
        }
    }

    /// A branch's session is over by itself.
    pub(super) fn on_branch_lost(&mut self, cx: &mut Cx<'_>, leg: usize, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        let groups = &cx.snapshot.groups;
        let Some(across) = self.across_mut() else {
            return;
        };
        let stage = across.stage;
        let Some(branch) = across.branches.get_mut(leg) else {
            return;
        };
        if branch.step != Step::Over {
            branch.step = Step::Over;
            across.is_clean &= !branch.may_be_prepared;
            match stage {
                Stage::Work | Stage::Prepare => {
                    let name = groups.get(branch.group).map_or("", |group| &group.name);
                    let fault = Fault::Lost(format!("a server of group {name} while it wrote"));
                    across.fail(fault, leg, capabilities, out);
                }
                // It is prepared, and is told by somebody else what was decided.
                Stage::Decide | Stage::Commit => across.unconfirmed.push(branch.group),
                Stage::Undo => {}
            }
        }
        self.end_across_if_over(cx, out);
    }

    /// The decision was written down, or not.
    pub fn on_decided(&mut self, cx: &mut Cx<'_>, xid: Xid, verdict: Verdict, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        let is_it = |across: &&mut Across| across.xid == xid && across.stage == Stage::Decide;
        let Some(across) = self.across_mut().filter(is_it) else {
            return;
        };
        match verdict {
            Verdict::Yes => {
                across.stage = Stage::Commit;
                across.say_all(Step::Commit, capabilities, out);
            }
            Verdict::No => {
                let fault = Fault::Sharded(Refused::NO_LOG);
                across.fail(fault, usize::MAX, capabilities, out);
            }
            Verdict::Unknown => {
                across.failed = Some(Fault::Undecided(xid.to_string()));
                across.is_clean = false;
                for branch in &mut across.branches {
                    branch.step = Step::Over;
                }
            }
        }
        self.end_across_if_over(cx, out);
    }

    fn end_across_if_over(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        let is_over = |across: &mut Across| {
            across.stage != Stage::Decide && across.all(Step::Over) || across.is_given_up()
        };
        if !self.across_mut().is_some_and(is_over) {
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
                let (code, _) = fault.code();
                let error = [
                    b"Error".to_vec(),
                    code.to_string().into_bytes(),
                    fault.to_string().into_bytes(),
                ];
                self.refuse(&fault, 1, out);
                self.numbers.row_count = Some(-1);
                self.note_shown_warnings(1, &[error]);
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

/// The error, with the number that the row has in the client's statement.
fn numbered(fault: Fault, rows: Option<&Vec<usize>>) -> Fault {
    match (fault, rows) {
        (
            Fault::Server {
                code,
                sqlstate,
                message,
            },
            Some(rows),
        ) => Fault::Server {
            code,
            sqlstate,
            message: String::from_utf8_lossy(&with_row(message.as_bytes(), rows)).into_owned(),
        },
        (fault, _) => fault,
    }
}
