//! Atlas in front of a bed of its own whose servers change roles.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::{
    Atlas, Bed, Config, Kind, Login, Node, Part, Wire, config_for, http_get, http_of,
};

/// The interval of the checks is the default one.
pub const MONITOR: &str = "[monitor]\nuser = \"app\"\npassword = \"app-pw\"\n";
/// Checks that are quick, so that states come soon.
pub const QUICK: &str =
    "[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"100ms\"\ntimeout = \"1s\"\n";

/// The three servers of the group.
pub const GROUP: [Node; 3] = [Node::Primary, Node::Replica1, Node::Replica2];

pub struct Stage {
    pub bed: Bed,
    pub atlas: Atlas,
    http: SocketAddr,
    monitor: String,
    /// Where a server is reached, if not where it listens.
    ways: Vec<(Node, SocketAddr)>,
}

impl Stage {
    pub fn new(kind: Kind, monitor: &str, change: impl FnOnce(Config) -> Config) -> Self {
        Self::over(Bed::own(kind), monitor, change)
    }

    /// The same in front of a bed that is there.
    pub fn over(bed: Bed, monitor: &str, change: impl FnOnce(Config) -> Config) -> Self {
        let atlas = Atlas::start(change(config(&bed, monitor)));
        let http = http_of(&atlas.log()).expect("the log names the port");
        Self {
            bed,
            atlas,
            http,
            monitor: monitor.to_owned(),
            ways: Vec::new(),
        }
    }

    /// That server goes by this address for Atlas.
    pub fn reached_by(mut self, node: Node, way: SocketAddr) -> Self {
        self.ways.push((node, way));
        self
    }

    /// A configuration for another Atlas in front of the same servers.
    pub fn config(&self, change: impl FnOnce(Config) -> Config) -> Config {
        change(config(&self.bed, &self.monitor))
    }

    /// A client without rights beyond its data.
    pub fn client(&self) -> Wire {
        Wire::connect(self.atlas.address(), &Login::plain())
    }

    /// The line of a server in `/metrics`.
    fn line(&self, name: &str, node: Node) -> Option<String> {
        let (_, metrics) = http_get(self.http, "/metrics");
        let way = self.ways.iter().find(|(other, _)| *other == node);
        let address = way.map_or_else(|| self.bed.address(node), |(_, way)| *way);
        let address = format!("address=\"{address}\"");
        let begins = format!("atlas_backend_{name}{{");
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.starts_with(&begins) && line.contains(&address))?;
        Some(line.to_owned())
    }

    /// A figure of a server.
    pub fn figure(&self, name: &str, node: Node) -> Option<String> {
        let line = self.line(name, node)?;
        line.rsplit(' ').next().map(str::to_owned)
    }

    /// Waits for a figure of a server.
    pub fn wait_figure(&self, name: &str, node: Node, wanted: &str) {
        let end = Instant::now() + Duration::from_secs(90);
        while self.figure(name, node).as_deref() != Some(wanted) {
            assert!(
                Instant::now() < end,
                "{name} of {} does not become {wanted}\n{}",
                node.name(),
                self.atlas.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until both replicas have applied what they have got from a primary that is gone; gives the one that got more first.
    pub fn wait_applied(&self) -> [Node; 2] {
        let mut reached = Vec::new();
        let (status, read, applied) = match self.bed.kind {
            Kind::MariaDb => (
                "SHOW SLAVE STATUS",
                "Read_Master_Log_Pos",
                "Exec_Master_Log_Pos",
            ),
            Kind::MySql => (
                "SHOW REPLICA STATUS",
                "Read_Source_Log_Pos",
                "Exec_Source_Log_Pos",
            ),
        };
        for node in Node::REPLICAS {
            let mut root = self.bed.root(node);
            let mut position = None;
            within_a_minute("what came is applied", || {
                let reply = root.query(status);
                let row = reply.rows().remove(0);
                let columns: Vec<_> = reply
                    .packets
                    .iter()
                    .filter(|packet| packet.part == Part::Column)
                    .collect();
                let at = |name: &str| {
                    let has_name =
                        |payload: &[u8]| payload.windows(name.len()).any(|w| w == name.as_bytes());
                    let at = columns.iter().position(|column| has_name(&column.payload));
                    row[at.expect("the column is there")].clone()
                };
                position = at(applied);
                at(read) == position
            });
            let position: u64 = position
                .and_then(|text| text.parse().ok())
                .expect("a position");
            reached.push((position, node));
        }
        reached.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
        [reached[0].1, reached[1].1]
    }

    /// The role of a server, as `/metrics` has it.
    pub fn role(&self, node: Node) -> Option<String> {
        let line = self.line("up", node)?;
        let role = line.split("role=\"").nth(1)?;
        role.split('"').next().map(str::to_owned)
    }

    /// Waits for a server's role; gives the time that it took.
    pub fn wait_role(&self, node: Node, wanted: &str) -> Duration {
        let start = Instant::now();
        while self.role(node).as_deref() != Some(wanted) {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{} does not become {wanted} but is {:?}\n{}",
                node.name(),
                self.role(node),
                self.atlas.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        start.elapsed()
    }

    /// Which server answers, by the id that the bed gave it.
    pub fn server(&self, client: &mut Wire, hint: &str) -> Node {
        let id = client.query(&format!("{hint} SELECT @@server_id")).cell();
        GROUP
            .into_iter()
            .find(|node| self.bed.address(*node).port().to_string() == id)
            .unwrap_or_else(|| panic!("no server has id {id}"))
    }
}

fn config(bed: &Bed, monitor: &str) -> Config {
    config_for(bed)
        .server("http_listen = \"127.0.0.1:0\"")
        .group("topology = \"follow\"")
        // A busy machine takes its time for what the tests wait for; neither limit is what they are about, unless they say so.
        .group("primary_wait = \"60s\"")
        .group("max_lag = \"1h\"")
        .append(monitor)
}

/// Waits until `done` holds: replicas have a queue to work off.
fn within_a_minute(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
