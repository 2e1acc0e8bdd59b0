//! Results: named figures of one measurement, their JSON line, and the plain line by which a measuring child hands them to its parent.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use crate::error::{Doing, Result};

/// Named texts and figures of one measurement, in the order in which they were put in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    texts: Vec<(String, String)>,
    numbers: Vec<(String, f64)>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.texts.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn number(mut self, name: &str, value: f64) -> Self {
        self.numbers.push((name.to_owned(), value));
        self
    }

    /// Adds what another record says.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.texts.extend(other.texts.iter().cloned());
        self.numbers.extend(other.numbers.iter().cloned());
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.numbers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| *v)
    }

    pub(crate) fn get_text(&self, name: &str) -> &str {
        self.texts
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, v)| v)
    }

    /// The record as one JSON object, without a line end.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::from("{");
        for (name, value) in &self.texts {
            separate(&mut out);
            quote(&mut out, name);
            out.push(':');
            quote(&mut out, value);
        }
        for (name, value) in &self.numbers {
            separate(&mut out);
            quote(&mut out, name);
            // JSON knows neither infinity nor NaN.
            let shown = if value.is_finite() {
                (value * 1e4).round() / 1e4
            } else {
                0.0
            };
            let _ = write!(out, ":{shown}");
        }
        out.push('}');
        out
    }

    /// `name=value` words; texts must hold no white space.
    pub(crate) fn to_line(&self) -> String {
        let texts = self.texts.iter().map(|(n, v)| format!("{n}={v}"));
        let numbers = self.numbers.iter().map(|(n, v)| format!("{n}={v}"));
        texts.chain(numbers).collect::<Vec<_>>().join(" ")
    }

    /// Reads what [`Self::to_line`] wrote; words without `=` are left out.
    pub(crate) fn from_line(line: &str) -> Self {
        line.split_ascii_whitespace()
            .filter_map(|w| w.split_once('='))
            .fold(Self::new(), |r, (n, v)| match v.parse() {
                Ok(number) => r.number(n, number),
                Err(_) => r.text(n, v),
            })
    }
}

fn separate(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The file of JSON lines that a command writes, one per measurement, as they come.
#[derive(Debug)]
pub(crate) struct JsonLines(File);

impl JsonLines {
    /// Starts the file anew.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
        }
        Ok(Self(
            File::create(path).doing(|| format!("make {}", path.display()))?,
        ))
    }

    /// # Errors
    /// When the line cannot be written.
    pub(crate) fn put(&mut self, record: &Record) -> Result<()> {
        writeln!(self.0, "{}", record.to_json()).doing(|| "write a JSON line".into())
    }
}

/// Prints a line; a reader that went away (`| head`) is no reason to stop measuring.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A markdown table.
#[derive(Debug)]
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new(title: &str, columns: &[&str]) -> Self {
        let dashes = vec!["---"; columns.len()].join(" | ");
        Self(format!(
            "\n**{title}**\n\n| {} |\n| {dashes} |\n",
            columns.join(" | ")
        ))
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }

    pub(crate) fn print(&self) {
        say(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_quoted_and_numbers_are_finite() {
        let r = Record::new()
            .text("a\"b", "x\\y\n")
            .number("n", 1.5)
            .number("i", 3.0)
            .number("bad", f64::NAN);
        assert_eq!(
            r.to_json(),
            r#"{"a\"b":"x\\y\u000a","n":1.5,"i":3,"bad":0}"#
        );
        assert_eq!(Record::new().to_json(), "{}");
    }

    #[test]
    fn a_line_brings_the_record_over() {
        let r = Record::new()
            .text("name", "direct")
            .number("p50", 123.25)
            .number("n", 10.0);
        assert_eq!(Record::from_line(&r.to_line()), r);
        assert_eq!(r.get("p50"), Some(123.25));
        assert_eq!(r.get("p51"), None);
        assert_eq!(r.get_text("name"), "direct");
    }

    #[test]
    fn a_table_is_markdown() {
        let mut t = Table::new("T", &["a", "b"]);
        t.row(&["1".into(), "2".into()]);
        assert_eq!(t.0, "\n**T**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
