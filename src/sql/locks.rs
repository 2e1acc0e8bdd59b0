//! User locks: which one a plain statement takes or releases. What is not plain takes one that nobody can count.

use super::Dialect;
use super::cursor::{Cursor, unquoted};
use super::scan::Tok;

/// What a statement does with user locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockUse<'a> {
    /// It may take the lock of this name; names differ in more than case.
    Takes(&'a [u8]),
    /// It releases it once.
    Releases(&'a [u8]),
    /// It releases all.
    ReleasesAll,
    /// It only asks.
    Asks,
    /// It may do anything.
    Unknown,
}

/// Reads `SELECT GET_LOCK('name', 10)` and its kin, alone in their statement (also by DO).
#[must_use]
pub fn lock_use<'a>(sql: &'a [u8], d: &Dialect) -> LockUse<'a> {
    let mut c = Cursor::new(sql, d);
    read(&mut c).unwrap_or(LockUse::Unknown)
}

fn read<'a>(c: &mut Cursor<'a>) -> Option<LockUse<'a>> {
    if !(c.eat_word("select") || c.eat_word("do")) {
        return None;
    }
    let function = c.text().to_ascii_lowercase();
    c.step();
    if !c.eat(Tok::Open) {
        return None;
    }
    let mut name = None;
    if c.tok() == Tok::Text {
        let text = unquoted(c.text());
        // Escapes would have to be understood.
        name = Some(text)
            .filter(|t| t.is_ascii() && !t.iter().any(|b| matches!(b, b'\\' | b'\'' | b'"')));
        c.step();
        if c.eat(Tok::Comma) {
            if c.text() == b"-" {
                c.step();
            }
            if c.tok() != Tok::Number {
                return None;
            }
            c.step();
        }
    }
    if !c.eat(Tok::Close) {
        return None;
    }
    if c.eat_word("as") || matches!(c.tok(), Tok::Word | Tok::Name) {
        if c.is_one_of(&[
            "from", "where", "into", "union", "for", "limit", "order", "group",
        ]) {
            return None;
        }
        c.eat_name()?;
    }
    while c.eat(Tok::Semicolon) {}
    if c.tok() != Tok::End {
        return None;
    }
    Some(match function.as_slice() {
        b"get_lock" => LockUse::Takes(name?),
        b"release_lock" => LockUse::Releases(name?),
        b"release_all_locks" => LockUse::ReleasesAll,
        b"is_free_lock" | b"is_used_lock" => LockUse::Asks,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Charset, Server};
    use super::*;

    #[test]
    fn plain_statements_are_read_and_others_are_not() {
        let d = Dialect {
            server: Server::MariaDb,
            version: 101_119,
            charset: Charset::Plain,
            ansi_quotes: false,
            no_backslash_escapes: false,
        };
        for (sql, lock) in [
            ("SELECT GET_LOCK('a', 10)", LockUse::Takes(b"a")),
            ("select get_lock(\"a\",-1) as got;", LockUse::Takes(b"a")),
            ("DO GET_LOCK('a', 0.5)", LockUse::Takes(b"a")),
            ("SELECT RELEASE_LOCK('a')", LockUse::Releases(b"a")),
            ("SELECT RELEASE_ALL_LOCKS()", LockUse::ReleasesAll),
            ("SELECT IS_FREE_LOCK('a')", LockUse::Asks),
            ("SELECT IS_USED_LOCK('a') x", LockUse::Asks),
            ("SELECT GET_LOCK('a', 1) FROM t", LockUse::Unknown),
            ("SELECT GET_LOCK(?, 1)", LockUse::Unknown),
            (
                "SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)",
                LockUse::Unknown,
            ),
            ("SELECT GET_LOCK('a\\'', 1)", LockUse::Unknown),
            ("SELECT GET_LOCK('a', 1); SELECT 1", LockUse::Unknown),
            ("SELECT RELEASE_LOCK('a') FROM t", LockUse::Unknown),
            ("INSERT INTO t VALUES (GET_LOCK('a', 1))", LockUse::Unknown),
        ] {
            assert_eq!(lock_use(sql.as_bytes(), &d), lock, "{sql}");
        }
    }
}
