//! The immutable bundle that workers read: configuration and roles compiled into accounts, groups and hosts with keys. Built by
//! control, shared by workers; holds no state of servers (see `pool::Hosts`).
//!
//! Places in its lists are for the process's life: the next snapshot has everything at the place where this one has it, what is
//! configured no more is marked as gone, and what is new comes behind. So sessions and connections keep their keys over a reload.

mod gone;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::auth::{Plugin, Secret};
use crate::config::{
    self, Causal, Config, GroupConfig, HostAddress, NoReplica, ReadFrom, Topology,
};
use crate::pool::HostId;
use crate::route::{Limiter, Rules};
use crate::shard::{Found, Placement};

/// See the module's words.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts snapshots, from 1.
    pub version: u64,
    /// The configuration it was made from.
    pub config: Config,
    /// Accounts, in the order in which they were first configured.
    pub accounts: Vec<Account>,
    /// Groups, in the order in which they were first configured.
    pub groups: Vec<Group>,
    /// Hosts of all groups.
    pub hosts: Vec<HostEntry>,
    /// Rules and `[safety]`; nothing if there are none.
    pub rules: Option<Arc<Rules>>,
    /// Where sharded tables are; nothing if there are none.
    pub placement: Option<Arc<Placement>>,
    by_name: HashMap<Vec<u8>, usize>,
    /// All accounts on servers that there ever were, at their ids, and whether anybody has them now. Ids are never given anew: idle
    /// connections are told apart by them.
    backends: Vec<(String, Vec<Secret>, bool)>,
}

/// Whom a client may be.
#[derive(Debug, Clone)]
pub struct Account {
    /// The name that clients give.
    pub name: Vec<u8>,
    /// Passwords that clients may prove.
    pub passwords: Arc<[Secret]>,
    /// Group, an index into [`Snapshot::groups`].
    pub group: usize,
    /// Schema of clients that name none.
    pub schema: Option<Vec<u8>>,
    /// Where its reads go.
    pub read_from: ReadFrom,
    /// The accounts on the servers, for the primary's connection and for the replica's.
    pub backend: [BackendAccount; 2],
    /// Which earlier writes its reads are to see.
    pub causal: Causal,
    /// Its clients share server connections.
    pub shares: bool,
    /// Networks that its clients may come from.
    pub networks: config::Networks,
    /// Clients at a time; 0 for no limit of its own.
    pub max_connections: usize,
    /// Limits on its statements.
    pub limits: config::Limits,
    /// What is counted for them.
    pub limiter: Arc<Limiter>,
    /// What the configuration calls it in metrics and logs.
    pub labels: Arc<BTreeMap<String, String>>,
    /// It is configured no more: nobody logs in, and who did is to go.
    pub is_gone: bool,
}

/// An account on the servers.
#[derive(Debug, Clone)]
pub struct BackendAccount {
    /// The same for all accounts that log in alike.
    pub id: u16,
    /// Its name.
    pub user: Vec<u8>,
    /// Passwords to try in turn.
    pub passwords: Arc<[Secret]>,
}

/// A primary and its replicas.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The primary's key; none while it is not known who that is.
    pub primary: Option<HostId>,
    /// The replicas' keys and weights.
    pub replicas: Vec<(HostId, u32)>,
    /// What a read does without a replica.
    pub no_replica: NoReplica,
    /// How it is configured, or was.
    pub config: GroupConfig,
    /// It is configured no more.
    pub is_gone: bool,
}

impl Group {
    /// All hosts with a role, each once, the primary first.
    pub fn members(&self) -> impl Iterator<Item = HostId> + '_ {
        let replicas = self.replicas.iter().map(|(host, _)| *host);
        self.primary
            .into_iter()
            .chain(replicas.filter(|host| Some(*host) != self.primary))
    }
}

/// A host.
#[derive(Debug, Clone)]
pub struct HostEntry {
    /// Where it listens.
    pub address: HostAddress,
    /// The group it belongs to, an index into [`Snapshot::groups`].
    pub group: usize,
    /// It is configured no more.
    pub is_gone: bool,
}

/// What was seen of the servers, and is not as configured.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Who has which role, by the names of groups.
    pub roles: HashMap<String, GroupRoles>,
    /// Tables that every group has.
    pub globals: Found,
}

/// Who has which role in a group. All its hosts that are not named are replicas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupRoles {
    /// The primary; none when it is not known.
    pub primary: Option<HostAddress>,
    /// Hosts that must not be used for anything.
    pub fenced: Vec<HostAddress>,
}

/// There have been too many accounts or hosts since the process began to give another one a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there have been more than 65535 {0} since the start: a restart (or upgrade) makes room")]
pub struct TooMany(&'static str);

/// The most keys of hosts and of accounts on servers.
const KEYS_MAX: usize = u16::MAX as usize;

impl Snapshot {
    /// Compiles a checked configuration, the first of a process.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::compile(None, config, &Seen::default())
    }

    /// Compiles the configuration that comes after this one.
    ///
    /// # Errors
    /// There are no more keys.
    pub fn next(&self, config: Config, seen: &Seen) -> Result<Self, TooMany> {
        let next = Self::compile(Some(self), config, seen);
        if next.hosts.len() > KEYS_MAX {
            Err(TooMany("hosts"))
        } else if next.backends.len() > KEYS_MAX {
            Err(TooMany("accounts on servers"))
        } else if next.accounts.len() > KEYS_MAX {
            Err(TooMany("accounts"))
        } else if next.groups.len() > KEYS_MAX {
            Err(TooMany("groups"))
        } else {
            Ok(next)
        }
    }

    fn compile(before: Option<&Self>, config: Config, seen: &Seen) -> Self {
        let mut next = Self {
            version: before.map_or(1, |before| before.version + 1),
            accounts: before.map_or_else(Vec::new, |before| before.accounts.clone()),
            groups: before.map_or_else(Vec::new, |before| before.groups.clone()),
            hosts: before.map_or_else(Vec::new, |before| before.hosts.clone()),
            by_name: HashMap::new(),
            backends: before.map_or_else(Vec::new, |before| before.backends.clone()),
            placement: None,
            rules: None,
            config,
        };
        next.accounts.iter_mut().for_each(|a| a.is_gone = true);
        next.hosts.iter_mut().for_each(|host| host.is_gone = true);
        next.backends.iter_mut().for_each(|known| known.2 = false);
        let primaries = next.clear_groups();
        let places: Vec<usize> = (0..next.config.groups.len())
            .map(|index| next.add_group(index, seen))
            .collect();
        next.keep_primaries(&primaries);
        for index in 0..next.config.users.len() {
            next.add_account(index, &places);
        }
        let before = before.and_then(|before| before.rules.as_deref());
        let rules = Rules::new(&next.config.rules, next.config.safety, before);
        next.rules = rules.map(Arc::new);
        next.placement = Placement::with(&next.config, &places, &seen.globals).map(Arc::new);
        next
    }

    /// Takes a group of the configuration in; gives its place.
    fn add_group(&mut self, index: usize, seen: &Seen) -> usize {
        let config = self.config.groups[index].clone();
        let known = self.groups.iter().position(|g| g.name == config.name);
        let place = known.unwrap_or(self.groups.len());
        let configured = self.add_host(&config.primary.address, place);
        let listed: Vec<(HostId, u32)> = config
            .replicas
            .iter()
            .map(|replica| (self.add_host(&replica.address, place), replica.weight))
            .collect();
        let (primary, replicas) = match seen.roles.get(&config.name) {
            None if config.topology == Topology::Fixed => (Some(configured), listed),
            roles => {
                let is = |host: &HostId, address: &HostAddress| {
                    self.hosts[host.index()].address == *address
                };
                let mut all = listed;
                if !all.iter().any(|(host, _)| *host == configured) {
                    all.insert(0, (configured, config.primary.weight));
                }
                // Nothing has been seen of the servers yet.
                let nothing = GroupRoles::default();
                let roles = roles.unwrap_or(&nothing);
                let primary = roles
                    .primary
                    .as_ref()
                    .and_then(|address| all.iter().map(|r| r.0).find(|host| is(host, address)));
                all.retain(|(host, _)| {
                    Some(*host) != primary && !roles.fenced.iter().any(|address| is(host, address))
                });
                (primary, all)
            }
        };
        let group = Group {
            name: config.name.clone(),
            primary,
            replicas,
            no_replica: config.no_replica,
            config,
            is_gone: false,
        };
        match self.groups.get_mut(place) {
            Some(slot) => *slot = group,
            None => self.groups.push(group),
        }
        place
    }

    fn add_host(&mut self, address: &HostAddress, group: usize) -> HostId {
        let known = self
            .hosts
            .iter()
            .position(|host| host.group == group && host.address == *address);
        let place = known.unwrap_or_else(|| {
            self.hosts.push(HostEntry {
                address: address.clone(),
                group,
                is_gone: false,
            });
            self.hosts.len() - 1
        });
        self.hosts[place].is_gone = false;
        // One that would not fit is refused by `next`, before anybody can use it.
        HostId(u16::try_from(place).unwrap_or(u16::MAX))
    }

    fn add_account(&mut self, index: usize, places: &[usize]) {
        let user = self.config.users[index].clone();
        let backend = [
            self.add_backend(&user.backend.user, &user.backend.passwords),
            self.add_backend(&user.backend.read_user, &user.backend.read_passwords),
        ];
        let mut account = Account {
            name: user.name.into(),
            passwords: user.passwords.into(),
            group: places.get(user.group).copied().unwrap_or_default(),
            schema: user.schema.map(Into::into),
            read_from: user.read_from,
            backend,
            causal: user.causal,
            shares: user.sharing == config::Sharing::Transaction,
            networks: user.networks,
            max_connections: user.max_connections,
            limits: user.limits,
            limiter: Arc::default(),
            labels: Arc::new(user.labels),
            is_gone: false,
        };
        let known = self.accounts.iter().position(|a| a.name == account.name);
        if let Some(before) = known.and_then(|known| self.accounts.get(known)) {
            // What runs goes on to count.
            account.limiter = before.limiter.clone();
        }
        let place = known.unwrap_or(self.accounts.len());
        self.by_name.insert(account.name.clone(), place);
        match self.accounts.get_mut(place) {
            Some(slot) => *slot = account,
            None => self.accounts.push(account),
        }
    }

    fn add_backend(&mut self, user: &str, passwords: &[Secret]) -> BackendAccount {
        let is_same = |(name, secrets, _): &(String, Vec<Secret>, bool)| {
            name == user && secrets.as_slice() == passwords
        };
        let place = self.backends.iter().position(is_same).unwrap_or_else(|| {
            self.backends
                .push((user.to_owned(), passwords.to_vec(), true));
            self.backends.len() - 1
        });
        self.backends[place].2 = true;
        BackendAccount {
            id: u16::try_from(place).unwrap_or(u16::MAX),
            user: user.as_bytes().to_vec(),
            passwords: passwords.to_vec().into(),
        }
    }

    /// The account of this name, if there is one.
    #[must_use]
    pub fn account(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether statements of an account are to be held against rules or limits.
    #[must_use]
    pub fn governs(&self, account: usize) -> bool {
        let has_limits = |account: &Account| account.limits != config::Limits::default();
        self.rules.is_some() || self.accounts.get(account).is_some_and(has_limits)
    }

    /// Whether an account of the configuration logs in to servers like this.
    #[must_use]
    pub fn has_backend(&self, id: u16) -> bool {
        self.backends
            .get(usize::from(id))
            .is_some_and(|(_, _, is_used)| *is_used)
    }

    /// The host's role among the groups that are configured; none when it has none, or is not used.
    #[must_use]
    pub fn leads(&self, host: HostId) -> bool {
        self.hosts
            .get(host.index())
            .and_then(|entry| self.groups.get(entry.group))
            .is_some_and(|group| group.primary == Some(host))
    }

    /// The plugin that the greeting names.
    #[must_use]
    pub fn offered_plugin(&self) -> Plugin {
        match self.config.server.auth_plugin {
            config::AuthPlugin::CachingSha2 => Plugin::CachingSha2,
            config::AuthPlugin::Native => Plugin::Native,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(groups: &str, users: &[&str]) -> Config {
        let mut text = groups.to_owned();
        for user in users {
            text.push_str(&format!("[[users]]\n{user}\n"));
        }
        config::load(&text, "atlas.toml", &|_| None).unwrap_or_else(|p| panic!("{p:?}\n{text}"))
    }

    fn group(name: &str, primary: &str, replicas: &[&str]) -> String {
        let quoted: Vec<String> = replicas.iter().map(|r| format!("\"{r}:1\"")).collect();
        format!(
            "[[groups]]\nname = \"{name}\"\nprimary = \"{primary}:1\"\nreplicas = [{}]\n",
            quoted.join(", ")
        )
    }

    const U: &str = "name = \"u\"\npassword = \"x\"\ngroup = \"a\"";
    const V: &str = "name = \"v\"\npassword = \"x\"\ngroup = \"a\"";

    /// What is in a snapshot, places and all: groups with their hosts, accounts with theirs.
    fn shown(snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
        let host = |id: HostId| format!("{}@{}", snapshot.hosts[id.index()].address, id.0);
        let groups = snapshot.groups.iter().map(|group| {
            let replicas: Vec<String> = group.replicas.iter().map(|r| host(r.0)).collect();
            let primary = group.primary.map_or_else(|| "none".to_owned(), host);
            let gone = if group.is_gone { " gone" } else { "" };
            format!("{} {primary} [{}]{gone}", group.name, replicas.join(" "))
        });
        let accounts = snapshot.accounts.iter().map(|account| {
            let name = String::from_utf8_lossy(&account.name).into_owned();
            let gone = if account.is_gone { " gone" } else { "" };
            format!("{name} {} {}{gone}", account.group, account.backend[0].id)
        });
        (groups.collect(), accounts.collect())
    }

    #[test]
    fn places_are_for_ever() {
        let both = |a: &str, b: &str| format!("{a}{b}");
        let first = Snapshot::new(config(
            &both(&group("a", "p", &["r", "s"]), &group("b", "p", &[])),
            &[U, V],
        ));
        assert_eq!(
            shown(&first),
            (
                vec!["a p:1@0 [r:1@1 s:1@2]".to_owned(), "b p:1@3 []".to_owned()],
                vec!["u 0 0".to_owned(), "v 0 1".to_owned()]
            )
        );
        // Another order, a host less, one more, a group and an account less.
        let second = first
            .next(
                config(&group("a", "r", &["t", "p"]), &[V]),
                &Seen::default(),
            )
            .unwrap();
        assert_eq!(
            shown(&second),
            (
                vec![
                    "a r:1@1 [t:1@4 p:1@0]".to_owned(),
                    "b none [] gone".to_owned()
                ],
                vec!["u 0 0 gone".to_owned(), "v 0 1".to_owned()]
            )
        );
        let gone: Vec<bool> = second.hosts.iter().map(|host| host.is_gone).collect();
        assert_eq!(gone, [false, false, true, true, false]);
        assert_eq!(
            (second.version, second.account(b"u"), second.account(b"v")),
            (2, None, Some(1))
        );
        assert!(!second.has_backend(0) && second.has_backend(1) && !second.has_backend(2));
        // Back again: all at their places, and nothing grew.
        let third = second
            .next(
                config(
                    &both(&group("b", "p", &[]), &group("a", "p", &["s", "r"])),
                    &[V, "name = \"u\"\npassword = \"y\"\ngroup = \"b\""],
                ),
                &Seen::default(),
            )
            .unwrap();
        assert_eq!(
            shown(&third),
            (
                vec!["a p:1@0 [s:1@2 r:1@1]".to_owned(), "b p:1@3 []".to_owned()],
                // Another password makes other connections.
                vec!["u 1 2".to_owned(), "v 0 1".to_owned()]
            )
        );
        assert_eq!(third.hosts.len(), 5);
    }

    #[test]
    fn a_host_that_is_primary_and_replica_is_one() {
        let snapshot = Snapshot::new(config(&group("a", "p", &["p", "r"]), &[U]));
        assert_eq!(shown(&snapshot).0, ["a p:1@0 [p:1@0 r:1@1]"]);
        let members: Vec<HostId> = snapshot.groups[0].members().collect();
        assert_eq!(members, [HostId(0), HostId(1)]);
    }

    #[test]
    fn roles_go_before_the_configuration() {
        let first = Snapshot::new(config(&group("a", "p", &["r", "s"]), &[U]));
        let address = |name: &str| HostAddress::Name(name.to_owned(), 1);
        let with = |primary: Option<&str>, fenced: &[&str]| {
            let roles = GroupRoles {
                primary: primary.map(address),
                fenced: fenced.iter().map(|name| address(name)).collect(),
            };
            let seen = Seen {
                roles: [("a".to_owned(), roles)].into(),
                ..Seen::default()
            };
            let next = first.next(first.config.clone(), &seen).unwrap();
            assert!(next.groups[0].primary.is_none_or(|host| next.leads(host)));
            shown(&next).0[0].clone()
        };
        assert_eq!(with(Some("s"), &[]), "a s:1@2 [p:1@0 r:1@1]");
        assert_eq!(with(Some("s"), &["p"]), "a s:1@2 [r:1@1]");
        assert_eq!(with(None, &[]), "a none [p:1@0 r:1@1 s:1@2]");
        assert_eq!(with(Some("elsewhere"), &[]), "a none [p:1@0 r:1@1 s:1@2]");
        assert_eq!(with(Some("p"), &["r", "s"]), "a p:1@0 []");
    }
}
