//! A server's bytes: the reply to the client's command, its end and what it changed, and connections that are lost.

use super::loss::restore_id;
use super::{
    Access, Attempt, Beginning, Cx, LinkState, Outcome, Output, Outputs, Parting, Reply, Role,
    Running, Session, TrackEvent, Upload, What,
};
use crate::sql::{self, Dialect, Kind, Server, Traits};
use crate::wire::{Capabilities, Status, write_payload};

/// Error codes with which a server says that it or the connection is going away, not that the statement is wrong.
const GOING_AWAY: [u16; 4] = [
    1053, // Server shutdown in progress
    1927, // Connection was killed (MariaDB)
    3169, // The client was disconnected by the server because the session was killed
    4031, // The client was disconnected by the server because of inactivity
];

/// Those that answer a statement which somebody killed with its connection: it is not said again elsewhere.
const KILLED: [u16; 2] = [1927, 3169];

/// Error codes that a replica may give where the primary would not, because it is behind or set up otherwise: a read that
/// fails with one of them is answered by the primary, whose word counts.
const REPLICA_ONLY: [u16; 14] = [
    1044, // Access denied for user to database
    1049, // Unknown database
    1054, // Unknown column
    1091, // Can't drop; check that it exists
    1142, // Command denied to user for table
    1143, // Command denied to user for column
    1146, // Table doesn't exist
    1193, // Unknown system variable
    1290, // The server is running with the --read-only option
    1305, // Function does not exist
    1356, // View references invalid tables, columns or functions
    1370, // Command denied to user for routine
    1449, // The user specified as a definer does not exist
    1836, // Running in read-only mode
];

pub(super) fn is_going_away(code: u16) -> bool {
    GOING_AWAY.contains(&code)
}

impl Session {
    /// Looks at a server's unconsumed bytes; gives the number of bytes dealt with. `client` are the client's unconsumed bytes.
    pub fn on_backend(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        input: &mut [u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        let mut at = 0;
        while at < input.len() && self.link(role).state == LinkState::Ready {
            let rest = input.get_mut(at..).unwrap_or_default();
            let step = if self.is_syncing(role) {
                self.on_sync(cx, rest, client, out)
            } else if self.reply.as_ref().is_some_and(|reply| reply.role == role) {
                self.on_reply(cx, rest, at, client, out)
            } else {
                // Nothing was asked: the server says farewell, or something is wrong. Either way it is over.
                out.push(Output::CloseBackend {
                    role,
                    parting: Parting::Silent,
                });
                self.on_backend_lost(
                    cx,
                    role,
                    "the server sent a packet that nothing had asked for",
                    client,
                    out,
                );
                return input.len();
            };
            if step == 0 {
                break;
            }
            at += step;
        }
        at
    }

    fn on_reply(
        &mut self,
        cx: &mut Cx<'_>,
        rest: &mut [u8],
        at: usize,
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        let Some(reply) = &mut self.reply else {
            return 0;
        };
        let role = reply.role;
        let may_retry = reply.command.may_retry;
        if reply.tracker.at_start() {
            match reply.tracker.beginning(rest) {
                Beginning::Unknown => return 0,
                // Said before the command arrived, or instead of an answer to a read.
                Beginning::Error { code, in_turn }
                    if is_going_away(code)
                        && (may_retry && !KILLED.contains(&code) || !in_turn) =>
                {
                    out.push(Output::CloseBackend {
                        role,
                        parting: Parting::Silent,
                    });
                    self.on_backend_lost(cx, role, "the server is going away", client, out);
                    return rest.len();
                }
                Beginning::Error { code, .. }
                    if may_retry
                        && role == Role::Replica
                        && REPLICA_ONLY.contains(&code)
                        && self.may_fall_back(cx) =>
                {
                    self.ask_primary_instead(client);
                    return self.on_sync(cx, rest, client, out);
                }
                Beginning::Error { .. } | Beginning::Other => {}
            }
        }
        let Some(reply) = &mut self.reply else {
            return 0;
        };
        let renamed = match reply.command.names {
            Some(names) if reply.tracker.at_start() => names.error_for_client(rest),
            _ => None,
        };
        let walk = match reply.tracker.walk(rest) {
            Ok(walk) => walk,
            Err(bad) => {
                self.on_bad_reply(cx, role, bad, client, out);
                return rest.len();
            }
        };
        match walk.event {
            Some(TrackEvent::Prepared { at: payload, ok }) => {
                if let What::Prepare(id) = reply.command.what {
                    if let Some(place) = rest.get_mut(payload + 1..payload + 5) {
                        place.copy_from_slice(&id.to_le_bytes());
                    }
                    if let Some(mut prepared) = self.preparing.take() {
                        prepared.params = ok.params;
                        if prepared.traits.contains(Traits::USER_VAR_WRITE) {
                            // Servers know the variable from the preparation on, and describe it otherwise than an unknown one.
                            self.state.set_user_variables_unknown();
                        }
                        prepared.server_ids[role as usize] = Some(ok.statement_id);
                        self.statements.insert(id, prepared);
                    }
                }
            }
            Some(TrackEvent::LocalInfile) => {
                // What the client sends now is its file. Retained bytes of the statement must be out of the way first, and what
                // other statements of the batch do to the session cannot be read in them any more.
                if self.notes_at_end() {
                    self.state.set_opaque();
                    self.state.set_user_variables_unknown();
                }
                self.release_command(out);
                self.upload = Some(Upload {
                    to: Some(role),
                    access: Access::Write,
                    left: 0,
                    more: false,
                    seq: 0,
                    is_file: true,
                });
            }
            Some(TrackEvent::End) | None => {}
        }
        if walk.consumed > 0 {
            match renamed {
                Some(error) => out.client(|buffer| {
                    write_payload(buffer, 1, &error);
                }),
                None => out.push(Output::ForwardToClient(at..at + walk.consumed)),
            }
            self.first_byte_passed(out);
        }
        if walk.event == Some(TrackEvent::End) {
            self.on_reply_end(client, out);
        }
        walk.consumed
    }

    /// The replica refuses a read that the primary may well answer.
    fn ask_primary_instead(&mut self, client: &mut [u8]) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        self.preparing = None;
        restore_id(&reply.command, client);
        self.attempt.force_primary = true;
        "the replica refused the statement".clone_into(&mut self.attempt.why);
        self.swallow_refusal(reply.role, reply.tracker.expect());
    }

    /// A LOAD DATA LOCAL may make the server ask, and only on behalf of a client that said it can.
    pub(super) fn may_be_asked_for_file(&self, what: What) -> bool {
        if !self.capabilities.contains(Capabilities::LOCAL_FILES) {
            return false;
        }
        match what {
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                traits.contains(Traits::LOAD) || matches!(kind, Kind::Execute | Kind::Unknown)
            }
            What::LongQuery(kind) => matches!(kind, Kind::Write | Kind::Batch | Kind::Unknown),
            What::Prepare(_)
            | What::InitDb
            | What::SetOption(_)
            | What::Reset
            | What::Release
            | What::Plain => false,
        }
    }

    /// The client has part of the reply, so a read can no longer be moved elsewhere.
    fn first_byte_passed(&mut self, out: &mut Outputs) {
        let is_read = self
            .reply
            .as_ref()
            .is_some_and(|reply| reply.command.may_retry);
        if is_read && !self.notes_at_end() {
            self.release_command(out);
        }
    }

    /// The retained bytes are needed when the reply has ended.
    fn notes_at_end(&self) -> bool {
        match self.reply.as_ref().map(|reply| reply.command.what) {
            Some(What::Query { traits, .. }) => traits.contains(Traits::EFFECTS),
            Some(What::InitDb) => true,
            _ => false,
        }
    }

    fn release_command(&mut self, out: &mut Outputs) {
        if let Some(reply) = &mut self.reply {
            reply.command.may_retry = false;
            let retained = std::mem::take(&mut reply.command.retained);
            if retained > 0 {
                out.push(Output::Consume(retained));
            }
        }
    }

    fn on_reply_end(&mut self, client: &mut [u8], out: &mut Outputs) {
        let Some(Reply {
            role,
            tracker,
            command,
        }) = self.reply.take()
        else {
            return;
        };
        let outcome = tracker.outcome();
        // The statement was read as the session stood before it.
        let dialect = self.dialect();
        if let Some(upload) = &mut self.upload
            && upload.is_file
        {
            // The file was refused while it was still coming; a server that does so closes the connection.
            upload.to = None;
        }
        if let Some(status) = outcome.status {
            self.link_mut(role).status = status;
            if role == Role::Primary {
                self.note_status(status);
            }
        }
        let had_schema = self.state.schema().is_some();
        self.note_command(role, command, outcome, &dialect, client, out);
        if had_schema && self.state.schema().is_none() {
            // It was dropped. Over there the connection would keep its name.
            self.drop_link(Role::Replica, out);
        }
        if role == Role::Primary {
            // What the statement changed it changed there.
            let serial = self.state.serial();
            self.link_mut(role).applied = serial;
            if outcome.insert_id != 0 {
                self.insert_id_set = true;
                self.insert_id_lost = false;
            }
        }
        self.note_last(role, command, outcome);
        self.attempt = Attempt::default();
        if command.retained > 0 {
            out.push(Output::Consume(command.retained));
        }
    }

    pub(super) fn note_status(&mut self, status: Status) {
        let was_in = self.status.contains(Status::IN_TRANS);
        self.status = status;
        if was_in && !status.contains(Status::IN_TRANS) {
            self.state.transaction_done();
        }
    }

    fn note_command(
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
                let traits = statement.traits;
                let bound = statement.params > 0;
                let text = if traits.contains(Traits::EFFECTS) {
                    statement.text.clone()
                } else {
                    None
                };
                if traits.contains(Traits::EFFECTS) && text.is_none() {
                    self.state.set_opaque();
                    self.state.set_user_variables_unknown();
                }
                let text = text.as_deref().unwrap_or_default();
                self.note_statement(kind, traits, (text, bound), outcome, dialect);
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
            What::SetOption(option) if ok => {
                self.state.set_option(option);
                // It outlives COM_RESET_CONNECTION and COM_CHANGE_USER, so connections opened from here on log in with it.
                let flag = Capabilities::MULTI_STATEMENTS;
                self.capabilities = match option {
                    0 => self.capabilities | flag,
                    _ => self.capabilities.without(flag),
                };
            }
            What::Release if ok => self.close(out),
            What::Reset if ok => self.was_reset(),
            What::Reset => {
                // A server that cannot reset is not fit to go on with: what it still holds is not known.
                self.drop_link(role, out);
                self.was_reset();
            }
            What::Prepare(_) => self.preparing = None,
            What::InitDb | What::SetOption(_) | What::Release | What::Plain => {}
        }
    }

    /// Notes where questions about previous statements are to be asked: SHOW WARNINGS, ROW_COUNT(), FOUND_ROWS(). What sets them
    /// was asked of both servers.
    fn note_last(&mut self, role: Role, command: Running, outcome: Outcome) {
        let here = Some(super::Last { role, lost: false });
        let failed = outcome.error.is_some();
        match command.what {
            What::Query { kind, traits, .. } | What::Execute { kind, traits, .. } => {
                let shows = kind == Kind::Show && traits.contains(Traits::DIAGNOSTICS);
                self.last = here;
                if !shows && !self.leaves_warnings(kind, traits, outcome) {
                    self.warned = here;
                }
                if !shows && outcome.rows {
                    self.last_rows = here;
                }
            }
            What::Prepare(_) => {
                if failed {
                    self.last = here;
                }
                let clears = self.server == Server::MySql && !command.keeps_last;
                if failed || outcome.warnings > 0 || clears {
                    self.warned = here;
                }
            }
            What::LongQuery(_) => {
                self.last = here;
                self.warned = here;
                if outcome.rows {
                    self.last_rows = here;
                }
            }
            What::InitDb | What::SetOption(_) | What::Reset | What::Release | What::Plain => {
                if !command.keeps_last {
                    self.last = here;
                }
                // An error can be shown, whatever command it answers.
                if !command.keeps_last || failed {
                    self.warned = here;
                }
            }
        }
    }

    /// On MariaDB the warnings of the statement before stay when one that uses no tables gives none of its own.
    fn leaves_warnings(&self, kind: Kind, traits: Traits, outcome: Outcome) -> bool {
        let uses_no_tables = traits.contains(Traits::DIAGNOSTICS)
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

    /// Notes what a statement that ran on a connection changed. Its text comes with whether it had parameters.
    fn note_statement(
        &mut self,
        kind: Kind,
        traits: Traits,
        (sql, bound): (&[u8], bool),
        outcome: Outcome,
        dialect: &Dialect,
    ) {
        if traits.contains(Traits::LOCK_FUNCTION) {
            self.state.set_user_locks();
        }
        let assigns_in_expression = traits.contains(Traits::USER_VAR_WRITE) && kind != Kind::Set;
        if assigns_in_expression || traits.intersects(Traits::UNKNOWN_FUNCTION | Traits::CALL) {
            self.state.set_user_variables_unknown();
        }
        if kind == Kind::Execute {
            // What a text prepared by SQL does is known to the server only.
            self.state.set_user_variables_unknown();
            self.state.set_opaque();
        }
        if !traits.contains(Traits::EFFECTS) {
            return;
        }
        match outcome.error {
            None => {
                let state = &mut self.state;
                state.begin_text();
                sql::effects(sql, dialect, &mut |effect| state.note(&effect, bound));
                if traits.contains(Traits::MULTI) {
                    state.end_batch(sql);
                }
            }
            // Of a batch some statements may have run before the one that failed.
            Some(_) if traits.contains(Traits::MULTI) => {
                self.state.set_opaque();
                self.state.set_user_variables_unknown();
            }
            // Servers know the variable from then on, though it has no value.
            Some(_) if traits.contains(Traits::USER_VAR_WRITE) => {
                self.state.set_user_variables_unknown();
            }
            Some(_) => {}
        }
    }
}
