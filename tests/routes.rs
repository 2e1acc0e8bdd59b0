//! Where statements go: every line of `cases/routes.tsv`, from a fresh session outside a transaction.

use atlas::sql::{Dialect, Server, classify};

const ROUTES: &str = include_str!("cases/routes.tsv");

/// `\n`, `\t` and `\\` in a line of the table.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                other => panic!("unknown escape {other:?} in {text:?}"),
            },
            b => b,
        });
    }
    out
}

fn routes() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    ROUTES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (route, sql) = line
                .split_once('\t')
                .unwrap_or_else(|| panic!("no tab in {line:?}"));
            (route, unescape(sql))
        })
}

fn check(d: &Dialect) {
    let mut wrong = Vec::new();
    for (route, sql) in routes() {
        let statement = classify(&sql, d);
        let is = if statement.wants_primary().is_none() {
            "replica"
        } else {
            "primary"
        };
        if is != route {
            wrong.push(format!(
                "{route}: {} {statement:?}",
                String::from_utf8_lossy(&sql)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong for {d:?}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_table_holds_for_mariadb() {
    check(&Dialect::new(Server::MariaDb, 10_11_19));
}

#[test]
fn the_table_holds_for_mysql() {
    check(&Dialect::new(Server::MySql, 9_07_04));
    check(&Dialect::new(Server::MySql, 8_00_36));
}

#[test]
fn the_table_holds_while_the_version_is_not_known() {
    // What the version decides may go to the primary, never the other way.
    for server in [Server::MySql, Server::MariaDb] {
        for (route, sql) in routes().filter(|(route, _)| *route == "primary") {
            let statement = classify(&sql, &Dialect::new(server, 0));
            assert!(
                statement.wants_primary().is_some(),
                "{route}: {}",
                String::from_utf8_lossy(&sql)
            );
        }
    }
}

#[test]
fn the_table_is_all_there() {
    let count = |which| routes().filter(|(route, _)| *route == which).count();
    assert!(count("replica") >= 40 && count("primary") >= 80);
}
