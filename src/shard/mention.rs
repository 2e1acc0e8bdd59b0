//! Whether a statement names a table of the configuration: first by its words, which costs next to nothing and is all that an
//! unsharded statement ever pays; then by its tokens, in the places where a table can stand.

use super::catalog::{self, Place};
use super::describe::describe;
use super::listing;
use super::map::Placement;
use super::rename;
use crate::sql::{self, Dialect, Tok};

/// The words by which statements are told apart that may name a table.
#[derive(Debug, Default)]
pub struct Words {
    /// Lower case, in order.
    words: Vec<Box<[u8]>>,
    /// Bit `n` is set if a word has `n` letters, the last bit for all longer ones.
    lengths: u64,
    /// First letters, in lower case.
    firsts: [u64; 2],
    /// A name has no word that could be looked for.
    always: bool,
    /// It is not known which names there are.
    is_in_doubt: bool,
    /// Servers call tables or schemas otherwise than clients.
    has_other_names: bool,
}

/// Every statement is looked through byte by byte: a table is a third of what the comparisons are.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0_u8;
    while b < 128 {
        table[b as usize] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$';
        b += 1;
    }
    table
};

/// A question for names may have this word.
fn asks(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"information_schema") || word.eq_ignore_ascii_case(b"show")
}

fn is_word(b: u8) -> bool {
    WORD[usize::from(b)]
}

impl Words {
    /// The words of these names. In doubt every text has to be looked at more closely.
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>, is_in_doubt: bool) -> Self {
        let mut found = Self {
            is_in_doubt,
            ..Self::default()
        };
        for name in names {
            // Of a name with other signs its first word will do.
            let word = name
                .as_bytes()
                .split(|b| !is_word(*b))
                .find(|w| !w.is_empty());
            match word {
                Some(word) => found.add(word.to_ascii_lowercase().into()),
                None => found.always = true,
            }
        }
        found.words.sort_unstable();
        found.words.dedup();
        found
    }

    /// Questions for names matter too.
    pub(super) fn look_for_questions(&mut self) {
        self.has_other_names = true;
    }

    fn add(&mut self, word: Box<[u8]>) {
        self.lengths |= 1 << word.len().min(63);
        if let Some(first) = word.first().filter(|b| b.is_ascii()) {
            let (half, bit) = (usize::from(first >> 6 & 1), first & 63);
            self.firsts[half] |= 1 << bit;
        }
        self.words.push(word);
    }

    /// Whether one of the words stands anywhere in the text, in any case, or it may ask servers for their names.
    #[must_use]
    pub fn occur_in(&self, text: &[u8]) -> bool {
        if self.always || self.is_in_doubt {
            return true;
        }
        match First::of(text) {
            First::Show if self.has_other_names => return true,
            First::Define | First::Unknown => return true,
            First::Show | First::Other => {}
        }
        let mut at = 0;
        while let Some(first) = text.get(at) {
            if !is_word(*first) {
                at += 1;
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let len = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
            let word = rest.get(..len).unwrap_or_default();
            if self.has(word) || self.has_other_names && asks(word) {
                return true;
            }
            // `/*!50000orders */`
            if at > 0 && text.get(at - 1) == Some(&b'!') && first.is_ascii_digit() {
                let digits = word.iter().position(|b| !b.is_ascii_digit());
                if self.has(word.get(digits.unwrap_or(len)..).unwrap_or_default()) {
                    return true;
                }
            }
            at += len;
        }
        false
    }

    /// There is a name that has no word.
    pub(super) fn is_always(&self) -> bool {
        self.always
    }

    /// Whether it is one of the words.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let Some(first) = word.first().map(u8::to_ascii_lowercase) else {
            return false;
        };
        let (half, bit) = (usize::from(first >> 6 & 1), first & 63);
        self.lengths >> word.len().min(63) & 1 == 1
            && self.firsts[half] >> bit & 1 == 1
            && self
                .words
                .binary_search_by(|known| {
                    let word = word.iter().map(u8::to_ascii_lowercase);
                    known.iter().copied().cmp(word)
                })
                .is_ok()
    }
}

/// What a statement's first word says of it, where that can be told without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// SHOW.
    Show,
    /// RENAME or ALTER.
    Define,
    Other,
    /// It cannot be told.
    Unknown,
}

impl First {
    fn of(text: &[u8]) -> Self {
        let mut rest = text.trim_ascii_start();
        loop {
            let end = if rest.starts_with(b"/*") && !matches!(rest.get(2), Some(b'!' | b'M')) {
                memchr::memmem::find(rest, b"*/").map(|at| at + 2)
            } else if rest.starts_with(b"#") || rest.starts_with(b"--") {
                memchr::memchr(b'\n', rest).map(|at| at + 1)
            } else {
                break;
            };
            let end = end.and_then(|end| rest.get(end..));
            rest = end.unwrap_or_default().trim_ascii_start();
        }
        let is = |word: &[u8]| {
            let head = rest.get(..word.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        match rest.first().map(u8::to_ascii_lowercase) {
            Some(b's') if is(b"show") => Self::Show,
            Some(b'r') if is(b"rename") => Self::Define,
            Some(b'a') if is(b"alter") => Self::Define,
            Some(b'/') => Self::Unknown,
            _ => Self::Other,
        }
    }
}

impl Placement {
    /// Whether a text asks servers for their names, and some are others than clients know.
    fn asks_names(&self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        // One that is refused asks.
        let lists = || listing::listings(self, text, d, schema).map_or(true, |all| !all.is_empty());
        self.words().has_other_names && (!self.catalog(text, d).is_empty() || lists())
    }

    /// Whether a text describes a table, or would have one have another name, that is named where `is_named` does not look.
    fn is_about_names(&self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        let describes = || describe(self, text, d, schema).is_some();
        let renames = || rename::refused(self, text, d, schema).is_some();
        match First::of(text) {
            First::Show => describes(),
            First::Define => renames(),
            First::Unknown => describes() || renames(),
            First::Other => false,
        }
    }

    /// The places where a query asks servers for their names, if some are others than clients know.
    pub(super) fn catalog(&self, text: &[u8], d: &Dialect) -> Vec<Place> {
        if self.words().has_other_names {
            catalog::places(text, d)
        } else {
            Vec::new()
        }
    }

    /// Whether a sharded or global table may be named where a table can stand, or changed while it is not known which are global.
    /// `schema` is the session's.
    #[must_use]
    pub fn is_mentioned(&self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        self.is_named(text, d, schema)
            || self.may_change_in_doubt(text, d, schema)
            || self.may_change_unlike(text, d, schema)
            || self.asks_names(text, d, schema)
            || self.is_about_names(text, d, schema)
    }

    /// Whether a text that a server is to prepare may name a sharded or global table, in a session with this schema; in doubt where that
    /// is not known, or has such tables.
    #[must_use]
    pub fn may_be_prepared(&self, texts: &sql::Texts, d: &Dialect, schema: Option<&[u8]>) -> bool {
        let is_it = |known: &str| {
            let known = known.as_bytes();
            schema.is_none_or(|schema| known.eq_ignore_ascii_case(schema))
        };
        let schemas = self.tables.iter().map(|table| table.schema.as_str());
        let mut schemas = schemas.chain(self.globals.iter().map(|global| global.0.as_str()));
        if texts.has_unknown {
            return schemas.any(is_it);
        }
        let names_one = |text: &Vec<u8>| match schema {
            Some(_) => self.is_mentioned(text, d, schema),
            None => schemas
                .clone()
                .any(|of| self.is_mentioned(text, d, Some(of.as_bytes()))),
        };
        texts.literals.iter().any(names_one)
    }

    /// Whether a sharded or global table may be named where a table can stand.
    pub(super) fn is_named(&self, text: &[u8], d: &Dialect, schema: Option<&[u8]>) -> bool {
        self.names(text, d, schema, |of, name| {
            self.table(of, name).is_some() || self.is_global(of, name)
        })
    }

    /// Whether a table may be named that is one of these, by its schema and name.
    pub(super) fn names(
        &self,
        text: &[u8],
        d: &Dialect,
        schema: Option<&[u8]>,
        is_one: impl Fn(&[u8], &[u8]) -> bool,
    ) -> bool {
        let mut standing = Standing::default();
        let mut qualifier: Option<Vec<u8>> = None;
        let mut is_qualified = false;
        for t in sql::Tokens::new(text, d) {
            let bytes = text.get(t.start..t.end).unwrap_or_default();
            let name = match t.tok {
                Tok::Word => bytes.to_vec(),
                // A quoted string may be a name, in another sql_mode.
                Tok::Name => unquote(bytes),
                Tok::Text if bytes.first() == Some(&b'"') => unquote(bytes),
                Tok::Semicolon => {
                    standing = Standing::default();
                    continue;
                }
                _ => {
                    match t.tok {
                        Tok::Open => standing.opens(),
                        Tok::Close => standing.closes(),
                        _ => {}
                    }
                    is_qualified = t.tok == Tok::Dot && qualifier.is_some();
                    if !is_qualified {
                        qualifier = None;
                    }
                    continue;
                }
            };
            if t.tok == Tok::Word && !is_qualified {
                standing.word(bytes);
            }
            // `FROM .name` has no qualifier, whatever stands before the dot.
            let qualifiers = [schema, qualifier.as_deref().filter(|_| is_qualified)];
            let is_it = |of: &[u8]| is_one(of, &name);
            if standing.may_stand() && qualifiers.into_iter().flatten().any(is_it) {
                return true;
            }
            is_qualified = false;
            qualifier = Some(name);
        }
        false
    }
}

/// Whether a table can stand at a place of a statement, by the words before it. Wrong is only to say that none can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    may_stand: bool,
    /// The same before each parenthesis that is open, the last in the lowest bit.
    outer: u64,
    depth: u32,
    /// How far `FOR ORDER BY` or `FOR GROUP BY` of an index hint is, behind which FROM goes on.
    hint: u8,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            may_stand: true,
            outer: 0,
            depth: 0,
            hint: 0,
        }
    }
}

impl Standing {
    pub(super) fn may_stand(self) -> bool {
        self.may_stand
    }

    /// A word that is no part of a name.
    pub(super) fn word(&mut self, word: &[u8]) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        self.hint = match self.hint {
            _ if is("for") => 1,
            1 if is("order") || is("group") => 2,
            2 if is("by") => 3,
            _ => 0,
        };
        if self.hint != 3 {
            self.may_stand = places(word).unwrap_or(self.may_stand);
        }
    }

    pub(super) fn opens(&mut self) {
        // Of very many nothing is known.
        self.outer = if self.depth < u64::BITS {
            self.outer << 1 | u64::from(self.may_stand)
        } else {
            u64::MAX
        };
        self.depth = self.depth.saturating_add(1);
    }

    /// What stands behind is where it was before: `FROM (SELECT 1) x, name`.
    pub(super) fn closes(&mut self) {
        self.may_stand = self.depth == 0 || self.outer & 1 == 1;
        if self.depth <= u64::BITS {
            self.outer >>= 1;
        }
        self.depth = self.depth.saturating_sub(1);
    }
}

/// Whether tables can stand behind this word; `None` if it changes nothing. Wrong is only to say that they cannot.
fn places(word: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| {
        words
            .iter()
            .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
    };
    if is(&["select", "where", "having", "values", "limit", "by", "set"]) {
        Some(false)
    } else if is(&[
        "from",
        "join",
        "straight_join",
        "into",
        "update",
        "table",
        "tables",
        "delete",
        "using",
        "insert",
        "replace",
        "explain",
        "describe",
        "desc",
        "truncate",
        "analyze",
        "view",
        "references",
        "to",
        "rename",
        "union",
    ]) {
        Some(true)
    } else {
        None
    }
}

/// What a statement of another kind than a query or a change of rows acts on: whether a sharded or global table is named there.
pub(super) fn is_acted_on(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> bool {
    const BEFORE: [&str; 22] = [
        "table",
        "tables",
        "exists",
        "from",
        "join",
        "straight_join",
        "into",
        "update",
        "on",
        "references",
        "to",
        "like",
        "view",
        "truncate",
        "handler",
        "rename",
        "as",
        "in",
        "using",
        "ignore",
        "delete",
        "sequence",
    ];
    let tokens: Vec<(Tok, &[u8])> = sql::Tokens::new(text, d)
        .map(|t| (t.tok, text.get(t.start..t.end).unwrap_or_default()))
        .collect();
    let mut depth = 0_usize;
    let at = |at: Option<usize>| at.and_then(|at| tokens.get(at)).copied();
    for (number, (tok, bytes)) in tokens.iter().enumerate() {
        match tok {
            Tok::Open => depth += 1,
            Tok::Close => depth = depth.saturating_sub(1),
            Tok::Word | Tok::Name | Tok::Text => {
                let name = name_of(*tok, bytes);
                let (mut of, mut before) = (schema.map(<[u8]>::to_vec), number.checked_sub(1));
                if let Some((Tok::Dot, _)) = at(before) {
                    let qualifier = number.checked_sub(2);
                    of = at(qualifier).map(|(tok, bytes)| name_of(tok, bytes));
                    before = number.checked_sub(3);
                }
                let may_stand = match at(before) {
                    None => true,
                    Some((Tok::Comma, _)) => depth == 0,
                    Some((Tok::Open, _)) => matches!(
                        at(before.and_then(|at| at.checked_sub(1))),
                        Some((Tok::Equal, _))
                    ),
                    Some((Tok::Word, word)) => BEFORE
                        .iter()
                        .any(|known| word.eq_ignore_ascii_case(known.as_bytes())),
                    Some(_) => false,
                };
                if may_stand
                    && let Some(of) = of
                    && (placement.table(&of, &name).is_some() || placement.is_global(&of, &name))
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn name_of(tok: Tok, bytes: &[u8]) -> Vec<u8> {
    if tok == Tok::Word {
        bytes.to_vec()
    } else {
        unquote(bytes)
    }
}

pub(super) fn unquote(bytes: &[u8]) -> Vec<u8> {
    let Some(quote) = bytes.first() else {
        return Vec::new();
    };
    let inside = bytes
        .get(1..bytes.len().saturating_sub(1))
        .unwrap_or_default();
    let mut name = Vec::with_capacity(inside.len());
    let mut rest = inside.iter();
    while let Some(b) = rest.next() {
        name.push(*b);
        if b == quote {
            rest.next();
        }
    }
    name
}
