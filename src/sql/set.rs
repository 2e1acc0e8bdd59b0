//! SET: what it assigns, and whether the values can be given again elsewhere.
//!
//! The grammar is that of the manual pages "SET Syntax for Variable Assignment" and MariaDB's "SET",
//! as MySQL 9.7 and MariaDB 10.11 follow it: GLOBAL, SESSION and the like hold for the following bare
//! names too, `@@` forms carry their own scope, and every value is computed before the first is
//! assigned (`SET @a = 1, @b = @a` gives `@b` the old value).

use super::cursor::Cursor;
use super::effects::assigned;
use super::scan::Tok;
use super::value;
use super::{Dialect, Effect, Scope, Traits};

/// Reads what stands behind SET, to the end of the statement.
pub(super) fn assignments<'a>(c: &mut Cursor<'a>, d: &Dialect, sink: &mut dyn FnMut(Effect<'a>)) {
    let mut list = List {
        scope: Scope::Session,
        d,
        sink,
    };
    loop {
        let known = list.assignment(c).is_some();
        if known && c.eat(Tok::Comma) {
            continue;
        }
        if !known || !c.is_at_end() {
            // Not a SET that is known here; what the server makes of it is.
            (list.sink)(Effect::Opaque);
            skip(c);
        }
        return;
    }
}

struct List<'a, 's> {
    /// The scope that the last scope word set for bare names.
    scope: Scope,
    d: &'s Dialect,
    sink: &'s mut dyn FnMut(Effect<'a>),
}

impl<'a> List<'a, '_> {
    /// One member of the list; `None` if it is none that is known.
    fn assignment(&mut self, c: &mut Cursor<'a>) -> Option<()> {
        match c.tok() {
            Tok::UserVar => self.user_variable(c),
            Tok::SysVar => self.at_variable(c),
            Tok::Name => self.variable(c, self.scope),
            Tok::Word => self.words(c),
            _ => None,
        }
    }

    fn user_variable(&mut self, c: &mut Cursor<'a>) -> Option<()> {
        let variable = c.text();
        c.step();
        eat_equal(c)?;
        let value = value::read(c, self.d, self.sink)?;
        let name = super::cursor::unquoted(variable.strip_prefix(b"@").unwrap_or(variable));
        // In a set where quotes may be halves of characters only a plain name can be put between them.
        let is_clear = !self.d.charset.is_wide() || name.is_ascii();
        if is_plain(name) && is_clear {
            (self.sink)(Effect::SetUserVariable { name, value });
        } else {
            assigned(variable, self.sink);
            (self.sink)(Effect::Opaque);
        }
        Some(())
    }

    /// `@@name`, `@@scope.name`.
    fn at_variable(&mut self, c: &mut Cursor<'a>) -> Option<()> {
        c.step();
        let scope = scope_word(c).filter(|_| c.peek().tok == Tok::Dot);
        if scope.is_some() {
            c.step();
            c.step();
        }
        let is_one_shot = scope.is_none() && c.is_one_of(OF_THE_NEXT_TRANSACTION);
        let plain = if is_one_shot {
            Scope::OneShot
        } else {
            Scope::Session
        };
        self.variable(c, scope.unwrap_or(plain))
    }

    /// `name = value`, `cache.name = value`.
    fn variable(&mut self, c: &mut Cursor<'a>, scope: Scope) -> Option<()> {
        let start = c.start();
        let mut name = c.eat_name()?;
        if c.eat(Tok::Dot) {
            c.eat_name()?;
            name = c.span(start, c.last_end());
        }
        eat_equal(c)?;
        let mut value = value::read(c, self.d, self.sink)?;
        // Said again it stands without quotes.
        value.replayable &= is_bare(name);
        (self.sink)(Effect::SetVariable { scope, name, value });
        Some(())
    }

    fn words(&mut self, c: &mut Cursor<'a>) -> Option<()> {
        if c.eat_word("password") {
            (self.sink)(Effect::SetPassword);
            skip_to_comma(c);
            return Some(());
        }
        let next = c.peek();
        if matches!(next.tok, Tok::Equal | Tok::Assign | Tok::Dot) {
            return self.variable(c, self.scope);
        }
        if let Some(scope) = scope_word(c) {
            let start = c.statement_start();
            c.step();
            if c.is_word("transaction") {
                return self.transaction(c, scope, start);
            }
            self.scope = scope;
            return self.variable(c, scope);
        }
        let start = c.statement_start();
        if c.is_word("transaction") {
            return self.transaction(c, Scope::OneShot, start);
        }
        if c.eat_word("names") {
            return self.names(c);
        }
        if c.eat_word("charset") || c.is_one_of(&["character", "char"]) && next_is_set(c) {
            let charset = name_or_default(c)?;
            (self.sink)(Effect::CharacterSet(charset));
            return Some(());
        }
        if c.eat_word("role") {
            let start = c.start();
            skip(c);
            let text = whole(c, start)?;
            (self.sink)(Effect::SetRole(text));
            return Some(());
        }
        if c.is_word("default") {
            // SET DEFAULT ROLE changes an account, not the session.
            skip(c);
            return Some(());
        }
        None
    }

    fn transaction(&mut self, c: &mut Cursor<'a>, scope: Scope, start: usize) -> Option<()> {
        skip(c);
        let text = whole(c, start)?;
        (self.sink)(Effect::SetTransaction { scope, text });
        Some(())
    }

    fn names(&mut self, c: &mut Cursor<'a>) -> Option<()> {
        let charset = name_or_default(c)?;
        let collation = if c.eat_word("collate") {
            name_or_default(c)?
        } else {
            None
        };
        (self.sink)(Effect::Names { charset, collation });
        Some(())
    }
}

/// Set through `@@` without a scope, these hold for the next transaction only.
const OF_THE_NEXT_TRANSACTION: &[&str] = &[
    "transaction_isolation",
    "tx_isolation",
    "transaction_read_only",
    "tx_read_only",
];

fn scope_word(c: &Cursor<'_>) -> Option<Scope> {
    const SCOPES: [(&str, Scope); 5] = [
        ("session", Scope::Session),
        ("local", Scope::Session),
        ("global", Scope::Global),
        ("persist", Scope::Persist),
        ("persist_only", Scope::Persist),
    ];
    SCOPES
        .iter()
        .find(|(word, _)| c.is_word(word))
        .map(|(_, scope)| *scope)
}

fn eat_equal(c: &mut Cursor<'_>) -> Option<()> {
    (c.eat(Tok::Equal) || c.eat(Tok::Assign)).then_some(())
}

/// At CHARACTER or CHAR: steps over it and SET.
fn next_is_set(c: &mut Cursor<'_>) -> bool {
    c.step();
    c.eat_word("set")
}

/// A name, a string or DEFAULT, which is `None`.
#[expect(clippy::option_option, reason = "no name at all is not DEFAULT")]
fn name_or_default<'a>(c: &mut Cursor<'a>) -> Option<Option<&'a [u8]>> {
    let is_default = c.is_word("default");
    // Said again it stands without quotes. No set has a name that needs them.
    let name = c.eat_name().filter(|name| is_bare(name))?;
    Some((!is_default).then_some(name))
}

/// True if a name means itself when it stands between quotes of any kind.
fn is_plain(name: &[u8]) -> bool {
    !name
        .iter()
        .any(|b| matches!(b, b'\'' | b'"' | b'`' | b'\\'))
}

/// True if a name, or one in two parts, reads the same without quotes.
fn is_bare(name: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.');
    !name.is_empty() && name.iter().all(is_part)
}

fn skip(c: &mut Cursor<'_>) {
    while !c.is_at_end() {
        c.step();
    }
}

/// The text from `start` up to where the cursor is, if it means the same by itself: it ends, and with no two dashes, which would
/// begin a comment there.
fn whole<'a>(c: &Cursor<'a>, start: usize) -> Option<&'a [u8]> {
    let text = c.span(start, c.last_end());
    let is_whole = !c.found().contains(Traits::UNTERMINATED) && !text.ends_with(b"--");
    is_whole.then_some(text)
}

fn skip_to_comma(c: &mut Cursor<'_>) {
    let mut depth = 0_u32;
    while !c.is_at_end() && (depth > 0 || c.tok() != Tok::Comma) {
        match c.tok() {
            Tok::Open => depth += 1,
            Tok::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        c.step();
    }
}
