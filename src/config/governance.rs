//! `[safety]` and `[log]`: what is refused, and what is written down. Of `[log]` only the level and the threshold of slow statements
//! are acted on by this version; the rest is read and checked.

use std::path::PathBuf;
use std::time::Duration;

use super::server::DAY;
use super::tree::Section;

/// `[safety]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SafetyConfig {
    /// Refuse UPDATE and DELETE without WHERE.
    pub require_where: bool,
    /// Refuse SLEEP and BENCHMARK.
    pub refuse_sleep: bool,
}

impl SafetyConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        Self {
            require_where: section.bool("require_where", false),
            refuse_sleep: section.bool("refuse_sleep", false),
        }
    }
}

/// How much goes to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What must be looked at.
    Error,
    /// What is probably not as meant.
    Warn,
    /// What happens rarely.
    Info,
    /// What happens per client.
    Debug,
    /// What happens per statement.
    Trace,
}

impl From<LogLevel> for log::LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::Off,
            LogLevel::Error => Self::Error,
            LogLevel::Warn => Self::Warn,
            LogLevel::Info => Self::Info,
            LogLevel::Debug => Self::Debug,
            LogLevel::Trace => Self::Trace,
        }
    }
}

/// `[log]`.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// How much goes to the log.
    pub level: LogLevel,
    /// Slow log.
    pub slow_file: Option<PathBuf>,
    /// Statements that take at least this long go there.
    pub slow_threshold: Duration,
    /// Audit log.
    pub audit_file: Option<PathBuf>,
    /// Whether only writes go there.
    pub audit_writes_only: bool,
    /// Whether a full queue drops records; otherwise statements wait.
    pub audit_drops: bool,
}

impl LogConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let levels = [
            ("off", LogLevel::Off),
            ("error", LogLevel::Error),
            ("warn", LogLevel::Warn),
            ("info", LogLevel::Info),
            ("debug", LogLevel::Debug),
            ("trace", LogLevel::Trace),
        ];
        let (slow, audit) = (section.section("slow"), section.section("audit"));
        Self {
            level: section.choice("level", &levels, LogLevel::Info),
            slow_file: slow.file("file"),
            slow_threshold: slow.duration(
                "threshold",
                Duration::ZERO..=DAY,
                Duration::from_secs(1),
            ),
            audit_file: audit.file("file"),
            audit_writes_only: audit.choice(
                "statements",
                &[("all", false), ("write", true)],
                false,
            ),
            audit_drops: audit.choice("when_full", &[("wait", false), ("drop", true)], false),
        }
    }
}
