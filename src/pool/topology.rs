//! Who is the primary of a group, read from its servers: what checks saw goes in, roles come out. No sockets, no clock; moments
//! are times since some start.
//!
//! A server *claims* to be the primary when it takes writes and replicates from no other of the group. One that replicates is a
//! replica, whether it takes writes or not; where two replicate from each other, the one that takes writes claims.
//!
//! ```text
//!             seen to be closed, or to replicate from one that claims
//!   office ────────────────────────────────────────────────────────► vacant ──► a server that claims, seen since then
//!     ▲  │                                                                 └──► the last one, if it claims again and all
//!     │  │ does not answer, and another claims, seen since then                 others were looked at since then
//!     └──┘ (that one takes over; who merely does not answer stays)
//! ```
//!
//! A second server that claims while the primary does is *fenced*: no statement goes there. It may still be promoted by closing
//! the first one, unless that was away before it was seen closed. One that comes back as a claimant after it was away, or that was
//! replaced while it did not answer, may not: its data may be of another time, so it has to be seen closed or replicating first.

mod asked;
mod words;

use std::time::Duration;

pub use self::words::{GroupView, Identity, Look, Notice, Oddity, Sight, Source, SwitchRefused};
use super::HostId;

/// What a server was last seen to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stance {
    /// Nothing is known of it.
    Unknown,
    /// It does not answer.
    Lost,
    /// It takes no writes.
    Closed(&'static str),
    /// It takes writes and replicates from this member.
    Follows(usize),
    /// It takes writes and replicates from none.
    Claims,
}

#[derive(Debug)]
struct Member {
    host: HostId,
    address: String,
    sight: Option<Sight>,
    /// Checks that failed in a row, and when the first of them began.
    failures: u32,
    failing_since: Duration,
    /// When the last check that ended began; nothing before the first.
    begun: Option<Duration>,
    /// The check that saw it claim first began then.
    claims_since: Option<Duration>,
    stance: Stance,
    /// It may have been away just before the last look.
    has_been_away: bool,
    is_fenced: bool,
    must_rejoin: bool,
}

/// See the module's words.
#[derive(Debug)]
pub struct Topology {
    /// The configured primary is the first.
    members: Vec<Member>,
    primary: Option<HostId>,
    /// Who was it last.
    last: Option<HostId>,
    /// Checks that began earlier make no primary.
    since: Duration,
    /// The last one went away, whether it came back or not: a server that was fenced then is not promoted.
    was_lost: bool,
    tied: Vec<HostId>,
    /// When something was last seen to change.
    changed: Duration,
}

/// Checks that must have failed in a row before another server can take over.
const LOST_AFTER: u32 = 2;

impl Topology {
    /// A group of which nothing has been seen. Hosts and their addresses, the configured primary first; and who has been the
    /// primary so far, if there was one.
    #[must_use]
    pub fn new(members: impl Iterator<Item = (HostId, String)>, primary: Option<HostId>) -> Self {
        let mut topology = Self {
            members: Vec::new(),
            primary,
            last: primary,
            since: Duration::ZERO,
            was_lost: false,
            tied: Vec::new(),
            changed: Duration::ZERO,
        };
        topology.set_members(members);
        topology
    }

    /// Takes hosts in and out, as they are configured now.
    pub fn set_members(&mut self, members: impl Iterator<Item = (HostId, String)>) {
        let mut before = std::mem::take(&mut self.members);
        for (host, address) in members {
            let known = before.iter().position(|member| member.host == host);
            self.members.push(match known {
                Some(at) => before.swap_remove(at),
                None => Member::new(host, address),
            });
        }
    }

    /// The primary, if there is one.
    #[must_use]
    pub fn primary(&self) -> Option<HostId> {
        self.primary
    }

    /// Servers to which nothing may go.
    pub fn fenced(&self) -> impl Iterator<Item = HostId> + '_ {
        let fenced = self.members.iter().filter(|member| member.is_fenced);
        fenced.map(|member| member.host)
    }

    /// Notes what a check saw that began at this moment.
    pub fn note(&mut self, host: HostId, look: Look, begun: Duration) {
        let Some(at) = self.place(host) else {
            return;
        };
        let is_led = self.primary.is_some_and(|primary| {
            primary != host
                && self
                    .place(primary)
                    .is_some_and(|place| self.members[place].failures == 0)
        });
        let member = &mut self.members[at];
        member.begun = Some(begun);
        let mut has_been_away = member.failures >= LOST_AFTER;
        match look {
            Look::Silent => {
                if member.failures == 0 {
                    member.failing_since = begun;
                }
                member.failures = member.failures.saturating_add(1);
            }
            Look::Answered(sight) => {
                // A short absence may have fallen between two checks.
                has_been_away |=
                    member.failures > 0 || (member.sight.is_some() && !sight.is_continuous);
                member.failures = 0;
                member.has_been_away = has_been_away;
                member.sight = Some(sight);
            }
        }
        let claimed = self.members[at].stance == Stance::Claims;
        if has_been_away && !claimed && is_led && self.stance(at) == Stance::Claims {
            self.members[at].must_rejoin = true;
        }
    }

    /// Draws the conclusions.
    pub fn decide(&mut self, now: Duration) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.take_stances(now);
        self.leave_office(now, &mut notices);
        if self.primary.is_none() {
            self.elect(&mut notices);
        }
        self.fence(&mut notices);
        if !notices.is_empty() {
            self.changed = now;
        }
        notices
    }

    fn place(&self, host: HostId) -> Option<usize> {
        self.members.iter().position(|member| member.host == host)
    }

    fn take_stances(&mut self, now: Duration) {
        for at in 0..self.members.len() {
            let stance = self.stance(at);
            let member = &mut self.members[at];
            if std::mem::replace(&mut member.stance, stance) != stance {
                self.changed = now;
            }
            member.claims_since = match stance {
                Stance::Claims => member.claims_since.or(member.begun),
                // It may be back as it was.
                Stance::Lost => member.claims_since,
                Stance::Unknown | Stance::Closed(_) | Stance::Follows(_) => None,
            };
        }
    }

    fn stance(&self, at: usize) -> Stance {
        let member = &self.members[at];
        if member.failures >= LOST_AFTER {
            return Stance::Lost;
        }
        let Some(sight) = &member.sight else {
            return Stance::Unknown;
        };
        if let Some(view) = &sight.view {
            if !view.is_online {
                return Stance::Closed("it is not online in its replication group");
            }
            if view.is_secondary {
                return Stance::Closed("it is a secondary of its replication group");
            }
            if !view.has_majority {
                return Stance::Closed("it does not see the majority of its replication group");
            }
        }
        match sight.is_read_only {
            None => Stance::Unknown,
            Some(true) => Stance::Closed("it is read-only"),
            Some(false) => self
                .sources_of(at)
                .find(|source| !self.sources_of(*source).any(|back| back == at))
                .map_or(Stance::Claims, Stance::Follows),
        }
    }

    /// The members from which one replicates, as it said last.
    fn sources_of(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let sight = self.members[at].sight.as_ref();
        let sources = sight.into_iter().flat_map(|sight| &sight.sources);
        sources.filter_map(move |source| {
            (0..self.members.len()).find(|other| *other != at && self.members[*other].is(source))
        })
    }

    fn leave_office(&mut self, now: Duration, notices: &mut Vec<Notice>) {
        let Some(primary) = self.primary else {
            return;
        };
        let Some(at) = self.place(primary) else {
            return self.vacate(primary, now, "it is configured no more".to_owned(), notices);
        };
        match self.members[at].stance {
            Stance::Unknown | Stance::Claims => {}
            Stance::Closed(why) => self.vacate(primary, now, why.to_owned(), notices),
            Stance::Follows(source) => {
                let source = &self.members[source];
                if source.stance == Stance::Claims {
                    let why = format!(
                        "it replicates from {}, which takes writes and replicates from none",
                        source.address
                    );
                    self.vacate(primary, now, why, notices);
                }
            }
            Stance::Lost => {
                let since = self.members[at].failing_since;
                let heirs = self.candidates(since, true);
                if let Some(heir) = self.one_of(&heirs, notices) {
                    self.members[at].must_rejoin = true;
                    self.since = since;
                    self.was_lost = true;
                    self.take_office(heir, notices);
                }
            }
        }
    }

    fn vacate(&mut self, host: HostId, now: Duration, why: String, notices: &mut Vec<Notice>) {
        self.primary = None;
        self.last = Some(host);
        self.since = now;
        self.was_lost = self
            .place(host)
            .is_some_and(|at| self.members[at].has_been_away);
        notices.push(Notice::Vacated { host, why });
    }

    /// Places of servers that may become the primary, the last one among them.
    fn candidates(&self, since: Duration, was_lost: bool) -> Vec<usize> {
        let may = |member: &Member| {
            member.stance == Stance::Claims
                && member.failures == 0
                && member.begun.is_some_and(|begun| begun >= since)
                && !member.must_rejoin
                && !(was_lost && member.is_fenced)
        };
        (0..self.members.len())
            .filter(|at| may(&self.members[*at]))
            .collect()
    }

    fn elect(&mut self, notices: &mut Vec<Notice>) {
        let candidates = self.candidates(self.since, self.was_lost);
        let last = self.last.and_then(|last| self.place(last));
        if self.last.is_none() {
            // The start: the configured one stays if it can.
            let first = self.members.first().map(|member| member.stance);
            match first {
                Some(Stance::Claims) => return self.take_office(0, notices),
                // It did not tell, which is no reason against it.
                Some(Stance::Unknown) if self.members[0].sight.is_some() => {
                    return self.take_office(0, notices);
                }
                _ if !self.all_were_looked_at() => return,
                Some(Stance::Lost | Stance::Unknown) if candidates.is_empty() => {
                    return self.take_office(0, notices);
                }
                _ => {}
            }
        }
        let others: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|at| Some(*at) != last)
            .collect();
        if let Some(one) = self.one_of(&others, notices) {
            self.take_office(one, notices);
        } else if others.is_empty()
            && let Some(last) = last
            && candidates.contains(&last)
            && self.all_were_looked_at()
        {
            self.take_office(last, notices);
        }
    }

    fn all_were_looked_at(&self) -> bool {
        let was_looked_at = |member: &Member| member.begun.is_some_and(|begun| begun >= self.since);
        self.members.iter().all(was_looked_at)
    }

    /// The only one, or the one from which more of the others replicate than from any other.
    fn one_of(&mut self, of: &[usize], notices: &mut Vec<Notice>) -> Option<usize> {
        if let [] | [_] = of {
            return of.first().copied();
        }
        let one = self.most_followed(of);
        let hosts: Vec<HostId> = of.iter().map(|at| self.members[*at].host).collect();
        if one.is_none() && self.tied != hosts {
            self.tied.clone_from(&hosts);
            notices.push(Notice::Tied { hosts });
        }
        one
    }

    fn most_followed(&self, of: &[usize]) -> Option<usize> {
        let followers = |at: usize| {
            (0..self.members.len())
                .filter(|other| self.sources_of(*other).any(|source| source == at))
                .count()
        };
        let most = of.iter().map(|at| followers(*at)).max()?;
        let mut first = of.iter().filter(|at| followers(**at) == most);
        match (first.next(), first.next()) {
            (Some(one), None) => Some(*one),
            _ => None,
        }
    }

    fn take_office(&mut self, at: usize, notices: &mut Vec<Notice>) {
        let member = &mut self.members[at];
        member.is_fenced = false;
        member.must_rejoin = false;
        self.tied.clear();
        let host = member.host;
        self.primary = Some(host);
        let before = self.last.replace(host).filter(|before| *before != host);
        notices.push(Notice::Elected { host, before });
    }

    /// Whether two take part in one replication group, as both see it.
    fn are_one_group(&self, one: usize, other: usize) -> bool {
        let sees = |of: usize, whom: usize| {
            let (of, whom) = (&self.members[of].sight, &self.members[whom].sight);
            let view = of.as_ref().and_then(|sight| sight.view.as_ref());
            view.zip(whom.as_ref())
                .is_some_and(|(view, whom)| view.members.contains(&whom.identity.uuid))
        };
        sees(one, other) && sees(other, one)
    }

    fn fence(&mut self, notices: &mut Vec<Notice>) {
        let office = self.primary.and_then(|primary| self.place(primary));
        // A look at the primary that began before the other one was seen may be of before a switch.
        let confirmed = office
            .map(|at| &self.members[at])
            .filter(|member| member.stance == Stance::Claims && member.failures == 0)
            .and_then(|member| member.begun);
        // All members of a replication group may take writes; what one takes the others have.
        let together: Vec<bool> = (0..self.members.len())
            .map(|at| office.is_some_and(|office| self.are_one_group(at, office)))
            .collect();
        for (at, member) in self.members.iter_mut().enumerate() {
            if Some(at) == office || together[at] {
                continue;
            }
            match member.stance {
                Stance::Claims => {
                    let is_second = member
                        .claims_since
                        .is_some_and(|since| confirmed.is_some_and(|begun| begun > since));
                    if (is_second || member.must_rejoin) && !member.is_fenced {
                        member.is_fenced = true;
                        notices.push(Notice::Fenced {
                            host: member.host,
                            must_rejoin: member.must_rejoin,
                        });
                    }
                }
                Stance::Closed(_) | Stance::Follows(_) => {
                    member.must_rejoin = false;
                    if std::mem::take(&mut member.is_fenced) {
                        notices.push(Notice::Rejoined { host: member.host });
                    }
                }
                Stance::Unknown | Stance::Lost => {}
            }
        }
    }
}

impl Member {
    fn new(host: HostId, address: String) -> Self {
        Self {
            host,
            address,
            sight: None,
            failures: 0,
            failing_since: Duration::ZERO,
            begun: None,
            claims_since: None,
            stance: Stance::Unknown,
            has_been_away: false,
            is_fenced: false,
            must_rejoin: false,
        }
    }

    /// Whether that source is this one. An id tells more than an address, which may be another one from there.
    fn is(&self, source: &Source) -> bool {
        let own = self.sight.as_ref().map(|sight| &sight.identity);
        let theirs = &source.identity;
        match own {
            Some(own) if !own.uuid.is_empty() && !theirs.uuid.is_empty() => own.uuid == theirs.uuid,
            Some(own) if own.server_id != 0 && theirs.server_id != 0 => {
                own.server_id == theirs.server_id
            }
            _ => self.address == source.address,
        }
    }
}

#[cfg(test)]
mod tests;
