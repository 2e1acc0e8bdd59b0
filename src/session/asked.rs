//! Executions of statements that ask about the statement before. Where the connection that ran that one is not at hand, a text with the
//! answers in it is prepared in place of the client's and executed; the next execution begins with the client's own again. What becomes
//! of a question is decided where it is for texts, in `routing`.

use std::sync::Arc;

use super::area::AreaStep;
use super::hold::close_statement;
use super::texts::Text;
use super::{Cx, Fault, Outputs, Role, Session};
use crate::route::Route;
use crate::sql::{Kind, Statement, Traits};
use crate::wire::{Packets, Reader, write_payload};

/// What becomes of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// It goes.
    Goes,
    /// What it needs has been asked for.
    Waits,
    /// It was answered.
    Done,
}

impl Session {
    /// What becomes of an execution that may ask about the statement before. Its statement then has the text that is to be executed.
    ///
    /// # Errors
    /// Nobody can answer any more.
    pub(super) fn ask_by_execution(
        &mut self,
        cx: &mut Cx<'_>,
        route: &mut Route,
        id: u32,
        (kind, traits): (Kind, Traits),
        out: &mut Outputs,
    ) -> Result<Asking, Fault> {
        if !traits.intersects(Traits::DIAGNOSTICS | Traits::CONNECTION_ID) {
            return Ok(Asking::Goes);
        }
        let Some(statement) = self.statements.get_mut(id) else {
            return Ok(Asking::Goes);
        };
        let Some(text) = statement.own_text().cloned() else {
            return Ok(Asking::Goes);
        };
        let has_data = statement.long_data;
        let asked = Statement {
            kind,
            traits,
            hint: None,
        };
        match self.answer_questions(cx, route, &text.sql, &asked, out) {
            AreaStep::Forward => self.put_text(id, (text, None), out),
            // The data came for the client's own text.
            AreaStep::Text(_) if has_data => return Err(Fault::LostPrevious),
            AreaStep::Text(answered) => {
                let answered = cx.texts.keep(&answered, &text.state);
                self.put_text(id, (answered, Some(text)), out);
            }
            AreaStep::Shown(reply) => {
                out.client(|buffer| buffer.extend_from_slice(&in_binary(&reply)));
                return Ok(Asking::Done);
            }
            AreaStep::Done => return Ok(Asking::Done),
            AreaStep::Waits => return Ok(Asking::Waits),
            AreaStep::Refuse(fault) => return Err(fault),
        }
        Ok(Asking::Goes)
    }

    /// The statement was executed, or could not be: it is the client's own again.
    pub(super) fn take_answers_out(&mut self, id: u32, out: &mut Outputs) {
        if let Some(own) = self.statements.get_mut(id).and_then(|s| s.asks.take()) {
            self.put_text(id, (own, None), out);
        }
    }

    /// Has the statement prepared from this text from here on, which stands for the other. One with answers in it serves once.
    fn put_text(
        &mut self,
        id: u32,
        (text, asks): (Arc<Text>, Option<Arc<Text>>),
        out: &mut Outputs,
    ) {
        let Some(statement) = self.statements.get_mut(id) else {
            return;
        };
        statement.asks = asks;
        let Some(old) = statement.text.replace(text) else {
            return;
        };
        // Others have it, or it is the client's and comes back.
        if Arc::strong_count(&old) > 1 {
            return;
        }
        for role in Role::BOTH {
            let known = self.links[role as usize].known_mut();
            if let Some(id) = known.and_then(|known| known.statements.remove(&old)) {
                close_statement(role, id, out);
            }
        }
    }
}

/// A text reply to SHOW WARNINGS or SHOW ERRORS as an execution is answered: a text, a number of four bytes, a text.
fn in_binary(reply: &[u8]) -> Vec<u8> {
    const COLUMNS: usize = 3;
    let packets: Vec<&[u8]> = Packets::new(reply).map(|(_, packet)| packet).collect();
    let last = packets.len().saturating_sub(1);
    let mut out = Vec::with_capacity(reply.len());
    let mut seq = 1_u8;
    for (at, packet) in packets.iter().enumerate() {
        let is_row = at > COLUMNS && at < last && !(packet.len() == 5 && packet[0] == 0xfe);
        let row = if is_row { binary_row(packet) } else { None };
        seq = write_payload(&mut out, seq, row.as_deref().unwrap_or(packet));
    }
    out
}

fn binary_row(row: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new("row", row);
    let start = row.len() - reader.remaining();
    reader.lenenc_bytes("level").ok()?;
    let code_at = row.len() - reader.remaining();
    let code = reader.lenenc_bytes("code").ok()?;
    let message_at = row.len() - reader.remaining();
    let code: u32 = std::str::from_utf8(code).ok()?.parse().ok()?;
    // The kind of packet, and a byte in which no column is NULL.
    let mut out = vec![0, 0];
    out.extend_from_slice(row.get(start..code_at)?);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(row.get(message_at..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_warnings_become_binary_rows() {
        for with_eof in [false, true] {
            let mut packets: Vec<&[u8]> = vec![b"\x03", b"def", b"def", b"def"];
            if with_eof {
                packets.push(b"\xfe\0\0\x02\0");
            }
            packets.push(b"\x07Warning\x041292\x04text");
            packets.push(b"\x05Error\x041062\x00");
            packets.push(b"\xfe\0\0\x02\0\0\0");
            let write = |packets: &[&[u8]]| {
                let mut bytes = Vec::new();
                let mut seq = 1;
                for packet in packets {
                    seq = write_payload(&mut bytes, seq, packet);
                }
                bytes
            };
            let text = write(&packets);
            let rows = packets.len() - 3;
            packets[rows] = b"\0\0\x07Warning\x0c\x05\0\0\x04text";
            packets[rows + 1] = b"\0\0\x05Error\x26\x04\0\0\x00";
            assert_eq!(in_binary(&text), write(&packets));
        }
    }
}
