//! Replies of shards in pieces, in any order.

use super::*;
use crate::wire::{Packets, write_payload};
use proptest::prelude::*;

const EOF: &[u8] = b"\xfe\x01\0\x02\0";
const END: &[u8] = b"\xfe\0\0\x02\0\x01\0";

fn definition(kind: u8) -> Vec<u8> {
    let mut payload = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
    payload.extend([0x3f, 0, 11, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
    payload
}

fn reply(capabilities: Capabilities, kind: u8, rows: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut seq = write_payload(&mut bytes, 1, b"\x01");
    seq = write_payload(&mut bytes, seq, &definition(kind));
    if !capabilities.contains(Capabilities::DEPRECATE_EOF) {
        seq = write_payload(&mut bytes, seq, EOF);
    }
    for row in rows {
        seq = write_payload(&mut bytes, seq, row);
    }
    write_payload(&mut bytes, seq, end);
    bytes
}

fn row(text: &str) -> Vec<u8> {
    let mut row = vec![u8::try_from(text.len()).unwrap()];
    row.extend(text.as_bytes());
    row
}

/// Hears replies that arrive in pieces of these sizes, the next piece of the shard that a number of `order` says.
fn run(fan: &mut Fan, replies: &[Vec<u8>], order: &[(usize, usize)]) -> (Vec<u8>, Option<Heard>) {
    let mut client = Vec::new();
    let mut arrived = vec![0; replies.len()];
    let mut done = vec![0; replies.len()];
    let mut over = vec![false; replies.len()];
    for _ in replies {
        fan.asked(false);
    }
    let rest = (0..replies.len()).cycle().map(|leg| (leg, 1 << 20));
    for (leg, size) in order.iter().copied().chain(rest.take(replies.len())) {
        let leg = leg % replies.len();
        arrived[leg] = (arrived[leg] + size).min(replies[leg].len());
        loop {
            let mut moved = false;
            for leg in 0..replies.len() {
                if over[leg] || done[leg] == arrived[leg] {
                    continue;
                }
                let mut input = replies[leg][done[leg]..arrived[leg]].to_vec();
                let step = fan.hear(leg, &mut input);
                if let Some(count) = step.count {
                    count.write(&mut client, 1, fan.capabilities);
                }
                client.extend(&input[step.pass.clone()]);
                done[leg] += step.consumed;
                moved |= step.consumed > 0;
                match step.heard {
                    Heard::More | Heard::Later => {}
                    Heard::Over => over[leg] = true,
                    other => return (client, Some(other)),
                }
            }
            if !moved {
                break;
            }
        }
    }
    assert!(over.iter().all(|over| *over), "a reply did not end");
    (client, None)
}

proptest! {
    /// Whatever the pieces and their order: the columns once, every row once and whole, numbered from 1 on.
    #[test]
    fn rows_of_all_arrive_whole(
        counts in proptest::collection::vec(0usize..5, 1..4),
        order in proptest::collection::vec((0usize..4, 1usize..40), 0..60),
        deprecates in any::<bool>(),
        limit in prop_oneof![Just(u64::MAX), 0u64..8],
    ) {
        let capabilities = if deprecates {
            Capabilities::DEPRECATE_EOF | Capabilities::PROTOCOL_41
        } else {
            Capabilities::PROTOCOL_41
        };
        let end = if deprecates { END } else { EOF };
        let rows: Vec<Vec<Vec<u8>>> = counts.iter().enumerate().map(|(leg, count)| {
            (0..*count).map(|n| row(&format!("{leg}-{n}-{}", "x".repeat(n * 30)))).collect()
        }).collect();
        let replies: Vec<_> = rows.iter().map(|r| reply(capabilities, 8, r, end)).collect();
        let mut fan = Fan::new(capabilities, limit, u64::MAX);
        let (mut client, heard) = run(&mut fan, &replies, &order);
        prop_assert!(fan.may_be_told());
        let total: usize = counts.iter().sum();
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX).min(total);
        prop_assert_eq!(fan.rows(), wanted as u64);
        match heard {
            None => {}
            Some(heard) => prop_assert_eq!(heard, Heard::Full),
        }
        fan.write_end(&mut client, Status::AUTOCOMMIT);
        let packets: Vec<_> = Packets::new(&client).collect();
        for (seq, (header, _)) in (1_u8..).zip(&packets) {
            prop_assert_eq!(header.seq, seq);
        }
        let head = if deprecates { 2 } else { 3 };
        prop_assert_eq!(packets.len(), head + wanted + 1);
        let mut sent: Vec<Vec<u8>> = rows.concat();
        let mut got: Vec<Vec<u8>> = packets[head..head + wanted].iter().map(|p| p.1.to_vec()).collect();
        sent.sort();
        got.sort();
        if wanted == total {
            prop_assert_eq!(got, sent);
        } else {
            prop_assert!(got.iter().all(|row| sent.contains(row)));
        }
    }

    /// A shard that refuses is heard wherever its error stands, and the client is between two packets or told nothing more.
    #[test]
    fn one_that_refuses_is_heard(
        good in 0usize..4,
        before in 0usize..3,
        order in proptest::collection::vec((0usize..2, 1usize..30), 0..40),
    ) {
        const ERROR: &[u8] = b"\xff\x1e\x04#42S22no such column";
        let caps = Capabilities::DEPRECATE_EOF;
        let rows = |n: usize| (0..n).map(|n| row(&n.to_string())).collect::<Vec<_>>();
        let replies = [reply(caps, 8, &rows(good), END), reply(caps, 8, &rows(before), ERROR)];
        let mut fan = Fan::new(caps, u64::MAX, u64::MAX);
        let (_, heard) = run(&mut fan, &replies, &order);
        prop_assert!(matches!(heard, Some(Heard::Refused(_))), "{:?}", heard);
        prop_assert!(fan.may_be_told());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), prepares in any::<bool>()) {
        let mut fan = Fan::new(Capabilities::PROTOCOL_41, 3, u64::MAX);
        fan.asked(prepares);
        let mut input = bytes;
        let step = fan.hear(0, &mut input);
        prop_assert!(step.consumed <= input.len() && step.pass.end <= input.len());
    }
}

#[test]
fn answers_that_are_not_alike() {
    let caps = Capabilities::DEPRECATE_EOF;
    let replies = [reply(caps, 8, &[], END), reply(caps, 253, &[], END)];
    let mut fan = Fan::new(caps, u64::MAX, u64::MAX);
    let (_, heard) = run(&mut fan, &replies, &[(0, 999), (1, 999)]);
    assert_eq!(heard, Some(Heard::Unlike));
    let mut ok = Vec::new();
    write_payload(&mut ok, 1, b"\0\0\0\x02\0\0\0");
    let mut fan = Fan::new(caps, u64::MAX, u64::MAX);
    let (_, heard) = run(&mut fan, &[ok], &[]);
    assert_eq!(heard, Some(Heard::Unlike));
}

/// A row of 16 MiB and more passes while it comes, and nobody breaks into it.
#[test]
fn a_long_row_is_not_broken_into() {
    let caps = Capabilities::DEPRECATE_EOF;
    let long = vec![b'x'; MAX_PAYLOAD + 10];
    let long = reply(caps, 252, &[long], END);
    let short = reply(caps, 252, &[row("a")], END);
    let mut fan = Fan::new(caps, u64::MAX, u64::MAX);
    let order = [(0, 1000), (1, 1000), (0, 8 << 20), (1, 1), (0, MAX_PAYLOAD)];
    let (client, heard) = run(&mut fan, &[long, short], &order);
    assert_eq!((heard, fan.rows()), (None, 2));
    let lengths: Vec<usize> = Packets::new(&client).map(|(h, _)| h.len).collect();
    assert!(lengths.contains(&MAX_PAYLOAD) && lengths.contains(&2));
}
