//! What goes to the logs of statements: what the client said is kept until the answer is over, and told then with what came of it.
//! Nothing is kept where no log asks for it. Which log has which entry, and who writes it, is not known here.

mod copying;

use std::sync::Arc;
use std::time::Duration;

pub(super) use copying::Copying;

use super::{Cx, Fault, Outcome, Outputs, Role, Session, What};
use crate::mirror::{Copy, Mirror};
use crate::record::{Place, Said, Statement};
use crate::shard::Leg;
use crate::sql::{self, Kind, Reason, Traits};

/// Something that is to be written down.
#[derive(Debug)]
pub enum Told {
    /// The client has logged in.
    LoggedIn,
    /// The client was not let in, and was told this error.
    TurnedAway(u16),
    /// The client has had its session reset.
    Reset,
    /// A statement is over.
    Statement(Box<Statement>),
    /// A statement is over that a rule has copied.
    Copy(Arc<Mirror>, Box<Copy>),
}

/// The command at the front, for as long as it is not over.
#[derive(Debug)]
pub(super) struct Minutes {
    /// The text, or the packet of an execution; the beginning of one that is long.
    bytes: Vec<u8>,
    len: usize,
    /// The statement that is executed.
    executes: Option<u32>,
    place: Place,
    /// The groups that it goes to, of a sharded one in several parts.
    groups: Vec<usize>,
    rows: u64,
    affected: Option<u64>,
}

impl Default for Minutes {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
            executes: None,
            place: Place::Atlas,
            groups: Vec::new(),
            rows: 0,
            affected: None,
        }
    }
}

/// Minutes that are kept for the next statements, of one worker.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "sessions take the boxes: a client without minutes has room for a pointer only"
)]
pub(super) struct Spare(Vec<Box<Minutes>>);

impl Spare {
    const MAX: usize = 64;

    fn put(&mut self, mut minutes: Box<Minutes>) {
        if self.0.len() < Self::MAX && minutes.bytes.capacity() <= 4096 {
            minutes.bytes.clear();
            self.0.push(minutes);
        }
    }
}

impl Session {
    /// The client says this, or has said it before and it is looked at once more.
    #[inline]
    pub(super) fn keep_text(&mut self, cx: &mut Cx<'_>, text: &[u8]) {
        self.keep_long_text(cx, text, text.len());
    }

    /// The same where only the beginning is there.
    #[inline]
    pub(super) fn keep_long_text(&mut self, cx: &mut Cx<'_>, text: &[u8], len: usize) {
        if cx.snapshot.config.log.keeps_statements() {
            self.keep(cx, text, len, None);
        }
    }

    /// The client goes to another schema by COM_INIT_DB, which is as the statement for it.
    #[inline]
    pub(super) fn keep_schema(&mut self, cx: &mut Cx<'_>, name: &[u8]) {
        // It is looked at once more when there is a connection.
        if cx.snapshot.config.log.keeps_statements() && self.minutes.is_none() {
            let mut text = b"USE ".to_vec();
            if !sql::push_name(&mut text, name, &self.dialect()) {
                text.extend_from_slice(name);
            }
            self.keep(cx, &text, text.len(), None);
        }
    }

    /// The client executes a prepared statement.
    #[inline]
    pub(super) fn keep_execution(&mut self, cx: &mut Cx<'_>, packet: &[u8], id: u32) {
        if cx.snapshot.config.log.keeps_statements() {
            self.keep(cx, packet, packet.len(), Some(id));
        }
    }

    #[cold]
    fn keep(&mut self, cx: &mut Cx<'_>, bytes: &[u8], len: usize, executes: Option<u32>) {
        if self.diary.is_leg || self.minutes.is_some() && self.diary.is_under_way() {
            return;
        }
        self.diary.start(cx.now);
        let spare = || cx.texts.spare.0.pop().unwrap_or_default();
        let mut minutes = self.minutes.take().unwrap_or_else(spare);
        let max = cx.snapshot.config.log.text_max;
        minutes.bytes.clear();
        minutes
            .bytes
            .extend_from_slice(bytes.get(..max).unwrap_or(bytes));
        *minutes = Minutes {
            bytes: std::mem::take(&mut minutes.bytes),
            len,
            executes,
            ..Minutes::default()
        };
        self.minutes = Some(minutes);
    }

    /// The statement is asked of these shards.
    #[inline]
    pub(super) fn note_groups(&mut self, legs: &[Leg]) {
        if let Some(minutes) = &mut self.minutes {
            minutes.groups = legs.iter().map(|leg| leg.group).collect();
            minutes.groups.sort_unstable();
            minutes.groups.dedup();
        }
    }

    /// Several servers have answered, with so many rows or so many changed ones.
    pub(super) fn note_shards(&mut self, rows: u64, affected: Option<u64>) {
        if let Some(minutes) = &mut self.minutes {
            minutes.place = Place::Shards;
            minutes.rows = rows;
            minutes.affected = affected;
        }
    }

    /// The reply to the command at the front has come to its end.
    #[cold]
    pub(super) fn write_reply(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        let Some(reply) = &self.reply else {
            return;
        };
        let (role, outcome) = (reply.role, reply.tracker.outcome());
        let facts = match reply.command.what {
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => (kind, traits),
            What::LongQuery(kind) => (kind, Traits::EFFECTS),
            What::Release => (Kind::Commit, Traits::NONE),
            What::InitDb => (Kind::Use, Traits::NONE),
            // What is prepared is written down when it runs; only what cannot be has no other occasion.
            What::Prepare { .. } if outcome.error.is_some() => (Kind::Prepare, Traits::NONE),
            What::Prepare { .. }
            | What::SetOption(_)
            | What::Fetch(_)
            | What::Reset
            | What::Plain => return self.forget_minutes(cx),
        };
        let took = cx.now.saturating_sub(self.diary.since);
        let failed = outcome.error.is_some();
        let to = cx.snapshot.config.log.takes(took, may_write(facts), failed);
        if !(to.slow || to.audit) {
            return self.forget_minutes(cx);
        }
        let reason = match self.last_route {
            _ if facts.0 == Kind::Use => Reason::Set.as_str(),
            Some((_, reason)) if !matches!(reply.command.what, What::LongQuery(_)) => {
                reason.as_str()
            }
            _ => Reason::Write.as_str(),
        };
        let known = self.link(role).known();
        let place = Place::Server {
            route: match role {
                Role::Primary => "primary",
                Role::Replica => "replica",
            },
            reason,
            host: known.map_or(usize::MAX, |known| known.host.index()),
            connection: known.map_or(0, |known| known.thread_id),
        };
        let Outcome {
            row_count,
            affected,
            error,
            ..
        } = outcome;
        self.note_shards(row_count, u64::try_from(affected).ok());
        if let Some(minutes) = &mut self.minutes {
            minutes.place = place;
        }
        self.write_down(Some(facts), error.unwrap_or(0), false, out);
    }

    /// A command that needed no server, or several, is over.
    #[inline]
    pub(super) fn write_answered(&mut self, out: &mut Outputs) {
        let is_over = self.reply.is_none()
            && self.legs.is_none()
            && self.series.is_none()
            && self.scatter.is_none();
        if self.minutes.is_some() && is_over {
            self.write_down(None, 0, false, out);
        }
    }

    /// The client is told an error of Atlas's own.
    #[inline]
    pub(super) fn write_refused(&mut self, fault: &Fault, out: &mut Outputs) {
        if self.minutes.is_some() {
            self.write_down(None, fault.code().0, false, out);
        }
    }

    /// The client has gone while its statement ran.
    #[inline]
    pub(super) fn write_aborted(&mut self, out: &mut Outputs) {
        if self.minutes.is_some() {
            self.write_down(None, 0, true, out);
        }
    }

    #[cold]
    fn forget_minutes(&mut self, cx: &mut Cx<'_>) {
        if let Some(minutes) = self.minutes.take() {
            cx.texts.spare.put(minutes);
        }
    }

    #[cold]
    fn write_down(
        &mut self,
        facts: Option<(Kind, Traits)>,
        error: u16,
        is_aborted: bool,
        out: &mut Outputs,
    ) {
        let Some(minutes) = self.minutes.take() else {
            return;
        };
        let Minutes {
            bytes,
            len,
            executes,
            place,
            groups,
            rows,
            affected,
        } = *minutes;
        let dialect = self.dialect();
        let (said, known) = match executes {
            None => (Said::Text { text: bytes, len }, None),
            Some(id) => self.said_by_execution(id, bytes, len),
        };
        let facts = facts.or(known).unwrap_or_else(|| {
            let Said::Text { text, .. } = &said else {
                return (Kind::Unknown, Traits::NONE);
            };
            let statement = sql::classify(text, &dialect);
            (statement.kind, statement.traits)
        });
        let (since, acquired, synced) = self.diary.times();
        out.told.push(Told::Statement(Box::new(Statement {
            said,
            dialect,
            schema: self.state.schema().map(Into::into),
            kind: facts.0,
            is_write: may_write(facts),
            place,
            groups,
            since,
            took: Duration::ZERO,
            acquired,
            synced,
            rows,
            affected,
            error,
            is_aborted,
        })));
    }

    /// An execution of the statement with this number, and what the statement is.
    pub(super) fn said_by_execution(
        &mut self,
        id: u32,
        mut packet: Vec<u8>,
        len: usize,
    ) -> (Said, Option<(Kind, Traits)>) {
        if packet.len() < len {
            packet = Vec::new();
        }
        let capabilities = self.capabilities;
        let statement = self.statements.get_mut(id);
        let facts = statement.as_ref().map(|known| (known.kind, known.traits));
        let (text, params, types) = match statement {
            Some(known) => (known.sent(), known.params, known.types.clone()),
            None => (&b""[..], 0, None),
        };
        let said = Said::Execution {
            text: text
                .get(..super::COMMAND_WHOLE_MAX)
                .unwrap_or(text)
                .to_vec(),
            len: text.len(),
            packet,
            params,
            types,
            capabilities,
        };
        (said, facts)
    }

    /// The client has its session reset.
    pub(super) fn note_reset(&self, cx: &Cx<'_>, out: &mut Outputs) {
        if cx.snapshot.config.log.audit_file.is_some() && !self.diary.is_leg {
            out.told.push(Told::Reset);
        }
    }

    /// The client is let in.
    pub(super) fn note_logged_in(&mut self, out: &mut Outputs) {
        self.diary.has_logged_in = true;
        out.told.push(Told::LoggedIn);
    }

    /// Whether the client has ever been logged in.
    #[must_use]
    pub fn has_logged_in(&self) -> bool {
        self.diary.has_logged_in
    }

    /// The name of the account, or that which the client gave for it.
    #[must_use]
    pub fn user(&self) -> &[u8] {
        &self.identity.user
    }

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.state.schema()
    }
}

/// Whether a statement of this kind may change something, or ends or begins what does.
fn may_write((kind, traits): (Kind, Traits)) -> bool {
    let statement = sql::Statement {
        kind,
        traits,
        hint: None,
    };
    match kind {
        Kind::Show
        | Kind::Explain
        | Kind::ExplainRoute
        | Kind::ShowLastRoute
        | Kind::Empty
        | Kind::Set
        | Kind::Use
        | Kind::Prepare
        | Kind::Deallocate => false,
        Kind::Read => !matches!(
            statement.wants_primary(),
            None | Some(
                Reason::LastInsertId
                    | Reason::ConnectionId
                    | Reason::Diagnostics
                    | Reason::ServerState
                    | Reason::HintPrimary
            )
        ),
        _ => true,
    }
}
