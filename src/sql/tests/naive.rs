//! A second lexer, written as plainly as possible: one byte after another, no tables, no searching.

use super::*;

pub(super) struct Naive<'a> {
    sql: &'a [u8],
    at: usize,
    d: Dialect,
    in_version: bool,
    found: Traits,
}

fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

fn is_space(b: u8) -> bool {
    b == b' ' || (9..=13).contains(&b)
}

impl<'a> Naive<'a> {
    pub(super) fn new(sql: &'a [u8], d: Dialect) -> Self {
        Self {
            sql,
            at: 0,
            d,
            in_version: false,
            found: Traits::NONE,
        }
    }

    fn at(&self, i: usize) -> u8 {
        *self.sql.get(i).unwrap_or(&0)
    }

    fn starts(&self, i: usize, text: &[u8]) -> bool {
        self.sql[i.min(self.sql.len())..].starts_with(text)
    }

    fn blank(&self) -> Option<u8> {
        match self.d.charset {
            Charset::SingleByte { blank } => Some(blank),
            _ => None,
        }
    }

    /// Bytes of the character at `i`.
    fn step(&self, i: usize) -> usize {
        let (a, b, c, e) = (self.at(i), self.at(i + 1), self.at(i + 2), self.at(i + 3));
        let low = (0x40..=0x7e).contains(&b);
        let two = match self.d.charset {
            Charset::Plain | Charset::SingleByte { .. } => false,
            Charset::Gbk => (0x81..0xff).contains(&a) && (low || ((0x80..0xff).contains(&b))),
            Charset::Gb18030 => {
                let lead = |x: u8| (0x81..0xff).contains(&x);
                if lead(a) && b.is_ascii_digit() && lead(c) && e.is_ascii_digit() {
                    return 4;
                }
                lead(a) && (low || ((0x80..0xff).contains(&b)))
            }
            Charset::Big5 => (0xa1..=0xf9).contains(&a) && (low || ((0xa1..=0xfe).contains(&b))),
            Charset::Sjis => {
                let lead = ((0x81..=0x9f).contains(&a)) || ((0xe0..=0xfc).contains(&a));
                lead && (low || ((0x80..=0xfc).contains(&b)))
            }
        };
        if two { 2 } else { 1 }
    }

    pub(super) fn all(mut self) -> (Vec<(Tok, usize, usize)>, Traits) {
        let mut out = Vec::new();
        while self.at < self.sql.len() {
            let start = self.at;
            if let Some(tok) = self.one() {
                out.push((tok, start, self.at.min(self.sql.len())));
            }
        }
        if self.in_version {
            self.found |= Traits::UNTERMINATED;
        }
        (out, self.found)
    }

    /// Steps over one thing; `None` if it was a blank or a comment.
    fn one(&mut self) -> Option<Tok> {
        let i = self.at;
        let b = self.at(i);
        if is_space(b) || self.blank() == Some(b) {
            self.at += 1;
            return None;
        }
        if self.in_version && self.starts(i, b"*/") {
            self.in_version = false;
            self.at += 2;
            return None;
        }
        if self.starts(i, b"/*") {
            self.block_comment();
            return None;
        }
        if b == b'#' || (self.starts(i, b"--") && self.is_dash_comment(i + 2)) {
            while self.at < self.sql.len() && self.at(self.at) != b'\n' {
                self.at += 1;
            }
            return None;
        }
        if b == b'\'' || b == b'"' || b == b'`' {
            return Some(self.quoted());
        }
        if b == b'@' {
            self.at += 1;
            match self.at(self.at) {
                b'@' => {
                    self.at += 1;
                    return Some(Tok::SysVar);
                }
                b'\'' | b'"' | b'`' => {
                    self.quoted();
                }
                _ => {
                    while self.at < self.sql.len() {
                        let c = self.at(self.at);
                        if !(is_word_byte(c) || c == b'.') || self.blank() == Some(c) {
                            break;
                        }
                        self.at += 1;
                    }
                }
            }
            return Some(Tok::UserVar);
        }
        let behind_dot = i > 0 && self.sql[i - 1] == b'.';
        let behind_word = i > 0 && is_word_byte(self.sql[i - 1]);
        if b == b'.' && self.at(i + 1).is_ascii_digit() && !behind_word {
            self.at += 1;
            self.digits();
            self.exponent();
            return Some(Tok::Number);
        }
        if b.is_ascii_digit() && !behind_dot && self.number() {
            return Some(Tok::Number);
        }
        if b == b'$' && !behind_dot && self.d.server == Server::MySql && self.dollar_text() {
            return Some(Tok::Text);
        }
        if is_word_byte(b) {
            self.word();
            return Some(Tok::Word);
        }
        let pairs: [(&[u8], Tok); 2] = [(b":=", Tok::Assign), (b"\\N", Tok::Number)];
        for (text, tok) in pairs {
            if self.starts(i, text) {
                self.at += 2;
                return Some(tok);
            }
        }
        self.at += 1;
        if b == 0 || (b == b';' && self.in_version) {
            self.found |= Traits::DOUBTFUL;
        }
        Some(match b {
            b';' => Tok::Semicolon,
            b'(' => Tok::Open,
            b')' => Tok::Close,
            b',' => Tok::Comma,
            b'.' => Tok::Dot,
            b'=' => Tok::Equal,
            _ => Tok::Other,
        })
    }

    fn word(&mut self) {
        while self.at < self.sql.len()
            && is_word_byte(self.at(self.at))
            && self.blank() != Some(self.at(self.at))
        {
            self.at += self.step(self.at);
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.at(self.at).is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn exponent(&mut self) -> bool {
        let start = self.at;
        if matches!(self.at(start), b'e' | b'E') {
            self.at += 1;
            if matches!(self.at(self.at), b'+' | b'-') {
                self.at += 1;
            }
            if self.digits() > 0 {
                return true;
            }
        }
        self.at = start;
        false
    }

    /// False, and nothing is stepped over, if it is a name.
    fn number(&mut self) -> bool {
        let start = self.at;
        for (prefix, digits) in [(&b"0x"[..], &b"0123456789abcdefABCDEF"[..]), (b"0b", b"01")] {
            if self.starts(start, prefix) {
                let mut end = start + 2;
                while end < self.sql.len() && digits.contains(&self.at(end)) {
                    end += 1;
                }
                let is = end > start + 2 && !(end < self.sql.len() && is_word_byte(self.at(end)));
                if is {
                    self.at = end;
                }
                return is;
            }
        }
        self.digits();
        if self.at(self.at) == b'.' {
            self.at += 1;
            self.digits();
            self.exponent();
            return true;
        }
        if self.exponent() || !(self.at < self.sql.len() && is_word_byte(self.at(self.at))) {
            return true;
        }
        self.at = start;
        false
    }

    fn dollar_text(&mut self) -> bool {
        let start = self.at;
        let mut end = start + 1;
        while end < self.sql.len() && is_word_byte(self.at(end)) && self.at(end) != b'$' {
            end += 1;
        }
        if self.at(end) != b'$' {
            return false;
        }
        if self.d.version < 90000 {
            self.found |= Traits::DOUBTFUL;
        }
        let tag = self.sql[start..=end].to_vec();
        self.at = end + 1;
        while self.at < self.sql.len() {
            if self.starts(self.at, &tag) {
                self.at += tag.len();
                return true;
            }
            self.at += 1;
        }
        self.found |= Traits::UNTERMINATED;
        true
    }

    fn quoted(&mut self) -> Tok {
        let quote = self.at(self.at);
        let is_name = quote == b'`' || (quote == b'"' && self.d.ansi_quotes);
        self.at += 1;
        while self.at < self.sql.len() {
            let b = self.at(self.at);
            if is_name && b == 0 {
                self.found |= Traits::DOUBTFUL;
                self.at += 1;
                return Tok::Name;
            }
            if b == quote {
                self.at += 1;
                if is_name && self.starts(self.at, &[quote]) {
                    self.at += 1;
                    continue;
                }
                return if is_name { Tok::Name } else { Tok::Text };
            }
            if !is_name && b == b'\\' && !self.d.no_backslash_escapes {
                self.at += 2;
            } else if b >= 0x80 {
                self.at += self.step(self.at);
            } else {
                self.at += 1;
            }
        }
        self.at = self.sql.len();
        self.found |= Traits::UNTERMINATED;
        if is_name { Tok::Name } else { Tok::Text }
    }

    fn is_dash_comment(&mut self, i: usize) -> bool {
        let Some(&b) = self.sql.get(i) else {
            return true;
        };
        if b >= 0x80
            && let Some(blank) = self.blank()
        {
            if b != blank {
                self.found |= Traits::DOUBTFUL;
            }
            return b == blank;
        }
        b <= b' ' || b == 0x7f
    }

    fn block_comment(&mut self) {
        self.at += 2;
        let mariadb = self.d.server == Server::MariaDb;
        let own = mariadb && self.starts(self.at, b"M!");
        if !own && !self.starts(self.at, b"!") {
            if self.starts(self.at, b"+") {
                self.found |= Traits::FOR_ITSELF;
            }
            return self.close_comment();
        }
        self.at += if own { 2 } else { 1 };
        let digits = (0..6)
            .take_while(|n| self.at(self.at + n).is_ascii_digit())
            .count();
        let six = digits == 6
            && (mariadb || is_space(self.at(self.at + 6)) && !(1..80100).contains(&self.d.version));
        let len = if six {
            6
        } else if digits >= 5 {
            5
        } else {
            0
        };
        let number: u32 = String::from_utf8(self.sql[self.at..self.at + len].to_vec())
            .unwrap()
            .parse()
            .unwrap_or(0);
        let is_others = mariadb && !own && (50700..100_000).contains(&number);
        let unknown = self.d.version == 0 && number > 50000;
        if !is_others && (unknown || number <= self.d.version.max(50000)) {
            self.at += len;
            self.in_version = true;
            self.found |= Traits::EXECUTABLE;
            if unknown {
                self.found |= Traits::DOUBTFUL;
            }
            return;
        }
        self.at += len;
        while self.at < self.sql.len() {
            if self.starts(self.at, b"*/") {
                self.at += 2;
                return;
            }
            if self.starts(self.at, b"/*") {
                self.at += 2;
                self.close_comment();
            } else {
                self.at += 1;
            }
        }
        self.found |= Traits::UNTERMINATED;
    }

    fn close_comment(&mut self) {
        while self.at < self.sql.len() {
            if self.starts(self.at, b"*/") {
                self.at += 2;
                return;
            }
            self.at += 1;
        }
        self.found |= Traits::UNTERMINATED;
    }
}
