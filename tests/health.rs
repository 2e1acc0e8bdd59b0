//! Which servers are checked how, and what that does to reads: dead, hung, stopped and lagging replicas leave and come back.
//! Time decides nothing here: states are waited for.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{
    Atlas, Bed, Config, Kind, Login, Node, Scripted, ScriptedRole, Wire, config_for, eventually,
    http_get, http_of,
};

/// Checks that are quick, so that states come soon.
const MONITOR: &str =
    "[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"100ms\"\ntimeout = \"2s\"\n";

struct Stage {
    bed: Bed,
    atlas: Atlas,
    http: SocketAddr,
}

impl Stage {
    fn new(bed: Bed, monitor: &str, change: impl FnOnce(Config) -> Config) -> Self {
        let config = config_for(&bed)
            .server("http_listen = \"127.0.0.1:0\"")
            .append(monitor);
        let atlas = Atlas::start(change(config));
        let http = http_of(&atlas.log()).expect("the log names the port");
        Self { bed, atlas, http }
    }

    /// A figure of a server, as `/metrics` has it.
    fn figure(&self, name: &str, node: Node) -> Option<String> {
        let (_, metrics) = http_get(self.http, "/metrics");
        let address = format!("address=\"{}\"", self.bed.address(node));
        let line = metrics.lines().find(|line| {
            line.starts_with(&format!("atlas_backend_{name}{{")) && line.contains(&address)
        })?;
        line.rsplit(' ').next().map(str::to_owned)
    }

    fn wait(&self, name: &str, node: Node, wanted: &str) {
        // MySQL's applier may take its time, and a stopped server its two seconds for each check.
        for _ in 0..5 {
            let mut seen = None;
            for _ in 0..600 {
                seen = self.figure(name, node);
                if seen.as_deref() == Some(wanted) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            eprintln!("{name} of {} is {seen:?}, not {wanted}", node.name());
        }
        panic!(
            "{name} of {} does not become {wanted}\n{}",
            node.name(),
            self.atlas.log()
        );
    }

    /// Where reads of new sessions run; each must succeed.
    fn reads(&self, sessions: usize) -> Vec<Node> {
        let mut nodes: Vec<Node> = (0..sessions)
            .map(|_| {
                let mut client = Wire::connect(self.atlas.address(), &Login::app());
                // The beds give each server its port as its id.
                let port = client.query("SELECT @@server_id").cell();
                let node = Node::ALL
                    .into_iter()
                    .find(|node| self.bed.address(*node).port().to_string() == port);
                client.quit();
                node.unwrap_or_else(|| panic!("no server has id {port}"))
            })
            .collect();
        nodes.sort_unstable_by_key(|node| node.name());
        nodes.dedup_by_key(|node| node.name());
        nodes
    }

    fn assert_reads(&self, wanted: &[Node]) {
        assert_eq!(self.reads(12), wanted, "{}", self.atlas.log());
    }
}

/// A server that accepts connections and says nothing is as good as none.
#[test]
fn a_server_that_accepts_and_hangs_is_down() {
    let bed = Bed::mariadb();
    let hung = Scripted::start(|talk, _| talk.ok());
    let replicas = format!(
        "replicas = [\"{}\", \"{}\"]",
        hung.address(),
        bed.address(Node::Replica1)
    );
    hung.fall_silent();
    let monitor = MONITOR.replace("2s", "1s");
    let stage = Stage::new(bed, &monitor, |config| config.group(&replicas));
    let line = format!("address=\"{}\",role=\"replica\"}} 0\n", hung.address());
    eventually("the hung server is out", || {
        http_get(stage.http, "/metrics").1.contains(&line)
    });
    assert!(
        stage.atlas.log().contains("it did not answer in time"),
        "{}",
        stage.atlas.log()
    );
    stage.assert_reads(&[Node::Replica1]);
}

/// While replication is being stopped, servers answer everything but the question for it: such a replica serves no reads, and is
/// not down.
#[test]
fn a_replica_that_does_not_answer_for_its_replication() {
    let bed = Bed::mariadb();
    let role = ScriptedRole {
        version: "5.7.44",
        ..ScriptedRole::default()
    };
    let silent = Scripted::start_as(role, |talk, arrival| {
        if arrival.sql() != "SHOW SLAVE STATUS" {
            talk.ok();
        }
    });
    let replicas = format!(
        "replicas = [\"{}\", \"{}\"]",
        silent.address(),
        bed.address(Node::Replica1)
    );
    let monitor = MONITOR.replace("2s", "1s");
    let stage = Stage::new(bed, &monitor, |config| config.group(&replicas));
    let is = |name: &str, value: &str| {
        let metrics = http_get(stage.http, "/metrics").1;
        let address = silent.address();
        let line = format!(
            "atlas_backend_{name}{{group=\"main\",address=\"{address}\",role=\"replica\"}} {value}\n"
        );
        metrics.contains(&line)
    };
    eventually("it serves no reads", || is("serving", "0"));
    // As many checks as would take it out, were it down.
    let asked = || silent.statements().len();
    let before = asked();
    eventually("it is asked on", || asked() > before + 3);
    assert!(is("up", "1") && is("serving", "0"), "{}", stage.atlas.log());
    stage.assert_reads(&[Node::Replica1]);
}

/// A26: what the account may not ask is said once, and counts where the operator has named a limit.
#[test]
fn an_account_that_may_not_ask_for_replication() {
    for bed in Bed::both() {
        let name = match bed.kind {
            Kind::MariaDb => "SLAVE MONITOR",
            Kind::MySql => "REPLICATION CLIENT",
        };
        let mut primary = bed.root(Node::Primary);
        primary.ok("CREATE USER IF NOT EXISTS asks_nothing@'%' IDENTIFIED BY 'x'");
        bed.wait_replicas();
        let monitor = MONITOR
            .replace("\"app\"", "\"asks_nothing\"")
            .replace("app-pw", "x");
        let stage = Stage::new(bed, &monitor, |config| config);
        for node in Node::REPLICAS {
            stage.wait("serving", node, "1");
        }
        eventually("the want is said", || {
            stage
                .atlas
                .log()
                .matches(&format!("(grant {name} to 'asks_nothing'"))
                .count()
                == 2
        });
        stage.assert_reads(&Node::REPLICAS);
        assert_eq!(stage.figure("lag_seconds", Node::Replica1), None);

        let Stage { bed, .. } = stage;
        let stage = Stage::new(bed, &monitor, |config| config.group("max_lag = \"10s\""));
        for node in Node::REPLICAS {
            stage.wait("serving", node, "0");
        }
        stage.assert_reads(&[Node::Primary]);

        let Stage { bed, .. } = stage;
        let stage = Stage::new(bed, &monitor, |config| config.group("max_lag = \"0s\""));
        stage.assert_reads(&Node::REPLICAS);
        assert!(
            !stage.atlas.log().contains("does not tell"),
            "{}",
            stage.atlas.log()
        );
    }
}

mod own_bed {
    use super::*;

    /// A22, A38: killed, hung, and come back.
    #[test]
    fn dead_replicas_leave_and_return() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let monitor = MONITOR.replace("2s", "1s");
            let stage = Stage::new(Bed::own(kind), &monitor, |config| config);
            stage.assert_reads(&Node::REPLICAS);

            stage.bed.signal(Node::Replica1, "KILL");
            // No read fails, whether a check or a read finds it first.
            stage.assert_reads(&[Node::Replica2]);
            stage.wait("up", Node::Replica1, "0");
            stage.assert_reads(&[Node::Replica2]);
            stage.bed.revive(Node::Replica1);
            stage.wait("serving", Node::Replica1, "1");
            eventually("reads come back to it", || {
                stage.reads(12) == Node::REPLICAS
            });

            stage.bed.signal(Node::Replica2, "STOP");
            stage.wait("up", Node::Replica2, "0");
            stage.assert_reads(&[Node::Replica1]);
            stage.bed.signal(Node::Replica2, "CONT");
            stage.wait("serving", Node::Replica2, "1");
            eventually("reads come back to it", || {
                stage.reads(12) == Node::REPLICAS
            });

            // The primary's death is no reason to read from nobody, and replicas are not behind for it.
            stage.bed.signal(Node::Primary, "KILL");
            stage.wait("up", Node::Primary, "0");
            for node in Node::REPLICAS {
                assert_eq!(stage.figure("serving", node).as_deref(), Some("1"));
            }
            stage.assert_reads(&Node::REPLICAS);
            let log = stage.atlas.log();
            assert!(log.contains("is out: 3 checks failed"), "{log}");
            assert!(log.contains("answers checks again"), "{log}");
        }
    }

    fn words(kind: Kind) -> [&'static str; 3] {
        match kind {
            Kind::MariaDb => ["STOP SLAVE", "START SLAVE", "CHANGE MASTER TO MASTER_DELAY"],
            Kind::MySql => [
                "STOP REPLICA",
                "START REPLICA",
                "CHANGE REPLICATION SOURCE TO SOURCE_DELAY",
            ],
        }
    }

    /// A22: replication that is stopped, or behind, or gone.
    #[test]
    fn lagging_replicas_leave_and_return() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let stage = Stage::new(Bed::own(kind), MONITOR, |config| {
                config.group("max_lag = \"2s\"")
            });
            let [stop, start, delay] = words(kind);
            let mut primary = stage.bed.root(Node::Primary);
            let mut replica = stage.bed.root(Node::Replica1);
            let out = |what: &str| {
                stage.wait("serving", Node::Replica1, "0");
                assert_eq!(
                    stage.figure("up", Node::Replica1).as_deref(),
                    Some("1"),
                    "{what}"
                );
                stage.assert_reads(&[Node::Replica2]);
            };
            let back = || {
                stage.wait("serving", Node::Replica1, "1");
                eventually("reads come back to it", || {
                    stage.reads(12) == Node::REPLICAS
                });
            };
            stage.assert_reads(&Node::REPLICAS);
            eventually("it has caught up", || {
                stage.figure("lag_seconds", Node::Replica1).as_deref() == Some("0.0")
            });

            for thread in ["SQL_THREAD", "IO_THREAD"] {
                replica.ok(&format!("{stop} {thread}"));
                out(thread);
                replica.ok(&format!("{start} {thread}"));
                back();
            }
            assert!(stage.atlas.log().contains("is stopped: it serves no reads"));

            // Behind for a lock.
            primary.ok("CREATE TABLE bed.t(a INT)");
            stage.bed.wait_replicas();
            replica.ok("LOCK TABLES bed.t READ");
            primary.ok("INSERT INTO bed.t VALUES(1)");
            out("locked");
            assert!(
                stage.atlas.log().contains("more than max_lag (2s)"),
                "{}",
                stage.atlas.log()
            );
            replica.ok("UNLOCK TABLES");
            back();

            // Behind on purpose.
            let mut delay_by = |seconds: u32| {
                replica.ok(stop);
                replica.ok(&format!("{delay} = {seconds}"));
                replica.ok(start);
                back();
            };
            delay_by(3600);
            primary.ok("INSERT INTO bed.t VALUES(2)");
            out("delayed");
            delay_by(0);

            // All of them: what the group says.
            for node in Node::REPLICAS {
                stage.bed.root(node).ok(stop);
                stage.wait("serving", node, "0");
            }
            stage.assert_reads(&[Node::Primary]);
            assert!(
                stage
                    .atlas
                    .log()
                    .contains("no replica that may serve reads: they go to the primary")
            );
            let Stage { bed, .. } = stage;
            let strict = Stage::new(bed, MONITOR, |config| {
                config
                    .group("max_lag = \"2s\"")
                    .group("no_replica = \"error\"")
            });
            for node in Node::REPLICAS {
                strict.wait("serving", node, "0");
            }
            let mut client = Wire::connect(strict.atlas.address(), &Login::app());
            let (code, _, text) = client.query("SELECT 1").error().expect("no replica");
            assert_eq!(code, 1105, "{text}");
            // Detached for good.
            let mut replica = strict.bed.root(Node::Replica1);
            replica.ok(start);
            strict.wait("serving", Node::Replica1, "1");
            replica.ok(stop);
            replica.ok(match kind {
                Kind::MariaDb => "RESET SLAVE ALL",
                Kind::MySql => "RESET REPLICA ALL",
            });
            strict.wait("serving", Node::Replica1, "0");
            eventually("it is said", || {
                strict
                    .atlas
                    .log()
                    .contains("it replicates from no other server")
            });
        }
    }
}
