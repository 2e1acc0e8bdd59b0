//! What operators say of the client's statements: `[[rules]]`, `[safety]`, and the limits of accounts. Looked at once for a statement,
//! before it goes anywhere; nothing of this costs anything where nothing is configured.

use super::bound::Bound;
use super::{Cx, Fault, Output, Outputs, Peer, Session};
use crate::config::{RuleAction, RuleTarget};
use crate::route::{Exceeded, Permit, Rule, Sent, Verdict};
use crate::snapshot::Account;
use crate::sql::{self, Kind, Statement};

/// What became of the statement at the front.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Governed {
    /// It has been looked at.
    is_done: bool,
    /// Where a rule has it answered.
    target: Option<RuleTarget>,
    /// A rule lets it pass.
    is_allowed: bool,
}

/// A statement that is held against rules and limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    text: &'a [u8],
    statement: &'a Statement<'a>,
    /// The text is all of it.
    is_whole: bool,
}

impl<'a> Subject<'a> {
    pub(super) fn new(text: &'a [u8], statement: &'a Statement<'a>, is_whole: bool) -> Self {
        Self {
            text,
            statement,
            is_whole,
        }
    }
}

impl Session {
    /// Holds a statement that is about to run against rules and limits.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern(
        &mut self,
        cx: &mut Cx<'_>,
        subject: Subject<'_>,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        if !self.is_to_be_governed(cx) {
            return Ok(());
        }
        let kind = subject.statement.kind;
        let account = self.account(cx.snapshot);
        let verdict = self.judge(cx, subject);
        if let Verdict::Rule(rule) = verdict {
            rule.hit();
        }
        if let Some(refusal) = verdict.refusal() {
            return Err(Fault::Ruled(refusal));
        }
        let mut bound = Bound::default();
        if is_limited(kind) {
            bound = Bound::of(&account.limits, kind);
            let [of_account, of_rule] = &mut bound.permits;
            if let Verdict::Rule(rule) = verdict {
                *of_rule = enter_rule(rule, cx)?;
            }
            *of_account = enter_account(account, cx)?;
            if let Verdict::Rule(rule) = verdict
                && let RuleAction::Timeout(timeout) = rule.config.action
            {
                bound.set_timeout(timeout, &rule.name);
            }
        }
        if let Verdict::Rule(rule) = verdict
            && rule.config.action == RuleAction::Log
        {
            self.note_line(rule, account, subject.text, out);
        }
        self.attempt.governed = Governed {
            is_done: true,
            target: verdict.target(),
            is_allowed: verdict.allows(),
        };
        if let Verdict::Rule(rule) = verdict
            && let Some(mirror) = &rule.mirror
        {
            self.begin_copy(
                cx,
                mirror,
                subject.text,
                subject.statement,
                subject.is_whole,
            );
        }
        self.attempt.bound = bound.binds().then(|| Box::new(bound));
        Ok(())
    }

    /// Whether the statement at the front has to be looked at, and has not been yet. What a shard is asked has been.
    fn is_to_be_governed(&self, cx: &Cx<'_>) -> bool {
        cx.snapshot.governs(self.account) && !self.attempt.governed.is_done && !self.diary.is_leg
    }

    /// A line for the log, without what may be secret.
    fn note_line(&self, rule: &Rule, account: &Account, text: &[u8], out: &mut Outputs) {
        let mut form = Vec::new();
        sql::digest(text, &self.dialect(), &mut form);
        out.push(Output::Note(format!(
            "rule \"{}\": {}@{}: {}",
            rule.config.name,
            String::from_utf8_lossy(&account.name),
            self.peer(),
            String::from_utf8_lossy(&form)
        )));
    }

    /// The same for an execution of a prepared statement.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern_execute(
        &mut self,
        cx: &mut Cx<'_>,
        id: u32,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        if !self.is_to_be_governed(cx) {
            return Ok(());
        }
        let Some(prepared) = self.statements.get_mut(id) else {
            // The client is told so.
            return Ok(());
        };
        let facts = Statement {
            kind: prepared.kind,
            traits: prepared.traits,
            hint: None,
        };
        // Only the limits of an account ask for no text.
        let text = match &cx.snapshot.rules {
            Some(_) => prepared.sent().to_vec(),
            None => Vec::new(),
        };
        let subject = Subject::new(&text, &facts, true);
        self.govern(cx, subject, out)
    }

    /// The same for one with many rows of parameters, which is noted as begun.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern_bulk(
        &mut self,
        cx: &mut Cx<'_>,
        id: u32,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        self.keep_execution(cx, &[], id);
        self.govern_execute(cx, id, out)?;
        // The values of many rows make no text.
        self.attempt.copying = None;
        let dialect = self.dialect();
        let text = self.statements.get_mut(id).and_then(|s| s.text.clone());
        let text = text.as_ref().map_or(&b""[..], |text| &text.sql);
        self.diary.begin(cx, text, &dialect);
        Ok(())
    }

    /// Refuses to prepare what would be refused when it runs. What else rules say is said then.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern_prepare(
        &mut self,
        cx: &mut Cx<'_>,
        subject: Subject<'_>,
    ) -> Result<(), Fault> {
        let verdict = self.judge(cx, subject);
        let Some(refusal) = verdict.refusal() else {
            return Ok(());
        };
        if let Verdict::Rule(rule) = verdict {
            rule.hit();
        }
        Err(Fault::Ruled(refusal))
    }

    /// What rules and `[safety]` say; nothing is counted.
    pub(super) fn judge<'r>(&self, cx: &mut Cx<'r>, subject: Subject<'_>) -> Verdict<'r> {
        let snapshot = cx.snapshot;
        let Some(rules) = &snapshot.rules else {
            return Verdict::None;
        };
        let sent = Sent {
            user: &self.account(snapshot).name,
            schema: self.state.schema(),
            address: match self.peer() {
                Peer::Ip(address) => Some(address),
                Peer::Local => None,
            },
            text: subject.text,
            is_whole: subject.is_whole,
            dialect: &self.dialect(),
        };
        rules.judge(sent, subject.statement, cx.texts.room())
    }

    /// Whether a rule lets the statement at the front pass.
    pub(super) fn is_allowed(&self) -> bool {
        self.attempt.governed.is_allowed
    }

    /// Where a rule has the statement at the front answered.
    pub(super) fn rule_target(&self) -> Option<RuleTarget> {
        self.attempt.governed.target
    }
}

/// What ends something is let through: who could not commit would hold locks for longer.
fn is_limited(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Commit | Kind::Rollback | Kind::Xa | Kind::Unlock | Kind::Deallocate | Kind::Kill
    )
}

/// Counts the statement as one that runs by a rule that limits.
fn enter_rule(rule: &Rule, cx: &Cx<'_>) -> Result<Option<Permit>, Fault> {
    let RuleAction::Limit { rate, concurrency } = rule.config.action else {
        return Ok(None);
    };
    rule.limiter
        .enter(rate, concurrency, cx.now)
        .map_err(|exceeded| {
            let said = match rule.config.message.as_str() {
                "" => String::new(),
                message => format!("{message}: "),
            };
            let text = exceeded_text(exceeded);
            Fault::Ruled(format!("{said}{text} (rule \"{}\")", rule.config.name))
        })
}

/// The same by its account.
fn enter_account(account: &Account, cx: &Cx<'_>) -> Result<Option<Permit>, Fault> {
    let limits = &account.limits;
    account
        .limiter
        .enter(limits.rate, limits.concurrency, cx.now)
        .map_err(|exceeded| {
            let key = match exceeded {
                Exceeded::Rate(_) => "limits.rate",
                Exceeded::Concurrency(_) => "limits.concurrency",
            };
            let name = String::from_utf8_lossy(&account.name);
            let text = exceeded_text(exceeded);
            Fault::Ruled(format!("{text} ({key} of account \"{name}\")"))
        })
}

fn exceeded_text(exceeded: Exceeded) -> String {
    match exceeded {
        Exceeded::Rate(rate) => format!("more than {rate} statements a second"),
        Exceeded::Concurrency(most) => format!("more than {most} statements at a time"),
    }
}
