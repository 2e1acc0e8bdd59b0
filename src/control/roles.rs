//! Roles of servers in the groups: what checks saw goes to the machine of each group, and what that decides is put in force and told.
//! Groups with a fixed topology are looked at too, but only to tell where the servers are not what the configuration says.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::desk::{Desk, Refused};
use crate::config::{HostAddress, Topology as Policy};
use crate::pool::{HostId, Look, Notice, Oddity, Topology};
use crate::snapshot::{Group, GroupRoles, Snapshot};
use crate::worker::Live;

/// Whose doing it is when nobody asked for it.
const ATLAS: &str = "atlas";

/// A check has ended.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) host: HostId,
    pub(super) look: Look,
    /// When it began, by control's clock.
    pub(super) begun: Duration,
}

/// What is known of the roles in each group.
#[derive(Debug, Default)]
pub(super) struct Watch {
    version: u64,
    groups: HashMap<usize, Watched>,
}

#[derive(Debug)]
struct Watched {
    topology: Topology,
    /// What was told of a fixed topology.
    odd: Vec<Oddity>,
    is_hasty: bool,
}

/// Starts the thread that concludes from checks.
///
/// # Errors
/// It could not be started.
pub fn start(desk: Arc<Desk>) -> io::Result<()> {
    let Some(looks) = desk.checks().take_looks() else {
        return Ok(());
    };
    std::thread::Builder::new()
        .name("roles".to_owned())
        .spawn(move || run(&desk, &looks))?;
    Ok(())
}

fn run(desk: &Desk, looks: &Receiver<Looked>) {
    while let Ok(looked) = looks.recv() {
        desk.note_look(looked);
    }
}

impl Watch {
    /// Goes by what is in force.
    fn take_up(&mut self, snapshot: &Snapshot) {
        if self.version == snapshot.version {
            return;
        }
        self.version = snapshot.version;
        let is_there = |place: usize| snapshot.groups.get(place).is_some_and(|g| !g.is_gone);
        self.groups.retain(|place, _| is_there(*place));
        for (place, group) in snapshot.groups.iter().enumerate() {
            if group.is_gone {
                continue;
            }
            let members = members(snapshot, place, group);
            match self.groups.get_mut(&place) {
                Some(watched) => watched.topology.set_members(members),
                None => {
                    let topology = Topology::new(members, group.primary);
                    let watched = Watched {
                        topology,
                        odd: Vec::new(),
                        is_hasty: false,
                    };
                    self.groups.insert(place, watched);
                }
            }
        }
    }
}

/// The hosts of a group, the configured primary first.
fn members(
    snapshot: &Snapshot,
    place: usize,
    group: &Group,
) -> impl Iterator<Item = (HostId, String)> {
    let mut members: Vec<(HostId, String)> = (0..)
        .map(HostId)
        .zip(&snapshot.hosts)
        .filter(|(_, host)| host.group == place && !host.is_gone)
        .map(|(id, host)| (id, host.address.to_string()))
        .collect();
    let first = group.config.primary.address.to_string();
    // Stable: the others stay in their order.
    members.sort_by_key(|(_, address)| *address != first);
    members.into_iter()
}

impl Desk {
    fn note_look(&self, looked: Looked) {
        let live = self.shared().live();
        let Some(place) = live
            .snapshot
            .hosts
            .get(looked.host.index())
            .map(|h| h.group)
        else {
            return;
        };
        let mut watch = self.watch();
        watch.take_up(&live.snapshot);
        let (Some(watched), Some(group)) = (
            watch.groups.get_mut(&place),
            live.snapshot.groups.get(place),
        ) else {
            return;
        };
        watched
            .topology
            .note(looked.host, looked.look, looked.begun);
        match group.config.topology {
            Policy::Fixed => self.compare(&live, group, watched),
            Policy::Follow => {
                let now = self.checks().moment();
                let notices = watched.topology.decide(now);
                self.enact(ATLAS, &live, group, watched, &notices);
                let is_hasty = watched.topology.is_in_question(now);
                let was_hasty = std::mem::replace(&mut watched.is_hasty, is_hasty);
                for host in watched.topology.hosts() {
                    live.hosts.get(host).standing.set_hasty(is_hasty);
                    // The next looks decide.
                    if is_hasty && !was_hasty {
                        ring(&live, host);
                    }
                }
                // A look that has made no difference ends the doubt about the primary.
                live.hosts.get(looked.host).standing.set_doubted(false);
            }
        }
    }

    /// Puts in force what the machine has decided, and tells it.
    fn enact(&self, who: &str, live: &Live, group: &Group, watched: &Watched, notices: &[Notice]) {
        let address = |host: HostId| live.snapshot.hosts[host.index()].address.clone();
        let wanted = GroupRoles {
            primary: watched.topology.primary().map(address),
            fenced: watched.topology.fenced().map(address).collect(),
        };
        let has_changed = !notices.is_empty();
        for notice in notices {
            let (kind, text) = tell(notice, &address);
            self.events()
                .record(who, kind, format!("group {}: {text}", group.name));
        }
        if let Err(refused) = self.put_roles(&group.name, wanted) {
            log::error!(
                "group {}: the roles cannot be changed: {refused}",
                group.name
            );
        }
        if has_changed {
            for host in watched.topology.hosts() {
                ring(live, host);
            }
        }
    }

    /// Tells once where servers are not what the configuration says.
    fn compare(&self, live: &Live, group: &Group, watched: &mut Watched) {
        let Some(primary) = group.primary else {
            return;
        };
        let found = watched.topology.oddities(primary);
        if found == watched.odd {
            return;
        }
        let address = |host: HostId| live.snapshot.hosts[host.index()].address.clone();
        for oddity in found.iter().filter(|oddity| !watched.odd.contains(oddity)) {
            let text = tell_odd(oddity, &address);
            log::warn!("group {}: {text}", group.name);
            self.events()
                .record(ATLAS, "topology", format!("group {}: {text}", group.name));
        }
        if found.is_empty() {
            self.events().record(
                ATLAS,
                "topology",
                format!(
                    "group {}: its servers are what the configuration says",
                    group.name
                ),
            );
        }
        watched.odd = found;
    }

    /// Makes a server the primary of a group that follows its servers, where the choice is between those that take writes.
    ///
    /// # Errors
    /// Nothing has changed, and why.
    pub fn choose_primary(&self, who: &str, group: &str, to: &HostAddress) -> Result<(), Refused> {
        let mut watch = self.watch();
        let live = self.shared().live();
        watch.take_up(&live.snapshot);
        let mut groups = live.snapshot.groups.iter().enumerate();
        let found = groups.find(|(_, known)| known.name == group && !known.is_gone);
        let found = found.and_then(|(place, known)| Some((known, watch.groups.get_mut(&place)?)));
        let (known, watched) =
            found.ok_or_else(|| Refused::Request(format!("there is no group {group}")))?;
        let is_it = |host: &HostId| live.snapshot.hosts[host.index()].address == *to;
        let host = watched.topology.hosts().find(is_it);
        let host =
            host.ok_or_else(|| Refused::Request(format!("group {group} has no server {to}")))?;
        let now = self.checks().moment();
        let notices = watched.topology.switch_to(host, now).map_err(|why| {
            Refused::Request(format!(
                "{to} cannot be the primary of group {group}: {why}"
            ))
        })?;
        self.enact(who, &live, known, watched, &notices);
        Ok(())
    }
}

fn ring(live: &Live, host: HostId) {
    if let Some(gate) = live.gates.get(host.index()) {
        gate.bell.ring();
    }
}

fn tell(notice: &Notice, address: &dyn Fn(HostId) -> HostAddress) -> (&'static str, String) {
    match notice {
        Notice::Elected { host, before } => {
            let place = before.map_or_else(String::new, |before| {
                format!(" in place of {}", address(before))
            });
            (
                "primary",
                format!("{} is the primary{place}", address(*host)),
            )
        }
        Notice::Vacated { host, why } => (
            "primary",
            format!(
                "{} is no longer the primary: {why}; writes wait for the next one",
                address(*host)
            ),
        ),
        Notice::Fenced { host, must_rejoin } => {
            let help = if *must_rejoin {
                "; it may be the primary again when it was seen read-only or replicating, or by SWITCH PRIMARY"
            } else {
                ""
            };
            (
                "fenced",
                format!(
                    "{} takes writes beside the primary: nothing is sent there{help}",
                    address(*host)
                ),
            )
        }
        Notice::Rejoined { host } => (
            "rejoined",
            format!(
                "{} takes no writes any more, or replicates: it is a replica",
                address(*host)
            ),
        ),
        Notice::Tied { hosts } => {
            let hosts: Vec<String> = hosts
                .iter()
                .map(|host| address(*host).to_string())
                .collect();
            (
                "primary",
                format!(
                    "{} take writes and nothing tells which is the primary: close all but one, or use SWITCH PRIMARY",
                    hosts.join(" and ")
                ),
            )
        }
    }
}

fn tell_odd(oddity: &Oddity, address: &dyn Fn(HostId) -> HostAddress) -> String {
    match oddity {
        Oddity::ClosedPrimary { host, why } => {
            format!(
                "{}, the configured primary, takes no writes: {why}",
                address(*host)
            )
        }
        Oddity::FollowingPrimary { host, source } => format!(
            "{}, the configured primary, replicates from {}, which takes writes",
            address(*host),
            address(*source)
        ),
        Oddity::OpenReplica { host } => format!(
            "{}, configured as a replica, takes writes and replicates from no server of the group",
            address(*host)
        ),
    }
}
