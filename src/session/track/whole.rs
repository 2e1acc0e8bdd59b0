//! Replies that arrive whole and say nothing special, which nearly all do: one result set that is not a large one, or one OK.
//!
//! They are walked in one short loop; what it leaves behind in the tracker is what the ordinary walk leaves. At anything unusual
//! it gives up before anything was changed, and the ordinary walk starts from the first byte. That is a matter of cost only: the
//! code touched is a quarter, which counts where every cache line of it has gone cold since the last statement.

use super::{Outcome, State, TrackEvent, Tracker, Walk};
use crate::session::expect::Words;
use crate::wire::{Header, MAX_PAYLOAD, Status};

/// What the last packet says.
struct End {
    /// Of an OK packet.
    affected: u64,
    insert_id: u64,
    status: Status,
    warnings: u16,
}

impl End {
    /// The head of an OK packet whose numbers fit a byte each.
    fn of_ok(payload: &[u8]) -> Option<Self> {
        match *payload {
            [_, affected @ 0..=0xfa, id @ 0..=0xfa, s0, s1, w0, w1, ..] => Some(Self {
                affected: u64::from(affected),
                insert_id: u64::from(id),
                status: Status(u16::from_le_bytes([s0, s1])),
                warnings: u16::from_le_bytes([w0, w1]),
            }),
            _ => None,
        }
    }

    /// An EOF packet.
    fn of_eof(payload: &[u8]) -> Option<Self> {
        match *payload {
            [0xfe, w0, w1, s0, s1] => Some(Self {
                affected: 0,
                insert_id: 0,
                status: Status(u16::from_le_bytes([s0, s1])),
                warnings: u16::from_le_bytes([w0, w1]),
            }),
            _ => None,
        }
    }
}

/// Whole packets in order.
struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
    seq: u8,
}

impl<'a> Packets<'a> {
    /// The next packet's payload, if all of it is there, it is not empty, not continued, and its turn.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let header = Header::parse(rest)?;
        let payload = rest.get(4..4 + header.len)?;
        if payload.is_empty() || header.len == MAX_PAYLOAD || header.seq != self.seq {
            return None;
        }
        self.at += 4 + header.len;
        self.seq = self.seq.wrapping_add(1);
        Some(payload)
    }
}

impl Tracker {
    /// The whole walk, if these bytes begin with a whole reply of the kind. Names in definitions are not shown by the way.
    pub(in crate::session) fn whole(&mut self, bytes: &[u8]) -> Option<Walk> {
        let is_told_of = self.reads_names == Some(true) || self.reports_interruption;
        if !(self.at_start && self.expect.is_response()) || is_told_of {
            return None;
        }
        let mut packets = Packets {
            bytes,
            at: 0,
            seq: self.next?,
        };
        let mut said = Words::default();
        let (end, row_count) = match *packets.next()? {
            [0, ..] => {
                let payload = bytes.get(4..packets.at)?;
                said = Words::of(
                    payload
                        .get(7..payload.len().min(super::PEEK_TERMINAL))
                        .unwrap_or_default(),
                );
                (End::of_ok(payload)?, None)
            }
            // A byte behind the number says whether definitions follow.
            [columns @ 1..=0xfa] | [columns @ 1..=0xfa, 1] => {
                let (end, rows) = self.result_set(&mut packets, columns)?;
                (end, Some(rows))
            }
            _ => return None,
        };
        let changes = self.reads_changes && end.status.contains(Status::SESSION_STATE_CHANGED);
        if changes || end.status.contains(Status::MORE_RESULTS) {
            return None;
        }
        self.state = State::End;
        self.seq = packets.seq.wrapping_sub(1);
        self.next = Some(packets.seq);
        self.at_start = false;
        self.outcome = Outcome {
            status: Some(end.status),
            error: None,
            insert_id: end.insert_id,
            results: 1,
            many: false,
            rows: row_count.is_some(),
            row_count: row_count.unwrap_or(0),
            affected: match row_count {
                Some(_) => -1,
                None => i64::try_from(end.affected).unwrap_or(-1),
            },
            warnings: end.warnings,
            said,
        };
        Some(Walk {
            consumed: packets.at,
            event: Some(TrackEvent::End),
        })
    }

    /// Definitions and rows, to the end of the rows; with the number of rows.
    #[inline]
    fn result_set(&self, packets: &mut Packets<'_>, columns: u8) -> Option<(End, u64)> {
        for _ in 0..columns {
            if packets.next()?[0] >= 0xfe {
                return None;
            }
        }
        if !self.deprecate_eof {
            let special = Status::CURSOR_EXISTS | Status::PS_OUT_PARAMS;
            let eof = End::of_eof(packets.next()?)?;
            let changes = self.reads_changes && eof.status.contains(Status::SESSION_STATE_CHANGED);
            if eof.status & special != Status::NONE || changes {
                return None;
            }
        }
        let mut rows = 0;
        loop {
            let row = packets.next()?;
            let end = match row[0] {
                0xfe if self.deprecate_eof => End::of_ok(row).map(|end| End {
                    // It tells of the statement's rows only.
                    insert_id: 0,
                    ..end
                }),
                0xfe => End::of_eof(row),
                0xff => None,
                _ => {
                    rows += 1;
                    continue;
                }
            };
            return end.map(|end| (end, rows)).filter(|_| self.may_have(rows));
        }
    }
}

impl Tracker {
    /// Whether the short walk over these bytes, if it says anything, leaves what the ordinary one leaves: for tests and the fuzzer.
    pub(crate) fn walks_agree(&self, bytes: &[u8]) -> bool {
        let (mut short, mut ordinary) = (self.clone(), self.clone());
        match short.whole(bytes) {
            Some(walk) => ordinary.walk_on(bytes) == Ok(walk) && short == ordinary,
            None => short == ordinary,
        }
    }
}
