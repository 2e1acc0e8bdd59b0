//! Servers that die under load: replicas, of which no read knows, and the primary, which another one replaces.

mod own_bed {
    use std::time::Instant;

    use crate::common::{Bed, Expect, Firewall, Kind, Node, eventually};
    use crate::load::{self, Habit, Load};
    use crate::stage::{MONITOR, QUICK, Stage};

    /// kill -9, SIGSTOP, a clean stop and a firewall in front of a replica: no read fails, and it comes back.
    fn replicas_come_and_go(kind: Kind) {
        let bed = Bed::own(kind);
        let mut firewall = Firewall::before(bed.address(Node::Replica1));
        let way = firewall.address();
        let replicas = format!(
            "replicas = [\"{way}\", \"{}\"]",
            bed.address(Node::Replica2)
        );
        let stage = Stage::over(bed, QUICK, |config| config.group(&replicas))
            .reached_by(Node::Replica1, way);
        load::table(&stage.bed, Node::Primary);
        let habits = [Habit::Read, Habit::Read, Habit::Read, Habit::Insert];
        let load = Load::start(stage.atlas.address(), &habits);
        for way in ["KILL", "STOP", "TERM", "DROP"] {
            load.goes_on(200);
            let gone = Instant::now();
            match way {
                "DROP" => firewall.drop_all(),
                signal => stage.bed.signal(Node::Replica1, signal),
            }
            stage.wait_figure("up", Node::Replica1, "0");
            let out = gone.elapsed();
            load.goes_on(200);
            match way {
                "DROP" => firewall.let_through(),
                "STOP" => stage.bed.signal(Node::Replica1, "CONT"),
                _ => stage.bed.revive(Node::Replica1),
            }
            let back = Instant::now();
            stage.wait_figure("serving", Node::Replica1, "1");
            eprintln!(
                "{}, {way}: out after {out:?}, serves {:?} after its return",
                kind.name(),
                back.elapsed()
            );
        }
        load.goes_on(200);
        let account = load.end();
        account.assert_no_errors(&stage.atlas);
        assert_eq!(account.connections, habits.len());
    }

    /// B193: who is idle on a replica that dies, and who waits for its answer, is answered by the other one.
    fn one_dies(kind: Kind) {
        let stage = Stage::new(kind, QUICK, |config| {
            config.all_users("sharing = \"session\"")
        });
        let on_first = || loop {
            let mut client = stage.client();
            if stage.server(&mut client, "") == Node::Replica1 {
                return client;
            }
        };
        let (mut idle, mut busy) = (on_first(), on_first());
        busy.send(&busy.query_payload(b"SELECT SLEEP(2), @@server_id"));
        let mut root = stage.bed.root(Node::Replica1);
        eventually("it runs", || {
            let list = root.query("SHOW PROCESSLIST").rows();
            let mut texts = list.iter().filter_map(|row| row[7].as_deref());
            texts.any(|text| text.starts_with("SELECT SLEEP(2)"))
        });
        stage.bed.signal(Node::Replica1, "KILL");
        assert_eq!(stage.server(&mut idle, ""), Node::Replica2);
        let reply = busy.reply(Expect::Text);
        let answer = reply.assert_ok().rows().remove(0);
        let second = stage.bed.address(Node::Replica2).port().to_string();
        assert_eq!(answer[1], Some(second));
        // The sessions are the same ones, and go on.
        for client in [&mut idle, &mut busy] {
            assert_eq!(client.query("SELECT 7").cell(), "7");
        }
    }

    #[test]
    fn one_dies_mariadb() {
        one_dies(Kind::MariaDb);
    }

    #[test]
    fn one_dies_mysql() {
        one_dies(Kind::MySql);
    }

    /// A22: replication that is stopped, or held up by a lock: the replica leaves and returns, and no statement fails.
    fn lagging(kind: Kind) {
        let stage = Stage::new(kind, QUICK, |config| config.group("max_lag = \"2s\""));
        load::table(&stage.bed, Node::Primary);
        let load = Load::start(
            stage.atlas.address(),
            &[Habit::Read, Habit::Read, Habit::Insert],
        );
        load.goes_on(100);
        let [stop, start] = match kind {
            Kind::MariaDb => ["STOP SLAVE SQL_THREAD", "START SLAVE SQL_THREAD"],
            Kind::MySql => ["STOP REPLICA SQL_THREAD", "START REPLICA SQL_THREAD"],
        };
        let mut replica = stage.bed.root(Node::Replica1);
        for (held, free) in [
            (stop, start),
            ("LOCK TABLES bed.writes READ", "UNLOCK TABLES"),
        ] {
            stage.wait_figure("serving", Node::Replica1, "1");
            replica.ok(held);
            stage.wait_figure("serving", Node::Replica1, "0");
            assert_eq!(stage.figure("up", Node::Replica1).as_deref(), Some("1"));
            // What was on its way there has arrived.
            load.goes_on(20);
            let marks = stage.bed.marks();
            load.goes_on(200);
            let reads = |node| {
                let entries = marks.entries(node).into_iter();
                entries.filter(|e| e.text.contains("SELECT n FROM")).count()
            };
            assert_eq!(reads(Node::Replica1), 0, "{held}");
            assert!(reads(Node::Replica2) > 50, "{held}");
            replica.ok(free);
            stage.wait_figure("serving", Node::Replica1, "1");
        }
        let account = load.end();
        account.assert_no_errors(&stage.atlas);
    }

    #[test]
    fn lagging_mariadb() {
        lagging(Kind::MariaDb);
    }

    #[test]
    fn lagging_mysql() {
        lagging(Kind::MySql);
    }

    #[test]
    fn replicas_mariadb() {
        replicas_come_and_go(Kind::MariaDb);
    }

    #[test]
    fn replicas_mysql() {
        replicas_come_and_go(Kind::MySql);
    }

    /// The primary dies and a replica is promoted: only who had something under way there sees an error.
    fn promotion(kind: Kind) {
        let stage = Stage::new(kind, MONITOR, |config| config);
        load::table(&stage.bed, Node::Primary);
        let habits = [
            Habit::Insert,
            Habit::Insert,
            Habit::Prepared,
            Habit::Transaction,
            Habit::Transaction,
            Habit::Read,
        ];
        let load = Load::start(stage.atlas.address(), &habits);
        load.goes_on(200);
        stage.bed.signal(Node::Primary, "KILL");
        let killed = Instant::now();
        // What they have got they apply.
        let [heir, other] = stage.wait_applied();
        stage.bed.detach(heir);
        stage.bed.follow(other, heir);
        stage.bed.open(heir);
        let promoted = Instant::now();
        let noticed = stage.wait_role(heir, "primary");
        load.goes_on(200);
        let account = load.end();
        let first = account.answered.iter().find(|at| **at > promoted);
        let first = first.map(|at| at.duration_since(promoted));
        eprintln!(
            "{}: noticed {noticed:?} after the promotion, which came {:?} after the death; first write {first:?} after the promotion; {} errors",
            kind.name(),
            promoted.duration_since(killed),
            account.errors.len()
        );
        // One for each client that writes at most: what it had under way when the server died.
        assert!(account.errors.len() <= 5, "{:?}", account.errors);
        assert!(
            account.errors.iter().all(|(at, _)| *at < promoted),
            "{:?}\n{}",
            account.errors,
            stage.atlas.log()
        );
        assert!(noticed.as_secs() < 3, "{noticed:?}");
        stage.bed.wait_for(heir, &[other]);
        account.assert_no_strangers(&stage.bed, &[heir, other]);

        // It comes back as it was: to nobody's harm.
        stage.bed.revive(Node::Primary);
        stage.wait_role(Node::Primary, "fenced");
        let mut client = stage.client();
        assert_eq!(stage.server(&mut client, "/*primary*/"), heir);
        let log = stage.atlas.log();
        assert!(log.contains("takes writes beside the primary"), "{log}");
        for _ in 0..8 {
            assert_ne!(stage.server(&mut stage.client(), ""), Node::Primary);
        }
    }

    #[test]
    fn a_promotion_mariadb() {
        promotion(Kind::MariaDb);
    }

    #[test]
    fn a_promotion_mysql() {
        promotion(Kind::MySql);
    }

    /// B196: what is asked of a replica that hangs is answered by the other one, whatever was under way; and before it goes on.
    fn one_hangs(kind: Kind) {
        let stage = Stage::new(kind, QUICK, |config| {
            config.all_users("sharing = \"session\"")
        });
        let on_first = || loop {
            let mut client = stage.client();
            if stage.server(&mut client, "") == Node::Replica1 {
                return client;
            }
        };
        let [mut text, mut prepared, mut preparing, mut fresh] =
            [on_first(), on_first(), on_first(), on_first()];
        let statement = prepared.prepare("SELECT @@server_id");
        assert_eq!(prepared.execute(&statement, &[]).error(), None);
        stage.bed.signal(Node::Replica1, "STOP");
        text.send(&text.query_payload(b"SELECT @@server_id"));
        prepared.send(&prepared.execute_payload(statement.id, 0, &[], true));
        preparing.send(b"\x16SELECT @@server_id, 1");
        // Atlas has something to say first.
        fresh.ok("SET @kept = 'mine'");
        fresh.send(&fresh.query_payload(b"SELECT @kept, @@server_id"));
        let second = stage.bed.address(Node::Replica2).port().to_string();
        assert_eq!(text.reply(Expect::Text).assert_ok().cell(), second);
        assert_eq!(prepared.reply(Expect::Binary).error(), None);
        assert_eq!(preparing.reply(Expect::Prepare).error(), None);
        let row = fresh.reply(Expect::Text).assert_ok().rows().remove(0);
        assert_eq!(row, [Some("mine".to_owned()), Some(second)]);
        for client in [&mut text, &mut prepared, &mut preparing, &mut fresh] {
            assert_eq!(client.query("SELECT 7").cell(), "7");
        }
        stage.bed.signal(Node::Replica1, "CONT");
        stage.wait_figure("serving", Node::Replica1, "1");
    }

    #[test]
    fn one_hangs_mariadb() {
        one_hangs(Kind::MariaDb);
    }

    #[test]
    fn one_hangs_mysql() {
        one_hangs(Kind::MySql);
    }

    /// B204: a text that has been answered in part is not said again from its start.
    #[test]
    fn a_block_that_is_cut_off() {
        let stage = Stage::new(Kind::MariaDb, QUICK, |config| {
            config.group("primary_wait = \"500ms\"")
        });
        let mut client = stage.client();
        let marks = stage.bed.marks();
        let block = b"BEGIN NOT ATOMIC SELECT 1 AS b204; SELECT SLEEP(60); SELECT 2; END";
        let payload = client.query_payload(block);
        client.send(&payload);
        // The first result: its count, its column, its row, its end.
        let first: Vec<_> = (0..4)
            .map(|_| client.try_packet().expect("the first result").payload)
            .collect();
        assert_eq!(first[2], b"\x011");
        stage.bed.signal(Node::Primary, "KILL");
        let rest = client.read_to_close();
        let text = String::from_utf8_lossy(&rest);
        assert!(text.contains("Lost connection"), "{text}");
        stage.wait_figure("up", Node::Primary, "0");
        let arrived: Vec<_> = marks
            .find("b204")
            .into_iter()
            .filter(|(_, entry)| entry.text.starts_with("BEGIN"))
            .collect();
        assert_eq!(arrived.len(), 1, "{arrived:?}");
    }

    /// B196, B200: a primary that hangs keeps its role, and serves again when it goes on.
    #[test]
    fn a_primary_that_hangs() {
        let stage = Stage::new(Kind::MariaDb, QUICK, |config| {
            config.group("primary_wait = \"500ms\"")
        });
        load::table(&stage.bed, Node::Primary);
        stage.bed.signal(Node::Primary, "STOP");
        stage.wait_figure("up", Node::Primary, "0");
        assert_eq!(stage.role(Node::Primary).as_deref(), Some("primary"));
        // Reads go on; a new client's write fails in its time.
        let mut client = stage.client();
        client.ok("SELECT COUNT(*) FROM bed.writes");
        let reply = client.query("INSERT INTO bed.writes VALUES(1, 1, 1)");
        assert_eq!(reply.error_code(), 1105, "{:?}", reply.error());
        stage.bed.signal(Node::Primary, "CONT");
        stage.wait_figure("up", Node::Primary, "1");
        client.ok("INSERT INTO bed.writes VALUES(1, 2, 1)");
        assert_eq!(stage.role(Node::Primary).as_deref(), Some("primary"));
    }
}
