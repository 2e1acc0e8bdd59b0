//! A29: `scripts/replay` says what a log has to two servers: through Atlas everything is answered as it is directly, and where servers
//! differ it says so.

use std::path::Path;
use std::process::Command;

use super::common::{Atlas, Bed, Login, Node, Param, Wire, config_for, eventually};

/// The exit code, and what it prints.
fn replay(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/replay"))
        .args(arguments)
        .output()
        .expect("scripts/replay");
    let told = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&told).into_owned(),
    )
}

fn count(told: &str, name: &str) -> u64 {
    let mut numbers = told.lines().filter_map(|line| {
        let (of, number) = line.rsplit_once(": ")?;
        (of == name).then(|| number.parse().ok())?
    });
    numbers.next().unwrap_or(0)
}

#[test]
fn a_log_is_said_again() {
    for bed in Bed::both() {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        root.ok(&format!(
            "CREATE TABLE {schema}.t(a INT PRIMARY KEY, b VARCHAR(20))"
        ));
        root.ok(&format!(
            "INSERT INTO {schema}.t VALUES (1, 'x'), (2, 'y'), (3, NULL)"
        ));
        bed.wait_replicas();
        let logs = "[log]\nslow = { file = \"slow.log\", threshold = \"0s\" }\naudit = { file = \"audit.log\" }";
        let atlas = Atlas::start(config_for(&bed).append(logs));
        for _ in 0..3 {
            let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
            client.ok("SELECT * FROM t");
            client.ok("SELECT a, b FROM t ORDER BY a DESC");
            client
                .query("SELECT nothing FROM t")
                .error()
                .expect("no column");
            client.ok("SELECT NOW(6)");
            client.ok("UPDATE t SET b = 'z' WHERE a = 3");
            client.ok("SELECT a FROM t WHERE a = 1 FOR UPDATE");
            let prepared = client.prepare("SELECT b FROM t WHERE a = ?");
            client.execute(&prepared, &[Param::Int(2)]);
            client.quit();
        }
        let audit = atlas.dir().join("audit.log");
        let has_all = || {
            let text = std::fs::read_to_string(&audit).unwrap_or_default();
            text.matches("log-out").count() == 3
        };
        eventually("the log is written", has_all);
        let slow = atlas.dir().join("slow.log");
        eventually("the slow log too", || {
            std::fs::read_to_string(&slow)
                .unwrap_or_default()
                .matches("# Time: ")
                .count()
                == 21
        });
        bed.wait_replicas();
        let of = |address| format!("plain:plain-pw@{address}");
        let direct = of(bed.address(Node::Primary));
        let through = of(atlas.address());
        // What is said through Atlas is written down too.
        let copies = [&audit, &slow].map(|log| {
            let copy = format!("{}.copy", log.display());
            std::fs::copy(log, &copy).expect("a copy");
            copy
        });
        for copy in copies {
            let (code, told) = replay(&[&copy, &direct, &through]);
            assert_eq!(code, 0, "{told}");
            for (name, wanted) in [
                ("connections", 3),
                // Not the write, nor the read with a lock.
                ("statements", 15),
                ("passed over: no read", 3),
                ("passed over: a read that acts", 3),
                ("differ by themselves", 3),
                ("differ", 0),
            ] {
                assert_eq!(count(&told, name), wanted, "{name}\n{told}");
            }
            assert!(
                told.contains("first: errors 3, ms p50 ") && told.contains("second: errors 3, "),
                "{told}"
            );
        }
        // Another server has other rows, and of another table of this name other columns.
        let mut second = bed.root(Node::Second);
        second.ok(&format!("CREATE DATABASE {schema}"));
        second.ok(&format!(
            "CREATE TABLE {schema}.t(a INT PRIMARY KEY, b VARCHAR(20))"
        ));
        second.ok(&format!(
            "INSERT INTO {schema}.t VALUES (1, 'x'), (2, 'other'), (3, 'z')"
        ));
        let log = format!("{}.copy", audit.display());
        let (code, told) = replay(&[&log, &direct, &of(bed.address(Node::Second))]);
        second.ok(&format!("DROP DATABASE {schema}"));
        assert_eq!((code, count(&told, "differ")), (1, 9), "{told}");
        assert!(
            told.contains("differs: connection ") && told.contains("b'other'"),
            "{told}"
        );
        // Servers that cannot be reached, and logs that have nothing.
        let (code, _) = replay(&["/dev/null", &direct, &through]);
        assert_eq!(code, 2);
    }
}

/// Logs of servers.
#[test]
fn logs_of_servers_are_read() {
    let bed = Bed::mysql();
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!("CREATE TABLE {schema}.t(a INT)"));
    bed.wait_replicas();
    let direct = format!("plain:plain-pw@{}", bed.address(Node::Primary));
    let dir = tempfile::tempdir().expect("a folder");
    let logs = [
        (
            "general-mysql",
            format!(
                "/usr/sbin/mysqld, Version: 9.7.0. started with:\nTcp port: 0\nTime                 Id Command    Argument\n\
                 2026-11-30T14:00:00.000001Z\t    8 Connect\tplain@localhost on {schema} using TCP/IP\n\
                 2026-11-30T14:00:00.000002Z\t    8 Query\tSELECT a\nFROM t\n\
                 2026-11-30T14:00:00.000003Z\t    9 Query\tSELECT 7\n\
                 2026-11-30T14:00:00.000004Z\t    8 Quit\t\n"
            ),
        ),
        (
            "general-mariadb",
            format!(
                "mariadbd, Version: 10.11.0. started with:\nTcp port: 0\nTime\t\t    Id Command\tArgument\n\
                 261130 14:00:00\t     8 Connect\tplain@localhost on {schema} using Socket\n\
                 \t\t     8 Query\tSELECT a\nFROM t\n\t\t     9 Query\tSELECT 7\n261130 14:00:01\t     8 Quit\t\n"
            ),
        ),
        (
            "slow-mysql",
            format!(
                "/usr/sbin/mysqld, Version: 9.7.0. started with:\nTcp port: 0\nTime                 Id Command    Argument\n\
                 # Time: 2026-11-30T14:00:00.000001Z\n# User@Host: plain[plain] @ localhost []  Id:     8\n\
                 # Query_time: 1.0  Lock_time: 0.0 Rows_sent: 0  Rows_examined: 0\nuse {schema};\nSET timestamp=1796048577;\n\
                 SELECT a\nFROM t;\n\
                 # Time: 2026-11-30T14:00:00.000001Z\n# User@Host: plain[plain] @ localhost []  Id:     9\n\
                 # Query_time: 1.0  Lock_time: 0.0 Rows_sent: 0  Rows_examined: 0\nSET timestamp=1796048577;\nSELECT 7;\n"
            ),
        ),
    ];
    for (name, text) in logs {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a log");
        let (code, told) = replay(&[path.to_str().expect("a path"), &direct, &direct]);
        assert_eq!(
            (
                code,
                count(&told, "statements"),
                count(&told, "connections")
            ),
            (0, 2, 2),
            "{name}\n{told}"
        );
        assert!(told.contains("first: errors 0,"), "{name}\n{told}");
    }
}
