//! The fuzz target of the reply tracker: however a server's bytes are cut, the same is found in them.

use crate::session::{BadReply, Expect, Outcome, TrackEvent, Tracker};
use crate::wire::Capabilities;

/// A byte of the kind of reply, one of flags, one of the size of pieces, then what a server sends.
pub fn session_reply(data: &[u8]) {
    let &[kind, flags, size, ref stream @ ..] = data else {
        return;
    };
    let tracker = tracker(kind, flags);
    assert!(tracker.walks_agree(stream), "a short walk that goes astray");
    let whole = walk(tracker.clone(), stream, stream.len());
    assert_eq!(
        whole,
        walk(tracker.clone(), stream, usize::from(size) + 1),
        "in pieces"
    );
    if stream.len() <= 2048 {
        assert_eq!(whole, walk(tracker, stream, 1), "byte by byte");
    }
}

/// A tracker for a kind of reply and for flags: the framing, metadata, files.
pub(crate) fn tracker(kind: u8, flags: u8) -> Tracker {
    let expect = match kind % 7 {
        0 => Expect::Response,
        1 => Expect::Cursor,
        2 => Expect::Prepare,
        3 => Expect::FieldList,
        4 => Expect::Fetch,
        5 => Expect::Terminal,
        _ => Expect::Single,
    };
    let mut capabilities = Capabilities::PROTOCOL_41;
    for (bit, capability) in [
        (1, Capabilities::DEPRECATE_EOF),
        (2, Capabilities::OPTIONAL_RESULTSET_METADATA),
        (4, Capabilities::MARIADB_CACHE_METADATA),
    ] {
        if flags & bit != 0 {
            capabilities = capabilities | capability;
        }
    }
    let mut tracker = Tracker::new(expect, capabilities);
    if flags & 8 != 0 {
        tracker = tracker.without_files();
    }
    if flags & 16 != 0 {
        tracker.waits_for_client();
    }
    tracker
}

/// What a walk over a stream found, with places counted from the stream's first byte.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) events: Vec<(usize, TrackEvent)>,
    pub(crate) consumed: usize,
    pub(crate) end: Result<(), BadReply>,
    pub(crate) outcome: Outcome,
    next_seq: u8,
    at_boundary: bool,
}

/// Shows the tracker the stream in pieces of this size, as the worker does: what is not consumed is shown again with more behind
/// it.
pub(crate) fn walk(mut tracker: Tracker, stream: &[u8], size: usize) -> Found {
    let mut events = Vec::new();
    let (mut at, mut arrived) = (0, 0);
    let end = 'walk: loop {
        arrived = stream.len().min(arrived + size.max(1));
        loop {
            let walk = match tracker.walk(&stream[at..arrived]) {
                Ok(walk) => walk,
                Err(bad) => break 'walk Err(bad),
            };
            assert!(walk.consumed <= arrived - at, "bytes that are not there");
            let place = match walk.event {
                Some(TrackEvent::Prepared { at: payload, .. }) => {
                    assert!(payload + 5 <= arrived - at, "an id that is not there");
                    at + payload
                }
                _ => at + walk.consumed,
            };
            at += walk.consumed;
            match walk.event {
                Some(TrackEvent::Prepared { ok, .. }) => {
                    events.push((place, TrackEvent::Prepared { at: 0, ok }));
                }
                Some(event) => events.push((place, event)),
                None => {}
            }
            match walk.event {
                Some(TrackEvent::End) => break 'walk Ok(()),
                // The client sends an empty file.
                Some(TrackEvent::LocalInfile) => tracker.follows(tracker.next_seq()),
                Some(
                    TrackEvent::Prepared { .. }
                    | TrackEvent::Changes { .. }
                    | TrackEvent::Named { .. }
                    | TrackEvent::TooManyRows
                    | TrackEvent::Interrupted { .. },
                ) => {}
                None if walk.consumed == 0 => break,
                None => {}
            }
        }
        if arrived == stream.len() {
            break Ok(());
        }
    };
    Found {
        events,
        consumed: at,
        end,
        outcome: tracker.outcome(),
        next_seq: tracker.next_seq(),
        at_boundary: tracker.at_boundary(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_pass() {
        crate::fuzzing::replay("session_reply", session_reply);
    }
}
