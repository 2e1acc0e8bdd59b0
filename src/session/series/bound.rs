//! Executions of prepared statements in parts: each part's text is prepared on the connection, as that of any statement is, and executed
//! with the client's parameters that it has.

use std::sync::Arc;

use super::super::departure::Front;
use super::super::rebind::Values;
use super::super::sync::Said;
use super::super::{Access, Cx, Fault, Outputs, Role, Session};
use super::{Leg, Statement, Step};

/// A prepared statement that is executed in parts.
#[derive(Debug)]
pub(super) struct Bound {
    /// The client's number of it.
    id: u32,
    /// Its text, for parts that have no other.
    sql: Box<[u8]>,
    values: Values,
}

impl Session {
    /// What begins is an execution of this statement.
    pub(in super::super) fn bind_series(&mut self, id: u32, sql: &[u8], values: Values) {
        if let Some(series) = &mut self.series {
            series.bound = Some(Bound {
                id,
                sql: sql.into(),
                values,
            });
        }
    }

    /// Does the next of what an execution in parts, or a prepared definition, needs; gives the bytes consumed.
    pub(in super::super) fn execute_in_parts(
        &mut self,
        cx: &mut Cx<'_>,
        front: Front<'_>,
        id: u32,
        out: &mut Outputs,
    ) -> usize {
        let total = front.total();
        let Some(statement) = self.statements.get_mut(id) else {
            return total;
        };
        let of = Statement {
            kind: statement.kind,
            traits: statement.traits,
            hint: None,
        };
        let sql: Box<[u8]> = statement
            .logical
            .as_ref()
            .map_or_else(Box::default, |l| l.sql().into());
        let dialect = self.dialect();
        self.diary.begin(cx, &sql, &dialect);
        match self.series_on(cx, &sql, &of, out) {
            Ok(true) => total,
            Ok(false) => 0,
            Err(fault) => self.refuse_front(front, &fault, out),
        }
    }

    /// Executes a part.
    pub(super) fn execute_part(&mut self, cx: &mut Cx<'_>, part: &Leg, out: &mut Outputs) {
        let role = Role::Primary;
        let bound = self
            .series
            .as_ref()
            .and_then(|series| series.bound.as_ref());
        let Some((id, sql)) = bound.map(|bound| (bound.id, &bound.sql)) else {
            return;
        };
        if let Some(statement) = self.statements.get_mut(id)
            && let Some(now) = &statement.text
        {
            let text = part.text.as_deref().unwrap_or(sql);
            if *now.sql != *text {
                statement.text = Some(cx.texts.keep(text, &now.state));
            }
        }
        if !self.ensure_prepared(cx, role, id, out) {
            return;
        }
        let Some(server_id) = self.server_id(role, id) else {
            return;
        };
        let bound = self
            .series
            .as_ref()
            .and_then(|series| series.bound.as_ref());
        let mut kinds = Vec::new();
        out.backend(role, Access::Write, |buffer| {
            if let Some(bound) = bound {
                kinds = bound
                    .values
                    .write(buffer, server_id, part.params.as_deref());
            }
        });
        let text = self.statements.get_mut(id).and_then(|s| s.text.clone());
        let known = self.links[role as usize].known_mut();
        if let Some((text, known)) = text.zip(known)
            && let Some(there) = known.statements.touch(&text)
        {
            *there = Some(kinds).filter(|kinds| !kinds.is_empty()).map(Arc::from);
        }
        self.start_sync(role, [Said::Part].into());
    }

    /// A part's text cannot be prepared: what was done before is undone. False where there is nothing to undo.
    pub(in super::super) fn part_not_prepared(&mut self, fault: &Fault) -> bool {
        let series = self.series.as_mut().filter(|series| !series.is_single());
        let Some(series) = series else {
            return false;
        };
        series.failed = Some(fault.clone());
        series.step = Step::Undo;
        true
    }
}
