//! Sessions that need each other's server connections: nobody waits for one that its session would give back, whatever that session
//! does meanwhile. Fair shares and bounds of the pool are in `sharing`.

mod common;

use std::time::Duration;

use common::{Atlas, Bed, Expect, Kind, Login, Node, Wire, config_for};

/// Leaves a warning, so that the connection stays with its session until somebody needs it.
fn warns(seconds: f32, hint: &str) -> String {
    format!("SELECT SLEEP({seconds}) + CAST('x' AS SIGNED){hint}")
}

fn stage(kind: Kind) -> (Bed, Atlas) {
    let bed = Bed::of(kind);
    let atlas = Atlas::start(
        config_for(&bed)
            .group(&format!(
                "replicas = [{{ address = \"{}\" }}]",
                bed.address(Node::Replica1)
            ))
            .append("[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"20s\""),
    );
    (bed, atlas)
}

fn client(atlas: &Atlas) -> Wire {
    let mut wire = Wire::connect(atlas.address(), &Login::plain());
    wire.set_timeout(Duration::from_secs(40));
    wire
}

fn send(wire: &mut Wire, sql: &str) {
    let payload = wire.query_payload(sql.as_bytes());
    wire.send(&payload);
}

/// Each has the only connection to one server, tied by a warning, and its next statement, which is there already, needs the other's.
#[test]
fn two_sessions_do_not_wait_for_each_other() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let (_bed, atlas) = stage(kind);
        let (mut writer, mut reader) = (client(&atlas), client(&atlas));
        send(&mut reader, &warns(0.8, ""));
        send(&mut reader, "SELECT 'primary' /*master*/");
        send(&mut writer, &warns(0.4, " /*master*/"));
        send(&mut writer, "SELECT 'replica'");
        for (wire, answer) in [(&mut writer, "replica"), (&mut reader, "primary")] {
            assert_eq!(wire.reply(Expect::Text).cell(), "0");
            assert_eq!(wire.reply(Expect::Text).cell(), answer);
        }
    }
}

/// The connection comes to be on call only when the other waits already.
#[test]
fn a_wait_ends_when_the_connection_comes_on_call() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let (bed, atlas) = stage(kind);
        let (mut first, mut second) = (client(&atlas), client(&atlas));
        let mut direct = Wire::connect(bed.address(Node::Primary), &Login::plain());
        send(&mut first, &warns(0.5, " /*master*/"));
        send(&mut second, "SELECT 'mine' /*master*/");
        assert_eq!(first.reply(Expect::Text).cell(), "0");
        assert_eq!(second.reply(Expect::Text).cell(), "mine");
        assert_eq!(direct.query(&warns(0.0, "")).cell(), "0");
        // What was tied to the connection was asked before it went.
        for question in ["SHOW WARNINGS", "SELECT @@warning_count", "SHOW WARNINGS"] {
            let told = direct.query(question).rows();
            assert_eq!(first.query(question).rows(), told, "{question}");
        }
    }
}
