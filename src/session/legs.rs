//! Statements that several shards are asked. Each shard is asked by a session of its own, a leg, which is in the shard's group and in
//! this session's state, has its own server connection and everything else that a session has: a route, waiting in line, retries. A leg
//! is the shell's to carry like any other session, with this one in its client's place.
//!
//! No leg waits for another but while that is in the middle of a row, for which it needs nobody: there is no circle of sessions that
//! hold connections and wait for others. What a leg's reply becomes is `fan`'s for reads, which are here, and `across`'s for writes.

use super::across::Across;
use super::bring::{write_command, write_query};
use super::causal::Writes;
use super::dressing::in_clients_words;
use super::fan::{Fan, Heard};
use super::parts::Identity;
use super::{Attempt, Cx, Done, Excess, Fault, Output, Outputs, Phase, Session, unserved};
use std::sync::Arc;
use std::time::Duration;

use crate::shard::{Dress, Leg, Refused};
use crate::snapshot::Snapshot;
use crate::sql::Statement;
use crate::wire::{Capabilities, Command, write_payload};

/// What was done with what a leg says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heed {
    /// So many bytes are done with.
    pub consumed: usize,
    /// What is left is too little: the leg is to go on. Otherwise it is heard again when another leg has been.
    pub wants_more: bool,
}

/// What a leg wrote, for its client's session.
#[derive(Debug)]
pub struct Written {
    at: Option<Duration>,
    group: Option<usize>,
    writes: Writes,
}

/// A statement that several shards are asked.
#[derive(Debug)]
pub(super) enum Legs {
    /// Each for its rows.
    Read(Reading),
    /// To change theirs, all or none.
    Write(Across),
}

impl Legs {
    /// The group that a leg is in, and what it is asked.
    pub(super) fn leg(&self, number: usize) -> Option<(usize, &Leg)> {
        match self {
            Self::Read(reading) => {
                let shard = reading.shards.get(number)?;
                Some((shard.group, shard))
            }
            Self::Write(across) => across.branch(number),
        }
    }
}

/// A read of several shards.
#[derive(Debug)]
pub(super) struct Reading {
    shards: Vec<Leg>,
    /// The client's text, where a shard has none of its own.
    sql: Box<[u8]>,
    /// The execution, with the first statement's number in it, of a statement that is prepared.
    execution: Option<Box<[u8]>>,
    fan: Fan,
    asked: usize,
    over: usize,
}

impl Reading {
    /// The client can be told something now.
    pub(super) fn may_be_told(&self) -> bool {
        self.fan.may_be_told()
    }
}

impl Session {
    /// Whether sessions in the same state can ask in place of this one: nothing is tied to its own connection.
    pub(super) fn may_fan_out(&self) -> bool {
        self.shares
            && !self.diary.is_leg
            && !self.is_in_transaction()
            && !self.is_in_doubt
            && !self.state.pins().bind_connection()
            && !self.state.has_unresolved()
    }

    /// Another session for the shard with this number: in its group, in this session's state, for whom there is nobody to log in.
    #[must_use]
    pub fn for_leg(&self, leg: usize, snapshot: &Snapshot) -> Option<Self> {
        let (group, shard) = self.legs.as_ref()?.leg(leg)?;
        let identity = Identity::clone(&self.identity);
        let server = (self.server, self.version);
        let mut leg = Self::fresh(0, identity, self.fresh_status, server);
        let moved_to = Some(group).filter(|group| *group != self.account(snapshot).group);
        leg.moved_by = moved_to.and_then(|_| snapshot.placement.clone());
        leg.moved_to = moved_to;
        leg.phase = Phase::Command;
        leg.capabilities = leg_capabilities(self.capabilities);
        leg.account = self.account;
        leg.state = self.state.again();
        leg.status = self.status;
        leg.status_is_known = self.status_is_known;
        leg.tracked.writes = self.tracked.writes.clone();
        leg.tracked.follows = self.tracked.follows;
        leg.wrote = self.wrote;
        leg.shares = self.shares;
        leg.diary.is_leg = true;
        // Names are the client's in what it says already.
        let placement = snapshot.placement.as_ref();
        let dress = placement.and_then(|placement| Dress::new(placement, shard));
        leg.dress = dress.map(|dress| Arc::new(dress.leaving_quotes()));
        Some(leg)
    }

    /// Takes up a statement for several shards, which are asked next.
    ///
    /// # Errors
    /// What they are to be sent is too much.
    pub(super) fn spread(
        &mut self,
        cx: &Cx<'_>,
        shards: Vec<Leg>,
        limit: Option<u64>,
    ) -> Result<(), Fault> {
        let texts = shards.iter().filter_map(|leg| leg.text.as_ref());
        let size: usize = texts.map(Vec::len).sum();
        let max = cx.snapshot.config.sharding.merge_bytes_max;
        if u64::try_from(size).unwrap_or(u64::MAX) > max {
            return Err(Fault::Sharded(Refused::TOO_BIG));
        }
        self.legs = Some(Box::new(Legs::Read(Reading {
            shards,
            sql: Box::default(),
            execution: None,
            fan: Fan::new(
                leg_capabilities(self.capabilities),
                limit.unwrap_or(u64::MAX),
                self.attempt.rows_max(),
            ),
            asked: 0,
            over: 0,
        })));
        Ok(())
    }

    /// Asks the first shards of a text.
    pub(super) fn ask_shards(
        &mut self,
        cx: &Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) {
        let first = self.legs.as_ref().and_then(|legs| legs.leg(0));
        let text = first.and_then(|(_, leg)| leg.text.as_deref());
        let text = text.unwrap_or(sql);
        let route = self.decide(cx, text, statement);
        self.last_route = Some((route.role, route.reason));
        if let Some(legs) = self.reading_mut() {
            legs.sql = sql.into();
        }
        self.ask_more(cx, out);
        self.start_clock(out);
    }

    /// The same for an execution (a whole packet) of a prepared statement.
    pub(super) fn execute_on_shards(
        &mut self,
        cx: &Cx<'_>,
        sql: &[u8],
        execution: Vec<u8>,
        out: &mut Outputs,
    ) {
        if let Some(legs) = self.reading_mut() {
            legs.sql = sql.into();
            legs.execution = Some(execution.into());
        }
        self.ask_more(cx, out);
        self.start_clock(out);
    }

    /// Asks as many shards as may be asked at a time.
    fn ask_more(&mut self, cx: &Cx<'_>, out: &mut Outputs) {
        let capabilities = leg_capabilities(self.capabilities);
        let fan_out = cx.snapshot.config.sharding.fan_out.max(1);
        let Some(legs) = self.reading_mut() else {
            return;
        };
        while legs.asked - legs.over < fan_out
            && let Some(shard) = legs.shards.get(legs.asked)
        {
            let text = shard.text.as_deref().unwrap_or(&legs.sql);
            let start = out.arena.len();
            match &legs.execution {
                None => write_query(&mut out.arena, capabilities, text),
                Some(execution) => {
                    write_command(&mut out.arena, Command::StmtPrepare, text);
                    write_payload(&mut out.arena, 0, execution);
                }
            }
            out.push(Output::BeginLeg {
                leg: legs.asked,
                range: start..out.arena.len(),
            });
            legs.fan.asked(legs.execution.is_some());
            legs.asked += 1;
        }
    }

    /// Looks at what a leg says and has not been dealt with.
    pub fn on_leg(
        &mut self,
        cx: &mut Cx<'_>,
        leg: usize,
        input: &mut [u8],
        out: &mut Outputs,
    ) -> Heed {
        let capabilities = self.capabilities;
        if self.across().is_some() {
            return self.on_branch(cx, leg, input, out);
        }
        let Some(legs) = self.reading_mut() else {
            return Heed {
                consumed: input.len(),
                wants_more: false,
            };
        };
        let step = legs.fan.hear(leg, input);
        if let Some(count) = step.count {
            out.client(|buffer| {
                count.write(buffer, 1, capabilities);
            });
        }
        if !step.pass.is_empty() {
            out.push(Output::ForwardToClient(step.pass));
        }
        match step.heard {
            Heard::More | Heard::Later => {}
            Heard::Over => {
                legs.over += 1;
                out.push(Output::EndLeg(leg));
                if legs.over == legs.shards.len() {
                    self.end_legs(cx, out);
                } else {
                    self.ask_more(cx, out);
                }
            }
            Heard::Full => self.end_legs(cx, out),
            Heard::TooMany => {
                out.done.push(Done::Overran(Excess::Rows));
                let fault = self.excess_fault(cx, Excess::Rows);
                self.fail_legs(cx, &fault, out);
            }
            Heard::Refused(ref range) => {
                let fault = unserved::server_fault(input.get(range.clone()).unwrap_or_default());
                let d = self.dialect();
                let fault = match self.legs.as_deref() {
                    Some(Legs::Read(reading)) => {
                        let placement = cx.snapshot.placement.as_ref();
                        let of = placement.zip(reading.shards.get(leg));
                        in_clients_words(of, &reading.sql, &d, fault)
                    }
                    _ => fault,
                };
                self.fail_legs(cx, &fault, out);
            }
            Heard::Unlike => self.fail_legs(cx, &Fault::Sharded(Refused::UNLIKE), out),
        }
        Heed {
            consumed: step.consumed,
            wants_more: step.heard == Heard::More,
        }
    }

    /// A leg is over by itself, and all that it has said was heard.
    pub fn on_leg_lost(&mut self, cx: &mut Cx<'_>, leg: usize, out: &mut Outputs) {
        if self.across().is_some() {
            return self.on_branch_lost(cx, leg, out);
        }
        let Some(legs) = &self.legs else {
            return;
        };
        let group = legs.leg(leg).map(|(group, _)| group);
        let group = group.and_then(|group| cx.snapshot.groups.get(group));
        let name = group.map_or("", |group| &group.name);
        let fault = Fault::Lost(format!("a server of group {name} while it answered"));
        self.fail_legs(cx, &fault, out);
    }

    /// The client has what it asked for.
    fn end_legs(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) {
        let status = self.status;
        let Some(legs) = self.take_reading() else {
            return;
        };
        out.push(Output::EndLegs);
        out.client(|buffer| legs.fan.write_end(buffer, status));
        self.note_spread(Some(legs.fan.rows()), legs.fan.warnings());
        self.legs_over(cx, false, out);
    }

    /// One shard fails, and with it the statement.
    pub(super) fn fail_legs(&mut self, cx: &mut Cx<'_>, fault: &Fault, out: &mut Outputs) {
        let Some(legs) = self.take_reading() else {
            return;
        };
        out.push(Output::EndLegs);
        if !legs.fan.may_be_told() {
            return self.close(out);
        }
        self.refuse(fault, legs.fan.seq(), out);
        self.note_failure(fault);
        self.legs_over(cx, true, out);
    }

    fn reading_mut(&mut self) -> Option<&mut Reading> {
        match self.legs.as_deref_mut() {
            Some(Legs::Read(reading)) => Some(reading),
            Some(Legs::Write(_)) | None => None,
        }
    }

    fn take_reading(&mut self) -> Option<Reading> {
        match self.legs.take().map(|legs| *legs) {
            Some(Legs::Read(reading)) => Some(reading),
            Some(Legs::Write(_)) | None => None,
        }
    }

    /// What a leg wrote.
    #[must_use]
    pub fn written(&self) -> Written {
        Written {
            at: self.wrote,
            group: self.moved_to,
            writes: self.tracked.writes.clone(),
        }
    }

    /// A leg of this session's has written: its reads are to see that.
    pub fn note_written(&mut self, written: &Written) {
        if written.at > self.wrote {
            self.wrote = written.at;
            self.tracked.writes.adopt(written.group, &written.writes);
        }
    }

    pub(super) fn legs_over(&mut self, cx: &mut Cx<'_>, failed: bool, out: &mut Outputs) {
        self.count_digest(cx, failed);
        self.write_answered(out);
        self.diary.left();
        self.diary.since = cx.now;
        self.attempt = Attempt::default();
        self.give_back(out);
    }
}

/// A leg has what its client's session has, but that no file is asked for, and that MariaDB leaves out no definitions of columns: what it
/// takes for known it has told somebody else.
pub(super) fn leg_capabilities(client: Capabilities) -> Capabilities {
    client.without(Capabilities::LOCAL_FILES | Capabilities::MARIADB_CACHE_METADATA)
}
