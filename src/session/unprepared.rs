//! The other commands of prepared statements: those that close and reset one, and those that name none that there is. And
//! executions of a statement that has to be prepared again first.

use std::sync::Arc;

use super::departure::{Departure, Front};
use super::hold::close_statement;
use super::names::Names;
use super::prepared::{Named, patch_id};
use super::stmt::Prepared;
use super::{Access, Cx, Expect, Fault, Outputs, Role, Session, What};
use crate::sql::{Kind, Server, Traits};
use crate::wire::Execute;

/// ER_NEED_REPREPARE: definitions have changed under the statement, and changed again each time when the server itself prepared
/// it anew. It is said when the tables are opened, so that the statement has done nothing yet; a transaction around it goes on.
pub(super) const NEED_REPREPARE: u16 = 1615;

/// Each time the server has tried three times by itself. With two others that do nothing but change a view one execution of
/// three is refused, and under load many one after the other.
const PREPARATIONS: u8 = 200;

impl Prepared {
    /// An execution without types has a value that is not NULL, and its client has never told the types.
    pub(super) fn lacks_types(&self, payload: &[u8], parsed: &Execute) -> bool {
        let Some(flag_at) = parsed.type_flag_at else {
            return false;
        };
        let params = usize::from(self.params);
        let nulls = flag_at
            .checked_sub(params.div_ceil(8))
            .and_then(|start| payload.get(start..flag_at))
            .unwrap_or_default();
        let is_null = |n: usize| {
            nulls
                .get(n / 8)
                .is_some_and(|byte| byte >> (n % 8) & 1 == 1)
        };
        self.types.is_none() && !self.long_data && !(0..params).all(is_null)
    }

    /// An execution that the server answers with [`NEED_REPREPARE`] may be said again. Not where what the client sent is gone:
    /// long data went with the statement that it was sent for, and of a text too long to be kept there is no second copy. Nor
    /// where something may have run: of a procedure the statements before, which is what a text EXECUTE may call too. Nor a
    /// question about the statement before, which by then would be about the refusal.
    pub(super) fn may_run_again(&self) -> bool {
        self.text.is_some()
            && !self.long_data
            && self.kind != Kind::Execute
            && !self.traits.intersects(Traits::CALL | Traits::DIAGNOSTICS)
    }
}

impl Session {
    /// Whether the error that begins the reply is met by preparing the statement again. An execution of more than one piece has
    /// been passed on and cannot be: of that the client is told. Nor is one that is being ended.
    pub(super) fn may_prepare_again(&mut self, code: u16) -> bool {
        let Some(command) = self.reply.as_ref().map(|reply| reply.command) else {
            return false;
        };
        let What::Execute { id, .. } = command.what else {
            return false;
        };
        code == NEED_REPREPARE
            && self.overrun.is_none()
            && command.retained > 0
            && self.attempt.preparations < PREPARATIONS
            && self
                .statements
                .get_mut(id)
                .is_some_and(|statement| statement.may_run_again())
    }

    /// Forgets the statement on this connection: the execution, which is looked at again behind the refusal that is coming in,
    /// has it prepared anew.
    pub(super) fn prepare_again(&mut self, client: &mut [u8], out: &mut Outputs) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        self.say_again(&reply.command, client);
        self.attempt.preparations = self.attempt.preparations.saturating_add(1);
        if let What::Execute { id, .. } = reply.command.what
            && let Some(text) = self.statements.get_mut(id).and_then(|s| s.text.clone())
            && let Some(known) = self.links[reply.role as usize].known_mut()
            && let Some(server_id) = known.statements.remove(&text)
        {
            close_statement(reply.role, server_id, out);
        }
        self.swallow_refusal(reply.role, reply.tracker.expect());
    }

    /// Refuses an execution. The client takes the parameter types that it sent for known all the same, as it may when a server has failed
    /// the statement.
    #[cold]
    pub(super) fn refuse_execution(
        &mut self,
        front: Front<'_>,
        id: u32,
        fault: &Fault,
        out: &mut Outputs,
    ) -> usize {
        let capabilities = self.capabilities;
        self.take_answers_out(id, out);
        if let Some(statement) = self.statements.get_mut(id)
            && let Ok(parsed) = Execute::parse(front.payload(), statement.params, capabilities)
            && let Some(types) = parsed.types.and_then(|range| front.payload().get(range))
        {
            statement.note_types(types);
        }
        self.refuse_front(front, fault, out)
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
            self.close_on_connections(*statement, out);
            self.give_back(out);
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
        let Some(server_id) = self.server_id(role, id) else {
            // Where the session has no connection on which it is prepared there is nothing to be reset.
            self.local_ok(1, out);
            return front.total();
        };
        patch_id(front.bytes, server_id);
        let departure = Departure {
            access: Access::Read,
            names: Some(Names {
                sent,
                server: server_id,
            }),
            ..Departure::plain(Expect::Terminal)
        };
        self.forward(&front, departure, out)
    }

    /// The statement's number on the connection that the session has.
    pub(super) fn server_id(&mut self, role: Role, id: u32) -> Option<u32> {
        let statement = self.statements.get_mut(id)?;
        match &statement.text {
            Some(text) => self.links[role as usize].known()?.statement(text),
            None => statement.own.filter(|_| role == Role::Primary),
        }
    }

    /// A statement is closed: also on the session's connections, unless others use its text.
    pub(super) fn close_on_connections(&mut self, statement: Prepared, out: &mut Outputs) {
        if let Some(id) = statement.own {
            close_statement(Role::Primary, id, out);
        }
        let Some(text) = statement.text else {
            return;
        };
        if Arc::strong_count(&text) > 1 {
            return;
        }
        let mut is_held = true;
        for role in Role::BOTH {
            let known = self.links[role as usize].known_mut();
            if let Some(id) = known.and_then(|known| known.statements.remove(&text)) {
                close_statement(role, id, out);
                is_held = false;
            }
        }
        if is_held {
            self.statements.note_closed();
        }
    }

    /// A statement that the session does not have. The primary says so in its own words, unless the number happens to be
    /// that of another statement there.
    pub(super) fn unknown_statement(
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
        if means_last {
            return self.refuse_front(front, &Fault::UnknownStatement { id, command }, out);
        }
        if !self.ensure(cx, Role::Primary, false, out) {
            return 0;
        }
        let is_taken = self
            .link(Role::Primary)
            .known()
            .is_some_and(|known| known.statements.has_id(id));
        if is_taken || self.statements.has_own(id) {
            return self.refuse_front(front, &Fault::UnknownStatement { id, command }, out);
        }
        self.depart(cx, &front, Departure::plain(expect), out)
    }
}
