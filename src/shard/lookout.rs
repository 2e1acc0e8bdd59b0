//! A look for the names of sharded tables in a statement that streams through: it is too long to be kept, and is seen once, piece by piece.
//!
//! Strings and comments are passed over, as far as it is known how they end; in what remains a name's word, where a table can stand, is
//! taken for the name. So a statement may be stopped that names none, but none goes through that does: a server does nothing before it
//! has the last byte.

use std::sync::Arc;

use super::map::Placement;
use super::mention::Standing;
use crate::sql::{Charset, Dialect};

/// Longer words are no names of tables: servers allow 64 characters.
const WORD_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Code,
    /// In quotes of this kind.
    Quoted(u8),
    /// Behind a backslash in them.
    Escaped(u8),
    Line,
    Block,
}

/// See the module's words.
#[derive(Debug)]
pub struct Lookout {
    placement: Arc<Placement>,
    state: State,
    /// The last bytes, for what begins with several.
    before: [u8; 3],
    word: Vec<u8>,
    standing: Standing,
    /// It is not known how strings end: all is looked at.
    is_blind: bool,
    ansi_quotes: bool,
    escapes: bool,
}

impl Lookout {
    /// At the beginning of a statement. Nothing is known of `"` where `quotes` is not.
    #[must_use]
    pub fn new(placement: &Arc<Placement>, d: &Dialect, quotes: Option<bool>) -> Self {
        let is_plain = matches!(d.charset, Charset::Plain | Charset::SingleByte { .. });
        Self {
            placement: placement.clone(),
            state: State::Code,
            before: [b' '; 3],
            word: Vec::new(),
            standing: Standing::default(),
            is_blind: !is_plain || quotes.is_none(),
            ansi_quotes: quotes.unwrap_or(true),
            escapes: !d.no_backslash_escapes,
        }
    }

    /// Takes the next piece in; true when a name may stand in it.
    pub fn sees(&mut self, piece: &[u8]) -> bool {
        let mut is_found = false;
        for byte in piece {
            is_found |= self.byte(*byte);
        }
        is_found
    }

    /// There are no more pieces; true when a name may stand at the end.
    pub fn ends(&mut self) -> bool {
        self.sees(b" ")
    }

    fn byte(&mut self, byte: u8) -> bool {
        let before = self.before;
        let [_, second, last] = before;
        self.before = [second, last, byte];
        match self.state {
            State::Code => return self.code(byte, before),
            State::Quoted(quote) => {
                let is_name = quote == b'`' || quote == b'"' && self.ansi_quotes;
                if byte == b'\\' && self.escapes && !is_name {
                    self.state = State::Escaped(quote);
                } else if byte == quote {
                    self.state = State::Code;
                    return self.word_ends(is_name);
                } else if is_name {
                    return self.letter(byte, true);
                }
            }
            State::Escaped(quote) => self.state = State::Quoted(quote),
            State::Line if byte == b'\n' => self.state = State::Code,
            State::Block if last == b'*' && byte == b'/' => {
                self.state = State::Code;
                self.before = [b' '; 3];
            }
            State::Line | State::Block => {}
        }
        false
    }

    fn code(&mut self, byte: u8, before: [u8; 3]) -> bool {
        let found = self.letter(byte, false);
        if self.is_blind {
            return found;
        }
        let [_, second, third] = before;
        let opens = (second, third) == (b'/', b'*');
        let may_open = before == *b"/*M";
        if (opens || may_open) && byte == b'!' {
            // What a server reads of it, and how, hangs on its version.
            self.is_blind = true;
        } else if opens && byte != b'M' || may_open {
            self.state = State::Block;
            self.word.clear();
            if byte != b'*' {
                self.before = [b' '; 3];
            }
        } else if (second, third) == (b'-', b'-') && byte <= b' ' {
            if byte != b'\n' {
                self.state = State::Line;
            }
        } else if byte == b'#' {
            self.state = State::Line;
        } else if matches!(byte, b'\'' | b'"' | b'`') {
            self.state = State::Quoted(byte);
        }
        found
    }

    /// A byte of a word, or the end of one.
    fn letter(&mut self, byte: u8, is_name: bool) -> bool {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') {
            if self.word.len() < WORD_MAX {
                self.word.push(byte);
            }
            return false;
        }
        let is_foreign =
            byte >= 0x80 && self.standing.may_stand() && self.placement.words().is_always();
        let is_found = self.word_ends(is_name) || is_foreign;
        match byte {
            b'(' if !is_name => self.standing.opens(),
            b')' if !is_name => self.standing.closes(),
            _ => {}
        }
        is_found
    }

    fn word_ends(&mut self, is_name: bool) -> bool {
        if self.word.is_empty() {
            return false;
        }
        let word = std::mem::take(&mut self.word);
        if !is_name || self.is_blind {
            self.standing.word(&word);
        }
        // `/*!50000orders */`
        let digits = word.iter().position(|b| !b.is_ascii_digit());
        let without = word.get(digits.unwrap_or(word.len())..).unwrap_or_default();
        let words = self.placement.words();
        let is_it = words.has(&word) || words.has(without);
        self.word = word;
        self.word.clear();
        is_it && (self.standing.may_stand() || self.is_blind)
    }
}
