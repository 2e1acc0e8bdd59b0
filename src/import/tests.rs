//! Each key and section of the original, and what comes of it. Passwords are sealed as `enc:v1:` and the clear text here.

use super::*;

fn import(text: &str) -> Imported {
    import_cnf(text, "old.cnf", None, &mut |secret: &Secret| {
        Ok(format!(
            "enc:v1:{}",
            String::from_utf8_lossy(secret.expose())
        ))
    })
}

fn told(imported: &Imported) -> Vec<String> {
    imported.problems.iter().map(ToString::to_string).collect()
}

/// What every file needs so that nothing is said about what is missing.
const NEEDED: &str = "[mysql-proxy]\nproxy-address = 0.0.0.0:1234\nproxy-backend-addresses = 10.0.0.1\npwds = u:/iZxz+0GRoA=\n";

/// The settings of a text without comments and empty lines.
fn settings(toml: &str) -> Vec<&str> {
    toml.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .collect()
}

/// Golden files: a whole configuration each, in old and in new. ATLAS_WRITE_GOLDEN=1 writes them anew, to be looked at.
#[test]
fn whole_files() {
    for (name, old, new, problems) in [
        (
            "test.cnf",
            include_str!("../../tests/cases/import/test.cnf"),
            include_str!("../../tests/cases/import/test.toml"),
            include_str!("../../tests/cases/import/test.problems"),
        ),
        (
            "every-key.cnf",
            include_str!("../../tests/cases/import/every-key.cnf"),
            include_str!("../../tests/cases/import/every-key.toml"),
            include_str!("../../tests/cases/import/every-key.problems"),
        ),
        (
            "sharding.cnf",
            include_str!("../../tests/cases/import/sharding.cnf"),
            include_str!("../../tests/cases/import/sharding.toml"),
            include_str!("../../tests/cases/import/sharding.problems"),
        ),
    ] {
        let imported = import_cnf(old, name, None, &mut |secret: &Secret| {
            Ok(format!(
                "enc:v1:{}",
                String::from_utf8_lossy(secret.expose())
            ))
        });
        if std::env::var_os("ATLAS_WRITE_GOLDEN").is_some() {
            let base = format!(
                "{}/tests/cases/import/{}",
                env!("CARGO_MANIFEST_DIR"),
                name.trim_end_matches(".cnf")
            );
            std::fs::write(format!("{base}.toml"), &imported.toml).unwrap();
            let lines: String = told(&imported)
                .iter()
                .map(|line| format!("{line}\n"))
                .collect();
            std::fs::write(format!("{base}.problems"), lines).unwrap();
            continue;
        }
        assert_eq!(imported.toml, new, "{name}");
        assert_eq!(told(&imported).join("\n"), problems.trim_end(), "{name}");
        // And Atlas can be started with it.
        let key =
            crate::auth::SealKey::parse(crate::auth::key_file_text(&[1; 32]).as_bytes()).unwrap();
        let sealed = import_cnf(old, name, None, &mut |secret: &Secret| {
            Ok(key.seal(secret, [2; 12]))
        });
        let outside = crate::config::Outside {
            env: &|_| None,
            key: &|_| Ok(None),
        };
        let loaded = crate::config::load_with(&sealed.toml, "new.toml", outside);
        assert!(loaded.is_ok(), "{name}: {loaded:?}");
    }
}

/// One key in place of the rest, the settings that it makes beside those of the needed ones, and what is said of it.
#[rustfmt::skip]
const KEYS: &[(&str, &[&str], &[&str])] = &[
    // Addresses.
    ("proxy-address = 10.0.0.9", &["listen = [\"10.0.0.9:3306\"]"], &[]),
    ("proxy-address = :4040", &["listen = [\"0.0.0.0:4040\"]"], &[]),
    ("proxy-address = localhost:4040", &["listen = [\"127.0.0.1:4040\"]"], &[]),
    ("proxy-address = /tmp/a.sock", &["listen = [\"unix:/tmp/a.sock\"]"], &[]),
    ("proxy-address = db.example:1234", &["listen = [\"db.example:1234\"]"], &["5: proxy-address: `db.example:1234` is not an address to listen on: write IP:PORT such as \"0.0.0.0:1234\" or \"[::]:1234\", or \"unix:/path/to.sock\""]),
    ("admin-address = 127.0.0.1:2345", &["admin_listen = \"127.0.0.1:2345\""], &[]),
    ("manager-address = 127.0.0.1:2345", &["admin_listen = \"127.0.0.1:2345\""], &[]),
    ("admin-address = 0.0.0.0:2345", &["admin_listen = \"0.0.0.0:2345\""], &["5: warning: admin-address: the admin port can be reached from other machines: 127.0.0.1 is safer"]),
    ("admin-address = /tmp/x", &["admin_listen = \"unix:/tmp/x\""], &["5: admin-address: an IP address and a port are needed"]),
    // Servers.
    ("proxy-backend-addresses = db1:3307", &["primary = \"db1:3307\""], &[]),
    ("proxy-backend-addresses = /tmp/m.sock", &["primary = \"unix:/tmp/m.sock\""], &[]),
    ("proxy-backend-addresses = a:1, b:2", &["primary = \"a:1\""], &["5: warning: proxy-backend-addresses: b:2: a group has one primary; the original took this one when the first was away"]),
    ("proxy-backend-addresses = a:x", &["primary = \"a:x\""], &["5: proxy-backend-addresses: `a:x` is not a server address: write HOST:PORT such as \"10.0.0.1:3306\", \"[::1]:3306\" or \"db1.example:3306\", or \"unix:/path/to.sock\""]),
    ("proxy-read-only-backend-addresses = a, b:3307@2 , c@x, d@0, a", &["replicas = [{ address = \"a:3306\" }, { address = \"b:3307\", weight = 2 }]"], &[
        "5: warning: proxy-read-only-backend-addresses: c:3306 has weight 0 and got no reads: left out",
        "5: warning: proxy-read-only-backend-addresses: d:3306 has weight 0 and got no reads: left out",
        "5: proxy-read-only-backend-addresses: a:3306 is listed twice, which the original refuses: the first one counts",
    ]),
    ("proxy-read-only-backend-addresses = a@5000, b@1, c", &["replicas = [", "  { address = \"a:3306\", weight = 1000 },", "  { address = \"b:3306\", weight = 1 },", "  { address = \"c:3306\", weight = 1 },", "]"], &[]),
    ("proxy-read-only-backend-addresses = ,", &[], &[]),
    // Accounts.
    ("pwds = user1:+jKsgB3YAG8=, a:b:GS+tr4TPgqc=", &["name = \"user1\"", "password = \"enc:v1:user1\"", "[[users]]", "name = \"a:b\"", "password = \"enc:v1:user2\""], &["5: warning: pwds: everybody could decrypt the passwords of the original: they are encrypted anew, and better replaced"]),
    ("pwds = x, u:y, u:/iZxz+0GRoA=", &["name = \"u\""], &[
        "5: pwds: an item without a colon: incorrect password settings",
        "5: pwds: the password of account u cannot be decrypted: `atlas encrypt` makes a new value",
        "5: pwds: account u is there twice: the first one counts",
    ]),
    ("admin-username = root\nadmin-password = p\\\\w\"", &["[admin]", "users = [{ name = \"root\", password = \"enc:v1:p\\\\w\\\"\", role = \"operator\" }]"], &["6: warning: admin-password: stood in clear: it is encrypted now, and better replaced"]),
    ("admin-username = root", &[], &["5: warning: admin-username: an account of the admin port needs a name and a password: left out"]),
    // Who may connect.
    ("client-ips = 10.1.2.3, 192.168.1, 172.16", &["client_networks = [\"10.1.2.3\", \"192.168.1\", \"172.16\"]"], &[]),
    ("client-ips = 10, 1.2.3", &["client_networks = [\"1.2.3\"]"], &["5: warning: client-ips: 10 never let anybody in: left out; 10.0.0.0/8 would"]),
    ("client-ips = 10", &["client_networks = [\"127.0.0.1\"]"], &[
        "5: warning: client-ips: 10 never let anybody in: left out; 10.0.0.0/8 would",
        "5: client-ips: nobody could connect: name who may; only this machine may until then",
    ]),
    ("client-ips = x", &["client_networks = [\"x\"]"], &["5: client-ips: `x` is not a network: write \"10.0.0.0/8\", \"2001:db8::/32\", a single address, or leading octets such as \"192.168.1\""]),
    ("client-ips =", &[], &[]),
    ("lvs-ips = 10.0.0.5", &[], &[]),
    ("client-ips = 10.1.2.3\nlvs-ips = 10.0.0.5", &["client_networks = [\"10.1.2.3\", \"10.0.0.5\"]"], &[]),
    // Numbers.
    ("event-threads = 8", &["workers = 0"], &[]),
    ("max_conn_for_a_backend = 300", &["[pool]", "max_connections = 300"], &[]),
    ("max_conn_for_a_backend = 0", &["[pool]"], &[]),
    ("min-idle-connections = 128", &["[pool]", "min_idle = 128"], &[]),
    ("max_conn_for_a_backend = 10\nmin-idle-connections = 128", &["[pool]", "max_connections = 10", "min_idle = 10"], &[]),
    // Logs.
    ("log-level = message", &["level = \"info\""], &[]),
    ("log-level = critical", &["level = \"error\""], &[]),
    ("log-level = warning", &["level = \"warn\""], &[]),
    ("log-level = debug", &["level = \"debug\""], &[]),
    ("log-level = loud", &["level = \"info\""], &["5: warning: log-level: loud is no level of the original: it is info now"]),
    ("sql-log = OFF", &[], &[]),
    ("sql-log = on", &["audit = { file = \"audit.json\" }"], &[]),
    ("sql-log = REALTIME\nlog-path = /var/log/a/\ninstance = t", &["audit = { file = \"/var/log/a/t-audit.json\" }"], &[]),
    ("sql-log = ON\nsql-log-slow = 100\nlog-path = /l", &["slow = { file = \"/l/slow.log\", threshold = \"100ms\" }"], &[]),
    ("sql-log-slow = 100", &[], &[]),
    // Sub-tables.
    ("tables = shop.orders.id.4", &["[[tables]]", "name = \"shop.orders\"", "key = \"id\"", "hash = \"atlas32\"", "ranges = [{ groups = [\"main\"], tables = 4 }]"], &["5: warning: tables: shop.orders.id.4: rows stay where they are by the original's unsigned 32-bit arithmetic; `mod` would place keys from 2147483648 on, negative ones and texts elsewhere"]),
    ("tables = shop.orders.4, a.b.c.0, a.b.c.x", &[], &[
        "5: tables: shop.orders.4: incorrect sub-table settings; db.table.column.n is needed",
        "5: tables: a.b.c.0: incorrect sub-table settings; n is 1 to 10000",
        "5: tables: a.b.c.x: incorrect sub-table settings; n is 1 to 10000",
    ]),
    ("tables = a.b.c.1", &[], &["5: tables: a.b.c.1: with one sub-table the name has no number here: rename b_0 to b, and no rule is needed"]),
    // What is gone, and what never was.
    ("daemon = true   ", &[], &[]),
    ("charset = utf8", &[], &[]),
    ("what = 1", &[], &["5: warning: what: the original did not know this key either: left out"]),
    ("no value", &[], &["5: neither [group] nor key = value: left out"]),
    ("[other]\na = 1", &[], &["5: warning: [other] was not looked at by the original: left out"]),
    ("charset = \u{fffd}", &[], &["5: charset: holds bytes that are not UTF-8: left out"]),
];

#[test]
fn every_key() {
    let bare = import(NEEDED);
    let bare_settings: Vec<String> = settings(&bare.toml)
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    for (lines, wanted, problems) in KEYS {
        let imported = import(&format!("{NEEDED}{lines}\n"));
        let mut new: Vec<&str> = settings(&imported.toml);
        // In place of the needed ones, or beside them.
        new.retain(|line| !bare_settings.iter().any(|bare| bare == line) || wanted.contains(line));
        let wanted_new: Vec<&str> = new
            .iter()
            .copied()
            .filter(|line| wanted.contains(line))
            .collect();
        let mut sorted = wanted.to_vec();
        let mut found = wanted_new.clone();
        sorted.sort_unstable();
        found.sort_unstable();
        found.dedup();
        sorted.dedup();
        assert_eq!(found, sorted, "{lines}\n{}", imported.toml);
        assert!(
            new.iter().all(|line| wanted.contains(line)),
            "{lines}: {new:?}\n{}",
            imported.toml
        );
        let told: Vec<String> = told(&imported)
            .into_iter()
            .filter(|line| !told(&bare).contains(line) && !line.contains("second time"))
            .map(|line| line.trim_start_matches("old.cnf:").to_owned())
            .collect();
        assert_eq!(told, *problems, "{lines}");
    }
}

/// A rule, the ranges that come of it, and what is said of it.
#[rustfmt::skip]
const RULES: &[(&str, &str, &[&str])] = &[
    ("type = range\ngroups = 0:0-999,1:1000-*", "ranges = [{ from = 0, to = 1000, groups = [\"group-0\"] }, { from = 1000, to = \"max\", groups = [\"group-1\"] }]", &[]),
    ("type = hash\ngroups = 1, 0", "ranges = [{ groups = [\"group-1\", \"group-0\"] }]", &[]),
    ("type = range\ngroups = 0:5-9223372036854775807", "ranges = [{ from = 5, to = \"max\", groups = [\"group-0\"] }]", &[]),
    ("type = range\ngroups = 1:2000-2999,0:0-999", "ranges = [{ from = 0, to = 1000, groups = [\"group-0\"] }, { from = 2000, to = 3000, groups = [\"group-1\"] }]", &["warning: groups: the keys 1000 to 1999 are in no group"]),
    // Both ends are in a range of the original: 1000 is in two groups.
    ("type = range\ngroups = 0:0-1000,1:1000-2000", "ranges = [{ from = 0, to = 1001, groups = [\"group-0\"] }, { from = 1000, to = 2001, groups = [\"group-1\"] }]", &["groups: the ranges from 0 and from 1000 overlap (both ends are in a range): say where the keys that are in both are"]),
    ("type = range\ngroups = 0:0-*,1:1000-2000", "", &["groups: the ranges from 0 and from 1000 overlap (both ends are in a range): say where the keys that are in both are"]),
    ("type = range\ngroups = 0:0-9,7:10-19", "", &["groups: there is no [group-7]"]),
    ("type = range\ngroups = 0:9-0,x,0:1,0:a-b,0:0-9223372036854775808", "", &[
        "groups: 0:9-0 is not group:first-last: left out", "groups: x is not group:first-last: left out", "groups: 0:1 is not group:first-last: left out",
        "groups: 0:a-b is not group:first-last: left out", "groups: 0:0-9223372036854775808 is not group:first-last: left out",
        "groups: no group is named: the rule is left out",
    ]),
    ("type = hash\ngroups =", "", &["groups: no group is named: the rule is left out"]),
    ("groups = 0:0-*", "ranges = [{ from = 0, to = \"max\", groups = [\"group-0\"] }]", &["warning: shardrule-0: the type is neither range nor hash, which the original takes for range"]),
    ("type = hash", "", &["shardrule-0: a rule needs table, shard-key and groups: left out"]),
];

#[test]
fn rules_of_sharding() {
    for (rule, wanted, problems) in RULES {
        let text = format!(
            "{NEEDED}[shardrule-0]\ntable = shop.orders\nshard-key = id\n{rule}\n\
             [group-0]\nproxy-backend-addresses = a\n[group-1]\nproxy-backend-addresses = b\n"
        );
        let imported = import(&text);
        let one_line = imported
            .toml
            .replace("[\n  ", "[")
            .replace(",\n  ", ", ")
            .replace(",\n]", "]");
        assert!(one_line.contains(wanted), "{rule}\n{one_line}");
        let told: Vec<String> = told(&imported)
            .iter()
            .filter(|line| !line.contains("pwds"))
            .map(|line| {
                line.splitn(3, ':')
                    .nth(2)
                    .unwrap_or_default()
                    .trim_start()
                    .to_owned()
            })
            .collect();
        assert_eq!(told, *problems, "{rule}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let imported = import("");
    assert_eq!(
        told(&imported),
        [
            "old.cnf:1: there is no [mysql-proxy]: this is no configuration of the original",
            "old.cnf:1: proxy-address: missing: the original needs it; here it is 0.0.0.0:1234 by default",
            "old.cnf:1: pwds: missing: there is no account that could log in",
        ]
    );
    let twice = format!(
        "{NEEDED}[shardrule-0]\ntable = a.b\nshard-key = k\ntype = hash\ngroups = 0\n[shardrule-1]\ntable = a.b\nshard-key = k\ntype = hash\ngroups = 0\n[group-0]\nproxy-backend-addresses = a\nlog-path = /x\nwhat = 1\n"
    );
    let told = told(&import(&twice)).join("\n");
    for text in [
        "old.cnf:11: table: a.b has a rule already: left out",
        "warning: log-path: stands in [group-0], where the original did not see it: left out; it belongs under [mysql-proxy]",
        "warning: what: the original did not know this key: left out",
    ] {
        assert!(told.contains(text), "{told}");
    }
}

/// A password is only where passwords are.
#[test]
fn passwords_are_not_told() {
    let text = format!(
        "{NEEDED}admin-username = a\nadmin-password = hunter2\nhunter2\npwd = x:hunter2\npwds = x:hunter2,hunter2\n"
    );
    let imported = import(&text);
    assert!(
        !told(&imported).join("\n").contains("hunter2"),
        "{imported:?}"
    );
    assert_eq!(
        imported.toml.matches("hunter2").count(),
        1,
        "{}",
        imported.toml
    );
    assert!(imported.toml.contains("password = \"enc:v1:hunter2\""));
}

/// A seal that does not work is said, and no clear password is written.
#[test]
fn without_a_key() {
    let imported = import_cnf(NEEDED, "old.cnf", Some("/etc/k"), &mut |_: &Secret| {
        Err("no key".to_owned())
    });
    assert!(
        told(&imported).contains(&"old.cnf:4: pwds: no key".to_owned()),
        "{imported:?}"
    );
    assert!(imported.toml.contains("key_file = \"/etc/k\"") && !imported.toml.contains("123456"));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "([\\[\\]a-z=,.:@0-9*# \\\\-]{0,40}\n){0,8}") {
        let _ = import(&format!("{NEEDED}{text}"));
        let _ = import(&text);
    }

    /// Whatever a value holds, what is written is TOML.
    #[test]
    fn what_is_written_is_toml(value in "[^\n\r]{0,30}", which in 0..30_usize) {
        let keys = ["proxy-address", "admin-address", "admin-username", "proxy-backend-addresses", "proxy-read-only-backend-addresses", "pwds", "tables", "client-ips", "lvs-ips", "sql-log", "event-threads", "log-level", "log-path", "charset", "instance"];
        let imported = import(&format!("{NEEDED}{} = {value}\nsql-log = ON\nadmin-password = x\n", keys[which % keys.len()]));
        let (_, mistakes) = toml::de::DeTable::parse_recoverable(&imported.toml);
        proptest::prop_assert!(mistakes.is_empty(), "{}\n{:?}", imported.toml, mistakes);
    }
}
