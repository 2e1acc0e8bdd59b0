//! What operators see and do of clients. Workers are asked; one that does not answer in time is left out.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use crate::admin::{Refusal, Table};
use crate::control::Events;
use crate::session::{Report, Role};
use crate::sql;
use crate::worker::{Killed, Live, Message, Question, Sessions, Shared};

/// How long all workers together may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a statement that are shown.
const SHOWN_MAX: usize = 200;

/// Asks every worker, and gives the answers that came in time.
pub(super) fn ask<T>(
    shared: &Shared,
    question: impl Fn(std::sync::mpsc::SyncSender<T>) -> Question,
) -> Vec<T> {
    let pending: Vec<Receiver<T>> = shared
        .mailboxes
        .iter()
        .filter_map(|mailbox| {
            let (sender, receiver) = sync_channel(1);
            mailbox.send(Message::Ask(question(sender))).ok()?;
            Some(receiver)
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    pending
        .into_iter()
        .filter_map(|answer| {
            let left = deadline.saturating_duration_since(Instant::now());
            answer.recv_timeout(left).ok()
        })
        .collect()
}

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
    } in ask(shared, Question::Sessions)
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
    if !ask(shared, question).contains(&Killed::Done) {
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
