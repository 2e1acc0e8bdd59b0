//! Tests of the scanner and of what is read from it. What servers do was asked of MySQL 9.7.4 and
//! MariaDB 10.11.19; their answers are written down here as tables.

mod agree;
mod calls;
mod effects;
mod kinds;
mod lexing;
mod literals;
mod naive;
mod own;
mod plain;
mod reads;
mod sets;
mod texts;

use super::scan::{Scanner, Tok};
use super::{Charset, Dialect, Reason, Server, Statement, Traits, classify};

const MARIADB: Dialect = Dialect::new(Server::MariaDb, 10_11_19);
const MYSQL: Dialect = Dialect::new(Server::MySql, 9_07_04);
const BOTH: [Dialect; 2] = [MARIADB, MYSQL];

fn with_charset(d: Dialect, charset: Charset) -> Dialect {
    Dialect { charset, ..d }
}

/// The tokens of a text, one letter each, and what else the scanner saw: `!` a version comment that
/// runs, `?` two readings, `$` something without an end.
fn tokens(sql: &[u8], d: &Dialect) -> String {
    let mut scan = Scanner::new(sql, d);
    let mut out = String::new();
    loop {
        let t = scan.next();
        let text = scan.text(t);
        out.push(match t.tok {
            Tok::End => break,
            Tok::Word => 'w',
            Tok::Name => 'n',
            Tok::Text => 's',
            Tok::Number => '1',
            Tok::UserVar => '@',
            Tok::SysVar => 'v',
            Tok::Assign => '=',
            Tok::Semicolon => ';',
            Tok::Open => '(',
            Tok::Close => ')',
            Tok::Comma => ',',
            Tok::Dot => '.',
            Tok::Equal => '=',
            Tok::Other => text.first().map_or('0', |b| char::from(*b)),
        });
    }
    for (t, mark) in [
        (Traits::EXECUTABLE, '!'),
        (Traits::DOUBTFUL, '?'),
        (Traits::UNTERMINATED, '$'),
    ] {
        if scan.found.contains(t) {
            out.push(mark);
        }
    }
    out
}

fn facts(sql: &str, d: &Dialect) -> Statement<'static> {
    // Leaked: a hint borrows from the text, and tests are short.
    classify(sql.to_owned().leak().as_bytes(), d)
}

/// Where each statement goes on each server; `None` is a plain read.
fn routes(rows: &[(&str, Option<Reason>)]) {
    for d in BOTH {
        for (sql, reason) in rows {
            let statement = facts(sql, &d);
            assert_eq!(
                statement.wants_primary(),
                *reason,
                "{:?}: {sql}\n{statement:?}",
                d.server
            );
        }
    }
}

fn all(reason: Option<Reason>, texts: &[&str]) {
    routes(&texts.iter().map(|sql| (*sql, reason)).collect::<Vec<_>>());
}

fn on(d: &Dialect, rows: &[(&str, Option<Reason>)]) {
    for (sql, reason) in rows {
        let statement = facts(sql, d);
        assert_eq!(
            statement.wants_primary(),
            *reason,
            "{:?}: {sql}\n{statement:?}",
            d.server
        );
    }
}
