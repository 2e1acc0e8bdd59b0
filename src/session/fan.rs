//! The replies of several shards on their way into one: whose packets the client gets now, how they are numbered, when it has enough.
//!
//! Shards are heard as their bytes come. The columns are those of the first that describes any; rows pass as they are, in any order,
//! and no shard breaks into a packet of another. Nothing is kept but where each reply stands: who cannot be heard now waits with its
//! bytes. Asking shards and answering the client is `legs`' business.

use std::ops::Range;

use super::{Expect, TrackEvent, Tracker};
use crate::wire::{
    Capabilities, ColumnCount, ColumnDef, EofPacket, Header, MAX_PAYLOAD, OkPacket, Status,
};

/// What a shard's bytes came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing more until there are more of them.
    More,
    /// Nothing more while another shard is in the middle of something.
    Later,
    /// The shard has said everything.
    Over,
    /// The client has all the rows that it wants.
    Full,
    /// There is one more than the client may have.
    TooMany,
    /// The shard refuses: the ERR packet's place in the bytes.
    Refused(Range<usize>),
    /// The shard answers with other columns than another, or with something else.
    Unlike,
}

/// What was done with a shard's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// So many are done with.
    pub(super) consumed: usize,
    /// The client first gets a packet of this, in its own framing.
    pub(super) count: Option<ColumnCount>,
    /// These are for the client, numbered as it is to get them.
    pub(super) pass: Range<usize>,
    pub(super) heard: Heard,
}

/// Where a shard's reply stands.
#[derive(Debug)]
enum Place {
    /// The statement is being prepared, which is nothing to the client.
    Prepare(Box<Tracker>),
    Count,
    /// The definition with this number comes, of so many.
    Definition(usize, usize),
    /// The EOF behind them.
    Between,
    Row,
    Over,
}

#[derive(Debug)]
struct Part {
    place: Place,
    /// Bytes of its present packet that are still to come, after which the packet goes on in another or not.
    left: usize,
    goes_on: bool,
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Fan {
    parts: Vec<Part>,
    /// Those of the shards' replies.
    capabilities: Capabilities,
    /// The number of columns that the client is to be told before anything else.
    count: Option<ColumnCount>,
    /// Types of the columns that the client was told of, by the shard with this number.
    kinds: Vec<u8>,
    teller: Option<usize>,
    /// The shard that is in the middle of a packet, or of describing its rows.
    speaker: Option<usize>,
    /// Rows that the client wants.
    limit: u64,
    /// Rows that it may have.
    most: u64,
    rows: u64,
    warnings: u16,
    seq: u8,
}

impl Fan {
    /// For shards that reply as these capabilities say, and a client that wants so many rows, and may have so many.
    pub(super) fn new(capabilities: Capabilities, limit: u64, most: u64) -> Self {
        Self {
            parts: Vec::new(),
            capabilities,
            count: None,
            kinds: Vec::new(),
            teller: None,
            speaker: None,
            limit,
            most,
            rows: 0,
            warnings: 0,
            seq: 1,
        }
    }

    /// The next shard has been asked; one that has to prepare the statement first answers that too.
    pub(super) fn asked(&mut self, prepares: bool) {
        let tracker = || Box::new(Tracker::new(Expect::Prepare, self.capabilities));
        self.parts.push(Part {
            place: if prepares {
                Place::Prepare(tracker())
            } else {
                Place::Count
            },
            left: 0,
            goes_on: false,
        });
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn warnings(&self) -> u16 {
        self.warnings
    }

    /// The sequence id of the client's next packet.
    pub(super) fn seq(&self) -> u8 {
        self.seq
    }

    /// The client stands between two packets, so that something else than the shard's next byte may follow.
    pub(super) fn may_be_told(&self) -> bool {
        let in_packet = |part: &Part| part.left > 0 || part.goes_on;
        let speaker = self.speaker.and_then(|leg| self.parts.get(leg));
        !speaker.is_some_and(in_packet)
    }

    /// Looks at a shard's unconsumed bytes.
    pub(super) fn hear(&mut self, leg: usize, input: &mut [u8]) -> Step {
        let (mut at, mut pass) = (0, 0..0);
        let heard = loop {
            if self.speaker.is_some_and(|speaker| speaker != leg) {
                break Heard::Later;
            }
            let before = at;
            let (heard, passes) = self.packet(leg, input, &mut at);
            if passes && at > before {
                if pass.is_empty() {
                    pass = before..at;
                } else {
                    pass.end = at;
                }
            }
            if let Some(heard) = heard {
                break heard;
            }
        };
        Step {
            consumed: at,
            count: self.count.take(),
            pass,
            heard,
        }
    }

    /// Looks at one packet or what there is of it; tells whether it is for the client.
    fn packet(&mut self, leg: usize, input: &mut [u8], at: &mut usize) -> (Option<Heard>, bool) {
        let capabilities = self.capabilities;
        let Some(part) = self.parts.get_mut(leg) else {
            return (Some(Heard::Unlike), false);
        };
        let rest = input.get_mut(*at..).unwrap_or_default();
        if part.left > 0 {
            let now = part.left.min(rest.len());
            part.left -= now;
            *at += now;
            if part.left > 0 {
                return (Some(Heard::More), true);
            }
            if part.goes_on {
                return (None, true);
            }
            self.speaker = None;
            let is_full = self.rows >= self.limit;
            return (is_full.then_some(Heard::Full), true);
        }
        if let Place::Prepare(tracker) = &mut part.place {
            return match tracker.walk(rest) {
                Err(_) => (Some(Heard::Unlike), false),
                Ok(walk) => {
                    let start = *at;
                    *at += walk.consumed;
                    match walk.event {
                        None => (Some(Heard::More), false),
                        Some(TrackEvent::End) if tracker.outcome().error.is_some() => {
                            (Some(Heard::Refused(start..*at)), false)
                        }
                        Some(TrackEvent::End) => {
                            part.place = Place::Count;
                            (None, false)
                        }
                        Some(_) => (None, false),
                    }
                }
            };
        }
        let Some(header) = Header::parse(rest) else {
            return (Some(Heard::More), false);
        };
        let whole = rest.get(4..4 + header.len);
        let first = rest.get(4).copied();
        let number = |rest: &mut [u8], seq: &mut u8| {
            if let Some(place) = rest.get_mut(3) {
                *place = *seq;
            }
            *seq = seq.wrapping_add(1);
        };
        if matches!(part.place, Place::Row) {
            let is_end = !part.goes_on
                && first == Some(0xfe)
                && if capabilities.contains(Capabilities::DEPRECATE_EOF) {
                    header.len < MAX_PAYLOAD
                } else {
                    header.len < 9
                };
            if first.is_none() && header.len > 0 {
                return (Some(Heard::More), false);
            }
            let is_error = !part.goes_on && first == Some(0xff);
            if !is_end && !is_error {
                if !part.goes_on {
                    if self.rows >= self.limit {
                        return (Some(Heard::Full), false);
                    }
                    if self.rows >= self.most {
                        return (Some(Heard::TooMany), false);
                    }
                    self.rows += 1;
                }
                number(rest, &mut self.seq);
                part.left = header.len;
                part.goes_on = header.is_continued();
                *at += 4;
                self.speaker = (part.left > 0 || part.goes_on).then_some(leg);
                return (None, true);
            }
        }
        // All others are small, and looked at whole.
        let Some(payload) = whole else {
            let too_long = header.is_continued();
            let heard = if too_long { Heard::Unlike } else { Heard::More };
            return (Some(heard), false);
        };
        let (start, end) = (*at, *at + 4 + header.len);
        if first == Some(0xff) {
            return (Some(Heard::Refused(start..end)), false);
        }
        let is_teller = self.teller == Some(leg);
        let is_count = matches!(part.place, Place::Count);
        match part.place {
            Place::Count => {
                let Ok(count) = ColumnCount::parse(payload, capabilities) else {
                    return (Some(Heard::Unlike), false);
                };
                let columns = usize::try_from(count.columns).unwrap_or(usize::MAX);
                let definitions = if count.has_definitions { columns } else { 0 };
                part.place = Place::Definition(0, definitions);
                if *self.teller.get_or_insert(leg) == leg {
                    self.count = Some(count);
                    self.speaker = Some(leg);
                    self.seq = self.seq.wrapping_add(1);
                }
            }
            Place::Definition(of, _) => {
                let Ok(definition) = ColumnDef::parse(payload, capabilities) else {
                    return (Some(Heard::Unlike), false);
                };
                let kind = definition.kind;
                if is_teller {
                    self.kinds.push(kind);
                } else if !self.kinds.is_empty() && self.kinds.get(of) != Some(&kind) {
                    return (Some(Heard::Unlike), false);
                }
                if let Place::Definition(of, _) = &mut part.place {
                    *of += 1;
                }
            }
            Place::Between => part.place = Place::Row,
            Place::Row => {
                let warnings = if capabilities.contains(Capabilities::DEPRECATE_EOF) {
                    OkPacket::parse(payload, capabilities).map(|ok| (ok.warnings, ok.status))
                } else {
                    EofPacket::parse(payload).map(|eof| (eof.warnings, eof.status))
                };
                let Ok((warnings, status)) = warnings else {
                    return (Some(Heard::Unlike), false);
                };
                if status.contains(Status::MORE_RESULTS) {
                    return (Some(Heard::Unlike), false);
                }
                self.warnings = self.warnings.saturating_add(warnings);
                part.place = Place::Over;
                *at = end;
                return (Some(Heard::Over), false);
            }
            Place::Prepare(_) | Place::Over => return (Some(Heard::Unlike), false),
        }
        if let Place::Definition(of, count) = part.place
            && of >= count
        {
            if !is_teller && !self.kinds.is_empty() && count > 0 && count != self.kinds.len() {
                return (Some(Heard::Unlike), false);
            }
            part.place = if capabilities.contains(Capabilities::DEPRECATE_EOF) {
                Place::Row
            } else {
                Place::Between
            };
        }
        let passes = is_teller && !is_count;
        if passes {
            number(rest, &mut self.seq);
        }
        let is_described = matches!(part.place, Place::Row);
        if is_described && self.teller == Some(leg) {
            self.speaker = None;
        }
        *at = end;
        let is_full = is_described && self.rows >= self.limit;
        (is_full.then_some(Heard::Full), passes)
    }

    /// Appends the packet that ends the rows.
    pub(super) fn write_end(&self, out: &mut Vec<u8>, status: Status) {
        let end = EofPacket {
            warnings: self.warnings,
            status,
        };
        end.write_end(out, self.seq, self.capabilities);
    }
}

#[cfg(test)]
mod tests;
