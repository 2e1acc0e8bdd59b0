//! What operators see and do of clients. Workers are asked; one that does not answer in time is left out.

use std::collections::HashMap;
use std::time::Duration;

use crate::admin::{Refusal, Table};
use crate::control::Events;
use crate::control::ask::ask;
use crate::session::{Digest, Report, Role};
use crate::sql;
use crate::worker::{Killed, Live, Question, Sessions, Shared};

/// How long all workers together may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a statement that are shown.
const SHOWN_MAX: usize = 200;

/// A statement's beginning as it may be shown.
fn shown(head: &[u8], report: &Report) -> Option<String> {
    if head.is_empty() {
        return None;
    }
    let mut text = Vec::new();
    sql::normalise(head, &report.dialect, SHOWN_MAX, &mut text);
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn all(shared: &Shared) -> Vec<(Duration, Report)> {
    let mut left_out = 0;
    let mut reports: Vec<(Duration, Report)> = Vec::new();
    for Sessions {
        now,
        reports: of_worker,
        left_out: more,
    } in ask(shared, PATIENCE, Question::Sessions)
    {
        left_out += more;
        reports.extend(of_worker.into_iter().map(|report| (now, report)));
    }
    if left_out > 0 {
        log::info!("{left_out} clients are not listed: there are too many");
    }
    reports.sort_by_key(|(_, report)| report.id);
    reports
}

/// Of each account, how many clients have said nothing for so long.
pub(super) fn idle_for(shared: &Shared, long: Duration) -> HashMap<usize, usize> {
    let mut idle = HashMap::new();
    for (now, report) in all(shared) {
        let is_idle = report.doing == "idle" && now.saturating_sub(report.since) >= long;
        if let Some(account) = report.account.filter(|_| is_idle) {
            *idle.entry(account).or_default() += 1;
        }
    }
    idle
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn millis(since: Duration, now: Duration) -> String {
    now.saturating_sub(since).as_millis().to_string()
}

/// Where a session's statements run.
fn group<'l>(live: &'l Live, report: &Report) -> Option<&'l str> {
    let account = live.snapshot.accounts.get(report.account?)?;
    let group = live.snapshot.groups.get(account.group)?;
    Some(&group.name)
}

fn role(role: Option<Role>) -> Option<String> {
    role.map(|role| match role {
        Role::Primary => "primary".to_owned(),
        Role::Replica => "replica".to_owned(),
    })
}

/// `SHOW SESSIONS`.
pub(super) fn sessions(shared: &Shared, live: &Live) -> Table {
    let mut table = Table::new([
        "id#",
        "user",
        "host",
        "schema",
        "group",
        "state",
        "ms#",
        "server",
        "in_transaction",
        "pins",
        "prepared#",
        "statement",
    ]);
    for (now, report) in all(shared) {
        let pins: Vec<&str> = report.pins.iter().map(|pin| pin.reason).collect();
        table.push_row(vec![
            Some(report.id.to_string()),
            Some(lossy(&report.user)),
            Some(report.peer.to_string()),
            report.schema.as_deref().map(lossy),
            group(live, &report).map(str::to_owned),
            Some(report.doing.to_owned()),
            Some(millis(report.since, now)),
            role(report.role),
            Some(super::reports::yes_no(report.in_transaction)),
            Some(pins.join(", ")),
            Some(report.prepared.to_string()),
            shown(&report.head, &report),
        ]);
    }
    table
}

/// `SHOW PROCESSLIST`, with the columns that servers give.
pub(super) fn process_list(shared: &Shared, _live: &Live) -> Table {
    let mut table = Table::new([
        "Id#", "User", "Host", "db", "Command", "Time#", "State", "Info",
    ]);
    for (now, report) in all(shared) {
        let is_idle = report.doing == "idle";
        table.push_row(vec![
            Some(report.id.to_string()),
            Some(lossy(&report.user)),
            Some(report.peer.to_string()),
            report.schema.as_deref().map(lossy),
            Some(if is_idle { "Sleep" } else { "Query" }.to_owned()),
            Some(now.saturating_sub(report.since).as_secs().to_string()),
            Some(if is_idle { "" } else { report.doing }.to_owned()),
            shown(&report.head, &report).filter(|_| !is_idle),
        ]);
    }
    table
}

/// `SHOW PINS`: a row for each reason of each session.
pub(super) fn pins(shared: &Shared, _live: &Live) -> Table {
    let mut table = Table::new([
        "id#",
        "user",
        "host",
        "reason",
        "ms#",
        "caused_by",
        "ends_with",
    ]);
    for (now, report) in all(shared) {
        for pin in &report.pins {
            table.push_row(vec![
                Some(report.id.to_string()),
                Some(lossy(&report.user)),
                Some(report.peer.to_string()),
                Some(pin.reason.to_owned()),
                pin.since.map(|since| millis(since, now)),
                shown(&pin.cause, &report),
                Some(pin.ends.to_owned()),
            ]);
        }
    }
    table
}

/// Kinds that are listed.
const DIGESTS_MAX: usize = 1000;

/// `SHOW DIGESTS`: kinds of statements, those first that took the most time. Times are those of the sample that was looked at.
pub(super) fn digests(shared: &Shared) -> Table {
    let mut kinds: HashMap<u64, Digest> = HashMap::new();
    let mut others = 0;
    for (of_worker, dropped) in ask(shared, PATIENCE, Question::Digests) {
        others += dropped;
        for (number, kind) in of_worker {
            match kinds.get_mut(&number) {
                Some(known) => {
                    known.count += kind.count;
                    known.sampled += kind.sampled;
                    known.errors += kind.errors;
                    known.total += kind.total;
                    known.longest = known.longest.max(kind.longest);
                }
                None => {
                    kinds.insert(number, kind);
                }
            }
        }
    }
    // What all of a kind took, by what those took that were looked at.
    let weight = |kind: &Digest| {
        kind.total.as_micros() * u128::from(kind.count) / u128::from(kind.sampled.max(1))
    };
    let mut sorted: Vec<(u64, Digest)> = kinds.into_iter().collect();
    sorted.sort_by_key(|(_, kind)| std::cmp::Reverse(weight(kind)));
    others += sorted
        .iter()
        .skip(DIGESTS_MAX)
        .map(|(_, kind)| kind.count)
        .sum::<u64>();
    let mut table = Table::new([
        "digest",
        "statement",
        "count#",
        "sampled#",
        "errors#",
        "total_ms#",
        "mean_us#",
        "longest_us#",
    ]);
    for (number, kind) in sorted.iter().take(DIGESTS_MAX) {
        let mean = kind.total.as_micros() / u128::from(kind.sampled.max(1));
        table.push([
            format!("{number:016x}"),
            lossy(&kind.form),
            kind.count.to_string(),
            kind.sampled.to_string(),
            kind.errors.to_string(),
            (weight(kind) / 1000).to_string(),
            mean.to_string(),
            kind.longest.as_micros().to_string(),
        ]);
    }
    if others > 0 {
        let mut row = vec![None; 8];
        row[1] = Some("(others, which came too seldom to be kept)".to_owned());
        row[2] = Some(others.to_string());
        table.push_row(row);
    }
    table
}

/// `KILL`.
pub(super) fn kill(
    shared: &Shared,
    events: &Events,
    who: &str,
    id: u32,
    query_only: bool,
) -> Result<Table, Refusal> {
    let question = |answer| Question::Kill {
        id,
        query_only,
        answer,
    };
    if !ask(shared, PATIENCE, question).contains(&Killed::Done) {
        return Err(Refusal::with(
            1094,
            *b"HY000",
            format!("Unknown thread id: {id}"),
        ));
    }
    let what = if query_only {
        "the statement of client"
    } else {
        "client"
    };
    events.record(who, "kill", format!("{what} {id} was ended"));
    Ok(Table::status())
}
