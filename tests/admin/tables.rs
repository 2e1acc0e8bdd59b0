//! What is shown: the original's tables with its columns, and this Atlas's own.

use super::common::{Bed, Kind, Login, Node, Wire};
use super::stage::{Stage, columns, error, rows};

fn addresses(bed: &Bed) -> [String; 3] {
    [Node::Primary, Node::Replica1, Node::Replica2].map(|node| bed.address(node).to_string())
}

/// A19.
#[test]
fn the_originals_tables() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| {
            config.server("client_networks = [\"127.0.0.1\", \"10.1.0.0/16\"]")
        });
        let mut viewer = stage.viewer();
        let backends = "SELECT * FROM backends";
        assert_eq!(
            columns(&mut viewer, backends),
            ["backend_ndx", "address", "state", "type"]
        );
        let [primary, one, two] = addresses(&stage.bed);
        let wanted = [
            ["1", &primary, "up", "rw"],
            ["2", &one, "up", "ro"],
            ["3", &two, "up", "ro"],
        ];
        assert_eq!(rows(&mut viewer, backends), wanted);
        assert_eq!(
            rows(&mut viewer, "  select * /* all */ from BACKENDS ; "),
            wanted
        );
        assert_eq!(columns(&mut viewer, "SELECT * FROM clients"), ["client"]);
        assert_eq!(
            rows(&mut viewer, "SELECT * FROM clients"),
            [["127.0.0.1"], ["10.1.0.0/16"]]
        );
        assert_eq!(
            columns(&mut viewer, "SELECT * FROM pwds"),
            ["username", "password"]
        );
        let accounts = rows(&mut viewer, "SELECT * FROM pwds");
        assert_eq!(accounts[..2], [["app", "******"], ["plain", "******"]]);
        assert_eq!(columns(&mut viewer, "SELECT VERSION"), ["version"]);
        assert_eq!(
            rows(&mut viewer, "SELECT VERSION"),
            [[env!("CARGO_PKG_VERSION")]]
        );
        assert_eq!(
            columns(&mut viewer, "SELECT * FROM help"),
            ["command", "description"]
        );
        let help = rows(&mut viewer, "SELECT * FROM help");
        let originals = [
            "SELECT * FROM help",
            "SELECT * FROM backends",
            "SET OFFLINE $backend_id",
            "SET ONLINE $backend_id",
            "ADD MASTER $backend",
            "ADD SLAVE $backend",
            "REMOVE BACKEND $backend_id",
            "SELECT * FROM clients",
            "ADD CLIENT $client",
            "REMOVE CLIENT $client",
            "SELECT * FROM pwds",
            "ADD PWD $pwd",
            "ADD ENPWD $pwd",
            "REMOVE PWD $pwd",
            "SAVE CONFIG",
            "SELECT VERSION",
        ];
        for (row, original) in help.iter().zip(originals) {
            assert_eq!(row[0], original);
        }
    }
}

#[test]
fn tables_of_servers_and_connections() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::new(kind);
        let mut viewer = stage.viewer();
        let mut client = stage.client();
        client.ok("BEGIN");
        client.ok("SELECT 1");
        let [primary, one, _] = addresses(&stage.bed);
        let backends = rows(&mut viewer, "SHOW BACKENDS");
        assert_eq!(backends[0][..5], ["1", "main", &primary, "primary", "up"]);
        assert_eq!(
            backends[1][..6],
            ["2", "main", &one, "replica", "up", "yes"]
        );
        let pools = rows(&mut viewer, "SHOW POOLS");
        let names = columns(&mut viewer, "SHOW POOLS");
        assert_eq!(
            names[..6],
            ["group", "address", "open", "idle", "in_use", "waiting"]
        );
        // A36: the figures of each server; the transaction has one of the primary's.
        assert_eq!(pools[0][1], primary);
        assert!(
            pools[0][4].parse::<u32>().is_ok_and(|in_use| in_use >= 1),
            "{pools:?}"
        );
        client.ok("COMMIT");
    }
}

#[test]
fn explain_route() {
    let stage = Stage::with(Kind::MariaDb, |config| {
        config.user("writer", "w", &["read_from = \"primary\""])
    });
    let mut viewer = stage.viewer();
    let mut explain = |text: &str| {
        let rows = rows(&mut viewer, &format!("EXPLAIN ROUTE {text}"));
        let of = |step: &str| {
            rows.iter()
                .find(|row| row[0] == step)
                .map(|row| row[1].clone())
                .unwrap_or_default()
        };
        [of("account"), of("class"), of("route"), of("reason")]
    };
    assert_eq!(
        explain("SELECT 1;"),
        ["app", "read", "replica", "plain-read"]
    );
    assert_eq!(
        explain("/*master*/ SELECT 1"),
        ["app", "read", "primary", "hint-primary"]
    );
    assert_eq!(
        explain("FOR writer SELECT 1"),
        ["writer", "read", "primary", "account-reads-primary"]
    );
    assert_eq!(
        explain("UPDATE t SET a = ';' WHERE id = 1")[2..],
        ["primary", "write"]
    );
    let (code, _, text) = error(&mut viewer, "EXPLAIN ROUTE FOR nobody SELECT 1");
    assert_eq!(
        (code, text.as_str()),
        (1105, "there is no account 'nobody': see SELECT * FROM pwds")
    );
}

/// The admin port tells of sharded tables what the data port does.
#[test]
fn explain_route_of_sharded_tables() {
    let second = |bed: &Bed| bed.address(Node::Second);
    let bed = Bed::mariadb();
    let group = format!(
        "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\n",
        second(&bed)
    );
    let stage = Stage::on(bed, |config| {
        config.all_users("group = \"main\"").all_users("schema = \"shop\"").append(&group).append(
            "[[tables]]\nname = \"shop.orders\"\nkey = \"uid\"\nranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]\n",
        )
    });
    stage
        .bed
        .root(Node::Primary)
        .ok("CREATE DATABASE IF NOT EXISTS shop");
    stage.bed.wait_replicas();
    let (mut viewer, mut client) = (
        stage.viewer(),
        Wire::connect(stage.atlas.address(), &Login::plain()),
    );
    for (sql, shards) in [
        ("SELECT * FROM orders WHERE uid = 7", 1),
        ("SELECT uid FROM orders", 4),
        ("SELECT uid FROM shop.orders WHERE uid IN (4, 8)", 1),
        ("UPDATE orders SET x = 1 WHERE uid = 4", 1),
        ("SELECT COUNT(*), uid FROM orders GROUP BY x WITH ROLLUP", 0),
        ("DELETE FROM orders", 0),
    ] {
        let explain = format!("EXPLAIN ROUTE {sql}");
        let mut admins = rows(&mut viewer, &format!("EXPLAIN ROUTE FOR plain {sql}"));
        let mut datas = rows(&mut client, &explain);
        let is_both = |row: &Vec<String>| row[0] != "account" && row[0] != "pins";
        admins.retain(is_both);
        datas.retain(is_both);
        assert_eq!(admins, datas, "{sql}");
        let found = admins.iter().filter(|row| row[0] == "shard").count();
        assert_eq!(found, shards, "{admins:?}");
        let route = if shards == 0 { "refused" } else { "sharded" };
        assert!(
            admins.contains(&vec!["route".to_owned(), route.to_owned()]),
            "{admins:?}"
        );
    }
    let other = rows(&mut viewer, "EXPLAIN ROUTE SELECT * FROM elsewhere.orders");
    assert!(
        other.contains(&vec!["route".to_owned(), "replica".to_owned()]),
        "{other:?}"
    );
}

#[test]
fn rules_and_sharded_tables() {
    let stage = Stage::with(Kind::MySql, |config| {
        config.append(
            "[[rules]]\nname = \"no full delete\"\nmatch = { user = \"app\", regex = \"^delete\", kind = \"write\" }\naction = \"reject\"\nmessage = \"not here\"\n\
             [[tables]]\nname = \"shop.orders\"\nkey = \"user_id\"\nranges = [{ from = \"min\", to = 100, groups = [\"main\"], tables = 4 }, { from = 100, to = \"max\", groups = [\"main\"], first = 4 }]",
        )
    });
    let mut viewer = stage.viewer();
    assert_eq!(
        rows(&mut viewer, "SHOW RULES"),
        [[
            "no full delete",
            "app",
            "NULL",
            "^delete",
            "write",
            "NULL",
            "NULL",
            "reject",
            "not here",
            "0",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL"
        ]]
    );
    let tables = rows(&mut viewer, "SHOW TABLES");
    assert_eq!(
        tables[0][..8],
        [
            "shop.orders",
            "user_id",
            "int",
            "mod",
            "min",
            "100",
            "main",
            "4"
        ]
    );
    assert_eq!(tables[1][4..9], ["100", "max", "main", "1", "4"]);
}

/// B263: what is no command is answered with an error, and nobody on the data port notices.
#[test]
fn what_is_no_command() {
    let stage = Stage::new(Kind::MariaDb);
    let mut client = stage.client();
    let mut admin = stage.operator();
    let many = ";".repeat(1 << 20);
    for text in [
        ";",
        "",
        "SELECT",
        many.as_str(),
        "DROP DATABASE x",
        "SELECT * FROM nonsense",
        "\0",
    ] {
        let (code, state, told) = error(&mut admin, text);
        assert_eq!((code, state.as_str()), (1105, "07000"));
        assert!(
            told.starts_with("use 'SELECT * FROM help' to see the supported commands"),
            "{told}"
        );
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
    for other in [&b"\x04t\0"[..], b"\x12\x01\x02"] {
        let (code, state, text) = admin.command(other).error().expect("it is refused");
        assert_eq!((code, state.as_str()), (1105, "07000"));
        // As the original says it.
        let wanted = "[admin] we only handle text-based queries (COM_QUERY)";
        assert_eq!(text, wanted);
    }
    let statement = admin.prepare("SELECT * FROM backends;");
    let reply = admin.execute(&statement, &[]);
    assert_eq!(reply.binary_rows().len(), 3);
    admin.quit();
}

/// B267: what graphical clients ask before they show anything.
#[test]
fn what_graphical_clients_ask() {
    let stage = Stage::new(Kind::MySql);
    let mut viewer = stage.viewer();
    for text in [
        "SET NAMES utf8mb4",
        "SHOW VARIABLES",
        "SHOW STATUS",
        "SELECT @@version_comment LIMIT 1",
        "SELECT CONNECTION_ID()",
        "SHOW DATABASES",
        "SHOW ENGINES",
        "SHOW COLLATION",
        "SELECT CURRENT_USER(), USER()",
        "SHOW GRANTS",
        "SHOW /*!50002 FULL*/ TABLES",
        "SHOW TABLE STATUS",
        "SELECT DATABASE()",
        "SHOW WARNINGS",
        "SET SESSION sql_mode = ''",
        "SHOW VARIABLES LIKE 'lower_case_%'",
        "SHOW PLUGINS",
        "SHOW CHARACTER SET",
    ] {
        let reply = viewer.query(text);
        assert_eq!(reply.error(), None, "{text}");
    }
    assert_eq!(
        rows(&mut viewer, "SELECT CONNECTION_ID()"),
        [[viewer.id.to_string()]]
    );
    assert_eq!(rows(&mut viewer, "SELECT USER()"), [["eye@127.0.0.1"]]);
}

/// B271: a flood of different statements neither fills the memory nor keeps anybody away, while the figures are looked at.
#[test]
fn b271_a_flood_of_kinds() {
    let stage = Stage::with(Kind::MariaDb, |config| config.server("workers = 2"));
    let mut viewer = stage.viewer();
    let before = stage.atlas.memory_kib("RssAnon");
    std::thread::scope(|scope| {
        let flood: Vec<_> = (0..4)
            .map(|thread| {
                let mut client = stage.client();
                scope.spawn(move || {
                    for n in 0..2500 {
                        client.ok(&format!("SELECT 1 AS c{thread}_{n}"));
                    }
                })
            })
            .collect();
        let mut other = stage.client();
        while flood.iter().any(|thread| !thread.is_finished()) {
            assert_eq!(other.query("SELECT 1").cell(), "1");
            let digests = rows(&mut viewer, "SHOW DIGESTS");
            // Of each worker 2,000, and a line for what was dropped.
            assert!(digests.len() <= 4001, "{}", digests.len());
        }
    });
    let grown = stage.atlas.memory_kib("RssAnon").saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB");
}

/// Each command of `SELECT * FROM help` is said by some test here, and its fixed words are those that the help has.
#[test]
fn every_command_is_tried() {
    let mut tests = String::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admin");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        tests.push_str(
            &std::fs::read_to_string(path)
                .expect("a test")
                .to_lowercase(),
        );
    }
    let stage = Stage::new(Kind::MariaDb);
    let help = rows(&mut stage.viewer(), "SELECT * FROM help");
    assert!(help.len() > 30, "{help:?}");
    let untried: Vec<&String> = help
        .iter()
        .map(|row| &row[0])
        .filter(|template| {
            let fixed = template.split(['$', '[']).next().unwrap_or_default();
            let said = format!("\"{}", fixed.trim().to_lowercase());
            // The list of the originals in this file tries nothing.
            let listed = usize::from(tests.contains(&format!("\"{}\"", template.to_lowercase())));
            let is_listed = listed * usize::from(template.contains('$'));
            tests.matches(&said).count() <= is_listed
        })
        .collect();
    assert!(untried.is_empty(), "{untried:?}");
}
