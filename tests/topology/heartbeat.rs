//! Lag by a heartbeat table, for an account that may look at nothing else.

mod own_bed {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use crate::common::{Bed, Kind, Login, Node, Wire, eventually};
    use crate::stage::{GROUP, Stage};

    const MONITOR: &str = "[monitor]\nuser = \"watcher\"\npassword = \"x\"\ninterval = \"100ms\"\nheartbeat = \"beats.heartbeat\"\n";

    /// Writes as `pt-heartbeat --update` does, until it is dropped.
    struct Beats {
        is_over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Beats {
        fn on(bed: &Bed, node: Node) -> Self {
            let is_over = Arc::new(AtomicBool::new(false));
            let (mut root, ended) = (bed.root(node), is_over.clone());
            let thread = std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    root.ok("REPLACE INTO beats.heartbeat(ts, server_id) VALUES(DATE_FORMAT(NOW(6), '%Y-%m-%dT%H:%i:%s.%f'), @@server_id)");
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            Self {
                is_over,
                thread: Some(thread),
            }
        }
    }

    impl Drop for Beats {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::Relaxed);
            if let Some(thread) = self.thread.take() {
                let ended = thread.join();
                assert!(ended.is_ok() || std::thread::panicking(), "the beats ended");
            }
        }
    }

    fn delay(stage: &Stage, seconds: u32) {
        let mut replica = stage.bed.root(Node::Replica1);
        for sql in match stage.bed.kind {
            Kind::MariaDb => [
                "STOP SLAVE".to_owned(),
                format!("CHANGE MASTER TO MASTER_DELAY = {seconds}"),
                "START SLAVE".to_owned(),
            ],
            Kind::MySql => [
                "STOP REPLICA".to_owned(),
                format!("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = {seconds}"),
                "START REPLICA".to_owned(),
            ],
        } {
            replica.ok(&sql);
        }
    }

    fn read_nodes(stage: &Stage) -> Vec<Node> {
        let mut nodes: Vec<Node> = (0..12)
            .map(|_| Wire::connect(stage.atlas.address(), &Login::plain()))
            .map(|mut client| stage.server(&mut client, ""))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// A26: the account has SELECT on the table and no right to ask for replication, so that only the table can tell.
    fn lag(kind: Kind) {
        let bed = Bed::own(kind);
        let mut primary = bed.root(Node::Primary);
        primary.ok("CREATE DATABASE beats");
        primary.ok("CREATE TABLE beats.heartbeat(ts VARCHAR(26) NOT NULL, server_id INT UNSIGNED NOT NULL PRIMARY KEY, file VARCHAR(255), position BIGINT UNSIGNED)");
        primary.ok("CREATE USER watcher@'%' IDENTIFIED BY 'x'");
        primary.ok("GRANT SELECT ON beats.heartbeat TO watcher@'%'");
        // Somebody wrote it long ago, in the name of each server.
        for node in GROUP {
            let id = bed.address(node).port();
            primary.ok(&format!(
                "INSERT INTO beats.heartbeat(ts, server_id) VALUES('2001-02-03T04:05:06.000000', {id})"
            ));
        }
        bed.wait_replicas();
        let beats = Beats::on(&bed, Node::Primary);
        let stage = Stage::over(bed, MONITOR, |config| {
            config
                .group("topology = \"fixed\"")
                .group("max_lag = \"3s\"")
        });
        let serving = |wanted: [&str; 2]| {
            for (node, wanted) in Node::REPLICAS.into_iter().zip(wanted) {
                stage.wait_figure("serving", node, wanted);
                assert_eq!(stage.figure("up", node).as_deref(), Some("1"));
            }
        };
        serving(["1", "1"]);
        // The figure is the table's: the account could not know it otherwise.
        eventually("lag is known", || {
            let lag = stage.figure("lag_seconds", Node::Replica1);
            lag.is_some_and(|lag| lag.parse::<f64>().is_ok_and(|lag| lag < 3.0))
        });

        // One is behind.
        delay(&stage, 3600);
        serving(["0", "1"]);
        assert_eq!(read_nodes(&stage), [Node::Replica2]);
        stage.atlas.wait_log("more than max_lag (3s)");
        delay(&stage, 0);
        serving(["1", "1"]);
        eventually("reads come back to it", || {
            read_nodes(&stage) == Node::REPLICAS
        });

        // What writes it has stopped: nothing tells any more, and the same beat everywhere is no sign of health.
        drop(beats);
        serving(["0", "0"]);
        assert_eq!(read_nodes(&stage), [Node::Primary]);
        let beats = Beats::on(&stage.bed, Node::Primary);
        serving(["1", "1"]);

        // No row, no table.
        let id = stage.bed.address(Node::Primary).port();
        let mut beats = Some(beats);
        for (gone, back, why) in [
            (
                format!("UPDATE beats.heartbeat SET server_id = 1 WHERE server_id = {id}"),
                "DO 0",
                "no time in a row with the primary's server_id",
            ),
            (
                "RENAME TABLE beats.heartbeat TO beats.other".to_owned(),
                "RENAME TABLE beats.other TO beats.heartbeat",
                // Of the primary's, or of the replica's own when that is asked first.
                "doesn't exist",
            ),
        ] {
            drop(beats.take());
            primary.ok(&gone);
            stage.atlas.wait_log(why);
            serving(["0", "0"]);
            primary.ok(back);
            beats = Some(Beats::on(&stage.bed, Node::Primary));
            serving(["1", "1"]);
        }

        // Without the primary there is nothing newer to read.
        drop(beats);
        stage.bed.signal(Node::Primary, "KILL");
        stage.wait_figure("up", Node::Primary, "0");
        assert_eq!(read_nodes(&stage), Node::REPLICAS);
    }

    #[test]
    fn lag_mariadb() {
        lag(Kind::MariaDb);
    }

    #[test]
    fn lag_mysql() {
        lag(Kind::MySql);
    }
}
