//! Variations on the reports about log-ins and changes of user: what a server says and does at their end, on connections that other
//! clients have used before.

use super::common::{Kind, Login, Wire, assert_same};
use super::stage::Stage;
use atlas::wire::Capabilities;

/// One connection to each server, which somebody else has used.
fn shared(kind: Kind) -> (Stage, Wire) {
    let few = "[pool]\nmin_idle = 0\nmax_connections = 1";
    let stage = Stage::with(kind, "", |config| config.append(few));
    let mut other = stage.client_as(&Login::plain());
    other.ok("SET NAMES latin1");
    use_up(&mut other);
    (stage, other)
}

fn use_up(other: &mut Wire) {
    other.ok("USE mysql");
    other.ok("SELECT 1 FOR UPDATE");
}

/// B176: the OK at the end of a log-in tells of the schema, whoever had the connection before.
#[test]
fn b176_a_log_in_tells_of_its_schema() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let (stage, mut other) = shared(kind);
        let end = |wire: &Wire| wire.login_packets.last().expect("an OK").payload.clone();
        for login in [
            stage.login(),
            Login::plain(),
            stage.login().without(Capabilities::SESSION_TRACK),
            stage.login().without(Capabilities::DEPRECATE_EOF),
        ] {
            let mut direct = Wire::connect(stage.bed.address(super::common::Node::Primary), &login);
            use_up(&mut other);
            let mut client = stage.client_as(&login);
            assert_eq!(end(&client), end(&direct), "{login:?}");
            // Twice: the second time the connection is in that schema already.
            for _ in 0..2 {
                let told = |packets: Vec<super::common::Packet>| {
                    packets.last().expect("an OK").payload.clone()
                };
                let expected = told(direct.change_user(&login).expect("a change of user"));
                let found = told(client.change_user(&login).expect("a change of user"));
                assert_eq!(found, expected, "{login:?}");
            }
            use_up(&mut other);
            let found = told_by_change(&mut client, &login);
            assert_eq!(found, told_by_change(&mut direct, &login), "{login:?}");
        }
    }
}

fn told_by_change(wire: &mut Wire, login: &Login) -> Vec<u8> {
    let packets = wire.change_user(login).expect("a change of user");
    packets.last().expect("an OK").payload.clone()
}

/// B091, B067: COM_CHANGE_USER has two bytes for the collation, a log-in one.
#[test]
fn b091_a_change_of_user_to_a_collation_with_a_large_id() {
    let question =
        "SELECT @@character_set_client, @@collation_connection, @@character_set_results, 'x' = 'X'";
    for (kind, ids) in [
        (
            Kind::MySql,
            &[45, 255, 256, 278, 303, 309, 323, 400, 65535][..],
        ),
        (Kind::MariaDb, &[45, 224, 256, 278, 400][..]),
    ] {
        let (stage, mut other) = shared(kind);
        let (mut direct, mut client) = (stage.direct(), stage.client());
        for id in ids {
            let login = stage.login().charset(*id);
            told_by_change(&mut direct, &login);
            told_by_change(&mut client, &login);
            for sql in [question, &format!("{question} FROM t LIMIT 1")] {
                use_up(&mut other);
                assert_same(
                    &format!("{id}: {sql}"),
                    &direct.query(sql),
                    &client.query(sql),
                    &[],
                );
            }
        }
        // What it was before does not stay.
        told_by_change(&mut direct, &stage.login());
        told_by_change(&mut client, &stage.login());
        assert_same(
            question,
            &direct.query(question),
            &client.query(question),
            &[],
        );
    }
    // MariaDB takes no such id in a statement: its refusal is told.
    let (stage, _other) = shared(Kind::MariaDb);
    let mut client = stage.client();
    let refused = client.change_user(&stage.login().charset(2304));
    assert!(
        matches!(
            refused,
            Err(super::common::Refused::Error { code: 1115, .. })
        ),
        "{refused:?}"
    );
}
