//! Commands that are not looked at whole: those longer than [`COMMAND_WHOLE_MAX`](super::COMMAND_WHOLE_MAX), and long data.

use super::departure::{Departure, Front};
use super::govern::Subject;
use super::prepared::{Named, patch_id};
use super::stmt::Prepared;
use super::{Cx, Expect, Fault, Outputs, Role, Session, What};
use crate::shard::Refused;
use crate::sql::{self, Server};
use crate::wire::{Command, query_text};

impl Session {
    /// A command too long to be looked at whole streams through; only its head decides. It goes to the primary.
    pub(super) fn on_long_command(
        &mut self,
        cx: &mut Cx<'_>,
        command: Command,
        mut front: Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        // Enough of an execution to hold the types of 65,535 parameters.
        const HEAD: usize = 256 * 1024;
        if front.bytes.len() < HEAD && command != Command::StmtSendLongData {
            self.want = HEAD;
            return 0;
        }
        self.want = 4;
        self.lookout = None;
        match command {
            Command::Query => {
                let head = front.payload();
                let at = query_text(head, self.capabilities).map_or(1, |range| range.start);
                let text = head.get(at..).unwrap_or_default();
                let dialect = self.dialect();
                self.keep_long_text(cx, text, front.len - at);
                self.diary.begin(cx, text, &dialect);
                let kind = sql::classify_prefix(text, &dialect);
                let statement = sql::Statement {
                    kind,
                    traits: sql::Traits::NONE,
                    hint: None,
                };
                let subject = Subject::new(text, &statement, false);
                if let Err(fault) = self.govern(cx, subject, out) {
                    return self.refuse_front(front, &fault, out);
                }
                let home = match self.check_head(cx, text) {
                    Ok(()) => self.go_home(cx, out),
                    Err(fault) => Err(fault),
                };
                match home {
                    Ok(true) => self.begun = Box::default(),
                    Ok(false) => return 0,
                    Err(fault) => return self.refuse_front(front, &fault, out),
                }
                self.look_out(cx, text);
                let departure = Departure {
                    what: What::LongQuery(kind),
                    keeps_last: false,
                    ..Departure::plain(Expect::Response)
                };
                self.depart(cx, &front, departure, out)
            }
            Command::StmtExecute => self.execute(cx, front, out),
            Command::StmtBulkExecute => self.bulk_execute(cx, front, out),
            Command::StmtPrepare => self.prepare(cx, front, out),
            Command::StmtSendLongData => self.long_data(cx, front, out),
            _ => {
                // No other command is that long on any server.
                let consumed = self.skip(&mut front);
                self.refuse(&Fault::MalformedCommand, 1, out);
                consumed
            }
        }
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
        match self.unsharded_where(cx, id, Refused::LONG_DATA, out) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err(fault) => {
                if let Some(statement) = self.statements.get_mut(id) {
                    statement.lost_data = Some(Box::new(fault));
                }
                return self.skip(&mut front);
            }
        }
        if !self.ensure(cx, Role::Primary, false, out)
            || !self.ensure_prepared(cx, Role::Primary, id, out)
        {
            return 0;
        }
        if let Some(server_id) = self.server_id(Role::Primary, id) {
            patch_id(front.bytes, server_id);
        }
        let Some(statement) = self.statements.get_mut(id) else {
            return 0;
        };
        statement.long_data = true;
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
}
