//! INSERT, REPLACE, UPDATE and DELETE: whose rows they change, and where an INSERT's rows get their key from.

use std::ops::Range;

use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, OnInsert, SetExpr,
    TableObject, TableWithJoins, Update,
};

use super::columns::TableColumns;
use super::cond::Operand;
use super::key::Scalar;
use super::names::{Scope, find, idents, name_bytes};
use super::read::{Reader, refuse, walk};
use super::refused::Refused;
use super::shape::{Act, Rows};
use super::tokens::bytes;
use super::values::operand;
use crate::sql::{self, Tok};

impl Reader<'_> {
    pub(super) fn update(&mut self, update: &Update) -> Result<(), Refused> {
        self.shape.act = Act::Change;
        let is_odd = update.from.is_some() || update.output.is_some() || update.or.is_some();
        if is_odd {
            return refuse("it has a clause that servers do not know");
        }
        self.scopes.push(Scope::default());
        let tables = self.tables(&update.table)?;
        if let Some(condition) = &update.selection {
            self.fact(condition, tables);
        }
        if update.limit.is_some() || !update.order_by.is_empty() {
            self.obstacle("UPDATE ... ORDER BY or LIMIT over several physical tables");
        }
        self.assignments(&update.assignments)?;
        walk(self, update)
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Result<(), Refused> {
        self.shape.act = Act::Change;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        self.scopes.push(Scope::default());
        // DELETE a FROM … names its targets first; DELETE FROM a USING … puts them where the tables would be.
        let (targets, lists): (Vec<&ObjectName>, &[TableWithJoins]) = match &delete.using {
            Some(using) => {
                let names = from.iter().map(|list| match &list.relation {
                    sqlparser::ast::TableFactor::Table { name, .. } => Ok(name),
                    _ => refuse("what it deletes from is no table"),
                });
                (names.collect::<Result<_, _>>()?, using)
            }
            None => (delete.tables.iter().collect(), from),
        };
        let mut tables = Vec::new();
        for list in lists {
            tables.extend(self.tables(list)?);
        }
        let is_single = targets.is_empty();
        if is_single {
            // No server takes an alias here in all its versions.
            for table in &mut self.shape.refs {
                table.may_have_alias = false;
            }
        }
        for target in targets {
            let parts = idents(target).unwrap_or_default();
            if let Some(start) = parts.first().and_then(|part| bytes(part.span)) {
                self.seen.insert(start.start);
            }
            let of = match parts[..] {
                [name] => self
                    .scopes
                    .last()
                    .and_then(|scope| find(scope, &name_bytes(name))),
                _ => return refuse("DELETE schema.table FROM ...: name it without its schema"),
            };
            if of.is_none_or(|of| of.of.is_none()) {
                return refuse("a joined DELETE from a table that is not sharded");
            }
        }
        if let Some(condition) = &delete.selection {
            self.fact(condition, tables);
        }
        if delete.limit.is_some() || !delete.order_by.is_empty() || delete.returning.is_some() {
            self.obstacle("DELETE ... ORDER BY, LIMIT or RETURNING over several physical tables");
        }
        walk(self, delete)
    }

    pub(super) fn insert(&mut self, insert: &Insert) -> Result<(), Refused> {
        self.shape.act = Act::Insert;
        let TableObject::TableName(name) = &insert.table else {
            return refuse("what it inserts into is no table");
        };
        let is_odd = insert.or.is_some()
            || insert.overwrite
            || insert.by_name
            || insert.table_alias.is_some()
            || insert.overriding.is_some()
            || insert.output.is_some()
            || insert.multi_table_insert_type.is_some();
        if is_odd {
            return refuse("it has a clause that servers do not know");
        }
        self.scopes.push(Scope::default());
        let of = self.note_table(name, None, false)?;
        let Some(of) = of else {
            return self.other_insert(insert);
        };
        if insert.partitioned.is_some() {
            return refuse("PARTITION (...) of a sharded table");
        }
        let hint = b"set_var";
        let sets = |bytes: &[u8]| bytes.eq_ignore_ascii_case(hint);
        self.shape.is_lax = insert.ignore || self.text.windows(hint.len()).any(sets);
        let assigned = insert.assignments.iter();
        let assigned = assigned.filter_map(|assignment| match &assignment.target {
            AssignmentTarget::ColumnName(name) => Some(name),
            AssignmentTarget::Tuple(_) => None,
        });
        for name in insert.columns.iter().chain(assigned) {
            let parts = idents(name).unwrap_or_default();
            let parts: Vec<_> = parts.into_iter().cloned().collect();
            if let Some((_, before)) = parts.split_last() {
                self.note_qualifier(before);
            }
        }
        let key = self.key_name(of);
        self.shape.rows = Some(if insert.assignments.is_empty() {
            let last = |column: &ObjectName| {
                let parts = idents(column).unwrap_or_default();
                parts.last().map_or_else(Vec::new, |c| name_bytes(c))
            };
            let unlisted = insert.columns.is_empty();
            let names: Option<Vec<Vec<u8>>> = if unlisted {
                self.columns_of(of).map(|columns| columns.names().to_vec())
            } else {
                Some(insert.columns.iter().map(last).collect())
            };
            match names {
                None => Rows::Unlisted,
                Some(names) => {
                    self.fill_rows(insert, of, &names)?;
                    let is_key = |name: &Vec<u8>| name.eq_ignore_ascii_case(key.as_bytes());
                    let at = names.iter().position(is_key);
                    if at.is_none() && !self.shape.fill.as_ref().is_some_and(|fill| fill.is_key) {
                        return refuse(format!("the row has no value for the shard key {key}"));
                    }
                    let count = names.len();
                    if unlisted {
                        self.shape.listed = self.list_place(of).map(|place| (place, names));
                    }
                    self.rows(insert, at, count)?
                }
            }
        } else {
            let mut found = None;
            for assignment in &insert.assignments {
                let is_key = |name: &ObjectName| {
                    let parts = idents(name).unwrap_or_default();
                    parts
                        .last()
                        .is_some_and(|c| name_bytes(c).eq_ignore_ascii_case(key.as_bytes()))
                };
                if matches!(&assignment.target, AssignmentTarget::ColumnName(name) if is_key(name))
                {
                    found = Some(self.one(&assignment.value));
                }
            }
            self.fill_set(insert, of);
            match found {
                Some(rows) => rows,
                None if self.shape.fill.as_ref().is_some_and(|fill| fill.is_key) => Rows::Unknown,
                None => {
                    return refuse(format!("the row has no value for the shard key {key}"));
                }
            }
        });
        if insert.returning.is_some() {
            self.obstacle("RETURNING from several physical tables");
        }
        match &insert.on {
            None => {}
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.assignments(assignments)?,
            Some(_) => return refuse("it has a clause that servers do not know"),
        }
        walk(self, insert)
    }

    /// Into a table that is not sharded, from one that is.
    fn other_insert(&mut self, insert: &Insert) -> Result<(), Refused> {
        let is_global = self.shape.names_global;
        self.inserts_home = !is_global;
        walk(self, insert)?;
        if is_global && !self.shape.refs.is_empty() {
            return refuse(
                "a write to a global table of what is in a sharded one: read it, and write the values",
            );
        }
        Ok(())
    }

    fn key_name(&self, of: usize) -> String {
        let table = self.shape.refs.get(of).map(|r| r.table);
        table
            .and_then(|table| self.placement.tables.get(table))
            .map_or_else(String::new, |table| table.key.clone())
    }

    fn columns_of(&self, of: usize) -> Option<&TableColumns> {
        let table = self.shape.refs.get(of)?.table;
        self.columns.of(self.placement.tables.get(table)?)
    }

    /// Where an INSERT would name its columns that does not: `()`, or nothing behind the table's name.
    fn list_place(&self, of: usize) -> Option<Range<usize>> {
        let end = self.shape.refs.get(of)?.name.end;
        let behind = sql::Tokens::new(self.text, self.d).filter(|t| t.start >= end);
        let next: Vec<sql::Token> = behind.take(2).collect();
        match next[..] {
            [opens, closes] if opens.tok == Tok::Open && closes.tok == Tok::Close => {
                Some(opens.start..closes.end)
            }
            _ => Some(end..end),
        }
    }

    fn one(&self, value: &Expr) -> Rows {
        operand(value, self.text, self.d).map_or(Rows::Unknown, |value| Rows::Values(vec![value]))
    }

    /// `at` is the place of the shard key, where the rows have it.
    fn rows(&mut self, insert: &Insert, at: Option<usize>, count: usize) -> Result<Rows, Refused> {
        let Some(source) = &insert.source else {
            return refuse("the row has no value for the shard key");
        };
        match source.body.as_ref() {
            SetExpr::Values(values) => {
                let mut keys = Vec::with_capacity(values.rows.len());
                for row in &values.rows {
                    let (opens, closes) = (&row.opening_token.0.span, &row.closing_token.0.span);
                    if let (Some(opens), Some(closes)) = (bytes(*opens), bytes(*closes)) {
                        self.shape.row_places.push(opens.start..closes.end);
                    }
                    let row = &row.content;
                    if row.len() != count {
                        return refuse(
                            "a row has more or fewer values than there are columns: give each column one",
                        );
                    }
                    let value = at.and_then(|at| row.get(at));
                    // What is not known is refused when its place is asked for, where no id is put there.
                    keys.push(
                        value
                            .and_then(|value| operand(value, self.text, self.d))
                            .unwrap_or(Operand::Value(Scalar::Unknown)),
                    );
                }
                Ok(Rows::Values(keys))
            }
            SetExpr::Select(_) => {
                self.inserted = at;
                // Said again when the query has been read.
                Ok(Rows::Unknown)
            }
            _ => refuse("INSERT from a query that is more than one SELECT"),
        }
    }

    /// The shard key stays as it is, or the row would be on the wrong shard.
    fn assignments(&mut self, assignments: &[Assignment]) -> Result<(), Refused> {
        for assignment in assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return refuse("it assigns to several columns at once");
            };
            let parts: Vec<_> = idents(name)
                .unwrap_or_default()
                .into_iter()
                .cloned()
                .collect();
            let Some((column, before)) = parts.split_last() else {
                return refuse("a column's name is not understood");
            };
            self.note_qualifier(before);
            let column_name = name_bytes(column);
            let is_key = if before.is_empty() {
                self.scopes.last().is_some_and(|scope| {
                    let mut all = scope.visible.iter().filter_map(|v| v.of);
                    all.any(|of| self.is_key(of, &column_name))
                })
            } else {
                self.qualified(before)
                    .is_some_and(|of| self.is_key(of, &column_name))
            };
            let mixes = |scope: &Scope| {
                let all = &scope.visible;
                all.iter().any(|v| v.is_global) && all.iter().any(|v| v.of.is_some())
            };
            let may_be_global = self.scopes.last().is_some_and(mixes);
            if may_be_global && self.qualified(before).is_none() {
                return refuse(
                    "it may change a global table, which every group has: name the column with its sharded table",
                );
            }
            if is_key {
                return refuse(format!(
                    "it changes the shard key {}: delete the row and insert it anew",
                    column.value
                ));
            }
        }
        Ok(())
    }
}
