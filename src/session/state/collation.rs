//! A collation that a client named by an id which no log-in packet has room for.

use super::State;
use crate::session::history::MadeFrom;
use crate::session::replay::Replay;
use crate::sql::Charset;

impl State {
    /// The session speaks in the character set of this collation, as if its log-in had said so. MySQL takes ids for names; MariaDB does
    /// not, and its refusal is what the client is told.
    pub(in crate::session) fn set_collation(&mut self, id: u16) {
        self.charset = Charset::from_collation_id(id);
        let text = format!(
            "SET character_set_client = {id}, character_set_results = {id}, collation_connection = {id}"
        );
        let replay = Replay::Query(text.into_bytes());
        self.record(b"names", replay, true, false, MadeFrom::Itself);
    }
}
