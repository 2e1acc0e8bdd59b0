//! How a world begins: which servers, which configuration, how many clients.

use std::collections::{BinaryHeap, VecDeque};

use atlas::pool::{Offer, ServerFacts};
use atlas::route::Balance;
use atlas::session::Texts;
use atlas::snapshot::Snapshot;
use atlas::wire::Capabilities;

use crate::greeter::Greeter;
use crate::memory::{Defaults, Flavour, Memory};
use crate::outcome::Databases;
use crate::proxy::Pool;
use crate::rng::Rng;
use crate::server::Estate;
use crate::world::{Event, Host, World};

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:1"
AUTH
TLS
[[groups]]
name = "main"
primary = "10.0.0.1:3306"
REPLICAS
primary_wait = "2s"
NO_REPLICA
[[users]]
name = "both"
password = "secret"
backend = { user = "app", password = "app-pw" }
[[users]]
name = "writer"
password = "secret"
backend = { user = "app", password = "app-pw" }
read_from = "primary"
[[users]]
name = "reader"
password = "secret"
backend = { user = "app", password = "app-pw" }
read_from = "replica-only"
"#;

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let flavour = if rng.one_in(2) {
            Flavour::MySql
        } else {
            Flavour::MariaDb
        };
        let replicas = match rng.below(8) {
            0 => "",
            1 => "replicas = [{ address = \"10.0.0.2:3306\" }]",
            _ => {
                "replicas = [{ address = \"10.0.0.2:3306\" }, { address = \"10.0.0.3:3306\", weight = 2 }]"
            }
        };
        let auth = rng.pick(&[
            "auth_plugin = \"caching_sha2_password\"",
            "auth_plugin = \"mysql_native_password\"",
        ]);
        let no_replica = match replicas {
            "" => "",
            _ => rng.pick(&["", "", "no_replica = \"error\""]),
        };
        let text = CONFIG
            .replace("REPLICAS", replicas)
            .replace("AUTH", auth)
            .replace("NO_REPLICA", no_replica)
            .replace(
                "TLS",
                "tls = { mode = \"optional\", cert = \"cert.pem\", key = \"key.pem\" }",
            );
        let config = atlas::config::load(&text, "sim.toml", &|_| None)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        let snapshot = Snapshot::new(config);
        let tls = rng.one_in(4);
        let mut capabilities = Offer::default().facts.capabilities | Capabilities::TRANSACTIONS;
        capabilities = match flavour {
            Flavour::MySql => {
                capabilities
                    | Capabilities::QUERY_ATTRIBUTES
                    | Capabilities::OPTIONAL_RESULTSET_METADATA
            }
            Flavour::MariaDb => {
                capabilities.without(Capabilities::LONG_PASSWORD)
                    | Capabilities::MARIADB_CACHE_METADATA
                    | Capabilities::MARIADB_EXTENDED_METADATA
            }
        };
        if rng.one_in(4) {
            capabilities = capabilities.without(Capabilities::DEPRECATE_EOF);
        }
        if tls {
            capabilities = capabilities | Capabilities::SSL;
        }
        let defaults = Defaults {
            flavour,
            autocommit: !rng.one_in(8),
            sql_mode: rng.pick(&[
                "STRICT",
                "STRICT",
                "STRICT",
                "STRICT",
                "STRICT,NO_BACKSLASH_ESCAPES",
                "STRICT,ANSI_QUOTES",
            ]),
        };
        let facts = ServerFacts {
            version: Greeter::version(flavour).to_vec(),
            capabilities,
            charset: 45,
            status: Memory::new(defaults, "utf8mb4", None).status(),
            plugin: b"mysql_native_password".to_vec(),
            is_strict: None,
            ansi_quotes: rng
                .one_in(2)
                .then_some(defaults.sql_mode.contains("ANSI_QUOTES")),
            init_connect: false,
        };
        let mut databases = Databases::default();
        databases.names.insert("t1".to_owned());
        // A replica that differs from the primary in what does not matter to reads.
        let oddly = rng.one_in(6);
        let faulty = !seed.is_multiple_of(3);
        let mut world = Self {
            now: 0,
            events: BinaryHeap::new(),
            serial: 0,
            flavour,
            tls,
            faulty,
            faults_seen: false,
            faults_end: 3_000_000,
            offer: Offer { facts },
            capabilities,
            primary_wait: 2_000_000,
            estate: Estate {
                databases,
                committed: Vec::new(),
                insert_ids: 0,
                log: Vec::new(),
                rng: rng.fork(),
            },
            hosts: snapshot
                .hosts
                .iter()
                .enumerate()
                .map(|(index, _)| Host {
                    defaults: Defaults {
                        autocommit: defaults.autocommit ^ (index == 1 && oddly),
                        ..defaults
                    },
                    accepts: true,
                    is_known_up: true,
                })
                .collect(),
            snapshot,
            primary: 0,
            balance: Balance::default(),
            clients: Vec::new(),
            fronts: Vec::new(),
            links: Vec::new(),
            backs: Vec::new(),
            back_links: Vec::new(),
            servers: Vec::new(),
            deferred: VecDeque::new(),
            pool: Pool::default(),
            texts: Texts::default(),
            output_count: 0,
            clients_to_come: rng.between(2, 6),
            next_tag: 0,
            rng,
        };
        world.after(0, Event::NewClient);
        world.after(500_000, Event::CheckHosts);
        if faulty {
            world.after(1000, Event::Fault);
        }
        world
    }
}
