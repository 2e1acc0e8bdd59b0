//! Switchovers by hand on the servers, and a primary that dies and is replaced.

mod own_bed {
    use std::time::{Duration, Instant};

    use crate::common::{Kind, Node};
    use crate::number;
    use crate::stage::{GROUP, MONITOR, Stage};
    use crate::sysbench::{self, Habit, Sysbench};

    /// Nothing was written there but what came by replication: all servers are at the same place, by what each has executed.
    fn assert_no_strays(stage: &Stage) {
        let sql = match stage.bed.kind {
            Kind::MariaDb => "SELECT @@gtid_current_pos",
            Kind::MySql => "SELECT REPLACE(@@gtid_executed, '\\n', '')",
        };
        let places = GROUP.map(|node| stage.bed.root(node).query(sql).cell());
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    }

    fn switch(kind: Kind) {
        let rounds = number("ATLAS_SWITCHOVERS", 3);
        let stage = Stage::new(kind, MONITOR, |config| config);
        sysbench::tables(&stage.bed, stage.atlas.address());
        let at = stage.atlas.address();
        let mut single = Sysbench::start(at, 1, Habit::Statements, 30, 0);
        let transactions = Sysbench::start(at, 2, Habit::Transactions, 15, 0);
        let mut noticed = Vec::new();
        for round in 0..rounds {
            let [old, new, third] = [0, 1, 2].map(|step| GROUP[(round + step) % 3]);
            single.goes_on(&mut stage.bed.root(old), 20);
            stage.bed.switch_over(old, new, &[third]);
            noticed.push(stage.wait_role(new, "primary"));
            single.goes_on(&mut stage.bed.root(new), 20);
            stage.wait_role(old, "replica");
        }
        let (single, transactions) = (single.end(), transactions.end());
        single.assert_no_errors(&stage.atlas.log());
        // Who was in a transaction on a primary that was closed is told so, or loses it with the connection.
        for error in transactions.errors.keys() {
            let is_of_switch = ["1290 ", "1927 ", "2013 "]
                .iter()
                .any(|code| error.starts_with(code));
            assert!(is_of_switch, "{:#?}", transactions.errors);
        }
        let primary = GROUP[rounds % 3];
        let others: Vec<Node> = GROUP.into_iter().filter(|node| *node != primary).collect();
        stage.bed.wait_for(primary, &others);
        assert_no_strays(&stage);
        single.assert_kept(&stage.bed, &GROUP);
        transactions.assert_kept(&stage.bed, &GROUP);
        noticed.sort_unstable();
        let [median, slowest] = [noticed.len() / 2, noticed.len() - 1].map(|at| noticed[at]);
        println!(
            "figure: {}: {rounds} switchovers: {} single statements, 0 failed, 0 reconnects, longest event {:.0} ms; \
             {} statements in transactions, {} of these cut off; the new primary was chosen {:.0} ms (median) to {:.0} ms \
             (longest) after it took writes; 0 writes on an old primary",
            kind.name(),
            single.statements,
            single.longest,
            transactions.statements,
            transactions.failures(),
            median.as_secs_f64() * 1000.0,
            slowest.as_secs_f64() * 1000.0,
        );
        assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    }

    #[test]
    fn switch_mariadb() {
        switch(Kind::MariaDb);
    }

    #[test]
    fn switch_mysql() {
        switch(Kind::MySql);
    }

    fn promotion(kind: Kind) {
        let stage = Stage::new(kind, MONITOR, |config| config);
        sysbench::tables(&stage.bed, stage.atlas.address());
        let at = stage.atlas.address();
        let mut single = Sysbench::start(at, 1, Habit::Texts, 30, 0);
        let mut transactions = Sysbench::start(at, 2, Habit::Transactions, 15, 0);
        single.goes_on(&mut stage.bed.root(Node::Primary), 60);
        stage.bed.signal(Node::Primary, "KILL");
        let killed = Instant::now();
        // What they have got they apply.
        let [heir, other] = stage.wait_applied();
        stage.bed.detach(heir);
        stage.bed.follow(other, heir);
        let before: usize = rows(&stage, heir);
        stage.bed.open(heir);
        let promoted = Instant::now();
        let mut root = stage.bed.root(heir);
        let sql = "SELECT COUNT(*) FROM bed.ledger";
        while root.query(sql).cell().parse::<usize>().expect("a count") == before {
            single.assert_runs();
            transactions.assert_runs();
            assert!(
                promoted.elapsed() < Duration::from_secs(20),
                "{}",
                stage.atlas.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let (to_first, since_death) = (promoted.elapsed(), killed.elapsed());
        single.goes_on(&mut root, 60);
        let accounts = [single.end(), transactions.end()];
        // One for each thread at most: what it had under way when the server died.
        for account in &accounts {
            assert!(account.failures() <= 4, "{:#?}", account.errors);
        }
        stage.bed.wait_for(heir, &[other]);
        println!(
            "figure: {}: primary killed, replica promoted after {:.1} s: first write {:.0} ms after it took writes; errors: {} of single \
             statements in flight, {} of transactions in flight",
            kind.name(),
            (since_death - to_first).as_secs_f64(),
            to_first.as_secs_f64() * 1000.0,
            accounts[0].failures(),
            accounts[1].failures(),
        );
        assert!(to_first < Duration::from_secs(3), "{to_first:?}");
    }

    fn rows(stage: &Stage, node: Node) -> usize {
        let reply = stage
            .bed
            .root(node)
            .query("SELECT COUNT(*) FROM bed.ledger");
        reply.cell().parse().expect("a count")
    }

    #[test]
    fn promotion_mariadb() {
        promotion(Kind::MariaDb);
    }

    #[test]
    fn promotion_mysql() {
        promotion(Kind::MySql);
    }
}
