//! What is wrong, or worth knowing, about a configuration file.

use std::fmt;
use std::path::PathBuf;

/// How much a [`Problem`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably not as it was meant.
    Warning,
    /// Something that the reader should know.
    Note,
}

/// One finding, with the place it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as the user named it.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Path of the key, such as `groups[0].primary`; empty when the text is not TOML at this place.
    pub key: String,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong and what would be right.
    pub text: String,
}

impl Problem {
    /// Whether the file cannot be used because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    /// `file:line: key: text`; warnings and notes say so before the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        match self.severity {
            Severity::Error => {}
            Severity::Warning => f.write_str("warning: ")?,
            Severity::Note => f.write_str("note: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// A file that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Line in the configuration that names it.
    pub line: usize,
    /// Key that names it.
    pub key: String,
}

/// What a message quotes from the file may hold anything; the message stays on its line.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
