//! Where the statements of a script ran, by the servers' general logs.

use crate::common::{Entry, Marks, Node};
use crate::delivery::Outcome;
use crate::differences::Differences;
use crate::script::{Act, At, Script, tag};

/// What arrived at the servers since a moment.
struct Logs(Vec<(At, Vec<Entry>)>);

impl Logs {
    fn since(marks: &Marks) -> Self {
        let logs = Node::ALL.into_iter().map(|node| {
            let place = match node {
                Node::Primary => At::Primary,
                Node::Replica1 | Node::Replica2 => At::Replica,
                Node::Second => At::Anywhere,
            };
            (place, marks.entries(node))
        });
        Self(logs.collect())
    }

    /// How often a command with this tag in its text arrived at the primary and at the replicas.
    fn count(&self, command: &str, tag: &str) -> (usize, usize) {
        let at = |place: At| {
            let logs = self.0.iter().filter(|(of, _)| *of == place);
            let entries = logs.flat_map(|(_, entries)| entries);
            entries
                .filter(|entry| entry.command == command && entry.text.contains(tag))
                .count()
        };
        (at(At::Primary), at(At::Replica))
    }
}

/// Looks each statement up at the place that its step names. Executions are counted together with the others of their statement.
pub(crate) fn check(
    what: &str,
    schema: &str,
    script: &Script,
    outcomes: &[Outcome],
    marks: &Marks,
    into: &mut Differences,
) {
    let logs = Logs::since(marks);
    let mut prepared = Vec::new();
    for (i, step) in script.steps.iter().enumerate() {
        match &step.act {
            Act::Prepare(_) => prepared.push(i),
            Act::Query { .. } | Act::File { .. } if step.at != At::Anywhere => {
                let (primary, replica) = logs.count("Query", &tag(schema, i));
                let right = match step.at {
                    At::Primary => replica == 0 && primary > 0,
                    // An error that may be the replica's alone is brought before the primary.
                    At::Replica => replica > 0 && (primary == 0 || is_error(outcomes.get(i))),
                    At::Anywhere => true,
                };
                if !right {
                    let (words, at) = (step.act.words(), step.at);
                    let seen = format!("{primary} times at the primary, {replica} at replicas");
                    into.add(what, format!("step {i} {words}: {seen}, not at {at:?}"));
                }
            }
            _ => {}
        }
    }
    for (number, prepare) in (1..).zip(prepared) {
        let expected = |at: At| {
            let steps = script.steps.iter().filter(|step| step.at == at);
            steps
                .filter(|step| matches!(&step.act, Act::Execute(e) if e.id == number))
                .count()
        };
        let (primary, replica) = (expected(At::Primary), expected(At::Replica));
        if primary + replica == 0 || expected(At::Anywhere) > 0 {
            continue;
        }
        let seen = logs.count("Execute", &tag(schema, prepare));
        if seen != (primary, replica) {
            let due = (primary, replica);
            into.add(
                what,
                format!(
                    "statement {number}: executed (primary, replicas) {seen:?} times, not {due:?}"
                ),
            );
        }
    }
}

fn is_error(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Reply(reply)) if reply.error_code() != 0)
}
