//! Replies made at random. Their end is found exactly, however they are cut and whatever follows; spoiled ones are refused at the
//! same byte.

use proptest::prelude::*;

use crate::fuzzing::reply::{tracker, walk};
use crate::fuzzing::session_reply;
use crate::session::TrackEvent;
use crate::wire::{MAX_PAYLOAD, write_payload};

const DEPRECATE_EOF: u8 = 1;
const METADATA: u8 = 2;

/// One result of a reply.
#[derive(Debug, Clone)]
enum Part {
    Ok {
        affected: u64,
        insert_id: u64,
        warnings: u16,
        info: Vec<u8>,
    },
    Rows {
        columns: u8,
        rows: Vec<Vec<u8>>,
        left_out: bool,
    },
    File(Vec<u8>),
}

#[derive(Debug, Clone)]
enum Last {
    Whole,
    Error(Vec<u8>),
    /// An error in the place of a row.
    ErrorBehindRows(Vec<u8>),
}

#[derive(Debug, Clone)]
enum Reply {
    Response(Vec<Part>, Last),
    Prepare { params: u16, columns: u16 },
    Fetch(Vec<Vec<u8>>),
    Terminal,
    Single(Vec<u8>),
}

fn lenenc(value: u64) -> Vec<u8> {
    let bytes = value.to_le_bytes();
    match value {
        0..=250 => vec![bytes[0]],
        251..=0xffff => [&[0xfc], &bytes[..2]].concat(),
        0x1_0000..=0xff_ffff => [&[0xfd], &bytes[..3]].concat(),
        _ => [&[0xfe], &bytes[..]].concat(),
    }
}

const MORE: u16 = 8;

struct Stream {
    bytes: Vec<u8>,
    seq: u8,
    flags: u8,
}

impl Stream {
    fn put(&mut self, payload: &[u8]) {
        self.seq = write_payload(&mut self.bytes, self.seq, payload);
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn ok(&mut self, header: u8, numbers: (u64, u64), status: u16, warnings: u16, info: &[u8]) {
        let mut payload = vec![header];
        payload.extend(lenenc(numbers.0));
        payload.extend(lenenc(numbers.1));
        payload.extend(status.to_le_bytes());
        payload.extend(warnings.to_le_bytes());
        payload.extend(info);
        self.put(&payload);
    }

    fn eof(&mut self, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.put(&[0xfe, 0, 0, low, high]);
    }

    fn end_of_rows(&mut self, status: u16) {
        if self.has(DEPRECATE_EOF) {
            self.ok(0xfe, (0, 0), status, 3, b"");
        } else {
            self.eof(status);
        }
    }

    fn definitions(&mut self, count: u16) {
        for _ in 0..count {
            self.put(
                b"\x03def\x00\x00\x00\x01a\x00\x0c\x3f\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00",
            );
        }
        if count > 0 && !self.has(DEPRECATE_EOF) {
            self.eof(2);
        }
    }

    fn part(&mut self, part: &Part, status: u16) {
        match part {
            Part::Ok {
                affected,
                insert_id,
                warnings,
                info,
            } => self.ok(0, (*affected, *insert_id), status, *warnings, info),
            Part::Rows {
                columns,
                rows,
                left_out,
            } => {
                let mut count = lenenc(u64::from(*columns));
                if self.has(METADATA) {
                    count.push(u8::from(!left_out));
                }
                self.put(&count);
                if *left_out && self.has(METADATA) {
                    if !self.has(DEPRECATE_EOF) {
                        self.eof(2);
                    }
                } else {
                    self.definitions(u16::from(*columns));
                }
                for row in rows {
                    self.put(row);
                }
                self.end_of_rows(status);
            }
            Part::File(name) => {
                self.put(&[b"\xfb", name.as_slice()].concat());
                // The client's empty packet has the number between.
                self.seq = self.seq.wrapping_add(1);
                self.ok(0, (3, 0), status, 0, b"");
            }
        }
    }

    fn error(&mut self, text: &[u8]) {
        self.put(&[b"\xff\x28\x04#42000", text].concat());
    }
}

impl Reply {
    fn kind(&self) -> u8 {
        match self {
            Self::Response(..) => 0,
            Self::Prepare { .. } => 2,
            Self::Fetch(_) => 4,
            Self::Terminal => 5,
            Self::Single(_) => 6,
        }
    }

    fn stream(&self, flags: u8) -> Vec<u8> {
        let mut out = Stream {
            bytes: Vec::new(),
            seq: 1,
            flags,
        };
        match self {
            Self::Response(parts, last) => {
                for (place, part) in parts.iter().enumerate() {
                    let is_last = place + 1 == parts.len() && matches!(last, Last::Whole);
                    out.part(part, if is_last { 2 } else { 2 | MORE });
                }
                match last {
                    Last::Whole => {}
                    Last::Error(text) => out.error(text),
                    Last::ErrorBehindRows(text) => {
                        out.put(&if flags & METADATA != 0 {
                            vec![1, 1]
                        } else {
                            vec![1]
                        });
                        out.definitions(1);
                        out.put(&[1, b'7']);
                        out.error(text);
                    }
                }
            }
            Self::Prepare { params, columns } => {
                let mut ok = vec![0, 7, 0, 0, 0];
                ok.extend(columns.to_le_bytes());
                ok.extend(params.to_le_bytes());
                ok.extend([0, 0, 0]);
                if flags & METADATA != 0 {
                    ok.push(1);
                }
                out.put(&ok);
                out.definitions(*params);
                out.definitions(*columns);
            }
            Self::Fetch(rows) => {
                for row in rows {
                    out.put(row);
                }
                out.end_of_rows(2);
            }
            Self::Terminal => out.ok(0, (0, 0), 2, 0, b"done"),
            Self::Single(text) => out.put(text),
        }
        out.bytes
    }
}

/// A row's bytes: never what an end or an error begins with.
fn row() -> impl Strategy<Value = Vec<u8>> {
    (0_u8..0xfe, prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..300, 1 => any::<u32>().prop_map(u64::from), 1 => any::<u64>()]
}

fn part() -> impl Strategy<Value = Part> {
    let text = || prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        3 => (number(), number(), any::<u16>(), text()).prop_map(|(affected, insert_id, warnings, info)| Part::Ok {
            affected,
            insert_id,
            warnings,
            info,
        }),
        4 => (1_u8..=250, prop::collection::vec(row(), 0..6), any::<bool>()).prop_map(|(columns, rows, left_out)| Part::Rows {
            columns: columns % 7 + 1 + u8::from(columns == 250) * 240,
            rows,
            left_out,
        }),
        1 => text().prop_map(Part::File),
    ]
}

fn last() -> impl Strategy<Value = Last> {
    let text = || prop::collection::vec(any::<u8>(), 0..600);
    prop_oneof![4 => Just(Last::Whole), 1 => text().prop_map(Last::Error), 1 => text().prop_map(Last::ErrorBehindRows)]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        8 => (prop::collection::vec(part(), 1..4), last()).prop_map(|(parts, last)| Reply::Response(parts, last)),
        2 => (0_u16..5, 0_u16..5).prop_map(|(params, columns)| Reply::Prepare { params, columns }),
        1 => prop::collection::vec(row(), 0..6).prop_map(Reply::Fetch),
        1 => Just(Reply::Terminal),
        1 => prop::collection::vec(any::<u8>(), 1..80).prop_map(Reply::Single),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_end_is_found_exactly(
        reply in reply(),
        flags in 0_u8..8,
        size in 1_usize..200,
        behind in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let stream = reply.stream(if flags & 6 == 0 { flags } else { flags | METADATA });
        let flags = if flags & 6 == 0 { flags } else { flags | METADATA };
        let with_more = [stream.as_slice(), &behind].concat();
        for found in [
            walk(tracker(reply.kind(), flags), &stream, stream.len()),
            walk(tracker(reply.kind(), flags), &stream, size),
            walk(tracker(reply.kind(), flags), &with_more, with_more.len()),
            walk(tracker(reply.kind(), flags), &with_more, size),
        ] {
            prop_assert_eq!(found.end, Ok(()));
            prop_assert_eq!(found.consumed, stream.len());
            prop_assert_eq!(found.events.last(), Some(&(stream.len(), TrackEvent::End)));
            prop_assert_eq!(found.events.iter().filter(|(_, event)| *event == TrackEvent::End).count(), 1);
            if let Reply::Response(parts, last) = &reply {
                let files = parts.iter().filter(|part| matches!(part, Part::File(_))).count();
                let asked = found.events.iter().filter(|(_, event)| *event == TrackEvent::LocalInfile).count();
                prop_assert_eq!(files, asked);
                prop_assert_eq!(found.outcome.error.is_some(), !matches!(last, Last::Whole));
                prop_assert_eq!(found.outcome.results as usize, parts.len());
                prop_assert_eq!(found.outcome.many, parts.len() > 1 || !matches!(last, Last::Whole));
                let mut ids = parts.iter().filter_map(|part| match part {
                    Part::Ok { insert_id, .. } if *insert_id != 0 => Some(*insert_id),
                    _ => None,
                });
                prop_assert_eq!(found.outcome.insert_id, ids.next_back().unwrap_or(0));
            }
        }
    }

    #[test]
    fn a_cut_or_spoiled_reply_is_the_same_in_pieces(
        reply in reply(),
        flags in any::<u8>(),
        size in any::<u8>(),
        other_kind in prop::option::weighted(0.2, any::<u8>()),
        keep in 0.0_f64..=1.0,
        spoil in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut stream = reply.stream(flags & 7);
        for (index, byte) in spoil {
            let at = index.index(stream.len());
            stream[at] = byte;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        stream.truncate((stream.len() as f64 * keep).ceil() as usize);
        session_reply(&[&[other_kind.unwrap_or_else(|| reply.kind()), flags, size], stream.as_slice()].concat());
    }
}

#[test]
fn rows_of_several_frames_are_one_row() {
    for size in [0, 1] {
        // A row that begins like an end, and one that fills its frame.
        let mut row = vec![b'x'; MAX_PAYLOAD + size];
        row[0] = 0xfe;
        let reply = Reply::Response(
            vec![Part::Rows {
                columns: 1,
                rows: vec![row, vec![1, b'a']],
                left_out: false,
            }],
            Last::Whole,
        );
        for flags in [0, DEPRECATE_EOF] {
            let stream = reply.stream(flags);
            for piece in [stream.len(), 65_536, MAX_PAYLOAD - 3] {
                let found = walk(tracker(0, flags), &stream, piece);
                assert_eq!((found.end, found.consumed), (Ok(()), stream.len()));
                assert_eq!(found.outcome.results, 1);
            }
        }
    }
}
