//! The session effects of a statement text: which statements have some, and which.
//!
//! SET is read in `set`. This is a cold path: it is asked only where `classify` says EFFECTS.

use super::block::Block;
use super::cursor::{Cursor, unquoted};
use super::keyword::Kw;
use super::scan::Tok;
use super::set;
use super::{Dialect, Effect, Kind, Source, Traits, Value, classify};

/// Reports every change of session state that the statements in `sql` make when they succeed, in
/// their order.
///
/// Names in the effects are without quotes. Where a text changes state in a way that cannot be told,
/// [`Effect::Opaque`] is reported, alone or beside others.
pub fn effects<'a>(sql: &'a [u8], d: &Dialect, sink: &mut dyn FnMut(Effect<'a>)) {
    if classify(sql, d).kind == Kind::ExplainRoute {
        return; // Nothing of it runs.
    }
    let mut walk = Walk {
        c: Cursor::new(sql, d),
        d,
        sink,
    };
    while walk.c.tok() != Tok::End {
        walk.statement();
        walk.c.eat(Tok::Semicolon);
    }
    if walk.c.found().contains(Traits::DOUBTFUL) {
        (walk.sink)(Effect::Opaque);
    }
}

struct Walk<'a, 's> {
    c: Cursor<'a>,
    d: &'s Dialect,
    sink: &'s mut dyn FnMut(Effect<'a>),
}

impl<'a> Walk<'a, '_> {
    fn statement(&mut self) {
        while self.c.eat(Tok::Open) {}
        if self.c.is_at_end() {
            return;
        }
        self.c.start_statement();
        let kw = self.c.kw();
        self.c.step();
        match kw {
            Kw::Set if self.c.is_word("statement") => {
                if self.skip_to_for() {
                    return self.statement();
                }
                (self.sink)(Effect::Opaque);
            }
            Kw::Set => set::assignments(&mut self.c, self.d, self.sink),
            Kw::Use => {
                if let Some(name) = self.c.eat_name() {
                    (self.sink)(Effect::Use(name));
                }
            }
            Kw::Create => self.create(),
            Kw::Drop => self.drop(),
            Kw::Alter => self.alter(),
            Kw::Rename if self.c.is_one_of(&["table", "tables"]) => {
                (self.sink)(Effect::RenameTables)
            }
            Kw::Prepare => {
                if let Some(name) = self.c.eat_name() {
                    let is_whole = self.c.eat_word("from");
                    let from = self.source();
                    let from = if is_whole { from } else { Source::Other };
                    (self.sink)(Effect::Prepare { name, from });
                }
            }
            Kw::Deallocate => self.deallocate(),
            Kw::Execute => self.execute(),
            Kw::Binlog => (self.sink)(Effect::Opaque),
            Kw::Lock => (self.sink)(Effect::LockTables),
            Kw::Unlock => (self.sink)(Effect::UnlockTables),
            Kw::Backup => self.backup(),
            Kw::Flush => self.flush(),
            Kw::Handler => self.handler(),
            Kw::Call => (self.sink)(Effect::Call),
            Kw::Begin => {
                while self.c.eat_word("work") {}
                if !self.c.is_at_end() {
                    (self.sink)(Effect::Call);
                    self.skip(Block::begun());
                }
            }
            Kw::If | Kw::Case | Kw::Loop | Kw::While | Kw::Repeat | Kw::For | Kw::Declare => {
                (self.sink)(Effect::Call);
                self.skip(Block::loose());
            }
            Kw::Load | Kw::Get => self.assigned_arguments(),
            _ if kw == Kw::Name || !kw.starts_statement() => {
                (self.sink)(Effect::Opaque);
                self.skip(Block::loose());
            }
            _ => {}
        }
        self.expressions();
    }

    /// The rest of a statement, in which user variables may be assigned.
    fn expressions(&mut self) {
        let mut in_into = false;
        while !self.c.is_at_end() {
            match self.c.tok() {
                Tok::Word => in_into = self.c.kw() == Kw::Into,
                Tok::UserVar => {
                    let name = self.c.text();
                    if in_into || self.c.peek().tok == Tok::Assign {
                        assigned(name, self.sink);
                    }
                }
                Tok::Comma => {}
                _ => in_into = false,
            }
            self.c.step();
        }
    }

    /// The rest of a statement that assigns the user variables it names.
    fn assigned_arguments(&mut self) {
        let mut prev = Tok::Word;
        while !self.c.is_at_end() {
            // 'a'@'b' is an account.
            if self.c.tok() == Tok::UserVar && !matches!(prev, Tok::Text | Tok::Name) {
                assigned(self.c.text(), self.sink);
            }
            prev = self.c.tok();
            self.c.step();
        }
    }

    /// Steps to the end of a statement with a body.
    fn skip(&mut self, mut block: Block) {
        let mut prev = Kw::Name;
        loop {
            match self.c.tok() {
                Tok::End => return,
                Tok::Semicolon => {
                    if block.ends_here() {
                        return;
                    }
                    if block.is_opaque() {
                        (self.sink)(Effect::Opaque);
                        // It all belongs to the body as far as one can tell.
                        while self.c.tok() != Tok::End {
                            self.c.step();
                        }
                        return;
                    }
                }
                _ => {}
            }
            let kw = self.c.kw();
            block.word(kw, prev);
            prev = kw;
            self.c.step();
        }
    }

    /// Behind SET STATEMENT: steps over the assignments and FOR. False if there is no FOR.
    fn skip_to_for(&mut self) -> bool {
        let mut depth = 0_u32;
        while !self.c.is_at_end() {
            match self.c.tok() {
                Tok::Open => depth += 1,
                Tok::Close => depth = depth.saturating_sub(1),
                Tok::Word if depth == 0 && self.c.kw() == Kw::For => {
                    self.c.step();
                    return true;
                }
                _ => {}
            }
            self.c.step();
        }
        false
    }

    /// Behind CREATE or ALTER: steps over the words up to the one that says what. True if TEMPORARY is
    /// among them. The bodies of routines are stepped over whole.
    fn object(&mut self) -> bool {
        let mut is_temporary = false;
        while !self.c.is_at_end() {
            match self.c.kw() {
                Kw::Temporary => is_temporary = true,
                Kw::Routine => self.skip(Block::body()),
                Kw::Package => self.skip(Block::loose()),
                Kw::Table | Kw::Object => break,
                _ => {}
            }
            if !self.c.is_at_end() {
                self.c.step();
            }
        }
        is_temporary
    }

    fn create(&mut self) {
        if self.object() && !self.c.is_at_end() {
            self.c.step();
            self.c.eat_if_exists();
            match self.c.eat_table_name() {
                Some(table) => (self.sink)(Effect::CreateTemporary(table)),
                None => (self.sink)(Effect::Opaque),
            }
        }
    }

    fn drop(&mut self) {
        if self.c.is_word("prepare") {
            return self.deallocate();
        }
        let temporary = self.c.eat_word("temporary");
        if self.c.is_one_of(&["database", "schema"]) {
            self.c.step();
            self.c.eat_if_exists();
            if let Some(name) = self.c.eat_name() {
                (self.sink)(Effect::DropDatabase(name));
            }
        } else if self.c.is_one_of(&["table", "tables", "sequence"]) {
            self.c.step();
            self.c.eat_if_exists();
            while let Some(table) = self.c.eat_table_name() {
                (self.sink)(Effect::DropTables { temporary, table });
                if !self.c.eat(Tok::Comma) {
                    break;
                }
            }
        }
    }

    /// `ALTER TABLE … RENAME [TO|AS] x`, but not of a column or an index.
    fn alter(&mut self) {
        self.object();
        let is_table = self.c.kw() == Kw::Table;
        while !self.c.is_at_end() {
            let renames = is_table && self.c.kw() == Kw::Rename;
            self.c.step();
            if renames && !self.c.is_one_of(&["column", "index", "key"]) {
                (self.sink)(Effect::RenameTables);
            }
        }
    }

    fn deallocate(&mut self) {
        self.c.eat_word("prepare");
        if let Some(name) = self.c.eat_name() {
            (self.sink)(Effect::Deallocate(name));
        }
    }

    fn execute(&mut self) {
        let is_immediate = self.c.is_word("immediate");
        let Some(named) = self.c.eat_name() else {
            return (self.sink)(Effect::Opaque);
        };
        // A statement may be called so, too.
        let effect = if is_immediate && !self.c.is_at_end() && !self.c.is_word("using") {
            Effect::ExecuteImmediate(self.source())
        } else if self.c.is_at_end() || self.c.is_word("using") {
            Effect::Execute(named)
        } else {
            Effect::Opaque
        };
        (self.sink)(effect);
    }

    /// The text of a statement to be prepared: a literal or a variable, with nothing else to it.
    fn source(&mut self) -> Source<'a> {
        let start = self.c.start();
        let source = match self.c.tok() {
            Tok::Text => {
                while self.c.eat(Tok::Text) {}
                Source::Literal(self.c.span(start, self.c.last_end()))
            }
            Tok::UserVar => {
                let name = self.c.text();
                self.c.step();
                Source::Variable(unquoted(name.strip_prefix(b"@").unwrap_or(name)))
            }
            _ => return Source::Other,
        };
        if self.c.is_at_end() || self.c.is_word("using") {
            source
        } else {
            Source::Other
        }
    }

    /// `BACKUP LOCK t`, `BACKUP STAGE x`, and what ends them.
    fn backup(&mut self) {
        let ends = self.c.eat_word("unlock") || self.c.eat_word("stage") && self.c.is_word("end");
        (self.sink)(if ends {
            Effect::UnlockTables
        } else {
            Effect::LockTables
        });
    }

    /// `FLUSH TABLES … WITH READ LOCK`, `FLUSH TABLES … FOR EXPORT`.
    fn flush(&mut self) {
        while !self.c.is_at_end() {
            let is_for = self.c.kw() == Kw::For;
            let is_with = self.c.kw() == Kw::With;
            self.c.step();
            if is_for && self.c.is_word("export") || is_with && self.c.is_word("read") {
                (self.sink)(Effect::LockTables);
            }
        }
    }

    fn handler(&mut self) {
        let Some(table) = self.c.eat_last_name() else {
            return;
        };
        if self.c.eat_word("open") {
            self.c.eat_word("as");
            let alias = self.c.eat_name().unwrap_or(table);
            (self.sink)(Effect::HandlerOpen(alias));
        } else if self.c.is_word("close") {
            (self.sink)(Effect::HandlerClose(table));
        }
    }
}

/// A user variable gets a value that only its statement knows.
pub(super) fn assigned<'a>(variable: &'a [u8], sink: &mut dyn FnMut(Effect<'a>)) {
    let name = unquoted(variable.strip_prefix(b"@").unwrap_or(variable));
    sink(Effect::SetUserVariable {
        name,
        value: Value {
            text: b"",
            replayable: false,
            user_vars: false,
        },
    });
}
