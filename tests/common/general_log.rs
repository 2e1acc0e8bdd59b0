//! The servers' general logs: which commands arrived where. Both products write a command before they run it, so what a client
//! has an answer for is in the file.
//!
//! ```text
//! MariaDB  261129 20:11:36\t     4 Query\tSELECT 1        (time only when it changed, else two tabs)
//! MySQL    2026-11-29T20:11:36.369344Z\t    8 Query\tSELECT 1
//! ```
//!
//! A replica also logs what replication applies there (definitions, as statements); that is left out.
//!
//! A statement of several lines goes on in the next lines as it stands; a line of it that looks like the head of an entry would be
//! taken for one.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use super::{Bed, Login, Node, Server, Wire};

/// One command that reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The server's connection id.
    pub connection: u64,
    /// `Query`, `Prepare`, `Execute`, `Connect`, `Quit`, `Init DB`, … as the server writes it.
    pub command: String,
    /// The statement, or what belongs to the command.
    pub text: String,
}

/// The ends of all general logs at one moment.
#[derive(Clone, Debug)]
pub struct Marks(Vec<Mark>);

#[derive(Clone, Debug)]
struct Mark {
    server: Server,
    /// Where the log ended, in bytes.
    from: u64,
    /// The connection ids of replication's own threads.
    appliers: Vec<u64>,
}

impl Marks {
    pub fn now(bed: &Bed) -> Self {
        let mark = |server: &Server| Mark {
            from: fs::metadata(&server.general_log).map_or(0, |file| file.len()),
            appliers: appliers(server),
            server: server.clone(),
        };
        Self(bed.servers().iter().map(mark).collect())
    }

    /// What arrived at that server since.
    pub fn entries(&self, node: Node) -> Vec<Entry> {
        let mark = self
            .0
            .iter()
            .find(|mark| mark.server.node == node)
            .expect("all four are there");
        let log = &mark.server.general_log;
        let mut text = Vec::new();
        let mut file =
            fs::File::open(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        file.seek(SeekFrom::Start(mark.from))
            .expect("seek in a log");
        file.read_to_end(&mut text).expect("read a log");
        let mut entries = parse(&String::from_utf8_lossy(&text));
        entries.retain(|entry| !mark.appliers.contains(&entry.connection));
        entries
    }

    /// Where something with `tag` in its text arrived since: one item for each command, in the order primary, replicas, second. A
    /// prepared statement counts for its preparation and for each execution.
    pub fn find(&self, tag: &str) -> Vec<(Node, Entry)> {
        let mut found = Vec::new();
        for node in Node::ALL {
            let entries = self.entries(node).into_iter();
            found.extend(
                entries
                    .filter(|entry| entry.text.contains(tag))
                    .map(|entry| (node, entry)),
            );
        }
        found
    }

    /// The servers at which something with `tag` arrived since, each once.
    pub fn nodes(&self, tag: &str) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.find(tag).into_iter().map(|(node, _)| node).collect();
        nodes.dedup();
        nodes
    }

    /// Whether something with `tag` arrived since, and at none but these servers.
    pub fn only_on(&self, tag: &str, allowed: &[Node]) -> bool {
        let nodes = self.nodes(tag);
        !nodes.is_empty() && nodes.iter().all(|node| allowed.contains(node))
    }
}

/// The connection ids of the replication threads of a server. None for a server that a test has stopped.
fn appliers(server: &Server) -> Vec<u64> {
    let greeted = Wire::greet_within(server.address, Duration::from_secs(2));
    let Ok(mut root) = greeted.and_then(|wire| wire.log_in(&Login::root())) else {
        return Vec::new();
    };
    let rows = root.query("SHOW PROCESSLIST").rows().into_iter();
    rows.filter(|row| row[1].as_deref() == Some("system user"))
        .filter_map(|row| row[0].as_deref()?.parse().ok())
        .collect()
}

/// Cuts the text of a log into its entries. What stands before the first head is dropped.
pub fn parse(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(entry) = head(line) {
            entries.push(entry);
        } else if let Some(last) = entries.last_mut() {
            last.text.push_str(line);
        }
    }
    for entry in &mut entries {
        if entry.text.ends_with('\n') {
            entry.text.pop();
        }
    }
    entries
}

fn head(line: &str) -> Option<Entry> {
    let (time, rest) = line.split_once('\t')?;
    if !time
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b" :-.TZ+".contains(&byte))
    {
        return None;
    }
    // MariaDB puts a second tab where there is no time.
    let rest = if time.is_empty() {
        rest.strip_prefix('\t')?
    } else {
        rest
    };
    let (connection, rest) = rest.trim_start_matches(' ').split_once(' ')?;
    let connection = connection.parse().ok()?;
    let command = COMMANDS.iter().find(|command| {
        rest.strip_prefix(**command)
            .is_some_and(|rest| rest.starts_with(['\t', '\n']))
    })?;
    let text = rest[command.len()..].trim_start_matches('\t');
    Some(Entry {
        connection,
        command: (*command).to_owned(),
        text: text.to_owned(),
    })
}

/// The names that either product writes.
const COMMANDS: &[&str] = &[
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed insert",
    "Change user",
    "Binlog Dump",
    "Table Dump",
    "Connect Out",
    "Register Slave",
    "Register Replica",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Binlog Dump GTID",
    "Reset Connection",
    "Reset connection",
    "clone",
    "Bulk_execute",
    "Bulk execute",
    "Slave_IO",
    "Slave_SQL",
    "Error",
];
