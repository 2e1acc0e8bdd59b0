//! The configuration: text in, values out.
//!
//! [`load`] turns the text of `atlas.toml` into a [`Config`] whose every value has been checked, or into the list of
//! everything that is wrong with it. Reading the file itself, and doing what it says, lives elsewhere; the environment
//! comes in as a function.
//!
//! Each section has a file that holds its type, its defaults and its limits side by side. `keys` is the list of all keys.

mod field;
mod governance;
mod group;
mod keys;
mod pool;
mod problem;
mod server;
mod sharding;
mod tree;
mod user;
mod value;

#[cfg(test)]
mod tests;

pub use governance::{LogConfig, LogLevel, RuleAction, RuleConfig, RuleMatch, SafetyConfig};
pub use group::{
    BackendTls, BackendTlsMode, GroupConfig, HostAddress, HostConfig, NoReplica, Topology,
};
pub use keys::{Acted, KEYS, Key};
pub use pool::{BreakerConfig, MonitorConfig, PoolConfig};
pub use problem::{InputFile, Problem, Severity};
pub use server::{
    AdminConfig, AdminUser, AuthPlugin, ListenAddress, Networks, PinWorkers, ServerConfig,
    ServerTls, ServerTlsMode,
};
pub use sharding::{Bound, Broadcast, Hash, KeyType, RangeConfig, ShardingConfig, TableConfig};
pub use user::{BackendAccount, Causal, Limits, ReadFrom, Sharing, UserConfig};

/// Passwords are read here and used in `auth`, where they are at home.
pub use crate::auth::Secret;

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
    pub input_files: Vec<InputFile>,
    /// Warnings and notes for the operator.
    pub notes: Vec<Problem>,
}

/// Reads the text of a configuration file.
///
/// `file` is its name for messages, and what relative paths in it start from. `env` looks up environment variables for
/// `env:NAME` values.
///
/// # Errors
/// Everything that is wrong with the text, with warnings and notes between, in the order of the file.
pub fn load(
    text: &str,
    file: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Problem>> {
    let ctx = Context::new(text, file, env);
    let (table, mistakes) = DeTable::parse_recoverable(text);
    if !mistakes.is_empty() {
        // What stands around a mistake may have been read wrongly: nothing else is said before it is right.
        for mistake in mistakes {
            let offset = mistake.span().map_or(text.len(), |span| span.start);
            ctx.report(Severity::Error, offset, "", mistake.message());
        }
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

fn read(ctx: &Context<'_>, table: &DeTable<'_>) -> Config {
    let root = Section::root(ctx, table);
    let groups = GroupConfig::read_all(&root);
    let users = UserConfig::read_all(&root, &groups);
    let config = Config {
        server: ServerConfig::read(&root.section("server")),
        admin: AdminConfig::read(&root.section("admin")),
        monitor: MonitorConfig::read(&root, &users),
        pool: PoolConfig::read(&root.section("pool")),
        tables: TableConfig::read_all(&root, &groups),
        sharding: ShardingConfig::read(&root.section("sharding")),
        rules: RuleConfig::read_all(&root),
        safety: SafetyConfig::read(&root.section("safety")),
        log: LogConfig::read(&root.section("log")),
        groups,
        users,
        has_clear_passwords: false,
        input_files: Vec::new(),
        notes: Vec::new(),
    };
    Config {
        has_clear_passwords: ctx.has_clear_passwords(),
        input_files: ctx.take_input_files(),
        ..config
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
    let text = format!("{text}: chmod 640, or use env:NAME values");
    Some(Problem {
        file: file.to_owned(),
        line: 1,
        key: String::new(),
        severity: Severity::Warning,
        text,
    })
}
