//! Replicas that die, hang, are cut off or stopped, and replicas that fall behind: no statement fails, they leave and they return.

mod own_bed {
    use std::time::{Duration, Instant};

    use crate::common::{Bed, Firewall, Kind, Node, Wire};
    use crate::stage::{MONITOR, Stage};
    use crate::sysbench::{self, Habit, Sysbench};

    /// The ways in which a replica can be gone.
    const WAYS: [(&str, &str); 4] = [
        ("KILL", "kill -9"),
        ("STOP", "SIGSTOP"),
        ("TERM", "clean stop"),
        ("DROP", "packets dropped"),
    ];

    /// Two loads: single statements, whose reads are on replicas, and transactions.
    fn loads(stage: &Stage) -> [Sysbench; 2] {
        let at = stage.atlas.address();
        [
            Sysbench::start(at, 1, Habit::Statements, 40, 0),
            Sysbench::start(at, 2, Habit::Transactions, 20, 0),
        ]
    }

    fn both_go_on(loads: &mut [Sysbench; 2], root: &mut Wire) {
        for load in loads {
            load.goes_on(root, 60);
        }
    }

    fn end(stage: &Stage, loads: [Sysbench; 2], what: &str) {
        let accounts = loads.map(Sysbench::end);
        for account in &accounts {
            account.assert_no_errors(&stage.atlas.log());
        }
        stage.bed.wait_replicas();
        let all = [Node::Primary, Node::Replica1, Node::Replica2];
        for account in &accounts {
            account.assert_kept(&stage.bed, &all);
        }
        println!(
            "figure: {}: {what}: {} statements, 0 failed, longest event {:.0} ms",
            stage.bed.kind.name(),
            accounts.iter().map(|a| a.statements).sum::<u64>(),
            accounts.iter().map(|a| a.longest).fold(0.0, f64::max),
        );
    }

    /// With the default interval of checks: out within `fall` of them, back within `rise` and what a slow start takes.
    fn come_and_go(kind: Kind) {
        let bed = Bed::own(kind);
        let mut firewall = Firewall::before(bed.address(Node::Replica1));
        let way = firewall.address();
        let replicas = format!(
            "replicas = [\"{way}\", \"{}\"]",
            bed.address(Node::Replica2)
        );
        let stage = Stage::over(bed, MONITOR, |config| config.group(&replicas))
            .reached_by(Node::Replica1, way);
        sysbench::tables(&stage.bed, stage.atlas.address());
        let mut root = stage.bed.root(Node::Primary);
        let mut loads = loads(&stage);
        for (way, name) in WAYS {
            both_go_on(&mut loads, &mut root);
            let gone = Instant::now();
            match way {
                "DROP" => firewall.drop_all(),
                signal => stage.bed.signal(Node::Replica1, signal),
            }
            stage.wait_figure("up", Node::Replica1, "0");
            let out = gone.elapsed();
            both_go_on(&mut loads, &mut root);
            match way {
                "DROP" => firewall.let_through(),
                "STOP" => stage.bed.signal(Node::Replica1, "CONT"),
                _ => stage.bed.revive(Node::Replica1),
            }
            let back = Instant::now();
            stage.wait_figure("serving", Node::Replica1, "1");
            println!(
                "figure: {}: {name} of a replica: out after {:.1} s, serves {:.1} s after it is back",
                stage.bed.kind.name(),
                out.as_secs_f64(),
                back.elapsed().as_secs_f64()
            );
            // `fall` checks of an interval and a timeout of a second each.
            assert!(out < Duration::from_secs(8), "{name}: {out:?}");
        }
        both_go_on(&mut loads, &mut root);
        end(&stage, loads, "a replica dies in four ways");
    }

    #[test]
    fn come_and_go_mariadb() {
        come_and_go(Kind::MariaDb);
    }

    #[test]
    fn come_and_go_mysql() {
        come_and_go(Kind::MySql);
    }

    /// A replica whose replication is stopped, held up by a lock, or delayed.
    fn fall_behind(kind: Kind) {
        let stage = Stage::new(kind, MONITOR, |config| config.group("max_lag = \"2s\""));
        sysbench::tables(&stage.bed, stage.atlas.address());
        let mut root = stage.bed.root(Node::Primary);
        let mut replica = stage.bed.root(Node::Replica1);
        let mut loads = loads(&stage);
        let (stop, start, change, delay) = match kind {
            Kind::MariaDb => (
                "STOP SLAVE SQL_THREAD",
                "START SLAVE SQL_THREAD",
                "CHANGE MASTER TO",
                "MASTER_DELAY",
            ),
            Kind::MySql => (
                "STOP REPLICA SQL_THREAD",
                "START REPLICA SQL_THREAD",
                "CHANGE REPLICATION SOURCE TO",
                "SOURCE_DELAY",
            ),
        };
        let delayed = |seconds: u32| {
            let change = format!("{change} {delay} = {seconds}");
            match kind {
                // It wants both threads to stand still for that.
                Kind::MariaDb => ["STOP SLAVE".to_owned(), change, "START SLAVE".to_owned()],
                Kind::MySql => [stop.to_owned(), change, start.to_owned()],
            }
        };
        let one = |sql: &str| [sql.to_owned(), "DO 0".to_owned(), "DO 0".to_owned()];
        let lock = "LOCK TABLES bed.ledger READ, bed.sbtest1 READ, bed.sbtest2 READ";
        for (name, held, free) in [
            ("SQL thread stopped", one(stop), one(start)),
            ("LOCK TABLES", one(lock), one("UNLOCK TABLES")),
            ("delayed by 6 s", delayed(6), delayed(0)),
        ] {
            both_go_on(&mut loads, &mut root);
            stage.wait_figure("serving", Node::Replica1, "1");
            let begun = Instant::now();
            for sql in &held {
                replica.ok(sql);
            }
            stage.wait_figure("serving", Node::Replica1, "0");
            let out = begun.elapsed();
            assert_eq!(stage.figure("up", Node::Replica1).as_deref(), Some("1"));
            // What was on its way there has arrived.
            both_go_on(&mut loads, &mut root);
            let marks = stage.bed.marks();
            both_go_on(&mut loads, &mut root);
            let reads = |node| {
                let entries = marks.entries(node).into_iter();
                entries.filter(|e| e.text.contains("FROM sbtest")).count()
            };
            assert_eq!(reads(Node::Replica1), 0, "{name}");
            assert!(reads(Node::Replica2) > 50, "{name}");
            let freed = Instant::now();
            for sql in &free {
                replica.ok(sql);
            }
            stage.wait_figure("serving", Node::Replica1, "1");
            println!(
                "figure: {}: {name}, max_lag 2 s: no reads after {:.1} s, reads again {:.1} s after its end",
                stage.bed.kind.name(),
                out.as_secs_f64(),
                freed.elapsed().as_secs_f64()
            );
        }
        end(&stage, loads, "a replica falls behind in three ways");
    }

    #[test]
    fn fall_behind_mariadb() {
        fall_behind(Kind::MariaDb);
    }

    #[test]
    fn fall_behind_mysql() {
        fall_behind(Kind::MySql);
    }
}
