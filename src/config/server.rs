//! `[server]` and `[admin]`: how clients and operators reach Atlas.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::field::Field;
use super::tree::Section;
use super::user::read_passwords;
use super::{Secret, value};

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An IP address and port; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// An absolute path of a unix socket.
    Unix(PathBuf),
}

/// Whether workers are bound to cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinWorkers {
    /// The kernel moves them as it likes.
    No,
    /// Worker n to the n-th core that the process may use.
    Yes,
    /// Worker n to the n-th core of the list, starting over at its end.
    Cores(Vec<usize>),
}

/// The authentication plugin that the greeting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthPlugin {
    /// `caching_sha2_password`
    CachingSha2,
    /// `mysql_native_password`
    Native,
}

/// When clients use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTlsMode {
    /// It is not offered.
    Off,
    /// A client may ask for it.
    Optional,
    /// A client without it is refused.
    Required,
}

/// TLS towards clients.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// When it is used.
    pub mode: ServerTlsMode,
    /// Certificate chain, PEM. Empty only when the mode is off.
    pub cert: PathBuf,
    /// Private key, PEM. Empty only when the mode is off.
    pub key: PathBuf,
    /// Authorities of client certificates, PEM; none to ask for no certificate.
    pub ca: Option<PathBuf>,
}

/// A set of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<IpNet>);

impl Networks {
    /// Whether one of them contains the address. IPv4 addresses that a dual-stack socket shows as IPv6 count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }

    /// The set as an access list: an empty one lets everyone in.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.contains(address)
    }

    pub(super) fn read(section: &Section<'_>, name: &str) -> Self {
        let fields = section
            .get(name)
            .map_or_else(Vec::new, |field| field.list());
        Self(
            fields
                .iter()
                .filter_map(|field| field.parse(value::network))
                .collect(),
        )
    }
}

/// Event loops that a process has at most: the number of one is part of its clients' ids.
pub const WORKERS_MAX: usize = 64;

/// `[server]`.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Addresses for clients; never empty.
    pub listen: Vec<ListenAddress>,
    /// Address of the admin port.
    pub admin_listen: Option<SocketAddr>,
    /// Address of the HTTP port.
    pub http_listen: Option<SocketAddr>,
    /// Event loops; 0 for one per core.
    pub workers: usize,
    /// Whether workers are bound to cores.
    pub pin_workers: PinWorkers,
    /// Version that clients are told; none for the primary's own.
    pub server_version: Option<String>,
    /// Plugin offered first.
    pub auth_plugin: AuthPlugin,
    /// Clients at a time, all workers together.
    pub max_connections: usize,
    /// Where a process that takes over asks for the sockets; none for a path beside the configuration.
    pub upgrade_socket: Option<PathBuf>,
    /// How long health checks fail before a stop begins.
    pub drain_delay: Duration,
    /// How long a stop waits for transactions to end.
    pub drain_timeout: Duration,
    /// Networks from which a PROXY header is accepted; empty for none (use [`Networks::contains`]).
    pub proxy_protocol_from: Networks,
    /// Networks that may connect; empty for everyone (use [`Networks::allows`]).
    pub client_networks: Networks,
    /// File with the key for `enc:v1:` values.
    pub key_file: PathBuf,
    /// TLS towards clients.
    pub tls: ServerTls,
}

impl ServerConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let listen = read_listen(section);
        let admin_listen = read_socket(section, "admin_listen");
        let http_listen = read_socket(section, "http_listen");
        let mut taken: Vec<(&str, SocketAddr)> = Vec::new();
        let tcp = listen.iter().filter_map(|address| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        });
        taken.extend(tcp.map(|address| ("listen", address)));
        for (name, address) in [("admin_listen", admin_listen), ("http_listen", http_listen)] {
            let Some(address) = address else { continue };
            let other = taken.iter().find(|(_, other)| collide(*other, address));
            if let (Some((other, _)), Some(field)) = (other, section.get(name)) {
                field.error(format!("`{address}` is taken by `{other}`"));
            }
            taken.push((name, address));
        }
        Self {
            listen,
            admin_listen,
            http_listen,
            workers: read_workers(section),
            pin_workers: section
                .get("pin_workers")
                .and_then(|field| read_pin(&field))
                .unwrap_or(PinWorkers::No),
            server_version: section
                .get("server_version")
                .and_then(|field| match field.string() {
                    Some("auto") | None => None,
                    Some(_) => field.parse(value::server_version),
                }),
            auth_plugin: section.choice(
                "auth_plugin",
                &[
                    ("caching_sha2_password", AuthPlugin::CachingSha2),
                    ("mysql_native_password", AuthPlugin::Native),
                ],
                AuthPlugin::CachingSha2,
            ),
            max_connections: to_usize(section.int("max_connections", 1..=1_000_000, 10_000)),
            upgrade_socket: read_upgrade_socket(section),
            drain_delay: section.duration("drain_delay", Duration::ZERO..=DAY, Duration::ZERO),
            drain_timeout: section.duration(
                "drain_timeout",
                Duration::ZERO..=DAY,
                Duration::from_secs(30),
            ),
            proxy_protocol_from: Networks::read(section, "proxy_protocol_from"),
            client_networks: Networks::read(section, "client_networks"),
            key_file: Self::read_key_file(section),
            tls: ServerTls::read(&section.section("tls")),
        }
    }

    pub(super) fn read_key_file(section: &Section<'_>) -> PathBuf {
        section
            .file("key_file")
            .unwrap_or_else(|| section.path_beside("atlas.key"))
    }
}

impl ServerTls {
    fn read(section: &Section<'_>) -> Self {
        let mode = section.choice(
            "mode",
            &[
                ("off", ServerTlsMode::Off),
                ("optional", ServerTlsMode::Optional),
                ("required", ServerTlsMode::Required),
            ],
            ServerTlsMode::Off,
        );
        let file = |name| match mode {
            // What is not used need not be there.
            ServerTlsMode::Off => section.file(name),
            ServerTlsMode::Optional | ServerTlsMode::Required => section.input_file(name),
        };
        let (cert, key, ca) = (file("cert"), file("key"), file("ca"));
        if mode != ServerTlsMode::Off {
            for (name, file) in [("cert", &cert), ("key", &key)] {
                if file.is_none() {
                    section.missing(name, "a PEM file, because the mode of TLS is not \"off\"");
                }
            }
        }
        Self {
            mode,
            cert: cert.unwrap_or_default(),
            key: key.unwrap_or_default(),
            ca,
        }
    }
}

fn read_listen(section: &Section<'_>) -> Vec<ListenAddress> {
    let Some(field) = section.get("listen") else {
        return vec![ListenAddress::Tcp(SocketAddr::from(([0, 0, 0, 0], 1234)))];
    };
    let items = field.one_or_list();
    if items.is_empty() {
        field.error("empty: at least one address is needed, such as [\"0.0.0.0:1234\"]");
    }
    let mut addresses = Vec::new();
    for item in items {
        match item.parse(value::listen_address) {
            Some(address) if addresses.contains(&address) && !is_chosen_by_kernel(&address) => {
                item.error("listed twice");
            }
            Some(address) => addresses.push(address),
            None => {}
        }
    }
    addresses
}

/// Whether two sockets cannot listen at the same time. An address that stands for all of them takes the port of each.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    let stands_for =
        |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    one.port() == other.port()
        && one.port() != 0
        && (a == b || stands_for(a, b) || stands_for(b, a))
}

fn read_workers(section: &Section<'_>) -> usize {
    let workers = to_usize(section.int("workers", 0..=1024, 0));
    if let Some(field) = section.get("workers").filter(|_| workers > WORKERS_MAX) {
        field.warning(format!("{WORKERS_MAX} are started, not more"));
    }
    workers.min(WORKERS_MAX)
}

fn read_upgrade_socket(section: &Section<'_>) -> Option<PathBuf> {
    let path = section.file("upgrade_socket")?;
    if let Some(field) = section.get("upgrade_socket")
        && path.as_os_str().len() > value::SOCKET_PATH_MAX
    {
        field.error(value::socket_path_too_long());
    }
    Some(path)
}

fn is_chosen_by_kernel(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Tcp(address) if address.port() == 0)
}

/// An IP address and port, empty for none.
fn read_socket(section: &Section<'_>, name: &str) -> Option<SocketAddr> {
    let field = section
        .get(name)
        .filter(|field| field.string() != Some(""))?;
    field.parse(|text| {
        text.parse()
            .map_err(|_| format!("`{text}` is not IP:PORT, such as \"127.0.0.1:2345\""))
    })
}

fn read_pin(field: &Field<'_>) -> Option<PinWorkers> {
    if !field.is_list() {
        return field
            .bool()
            .map(|yes| if yes { PinWorkers::Yes } else { PinWorkers::No });
    }
    let items = field.list();
    if items.is_empty() {
        field.error("empty: list the cores, or write true or false");
    }
    let mut cores = Vec::new();
    for item in items {
        // CPU_SETSIZE of the C library: the highest core that can be asked for.
        let Some(core) = item.int(0..=1023) else {
            continue;
        };
        let core = to_usize(core);
        if cores.contains(&core) {
            item.warning(format!("core {core} is listed twice: two workers share it"));
        }
        cores.push(core);
    }
    Some(PinWorkers::Cores(cores))
}

/// `[admin]`.
#[derive(Clone, Debug, Default)]
pub struct AdminConfig {
    /// Accounts of the admin port.
    pub users: Vec<AdminUser>,
}

/// An account of the admin port.
#[derive(Clone, Debug)]
pub struct AdminUser {
    /// Its name.
    pub name: String,
    /// Passwords, each accepted.
    pub passwords: Vec<Secret>,
    /// Whether it may change anything.
    pub is_operator: bool,
}

impl AdminConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let mut users: Vec<AdminUser> = Vec::new();
        for user in section.sections("users") {
            let name = super::user::read_account_name(&user, "name");
            if users.iter().any(|other| other.name == name) {
                user.error(format!("account \"{name}\" is defined twice"));
            }
            let is_operator = user.choice("role", &[("operator", true), ("viewer", false)], false);
            let passwords = match user.get("password") {
                Some(field) => read_passwords(&field),
                None => {
                    user.missing("password", "the password of the account");
                    Vec::new()
                }
            };
            users.push(AdminUser {
                name,
                passwords,
                is_operator,
            });
        }
        Self { users }
    }
}

/// For values that a range has already bounded to what is not negative and fits.
pub(super) fn to_usize(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// For values that a range has already bounded to what is not negative and fits.
pub(super) fn to_u32(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// The longest time that most settings may have.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_know_mapped_addresses() {
        let networks = Networks(vec!["10.0.0.0/8".parse().unwrap()]);
        assert!(networks.contains("10.1.2.3".parse().unwrap()));
        assert!(networks.contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!networks.contains("11.0.0.1".parse().unwrap()));
        assert!(!networks.contains("::1".parse().unwrap()));
        assert!(Networks::default().allows("11.0.0.1".parse().unwrap()));
        assert!(!Networks::default().contains("11.0.0.1".parse().unwrap()));
    }
}
