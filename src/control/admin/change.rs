//! Commands that change what is in force: servers, networks, accounts. What is written in the configuration is changed in its text,
//! which `SAVE CONFIG` writes to the file; the desk puts the whole in force, or nothing.

use super::reports::{self, Backend};
use crate::admin::{BackendRef, Refusal, State, Table, edit};
use crate::auth::{Secret, legacy_password};
use crate::config::{HostAddress, Topology};
use crate::control::{Applied, Desk, Refused, encrypt};
use crate::worker::Live;

/// A change of the text, as an answer.
fn changed(outcome: Result<Applied, Refused>) -> Result<Table, Refusal> {
    match outcome {
        Ok(_) => Ok(Table::status()),
        Err(refused) => Err(refusal(&refused)),
    }
}

fn refusal(refused: &Refused) -> Refusal {
    // In one line, as clients show it.
    let text = refused.to_string();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains(": note: ") && !line.contains(": warning: "))
        .collect();
    Refusal::new(lines.join("; "))
}

/// The group that a command is about: the only one, unless it is named.
pub(super) fn group(live: &Live, name: Option<&str>) -> Result<String, Refusal> {
    let names: Vec<&str> = live
        .snapshot
        .groups
        .iter()
        .filter(|group| !group.is_gone)
        .map(|group| group.name.as_str())
        .collect();
    match (name, &names[..]) {
        (Some(name), _) if names.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Refusal::new(format!(
            "there is no group {name}: the groups are {}",
            names.join(", ")
        ))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Refusal::new(format!(
            "there are several groups ({}): say which, as in ADD GSLAVE {} 10.0.0.1:3306",
            names.join(", "),
            names.first().unwrap_or(&"main")
        ))),
    }
}

/// The servers that are meant; by an address these may be several, one in each group.
fn find<'l>(
    live: &'l Live,
    wanted: &BackendRef,
    no_such: &str,
) -> Result<Vec<Backend<'l>>, Refusal> {
    let is_wanted = |backend: &Backend<'_>| match wanted {
        BackendRef::Id(id) => usize::try_from(*id) == Ok(backend.number()),
        BackendRef::Address(address) => backend.address == address,
    };
    let found: Vec<_> = reports::all(live).into_iter().filter(is_wanted).collect();
    if found.is_empty() {
        return Err(Refusal::new(no_such));
    }
    Ok(found)
}

/// The same where one is needed.
fn find_one<'l>(
    live: &'l Live,
    group: Option<&str>,
    wanted: &BackendRef,
    no_such: &str,
) -> Result<Backend<'l>, Refusal> {
    let mut found = find(live, wanted, no_such)?;
    if let Some(group) = group {
        found.retain(|backend| backend.group == group);
    }
    match found.len() {
        0 => Err(Refusal::new(no_such)),
        1 => found.pop().ok_or_else(|| Refusal::new(no_such)),
        _ => Err(Refusal::new(
            "several groups have a server at this address: give its backend_ndx",
        )),
    }
}

const NO_SUCH: &str = "backend id is not exsit";

/// `SET OFFLINE`, `SET ONLINE`: the original answers with the server's row.
pub(super) fn set_state(
    desk: &Desk,
    live: &Live,
    who: &str,
    wanted: &BackendRef,
    state: State,
) -> Result<Table, Refusal> {
    let found = find(live, wanted, NO_SUCH)?;
    let numbers: Vec<String> = found
        .iter()
        .map(|backend| backend.number().to_string())
        .collect();
    for backend in &found {
        desk.set_offline(who, backend.host, state == State::Offline);
    }
    let mut table = reports::backends(live);
    table.retain(|row| {
        let number = row.first().cloned().flatten();
        number.is_some_and(|number| numbers.contains(&number))
    });
    Ok(table)
}

/// `ADD SLAVE`. One that is there already is no mistake, as in the original.
pub(super) fn add_replica(
    desk: &Desk,
    live: &Live,
    who: &str,
    group: &str,
    address: &HostAddress,
    weight: u32,
) -> Result<Table, Refusal> {
    let is_there = live
        .snapshot
        .config
        .groups
        .iter()
        .filter(|known| known.name == group)
        .any(|known| {
            known
                .replicas
                .iter()
                .any(|replica| replica.address == *address)
        });
    if is_there {
        return Ok(Table::status());
    }
    let what = format!("replica {address} was added to group {group}");
    changed(desk.change(who, &what, |text| {
        edit::add_replica(text, group, address, weight)
    }))
}

/// `ADD MASTER`. A group has one primary: another takes its place when an operator has taken that out.
pub(super) fn add_primary(
    desk: &Desk,
    live: &Live,
    who: &str,
    group: &str,
    address: &HostAddress,
) -> Result<Table, Refusal> {
    let backends = reports::all(live);
    let primary = backends
        .iter()
        .find(|backend| backend.group == group && backend.is_primary());
    match primary {
        Some(primary) if primary.address == address => Ok(Table::status()),
        Some(primary) if !live.hosts.get(primary.host).is_offline() => Err(Refusal::new(format!(
            "group {group} has a primary, {}: ADD SLAVE {address}, then SWITCH PRIMARY {group} TO {address}; or SET OFFLINE {} first",
            primary.address,
            primary.number()
        ))),
        _ => {
            let what = format!("{address} is the primary of group {group}");
            changed(desk.change(who, &what, |text| edit::set_primary(text, group, address)))
        }
    }
}

/// `REMOVE BACKEND`, `REMOVE GBACKEND`.
pub(super) fn remove(
    desk: &Desk,
    live: &Live,
    who: &str,
    group: Option<&str>,
    wanted: &BackendRef,
) -> Result<Table, Refusal> {
    let backend = find_one(live, group, wanted, "invalid backend_id")?;
    let (group, address) = (backend.group, backend.address);
    if is_configured_primary(live, group, address) {
        return Err(Refusal::new(format!(
            "{address} is the primary of group {group}: SWITCH PRIMARY {group} TO another server first"
        )));
    }
    let what = format!("replica {address} was removed from group {group}");
    changed(desk.change(who, &what, |text| {
        edit::remove_replica(text, group, address)
    }))
}

fn is_configured_primary(live: &Live, group: &str, address: &HostAddress) -> bool {
    let groups = &live.snapshot.config.groups;
    groups
        .iter()
        .any(|known| known.name == group && known.primary.address == *address)
}

/// `SET WEIGHT`.
pub(super) fn set_weight(
    desk: &Desk,
    live: &Live,
    who: &str,
    wanted: &BackendRef,
    weight: u32,
) -> Result<Table, Refusal> {
    let backend = find_one(live, None, wanted, NO_SUCH)?;
    let (group, address) = (backend.group, backend.address);
    if is_configured_primary(live, group, address) {
        return Err(Refusal::new(format!(
            "{address} is the primary of group {group}: weights are shares of the reads among replicas"
        )));
    }
    let what = format!("weight of {address} in group {group}");
    changed(desk.change(who, &what, |text| {
        edit::set_weight(text, group, address, weight)
    }))
}

/// `SWITCH PRIMARY`: both servers change their roles in one step.
pub(super) fn switch_primary(
    desk: &Desk,
    live: &Live,
    who: &str,
    name: &str,
    to: &HostAddress,
) -> Result<Table, Refusal> {
    let name = group(live, Some(name))?;
    let configured = live
        .snapshot
        .config
        .groups
        .iter()
        .find(|known| known.name == name);
    if configured.is_some_and(|known| known.topology == Topology::Follow) {
        return match desk.choose_primary(who, &name, to) {
            Ok(()) => Ok(Table::status()),
            Err(refused) => Err(Refusal::new(format!(
                "{refused} (topology = \"follow\": make {to} writable and the others read-only, and Atlas sees it)"
            ))),
        };
    }
    let backend = find_one(
        live,
        Some(&name),
        &BackendRef::Address(to.clone()),
        &format!("group {name} has no server {to}: ADD SLAVE {to} first"),
    )?;
    if backend.is_primary() {
        return Ok(Table::status());
    }
    let host = live.hosts.get(backend.host);
    if host.is_offline() || !host.is_up() {
        let state = reports::state(live, backend.host);
        return Err(Refusal::new(format!(
            "{to} is {state}: writes would have nowhere to go"
        )));
    }
    let what = format!("{to} is the primary of group {name}");
    changed(desk.change(who, &what, |text| edit::switch_primary(text, &name, to)))
}

/// `ADD CLIENT`.
pub(super) fn add_client(desk: &Desk, who: &str, client: &str) -> Result<Table, Refusal> {
    let what = format!("clients may come from {client}");
    changed(desk.change(who, &what, |text| edit::add_network(text, client)))
}

/// `REMOVE CLIENT`.
pub(super) fn remove_client(desk: &Desk, who: &str, client: &str) -> Result<Table, Refusal> {
    let what = format!("clients may not come from {client}");
    changed(desk.change(who, &what, |text| edit::remove_network(text, client)))
}

/// `ADD PWD`, `ADD ENPWD`. In the text, and so in the file, the password is encrypted whatever it was.
pub(super) fn add_account(
    desk: &Desk,
    live: &Live,
    who: &str,
    (name, password): (&str, &Secret),
    is_encrypted: bool,
    group: Option<&str>,
) -> Result<Table, Refusal> {
    let sealed = match (is_encrypted, std::str::from_utf8(password.expose())) {
        (true, Ok(text)) if text.starts_with("enc:v1:") => text.to_owned(),
        (true, Ok(text)) => match legacy_password(text) {
            Some(clear) => seal(live, &clear)?,
            None => return Err(Refusal::new("failed to decrypt")),
        },
        (true, Err(_)) => return Err(Refusal::new("failed to decrypt")),
        (false, _) => seal(live, password)?,
    };
    let what = format!("account {name} was added");
    changed(desk.change(who, &what, |text| {
        edit::add_account(text, name, &sealed, group)
    }))
}

/// The group of an account that is to be added, where there are several: the one that is named, or that of all accounts there are.
pub(super) fn group_of_account(
    live: &Live,
    named: Option<&str>,
) -> Result<Option<String>, Refusal> {
    if named.is_some() {
        return group(live, named).map(Some);
    }
    let config = &live.snapshot.config;
    if config.groups.len() < 2 {
        return Ok(None);
    }
    let mut groups = config.users.iter().map(|user| user.group);
    let first = groups.next();
    match first.and_then(|first| config.groups.get(first)) {
        Some(group) if groups.all(|other| Some(other) == first) => Ok(Some(group.name.clone())),
        _ => {
            let names: Vec<&str> = config.groups.iter().map(|group| &*group.name).collect();
            Err(Refusal::new(format!(
                "there are several groups ({}), and accounts of more than one: say which, as in ADD GPWD {} user:password",
                names.join(", "),
                names.first().unwrap_or(&"main")
            )))
        }
    }
}

fn seal(live: &Live, password: &Secret) -> Result<String, Refusal> {
    encrypt(password, &live.snapshot.config.server.key_file)
        .map(|(sealed, _)| sealed)
        .map_err(|why| Refusal::new(format!("failed to encrypt: {why}")))
}

/// `REMOVE PWD`.
pub(super) fn remove_account(desk: &Desk, who: &str, name: &str) -> Result<Table, Refusal> {
    let what = format!("account {name} was removed");
    changed(desk.change(who, &what, |text| edit::remove_account(text, name)))
}

/// `RELOAD CONFIG`: what differs.
pub(super) fn reload(desk: &Desk, who: &str, is_forced: bool) -> Result<Table, Refusal> {
    let applied = desk
        .reload(who, is_forced)
        .map_err(|refused| refusal(&refused))?;
    let mut table = Table::new(["key", "before", "after", "note"]);
    for difference in applied.differences {
        let note = difference
            .needs_restart
            .then_some("has an effect at the next start");
        table.push_row(vec![
            Some(difference.key),
            difference.before,
            difference.after,
            note.map(str::to_owned),
        ]);
    }
    Ok(table)
}
