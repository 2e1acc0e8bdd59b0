//! Configurations for Atlas in front of a bed.

use std::fmt::Write as _;

use super::{Bed, Kind, Node};

/// A configuration in the making: sections with lines, written out by `String::from`. `{listen}` and `{dir}` stand for the address and
/// the folder that [`super::Atlas::start`] finds.
#[derive(Clone, Debug)]
pub struct Config {
    server: Vec<String>,
    group: Vec<String>,
    users: Vec<Vec<String>>,
    tail: String,
}

/// One group `main` with the primary and both replicas, and the accounts `app`, `plain`, and `ed` (MariaDB) or `sha` (MySQL) with
/// their passwords on the servers. Everything else has its default.
pub fn config_for(bed: &Bed) -> Config {
    let replicas: Vec<String> = Node::REPLICAS
        .iter()
        .map(|node| format!("{{ address = \"{}\" }}", bed.address(*node)))
        .collect();
    let own = match bed.kind {
        Kind::MariaDb => ("ed", "ed-pw"),
        Kind::MySql => ("sha", "sha-pw"),
    };
    let config = Config {
        server: vec!["listen = [\"{listen}\"]".to_owned()],
        group: vec![
            "name = \"main\"".to_owned(),
            format!("primary = \"{}\"", bed.address(Node::Primary)),
            format!("replicas = [{}]", replicas.join(", ")),
        ],
        users: Vec::new(),
        tail: String::new(),
    };
    config
        .user("app", "app-pw", &[])
        .user("plain", "plain-pw", &[])
        .user(own.0, own.1, &[])
}

impl Config {
    /// A line for `[server]`. A line for a key that is there already takes its place.
    #[must_use]
    pub fn server(mut self, line: &str) -> Self {
        set(&mut self.server, line);
        self
    }

    /// The same for the group.
    #[must_use]
    pub fn group(mut self, line: &str) -> Self {
        set(&mut self.group, line);
        self
    }

    /// Connects by unix sockets: to the servers, and for clients at `{dir}/atlas.sock` too.
    #[must_use]
    pub fn unix_sockets(self, bed: &Bed) -> Self {
        let socket = |node| format!("\"unix:{}\"", bed.server(node).socket.display());
        let replicas = Node::REPLICAS.map(|node| format!("{{ address = {} }}", socket(node)));
        self.server("listen = [\"{listen}\", \"unix:{dir}/atlas.sock\"]")
            .group(&format!("primary = {}", socket(Node::Primary)))
            .group(&format!("replicas = [{}]", replicas.join(", ")))
    }

    /// One more account, with lines of its own.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str, lines: &[&str]) -> Self {
        let mut user = vec![
            format!("name = \"{name}\""),
            format!("password = \"{password}\""),
        ];
        for line in lines {
            set(&mut user, line);
        }
        self.users.push(user);
        self
    }

    /// A line for all accounts that are there.
    #[must_use]
    pub fn all_users(mut self, line: &str) -> Self {
        for user in &mut self.users {
            set(user, line);
        }
        self
    }

    /// Text behind everything else: more sections.
    #[must_use]
    pub fn append(mut self, text: &str) -> Self {
        self.tail.push_str(text);
        self.tail.push('\n');
        self
    }
}

fn set(lines: &mut Vec<String>, line: &str) {
    let key = |line: &str| line.split('=').next().unwrap_or("").trim().to_owned();
    lines.retain(|old| key(old) != key(line));
    lines.push(line.to_owned());
}

impl From<Config> for String {
    fn from(config: Config) -> Self {
        let mut out = Self::new();
        let mut section = |head: &str, lines: &[Self]| {
            let _ = writeln!(out, "{head}\n{}\n", lines.join("\n"));
        };
        section("[server]", &config.server);
        section("[[groups]]", &config.group);
        for user in &config.users {
            section("[[users]]", user);
        }
        out.push_str(&config.tail);
        out
    }
}
