//! What is kept of a statement's tree: the tables that it names, what is said about their keys, and what stands in the way of asking
//! several shards. Planning it costs no parsing.

use std::ops::Range;

use super::catalog::Place;
use super::cond::{Cond, Operand};
use super::dress::Shows;
use super::fill::Fill;
use super::listing::Listing;
use super::refused::Refused;

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It reads.
    Read,
    /// It adds rows.
    Insert,
    /// It changes or deletes rows.
    Change,
    /// DESCRIBE, SHOW COLUMNS, SHOW CREATE TABLE.
    Describe,
    /// CREATE, ALTER, DROP, TRUNCATE.
    Define,
}

/// A place where a statement names a sharded table.
#[derive(Clone, Debug)]
pub struct TableRef {
    /// Which table of the placement.
    pub table: usize,
    /// Where its name stands.
    pub name: Range<usize>,
    /// Where its schema stands, if it does.
    pub schema: Option<Range<usize>>,
    /// It has another name in the statement.
    pub has_alias: bool,
    /// It can be given one.
    pub may_have_alias: bool,
    /// It stands in the outermost query.
    pub is_outer: bool,
    /// Its columns are NULL where it has no fitting row.
    pub is_optional: bool,
}

/// A place where a column is named together with its table.
#[derive(Clone, Debug)]
pub struct Qualifier {
    /// The place among [`Shape::refs`] that it is about.
    pub of: usize,
    /// Where the table's name stands.
    pub name: Range<usize>,
    /// Where the schema's name stands.
    pub schema: Option<Range<usize>>,
}

/// Where the rows of an INSERT get their key from.
#[derive(Clone, Debug)]
pub enum Rows {
    /// Each row has its own.
    Values(Vec<Operand>),
    /// What is in the column is known to the server only.
    Unknown,
    /// Which column it is, is: they are not named, and the table's are not known.
    Unlisted,
    /// It is the key of a table that is read.
    KeyOf(usize),
}

/// A condition, and the tables whose rows it chooses; with each, whether the table's columns are NULL where it has no fitting row.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The condition.
    pub cond: Cond,
    /// The tables.
    pub of: Vec<(usize, bool)>,
}

impl Shape {
    /// One that names no table yet.
    pub(super) fn new(act: Act) -> Self {
        Self {
            act,
            refs: Vec::new(),
            facts: Vec::new(),
            qualifiers: Vec::new(),
            rows: None,
            row_places: Vec::new(),
            params: Vec::new(),
            fill: None,
            has_own_ids: false,
            is_lax: false,
            listed: None,
            names_unsharded: false,
            names_global: false,
            globals: Vec::new(),
            asks_schema: false,
            obstacle: None,
            limit: None,
            shows: Shows::Data,
            listings: Vec::new(),
            catalog: Vec::new(),
        }
    }

    /// One that asks servers for their names.
    pub(super) fn of_names(listings: Vec<Listing>, catalog: Vec<Place>) -> Self {
        Self {
            listings,
            catalog,
            ..Self::new(Act::Read)
        }
    }

    /// It asks servers for their names, those of the account's own group.
    #[must_use]
    pub fn asks_names(&self) -> bool {
        !self.listings.is_empty() || !self.catalog.is_empty()
    }

    /// One about a table as such: no row of it is chosen, and no name stands for it.
    pub(super) fn about(
        act: Act,
        table: usize,
        name: Range<usize>,
        schema: Option<Range<usize>>,
    ) -> Self {
        let mut shape = Self::new(act);
        shape.refs.push(TableRef {
            table,
            name,
            schema,
            has_alias: true,
            may_have_alias: false,
            is_outer: true,
            is_optional: false,
        });
        shape
    }

    /// Shows all places in the text that it has.
    pub(super) fn each_place(&mut self, show: &mut dyn FnMut(&mut usize)) {
        let named = self.refs.iter_mut().flat_map(|of| {
            let schema = of.schema.as_mut();
            std::iter::once(&mut of.name).chain(schema)
        });
        let qualifiers = self.qualifiers.iter_mut().flat_map(|of| {
            let schema = of.schema.as_mut();
            std::iter::once(&mut of.name).chain(schema)
        });
        let globals = self.globals.iter_mut().map(|(_, place)| place);
        let listed = self.listed.iter_mut().map(|(place, _)| place);
        let rows = self.row_places.iter_mut();
        for place in named
            .chain(qualifiers)
            .chain(globals)
            .chain(listed)
            .chain(rows)
        {
            show(&mut place.start);
            show(&mut place.end);
        }
        self.params.iter_mut().for_each(&mut *show);
        if let Some(fill) = &mut self.fill {
            fill.list.iter_mut().for_each(&mut *show);
            for place in fill.rows.iter_mut().flatten() {
                show(&mut place.start);
                show(&mut place.end);
            }
        }
    }

    /// It is an INSERT that names no columns, of a table whose columns are not known.
    #[must_use]
    pub fn is_unlisted(&self) -> bool {
        matches!(self.rows, Some(Rows::Unlisted))
    }
}

/// See the module's words.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What it does.
    pub act: Act,
    /// Sharded tables, outer queries before inner ones.
    pub refs: Vec<TableRef>,
    /// What is said about their rows.
    pub facts: Vec<Fact>,
    /// Columns named with their table.
    pub qualifiers: Vec<Qualifier>,
    /// Rows of an INSERT.
    pub rows: Option<Rows>,
    /// Where each of them stands.
    pub row_places: Vec<Range<usize>>,
    /// Where the signs of parameters stand.
    pub params: Vec<usize>,
    /// Where ids go that Atlas generates.
    pub fill: Option<Fill>,
    /// Rows have an id of their own: with another literal, a 0, they would not.
    pub has_own_ids: bool,
    /// Rows are stored whose values a column cannot hold, with others.
    pub is_lax: bool,
    /// Names of columns that are put in there, for who does not write them.
    pub listed: Option<(Range<usize>, Vec<Vec<u8>>)>,
    /// It names a table that is in the account's own group only.
    pub names_unsharded: bool,
    /// It names a table that every group has.
    pub names_global: bool,
    /// Where the schema of such a table stands, by the name in the configuration.
    pub globals: Vec<(String, Range<usize>)>,
    /// It asks for the name of the session's schema, which is another in some groups.
    pub asks_schema: bool,
    /// Why rows of several shards cannot just follow each other.
    pub obstacle: Option<Refused>,
    /// LIMIT without an offset.
    pub limit: Option<Operand>,
    /// Where its rows name tables.
    pub shows: Shows,
    /// It lists tables or schemas.
    pub listings: Vec<Listing>,
    /// Where it names tables of `information_schema`.
    pub catalog: Vec<Place>,
}
