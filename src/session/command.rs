//! A client's command: which it is, where it goes, and its departure. Prepared statements are in `prepared`, answers that
//! Atlas makes itself in `local`.

use super::area::AreaStep;
use super::bring::Readiness;
use super::departure::{Departure, Front};
use super::govern::Subject;
use super::locks::LockReply;
use super::routing::looks_at_id;
use super::tracking::Settings;
use super::{
    Access, COMMAND_WHOLE_MAX, Cx, Expect, Fault, Output, Outputs, Reply, Role, Running, Session,
    Tracker, Upload, What,
};
use crate::route::{self, Reason};
use crate::sql::{self, Hint, Kind, Server, Traits};
use crate::wire::{Command, Header, MAX_PAYLOAD, query_text};

impl Session {
    /// Looks at the packet at the front; gives the bytes consumed, 0 when it must be shown again.
    pub(super) fn on_command(
        &mut self,
        cx: &mut Cx<'_>,
        rest: &mut [u8],
        at: usize,
        out: &mut Outputs,
    ) -> usize {
        let Some(header) = Header::parse(rest) else {
            return 0;
        };
        if header.seq != 0 {
            // The numbering is of no use any more: servers begin anew with 0.
            self.refuse_and_close(&Fault::OutOfOrder, 0, out);
            return rest.len();
        }
        let code = match rest.get(4).copied() {
            // Servers take an empty packet for COM_SLEEP, and say what they think of it.
            _ if header.len == 0 => Command::Sleep.code(),
            Some(code) => code,
            None => {
                self.want = 5;
                return 0;
            }
        };
        let front = Front {
            bytes: rest,
            at,
            len: header.len,
        };
        let command = Command::from(code);
        if header.len > COMMAND_WHOLE_MAX {
            return self.on_long_command(cx, command, front, out);
        }
        if !front.is_whole() && command != Command::StmtSendLongData {
            self.want = front.total();
            return 0;
        }
        self.want = 4;
        let consumed = self.on_whole_command(cx, command, front, out);
        if consumed > 0 {
            self.diary.left();
            self.write_answered(out);
        }
        consumed
    }

    fn on_whole_command(
        &mut self,
        cx: &mut Cx<'_>,
        command: Command,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        match command {
            Command::Query => self.query(cx, front, out),
            Command::StmtExecute => self.execute(cx, front, out),
            _ => self.on_other_command(cx, command, front, out),
        }
    }

    /// Those that are no statement to run: out of the way of those that are, so that these find their code close together.
    #[inline(never)]
    fn on_other_command(
        &mut self,
        cx: &mut Cx<'_>,
        command: Command,
        front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        let total = front.total();
        match command {
            // Taken by who calls. No command is ever passed over without a word.
            Command::Query | Command::StmtExecute => {
                self.refuse_front(front, &Fault::MalformedCommand, out)
            }
            Command::StmtPrepare => self.prepare(cx, front, out),
            Command::StmtSendLongData => self.long_data(cx, front, out),
            Command::StmtClose => self.close_statement(cx, &front, out),
            Command::StmtReset => self.reset_statement(cx, front, out),
            Command::StmtFetch => self.fetch(cx, front, out),
            Command::StmtBulkExecute => self.bulk_execute(cx, front, out),
            Command::Quit => {
                self.close(out);
                front.bytes.len()
            }
            Command::Ping => self.ping(&front, out),
            Command::InitDb => {
                self.keep_schema(cx, front.payload().get(1..).unwrap_or_default());
                match self.go_home(cx, out) {
                    Ok(true) => {}
                    Ok(false) => return 0,
                    Err(fault) => return self.refuse_front(front, &fault, out),
                }
                let departure = Departure {
                    what: What::InitDb,
                    retain: true,
                    ..Departure::plain(Expect::Terminal)
                };
                self.depart(cx, &front, departure, out)
            }
            Command::SetOption => {
                let option = front
                    .payload()
                    .get(1..3)
                    .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
                let departure = Departure {
                    what: What::SetOption(option),
                    ..Departure::plain(Expect::Terminal)
                };
                self.depart(cx, &front, departure, out)
            }
            Command::ResetConnection => self.reset_connection(cx, &front, out),
            Command::ChangeUser => {
                self.change_user(cx, front.payload(), 1, out);
                total
            }
            // MySQL 9 has the statement only.
            Command::ProcessKill if self.server == Server::MySql && self.version >= 90_000 => {
                self.depart(cx, &front, Departure::plain(Expect::Terminal), out)
            }
            Command::ProcessKill => {
                let id = front
                    .payload()
                    .get(1..5)
                    .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                match id {
                    Some(id) if super::local::is_client_id(id) => {
                        self.kill(id, false, out);
                        total
                    }
                    _ => self.depart(cx, &front, Departure::plain(Expect::Terminal), out),
                }
            }
            Command::FieldList => {
                let name = front.payload().get(1..).unwrap_or_default();
                let home = match self.check_table(cx, name) {
                    Ok(()) => self.go_home(cx, out),
                    Err(fault) => Err(fault),
                };
                match home {
                    Ok(true) => self.depart(cx, &front, Departure::plain(Expect::FieldList), out),
                    Ok(false) => 0,
                    Err(fault) => self.refuse_front(front, &fault, out),
                }
            }
            Command::Statistics => self.depart(cx, &front, Departure::plain(Expect::Single), out),
            Command::ProcessInfo => {
                self.depart(cx, &front, Departure::plain(Expect::Response), out)
            }
            Command::BinlogDump | Command::BinlogDumpGtid | Command::RegisterReplica => {
                self.refuse(&Fault::ReplicationRefused, 1, out);
                total
            }
            // MariaDB does not know these two.
            Command::Clone | Command::SubscribeGroupReplication if self.server == Server::MySql => {
                self.refuse(&Fault::ReplicationRefused, 1, out);
                total
            }
            // The server says what it thinks of the others, in one packet.
            Command::Sleep
            | Command::CreateDb
            | Command::DropDb
            | Command::Refresh
            | Command::Shutdown
            | Command::Connect
            | Command::TableDump
            | Command::Clone
            | Command::SubscribeGroupReplication
            | Command::Debug
            | Command::Time
            | Command::DelayedInsert
            | Command::ConnectOut
            | Command::Daemon
            | Command::Multi
            | Command::Unknown(_) => {
                self.depart(cx, &front, Departure::plain(Expect::Terminal), out)
            }
        }
    }

    fn query(&mut self, cx: &mut Cx<'_>, front: Front<'_>, out: &mut Outputs) -> usize {
        let payload = front.payload();
        let Ok(range) = query_text(payload, self.capabilities) else {
            return self.depart(cx, &front, Departure::plain(Expect::Response), out);
        };
        let at = range.start;
        let sql = payload.get(range).unwrap_or_default();
        let dialect = self.dialect();
        self.keep_text(cx, sql);
        self.diary.begin(cx, sql, &dialect);
        let statement = sql::classify(sql, &dialect);
        if self.shares {
            self.attempt.settings = Settings::of(sql, statement.kind, statement.traits);
        }
        let may_name = cx.snapshot.placement.is_some() && self.may_name(cx, sql, statement.kind);
        if let Some(route) = self.plain_route(cx, &statement, may_name) {
            debug_assert!(
                self.is_ordinary(cx, sql, &statement, route),
                "the short way goes where the ordinary one goes: {route:?}"
            );
            self.last_route = Some((route.role, route.reason));
            let departure = self.plain_departure(cx, route, 4 + at);
            return self.depart(cx, &front, departure, out);
        }
        match self.query_with_care(cx, &front, (at, sql, may_name), statement, out) {
            Ok(consumed) => consumed,
            Err(fault) => self.refuse_front(front, &fault, out),
        }
    }

    /// As [`Self::query`], for what is more than a plain read of its group's one home.
    #[inline(never)]
    fn query_with_care(
        &mut self,
        cx: &mut Cx<'_>,
        front: &Front<'_>,
        (at, sql, may_name): (usize, &[u8], bool),
        statement: sql::Statement<'_>,
        out: &mut Outputs,
    ) -> Result<usize, Fault> {
        let dialect = self.dialect();
        match statement.kind {
            Kind::ExplainRoute => {
                self.explain_route(cx, sql, out);
                return Ok(front.total());
            }
            Kind::ShowLastRoute => {
                self.show_last_route(out);
                return Ok(front.total());
            }
            Kind::Kill => {
                if let Some(kill) = sql::kill_target(sql, &dialect)
                    && let Ok(id) = u32::try_from(kill.id)
                    && super::local::is_client_id(id)
                {
                    self.kill(id, kill.query, out);
                    return Ok(front.total());
                }
            }
            _ => {}
        }
        let subject = Subject::new(sql, &statement, true);
        self.govern(cx, subject, out)?;
        let target = self.rule_target();
        let statement = route::hinted(statement, target);
        let leg = self.leg(cx, (sql, may_name), &statement)?;
        if self.is_in_pieces() {
            let is_taken = self.piece(cx, sql, &statement, out)?;
            return Ok(if is_taken { front.total() } else { 0 });
        }
        if !self.go_where(cx, leg.as_ref(), sql, &statement, out)? {
            return Ok(0);
        }
        let dresses = self.dress_for(cx, leg.as_ref(), statement.kind, statement.traits);
        let spliced = leg.and_then(|leg| leg.text);
        let sql = spliced.as_deref().unwrap_or(sql);
        let mut route = route::redirect(self.decide(cx, sql, &statement), target);
        self.check_hint(cx, &statement)?;
        self.settle(cx, &mut route, statement.kind, statement.traits)?;
        if !self.sees_writes(cx, route, statement.hint == Some(Hint::Replica), out) {
            return Ok(0);
        }
        let answered;
        let text = match self.answer_questions(cx, &mut route, sql, &statement, out) {
            AreaStep::Forward => spliced.as_deref(),
            AreaStep::Text(text) => {
                answered = text;
                Some(answered.as_slice())
            }
            AreaStep::Waits => return Ok(0),
            AreaStep::Shown(reply) => {
                out.client(|buffer| buffer.extend_from_slice(&reply));
                self.attempt = super::Attempt::default();
                return Ok(front.total());
            }
            AreaStep::Done => {
                self.attempt = super::Attempt::default();
                return Ok(front.total());
            }
            AreaStep::Refuse(fault) => return Err(fault),
        };
        let is_read = route.role == Role::Replica;
        self.last_route = Some((route.role, route.reason));
        if statement.traits.contains(Traits::LOCK_FUNCTION) || statement.kind == Kind::Execute {
            self.lock_reply = Some(LockReply::to_text());
        }
        let waits = !is_read && self.may_wait_for_primary(cx, statement.traits);
        let departure = Departure {
            role: route.role,
            access: if is_read { Access::Read } else { Access::Write },
            expect: Some(Expect::Response),
            what: match statement.kind {
                Kind::Commit | Kind::Rollback if self.releases(sql, &dialect) => What::Release,
                kind => What::Query {
                    at: 4 + at,
                    traits: statement.traits,
                    kind,
                },
            },
            // What the server quotes of a text is told in the client's words.
            retain: is_read
                || waits
                || dresses
                || statement
                    .traits
                    .intersects(Traits::EFFECTS | Traits::LOCK_FUNCTION | Traits::MULTI)
                || statement.kind == Kind::Kill,
            may_retry: is_read && route.reason == Reason::PlainRead,
            waits,
            keeps_last: route.reason == Reason::Follows,
            keeps_area: self.keeps_area(sql, statement.kind, statement.traits),
            names: None,
            dresses,
        };
        let consumed = match text {
            None => self.depart(cx, front, departure, out),
            Some(text) => self.depart_with(cx, front, departure, text, out),
        };
        if let Some(room) = spliced {
            cx.texts.shapes.reuse(room);
        }
        Ok(consumed)
    }

    /// Sends another text in place of the client's.
    #[cold]
    fn depart_with(
        &mut self,
        cx: &mut Cx<'_>,
        front: &Front<'_>,
        departure: Departure,
        text: &[u8],
        out: &mut Outputs,
    ) -> usize {
        if !self.ensure(cx, departure.role, true, out) {
            return 0;
        }
        if let What::Query { kind, traits, .. } = departure.what
            && !self.ensure_found(departure.role, (kind, traits), out)
        {
            return 0;
        }
        let capabilities = self.capabilities_of(departure.role);
        out.backend(departure.role, departure.access, |buffer| {
            super::bring::write_query(buffer, capabilities, text);
        });
        let retained = if departure.retain { front.total() } else { 0 };
        self.await_reply(departure, retained, out);
        if retained > 0 { 0 } else { front.total() }
    }

    /// Sends the command off, once its connection is there and in the right state; gives the bytes consumed.
    pub(super) fn depart(
        &mut self,
        cx: &mut Cx<'_>,
        front: &Front<'_>,
        mut departure: Departure,
        out: &mut Outputs,
    ) -> usize {
        let with_id = match departure.what {
            What::Query { kind, traits, .. } => looks_at_id(kind, traits),
            What::LongQuery(_) => true,
            _ => false,
        };
        // What another server may be asked again.
        let pipes = (departure.may_retry && front.is_whole()).then(|| front.payload());
        match self.ensure_for(cx, departure.role, (with_id, pipes), out) {
            Readiness::Now => {}
            // Kept until the state is known to be there.
            Readiness::Behind => departure.retain = true,
            Readiness::Later => return 0,
        }
        let facts = match departure.what {
            What::Query { kind, traits, .. } => (kind, traits),
            What::LongQuery(kind) => (kind, Traits::MAY_COUNT),
            _ => (Kind::Empty, Traits::NONE),
        };
        if !self.ensure_found(departure.role, facts, out) {
            return 0;
        }
        self.forward(front, departure, out)
    }

    /// Sends the command off on the connection that is there; gives the bytes consumed.
    pub(super) fn forward(
        &mut self,
        front: &Front<'_>,
        departure: Departure,
        out: &mut Outputs,
    ) -> usize {
        let (total, at) = (front.total(), front.at);
        let here = total.min(front.bytes.len());
        let whole = front.is_whole();
        out.push(Output::ForwardToBackend {
            role: departure.role,
            range: at..at + here,
            access: departure.access,
        });
        if !whole {
            self.upload = Some(Upload {
                to: Some(departure.role),
                access: departure.access,
                left: total - here,
                more: front.len == MAX_PAYLOAD,
                seq: 0,
                is_file: false,
            });
        }
        let retained = if departure.retain && whole { total } else { 0 };
        self.await_reply(departure, retained, out);
        if retained > 0 { 0 } else { here }
    }

    pub(super) fn await_reply(&mut self, departure: Departure, retained: usize, out: &mut Outputs) {
        self.diary.left();
        if let Some(expect) = departure.expect {
            let rows = self.attempt.rows_max();
            let mut tracker =
                Tracker::new(expect, self.capabilities_of(departure.role)).with_rows_at_most(rows);
            if !self.may_be_asked_for_file(departure.what) {
                tracker = tracker.without_files();
            }
            if self.tells_more(departure.role) {
                tracker = tracker.with_changes();
            }
            if departure.dresses {
                tracker = tracker.with_names(self.dresses_rows());
            }
            if self.upload.as_ref().is_some_and(|upload| upload.more) {
                tracker.waits_for_client();
            }
            self.reply = Some(Reply {
                role: departure.role,
                tracker,
                command: Running {
                    what: departure.what,
                    retained,
                    may_retry: departure.may_retry && retained > 0,
                    waits: departure.waits && retained > 0,
                    keeps_last: departure.keeps_last,
                    keeps_area: departure.keeps_area,
                    names: departure.names,
                },
            });
            self.start_clock(out);
        }
    }
}
