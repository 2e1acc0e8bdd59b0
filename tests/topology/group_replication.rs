//! MySQL's Group Replication in single-primary mode, by three real servers: the group moves its primary, and loses it.

mod own_bed {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use crate::common::{Bed, Kind, Node, eventually};
    use crate::load::{self, Habit, Load};
    use crate::stage::{GROUP, Stage};

    /// An account with what the manual asks for, and no more.
    const MONITOR: &str =
        "[monitor]\nuser = \"watcher\"\npassword = \"x\"\ninterval = \"200ms\"\ntimeout = \"1s\"\n";

    /// Makes a group of the three servers, of which the first is the primary.
    fn form_group(bed: &Bed) {
        let mut primary = bed.root(Node::Primary);
        primary.ok("CREATE USER watcher@'%' IDENTIFIED BY 'x'");
        primary.ok("GRANT REPLICATION CLIENT ON *.* TO watcher@'%'");
        primary.ok("GRANT SELECT ON performance_schema.replication_group_members TO watcher@'%'");
        bed.wait_replicas();
        // Ports for the servers' talk among themselves: held until all three are known.
        let held = GROUP.map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let places = held
            .each_ref()
            .map(|socket| socket.local_addr().expect("bound").to_string());
        drop(held);
        let seeds = places.join(",");
        for (node, place) in GROUP.into_iter().zip(&places) {
            let mut root = bed.root(node);
            if node != Node::Primary {
                bed.detach(node);
                bed.open(node);
            }
            root.ok("INSTALL PLUGIN group_replication SONAME 'group_replication.so'");
            for (name, value) in [
                ("group_name", "'8a94f357-aab4-11df-86ab-c80aa9429562'"),
                ("local_address", &format!("'{place}'")),
                ("group_seeds", &format!("'{seeds}'")),
                (
                    "advertise_recovery_endpoints",
                    &format!("'{}'", bed.address(node)),
                ),
                ("recovery_get_public_key", "ON"),
                // Who does not answer is put out soon.
                ("member_expel_timeout", "0"),
            ] {
                root.ok(&format!("SET GLOBAL group_replication_{name} = {value}"));
            }
            root.ok("CHANGE REPLICATION SOURCE TO SOURCE_USER='repl', SOURCE_PASSWORD='repl-pw' FOR CHANNEL 'group_replication_recovery'");
            if node == Node::Primary {
                root.ok("SET GLOBAL group_replication_bootstrap_group = ON");
                root.ok("START GROUP_REPLICATION");
                root.ok("SET GLOBAL group_replication_bootstrap_group = OFF");
            } else {
                root.ok("START GROUP_REPLICATION");
            }
        }
        eventually("all are in the group", || online(bed, Node::Primary) == 3);
    }

    /// How many members that one sees online.
    fn online(bed: &Bed, node: Node) -> usize {
        let sql = "SELECT 1 FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'";
        bed.root(node).query(sql).rows().len()
    }

    /// Who the group itself says is its primary, asked of that member.
    fn group_primary(bed: &Bed, asked: Node) -> Option<Node> {
        let sql = "SELECT MEMBER_PORT FROM performance_schema.replication_group_members WHERE MEMBER_ROLE = 'PRIMARY' AND MEMBER_STATE = 'ONLINE'";
        let rows = bed.root(asked).query(sql).rows();
        let port = rows.first()?.first()?.clone()?;
        GROUP
            .into_iter()
            .find(|node| bed.address(*node).port().to_string() == port)
    }

    #[test]
    fn the_primary_moves_and_dies() {
        let bed = Bed::own(Kind::MySql);
        form_group(&bed);
        let stage = Stage::over(bed, MONITOR, |config| config.group("max_lag = \"0s\""));
        let bed = &stage.bed;
        load::table(bed, Node::Primary);
        let habits = [
            Habit::Insert,
            Habit::Insert,
            Habit::Prepared,
            Habit::Read,
            Habit::Read,
        ];
        let load = Load::start(stage.atlas.address(), &habits);
        load.goes_on(200);
        for node in Node::REPLICAS {
            assert_eq!(stage.role(node).as_deref(), Some("replica"));
            assert_eq!(stage.figure("serving", node).as_deref(), Some("1"));
        }

        // The group gives the role to each of the others in turn.
        for (old, new) in [
            (Node::Primary, Node::Replica1),
            (Node::Replica1, Node::Replica2),
        ] {
            let uuid = bed.root(new).query("SELECT @@server_uuid").cell();
            bed.root(old)
                .query(&format!(
                    "SELECT group_replication_set_as_primary('{uuid}')"
                ))
                .assert_ok();
            assert_eq!(group_primary(bed, new), Some(new));
            let noticed = stage.wait_role(new, "primary");
            stage.wait_role(old, "replica");
            let marks = bed.marks();
            load.goes_on(200);
            let writes = |node| {
                let entries = marks.entries(node).into_iter();
                entries
                    .filter(|entry| entry.text.contains("INSERT INTO bed.writes"))
                    .count()
            };
            assert!(
                writes(new) > 50 && writes(old) == 0,
                "{}",
                stage.atlas.log()
            );
            eprintln!("moved to {}: noticed after {noticed:?}", new.name());
        }
        let account = load.end();
        account.assert_no_errors(&stage.atlas);
        assert_eq!(account.connections, habits.len(), "sessions were kept");
        bed.wait_for(Node::Replica2, &[Node::Primary, Node::Replica1]);
        account.assert_written(bed, &GROUP);

        // It dies, and the others choose.
        bed.root(Node::Replica2).ok("TRUNCATE bed.writes");
        let load = Load::start(
            stage.atlas.address(),
            &[Habit::Insert, Habit::Prepared, Habit::Read],
        );
        load.goes_on(100);
        bed.signal(Node::Replica2, "KILL");
        let killed = Instant::now();
        let mut heir = None;
        while heir.is_none() {
            assert!(killed.elapsed() < Duration::from_secs(60), "no heir");
            heir = group_primary(bed, Node::Primary).filter(|node| *node != Node::Replica2);
            std::thread::sleep(Duration::from_millis(20));
        }
        let heir = heir.expect("found");
        let chosen = killed.elapsed();
        let noticed = stage.wait_role(heir, "primary");
        eprintln!("the group chose after {chosen:?}; noticed {noticed:?} later");
        load.goes_on(100);
        let account = load.end();
        // What was under way when it died, of each client that writes.
        assert!(account.errors.len() <= 2, "{:?}", account.errors);
        assert!(noticed < Duration::from_secs(3), "{noticed:?}");

        // It comes back outside of the group: nobody is to write there, whether it is open or not.
        bed.revive(Node::Replica2);
        stage.wait_figure("up", Node::Replica2, "1");
        stage.wait_role(Node::Replica2, "replica");
        stage.wait_figure("serving", Node::Replica2, "0");
        stage.atlas.wait_log("has no part in its replication group");
        let mut readers: Vec<_> = (0..8).map(|_| stage.client()).collect();
        for reader in &mut readers {
            assert_ne!(stage.server(reader, ""), Node::Replica2);
        }
        bed.open(Node::Replica2);
        stage.wait_role(Node::Replica2, "fenced");
        let mut client = stage.client();
        assert_eq!(stage.server(&mut client, "/*primary*/"), heir);
    }
}
