//! What is known of a server connection, and goes with it from one session to the next: the state that it is in and the
//! statements that are prepared on it.

use std::sync::Arc;

use super::history::History;
use super::texts::{Cache, Text};
use super::tracking::{Shown, Tracking};
use super::upstream::Ready;
use crate::pool::{HostId, ServerFacts, Shape};
use crate::sql::Server;
use crate::wire::{Capabilities, Status};

/// See the module's words.
#[derive(Debug)]
pub struct Known {
    pub(super) host: HostId,
    pub(super) shape: Shape,
    /// Another number each time it is lent to somebody else, or is asked something.
    pub(super) serial: u64,
    /// The server's id of the connection.
    pub(super) thread_id: u32,
    pub(super) capabilities: Capabilities,
    /// The flags of its last reply.
    pub(super) status: Status,
    /// Those of its log-in: what a session begins with.
    pub(super) fresh_status: Status,
    pub(super) server: Server,
    pub(super) version: u32,
    /// The state that it is in.
    pub(super) history: Arc<History>,
    pub(super) tracking: Tracking,
    /// It was asked what it tells everybody…
    pub(super) was_asked: bool,
    /// …and answered this.
    pub(super) shown: Option<Shown>,
    /// What brings back of the log-in what COM_RESET_CONNECTION forgets.
    pub(super) after_reset: Vec<Box<[u8]>>,
    /// The server said more to it at its log-in than can be said again: only another one is like new.
    pub(super) begins_with_more: bool,
    /// What LAST_INSERT_ID() gives; `None` when that is not known.
    pub(super) insert_id: Option<u64>,
    /// What FOUND_ROWS() gives; `None` when that is not known.
    pub(super) found_rows: Option<u64>,
    /// COM_SET_OPTION's state.
    pub(super) multi_statements: bool,
    pub(super) statements: Cache,
    pub(super) conditions: Conditions,
    /// The payload of the log-in's OK.
    pub(super) ok: Box<[u8]>,
    /// The schema that the log-in named.
    pub(super) ok_schema: Option<Box<[u8]>>,
}

/// Warnings and errors that SHOW WARNINGS would show there. MariaDB keeps them while statements without tables follow, so that they
/// may be another session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conditions {
    /// There are none.
    None,
    /// There may be some of the session that has the connection.
    Own,
    /// There may be some that are not for that session.
    Others,
}

impl Known {
    /// A connection that has just logged in, with what its log-in packet said.
    #[must_use]
    pub fn new(host: HostId, shape: Shape, schema: Option<&[u8]>, ready: &Ready) -> Box<Self> {
        Box::new(Self {
            host,
            shape,
            serial: 0,
            thread_id: ready.thread_id,
            capabilities: ready.capabilities,
            status: ready.status,
            fresh_status: ready.status.intersection(Status::OF_SESSION),
            server: ready.facts.server(),
            version: ready.facts.version_number(),
            history: Arc::new(History::after_login(schema)),
            tracking: Tracking::default(),
            was_asked: false,
            shown: None,
            after_reset: after_reset(&shape, &ready.facts),
            begins_with_more: false,
            insert_id: Some(0),
            found_rows: Some(0),
            multi_statements: ready.capabilities.contains(Capabilities::MULTI_STATEMENTS),
            statements: Cache::default(),
            conditions: Conditions::None,
            ok: ready.ok.as_slice().into(),
            ok_schema: schema.map(Into::into),
        })
    }

    /// For whom it may serve.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            has_schema: self.history.schema().is_some(),
            ..self.shape
        }
    }

    /// Notes whether the server has an `init_connect`.
    pub fn set_begins_with_more(&mut self, begins_with_more: bool) {
        self.begins_with_more = begins_with_more;
        if begins_with_more {
            self.conditions = Conditions::Others;
            self.found_rows = None;
        }
    }

    /// Gives it the number of its next use.
    pub fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    /// It has answered a question of Atlas's own, so that it does not know any more what came before.
    pub(super) fn set_asked(&mut self) {
        // Those of uses are smaller.
        const ASKED: u64 = 1 << 56;
        self.serial = self.serial.wrapping_add(ASKED);
    }

    /// The number of its last use.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The server's id of the connection.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    /// Connections with equal numbers are most likely in the same state.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        self.history.hash()
    }

    /// COM_RESET_CONNECTION was said to it. Its history is what is brought about next.
    pub(super) fn was_reset(&mut self) {
        self.status = self.fresh_status;
        self.insert_id = Some(0);
        self.statements.clear();
        if self.tracking != Tracking::Refused {
            self.tracking = Tracking::Own;
        }
    }

    /// The number under which a text is prepared on it.
    pub(super) fn statement(&self, text: &Arc<Text>) -> Option<u32> {
        self.statements.find(text)
    }
}

/// What COM_RESET_CONNECTION forgets of a log-in: MySQL the character set (it goes by the collation's id, which the variables
/// take too), MariaDB that functions may be written with a space before their parenthesis.
fn after_reset(shape: &Shape, facts: &ServerFacts) -> Vec<Box<[u8]>> {
    let mut list: Vec<Box<[u8]>> = Vec::new();
    let id = shape.charset;
    if facts.server() == Server::MySql && id != u16::from(facts.charset) {
        let text = format!(
            "SET character_set_client = {id}, character_set_results = {id}, collation_connection = {id}"
        );
        list.push(text.into_bytes().into());
    }
    if facts.server() == Server::MariaDb && shape.capabilities.contains(Capabilities::IGNORE_SPACE)
    {
        list.push((*b"SET SESSION sql_mode = CONCAT(@@sql_mode, ',IGNORE_SPACE')").into());
    }
    list
}
