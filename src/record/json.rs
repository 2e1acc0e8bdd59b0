//! JSON lines: one object an entry, with the keys that apply to it, always in the same order.

use std::io::Write;
use std::time::Duration;

use super::time::Moment;
use super::{Entry, Names, Place, Statement, What};
use crate::config::AuditText;

/// Appends an entry and the end of its line.
pub fn write(out: &mut Vec<u8>, entry: &Entry, names: &Names<'_>, how: AuditText) {
    let event = match &entry.what {
        What::LogIn { .. } => "log-in",
        What::LogOut => "log-out",
        What::Reset => "session-reset",
        What::Refused(_) => "log-in-refused",
        What::Statement(_) => "statement",
    };
    let mut object = Object { out };
    object.begin("time", &Moment(entry.at).to_string());
    object.text("event", event.as_bytes());
    object.number("connection", entry.connection);
    let account = if entry.account.is_some() {
        names.account
    } else {
        &entry.claimed
    };
    object.text("account", account);
    let client = entry.client.map(|ip| ip.to_canonical().to_string());
    object.text(
        "client",
        client.as_deref().unwrap_or("localhost").as_bytes(),
    );
    if let Some(labels) = names.labels.filter(|labels| !labels.is_empty()) {
        object.key("labels");
        for (at, (name, value)) in labels.iter().enumerate() {
            object.out.push(if at == 0 { b'{' } else { b',' });
            push_string(object.out, name.as_bytes());
            object.out.push(b':');
            push_string(object.out, value.as_bytes());
        }
        object.out.push(b'}');
    }
    match &entry.what {
        What::LogIn { schema } => {
            if let Some(schema) = schema {
                object.text("schema", schema);
            }
        }
        What::LogOut | What::Reset => {}
        What::Refused(code) => object.number("error", *code),
        What::Statement(statement) => object.statement(statement, names, how),
    }
    out.extend_from_slice(b"}\n");
}

struct Object<'a> {
    out: &'a mut Vec<u8>,
}

impl Object<'_> {
    fn begin(&mut self, name: &str, value: &str) {
        self.name(b'{', name);
        push_string(self.out, value.as_bytes());
    }

    fn key(&mut self, name: &str) {
        self.name(b',', name);
    }

    /// A key is one of this file's words, which have nothing special in them.
    fn name(&mut self, before: u8, name: &str) {
        self.out.extend_from_slice(&[before, b'"']);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, value: &[u8]) {
        self.key(name);
        push_string(self.out, value);
    }

    fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        self.key(name);
        // Writing into a vector does not fail.
        let _ = write!(self.out, "{value}");
    }

    fn milliseconds(&mut self, name: &str, value: Duration) {
        let micros = value.as_micros();
        self.number(name, format_args!("{}.{:03}", micros / 1000, micros % 1000));
    }

    fn statement(&mut self, statement: &Statement, names: &Names<'_>, how: AuditText) {
        let written = statement.written(how);
        if let Some(schema) = &statement.schema {
            self.text("schema", schema);
        }
        self.text("kind", statement.kind.as_str().as_bytes());
        self.text("digest", format!("{:016x}", written.digest).as_bytes());
        if how != AuditText::None {
            self.text("statement", &written.text);
            if std::str::from_utf8(&written.text).is_err() {
                // What is no UTF-8 is not lost.
                self.key("statement_hex");
                self.out.push(b'"');
                for byte in &written.text {
                    let _ = write!(self.out, "{byte:02x}");
                }
                self.out.push(b'"');
            }
            if !written.is_whole {
                self.number("statement_bytes", written.len);
            }
        }
        match statement.place {
            Place::Server {
                route,
                reason,
                connection,
                ..
            } => {
                self.text("route", route.as_bytes());
                self.text("reason", reason.as_bytes());
                self.text("group", names.group.as_bytes());
                self.text("server", names.server.as_bytes());
                self.number("server_connection", connection);
            }
            Place::Shards => {
                self.text("route", b"sharded");
                self.key("groups");
                for (at, group) in names.groups.iter().enumerate() {
                    self.out.push(if at == 0 { b'[' } else { b',' });
                    push_string(self.out, group.as_bytes());
                }
                let end: &[u8] = if names.groups.is_empty() { b"[]" } else { b"]" };
                self.out.extend_from_slice(end);
            }
            Place::Atlas => self.text("route", b"atlas"),
        }
        self.number("rows", statement.rows);
        if let Some(affected) = statement.affected {
            self.number("affected", affected);
        }
        self.number("error", statement.error);
        if statement.is_aborted {
            self.number("aborted", true);
        }
        self.milliseconds("milliseconds", statement.took);
        self.milliseconds("acquire_milliseconds", statement.acquired);
        self.milliseconds("sync_milliseconds", statement.synced);
    }
}

/// Appends a string as JSON has it; what is no UTF-8 is replaced.
fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    // Nearly all are of this kind.
    if text.iter().all(|byte| is_plain(*byte)) {
        out.extend_from_slice(text);
        out.push(b'"');
        return;
    }
    let text = String::from_utf8_lossy(text);
    let mut rest = &*text;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut chars = special.chars();
        match chars.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// ASCII that stands in a string as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

/// What cannot stand in a string as it is. U+2028 and U+2029 end lines for some who read lines.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '"' | '\\' | '\u{2028}' | '\u{2029}')
}
