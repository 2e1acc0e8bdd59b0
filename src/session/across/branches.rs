//! The branches of a transaction over several groups: what each is asked next, by what it has answered. Telling the client is `across`'s.

use std::ops::Range;
use std::sync::Arc;

use super::super::bring::{write_command, write_query};
use super::super::rebind::Values;
use super::super::series::total::Total;
use super::super::{Expect, Fault, Output, Outputs, Tracker};
use super::Turn;
use crate::shard::{Dress, Leg, Placement, Xid};
use crate::sql::Dialect;
use crate::wire::{Capabilities, Command, OkPacket, Packets};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Work,
    Prepare,
    Decide,
    Commit,
    Undo,
}

/// What a branch was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing yet.
    New,
    Start,
    /// The part's text is being prepared, where an execution is what is done.
    Ready,
    Part,
    Warnings,
    Id,
    End,
    Prepare,
    Commit,
    Rollback,
    /// It has answered, and waits for the others.
    Rests,
    Over,
}

/// The parameters of an execution.
#[derive(Debug)]
pub(super) struct Bound(pub(super) Values);

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) group: usize,
    pub(super) parts: Range<usize>,
    /// The part that is being done.
    pub(super) at: usize,
    pub(super) step: Step,
    /// Statements that it has prepared: the number of the last.
    pub(super) prepared: u32,
    pub(super) has_ended: bool,
    pub(super) may_be_prepared: bool,
    pub(super) tracker: Tracker,
    pub(super) answer: Vec<u8>,
}

/// See the module's words.
#[derive(Debug)]
pub(in super::super) struct Across {
    pub(super) xid: Xid,
    pub(super) parts: Vec<Leg>,
    /// It is an execution of a prepared statement.
    pub(super) bound: Option<Bound>,
    /// The client's text, where a part has none of its own.
    pub(super) sql: Box<[u8]>,
    pub(super) branches: Vec<Branch>,
    pub(super) stage: Stage,
    pub(super) total: Total,
    pub(super) failed: Option<Fault>,
    /// Groups that have not said that they have done their part.
    pub(super) unconfirmed: Vec<usize>,
    pub(super) is_clean: bool,
    /// All branches do the same, and the first tells what it came to.
    pub(super) is_copied: bool,
    /// Whose names warnings have, and which the client knows; and how the client's text is read.
    pub(super) read_by: Option<Box<(Arc<Placement>, Dialect)>>,
}

impl Across {
    /// A transaction of these parts, in the order of their groups.
    pub(super) fn new(
        xid: Xid,
        mut parts: Vec<Leg>,
        sql: &[u8],
        total: Total,
        is_copied: bool,
        capabilities: Capabilities,
    ) -> Self {
        parts.sort_by_key(|part| part.group);
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
        Self {
            xid,
            parts,
            bound: None,
            sql: sql.into(),
            branches,
            stage: Stage::Work,
            total,
            failed: None,
            unconfirmed: Vec::new(),
            is_clean: true,
            is_copied,
            read_by: None,
        }
    }

    /// Begins with the first branch.
    pub(super) fn begin(&mut self, capabilities: Capabilities, out: &mut Outputs) {
        out.push(Output::Across(self.xid, Turn::Begin));
        self.say(0, Step::Start, capabilities, out);
    }

    pub(in super::super) fn xid(&self) -> Xid {
        self.xid
    }

    /// The group of a branch, and the part that it is at.
    pub(in super::super) fn branch(&self, leg: usize) -> Option<(usize, &Leg)> {
        let branch = self.branches.get(leg)?;
        Some((branch.group, self.parts.get(branch.at)?))
    }

    /// Says this to a branch, as its client would.
    pub(super) fn say(
        &mut self,
        leg: usize,
        step: Step,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        let xa = |word: &str| format!("XA {word} {}", self.xid.part(branch.group)).into_bytes();
        let text: &[u8] = match step {
            Step::Start => &xa("START"),
            Step::Ready | Step::Part => {
                let part = self.parts.get(branch.at);
                part.and_then(|part| part.text.as_deref())
                    .unwrap_or(&self.sql)
            }
            Step::Warnings => b"SHOW WARNINGS",
            Step::Id => b"SELECT LAST_INSERT_ID()",
            Step::End => &xa("END"),
            Step::Prepare => &xa("PREPARE"),
            Step::Commit => &xa("COMMIT"),
            Step::Rollback => &xa("ROLLBACK"),
            Step::New | Step::Rests | Step::Over => return,
        };
        let start = out.arena.len();
        match &self.bound {
            _ if step == Step::Ready => {
                write_command(&mut out.arena, Command::StmtPrepare, text);
                branch.prepared += 1;
            }
            Some(Bound(values)) if step == Step::Part => {
                let part = self.parts.get(branch.at);
                let some = part.and_then(|part| part.params.as_deref());
                values.write(&mut out.arena, branch.prepared, some);
            }
            _ => write_query(&mut out.arena, capabilities, text),
        }
        let range = start..out.arena.len();
        out.push(if step == Step::Start {
            Output::BeginLeg { leg, range }
        } else {
            Output::TellLeg { leg, range }
        });
        branch.step = step;
        branch.has_ended |= step == Step::End;
        branch.may_be_prepared |= step == Step::Prepare;
        let expect = match step {
            Step::Ready => Expect::Prepare,
            _ => Expect::Response,
        };
        branch.tracker = Tracker::new(expect, capabilities).without_files();
        branch.answer.clear();
    }

    pub(super) fn all(&self, step: Step) -> bool {
        self.branches.iter().all(|branch| branch.step == step)
    }

    pub(super) fn say_all(&mut self, step: Step, capabilities: Capabilities, out: &mut Outputs) {
        for leg in 0..self.branches.len() {
            if self
                .branches
                .get(leg)
                .is_some_and(|b| b.step == Step::Rests)
            {
                self.say(leg, step, capabilities, out);
            }
        }
    }

    /// What a branch has begun is undone.
    fn undo(&mut self, leg: usize, capabilities: Capabilities, out: &mut Outputs) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        match branch.step {
            Step::Over => {}
            Step::New | Step::Start => branch.step = Step::Over,
            _ if branch.has_ended => self.say(leg, Step::Rollback, capabilities, out),
            _ => self.say(leg, Step::End, capabilities, out),
        }
    }

    /// Something went wrong before the decision: all is undone.
    pub(super) fn fail(
        &mut self,
        fault: Fault,
        at: usize,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) {
        self.failed.get_or_insert(fault);
        self.stage = Stage::Undo;
        for leg in 0..self.branches.len() {
            let step = self.branches.get(leg).map(|branch| branch.step);
            // The others are heard first.
            if leg == at || matches!(step, Some(Step::New | Step::Rests)) {
                self.undo(leg, capabilities, out);
            }
        }
    }

    /// A branch has answered with an error, or is gone.
    pub(super) fn refused(
        &mut self,
        leg: usize,
        fault: Fault,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        match self.stage {
            Stage::Work | Stage::Prepare => self.fail(fault, leg, capabilities, out),
            Stage::Decide => {}
            Stage::Commit => {
                self.unconfirmed.push(branch.group);
                self.is_clean = false;
                branch.step = Step::Over;
            }
            Stage::Undo => match branch.step {
                Step::Rollback => {
                    self.is_clean &= !branch.may_be_prepared;
                    branch.step = Step::Over;
                }
                Step::End => self.say(leg, Step::Rollback, capabilities, out),
                _ => self.undo(leg, capabilities, out),
            },
        }
    }

    /// A branch has answered that it has done what it was asked.
    pub(super) fn done(&mut self, leg: usize, capabilities: Capabilities, out: &mut Outputs) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        if self.stage == Stage::Undo {
            return match branch.step {
                Step::Rollback => branch.step = Step::Over,
                // It had ended before, or has now.
                Step::End | Step::Prepare => self.say(leg, Step::Rollback, capabilities, out),
                Step::Start => self.say(leg, Step::End, capabilities, out),
                _ => self.undo(leg, capabilities, out),
            };
        }
        let rows = self.parts.get(branch.at).map_or(&[][..], |part| &part.rows);
        match branch.step {
            Step::Start => self.do_part(leg, capabilities, out),
            Step::Ready => self.say(leg, Step::Part, capabilities, out),
            Step::Part => {
                let last = Packets::new(&branch.answer).last();
                let ok = last.and_then(|(_, payload)| OkPacket::parse(payload, capabilities).ok());
                let Some(ok) = ok else {
                    let fault = Fault::BadReply(
                        "a part of the statement was not answered with OK".to_owned(),
                    );
                    return self.fail(fault, leg, capabilities, out);
                };
                if self.is_copied && leg > 0 {
                    return self.next(leg, capabilities, out);
                }
                self.total.add(&ok, rows);
                if ok.warnings > 0 {
                    self.say(leg, Step::Warnings, capabilities, out);
                } else {
                    self.ask_id(leg, capabilities, out);
                }
            }
            Step::Warnings => {
                let part = self.parts.get(branch.at);
                let of = self.read_by.as_ref().zip(part);
                let dress = of.and_then(|(by, part)| Dress::new(&by.0, part));
                self.total
                    .add_warnings(&branch.answer, rows, false, dress.as_ref());
                self.ask_id(leg, capabilities, out);
            }
            Step::Id => {
                self.total.add_id(&branch.answer);
                self.next(leg, capabilities, out);
            }
            Step::End => {
                branch.step = Step::Rests;
                if self.all(Step::Rests) {
                    self.stage = Stage::Prepare;
                    self.say_all(Step::Prepare, capabilities, out);
                }
            }
            Step::Prepare => {
                branch.step = Step::Rests;
                if self.all(Step::Rests) {
                    self.stage = Stage::Decide;
                    out.push(Output::Across(self.xid, Turn::Decide));
                }
            }
            Step::Commit => branch.step = Step::Over,
            Step::New | Step::Rollback | Step::Rests | Step::Over => {}
        }
    }

    /// A branch is asked for the part that it is at.
    fn do_part(&mut self, leg: usize, capabilities: Capabilities, out: &mut Outputs) {
        let step = if self.bound.is_some() {
            Step::Ready
        } else {
            Step::Part
        };
        self.say(leg, step, capabilities, out);
    }

    fn ask_id(&mut self, leg: usize, capabilities: Capabilities, out: &mut Outputs) {
        if self.total.told == 0 || self.total.generated.is_some() {
            self.next(leg, capabilities, out);
        } else {
            self.say(leg, Step::Id, capabilities, out);
        }
    }

    /// The branch's next part, or the next branch's first, or the end of all.
    fn next(&mut self, leg: usize, capabilities: Capabilities, out: &mut Outputs) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        if branch.at + 1 < branch.parts.end {
            branch.at += 1;
            return self.do_part(leg, capabilities, out);
        }
        branch.step = Step::Rests;
        if leg + 1 < self.branches.len() {
            self.say(leg + 1, Step::Start, capabilities, out);
        } else {
            self.say_all(Step::End, capabilities, out);
        }
    }
}

impl Across {
    /// Its parts are still being done.
    pub(in super::super) fn may_be_ended(&self) -> bool {
        self.stage == Stage::Work
    }
}
