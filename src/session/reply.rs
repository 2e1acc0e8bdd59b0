//! A server's bytes: the reply to the client's command, its end and what it changed, and connections that are lost.

use super::farewell::UNKNOWN_THREAD;
use super::moved::refuses_writes;
use super::{
    Attempt, Beginning, Cx, Output, Outputs, Parting, Reply, Role, Session, TrackEvent, What,
};
use crate::shard::QUOTES;
use crate::sql::{Kind, Traits};
use crate::wire::{Capabilities, Header, Status, write_payload};

/// Error codes with which a server says that it or the connection is going away, not that the statement is wrong.
const GOING_AWAY: [u16; 4] = [
    1053, // Server shutdown in progress
    1927, // Connection was killed (MariaDB)
    3169, // The client was disconnected by the server because the session was killed
    4031, // The client was disconnected by the server because of inactivity
];

/// Those that answer a statement which somebody killed with its connection: it is not said again elsewhere.
pub(super) const KILLED: [u16; 2] = [1927, 3169];

/// Somebody killed the statement, or, on MySQL, the server is being stopped: whether it goes on tells.
pub(super) const INTERRUPTED: u16 = 1317;

/// Error codes that a replica may give where the primary would not, because it is behind or set up otherwise: a read that
/// fails with one of them is answered by the primary, whose word counts.
pub(super) const REPLICA_ONLY: [u16; 15] = [
    1044,                              // Access denied for user to database
    1049,                              // Unknown database
    1054,                              // Unknown column
    1091,                              // Can't drop; check that it exists
    1142,                              // Command denied to user for table
    1143,                              // Command denied to user for column
    1146,                              // Table doesn't exist
    1193,                              // Unknown system variable
    1290,                              // The server is running with the --read-only option
    1305,                              // Function does not exist
    1356,                              // View references invalid tables, columns or functions
    1370,                              // Command denied to user for routine
    1449,                              // The user specified as a definer does not exist
    super::unprepared::NEED_REPREPARE, // Definitions change there, which the primary is done with
    1836,                              // Running in read-only mode
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
        while at < input.len() && self.link(role).is_ready() {
            let rest = input.get_mut(at..).unwrap_or_default();
            let step = if self.is_syncing(role) {
                self.on_sync(cx, rest, client, out)
            } else if self.reply.as_ref().is_some_and(|reply| reply.role == role) {
                self.on_reply(cx, rest, at, client, out)
            } else {
                self.on_unasked(cx, role, client, out);
                return input.len();
            };
            if step == 0 {
                break;
            }
            at += step;
        }
        // Not before: a connection with something unread on it is nobody else's.
        if at == input.len() && std::mem::take(&mut self.is_done) {
            self.give_back(out);
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
        if let Some(walk) = reply.tracker.whole(rest) {
            let role = reply.role;
            let whole = rest.get(..walk.consumed).unwrap_or_default();
            if let Some(lock_reply) = &mut self.lock_reply {
                lock_reply.note(whole);
            }
            if self.dress.is_none() || !self.pass_whole_named(role, at, whole, out) {
                out.push(Output::ForwardToClient(at..at + walk.consumed));
            }
            if self.ends_plainly().is_none() {
                self.first_byte_passed(out);
                self.end_reply(cx, client, out);
                return walk.consumed;
            }
            self.tell_of_reply(cx, out);
            if walk.consumed == rest.len() {
                self.diary.owes_end = true;
            } else {
                self.end_plain(cx.now, cx.texts, out);
            }
            return walk.consumed;
        }
        self.on_part(cx, rest, at, client, out)
    }

    /// The same for bytes that are not just a whole reply of the usual kind.
    #[inline(never)]
    fn on_part(
        &mut self,
        cx: &mut Cx<'_>,
        rest: &mut [u8],
        at: usize,
        client: &mut [u8],
        out: &mut Outputs,
    ) -> usize {
        if self.overrun.is_some() {
            return self.on_overrun(cx, rest, at, client, out);
        }
        let Some(reply) = &mut self.reply else {
            return 0;
        };
        let role = reply.role;
        if reply.tracker.at_start() {
            match reply.tracker.beginning(rest) {
                Beginning::Unknown => return 0,
                // MySQL has described the rows by then.
                Beginning::Other => {
                    if reply.command.may_retry
                        && role == Role::Replica
                        && let Some(code) = error_before_rows(rest)
                        && let Some(step) = self.on_refusal(cx, (code, true), rest, client, out)
                    {
                        return step;
                    }
                }
                Beginning::Error { code, in_turn } => {
                    if let Some(step) = self.on_refusal(cx, (code, in_turn), rest, client, out) {
                        return step;
                    }
                    if code == QUOTES && self.dress.is_some() {
                        self.quote_client(cx, client);
                    }
                }
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
        if let Some(lock_reply) = &mut self.lock_reply {
            lock_reply.note(rest.get(..walk.consumed).unwrap_or_default());
        }
        let mut passed = walk.consumed;
        let mut is_over = walk.event == Some(TrackEvent::End);
        let mut named = None;
        match walk.event {
            Some(TrackEvent::Changes { at: packet }) => {
                is_over = reply.tracker.is_over();
                let whole = rest.get_mut(packet..walk.consumed).unwrap_or_default();
                passed = packet + self.take_changes(role, whole);
            }
            Some(TrackEvent::Named { at: packet, part }) => {
                is_over = reply.tracker.is_over();
                named = Some((packet, part));
            }
            Some(TrackEvent::Prepared { at: payload, ok }) => {
                let place = rest.get_mut(payload + 1..payload + 5);
                self.note_preparation(cx, role, place, ok, out);
            }
            Some(TrackEvent::LocalInfile) => self.await_file(role, out),
            // Only of a statement that is being ended.
            Some(TrackEvent::Interrupted { .. }) => {}
            Some(TrackEvent::End | TrackEvent::TooManyRows) | None => {}
        }
        if walk.consumed > 0 {
            match (renamed, named) {
                (Some(error), _) => out.client(|buffer| {
                    write_payload(buffer, 1, &error);
                }),
                (None, Some((packet, part))) => {
                    self.pass_named(role, part, (at, packet, passed), rest, out);
                }
                (None, None) => out.push(Output::ForwardToClient(at..at + passed)),
            }
            self.first_byte_passed(out);
        }
        if walk.event == Some(TrackEvent::TooManyRows) {
            self.has_too_many_rows(out);
            let rest = rest.get_mut(walk.consumed..).unwrap_or_default();
            let at = at + walk.consumed;
            return walk.consumed + self.on_overrun(cx, rest, at, client, out);
        }
        if is_over {
            self.end_reply(cx, client, out);
        }
        walk.consumed
    }

    /// The client has the whole reply.
    #[inline(never)]
    pub(super) fn end_reply(&mut self, cx: &mut Cx<'_>, client: &mut [u8], out: &mut Outputs) {
        let changes = self.changes_definitions();
        if changes || self.tells_of_columns() {
            cx.texts.definitions_changed();
        }
        if changes {
            cx.texts.tell_of_definition();
        }
        self.note_told(cx.texts.era());
        self.note_write(cx.now);
        self.tell_of_reply(cx, out);
        self.tell_done(cx.now, cx.texts, out);
        self.on_reply_end(client, out);
        self.note_in_diary(cx.now);
    }

    /// Nothing was asked: the server says farewell, or something is wrong. Either way it is over.
    #[cold]
    fn on_unasked(&mut self, cx: &mut Cx<'_>, role: Role, client: &mut [u8], out: &mut Outputs) {
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
    }

    /// The reply begins with an error, of this code, and as the answer to the command or before it. The bytes dealt with; nothing
    /// when the client is to see it. A statement that is being ended is not said again.
    #[cold]
    pub(super) fn on_refusal(
        &mut self,
        cx: &mut Cx<'_>,
        (code, in_turn): (u16, bool),
        rest: &mut [u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) -> Option<usize> {
        let reply = self.reply.as_ref()?;
        let (role, may_retry) = (reply.role, reply.command.may_retry);
        let is_read = may_retry && role == Role::Replica;
        // Said before the command arrived, or instead of an answer to a read.
        if is_going_away(code) && (may_retry && !KILLED.contains(&code) || !in_turn) {
            out.push(Output::CloseBackend {
                role,
                parting: Parting::Silent,
            });
            self.on_backend_lost(cx, role, "the server is going away", client, out);
            return Some(rest.len());
        }
        if self.may_prepare_again(code) {
            self.prepare_again(client, out);
            return Some(self.on_sync(cx, rest, client, out));
        }
        if role == Role::Primary && self.may_wait(code, rest, client) {
            self.await_primary(client, out);
            return Some(self.on_sync(cx, rest, client, out));
        }
        if is_read && code == INTERRUPTED {
            self.attempt.is_interrupted = true;
            self.ask_first();
            out.push(Output::Cut { role });
            out.push(Output::CloseBackend {
                role,
                parting: Parting::Silent,
            });
            self.on_backend_lost(cx, role, "the statement was interrupted", client, out);
            return Some(rest.len());
        }
        if is_read && REPLICA_ONLY.contains(&code) && self.may_fall_back(cx) {
            self.ask_primary_instead(client);
            return Some(self.on_sync(cx, rest, client, out));
        }
        if role == Role::Primary
            && code == UNKNOWN_THREAD
            && let Some(step) = self.kill_worked_out(rest, client, out)
        {
            return Some(step);
        }
        // Whether it still is the primary is looked at, also where the statement is not said again.
        if role == Role::Primary && refuses_writes(code, rest) {
            out.push(Output::PrimaryIsReadOnly);
        }
        None
    }

    /// The replica refuses a read that the primary may well answer.
    fn ask_primary_instead(&mut self, client: &mut [u8]) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        self.preparing = None;
        self.say_again(&reply.command, client);
        self.attempt.force_primary = true;
        self.attempt.preparations = 0;
        self.attempt.why = "the replica refused the statement".into();
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
            What::Prepare { .. }
            | What::InitDb
            | What::SetOption(_)
            | What::Fetch(_)
            | What::Reset
            | What::Release
            | What::Plain => false,
        }
    }

    /// The client has part of the reply, so the command can no longer be said again.
    pub(super) fn first_byte_passed(&mut self, out: &mut Outputs) {
        if !self.notes_at_end() {
            self.release_command(out);
        }
    }

    /// The retained bytes are needed when the reply has ended.
    pub(super) fn notes_at_end(&self) -> bool {
        match self.reply.as_ref().map(|reply| reply.command.what) {
            Some(What::Query { traits, .. }) => {
                traits.intersects(Traits::EFFECTS | Traits::LOCK_FUNCTION | Traits::MULTI)
            }
            Some(What::InitDb) => true,
            _ => false,
        }
    }

    pub(super) fn release_command(&mut self, out: &mut Outputs) {
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
        self.is_done = true;
        let outcome = tracker.outcome();
        // The statement was read as the session stood before it.
        let dialect = self.dialect();
        if let Some(upload) = &mut self.upload
            && upload.is_file
        {
            // The file was refused while it was still coming; a server that does so closes the connection.
            upload.to = None;
        }
        if role == Role::Primary && outcome.error.is_some() {
            // An error does not tell of the transaction that it may have left open.
            self.is_in_doubt = !self.status.contains(Status::AUTOCOMMIT);
        }
        if let Some(status) = outcome.status {
            if let Some(known) = self.link_mut(role).known_mut() {
                known.status = status;
            }
            if role == Role::Primary {
                let in_doubt = self.is_in_doubt && outcome.error.is_some();
                self.note_status(status);
                self.is_in_doubt = in_doubt;
            }
        }
        let had_schema = self.state.schema().is_some();
        self.note_command(role, command, outcome, &dialect, client, out);
        let executed = self.state.executed_kind();
        self.note_seen(role, command, outcome, out);
        self.lock_reply = None;
        if self.state.take_defaults_changed() {
            // Before the client is told: another that it tells must not meet an old connection.
            out.list.insert(0, Output::DefaultsChanged { role });
        }
        if had_schema && self.state.schema().is_none() {
            // It was dropped. Over there the connection would keep its name.
            self.drop_link(Role::Replica, out);
        }
        if role == Role::Primary
            && self.note_done(command, outcome)
            && self.state.history().limits_memory()
        {
            self.close_others(role, out);
        }
        self.note_last(role, command, outcome);
        self.attempt = Attempt::default();
        if command.retained > 0 {
            out.push(Output::Consume(command.retained));
        }
        if role == Role::Primary {
            let sql = match command.what {
                What::Query { at, .. } => client.get(at..command.retained).unwrap_or_default(),
                _ => b"",
            };
            self.look_for_end((command, outcome), sql, executed, out);
        }
    }
}

/// The code with which a server that is being stopped, or was told to stop the statement, ends a reply whose columns it has
/// described and which has no row yet. All that has come is in these bytes.
fn error_before_rows(bytes: &[u8]) -> Option<u16> {
    let count = Header::parse(bytes).filter(|header| header.len == 1)?;
    let columns = bytes.get(4).copied().filter(|columns| *columns < 0xfb)?;
    let mut rest = bytes.get(4 + count.len..)?;
    // Behind the definitions there may be an EOF.
    for seen in 0..=u16::from(columns) + 1 {
        let header = Header::parse(rest)?;
        let packet = rest.get(4..4 + header.len)?;
        if seen >= u16::from(columns)
            && let [0xff, low, high, ..] = packet
        {
            let code = u16::from_le_bytes([*low, *high]);
            return (code == INTERRUPTED || is_going_away(code)).then_some(code);
        }
        let is_eof = header.len == 5 && packet.first() == Some(&0xfe);
        if seen >= u16::from(columns) && !is_eof {
            return None;
        }
        rest = rest.get(4 + header.len..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_behind_the_columns() {
        let reply = |packets: &[&[u8]]| {
            let mut bytes = Vec::new();
            for (seq, packet) in (1..).zip(packets) {
                write_payload(&mut bytes, seq, packet);
            }
            error_before_rows(&bytes)
        };
        let (def, eof, row) = (&b"\x03def"[..], &b"\xfe\0\0\x02\0"[..], &b"\x011"[..]);
        let killed = &b"\xff\x25\x05#70100interrupted"[..];
        let other = &b"\xff\x0d\x05#HY000x"[..];
        assert_eq!(reply(&[b"\x01", def, killed]), Some(1317));
        assert_eq!(reply(&[b"\x02", def, def, eof, killed]), Some(1317));
        for rest in [
            &[&b"\x01"[..], def, row, killed][..],
            &[b"\x01", def, eof, row, killed],
            &[b"\x01", def, eof],
            &[b"\x01", def, other],
            &[b"\x01", killed],
            &[b"\x01"],
            &[b"\0\0\0\x02\0\0\0"],
            &[killed],
            &[],
        ] {
            assert_eq!(reply(rest), None, "{rest:?}");
        }
    }
}
