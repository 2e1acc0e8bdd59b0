//! What a name means at a place in a statement: the tables that are visible there, from the innermost query outwards.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::map::Placement;
use super::tokens::unlatin;

/// A table, or something like one, as a query names it.
#[derive(Debug)]
pub(super) struct Visible {
    /// The name by which its columns are named.
    pub(super) name: Vec<u8>,
    /// Its number among the statement's references, if it is sharded.
    pub(super) of: Option<usize>,
    /// Every group has it.
    pub(super) is_global: bool,
}

/// The tables that stand in one FROM.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) visible: Vec<Visible>,
    /// Columns that joins with USING make one of two.
    pub(super) merged: Vec<Vec<u8>>,
    /// A NATURAL join does so with all that are named alike.
    pub(super) is_natural: bool,
}

impl Scope {
    /// Whether a column that is named without its table may be one of several tables.
    pub(super) fn merges(&self, column: &[u8]) -> bool {
        self.is_natural
            || self
                .merged
                .iter()
                .any(|name| name.eq_ignore_ascii_case(column))
    }
}

/// What a table's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A sharded table.
    Sharded(usize),
    /// A table that every group has.
    Global,
    /// Any other table, which only the account's own group has.
    Unsharded,
}

/// The parts of a name; `None` if one is no plain name.
pub(super) fn idents(name: &ObjectName) -> Option<Vec<&Ident>> {
    name.0.iter().map(ObjectNamePart::as_ident).collect()
}

pub(super) fn name_bytes(ident: &Ident) -> Vec<u8> {
    unlatin(&ident.value)
}

impl Placement {
    /// What a table's name means to a session with this schema.
    pub(super) fn meaning(&self, schema: Option<&[u8]>, parts: &[&Ident]) -> Meaning {
        let (schema, name) = match parts {
            [name] => match schema {
                Some(schema) => (schema.to_vec(), name_bytes(name)),
                None => return Meaning::Unsharded,
            },
            [schema, name] => (name_bytes(schema), name_bytes(name)),
            _ => return Meaning::Unsharded,
        };
        if let Some(table) = self.table(&schema, &name) {
            Meaning::Sharded(table)
        } else if self.is_global(&schema, &name) {
            Meaning::Global
        } else {
            Meaning::Unsharded
        }
    }
}

/// The place in a scope that this name means: the one written alike, or else the one that differs in case only.
pub(super) fn find<'s>(scope: &'s Scope, name: &[u8]) -> Option<&'s Visible> {
    let exact = scope.visible.iter().find(|v| v.name == name);
    exact.or_else(|| {
        scope
            .visible
            .iter()
            .find(|v| v.name.eq_ignore_ascii_case(name))
    })
}
