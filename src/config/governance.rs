//! `[safety]` and `[log]`: what is refused, and what is written down.

use std::path::PathBuf;
use std::time::Duration;

use super::server::{DAY, to_usize};
use super::tree::Section;
use super::value;

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

/// Which statements go to the audit log. Log-ins always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStatements {
    /// All.
    All,
    /// Those that may change something, and what begins and ends transactions.
    Writes,
    /// Those that were answered by an error.
    Errors,
    /// None: only log-ins do.
    None,
}

/// How much of a statement's text goes to the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditText {
    /// All of it.
    Full,
    /// Its normal form, without literals.
    Masked,
    /// Only the number of its kind.
    None,
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
    /// What goes there.
    pub audit_statements: AuditStatements,
    /// How much of it.
    pub audit_text: AuditText,
    /// Whether a full queue drops records; otherwise statements wait.
    pub audit_drops: bool,
    /// Bytes of a statement's text that go to either.
    pub text_max: usize,
}

/// Where a statement is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenTo {
    /// In the slow log.
    pub slow: bool,
    /// In the audit log.
    pub audit: bool,
}

impl LogConfig {
    /// Whether texts of statements may be written down at all.
    #[must_use]
    pub fn keeps_statements(&self) -> bool {
        self.slow_file.is_some()
            || self.audit_file.is_some() && self.audit_statements != AuditStatements::None
    }

    /// Whether statements wait while the audit log cannot take more.
    #[must_use]
    pub fn audit_waits(&self) -> bool {
        self.audit_file.is_some() && !self.audit_drops
    }

    /// Where a statement is to be written down that took so long.
    #[must_use]
    pub fn takes(&self, took: Duration, may_write: bool, has_failed: bool) -> WrittenTo {
        WrittenTo {
            slow: self.slow_file.is_some() && took >= self.slow_threshold,
            audit: self.audit_file.is_some()
                && match self.audit_statements {
                    AuditStatements::All => true,
                    AuditStatements::Writes => may_write,
                    AuditStatements::Errors => has_failed,
                    AuditStatements::None => false,
                },
        }
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        let levels = [
            ("off", LogLevel::Off),
            ("error", LogLevel::Error),
            ("warn", LogLevel::Warn),
            ("info", LogLevel::Info),
            ("debug", LogLevel::Debug),
            ("trace", LogLevel::Trace),
        ];
        let statements = [
            ("all", AuditStatements::All),
            ("write", AuditStatements::Writes),
            ("errors", AuditStatements::Errors),
            ("none", AuditStatements::None),
        ];
        let texts = [
            ("full", AuditText::Full),
            ("masked", AuditText::Masked),
            ("none", AuditText::None),
        ];
        let (slow, audit) = (section.section("slow"), section.section("audit"));
        let config = Self {
            level: section.choice("level", &levels, LogLevel::Info),
            slow_file: slow.output_file("file"),
            slow_threshold: slow.duration(
                "threshold",
                Duration::ZERO..=DAY,
                Duration::from_secs(1),
            ),
            audit_file: audit.output_file("file"),
            audit_statements: audit.choice("statements", &statements, AuditStatements::All),
            audit_text: audit.choice("text", &texts, AuditText::Full),
            audit_drops: audit.choice("when_full", &[("wait", false), ("drop", true)], false),
            text_max: section.get("text_max").map_or(TEXT, |field| {
                let bytes = field.parse(|text| {
                    value::size(text).and_then(|bytes| {
                        match (TEXT_MIN..=TEXT_MAX).contains(&bytes) {
                            true => Ok(bytes),
                            false => Err(format!("`{text}` is not between 128B and 1MiB")),
                        }
                    })
                });
                bytes.map_or(TEXT, |bytes| to_usize(bytes.cast_signed()))
            }),
        };
        if config.slow_file.is_some() && config.slow_file == config.audit_file {
            section.error("the slow log and the audit log are the same file");
        }
        config
    }
}

const TEXT: usize = 16 * 1024;
const TEXT_MIN: u64 = 128;
const TEXT_MAX: u64 = 1024 * 1024;
