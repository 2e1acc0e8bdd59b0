//! The old format: groups in brackets, `key = value`, comments behind `#` at the start of a line. As GLib's key files, but
//! tolerant of blanks at the end of a line.

use super::Findings;

/// A file in the old format. Bytes that are not UTF-8 were replaced by U+FFFD before: they do not matter in comments.
#[derive(Debug, Default)]
pub(super) struct Cnf {
    pub(super) groups: Vec<Group>,
}

/// What stands under one `[name]`.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

/// One key.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) line: usize,
}

impl Group {
    /// The entry that counts: the last one of that name.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }
}

impl Entry {
    /// The items of a list: separated by commas, without blanks around them, empty ones left out.
    pub(super) fn items(&self) -> impl Iterator<Item = &str> {
        self.value
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    }

    /// A number as C reads it: the digits at the start, 0 when there are none.
    pub(super) fn number(&self) -> u64 {
        leading_number(&self.value)
    }
}

/// The digits at the start of a text as a number; 0 when there are none.
pub(super) fn leading_number(text: &str) -> u64 {
    text.trim()
        .bytes()
        .take_while(u8::is_ascii_digit)
        .fold(0_u64, |n, digit| {
            n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
}

pub(super) fn read(text: &str, findings: &mut Findings) -> Cnf {
    let mut cnf = Cnf::default();
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        // An editor's mark at the start of a file.
        let line = raw.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            open(&mut cnf, name, number, findings);
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim(), unescape(value.trim()));
            match cnf.groups.last_mut() {
                Some(_) if value.contains('\u{fffd}') => {
                    findings.error(number, key, "holds bytes that are not UTF-8: left out");
                }
                Some(group) => {
                    if group.get(key).is_some() {
                        findings.warning(
                            number,
                            key,
                            "stands here for the second time: the last one counts",
                        );
                    }
                    group.entries.push(Entry {
                        key: key.to_owned(),
                        value,
                        line: number,
                    });
                }
                None => findings.error(
                    number,
                    key,
                    "stands before the first [group], where the original refused it",
                ),
            }
        } else {
            // Not quoted: it may hold a password.
            findings.error(number, "", "neither [group] nor key = value: left out");
        }
    }
    cnf
}

/// A group that stands in two places is one.
fn open(cnf: &mut Cnf, name: &str, line: usize, findings: &mut Findings) {
    if let Some(at) = cnf.groups.iter().position(|group| group.name == name) {
        findings.warning(
            line,
            "",
            format!("[{name}] goes on from line {}", cnf.groups[at].line),
        );
        let group = cnf.groups.remove(at);
        cnf.groups.push(group);
        return;
    }
    cnf.groups.push(Group {
        name: name.to_owned(),
        line,
        entries: Vec::new(),
    });
}

/// What GLib writes for blanks at the ends, line ends and backslashes.
fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('s') => plain.push(' '),
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('\\') => plain.push('\\'),
            Some(other) => {
                plain.push('\\');
                plain.push(other);
            }
            None => plain.push('\\'),
        }
    }
    plain
}
