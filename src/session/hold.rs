//! Giving server connections back: when a session may, what it must know before it does, and what it keeps in mind of them.
//!
//! A connection is *held* for as long as it has something that no other connection has: a transaction, a temporary table, a
//! lock. Some of what it has can be asked for and kept in mind: then the connection is *on call* and is given back when
//! somebody needs one.

use super::known::Conditions;
use super::sync::Said;
use super::{Access, Cx, InsertId, Link, Output, Outputs, Phase, Role, Session};
use crate::wire::{Packets, Reader, Status};

/// What ties a connection to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nothing.
    Free,
    /// What can be asked for first.
    OnCall,
    /// What exists there only.
    Held,
}

/// So many warnings are kept in mind; of more the connection itself has to be kept.
const WARNINGS_KEPT: u16 = 64;
/// The statement whose answer is kept then.
const WARNINGS: &[u8] = b"SHOW WARNINGS";

/// Asks what would be forgotten with the connection; in this order since the question itself changes the last two.
pub(super) const ASK: &[u8] = b"SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()";

impl Session {
    /// What ties the connection to the session between two commands.
    pub(super) fn hold(&self, role: Role) -> Hold {
        if role == Role::Primary && self.is_pinned() {
            return Hold::Held;
        }
        let serial = self.link(role).known().map(|known| known.serial);
        let is_here = |last: &super::Last| Some(last.serial) == serial && last.holds;
        // What it is prepared for now other shards are too: one prepared before may give its columns types of other parameters.
        if self.diary.is_leg && self.statements.awaits_execution() {
            return Hold::Held;
        }
        let warns = self.warned.as_ref().is_some_and(is_here);
        if warns
            && self
                .warned
                .is_some_and(|last| last.warnings > WARNINGS_KEPT)
        {
            return Hold::Held;
        }
        if warns
            || self.last_rows.as_ref().is_some_and(is_here)
            || (role == Role::Primary && self.insert_id == InsertId::OnConnection)
        {
            return Hold::OnCall;
        }
        Hold::Free
    }

    /// The primary's connection has what exists there only.
    pub(super) fn is_pinned(&self) -> bool {
        self.status.contains(Status::IN_TRANS)
            || self.is_in_doubt
            || self.state.pins().bind_connection()
            || self.statements.bound_to_primary()
    }

    /// A command is over: connections that nothing ties to the session go back.
    pub(super) fn give_back(&mut self, out: &mut Outputs) {
        if !(self.shares || self.retired != [false; 2]) || !self.is_at_rest() {
            return;
        }
        for role in Role::BOTH {
            let retires = self.retired[role as usize];
            if !self.link(role).is_ready() || !(self.shares || retires) {
                continue;
            }
            match self.hold(role) {
                Hold::Free => self.release(role, out),
                Hold::OnCall if retires => {
                    self.on_reclaim(role, out);
                    // The answer comes first; with it the session looks again.
                    return;
                }
                Hold::OnCall => out.push(Output::OnCall { role }),
                Hold::Held => {}
            }
        }
    }

    /// Between two commands, with nothing under way.
    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Command)
            && self.reply.is_none()
            && self.sync.is_none()
            && self.upload.is_none()
            && self.waiting.is_none()
            && !self.awaits_interruption()
    }

    pub(super) fn release(&mut self, role: Role, out: &mut Outputs) {
        if let Link::Ready(known) = std::mem::take(self.link_mut(role)) {
            out.push(Output::Release { role, known });
        }
    }

    /// The connection's host is not to be used any more: the session gives it up, now or when nothing ties it any longer.
    pub fn on_retire(&mut self, role: Role, out: &mut Outputs) {
        if matches!(self.link(role), Link::Absent) {
            return;
        }
        self.retired[role as usize] = true;
        self.give_back(out);
    }

    /// Somebody needs a connection that this session has on call. Whether it gives it back, now or soon.
    pub fn on_reclaim(&mut self, role: Role, out: &mut Outputs) -> bool {
        if !(self.shares || self.retired[role as usize])
            || !self.is_at_rest()
            || !self.link(role).is_ready()
        {
            return false;
        }
        match self.hold(role) {
            Hold::Held => false,
            Hold::Free => {
                self.release(role, out);
                true
            }
            Hold::OnCall => {
                self.ask_before_leaving(role, out);
                true
            }
        }
    }

    /// Before the session waits for a connection of this role, the other goes back if only previous statements tie it. So who holds
    /// one of a replica never waits for one of the primary, and no circle closes of sessions that wait for each other's. One of
    /// the primary that is held stays: its session waits for those that wait for nobody.
    /// False when what would be forgotten with it is asked first; the command is looked at again with the answer.
    pub(super) fn part_before_waiting(&mut self, role: Role, out: &mut Outputs) -> bool {
        let other = role.other();
        if !self.shares || !self.link(other).is_ready() {
            return true;
        }
        if other == Role::Replica
            && let Some(last) = self.warned.as_mut()
            && last.role == other
            && last.warnings > WARNINGS_KEPT
        {
            // Too many to be kept, and the command that is to come replaces them.
            last.holds = false;
        }
        match self.hold(other) {
            Hold::Free => self.release(other, out),
            Hold::OnCall => {
                self.ask_before_leaving(other, out);
                return false;
            }
            Hold::Held => {}
        }
        true
    }

    /// Asks a connection what would be forgotten with it.
    pub(super) fn ask_before_leaving(&mut self, role: Role, out: &mut Outputs) {
        let capabilities = self.capabilities_of(role);
        let serial = self.link(role).known().map(|known| known.serial);
        let warns = self
            .warned
            .is_some_and(|last| last.holds && Some(last.serial) == serial);
        let start = out.arena.len();
        let mut said = std::collections::VecDeque::new();
        if warns {
            super::bring::write_query(&mut out.arena, capabilities, WARNINGS);
            said.push_back(Said::Warnings);
        }
        let conditions = if warns {
            self.say_conditions(role, &mut said, out)
        } else {
            0
        };
        super::bring::write_query(&mut out.arena, capabilities, ASK);
        said.push_back(Said::Numbers);
        // Behind the numbers, which the question itself changes.
        self.say_got(role, conditions, &mut said, out);
        out.push(Output::SendToBackend {
            role,
            range: start..out.arena.len(),
            access: Access::Read,
        });
        self.start_sync(role, said);
    }

    /// The answer to [`WARNINGS`]: it is the client's, when that asks for it.
    pub(super) fn note_warnings(&mut self, role: Role, answer: Vec<u8>) {
        let warnings = self
            .warned
            .map_or(0, |last| if last.failed { 0 } else { last.warnings });
        let area = super::area::Area::new(answer, warnings, self.capabilities_of(role));
        self.kept = Some(Box::new(area));
        if let Some(last) = &mut self.warned {
            last.holds = false;
        }
    }

    /// The answer to [`ASK`], a text result.
    pub(super) fn note_numbers(&mut self, role: Role, answer: &[u8], out: &mut Outputs) {
        self.is_done = true;
        self.note_seen_late(role, out);
        let Some((row_count, found_rows, insert_id)) = numbers(answer) else {
            // Then it is forgotten, and whoever asks is told so.
            return self.drop_link(role, out);
        };
        let serial = self.link(role).known().map(|known| known.serial);
        let is_last = self.last.is_some_and(|last| Some(last.serial) == serial);
        // That of a statement with conditions is known, and they were asked for before.
        let is_known = self.kept.is_some() && self.numbers.row_count.is_some();
        if is_last && !is_known {
            self.numbers.row_count = Some(row_count);
        }
        if self
            .last_rows
            .is_some_and(|last| Some(last.serial) == serial)
        {
            self.note_found_there(found_rows);
        }
        if role == Role::Primary && self.insert_id == InsertId::OnConnection {
            self.insert_id = InsertId::Known(insert_id);
        }
        if let Some(known) = self.link_mut(role).known_mut() {
            known.insert_id = Some(insert_id);
            known.found_rows = Some(1);
            // The question was a statement too: nothing that came before can be asked of the connection any more.
            known.set_asked();
        }
    }

    /// A connection is taken up.
    pub(super) fn take_up(&mut self, role: Role, known: Box<super::Known>, out: &mut Outputs) {
        if role == Role::Primary {
            self.fresh_status = known.fresh_status;
            if !self.status_is_known {
                self.status = self.fresh_status;
                self.status_is_known = true;
            }
            // Otherwise the client has set what it has set, and the connection is brought to that before it is used.
            self.server = known.server;
            self.version = known.version;
        }
        *self.link_mut(role) = Link::Ready(known);
        if let Some(known) = self.link_mut(role).known_mut()
            && known.conditions == Conditions::Own
        {
            known.conditions = Conditions::Others;
        }
        self.retired[role as usize] = false;
        self.close_unused(role, out);
    }

    /// Closes statements on a connection that no session has any more. Looking costs, so not at every turn, but where this session
    /// has closed one while it had no connection.
    fn close_unused(&mut self, role: Role, out: &mut Outputs) {
        const EVERY: u64 = 64;
        let Some(known) = self.links[role as usize].known_mut() else {
            return;
        };
        if known.statements.is_empty() {
            return;
        }
        if known.history.limits_memory() || self.state.history().limits_memory() {
            return self.close_others(role, out);
        }
        if self.statements.take_closed() || known.serial.is_multiple_of(EVERY) {
            known
                .statements
                .sweep(&mut |id| close_statement(role, id, out));
        }
    }

    /// Closes statements on a connection that are not this session's: they count against the limit that it has set.
    #[cold]
    pub(super) fn close_others(&mut self, role: Role, out: &mut Outputs) {
        if let Some(known) = self.links[role as usize].known_mut() {
            let own = self.statements.texts();
            known
                .statements
                .keep_of(&own, &mut |id| close_statement(role, id, out));
        }
    }

    /// What the session would use at once, were it there.
    pub(super) fn ask(&self, cx: &Cx<'_>, role: Role, same: Option<u64>) -> super::Ask {
        super::Ask {
            role,
            group: self.group_index(cx.snapshot),
            shape: self.shape(role, cx.snapshot),
            state: self.state.history().hash(),
            avoid: self.attempt.avoid.filter(|_| role == Role::Replica),
            same,
        }
    }
}

/// COM_STMT_CLOSE, which has no reply.
pub(super) fn close_statement(role: Role, id: u32, out: &mut Outputs) {
    let [a, b, c, d] = id.to_le_bytes();
    out.backend(role, Access::Read, |buffer| {
        buffer.extend_from_slice(&[5, 0, 0, 0, 0x19, a, b, c, d]);
    });
}

/// The last row in a whole answer: the last packet but one.
pub(super) fn row_before_end(answer: &[u8]) -> Option<&[u8]> {
    let mut last = [None; 2];
    for (_, payload) in Packets::new(answer) {
        last = [last[1], Some(payload)];
    }
    last[0]
}

/// The values of the last row of a text result.
pub(super) fn last_row(answer: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader::new("row", row_before_end(answer)?);
    let mut values = Vec::new();
    while reader.remaining() > 0 {
        values.push(reader.lenenc_bytes("value").ok()?);
    }
    Some(values)
}

/// The numbers of the one row of a text result.
fn numbers(answer: &[u8]) -> Option<(i64, u64, u64)> {
    let row = last_row(answer)?;
    let [row_count, found_rows, insert_id] = row.as_slice() else {
        return None;
    };
    let text = |value| std::str::from_utf8(value).ok();
    Some((
        text(row_count)?.parse().ok()?,
        text(found_rows)?.parse().ok()?,
        text(insert_id)?.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_numbers_are_read_in_either_framing() {
        let row = b"\x02-1\x013\x0219";
        for with_eof in [false, true] {
            let mut bytes = Vec::new();
            let mut packets: Vec<&[u8]> = vec![b"\x03", b"def", b"def", b"def"];
            if with_eof {
                packets.push(b"\xfe\0\0\x02\0");
            }
            packets.push(row);
            packets.push(b"\xfe\0\0\x02\0");
            for (seq, packet) in (1..).zip(packets) {
                crate::wire::write_payload(&mut bytes, seq, packet);
            }
            assert_eq!(numbers(&bytes), Some((-1, 3, 19)));
            assert_eq!(numbers(&bytes[..20]), None);
        }
        assert_eq!(numbers(b""), None);
    }
}
