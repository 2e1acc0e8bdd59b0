//! What operators do by hand to the servers of a bed: close and open them for writes, and point replication elsewhere.

use super::{Bed, Kind, Node};

impl Bed {
    /// It takes no writes from here on (from accounts without further rights).
    pub fn close(&self, node: Node) {
        self.root(node).ok(match self.kind {
            Kind::MariaDb => "SET GLOBAL read_only = ON",
            Kind::MySql => "SET GLOBAL super_read_only = ON",
        });
    }

    /// It takes writes.
    pub fn open(&self, node: Node) {
        // On MySQL this ends super_read_only too.
        self.root(node).ok("SET GLOBAL read_only = OFF");
    }

    /// It replicates from nobody any more.
    pub fn detach(&self, node: Node) {
        let mut root = self.root(node);
        for sql in match self.kind {
            Kind::MariaDb => ["STOP SLAVE", "RESET SLAVE ALL"],
            Kind::MySql => ["STOP REPLICA", "RESET REPLICA ALL"],
        } {
            root.ok(sql);
        }
    }

    /// It replicates from that server.
    pub fn follow(&self, node: Node, source: Node) {
        let port = self.address(source).port();
        let mut root = self.root(node);
        let sql = match self.kind {
            Kind::MariaDb => [
                "STOP SLAVE".to_owned(),
                // What it has written itself counts as well.
                "SET GLOBAL gtid_slave_pos = @@gtid_current_pos".to_owned(),
                format!(
                    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl', MASTER_PASSWORD='repl-pw', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1"
                ),
                "START SLAVE".to_owned(),
            ],
            Kind::MySql => [
                "STOP REPLICA".to_owned(),
                "DO 0".to_owned(),
                format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='repl', SOURCE_PASSWORD='repl-pw', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1"
                ),
                "START REPLICA".to_owned(),
            ],
        };
        for sql in sql {
            root.ok(&sql);
        }
    }

    /// Waits until `nodes` hold what `source` has committed up to now.
    pub fn wait_for(&self, source: Node, nodes: &[Node]) {
        let (position, wait) = match self.kind {
            Kind::MariaDb => ("SELECT @@gtid_current_pos", "MASTER_GTID_WAIT"),
            Kind::MySql => (
                "SELECT REPLACE(@@gtid_executed, '\\n', '')",
                "WAIT_FOR_EXECUTED_GTID_SET",
            ),
        };
        let position = self.root(source).query(position).cell();
        for node in nodes {
            let reached = self
                .root(*node)
                .query(&format!("SELECT {wait}('{position}', 20)"))
                .cell();
            assert_eq!(reached, "0", "{} does not follow {position}", node.name());
        }
    }

    /// Makes another server the primary, in the order in which nothing is lost: closes the old one, lets the new one catch up, opens
    /// it, and has the others follow it.
    pub fn switch_over(&self, old: Node, new: Node, others: &[Node]) {
        self.close(old);
        self.wait_for(old, &[new]);
        self.detach(new);
        self.open(new);
        for node in [&[old], others].concat() {
            self.follow(node, new);
        }
    }
}
