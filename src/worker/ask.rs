//! What control asks a worker between two turns: its clients as operators see them, and the end of one.

use super::backend::{Backend, Purpose};
use super::client::Client;
use super::{Question, Sessions, Ties, Worker};
use crate::pool::HostId;
use crate::session::Pins;

/// Clients of one worker that are told of at a time.
const REPORTS_MAX: usize = 10_000;

impl Worker {
    pub(super) fn answer(&mut self, question: Question) {
        // Who asked may have given up.
        match question {
            Question::Sessions(answer) => {
                let _ = answer.try_send(self.sessions());
            }
            Question::Digests(answer) => {
                let _ = answer.try_send(self.texts.digests().all());
            }
            Question::Ties(answer) => {
                let _ = answer.try_send(self.ties());
            }
            Question::Connections(answer) => {
                let _ = answer.try_send(self.connections());
            }
            Question::Counted(answer) => {
                let _ = answer.try_send(());
            }
            Question::Kill {
                id,
                query_only,
                answer,
            } => {
                let killed = self.kill_client(id, query_only, None);
                let _ = answer.try_send(killed);
            }
        }
    }

    fn connections(&self) -> Vec<(HostId, u32)> {
        let id = |backend: &Backend| match backend.purpose {
            Purpose::Session { thread_id, .. } => Some(thread_id),
            _ => backend.known.as_ref().map(|known| known.thread_id()),
        };
        self.backends
            .iter()
            .filter_map(|(_, backend)| Some((backend.host, id(backend)?)))
            .collect()
    }

    fn ties(&self) -> Ties {
        let mut ties = Ties::default();
        for (_, client) in self.clients.iter().filter(|(_, c)| c.leg_of().is_none()) {
            let (in_transaction, set) = client.session.ties();
            ties.transactions += usize::from(in_transaction);
            for (count, (pin, _)) in ties.pins.iter_mut().zip(Pins::ALL) {
                *count += usize::from(set.any_of(pin));
            }
        }
        ties
    }

    fn sessions(&self) -> Sessions {
        let is_client = |(_, client): &(_, &Client)| client.leg_of().is_none();
        let clients = self.clients.iter().filter(is_client).count();
        let reports: Vec<_> = self
            .clients
            .iter()
            .filter(|(_, client)| client.leg_of().is_none())
            .take(REPORTS_MAX)
            .map(|(_, client)| client.session.report())
            .collect();
        Sessions {
            now: self.moment,
            left_out: clients - reports.len(),
            reports,
        }
    }
}
