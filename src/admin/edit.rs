//! What commands change in the text of the configuration. Everything else in the text stays as it was written: order, comments,
//! blanks. Whether the result is right as a whole is for whoever puts it in force to check.
//!
//! Lists may stand in the text in either of TOML's ways, `[[groups]]` or `groups = [{ … }]`.

use toml_edit::{
    Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value,
};

use crate::config::{HostAddress, host_address, network};

/// The text after a change, or why it cannot be made.
pub type Edited = Result<String, String>;

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>()
        .map_err(|error| format!("the configuration cannot be read: {error}"))
}

/// The tables of a list, in either way of writing.
fn tables<'d>(within: &'d mut dyn TableLike, name: &str) -> Vec<&'d mut dyn TableLike> {
    match within.get_mut(name) {
        Some(Item::ArrayOfTables(list)) => list
            .iter_mut()
            .map(|table| table as &mut dyn TableLike)
            .collect(),
        Some(Item::Value(Value::Array(list))) => list
            .iter_mut()
            .filter_map(Value::as_inline_table_mut)
            .map(|table| table as &mut dyn TableLike)
            .collect(),
        _ => Vec::new(),
    }
}

fn text_of<'t>(table: &'t dyn TableLike, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Item::as_str)
}

fn is_named(table: &dyn TableLike, name: &str) -> bool {
    text_of(table, "name") == Some(name)
}

fn group<'d>(doc: &'d mut DocumentMut, name: &str) -> Result<&'d mut dyn TableLike, String> {
    tables(doc.as_table_mut(), "groups")
        .into_iter()
        .find(|group| is_named(*group, name))
        .ok_or_else(|| format!("there is no group {name}"))
}

fn is_address(text: Option<&str>, wanted: &HostAddress) -> bool {
    text.and_then(|text| host_address(text).ok()).as_ref() == Some(wanted)
}

/// Whether an entry of `replicas`, an address alone or a table, is this server.
fn is_replica(entry: &Value, wanted: &HostAddress) -> bool {
    let text = match entry {
        Value::InlineTable(table) => text_of(table, "address"),
        other => other.as_str(),
    };
    is_address(text, wanted)
}

/// Adds a replica to a group.
///
/// # Errors
/// There is no such group.
pub fn add_replica(text: &str, name: &str, address: &HostAddress, weight: u32) -> Edited {
    let mut doc = parse(text)?;
    let group = group(&mut doc, name)?;
    put_replica(group, address, weight);
    Ok(doc.to_string())
}

fn put_replica(group: &mut dyn TableLike, address: &HostAddress, weight: u32) {
    if let Some(Item::ArrayOfTables(list)) = group.get_mut("replicas") {
        let mut table = Table::new();
        table.insert("address", value(address.to_string()));
        if weight != 1 {
            table.insert("weight", value(i64::from(weight)));
        }
        list.push(table);
        return;
    }
    let mut entry = InlineTable::new();
    entry.insert("address", address.to_string().into());
    if weight != 1 {
        entry.insert("weight", i64::from(weight).into());
    }
    match group.get_mut("replicas") {
        Some(Item::Value(Value::Array(list))) => push(list, entry.into()),
        _ => {
            let mut list = Array::new();
            list.push(entry);
            group.insert("replicas", value(list));
        }
    }
}

/// What stands before an entry: what is left of the line before, which is about the entry before, and its own lines.
fn prefix(entry: &Value) -> String {
    let prefix = entry.decor().prefix().and_then(|raw| raw.as_str());
    prefix.unwrap_or_default().to_owned()
}

/// Cuts a text before its first end of line.
fn at_line_end(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').unwrap_or(text.len()))
}

/// Adds to a list as its last entry stands: on a line of its own where those have lines of their own.
fn push(list: &mut Array, mut entry: Value) {
    let before = match list.iter().last().map(prefix) {
        None => String::new(),
        Some(last) => match last.rsplit_once('\n') {
            // Comments before the last entry are about that one.
            Some((_, indent)) => format!("\n{indent}"),
            None => " ".to_owned(),
        },
    };
    let trailing = list.trailing().as_str().unwrap_or_default().to_owned();
    let (comment, rest) = at_line_end(&trailing);
    entry
        .decor_mut()
        .set_prefix(format!("{}{before}", comment.trim_end()));
    list.set_trailing(rest);
    list.push_formatted(entry);
}

/// Takes entries out of a list, with the comments about them. True when there was one.
fn take_out(list: &mut Array, is_it: impl Fn(&Value) -> bool) -> bool {
    let mut found = false;
    loop {
        let place = list.iter().position(&is_it);
        let Some(at) = place else {
            return found;
        };
        found = true;
        let gone = prefix(&list.remove(at));
        let rest_of_line = at_line_end(&gone).0;
        match list.get_mut(at) {
            Some(next) => {
                let own = prefix(next);
                let joined = match own.find('\n') {
                    Some(_) => format!("{rest_of_line}{}", at_line_end(&own).1),
                    None => gone.clone(),
                };
                next.decor_mut().set_prefix(joined);
            }
            None if gone.contains('\n') => {
                let trailing = list.trailing().as_str().unwrap_or_default().to_owned();
                list.set_trailing(format!("{rest_of_line}{}", at_line_end(&trailing).1));
            }
            None => {}
        }
    }
}

/// Takes a replica out of a group.
///
/// # Errors
/// There is no such group, or it has no such replica.
pub fn remove_replica(text: &str, name: &str, address: &HostAddress) -> Edited {
    let mut doc = parse(text)?;
    let group = group(&mut doc, name)?;
    let removed = match group.get_mut("replicas") {
        Some(Item::Value(Value::Array(list))) => take_out(list, |entry| is_replica(entry, address)),
        Some(Item::ArrayOfTables(list)) => {
            let before = list.len();
            list.retain(|table| !is_address(text_of(table, "address"), address));
            list.len() < before
        }
        _ => false,
    };
    if removed {
        Ok(doc.to_string())
    } else {
        Err(format!("group {name} has no replica {address}"))
    }
}

/// Changes a replica's weight.
///
/// # Errors
/// There is no such group, or it has no such replica.
pub fn set_weight(text: &str, name: &str, address: &HostAddress, weight: u32) -> Edited {
    let mut doc = parse(text)?;
    let group = group(&mut doc, name)?;
    let weight = i64::from(weight);
    let mut found = false;
    match group.get_mut("replicas") {
        Some(Item::Value(Value::Array(list))) => {
            for entry in list.iter_mut().filter(|entry| is_replica(entry, address)) {
                found = true;
                if let Value::InlineTable(table) = entry {
                    set(table, "weight", weight.into());
                    continue;
                }
                let mut table = InlineTable::new();
                table.insert("address", address.to_string().into());
                table.insert("weight", weight.into());
                let decor = entry.decor().clone();
                *entry = Value::InlineTable(table);
                *entry.decor_mut() = decor;
            }
        }
        Some(Item::ArrayOfTables(list)) => {
            for table in list.iter_mut() {
                if is_address(text_of(table, "address"), address) {
                    found = true;
                    set(table, "weight", weight.into());
                }
            }
        }
        _ => {}
    }
    if found {
        Ok(doc.to_string())
    } else {
        Err(format!("group {name} has no replica {address}"))
    }
}

/// Puts a value in place of another, with the comment that stands behind that.
fn set(table: &mut dyn TableLike, key: &str, mut new: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => {
            table.insert(key, Item::Value(new));
        }
    }
}

/// Gives a group another primary. One that was a replica is no longer listed as one.
///
/// # Errors
/// There is no such group.
pub fn set_primary(text: &str, name: &str, address: &HostAddress) -> Edited {
    let without = remove_replica(text, name, address);
    let mut doc = parse(without.as_deref().unwrap_or(text))?;
    let group = group(&mut doc, name)?;
    set(group, "primary", address.to_string().into());
    Ok(doc.to_string())
}

/// Lets a replica and the primary of a group change places; the one before gets the other's place in the list, and its weight.
///
/// # Errors
/// There is no such group, or it has no such replica.
pub fn switch_primary(text: &str, name: &str, to: &HostAddress) -> Edited {
    let mut doc = parse(text)?;
    let group = group(&mut doc, name)?;
    let before = text_of(group, "primary").unwrap_or_default().to_owned();
    let mut found = false;
    // One that is listed as a replica as well already stays listed once.
    let is_listed = host_address(&before).is_ok_and(|before| has_replica(group, &before));
    match group.get_mut("replicas") {
        Some(Item::Value(Value::Array(list))) => {
            for entry in list.iter_mut().filter(|entry| is_replica(entry, to)) {
                found = true;
                if is_listed {
                    continue;
                }
                if let Value::InlineTable(table) = entry {
                    set(table, "address", before.as_str().into());
                } else {
                    let decor = entry.decor().clone();
                    *entry = before.as_str().into();
                    *entry.decor_mut() = decor;
                }
            }
        }
        Some(Item::ArrayOfTables(list)) => {
            for table in list.iter_mut() {
                if is_address(text_of(table, "address"), to) {
                    found = true;
                    if !is_listed {
                        set(table, "address", before.as_str().into());
                    }
                }
            }
        }
        _ => {}
    }
    if !found {
        return Err(format!("group {name} has no replica {to}"));
    }
    set(group, "primary", to.to_string().into());
    Ok(doc.to_string())
}

fn has_replica(group: &dyn TableLike, address: &HostAddress) -> bool {
    match group.get("replicas") {
        Some(Item::Value(Value::Array(list))) => {
            list.iter().any(|entry| is_replica(entry, address))
        }
        Some(Item::ArrayOfTables(list)) => list
            .iter()
            .any(|table| is_address(text_of(table, "address"), address)),
        _ => false,
    }
}

/// Adds a network to those that may connect.
///
/// # Errors
/// It is none, or it is there.
pub fn add_network(text: &str, client: &str) -> Edited {
    let wanted = network(client)?;
    let mut doc = parse(text)?;
    let server = doc
        .entry("server")
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_like_mut()
        .ok_or("`server` is no table")?;
    match server.get_mut("client_networks") {
        Some(Item::Value(Value::Array(list))) => {
            let is_there = list
                .iter()
                .filter_map(Value::as_str)
                .any(|known| network(known).ok() == Some(wanted));
            if is_there {
                return Err("this client is exist".to_owned());
            }
            push(list, client.into());
        }
        _ => {
            let mut list = Array::new();
            list.push(client);
            server.insert("client_networks", value(list));
        }
    }
    Ok(doc.to_string())
}

/// Takes a network from those that may connect.
///
/// # Errors
/// It is not there.
pub fn remove_network(text: &str, client: &str) -> Edited {
    let wanted = network(client).ok();
    let mut doc = parse(text)?;
    let list = doc
        .get_mut("server")
        .and_then(Item::as_table_like_mut)
        .and_then(|server| server.get_mut("client_networks"))
        .and_then(Item::as_array_mut);
    let removed = list.is_some_and(|list| {
        take_out(list, |known| {
            let text = known.as_str().unwrap_or_default();
            text == client || wanted.is_some() && network(text).ok() == wanted
        })
    });
    if removed {
        Ok(doc.to_string())
    } else {
        Err("this client is NOT exist".to_owned())
    }
}

/// Adds an account; `password` is as it stands in the file.
///
/// # Errors
/// It is there.
pub fn add_account(text: &str, name: &str, password: &str, group: Option<&str>) -> Edited {
    let mut doc = parse(text)?;
    if tables(doc.as_table_mut(), "users")
        .into_iter()
        .any(|user| is_named(user, name))
    {
        return Err("this user is exist".to_owned());
    }
    if let Some(Item::Value(Value::Array(list))) = doc.get_mut("users") {
        let mut entry = InlineTable::new();
        entry.insert("name", name.into());
        entry.insert("password", password.into());
        if let Some(group) = group {
            entry.insert("group", group.into());
        }
        push(list, entry.into());
        return Ok(doc.to_string());
    }
    let mut table = Table::new();
    table.insert("name", value(name));
    table.insert("password", value(password));
    if let Some(group) = group {
        table.insert("group", value(group));
    }
    let users = doc
        .entry("users")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let users = users
        .as_array_of_tables_mut()
        .ok_or("`users` is no list of tables")?;
    // Behind the account that is the last one now, wherever in the file that is.
    users.push(table);
    Ok(doc.to_string())
}

/// Takes an account out.
///
/// # Errors
/// It is not there.
pub fn remove_account(text: &str, name: &str) -> Edited {
    let mut doc = parse(text)?;
    let removed = match doc.get_mut("users") {
        Some(Item::ArrayOfTables(list)) => {
            let before = list.len();
            list.retain(|user| !is_named(user, name));
            list.len() < before
        }
        Some(Item::Value(Value::Array(list))) => take_out(list, |user| {
            user.as_inline_table()
                .is_some_and(|user| is_named(user, name))
        }),
        _ => false,
    };
    if removed {
        Ok(doc.to_string())
    } else {
        Err("this user is NOT exist".to_owned())
    }
}

#[cfg(test)]
mod tests;
