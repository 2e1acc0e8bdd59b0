//! `[[users]]`: accounts of clients, and the accounts on the servers that stand behind them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::field::Field;
use super::group::GroupConfig;
use super::server::{DAY, Networks, to_u32, to_usize};
use super::tree::Section;
use super::{Secret, value};

/// Where plain reads of an account go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// To replicas, under the policy of the group when there is none.
    Replica,
    /// To the primary.
    Primary,
    /// To replicas; with none that may serve them they fail, whatever the group's policy.
    ReplicaOnly,
}

/// When a server connection may be given to another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// After each transaction.
    Transaction,
    /// When the client leaves.
    Session,
}

/// Which earlier writes a read on a replica is sure to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causal {
    /// None.
    Off,
    /// Reads of a session stay on the primary for this long after its last write.
    Window(Duration),
    /// The session's own: a replica that has not got them is waited for so long, then the primary is read.
    Session(Duration),
    /// Everybody's.
    Global,
}

/// The account on the servers.
#[derive(Clone, Debug)]
pub struct BackendAccount {
    /// Its name.
    pub user: String,
    /// Its passwords, tried in order; never empty (one empty password for none).
    pub passwords: Vec<Secret>,
    /// Its name on replicas; the same as `user` unless configured.
    pub read_user: String,
    /// Its passwords on replicas.
    pub read_passwords: Vec<Secret>,
}

/// Limits of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Statements a second; 0 for no limit.
    pub rate: u32,
    /// Statements at a time; 0 for no limit.
    pub concurrency: u32,
    /// A statement is ended after this; zero for never.
    pub statement_timeout: Duration,
    /// Rows that a result may have; 0 for no limit.
    pub result_rows: u64,
}

/// An account that clients log in with.
#[derive(Clone, Debug)]
pub struct UserConfig {
    /// Its name.
    pub name: String,
    /// Its passwords: each is accepted from clients, so that they can be changed without an outage. Never empty.
    pub passwords: Vec<Secret>,
    /// The account on the servers.
    pub backend: BackendAccount,
    /// Index into [`Config::groups`](super::Config::groups).
    pub group: usize,
    /// Default schema of clients that name none.
    pub schema: Option<String>,
    /// Networks from which the account may log in (use [`Networks::allows`]).
    pub networks: Networks,
    /// Where plain reads go.
    pub read_from: ReadFrom,
    /// When a server connection may be given to another client.
    pub sharing: Sharing,
    /// Which earlier writes a read is sure to see.
    pub causal: Causal,
    /// Clients of the account at a time; 0 for no limit of its own.
    pub max_connections: usize,
    /// Other limits.
    pub limits: Limits,
    /// Labels for metrics and logs.
    pub labels: BTreeMap<String, String>,
}

impl UserConfig {
    /// All accounts of the file.
    pub(super) fn read_all(root: &Section<'_>, groups: &[GroupConfig]) -> Vec<Self> {
        let sections = root.sections("users");
        if sections.is_empty() && root.get("users").is_none_or(|field| field.is_list()) {
            root.missing("users", "at least one [[users]] with a name and a password");
        }
        let mut users: Vec<Self> = Vec::new();
        for section in sections {
            let user = Self::read(&section, groups);
            if !user.name.is_empty() && users.iter().any(|other| other.name == user.name) {
                section.error(format!("account \"{}\" is defined twice", user.name));
            }
            users.push(user);
        }
        users
    }

    fn read(section: &Section<'_>, groups: &[GroupConfig]) -> Self {
        let name = read_account_name(section, "name");
        let passwords = match section.get("password") {
            Some(field) => read_passwords(&field),
            None => {
                section.missing("password", "the password of the account, such as \"env:SHOP_PASSWORD\"; \"\" when it has none");
                Vec::new()
            }
        };
        let limits = section.section("limits");
        Self {
            backend: BackendAccount::read(&section.section("backend"), &name, &passwords),
            name,
            passwords,
            group: read_group(section, groups),
            schema: section
                .get("schema")
                .filter(|field| field.string() != Some(""))
                .and_then(|field| field.parse(value::schema_name)),
            networks: Networks::read(section, "networks"),
            read_from: section.choice(
                "read_from",
                &[
                    ("replica", ReadFrom::Replica),
                    ("primary", ReadFrom::Primary),
                    ("replica-only", ReadFrom::ReplicaOnly),
                ],
                ReadFrom::Replica,
            ),
            sharing: section.choice(
                "sharing",
                &[
                    ("transaction", Sharing::Transaction),
                    ("session", Sharing::Session),
                ],
                Sharing::Transaction,
            ),
            causal: section
                .get("causal")
                .and_then(|field| read_causal(&field))
                .unwrap_or(Causal::Off),
            max_connections: to_usize(section.int("max_connections", 0..=1_000_000, 0)),
            limits: Limits {
                rate: to_u32(limits.int("rate", 0..=100_000_000, 0)),
                concurrency: to_u32(limits.int("concurrency", 0..=1_000_000, 0)),
                statement_timeout: limits.duration(
                    "statement_timeout",
                    Duration::ZERO..=DAY,
                    Duration::ZERO,
                ),
                result_rows: limits
                    .int("result_rows", 0..=4_000_000_000, 0)
                    .unsigned_abs(),
            },
            labels: read_labels(&section.section("labels")),
        }
    }
}

impl BackendAccount {
    fn read(section: &Section<'_>, name: &str, own: &[Secret]) -> Self {
        let user = section
            .get("user")
            .filter(|field| field.string() != Some(""))
            .map(|_| read_account_name(section, "user"));
        let passwords = section.get("password").map(|field| read_passwords(&field));
        let user = user.unwrap_or_else(|| name.to_owned());
        let passwords = passwords.unwrap_or_else(|| own.to_vec());
        let read_user = section
            .get("read_user")
            .filter(|field| field.string() != Some(""))
            .map(|_| read_account_name(section, "read_user"));
        let read_password = section.get("read_password");
        let (read_user, read_passwords) = match (read_user, read_password) {
            (Some(read_user), Some(field)) => (read_user, read_passwords(&field)),
            (Some(read_user), None) => (read_user, passwords.clone()),
            (None, field) => {
                if let Some(field) =
                    field.filter(|field| !field.is_string() || field.string() != Some(""))
                {
                    field.error("has no effect without `read_user`");
                }
                (user.clone(), passwords.clone())
            }
        };
        Self {
            user,
            passwords,
            read_user,
            read_passwords,
        }
    }
}

fn read_group(section: &Section<'_>, groups: &[GroupConfig]) -> usize {
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let listed = names
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let Some(field) = section.get("group") else {
        if groups.len() > 1 {
            section.missing(
                "group",
                &format!("there are several groups: name one of {listed}"),
            );
        }
        return 0;
    };
    let Some(name) = field.string() else { return 0 };
    let found = names.iter().position(|other| *other == name);
    if found.is_none() {
        let help = super::keys::nearest(name, &names)
            .map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        field.error(format!(
            "there is no group \"{name}\"; the groups are {listed}{help}"
        ));
    }
    found.unwrap_or(0)
}

/// How long a replica is waited for if nothing else is said.
const REPLICA_WAIT: Duration = Duration::from_millis(500);
const HOUR: Duration = Duration::from_secs(3600);

fn read_causal(field: &Field<'_>) -> Option<Causal> {
    let text = field.string()?;
    if let Some(window) = text.strip_prefix("window:") {
        let window = field.parse(|_| value::duration(window))?;
        if window.is_zero() || window > DAY {
            field.error("the window is 1ms to 1d");
            return None;
        }
        return Some(Causal::Window(window));
    }
    if text == "window" {
        field.error("say for how long, such as \"window:500ms\"");
        return None;
    }
    if let Some(bound) = text.strip_prefix("session:") {
        let bound = field.parse(|_| value::duration(bound))?;
        if bound.is_zero() || bound > HOUR {
            field.error("a replica is waited for 1ms to 1h");
            return None;
        }
        return Some(Causal::Session(bound));
    }
    field.choice(&[
        ("off", Causal::Off),
        ("window:500ms", Causal::Off),
        ("session", Causal::Session(REPLICA_WAIT)),
        ("global", Causal::Global),
    ])
}

/// Labels that an account may have: each is in every line of its metrics.
const LABELS_MAX: usize = 16;
/// Bytes of a label's name, and of its text.
const LABEL_MAX: usize = 128;
/// Labels that metrics of accounts have of their own.
const OWN_LABELS: [&str; 2] = ["account", "route"];

fn read_labels(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (name, field) in section.entries() {
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if name.is_empty() || !is_name {
            field.error(
                "a label's name has letters, digits and `_`, and does not start with a digit",
            );
        } else if OWN_LABELS.contains(&name) || name.starts_with("__") {
            field.error("metrics have a label of this name already: take another");
        }
        if let Some(text) = field.string() {
            if name.len() > LABEL_MAX || text.len() > LABEL_MAX || text.contains(char::is_control) {
                field.error(format!(
                    "a label has {LABEL_MAX} bytes at most, and no control characters"
                ));
            } else if labels.len() == LABELS_MAX {
                field.error(format!("an account has {LABELS_MAX} labels at most"));
            }
            labels.insert(name.to_owned(), text.to_owned());
        }
    }
    labels
}

/// The name of an account, given under the key `name`.
pub(super) fn read_account_name(section: &Section<'_>, key: &str) -> String {
    let Some(field) = section.get(key) else {
        section.missing(key, "the name of the account");
        return String::new();
    };
    field.parse(value::account_name).unwrap_or_default()
}

/// One password or a list of them: clear, `enc:v1:…`, or `env:NAME`.
pub(super) fn read_passwords(field: &Field<'_>) -> Vec<Secret> {
    let items = field.one_or_list();
    if items.is_empty() {
        field
            .error("empty: write one password, or a list of them; \"\" for an account without one");
    }
    items.iter().filter_map(read_password).collect()
}

fn read_password(field: &Field<'_>) -> Option<Secret> {
    let text = field.string()?;
    // Also what is not `enc:v1:` as a whole: a damaged value must not become a password.
    if text.starts_with("enc:") {
        return check_password(field, field.unseal(text)?);
    }
    let Some(name) = text.strip_prefix("env:") else {
        if !text.is_empty() {
            field.saw_clear_password();
        }
        return check_password(field, Secret::from(text));
    };
    match field.env(name) {
        Some(value) => check_password(field, Secret::new(value)),
        None => {
            field.error(format!("the environment variable {name} is not set"));
            None
        }
    }
}

/// The protocol ends a clear password with a zero byte, so one inside it could not be sent whole.
fn check_password(field: &Field<'_>, secret: Secret) -> Option<Secret> {
    if secret.expose().contains(&0) {
        field.error("a password cannot contain a NUL byte");
        return None;
    }
    Some(secret)
}
