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

/// The names of a table's columns, in order, without those that an INSERT does not give values to unless it names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableColumns(Vec<Vec<u8>>);

impl TableColumns {
    /// The column of this name.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let is_it = |column: &Vec<u8>| column.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().position(is_it)
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

    /// Takes rows of SHOW COLUMNS in: name and last column of each. False when they tell of no column.
    pub fn note<'r>(
        &mut self,
        table: &Table,
        rows: impl Iterator<Item = (&'r [u8], &'r [u8])>,
        now: Duration,
    ) -> bool {
        let is_hidden = |extra: &[u8]| {
            let word = b"invisible";
            extra
                .windows(word.len())
                .any(|w| w.eq_ignore_ascii_case(word))
        };
        let seen = rows.filter(|(_, extra)| !is_hidden(extra));
        let columns = TableColumns(seen.map(|(name, _)| name.to_vec()).collect());
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
