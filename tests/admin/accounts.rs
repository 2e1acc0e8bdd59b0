//! Accounts and networks that are added and removed, with the original's words.

use super::common::{Bed, Kind, Login, Node, Refused, Wire};
use super::stage::{Stage, error, rows};

fn code(refused: Result<Wire, Refused>) -> u16 {
    match refused {
        Err(Refused::Error { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn networks() {
    let stage = Stage::new(Kind::MariaDb);
    let mut admin = stage.operator();
    let connect = || Wire::try_connect(stage.atlas.address(), &Login::plain());
    admin.ok("ADD CLIENT 10.9.9.9;");
    assert_eq!(code(connect()), 1130);
    assert_eq!(
        error(&mut admin, "add client 10.9.9.9").2,
        "this client is exist"
    );
    admin.ok("ADD CLIENT 127.0.0");
    drop(connect().expect("allowed"));
    assert_eq!(
        rows(&mut admin, "SELECT * FROM clients"),
        [["10.9.9.9"], ["127.0.0.0/24"]]
    );
    admin.ok("REMOVE CLIENT 127.0.0");
    assert_eq!(code(connect()), 1130);
    assert_eq!(
        error(&mut admin, "REMOVE CLIENT 127.0.0.1").2,
        "this client is NOT exist"
    );
    // The last one: everyone again, as in the original.
    admin.ok("REMOVE CLIENT 10.9.9.9");
    drop(connect().expect("allowed"));
    assert!(
        error(&mut admin, "ADD CLIENT nonsense")
            .2
            .contains("nonsense")
    );
}

#[test]
fn accounts() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| {
            config.append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"")
        });
        let mut admin = stage.operator();
        let connect = |user: &str, password: &str| {
            Wire::try_connect(stage.atlas.address(), &Login::new(user, password))
        };
        admin.ok("REMOVE PWD plain;");
        assert_eq!(code(connect("plain", "plain-pw")), 1045);
        assert_eq!(
            error(&mut admin, "REMOVE PWD plain").2,
            "this user is NOT exist"
        );
        admin.ok("ADD PWD plain:plain-pw");
        // It is an account on the servers as well, so it can do something.
        assert_eq!(
            connect("plain", "plain-pw")
                .expect("known")
                .query("SELECT 1")
                .cell(),
            "1"
        );
        assert_eq!(
            error(&mut admin, "ADD PWD plain:other").2,
            "this user is exist"
        );
        // Encrypted by the original.
        admin.ok("ADD ENPWD old:/iZxz+0GRoA=");
        drop(connect("old", "123456").expect("known"));
        assert_eq!(code(connect("old", "/iZxz+0GRoA=")), 1045);
        assert_eq!(
            error(&mut admin, "ADD ENPWD new:nonsense").2,
            "failed to decrypt"
        );
        let names: Vec<String> = rows(&mut admin, "SELECT * FROM pwds")
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        assert!(
            names.contains(&"plain".to_owned()) && names.contains(&"old".to_owned()),
            "{names:?}"
        );
        // B280: nothing of a password is in the log or among the events.
        let events = format!("{:?}", rows(&mut admin, "SHOW EVENTS"));
        for text in [stage.atlas.log(), events] {
            assert!(
                !text.contains("plain-pw") && !text.contains("123456") && !text.contains("iZxz"),
                "{text}"
            );
        }
    }
}

/// With several groups an account has one: that of all others, or the one that is named.
#[test]
fn accounts_with_several_groups() {
    let bed = Bed::mysql();
    let group = format!(
        "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\n",
        bed.address(Node::Second)
    );
    let stage = Stage::on(bed, |config| {
        config.all_users("group = \"main\"").append(&group)
    });
    let mut admin = stage.operator();
    let server = |name: &str, password: &str| {
        let mut client = Wire::connect(stage.atlas.address(), &Login::new(name, password));
        client.query("SELECT /*master*/ @@port").cell()
    };
    let port = |node| stage.bed.address(node).port().to_string();
    admin.ok("REMOVE PWD plain");
    admin.ok("ADD PWD plain:plain-pw");
    assert_eq!(server("plain", "plain-pw"), port(Node::Primary));
    admin.ok("REMOVE PWD plain");
    admin.ok("ADD GPWD s1 plain:plain-pw;");
    assert_eq!(server("plain", "plain-pw"), port(Node::Second));
    // There are accounts of two groups now.
    let (code, _, text) = error(&mut admin, "ADD PWD more:pw");
    assert!(
        code == 1105 && text.contains("ADD GPWD main user:password"),
        "{text}"
    );
    let (_, _, text) = error(&mut admin, "ADD GPWD nowhere more:pw");
    assert!(text.contains("there is no group nowhere"), "{text}");
    let (_, _, text) = error(&mut admin, "ADD GENPWD s1 more:nonsense");
    assert_eq!(text, "failed to decrypt");
    admin.ok("SAVE CONFIG");
    let saved = std::fs::read_to_string(stage.atlas.config_path()).expect("the file");
    let (_, account) = saved.split_once("name = \"plain\"").expect("it is there");
    assert!(account.contains("group = \"s1\""), "{saved}");
}
