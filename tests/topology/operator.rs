//! What an operator decides about roles on the admin port of a group that follows its servers.

mod own_bed {
    use std::collections::BTreeSet;

    use crate::common::{Kind, Login, Node, Wire};
    use crate::load::{self, Habit, Load};
    use crate::stage::{QUICK, Stage};

    const ADMIN: &str =
        "[admin]\nusers = [{ name = \"boss\", password = \"x\", role = \"operator\" }]\n";

    /// A39: `SWITCH PRIMARY` chooses between servers that take writes, and only between those.
    fn switch(kind: Kind) {
        let stage = Stage::new(kind, QUICK, |config| {
            config
                .server("admin_listen = \"127.0.0.1:0\"")
                .append(ADMIN)
        });
        let bed = &stage.bed;
        let admin = stage.atlas.log();
        let (before, _) = admin.split_once(" (admin port)").expect("it is named");
        let admin = before.rsplit(' ').next().expect("an address");
        let mut boss = Wire::connect(admin.parse().expect("an address"), &Login::new("boss", "x"));
        load::table(bed, Node::Primary);
        let to = |node| format!("SWITCH PRIMARY main TO {}", bed.address(node));

        // One that takes no writes is none, and neither is a stranger.
        for node in [Node::Replica1, Node::Second] {
            let (code, _, text) = boss.query(&to(node)).error().expect("refused");
            assert_eq!(code, 1105, "{text}");
        }
        assert_eq!(stage.role(Node::Primary).as_deref(), Some("primary"));

        bed.detach(Node::Replica1);
        bed.open(Node::Replica1);
        stage.wait_role(Node::Replica1, "fenced");
        let load = Load::start(
            stage.atlas.address(),
            &[Habit::Insert, Habit::Prepared, Habit::Read],
        );
        load.goes_on(100);
        boss.ok(&to(Node::Replica1));
        // It is done when it is said to be: no write reaches the old one that comes after.
        let marks = bed.marks();
        let mut client = stage.client();
        client.ok("INSERT INTO bed.writes VALUES(77, 1, 1)");
        load.goes_on(100);
        let writes = |node| {
            let entries = marks.entries(node).into_iter();
            entries
                .filter(|e| e.text.contains("INSERT INTO bed.writes"))
                .count()
        };
        assert_eq!(writes(Node::Primary), 0, "{}", stage.atlas.log());
        assert!(writes(Node::Replica1) > 50);
        stage.wait_role(Node::Primary, "fenced");
        assert_eq!(stage.role(Node::Replica1).as_deref(), Some("primary"));
        let account = load.end();
        // What was under way on the old one, which goes on to take writes, was cut off.
        let is_cut = |text: &str| text.contains("it is no longer the primary");
        assert!(account.errors.len() <= 2, "{:?}", account.errors);
        assert!(
            account.errors.iter().all(|(_, text)| is_cut(text)),
            "{:?}",
            account.errors
        );
        // The two have each a part of what was written, and none both.
        let (old, new) = (
            load::found(bed, Node::Primary),
            load::found(bed, Node::Replica1),
        );
        assert!(old.is_disjoint(&new));
        let all: BTreeSet<_> = old.union(&new).copied().collect();
        assert!(account.written.is_subset(&all));
        let known: BTreeSet<_> = account.written.union(&account.unknown).copied().collect();
        let strange: Vec<_> = all.difference(&known).collect();
        assert_eq!(strange, [&(77, 1)]);
        // The event says who did it.
        let events = boss.query("SHOW EVENTS").rows();
        let is_it = |row: &&Vec<Option<String>>| {
            let has = |text: &str| row.iter().flatten().any(|cell| cell.contains(text));
            has("boss") && has("is the primary in place of")
        };
        assert!(events.iter().any(|row| is_it(&row)), "{events:?}");

        // And back again; a viewer of the group sees it at once.
        boss.ok(&to(Node::Primary));
        assert_eq!(
            stage.server(&mut stage.client(), "/*primary*/"),
            Node::Primary
        );
    }

    #[test]
    fn switch_primary_mariadb() {
        switch(Kind::MariaDb);
    }

    #[test]
    fn switch_primary_mysql() {
        switch(Kind::MySql);
    }
}
