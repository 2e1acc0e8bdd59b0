//! Who may come and who not. Who may not is told once and is out, and leaves nothing behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::common::{Kind, Login, Refused, Wire, eventually};
use super::stage::{OPERATOR, PASSWORD, Stage, VIEWER, error};

/// Both plugins, for both roles; and what is wrong with the others.
#[test]
fn passwords() {
    let stage = Stage::new(Kind::MariaDb);
    for plugin in ["caching_sha2_password", "mysql_native_password"] {
        for user in [OPERATOR, VIEWER] {
            Wire::connect(stage.admin, &Login::new(user, PASSWORD).plugin(plugin)).quit();
        }
        for (user, password) in [
            (OPERATOR, "wrong"),
            (OPERATOR, ""),
            ("nobody", PASSWORD),
            ("", ""),
            ("plain", "plain-pw"),
        ] {
            let refused =
                Wire::try_connect(stage.admin, &Login::new(user, password).plugin(plugin));
            let yes = if password.is_empty() { "NO" } else { "YES" };
            let wanted = Refused::Error {
                code: 1045,
                state: "28000".to_owned(),
                text: format!(
                    "Access denied for user '{user}'@'127.0.0.1' (using password: {yes})"
                ),
            };
            assert_eq!(refused.err(), Some(wanted), "{user} {password} {plugin}");
        }
    }
    // A27: an operator is nobody on the data port.
    let refused = Wire::try_connect(stage.atlas.address(), &Login::new(OPERATOR, PASSWORD));
    assert!(
        matches!(refused, Err(Refused::Error { code: 1045, .. })),
        "{refused:?}"
    );
    assert!(!stage.atlas.log().contains(PASSWORD));
}

/// A viewer looks; every change is an operator's.
#[test]
fn a_viewer_changes_nothing() {
    let stage = Stage::new(Kind::MySql);
    let mut viewer = stage.viewer();
    for command in [
        "SET OFFLINE 1",
        "SET ONLINE 1",
        "ADD MASTER 127.0.0.1:1",
        "ADD SLAVE 127.0.0.1:1",
        "ADD GSLAVE main 127.0.0.1:1",
        "REMOVE BACKEND 2",
        "REMOVE GBACKEND main 2",
        "ADD CLIENT 10.0.0.1",
        "REMOVE CLIENT 10.0.0.1",
        "ADD PWD a:b",
        "ADD ENPWD a:b",
        "REMOVE PWD app",
        "SAVE CONFIG",
        "RELOAD CONFIG",
        "RELOAD CONFIG FORCE",
        "SET WEIGHT 2 2",
        "SWITCH PRIMARY main TO 127.0.0.1:1",
        "KILL 1",
        "KILL QUERY 1",
        "DRAIN",
        "SHUTDOWN",
        "SHUTDOWN IMMEDIATE",
    ] {
        let (code, state, text) = error(&mut viewer, command);
        assert_eq!((code, state.as_str()), (1227, "42000"), "{command}");
        assert!(text.contains("role operator"), "{text}");
    }
    assert_eq!(viewer.command(b"\x0c\x01\0\0\0").error_code(), 1227);
    let statement = viewer.prepare("DRAIN");
    assert_eq!(viewer.execute(&statement, &[]).error_code(), 1227);
    assert_eq!(stage.client().query("SELECT 1").cell(), "1");
}

/// Half of a log-in, none, and nonsense, many times: nothing of it stays, and an operator gets in meanwhile.
#[test]
fn malformed_and_half_open() {
    let stage = Stage::new(Kind::MariaDb);
    stage.operator().quit();
    let threads = || {
        std::fs::read_dir(format!("/proc/{}/task", stage.atlas.pid()))
            .expect("tasks")
            .count()
    };
    // Before that, connections to the servers are still being opened.
    stage.atlas.wait_log("ready: ");
    let mut seen = (0, 0);
    eventually("it has come to rest", || {
        let before = std::mem::replace(&mut seen, (stage.atlas.open_files(), threads()));
        std::thread::sleep(Duration::from_millis(200));
        before == (stage.atlas.open_files(), threads())
    });
    let (files, tasks) = (stage.atlas.open_files(), threads());
    let nonsense: [&[u8]; 6] = [
        b"",
        b"\x20",
        b"\x20\0\0\x01half of it",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\x01",
        b"\x05\0\0\x01\0\0\0\0\0",
    ];
    let mut open = Vec::new();
    for round in 0..10_000_usize {
        let bytes = nonsense[round % nonsense.len()];
        let mut socket = TcpStream::connect(stage.admin).expect("connect");
        // One whose place was given to another may find it closed.
        let _ = socket.write_all(bytes);
        if round % 100 == 0 {
            open.push(socket);
        }
        if round % 2500 == 2499 {
            stage.operator().quit();
        }
    }
    // Those that are still connected were told why, or just closed.
    for mut socket in open {
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("timeout");
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
    }
    eventually("nothing is left of them", || {
        stage.atlas.open_files() <= files && threads() <= tasks
    });
    assert_eq!(stage.client().query("SELECT 1").cell(), "1");
}

/// Operators who are there keep their places; one more than there is room for is told.
#[test]
fn places_are_bounded() {
    let stage = Stage::new(Kind::MySql);
    let mut operators: Vec<Wire> = (0..32).map(|_| stage.operator()).collect();
    let refused = Wire::try_connect(stage.admin, &Login::new(OPERATOR, PASSWORD));
    assert!(
        matches!(refused, Err(Refused::Error { code: 1040, .. })),
        "{refused:?}"
    );
    for operator in &mut operators {
        operator.ok("SELECT VERSION");
    }
    operators.pop().expect("one").quit();
    eventually("there is room again", || {
        Wire::try_connect(stage.admin, &Login::new(OPERATOR, PASSWORD)).is_ok()
    });
}
