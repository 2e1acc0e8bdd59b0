//! What happens to a transaction over several groups: a branch's answer, its end, the decision. What is asked next is `branches`'.

use super::super::dressing::in_clients_words;
use super::super::legs::Heed;
use super::super::series::total::with_row;
use super::super::{Fault, Outputs, TrackEvent, unserved};
use super::Verdict;
use super::branches::{Across, Stage, Step};
use crate::shard::Refused;
use crate::wire::Capabilities;

impl Across {
    /// Looks at what a branch says, of which so many bytes are kept at most; gives the code of an error that it is, too.
    pub(super) fn hear(
        &mut self,
        leg: usize,
        input: &[u8],
        max: u64,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) -> (Heed, Option<u16>) {
        let all = Heed {
            consumed: input.len(),
            wants_more: false,
        };
        let Some(branch) = self.branches.get_mut(leg) else {
            return (all, None);
        };
        if matches!(branch.step, Step::Rests | Step::Over) {
            // A goodbye, of which the loss that follows tells.
            return (all, None);
        }
        let walk = match branch.tracker.walk(input) {
            Ok(walk) => walk,
            Err(bad) => {
                branch.answer.clear();
                self.is_clean &= !branch.may_be_prepared;
                let fault = Fault::BadReply(bad.to_string());
                self.refused(leg, fault, capabilities, out);
                return (all, None);
            }
        };
        let heard = input.get(..walk.consumed).unwrap_or_default();
        let size = u64::try_from(branch.answer.len() + heard.len()).unwrap_or(u64::MAX);
        if size <= max {
            branch.answer.extend_from_slice(heard);
        }
        let mut error = None;
        if matches!(walk.event, Some(TrackEvent::End)) {
            error = branch.tracker.outcome().error;
            if error.is_some() {
                let rows = self.parts.get(branch.at).map(|part| &part.rows);
                let rows = rows.filter(|_| branch.step == Step::Part);
                let fault = numbered(unserved::server_fault(&branch.answer), rows);
                let fault = match (&self.read_by, self.parts.get(branch.at)) {
                    (Some(by), Some(part)) => {
                        in_clients_words(Some((&by.0, part)), &self.sql, &by.1, fault)
                    }
                    _ => fault,
                };
                // What did not answer as asked may have done it all the same.
                self.is_clean &= !branch.may_be_prepared;
                self.refused(leg, fault, capabilities, out);
            } else {
                self.done(leg, capabilities, out);
            }
        }
        let heed = Heed {
            consumed: walk.consumed,
            wants_more: walk.event.is_none(),
        };
        (heed, error)
    }

    /// A branch is gone.
    pub(super) fn lost<'n>(
        &mut self,
        leg: usize,
        name: impl Fn(usize) -> &'n str,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) {
        let Some(branch) = self.branches.get_mut(leg) else {
            return;
        };
        if branch.step == Step::Over {
            return;
        }
        branch.step = Step::Over;
        self.is_clean &= !branch.may_be_prepared;
        match self.stage {
            Stage::Work | Stage::Prepare => {
                let name = name(branch.group);
                let fault = Fault::Lost(format!("a server of group {name} while it wrote"));
                self.fail(fault, leg, capabilities, out);
            }
            // It is prepared, and is told by somebody else what was decided.
            Stage::Decide | Stage::Commit => self.unconfirmed.push(branch.group),
            Stage::Undo => {}
        }
    }

    /// The decision was written down, or not.
    pub(super) fn decided(
        &mut self,
        verdict: Verdict,
        capabilities: Capabilities,
        out: &mut Outputs,
    ) {
        if self.stage != Stage::Decide {
            return;
        }
        match verdict {
            Verdict::Yes => {
                self.stage = Stage::Commit;
                self.say_all(Step::Commit, capabilities, out);
            }
            Verdict::No => {
                let fault = Fault::Sharded(Refused::NO_LOG);
                self.fail(fault, usize::MAX, capabilities, out);
            }
            Verdict::Unknown => {
                self.failed = Some(Fault::Undecided(self.xid.to_string()));
                self.is_clean = false;
                for branch in &mut self.branches {
                    branch.step = Step::Over;
                }
            }
        }
    }

    /// Nothing more is to come.
    pub(super) fn is_over(&self) -> bool {
        self.stage != Stage::Decide && self.all(Step::Over) || self.is_given_up()
    }

    /// Nobody knows what was decided: nothing more is said.
    fn is_given_up(&self) -> bool {
        matches!(self.failed, Some(Fault::Undecided(_)))
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
