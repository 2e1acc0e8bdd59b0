//! The table of hosts: written by the control thread's checks, read by workers without a lock. Decides nothing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use super::HostId;
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
    address: ArcSwapOption<SocketAddr>,
    facts: ArcSwapOption<ServerFacts>,
}

impl Host {
    /// The last checks reached it. A host is up until a check says otherwise.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Notes what a check found; returns whether that changed.
    pub fn set_up(&self, up: bool) -> bool {
        self.up.swap(up, Ordering::Relaxed) != up
    }

    /// Its address, once its name was resolved. `None` for unix sockets too.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.load().as_deref().copied()
    }

    /// Notes a resolved address.
    pub fn set_address(&self, address: SocketAddr) {
        self.address.store(Some(std::sync::Arc::new(address)));
    }

    /// What it said of itself.
    #[must_use]
    pub fn facts(&self) -> Option<std::sync::Arc<ServerFacts>> {
        self.facts.load_full()
    }

    /// Notes what it says of itself.
    pub fn set_facts(&self, facts: ServerFacts) {
        self.facts.store(Some(std::sync::Arc::new(facts)));
    }
}

/// All hosts, by [`HostId`].
#[derive(Debug)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// A table for so many hosts, with the addresses that need no resolving.
    #[must_use]
    pub fn new(addresses: impl Iterator<Item = Option<SocketAddr>>) -> Self {
        Self(
            addresses
                .map(|address| Host {
                    up: AtomicBool::new(true),
                    address: ArcSwapOption::new(address.map(std::sync::Arc::new)),
                    facts: ArcSwapOption::empty(),
                })
                .collect(),
        )
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
    }
}
