//! What rules look at: a statement without its comments, each statement of several by itself, and what `[safety]` asks of one.

use super::dialect::Dialect;
use super::effect::{Effect, Source};
use super::scan::{Scanner, Tok};
use super::{Kind, literal};

/// Writes a statement without comments, each run of blanks as one blank, in place of what is in `out`; at most so many bytes.
/// The text of version comments that runs is part of it. Literals stay.
pub fn bare(sql: &[u8], dialect: &Dialect, max: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut scan = Scanner::new(sql, dialect);
    let mut end = 0;
    loop {
        let token = scan.next();
        if token.tok == Tok::End || out.len() >= max {
            break;
        }
        if token.start > end && !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(scan.text(token));
        end = token.end;
    }
    out.truncate(max);
}

/// The statements of a text that holds several, each without the `;` behind it. Those inside of a body count too.
pub fn pieces<'a>(sql: &'a [u8], dialect: &Dialect) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let mut scan = Scanner::new(sql, dialect);
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let start = scan.at();
        loop {
            let token = scan.next();
            if token.tok == Tok::End || token.tok == Tok::Semicolon {
                is_over = token.tok == Tok::End;
                return Some(scan.span(start, token.start));
            }
        }
    })
}

/// The text that a PREPARE or EXECUTE IMMEDIATE has in it, if it is a literal.
#[must_use]
pub fn prepared_text(sql: &[u8], kind: Kind, dialect: &Dialect) -> Option<Vec<u8>> {
    if !matches!(kind, Kind::Prepare | Kind::Execute) {
        return None;
    }
    let mut found = None;
    super::effects(sql, dialect, &mut |effect| {
        if let Effect::Prepare {
            from: Source::Literal(text),
            ..
        }
        | Effect::ExecuteImmediate(Source::Literal(text)) = effect
        {
            found = literal::decode(text, dialect);
        }
    });
    found
}

/// What is known of the texts that a statement has prepared or executed: nothing where it does so with none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Those that stand in it.
    pub literals: Vec<Vec<u8>>,
    /// There is one that only the server knows.
    pub has_unknown: bool,
}

/// The texts of each PREPARE and EXECUTE IMMEDIATE in a statement, or in several.
#[must_use]
pub fn prepared_texts(sql: &[u8], dialect: &Dialect) -> Texts {
    let mut found = Texts::default();
    super::effects(sql, dialect, &mut |effect| {
        let (Effect::Prepare { from, .. } | Effect::ExecuteImmediate(from)) = effect else {
            return;
        };
        match from {
            Source::Literal(text) => match literal::decode(text, dialect) {
                Some(text) => found.literals.push(text),
                None => found.has_unknown = true,
            },
            Source::Variable(_) | Source::Other => found.has_unknown = true,
        }
    });
    found
}

/// Whether it is an UPDATE or DELETE of all rows: one without WHERE.
#[must_use]
pub fn lacks_where(sql: &[u8], dialect: &Dialect) -> bool {
    let mut scan = Scanner::new(sql, dialect);
    let mut depth = 0_usize;
    let mut changes = false;
    let mut is_first = true;
    let mut before = Tok::End;
    loop {
        let token = scan.next();
        match token.tok {
            Tok::End => return changes,
            Tok::Open => depth += 1,
            Tok::Close => depth = depth.saturating_sub(1),
            // A name behind a dot is no keyword.
            Tok::Word if depth == 0 && before != Tok::Dot => {
                let word = scan.text(token);
                let is = |wanted: &[u8]| word.eq_ignore_ascii_case(wanted);
                if is_first && !(is(b"with") || is(b"update") || is(b"delete")) {
                    // What it updates of rows that it would insert is another matter, and so is what is explained only.
                    return false;
                }
                if is(b"select") && !changes {
                    return false;
                }
                changes |= is(b"update") || is(b"delete");
                if is(b"where") {
                    return false;
                }
                is_first = false;
            }
            _ => {}
        }
        before = token.tok;
    }
}

/// The function that makes a server wait or work for nothing, if one is called.
#[must_use]
pub fn calls_sleep(sql: &[u8], dialect: &Dialect) -> Option<&'static str> {
    let mut scan = Scanner::new(sql, dialect);
    let mut called = None;
    let mut before = Tok::End;
    loop {
        let token = scan.next();
        match token.tok {
            Tok::End => return None,
            Tok::Open if called.is_some() => return called,
            Tok::Word | Tok::Name if before != Tok::Dot => {
                // Quotes make no difference to who is called.
                let word = scan.text(token);
                let inner = word.get(1..word.len().saturating_sub(1));
                let word = inner.filter(|_| token.tok == Tok::Name).unwrap_or(word);
                let names = ["SLEEP", "BENCHMARK"];
                called = names
                    .into_iter()
                    .find(|name| word.eq_ignore_ascii_case(name.as_bytes()));
            }
            _ => called = None,
        }
        before = token.tok;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn dialect() -> Dialect {
        Dialect::new(Server::MySql, 80_036)
    }

    fn shown(sql: &str, max: usize) -> String {
        let mut out = Vec::new();
        bare(sql.as_bytes(), &dialect(), max, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_comments() {
        for (sql, wanted) in [
            (
                "/* x */ DELETE /**/ FROM\n\t audit # all\n",
                "DELETE FROM audit",
            ),
            ("DELETE/**/FROM audit", "DELETE FROM audit"),
            ("/*!50001 DELETE */ FROM audit", "DELETE FROM audit"),
            ("/*!99999 DELETE */ SELECT 1", "SELECT 1"),
            ("SELECT '/* a  b */',  \"x\"", "SELECT '/* a  b */', \"x\""),
            ("-- x\n", ""),
            ("", ""),
        ] {
            assert_eq!(shown(sql, 1000), wanted, "{sql}");
        }
        assert_eq!(shown("SELECT 1234", 9), "SELECT 12");
    }

    #[test]
    fn one_by_one() {
        let sql = b"SELECT ';'; DELETE FROM t /* ; */;; UPDATE t SET a = 1";
        let pieces: Vec<String> = pieces(sql, &dialect())
            .map(|piece| String::from_utf8_lossy(piece.trim_ascii()).into_owned())
            .collect();
        assert_eq!(
            pieces,
            [
                "SELECT ';'",
                "DELETE FROM t /* ; */",
                "",
                "UPDATE t SET a = 1"
            ]
        );
    }

    #[test]
    fn prepared() {
        let of = |sql: &str, kind| {
            prepared_text(sql.as_bytes(), kind, &dialect())
                .map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(
            of(
                "PREPARE s FROM 'DELETE FROM t WHERE a = ''x'''",
                Kind::Prepare
            )
            .as_deref(),
            Some("DELETE FROM t WHERE a = 'x'")
        );
        assert_eq!(of("PREPARE s FROM @a", Kind::Prepare), None);
        assert_eq!(of("EXECUTE s", Kind::Execute), None);
        let all = |sql: &str| {
            let found = prepared_texts(sql.as_bytes(), &dialect());
            (found.literals.len(), found.has_unknown)
        };
        assert_eq!(all("PREPARE s FROM 'SELECT 1'"), (1, false));
        assert_eq!(all("PREPARE s FROM @a"), (0, true));
        assert_eq!(
            all("SELECT 1; PREPARE s FROM 'SELECT 1'; PREPARE t FROM @a"),
            (1, true)
        );
        assert_eq!(all("EXECUTE s"), (0, false));
        assert_eq!(all("SELECT 1; SELECT 'PREPARE s FROM @a'"), (0, false));
    }

    #[test]
    fn all_rows() {
        for (sql, wanted) in [
            ("DELETE FROM t", true),
            ("/* where */ delete from t", true),
            ("DELETE FROM t LIMIT 5", true),
            ("UPDATE t SET a = (SELECT b FROM u WHERE u.id = 1)", true),
            ("UPDATE t JOIN u ON t.a = u.a SET t.b = 1", true),
            ("UPDATE t SET a = 'where'", true),
            ("UPDATE t SET a = t.where", true),
            ("UPDATE `where` SET a = 1", true),
            ("WITH c AS (SELECT 1 WHERE 1) DELETE FROM t", true),
            ("/*!40000 DELETE */ FROM t", true),
            ("DELETE FROM t WHERE a = 1", false),
            ("DELETE a FROM a JOIN b WHERE a.x = b.x", false),
            ("UPDATE t SET a = 1 WHERE a", false),
            ("WITH c AS (SELECT 1) SELECT 1 FROM t FOR UPDATE", false),
            ("SELECT 1 FOR UPDATE", false),
            (
                "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
                false,
            ),
            ("CREATE TABLE t (a INT) -- delete", false),
            (
                "CREATE TRIGGER x AFTER DELETE ON t FOR EACH ROW SET @a = 1",
                false,
            ),
            ("EXPLAIN DELETE FROM t", false),
            ("", false),
        ] {
            assert_eq!(lacks_where(sql.as_bytes(), &dialect()), wanted, "{sql}");
        }
    }

    #[test]
    fn sleepers() {
        for (sql, wanted) in [
            ("SELECT SLEEP(5)", Some("SLEEP")),
            ("SELECT 1 FROM t WHERE sleep /* */ (5)", Some("SLEEP")),
            ("SELECT BENCHMARK(1000000, MD5('a'))", Some("BENCHMARK")),
            ("SELECT /*!50000 SLEEP*/(5)", Some("SLEEP")),
            ("SELECT sleep FROM t", None),
            ("SELECT 'SLEEP(5)'", None),
            ("SELECT `sleep` (5)", Some("SLEEP")),
            ("SELECT `sleep` + (5)", None),
            ("SELECT t.sleep(5)", None),
            ("SELECT mysleep(5)", None),
        ] {
            assert_eq!(calls_sleep(sql.as_bytes(), &dialect()), wanted, "{sql}");
        }
    }
}
