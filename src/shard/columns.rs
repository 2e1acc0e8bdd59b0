//! The columns of tables whose INSERTs do not name them, as a server told them.
//!
//! The statement is sent with their names: where the table was changed meanwhile, by another way than through Atlas, the server says that
//! a column is not there, or puts each value where it belongs, and never is the shard chosen by one column and the row made by another.
//!
//! They are forgotten when a definition is changed through Atlas, when a server says that a column is not there or that there are too
//! many values, and after a while: other ways of changing a table are not seen.

use std::collections::BTreeMap;
use std::time::Duration;

use super::map::Table;

/// So long they are believed.
const LIFETIME: Duration = Duration::from_secs(1);

/// The columns of a table, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// The names of those that an INSERT gives values to even if it does not name them.
    names: Vec<Vec<u8>>,
    /// The types of all, by name.
    types: Vec<(Vec<u8>, Vec<u8>)>,
}

impl TableColumns {
    /// The column of this name.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let is_it = |column: &Vec<u8>| column.eq_ignore_ascii_case(name.as_bytes());
        self.names.iter().position(is_it)
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The type of the column of this name, as SHOW COLUMNS has it; nothing for one that is not there.
    #[must_use]
    pub fn type_of(&self, name: &str) -> Option<&[u8]> {
        let mut types = self.types.iter();
        let found = types.find(|(column, _)| column.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, of)| of.as_slice())
    }
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Columns {
    /// By schema and name, for each sharded table.
    known: BTreeMap<(String, String), (TableColumns, Duration)>,
}

impl Columns {
    /// Those of a table.
    #[must_use]
    pub fn of(&self, table: &Table) -> Option<&TableColumns> {
        let key = (table.schema.clone(), table.name.clone());
        self.known.get(&key).map(|(columns, _)| columns)
    }

    /// Takes rows of SHOW COLUMNS in: name, type and last column of each. False when they tell of no column.
    pub fn note<'r>(
        &mut self,
        table: &Table,
        rows: impl Iterator<Item = (&'r [u8], &'r [u8], &'r [u8])>,
        now: Duration,
    ) -> bool {
        let is_hidden = |extra: &[u8]| {
            let word = b"invisible";
            extra
                .windows(word.len())
                .any(|w| w.eq_ignore_ascii_case(word))
        };
        let mut columns = TableColumns::default();
        for (name, of, extra) in rows {
            columns.types.push((name.to_vec(), of.to_vec()));
            if !is_hidden(extra) {
                columns.names.push(name.to_vec());
            }
        }
        if columns.is_empty() {
            return false;
        }
        let key = (table.schema.clone(), table.name.clone());
        self.known.insert(key, (columns, now));
        true
    }

    /// Forgets what is too old.
    pub fn expire(&mut self, now: Duration) {
        let is_fresh = |told: Duration| now.saturating_sub(told) < LIFETIME;
        self.known.retain(|_, (_, told)| is_fresh(*told));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}
