//! The packets that end a result, and what is noted of them.

use super::{BadReply, ErrPacket, Header, OkHead, State, Status, TrackEvent, Tracker};

impl Tracker {
    pub(super) fn end_of_rows(&mut self, header: Header, seen: &[u8]) -> Result<Status, BadReply> {
        let end = OkHead::of_rows(header, seen)?;
        self.outcome.affected = -1;
        self.note(end.status, end.warnings);
        Ok(end.status)
    }

    pub(super) fn ok(&mut self, seen: &[u8]) -> Result<Option<TrackEvent>, BadReply> {
        let ok = OkHead::parse(seen).ok_or(BadReply("OK packet"))?;
        if ok.insert_id != 0 {
            self.outcome.insert_id = ok.insert_id;
        }
        self.outcome.affected = i64::try_from(ok.affected).unwrap_or(-1);
        self.outcome.said = ok.said;
        self.note(ok.status, ok.warnings);
        self.outcome.results = self.outcome.results.wrapping_add(1);
        self.result_ended(ok.status);
        Ok(None)
    }

    pub(super) fn error(&mut self, seen: &[u8]) -> Result<Option<TrackEvent>, BadReply> {
        let err = ErrPacket::parse(seen).map_err(|_| BadReply("ERR packet"))?;
        if err.code == ErrPacket::PROGRESS {
            return Ok(None);
        }
        self.outcome.error = Some(err.code);
        self.outcome.affected = -1;
        self.state = State::End;
        Ok(None)
    }

    pub(super) fn note(&mut self, status: Status, warnings: u16) {
        self.outcome.status = Some(status);
        self.outcome.warnings = warnings;
    }

    pub(super) fn result_ended(&mut self, status: Status) {
        if self.expect.is_response() && status.contains(Status::MORE_RESULTS) {
            self.outcome.many = true;
            self.state = State::First;
        } else {
            self.state = State::End;
        }
    }
}
