//! The client's names in replies to statements that were rewritten for a shard.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Cx, Fault, Output, Outputs, Role, Session, What};
use crate::shard::{Dress, Leg, Part, Placement, Plan, QUOTES, Shows};
use crate::sql::{self, Dialect, Kind, Traits};
use crate::wire::{Capabilities, ColumnCount, Command, Packets, query_text};

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

impl Session {
    /// The reply that is awaited begins with an error that quotes what was sent: it is to quote the client's text.
    #[cold]
    pub(super) fn quote_client(&mut self, cx: &Cx<'_>, client: &[u8]) {
        let Some(command) = self.reply.as_ref().map(|reply| reply.command) else {
            return;
        };
        let d = self.dialect();
        let Some(text) = client_text(client.get(..command.retained), self.capabilities) else {
            return;
        };
        // As it was planned: nothing of what that hangs on is another.
        let leg = match command.what {
            What::Query { .. } => {
                let statement = sql::classify(text, &d);
                match self.plan(cx, text, &statement, self.is_allowed()) {
                    Some(Plan::One(leg)) => leg,
                    _ => return,
                }
            }
            What::Prepare { .. } => {
                let kind = sql::classify(text, &d).kind;
                match self.read_named(cx, text, kind) {
                    Ok(Some((leg, _))) => leg,
                    _ => return,
                }
            }
            _ => return,
        };
        self.quote(&leg, client);
    }

    /// The same for a statement that this leg is sent of, and whose command is at the front of the client's bytes.
    #[cold]
    pub(super) fn quote(&mut self, leg: &Leg, client: &[u8]) {
        let d = self.dialect();
        if let (Some(dress), Some(text)) =
            (&self.dress, client_text(Some(client), self.capabilities))
        {
            self.dress = Some(Arc::new(dress.quoting(text, leg, &d)));
            self.warned_dress.clone_from(&self.dress);
        }
    }
}

/// The text of the command at the front of these bytes.
fn client_text(bytes: Option<&[u8]>, capabilities: Capabilities) -> Option<&[u8]> {
    let (_, payload) = Packets::new(bytes?).next()?;
    match payload.first() {
        Some(first) if *first == Command::StmtPrepare.code() => payload.get(1..),
        _ => payload.get(query_text(payload, capabilities).ok()?),
    }
}

/// An error of a server that was sent this leg of a text: what it quotes of it, as the client wrote it.
pub(super) fn in_clients_words(
    of: Option<(&Arc<Placement>, &Leg)>,
    client: &[u8],
    d: &Dialect,
    fault: Fault,
) -> Fault {
    let dress = of.and_then(|(placement, leg)| {
        let dress = Dress::new(placement, leg)?;
        Some(dress.quoting(client, leg, d))
    });
    match (fault, dress) {
        (
            Fault::Server {
                code: QUOTES,
                sqlstate,
                message,
            },
            Some(dress),
        ) => {
            let known = dress.message(QUOTES, message.as_bytes());
            let known = known.map(|known| String::from_utf8_lossy(&known).into_owned());
            Fault::Server {
                code: QUOTES,
                sqlstate,
                message: known.unwrap_or(message),
            }
        }
        (fault, _) => fault,
    }
}

/// The same names where messages are shown.
fn for_messages(dress: &Arc<Dress>) -> Arc<Dress> {
    Arc::new(dress.showing(Shows::Messages))
}
