//! The commands of prepared statements. A statement is prepared where it runs first, and again on the other connection
//! when it runs there; the client knows one id. Parameter types that the client sent once are sent again where they are
//! not known.

use super::command::{Departure, Front};
use super::names::Names;
use super::stmt::Prepared;
use super::{Access, Cx, Expect, Fault, Output, Outputs, Role, Session, What};
use crate::route::{self, Reason, Route};
use crate::sql::{self, Hint, Server, Traits};
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

fn patch_id(bytes: &mut [u8], id: u32) {
    if let Some(place) = bytes.get_mut(ID) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// The statement that a command names.
#[derive(Debug, Clone, Copy)]
struct Named {
    /// The number that the client sent.
    sent: u32,
    /// The number under which the statement is listed.
    id: u32,
}

impl Session {
    /// Reads which statement a command names. On MariaDB `u32::MAX` stands for the one prepared last.
    fn named(&self, front: &Front<'_>) -> Option<Named> {
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
        let is_diagnostic = statement.wants_primary() == Some(sql::Reason::Diagnostics);
        let prepared = Prepared {
            text: whole.then(|| sql.into()),
            is_read: whole && statement.wants_primary().is_none(),
            is_diagnostic,
            is_hinted: matches!(statement.hint, Some(Hint::Replica)),
            traits: statement.traits,
            kind: statement.kind,
            params: 0,
            server_ids: [None; 2],
            types: None,
            types_known: [false; 2],
            long_data: false,
            cursor: false,
            lost_data: None,
        };
        if !self.ensure(cx, route.role, out) {
            return 0;
        }
        let id = self.statements.next_id();
        self.preparing = Some(Box::new(prepared));
        let is_read = route.role == Role::Replica;
        let departure = Departure {
            role: route.role,
            access: Access::Read,
            expect: Some(Expect::Prepare),
            what: What::Prepare(id),
            retain: is_read,
            may_retry: is_read,
            // To prepare a question about the previous statement leaves the answer as it is.
            keeps_last: is_diagnostic,
            names: None,
        };
        self.depart(cx, &front, departure, out)
    }

    /// COM_STMT_EXECUTE.
    pub(super) fn execute(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let Some(named) = self.named(&front) else {
            return self.depart(cx, &front, Departure::plain(Expect::Response), out);
        };
        let id = named.id;
        let view = self.view(self.account(cx.snapshot).read_from);
        let capabilities = self.capabilities;
        let Some(statement) = self.statements.get_mut(id) else {
            return self.unknown_statement(cx, front, named.sent, EXECUTE, Expect::Response, out);
        };
        if let Some(fault) = statement.lost_data.take() {
            return self.refuse_front(front, &fault, out);
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
        let types_lost = !has_types
            && statement.types.is_none()
            && statement.types_known[Role::Primary as usize];
        let mut route = if statement.is_diagnostic {
            route::follow(statement.kind, statement.traits, &view)
        } else if statement.is_read
            && !wants_cursor
            && !statement.long_data
            && !statement.cursor
            && !types_lost
            && parsed.is_some()
        {
            route::decide_read(
                &view,
                statement.traits.contains(Traits::USER_VAR_READ),
                statement.is_hinted,
            )
        } else {
            Route {
                role: Role::Primary,
                reason: Reason::Statement(sql::Reason::Write),
            }
        };
        let (traits, kind) = (statement.traits, statement.kind);
        if let Err(fault) = self.settle(cx, &mut route, kind, traits) {
            return self.refuse_front(front, &fault, out);
        }
        let role = route.role;
        if !self.ensure(cx, role, out) || !self.ensure_prepared(role, id, out) {
            return 0;
        }
        self.last_route = Some((role, route.reason));
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        let Some(server_id) = statement.server_ids[role as usize] else {
            return self.unknown_statement(cx, front, named.sent, EXECUTE, Expect::Response, out);
        };
        statement.cursor = wants_cursor && role == Role::Primary;
        let mut insert_types = None;
        if let Some(parsed) = parsed {
            match (parsed.types, parsed.type_flag_at) {
                (Some(range), _) => {
                    statement.note_types(role, front.payload().get(range).unwrap_or_default())
                }
                (None, Some(flag_at)) if !statement.types_known[role as usize] => {
                    insert_types = statement
                        .types
                        .clone()
                        .map(|types| (flag_at, parsed.values_at, types));
                    statement.types_known[role as usize] = insert_types.is_some();
                }
                (None, _) => {}
            }
        }
        let is_read = role == Role::Replica;
        let departure = Departure {
            role,
            access: if is_read { Access::Read } else { Access::Write },
            expect: Some(if wants_cursor && !is_read {
                Expect::Cursor
            } else {
                Expect::Response
            }),
            what: What::Execute { id, kind, traits },
            retain: is_read,
            may_retry: is_read && route.reason == Reason::PlainRead,
            keeps_last: route.reason == Reason::Follows,
            names: Some(Names {
                sent: named.sent,
                server: server_id,
            }),
        };
        patch_id(front.bytes, server_id);
        if wants_cursor
            && role == Role::Replica
            && let Some(flags) = front.bytes.get_mut(FLAGS)
        {
            // Cursors are on the primary only. A server may answer with the rows instead, and this question has few.
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
        (flag_at, values_at, types): &(usize, usize, Box<[u8]>),
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
        self.await_reply(departure, retained);
        if retained > 0 { 0 } else { front.total() }
    }

    /// MariaDB's COM_STMT_BULK_EXECUTE: many rows of parameters at once, for writes.
    pub(super) fn bulk_execute(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
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
        if !self.ensure(cx, Role::Primary, out) || !self.ensure_prepared(Role::Primary, id, out) {
            return 0;
        }
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        let (kind, traits) = (statement.kind, statement.traits);
        if expect == Expect::Response {
            // The types of a bulk execution replace those of single ones, and only that server knows them.
            statement.types = None;
            statement.types_known = [true, false];
        }
        let mut names = None;
        if let Some(server) = statement.server_ids[Role::Primary as usize] {
            patch_id(front.bytes, server);
            names = Some(Names { sent, server });
        }
        let what = if expect == Expect::Response {
            What::Execute { id, kind, traits }
        } else {
            What::Plain
        };
        let departure = Departure {
            what,
            keeps_last: false,
            names,
            ..Departure::plain(expect)
        };
        self.depart(cx, &front, departure, out)
    }

    /// COM_STMT_SEND_LONG_DATA. It has no reply, and ties the next execution to the primary.
    pub(super) fn long_data(
        &mut self,
        cx: &mut Cx<'_>,
        mut front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        // The command, the statement's number and the parameter's.
        const HEAD: usize = 1 + 4 + 2;
        if front.bytes.len() < front.total().min(4 + HEAD) {
            self.want = front.total().min(4 + HEAD);
            return 0;
        }
        self.want = 4;
        if front.len < HEAD && self.server == Server::MySql {
            return self.depart(cx, &front, Departure::plain(Expect::Terminal), out);
        }
        let named = self.named(&front);
        let known = named.filter(|named| {
            let statement = self.statements.get_mut(named.id);
            statement.is_some_and(|statement| statement.lost_data.is_none())
        });
        let Some(Named { id, .. }) = known else {
            // Servers say nothing to long data, not even that there is no such statement.
            return self.skip(&mut front);
        };
        if !self.ensure(cx, Role::Primary, out) || !self.ensure_prepared(Role::Primary, id, out) {
            return 0;
        }
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        statement.long_data = true;
        if let Some(server_id) = statement.server_ids[Role::Primary as usize] {
            patch_id(front.bytes, server_id);
        }
        let departure = Departure {
            expect: None,
            ..Departure::plain(Expect::Terminal)
        };
        self.depart(cx, &front, departure, out)
    }

    /// The statement for which the command at the front is long data.
    pub(super) fn takes_long_data(&mut self, front: &Front<'_>) -> Option<&mut Prepared> {
        let is_long_data =
            front.bytes.get(4).copied().map(Command::from)? == Command::StmtSendLongData;
        let named = self.named(front).filter(|_| is_long_data)?;
        self.statements.get_mut(named.id)
    }

    /// COM_STMT_CLOSE. It has no reply.
    pub(super) fn close_statement(
        &mut self,
        cx: &mut Cx<'_>,
        front: &Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let total = front.total();
        let named = self.named(front);
        if named.is_none() && self.server == Server::MySql {
            // But for one that MySQL cannot read.
            return self.depart(cx, front, Departure::plain(Expect::Terminal), out);
        }
        if let Some(statement) = named.and_then(|named| self.statements.remove(named.id)) {
            for role in Role::BOTH {
                if let Some(server_id) = statement.server_ids[role as usize] {
                    let mut packet = [5, 0, 0, 0, 0x19, 0, 0, 0, 0];
                    patch_id(&mut packet, server_id);
                    out.backend(role, Access::Read, |buffer| {
                        buffer.extend_from_slice(&packet)
                    });
                }
            }
        }
        total
    }

    /// COM_STMT_RESET: long data and cursors, both of which are on the primary only.
    pub(super) fn reset_statement(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let Some(Named { sent, id }) = self.named(&front) else {
            return self.depart(cx, &front, Departure::plain(Expect::Terminal), out);
        };
        let Some(statement) = self.statements.get_mut(id) else {
            let (caller, expect) = ("mysqld_stmt_reset", Expect::Terminal);
            return self.unknown_statement(cx, front, sent, caller, expect, out);
        };
        statement.long_data = false;
        statement.cursor = false;
        statement.lost_data = None;
        let role = Role::Primary;
        let Some(server_id) = statement.server_ids[role as usize] else {
            // A statement that only a replica has holds nothing to be reset, and the replica's flags are not the session's.
            self.local_ok(1, out);
            return front.total();
        };
        patch_id(front.bytes, server_id);
        let (at, total) = (front.at, front.total());
        out.push(Output::ForwardToBackend {
            role,
            range: at..at + total,
            access: Access::Read,
        });
        self.await_reply(
            Departure {
                role,
                names: Some(Names {
                    sent,
                    server: server_id,
                }),
                ..Departure::plain(Expect::Terminal)
            },
            0,
        );
        total
    }

    /// A statement that the session does not have. The primary says so in its own words, unless the number happens to be
    /// that of another statement there.
    fn unknown_statement(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        id: u32,
        caller: &'static str,
        expect: Expect,
        out: &mut Outputs,
    ) -> usize {
        // MySQL looks statements up in one place since version 8.
        let command = match self.server {
            Server::MySql if self.version >= 80_000 => "mysql_stmt_precheck",
            Server::MySql | Server::MariaDb => caller,
        };
        let means_last = id == u32::MAX && self.server == Server::MariaDb;
        if means_last || self.statements.is_server_id(id) {
            return self.refuse_front(front, &Fault::UnknownStatement { id, command }, out);
        }
        self.depart(cx, &front, Departure::plain(expect), out)
    }
}

impl Prepared {
    /// The client sent its parameter types; they are kept when they are new.
    fn note_types(&mut self, role: Role, types: &[u8]) {
        if self.types.as_deref() != Some(types) {
            self.types = Some(types.into());
            self.types_known = [false; 2];
        }
        self.types_known[role as usize] = true;
    }
}
