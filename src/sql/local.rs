//! Small questions about a statement that a proxy itself asks: KILL, the end of the connection, Atlas's own EXPLAIN ROUTE,
//! whether there are tables.

use super::cursor::Cursor;
use super::scan::Tok;
use super::{Dialect, Kill, Kind, classify};

/// Which connection a KILL statement ends.
///
/// `None` if `sql` is not a single KILL of a plain number: `KILL @x`, `KILL USER u` and
/// `KILL QUERY ID n` are for the server.
#[must_use]
pub fn kill_target(sql: &[u8], d: &Dialect) -> Option<Kill> {
    let mut c = Cursor::new(sql, d);
    if !c.eat_word("kill") {
        return None;
    }
    let _how = c.eat_word("hard") || c.eat_word("soft");
    let query = c.eat_word("query");
    if !query {
        c.eat_word("connection");
    }
    let number = (c.tok() == Tok::Number).then(|| c.text())?;
    let id = std::str::from_utf8(number).ok()?.parse().ok()?;
    c.step();
    while c.eat(Tok::Semicolon) {}
    (c.tok() == Tok::End).then_some(Kill { query, id })
}

/// Whether a KILL is one of a statement and not of a connection; `None` if `sql` is no KILL.
#[must_use]
pub fn kills_query(sql: &[u8], d: &Dialect) -> Option<bool> {
    let mut c = Cursor::new(sql, d);
    if !c.eat_word("kill") {
        return None;
    }
    let _how = c.eat_word("hard") || c.eat_word("soft");
    Some(c.is_word("query"))
}

/// Whether the word RELEASE is somewhere in a text, be it within a literal that is executed.
#[must_use]
pub fn names_release(sql: &[u8]) -> bool {
    const WORD: &[u8] = b"release";
    sql.windows(WORD.len())
        .any(|word| word.eq_ignore_ascii_case(WORD))
}

/// Whether a COMMIT or ROLLBACK ends the connection too: as its RELEASE or NO RELEASE says, or as it is `by_default`, which is what
/// `completion_type` says.
#[must_use]
pub fn releases_connection(sql: &[u8], d: &Dialect, by_default: bool) -> bool {
    let mut c = Cursor::new(sql, d);
    let (mut releases, mut is_negated) = (by_default, false);
    while !c.is_at_end() {
        if c.is_word("release") {
            releases = !is_negated;
        }
        is_negated = c.is_word("no");
        c.step();
    }
    releases
}

/// Whether DATABASE() or SCHEMA() is called.
#[must_use]
pub fn asks_schema(sql: &[u8], d: &Dialect) -> bool {
    let mut c = Cursor::new(sql, d);
    let (mut is_name, mut is_open) = (false, false);
    while c.tok() != Tok::End {
        if is_open && c.tok() == Tok::Close {
            return true;
        }
        is_open = is_name && c.tok() == Tok::Open;
        is_name = c.is_word("database") || c.is_word("schema");
        c.step();
    }
    false
}

/// Where in `sql` the statement starts that an EXPLAIN ROUTE asks about (its comments belong to it);
/// `None` if `sql` is no EXPLAIN ROUTE.
#[must_use]
pub fn explain_route_target(sql: &[u8], d: &Dialect) -> Option<usize> {
    if classify(sql, d).kind != Kind::ExplainRoute {
        return None;
    }
    let mut c = Cursor::new(sql, d);
    (c.eat_word("explain") && c.eat_word("route")).then(|| c.last_end())
}

/// Whether a statement names a table, as far as its words tell.
#[must_use]
pub fn uses_tables(sql: &[u8], d: &Dialect, kind: Kind) -> bool {
    if matches!(kind, Kind::Write | Kind::Ddl | Kind::Lock) {
        return true;
    }
    let mut c = Cursor::new(sql, d);
    while c.tok() != Tok::End {
        if c.is_word("from") {
            return true;
        }
        c.step();
    }
    false
}
