//! `[[groups]]`: a primary and its replicas, and how Atlas reaches them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::field::Field;
use super::server::{DAY, to_u32};
use super::tree::Section;
use super::value;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostAddress {
    /// A name that must be resolved, and a port.
    Name(String, u16),
    /// An IP address and port.
    Ip(SocketAddr),
    /// An absolute path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for HostAddress {
    /// As it is written in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A server of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Where it is.
    pub address: HostAddress,
    /// Its share of the reads among replicas, 1 to 1000. Meaningless for a primary (1).
    pub weight: u32,
}

/// What a read does when no replica may serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReplica {
    /// It goes to the primary.
    Primary,
    /// It fails.
    Error,
}

/// Who decides on the roles of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The configuration.
    Fixed,
    /// The servers: Atlas reads their roles.
    Follow,
}

/// How a connection to a server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendTlsMode {
    /// Clear text.
    Off,
    /// TLS if the server has it, without checking who it is.
    Preferred,
    /// TLS, without checking who it is.
    Required,
    /// TLS with a certificate of a known authority.
    VerifyCa,
    /// TLS with a certificate of a known authority that names the configured host.
    VerifyIdentity,
}

/// TLS towards the servers of a group.
#[derive(Clone, Debug)]
pub struct BackendTls {
    /// When it is used and what is checked.
    pub mode: BackendTlsMode,
    /// Authorities of the servers' certificates, PEM. Always there in the two verify modes.
    pub ca: Option<PathBuf>,
    /// Certificate and private key that Atlas shows, PEM files.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A primary and its replicas: the servers that hold one set of data.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Name of the group.
    pub name: String,
    /// The server that takes writes.
    pub primary: HostConfig,
    /// The servers that take reads.
    pub replicas: Vec<HostConfig>,
    /// Who decides on roles.
    pub topology: Topology,
    /// A replica further behind serves no reads; zero when nobody wants to know.
    pub max_lag: Duration,
    /// Whether the file names it: then a lag that cannot be known counts as too much in any case.
    pub is_max_lag_given: bool,
    /// What a read does when no replica may serve it.
    pub no_replica: NoReplica,
    /// How long a write waits for a primary.
    pub primary_wait: Duration,
    /// Logical to physical schema names.
    pub schemas: BTreeMap<String, String>,
    /// TLS towards the servers.
    pub tls: BackendTls,
}

impl GroupConfig {
    /// All groups of the file.
    pub(super) fn read_all(root: &Section<'_>) -> Vec<Self> {
        let sections = root.sections("groups");
        if sections.is_empty() && root.get("groups").is_none_or(|field| field.is_list()) {
            root.missing(
                "groups",
                "at least one [[groups]] with a name and a primary",
            );
        }
        let mut groups: Vec<Self> = Vec::new();
        for section in sections {
            let group = Self::read(&section);
            if !group.name.is_empty() && groups.iter().any(|other| other.name == group.name) {
                section.error(format!("group \"{}\" is defined twice", group.name));
            }
            groups.push(group);
        }
        groups
    }

    fn read(section: &Section<'_>) -> Self {
        let name = read_name(section);
        let primary = read_primary(section);
        let replicas = read_replicas(section, primary.as_ref());
        Self {
            name,
            // The stand-in is never used: without an address the file is refused.
            primary: HostConfig {
                address: primary.unwrap_or_else(|| HostAddress::Name(String::new(), 0)),
                weight: 1,
            },
            replicas,
            topology: section.choice(
                "topology",
                &[("fixed", Topology::Fixed), ("follow", Topology::Follow)],
                Topology::Fixed,
            ),
            is_max_lag_given: section.get("max_lag").is_some(),
            max_lag: section.duration("max_lag", Duration::ZERO..=DAY, Duration::from_secs(10)),
            no_replica: section.choice(
                "no_replica",
                &[("primary", NoReplica::Primary), ("error", NoReplica::Error)],
                NoReplica::Primary,
            ),
            primary_wait: section.duration(
                "primary_wait",
                Duration::ZERO..=DAY,
                Duration::from_secs(10),
            ),
            schemas: read_schemas(&section.section("schemas")),
            tls: BackendTls::read(&section.section("tls")),
        }
    }
}

/// A name that is safe in a hint, a metric label and an admin command.
fn read_name(section: &Section<'_>) -> String {
    let Some(field) = section.get("name") else {
        section.missing("name", "a name such as \"main\"");
        return String::new();
    };
    let name = field.string().unwrap_or_default();
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if field.is_string() && (name.is_empty() || name.len() > 64 || !name.bytes().all(is_allowed)) {
        field.error("a group's name has 1 to 64 letters, digits, `_`, `-` or `.`");
    }
    name.to_owned()
}

fn read_primary(section: &Section<'_>) -> Option<HostAddress> {
    let Some(field) = section.get("primary") else {
        section.missing(
            "primary",
            "the address of the primary, such as \"10.0.0.1:3306\"",
        );
        return None;
    };
    field.parse(value::host_address)
}

fn read_replicas(section: &Section<'_>, primary: Option<&HostAddress>) -> Vec<HostConfig> {
    let mut replicas: Vec<HostConfig> = Vec::new();
    for item in section
        .get("replicas")
        .map_or_else(Vec::new, |field| field.list())
    {
        let Some((at, host)) = read_replica(&item) else {
            continue;
        };
        if replicas.iter().any(|other| other.address == host.address) {
            at.error(format!(
                "replica {} is listed twice: give it a weight instead",
                host.address
            ));
        }
        if primary == Some(&host.address) {
            at.warning(format!(
                "{} is the primary as well: it gets a share of the reads; with `no_replica = \"primary\"` it need not be listed here",
                host.address
            ));
        }
        replicas.push(host);
    }
    replicas
}

/// An address alone, or a table with its weight; with the place of the address.
fn read_replica<'a>(item: &Field<'a>) -> Option<(Field<'a>, HostConfig)> {
    if item.is_string() {
        let address = item.parse(value::host_address)?;
        return Some((item.clone(), HostConfig { address, weight: 1 }));
    }
    let section = item.section();
    if !section.is_present() {
        return None;
    }
    let weight = to_u32(section.int("weight", 1..=1000, 1));
    let Some(at) = section.get("address") else {
        section.missing(
            "address",
            "the address of the replica, such as \"10.0.0.2:3306\"",
        );
        return None;
    };
    let address = at.parse(value::host_address)?;
    Some((at, HostConfig { address, weight }))
}

fn read_schemas(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut schemas = BTreeMap::new();
    for (logical, field) in section.entries() {
        if let Some(physical) = field.parse(value::schema_name) {
            schemas.insert(logical.to_owned(), physical);
        }
    }
    schemas
}

impl BackendTls {
    fn read(section: &Section<'_>) -> Self {
        let mode = section.choice(
            "mode",
            &[
                ("off", BackendTlsMode::Off),
                ("preferred", BackendTlsMode::Preferred),
                ("required", BackendTlsMode::Required),
                ("verify-ca", BackendTlsMode::VerifyCa),
                ("verify-identity", BackendTlsMode::VerifyIdentity),
            ],
            BackendTlsMode::Off,
        );
        let file = |name| match mode {
            // What is not used need not be there.
            BackendTlsMode::Off => section.file(name),
            BackendTlsMode::Preferred
            | BackendTlsMode::Required
            | BackendTlsMode::VerifyCa
            | BackendTlsMode::VerifyIdentity => section.input_file(name),
        };
        let ca = file("ca");
        if ca.is_none()
            && matches!(
                mode,
                BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity
            )
        {
            section.missing("ca", "a PEM file with the authorities of the servers' certificates, because the mode verifies them");
        }
        let identity = match (file("cert"), file("key")) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => {
                section.missing("key", "the private key of the certificate");
                None
            }
            (None, Some(_)) => {
                section.missing("cert", "the certificate of the private key");
                None
            }
        };
        Self { mode, ca, identity }
    }
}
