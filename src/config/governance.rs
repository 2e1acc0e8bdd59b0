//! `[[rules]]`, `[safety]` and `[log]`: what is refused, and what is written down. Only the log level is acted on by this
//! version; the rest is read and checked.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::server::DAY;
use super::tree::Section;
use super::value;

/// Which statements a rule is about; an absent part matches everything.
#[derive(Clone, Debug, Default)]
pub struct RuleMatch {
    /// Account.
    pub user: Option<String>,
    /// Digest of the statement.
    pub digest: Option<String>,
    /// Regular expression on the statement.
    pub regex: Option<String>,
    /// Whether it writes.
    pub writes: Option<bool>,
    /// Default schema.
    pub schema: Option<String>,
    /// Network of the client.
    pub network: Option<IpNet>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// Refuse the statement.
    Reject,
    /// Send it elsewhere.
    Route,
    /// Bound its time.
    Timeout,
    /// Bound how many run.
    Limit,
    /// Send it to a second place as well.
    Mirror,
    /// Write it down.
    Log,
    /// Let it pass, without looking at later rules.
    Allow,
}

/// A rule; the first that matches wins.
#[derive(Clone, Debug)]
pub struct RuleConfig {
    /// Its name.
    pub name: String,
    /// Which statements it is about.
    pub matches: RuleMatch,
    /// What it does.
    pub action: RuleAction,
    /// What a refused client is told.
    pub message: String,
}

impl RuleConfig {
    pub(super) fn read_all(root: &Section<'_>) -> Vec<Self> {
        let mut rules: Vec<Self> = Vec::new();
        for section in root.sections("rules") {
            let rule = Self::read(&section);
            if !rule.name.is_empty() && rules.iter().any(|other| other.name == rule.name) {
                section.error(format!("rule \"{}\" is defined twice", rule.name));
            }
            rules.push(rule);
        }
        rules
    }

    fn read(section: &Section<'_>) -> Self {
        if section.get("name").is_none() {
            section.missing("name", "a name, which refused clients are told");
        }
        let actions = [
            ("reject", RuleAction::Reject),
            ("route", RuleAction::Route),
            ("timeout", RuleAction::Timeout),
            ("limit", RuleAction::Limit),
            ("mirror", RuleAction::Mirror),
            ("log", RuleAction::Log),
            ("allow", RuleAction::Allow),
        ];
        if section.get("action").is_none() {
            section.missing(
                "action",
                "one of reject, route, timeout, limit, mirror, log, allow",
            );
        }
        let matches = section.section("match");
        Self {
            name: text(section, "name").unwrap_or_default(),
            matches: RuleMatch {
                user: text(&matches, "user").filter(|user| user != "*"),
                digest: text(&matches, "digest"),
                regex: text(&matches, "regex"),
                writes: matches.choice(
                    "kind",
                    &[("", None), ("read", Some(false)), ("write", Some(true))],
                    None,
                ),
                schema: text(&matches, "schema"),
                network: matches
                    .get("network")
                    .filter(|field| field.string() != Some(""))
                    .and_then(|field| field.parse(value::network)),
            },
            action: section.choice("action", &actions, RuleAction::Allow),
            message: text(section, "message").unwrap_or_default(),
        }
    }
}

/// A text that is not empty.
fn text(section: &Section<'_>, name: &str) -> Option<String> {
    section
        .get(name)
        .and_then(|field| field.string())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// `[safety]`.
#[derive(Clone, Copy, Debug, Default)]
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
