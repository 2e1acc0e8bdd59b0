//! The original Atlas's configuration turned into one for this Atlas: text in, text and findings out. Reading files and making
//! the key are the caller's.
//!
//! `cnf` reads the old format, `paper` writes the new one. `convert` knows what became of each key, with `servers`, `accounts` and
//! `shards` for those of which there may be many.

mod accounts;
mod cnf;
mod convert;
mod paper;
mod servers;
mod shards;

#[cfg(test)]
mod tests;

use crate::config::{Problem, Secret, Severity, on_one_line};

/// Makes an `enc:v1:` value of a password, or says why it cannot.
pub type Seal<'a> = &'a mut dyn FnMut(&Secret) -> Result<String, String>;

/// An old configuration in the new form.
#[derive(Debug)]
pub struct Imported {
    /// The text of `atlas.toml`.
    pub toml: String,
    /// What the operator should know, in the order of the old file. Errors need a hand: the text will not pass `atlas check`,
    /// or not mean the same, without it.
    pub problems: Vec<Problem>,
}

/// Turns the text of an old configuration into a new one. `file` is its name for messages; `seal` makes an `enc:v1:` value of a
/// password, or says why it cannot; `key_file` is where its key is, if that is not the usual place.
pub fn import_cnf(text: &str, file: &str, key_file: Option<&str>, seal: Seal<'_>) -> Imported {
    let mut findings = Findings {
        file: file.to_owned(),
        problems: Vec::new(),
    };
    let old = cnf::read(text, &mut findings);
    let toml = convert::convert(&old, key_file, &mut findings, seal);
    let mut problems = findings.problems;
    problems.sort_by_key(|problem| problem.line);
    Imported { toml, problems }
}

/// What is found on the way.
struct Findings {
    file: String,
    problems: Vec<Problem>,
}

impl Findings {
    fn error(&mut self, line: usize, key: &str, text: impl Into<String>) {
        self.add(Severity::Error, line, key, &text.into());
    }

    fn warning(&mut self, line: usize, key: &str, text: impl Into<String>) {
        self.add(Severity::Warning, line, key, &text.into());
    }

    fn add(&mut self, severity: Severity, line: usize, key: &str, text: &str) {
        self.problems.push(Problem {
            file: self.file.clone(),
            line,
            key: on_one_line(key),
            severity,
            text: on_one_line(text),
        });
    }
}
