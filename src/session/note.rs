//! What a session notes at the end of a reply: what the statement changed, and who knows the answers to questions about it.

use std::sync::Arc;
use std::time::Duration;

use super::known::Conditions;
use super::{Cx, InsertId, Outcome, Outputs, Role, Running, Session, What};
use crate::sql::{self, Dialect, Kind, Server, Traits};
use crate::wire::{Capabilities, PrepareOk, Status};

impl Session {
    /// Something was written, or what was written before has become visible. One that failed may have been.
    pub(super) fn note_write(&mut self, now: Duration) {
        let writes = match self.reply.as_ref().map(|reply| reply.command.what) {
            Some(What::Query { kind, traits, .. } | What::Execute { kind, traits, .. }) => {
                matches!(
                    kind,
                    Kind::Write
                        | Kind::Ddl
                        | Kind::Commit
                        | Kind::Xa
                        | Kind::Execute
                        | Kind::Batch
                        | Kind::Unknown
                ) || traits.intersects(Traits::CALL | Traits::UNKNOWN_FUNCTION)
            }
            Some(What::LongQuery(_)) => true,
            _ => false,
        };
        if writes {
            self.wrote = Some(now);
            let outcome = self.reply.as_ref().map(|reply| reply.tracker.outcome());
            if outcome.is_some_and(|outcome| outcome.error.is_some()) {
                self.tracked.writes.note_failure();
            }
        }
    }

    /// A statement is prepared: its reply gets the client's id of it.
    #[cold]
    pub(super) fn note_preparation(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        place: Option<&mut [u8]>,
        ok: PrepareOk,
        out: &mut Outputs,
    ) {
        let Some(What::Prepare { id, .. }) = self.reply.as_ref().map(|reply| reply.command.what)
        else {
            return;
        };
        if let Some(place) = place {
            place.copy_from_slice(&id.to_le_bytes());
        }
        let Some(mut prepared) = self.preparing.take() else {
            return;
        };
        prepared.params = ok.params;
        if prepared.traits.contains(Traits::USER_VAR_WRITE) {
            // Servers know the variable from the preparation on, and describe it otherwise than an unknown one.
            let dialect = self.dialect();
            match &prepared.text {
                Some(text) => self.state.set_assigned_unknown(&text.sql, &dialect),
                None => self.state.set_user_variables_unknown(),
            }
        }
        match prepared.text.clone() {
            Some(text) => self.note_prepared(cx, role, &text, ok.statement_id, out),
            None => prepared.own = Some(ok.statement_id),
        }
        self.statements.insert(id, prepared);
    }

    /// The client is told of changed definitions once.
    pub(super) fn note_told(&mut self, era: u64) {
        let Some(reply) = &self.reply else {
            return;
        };
        let status = reply.tracker.outcome().status.unwrap_or(Status::NONE);
        if let What::Execute { id, .. } = reply.command.what
            && status.contains(Status::METADATA_CHANGED)
            && let Some(statement) = self.statements.get_mut(id)
        {
            statement.told = era;
        }
    }

    pub(super) fn changes_definitions(&self) -> bool {
        match self.reply.as_ref().map(|reply| reply.command.what) {
            Some(What::Query { kind, .. } | What::Execute { kind, .. }) => {
                matches!(
                    kind,
                    Kind::Ddl | Kind::Batch | Kind::Execute | Kind::Unknown
                )
            }
            Some(What::LongQuery(kind)) => kind != Kind::Write,
            _ => false,
        }
    }

    /// What the statement changed it changed on the primary's connection. Whether it is in another state than before.
    pub(super) fn note_done(&mut self, command: Running, outcome: Outcome) -> bool {
        let was_set = self.state.take_id_was_set();
        let may_change_id = was_set
            || outcome.insert_id != 0
            || match command.what {
                What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                    changes_id(kind, traits, outcome)
                }
                What::LongQuery(_) => true,
                _ => false,
            };
        let history = self.state.history();
        let Some(known) = self.links[Role::Primary as usize].known_mut() else {
            return false;
        };
        let is_changed = !Arc::ptr_eq(&known.history, history);
        if is_changed {
            known.history = history.clone();
        }
        known.multi_statements = self.capabilities.contains(Capabilities::MULTI_STATEMENTS);
        if may_change_id {
            known.insert_id = None;
            // One that was lost is not found again by a statement that perhaps set none.
            if self.insert_id != InsertId::Lost || was_set || outcome.insert_id != 0 {
                self.insert_id = InsertId::OnConnection;
            }
        }
        is_changed
    }

    pub(super) fn note_status(&mut self, status: Status) {
        self.is_in_doubt = false;
        let was_in = self.status.contains(Status::IN_TRANS);
        self.status = status;
        if was_in && !status.contains(Status::IN_TRANS) {
            self.state.transaction_done();
        }
    }

    pub(super) fn note_command(
        &mut self,
        role: Role,
        command: Running,
        outcome: Outcome,
        dialect: &Dialect,
        client: &[u8],
        out: &mut Outputs,
    ) {
        let ok = outcome.error.is_none();
        match command.what {
            What::Query { at, traits, kind } => {
                let sql = client.get(at..command.retained).unwrap_or_default();
                self.note_statement(kind, traits, (sql, false), outcome, dialect);
            }
            What::Execute { id, kind, .. } => {
                let Some(statement) = self.statements.get_mut(id) else {
                    return;
                };
                // An error of the long data itself stays until the statement is reset.
                statement.long_data &= !ok;
                statement.cursor &= outcome
                    .status
                    .is_some_and(|status| status.contains(Status::CURSOR_EXISTS));
                let traits = statement.traits;
                let bound = statement.params > 0;
                let matters = traits.intersects(Traits::EFFECTS | Traits::LOCK_FUNCTION);
                let text = statement.text.clone().filter(|_| matters);
                if traits.contains(Traits::EFFECTS) && text.is_none() {
                    self.state.set_opaque();
                    self.state.set_user_variables_unknown();
                }
                let ends = matches!(kind, Kind::Commit | Kind::Rollback);
                let whole = statement.text.clone().filter(|_| ends && ok);
                let text = text.as_ref().map_or(&b""[..], |text| &text.sql);
                self.note_statement(kind, traits, (text, bound), outcome, dialect);
                if whole.is_some_and(|text| self.releases(&text.sql, dialect)) {
                    self.end_with_connection(out);
                }
                self.take_answers_out(id, out);
            }
            What::LongQuery(kind) => {
                // Only its head was seen. More results than one tell of statements behind it.
                self.state.set_user_variables_unknown();
                if kind != Kind::Write || outcome.many {
                    self.state.set_opaque();
                }
            }
            What::InitDb if ok => {
                let name = client.get(5..command.retained).unwrap_or_default();
                self.state.use_schema(name);
            }
            What::Fetch(id) => {
                let was_last = outcome
                    .status
                    .is_some_and(|status| status.contains(Status::LAST_ROW_SENT));
                if let Some(statement) = self.statements.get_mut(id) {
                    statement.cursor &= ok && !was_last;
                }
            }
            What::SetOption(option) if ok => {
                // It outlives COM_RESET_CONNECTION and COM_CHANGE_USER, so connections opened from here on log in with it.
                let flag = Capabilities::MULTI_STATEMENTS;
                self.capabilities = match option {
                    0 => self.capabilities | flag,
                    _ => self.capabilities.without(flag),
                };
            }
            What::Release if ok => self.end_with_connection(out),
            What::Reset if ok => self.was_reset(),
            What::Reset => {
                // A server that cannot reset is not fit to go on with: what it still holds is not known.
                self.drop_link(role, out);
                self.was_reset();
            }
            What::Prepare { .. } => self.preparing = None,
            What::InitDb | What::SetOption(_) | What::Release | What::Plain => {}
        }
    }

    /// Notes where questions about previous statements are to be asked: SHOW WARNINGS, ROW_COUNT(), FOUND_ROWS(). What sets them
    /// was asked of both servers.
    pub(super) fn note_last(&mut self, role: Role, command: Running, outcome: Outcome) {
        let failed = outcome.error.is_some();
        let Some(known) = self.link(role).known() else {
            return;
        };
        let last = super::Last {
            role,
            serial: known.serial,
            holds: false,
            warnings: 0,
            failed,
            lost: false,
        };
        let here = Some(last);
        if failed || outcome.warnings > 0 {
            self.conditions_are_own(role);
        }
        let warned = Some(super::Last {
            holds: failed || outcome.warnings > 0,
            warnings: if failed { 1 } else { outcome.warnings },
            ..last
        });
        match command.what {
            What::Query { traits, .. } if leaves_area(traits) && !failed => {
                if outcome.warnings > 0 {
                    // A condition that there is not is one more, and such a statement changed no rows.
                    self.last = here;
                    self.numbers.row_count = Some(-1);
                    let is_here = |was: &super::Last| was.serial == last.serial;
                    let before = self.warned.filter(is_here).map_or(0, |was| was.warnings);
                    let warnings = before.saturating_add(outcome.warnings);
                    let more = super::Last {
                        holds: true,
                        warnings,
                        ..last
                    };
                    self.set_warned(Some(more));
                }
            }
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                let shows = kind == Kind::Show && traits.contains(Traits::DIAGNOSTICS);
                self.last = here;
                self.numbers.row_count = Some(outcome.affected);
                let leaves = self.leaves_warnings(kind, traits, command.keeps_area, outcome);
                if !shows && !leaves {
                    self.set_warned(warned);
                }
                self.note_found(role, (kind, traits), outcome, last);
            }
            What::Prepare { clears, .. } => {
                if failed {
                    self.last = here;
                }
                let clears = clears && !command.keeps_last;
                if failed || outcome.warnings > 0 || clears {
                    self.set_warned(warned);
                }
            }
            What::LongQuery(_) => {
                self.numbers.row_count = None;
                self.last = here;
                self.set_warned(warned);
                self.found_may_be_there(role, None, last);
            }
            What::InitDb
            | What::SetOption(_)
            | What::Fetch(_)
            | What::Reset
            | What::Release
            | What::Plain => {
                if !command.keeps_last {
                    self.last = here;
                }
                // An error can be shown, whatever command it answers.
                if !command.keeps_last || failed {
                    self.set_warned(warned);
                }
            }
        }
    }

    /// What the connection shows from here on is this session's.
    #[cold]
    fn conditions_are_own(&mut self, role: Role) {
        if let Some(known) = self.link_mut(role).known_mut() {
            known.conditions = Conditions::Own;
        }
    }

    /// Whether there are warnings or errors that could be shown.
    pub(super) fn has_area(&self) -> bool {
        self.kept.is_some() || self.warned.is_some_and(|last| last.holds)
    }

    /// Whether a read leaves what the statement before left, on a server where those without tables do.
    pub(super) fn keeps_area(&self, sql: &[u8], kind: Kind, traits: Traits) -> bool {
        let may_use_more = Traits::MULTI | Traits::CALL | Traits::UNKNOWN_FUNCTION;
        self.has_area()
            && self.server == Server::MariaDb
            && kind == Kind::Read
            && !traits.intersects(may_use_more)
            && !sql::uses_tables(sql, &self.dialect(), kind)
    }

    fn set_warned(&mut self, warned: Option<super::Last>) {
        self.warned = warned;
        self.kept = None;
    }

    /// On MariaDB the warnings of the statement before stay when one that uses no tables gives none of its own.
    fn leaves_warnings(
        &self,
        kind: Kind,
        traits: Traits,
        keeps_area: bool,
        outcome: Outcome,
    ) -> bool {
        let uses_no_tables = keeps_area
            || traits.contains(Traits::DIAGNOSTICS)
            || matches!(
                kind,
                Kind::Set
                    | Kind::Use
                    | Kind::Begin
                    | Kind::Commit
                    | Kind::Rollback
                    | Kind::Savepoint
                    | Kind::Prepare
                    | Kind::Deallocate
            );
        let is_silent = outcome.error.is_none() && outcome.warnings == 0;
        self.server == Server::MariaDb && uses_no_tables && is_silent
    }
}

/// GET DIAGNOSTICS leaves what it was asked about, and the number of rows.
fn leaves_area(traits: Traits) -> bool {
    traits.contains(Traits::AREA) && !traits.contains(Traits::MULTI)
}

/// Whether LAST_INSERT_ID() may be another one after a statement whose reply told of no id.
pub(super) fn changes_id(kind: Kind, traits: Traits, outcome: Outcome) -> bool {
    let may = Traits::LAST_INSERT_ID | Traits::UNKNOWN_FUNCTION | Traits::CALL;
    if traits.intersects(may) && kind != Kind::Show || kind == Kind::Execute {
        return true;
    }
    // An insert that fails keeps the id of the rows before.
    outcome.error.is_some() && matches!(kind, Kind::Write | Kind::Batch | Kind::Unknown)
        || kind == Kind::Batch
}
