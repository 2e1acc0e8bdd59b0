//! `causal = "session"`: which transactions a session's reads are to see, by the GTIDs that servers told of, and whether a replica
//! has them. A replica that is late is waited for, for a while; then the primary is asked.

use std::collections::VecDeque;
use std::time::Duration;

use super::bring::write_query;
use super::sync::Said;
use super::{Access, Cx, Output, Outputs, Role, Session};
use crate::config::Causal;
use crate::pool::HostId;
use crate::route::{Reason, Route};
use crate::sql::Server;

/// Sources and domains of one group that are told apart; sessions whose writes have more read from the primary.
const SOURCES: usize = 8;
/// Groups whose transactions are told apart.
const GROUPS: usize = 8;
/// A source's name: a UUID, with a tag.
const NAME: usize = 80;
/// When replicas were found late they are not asked again for so long.
const LATE: Duration = Duration::from_secs(1);

/// What a session wrote that its reads are to see.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    groups: Vec<Group>,
    /// A statement failed that may have written all the same, which no server told of yet.
    is_in_doubt: bool,
    /// Until then the primary is asked.
    late_until: Option<Duration>,
}

#[derive(Debug, Clone, Default)]
struct Group {
    /// Nothing for the account's own.
    index: Option<usize>,
    sources: Vec<Source>,
    /// Something could not be read, or was too much.
    is_lost: bool,
    /// Another number with each write.
    version: u64,
    /// This host has had all up to this version.
    reached: Option<(HostId, u64)>,
}

/// A run of transactions: of one server and tag on MySQL, the last one of a domain on MariaDB.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    name: Vec<u8>,
    first: u64,
    last: u64,
}

impl Writes {
    fn group(&self, index: Option<usize>) -> Option<&Group> {
        self.groups.iter().find(|group| group.index == index)
    }

    fn group_mut(&mut self, index: Option<usize>) -> Option<&mut Group> {
        let at = self.groups.iter().position(|group| group.index == index);
        if let Some(at) = at {
            return self.groups.get_mut(at);
        }
        if self.groups.len() >= GROUPS {
            return None;
        }
        self.groups.push(Group {
            index,
            ..Group::default()
        });
        self.groups.last_mut()
    }

    /// The server told of what a transaction left in this group.
    pub(super) fn note(&mut self, index: Option<usize>, server: Server, told: &[u8]) {
        self.is_in_doubt = false;
        let Some(group) = self.group_mut(index) else {
            self.is_in_doubt = true;
            return;
        };
        group.version = group.version.wrapping_add(1);
        for part in told.split(|b| *b == b',') {
            let is_read = match server {
                Server::MySql => group.note_mysql(part.trim_ascii()),
                Server::MariaDb => group.note_mariadb(part.trim_ascii()),
            };
            group.is_lost |= is_read.is_none();
        }
    }

    /// Another session, which began with what this one knows, has written in this group.
    pub(super) fn adopt(&mut self, index: Option<usize>, other: &Self) {
        self.is_in_doubt |= other.is_in_doubt;
        let Some(theirs) = other.group(index) else {
            self.is_in_doubt = true;
            return;
        };
        match self.group_mut(index) {
            Some(group) => *group = theirs.clone(),
            None => self.is_in_doubt = true,
        }
    }

    /// A statement that may have written failed: errors tell of no transactions.
    pub(super) fn note_failure(&mut self) {
        self.is_in_doubt = true;
    }

    /// Whether a replica of the group can be asked whether it has all.
    pub(super) fn can_be_waited_for(&self, index: Option<usize>, now: Duration) -> bool {
        let is_known = |group: &Group| !group.is_lost && !group.sources.is_empty();
        !self.is_in_doubt
            && self.late_until.is_none_or(|until| until <= now)
            && self.group(index).is_some_and(is_known)
    }
}

impl Group {
    /// `UUID[:tag]:interval[:interval]…`.
    fn note_mysql(&mut self, set: &[u8]) -> Option<()> {
        let mut parts = set.split(|b| *b == b':');
        let uuid = parts.next()?.trim_ascii();
        let is_uuid = uuid.len() == 36 && uuid.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
        if !is_uuid {
            return None;
        }
        let mut name = uuid.to_vec();
        for part in parts {
            let part = part.trim_ascii();
            if part.first().is_some_and(u8::is_ascii_digit) {
                let mut ends = part.splitn(2, |b| *b == b'-');
                let first = number(ends.next()?)?;
                let last = ends.next().map_or(Some(first), number)?;
                self.add(&name, first, last)?;
            } else {
                let is_tag = part.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
                if !is_tag || part.is_empty() {
                    return None;
                }
                name = [uuid, b":", part].concat();
            }
        }
        Some(())
    }

    /// `domain-server-number`.
    fn note_mariadb(&mut self, gtid: &[u8]) -> Option<()> {
        let mut parts = gtid.splitn(3, |b| *b == b'-');
        let domain = parts.next()?;
        number(domain)?;
        number(parts.next()?)?;
        let last = number(parts.next()?)?;
        // A replica has them one after the other, so the latest stands for all before.
        let at = self.sources.iter().position(|s| s.domain() == Some(domain));
        match at.and_then(|at| self.sources.get_mut(at)) {
            Some(source) => {
                source.name = gtid.to_vec();
                source.last = last;
                Some(())
            }
            None => self.add(gtid, last, last),
        }
    }

    fn add(&mut self, name: &[u8], first: u64, last: u64) -> Option<()> {
        if let Some(source) = self.sources.iter_mut().find(|s| s.name == name) {
            source.first = source.first.min(first);
            source.last = source.last.max(last);
            return Some(());
        }
        if self.sources.len() >= SOURCES || name.len() > NAME || first > last {
            return None;
        }
        self.sources.push(Source {
            name: name.to_vec(),
            first,
            last,
        });
        Some(())
    }

    /// The question whether a replica has all, which it answers with 0 as soon as it does.
    fn question(&self, server: Server, bound: Duration) -> Vec<u8> {
        let mut text = match server {
            Server::MySql => b"SELECT WAIT_FOR_EXECUTED_GTID_SET('".to_vec(),
            Server::MariaDb => b"SELECT MASTER_GTID_WAIT('".to_vec(),
        };
        for (n, source) in self.sources.iter().enumerate() {
            if n > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&source.name);
            if server == Server::MySql {
                // All between the session's first and last: they need not arrive in order.
                text.extend_from_slice(format!(":{}-{}", source.first, source.last).as_bytes());
            }
        }
        let millis = bound.as_millis();
        let bound = format!("', {}.{:03})", millis / 1000, millis % 1000);
        text.extend_from_slice(bound.as_bytes());
        text
    }
}

impl Source {
    fn domain(&self) -> Option<&[u8]> {
        self.name.split(|b| *b == b'-').next()
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Session {
    /// For how long a replica is waited for that may not have what the session wrote; nothing where that does not matter.
    fn waits_for_writes(&self, cx: &Cx<'_>) -> Option<Duration> {
        match self.account(cx.snapshot).causal {
            Causal::Session(bound) => self.wrote.map(|_| bound),
            Causal::Off | Causal::Window(_) | Causal::Global => None,
        }
    }

    /// Whether reads are to see a write of the session's that no replica can be asked for.
    pub(super) fn wrote_unseen(&self, cx: &Cx<'_>) -> bool {
        let can_wait = self.tracked.writes.can_be_waited_for(self.moved_to, cx.now);
        self.waits_for_writes(cx).is_some() && !can_wait
    }

    /// Whether a read that goes this way may leave now: on a replica it sees what the session wrote. If it may not yet, that has been
    /// asked for. Who asks for a replica by a hint is not kept waiting.
    pub(super) fn sees_writes(
        &mut self,
        cx: &mut Cx<'_>,
        route: Route,
        is_hinted: bool,
        out: &mut Outputs,
    ) -> bool {
        let is_plain = route.role == Role::Replica && route.reason == Reason::PlainRead;
        !is_plain || is_hinted || self.ensure_caught_up(cx, out)
    }

    /// Whether the replica's connection has all that the session wrote. If not, or if there is none yet, it has been asked to say so
    /// when it does, and the command waits.
    fn ensure_caught_up(&mut self, cx: &mut Cx<'_>, out: &mut Outputs) -> bool {
        let Some(bound) = self.waits_for_writes(cx) else {
            return true;
        };
        let index = self.moved_to;
        if !self.tracked.writes.can_be_waited_for(index, cx.now) {
            // An account that never reads from the primary.
            return true;
        }
        if !self.ensure(cx, Role::Replica, false, out) {
            return false;
        }
        let link = self.links[Role::Replica as usize].known();
        let Some((known, group)) = link.zip(self.tracked.writes.group(index)) else {
            return true;
        };
        if group.reached == Some((known.host, group.version)) {
            return true;
        }
        let start = out.arena.len();
        let question = group.question(known.server, bound);
        write_query(&mut out.arena, known.capabilities, &question);
        out.push(Output::SendToBackend {
            role: Role::Replica,
            range: start..out.arena.len(),
            access: Access::Read,
        });
        self.start_sync(Role::Replica, VecDeque::from([Said::CaughtUp]));
        false
    }

    /// The answer to that.
    pub(super) fn note_caught_up(&mut self, cx: &Cx<'_>, answer: &[u8]) {
        let index = self.moved_to;
        let host = self.link(Role::Replica).known().map(|known| known.host);
        let has_all = super::hold::last_row(answer).is_some_and(|row| row.as_slice() == [b"0"]);
        let writes = &mut self.tracked.writes;
        match (writes.group_mut(index), host) {
            (Some(group), Some(host)) if has_all => group.reached = Some((host, group.version)),
            _ => writes.late_until = Some(cx.now.saturating_add(LATE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const SECOND: Duration = Duration::from_secs(1);

    fn question(server: Server, told: &[&str]) -> Option<String> {
        let mut writes = Writes::default();
        for told in told {
            writes.note(Some(3), server, told.as_bytes());
        }
        let group = writes.group(Some(3)).expect("a group");
        writes
            .can_be_waited_for(Some(3), SECOND)
            .then(|| group.question(server, Duration::from_millis(1500)))
            .map(|text| String::from_utf8(text).expect("UTF-8"))
    }

    #[test]
    fn mysql_is_asked_for_all_between_the_first_and_the_last() {
        let wanted = |set: &str| {
            let set = set.replace('U', UUID);
            Some(format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{set}', 1.500)"))
        };
        for (told, set) in [
            (&["U:7"][..], "U:7-7"),
            (&["U:7", "U:9", "U:12-14:20"], "U:7-20"),
            (&["U:t:1:3", "U:2"], "U:t:1-3,U:2-2"),
            (&["U:5,\nU:6"], "U:5-6"),
        ] {
            let told: Vec<String> = told.iter().map(|told| told.replace('U', UUID)).collect();
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            assert_eq!(question(Server::MySql, &told), wanted(set), "{told:?}");
        }
    }

    #[test]
    fn mariadb_is_asked_for_the_last_of_each_domain() {
        for (told, set) in [
            (&["0-1-7"][..], "0-1-7"),
            (&["0-1-7", "0-2-9"], "0-2-9"),
            (&["0-1-7", "11-1-2", "0-1-8"], "0-1-8,11-1-2"),
        ] {
            let wanted = format!("SELECT MASTER_GTID_WAIT('{set}', 1.500)");
            assert_eq!(question(Server::MariaDb, told), Some(wanted));
        }
    }

    #[test]
    fn what_cannot_be_read_or_is_too_much_is_not_waited_for() {
        for told in ["", "7", "0-1", "0-1-x", "'; DROP TABLE t", "0-1-7,"] {
            assert_eq!(question(Server::MariaDb, &[told]), None, "{told}");
        }
        for told in ["", UUID, "x:7", "3e11fa47:7"] {
            assert_eq!(question(Server::MySql, &[told]), None, "{told}");
        }
        for end in [":x'y:7", ":7-", ":-7", "::7"] {
            let told = format!("{UUID}{end}");
            assert_eq!(question(Server::MySql, &[&told]), None, "{told}");
        }
        let domains: Vec<String> = (0..=SOURCES).map(|n| format!("{n}-1-1")).collect();
        let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
        assert_eq!(question(Server::MariaDb, &domains), None);
    }

    #[test]
    fn doubts_end_with_the_next_transaction_and_lateness_with_time() {
        let mut writes = Writes::default();
        assert!(!writes.can_be_waited_for(None, SECOND));
        writes.note(None, Server::MariaDb, b"0-1-7");
        assert!(writes.can_be_waited_for(None, SECOND));
        assert!(!writes.can_be_waited_for(Some(1), SECOND));
        writes.note_failure();
        assert!(!writes.can_be_waited_for(None, SECOND));
        writes.note(None, Server::MariaDb, b"0-1-8");
        assert!(writes.can_be_waited_for(None, SECOND));
        writes.late_until = Some(2 * SECOND);
        assert!(!writes.can_be_waited_for(None, SECOND));
        assert!(writes.can_be_waited_for(None, 2 * SECOND));
        for group in 1..=GROUPS {
            writes.note(Some(group), Server::MariaDb, b"0-1-9");
        }
        assert!(!writes.can_be_waited_for(Some(GROUPS), 3 * SECOND));
    }
}
