//! `[[rules]]`: which statements they are about, and what becomes of these. How a statement is held against them is `route`'s.

use std::time::Duration;

use ipnet::IpNet;
use regex::bytes::{Regex, RegexBuilder};

use super::group::GroupConfig;
use super::mirror::{MIRRORS_MAX, MirrorConfig};
use super::server::{DAY, to_u32};
use super::tree::Section;
use super::user::UserConfig;
use super::value;

/// Rules that a file may have: a statement is held against all of them.
const RULES_MAX: usize = 1000;
/// What a compiled expression may take: one of a rule that is read at every reload must not stop it.
const REGEX_MAX: usize = 1024 * 1024;
/// Brackets inside brackets of an expression.
const NEST_MAX: u32 = 100;

/// Which statements a rule is about; an absent part matches everything.
#[derive(Clone, Debug, Default)]
pub struct RuleMatch {
    /// Account.
    pub user: Option<String>,
    /// Digest of the statement.
    pub digest: Option<u64>,
    /// Regular expression on the statement, comments taken out and blanks made one.
    pub regex: Option<Regex>,
    /// Whether it writes.
    pub writes: Option<bool>,
    /// Default schema.
    pub schema: Option<String>,
    /// Network of the client.
    pub network: Option<IpNet>,
}

impl RuleMatch {
    /// Whether it leaves no statement out.
    fn is_everything(&self) -> bool {
        self.user.is_none()
            && self.digest.is_none()
            && self.regex.is_none()
            && self.writes.is_none()
            && self.schema.is_none()
            && self.network.is_none()
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// Refuse the statement.
    Reject,
    /// Have plain reads answered there.
    Route(RuleTarget),
    /// Have it run no longer than this, whatever the account's limit is; zero for as long as it likes.
    Timeout(Duration),
    /// Bound how many come and how many run.
    Limit {
        /// Statements a second; 0 for no limit.
        rate: u32,
        /// Statements at a time; 0 for no limit.
        concurrency: u32,
    },
    /// Run a copy of it in another group.
    Mirror(MirrorConfig),
    /// Write it down.
    Log,
    /// Let it pass: neither later rules nor `[safety]` are looked at.
    Allow,
}

impl RuleAction {
    /// What is copied, and where to.
    #[must_use]
    pub fn mirror(self) -> Option<MirrorConfig> {
        match self {
            Self::Mirror(config) => Some(config),
            _ => None,
        }
    }

    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Route(_) => "route",
            Self::Timeout(_) => "timeout",
            Self::Limit { .. } => "limit",
            Self::Mirror(_) => "mirror",
            Self::Log => "log",
            Self::Allow => "allow",
        }
    }
}

/// Where a rule has reads answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTarget {
    /// By the primary.
    Primary,
    /// By a replica, also where the account reads from the primary.
    Replica,
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
    /// The group that copies go to.
    pub copies_to: String,
}

impl RuleConfig {
    pub(super) fn read_all(
        root: &Section<'_>,
        groups: &[GroupConfig],
        users: &[UserConfig],
    ) -> Vec<Self> {
        let sections = root.sections("rules");
        if sections.len() > RULES_MAX {
            root.error(format!(
                "{} rules: a statement is held against each of them, so {RULES_MAX} are the most",
                sections.len()
            ));
        }
        let mut rules: Vec<Self> = Vec::new();
        for section in sections.iter().take(RULES_MAX) {
            let rule = Self::read(section, groups, users);
            if !rule.name.is_empty() && rules.iter().any(|other| other.name == rule.name) {
                section.error(format!("rule \"{}\" is defined twice", rule.name));
            }
            let mirrors = |rule: &Self| matches!(rule.action, RuleAction::Mirror(_));
            if mirrors(&rule) && rules.iter().filter(|rule| mirrors(rule)).count() >= MIRRORS_MAX {
                section.error(format!(
                    "more than {MIRRORS_MAX} rules with `mirror`: each has threads and connections of its own"
                ));
            }
            rules.push(rule);
        }
        rules
    }

    fn read(section: &Section<'_>, groups: &[GroupConfig], users: &[UserConfig]) -> Self {
        if section.get("name").is_none() {
            section.missing("name", "a name, which refused clients are told");
        }
        let part = section.section("match");
        let matches = RuleMatch {
            user: text(&part, "user").filter(|user| user != "*"),
            digest: given(&part, "digest").and_then(|field| field.parse(digest)),
            regex: given(&part, "regex").and_then(|field| field.parse(regex)),
            writes: part.choice(
                "kind",
                &[("", None), ("read", Some(false)), ("write", Some(true))],
                None,
            ),
            schema: text(&part, "schema"),
            network: given(&part, "network").and_then(|field| field.parse(value::network)),
        };
        let user = matches.user.as_deref();
        let action = Self::read_action(section, |section| {
            MirrorConfig::read(section, user, groups, users)
        });
        let is_harmless = matches!(
            action,
            RuleAction::Log | RuleAction::Allow | RuleAction::Mirror(_)
        );
        if matches.is_everything() && !is_harmless {
            // An empty one is as none, which is hardly meant where nothing else is said.
            for name in ["digest", "regex"] {
                if let Some(field) = part.get(name).filter(|field| field.string() == Some("")) {
                    field.error(
                        "empty, and the rule has no other condition: it would be about every statement; \
                         leave `match` out if that is meant",
                    );
                }
            }
        }
        Self {
            name: text(section, "name").unwrap_or_default(),
            copies_to: action
                .mirror()
                .and_then(|_| text(section, "to"))
                .unwrap_or_default(),
            matches,
            action,
            message: text(section, "message").unwrap_or_default(),
        }
    }

    fn read_action(
        section: &Section<'_>,
        mirror: impl FnOnce(&Section<'_>) -> Option<MirrorConfig>,
    ) -> RuleAction {
        let words = [
            "reject", "route", "timeout", "limit", "mirror", "log", "allow",
        ];
        let Some(field) = section.get("action") else {
            section.missing("action", &format!("one of {}", words.join(", ")));
            return RuleAction::Allow;
        };
        let Some(word) = field.choice(&words.map(|word| (word, word))) else {
            return RuleAction::Allow;
        };
        let (action, used): (_, &[&str]) = match word {
            "reject" => (RuleAction::Reject, &[]),
            "route" => (RuleAction::Route(read_target(section)), &["to"]),
            "timeout" => (RuleAction::Timeout(read_time(section)), &["timeout"]),
            "limit" => (read_limit(section), &["rate", "concurrency"]),
            "mirror" => (
                mirror(section).map_or(RuleAction::Log, RuleAction::Mirror),
                &["to", "timeout", "concurrency", "sample", "writes"],
            ),
            "log" => (RuleAction::Log, &[]),
            _ => (RuleAction::Allow, &[]),
        };
        for name in ["to", "timeout", "rate", "concurrency", "sample", "writes"] {
            if !used.contains(&name)
                && let Some(field) = section.get(name)
                && !is_as_if_left_out(&field, name)
            {
                field.error(format!("has no effect with `{word}`"));
            }
        }
        action
    }
}

/// Whether the value is the one that a rule has without the key.
fn is_as_if_left_out(field: &super::field::Field<'_>, name: &str) -> bool {
    match name {
        "to" => field.string() == Some(""),
        "timeout" => field.duration(Duration::ZERO..=DAY) == Some(Duration::ZERO),
        "sample" => field.int(0..=i64::MAX) == Some(100),
        "writes" => field.bool() == Some(false),
        _ => field.int(0..=i64::MAX) == Some(0),
    }
}

fn read_target(section: &Section<'_>) -> RuleTarget {
    let targets = [
        ("", None),
        ("primary", Some(RuleTarget::Primary)),
        ("replica", Some(RuleTarget::Replica)),
    ];
    let target = section.choice("to", &targets, None);
    target.unwrap_or_else(|| {
        section.missing("to", "`primary` or `replica`");
        RuleTarget::Primary
    })
}

fn read_time(section: &Section<'_>) -> Duration {
    if section.get("timeout").is_none() {
        section.missing(
            "timeout",
            "how long the statement may run, such as \"2s\"; \"0s\" for as long as it likes",
        );
    }
    section.duration("timeout", Duration::ZERO..=DAY, Duration::ZERO)
}

fn read_limit(section: &Section<'_>) -> RuleAction {
    let rate = to_u32(section.int("rate", 0..=100_000_000, 0));
    let concurrency = to_u32(section.int("concurrency", 0..=1_000_000, 0));
    if rate == 0 && concurrency == 0 {
        section.missing(
            "rate",
            "statements a second, or `concurrency`, statements at a time",
        );
    }
    RuleAction::Limit { rate, concurrency }
}

/// A key whose value is not the empty text.
fn given<'a>(section: &Section<'a>, name: &str) -> Option<super::field::Field<'a>> {
    section.get(name).filter(|field| field.string() != Some(""))
}

/// A text that is not empty.
fn text(section: &Section<'_>, name: &str) -> Option<String> {
    given(section, name)
        .and_then(|field| field.string())
        .map(str::to_owned)
}

/// As `SHOW DIGESTS` has it: up to 16 hexadecimal digits, with or without `0x`.
fn digest(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = (1..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
        .ok_or_else(|| {
            format!("`{text}` is not a digest: write it as SHOW DIGESTS does, up to 16 hexadecimal digits")
        })
}

/// One that is matched in a time that grows with the statement's length, whatever it is.
fn regex(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(REGEX_MAX)
        .dfa_size_limit(REGEX_MAX)
        .nest_limit(NEST_MAX)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            // The last line says what is wrong; those before draw the pattern.
            let last = text.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            format!("`{pattern}` cannot be used as a regular expression: {why}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B261: what is no digest is not taken for everything.
    #[test]
    fn digests() {
        for (text, wanted) in [
            ("0x1F2A", Some(0x1f2a)),
            ("1f2a", Some(0x1f2a)),
            ("ffffffffffffffff", Some(u64::MAX)),
            ("0x 1F2A", None),
            ("0xZZ", None),
            ("12345678901234567", None),
            ("0x", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1_0", None),
            ("\u{ff11}", None),
        ] {
            assert_eq!(digest(text).ok(), wanted, "{text}");
        }
    }

    /// B264, B265: expressions that others run for ever, or crash on, are refused or harmless.
    #[test]
    fn expressions() {
        for (pattern, is_right) in [
            ("(?i)^delete from audit", true),
            ("(a+)+$", true),
            ("((a*)*)*b", true),
            (r"(a)\9", false),
            (r"(a)\1", false),
            ("(?=a)", false),
            ("(", false),
            ("[", false),
            ("a{1000}{1000}{1000}", false),
            (&"(".repeat(500), false),
            (&format!("{}a{}", "(".repeat(500), ")".repeat(500)), false),
        ] {
            let got = regex(pattern);
            assert_eq!(got.is_ok(), is_right, "{pattern}: {got:?}");
        }
        let evil = regex("((a*)*)*b").unwrap();
        assert!(!evil.is_match(&vec![b'a'; 100_000]));
    }
}
