//! Where a reply is cut: rows that a result may not have any more, and the error with which a statement ends that was told to.

use super::{State, Tracker};
use crate::wire::{Header, MAX_PAYLOAD};

/// ER_QUERY_INTERRUPTED: somebody killed the statement.
const INTERRUPTED: u16 = 1317;

/// As many rows as there are: a limit is never so high, and every client has room for it.
pub(super) const ANY: u32 = u32::MAX;

impl Tracker {
    /// The same for results of so many rows at most.
    #[must_use]
    pub fn with_rows_at_most(mut self, rows: u64) -> Self {
        self.rows_max = u32::try_from(rows).unwrap_or(ANY);
        self
    }

    /// The statement is being ended: from here on an error that says so is told of. Rows are bounded no more.
    pub fn expects_interruption(&mut self) {
        self.reports_interruption = true;
        self.rows_max = ANY;
    }

    /// Whether a result may have so many rows.
    pub(super) fn may_have(&self, rows: u64) -> bool {
        self.rows_max == ANY || rows <= u64::from(self.rows_max)
    }

    /// The statement has failed with this, whatever the server said.
    pub fn fails_with(&mut self, code: u16) {
        self.outcome.error = Some(code);
        self.outcome.affected = -1;
    }

    /// Whether the packet, of which these first bytes are here, is one row more than there may be.
    pub(super) fn is_one_too_many(&self, header: Header, first: Option<u8>) -> bool {
        if self.state != State::Rows || self.may_have(self.outcome.row_count.wrapping_add(1)) {
            return false;
        }
        match first {
            Some(0xff) => false,
            Some(0xfe) => header.len >= 9 && (!self.deprecate_eof || header.len == MAX_PAYLOAD),
            Some(_) | None => true,
        }
    }

    /// Whether the packet, which has just been taken in, is the error with which a statement ends that was told to. All of it is here.
    pub(super) fn tells_interruption(&self, header: Header, seen: &[u8]) -> bool {
        self.reports_interruption
            && self.state == State::End
            && self.outcome.error == Some(INTERRUPTED)
            && seen.first() == Some(&0xff)
            && seen.len() == header.len
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Expect, TrackEvent, Tracker, Walk};
    use crate::wire::{Capabilities, write_payload};

    fn reply(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (seq, packet) in (1..).zip(packets) {
            write_payload(&mut bytes, seq, packet);
        }
        bytes
    }

    fn tracker(rows: u64) -> Tracker {
        Tracker::new(Expect::Response, Capabilities::NONE).with_rows_at_most(rows)
    }

    const COUNT: &[u8] = b"\x01";
    const DEF: &[u8] = b"\x03def";
    const EOF: &[u8] = b"\xfe\0\0\x02\0";
    const KILLED: &[u8] = b"\xff\x25\x05#70100interrupted";

    /// At the bound the reply is as any other, in one piece or byte by byte; one row more stops the walk before that row.
    #[test]
    fn rows_at_the_bound() {
        let packets = [COUNT, DEF, EOF, b"\x011", b"\x012", b"\x013", EOF];
        let bytes = reply(&packets);
        let before_third = reply(&packets[..5]).len();
        for (rows, wanted) in [
            (3, (bytes.len(), Some(TrackEvent::End))),
            (2, (before_third, Some(TrackEvent::TooManyRows))),
        ] {
            let (consumed, event) = wanted;
            assert_eq!(tracker(rows).walk(&bytes), Ok(Walk { consumed, event }));
            let mut tracker = tracker(rows);
            let (mut passed, mut held) = (0, 0);
            let told = loop {
                held += 1;
                let walk = tracker.walk(&bytes[passed..held]).expect("a reply");
                passed += walk.consumed;
                if walk.event.is_some() {
                    break walk.event;
                }
            };
            assert_eq!((passed, told), wanted, "byte by byte");
        }
    }

    /// Each result has its own rows.
    #[test]
    fn results_are_counted_apart() {
        let more: &[u8] = b"\xfe\0\0\x0a\0";
        let result = [COUNT, DEF, EOF, b"\x011", b"\x012"];
        let packets = [&result[..], &[more], &result[..], &[EOF]].concat();
        let bytes = reply(&packets);
        let walk = tracker(2).walk(&bytes).expect("a reply");
        assert_eq!(
            (walk.consumed, walk.event),
            (bytes.len(), Some(TrackEvent::End))
        );
    }

    /// Behind the bound the rest is walked to its end, and the server's word for it is told.
    #[test]
    fn the_rest_is_walked() {
        let packets = [COUNT, DEF, EOF, b"\x011", b"\x012", b"\x013", KILLED];
        let bytes = reply(&packets);
        let mut tracker = tracker(1);
        let walk = tracker.walk(&bytes).expect("a reply");
        assert_eq!(walk.event, Some(TrackEvent::TooManyRows));
        assert_eq!(tracker.next_seq(), 5);
        tracker.expects_interruption();
        let rest = &bytes[walk.consumed..];
        let walk = tracker.walk(rest).expect("a reply");
        let at = rest.len() - KILLED.len() - 4;
        let event = Some(TrackEvent::Interrupted { at });
        assert_eq!((walk.consumed, walk.event), (rest.len(), event));
        assert!(tracker.is_over());
        // Another error is the server's to tell.
        let other = reply(&[b"\xff\x28\x04#42000syntax"]);
        let mut tracker = Tracker::new(Expect::Response, Capabilities::NONE);
        tracker.expects_interruption();
        assert_eq!(
            tracker.walk(&other).expect("a reply").event,
            Some(TrackEvent::End)
        );
    }
}
