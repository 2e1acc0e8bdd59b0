//! User locks: which one a plain statement takes or releases. What is not plain takes one that nobody can count.

use super::Dialect;
use super::cursor::{Cursor, unquoted};
use super::scan::Tok;

/// What a statement does with user locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockUse<'a> {
    /// It takes one lock, if its answer says so.
    Takes(LockName<'a>),
    /// It releases one once, if its answer says so.
    Releases(LockName<'a>),
    /// It releases all.
    ReleasesAll,
    /// It only asks.
    Asks,
    /// It may do anything.
    Unknown,
}

/// The name of a lock as a statement has it. Names differ in more than case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockName<'a> {
    /// A literal's content.
    Literal(&'a [u8]),
    /// The statement's first parameter.
    Parameter,
    /// Something that only the server works out.
    Other,
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
    let name = name(c)?;
    if c.eat_word("as") || matches!(c.tok(), Tok::Word | Tok::Name) {
        if c.is_one_of(&[
            "from", "where", "into", "union", "for", "limit", "order", "group", "having",
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
        b"get_lock" => LockUse::Takes(name),
        b"release_lock" => LockUse::Releases(name),
        b"release_all_locks" => LockUse::ReleasesAll,
        b"is_free_lock" | b"is_used_lock" => LockUse::Asks,
        _ => return None,
    })
}

/// Reads the arguments up to the parenthesis that ends them. `None` where another lock function may be among them.
fn name<'a>(c: &mut Cursor<'a>) -> Option<LockName<'a>> {
    let first = match c.tok() {
        Tok::Text => {
            let text = unquoted(c.text());
            // Escapes would have to be understood.
            let is_plain =
                text.is_ascii() && !text.iter().any(|b| matches!(b, b'\\' | b'\'' | b'"'));
            if is_plain {
                LockName::Literal(text)
            } else {
                LockName::Other
            }
        }
        _ if c.text() == b"?" => LockName::Parameter,
        _ => LockName::Other,
    };
    let mut name = None;
    let mut depth = 0_u32;
    let mut tokens = 0_u32;
    loop {
        match c.tok() {
            Tok::End | Tok::Semicolon => return None,
            Tok::Close if depth == 0 => break,
            Tok::Close => depth -= 1,
            Tok::Open => depth += 1,
            Tok::Comma if depth == 0 && tokens == 1 => name = Some(first),
            Tok::Word if c.text().to_ascii_lowercase().ends_with(b"lock") => return None,
            Tok::Word if c.text().to_ascii_lowercase().ends_with(b"locks") => return None,
            _ => {}
        }
        tokens = tokens.saturating_add(1);
        c.step();
    }
    let is_alone = tokens == 1;
    c.step();
    Some(name.unwrap_or(if is_alone { first } else { LockName::Other }))
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
        let literal = LockName::Literal;
        for (sql, lock) in [
            ("SELECT GET_LOCK('a', 10)", LockUse::Takes(literal(b"a"))),
            (
                "select get_lock(\"a\",-1) as got;",
                LockUse::Takes(literal(b"a")),
            ),
            ("DO GET_LOCK('a', 0.5)", LockUse::Takes(literal(b"a"))),
            ("SELECT GET_LOCK('a', ?)", LockUse::Takes(literal(b"a"))),
            ("SELECT RELEASE_LOCK('a')", LockUse::Releases(literal(b"a"))),
            ("SELECT RELEASE_ALL_LOCKS()", LockUse::ReleasesAll),
            ("SELECT IS_FREE_LOCK('a')", LockUse::Asks),
            ("SELECT IS_USED_LOCK('a') x", LockUse::Asks),
            ("SELECT GET_LOCK(?, 1)", LockUse::Takes(LockName::Parameter)),
            (
                "SELECT RELEASE_LOCK(?)",
                LockUse::Releases(LockName::Parameter),
            ),
            (
                "SELECT GET_LOCK(CONCAT('a', ?), 1)",
                LockUse::Takes(LockName::Other),
            ),
            (
                "SELECT GET_LOCK('a' 'b', 1)",
                LockUse::Takes(LockName::Other),
            ),
            (
                "SELECT GET_LOCK('a\\'', 1)",
                LockUse::Takes(LockName::Other),
            ),
            ("SELECT GET_LOCK('a', 1) FROM t", LockUse::Unknown),
            (
                "SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)",
                LockUse::Unknown,
            ),
            ("SELECT GET_LOCK('a', GET_LOCK('b', 1))", LockUse::Unknown),
            ("SELECT RELEASE_LOCK(RELEASE_ALL_LOCKS())", LockUse::Unknown),
            ("SELECT GET_LOCK('a', 1) + 1", LockUse::Unknown),
            ("SELECT GET_LOCK('a', 1); SELECT 1", LockUse::Unknown),
            ("SELECT RELEASE_LOCK('a') FROM t", LockUse::Unknown),
            ("INSERT INTO t VALUES (GET_LOCK('a', 1))", LockUse::Unknown),
        ] {
            assert_eq!(lock_use(sql.as_bytes(), &d), lock, "{sql}");
        }
    }
}
