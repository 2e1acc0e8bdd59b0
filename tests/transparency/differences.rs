//! What differs between two runs of a script, and in which runs it does.

use crate::common::{Mask, difference};
use crate::delivery::Outcome;
use crate::script::Script;

/// What differs, each with all the runs in which it does.
#[derive(Debug, Default)]
pub(crate) struct Differences(Vec<(String, Vec<String>)>);

impl Differences {
    pub(crate) fn add(&mut self, run: &str, difference: String) {
        match self.0.iter_mut().find(|(seen, _)| *seen == difference) {
            Some((_, runs)) => runs.push(run.to_owned()),
            None => self.0.push((difference, vec![run.to_owned()])),
        }
    }

    /// Panics if there were any.
    pub(crate) fn report(self) {
        let shown = self.0.iter().take(40);
        let shown: Vec<String> = shown
            .map(|(difference, runs)| format!("- {difference}\n  in {}", runs.join(", ")))
            .collect();
        assert!(
            self.0.is_empty(),
            "{} differences:\n{}",
            self.0.len(),
            shown.join("\n")
        );
    }
}

/// Compares what the steps of a script brought, by the steps' own masks and `mask`.
pub(crate) fn compare(
    what: &str,
    script: &Script,
    direct: &[Outcome],
    through: &[Outcome],
    mask: &Mask,
    differences: &mut Differences,
) {
    if direct.len() != through.len() {
        let (direct, through) = (direct.len(), through.len());
        let difference = format!("{direct} replies direct, {through} through Atlas");
        differences.add(what, difference);
    }
    for (i, step) in script.steps.iter().enumerate() {
        let (left, right) = (direct.get(i), through.get(i));
        let found = match (left, right) {
            (None, None) => return,
            (Some(Outcome::Reply(left)), Some(Outcome::Reply(right))) => {
                let masks = [&step.masks[..], std::slice::from_ref(mask)].concat();
                difference(left, right, &masks)
            }
            (Some(Outcome::Ended), Some(Outcome::Ended)) => None,
            _ => {
                let (left, right) = (words(left), words(right));
                Some(format!("{left} direct, {right} through Atlas"))
            }
        };
        if let Some(found) = found {
            differences.add(what, format!("step {i} {}: {found}", step.act.words()));
            if [left, right].contains(&Some(&Outcome::Ended)) {
                return;
            }
        }
    }
}

/// In short.
fn words(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "nothing more".to_owned(),
        Some(Outcome::Ended) => "an end of the connection".to_owned(),
        Some(Outcome::Reply(reply)) => format!(
            "{} packets, at last {:?}",
            reply.packets.len(),
            reply.packets.last()
        ),
    }
}
