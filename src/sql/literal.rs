//! String literals and quoted names, to bytes and back. This is the only place that quotes a value.
//!
//! The escapes are those of the manual page "String Literals"; they were tried on MySQL 9.7 and
//! MariaDB 10.11.

use super::Dialect;
use super::cursor::unquoted;
use super::scan::{Scanner, Tok};

/// What a text stands for that is a word or a string, as `utf8mb4` and `'utf8mb4'` do.
///
/// `None` if it is more than that, or has an introducer, or no end.
#[must_use]
pub fn decode(text: &[u8], d: &Dialect) -> Option<Vec<u8>> {
    let mut scan = Scanner::new(text, d);
    let first = scan.next();
    let mut out = Vec::new();
    let mut t = first;
    while t.tok == Tok::Text {
        let part = scan.text(t);
        scan.push_content(&mut out, part);
        let next = scan.next();
        // Two quotes side by side are one quote of the string; apart, two strings make one.
        if next.tok == Tok::Text && next.start == t.end && scan.text(next).first() == part.first() {
            out.extend(part.first());
        }
        t = next;
    }
    if matches!(first.tok, Tok::Word | Tok::Name) {
        let name = scan.text(first);
        let quote = name.first().copied().filter(|_| first.tok == Tok::Name);
        push_undoubled(&mut out, unquoted(name), quote);
        t = scan.next();
    }
    let is_all = t.tok == Tok::End && first.tok != Tok::End && scan.found.is_empty();
    is_all.then_some(out)
}

/// Appends `value` as a string literal.
pub fn push_string(out: &mut Vec<u8>, value: &[u8], d: &Dialect) {
    let escapes_backslash = !d.no_backslash_escapes;
    push_quoted(out, value, d, b'\'', |b| {
        b == b'\'' || b == b'\\' && escapes_backslash
    });
}

/// Appends `name` as a quoted name. False, and nothing is appended, for what no name can be: it holds
/// a zero byte, or ends inside a character that would take the closing quote for its second byte.
#[must_use]
pub fn push_name(out: &mut Vec<u8>, name: &[u8], d: &Dialect) -> bool {
    let start = out.len();
    push_quoted(out, name, d, b'`', |b| b == b'`');
    let quoted = out.get(start..).unwrap_or_default();
    let is_name = decode(quoted, d).as_deref() == Some(name);
    if !is_name {
        out.truncate(start);
    }
    is_name
}

fn push_quoted(
    out: &mut Vec<u8>,
    text: &[u8],
    d: &Dialect,
    quote: u8,
    is_doubled: impl Fn(u8) -> bool,
) {
    let scan = Scanner::new(text, d);
    out.push(quote);
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        let len = scan.char_len(at);
        if len == 1 && is_doubled(b) {
            out.push(b);
        }
        out.extend_from_slice(scan.span(at, at + len));
        at += len;
    }
    out.push(quote);
}

impl Scanner<'_> {
    /// Appends what stands between the quotes of a string of one piece.
    fn push_content(&self, out: &mut Vec<u8>, string: &[u8]) {
        let inside = unquoted(string);
        let inner = Scanner::new(inside, self.dialect());
        let mut at = 0;
        while let Some(&b) = inside.get(at) {
            if b == b'\\' && !self.dialect().no_backslash_escapes {
                let escaped = inside.get(at + 1).copied().unwrap_or(b'\\');
                match escaped {
                    b'0' => out.push(0),
                    b'b' => out.push(8),
                    b'n' => out.push(b'\n'),
                    b'r' => out.push(b'\r'),
                    b't' => out.push(b'\t'),
                    b'Z' => out.push(0x1a),
                    // Kept whole, for LIKE.
                    b'%' | b'_' => out.extend([b'\\', escaped]),
                    other => out.push(other),
                }
                at += 2;
            } else {
                let len = inner.char_len(at);
                out.extend_from_slice(inner.span(at, at + len));
                at += len;
            }
        }
    }
}

fn push_undoubled(out: &mut Vec<u8>, name: &[u8], quote: Option<u8>) {
    let mut bytes = name.iter().copied();
    while let Some(b) = bytes.next() {
        out.push(b);
        if Some(b) == quote {
            bytes.next();
        }
    }
}
