//! What the machine of a group's roles answers to those who ask, and the choice of an operator.

use std::time::Duration;

use super::{Member, Notice, Oddity, Stance, SwitchRefused, Topology};
use crate::pool::HostId;

/// Checks are made more often for so long after the last change, while the roles are in question.
const HASTE: Duration = Duration::from_secs(60);

impl Topology {
    /// All servers.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.members.iter().map(|member| member.host)
    }

    /// Makes a server the primary that an operator has named.
    ///
    /// # Errors
    /// It cannot be.
    pub fn switch_to(&mut self, host: HostId, now: Duration) -> Result<Vec<Notice>, SwitchRefused> {
        let at = self.place(host).ok_or(SwitchRefused::NoMember)?;
        match self.stance(at) {
            Stance::Lost => return Err(SwitchRefused::Silent),
            Stance::Closed(why) => return Err(SwitchRefused::Closed(why)),
            Stance::Follows(_) => return Err(SwitchRefused::Replicates),
            Stance::Unknown if self.members[at].sight.is_none() => {
                return Err(SwitchRefused::Silent);
            }
            Stance::Unknown => return Err(SwitchRefused::Untold),
            Stance::Claims => {}
        }
        let mut notices = Vec::new();
        if self.primary != Some(host) {
            self.take_office(at, &mut notices);
            self.changed = now;
        }
        Ok(notices)
    }

    /// Where the servers are not what they are said to be, with this one as the primary.
    #[must_use]
    pub fn oddities(&self, primary: HostId) -> Vec<Oddity> {
        let odd = |(at, member): (usize, &Member)| {
            let host = member.host;
            match self.stance(at) {
                Stance::Closed(why) if host == primary => Some(Oddity::ClosedPrimary { host, why }),
                Stance::Follows(source)
                    if host == primary && self.stance(source) == Stance::Claims =>
                {
                    let source = self.members[source].host;
                    Some(Oddity::FollowingPrimary { host, source })
                }
                Stance::Claims
                    if host != primary
                        && !self
                            .place(primary)
                            .is_some_and(|office| self.are_one_group(at, office)) =>
                {
                    Some(Oddity::OpenReplica { host })
                }
                _ => None,
            }
        };
        self.members.iter().enumerate().filter_map(odd).collect()
    }

    /// Whether the roles are in question, so that the servers should be looked at more often.
    #[must_use]
    pub fn is_in_question(&self, now: Duration) -> bool {
        let is_odd = |member: &Member| match member.stance {
            _ if Some(member.host) == self.primary => {
                member.failures > 0 || member.stance != Stance::Claims
            }
            Stance::Claims => !member.is_fenced,
            Stance::Unknown | Stance::Lost | Stance::Closed(_) | Stance::Follows(_) => false,
        };
        (self.primary.is_none() || self.members.iter().any(is_odd))
            && now.saturating_sub(self.changed) < HASTE
    }
}
