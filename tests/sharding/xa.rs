//! Writes over several groups: they are done as one server would do them, all of it or nothing, whoever dies at whatever step.

use crate::Stage;
use crate::common::{Bed, Node, Wire, eventually};
use crate::stage::seen;

/// Statements on the sharded tables, the same as on the whole ones.
const STATEMENTS: [&str; 16] = [
    "INSERT INTO log (id, s) VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd'), (4, 'e')",
    "INSERT INTO log VALUES (9, 'i'), (10, 'j')",
    "UPDATE log SET s = CONCAT(s, '!')",
    "UPDATE log SET s = 'x' WHERE id IN (0, 2, 3)",
    "UPDATE log SET s = 'x' WHERE id IN (0, 2, 3)",
    "INSERT INTO log (id, s) VALUES (3, 'n'), (4, 'n'), (5, 'n') ON DUPLICATE KEY UPDATE s = VALUES(s)",
    "REPLACE INTO log (id, s) VALUES (0, 'r'), (6, 'r'), (7, 'r')",
    "INSERT IGNORE INTO log (id, s) VALUES (0, 'dup'), (2, 'dup'), (11, 'new')",
    "DELETE FROM log WHERE id < 3 OR id = 10",
    "UPDATE ord SET n = amt WHERE code = 'A'",
    "UPDATE ord SET n = 1 WHERE amt = 12345",
    "INSERT INTO ord (uid, amt) VALUES (100, 1), (101, 1), (1, 1)",
    "INSERT INTO ord (uid, amt) VALUES (102, 1), (103, 'no number'), (104, 1)",
    "UPDATE ord SET nope = 1",
    "DELETE FROM item",
    "DELETE FROM item",
];

fn prepared(root: &mut Wire) -> usize {
    let reply = root.query("XA RECOVER");
    reply.assert_ok().rows().len()
}

/// Lines of decisions in the log of the process that runs now.
fn decisions(stage: &Stage<'_>) -> usize {
    let folder = stage.atlas.dir().join("atlas.decisions");
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.map(|text| text.matches("commit ").count()).sum()
}

#[test]
fn they_are_done_as_one() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for sql in STATEMENTS {
            let (ours, theirs) = (client.query(sql), direct.query(sql));
            assert_eq!(seen(&ours), seen(&theirs), "{sql}");
            for ask in ["SHOW WARNINGS", "SELECT ROW_COUNT()"] {
                let sorted = |wire: &mut Wire| {
                    let mut rows = wire.query(ask).assert_ok().rows();
                    rows.sort();
                    rows
                };
                let (ours, theirs) = (sorted(&mut client), sorted(&mut direct));
                if ask == "SHOW WARNINGS" {
                    assert_eq!(ours.len(), theirs.len(), "{sql}: {ours:?} {theirs:?}");
                } else {
                    assert_eq!(ours, theirs, "{sql}");
                }
            }
            for table in ["log", "ord", "item"] {
                let all = format!("SELECT * FROM {table}");
                let sorted = |wire: &mut Wire| {
                    let mut rows = wire.query(&all).assert_ok().rows();
                    rows.sort();
                    rows
                };
                assert_eq!(sorted(&mut client), sorted(&mut direct), "{sql}");
            }
        }
        assert!(decisions(&stage) >= 10, "{}", decisions(&stage));
        assert!(!stage.atlas.log().contains("left prepared"));
    }
}

#[test]
fn what_cannot_be_done_so_is_refused() {
    let insert = "INSERT INTO ord (uid, amt) VALUES (200, 1), (201, 1)";
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let mut client = stage.client();
        for begin in ["BEGIN", "SET autocommit = 0"] {
            client.ok(begin);
            client.ok("UPDATE ord SET amt = 9 WHERE uid = 2");
            let (code, _, text) = client.query(insert).error().unwrap();
            assert_eq!(code, 1179, "{text}");
            let amt = "SELECT amt FROM ord WHERE uid = 2";
            assert_eq!(client.query(amt).cell(), "9");
            client.ok("ROLLBACK");
            assert_eq!(client.query(amt).cell(), "2");
            client.ok("ROLLBACK");
        }
        client.ok("SET autocommit = 1");
        client.ok("CREATE TEMPORARY TABLE mine (id INT)");
        assert_eq!(client.query(insert).error_code(), 1105);
        let statement = stage.client().query("SELECT COUNT(*) FROM misc").cell();
        assert_eq!(statement, "2");

        let other = Stage::new(&bed, "transaction");
        for sql in [insert, "UPDATE ord SET amt = 1", "DELETE FROM ord"] {
            let (code, _, text) = other.client().query(sql).error().unwrap();
            let wanted = "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: ";
            assert!(code == 1105 && text.starts_with(wanted), "{text}");
            assert!(text.contains("multi_shard_writes = \"xa\""), "{text}");
        }
        let session = Stage::xa(&bed, "session");
        assert_eq!(session.client().query(insert).error_code(), 1105);
    }
}

#[test]
fn global_tables_are_written_in_every_group() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let both = |query: &str| {
            let here = format!("{}.zone", stage.schema);
            let there = format!("{}_b.zone", stage.schema);
            let of = |node, name: &str| seen(&bed.root(node).query(&query.replace("zone", name)));
            [of(Node::Primary, &here), of(Node::Second, &there)]
        };
        let qualified = format!("UPDATE {}.zone SET name = 'q' WHERE id < 3", stage.schema);
        for sql in [
            "INSERT INTO zone (id, name) VALUES (3, 'three'), (4, NULL)",
            "UPDATE zone SET name = CONCAT(name, id)",
            "INSERT INTO zone SELECT id + 10, name FROM zone WHERE id > 2",
            &qualified,
            "UPDATE zone SET name = 'nobody' WHERE id = 99",
            "UPDATE zone SET nope = 1",
            "DELETE FROM zone WHERE id > 12",
        ] {
            let plain = sql.replace(&format!("{}.zone", stage.schema), "zone");
            let (ours, theirs) = (client.query(sql), direct.query(&plain));
            assert_eq!(seen(&ours), seen(&theirs), "{sql}");
            let ask = "SELECT ROW_COUNT()";
            assert_eq!(seen(&client.query(ask)), seen(&direct.query(ask)), "{sql}");
            let all = "SELECT id, name FROM zone ORDER BY id";
            let wanted = seen(&direct.query(all));
            assert_eq!(both(all), [wanted.clone(), wanted.clone()], "{sql}");
            assert_eq!(seen(&client.query(all)), wanted, "{sql}");
        }
        let before = both("SELECT * FROM zone ORDER BY id");
        for (sql, why) in [
            ("UPDATE zone SET name = NOW()", "NOW"),
            ("UPDATE zone SET name = @@hostname", "@@"),
            ("DELETE FROM zone LIMIT 1", "LIMIT"),
            ("INSERT INTO zone SELECT k, k FROM misc", "every group"),
            (
                "INSERT INTO zone SELECT uid, code FROM ord WHERE uid = 1",
                "sharded",
            ),
        ] {
            let (code, _, text) = client.query(sql).error().unwrap();
            assert!(code == 1105 && text.contains(why), "{sql}: {text}");
        }
        client.ok("BEGIN");
        assert_eq!(client.query("DELETE FROM zone").error_code(), 1179);
        client.ok("ROLLBACK");
        // One group cannot do it: none does.
        let mut second = bed.root(Node::Second);
        second.ok(&format!(
            "ALTER TABLE {}_b.zone ADD UNIQUE (id)",
            stage.schema
        ));
        let (code, ..) = client
            .query("INSERT INTO zone VALUES (20, 'new'), (1, 'again')")
            .error()
            .unwrap();
        assert_eq!(code, 1062);
        assert_eq!(both("SELECT id, name FROM zone ORDER BY id"), before);
    }
}

#[test]
fn kill_query_undoes_it() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let mut second = bed.root(Node::Second);
        second.ok("BEGIN");
        second.ok(&format!(
            "INSERT INTO {}_b.ord (uid) VALUES (301)",
            stage.schema
        ));
        let mut client = stage.client();
        let id = client.query("SELECT CONNECTION_ID()").cell();
        let insert = "INSERT INTO ord (uid, amt) VALUES (300, 1), (301, 1)";
        let payload = client.query_payload(insert.as_bytes());
        client.send(&payload);
        let mut root = bed.root(Node::Second);
        let waits = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO%{}%(301, 1)%' AND ID <> CONNECTION_ID()",
            "ord"
        );
        eventually("it waits for the row", || root.query(&waits).cell() != "0");
        stage.client().ok(&format!("KILL QUERY {id}"));
        let reply = client.reply(crate::common::Expect::Text);
        assert_eq!(reply.error_code(), 1317);
        second.ok("ROLLBACK");
        let count = "SELECT uid FROM ord WHERE uid IN (300, 301)";
        assert!(client.query(count).assert_ok().rows().is_empty());
        client.ok(insert);
        assert_eq!(client.query(count).assert_ok().rows().len(), 2);
    }
}

mod own_bed {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::common::{Atlas, Expect, Kind};

    /// How far the statement has come when somebody dies.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Place {
        /// One group has done its part, the other waits for a row.
        Work,
        /// The second group is prepared, the first cannot be.
        Prepare,
        /// It is decided and the first group has committed; the second cannot.
        Commit,
    }

    /// A statement that has come so far, and what holds it there.
    struct Held<'s, 'b> {
        stage: &'s Stage<'b>,
        client: Option<Wire>,
        row: Option<Wire>,
        main: Option<Wire>,
        second: Option<Wire>,
        base: usize,
    }

    fn waits(bed: &Bed, node: Node, what: &str) -> bool {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '{what}%' AND ID <> CONNECTION_ID()"
        );
        bed.root(node).query(&sql).cell() != "0"
    }

    impl<'s, 'b> Held<'s, 'b> {
        fn at(stage: &'s Stage<'b>, atlas: &Atlas, place: Place, base: usize) -> Self {
            let bed = stage.bed;
            let schema = &stage.schema;
            let mut row = bed.root(Node::Second);
            row.ok("BEGIN");
            row.ok(&format!(
                "INSERT INTO {schema}_b.log_2 (id) VALUES ({})",
                base + 2
            ));
            let login = crate::common::Login::plain().schema(schema);
            let mut client = Wire::connect(atlas.address(), &login);
            let sql = format!(
                "INSERT INTO log (id, s) VALUES ({base}, 'x'), ({}, 'x')",
                base + 2
            );
            let payload = client.query_payload(sql.as_bytes());
            client.send(&payload);
            eventually("the second group waits for the row", || {
                waits(bed, Node::Second, "INSERT INTO")
            });
            let mut held = Self {
                stage,
                client: Some(client),
                row: Some(row),
                main: None,
                second: None,
                base,
            };
            if place == Place::Work {
                return held;
            }
            let lock = |node| {
                let mut root = bed.root(node);
                root.ok("FLUSH TABLES WITH READ LOCK");
                root
            };
            held.main = Some(lock(Node::Primary));
            held.row = None;
            eventually("the first group cannot prepare", || {
                waits(bed, Node::Primary, "XA PREPARE")
            });
            let mut second = bed.root(Node::Second);
            eventually("the second is prepared", || prepared(&mut second) == 1);
            if place == Place::Prepare {
                return held;
            }
            held.second = Some(lock(Node::Second));
            held.main = None;
            eventually("the second group cannot commit", || {
                waits(bed, Node::Second, "XA COMMIT")
            });
            let mut main = bed.root(Node::Primary);
            eventually("the first has committed", || {
                prepared(&mut main) == 0 && held.rows(Node::Primary) == 1
            });
            held
        }

        fn rows(&self, node: Node) -> usize {
            let schema = &self.stage.schema;
            let (table, id) = match node {
                Node::Second => (format!("{schema}_b.log_2"), self.base + 2),
                _ => (format!("{schema}.log_0"), self.base),
            };
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE id = {id}");
            let count = self.stage.bed.root(node).query(&sql).cell();
            count.parse().unwrap()
        }

        /// What was said to the second group is not done after all: its connection is killed.
        fn cut_second(&self) {
            let mut root = self.stage.bed.root(Node::Second);
            let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'XA COMMIT%'";
            for row in root.query(sql).assert_ok().rows() {
                let id = row[0].clone().unwrap();
                let _ = root.query(&format!("KILL {id}"));
            }
            eventually("it is gone", || {
                !waits(self.stage.bed, Node::Second, "XA COMMIT")
            });
        }

        /// Nothing holds it any more.
        fn let_go(&mut self) {
            (self.row, self.main, self.second) = (None, None, None);
        }

        /// All of it is there, or nothing, and nothing is left over.
        fn assert_over(&self, is_done: bool) {
            let bed = self.stage.bed;
            for node in [Node::Primary, Node::Second] {
                eventually("nothing is left prepared", || {
                    prepared(&mut bed.root(node)) == 0
                });
                eventually("all or nothing", || self.rows(node) == usize::from(is_done));
            }
        }
    }

    fn atlas_dies(kind: Kind) {
        let bed = Bed::own(kind);
        let stage = Stage::xa(&bed, "transaction");
        let mut atlas: Option<Atlas> = None;
        let places = [Place::Work, Place::Prepare, Place::Commit];
        for (at, place) in places.into_iter().enumerate() {
            let now = atlas.as_ref().unwrap_or(&stage.atlas);
            let mut held = Held::at(&stage, now, place, 400 + 4 * at);
            now.signal("KILL");
            eventually("it is dead", || {
                let asked = UnixStream::connect(now.dir().join("atlas.upgrade"));
                asked.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
            });
            if place == Place::Commit {
                held.cut_second();
                assert_eq!((held.rows(Node::Primary), held.rows(Node::Second)), (1, 0));
            }
            let next = now.start_again();
            if place != Place::Commit {
                // What was said before it died may be done when the new one has looked already.
                next.wait_log("ready: ");
            }
            held.let_go();
            held.assert_over(place == Place::Commit);
            atlas = Some(next);
        }
    }

    #[test]
    fn atlas_dies_mariadb() {
        atlas_dies(Kind::MariaDb);
    }

    #[test]
    fn atlas_dies_mysql() {
        atlas_dies(Kind::MySql);
    }

    fn a_client_vanishes(kind: Kind) {
        let bed = Bed::own(kind);
        let stage = Stage::xa(&bed, "transaction");
        let places = [Place::Work, Place::Prepare, Place::Commit];
        for (at, place) in places.into_iter().enumerate() {
            let mut held = Held::at(&stage, &stage.atlas, place, 400 + 4 * at);
            held.client = None;
            if place == Place::Commit {
                // Killed with the client; if it was not, this sees to it.
                held.cut_second();
            }
            held.let_go();
            held.assert_over(place == Place::Commit);
        }
    }

    #[test]
    fn a_client_vanishes_mariadb() {
        a_client_vanishes(Kind::MariaDb);
    }

    #[test]
    fn a_client_vanishes_mysql() {
        a_client_vanishes(Kind::MySql);
    }

    fn a_server_dies(kind: Kind) {
        let bed = Bed::own(kind);
        let stage = Stage::xa(&bed, "transaction");
        let places = [Place::Work, Place::Prepare, Place::Commit];
        for (at, place) in places.into_iter().enumerate() {
            let mut held = Held::at(&stage, &stage.atlas, place, 400 + 4 * at);
            bed.signal(Node::Second, "KILL");
            held.let_go();
            let mut client = held.client.take().unwrap();
            let reply = client.reply(Expect::Text);
            let is_done = reply.error().is_none();
            match place {
                Place::Work => assert!(!is_done),
                // The server was not asked between its answer and its death.
                Place::Prepare => {}
                Place::Commit => assert!(is_done, "{:?}", reply.error()),
            }
            if is_done {
                let warnings = client.query("SHOW WARNINGS");
                let text = seen(&warnings);
                assert!(text.contains("s1 has not confirmed its part yet"), "{text}");
                assert_eq!(held.rows(Node::Primary), 1);
            }
            bed.revive(Node::Second);
            held.assert_over(is_done);
            eventually("Atlas goes on", || {
                let client = Wire::try_connect(
                    stage.atlas.address(),
                    &crate::common::Login::plain().schema(&stage.schema),
                );
                client.is_ok_and(|mut client| {
                    let reply = client.query("UPDATE log SET s = 'y' WHERE id >= 400");
                    reply.error().is_none()
                })
            });
        }
    }

    #[test]
    fn a_server_dies_mariadb() {
        a_server_dies(Kind::MariaDb);
    }

    #[test]
    fn a_server_dies_mysql() {
        a_server_dies(Kind::MySql);
    }
}
