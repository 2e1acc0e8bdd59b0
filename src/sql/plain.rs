//! Plain statements: told from the rest in one short loop, before the classifier looks.
//!
//! Nearly every statement of a busy client is a SELECT, INSERT, UPDATE or DELETE in which no word, call, variable or comment ties
//! it to anything, so that only its first word matters. That is what is made sure of here, byte by byte, with nothing remembered
//! between tokens. At the first sign of anything else this gives up and `classify` looks from the start; so this may be blind but
//! never wrong. It is the classifier's own judgement, reached with a fifth of the work and of the code: between two statements
//! of a quiet client the caches go cold, and every cache line of code is then waited for.

use super::function::{self, Class};
use super::word;
use super::{Dialect, Kind, Traits};
use memchr::{memchr, memchr2};

/// [`Kind::Read`] or [`Kind::Write`] for a text that is one such statement without any hint or traits but that it is an UPDATE of one
/// table; `None` for any other text, and for some that are.
pub(super) fn plain_kind(sql: &[u8], d: &Dialect) -> Option<(Kind, Traits)> {
    let mut at = 0;
    while is_blank(*sql.get(at)?) {
        at += 1;
    }
    // The first word and what stands behind it, read at once.
    let head: &[u8; 8] = sql.get(at..)?.first_chunk()?;
    let verb = six_letters(*head);
    let (kind, telling) = match verb {
        SELECT => (Kind::Read, &TELLING),
        INSERT | UPDATE | DELETE => (Kind::Write, &TELLING_IN_WRITE),
        _ => return None,
    };
    if !is_blank(head[6]) {
        return None;
    }
    at += 7;
    let traits = match verb {
        UPDATE if is_of_one_table(sql.get(at..)?) => Traits::MATCHES,
        DELETE if first_word(sql.get(at..)?).eq_ignore_ascii_case(b"from") => Traits::NONE,
        SELECT | INSERT => Traits::NONE,
        _ => return None,
    };
    while let Some(&b) = sql.get(at) {
        match ACTION[usize::from(b)] {
            Action::Pass => at += 1,
            Action::Letter => {
                let end = word_end(sql, at + 1);
                let len = end - at;
                let may_tell = telling.get(len).is_some_and(|set| set >> (b & 31) & 1 != 0);
                if may_tell && tells(sql.get(at..)?, len, kind) {
                    return None;
                }
                at = end;
            }
            Action::Digit => at = number_end(sql, at)?,
            Action::Dot => at = behind_dot(sql, at)?,
            Action::Open => {
                if !calls_nothing(sql.get(..at)?, d, kind) {
                    return None;
                }
                at += 1;
            }
            Action::Quote => at = text_end(sql, at + 1)?,
            Action::Backquote => at = name_end(sql, at + 1, d)?,
            // Two dashes may start a comment.
            Action::Dash if sql.get(at + 1) == Some(&b'-') => return None,
            Action::Slash if sql.get(at + 1) == Some(&b'*') => return None,
            Action::Dash | Action::Slash => at += 1,
            Action::GiveUp => return None,
        }
    }
    Some((kind, traits))
}

/// The word at the beginning, blanks before it aside.
fn first_word(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    text.get(..word_end(text, 0)).unwrap_or_default()
}

/// Whether what stands behind UPDATE names one table, up to the SET.
#[cold]
fn is_of_one_table(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(b) = text.get(at) {
        match ACTION[usize::from(*b)] {
            Action::Letter => {
                let end = word_end(text, at);
                let word = text.get(at..end).unwrap_or_default();
                // Behind a dot it is a name.
                if at.checked_sub(1).and_then(|at| text.get(at)) != Some(&b'.') {
                    if word.eq_ignore_ascii_case(b"set") {
                        return true;
                    }
                    // Not there in an UPDATE that a server takes; what it is about the full look says.
                    if word.eq_ignore_ascii_case(b"from") {
                        return false;
                    }
                }
                at = end;
            }
            Action::Backquote => match text.get(at + 1..).and_then(|t| memchr(b'`', t)) {
                Some(len) => at += len + 2,
                None => return false,
            },
            Action::Pass if *b != b',' => at += 1,
            Action::Dot | Action::Digit => at += 1,
            _ => return false,
        }
    }
    false
}

/// What to do at a byte outside strings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Action {
    // The first two are the bytes of a word.
    Letter,
    Digit,
    /// A blank, or a sign that means nothing.
    Pass,
    Dot,
    Open,
    Quote,
    Backquote,
    Dash,
    Slash,
    /// Signs that may mean something, and whatever is rare.
    GiveUp,
}

static ACTION: [Action; 256] = {
    let mut table = [Action::GiveUp; 256];
    let mut b = 0;
    while b < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "b < 256")]
        let byte = b as u8;
        table[b] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Action::Letter,
            b'0'..=b'9' => Action::Digit,
            b'\t'..=b'\r' | b' ' => Action::Pass,
            b')' | b',' | b'=' | b'<' | b'>' | b'!' | b'+' | b'*' | b'%' | b'&' | b'|' | b'^'
            | b'~' | b'?' => Action::Pass,
            b'.' => Action::Dot,
            b'(' => Action::Open,
            b'\'' => Action::Quote,
            b'`' => Action::Backquote,
            b'-' => Action::Dash,
            b'/' => Action::Slash,
            _ => Action::GiveUp,
        };
        b += 1;
    }
    table
};

const fn is_word(b: u8) -> bool {
    ACTION[b as usize] as u8 <= Action::Digit as u8
}

const fn is_blank(b: u8) -> bool {
    matches!(b, b'\t'..=b'\r' | b' ')
}

/// The first six bytes as one number, the same for a letter in either case; nothing else is the same as a letter.
const fn six_letters(bytes: [u8; 8]) -> u64 {
    (u64::from_le_bytes(bytes) | 0x2020_2020_2020) & 0xffff_ffff_ffff
}

const SELECT: u64 = six_letters(*b"select  ");
const INSERT: u64 = six_letters(*b"insert  ");
const UPDATE: u64 = six_letters(*b"update  ");
const DELETE: u64 = six_letters(*b"delete  ");

/// The words that mean something wherever they stand.
const WORDS: [&str; 15] = [
    "for",
    "into",
    "with",
    "limit",
    "share",
    "union",
    "fetch",
    "delete",
    "except",
    "insert",
    "offset",
    "update",
    "replace",
    "intersect",
    "sql_calc_found_rows",
];

/// Those that mean something in what writes. What writes is no news there, and its INTO names a table; but of a query in it, and of
/// several tables, FOUND_ROWS() may tell.
const WORDS_IN_WRITE: [&str; 9] = [
    "for",
    "with",
    "join",
    "share",
    "using",
    "table",
    "select",
    "straight_join",
    "sql_calc_found_rows",
];

/// For each length of a word, the first letters of those that tell: a bit for each.
static TELLING: [u32; 20] = telling(&WORDS);
static TELLING_IN_WRITE: [u32; 20] = telling(&WORDS_IN_WRITE);

const fn telling(words: &[&str]) -> [u32; 20] {
    let mut table = [0; 20];
    let mut i = 0;
    while i < words.len() {
        let word = words[i].as_bytes();
        table[word.len()] |= 1 << (word[0] & 31);
        i += 1;
    }
    table
}

/// Whether the word of this length at the front means something in a statement of this kind.
#[cold]
fn tells(text: &[u8], len: usize, kind: Kind) -> bool {
    let (word, rest) = text.split_at(len.min(text.len()));
    let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    match kind {
        Kind::Write => WORDS_IN_WRITE.into_iter().any(is),
        _ if is("limit") => !has_one_number(rest),
        _ => WORDS.into_iter().any(is),
    }
}

/// Whether what stands behind LIMIT is one number, or the sign of one parameter.
fn has_one_number(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let len = match rest.first() {
        Some(b'?') => 1,
        _ => digits,
    };
    let behind = rest.get(len..).unwrap_or_default();
    let next = behind.iter().find(|b| !is_blank(**b));
    let is_apart = behind.first().is_none_or(|b| is_blank(*b) || *b == b')');
    len > 0 && is_apart && next.is_none_or(|b| b.is_ascii_alphabetic() || *b == b')')
}

#[inline]
fn word_end(sql: &[u8], mut at: usize) -> usize {
    while sql.get(at).is_some_and(|b| is_word(*b)) {
        at += 1;
    }
    at
}

/// Behind a row of digits, which may have a fraction. What else starts with a digit is not for here.
fn number_end(sql: &[u8], start: usize) -> Option<usize> {
    let digits_end = |mut at| {
        while sql.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits_end(start);
    if sql.get(end) == Some(&b'.') {
        end = digits_end(end + 1);
    }
    match sql.get(end) {
        Some(b) if is_word(*b) || *b == b'.' => None,
        _ => Some(end),
    }
}

/// Behind the dot of a longer name, and the word that follows it, which is no keyword there.
#[cold]
fn behind_dot(sql: &[u8], dot: usize) -> Option<usize> {
    let before = sql.get(..dot)?;
    let name = match before.split_last()? {
        (b'`', rest) => rest.rsplit(|b| *b == b'`').next()?,
        _ => &before[last_word_start(before)..],
    };
    // A number is read otherwise, and the servers' own schemas are for the classifier: their names are as long as this.
    if name.is_empty() || name[0].is_ascii_digit() || name.len() == "information_schema".len() {
        return None;
    }
    match *sql.get(dot + 1)? {
        b'`' => Some(dot + 1),
        b'*' => Some(dot + 2),
        b if ACTION[usize::from(b)] == Action::Letter => {
            let end = word_end(sql, dot + 2);
            // In MariaDB's Oracle mode NEXTVAL and CURRVAL behind a dot move a sequence.
            let may_move = end - (dot + 1) == "nextval".len() && matches!(b | 0x20, b'n' | b'c');
            (!may_move).then_some(end)
        }
        _ => None,
    }
}

/// Where the word starts that ends `text`; its length if there is none.
fn last_word_start(text: &[u8]) -> usize {
    let is_part = |b: &&u8| is_word(**b);
    text.len() - text.iter().rev().take_while(is_part).count()
}

/// Whether the `(` behind this text is no call, or one of a built-in function that means nothing.
fn calls_nothing(before: &[u8], d: &Dialect, kind: Kind) -> bool {
    let blanks = before.iter().rev().take_while(|b| is_blank(**b)).count();
    let before = &before[..before.len() - blanks];
    let (rest, word) = before.split_at(last_word_start(before));
    match (rest.last(), word.first()) {
        // A name in quotes may be called like any other; behind a dot a word is no function of the server.
        (Some(b'`'), None) | (Some(b'.'), Some(_)) => false,
        // Signs, strings and numbers.
        (_, None | Some(b'0'..=b'9')) => true,
        _ => {
            let group = word::lookup(word).and_then(|word| function::group(word.group));
            match group.filter(|group| group.is_built_in(d, blanks > 0)) {
                Some(group) => matches!(group.class, Class::Pure | Class::Volatile),
                // The name of a table stands like this before its columns. In a write it does not matter who is called.
                None => kind == Kind::Write,
            }
        }
    }
}

/// Behind a string. Those with a backslash are not for here, as the dialect decides about it.
fn text_end(sql: &[u8], from: usize) -> Option<usize> {
    let end = from + memchr2(b'\'', b'\\', sql.get(from..)?)?;
    (sql[end] == b'\'').then_some(end + 1)
}

/// Behind a quoted name with nothing odd in it.
fn name_end(sql: &[u8], from: usize, d: &Dialect) -> Option<usize> {
    let end = from + memchr2(b'`', 0, sql.get(from..)?)?;
    let is_simple = sql[end] == b'`' && sql.get(end + 1) != Some(&b'`');
    // In some character sets the second byte of a character may look like the quote.
    let is_clear = !d.charset.is_wide() || sql.get(from..end)?.is_ascii();
    (is_simple && is_clear).then_some(end + 1)
}
