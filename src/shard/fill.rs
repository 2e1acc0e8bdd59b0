//! INSERTs into tables whose ids Atlas generates: where the id goes in each row that has none.

use std::ops::Range;

use sqlparser::ast::{AssignmentTarget, Expr, Insert, Value};

use super::names::{idents, name_bytes};
use super::read::{Reader, refuse};
use super::refused::Refused;
use super::tokens::bytes;
use crate::sql::{self, Tok};

/// What is put into a statement where its rows have no ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The column.
    pub column: String,
    /// Where it is named; nothing where the statement names it, or needs not.
    pub list: Option<usize>,
    /// It is named in each row: `SET`.
    pub is_set: bool,
    /// Where the id goes in each row, in place of what stands there; nothing for rows that have one.
    pub rows: Vec<Option<Range<usize>>>,
    /// It is the shard key.
    pub is_key: bool,
}

/// NULL, DEFAULT or 0, for which a server would generate an id too.
fn is_open(value: &Expr) -> Option<Range<usize>> {
    match value {
        Expr::Value(value) => {
            let is_it = match &value.value {
                Value::Null => true,
                Value::Number(number, _) => number.bytes().all(|digit| digit == b'0'),
                _ => false,
            };
            bytes(value.span).filter(|_| is_it)
        }
        Expr::Identifier(word) if word.quote_style.is_none() => {
            let is_it = word.value.eq_ignore_ascii_case("default");
            bytes(word.span).filter(|_| is_it)
        }
        _ => None,
    }
}

impl Reader<'_> {
    /// What is to be filled into an INSERT into this table, of rows with these columns.
    ///
    /// # Errors
    /// The rows come from a query that gives none.
    pub(super) fn fill_rows(
        &mut self,
        insert: &Insert,
        of: usize,
        names: &[Vec<u8>],
    ) -> Result<(), Refused> {
        let Some((column, key)) = self.id_of(of) else {
            return Ok(());
        };
        let is_it = |name: &Vec<u8>| name.eq_ignore_ascii_case(column.as_bytes());
        let at = names.iter().position(is_it);
        let rows = match insert.source.as_ref().map(|source| source.body.as_ref()) {
            Some(sqlparser::ast::SetExpr::Values(values)) => &values.rows,
            _ if at.is_some() => return Ok(()),
            _ => {
                return refuse(format!(
                    "INSERT ... SELECT does not give the generated key {column}: select one, or insert the rows with VALUES"
                ));
            }
        };
        let places: Vec<Option<Range<usize>>> = rows
            .iter()
            .map(|row| match at {
                Some(at) => row.content.get(at).and_then(is_open),
                None => bytes(row.opening_token.0.span).map(|opens| opens.end..opens.end),
            })
            .collect();
        self.shape.has_own_ids |= places.iter().any(Option::is_none);
        if places.iter().all(Option::is_none) {
            return Ok(());
        }
        let list = match at {
            Some(_) => None,
            None => self.list_opens(of),
        };
        self.shape.fill = Some(Fill {
            is_key: column.eq_ignore_ascii_case(&key),
            column,
            list,
            is_set: false,
            rows: places,
        });
        Ok(())
    }

    /// The same for `INSERT ... SET`.
    pub(super) fn fill_set(&mut self, insert: &Insert, of: usize) {
        let Some((column, key)) = self.id_of(of) else {
            return;
        };
        let mut first = None;
        let mut place = None;
        for assignment in &insert.assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return;
            };
            let parts = idents(name).unwrap_or_default();
            let start = parts.first().and_then(|part| bytes(part.span));
            first = first.or_else(|| start.map(|start| start.start));
            let is_it =
                |c: &&sqlparser::ast::Ident| name_bytes(c).eq_ignore_ascii_case(column.as_bytes());
            if parts.last().is_some_and(is_it) {
                place = Some(is_open(&assignment.value));
            }
        }
        self.shape.has_own_ids |= place == Some(None);
        let (place, is_set) = match (place, first) {
            (Some(None), _) | (None, None) => return,
            (Some(Some(place)), _) => (place, false),
            (None, Some(first)) => (first..first, true),
        };
        self.shape.fill = Some(Fill {
            is_key: column.eq_ignore_ascii_case(&key),
            column,
            list: None,
            is_set,
            rows: vec![Some(place)],
        });
    }

    /// The column that is filled, and the shard key.
    pub(super) fn id_of(&self, of: usize) -> Option<(String, String)> {
        let table = self.shape.refs.get(of)?.table;
        let table = self.placement.tables.get(table)?;
        Some((table.id_column.clone()?, table.key.clone()))
    }

    /// Behind the parenthesis that opens the list of columns.
    fn list_opens(&self, of: usize) -> Option<usize> {
        let end = self.shape.refs.get(of)?.name.end;
        let mut behind = sql::Tokens::new(self.text, self.d).filter(|t| t.start >= end);
        behind.next().filter(|t| t.tok == Tok::Open).map(|t| t.end)
    }
}

/// Ids for the rows of a statement, of which the first is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// There are none yet, or none are needed.
    #[default]
    None,
    /// They are written into the text.
    Written(u64),
    /// They are parameters.
    Bound(u64),
}

impl Numbers {
    /// The id of a row.
    pub(super) fn of(self, row: usize) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Written(first) | Self::Bound(first) => {
                first.checked_add(u64::try_from(row).ok()?)
            }
        }
    }
}

/// A change of a statement's text: what is put in the place of what, and the id that is a parameter there.
pub(super) type Edit = (Range<usize>, Vec<u8>, Option<u64>);

impl Fill {
    /// The changes for these ids. The name is quoted.
    pub(super) fn edits(&self, numbers: Numbers, name: &[u8]) -> Vec<Edit> {
        let mut edits = Vec::new();
        if let Some(at) = self.list {
            edits.push((at..at, [name, b", "].concat(), None));
        }
        let mut is_first = true;
        for (row, place) in self.rows.iter().enumerate() {
            let (Some(place), Some(id)) = (place, numbers.of(row)) else {
                continue;
            };
            let is_bound = matches!(numbers, Numbers::Bound(_));
            let sign = if is_bound {
                "?".to_owned()
            } else {
                id.to_string()
            };
            // So the server tells it as the statement's id, in its reply and as LAST_INSERT_ID().
            let value = if std::mem::take(&mut is_first) {
                format!("LAST_INSERT_ID({sign})")
            } else {
                sign
            };
            let mut text = Vec::new();
            if self.is_set {
                text.extend_from_slice(name);
                text.extend_from_slice(b" = ");
            }
            text.extend_from_slice(value.as_bytes());
            if place.is_empty() {
                text.extend_from_slice(b", ");
            }
            edits.push((place.clone(), text, is_bound.then_some(id)));
        }
        edits
    }
}
