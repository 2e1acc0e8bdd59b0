//! `[[rules]]` and `[safety]`: which of them a statement meets. Rules are compiled by `config`; what a verdict means for the
//! statement is the session's.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limit::Limiter;
use super::{Reason, Role, Route, View, decide};
use crate::config::{RuleAction, RuleConfig, RuleTarget, SafetyConfig};
use crate::mirror::Mirror;
use crate::sql::{self, Dialect, Hint, Kind, Statement, Traits};

/// Bytes of a statement that expressions look at.
const TEXT_MAX: usize = 1024 * 1024;

/// All rules, in order.
#[derive(Debug)]
pub struct Rules {
    list: Vec<Rule>,
    safety: SafetyConfig,
    has_regex: bool,
    has_digest: bool,
}

/// A rule and what is counted of it.
#[derive(Debug)]
pub struct Rule {
    /// What it says.
    pub config: RuleConfig,
    /// Its name, for who keeps it for as long as a statement runs.
    pub name: Arc<str>,
    hits: Arc<AtomicU64>,
    /// For a rule that limits.
    pub limiter: Arc<Limiter>,
    /// For a rule that copies.
    pub mirror: Option<Arc<Mirror>>,
}

impl Rule {
    /// How many statements it was the first for.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// One more.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }
}

/// The statement, and who sends it.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The account.
    pub user: &'a [u8],
    /// The default schema.
    pub schema: Option<&'a [u8]>,
    /// Where the client is, if that is an address.
    pub address: Option<IpAddr>,
    /// The text, or its beginning.
    pub text: &'a [u8],
    /// The text is all of it.
    pub is_whole: bool,
    /// How it is read.
    pub dialect: &'a Dialect,
}

/// What becomes of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'r> {
    /// Nothing is said about it.
    None,
    /// This rule was the first that matched.
    Rule(&'r Rule),
    /// `[safety]` refuses it: the key, and what is missing.
    Unsafe(&'static str, &'static str),
}

impl Verdict<'_> {
    fn refuses(&self) -> bool {
        match self {
            Self::None => false,
            Self::Rule(rule) => rule.config.action == RuleAction::Reject,
            Self::Unsafe(..) => true,
        }
    }

    /// What the client of a statement that is refused is told.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Unsafe(key, why) => Some(format!("{why} (safety.{key})")),
            Self::Rule(rule) if self.refuses() => {
                let said = match rule.config.message.as_str() {
                    "" => "the statement is refused",
                    message => message,
                };
                Some(format!("{said} (rule \"{}\")", rule.config.name))
            }
            Self::Rule(_) | Self::None => None,
        }
    }

    /// Where a rule has plain reads answered.
    #[must_use]
    pub fn target(&self) -> Option<RuleTarget> {
        match self {
            Self::Rule(rule) => match rule.config.action {
                RuleAction::Route(target) => Some(target),
                _ => None,
            },
            Self::None | Self::Unsafe(..) => None,
        }
    }

    /// A rule lets it pass; it is then one of those that may be asked of several shards.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::Rule(rule) if rule.config.action == RuleAction::Allow)
    }

    /// Name and action of the rule.
    #[must_use]
    pub fn rule(&self) -> Option<String> {
        match self {
            Self::Rule(rule) => Some(format!(
                "{}: {}",
                rule.config.name,
                rule.config.action.as_str()
            )),
            Self::None | Self::Unsafe(..) => None,
        }
    }
}

/// Decides as [`decide`], for a statement that a rule has answered there.
#[must_use]
pub fn decide_for(statement: &Statement<'_>, view: &View, target: Option<RuleTarget>) -> Route {
    redirect(decide(&hinted(*statement, target), view), target)
}

/// A rule that has reads answered by a replica is as the hint for one; the statement's own hint counts for more.
#[must_use]
pub fn hinted(statement: Statement<'_>, target: Option<RuleTarget>) -> Statement<'_> {
    let hint = match target {
        Some(RuleTarget::Replica) => statement.hint.or(Some(Hint::Replica)),
        _ => statement.hint,
    };
    Statement { hint, ..statement }
}

/// The route, where a rule has reads answered by the primary.
#[must_use]
pub fn redirect(route: Route, target: Option<RuleTarget>) -> Route {
    let is_read = route.role == Role::Replica && route.reason != Reason::Follows;
    if is_read && target == Some(RuleTarget::Primary) {
        return Route {
            role: Role::Primary,
            reason: Reason::Rule,
        };
    }
    route
}

/// Room for what rules look at, kept from one statement to the next.
#[derive(Debug, Default)]
pub struct Room {
    bare: Vec<u8>,
    form: Vec<u8>,
}

impl Rules {
    /// The rules of a configuration. What was counted goes on for those that `before` had by the same name. Nothing when nothing is
    /// to be looked at.
    #[must_use]
    pub fn new(rules: &[RuleConfig], safety: SafetyConfig, before: Option<&Self>) -> Option<Self> {
        let list: Vec<Rule> = rules
            .iter()
            .map(|rule| {
                let known = before.and_then(|before| before.named(&rule.name));
                let before = known.and_then(|known| known.mirror.as_ref());
                Rule {
                    mirror: Mirror::of(rule, before),
                    config: rule.clone(),
                    name: rule.name.as_str().into(),
                    hits: known.map_or_else(Arc::default, |known| known.hits.clone()),
                    limiter: known.map_or_else(Arc::default, |known| known.limiter.clone()),
                }
            })
            .collect();
        if list.is_empty() && safety == SafetyConfig::default() {
            return None;
        }
        Some(Self {
            has_regex: list.iter().any(|rule| rule.config.matches.regex.is_some()),
            has_digest: list.iter().any(|rule| rule.config.matches.digest.is_some()),
            list,
            safety,
        })
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.list.iter()
    }

    /// The rule of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Rule> {
        self.list.iter().find(|rule| rule.config.name == name)
    }

    /// What becomes of a text. Of one with several statements each is looked at, and if one is refused all are; so is what a PREPARE
    /// has in it.
    #[must_use]
    pub fn judge(&self, sent: Sent<'_>, statement: &Statement<'_>, room: &mut Room) -> Verdict<'_> {
        if !statement.traits.contains(Traits::MULTI) {
            let outer = self.judge_one(sent, statement.kind, room);
            let inner = sql::prepared_text(sent.text, statement.kind, sent.dialect);
            return match inner {
                Some(text) if !outer.refuses() => {
                    let verdict = self.judge_text(sent, &text, room);
                    if verdict.refuses() { verdict } else { outer }
                }
                _ => outer,
            };
        }
        let mut first = Verdict::None;
        for piece in sql::pieces(sent.text, sent.dialect) {
            let verdict = self.judge_text(sent, piece, room);
            if verdict.refuses() {
                return verdict;
            }
            if matches!(first, Verdict::None) {
                first = verdict;
            }
        }
        first
    }

    fn judge_text(&self, sent: Sent<'_>, text: &[u8], room: &mut Room) -> Verdict<'_> {
        let kind = sql::classify(text, sent.dialect).kind;
        self.judge_one(Sent { text, ..sent }, kind, room)
    }

    fn judge_one(&self, sent: Sent<'_>, kind: Kind, room: &mut Room) -> Verdict<'_> {
        if self.has_regex {
            sql::bare(sent.text, sent.dialect, TEXT_MAX, &mut room.bare);
        }
        let digest = self
            .has_digest
            .then(|| sql::digest(sent.text, sent.dialect, &mut room.form));
        let found = self
            .list
            .iter()
            .find(|rule| rule.is_about(sent, kind, digest, &room.bare));
        room.bare.shrink_to(16 * 1024);
        match found {
            // The one word that passes over `[safety]` as well.
            Some(rule) if matches!(rule.config.action, RuleAction::Allow | RuleAction::Reject) => {
                Verdict::Rule(rule)
            }
            found => match self.is_unsafe(sent) {
                Some((key, why)) => Verdict::Unsafe(key, why),
                None => found.map_or(Verdict::None, Verdict::Rule),
            },
        }
    }

    fn is_unsafe(&self, sent: Sent<'_>) -> Option<(&'static str, &'static str)> {
        // The WHERE may come behind what was seen.
        if self.safety.require_where && sent.is_whole && sql::lacks_where(sent.text, sent.dialect) {
            return Some(("require_where", "UPDATE and DELETE need a WHERE"));
        }
        if self.safety.refuse_sleep && sql::calls_sleep(sent.text, sent.dialect).is_some() {
            return Some(("refuse_sleep", "SLEEP and BENCHMARK are refused"));
        }
        None
    }
}

impl Rule {
    fn is_about(&self, sent: Sent<'_>, kind: Kind, digest: Option<u64>, bare: &[u8]) -> bool {
        let matches = &self.config.matches;
        let is = |wanted: &Option<String>, given: Option<&[u8]>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| given == Some(wanted.as_bytes()))
        };
        is(&matches.user, Some(sent.user))
            && is(&matches.schema, sent.schema)
            && matches
                .writes
                .is_none_or(|wanted| writes(kind) == Some(wanted))
            && matches.network.as_ref().is_none_or(|network| {
                sent.address
                    .is_some_and(|address| network.contains(&address.to_canonical()))
            })
            && matches.digest.is_none_or(|wanted| digest == Some(wanted))
            && matches
                .regex
                .as_ref()
                .is_none_or(|regex| regex.is_match(bare))
    }
}

/// Whether a statement changes data or definitions; nothing for those that do neither and read nothing, such as COMMIT and SET.
fn writes(kind: Kind) -> Option<bool> {
    match kind {
        Kind::Read | Kind::Show | Kind::Explain => Some(false),
        Kind::Write
        | Kind::Ddl
        | Kind::Xa
        | Kind::Lock
        | Kind::Admin
        | Kind::Batch
        | Kind::Unknown => Some(true),
        Kind::Begin
        | Kind::Commit
        | Kind::Rollback
        | Kind::Savepoint
        | Kind::Set
        | Kind::Use
        | Kind::Prepare
        | Kind::Execute
        | Kind::Deallocate
        | Kind::Unlock
        | Kind::Empty
        | Kind::ExplainRoute
        | Kind::ShowLastRoute
        | Kind::Kill => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn rules(text: &str) -> Rules {
        let text = format!(
            "[[groups]]\nname = \"g\"\nprimary = \"p:1\"\n[[users]]\nname = \"u\"\npassword = \"\"\n{text}"
        );
        let config = crate::config::load(&text, "f", &|_| None).unwrap_or_else(|p| panic!("{p:?}"));
        Rules::new(&config.rules, config.safety, None).expect("something to look at")
    }

    /// The name of the rule, or the key of `[safety]`.
    fn judged(rules: &Rules, sql: &str, user: &str, address: Option<&str>) -> String {
        let dialect = Dialect::new(Server::MySql, 80_036);
        let statement = sql::classify(sql.as_bytes(), &dialect);
        let sent = Sent {
            user: user.as_bytes(),
            schema: Some(b"shop"),
            address: address.map(|address| address.parse().unwrap()),
            text: sql.as_bytes(),
            is_whole: true,
            dialect: &dialect,
        };
        match rules.judge(sent, &statement, &mut Room::default()) {
            Verdict::None => "-".to_owned(),
            Verdict::Rule(rule) => rule.config.name.clone(),
            Verdict::Unsafe(key, _) => key.to_owned(),
        }
    }

    const RULES: &str = r#"
        [[rules]]
        name = "batch may"
        match = { user = "batch", regex = "(?i)^delete from audit$" }
        action = "allow"
        [[rules]]
        name = "no full delete"
        match = { regex = "(?i)^delete from audit" }
        action = "reject"
        [[rules]]
        name = "office writes"
        match = { kind = "write", network = "10.0.0.0/8", schema = "shop" }
        action = "log"
        [[rules]]
        name = "elsewhere"
        match = { schema = "other" }
        action = "reject"
        [safety]
        require_where = true
        refuse_sleep = true
    "#;

    #[test]
    fn the_first_that_matches() {
        let rules = rules(RULES);
        for (sql, user, address, wanted) in [
            ("DELETE FROM audit", "u", None, "no full delete"),
            (
                "delete/**/from\n audit WHERE a = 1",
                "u",
                None,
                "no full delete",
            ),
            ("/* x */ DELETE FROM audit", "u", None, "no full delete"),
            ("/*!50000 DELETE*/ FROM audit", "u", None, "no full delete"),
            ("DELETE FROM audit", "batch", None, "batch may"),
            ("DELETE FROM audit WHERE 1", "batch", None, "no full delete"),
            (
                "SELECT 1; DELETE FROM audit WHERE 1",
                "u",
                None,
                "no full delete",
            ),
            (
                "PREPARE s FROM 'DELETE FROM audit'",
                "u",
                None,
                "no full delete",
            ),
            (
                "EXECUTE IMMEDIATE 'DELETE FROM audit'",
                "u",
                None,
                "no full delete",
            ),
            (
                "INSERT INTO t VALUES (1)",
                "u",
                Some("10.1.2.3"),
                "office writes",
            ),
            (
                "INSERT INTO t VALUES (1)",
                "u",
                Some("::ffff:10.1.2.3"),
                "office writes",
            ),
            ("INSERT INTO t VALUES (1)", "u", Some("11.1.2.3"), "-"),
            ("INSERT INTO t VALUES (1)", "u", None, "-"),
            ("SELECT 1", "u", Some("10.1.2.3"), "-"),
            ("COMMIT", "u", Some("10.1.2.3"), "-"),
            ("UPDATE t SET a = 1", "u", None, "require_where"),
            ("UPDATE t SET a = 1", "u", Some("10.1.2.3"), "require_where"),
            ("SELECT 1; UPDATE t SET a = 1", "u", None, "require_where"),
            (
                "PREPARE s FROM 'UPDATE t SET a = 1'",
                "u",
                None,
                "require_where",
            ),
            ("SELECT SLEEP(1)", "batch", None, "refuse_sleep"),
            ("SELECT 'DELETE FROM audit'", "u", None, "-"),
        ] {
            assert_eq!(
                judged(&rules, sql, user, address),
                wanted,
                "{sql} by {user}"
            );
        }
    }

    /// B261: a digest is about its kind of statements and no other; one that is not given is about all.
    #[test]
    fn by_digest() {
        let mut form = Vec::new();
        let dialect = Dialect::new(Server::MySql, 80_036);
        let digest = sql::digest(b"SELECT v FROM t WHERE id = 1", &dialect, &mut form);
        let rules = rules(&format!(
            "[[rules]]\nname = \"one kind\"\nmatch = {{ digest = \"{digest:016x}\" }}\naction = \"reject\"\n"
        ));
        for (sql, wanted) in [
            ("select v from t where id = 77", "one kind"),
            ("SELECT v FROM t WHERE id = 'a' -- b", "one kind"),
            ("SELECT w FROM t WHERE id = 1", "-"),
            ("SELECT 1", "-"),
        ] {
            assert_eq!(judged(&rules, sql, "u", None), wanted, "{sql}");
        }
    }

    #[test]
    fn counts_stay_with_the_name() {
        let text = "[[rules]]\nname = \"a\"\naction = \"log\"\n";
        let first = rules(text);
        first.named("a").unwrap().hit();
        let second = Rules::new(
            &[first.list[0].config.clone()],
            SafetyConfig::default(),
            Some(&first),
        );
        assert_eq!(second.unwrap().named("a").unwrap().hits(), 1);
        assert!(Rules::new(&[], SafetyConfig::default(), Some(&first)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_judged(sql in ".{0,200}") {
            judged(&rules(RULES), &sql, "u", None);
        }
    }
}
