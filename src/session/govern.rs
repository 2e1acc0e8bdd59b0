//! What operators say of the client's statements: `[[rules]]`, `[safety]`, and the limits of accounts. Looked at once for a statement,
//! before it goes anywhere; nothing of this costs anything where nothing is configured.

use super::{Cx, Fault, Output, Outputs, Peer, Session};
use crate::config::{RuleAction, RuleTarget};
use crate::route::{Exceeded, Sent, Verdict};
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

impl Session {
    /// Holds a statement that is about to run against rules and limits.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern(
        &mut self,
        cx: &mut Cx<'_>,
        text: &[u8],
        statement: &Statement<'_>,
        is_whole: bool,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        if !self.is_to_be_governed(cx) {
            return Ok(());
        }
        self.hold_against_rules(cx, text, statement, is_whole, out)
    }

    /// Whether the statement at the front has to be looked at, and has not been yet. What a shard is asked has been.
    fn is_to_be_governed(&self, cx: &Cx<'_>) -> bool {
        cx.snapshot.governs(self.account) && !self.attempt.governed.is_done && !self.diary.is_leg
    }

    fn hold_against_rules(
        &mut self,
        cx: &mut Cx<'_>,
        text: &[u8],
        statement: &Statement<'_>,
        is_whole: bool,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        let snapshot = cx.snapshot;
        let account = self.account(snapshot);
        let mut permits = [None, None];
        let verdict = self.judge(cx, text, statement, is_whole);
        if let Verdict::Rule(rule) = verdict {
            rule.hit();
        }
        if let Some(refusal) = verdict.refusal() {
            return Err(Fault::Ruled(refusal));
        }
        match verdict {
            Verdict::None | Verdict::Unsafe(..) => {}
            Verdict::Rule(rule) => match rule.config.action {
                RuleAction::Limit { rate, concurrency } if is_limited(statement.kind) => {
                    let entered = rule.limiter.enter(rate, concurrency, cx.now);
                    let [_, permit] = &mut permits;
                    *permit = entered.map_err(|exceeded| {
                        let name = &rule.config.name;
                        let said = match rule.config.message.as_str() {
                            "" => String::new(),
                            message => format!("{message}: "),
                        };
                        Fault::Ruled(format!(
                            "{said}{} (rule \"{name}\")",
                            exceeded_text(exceeded)
                        ))
                    })?;
                }
                RuleAction::Log => {
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
                RuleAction::Limit { .. }
                | RuleAction::Reject
                | RuleAction::Route(_)
                | RuleAction::Allow
                | RuleAction::Timeout(_)
                | RuleAction::Mirror => {}
            },
        }
        if is_limited(statement.kind) {
            let limits = &account.limits;
            let entered = account
                .limiter
                .enter(limits.rate, limits.concurrency, cx.now);
            let [permit, _] = &mut permits;
            *permit = entered.map_err(|exceeded| {
                let key = match exceeded {
                    Exceeded::Rate(_) => "limits.rate",
                    Exceeded::Concurrency(_) => "limits.concurrency",
                };
                let name = String::from_utf8_lossy(&account.name);
                Fault::Ruled(format!(
                    "{} ({key} of account \"{name}\")",
                    exceeded_text(exceeded)
                ))
            })?;
        }
        let is_counted = permits.iter().any(Option::is_some);
        self.attempt.governed = Governed {
            is_done: true,
            target: verdict.target(),
            is_allowed: verdict.allows(),
        };
        self.attempt.permits = is_counted.then(|| Box::new(permits));
        Ok(())
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
        self.hold_against_rules(cx, &text, &facts, true, out)
    }

    /// Refuses to prepare what would be refused when it runs. What else rules say is said then.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn govern_prepare(
        &mut self,
        cx: &mut Cx<'_>,
        text: &[u8],
        statement: &Statement<'_>,
        is_whole: bool,
    ) -> Result<(), Fault> {
        let verdict = self.judge(cx, text, statement, is_whole);
        let Some(refusal) = verdict.refusal() else {
            return Ok(());
        };
        if let Verdict::Rule(rule) = verdict {
            rule.hit();
        }
        Err(Fault::Ruled(refusal))
    }

    /// What rules and `[safety]` say; nothing is counted.
    pub(super) fn judge<'r>(
        &self,
        cx: &mut Cx<'r>,
        text: &[u8],
        statement: &Statement<'_>,
        is_whole: bool,
    ) -> Verdict<'r> {
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
            text,
            is_whole,
            dialect: &self.dialect(),
        };
        rules.judge(sent, statement, cx.texts.room())
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

fn exceeded_text(exceeded: Exceeded) -> String {
    match exceeded {
        Exceeded::Rate(rate) => format!("more than {rate} statements a second"),
        Exceeded::Concurrency(most) => format!("more than {most} statements at a time"),
    }
}
