//! The user locks that a session may hold, counted by name: what a statement does with one, and what its answer says of that. Where
//! no answer is to be had it counts as taken, which keeps the connection for nothing, but never gives one back with a lock on it.

use super::Outcome;
use super::hold::row_before_end;
use crate::sql::{LockName, LockUse};
use crate::wire::Status;

/// Locks that are counted by name; with more, they are taken for held until all are released at once.
const NAMES: usize = 64;

/// An answer that is read is this long at most, with the definition of its column.
const ANSWER: usize = 4096;

/// What a function of the GET_LOCK family answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockAnswer {
    /// 1.
    Done,
    /// 0 or NULL: the lock was not taken; there was none to be released.
    NotDone,
    /// It did not answer, or is not understood.
    Unknown,
    /// The statement failed.
    Failed(u16),
}

/// The reply to a statement with such a function, as it comes in.
#[derive(Debug, Default)]
pub(super) struct LockReply {
    /// The first parameter of the execution, where it is a text.
    pub(super) parameter: Option<Vec<u8>>,
    is_binary: bool,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl LockReply {
    /// To a text.
    pub(super) fn to_text() -> Box<Self> {
        Box::default()
    }

    /// To an execution with this first parameter.
    pub(super) fn to_execution(parameter: Option<Vec<u8>>) -> Box<Self> {
        Box::new(Self {
            parameter,
            is_binary: true,
            ..Self::default()
        })
    }

    pub(super) fn note(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.bytes.len().saturating_add(bytes.len()) > ANSWER;
        if !self.is_too_long {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// What the one value of its one row says.
    pub(super) fn answer(&self, outcome: Outcome) -> LockAnswer {
        if let Some(code) = outcome.error {
            return LockAnswer::Failed(code);
        }
        let has_cursor = outcome
            .status
            .is_some_and(|status| status.contains(Status::CURSOR_EXISTS));
        let is_one = outcome.rows && outcome.row_count == 1 && !outcome.many && !has_cursor;
        if !is_one || self.is_too_long {
            return LockAnswer::Unknown;
        }
        match (row_before_end(&self.bytes), self.is_binary) {
            (Some([0xfb] | [1, b'0']), false) => LockAnswer::NotDone,
            (Some([1, b'1']), false) => LockAnswer::Done,
            // The first two bits of the map of NULLs stand for nothing.
            (Some([0, 0b100, ..]), true) => LockAnswer::NotDone,
            (Some([0, 0, 0, rest @ ..]), true) if rest.iter().all(|b| *b == 0) => {
                LockAnswer::NotDone
            }
            (Some([0, 0, 1, ..]), true) => LockAnswer::Done,
            _ => LockAnswer::Unknown,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct UserLocks {
    /// Names, each as often as it was taken.
    names: Vec<Vec<u8>>,
    /// There may be others beside those.
    uncounted: bool,
}

impl UserLocks {
    /// Notes a statement. `parameter` is its first one.
    pub(super) fn note(&mut self, lock: LockUse<'_>, parameter: Option<&[u8]>, answer: LockAnswer) {
        let named = |name| match name {
            LockName::Literal(name) => Some(name),
            LockName::Parameter => parameter.filter(|name| name.is_ascii()),
            LockName::Other => None,
        };
        match (lock, answer) {
            // Of a name that is none, and of one that would wait for itself, servers say so before they take it.
            (LockUse::Takes(_), LockAnswer::NotDone | LockAnswer::Failed(3057 | 3058)) => {}
            (LockUse::Takes(name), _) => match named(name) {
                Some(name) if self.names.len() < NAMES => {
                    self.names.push(name.to_ascii_lowercase());
                }
                _ => self.uncounted = true,
            },
            (LockUse::Releases(_) | LockUse::ReleasesAll, LockAnswer::Failed(_)) => {}
            (LockUse::Releases(name), _) => {
                let Some(name) = named(name) else {
                    return;
                };
                let same = |held: &Vec<u8>| held.eq_ignore_ascii_case(name);
                if answer == LockAnswer::NotDone {
                    self.names.retain(|held| !same(held));
                } else if let Some(at) = self.names.iter().position(same) {
                    self.names.remove(at);
                }
            }
            (LockUse::ReleasesAll, _) => *self = Self::default(),
            (LockUse::Asks, _) => {}
            (LockUse::Unknown, _) => self.uncounted = true,
        }
    }

    pub(super) fn are_held(&self) -> bool {
        self.uncounted || !self.names.is_empty()
    }

    /// Those that are held are known by name.
    pub(super) fn are_counted(&self) -> bool {
        !self.uncounted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: LockAnswer = LockAnswer::Done;

    fn takes(name: &[u8]) -> LockUse<'_> {
        LockUse::Takes(LockName::Literal(name))
    }

    fn releases(name: &[u8]) -> LockUse<'_> {
        LockUse::Releases(LockName::Literal(name))
    }

    #[test]
    fn each_is_released_as_often_as_it_was_taken() {
        let mut locks = UserLocks::default();
        for lock in [takes(b"a"), takes(b"A"), LockUse::Asks] {
            locks.note(lock, None, DONE);
        }
        for (lock, answer, are_held) in [
            (releases(b"b"), LockAnswer::NotDone, true),
            (releases(b"a"), LockAnswer::Failed(1317), true),
            (releases(b"a"), DONE, true),
            (releases(b"a"), LockAnswer::Unknown, false),
        ] {
            locks.note(lock, None, answer);
            assert_eq!(locks.are_held(), are_held, "{lock:?} {answer:?}");
        }
    }

    #[test]
    fn one_that_was_not_got_is_not_held() {
        for (answer, are_held) in [
            (LockAnswer::NotDone, false),
            (LockAnswer::Failed(3058), false),
            (LockAnswer::Failed(1317), true),
            (LockAnswer::Unknown, true),
            (DONE, true),
        ] {
            let mut locks = UserLocks::default();
            locks.note(takes(b"a"), None, answer);
            assert_eq!(locks.are_held(), are_held, "{answer:?}");
            // Nor is one that turns out to be gone.
            locks.note(releases(b"a"), None, LockAnswer::NotDone);
            assert!(!locks.are_held());
        }
    }

    #[test]
    fn parameters_are_names_too() {
        let mut locks = UserLocks::default();
        let (take, release) = (
            LockUse::Takes(LockName::Parameter),
            LockUse::Releases(LockName::Parameter),
        );
        locks.note(take, Some(b"a"), DONE);
        locks.note(release, Some(b"b"), LockAnswer::NotDone);
        assert!(locks.are_held() && locks.are_counted());
        locks.note(release, Some(b"A"), DONE);
        assert!(!locks.are_held());
        locks.note(take, None, DONE);
        locks.note(release, Some(b"a"), DONE);
        assert!(locks.are_held() && !locks.are_counted());
    }

    #[test]
    fn what_is_not_counted_is_held_until_all_are_released() {
        let mut locks = UserLocks::default();
        for _ in 0..=NAMES {
            locks.note(takes(b"a"), None, DONE);
        }
        for _ in 0..=NAMES {
            locks.note(releases(b"a"), None, DONE);
        }
        assert!(locks.are_held());
        locks.note(LockUse::ReleasesAll, None, DONE);
        assert!(!locks.are_held());
        locks.note(LockUse::Unknown, None, LockAnswer::Failed(1064));
        assert!(locks.are_held());
    }

    #[test]
    fn answers_are_read_in_both_protocols() {
        let outcome = Outcome {
            rows: true,
            row_count: 1,
            ..Outcome::default()
        };
        let answer = |row: &[u8], is_binary, outcome| {
            let mut reply = LockReply {
                is_binary,
                ..LockReply::default()
            };
            for (seq, packet) in (1..).zip([b"\x01", b"def" as &[u8], row, b"\xfe\0\0\x02\0"]) {
                let mut bytes = Vec::new();
                crate::wire::write_payload(&mut bytes, seq, packet);
                reply.note(&bytes);
            }
            reply.answer(outcome)
        };
        for (row, binary, wanted) in [
            (&b"\x011"[..], false, DONE),
            (b"\x010", false, LockAnswer::NotDone),
            (b"\xfb", false, LockAnswer::NotDone),
            (b"\x0217", false, LockAnswer::Unknown),
            (b"\0\0\x01\0\0\0", true, DONE),
            (b"\0\0\x01\0\0\0\0\0\0\0", true, DONE),
            (b"\0\0\0\0\0\0", true, LockAnswer::NotDone),
            (b"\0\x04", true, LockAnswer::NotDone),
            (b"", true, LockAnswer::Unknown),
        ] {
            assert_eq!(answer(row, binary, outcome), wanted, "{row:?}");
        }
        let failed = Outcome {
            error: Some(1317),
            ..outcome
        };
        assert_eq!(answer(b"\x011", false, failed), LockAnswer::Failed(1317));
        let two = Outcome {
            row_count: 2,
            ..outcome
        };
        assert_eq!(answer(b"\x010", false, two), LockAnswer::Unknown);
        let long = vec![b'x'; ANSWER];
        assert_eq!(answer(&long, false, outcome), LockAnswer::Unknown);
    }
}
