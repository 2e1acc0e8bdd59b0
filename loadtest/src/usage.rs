//! What one sample cost: the CPU time of proxy, server and client between two moments, and how much of the machine went elsewhere.

use std::time::{Duration, Instant};

use crate::figures::count;
use crate::machine::{self, Busy};
use crate::record::Record;
use crate::sys;

/// Whose CPU time is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Parties<'a> {
    /// The proxy's session, none for a direct connection.
    pub(crate) proxy: Option<i32>,
    /// The server's session.
    pub(crate) server: i32,
    pub(crate) core: usize,
    /// CPU time of others that belong to the test.
    pub(crate) others: &'a dyn Fn() -> Duration,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    busy: Busy,
    proxy: Duration,
    server: Duration,
    client: Duration,
    others: Duration,
}

impl Reading {
    fn take(parties: Parties<'_>) -> Self {
        Self {
            at: Instant::now(),
            busy: machine::busy(parties.core),
            proxy: parties.proxy.map_or(Duration::ZERO, machine::session_cpu),
            server: machine::session_cpu(parties.server),
            client: sys::children_cpu(),
            others: (parties.others)(),
        }
    }
}

/// A measurement under way. The client must be a child that starts and ends meanwhile, the only one.
pub(crate) struct Meter<'a> {
    parties: Parties<'a>,
    start: Reading,
}

impl<'a> Meter<'a> {
    pub(crate) fn start(parties: Parties<'a>) -> Self {
        Self {
            parties,
            start: Reading::take(parties),
        }
    }

    /// CPU seconds per party, and the shares of the machine and of the pinned core that went to anything else.
    pub(crate) fn stop(self) -> Usage {
        let (from, to) = (self.start, Reading::take(self.parties));
        let seconds = to.at.duration_since(from.at).as_secs_f64();
        let spent = |f: fn(&Reading) -> Duration| f(&to).saturating_sub(f(&from)).as_secs_f64();
        let (proxy, server, client) =
            (spent(|r| r.proxy), spent(|r| r.server), spent(|r| r.client));
        let ours = proxy + server + client + spent(|r| r.others);
        let share = |busy: f64, of: f64| ((busy - ours) / of).max(0.0);
        Usage {
            proxy,
            server,
            client,
            stolen: spent(|r| r.busy.stolen),
            foreign: share(spent(|r| r.busy.machine), seconds * count(machine::cores())),
            foreign_core: share(spent(|r| r.busy.core), seconds),
        }
    }
}

/// CPU seconds and shares of one sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) proxy: f64,
    pub(crate) server: f64,
    pub(crate) client: f64,
    /// Seconds that the hypervisor gave to others.
    pub(crate) stolen: f64,
    /// Share of all cores' time.
    pub(crate) foreign: f64,
    /// Share of the pinned core's time; means something only when everything is pinned to it.
    pub(crate) foreign_core: f64,
}

impl Usage {
    /// The figures per unit of work, in microseconds (which is CPU seconds per million).
    pub(crate) fn per(&self, units: f64) -> Record {
        let each = |seconds: f64| {
            if units > 0.0 {
                seconds / units * 1e6
            } else {
                0.0
            }
        };
        Record::new()
            .number("proxy_us", each(self.proxy))
            .number("server_us", each(self.server))
            .number("client_us", each(self.client))
            .number("stolen_s", self.stolen)
            .number("foreign", self.foreign)
            .number("foreign_core", self.foreign_core)
    }
}
