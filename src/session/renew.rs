//! COM_PING and COM_RESET_CONNECTION: commands that are about the connection, which may be none at the moment.

use super::departure::{Departure, Front};
use super::{Access, Cx, Expect, InsertId, Outputs, Role, Session, What};
use crate::sql::Server;
use crate::wire::Capabilities;

impl Session {
    pub(super) fn ping(&mut self, front: &Front<'_>, out: &mut Outputs) -> usize {
        let role = Role::Primary;
        // On MySQL the answer tells how many warnings there are.
        let is_elsewhere = self.server == Server::MySql
            && self
                .warned
                .is_some_and(|last| last.holds && last.role != role);
        if !self.link(role).is_ready() || is_elsewhere {
            // The primary holds nothing for this session now, so there is nothing that it could add; and a replica's flags are
            // not the session's.
            let warnings = match self.server {
                Server::MySql => self.warned.map_or(0, |last| last.warnings),
                Server::MariaDb => 0,
            };
            self.local_ok_with(warnings, 1, out);
            return front.total();
        }
        let departure = Departure {
            access: Access::Read,
            ..Departure::plain(Expect::Terminal)
        };
        self.forward(front, departure, out)
    }

    pub(super) fn reset_connection(
        &mut self,
        cx: &mut Cx<'_>,
        front: &Front<'_>,
        out: &mut Outputs,
    ) -> usize {
        self.note_reset(cx, out);
        self.drop_link(Role::Replica, out);
        if self.link(Role::Primary).is_absent() {
            self.was_reset();
            self.local_ok(1, out);
            return front.total();
        }
        let departure = Departure {
            what: What::Reset,
            ..Departure::plain(Expect::Terminal)
        };
        self.depart(cx, front, departure, out)
    }

    /// Forgets what COM_RESET_CONNECTION undoes.
    pub(super) fn was_reset(&mut self) {
        use crate::sql::Charset;
        self.statements.reset();
        self.begun = Box::default();
        self.is_to_begin = false;
        self.last = None;
        self.warned = None;
        self.kept = None;
        self.insert_id = InsertId::Known(0);
        self.numbers.row_count = super::Numbers::FRESH.row_count;
        // MariaDB returns to the log-in's character set, MySQL to the server's own (utf8mb4 unless configured).
        let charset = match self.server {
            Server::MariaDb => Charset::from_collation_id(self.identity.charset),
            Server::MySql => Charset::Plain,
        };
        self.state.reset(charset, self.server);
        let is_mariadb = self.server == Server::MariaDb;
        if is_mariadb {
            // It lives in sql_mode there, which begins anew without it.
            self.capabilities = self.capabilities.without(Capabilities::IGNORE_SPACE);
        }
        let history = self.state.history().clone();
        match self.link_mut(Role::Primary).known_mut() {
            Some(known) => {
                known.was_reset();
                if is_mariadb {
                    // From here on it is like one whose log-in did not ask for it.
                    let flags = &mut known.shape.capabilities;
                    *flags = flags.without(Capabilities::IGNORE_SPACE);
                    known.after_reset = Vec::new();
                }
                known.history = history;
            }
            None => self.forget_status(),
        }
    }
}
