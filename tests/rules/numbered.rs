//! Requirements on rules that have numbers of their own: a shadow that is asked what clients ask (B35), and rules that change while
//! clients work (B42).

use std::time::{Duration, Instant};

use super::common::{Atlas, Bed, Login, Node, Reply, Wire, config_for, eventually, unique_name};
use super::mirror::{Both, counts, with_next};
use super::{reload, rule, viewer, with_admin};

fn told(reply: &Reply) -> String {
    let payloads: Vec<_> = reply.packets.iter().map(|p| &p.payload).collect();
    format!("{payloads:02x?}")
}

/// Clients have the answers of their own servers, which get each statement once; the shadow gets the reads and no write, and what
/// comes out otherwise there is counted.
#[test]
fn b35_a_shadow_is_asked_what_clients_ask() {
    for bed in Bed::both() {
        let both = Both::on(&bed);
        let shadow = "match = { user = \"app\" }\naction = \"mirror\"\nto = \"next\"";
        let config = with_next(
            config_for(&bed),
            bed.address(Node::Second),
            &[rule("shadow", shadow)],
        );
        let atlas = Atlas::start(config);
        let mut client = both.client(&atlas);
        let login = Login::app().schema(both.schema());
        let mut direct = Wire::connect(bed.address(Node::Primary), &login);
        let reads = [
            "SELECT a, 'shadow-1' FROM t ORDER BY a",
            "SELECT COUNT(*) > 9, 'shadow-2' FROM u",
            "SELECT nothing, 'shadow-3' FROM t",
            // With more rows than there, and of a table that is not there.
            "SELECT a, 'shadow-4' FROM u",
            "SELECT a, 'shadow-5' FROM here",
        ];
        let wanted = reads.map(|sql| told(&direct.query(sql)));
        let marks = bed.marks();
        for (sql, wanted) in reads.iter().zip(&wanted) {
            assert_eq!(&told(&client.query(sql)), wanted, "{:?}: {sql}", bed.kind);
        }
        client.ok("INSERT INTO t VALUES (9, 'shadow-6')");
        client.ok("UPDATE t SET b = 'shadow-7' WHERE a = 1");
        let mut viewer = viewer(&atlas);
        // Run, other, failed, dropped, skipped.
        eventually("the reads are copied", || {
            counts(&mut viewer) == [4, 1, 1, 0, 2]
        });
        let ran = |node: Node, tag: &str| {
            let entries = marks.entries(node).into_iter();
            entries.filter(|entry| entry.text.contains(tag)).count()
        };
        for number in 1..=7 {
            let tag = format!("'shadow-{number}'");
            let own: usize = [Node::Primary, Node::Replica1, Node::Replica2]
                .iter()
                .map(|node| ran(*node, &tag))
                .sum();
            // What a replica has no column for is asked of the primary.
            let wanted = if number == 3 { 2 } else { 1 };
            assert_eq!(own, wanted, "{:?}: {tag} on its own servers", bed.kind);
            let there = ran(Node::Second, &tag);
            assert_eq!(there, usize::from(number < 6), "{:?}: {tag}", bed.kind);
        }
        let rows = |node: Node| {
            let sql = format!("SELECT COUNT(*) FROM {}.t", both.schema());
            bed.root(node).query(&sql).cell()
        };
        assert_eq!(
            (rows(Node::Primary), rows(Node::Second)),
            ("4".into(), "3".into())
        );
    }
}

/// Rules are in force for every client within seconds of their change, each version is told, and a statement that runs ends as it began.
#[test]
fn b42_rules_change_while_statements_run() {
    for bed in Bed::both() {
        let with = |rules: &[String]| with_admin(config_for(&bed)).append(&rules.join("\n"));
        let atlas = Atlas::start(with(&[]));
        let mut root = bed.root(Node::Primary);
        let lock = unique_name("b42");
        root.ok(&format!("SELECT GET_LOCK('{lock}', 0)"));
        let (mut busy, mut other) = (
            Wire::connect(atlas.address(), &Login::plain()),
            Wire::connect(atlas.address(), &Login::plain()),
        );
        other.ok("SELECT 'under-way'");
        let sql = format!("SELECT GET_LOCK('{lock}', 60), 'under-way'");
        let refuses =
            "match = { regex = \"under-way\" }\naction = \"reject\"\nmessage = \"no more\"";
        let refused = |wire: &mut Wire, sql: &str| {
            let error = wire.query(sql).error();
            error.is_some_and(|(code, _, text)| code == 1105 && text.contains("no more"))
        };
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| busy.query(&sql).cell());
            eventually("it runs", || {
                let list = root.query("SHOW FULL PROCESSLIST").rows();
                list.iter().flatten().flatten().any(|cell| *cell == sql)
            });
            let began = Instant::now();
            let said = reload(&atlas, with(&[rule("no", refuses)]));
            assert!(said.contains("version 2"), "{said}");
            assert!(refused(&mut other, "SELECT 'under-way'"));
            let mut late = Wire::connect(atlas.address(), &Login::plain());
            assert!(refused(&mut late, "SELECT 'under-way'"));
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "{:?}",
                began.elapsed()
            );
            root.ok(&format!("SELECT RELEASE_LOCK('{lock}')"));
            assert_eq!(answer.join().expect("an answer"), "1", "{:?}", bed.kind);
        });
        assert!(refused(&mut busy, &sql));
        // It has what it had.
        let holds = format!("SELECT IS_USED_LOCK('{lock}') IS NOT NULL");
        assert_eq!(busy.query(&holds).cell(), "1");
        let said = reload(&atlas, with(&[]));
        assert!(said.contains("version 3"), "{said}");
        assert_eq!(busy.query(&sql).cell(), "1");
    }
}
