//! Who dies: Atlas, a client, a server, at each step of a write over several groups.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Duration;

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
        // A lock that came before it would hold the work itself and not what follows.
        eventually("the first group has done its part", || {
            // A server tells the same of these for as long as it is asked again within a tenth of a second.
            std::thread::sleep(Duration::from_millis(150));
            let sql =
                "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_rows_modified = 1";
            bed.root(Node::Primary).query(sql).cell() == "1"
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

/// How often the group's server was asked what is prepared.
fn looks(bed: &Bed, node: Node) -> u64 {
    let mut root = bed.root(node);
    let row = root
        .query("SHOW GLOBAL STATUS LIKE 'Com_xa_recover'")
        .rows();
    row[0][1].as_deref().unwrap().parse().unwrap()
}

/// Another process begins by looking at what is prepared; what it finds of one that lives is that one's.
fn leaves_alone(held: &mut Held<'_, '_>, start: impl FnOnce() -> Atlas) -> Atlas {
    let bed = held.stage.bed;
    let nodes = [Node::Primary, Node::Second];
    let before = nodes.map(|node| looks(bed, node));
    let other = start();
    eventually("it has looked", || {
        std::iter::zip(nodes, before).all(|(node, before)| looks(bed, node) > before)
    });
    assert_eq!(prepared(&mut bed.root(Node::Second)), 1);
    held.let_go();
    let mut client = held.client.take().unwrap();
    client.reply(Expect::Text).assert_ok();
    assert_eq!(client.query("SHOW WARNINGS").rows().len(), 0);
    held.assert_over(true);
    other
}

/// The process that is taken over from ends what it has begun.
fn an_upgrade_comes(kind: Kind) {
    let bed = Bed::own(kind);
    let stage = Stage::xa(&bed, "transaction");
    let mut atlas: Option<Atlas> = None;
    for (at, place) in [Place::Prepare, Place::Commit].into_iter().enumerate() {
        let now = atlas.as_ref().unwrap_or(&stage.atlas);
        let mut held = Held::at(&stage, now, place, 400 + 4 * at);
        atlas = Some(leaves_alone(&mut held, || now.successor()));
    }
}

#[test]
fn an_upgrade_comes_mariadb() {
    an_upgrade_comes(Kind::MariaDb);
}

#[test]
fn an_upgrade_comes_mysql() {
    an_upgrade_comes(Kind::MySql);
}

/// Two instances with one folder: each leaves the other's alone while that lives, and finishes it when it is dead.
fn two_have_one_folder(kind: Kind) {
    let bed = Bed::own(kind);
    let stage = Stage::xa(&bed, "transaction");
    let text = std::fs::read_to_string(stage.atlas.config_path()).unwrap();
    let folder = stage.atlas.dir().join("atlas.decisions");
    let own = format!("[sharding]\ndecision_log = \"{}\"", folder.display());
    let text = text
        .replace(&stage.atlas.address().to_string(), "{listen}")
        .replace("[sharding]", &own);
    let mut held = Held::at(&stage, &stage.atlas, Place::Prepare, 400);
    let second = leaves_alone(&mut held, || Atlas::start(text.as_str()));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    // Both write.
    for (atlas, base) in [(&stage.atlas, 440), (&second, 444)] {
        let login = crate::common::Login::plain().schema(&stage.schema);
        let mut client = Wire::connect(atlas.address(), &login);
        client.ok(&format!(
            "INSERT INTO log (id, s) VALUES ({base}, 'x'), ({}, 'x')",
            base + 2
        ));
    }
    // The second dies behind its decision; the first finishes it, as soon as it looks, which a third does at once.
    let mut held = Held::at(&stage, &second, Place::Commit, 404);
    second.signal("KILL");
    held.cut_second();
    assert_eq!((held.rows(Node::Primary), held.rows(Node::Second)), (1, 0));
    let third = Atlas::start(text.as_str());
    held.let_go();
    held.assert_over(true);
    let told = "and is done there now";
    assert!(
        third.log().contains(told) || stage.atlas.log().contains(told),
        "{}",
        third.log()
    );
}

#[test]
fn two_have_one_folder_mariadb() {
    two_have_one_folder(Kind::MariaDb);
}

#[test]
fn two_have_one_folder_mysql() {
    two_have_one_folder(Kind::MySql);
}
