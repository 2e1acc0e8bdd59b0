//! What is a command and what is none.

use super::*;
use crate::config::host_address;

fn address(text: &str) -> HostAddress {
    host_address(text).unwrap()
}

fn by_address(text: &str) -> BackendRef {
    BackendRef::Address(address(text))
}

/// A19: by id as well as by address; any case, any blanks, comments, a trailing `;`.
#[test]
fn commands() {
    let account = |name: &str, password: &str, is_encrypted| Command::AddAccount {
        group: None,
        name: name.to_owned(),
        password: Secret::from(password),
        is_encrypted,
    };
    let add = |group: Option<&str>, is_primary, at: &str, weight| Command::AddBackend {
        group: group.map(str::to_owned),
        is_primary,
        address: address(at),
        weight,
    };
    for (text, wanted) in [
        ("SELECT * FROM help", Command::Help),
        (" select  *\nfrom /* x */ backends ; ;", Command::Backends),
        ("-- a\nSELECT VERSION", Command::Version),
        ("select*from`backends`;", Command::Backends),
        ("SELECT * FROM \"Clients\"", Command::Clients),
        (
            "set offline 12;",
            Command::SetState(BackendRef::Id(12), State::Offline),
        ),
        (
            "SET ONLINE 10.0.0.2:3307",
            Command::SetState(by_address("10.0.0.2:3307"), State::Online),
        ),
        (
            "SET ONLINE 'unix:/run/a.sock'",
            Command::SetState(by_address("unix:/run/a.sock"), State::Online),
        ),
        (
            "ADD MASTER 10.0.0.1:3306",
            add(None, true, "10.0.0.1:3306", 1),
        ),
        (
            "add slave db-2.example:3306@10",
            add(None, false, "db-2.example:3306", 10),
        ),
        ("ADD SLAVE [::1]:3306@2;", add(None, false, "[::1]:3306", 2)),
        (
            "ADD GMASTER g0 10.0.0.1",
            add(Some("g0"), true, "10.0.0.1:3306", 1),
        ),
        (
            "ADD GSLAVE g0 10.0.0.1@3",
            add(Some("g0"), false, "10.0.0.1:3306", 3),
        ),
        (
            "REMOVE BACKEND 2",
            Command::RemoveBackend {
                group: None,
                backend: BackendRef::Id(2),
            },
        ),
        (
            "REMOVE BACKEND 10.0.0.2:3306",
            Command::RemoveBackend {
                group: None,
                backend: by_address("10.0.0.2:3306"),
            },
        ),
        (
            "REMOVE GBACKEND g 2",
            Command::RemoveBackend {
                group: Some("g".to_owned()),
                backend: BackendRef::Id(2),
            },
        ),
        ("SELECT * FROM clients", Command::Clients),
        (
            "ADD CLIENT 192.168.1",
            Command::AddClient("192.168.1".to_owned()),
        ),
        (
            "REMOVE CLIENT 10.0.0.0/8",
            Command::RemoveClient("10.0.0.0/8".to_owned()),
        ),
        ("SELECT * FROM pwds", Command::Accounts),
        ("ADD PWD shop:secret", account("shop", "secret", false)),
        ("ADD PWD a:b:c#;d ;", account("a:b", "c#;d", false)),
        (
            "ADD PWD 'shop:pass word;'",
            account("shop", "pass word;", false),
        ),
        ("ADD PWD shop:\" x;\" ;", account("shop", " x;", false)),
        ("ADD PWD shop:", account("shop", "", false)),
        (
            "ADD ENPWD shop:/iZxz+0GRoA=",
            account("shop", "/iZxz+0GRoA=", true),
        ),
        (
            "ADD ENPWD shop:enc:v1:abc==",
            account("shop", "enc:v1:abc==", true),
        ),
        (
            "ADD GPWD s1 shop:a b;",
            Command::AddAccount {
                group: Some("s1".to_owned()),
                name: "shop".to_owned(),
                password: Secret::new("a b"),
                is_encrypted: false,
            },
        ),
        (
            "add genpwd `s1` shop:/iZxz+0GRoA=",
            Command::AddAccount {
                group: Some("s1".to_owned()),
                name: "shop".to_owned(),
                password: Secret::new("/iZxz+0GRoA="),
                is_encrypted: true,
            },
        ),
        ("REMOVE PWD shop", Command::RemoveAccount("shop".to_owned())),
        ("SAVE CONFIG", Command::SaveConfig),
        ("RELOAD CONFIG", Command::ReloadConfig { is_forced: false }),
        (
            "reload config force;",
            Command::ReloadConfig { is_forced: true },
        ),
        ("SHOW POOLS", Command::Show(Report::Pools)),
        ("show full processlist", Command::Show(Report::ProcessList)),
        ("CHECK BACKENDS", Command::CheckBackends),
        (
            "EXPLAIN ROUTE SELECT ';' ;",
            Command::ExplainRoute {
                user: None,
                sql: "SELECT ';' ;".to_owned(),
            },
        ),
        (
            "explain route for shop /*master*/ SELECT 1",
            Command::ExplainRoute {
                user: Some("shop".to_owned()),
                sql: "/*master*/ SELECT 1".to_owned(),
            },
        ),
        (
            "SWITCH PRIMARY main TO 10.0.0.2:3306",
            Command::SwitchPrimary {
                group: "main".to_owned(),
                to: address("10.0.0.2:3306"),
            },
        ),
        ("SET WEIGHT 2 10", Command::SetWeight(BackendRef::Id(2), 10)),
        (
            "KILL 7",
            Command::Kill {
                id: 7,
                query_only: false,
            },
        ),
        (
            "kill query 7",
            Command::Kill {
                id: 7,
                query_only: true,
            },
        ),
        (
            "KILL CONNECTION 7",
            Command::Kill {
                id: 7,
                query_only: false,
            },
        ),
        ("DRAIN", Command::Drain),
        ("SHUTDOWN", Command::Drain),
        ("SHUTDOWN IMMEDIATE", Command::Stop),
    ] {
        assert_eq!(parse(text), Ok(wanted), "{text}");
    }
}

/// B263.
#[test]
fn what_is_no_command() {
    const UNKNOWN: &str = "use 'SELECT * FROM help' to see the supported commands";
    for (text, wanted) in [
        ("", UNKNOWN),
        (";", UNKNOWN),
        (
            "SELECT",
            "use 'SELECT * FROM help' to see the supported commands; did you mean 'SELECT * FROM help'?",
        ),
        ("DROP TABLE x", UNKNOWN),
        (
            "SELECT * FROM backend",
            "use 'SELECT * FROM help' to see the supported commands; did you mean 'SELECT * FROM backends'?",
        ),
        (
            "SHOW POOL",
            "use 'SELECT * FROM help' to see the supported commands; did you mean 'SHOW POOLS'?",
        ),
        (
            "SHOW BACKENDS; DRAIN",
            "one command at a time: there is another one behind the `;`",
        ),
        ("SET xyz 1", "invalid operation"),
        (
            "SET OFFLINE",
            "SET OFFLINE or ONLINE needs one backend_ndx or address",
        ),
        ("SET OFFLINE -1", "backend id is not exsit"),
        ("SET OFFLINE 99999999999", "backend id is not exsit"),
        (
            "SET OFFLINE a:b",
            "`a:b` is not a server address: write HOST:PORT such as \"10.0.0.1:3306\", \"[::1]:3306\" or \"db1.example:3306\", or \"unix:/path/to.sock\"",
        ),
        ("REMOVE BACKEND 99999999999", "invalid backend_id"),
        (
            "REMOVE BACKEND",
            "REMOVE BACKEND needs one backend_ndx or address",
        ),
        (
            "ADD SLAVE",
            "ADD MASTER or SLAVE needs one address, such as 10.0.0.1:3306@2",
        ),
        (
            "ADD SLAVE 10.0.0.1:3306@0",
            "`0` is no weight: those are 1 to 1000; SET OFFLINE takes a server's work away",
        ),
        (
            "ADD SLAVE 10.0.0.1:3306@x",
            "`x` is no weight: those are 1 to 1000; SET OFFLINE takes a server's work away",
        ),
        ("ADD PWD shop", "an account is user:password"),
        (
            "EXPLAIN ROUTE",
            "EXPLAIN ROUTE needs a statement: EXPLAIN ROUTE [FOR user] statement",
        ),
        (
            "SWITCH PRIMARY main",
            "SWITCH PRIMARY needs a group and a server: SWITCH PRIMARY group TO address",
        ),
        ("KILL", "KILL needs a client's id: KILL [QUERY] id"),
        ("KILL x", "Unknown thread id: x"),
        (
            "SET WEIGHT 1",
            "SET WEIGHT needs a backend_ndx or address, and a weight",
        ),
    ] {
        let refusal = parse(text).unwrap_err();
        assert_eq!(refusal.text, wanted, "{text}");
    }
    for text in [
        ";".repeat(1 << 20),
        "SELECT ".repeat(9000),
        "'".repeat(60_000),
    ] {
        assert!(parse(&text).unwrap_err().text.starts_with(UNKNOWN));
    }
}

/// Every command of the help can be said, and is known to be a viewer's or an operator's.
#[test]
fn the_help_is_true() {
    let mut viewers = Vec::new();
    for row in crate::admin::help().rows() {
        let template = row[0].clone().unwrap();
        let text = template
            .replace("$backend_id", "1")
            .replace("$backend", "10.0.0.1:3306")
            .replace("$client", "10.0.0.1")
            .replace("$pwd", "u:p")
            .replace("$group", "g")
            .replace("$weight", "2")
            .replace("$address", "10.0.0.1:3306")
            .replace("[FOR $user]", "FOR u")
            .replace("$statement", "SELECT 1")
            .replace("[QUERY] $id", "QUERY 1")
            .replace("[IMMEDIATE]", "IMMEDIATE");
        let command = parse(&text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        if !command.needs_operator() {
            viewers.push(template.split(' ').next().unwrap().to_owned());
        }
    }
    viewers.dedup();
    assert_eq!(viewers, ["SELECT", "SHOW", "CHECK", "EXPLAIN"]);
}
