//! Reloads and upgrades of the program while clients work, come and go: nothing fails and nobody is refused.

mod own_bed {
    use std::time::{Duration, Instant};

    use crate::common::{Bed, Config, Kind, Node, config_for, eventually};
    use crate::number;
    use crate::stage::{GROUP, MONITOR, Stage};
    use crate::sysbench::{self, Habit, Sysbench};

    /// Connections that come and go, beside one that lasts.
    fn loads(stage: &Stage) -> [Sysbench; 3] {
        let at = stage.atlas.address();
        [
            Sysbench::start(at, 1, Habit::Statements, 30, 2),
            Sysbench::start(at, 2, Habit::Transactions, 15, 3),
            Sysbench::start(at, 3, Habit::Statements, 10, 0),
        ]
    }

    /// Other replicas, limits and accounts from one to the next.
    fn of_round(bed: &Bed, round: usize) -> Config {
        let nodes: &[Node] = match round % 3 {
            0 => &[Node::Replica1, Node::Replica2],
            1 => &[Node::Replica2],
            _ => &[Node::Replica1],
        };
        let replicas: Vec<String> = nodes
            .iter()
            .map(|node| format!("\"{}\"", bed.address(*node)))
            .collect();
        config_for(bed)
            .server("http_listen = \"127.0.0.1:0\"")
            .group(&format!("replicas = [{}]", replicas.join(", ")))
            .group("max_lag = \"1h\"")
            .append(MONITOR)
            .append(&format!("[pool]\nmax_connections = {}\n", 20 + round % 7))
    }

    fn reloads(kind: Kind) {
        let rounds = number("ATLAS_RELOADS", 30);
        let bed = Bed::own(kind);
        let first = of_round(&bed, 0);
        let stage = Stage::over(bed, "", |_| first);
        sysbench::tables(&stage.bed, stage.atlas.address());
        let mut loads = loads(&stage);
        let mut root = stage.bed.root(Node::Primary);
        for load in &mut loads {
            load.goes_on(&mut root, 10);
        }
        let done = || stage.atlas.log().matches("reload (signal): ").count();
        let mut slowest = Duration::ZERO;
        for round in 1..=rounds {
            let (before, begun) = (done(), Instant::now());
            stage.atlas.write_config(of_round(&stage.bed, round));
            stage.atlas.signal("HUP");
            eventually("the reload has come to an end", || done() > before);
            slowest = slowest.max(begun.elapsed());
        }
        for load in &mut loads {
            load.goes_on(&mut root, 10);
        }
        let accounts = loads.map(Sysbench::end);
        stage.bed.wait_replicas();
        for account in &accounts {
            account.assert_no_errors(&stage.atlas.log());
            account.assert_kept(&stage.bed, &GROUP);
        }
        println!(
            "figure: {}: {rounds} reloads: {} statements, 0 failed, 0 connections refused; the longest reload {:.0} ms",
            kind.name(),
            accounts.iter().map(|a| a.statements).sum::<u64>(),
            slowest.as_secs_f64() * 1000.0
        );
    }

    #[test]
    fn reloads_mariadb() {
        reloads(Kind::MariaDb);
    }

    #[test]
    fn reloads_mysql() {
        reloads(Kind::MySql);
    }

    /// Clients that never let go are told so at last, between two transactions; those that come and go notice nothing.
    fn upgrades(kind: Kind) {
        let rounds = number("ATLAS_UPGRADES", 3);
        let with = |config: Config| config.server("drain_timeout = \"20s\"");
        let mut stage = Stage::new(kind, MONITOR, with);
        sysbench::tables(&stage.bed, stage.atlas.address());
        let [churn, transactions, lasting] = loads(&stage);
        drop(lasting);
        let mut loads = [churn, transactions];
        let mut root = stage.bed.root(Node::Primary);
        let mut before = Vec::new();
        let mut slowest = Duration::ZERO;
        for _ in 0..rounds {
            loads
                .iter_mut()
                .for_each(|load| load.goes_on(&mut root, 15));
            let begun = Instant::now();
            let next = stage.atlas.successor();
            slowest = slowest.max(begun.elapsed());
            before.push(std::mem::replace(&mut stage.atlas, next));
        }
        loads
            .iter_mut()
            .for_each(|load| load.goes_on(&mut root, 15));
        let accounts = loads.map(Sysbench::end);
        for old in &mut before {
            assert!(old.wait(Duration::from_secs(40)).success());
        }
        stage.bed.wait_replicas();
        for account in &accounts {
            account.assert_no_errors(&stage.atlas.log());
            account.assert_kept(&stage.bed, &GROUP);
        }
        println!(
            "figure: {}: {rounds} upgrades: {} statements, 0 failed, 0 connections refused; the longest upgrade {:.0} ms",
            kind.name(),
            accounts.iter().map(|a| a.statements).sum::<u64>(),
            slowest.as_secs_f64() * 1000.0
        );
    }

    #[test]
    fn upgrades_mariadb() {
        upgrades(Kind::MariaDb);
    }

    #[test]
    fn upgrades_mysql() {
        upgrades(Kind::MySql);
    }
}
