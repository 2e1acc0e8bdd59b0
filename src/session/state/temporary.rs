//! Temporary tables, counted by name from CREATE to DROP.

use super::State;
use crate::route::Pins;
use crate::sql::TableName;

/// So many are counted by name; beyond, the pin stays until the session is reset.
const NAMES: usize = 64;

/// A schema and a table.
pub(super) type Name = (Vec<u8>, Vec<u8>);

impl State {
    pub(super) fn add_temporary(&mut self, table: TableName<'_>) {
        self.pins.set(Pins::TEMPORARY_TABLES);
        match self.resolve(table) {
            Some(table) if self.temporary.len() < NAMES => {
                if !self.temporary.contains(&table) {
                    self.temporary.push(table);
                }
            }
            _ => self.temporary_uncounted = true,
        }
    }

    pub(super) fn drop_temporary(&mut self, table: TableName<'_>) {
        let table = self.resolve(table);
        self.temporary.retain(|t| Some(t) != table.as_ref());
        if self.temporary.is_empty() && !self.temporary_uncounted {
            self.pins.clear(Pins::TEMPORARY_TABLES);
        }
    }

    /// A table's name with its schema, as written: where case does not matter to the server a pin may stay for nothing.
    fn resolve(&self, table: TableName<'_>) -> Option<Name> {
        let current = self.schema.as_deref().filter(|_| !self.schema_unknown);
        let schema = table.schema.or(current)?;
        Some((schema.to_vec(), table.name.to_vec()))
    }
}
