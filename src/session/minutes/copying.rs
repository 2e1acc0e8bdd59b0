//! Statements that a rule has copied (`mirror`): which of them can be, and what a copy is made of. It is told when the client has the
//! answer; running it is `control`'s.
//!
//! A copy runs by itself on another connection, later: so only what means the same there is copied. Reads that a replica could answer,
//! and, where the rule says so, writes; nothing inside a transaction, nothing that needs what only the session's connection has.

use std::sync::Arc;
use std::time::Duration;

use crate::mirror::{Copy, Mirror, Outcome, Setting};
use crate::record::Said;
use crate::route::View;
use crate::session::history::{History, Say};
use crate::session::{Cx, Outputs, Session, What};
use crate::sql::{Hint, Kind, Reason, Statement, Traits};
use crate::wire::{Capabilities, Command};

use super::Told;

/// Longer texts are not copied.
const TEXT_MAX: usize = 256 * 1024;

/// What makes a write hang on what came before it, or on more than the statement.
const TIED: Traits = Traits::EFFECTS
    .union(Traits::INTO)
    .union(Traits::LAST_INSERT_ID)
    .union(Traits::LOCK_FUNCTION)
    .union(Traits::CONNECTION_ID)
    .union(Traits::DIAGNOSTICS)
    .union(Traits::USER_VAR_WRITE)
    .union(Traits::MULTI)
    .union(Traits::UNTERMINATED)
    .union(Traits::CALL)
    .union(Traits::SERVER_STATE)
    .union(Traits::DOUBTFUL)
    .union(Traits::LOAD);

/// The statement at the front, which is to be copied when it is over. One that does not come to be told is counted as skipped.
#[derive(Debug)]
pub(in crate::session) struct Copying {
    mirror: Arc<Mirror>,
    copy: Option<Box<Copy>>,
}

impl Drop for Copying {
    fn drop(&mut self) {
        if self.copy.is_some() {
            self.mirror.note_skipped();
        }
    }
}

impl Session {
    /// A rule has the statement copied.
    #[cold]
    pub(in crate::session) fn begin_copy(
        &mut self,
        cx: &Cx<'_>,
        mirror: &Arc<Mirror>,
        text: &[u8],
        statement: &Statement<'_>,
        is_whole: bool,
    ) {
        if !mirror.chooses() {
            return;
        }
        let is_write = matches!(statement.kind, Kind::Write | Kind::Ddl);
        let may_be = is_whole
            && text.len() <= TEXT_MAX
            && !self.state.is_schema_unknown()
            && is_free(statement, &self.view(cx))
            && (mirror.config.writes || !is_write);
        if !may_be {
            return mirror.note_skipped();
        }
        let copy = Copy {
            account: self.account,
            said: Said::Text {
                text: text.to_vec(),
                len: text.len(),
            },
            dialect: self.dialect(),
            setting: Setting {
                charset: self.identity.charset,
                capabilities: self
                    .capabilities
                    .intersection(Capabilities::FOUND_ROWS | Capabilities::IGNORE_SPACE),
                commands: commands(self.state.history()),
            },
            is_write,
            outcome: Outcome::default(),
            since: cx.now,
            took: Duration::ZERO,
        };
        self.attempt.copying = Some(Box::new(Copying {
            mirror: mirror.clone(),
            copy: Some(Box::new(copy)),
        }));
    }

    /// The statement is an execution: its packet has the values.
    #[cold]
    pub(in crate::session) fn copy_execution(&mut self, packet: &[u8], id: u32) {
        let said = match self.statements.get_mut(id) {
            Some(known) if !known.long_data && packet.len() <= TEXT_MAX => {
                Some(self.said_by_execution(id, packet.to_vec(), packet.len()).0)
            }
            _ => None,
        };
        let copying = self.attempt.copying.as_mut();
        match (copying.and_then(|copying| copying.copy.as_mut()), said) {
            (Some(copy), Some(said)) => copy.said = said,
            _ => self.attempt.copying = None,
        }
    }

    /// The reply to the statement has come to its end.
    #[cold]
    pub(in crate::session) fn tell_copy(&mut self, cx: &Cx<'_>, out: &mut Outputs) {
        let (Some(reply), Some(mut copying)) = (&self.reply, self.attempt.copying.take()) else {
            return;
        };
        let is_statement = matches!(
            reply.command.what,
            What::Query { .. } | What::Execute { .. }
        );
        let outcome = reply.tracker.outcome();
        let here = cx.snapshot.groups.get(self.group_index(cx.snapshot));
        let is_elsewhere = here.is_some_and(|here| *here.name != *copying.mirror.group);
        let failed = outcome.error.is_some();
        let is_whole = self.overrun.is_none() && self.series.is_none() && self.scatter.is_none();
        let Some(copy) = &mut copying.copy else {
            return;
        };
        if !(is_statement && is_elsewhere && is_whole) || copy.is_write && failed || outcome.many {
            return;
        }
        copy.outcome = Outcome {
            rows: if outcome.rows { outcome.row_count } else { 0 },
            affected: u64::try_from(outcome.affected).ok(),
            error: outcome.error.unwrap_or(0),
        };
        if let Some(copy) = copying.copy.take() {
            out.told.push(Told::Copy(copying.mirror.clone(), copy));
        }
    }
}

/// Whether the statement means the same on another connection in the session's state.
fn is_free(statement: &Statement<'_>, view: &View) -> bool {
    if view.in_transaction || !view.autocommit {
        return false;
    }
    match statement.kind {
        Kind::Read => {
            let without_hint = Statement {
                hint: statement.hint.filter(|hint| *hint != Hint::Primary),
                ..*statement
            };
            matches!(
                without_hint.wants_primary(),
                None | Some(Reason::HintPrimary)
            ) && !view.is_held(statement.traits.contains(Traits::USER_VAR_READ))
        }
        Kind::Write | Kind::Ddl => {
            !statement.traits.intersects(TIED) && !view.pins.bind_connection()
        }
        _ => false,
    }
}

/// What gives a fresh connection this state.
fn commands(state: &History) -> Vec<Vec<u8>> {
    let mut commands = Vec::new();
    let fresh = History::after_login(None);
    fresh.bring(state, &mut |say| {
        let (command, parts): (_, [&[u8]; 2]) = match say {
            Say::Reset { .. } => (Command::ResetConnection, [b"", b""]),
            Say::InitDb(name) => (Command::InitDb, [name, b""]),
            Say::Query(text) => (Command::Query, [text, b""]),
            Say::Assign { text, .. } => (Command::Query, [b"SET ", text]),
        };
        let [first, second] = parts;
        let mut payload = Vec::with_capacity(1 + first.len() + second.len());
        payload.push(command.code());
        payload.extend_from_slice(first);
        payload.extend_from_slice(second);
        commands.push(payload);
    });
    commands
}
