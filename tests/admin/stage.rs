//! The fixture: a bed, an Atlas with an admin port in front of it, and an operator's connection.

use std::net::SocketAddr;

use super::common::{Atlas, Bed, Config, Kind, Login, Wire, config_for};

pub(crate) const OPERATOR: &str = "boss";
pub(crate) const VIEWER: &str = "eye";
pub(crate) const PASSWORD: &str = "admin-pw";

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) atlas: Atlas,
    pub(crate) bed: Bed,
    pub(crate) admin: SocketAddr,
}

impl Stage {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, |config| config)
    }

    pub(crate) fn with(kind: Kind, change: impl FnOnce(Config) -> Config) -> Self {
        Self::on(Bed::of(kind), change)
    }

    /// On a given bed.
    pub(crate) fn on(bed: Bed, change: impl FnOnce(Config) -> Config) -> Self {
        let config = change(config_for(&bed))
            .server("admin_listen = \"127.0.0.1:0\"")
            .append(&format!(
                "[admin]\nusers = [{{ name = \"{OPERATOR}\", password = \"{PASSWORD}\", role = \"operator\" }}, {{ name = \"{VIEWER}\", password = \"{PASSWORD}\" }}]"
            ));
        let atlas = Atlas::start(config);
        let admin = admin_of(&atlas.log()).expect("the log names the port");
        Self { atlas, bed, admin }
    }

    pub(crate) fn operator(&self) -> Wire {
        Wire::connect(self.admin, &Login::new(OPERATOR, PASSWORD))
    }

    pub(crate) fn viewer(&self) -> Wire {
        Wire::connect(self.admin, &Login::new(VIEWER, PASSWORD))
    }

    pub(crate) fn client(&self) -> Wire {
        Wire::connect(self.atlas.address(), &Login::plain())
    }
}

/// The address of the port, from the log that names it.
fn admin_of(log: &str) -> Option<SocketAddr> {
    let (before, _) = log.split_once(" (admin port)")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// The rows of a table as texts, NULL for none.
pub(crate) fn rows(wire: &mut Wire, command: &str) -> Vec<Vec<String>> {
    let reply = wire.ok(command);
    let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    reply
        .rows()
        .into_iter()
        .map(|row| row.into_iter().map(text).collect())
        .collect()
}

/// The names of a table's columns.
pub(crate) fn columns(wire: &mut Wire, command: &str) -> Vec<String> {
    let reply = wire.ok(command);
    let definitions = reply
        .packets
        .iter()
        .filter(|packet| packet.part == super::common::Part::Column);
    definitions
        .map(|packet| {
            let column = atlas::wire::ColumnDef::parse(&packet.payload, reply.capabilities)
                .expect("a column");
            String::from_utf8(column.name.to_vec()).expect("UTF-8")
        })
        .collect()
}

/// The text of the error that a command gets.
pub(crate) fn error(wire: &mut Wire, command: &str) -> (u16, String, String) {
    wire.query(command)
        .error()
        .unwrap_or_else(|| panic!("{command} is done"))
}
