//! What operators may ask of a session: since when it does what it does, how its statement begins, and what pins it since when and
//! because of what. Written in a few moves on a statement's way, read by `report`; and what is told of each statement to whoever
//! counts.

use std::time::Duration;

use super::{Cx, Done, Outputs, Pins, Session, Texts, What};
use crate::route::Reason;
use crate::sql::{self, Dialect};
use crate::wire::Status;

/// So much of a statement's text is kept.
const HEAD: usize = 112;

/// The beginning of a statement, as the client sent it. It may hold what is secret: nobody is shown it but with its literals masked.
#[derive(Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; HEAD],
    len: u8,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            bytes: [0; HEAD],
            len: 0,
        }
    }
}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Head {
    fn set(&mut self, text: &[u8]) {
        let len = text.len().min(HEAD);
        if let (Some(to), Some(from)) = (self.bytes.get_mut(..len), text.get(..len)) {
            to.copy_from_slice(from);
        }
        self.len = u8::try_from(len).unwrap_or(0);
    }

    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Since when something ties the session to its connection, and the statement that did it.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) pin: Pins,
    pub(super) since: Duration,
    pub(super) cause: Box<[u8]>,
}

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Diary {
    /// When the last command began, or ended; before the first, when the client came.
    pub(super) since: Duration,
    /// When the command was looked at last: it is again when its connection is there.
    looked: Duration,
    /// When the connection came that the command had to wait for; when it was last begun where the connection was there.
    acquired: Duration,
    /// The command has begun, and not left yet.
    has_begun: bool,
    /// The session has ever asked for FOUND_ROWS().
    pub(super) has_counted: bool,
    /// It had left, and is to be said once more: its time goes on.
    is_retried: bool,
    /// Microseconds from the command's begin to when it was to be said once more.
    tried_before: u32,
    /// Its number, if it is counted by its kind.
    digest: Option<u64>,
    pub(super) head: Head,
    /// When the transaction began that is open, and with what.
    pub(super) transaction: Option<(Duration, Box<[u8]>)>,
    /// One for each pin that is set.
    pub(super) marks: Vec<Mark>,
    /// The pins that have marks.
    noted: Pins,
    /// The client has the whole answer to a plain read, which is still to be noted.
    pub(super) owes_end: bool,
    /// The client has been let in.
    pub(super) has_logged_in: bool,
    /// The session asks one shard for another session, which counts its statements: they are in their group and name what is there.
    pub(super) is_leg: bool,
}

impl Diary {
    /// That of a client that comes now.
    pub(super) fn begun(now: Duration) -> Self {
        Self {
            since: now,
            ..Self::default()
        }
    }

    /// A statement is looked at, perhaps once more.
    pub(super) fn begin(&mut self, cx: &mut Cx<'_>, text: &[u8], dialect: &Dialect) {
        self.looked = cx.now;
        if !self.has_begun {
            self.has_begun = true;
            self.acquired = cx.now;
            if std::mem::take(&mut self.is_retried) {
                let before = cx.now.saturating_sub(self.since).as_micros();
                self.tried_before = u32::try_from(before).unwrap_or(u32::MAX);
                return;
            }
            self.tried_before = 0;
            self.since = cx.now;
            self.head.set(text);
            if !self.is_leg {
                self.digest = cx.texts.digests.begin(cx.now, text, dialect);
            }
        }
    }

    /// A command begins whose text is looked at next.
    pub(super) fn start(&mut self, now: Duration) {
        (self.since, self.looked, self.acquired) = (now, now, now);
        self.tried_before = 0;
    }

    /// A command has begun and not left yet, or not for the last time.
    pub(super) fn is_under_way(&self) -> bool {
        self.has_begun || self.is_retried
    }

    /// When the last command began; of when it was last said, how long it waited for a connection, and how long that was brought into
    /// the session's state.
    pub(super) fn times(&self) -> (Duration, Duration, Duration) {
        let tried = self.since + Duration::from_micros(u64::from(self.tried_before));
        let acquired = self.acquired.saturating_sub(tried);
        let synced = self.looked.saturating_sub(self.acquired);
        (self.since, acquired, synced)
    }

    /// When the command was looked at last, which is when it was sent, if it was.
    pub(super) fn looked(&self) -> Duration {
        self.looked
    }

    /// A connection has come.
    fn acquire(&mut self, now: Duration) {
        if self.has_begun {
            self.acquired = now;
        }
    }

    /// The command has left for a server, or was answered.
    pub(super) fn left(&mut self) {
        self.has_begun = false;
        self.is_retried = false;
    }

    /// The command has left and has had no answer: it is to be said once more.
    pub(super) fn retry(&mut self) {
        self.is_retried = true;
    }
}

impl Session {
    /// When the last command began, or ended.
    #[must_use]
    pub fn began(&self) -> Duration {
        self.diary.since
    }

    /// A connection has come at last, of which `on_backend_ready` tells next.
    pub fn note_acquired(&mut self, now: Duration) {
        self.diary.acquire(now);
    }

    /// A statement that several shards were asked is over.
    pub(super) fn count_digest(&mut self, cx: &mut Cx<'_>, failed: bool) {
        let took = cx.now.saturating_sub(self.diary.since);
        if let Some(digest) = self.diary.digest.take() {
            cx.texts.digests.end(digest, took, failed);
        }
    }

    /// The reply has come to its end: tells those who asked for it what it was.
    #[inline]
    pub(super) fn tell_of_reply(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        if self.minutes.is_some() {
            self.write_reply(cx, out);
        }
        if self.attempt.copying.is_some() {
            self.tell_copy(cx, out);
        }
    }

    /// The reply has come to its end: has the statement counted.
    pub(super) fn tell_done(&mut self, now: Duration, texts: &mut Texts, out: &mut Outputs) {
        let Some(reply) = &self.reply else {
            return;
        };
        let (What::Query { kind, .. } | What::Execute { kind, .. } | What::LongQuery(kind)) =
            reply.command.what
        else {
            return;
        };
        let error = reply.tracker.outcome().error;
        let (since, acquired, synced) = self.diary.times();
        let took = now.saturating_sub(since);
        if let Some(digest) = self.diary.digest.take() {
            texts.digests.end(digest, took, error.is_some());
        }
        let reason = match (reply.command.what, self.last_route) {
            (What::Query { .. } | What::Execute { .. }, Some((_, reason))) => reason,
            _ => Reason::Statement(sql::Reason::Write),
        };
        out.done.push(Done::Statement {
            kind,
            role: reply.role,
            reason,
            took,
            acquired,
            synced,
            error,
        });
    }

    /// A command is over.
    pub(super) fn note_in_diary(&mut self, now: Duration) {
        self.diary.since = now;
        let in_transaction = self.status.contains(Status::IN_TRANS);
        if in_transaction != self.diary.transaction.is_some() {
            self.diary.transaction = in_transaction.then(|| (now, self.diary.head.text().into()));
        }
        let pins = self.state.pins();
        if pins != self.diary.noted {
            self.mark_pins(pins, now);
        }
    }

    #[cold]
    fn mark_pins(&mut self, pins: Pins, now: Duration) {
        let diary = &mut self.diary;
        diary.marks.retain(|mark| pins.any_of(mark.pin));
        for (pin, _) in Pins::ALL {
            if pins.any_of(pin) && !diary.noted.any_of(pin) {
                diary.marks.push(Mark {
                    pin,
                    since: now,
                    cause: diary.head.text().into(),
                });
            }
        }
        diary.noted = pins;
    }
}
