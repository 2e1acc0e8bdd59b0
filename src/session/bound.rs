//! What a statement may use: leave to run, time, rows. And its clock, which goes from when it was sent. What is done about one that
//! uses more is the business of `overrun`.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Output, Outputs, Session};
use crate::config::Limits;
use crate::route::Permit;
use crate::sql::Kind;

/// What a statement may use.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// It counts as one that runs: of its account, and of a rule.
    pub(super) permits: [Option<Permit>; 2],
    /// How long it may run; zero for as long as it likes.
    pub(super) timeout: Duration,
    /// The rule that said so; nothing where it was the account.
    pub(super) rule: Option<Arc<str>>,
    /// Rows that a result may have; 0 for as many as there are.
    pub(super) rows: u64,
    /// Until when it may run; nothing before it was sent.
    deadline: Option<Duration>,
}

impl Bound {
    /// That of an account. What a write has changed is changed, however many rows it gives.
    pub(super) fn of(limits: &Limits, kind: Kind) -> Self {
        Self {
            timeout: limits.statement_timeout,
            rows: if kind == Kind::Write {
                0
            } else {
                limits.result_rows
            },
            ..Self::default()
        }
    }

    /// A rule says how long, in the account's place.
    pub(super) fn set_timeout(&mut self, timeout: Duration, rule: &Arc<str>) {
        self.timeout = timeout;
        self.rule = Some(rule.clone());
    }

    /// There is something that it may not.
    pub(super) fn binds(&self) -> bool {
        let is_counted = self.permits.iter().any(Option::is_some);
        is_counted || !self.timeout.is_zero() || self.rows > 0
    }
}

impl Attempt {
    /// Rows that a result may have.
    pub(super) fn rows_max(&self) -> u64 {
        let rows = self.bound.as_ref().map_or(0, |bound| bound.rows);
        if rows == 0 { u64::MAX } else { rows }
    }

    /// Until when the statement may run; nothing before it was sent, and where it may run as long as it likes.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.bound.as_ref()?.deadline
    }

    pub(super) fn set_deadline(&mut self, deadline: Option<Duration>) {
        if let Some(bound) = &mut self.bound {
            bound.deadline = deadline;
        }
    }
}

impl Session {
    /// The statement has been sent, and the time counts that it may run: from the first time that it was.
    pub(super) fn start_clock(&mut self, out: &mut Outputs) {
        self.overrun_is_over();
        let sent = self.diary.looked();
        if let Some(bound) = &mut self.attempt.bound
            && !bound.timeout.is_zero()
            && self.upload.is_none()
        {
            let deadline = *bound.deadline.get_or_insert(sent + bound.timeout);
            out.push(Output::Alarm(deadline));
        }
    }

    /// The client has sent its file, or the rest of a long statement, which took its own time: from here on the server's counts.
    pub(super) fn restart_clock(&mut self, now: Duration, out: &mut Outputs) {
        if let Some(bound) = &mut self.attempt.bound
            && !bound.timeout.is_zero()
            && self.reply.is_some()
        {
            let deadline = now + bound.timeout;
            bound.deadline = Some(deadline);
            out.push(Output::Alarm(deadline));
        }
    }
}
