//! Whole files: what loads, and every mistake with its line and words.

use std::time::Duration;

use super::*;

mod mistakes;

fn env(name: &str) -> Option<String> {
    match name {
        "SHOP_PASSWORD" => Some("s3cret".to_owned()),
        _ => None,
    }
}

fn good(text: &str) -> Config {
    load(text, "atlas.toml", &env).unwrap_or_else(|problems| panic!("{}", print(&problems)))
}

fn print(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect()
}

/// The smallest file of the manual.
const SMALLEST: &str = r#"[[groups]]
name = "main"
primary = "10.0.0.1:3306"
replicas = [{ address = "10.0.0.2:3306" }, { address = "10.0.0.3:3306" }]

[[users]]
name = "shop"
password = "env:SHOP_PASSWORD"
"#;

/// The full file of the manual.
const FULL: &str = include_str!("../../tests/cases/full.toml");

#[test]
fn the_smallest_file_loads_with_defaults() {
    let config = good(SMALLEST);
    assert_eq!(
        print(&config.notes),
        "atlas.toml:1: note: monitor.user: not given: servers are checked with the account \"shop\"\n"
    );
    assert_eq!(
        config.server.listen,
        [ListenAddress::Tcp("0.0.0.0:1234".parse().unwrap())]
    );
    assert_eq!(config.groups[0].replicas.len(), 2);
    assert_eq!(
        config.groups[0].primary.address.to_string(),
        "10.0.0.1:3306"
    );
    let user = &config.users[0];
    assert_eq!(
        (user.name.as_str(), user.group, user.read_from),
        ("shop", 0, ReadFrom::Replica)
    );
    assert_eq!(user.passwords, [Secret::from("s3cret")]);
    assert_eq!(user.backend.user, "shop");
    assert_eq!(user.backend.passwords, [Secret::from("s3cret")]);
    assert_eq!(user.backend.read_passwords, [Secret::from("s3cret")]);
    assert_eq!(config.monitor.user, "shop");
    assert!(config.monitor.is_first_user);
    assert!(!config.has_clear_passwords);
}

#[test]
fn the_full_file_loads() {
    let config = good(FULL);
    assert_eq!(config.server.listen.len(), 2);
    assert_eq!(
        config.server.admin_listen,
        Some("127.0.0.1:2345".parse().unwrap())
    );
    assert_eq!(config.server.drain_timeout, Duration::from_secs(30));
    assert_eq!(config.server.tls.mode, ServerTlsMode::Off);
    assert!(config.admin.users[0].is_operator);
    assert_eq!(config.monitor.user, "monitor");
    assert_eq!(config.groups[0].replicas[0].weight, 2);
    let user = &config.users[0];
    assert_eq!(
        (user.backend.read_user.as_str(), user.schema.as_deref()),
        ("shop", None)
    );
    assert_eq!(user.labels["business"], "shop");
    let table = &config.tables[0];
    assert_eq!(
        (
            table.schema.as_str(),
            table.table.as_str(),
            table.ranges.len()
        ),
        ("shop", "orders", 2)
    );
    assert_eq!(table.ranges[0].to, Bound::Int(10_000_000));
    assert_eq!(config.sharding.merge_bytes_max, 64 << 20);
    assert_eq!(config.rules[0].matches.writes, Some(true));
    assert!(config.has_clear_passwords);
    // What the proxy does not do yet is said, once for what stands together.
    let notes = print(&config.notes);
    let ignored = "note: sharding.merge_rows: not acted on by this version\n";
    assert!(notes.contains(ignored), "{notes}");
    for key in [
        "groups[0].topology",
        "users[0].causal",
        "server.listen",
        "pool.breaker",
        "safety",
        "rules[0]",
    ] {
        assert!(!notes.contains(&format!("note: {key}")), "{key}\n{notes}");
    }
}

#[test]
fn an_empty_file_misses_what_is_needed() {
    let problems = load("", "f", &env).unwrap_err();
    assert_eq!(
        print(&problems),
        "f:1: groups: missing: at least one [[groups]] with a name and a primary\n\
         f:1: users: missing: at least one [[users]] with a name and a password\n"
    );
}

#[test]
fn problems_come_in_the_order_of_the_file() {
    let text = "[[users]]\nname = 1\n[server]\nworkers = -1\n[[groups]]\nname = \"\"\n";
    let lines: Vec<usize> = load(text, "f", &env)
        .unwrap_err()
        .iter()
        .map(|problem| problem.line)
        .collect();
    assert!(lines.is_sorted(), "{lines:?}");
    assert_eq!(lines.len(), 6, "{lines:?}");
}

/// A21.
#[test]
fn an_instance_in_both_lists_is_a_warning() {
    let text = SMALLEST.replace("10.0.0.3:3306", "10.0.0.1");
    let config = good(&text);
    assert_eq!(
        print(&config.notes).lines().last().unwrap(),
        "atlas.toml:4: warning: groups[0].replicas[1].address: 10.0.0.1:3306 is the primary as well: it gets a share of \
         the reads; with `no_replica = \"primary\"` it need not be listed here"
    );
    assert_eq!(config.groups[0].replicas.len(), 2);
}

/// B143, A24, A26.
#[test]
fn several_passwords_and_a_backend_account() {
    let config = good(
        "[[groups]]\nname = \"main\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = [\"n3w\", \"0ld\"]\n\
         backend = { user = \"b\", password = [\"b2\", \"b1\"], read_user = \"r\", read_password = \"r1\" }\n",
    );
    let user = &config.users[0];
    assert_eq!(user.passwords, [Secret::from("n3w"), Secret::from("0ld")]);
    assert_eq!(
        (user.backend.user.as_str(), user.backend.read_user.as_str()),
        ("b", "r")
    );
    assert_eq!(
        user.backend.passwords,
        [Secret::from("b2"), Secret::from("b1")]
    );
    assert_eq!(user.backend.read_passwords, [Secret::from("r1")]);
    assert_eq!(config.monitor.user, "b");
    assert!(!format!("{config:?}").contains("0ld"));
}

#[test]
fn relative_paths_start_from_the_folder_of_the_file() {
    let text = format!(
        "{SMALLEST}[server]\nkey_file = \"k\"\ntls = {{ mode = \"optional\", cert = \"c.pem\", key = \"/abs/k.pem\" }}\n"
    );
    let config = load(&text, "/etc/atlas/atlas.toml", &env).unwrap();
    assert_eq!(config.server.key_file.to_str(), Some("/etc/atlas/k"));
    assert_eq!(config.server.tls.cert.to_str(), Some("/etc/atlas/c.pem"));
    assert_eq!(config.server.tls.key.to_str(), Some("/abs/k.pem"));
}

#[test]
fn files_that_must_be_there_are_listed() {
    let files = |mode: &str| {
        let text = format!(
            "{SMALLEST}[server.tls]\nmode = \"{mode}\"\ncert = \"c.pem\"\nkey = \"k.pem\"\nca = \"\"\n"
        );
        good(&text).input_files
    };
    assert_eq!(files("off"), []);
    let wanted = [
        ("c.pem", 11, "server.tls.cert"),
        ("k.pem", 12, "server.tls.key"),
    ];
    let wanted = wanted.map(|(path, line, key)| NamedFile {
        path: path.into(),
        line,
        key: key.to_owned(),
    });
    assert_eq!(files("required"), wanted);
}

#[test]
fn sockets_that_can_be_side_by_side() {
    for text in [
        "admin_listen = \"127.0.0.1:0\"\nhttp_listen = \"127.0.0.1:0\"",
        "admin_listen = \"127.0.0.1:1\"\nhttp_listen = \"127.0.0.2:1\"",
        "admin_listen = \"0.0.0.0:1\"\nhttp_listen = \"[::1]:1\"",
        "listen = [\"127.0.0.1:1\", \"unix:/1\"]\nadmin_listen = \"127.0.0.1:2\"\nhttp_listen = \"127.0.0.1:3\"",
    ] {
        good(&format!("{SMALLEST}[server]\n{text}\n"));
    }
}

#[test]
fn sockets_that_are_too_long_and_workers_that_are_too_many() {
    let path = "x".repeat(107);
    good(&format!(
        "{SMALLEST}[server]\nupgrade_socket = \"{path}\"\n"
    ));
    let text = format!("{SMALLEST}[server]\nupgrade_socket = \"{path}x\"\n");
    let wrong = print(&load(&text, "f", &env).unwrap_err());
    let wanted = "f:10: server.upgrade_socket: the path of a socket has at most 107 bytes\n";
    assert!(wrong.contains(wanted), "{wrong}");
    let config = good(&format!("{SMALLEST}[server]\nworkers = 65\n"));
    assert_eq!(config.server.workers, WORKERS_MAX);
    let notes: Vec<String> = config.notes.iter().map(ToString::to_string).collect();
    assert!(
        notes
            .iter()
            .any(|note| note.ends_with("warning: server.workers: 64 are started, not more")),
        "{notes:?}"
    );
}

/// A18.
#[test]
fn a_file_that_others_can_read_is_warned_about() {
    let clear = good(&SMALLEST.replace("env:SHOP_PASSWORD", "clear"));
    assert!(clear.has_clear_passwords);
    for (mode, wanted) in [
        (0o100_600, None),
        (0o100_640, None),
        (0o100_644, Some("read")),
        (0o100_606, Some("change")),
    ] {
        let told = check_mode(&clear, "f", mode);
        assert_eq!(told.is_some(), wanted.is_some(), "{mode:o}");
        assert!(told.is_none_or(|told| told.text.contains(wanted.unwrap())));
    }
    assert_eq!(check_mode(&good(SMALLEST), "f", 0o100_644), None);
}

/// Each documented default, written into the file, gives the same configuration as leaving it out.
#[test]
fn documented_defaults_are_the_real_ones() {
    let base = "[[groups]]\nname = \"main\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = \"x\"\n[monitor]\nuser = \"m\"\npassword = \"x\"\n";
    let show = |text: &str| {
        let config = Config {
            notes: Vec::new(),
            ..good(text)
        };
        // Apart from what it is for: to know whether a default was written.
        format!("{config:?}").replace("is_max_lag_given: true", "is_max_lag_given: false")
    };
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        let (section, name) = key.path.split_once('.').unwrap();
        let line = format!("{name} = {}\n", key.default);
        let needed = match key.path {
            "groups.replicas.weight" => {
                let with = |replica: &str| {
                    base.replace(
                        "\"h\"\n",
                        &format!("\"h\"\nreplicas = [{{ address = \"r\"{replica} }}]\n"),
                    )
                };
                assert_eq!(show(&with("")), show(&with(", weight = 1")));
                continue;
            }
            path if path.starts_with("tables.ranges.") => {
                let of = |range: &str| {
                    format!(
                        "{base}[[tables]]\nname = \"a.b\"\nkey = \"k\"\nranges = [{{ groups = [\"main\"]{range} }}]\n"
                    )
                };
                let name = name.trim_start_matches("ranges.");
                assert_eq!(
                    show(&of("")),
                    show(&of(&format!(", {name} = {}", key.default))),
                    "{}",
                    key.path
                );
                continue;
            }
            path if path.starts_with("admin.") => {
                let of = |role: &str| {
                    format!("{base}[admin]\nusers = [{{ name = \"a\", password = \"x\"{role} }}]\n")
                };
                assert_eq!(show(&of("")), show(&of(", role = \"viewer\"")));
                continue;
            }
            "tables.id.generator" => {
                "[[tables]]\nname = \"a.b\"\nkey = \"k\"\nranges = [{ groups = [\"main\"] }]\nid.column = \"id\"\n"
            }
            path if path.starts_with("tables.") => {
                "[[tables]]\nname = \"a.b\"\nkey = \"k\"\nranges = [{ groups = [\"main\"] }]\n"
            }
            path if path.starts_with("rules.") => "[[rules]]\nname = \"r\"\naction = \"log\"\n",
            _ => "",
        };
        let header = [format!("[[{section}]]\n"), format!("[{section}]\n")]
            .into_iter()
            .find(|header| base.contains(header.as_str()));
        let (without, with) = match header {
            Some(header) => (
                base.to_owned(),
                base.replace(&header, &format!("{header}{line}")),
            ),
            None if needed.is_empty() => (base.to_owned(), format!("{base}[{section}]\n{line}")),
            None => (format!("{base}{needed}"), format!("{base}{needed}{line}")),
        };
        assert_eq!(show(&without), show(&with), "{}", key.path);
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = load(&text, "f", &env);
    }

    /// Real keys with odd values get further than random text does.
    #[test]
    fn no_value_panics(which in 0..KEYS.len(), value in "(\"[^\"\\\\\n]{0,20}\"|-?[0-9]{1,25}|[0-9]\\.[0-9]|true|\\[\\]|\\[\"x\", 1\\]|\\{\\}|\\{ a = 1 \\}|1979-05-27|inf|nan|0x_?f)") {
        let path = KEYS[which].path.replace('*', "x");
        let (section, name) = path.split_once('.').unwrap();
        for header in [format!("[{section}]"), format!("[[{section}]]")] {
            let _ = load(&format!("{header}\n{name} = {value}\n{SMALLEST}"), "f", &env);
        }
    }
}
