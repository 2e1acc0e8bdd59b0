//! Names of tables on a group's servers, beside those that clients know: which differ, and how a query puts the one in the place of the
//! other.
//!
//! Not here: names in what servers answer, which are `dress`'s. Schemas, which have the names that clients know in every group that an
//! account has its unsharded tables in: no other is asked.

use super::map::Placement;
use crate::sql::{self, Dialect};

/// What is called otherwise in a group, or is not to be seen. Each with its schema.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// The first table there of a sharded one, and the name that clients know.
    tables: Vec<(&'a str, &'a str, &'a str)>,
    /// Tables that are no client's business.
    hidden: Vec<(&'a str, Vec<&'a str>)>,
    /// Sharded tables of which the group has none.
    pub(super) elsewhere: Vec<(&'a str, &'a str)>,
}

impl Placement {
    /// Whether clients know tables of a group by other names.
    pub(super) fn has_other_names(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| !self.names_in(*group).is_plain())
    }

    /// The names in a group that differ from those that clients know.
    pub(super) fn names_in(&self, group: usize) -> Names<'_> {
        let mut names = Names::default();
        for table in &self.tables {
            let schema = table.schema.as_str();
            let mut here = table.shards.iter().filter(|shard| shard.group == group);
            let Some(first) = here.next() else {
                names.elsewhere.push((schema, &table.name));
                names.hide(schema, &table.name);
                continue;
            };
            if first.name != table.name {
                names.tables.push((schema, &first.name, &table.name));
                names.hide(schema, &table.name);
            }
            for shard in here.filter(|shard| shard.name != first.name) {
                if shard.name != table.name {
                    names.hide(schema, &shard.name);
                }
            }
        }
        names
    }
}

impl<'a> Names<'a> {
    fn hide(&mut self, schema: &'a str, table: &'a str) {
        match self.hidden.iter_mut().find(|(known, _)| *known == schema) {
            Some((_, tables)) => tables.push(table),
            None => self.hidden.push((schema, vec![table])),
        }
    }

    /// All tables are called as clients call them.
    pub(super) fn is_plain(&self) -> bool {
        self.tables.is_empty() && self.hidden.is_empty()
    }

    /// What is called otherwise in one schema.
    pub(super) fn within(mut self, schema: &str) -> Self {
        self.tables.retain(|table| table.0 == schema);
        self.hidden.retain(|hidden| hidden.0 == schema);
        self.elsewhere.retain(|table| table.0 == schema);
        self
    }

    /// What clients call the table in this column, of the schema in that.
    pub(super) fn push_known(
        &self,
        sql: &mut Vec<u8>,
        (schema, column): (&str, &str),
        d: &Dialect,
    ) {
        if self.tables.is_empty() {
            sql.extend_from_slice(column.as_bytes());
            return;
        }
        sql.extend_from_slice(b"CASE");
        for (of, there, known) in &self.tables {
            sql.extend_from_slice(format!(" WHEN {schema} = ").as_bytes());
            sql::push_string(sql, of.as_bytes(), d);
            sql.extend_from_slice(format!(" AND {column} = ").as_bytes());
            sql::push_string(sql, there.as_bytes(), d);
            sql.extend_from_slice(b" THEN ");
            sql::push_string(sql, known.as_bytes(), d);
        }
        sql.extend_from_slice(format!(" ELSE {column} END").as_bytes());
    }

    /// Conditions, behind another, that leave out what is not to be seen.
    pub(super) fn push_others_only(
        &self,
        sql: &mut Vec<u8>,
        (schema, column): (&str, &str),
        d: &Dialect,
    ) {
        for (of, tables) in &self.hidden {
            sql.extend_from_slice(format!(" AND NOT ({schema} = ").as_bytes());
            sql::push_string(sql, of.as_bytes(), d);
            sql.extend_from_slice(format!(" AND {column} IN (").as_bytes());
            for (number, name) in tables.iter().enumerate() {
                sql.extend_from_slice(if number == 0 { b"" } else { b", " });
                sql::push_string(sql, name.as_bytes(), d);
            }
            sql.extend_from_slice(b"))");
        }
    }
}

/// The name of a table, of the character set and collation that servers' own have.
pub(super) fn push_elsewhere(sql: &mut Vec<u8>, name: &str, d: &Dialect) {
    sql.extend_from_slice(b"IF(SCHEMA_NAME = '', SCHEMA_NAME, ");
    sql::push_string(sql, name.as_bytes(), d);
    sql.push(b')');
}

/// The row of a schema that is there and may be seen.
pub(super) fn push_schema(sql: &mut Vec<u8>, schema: &str, d: &Dialect) {
    sql.extend_from_slice(b" FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ");
    sql::push_string(sql, schema.as_bytes(), d);
}
