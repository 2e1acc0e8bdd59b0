//! `[monitor]` and `[pool]`: checks of servers, and connections to them.

use std::time::Duration;

use super::server::{DAY, to_u32, to_usize};
use super::tree::Section;
use super::user::{self, UserConfig};
use super::{Secret, user::read_passwords, value};

/// `[monitor]`: the account and pace of health, lag and topology checks.
#[derive(Clone, Debug)]
pub struct MonitorConfig {
    /// Account on the servers.
    pub user: String,
    /// Its passwords, tried in order.
    pub passwords: Vec<Secret>,
    /// Whether the section is missing and the first account stands in.
    pub is_first_user: bool,
    /// Time between two checks of a server.
    pub interval: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// Failed checks in a row that take a server out.
    pub fall: u32,
    /// Good checks in a row that bring it back.
    pub rise: u32,
    /// Schema and name of the table by which lag is measured.
    pub heartbeat: Option<(String, String)>,
}

impl MonitorConfig {
    pub(super) fn read(root: &Section<'_>, users: &[UserConfig]) -> Self {
        let section = root.section("monitor");
        let short = Duration::from_millis(10)..=Duration::from_secs(3_600);
        let (user, passwords, is_first_user) = Self::read_account(root, &section, users);
        Self {
            user,
            passwords,
            is_first_user,
            interval: section.duration("interval", short.clone(), Duration::from_secs(1)),
            timeout: section.duration("timeout", short, Duration::from_secs(1)),
            fall: to_u32(section.int("fall", 1..=1000, 3)),
            rise: to_u32(section.int("rise", 1..=1000, 2)),
            heartbeat: section
                .get("heartbeat")
                .filter(|field| field.string() != Some(""))
                .and_then(|field| field.parse(value::table_name)),
        }
    }

    fn read_account(
        root: &Section<'_>,
        section: &Section<'_>,
        users: &[UserConfig],
    ) -> (String, Vec<Secret>, bool) {
        let has_password = section.get("password");
        if section.get("user").is_none() {
            if let Some(password) = has_password {
                password.error("has no effect without `user`");
            }
            let Some(first) = users.first() else {
                return (String::new(), Vec::new(), true);
            };
            root.note(
                "monitor.user",
                &format!(
                    "not given: servers are checked with the account \"{}\"",
                    first.backend.user
                ),
            );
            return (
                first.backend.user.clone(),
                first.backend.passwords.clone(),
                true,
            );
        }
        let passwords = match has_password {
            Some(field) => read_passwords(&field),
            None => {
                section.missing(
                    "password",
                    "the password of the account; \"\" when it has none",
                );
                Vec::new()
            }
        };
        (user::read_account_name(section, "user"), passwords, false)
    }
}

/// `[pool]`: per server, all workers together.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Connections opened before the instance is ready.
    pub min_idle: usize,
    /// Most connections.
    pub max_connections: usize,
    /// New connections a second.
    pub connect_rate: u32,
    /// How long connecting and logging in may take.
    pub connect_timeout: Duration,
    /// How long a statement waits for a connection.
    pub acquire_timeout: Duration,
    /// An idle connection is closed after this.
    pub idle_timeout: Duration,
    /// A connection is replaced after this.
    pub max_lifetime: Duration,
    /// Prepared statements kept per connection.
    pub statements: usize,
    /// When new connections to a failing server are stopped.
    pub breaker: BreakerConfig,
}

/// When new connections to a failing server are stopped.
#[derive(Clone, Debug)]
pub struct BreakerConfig {
    /// Share of failures, above 0, at most 1.
    pub failure_ratio: f64,
    /// Time over which failures are counted.
    pub window: Duration,
    /// How long new connections are stopped.
    pub open_for: Duration,
}

impl PoolConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let up_to_a_day = Duration::from_millis(1)..=DAY;
        let breaker = section.section("breaker");
        let pool = Self {
            min_idle: to_usize(section.int("min_idle", 0..=100_000, 4)),
            max_connections: to_usize(section.int("max_connections", 1..=100_000, 200)),
            connect_rate: to_u32(section.int("connect_rate", 1..=100_000, 50)),
            connect_timeout: section.duration(
                "connect_timeout",
                up_to_a_day.clone(),
                Duration::from_secs(2),
            ),
            acquire_timeout: section.duration(
                "acquire_timeout",
                up_to_a_day.clone(),
                Duration::from_secs(5),
            ),
            idle_timeout: section.duration(
                "idle_timeout",
                Duration::from_secs(1)..=DAY,
                Duration::from_secs(300),
            ),
            max_lifetime: section.duration(
                "max_lifetime",
                Duration::from_secs(1)..=30 * DAY,
                Duration::from_secs(3_600),
            ),
            statements: to_usize(section.int("statements", 1..=1_000_000, 256)),
            breaker: BreakerConfig {
                failure_ratio: breaker
                    .get("failure_ratio")
                    .and_then(|field| field.float(0.01..=1.0))
                    .unwrap_or(0.5),
                window: breaker.duration("window", up_to_a_day.clone(), Duration::from_secs(10)),
                open_for: breaker.duration("open_for", up_to_a_day, Duration::from_secs(5)),
            },
        };
        if pool.min_idle > pool.max_connections {
            let text = format!(
                "`min_idle` ({}) is more than `max_connections` ({})",
                pool.min_idle, pool.max_connections
            );
            section
                .get("min_idle")
                .or_else(|| section.get("max_connections"))
                .map_or_else(
                    || section.error(text.clone()),
                    |field| field.error(text.clone()),
                );
        }
        pool
    }
}
