//! TOML as it is written for people: sections in order, comments above what they are about.

use crate::config::on_one_line;

/// A text in the making.
#[derive(Debug, Default)]
pub(super) struct Paper(String);

impl Paper {
    /// A comment of one line.
    pub(super) fn comment(&mut self, text: &str) {
        self.0.push_str("# ");
        self.0.push_str(&on_one_line(text));
        self.0.push('\n');
    }

    /// The head of a section, with an empty line above it.
    pub(super) fn section(&mut self, header: &str) {
        self.0.push('\n');
        self.0.push_str(header);
        self.0.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// A key with its value, which is TOML already.
    pub(super) fn key(&mut self, name: &str, value: &str) {
        self.0.push_str(name);
        self.0.push_str(" = ");
        self.0.push_str(value);
        self.0.push('\n');
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// A text in quotes.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of values that are TOML already; long ones over several lines.
pub(super) fn list(items: &[String]) -> String {
    let short = format!("[{}]", items.join(", "));
    if short.len() <= 80 {
        return short;
    }
    let lines: String = items.iter().map(|item| format!("  {item},\n")).collect();
    format!("[\n{lines}]")
}
