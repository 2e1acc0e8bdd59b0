//! The normal form of a statement, in which all statements of a kind look alike: literals are `?`, comments, blanks and case do not
//! count, lists of literals are one however long. It shows nothing of what the literals were, so it may be shown to anybody. And a
//! number of 64 bits that stands for it.

use super::Dialect;
use super::scan::{Scanner, Tok};

/// Words that have a blank before a bracket behind them; other words are names of functions or tables there.
const SPACED: &[&[u8]] = &[
    b"in", b"values", b"value", b"and", b"or", b"xor", b"on", b"where", b"not", b"exists",
    b"using", b"as", b"when", b"then", b"else", b"over", b"union", b"all", b"any", b"select",
    b"by", b"from",
];

/// Bytes of a text that are looked at.
const TEXT_MAX: usize = 16 * 1024;
/// Bytes of a normal form that are kept.
const FORM_MAX: usize = 1024;

/// The number of a text's kind, as operators are shown it and rules name it; its normal form, as far as that counts, is in `form`.
pub fn digest(sql: &[u8], dialect: &Dialect, form: &mut Vec<u8>) -> u64 {
    let text = sql.get(..TEXT_MAX).unwrap_or(sql);
    normalise(text, dialect, FORM_MAX, form)
}

/// Writes the normal form of a text in place of what is in `out`, at most so many bytes; gives its number.
pub fn normalise(sql: &[u8], dialect: &Dialect, max: usize, out: &mut Vec<u8>) -> u64 {
    out.clear();
    let mut scan = Scanner::new(sql, dialect);
    let mut before = Tok::End;
    let mut hugs = false;
    while out.len() < max {
        let token = scan.next();
        let text = scan.text(token);
        match token.tok {
            Tok::End => break,
            // Strings side by side are one.
            Tok::Text if before == Tok::Text => {}
            Tok::Text | Tok::Number => {
                // A sign behind an operator or a bracket belongs to the number.
                if before == Tok::Other && has_sign(out) {
                    out.pop();
                    if out.last() == Some(&b'(') {
                        before = Tok::Open;
                    }
                }
                if out.ends_with(b"?, ") {
                    out.extend_from_slice(b"...");
                } else if out.ends_with(b"?, ..., ") {
                    trim(out);
                    out.pop();
                } else {
                    blank(out, before, token.tok, hugs);
                    out.push(b'?');
                }
                hugs = false;
            }
            Tok::Close => {
                out.push(b')');
                fold_groups(out);
                hugs = false;
            }
            Tok::Comma => out.extend_from_slice(b", "),
            Tok::Word => {
                blank(out, before, token.tok, hugs);
                let start = out.len();
                out.extend(text.iter().map(u8::to_ascii_lowercase));
                let word = out.get(start..).unwrap_or_default();
                hugs = !SPACED.contains(&word);
            }
            _ => {
                blank(out, before, token.tok, hugs);
                out.extend_from_slice(text);
                hugs = token.tok == Tok::Name;
            }
        }
        before = token.tok;
    }
    trim(out);
    out.truncate(max);
    hash(out)
}

/// The number of a normal form: FNV-1a, which stays the same from version to version, for rules name statements by it.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn trim(out: &mut Vec<u8>) {
    while out.last() == Some(&b' ') {
        out.pop();
    }
}

/// Whether the text ends with a sign that is no operator between two values.
fn has_sign(out: &[u8]) -> bool {
    let [before @ .., b'-' | b'+'] = out else {
        return false;
    };
    let before = before.strip_suffix(b" ").unwrap_or(before);
    matches!(
        before.last(),
        Some(b'(' | b',' | b'=' | b'<' | b'>' | b'*' | b'/')
    )
}

/// One blank between two tokens, but for those that belong together.
fn blank(out: &mut Vec<u8>, before: Tok, now: Tok, hugs: bool) {
    let is_close = matches!(before, Tok::End | Tok::Open | Tok::Dot | Tok::SysVar)
        || matches!(now, Tok::Dot | Tok::Semicolon)
        || now == Tok::Open && hugs;
    if !is_close && out.last() != Some(&b' ') {
        out.push(b' ');
    }
}

/// `(?, ...), (?, ...)` is `(?, ...), ...`: a statement with many rows is one with few.
fn fold_groups(out: &mut Vec<u8>) {
    let Some(start) = last_group(out, out.len()) else {
        return;
    };
    let (head, group) = out.split_at(start);
    // What stands between the group and the one before.
    const NEXT: &[u8] = b", ";
    const MORE: &[u8] = b", ..., ";
    if head.ends_with(MORE) && is_same_group(out, start - MORE.len(), group) {
        out.truncate(start - NEXT.len());
    } else if head.ends_with(NEXT) && is_same_group(out, start - NEXT.len(), group) {
        out.truncate(start);
        out.extend_from_slice(b"...");
    }
}

/// Where the bracket opens that is closed at `end`.
fn last_group(out: &[u8], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in out.get(..end)?.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Whether the bracket that is closed at `end` holds the same as `group`.
fn is_same_group(out: &[u8], end: usize, group: &[u8]) -> bool {
    last_group(out, end).and_then(|start| out.get(start..end)) == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn form(sql: &str) -> (String, u64) {
        let dialect = Dialect::new(Server::MySql, 80_036);
        let mut out = Vec::new();
        let digest = normalise(sql.as_bytes(), &dialect, 1024, &mut out);
        (String::from_utf8(out).unwrap(), digest)
    }

    #[test]
    fn forms() {
        for (sql, wanted) in [
            (
                "select * from t where id = 1",
                "select * from t where id = ?",
            ),
            (
                "SELECT  a.b,c FROM `t` WHERE x='it''s' AND y = -5",
                "select a.b, c from `t` where x = ? and y = ?",
            ),
            ("SELECT 1 - 2", "select ? - ?"),
            ("/* a */ SELECT 1 -- b", "select ?"),
            ("SELECT f ( x ), count (*)", "select f(x), count(*)"),
            ("WHERE id IN (1,2, 3 ,4)", "where id in (?, ...)"),
            ("WHERE id IN (1)", "where id in (?)"),
            ("WHERE id IN (-1, +2, -3)", "where id in (?, ...)"),
            (
                "INSERT INTO t(a,b) VALUES (1,'x'),(2,'y'),(3,'z')",
                "insert into t(a, b) values (?, ...), ...",
            ),
            (
                "INSERT INTO t VALUES (1, NULL), (2, NULL)",
                "insert into t values (?, null), ...",
            ),
            ("SELECT @@session.x, @y", "select @@session.x, @y"),
            ("", ""),
            (
                "CREATE USER 'x'@'%' IDENTIFIED BY 'Secr3t",
                "create user ? @'%' identified by ?",
            ),
            (
                "SET PASSWORD FOR x = PASSWORD('Secr3t3')",
                "set password for x = password(?)",
            ),
        ] {
            let got = form(sql).0;
            assert_eq!(got, wanted, "{sql}");
        }
    }

    /// B276: comments make no difference; nor do case of keywords, blanks, and how many.
    #[test]
    fn one_kind_has_one_number() {
        let digest = |sql: &str| form(sql).1;
        let one = digest("SELECT v FROM t WHERE id IN (1, 2)");
        for same in [
            "select v from t where id in (7,8,9)",
            "SELECT v FROM t WHERE id IN (1,2) /* trace=77 */",
            "/* x */ SELECT v\nFROM t WHERE id IN ('a', 2, 3, 4)",
        ] {
            assert_eq!(digest(same), one, "{same}");
        }
        assert_ne!(digest("SELECT w FROM t WHERE id IN (1, 2)"), one);
        // The number is part of what rules name: it must not change.
        assert_eq!(digest("SELECT 1"), hash(b"select ?"));
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
    }

    #[test]
    fn any_text_comes_to_an_end() {
        let many = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(form(&many).0.len() <= 1024);
        for text in [
            "((((",
            "))))",
            "?, ?, ?",
            "'",
            "`",
            "(?), (",
            ",,,,",
            "(), (), ()",
            "--1",
            "= - - 1",
        ] {
            let once = form(text);
            assert_eq!(form(text), once);
        }
    }
}
