//! The table of hosts: written by the control thread's checks, read by workers without a lock. Decides nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use super::{Freshness, HostId, Ramp, Standing};
use crate::sql::Server;
use crate::wire::{Capabilities, Greeting, Status};

/// What a server's greeting and settings say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// The version text of the greeting.
    pub version: Vec<u8>,
    /// What it offers.
    pub capabilities: Capabilities,
    /// The greeting's collation id.
    pub charset: u8,
    /// The greeting's status flags.
    pub status: Status,
    /// The plugin that it offers first.
    pub plugin: Vec<u8>,
    /// Whether its default sql_mode makes `"` an identifier quote; `None` until it was asked.
    pub ansi_quotes: Option<bool>,
    /// Whether its default sql_mode refuses values that a column cannot hold; `None` until it was asked.
    pub is_strict: Option<bool>,
    /// It says something of its own to each new connection (the global `init_connect`), which a reset does not repeat.
    pub init_connect: bool,
}

impl ServerFacts {
    /// Takes what a greeting says.
    #[must_use]
    pub fn from_greeting(greeting: &Greeting<'_>) -> Self {
        Self {
            version: greeting.version.to_vec(),
            capabilities: greeting.capabilities,
            charset: greeting.charset,
            status: greeting.status,
            plugin: greeting.plugin.to_vec(),
            ansi_quotes: None,
            is_strict: None,
            init_connect: false,
        }
    }

    /// Which family the version text belongs to.
    #[must_use]
    pub fn server(&self) -> Server {
        let maria = self
            .version
            .windows(7)
            .any(|w| w.eq_ignore_ascii_case(b"mariadb"));
        if maria {
            Server::MariaDb
        } else {
            Server::MySql
        }
    }

    /// The version as version comments count it: 90704 for 9.7.4, 101119 for 10.11.19; 0 when it cannot be read.
    /// MariaDB's prefix `5.5.5-` is passed over.
    #[must_use]
    pub fn version_number(&self) -> u32 {
        let text = self
            .version
            .strip_prefix(b"5.5.5-")
            .unwrap_or(&self.version);
        let mut parts = text.split(|b| *b == b'.').map(|part| {
            part.iter()
                .take_while(|b| b.is_ascii_digit())
                .fold(0_u32, |n, b| {
                    n.saturating_mul(10).saturating_add(u32::from(b - b'0'))
                })
        });
        let (major, minor, patch) = (parts.next(), parts.next(), parts.next());
        match (major, minor) {
            (Some(major), Some(minor)) if minor < 100 => major
                .saturating_mul(10_000)
                .saturating_add(minor * 100)
                .saturating_add(patch.unwrap_or(0).min(99)),
            _ => 0,
        }
    }
}

/// What clients are told before it is known who they are: what the servers have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The primary's facts, with the capabilities that all servers share.
    pub facts: ServerFacts,
}

impl Default for Offer {
    /// For the time in which no server has been seen: what every server of the last ten years can do.
    fn default() -> Self {
        let capabilities = Capabilities::LONG_PASSWORD
            | Capabilities::FOUND_ROWS
            | Capabilities::LONG_FLAG
            | Capabilities::CONNECT_WITH_DB
            | Capabilities::NO_SCHEMA
            | Capabilities::ODBC
            | Capabilities::LOCAL_FILES
            | Capabilities::IGNORE_SPACE
            | Capabilities::PROTOCOL_41
            | Capabilities::INTERACTIVE
            | Capabilities::IGNORE_SIGPIPE
            | Capabilities::TRANSACTIONS
            | Capabilities::RESERVED
            | Capabilities::SECURE_CONNECTION
            | Capabilities::MULTI_STATEMENTS
            | Capabilities::MULTI_RESULTS
            | Capabilities::PS_MULTI_RESULTS
            | Capabilities::PLUGIN_AUTH
            | Capabilities::CONNECT_ATTRS
            | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
            | Capabilities::SESSION_TRACK
            | Capabilities::DEPRECATE_EOF;
        Self {
            facts: ServerFacts {
                version: b"8.0.36".to_vec(),
                capabilities,
                charset: 45,
                status: Status::AUTOCOMMIT,
                plugin: Vec::new(),
                ansi_quotes: None,
                is_strict: None,
                init_connect: false,
            },
        }
    }
}

impl Offer {
    /// What the servers seen so far share; version, collation and status are the first one's (the primary's).
    #[must_use]
    pub fn of<'a>(servers: impl Iterator<Item = &'a ServerFacts>) -> Option<Self> {
        let mut offer: Option<Self> = None;
        for facts in servers {
            match &mut offer {
                None => {
                    offer = Some(Self {
                        facts: facts.clone(),
                    })
                }
                Some(offer) => {
                    let shared = offer.facts.capabilities.intersection(facts.capabilities);
                    // Bit 0 is no ability: it tells MySQL's greeting from MariaDB's. A mixed group speaks as MySQL.
                    let family = offer.facts.capabilities.union(facts.capabilities);
                    offer.facts.capabilities =
                        shared | family.intersection(Capabilities::LONG_PASSWORD);
                    if offer.facts.ansi_quotes != facts.ansi_quotes {
                        offer.facts.ansi_quotes = None;
                    }
                    if offer.facts.is_strict != facts.is_strict {
                        offer.facts.is_strict = None;
                    }
                }
            }
        }
        offer
    }
}

/// One host as checks saw it last.
#[derive(Debug)]
pub struct Host {
    up: AtomicBool,
    /// It is the primary of its group: a write may leave for it.
    leads: AtomicBool,
    /// What is known of its part in its group beside that.
    pub standing: Standing,
    /// An operator has taken it out.
    offline: AtomicBool,
    /// When it answered a check last, in milliseconds of control's clock and one more; 0 for never.
    answered: AtomicU64,
    freshness: AtomicU8,
    /// Hundredths of its weight.
    share: AtomicU32,
    /// How often it went out or moved, or was set otherwise.
    epoch: AtomicU64,
    /// Milliseconds, or [`NO_LAG`].
    lag: AtomicU64,
    /// Milliseconds, or [`NO_LAG`].
    wait_timeout: AtomicU64,
    address: ArcSwapOption<SocketAddr>,
    facts: ArcSwapOption<ServerFacts>,
}

impl Host {
    /// A host of which nothing is known but perhaps its address.
    #[must_use]
    pub fn new(address: Option<SocketAddr>) -> Self {
        Self {
            up: AtomicBool::new(true),
            leads: AtomicBool::new(false),
            standing: Standing::default(),
            offline: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            freshness: AtomicU8::new(Freshness::Fresh as u8),
            share: AtomicU32::new(Ramp::FULL),
            epoch: AtomicU64::new(0),
            lag: AtomicU64::new(NO_LAG),
            wait_timeout: AtomicU64::new(NO_LAG),
            address: ArcSwapOption::new(address.map(Arc::new)),
            facts: ArcSwapOption::empty(),
        }
    }

    /// Whether a write may leave for it. Looked at when the bytes leave, whatever was decided before.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }

    /// Makes it the primary of its group, or no longer. The one before must have ceased to be it by then.
    pub fn set_leads(&self, leads: bool) {
        self.leads.store(leads, Ordering::SeqCst);
    }

    /// Whether an operator has taken it out: it gets no new work, and what runs there may end.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.offline.load(Ordering::Relaxed)
    }

    /// Takes it out or back in; returns whether that changed.
    pub fn set_offline(&self, offline: bool) -> bool {
        let has_changed = self.offline.swap(offline, Ordering::Relaxed) != offline;
        if has_changed && offline {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        has_changed
    }

    /// When it answered a check last, as whoever noted it counts time.
    #[must_use]
    pub fn answered(&self) -> Option<Duration> {
        let millis = self.answered.load(Ordering::Relaxed);
        millis.checked_sub(1).map(Duration::from_millis)
    }

    /// Notes that it answered a check.
    pub fn set_answered(&self, at: Duration) {
        let millis = u64::try_from(at.as_millis()).unwrap_or(u64::MAX - 1);
        self.answered
            .store(millis.saturating_add(1), Ordering::Relaxed);
    }

    /// The last checks reached it. A host is up until a check says otherwise.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Notes what a check found; returns whether that changed.
    pub fn set_up(&self, up: bool) -> bool {
        let has_changed = self.up.swap(up, Ordering::Relaxed) != up;
        if has_changed && !up {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        has_changed
    }

    /// Its connections began with other settings than those that are made from here on: none serves another session.
    pub fn retire_connections(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes when it goes out or moves, or its global settings change: a connection of an earlier epoch serves no other session.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Whether new reads may go to it: it is up, nobody has taken it out, and its data are fresh enough.
    #[must_use]
    pub fn may_serve(&self) -> bool {
        self.is_up()
            && !self.is_offline()
            && self.freshness.load(Ordering::Relaxed) == Freshness::Fresh as u8
    }

    /// How fresh its data are. A host is taken for fresh until a check says otherwise.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        Freshness::from_byte(self.freshness.load(Ordering::Relaxed))
    }

    /// Notes how fresh its data are.
    pub fn set_freshness(&self, freshness: Freshness) {
        self.freshness.store(freshness as u8, Ordering::Relaxed);
    }

    /// The share of its weight that it gets of new work, 1 to 100 hundredths.
    #[must_use]
    pub fn share(&self) -> u32 {
        self.share.load(Ordering::Relaxed)
    }

    /// Notes that share.
    pub fn set_share(&self, share: u32) {
        self.share.store(share, Ordering::Relaxed);
    }

    /// How far it is behind its source, as far as that is known.
    #[must_use]
    pub fn lag(&self) -> Option<Duration> {
        let millis = self.lag.load(Ordering::Relaxed);
        (millis != NO_LAG).then(|| Duration::from_millis(millis))
    }

    /// Notes how far it is behind.
    pub fn set_lag(&self, lag: Option<Duration>) {
        let millis = lag.map_or(NO_LAG, |lag| {
            u64::try_from(lag.as_millis()).unwrap_or(NO_LAG - 1)
        });
        self.lag.store(millis, Ordering::Relaxed);
    }

    /// After how long it closes idle connections, as far as that is known.
    #[must_use]
    pub fn wait_timeout(&self) -> Option<Duration> {
        let millis = self.wait_timeout.load(Ordering::Relaxed);
        (millis != NO_LAG).then(|| Duration::from_millis(millis))
    }

    /// Notes after how long it closes idle connections.
    pub fn set_wait_timeout(&self, timeout: Duration) {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(NO_LAG - 1);
        self.wait_timeout.store(millis, Ordering::Relaxed);
    }

    /// Its address, once its name was resolved. `None` for unix sockets too.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.load().as_deref().copied()
    }

    /// Notes a resolved address; returns whether that changed.
    pub fn set_address(&self, address: SocketAddr) -> bool {
        let before = self.address.swap(Some(Arc::new(address)));
        let has_changed = before.as_deref() != Some(&address);
        if has_changed && before.is_some() {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        has_changed
    }

    /// What it said of itself.
    #[must_use]
    pub fn facts(&self) -> Option<Arc<ServerFacts>> {
        self.facts.load_full()
    }

    /// Notes what it says of itself.
    pub fn set_facts(&self, facts: ServerFacts) {
        self.facts.store(Some(Arc::new(facts)));
    }
}

/// Stands for a lag that is not known.
const NO_LAG: u64 = u64::MAX;

/// All hosts, by [`HostId`].
#[derive(Debug, Clone, Default)]
pub struct Hosts(Vec<Arc<Host>>);

impl Hosts {
    /// The same hosts, and behind them new ones with the addresses that need no resolving.
    #[must_use]
    pub fn with(&self, addresses: impl Iterator<Item = Option<SocketAddr>>) -> Self {
        let mut hosts = self.0.clone();
        hosts.extend(addresses.map(|address| Arc::new(Host::new(address))));
        Self(hosts)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A host.
    ///
    /// # Panics
    /// The id is not of this table, which only a mix-up of snapshots could cause.
    #[must_use]
    pub fn get(&self, id: HostId) -> &Host {
        &self.0[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(version: &str, capabilities: Capabilities) -> ServerFacts {
        let mut facts = Offer::default().facts;
        facts.version = version.as_bytes().to_vec();
        facts.capabilities = capabilities;
        facts
    }

    #[test]
    fn version_numbers() {
        for (text, number, server) in [
            ("9.7.4-2", 90_704, Server::MySql),
            ("8.0.36", 80_036, Server::MySql),
            (
                "5.5.5-10.11.19-MariaDB-0+deb12u1-log",
                101_119,
                Server::MariaDb,
            ),
            ("11.4.2-MariaDB", 110_402, Server::MariaDb),
            ("5.7", 50_700, Server::MySql),
            ("x", 0, Server::MySql),
            ("", 0, Server::MySql),
        ] {
            let facts = facts(text, Capabilities::NONE);
            assert_eq!(
                (facts.version_number(), facts.server()),
                (number, server),
                "{text}"
            );
        }
    }

    #[test]
    fn a_host_serves_while_it_is_up_and_fresh() {
        let hosts = Hosts::default().with([None].into_iter());
        let host = hosts.get(HostId(0));
        assert!(host.may_serve() && host.share() == 100 && host.lag().is_none());
        assert!(host.set_up(false) && !host.set_up(false) && !host.may_serve());
        assert_eq!(host.epoch(), 1);
        assert!(host.set_up(true) && host.may_serve());
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        assert!(host.set_address(address(1)) && !host.set_address(address(1)));
        assert_eq!(host.epoch(), 1);
        assert!(host.set_address(address(2)));
        assert_eq!((host.epoch(), host.address()), (2, Some(address(2))));
        for freshness in [Freshness::Behind, Freshness::Stopped, Freshness::Unknown] {
            host.set_freshness(freshness);
            assert!(!host.may_serve() && host.is_up());
            assert_eq!(host.freshness(), freshness);
        }
        host.set_freshness(Freshness::Fresh);
        assert!(host.may_serve());
        for lag in [
            None,
            Some(Duration::ZERO),
            Some(Duration::from_millis(1500)),
        ] {
            host.set_lag(lag);
            assert_eq!(host.lag(), lag);
        }
    }

    #[test]
    fn an_offer_is_what_all_share_and_a_mixed_group_speaks_as_mysql() {
        let mysql = facts(
            "8.0.36",
            Capabilities::LONG_PASSWORD
                | Capabilities::DEPRECATE_EOF
                | Capabilities::QUERY_ATTRIBUTES,
        );
        let maria = facts(
            "10.11.19-MariaDB",
            Capabilities::DEPRECATE_EOF | Capabilities::MARIADB_PROGRESS,
        );
        let offer = Offer::of([&mysql, &maria].into_iter()).map(|o| o.facts);
        assert_eq!(
            offer.map(|f| (f.version, f.capabilities)),
            Some((
                b"8.0.36".to_vec(),
                Capabilities::LONG_PASSWORD | Capabilities::DEPRECATE_EOF
            ))
        );
        assert_eq!(Offer::of([].into_iter()), None);
        // What is so of some servers only is not known.
        let strict = ServerFacts {
            is_strict: Some(true),
            ..facts("8.0.36", Capabilities::default())
        };
        for (other, wanted) in [(&strict, Some(true)), (&mysql, None)] {
            let offer = Offer::of([&strict, other].into_iter());
            assert_eq!(offer.and_then(|offer| offer.facts.is_strict), wanted);
        }
    }
}
