//! The text of a command cut into words, as far as an admin command needs it: quotes, comments, and a few signs.

/// One piece of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A run of anything but blanks, quotes and signs: a keyword, a number, an address.
    Bare(&'a str),
    /// What stands between two quotes. A doubled quote or a backslash inside is left as it is: no name here has one.
    Quoted(&'a str),
    /// One of `,` `(` `)` `=` `;`.
    Sign(char),
}

impl<'a> Word<'a> {
    /// Whether it is this keyword, in any case.
    pub(super) fn is(self, keyword: &str) -> bool {
        matches!(self, Self::Bare(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Its text, when it is a name, a number or a value.
    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            Self::Bare(text) | Self::Quoted(text) => Some(text),
            Self::Sign(_) => None,
        }
    }
}

/// Walks the words of a text.
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What has not been walked.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes over blanks, comments, and the frames of version comments, whose text counts.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
            self.at += rest.len() - trimmed.len();
            let len = comment_len(trimmed);
            if len == 0 {
                return;
            }
            self.at += len;
        }
    }
}

/// How many bytes at the front of a text are a comment; 0 for none.
fn comment_len(text: &str) -> usize {
    if let Some(version) = text.strip_prefix("/*!") {
        let digits = version.trim_start_matches(|c: char| c == 'M' || c.is_ascii_digit());
        return text.len() - digits.len();
    }
    if text.starts_with("*/") {
        return 2;
    }
    if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |end| end + 2);
    }
    let is_line = text.starts_with('#')
        || text == "--"
        || text
            .strip_prefix("--")
            .is_some_and(|rest| rest.starts_with(char::is_whitespace));
    if is_line {
        return text.find('\n').map_or(text.len(), |end| end + 1);
    }
    0
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        self.skip_blanks();
        let rest = self.rest();
        let first = rest.chars().next()?;
        if matches!(first, ',' | '(' | ')' | '=' | ';') {
            self.at += 1;
            return Some(Word::Sign(first));
        }
        // What stands for all columns needs no blanks around it.
        if first == '*' {
            self.at += 1;
            return Some(Word::Bare("*"));
        }
        if matches!(first, '\'' | '"' | '`') {
            let inside = rest.get(1..).unwrap_or_default();
            let end = inside.find(first).unwrap_or(inside.len());
            // The quotes are one byte each; the last one may be missing.
            self.at = (self.at + end + 2).min(self.text.len());
            return Some(Word::Quoted(inside.get(..end).unwrap_or_default()));
        }
        let ends = |c: char| {
            c.is_whitespace() || matches!(c, ',' | '(' | ')' | '=' | ';' | '*' | '\'' | '"' | '`')
        };
        let mut end = rest.find(ends).unwrap_or(rest.len());
        // Nor does a comment before it.
        if end > 1
            && rest
                .get(end - 1..)
                .is_some_and(|rest| rest.starts_with("/*"))
        {
            end -= 1;
        }
        self.at += end;
        Some(Word::Bare(rest.get(..end).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Words::new(text)
            .map(|word| match word {
                Word::Bare(text) => text.to_owned(),
                Word::Quoted(text) => format!("'{text}'"),
                Word::Sign(sign) => format!("{sign} "),
            })
            .collect()
    }

    #[test]
    fn what_is_a_word() {
        for (text, wanted) in [
            ("", vec![]),
            (" \t\n", vec![]),
            (
                "ADD SLAVE [::1]:3306@2",
                vec!["ADD", "SLAVE", "[::1]:3306@2"],
            ),
            (
                "add/**/slave\nunix:/a/b;",
                vec!["add", "slave", "unix:/a/b", "; "],
            ),
            (
                "/* a */SELECT  @@x AS `y`,1",
                vec!["SELECT", "@@x", "AS", "'y'", ", ", "1"],
            ),
            (
                "SHOW /*!50002 FULL*/ TABLES",
                vec!["SHOW", "FULL", "TABLES"],
            ),
            ("SET a=1 -- b", vec!["SET", "a", "= ", "1"]),
            ("-- a\nSELECT # b\n1", vec!["SELECT", "1"]),
            ("select*from`x`", vec!["select", "*", "from", "'x'"]),
            ("a.*,b*/**/c", vec!["a.", "*", ", ", "b", "*", "c"]),
            ("a/b/*c*/d/", vec!["a/b", "d/"]),
            ("/*!50000 a*/b", vec!["a", "b"]),
            ("--", vec![]),
            ("--x", vec!["--x"]),
            ("/* open", vec![]),
            ("'it', \"é\" 'open", vec!["'it'", ", ", "'é'", "'open'"]),
            ("a'b'", vec!["a", "'b'"]),
            ("é漢(x)", vec!["é漢", "( ", "x", ") "]),
        ] {
            assert_eq!(words(text), wanted, "{text}");
        }
    }

    #[test]
    fn every_text_comes_to_an_end() {
        for text in [
            ";".repeat(1000),
            "/*".repeat(999),
            "*/".repeat(999),
            "'".repeat(99),
            "/*!".repeat(99),
            "a*/".repeat(99),
        ] {
            assert!(Words::new(&text).count() <= text.len());
        }
    }
}
