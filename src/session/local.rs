//! Answers that Atlas gives by itself: OK where no server has anything to add, KILL of its own clients, and what it tells
//! of its routes.

use super::govern::Subject;
use super::history::History;
use super::{Cx, Fault, Output, Outputs, Phase, Role, Session};
use crate::route::{self, Reason};
use crate::shard::Plan;
use crate::sql;
use crate::wire::{Command, OkPacket, ResultSetWriter, RowFormat, Status};

/// Clients' ids lie where servers' ids do not come: bit 30 is set, then the worker, then a count.
const CLIENT_ID_BIT: u32 = 1 << 30;

/// The id of a client of this worker.
#[must_use]
pub fn client_id(worker: u8, count: u32) -> u32 {
    CLIENT_ID_BIT | u32::from(worker & 0x3f) << 24 | (count & 0xff_ffff)
}

/// The worker that serves the client with this id.
#[must_use]
pub fn worker_of(id: u32) -> usize {
    usize::from((id >> 24 & 0x3f) as u8)
}

/// Whether an id is one of Atlas's clients and not a server's.
pub(super) fn is_client_id(id: u32) -> bool {
    id & 0xc000_0000 == CLIENT_ID_BIT
}

impl Session {
    /// OK, as a server answers a command that did nothing.
    pub(super) fn local_ok(&mut self, seq: u8, out: &mut Outputs) {
        self.local_ok_with(0, seq, out);
    }

    /// The same, where there are warnings to be shown.
    pub(super) fn local_ok_with(&mut self, warnings: u16, seq: u8, out: &mut Outputs) {
        let (capabilities, status) = (
            self.capabilities,
            self.status.intersection(Status::OF_SESSION),
        );
        out.client(|buffer| {
            OkPacket {
                affected: 0,
                insert_id: 0,
                status,
                warnings,
                info: b"",
                state: b"",
            }
            .write(buffer, seq, capabilities);
        });
    }

    /// KILL of a client of this instance.
    pub(super) fn kill(&mut self, id: u32, query_only: bool, out: &mut Outputs) {
        if id != self.id {
            self.killing = Some(id);
            out.push(Output::Kill { id, query_only });
        } else if query_only {
            self.refuse(&Fault::Interrupted, 1, out);
        } else {
            let fault = match self.server {
                sql::Server::MariaDb => Fault::Killed,
                sql::Server::MySql => Fault::Interrupted,
            };
            self.refuse_and_close(&fault, 1, out);
        }
    }

    /// KILL QUERY for this session, of which no server runs a statement: one that waits to be sent is not sent, and gets the error that a
    /// server has for it. Gives the place for which it waits for a connection, which is to come to nothing.
    pub fn on_killed_unsent(&mut self, client: &[u8]) -> Option<Role> {
        let is_statement = client.get(4).is_some_and(|first| {
            matches!(
                Command::from(*first),
                Command::Query | Command::StmtPrepare | Command::StmtExecute
            )
        });
        let is_in_parts = self.scatter.is_some() || self.series.is_some() || self.is_in_pieces();
        let waits =
            self.waiting.is_some() || self.sync.as_ref().is_some_and(|sync| !sync.asks_numbers());
        let is_unsent = matches!(self.phase, Phase::Command) && self.reply.is_none() && waits;
        if !is_statement || is_in_parts || !is_unsent {
            return None;
        }
        // Looked at again, it is refused.
        self.attempt.is_interrupted = true;
        self.attempt.cut = true;
        self.waiting
    }

    /// The answer to `Output::Kill`.
    pub fn on_kill_done(&mut self, found: bool, out: &mut Outputs) {
        let Some(id) = self.take_kill() else {
            return;
        };
        if found {
            self.local_ok(1, out);
        } else {
            self.refuse(&Fault::UnknownThread(id), 1, out);
        }
    }

    /// The other answer to `Output::Kill`: the client is another account's.
    pub fn on_kill_refused(&mut self, out: &mut Outputs) {
        if let Some(id) = self.take_kill() {
            self.refuse(&Fault::NotOwner(id), 1, out);
        }
    }

    /// The id whose kill is answered now; `None` where the session has ended meanwhile and said its last.
    fn take_kill(&mut self) -> Option<u32> {
        let id = self.killing.take()?;
        (!self.is_closed()).then_some(id)
    }

    /// `EXPLAIN ROUTE statement`.
    pub(super) fn explain_route(&mut self, cx: &mut Cx<'_>, sql: &[u8], out: &mut Outputs) {
        let start = sql::explain_route_target(sql, &self.dialect()).unwrap_or(sql.len());
        let inner = sql.get(start..).unwrap_or_default();
        let statement = sql::classify(inner, &self.dialect());
        let subject = Subject::new(inner, &statement, true);
        let verdict = self.judge(cx, subject);
        let statement = route::hinted(statement, verdict.target());
        let plan = self.plan(cx, inner, &statement, verdict.allows());
        let route = self.decide(cx, inner, &statement);
        let mut settled = route::redirect(route, verdict.target());
        let refused = verdict.refusal().map(Fault::Ruled).or_else(|| {
            self.settle(cx, &mut settled, statement.kind, statement.traits)
                .err()
        });
        let is_ruled = verdict.refusal().is_some();
        let group = self.group(cx.snapshot);
        let mut rows = vec![
            ("class", format!("{:?}", statement.kind).to_lowercase()),
            (
                "route",
                refused.as_ref().map_or_else(
                    || role_word(settled.role).to_owned(),
                    |_| "refused".to_owned(),
                ),
            ),
            ("group", group.name.clone()),
            (
                "reason",
                refused.map_or_else(
                    || settled.reason.as_str().to_owned(),
                    |fault| fault.to_string(),
                ),
            ),
        ];
        if let Some(rule) = verdict.rule() {
            rows.push(("rule", rule));
        }
        if is_ruled {
            return self.answer_rows(&rows, out);
        }
        if let Some(plan) = plan {
            rows.retain(|(step, _)| matches!(*step, "class" | "rule"));
            self.explain_plan(cx, inner, settled, plan, &mut rows);
            return self.answer_rows(&rows, out);
        }
        for (host, weight) in &group.replicas {
            let address = &cx.snapshot.hosts[host.index()].address;
            let verdict = if settled.role == Role::Replica {
                "may answer"
            } else {
                "not asked: the primary is needed"
            };
            rows.push((
                "candidate",
                format!("replica {address} weight {weight}: {verdict}"),
            ));
        }
        rows.push(("pins", self.state.pins().as_str().to_owned()));
        rows.push(("state to replay", self.replays(settled.role)));
        self.answer_rows(&rows, out);
    }

    /// The shards of a statement about sharded tables.
    fn explain_plan(
        &self,
        cx: &Cx<'_>,
        sql: &[u8],
        settled: route::Route,
        plan: Plan,
        rows: &mut Vec<(&'static str, String)>,
    ) {
        let (legs, what) = match plan {
            Plan::Refuse(refused) => {
                rows.push(("route", "refused".to_owned()));
                rows.push(("reason", refused.reason().to_owned()));
                return;
            }
            Plan::One(leg) => (vec![leg], "one-shard"),
            Plan::Scatter { legs, .. } => (legs, "several-shards"),
            Plan::Parts(legs) => (legs, "several-tables"),
            Plan::Across(legs) => (legs, "several-groups"),
            Plan::Everywhere(legs) => (legs, "every-group"),
            Plan::Each(legs) => (legs, "every-table"),
            Plan::Columns(_) => (Vec::new(), "by-the-columns-that-a-server-tells"),
            Plan::Ids { .. } => (Vec::new(), "with-generated-keys"),
        };
        let name = |group: usize| {
            let group = cx.snapshot.groups.get(group);
            group.map_or_else(String::new, |group| group.name.clone())
        };
        rows.push(("route", "sharded".to_owned()));
        rows.push(("role", role_word(settled.role).to_owned()));
        rows.push(("reason", format!("{what}: {}", settled.reason.as_str())));
        for leg in legs {
            let text = leg.text.as_deref().unwrap_or(sql).trim_ascii();
            let text = String::from_utf8_lossy(text);
            rows.push(("shard", format!("{}: {text}", name(leg.group))));
        }
        rows.push(("pins", self.state.pins().as_str().to_owned()));
    }

    /// What would be said to the connection before the statement: to the session's own, or else to a fresh one.
    fn replays(&self, role: Role) -> String {
        let fresh = History::after_login(self.state.schema());
        let from = match self.link(role).known() {
            Some(known) => &known.history,
            None => &fresh,
        };
        let mut said = 0;
        from.bring(self.state.history(), &mut |_| said += 1);
        format!("{said} statements")
    }

    /// `SHOW LAST ROUTE`.
    pub(super) fn show_last_route(&mut self, out: &mut Outputs) {
        let rows = match self.last_route {
            None => Vec::new(),
            Some((role, reason)) => {
                vec![
                    ("route", role_word(role).to_owned()),
                    ("reason", Reason::as_str(reason).to_owned()),
                ]
            }
        };
        self.answer_rows(&rows, out);
    }

    fn answer_rows(&mut self, rows: &[(&str, String)], out: &mut Outputs) {
        let (capabilities, status) = (self.capabilities, self.status);
        out.client(|buffer| {
            let mut result = ResultSetWriter::begin(
                buffer,
                1,
                capabilities,
                status,
                RowFormat::Text,
                &[b"step", b"detail"],
            );
            for (step, detail) in rows {
                result.row(&[Some(step.as_bytes()), Some(detail.as_bytes())]);
            }
            result.finish();
        });
    }
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Primary => "primary",
        Role::Replica => "replica",
    }
}
