//! The client's names in replies to statements that were rewritten for a shard.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Cx, Output, Outputs, Role, Session};
use crate::shard::{Dress, Leg, Part, Shows};
use crate::sql::{Kind, Traits};
use crate::wire::{ColumnCount, Packets};

/// Rows of so many bytes are copied behind the definitions.
const SHORT: usize = 1024;

impl Session {
    /// What is to be done with the names in the reply to a statement that goes to this shard, or to none.
    pub(super) fn dress_for(
        &mut self,
        cx: &Cx<'_>,
        leg: Option<&Leg>,
        kind: Kind,
        traits: Traits,
    ) -> bool {
        if self.diary.is_leg {
            return self.dress.is_some();
        }
        self.dress = None;
        let Some(placement) = &cx.snapshot.placement else {
            return false;
        };
        let asks = kind == Kind::Show && traits.contains(Traits::DIAGNOSTICS);
        self.dress = match leg {
            Some(leg) if leg.dress.is_some() => leg.dress.clone(),
            Some(leg) => Dress::new(placement, leg).map(Arc::new),
            None if asks => self.warned_dress.as_ref().map(for_messages),
            None => None,
        };
        if !asks {
            self.warned_dress.clone_from(&self.dress);
        }
        self.dress.is_some()
    }

    /// The names in the reply to a statement that goes to a shard are known.
    pub(super) fn wear_for_statement(&mut self, dress: Option<Arc<Dress>>) {
        self.warned_dress.clone_from(&dress);
        self.dress = dress;
    }

    /// Whether the rows of the reply that is awaited have names in them.
    pub(super) fn dresses_rows(&self) -> bool {
        self.dress.as_ref().is_some_and(|dress| dress.reads_rows())
    }

    /// Passes on what was walked, which begins at `at` and ends with a packet at `packet`, with the client's names in that.
    pub(super) fn pass_named(
        &self,
        role: Role,
        part: Part,
        (at, packet, end): (usize, usize, usize),
        walked: &[u8],
        out: &mut Outputs,
    ) {
        let whole = walked.get(packet..end).unwrap_or_default();
        if packet > 0 {
            out.push(Output::ForwardToClient(at..at + packet));
        }
        if !self.send_dressed(role, part, whole, out) {
            out.push(Output::ForwardToClient(at + packet..at + end));
        }
    }

    /// Passes on a whole reply that is no error, which begins at `at`, with the client's names in its definitions; false when it
    /// has none.
    #[inline(never)]
    pub(super) fn pass_whole_named(
        &self,
        role: Role,
        at: usize,
        whole: &[u8],
        out: &mut Outputs,
    ) -> bool {
        let (Some(dress), Some(columns @ 1..=0xfa)) = (&self.dress, whole.get(4).copied()) else {
            return false;
        };
        let capabilities = self.capabilities_of(role);
        let start = out.arena.len();
        let mut end = 0;
        for (number, (header, payload)) in Packets::new(whole)
            .take(1 + usize::from(columns))
            .enumerate()
        {
            let packet = end..end + 4 + payload.len();
            end = packet.end;
            let before = out.arena.len();
            let is_named = number > 0
                && dress.write(
                    Part::Definition,
                    payload,
                    header.seq,
                    capabilities,
                    &mut out.arena,
                );
            if !is_named {
                out.arena.truncate(before);
                out.arena
                    .extend_from_slice(whole.get(packet).unwrap_or_default());
            }
        }
        let rest = whole.get(end..).unwrap_or_default();
        // Few rows are copied, many are passed on from where they are.
        let is_short = rest.len() <= SHORT;
        if is_short {
            out.arena.extend_from_slice(rest);
        }
        out.push(Output::SendToClient(start..out.arena.len()));
        if !is_short {
            out.push(Output::ForwardToClient(at + end..at + whole.len()));
        }
        true
    }

    /// Sends the packet (with its header) to the client with the client's names in it; false when it can go as it is.
    fn send_dressed(&self, role: Role, part: Part, packet: &[u8], out: &mut Outputs) -> bool {
        let capabilities = self.capabilities_of(role);
        let (Some(dress), Some(seq), Some(payload)) = (&self.dress, packet.get(3), packet.get(4..))
        else {
            return false;
        };
        let start = out.arena.len();
        if dress.write(part, payload, *seq, capabilities, &mut out.arena) {
            let range = start..out.arena.len();
            out.push(Output::SendToClient(range));
            return true;
        }
        out.arena.truncate(start);
        false
    }

    /// A whole answer of a shard, with the client's names in it.
    pub(super) fn dressed_answer<'a>(&self, role: Role, answer: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(dress) = &self.dress else {
            return Cow::Borrowed(answer);
        };
        let capabilities = self.capabilities_of(role);
        let mut out = Vec::with_capacity(answer.len());
        let mut definitions = 0;
        for (number, (header, payload)) in (0_u64..).zip(Packets::new(answer)) {
            if number == 0
                && let Ok(count) = ColumnCount::parse(payload, capabilities)
                && count.has_definitions
            {
                definitions = count.columns;
            }
            let part = match payload.first() {
                Some(0xff) => Some(Part::Error),
                _ if (1..=definitions).contains(&number) => Some(Part::Definition),
                _ => None,
            };
            let start = out.len();
            let is_dressed = part
                .is_some_and(|part| dress.write(part, payload, header.seq, capabilities, &mut out));
            if !is_dressed {
                out.truncate(start);
                out.extend_from_slice(&header.to_bytes());
                out.extend_from_slice(payload);
            }
        }
        Cow::Owned(out)
    }

    /// A kept reply to SHOW WARNINGS, with the client's names in it.
    pub(super) fn dressed_warnings(&self, role: Role, answer: Vec<u8>) -> Vec<u8> {
        let Some(dress) = self.warned_dress.as_ref().map(for_messages) else {
            return answer;
        };
        let capabilities = self.capabilities_of(role);
        let mut out = Vec::with_capacity(answer.len());
        for (header, payload) in Packets::new(&answer) {
            let start = out.len();
            // Definitions and ends are no rows whose third value is a message.
            if !dress.write(Part::Row, payload, header.seq, capabilities, &mut out) {
                out.truncate(start);
                out.extend_from_slice(&header.to_bytes());
                out.extend_from_slice(payload);
            }
        }
        out
    }
}

/// The same names where messages are shown.
fn for_messages(dress: &Arc<Dress>) -> Arc<Dress> {
    Arc::new(dress.showing(Shows::Messages))
}
