//! The immutable bundle that workers read: configuration compiled into accounts, groups and hosts with keys.
//! Built by control, shared by workers; holds no state of servers (see `pool::Hosts`).

use std::collections::HashMap;
use std::sync::Arc;

use crate::auth::{Plugin, Secret};
use crate::config::{self, Causal, Config, HostAddress, NoReplica, ReadFrom};
use crate::pool::HostId;

/// See the module's words.
#[derive(Debug)]
pub struct Snapshot {
    /// The configuration it was made from.
    pub config: Config,
    /// Accounts, in the order of the file.
    pub accounts: Vec<Account>,
    /// Groups, in the order of the file.
    pub groups: Vec<Group>,
    /// Hosts of all groups.
    pub hosts: Vec<HostEntry>,
    by_name: HashMap<Vec<u8>, usize>,
}

/// Whom a client may be.
#[derive(Debug)]
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
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The primary's key.
    pub primary: HostId,
    /// The replicas' keys and weights.
    pub replicas: Vec<(HostId, u32)>,
    /// What a read does without a replica.
    pub no_replica: NoReplica,
}

/// A host.
#[derive(Debug)]
pub struct HostEntry {
    /// Where it listens.
    pub address: HostAddress,
    /// The group it belongs to, an index into [`Snapshot::groups`].
    pub group: usize,
}

impl Snapshot {
    /// Compiles a checked configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut hosts = Vec::new();
        let mut add = |address: &HostAddress, group: usize| {
            let id = HostId(u16::try_from(hosts.len()).unwrap_or(u16::MAX));
            hosts.push(HostEntry {
                address: address.clone(),
                group,
            });
            id
        };
        let groups = config
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| Group {
                name: group.name.clone(),
                primary: add(&group.primary.address, index),
                replicas: group
                    .replicas
                    .iter()
                    .map(|r| (add(&r.address, index), r.weight))
                    .collect(),
                no_replica: group.no_replica,
            })
            .collect();
        let mut known = Vec::new();
        let accounts: Vec<Account> = config
            .users
            .iter()
            .map(|user| account(user, &mut known))
            .collect();
        let by_name = accounts
            .iter()
            .enumerate()
            .map(|(i, a)| (a.name.clone(), i))
            .collect();
        Self {
            config,
            accounts,
            groups,
            hosts,
            by_name,
        }
    }

    /// The account of this name, if there is one.
    #[must_use]
    pub fn account(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
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

/// Accounts on servers that were seen so far, by name and passwords.
type Seen<'c> = Vec<(&'c str, &'c [Secret])>;

fn account<'c>(user: &'c config::UserConfig, seen: &mut Seen<'c>) -> Account {
    let backend = &user.backend;
    Account {
        name: user.name.clone().into(),
        passwords: user.passwords.clone().into(),
        group: user.group,
        schema: user.schema.clone().map(Into::into),
        read_from: user.read_from,
        backend: [
            backend_account(&backend.user, &backend.passwords, seen),
            backend_account(&backend.read_user, &backend.read_passwords, seen),
        ],
        causal: user.causal,
        shares: user.sharing == config::Sharing::Transaction,
    }
}

fn backend_account<'c>(
    user: &'c str,
    passwords: &'c [Secret],
    seen: &mut Seen<'c>,
) -> BackendAccount {
    let same = |(name, secrets): &(&str, &[Secret])| {
        *name == user
            && secrets.len() == passwords.len()
            && secrets.iter().zip(passwords).all(|(a, b)| a == b)
    };
    let place = seen.iter().position(same).unwrap_or_else(|| {
        seen.push((user, passwords));
        seen.len() - 1
    });
    BackendAccount {
        id: u16::try_from(place).unwrap_or(u16::MAX),
        user: user.as_bytes().to_vec(),
        passwords: passwords.to_vec().into(),
    }
}
