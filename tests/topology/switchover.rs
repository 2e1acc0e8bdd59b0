//! Switchovers by hand under load: nothing is lost, nothing lands on the old primary, nobody sees an error but who is in a
//! transaction.

mod own_bed {
    use std::time::Duration;

    use crate::common::{Kind, Node};
    use crate::load::{self, Habit, Load};
    use crate::stage::{GROUP, MONITOR, Stage};

    const WRITERS: [Habit; 6] = [
        Habit::Insert,
        Habit::Insert,
        Habit::Insert,
        Habit::Prepared,
        Habit::Prepared,
        Habit::Read,
    ];

    /// `ATLAS_ROUNDS=50` for more of them.
    fn rounds(kind: Kind, sharing: &str, count: usize) {
        let wanted = std::env::var("ATLAS_ROUNDS").ok();
        let count = wanted.map_or(count, |text| {
            text.parse().expect("ATLAS_ROUNDS is a number")
        });
        let stage = Stage::new(kind, MONITOR, |config| {
            config.all_users(&format!("sharing = \"{sharing}\""))
        });
        load::table(&stage.bed, Node::Primary);
        let load = Load::start(stage.atlas.address(), &WRITERS);
        let mut slowest = Duration::ZERO;
        for round in 0..count {
            load.goes_on(50);
            let [old, new, third] = [0, 1, 2].map(|step| GROUP[(round + step) % 3]);
            stage.bed.switch_over(old, new, &[third]);
            slowest = slowest.max(stage.wait_role(new, "primary"));
            // From here on the old one gets no write, not even one that it would refuse.
            let marks = stage.bed.marks();
            load.goes_on(50);
            let late: Vec<_> = marks
                .entries(old)
                .into_iter()
                .filter(|entry| entry.text.contains("INSERT"))
                .collect();
            assert!(late.is_empty(), "{late:?}\n{}", stage.atlas.log());
            stage.wait_role(old, "replica");
        }
        let account = load.end();
        eprintln!(
            "{}, {sharing}: {count} switchovers, {} writes, noticed within {slowest:?}",
            kind.name(),
            account.written.len()
        );
        account.assert_no_errors(&stage.atlas);
        assert_eq!(account.connections, WRITERS.len(), "sessions were kept");
        let primary = GROUP[count % 3];
        let others = GROUP
            .map(|node| node)
            .into_iter()
            .filter(|node| *node != primary);
        stage.bed.wait_for(primary, &others.collect::<Vec<_>>());
        account.assert_written(&stage.bed, &GROUP);
        assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    }

    #[test]
    fn by_hand_mariadb() {
        rounds(Kind::MariaDb, "transaction", 3);
    }

    #[test]
    fn by_hand_mysql() {
        rounds(Kind::MySql, "transaction", 3);
    }

    #[test]
    fn by_hand_with_connections_of_their_own() {
        rounds(Kind::MariaDb, "session", 2);
    }
}
