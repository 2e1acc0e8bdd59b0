//! The commands of prepared statements. A statement is prepared where it runs first, and again on the other connection
//! when it runs there; the client knows one id. Parameter types that the client sent once are sent again where they are
//! not known.

use std::sync::Arc;

use super::asked::Asking;
use super::bring::Readiness;
use super::bring::write_command;
use super::departure::{Departure, Front};
use super::govern::Subject;
use super::locks::LockReply;
use super::names::Names;
use super::params;
use super::routing::{follow_unread, looks_at_id};
use super::sharded_stmt::Whereto;
use super::stmt::Prepared;
use super::tracking::Settings;
use super::{Access, Cx, Expect, Fault, Outputs, Role, Session, What};
use crate::config::RuleTarget;
use crate::route::{self, Reason, Route};
use crate::shard::Refused;
use crate::sql::{self, Hint, Kind, Server, Traits};
use crate::wire::{Command, Execute, write_payload};

/// Where the id lies in the commands that name a statement, counted from the packet's header.
const ID: std::ops::Range<usize> = 5..9;

/// Where COM_STMT_EXECUTE has its flags, counted likewise, and those of them that ask for a cursor.
const FLAGS: usize = 9;
const CURSOR_FLAGS: u8 = 0x07;
/// How servers call the executions in their errors.
const EXECUTE: &str = "mysqld_stmt_execute";

fn read_id(front: &Front<'_>) -> Option<u32> {
    // Not beyond the packet, behind which the next one may stand.
    if front.total() < ID.end {
        return None;
    }
    let bytes = front.bytes.get(ID)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn patch_id(bytes: &mut [u8], id: u32) {
    if let Some(place) = bytes.get_mut(ID) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// The statement that a command names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// The number that the client sent.
    pub(super) sent: u32,
    /// The number under which the statement is listed.
    pub(super) id: u32,
}

impl Session {
    /// Reads which statement a command names. On MariaDB `u32::MAX` stands for the one prepared last.
    pub(super) fn named(&self, front: &Front<'_>) -> Option<Named> {
        let sent = read_id(front)?;
        let is_last = sent == u32::MAX && self.server == Server::MariaDb;
        let id = if is_last {
            self.statements.last_id()
        } else {
            sent
        };
        Some(Named { sent, id })
    }

    /// COM_STMT_PREPARE.
    pub(super) fn prepare(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let sql = front.payload().get(1..).unwrap_or_default();
        let whole = front.is_whole();
        self.keep_text(cx, sql);
        let (statement, mut route);
        if whole {
            statement = sql::classify(sql, &self.dialect());
            route = self.decide(cx, sql, &statement);
        } else {
            let kind = sql::classify_prefix(sql, &self.dialect());
            statement = sql::Statement {
                kind,
                traits: Traits::EFFECTS,
                hint: None,
            };
            route = Route {
                role: Role::Primary,
                reason: Reason::Statement(sql::Reason::UnknownStatement),
            };
        }
        let subject = Subject::new(sql, &statement, whole);
        if let Err(fault) = self.govern_prepare(cx, subject) {
            return self.refuse_front(front, &fault, out);
        }
        let there = self.prepare_where(cx, sql, whole, &statement, out);
        let (leg, logical) = match there {
            Ok(Some(Whereto { leg, logical })) => (leg, logical),
            Ok(None) => return 0,
            Err(fault) => return self.refuse_front(front, &fault, out),
        };
        let dresses = self.dress_for(cx, leg.as_ref(), statement.kind, Traits::NONE);
        let spliced = leg.and_then(|leg| leg.text);
        let sql = spliced.as_deref().unwrap_or(sql);
        let settled = self
            .check_hint(cx, &statement)
            .and_then(|()| self.settle(cx, &mut route, statement.kind, Traits::NONE));
        if let Err(fault) = settled {
            return self.refuse_front(front, &fault, out);
        }
        if route.reason == Reason::Follows {
            // To prepare a question about the previous statement is to ask nothing yet.
            route.role = Role::Primary;
        }
        let uses_tables = whole && sql::uses_tables(sql, &self.dialect(), statement.kind);
        let is_diagnostic = statement.wants_primary() == Some(sql::Reason::Diagnostics);
        let prepared = Prepared {
            text: whole.then(|| cx.texts.keep(sql, self.state.history())),
            asks: None,
            logical,
            unsharded: self.meant(cx),
            own: None,
            is_read: whole && statement.wants_primary().is_none(),
            is_diagnostic,
            is_hinted: matches!(statement.hint, Some(Hint::Replica)),
            settings: Settings::of(sql, statement.kind, statement.traits),
            traits: statement.traits,
            kind: statement.kind,
            params: 0,
            types: None,
            long_data: false,
            cursor: false,
            is_long: false,
            told: cx.texts.era(),
            lost_data: None,
        };
        if !self.ensure(cx, route.role, false, out) {
            return 0;
        }
        let id = self.statements.next_id();
        self.preparing = Some(Box::new(prepared));
        let is_read = route.role == Role::Replica;
        let departure = Departure {
            role: route.role,
            access: Access::Read,
            expect: Some(Expect::Prepare),
            what: What::Prepare {
                id,
                // On MariaDB one that uses no table leaves them.
                clears: self.server == Server::MySql || uses_tables,
            },
            retain: is_read || dresses,
            may_retry: is_read,
            waits: false,
            // To prepare a question about the previous statement leaves the answer as it is.
            keeps_last: is_diagnostic,
            keeps_area: false,
            names: None,
            dresses,
        };
        match &spliced {
            None => self.depart(cx, &front, departure, out),
            Some(text) => {
                out.backend(departure.role, departure.access, |buffer| {
                    write_command(buffer, Command::StmtPrepare, text);
                });
                let retained = if departure.retain { front.total() } else { 0 };
                self.await_reply(departure, retained, out);
                if retained > 0 { 0 } else { front.total() }
            }
        }
    }

    /// COM_STMT_EXECUTE.
    pub(super) fn execute(
        &mut self,
        cx: &mut Cx<'_>,
        mut front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let Some(named) = self.named(&front) else {
            return self.depart(cx, &front, Departure::plain(Expect::Response), out);
        };
        let id = named.id;
        self.keep_execution(cx, front.payload(), id);
        if let Err(fault) = self.govern_execute(cx, id, out) {
            return self.refuse_execution(front, id, &fault, out);
        }
        if self.attempt.copying.is_some() {
            self.copy_execution(front.payload(), id);
        }
        match self.execute_where(cx, id, &front, out) {
            Ok(true) if self.legs.is_some() => return front.total(),
            Ok(true) => {}
            Ok(false) => return 0,
            Err(fault) => return self.refuse_execution(front, id, &fault, out),
        }
        if self.series.is_some() {
            return self.execute_in_parts(cx, front, id, out);
        }
        let dialect = self.dialect();
        let view = self.view(cx);
        let target = self.rule_target();
        let has_rule = target == Some(RuleTarget::Replica);
        let capabilities = self.capabilities;
        let Some(statement) = self.statements.get_mut(id) else {
            return self.unknown_statement(cx, front, named.sent, EXECUTE, Expect::Response, out);
        };
        if let Some(fault) = statement.lost_data.take() {
            return self.refuse_execution(front, id, &fault, out);
        }
        if statement.kind == Kind::Kill
            && let Some(text) = statement.own_text().cloned()
            && let Some(kill) = sql::kill_target(&text.sql, &dialect)
            && let Ok(id) = u32::try_from(kill.id)
            && super::local::is_client_id(id)
        {
            self.kill(id, kill.query, out);
            return self.skip(&mut front);
        }
        let parsed = Execute::parse(front.payload(), statement.params, capabilities).ok();
        let wants_cursor = front
            .bytes
            .get(FLAGS)
            .is_some_and(|flags| flags & CURSOR_FLAGS != 0);
        let has_types = parsed
            .as_ref()
            .is_some_and(|p| p.types.is_some() || p.type_flag_at.is_none());
        if named.sent != id && parsed.is_some() && !has_types {
            // Who does not know the statement's number yet cannot have sent its types before.
            return self.refuse_front(front, &Fault::MalformedCommand, out);
        }
        if let Some(parsed) = parsed.as_ref().filter(|_| !has_types)
            && statement.lacks_types(front.payload(), parsed)
            && self.server == Server::MariaDb
        {
            return self.refuse_execution(front, id, &Fault::NeverTyped, out);
        }
        let mut route = if statement.is_diagnostic {
            let text = statement.own_text().map_or(&b""[..], |text| &text.sql);
            follow_unread(text, &dialect, (statement.kind, statement.traits), view)
        } else if statement.is_read
            && front.is_whole()
            && !wants_cursor
            && !statement.long_data
            && !statement.cursor
            && parsed.is_some()
        {
            route::decide_read(
                &view,
                statement.traits.contains(Traits::USER_VAR_READ),
                statement.is_hinted || has_rule,
            )
        } else {
            Route {
                role: Role::Primary,
                reason: Reason::Statement(sql::Reason::Write),
            }
        };
        let text = statement.own_text().map_or(&b""[..], |text| &text.sql);
        self.diary.begin(cx, text, &dialect);
        let (traits, kind) = (statement.traits, statement.kind);
        let is_hinted = statement.is_hinted || has_rule;
        self.attempt.settings = statement.settings;
        route = route::redirect(route, target);
        let settled = self.settle(cx, &mut route, kind, traits);
        if let Err(fault) = settled {
            return self.refuse_execution(front, id, &fault, out);
        }
        if !self.sees_writes(cx, route, is_hinted, out) {
            return 0;
        }
        match self.ask_by_execution(cx, &mut route, id, (kind, traits), out) {
            Ok(Asking::Goes) => {}
            Ok(Asking::Waits) => return 0,
            Ok(Asking::Done) => {
                self.attempt = super::Attempt::default();
                return self.skip(&mut front);
            }
            Err(fault) => return self.refuse_execution(front, id, &fault, out),
        }
        let role = route.role;
        let with_id = looks_at_id(kind, traits);
        let may_retry = role == Role::Replica && route.reason == Reason::PlainRead;
        let pipes = (may_retry && front.is_whole()).then_some(&b""[..]);
        match self.ensure_for(cx, role, (with_id, pipes), out) {
            Readiness::Now if !self.ensure_found(role, (kind, traits), out) => return 0,
            Readiness::Now if !self.ensure_prepared(cx, role, id, out) => return 0,
            // It waits for that to be over, so that it can be prepared.
            Readiness::Behind if !self.is_prepared(cx, role, id) => return 0,
            Readiness::Now | Readiness::Behind => {}
            Readiness::Later => return 0,
        }
        self.last_route = Some((role, route.reason));
        let keeps_area = self.has_area()
            && self
                .statements
                .get_mut(id)
                .and_then(|statement| statement.own_text().cloned())
                .is_some_and(|text| self.keeps_area(&text.sql, kind, traits));
        let may_wait = self.may_wait_for_primary(cx, traits);
        let Some(server_id) = self.server_id(role, id) else {
            return self.unknown_statement(cx, front, named.sent, EXECUTE, Expect::Response, out);
        };
        let link = self.links[role as usize].known_mut();
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        let takes_cursor = role == Role::Primary && statement.asks.is_none();
        statement.cursor = wants_cursor && takes_cursor;
        // The types cannot be put into an execution of several packets, so it stays where they are known.
        statement.is_long |= !front.is_whole() && statement.params > 0;
        let mut insert_types = None;
        if let Some(parsed) = parsed {
            let there = statement
                .text
                .as_ref()
                .zip(link)
                .and_then(|(text, known)| known.statements.touch(text));
            if let Some(range) = parsed.types {
                statement.note_types(front.payload().get(range).unwrap_or_default());
            }
            match (there, parsed.type_flag_at) {
                // The server keeps the types of the last execution, which may have been another session's.
                (Some(there), Some(flag_at)) if !has_types && !is_same(there, &statement.types) => {
                    there.clone_from(&statement.types);
                    insert_types = statement
                        .types
                        .clone()
                        .map(|types| (flag_at, parsed.values_at, types));
                }
                (Some(there), _) if has_types && !is_same(there, &statement.types) => {
                    there.clone_from(&statement.types);
                }
                _ => {}
            }
        }
        let is_read = role == Role::Replica;
        let repeats = statement.may_run_again();
        let waits = !is_read && repeats && may_wait;
        if traits.contains(Traits::LOCK_FUNCTION) {
            let kinds = statement.types.as_deref();
            let parameter =
                params::first_text(front.payload(), statement.params, capabilities, kinds);
            self.lock_reply = Some(LockReply::to_execution(parameter));
        }
        let departure = Departure {
            role,
            access: if is_read { Access::Read } else { Access::Write },
            expect: Some(if wants_cursor && takes_cursor {
                Expect::Cursor
            } else {
                Expect::Response
            }),
            what: What::Execute { id, kind, traits },
            retain: is_read || repeats,
            may_retry,
            waits,
            keeps_last: route.reason == Reason::Follows,
            keeps_area,
            names: Some(Names {
                sent: named.sent,
                server: server_id,
            }),
            dresses: self.dress.is_some(),
        };
        patch_id(front.bytes, server_id);
        if wants_cursor
            && !takes_cursor
            && let Some(flags) = front.bytes.get_mut(FLAGS)
        {
            // Cursors are on the primary only, and of the client's own text. A server may answer with the rows instead, and this question has few.
            *flags &= !CURSOR_FLAGS;
        }
        match insert_types {
            None => self.depart(cx, &front, departure, out),
            Some(types) => self.depart_with_types(front, departure, &types, out),
        }
    }

    /// Sends an execution with the parameter types put in that the client left out. It is copied, which happens once for a
    /// statement and connection.
    fn depart_with_types(
        &mut self,
        front: Front<'_>,
        departure: Departure,
        (flag_at, values_at, types): &(usize, usize, Arc<[u8]>),
        out: &mut Outputs,
    ) -> usize {
        if !front.is_whole() {
            return self.refuse_front(front, &Fault::TypesUnknown, out);
        }
        let payload = front.payload();
        let mut packet = Vec::with_capacity(payload.len() + types.len());
        packet.extend_from_slice(payload.get(..*flag_at).unwrap_or_default());
        packet.push(1);
        packet.extend_from_slice(types);
        packet.extend_from_slice(payload.get(*values_at..).unwrap_or_default());
        out.backend(departure.role, departure.access, |buffer| {
            write_payload(buffer, 0, &packet);
        });
        let retained = if departure.retain { front.total() } else { 0 };
        self.await_reply(departure, retained, out);
        if retained > 0 { 0 } else { front.total() }
    }

    /// MariaDB's COM_STMT_BULK_EXECUTE: many rows of parameters at once, for writes.
    pub(super) fn bulk_execute(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let id = self.named(&front).map_or(0, |named| named.id);
        if let Err(fault) = self.govern_bulk(cx, id, out) {
            return self.refuse_front(front, &fault, out);
        }
        match self.unsharded_where(cx, id, Refused::BULK, out) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err(fault) => return self.refuse_front(front, &fault, out),
        }
        self.on_primary(cx, front, EXECUTE, Expect::Response, out)
    }

    /// COM_STMT_FETCH: cursors are opened on the primary only.
    pub(super) fn fetch(&mut self, cx: &mut Cx<'_>, front: Front<'_>, out: &mut Outputs) -> usize {
        self.on_primary(cx, front, "mysqld_stmt_fetch", Expect::Fetch, out)
    }

    fn on_primary(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        caller: &'static str,
        expect: Expect,
        out: &mut Outputs,
    ) -> usize {
        let named = self.named(&front);
        let known = named.filter(|named| self.statements.get_mut(named.id).is_some());
        let Some(Named { sent, id }) = known else {
            let sent = named.map_or(0, |named| named.sent);
            return self.unknown_statement(cx, front, sent, caller, expect, out);
        };
        let with_id = expect == Expect::Response;
        if !self.ensure(cx, Role::Primary, with_id, out)
            || with_id && !self.ensure_found_for(Role::Primary, id, out)
            || !self.ensure_prepared(cx, Role::Primary, id, out)
        {
            return 0;
        }
        let server_id = self.server_id(Role::Primary, id);
        let link = self.links[Role::Primary as usize].known_mut();
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        let (kind, traits) = (statement.kind, statement.traits);
        if expect == Expect::Response
            && let Some(types) = params::bulk_types(front.payload(), statement.params)
        {
            statement.note_types(types);
            if let Some((text, known)) = statement.text.as_ref().zip(link)
                && let Some(there) = known.statements.touch(text)
            {
                there.clone_from(&statement.types);
            }
        }
        let mut names = None;
        if let Some(server) = server_id {
            patch_id(front.bytes, server);
            names = Some(Names { sent, server });
        }
        let what = if expect == Expect::Response {
            What::Execute { id, kind, traits }
        } else {
            What::Fetch(id)
        };
        let departure = Departure {
            what,
            keeps_last: false,
            names,
            ..Departure::plain(expect)
        };
        self.depart(cx, &front, departure, out)
    }
}

fn is_same(a: &Option<Arc<[u8]>>, b: &Option<Arc<[u8]>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}
