//! MySQL's slow-log format (manual page "The Slow Query Log"), as `pt-query-digest` and `mysqldumpslow` read it. What only Atlas knows
//! stands in further comment lines of `Name: value` pairs without blanks in the values, which `pt-query-digest` takes up too: those whose
//! names end with `_time` as times.
//!
//! A client's text cannot make up an entry of its own: no line of it begins with `#`.

use std::io::Write;
use std::time::Duration;

use super::time::Moment;
use super::{Entry, Names, Place, Statement};
use crate::config::AuditText;

/// Appends an entry.
pub fn write(out: &mut Vec<u8>, entry: &Entry, statement: &Statement, names: &Names<'_>) {
    let written = statement.written(AuditText::Full);
    let account = word(names.account);
    let moment = Moment(entry.at);
    let (host, address) = match entry.client {
        Some(ip) => (String::new(), ip.to_canonical().to_string()),
        None => ("localhost".to_owned(), String::new()),
    };
    let Statement {
        rows,
        affected,
        error,
        ..
    } = statement;
    let affected = affected.unwrap_or(0);
    let schema = statement.schema.as_deref().unwrap_or_default();
    let aborted = u8::from(statement.is_aborted);
    line(out, format_args!("# Time: {moment}"));
    line(
        out,
        format_args!(
            "# User@Host: {account}[{account}] @ {host} [{address}]  Id: {}",
            entry.connection
        ),
    );
    line(
        out,
        format_args!(
            "# Query_time: {}  Lock_time: 0.000000  Rows_sent: {rows}  Rows_examined: 0  Rows_affected: {affected}",
            Seconds(statement.took)
        ),
    );
    if !schema.is_empty() {
        let schema = word(schema);
        line(
            out,
            format_args!("# Schema: {schema}  Last_errno: {error}  Killed: {aborted}"),
        );
    } else {
        line(
            out,
            format_args!("# Last_errno: {error}  Killed: {aborted}"),
        );
    }
    match statement.place {
        Place::Server {
            route,
            reason,
            connection,
            ..
        } => line(
            out,
            format_args!(
                "# Route: {route}  Reason: {reason}  Group: {}  Server: {}  Server_connection: {connection}",
                word(names.group.as_bytes()),
                word(names.server.as_bytes())
            ),
        ),
        Place::Shards => {
            let groups: Vec<String> = names
                .groups
                .iter()
                .map(|group| word(group.as_bytes()).to_string())
                .collect();
            line(
                out,
                format_args!("# Route: sharded  Groups: {}", groups.join(",")),
            );
        }
        Place::Atlas => line(out, format_args!("# Route: atlas")),
    }
    line(
        out,
        format_args!(
            "# Acquire_time: {}  Sync_time: {}  Kind: {}  Digest: {:016x}",
            Seconds(statement.acquired),
            Seconds(statement.synced),
            statement.kind.as_str(),
            written.digest
        ),
    );
    if !written.is_whole {
        line(
            out,
            format_args!("# Cut: Yes  Statement_bytes: {}", written.len),
        );
    }
    for (name, value) in names.labels.into_iter().flatten() {
        line(
            out,
            format_args!("# Label_{name}: {}", word(value.as_bytes())),
        );
    }
    if !schema.is_empty() {
        out.extend_from_slice(b"use ");
        out.extend_from_slice(word(schema).as_bytes());
        out.extend_from_slice(b";\n");
    }
    line(out, format_args!("SET timestamp={};", moment.seconds()));
    let text = trimmed(&written.text);
    push_text(out, text);
    if !written.is_whole {
        let _ = write!(out, " /* cut: the statement has {} bytes */", written.len);
    }
    out.extend_from_slice(b";\n");
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing into a vector does not fail.
    let _ = out.write_fmt(text);
    out.push(b'\n');
}

/// A value of a comment line: in one piece, on one line.
fn word(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '[' | ']' | ';');
    let word: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if word.is_empty() {
        "-".to_owned()
    } else {
        word
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii();
    while let Some(rest) = text.strip_suffix(b";") {
        text = rest.trim_ascii_end();
    }
    text
}

/// Appends a text of which no line begins as an entry does.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let mut before = b'\n';
    for byte in text {
        if *byte == b'#' && matches!(before, b'\n' | b'\r') {
            out.push(b' ');
        }
        out.push(*byte);
        before = *byte;
    }
}

/// A time in seconds, with microseconds.
struct Seconds(Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}
