//! A read whose rows are on several shards, of a session that needs its own connection for it (in a transaction, with something pinned):
//! each shard is asked in turn over that one. Other sessions ask several shards at a time, see `legs`.
//!
//! The answers are collected as those to what Atlas itself says, and nothing is sent before the last is there: a shard that fails makes
//! the whole fail, and one that could not be asked can be asked again. What is collected has a limit (`sharding.merge_memory`).

use super::parts::Found;
use super::reply::{REPLICA_ONLY, is_going_away};
use super::sync::Said;
use super::{
    Access, Attempt, Cx, Done, Excess, Fault, Last, Outcome, Output, Outputs, Parting, Role,
    Session,
};
use crate::shard::{Leg, QUOTES, Refused};
use crate::sql::{Hint, Kind, Statement, Traits};
use crate::wire::{Capabilities, ColumnCount, ColumnDef, EofPacket, Header, Packets, Status};

/// What of a statement makes its answer belong to one server.
pub(super) const ONE_SERVER: Traits = Traits::LOCKING
    .union(Traits::INTO)
    .union(Traits::LAST_INSERT_ID)
    .union(Traits::LOCK_FUNCTION)
    .union(Traits::SEQUENCE)
    .union(Traits::UNKNOWN_FUNCTION)
    .union(Traits::CONNECTION_ID)
    .union(Traits::DIAGNOSTICS)
    .union(Traits::CALC_FOUND_ROWS)
    .union(Traits::USER_VAR_WRITE)
    .union(Traits::SERVER_STATE)
    .union(Traits::EFFECTS)
    .union(Traits::CALL)
    .union(Traits::MULTI);

/// The shards that are asked, and what they have answered.
#[derive(Debug)]
pub(super) struct Scatter {
    legs: Vec<Leg>,
    /// Shards that have answered.
    answered: usize,
    /// Rows that are wanted at most.
    limit: u64,
    rows: u64,
    warnings: u16,
    /// The reply so far, numbered as the client is to get it.
    reply: Vec<u8>,
    seq: u8,
    /// Types of the columns.
    kinds: Vec<u8>,
}

impl Scatter {
    pub(super) fn size(&self) -> usize {
        self.reply.len()
    }

    /// The shard that is asked next.
    fn next(&self) -> Option<&Leg> {
        let is_full = self.answered > 0 && self.rows >= self.limit;
        self.legs.get(self.answered).filter(|_| !is_full)
    }

    fn push(&mut self, header: Header, payload: &[u8]) {
        let header = Header {
            seq: self.seq,
            ..header
        };
        self.reply.extend_from_slice(&header.to_bytes());
        self.reply.extend_from_slice(payload);
        self.seq = self.seq.wrapping_add(1);
    }

    /// Takes a shard's answer in; false when it is not like those before it.
    fn take(&mut self, answer: &[u8], capabilities: Capabilities) -> bool {
        let is_first = self.answered == 0;
        self.answered += 1;
        let packets: Vec<(Header, &[u8])> = Packets::new(answer).collect();
        let Some(((_, count), _)) = packets.split_first() else {
            return false;
        };
        let Ok(count) = ColumnCount::parse(count, capabilities) else {
            return false;
        };
        let columns = usize::try_from(count.columns).unwrap_or(usize::MAX);
        let mid = usize::from(!capabilities.contains(Capabilities::DEPRECATE_EOF));
        let definitions = if count.has_definitions { columns } else { 0 };
        let head = 1_usize.saturating_add(definitions).saturating_add(mid);
        let Some((head, rest)) = packets.split_at_checked(head) else {
            return false;
        };
        let Some((_, rows)) = rest.split_last() else {
            return false;
        };
        let kind = |(_, payload): &(Header, &[u8])| {
            ColumnDef::parse(payload, capabilities).map_or(0, |definition| definition.kind)
        };
        let definitions = head.iter().skip(1).take(definitions);
        let kinds: Vec<u8> = definitions.map(kind).collect();
        if is_first {
            self.kinds = kinds;
            for (header, payload) in head {
                self.push(*header, payload);
            }
        } else if self.kinds != kinds {
            return false;
        }
        let mut goes_on = false;
        for (header, payload) in rows {
            if !goes_on {
                if self.rows >= self.limit {
                    break;
                }
                self.rows += 1;
            }
            self.push(*header, payload);
            goes_on = header.is_continued();
        }
        true
    }

    fn write(&self, out: &mut Vec<u8>, status: Status, capabilities: Capabilities) {
        out.extend_from_slice(&self.reply);
        let end = EofPacket {
            warnings: self.warnings,
            status,
        };
        end.write_end(out, self.seq, capabilities);
    }
}

/// A statement that is asked of several shards means the same on each.
///
/// # Errors
/// It does not.
pub(super) fn check_read(kind: Kind, traits: Traits) -> Result<(), Fault> {
    if kind != Kind::Read || traits.intersects(ONE_SERVER) {
        return Err(Fault::Sharded(Refused::ONE_SERVER));
    }
    Ok(())
}

impl Session {
    /// Begins to ask several shards.
    ///
    /// # Errors
    /// The statement cannot be asked of several.
    pub(super) fn begin_scatter(
        &mut self,
        cx: &Cx<'_>,
        legs: Vec<Leg>,
        limit: Option<u64>,
        statement: &Statement<'_>,
    ) -> Result<(), Fault> {
        let group = legs.first().map(|leg| leg.group);
        let is_spread = legs.iter().any(|leg| Some(leg.group) != group);
        if is_spread && self.is_in_transaction() {
            return Err(Fault::OtherGroupInTransaction);
        }
        check_read(statement.kind, statement.traits)?;
        self.note_groups(&legs);
        if self.may_fan_out() {
            return self.spread(cx, legs, limit);
        }
        self.scatter = Some(Box::new(Scatter {
            legs,
            answered: 0,
            limit: limit.unwrap_or(u64::MAX),
            rows: 0,
            warnings: 0,
            reply: Vec::new(),
            seq: 1,
            kinds: Vec::new(),
        }));
        Ok(())
    }

    /// Whether this connection is asked for a shard's rows now.
    pub(super) fn is_asked(&self, role: Role) -> bool {
        self.scatter.is_some() && self.is_syncing(role)
    }

    /// Asks the next shard, or answers the client when all have answered; true then, and when their sessions see to the rest.
    ///
    /// # Errors
    /// A shard cannot be asked.
    pub(super) fn scatter_on(
        &mut self,
        cx: &mut Cx<'_>,
        sql: &[u8],
        statement: &Statement<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Fault> {
        if self.legs.is_some() {
            self.ask_shards(cx, sql, statement, out);
            return Ok(true);
        }
        let leg = self.scatter.as_ref().and_then(|scatter| scatter.next());
        let Some(leg) = leg.cloned() else {
            self.end_scatter(out);
            return Ok(true);
        };
        if !self.go_where(cx, Some(&leg), sql, statement, out)? {
            return Ok(false);
        }
        self.dress_for(cx, Some(&leg), statement.kind, statement.traits);
        let text = leg.text.as_deref().unwrap_or(sql);
        let mut route = self.decide(cx, text, statement);
        self.check_hint(cx, statement)?;
        self.settle(cx, &mut route, statement.kind, statement.traits)?;
        self.check_follows(route, statement.kind, statement.traits)?;
        let is_hinted = statement.hint == Some(Hint::Replica);
        if !self.sees_writes(cx, route, is_hinted, out) || !self.ensure(cx, route.role, false, out)
        {
            return Ok(false);
        }
        self.last_route = Some((route.role, route.reason));
        let capabilities = self.capabilities_of(route.role);
        let access = match route.role {
            Role::Replica => Access::Read,
            Role::Primary => Access::Write,
        };
        out.backend(route.role, access, |buffer| {
            super::bring::write_query(buffer, capabilities, text);
        });
        self.start_sync(route.role, [Said::Leg].into());
        self.start_clock(out);
        Ok(false)
    }

    fn end_scatter(&mut self, out: &mut Outputs) {
        let (capabilities, status) = (self.capabilities, self.status);
        if let Some(scatter) = self.scatter.take() {
            out.client(|buffer| scatter.write(buffer, status, capabilities));
            self.note_spread(Some(scatter.rows), scatter.warnings);
        }
        self.attempt = Attempt::default();
        self.give_back(out);
    }

    /// A statement was answered from several servers: nobody else knows what questions about it ask.
    pub(super) fn note_spread(&mut self, rows: Option<u64>, warnings: u16) {
        self.numbers.row_count = Some(-1);
        self.numbers.found_rows = rows.map_or(Found::There, Found::Are);
        self.note_shards(rows.unwrap_or(0), None);
        self.last = None;
        self.last_rows = None;
        self.kept = None;
        // They were given by several servers, none of which can show them all.
        self.warned = (warnings > 0).then_some(Last {
            role: Role::Primary,
            serial: 0,
            holds: false,
            warnings,
            failed: false,
            lost: true,
        });
    }

    /// A shard has answered.
    pub(super) fn leg_answered(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        outcome: Outcome,
        answer: &[u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        if outcome.error == Some(QUOTES)
            && let Some(leg) = self.scatter.as_ref().and_then(|scatter| scatter.next())
        {
            self.quote(&leg.clone(), client);
        }
        let answer = &*self.dressed_answer(role, answer);
        if let Some(fault) = self.piece_overran(cx, outcome.error) {
            return self.fail_command(cx, &fault, client, out);
        }
        if let Some(code) = outcome.error {
            let fault = super::unserved::server_fault(answer);
            if role == Role::Replica
                && self.may_fall_back(cx)
                && (REPLICA_ONLY.contains(&code) || is_going_away(code))
            {
                self.attempt.force_primary = true;
                self.attempt.why = fault.to_string().into();
                return;
            }
            self.fail_command(cx, &fault, client, out);
            return self.note_failure(&fault);
        }
        if let Some(status) = outcome.status
            && role == Role::Primary
        {
            self.note_status(status);
        }
        let capabilities = self.capabilities_of(role);
        let most = self.attempt.rows_max();
        let is_alike = self.scatter.as_mut().is_some_and(|scatter| {
            scatter.warnings = scatter.warnings.saturating_add(outcome.warnings);
            scatter.take(answer, capabilities)
        });
        if self
            .scatter
            .as_ref()
            .is_some_and(|scatter| scatter.rows > most)
        {
            out.done.push(Done::Overran(Excess::Rows));
            let fault = self.excess_fault(cx, Excess::Rows);
            self.fail_command(cx, &fault, client, out);
        } else if is_alike {
            self.attempt = Attempt {
                governed: self.attempt.governed,
                bound: self.attempt.bound.take(),
                copying: self.attempt.copying.take(),
                ..Attempt::default()
            };
        } else {
            self.fail_command(cx, &Fault::Sharded(Refused::UNLIKE), client, out);
        }
    }

    /// What the shards answer is more than may be collected: the connection that goes on sending is given up.
    pub(super) fn scatter_too_big(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let is_bound = role == Role::Primary && self.is_bound();
        out.push(Output::CloseBackend {
            role,
            parting: Parting::Kill,
        });
        *self.link_mut(role) = super::Link::Absent;
        self.note_loss(role);
        let fault = Fault::Sharded(Refused::TOO_BIG);
        if is_bound {
            self.refuse_and_close(&fault, 1, out);
        } else {
            self.fail_command(cx, &fault, client, out);
        }
    }
}
