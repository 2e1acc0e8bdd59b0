//! Finishing transactions over several groups that nobody is about any more: those that sessions of this process have left, and those of
//! processes that are over. What is prepared is asked of the servers; what was decided says the log: it is done if that says so, undone if
//! not. What another process that lives is about, or one that has its log elsewhere, is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::journal::{self, Found};
use crate::control::desk::Desk;
use crate::control::probe::connection::{Answer, Connection};
use crate::control::probe::globals;
use crate::shard::{Prepared, Xid, recovered};
use crate::worker::{Left, Live, Shared};

/// Between two looks while something is to be finished, or may come yet.
const SOON: Duration = Duration::from_secs(1);
/// Between two looks for what nobody knows of.
const LATER: Duration = Duration::from_secs(60);
/// When something was found, more of it may come for so long: what its process had sent is still being worked through.
const BUSY: Duration = Duration::from_secs(60);
/// The log of a run that is over is needed no more when nothing of the run was seen for so long.
const QUIET: Duration = Duration::from_secs(3600);
/// One server has answered by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// XA COMMIT and XA ROLLBACK: there is none of that name, or some connection has it still.
const NOTA: u16 = 1397;

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    looked: Option<Instant>,
    /// Looks follow each other closely until then.
    busy_until: Option<Instant>,
    /// Since when nothing was seen of a run that is over.
    quiet: BTreeMap<u64, Instant>,
    told: BTreeSet<String>,
}

/// What is prepared in a group; nothing where that cannot be known now.
struct Group {
    name: String,
    connection: Option<Connection>,
    prepared: Vec<Prepared>,
}

impl Recovery {
    /// Whether it is time to look. Where nothing writes to several groups, and nothing has, servers are asked nothing.
    pub(super) fn is_due(&mut self, shared: &Shared, folder: &Path, is_in_use: bool) -> bool {
        let since = self.looked.map(|at| at.elapsed());
        let Some(since) = since.filter(|since| *since < LATER) else {
            self.looked = Some(Instant::now());
            return is_in_use || journal::has_others(folder, shared.decisions.run());
        };
        let is_busy = self.busy_until.is_some_and(|until| Instant::now() < until);
        since >= SOON && (is_busy || !shared.decisions.left().is_empty())
    }

    /// Looks, and finishes what is to be finished.
    pub(super) fn look(&mut self, desk: &Desk, live: &Live, folder: &Path) {
        self.looked = Some(Instant::now());
        let shared = desk.shared();
        let mut wrong = BTreeSet::new();
        let own = shared.decisions.run();
        let found = journal::find(folder, own).unwrap_or_else(|error| {
            wrong.insert(format!("{} cannot be read: {error}", folder.display()));
            Found::default()
        });
        wrong.extend(found.unread.iter().map(|(_, why)| why.clone()));
        let left = shared.decisions.left();
        let mut groups = ask(live, &mut wrong);
        let is_whole = groups.iter().all(|group| group.connection.is_some());
        let decided: BTreeMap<u64, BTreeSet<Xid>> = found
            .over
            .iter()
            .map(|remains| (remains.run, remains.decided.iter().copied().collect()))
            .collect();
        let mut seen = BTreeSet::new();
        let mut seen_runs = BTreeSet::new();
        for group in &mut groups {
            for prepared in std::mem::take(&mut group.prepared) {
                let (xid, run) = (prepared.xid, prepared.xid.run());
                seen.insert(xid);
                seen_runs.insert(run);
                let fate = if Some(run) == own {
                    shared.decisions.fate(xid)
                } else if let Some(decided) = decided.get(&run) {
                    Some(if decided.contains(&xid) {
                        Left::ToCommit
                    } else {
                        Left::ToUndo
                    })
                } else {
                    let is_known = found.living.contains(&run)
                        || found.unread.iter().any(|(other, _)| *other == run);
                    if !is_known {
                        wrong.insert(format!(
                            "transaction {xid} is prepared in group {} by an Atlas whose decision log is not here: leave it to that one, or end it by hand with XA COMMIT or XA ROLLBACK {}",
                            group.name, prepared.name
                        ));
                    }
                    None
                };
                let Some(fate) = fate.filter(|fate| *fate != Left::Unknown) else {
                    continue;
                };
                let text = finish(group, &prepared, fate == Left::ToCommit);
                match text {
                    Ok(text) => {
                        log::warn!("{text}");
                        desk.events().record("atlas", "transaction", text);
                    }
                    Err(text) => {
                        wrong.insert(text);
                    }
                }
            }
            if let Some(connection) = group.connection.take() {
                connection.quit(Instant::now() + PATIENCE);
            }
        }
        if is_whole {
            for xid in left {
                let is_known = shared.decisions.fate(xid) != Some(Left::Unknown);
                if is_known && !seen.contains(&xid) {
                    shared.decisions.settle(xid);
                }
            }
        }
        let now = Instant::now();
        for remains in found.over {
            let run = remains.run;
            let is_new = !self.quiet.contains_key(&run);
            let since = *self.quiet.entry(run).or_insert(now);
            if is_new || seen_runs.contains(&run) || !is_whole {
                self.quiet.insert(run, now);
                self.busy_until = Some(now + BUSY);
            } else if since.elapsed() >= QUIET {
                self.quiet.remove(&run);
                if let Err(error) = remains.remove() {
                    wrong.insert(format!("a decision log that is done with stays: {error}"));
                }
            }
        }
        for text in wrong.difference(&self.told) {
            log::warn!("{text}");
            desk.events().record("atlas", "transaction", text.clone());
        }
        self.told = wrong;
    }
}

/// Asks the primary of every group what is prepared there.
fn ask(live: &Live, wrong: &mut BTreeSet<String>) -> Vec<Group> {
    let mut groups = Vec::new();
    for (place, group) in live.snapshot.groups.iter().enumerate() {
        if group.is_gone {
            continue;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut asked = Group {
            name: group.name.clone(),
            connection: None,
            prepared: Vec::new(),
        };
        let answer = match group.primary {
            Some(primary) => {
                globals::connect(live, place, primary, deadline).and_then(|mut connection| {
                    Ok((connection.ask("XA RECOVER", deadline)?, connection))
                })
            }
            None => Err("it has no primary".into()),
        };
        match answer {
            Ok((Answer::Rows(_, rows), connection)) => {
                asked.prepared = rows.iter().filter_map(|row| recovered(row)).collect();
                asked.connection = Some(connection);
            }
            Ok((Answer::Done, connection)) => asked.connection = Some(connection),
            Ok((Answer::Refused { code, message }, _)) => {
                wrong.insert(format!(
                    "the account of [monitor] may not see prepared transactions in group {} ({code}: {message}): grant it XA_RECOVER_ADMIN, or what a crash leaves stays locked",
                    group.name
                ));
            }
            // Checks tell that it does not answer.
            Err(fault) => log::debug!(
                "what is prepared in group {} is not known: {fault}",
                group.name
            ),
        }
        groups.push(asked);
    }
    groups
}

/// Ends a transaction's part in a group; what was done, or why it could not be.
fn finish(group: &mut Group, prepared: &Prepared, is_to_commit: bool) -> Result<String, String> {
    let (word, done) = if is_to_commit {
        ("COMMIT", "done")
    } else {
        ("ROLLBACK", "undone")
    };
    let (xid, name) = (prepared.xid, &group.name);
    let Some(connection) = &mut group.connection else {
        return Err(format!("transaction {xid} waits for group {name}"));
    };
    let deadline = Instant::now() + PATIENCE;
    let sql = format!("XA {word} {}", prepared.name);
    match connection.ask(&sql, deadline) {
        Ok(Answer::Done | Answer::Rows(..)) => Ok(format!(
            "transaction {xid} was left prepared in group {name} and is {done} there now"
        )),
        Ok(Answer::Refused { code: NOTA, .. }) => Err(format!(
            "transaction {xid} waits in group {name} for the end of its connection"
        )),
        Ok(Answer::Refused { code, message }) => Err(format!(
            "transaction {xid} cannot be {done} in group {name} ({code}: {message}); it is tried again"
        )),
        Err(fault) => {
            group.connection = None;
            Err(format!("transaction {xid} waits for group {name}: {fault}"))
        }
    }
}
