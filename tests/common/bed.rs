//! Beds of real servers: where they listen, where their logs are, and how to stop and start them. Starting them is `scripts/bed`'s work.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Login, Marks, Schema, Wire};

/// Which product the servers of a bed are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MariaDb,
    MySql,
}

impl Kind {
    /// The name that `scripts/bed` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        }
    }
}

/// A server's place in the bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Primary,
    Replica1,
    Replica2,
    /// Another primary with data of its own, not a replica of the first.
    Second,
}

impl Node {
    pub const ALL: [Self; 4] = [Self::Primary, Self::Replica1, Self::Replica2, Self::Second];
    pub const REPLICAS: [Self; 2] = [Self::Replica1, Self::Replica2];

    /// The name that `scripts/bed` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Replica1 => "replica1",
            Self::Replica2 => "replica2",
            Self::Second => "second",
        }
    }
}

/// One running server.
#[derive(Clone, Debug)]
pub struct Server {
    pub node: Node,
    pub address: SocketAddr,
    /// The unix socket.
    pub socket: PathBuf,
    /// The general log: every command that reached the server. See [`Marks`].
    pub general_log: PathBuf,
}

/// Four servers of one kind. See the module's head for the accounts and the layout: `scripts/bed --help`.
#[derive(Debug)]
pub struct Bed {
    pub kind: Kind,
    servers: Vec<Server>,
    /// Certificates: `cacert.pem`, `server-cert.pem`, `server-key.pem`, `client-cert.pem`, `client-key.pem`, `other-cacert.pem`.
    pub tls: PathBuf,
    /// The state folder, for `scripts/bed`.
    dir: PathBuf,
    /// Ends the servers with this value, when they are this test's own.
    own: Option<OwnFolder>,
}

impl Bed {
    /// The MariaDB servers that all tests share. Panics when they were not started.
    pub fn mariadb() -> Self {
        Self::of(Kind::MariaDb)
    }

    /// The MySQL servers that all tests share. Panics when they were not started.
    pub fn mysql() -> Self {
        Self::of(Kind::MySql)
    }

    /// The shared servers of that kind. Panics when they were not started.
    pub fn of(kind: Kind) -> Self {
        Self::from_variables(kind, &|name| std::env::var(name).ok()).unwrap_or_else(|missing| {
            panic!("{missing} is not set: no {} servers. Run scripts/test, or scripts/bed with all COMMAND", kind.name())
        })
    }

    /// Both shared beds, for tests that must hold on either product.
    pub fn both() -> [Self; 2] {
        [Self::mariadb(), Self::mysql()]
    }

    /// Starts four servers for this test alone, which may then stop and kill them; ended when the value is dropped. A few seconds:
    /// put such tests into a module named `own_bed` (see `.config/nextest.toml`).
    pub fn own(kind: Kind) -> Self {
        let folder = OwnFolder(tempfile::tempdir().expect("a temporary folder"));
        let dir = folder.0.path().to_owned();
        scripts_bed(&["start", kind.name(), &dir.to_string_lossy()]);
        let script =
            "set -e; variables=$(\"$0\" env \"$1\"); eval \"$variables\"; exec env -0".to_owned();
        let output = Command::new("bash")
            .args(["-c", &script])
            .arg(bed_script())
            .arg(&dir)
            .output()
            .expect("bash");
        assert!(
            output.status.success(),
            "scripts/bed env: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let variables: HashMap<String, String> = String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut bed = Self::from_variables(kind, &|name| variables.get(name).cloned())
            .unwrap_or_else(|missing| panic!("scripts/bed env did not print {missing}"));
        bed.own = Some(folder);
        bed
    }

    fn from_variables(
        kind: Kind,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let get = |name: String| variable(&name).ok_or(name);
        let mut servers = Vec::new();
        for node in Node::ALL {
            let prefix = format!("ATLAS_BED_{}_{}", kind.name(), node.name()).to_uppercase();
            let address = get(prefix.clone())?;
            servers.push(Server {
                node,
                address: address
                    .parse()
                    .unwrap_or_else(|_| panic!("{prefix}={address} is no address")),
                socket: get(format!("{prefix}_SOCKET"))?.into(),
                general_log: get(format!("{prefix}_LOG"))?.into(),
            });
        }
        Ok(Self {
            kind,
            servers,
            tls: get("ATLAS_BED_TLS".to_owned())?.into(),
            dir: get("ATLAS_BED_DIR".to_owned())?.into(),
            own: None,
        })
    }

    pub fn server(&self, node: Node) -> &Server {
        self.servers
            .iter()
            .find(|server| server.node == node)
            .expect("all four are there")
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub fn address(&self, node: Node) -> SocketAddr {
        self.server(node).address
    }

    /// The certificate authority of the servers' certificates.
    pub fn ca(&self) -> PathBuf {
        self.tls.join("cacert.pem")
    }

    /// A connection as root, straight to that server.
    pub fn root(&self, node: Node) -> Wire {
        Wire::connect(self.address(node), &Login::root())
    }

    /// A fresh schema on the primary, already on the replicas, dropped with the value.
    pub fn schema(&self) -> Schema {
        Schema::on(self)
    }

    /// The present end of all general logs: what arrives later is "since".
    pub fn marks(&self) -> Marks {
        Marks::now(self)
    }

    /// Waits until both replicas hold what the primary has committed up to now.
    pub fn wait_replicas(&self) {
        let (position, wait) = match self.kind {
            Kind::MariaDb => ("SELECT @@gtid_binlog_pos", "MASTER_GTID_WAIT"),
            Kind::MySql => (
                "SELECT REPLACE(@@gtid_executed, '\\n', '')",
                "WAIT_FOR_EXECUTED_GTID_SET",
            ),
        };
        let position = self.root(Node::Primary).query(position).cell();
        for node in Node::REPLICAS {
            let reached = self
                .root(node)
                .query(&format!("SELECT {wait}('{position}', 20)"))
                .cell();
            assert_eq!(reached, "0", "{} does not follow {position}", node.name());
        }
    }

    /// Sends `KILL` or `TERM` (and waits for the end), `STOP` (and waits until it does nothing), or `CONT`. Own beds only.
    pub fn signal(&self, node: Node, signal: &str) {
        self.assert_own();
        let dir = self.dir.to_string_lossy();
        scripts_bed(&["signal", &dir, self.kind.name(), node.name(), signal]);
    }

    /// Starts an ended server again, with its data, at its address. Own beds only.
    pub fn revive(&self, node: Node) {
        self.assert_own();
        let dir = self.dir.to_string_lossy();
        scripts_bed(&["revive", &dir, self.kind.name(), node.name()]);
    }

    fn assert_own(&self) {
        assert!(
            self.own.is_some(),
            "other tests use these servers: take Bed::own"
        );
    }
}

/// Waits until `done` holds, looking every few milliseconds. Panics with `what` after half a minute: what is waited for takes a
/// moment, but a busy machine may have many.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < end, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[derive(Debug)]
struct OwnFolder(tempfile::TempDir);

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // No panic while a test is failing already.
        let _ = Command::new(bed_script())
            .arg("stop")
            .arg(self.0.path())
            .status();
    }
}

fn bed_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/bed")
}

fn scripts_bed(args: &[&str]) {
    let output = Command::new(bed_script())
        .args(args)
        .output()
        .expect("scripts/bed");
    assert!(
        output.status.success(),
        "scripts/bed {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
