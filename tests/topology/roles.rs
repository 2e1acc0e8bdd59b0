//! Who is the primary, told from the servers, and what sessions see of it.

mod own_bed {
    use std::time::Duration;

    use crate::common::{Expect, Kind, Login, Node, Param, Wire, eventually};
    use crate::load;
    use crate::stage::{QUICK, Stage};

    /// Sessions over a switchover in slow motion. B203: one that has committed without autocommit goes on, one that has not gets an
    /// error.
    fn sessions(kind: Kind) {
        let stage = Stage::new(kind, QUICK, |config| {
            config.user(
                "owned",
                "x",
                &[
                    "backend = { user = \"plain\", password = \"plain-pw\" }",
                    "sharing = \"session\"",
                ],
            )
        });
        let bed = &stage.bed;
        load::table(bed, Node::Primary);
        bed.root(Node::Primary)
            .ok("CREATE TABLE bed.ids(id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
        let owned = Login::new("owned", "x");
        let mut idle = [stage.client(), Wire::connect(stage.atlas.address(), &owned)];
        let mut statements = Vec::new();
        for client in &mut idle {
            client.ok("SET @kept = 'yes', SESSION group_concat_max_len = 4321");
            client.ok("SET autocommit = 0");
            client.ok("INSERT INTO bed.ids(v) VALUES(1)");
            client.ok("COMMIT");
            client.ok("USE bed");
            statements.push(client.prepare("INSERT INTO ids(v) VALUES(?)"));
        }
        let ids: Vec<String> = idle
            .iter_mut()
            .map(|client| client.query("SELECT LAST_INSERT_ID()").cell())
            .collect();
        for client in &mut idle {
            client.ok("COMMIT");
        }
        let mut in_transaction = stage.client();
        in_transaction.ok("BEGIN");
        in_transaction.ok("INSERT INTO bed.ids(v) VALUES(2)");
        let mut uncommitted = stage.client();
        uncommitted.ok("SET autocommit = 0");
        uncommitted.ok("INSERT INTO bed.ids(v) VALUES(2)");
        let mut with_table = stage.client();
        with_table.ok("CREATE TEMPORARY TABLE bed.temporary(a INT)");

        // Nobody is the primary now.
        bed.close(Node::Primary);
        stage.wait_role(Node::Primary, "replica");
        for client in [&mut in_transaction, &mut uncommitted, &mut with_table] {
            match client.try_query("SELECT 1") {
                Err(_) => {}
                Ok(reply) => assert_eq!(reply.error_code(), 1927, "{:?}", reply.error()),
            }
        }
        let mut reader = stage.client();
        assert_ne!(stage.server(&mut reader, ""), Node::Primary);
        let mut waiting = stage.client();
        waiting.set_timeout(Duration::from_secs(20));
        waiting.send(&waiting.query_payload(b"INSERT INTO bed.ids(v) VALUES(3)"));
        assert!(!waiting.speaks_within(Duration::from_millis(300)));

        bed.wait_for(Node::Primary, &[Node::Replica1]);
        bed.detach(Node::Replica1);
        bed.open(Node::Replica1);
        let reply = waiting.try_reply(Expect::Text).expect("it goes on");
        reply.assert_ok();
        stage.wait_role(Node::Replica1, "primary");
        for node in [Node::Primary, Node::Replica2] {
            bed.follow(node, Node::Replica1);
        }
        for ((client, statement), id) in idle.iter_mut().zip(&statements).zip(&ids) {
            assert_eq!(client.query("SELECT LAST_INSERT_ID()").cell(), *id);
            assert_eq!(
                client
                    .query("SELECT /*primary*/ CONCAT(@kept, @@group_concat_max_len, @@autocommit + 0, DATABASE())")
                    .cell(),
                "yes43210bed"
            );
            assert_eq!(stage.server(client, "/*primary*/"), Node::Replica1);
            client.execute(statement, &[Param::Int(4)]).assert_ok();
            client.ok("COMMIT");
        }
        let rows = bed
            .root(Node::Replica1)
            .query("SELECT GROUP_CONCAT(v ORDER BY v) FROM bed.ids")
            .cell();
        assert_eq!(rows, "1,1,3,4,4");
        stage
            .atlas
            .wait_log("it is read-only; writes wait for the next one");
        stage.atlas.wait_log("is the primary in place of");
    }

    #[test]
    fn sessions_mariadb() {
        sessions(Kind::MariaDb);
    }

    #[test]
    fn sessions_mysql() {
        sessions(Kind::MySql);
    }

    /// A38: two that take writes, one that comes back, one that restarts closed.
    #[test]
    fn two_that_take_writes() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let stage = Stage::new(kind, QUICK, |config| {
                config.group("primary_wait = \"500ms\"")
            });
            let bed = &stage.bed;
            load::table(bed, Node::Primary);
            let mut client = stage.client();
            let insert = |n: usize| format!("INSERT INTO bed.writes VALUES(0, {n}, 0)");
            let writes_to = |client: &mut Wire, n: usize, node: Node| {
                client.ok(&insert(n));
                let found = bed
                    .root(node)
                    .query(&format!("SELECT COUNT(*) FROM bed.writes WHERE n = {n}"))
                    .cell();
                assert_eq!(found, "1", "{}", node.name());
            };

            bed.detach(Node::Replica1);
            bed.open(Node::Replica1);
            stage.wait_role(Node::Replica1, "fenced");
            writes_to(&mut client, 1, Node::Primary);
            assert_eq!(stage.server(&mut stage.client(), ""), Node::Replica2);
            // Closing the first one is an operator's word.
            bed.close(Node::Primary);
            stage.wait_role(Node::Replica1, "primary");
            writes_to(&mut client, 2, Node::Replica1);
            // The old one opens again, by mistake.
            bed.open(Node::Primary);
            stage.wait_role(Node::Primary, "fenced");
            writes_to(&mut client, 3, Node::Replica1);
            // The new one restarts; its file says that it is a replica.
            bed.signal(Node::Replica1, "KILL");
            stage.wait_figure("up", Node::Replica1, "0");
            assert_eq!(client.query(&insert(4)).error_code(), 1105);
            bed.revive(Node::Replica1);
            stage.wait_role(Node::Replica1, "replica");
            let (code, _, text) = client.query(&insert(5)).error().expect("no primary");
            assert_eq!(code, 1105);
            assert!(text.contains("no primary in group main"), "{text}");
            assert_eq!(stage.role(Node::Primary).as_deref(), Some("fenced"));
            bed.open(Node::Replica1);
            stage.wait_role(Node::Replica1, "primary");
            writes_to(&mut client, 6, Node::Replica1);
            let old = bed
                .root(Node::Primary)
                .query("SELECT GROUP_CONCAT(n) FROM bed.writes")
                .cell();
            assert_eq!(old, "1");
        }
    }

    /// The configured primary is a replica when Atlas starts, and takes writes on top of it.
    #[test]
    fn the_configuration_is_of_yesterday() {
        for kind in [Kind::MariaDb, Kind::MySql] {
            let stage = Stage::new(kind, QUICK, |config| config);
            stage
                .bed
                .switch_over(Node::Primary, Node::Replica2, &[Node::Replica1]);
            stage.bed.open(Node::Primary);
            stage.wait_role(Node::Replica2, "primary");
            let atlas = crate::common::Atlas::start(stage.config(|config| config));
            let mut client = Wire::connect(atlas.address(), &Login::plain());
            assert_eq!(stage.server(&mut client, "/*primary*/"), Node::Replica2);
            // It follows, so that it serves reads.
            eventually("reads go to both others", || {
                let mut nodes: Vec<&str> = (0..8)
                    .map(|_| Wire::connect(atlas.address(), &Login::plain()))
                    .map(|mut client| stage.server(&mut client, "").name())
                    .collect();
                nodes.sort_unstable();
                nodes.dedup();
                nodes == ["primary", "replica1"]
            });
        }
    }

    /// With a fixed topology the difference is told, and nothing else happens.
    #[test]
    fn a_fixed_topology_tells_what_differs() {
        let stage = Stage::new(Kind::MariaDb, QUICK, |config| {
            config.group("topology = \"fixed\"")
        });
        let bed = &stage.bed;
        load::table(bed, Node::Primary);
        bed.switch_over(Node::Primary, Node::Replica1, &[Node::Replica2]);
        stage
            .atlas
            .wait_log("the configured primary, takes no writes: it is read-only");
        stage.atlas.wait_log(
            "configured as a replica, takes writes and replicates from no server of the group",
        );
        let mut client = stage.client();
        let reply = client.query("INSERT INTO bed.writes VALUES(1, 1, 1)");
        assert_eq!(reply.error_code(), 1290, "{:?}", reply.error());
        assert_eq!(stage.role(Node::Primary).as_deref(), Some("primary"));
        bed.switch_over(Node::Replica1, Node::Primary, &[Node::Replica2]);
        stage
            .atlas
            .wait_log("its servers are what the configuration says");
        client.ok("INSERT INTO bed.writes VALUES(1, 2, 1)");
        assert_eq!(
            stage
                .atlas
                .log()
                .matches("takes no writes: it is read-only")
                .count(),
            2
        );
    }
}
