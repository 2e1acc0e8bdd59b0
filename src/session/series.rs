//! Statements of several parts, said one after the other: definitions, of every physical table, and writes.
//!
//! A write whose rows are in several physical tables of one group: its parts are said one after the other to the group's primary, in a
//! transaction of their own, or behind a savepoint where the client is in one, so that all of them are done or none.
//!
//! The client gets one answer: the sum of the parts' numbers, the first id that was generated, all warnings, with the numbers of rows
//! as they stand in the client's statement.

use super::scatter::ONE_SERVER;
use super::sync::Said;

use bound::Bound;
use total::{Total, with_row};

use super::{Access, Attempt, Cx, Fault, InsertId, Output, Outputs, Parting, Role, Session};
use crate::route::Pins;
use crate::session::Outcome;
use crate::shard::{Leg, QUOTES, Refused};
use crate::sql::{Kind, Statement, Traits};
use crate::wire::{OkPacket, Packets, Status};

/// The savepoint in a client's transaction.
const SAVE: &[u8] = b"SAVEPOINT `_atlas_parts`";
const KEEP: &[u8] = b"RELEASE SAVEPOINT `_atlas_parts`";
const BACK: &[u8] = b"ROLLBACK TO SAVEPOINT `_atlas_parts`";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Part,
    Warnings,
    Id,
    End,
    Undo,
    Done,
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Series {
    parts: Vec<Leg>,
    /// The part that is being done.
    at: usize,
    step: Step,
    /// The transaction is Atlas's own.
    is_own: bool,
    /// Of a definition, which is made without one: where its parts belong, in words.
    places: Option<Vec<String>>,
    total: Total,
    failed: Option<Fault>,
    /// It is an execution of a prepared statement.
    bound: Option<Bound>,
}

impl Session {
    /// Begins a write of several parts.
    ///
    /// # Errors
    /// It cannot be done in parts.
    pub(super) fn begin_series(
        &mut self,
        parts: Vec<Leg>,
        statement: &Statement<'_>,
    ) -> Result<(), Fault> {
        let is_whole = statement.kind == Kind::Write
            && !statement
                .traits
                .intersects(ONE_SERVER.without(Traits::INTO | Traits::EFFECTS));
        let is_single = parts.len() == 1;
        // To begin a transaction gives table locks up.
        if !is_single && (!is_whole || self.state.pins().any_of(Pins::LOCKED_TABLES)) {
            return Err(Fault::Sharded(Refused::ONE_SERVER));
        }
        let (text, d) = (
            parts.first().and_then(|part| part.text.as_deref()),
            self.dialect(),
        );
        let ignores = text.is_some_and(|text| total::ignores(text, &d));
        self.note_groups(&parts);
        self.series = Some(Box::new(Series {
            parts,
            at: 0,
            step: if is_single { Step::Part } else { Step::Begin },
            is_own: !self.is_in_transaction(),
            places: None,
            total: Total {
                ignores,
                ..Total::default()
            },
            failed: None,
            bound: None,
        }));
        Ok(())
    }

    /// Begins a definition of every physical table, before which a transaction ends as it does on one server.
    ///
    /// # Errors
    /// The session has something that it would lose on its way from group to group.
    pub(super) fn begin_definitions(
        &mut self,
        cx: &Cx<'_>,
        parts: Vec<Leg>,
        statement: &Statement<'_>,
    ) -> Result<(), Fault> {
        let is_tied = self.state.pins().bind_connection()
            || self.statements.bound_to_primary()
            || self.statements.has_diagnostics();
        let is_one = matches!(statement.kind, Kind::Ddl | Kind::Write);
        if is_tied || !is_one || statement.traits.contains(Traits::MULTI) {
            return Err(Fault::Sharded(Refused::ONE_SERVER));
        }
        let place = |part: &Leg| {
            let group = cx.snapshot.groups.get(part.group);
            let group = group.map_or("", |group| group.name.as_str());
            let placement = cx.snapshot.placement.as_ref();
            let table = part
                .renamed
                .first()
                .and_then(|(table, shard)| placement?.tables.get(*table)?.shards.get(*shard));
            table.map_or_else(
                || group.to_owned(),
                |shard| format!("{group} {}", shard.name),
            )
        };
        let places = parts.iter().map(place).collect();
        if self.is_to_begin {
            self.is_to_begin = false;
            self.begun = Box::default();
        }
        self.note_groups(&parts);
        self.series = Some(Box::new(Series {
            parts,
            at: 0,
            step: if self.status.contains(Status::IN_TRANS) {
                Step::Begin
            } else {
                Step::Part
            },
            is_own: false,
            places: Some(places),
            total: Total::default(),
            failed: None,
            bound: None,
        }));
        Ok(())
    }

    /// What is said now is a part, and not what goes around it.
    pub(super) fn series_does_part(&self) -> bool {
        self.series
            .as_ref()
            .is_some_and(|series| series.step == Step::Part)
    }

    /// Nothing more is said; gives the error with what became of the parts, where that is to be told.
    pub(super) fn end_pieces(&mut self, fault: &Fault) -> Option<Fault> {
        self.scatter = None;
        self.series.take().and_then(|series| series.report(fault))
    }

    /// Says what comes next, or answers the client when all is done; true then.
    ///
    /// # Errors
    /// It cannot be said.
    pub(super) fn series_on(
        &mut self,
        cx: &mut Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        let Some(series) = &self.series else {
            return Ok(true);
        };
        let (step, is_own) = (series.step, series.is_own);
        let defines = series.places.is_some();
        let Some(part) = series
            .parts
            .get(series.at)
            .or_else(|| series.parts.last())
            .cloned()
        else {
            return Ok(true);
        };
        if step == Step::Done {
            self.end_series(out);
            return Ok(true);
        }
        let goes = if defines || series.is_single() {
            Step::Part
        } else {
            Step::Begin
        };
        if step == goes {
            if !self.go_where(cx, Some(&part), sql, statement, out)? {
                return Ok(false);
            }
            self.check_hint(cx, statement)?;
        }
        let with_id = step == Step::Begin;
        if !self.ensure(cx, Role::Primary, with_id, out) {
            return Ok(false);
        }
        self.last_route = Some((Role::Primary, self.decide(cx, sql, statement).reason));
        self.dress_for(cx, Some(&part), statement.kind, statement.traits);
        let text: &[u8] = match step {
            Step::Begin if defines => b"COMMIT",
            Step::Begin if is_own => b"BEGIN",
            Step::Begin => SAVE,
            Step::Part => part.text.as_deref().unwrap_or(sql),
            Step::Warnings => b"SHOW WARNINGS",
            Step::Id => b"SELECT LAST_INSERT_ID()",
            Step::End if is_own => b"COMMIT",
            Step::End => KEEP,
            Step::Undo if is_own => b"ROLLBACK",
            Step::Undo | Step::Done => BACK,
        };
        if step == Step::Part && self.series.as_ref().is_some_and(|s| s.bound.is_some()) {
            self.execute_part(cx, &part, out);
            return Ok(false);
        }
        let capabilities = self.capabilities_of(Role::Primary);
        out.backend(Role::Primary, Access::Write, |buffer| {
            super::bring::write_query(buffer, capabilities, text);
        });
        self.start_sync(Role::Primary, [Said::Part].into());
        if step == Step::Part {
            self.start_clock(out);
        }
        Ok(false)
    }

    /// What was said last is answered.
    pub(super) fn part_answered(
        &mut self,
        cx: &mut Cx<'_>,
        outcome: Outcome,
        answer: &[u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let role = Role::Primary;
        if let Some(status) = outcome.status {
            self.note_status(status);
        }
        // Also when a later part fails: those of a definition stay.
        self.wrote = Some(cx.now);
        if outcome.error.is_some() {
            self.tracked.writes.note_failure();
        }
        if outcome.error == Some(QUOTES)
            && let Some(part) = self.series.as_ref().and_then(|s| s.parts.get(s.at))
        {
            self.quote(&part.clone(), client);
        }
        let answer = self.dressed_answer(role, answer).into_owned();
        let overran = self.piece_overran(cx, outcome.error);
        let capabilities = self.capabilities_of(role);
        let warned_dress = self.warned_dress.clone();
        let ids = self.attempt.ids.map(std::num::NonZeroU64::get);
        let Some(series) = &mut self.series else {
            return;
        };
        let rows = series
            .parts
            .get(series.at)
            .map_or(&[][..], |part| &part.rows);
        if let Some(code) = outcome.error {
            let fault = overran.unwrap_or_else(|| super::unserved::server_fault(&answer));
            if super::reply::is_going_away(code) {
                out.push(Output::CloseBackend {
                    role,
                    parting: Parting::Silent,
                });
                return self.on_backend_lost(cx, role, "the server is going away", client, out);
            }
            if super::unlisted::OTHER_COLUMNS.contains(&code) {
                cx.texts.columns.clear();
            }
            if series.places.is_some() || series.is_single() {
                return self.fail_series(cx, &fault, client, out);
            }
            match (series.step, series.failed.take()) {
                (Step::Part, _) => {
                    series.failed = Some(match fault {
                        Fault::Server {
                            code,
                            sqlstate,
                            message,
                        } => Fault::Server {
                            code,
                            sqlstate,
                            message: String::from_utf8_lossy(&with_row(message.as_bytes(), rows))
                                .into_owned(),
                        },
                        other => other,
                    });
                    series.step = Step::Undo;
                }
                // The server had undone it all before, as it does at a deadlock.
                (Step::Undo, Some(failed)) => self.fail_series(cx, &failed, client, out),
                _ => self.fail_series(cx, &fault, client, out),
            }
            return;
        }
        if let Some(fault) = overran.filter(|_| !series.is_single()) {
            if series.places.is_some() {
                cx.texts.definitions_changed();
                return self.fail_series(cx, &fault, client, out);
            }
            series.failed = Some(fault);
            series.step = Step::Undo;
            return;
        }
        match series.step {
            Step::Begin => series.step = Step::Part,
            Step::Part => {
                let last = Packets::new(&answer).last();
                let Some(ok) =
                    last.and_then(|(_, payload)| OkPacket::parse(payload, capabilities).ok())
                else {
                    let fault = Fault::BadReply(
                        "a part of the statement was not answered with OK".to_owned(),
                    );
                    series.failed = Some(fault);
                    series.step = Step::Undo;
                    return;
                };
                series.total.add(&ok, rows);
                if ok.insert_id != 0 && ids == Some(ok.insert_id) {
                    series.total.generated = ids;
                }
                if series.places.is_some() {
                    cx.texts.definitions_changed();
                }
                series.step = if ok.warnings > 0 {
                    Step::Warnings
                } else {
                    Step::Id
                };
            }
            Step::Warnings => {
                let is_definition = series.places.is_some();
                let dress = warned_dress.as_deref();
                series
                    .total
                    .add_warnings(&answer, rows, is_definition, dress);
                series.step = Step::Id;
            }
            Step::Id => {
                series.total.add_id(&answer);
                series.next_part();
            }
            Step::End => series.step = Step::Done,
            Step::Undo => {
                if let Some(failed) = series.failed.take() {
                    self.fail_series(cx, &failed, client, out);
                }
            }
            Step::Done => {}
        }
        if let Some(series) = &mut self.series
            && series.step == Step::Id
            && (series.total.told == 0 || series.total.generated.is_some())
        {
            // Nothing was generated, or nothing is to be known of it any more.
            series.next_part();
        }
    }

    fn fail_series(&mut self, cx: &Cx<'_>, fault: &Fault, client: &mut [u8], out: &mut Outputs) {
        let series = self.series.take();
        let reported = series.as_ref().and_then(|series| series.report(fault));
        let fault = reported.as_ref().unwrap_or(fault);
        let (code, _) = fault.code();
        let error = [
            b"Error".to_vec(),
            code.to_string().into_bytes(),
            fault.to_string().into_bytes(),
        ];
        self.fail_command(cx, fault, client, out);
        self.numbers.row_count = Some(-1);
        let mut shown = vec![error];
        for note in series.iter().flat_map(|series| series.notes()) {
            shown.push([b"Note".to_vec(), b"1105".to_vec(), note.into_bytes()]);
        }
        let count = u16::try_from(shown.len()).unwrap_or(u16::MAX);
        self.note_shown_warnings(count, &shown);
    }

    fn end_series(&mut self, out: &mut Outputs) {
        let Some(series) = self.series.take() else {
            return;
        };
        let total = series.total;
        self.tell_total(&total, out);
        if let Some(id) = total.generated {
            // The server's is that of the last part.
            self.insert_id = InsertId::Known(id);
            if let Some(known) = self.link_mut(Role::Primary).known_mut() {
                known.insert_id = None;
            }
        }
        self.attempt = Attempt::default();
        self.give_back(out);
    }

    /// Answers the client with the sum of what the parts have answered.
    pub(super) fn tell_total(&mut self, total: &Total, out: &mut Outputs) {
        let (capabilities, status) = (self.capabilities, self.status);
        let warnings = u16::try_from(total.warnings).unwrap_or(u16::MAX);
        let info = total.info();
        let insert_id = total.generated.unwrap_or(total.insert_id);
        out.client(|buffer| {
            let ok = OkPacket {
                affected: total.affected,
                insert_id,
                status,
                warnings,
                info: &info,
                state: b"",
            };
            ok.write(buffer, 1, capabilities);
        });
        self.numbers.row_count = i64::try_from(total.affected).ok();
        self.note_shards(0, Some(total.affected));
        self.note_shown_warnings(warnings, &total.shown);
    }
}

impl Series {
    /// It needs no transaction: it is one statement, of which not all is the client's.
    fn is_single(&self) -> bool {
        self.parts.len() == 1 && self.places.is_none()
    }

    fn next_part(&mut self) {
        self.at += 1;
        self.step = if self.at < self.parts.len() {
            Step::Part
        } else if self.places.is_some() || self.is_single() {
            Step::Done
        } else {
            Step::End
        };
    }
}

pub(super) mod bound;
mod told;
pub(super) mod total;
