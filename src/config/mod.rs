//! The configuration: text in, values out.
//!
//! [`load`] turns the text of `atlas.toml` into a [`Config`] whose every value has been checked, or into the list of
//! everything that is wrong with it. Reading the file itself, and doing what it says, lives elsewhere; the environment
//! comes in as a function.
//!
//! Each section has a file that holds its type, its defaults and its limits side by side. `keys` is the list of all keys.

mod date;
mod diff;
mod field;
mod governance;
mod group;
mod keys;
mod mirror;
mod pool;
mod problem;
mod rule;
mod server;
mod sharding;
mod tree;
mod user;
mod value;

#[cfg(test)]
mod tests;

pub use date::{day, day_of, print_day};
pub use diff::{Difference, diff};
pub use governance::{AuditStatements, AuditText, LogConfig, LogLevel, SafetyConfig, WrittenTo};
pub use group::{
    BackendTls, BackendTlsMode, GroupConfig, HostAddress, HostConfig, NoReplica, Topology,
};
pub use keys::{Acted, KEYS, Key};
pub use mirror::MirrorConfig;
pub use pool::{BreakerConfig, MonitorConfig, PoolConfig};
pub(crate) use problem::on_one_line;
pub use problem::{NamedFile, Problem, Severity};
pub use rule::{RuleAction, RuleConfig, RuleMatch, RuleTarget};
pub use server::{
    AdminConfig, AdminUser, AuthPlugin, ListenAddress, Networks, PinWorkers, ServerConfig,
    ServerTls, ServerTlsMode, WORKERS_MAX,
};
pub use sharding::{Bound, Broadcast, Hash, KeyType, RangeConfig, ShardingConfig, TableConfig};
pub(crate) use value::{host_address, listen_address, network, table_name};

pub use user::{BackendAccount, Causal, Limits, ReadFrom, Sharing, UserConfig};

/// Passwords are read here and used in `auth`, where they are at home.
pub use crate::auth::{SealKey, Secret};

use std::path::{Path, PathBuf};

use toml::de::DeTable;
use tree::{Context, Section};

/// Everything that `atlas.toml` says, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[server]`
    pub server: ServerConfig,
    /// `[admin]`
    pub admin: AdminConfig,
    /// `[monitor]`
    pub monitor: MonitorConfig,
    /// `[pool]`
    pub pool: PoolConfig,
    /// `[[groups]]`; never empty.
    pub groups: Vec<GroupConfig>,
    /// `[[users]]`; never empty.
    pub users: Vec<UserConfig>,
    /// `[[tables]]`
    pub tables: Vec<TableConfig>,
    /// `[sharding]`
    pub sharding: ShardingConfig,
    /// `[[rules]]`
    pub rules: Vec<RuleConfig>,
    /// `[safety]`
    pub safety: SafetyConfig,
    /// `[log]`
    pub log: LogConfig,
    /// Whether a password stands in the file in clear.
    pub has_clear_passwords: bool,
    /// Files that must be readable when the configuration is put to use.
    pub input_files: Vec<NamedFile>,
    /// Files that are written.
    pub output_files: Vec<NamedFile>,
    /// Warnings and notes for the operator.
    pub notes: Vec<Problem>,
}

/// What a configuration takes from outside of its text.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// An environment variable, for an `env:NAME` value.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The key in the file of `server.key_file`, asked for when the first `enc:v1:` value is met. Nothing stands for a use that
    /// needs no password: such values then read as empty ones. The error is told as it is.
    pub key: &'a dyn Fn(&Path) -> Result<Option<SealKey>, String>,
}

impl std::fmt::Debug for Outside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside(..)")
    }
}

/// As [`load_with`], for texts without `enc:v1:` values.
///
/// # Errors
/// As there.
pub fn load(
    text: &str,
    file: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Problem>> {
    let key = |_: &Path| Err("there is no key".to_owned());
    load_with(text, file, Outside { env, key: &key })
}

/// Reads the text of a configuration file. `file` is its name for messages, and what relative paths in it start from.
///
/// # Errors
/// Everything that is wrong with the text, with warnings and notes between, in the order of the file.
pub fn load_with(text: &str, file: &str, outside: Outside<'_>) -> Result<Config, Vec<Problem>> {
    let ctx = Context::new(text, file, outside);
    let (table, is_whole) = parse(&ctx, text);
    if !is_whole {
        return Err(ctx.into_problems());
    }
    let config = read(&ctx, table.get_ref());
    let problems = ctx.into_problems();
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    Ok(Config {
        notes: problems,
        ..config
    })
}

/// Where the key for `enc:v1:` values is or would be, whatever else is wrong with the configuration.
///
/// # Errors
/// The text is not TOML, or the key that tells it is wrong.
pub fn key_file(text: &str, file: &str) -> Result<PathBuf, Vec<Problem>> {
    let outside = Outside {
        env: &|_| None,
        key: &|_| Ok(None),
    };
    let ctx = Context::new(text, file, outside);
    let (table, is_whole) = parse(&ctx, text);
    if !is_whole {
        return Err(ctx.into_problems());
    }
    let path = ServerConfig::read_key_file(&Section::root(&ctx, table.get_ref()).section("server"));
    let mut problems = ctx.into_problems();
    problems.retain(|p| p.is_error() && matches!(p.key.as_str(), "server" | "server.key_file"));
    if problems.is_empty() {
        Ok(path)
    } else {
        Err(problems)
    }
}

/// The table that a text is, and whether it is TOML to its end; what is not is reported.
fn parse<'t>(ctx: &Context<'_>, text: &'t str) -> (toml::Spanned<DeTable<'t>>, bool) {
    let (table, mistakes) = DeTable::parse_recoverable(text);
    // What stands around a mistake may have been read wrongly: nothing else is said before it is right.
    for mistake in &mistakes {
        let offset = mistake.span().map_or(text.len(), |span| span.start);
        ctx.report(Severity::Error, offset, "", mistake.message());
    }
    (table, mistakes.is_empty())
}

fn read(ctx: &Context<'_>, table: &DeTable<'_>) -> Config {
    let root = Section::root(ctx, table);
    // First: it tells where the key for the passwords is.
    let server = ServerConfig::read(&root.section("server"));
    ctx.set_key_file(&server.key_file);
    let groups = GroupConfig::read_all(&root);
    let users = UserConfig::read_all(&root, &groups);
    check_schemas(&root, &groups, &users);
    let config = Config {
        server,
        admin: AdminConfig::read(&root.section("admin")),
        monitor: MonitorConfig::read(&root, &users),
        pool: PoolConfig::read(&root.section("pool")),
        tables: TableConfig::read_all(&root, &groups),
        sharding: ShardingConfig::read(&root.section("sharding")),
        rules: RuleConfig::read_all(&root, &groups, &users),
        safety: SafetyConfig::read(&root.section("safety")),
        log: LogConfig::read(&root.section("log")),
        groups,
        users,
        has_clear_passwords: false,
        input_files: Vec::new(),
        output_files: Vec::new(),
        notes: Vec::new(),
    };
    sharding::check_listed(&root, &config.tables, &config.rules);
    Config {
        has_clear_passwords: ctx.has_clear_passwords(),
        input_files: ctx.take_input_files(),
        output_files: ctx.take_output_files(),
        ..config
    }
}

/// Statements about unsharded tables are passed on as they are, so their schemas have one name only.
fn check_schemas(root: &Section<'_>, groups: &[GroupConfig], users: &[UserConfig]) {
    if groups.iter().all(|group| group.schemas.is_empty()) {
        return;
    }
    for (index, (section, group)) in root.sections("groups").iter().zip(groups).enumerate() {
        let user = users.iter().find(|user| user.group == index);
        if let Some(user) = user.filter(|_| !group.schemas.is_empty()) {
            section.error(format!(
                "`schemas` is for groups that hold shards only, and account \"{}\" has its unsharded tables here, whose statements are not rewritten",
                user.name
            ));
        }
    }
}

/// What to say about the permission bits (`st_mode`) of a file that holds passwords in clear.
pub fn check_mode(config: &Config, file: &str, mode: u32) -> Option<Problem> {
    let text = match mode & 0o007 {
        _ if !config.has_clear_passwords => return None,
        0 => return None,
        bits if bits & 0o002 != 0 => "everyone on this machine can change this file",
        _ => "everyone on this machine can read this file, and it holds passwords in clear",
    };
    let text = format!("{text}: chmod 640, or use env:NAME or enc:v1: values");
    Some(Problem {
        file: file.to_owned(),
        line: 1,
        key: String::new(),
        severity: Severity::Warning,
        text,
    })
}
