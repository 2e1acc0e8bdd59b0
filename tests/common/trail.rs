//! What the server connections of one test did: the general logs of all servers, cut down to the connections that were opened with
//! the test's own schema. Tests that run at the same time do not show, and no statement needs a tag.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom};

use super::{Bed, Entry, Node, Schema, Server, parse_general_log};

/// A command that a connection of this test sent, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub node: Node,
    pub entry: Entry,
}

impl Seen {
    /// The connection: ids are a server's own, so they say something only with the server.
    pub fn connection(&self) -> (Node, u64) {
        (self.node, self.entry.connection)
    }

    /// Whether it is this statement, sent or executed. Servers log it without blanks and semicolons at its ends.
    pub fn is(&self, sql: &str) -> bool {
        matches!(self.entry.command.as_str(), "Query" | "Execute" | "Prepare")
            && bare(&self.entry.text) == bare(sql)
    }

    /// Whether it is one of the statements of this batch.
    pub fn is_in(&self, batch: &str) -> bool {
        self.entry.command == "Query" && batch.contains(bare(&self.entry.text))
    }
}

fn bare(sql: &str) -> &str {
    sql.trim_matches(|c: char| c.is_ascii_whitespace() || c == ';')
}

/// Reads the logs on from where it stopped the last time.
#[derive(Debug)]
pub struct Trail {
    schema: String,
    mark: String,
    logs: Vec<Log>,
}

#[derive(Debug)]
struct Log {
    server: Server,
    from: u64,
    ours: HashSet<u64>,
}

impl Trail {
    /// Starts at the present end of the logs. Connections that are there already do not count.
    pub fn new(bed: &Bed, schema: &Schema) -> Self {
        let log = |server: &Server| Log {
            from: fs::metadata(&server.general_log).map_or(0, |file| file.len()),
            ours: HashSet::new(),
            server: server.clone(),
        };
        Self {
            schema: schema.name().to_owned(),
            mark: format!(" on {schema} using "),
            logs: bed.servers().iter().map(log).collect(),
        }
    }

    /// What was done since the last call, server by server.
    pub fn take(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for log in &mut self.logs {
            for entry in log.read_on() {
                if entry.command == "Connect" && entry.text.contains(&self.mark) {
                    log.ours.insert(entry.connection);
                }
                // A connection that others had before.
                if entry.command == "Init DB" && entry.text == self.schema {
                    log.ours.insert(entry.connection);
                }
                if log.ours.contains(&entry.connection) {
                    seen.push(Seen {
                        node: log.server.node,
                        entry,
                    });
                }
            }
        }
        seen
    }

    /// The same, as the statements only: no log-ins, no farewells, no closed statements, and nothing of what Atlas says to have
    /// a server tell of changes of session state.
    pub fn statements(&mut self) -> Vec<Seen> {
        let mut seen = self.take();
        seen.retain(|seen| {
            matches!(
                seen.entry.command.as_str(),
                "Query" | "Execute" | "Prepare" | "Init DB" | "Field List"
            ) && !is_set_up(&seen.entry.text)
        });
        seen
    }
}

/// See `session::tracking`.
fn is_set_up(text: &str) -> bool {
    text.starts_with("SELECT @@session_track_schema, ")
        || text.starts_with("SET SESSION session_track_state_change = ")
        || text.starts_with("EXECUTE IMMEDIATE CONCAT(")
        // What that runs; with other variables where others are tracked.
        || text.starts_with("SET autocommit = @@autocommit, time_zone = @@time_zone")
        || text == "DO 0"
}

impl Log {
    fn read_on(&mut self) -> Vec<Entry> {
        let path = &self.server.general_log;
        let mut file =
            fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.seek(SeekFrom::Start(self.from))
            .expect("seek in a log");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("read a log");
        // The last line may still be written.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.from += whole as u64;
        parse_general_log(&String::from_utf8_lossy(&bytes[..whole]))
    }
}
