//! The few server connections that are to be there always: opened before the instance reports ready and kept up after that, by
//! the first worker for all. They are made like the last one that a client had made, for most clients are alike; before there
//! was one, like those of a usual driver.

use std::time::Duration;

use super::Worker;
use super::backend::{Made, Purpose};
use crate::pool::{HostId, Shape};
use crate::route::Role;
use crate::session::{Credentials, Upstream, Wish};
use crate::wire::Capabilities;

/// How a connection is made.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub(super) wish: Wish,
    pub(super) credentials: Credentials,
    pub(super) shape: Shape,
}

/// What usual drivers ask for; the servers' own abilities limit it.
const USUAL: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF);
/// After a failure none are opened for so long.
pub(super) const PAUSE: Duration = Duration::from_secs(5);
/// utf8mb4_general_ci.
const USUAL_CHARSET: u16 = 45;

impl Worker {
    /// Opens connections to hosts that have fewer than `min_idle`.
    pub(super) fn warm(&mut self) {
        if self.index != 0 || self.drain.is_some() || self.now < self.warm_after {
            return;
        }
        let live = self.live.clone();
        let min_idle = live.snapshot.config.pool.min_idle;
        for host in live.present() {
            let Some(gate) = live.gates.get(host.index()) else {
                continue;
            };
            let is_wanted = || {
                let state = live.hosts.get(host);
                state.is_up() && !state.is_offline()
            };
            while is_wanted() && gate.admits(self.now) && gate.try_open_idle(self.now, min_idle) {
                let is_opening = match self.template(host) {
                    Some(template) => self.open_idle(host, &template),
                    None => false,
                };
                if !is_opening {
                    self.warm_after = self.now + PAUSE;
                    self.uncount_backend(host);
                    break;
                }
            }
        }
    }

    fn open_idle(&mut self, host: HostId, template: &Template) -> bool {
        let (tls, local) = self.transport(host);
        let wish = Wish {
            tls,
            local,
            ..template.wish.clone()
        };
        let made = Made {
            shape: template.shape,
            schema: wish.schema.clone(),
        };
        let upstream = Upstream::new(wish, template.credentials.clone(), 0);
        let Ok(key) = self.connect(host, Purpose::Idle, upstream) else {
            return false;
        };
        if let Some(backend) = self.backends.get_mut(key) {
            backend.is_counted = true;
            backend.made = Some(Box::new(made));
        }
        true
    }

    /// How the next connection to a host would be made; `None` where nobody shares.
    fn template(&self, host: HostId) -> Option<Template> {
        let gate = self.live.gates.get(host.index())?;
        if let Some(template) = gate.template() {
            return Some(template);
        }
        let snapshot = &self.live.snapshot;
        let group = snapshot.hosts.get(host.index())?.group;
        let account = snapshot
            .accounts
            .iter()
            .find(|account| account.group == group && account.shares && !account.is_gone)?;
        let is_primary = snapshot.leads(host);
        let role = if is_primary {
            Role::Primary
        } else {
            Role::Replica
        };
        let backend = &account.backend[role as usize];
        let capabilities = USUAL.intersection(self.shared.offer.load().facts.capabilities)
            | Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION;
        Some(Template {
            shape: Shape {
                account: backend.id,
                capabilities: Shape::lasting(capabilities),
                charset: USUAL_CHARSET,
                has_schema: account.schema.is_some(),
            },
            credentials: Credentials {
                user: backend.user.clone(),
                passwords: backend.passwords.clone(),
            },
            wish: Wish {
                capabilities,
                needed: Capabilities::NONE,
                max_packet: 1 << 24,
                charset: USUAL_CHARSET,
                schema: account.schema.clone(),
                attributes: Box::default(),
                tls: crate::session::TlsWish::No,
                local: false,
            },
        })
    }
}
