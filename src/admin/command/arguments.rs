//! Commands with something of the operator's choice in them: servers, weights, networks, accounts, clients.

use super::super::table::Refusal;
use super::super::words::Word;
use super::{BackendRef, Command, State};
use crate::config::{HostAddress, host_address};

/// A command with something of the operator's choice in it.
pub(super) fn command(words: &[Word<'_>]) -> Option<Result<Command, Refusal>> {
    let (first, rest) = words.split_first()?;
    let second = rest.first();
    let is = |keyword: &str| second.is_some_and(|word| word.is(keyword));
    let arguments = rest.get(1..).unwrap_or_default();
    if first.is("set") {
        let state = match second? {
            word if word.is("offline") => State::Offline,
            word if word.is("online") => State::Online,
            word if word.is("weight") => return Some(weight(arguments)),
            // `SET xyz n`, which the original knew for a slip; other SETs are drivers'.
            Word::Bare(_) => match arguments {
                [Word::Bare(id)] if id.bytes().all(|b| b.is_ascii_digit()) => {
                    return Some(Err(Refusal::new("invalid operation")));
                }
                _ => return None,
            },
            _ => return None,
        };
        return Some(match arguments {
            [backend] => backend_ref(*backend, "backend id is not exsit")
                .map(|backend| Command::SetState(backend, state)),
            _ => Err(needs("SET OFFLINE or ONLINE", "one backend_ndx or address")),
        });
    }
    if first.is("add") {
        return Some(match (second?, arguments) {
            (kind, [address]) if kind.is("master") || kind.is("slave") => {
                add(None, kind.is("master"), *address)
            }
            (kind, [group, address]) if kind.is("gmaster") || kind.is("gslave") => {
                add(group.text(), kind.is("gmaster"), *address)
            }
            (kind, [client]) if kind.is("client") => {
                text_of(*client, "ADD CLIENT").map(Command::AddClient)
            }
            (kind, _) if kind.is("master") || kind.is("slave") => Err(needs(
                "ADD MASTER or SLAVE",
                "one address, such as 10.0.0.1:3306@2",
            )),
            (kind, _) if kind.is("gmaster") || kind.is("gslave") => {
                Err(needs("ADD GMASTER or GSLAVE", "a group and an address"))
            }
            (kind, _) if kind.is("client") => Err(needs("ADD CLIENT", "one address or network")),
            _ => return None,
        });
    }
    if first.is("remove") {
        return Some(match (second?, arguments) {
            (kind, [backend]) if kind.is("backend") => remove(None, *backend),
            (kind, [group, backend]) if kind.is("gbackend") => remove(group.text(), *backend),
            (kind, [client]) if kind.is("client") => {
                text_of(*client, "REMOVE CLIENT").map(Command::RemoveClient)
            }
            (kind, [name]) if kind.is("pwd") => {
                text_of(*name, "REMOVE PWD").map(Command::RemoveAccount)
            }
            (kind, _) if kind.is("backend") => {
                Err(needs("REMOVE BACKEND", "one backend_ndx or address"))
            }
            (kind, _) if kind.is("gbackend") => Err(needs(
                "REMOVE GBACKEND",
                "a group and a backend_ndx or address",
            )),
            (kind, _) if kind.is("client") || kind.is("pwd") => Err(needs("REMOVE", "one name")),
            _ => return None,
        });
    }
    if first.is("switch") && is("primary") {
        return Some(match arguments {
            [group, to, address] if to.is("to") => switch(group.text(), *address),
            _ => Err(needs(
                "SWITCH PRIMARY",
                "a group and a server: SWITCH PRIMARY group TO address",
            )),
        });
    }
    if first.is("kill") {
        return Some(kill(rest));
    }
    None
}

fn needs(command: &str, what: &str) -> Refusal {
    Refusal::new(format!("{command} needs {what}"))
}

fn weight(arguments: &[Word<'_>]) -> Result<Command, Refusal> {
    let [backend, weight] = arguments else {
        return Err(needs(
            "SET WEIGHT",
            "a backend_ndx or address, and a weight",
        ));
    };
    let backend = backend_ref(*backend, "backend id is not exsit")?;
    Ok(Command::SetWeight(
        backend,
        weight_of(weight.text().unwrap_or_default())?,
    ))
}

fn weight_of(text: &str) -> Result<u32, Refusal> {
    text.parse()
        .ok()
        .filter(|weight| (1..=1000).contains(weight))
        .ok_or_else(|| {
            Refusal::new(format!(
                "`{text}` is no weight: those are 1 to 1000; SET OFFLINE takes a server's work away"
            ))
        })
}

fn address_of(text: &str) -> Result<HostAddress, Refusal> {
    host_address(text).map_err(Refusal::new)
}

/// By number or address. A number that cannot be one is told in the original's words.
fn backend_ref(word: Word<'_>, no_such: &str) -> Result<BackendRef, Refusal> {
    let text = word.text().unwrap_or_default();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse() {
            Ok(id) => Ok(BackendRef::Id(id)),
            Err(_) => Err(Refusal::new(no_such)),
        };
    }
    if text.starts_with('-') {
        return Err(Refusal::new(no_such));
    }
    address_of(text).map(BackendRef::Address)
}

fn add(group: Option<&str>, is_primary: bool, address: Word<'_>) -> Result<Command, Refusal> {
    let text = address.text().unwrap_or_default();
    let (address, weight) = match text.rsplit_once('@') {
        Some((address, weight)) => (address, weight_of(weight)?),
        None => (text, 1),
    };
    Ok(Command::AddBackend {
        group: group.map(str::to_owned),
        is_primary,
        address: address_of(address)?,
        weight,
    })
}

fn remove(group: Option<&str>, backend: Word<'_>) -> Result<Command, Refusal> {
    Ok(Command::RemoveBackend {
        group: group.map(str::to_owned),
        backend: backend_ref(backend, "invalid backend_id")?,
    })
}

fn switch(group: Option<&str>, address: Word<'_>) -> Result<Command, Refusal> {
    Ok(Command::SwitchPrimary {
        group: group.unwrap_or_default().to_owned(),
        to: address_of(address.text().unwrap_or_default())?,
    })
}

fn text_of(word: Word<'_>, command: &str) -> Result<String, Refusal> {
    match word.text() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err(needs(command, "a name")),
    }
}

fn kill(arguments: &[Word<'_>]) -> Result<Command, Refusal> {
    let (query_only, id) = match arguments {
        [id] if !id.is("query") && !id.is("connection") => (false, id),
        [what, id] if what.is("connection") => (false, id),
        [what, id] if what.is("query") => (true, id),
        _ => return Err(needs("KILL", "a client's id: KILL [QUERY] id")),
    };
    let text = id.text().unwrap_or_default();
    match text.parse() {
        Ok(id) => Ok(Command::Kill { id, query_only }),
        Err(_) => Err(Refusal::with(
            1094,
            *b"HY000",
            format!("Unknown thread id: {text}"),
        )),
    }
}
