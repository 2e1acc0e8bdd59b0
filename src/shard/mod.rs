//! Sharded tables: where which row lies, which shards a statement needs, and what each of them is sent.
//!
//! A statement that names no table of the configuration never comes here: [`Words`] tells it apart by a look at its bytes. Any other is
//! read into a tree, and the tree into a [`Shape`]: the tables that it names and what it says about their keys. [`Placement::plan`] makes
//! of a shape, and of the parameters' values, a [`Plan`]; the texts in it are the client's own bytes with other names in place.
//!
//! | module | subject |
//! | --- | --- |
//! | `key`, `hash`, `map` | values of keys, hashes, from keys to shards |
//! | `keyset`, `compare`, `cond` | what conditions say about keys, as sets that may be too large and never too small |
//! | `moves` | what another configuration would have lie elsewhere |
//! | `globals` | tables that every group has, named or found |
//! | `mention`, `lookout` | whether a statement names a sharded table, and whether one may that is too long to be looked at whole |
//! | `tokens`, `parse` | the tree, behind guards |
//! | `read`, `lower`, `write`, `describe`, `define`, `names`, `values` | from the tree to the shape |
//! | `placed` | where the rows of an INSERT go, and whether their keys are stored as they are |
//! | `apart`, `parts` | what cannot be asked of several shards, and what can be written in parts |
//! | `ids`, `fill` | keys that Atlas generates, and where they go in an INSERT |
//! | `rename` | names that no statement may change |
//! | `listing`, `catalog`, `known` | SHOW TABLES and `information_schema`, by the names that clients know |
//! | `columns` | the columns of tables whose INSERTs do not name them |
//! | `shape`, `plan`, `splice` | what is kept of a statement, and what becomes of it |
//! | `shapes`, `point` | shapes of texts that come again with other literals, and those that are about one key |
//! | `dress`, `quote` | the client's names and words in what servers answer |
//! | `refused` | why it is not run |
//!
//! A tree is never printed: that loses comments, hints and meaning.
//!
//! Not here: running a plan, which is the session's.

mod apart;
mod catalog;
mod columns;
mod compare;
mod cond;
mod define;
mod describe;
mod dress;
mod fill;
mod globals;
mod hash;
mod ids;
mod key;
mod keyset;
mod known;
mod listing;
mod lookout;
mod lower;
mod map;
mod mention;
mod moves;
mod names;
mod parse;
mod parts;
mod placed;
mod plan;
mod point;
mod quote;
mod read;
mod refused;
mod rename;
mod shape;
mod shapes;
mod splice;
mod tokens;
mod values;
mod write;
mod xid;

#[cfg(test)]
mod tests;

pub use columns::Columns;
pub use compare::{Comparison, Truth};
pub use cond::{Cond, Operand};
pub use dress::{Dress, Part, Shows};
pub use fill::{Fill, Numbers};
pub use globals::Found;
pub use ids::{Ids, Lease, NODES};
pub use key::{Key, Misfit, Scalar};
pub use keyset::KeySet;
pub use lookout::Lookout;
pub use map::{Placement, Shard, Table};
pub use mention::Words;
pub use moves::{moves, newly};
pub use plan::{Asked, Leg, Plan};
pub use point::{Point, There};
pub use quote::QUOTES;
pub use refused::Refused;
pub use shape::{Act, Fact, Qualifier, Rows, Shape, TableRef};
pub use shapes::Shapes;
pub use splice::Given;
pub use values::number_of as number;
pub use xid::{Prepared, Xid, read_log, recovered, title};

use sqlparser::ast::Statement;

use crate::sql::{self, Dialect, Tok};
use read::Reader;

/// The stack that a thread needs to read any statement: trees are as deep as expressions are long.
pub const STACK: usize = 16 << 20;

impl Placement {
    /// What becomes of a statement of a session with this schema; nothing if it names no table of the configuration. The parameters of a
    /// statement that has them and comes without are not known.
    #[must_use]
    pub fn plan_text(&self, asked: Asked<'_>, schema: Option<&[u8]>) -> Option<Plan> {
        self.plan_text_with(asked, schema, &Columns::default())
    }

    /// The same where columns of tables are known.
    #[must_use]
    pub fn plan_text_with(
        &self,
        asked: Asked<'_>,
        schema: Option<&[u8]>,
        columns: &Columns,
    ) -> Option<Plan> {
        if !self.words().occur_in(asked.text) || !self.is_mentioned(asked.text, asked.d, schema) {
            return None;
        }
        match self.read_with(asked.text, asked.d, schema, columns) {
            Ok(None) => None,
            Ok(Some(shape)) => {
                let columns = Some(columns);
                Some(self.plan(&shape, Asked { columns, ..asked }))
            }
            Err(refused) => Some(Plan::Refuse(refused)),
        }
    }

    /// Reads a statement of a session with this schema; nothing if it names no sharded table after all.
    ///
    /// # Errors
    /// It names one and is not understood.
    pub fn read(
        &self,
        text: &[u8],
        d: &Dialect,
        schema: Option<&[u8]>,
    ) -> Result<Option<Shape>, Refused> {
        self.read_with(text, d, schema, &Columns::default())
    }

    /// The same where columns of tables are known.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn read_with(
        &self,
        text: &[u8],
        d: &Dialect,
        schema: Option<&[u8]>,
        columns: &Columns,
    ) -> Result<Option<Shape>, Refused> {
        let may_change = self.may_change_in_doubt(text, d, schema);
        let is_open = may_change && !self.is_named(text, d, schema);
        if is_open && (self.apart.is_empty() || !is_query_or_change(text, d)) {
            return Err(self.in_doubt());
        }
        if self.may_change_unlike(text, d, schema) {
            return Err(self.unlike_rows());
        }
        if let Some(shape) = describe::describe(self, text, d, schema) {
            return Ok(Some(shape));
        }
        if describe::is_of_another(self, text, d, schema) {
            return Ok(None);
        }
        if let Some(refused) = rename::refused(self, text, d, schema) {
            return Err(refused);
        }
        if let Some(shape) = define::define(self, text, d, schema)? {
            return Ok(Some(shape));
        }
        let listings = listing::listings(self, text, d, schema)?;
        let catalog = self.catalog(text, d);
        let asks = !listings.is_empty() || !catalog.is_empty();
        if asks && (listing::is_alone(&listings, text, d) || !self.is_named(text, d, schema)) {
            return Ok(Some(Shape::of_names(listings, catalog)));
        }
        if !listings.is_empty() {
            return read::refuse(
                "SHOW TABLES and a statement on a sharded or global table in one text: send it alone",
            );
        }
        if !is_query_or_change(text, d) {
            return if mention::is_acted_on(self, text, d, schema) {
                read::refuse(ELSEWHERE)
            } else {
                Ok(None)
            };
        }
        let parsed = match parse::parse(text, d) {
            Err(_) if is_open => return Err(self.in_doubt()),
            parsed => parsed?,
        };
        let mut reader = Reader::new(self, text, d, schema, columns, parsed.is_doubtful);
        match reader.statement(&parsed.statement) {
            Err(_) if is_open => return Err(self.in_doubt()),
            read => read?,
        }
        reader.shape.params = parsed.params;
        reader.shape.catalog = catalog;
        reader.shape.asks_schema = schema.is_some() && sql::asks_schema(text, d);
        if parsed.is_locking {
            reader.obstacle("a locking read over several shards");
        }
        let writes = reader.shape.act != Act::Read;
        if is_open && !reader.shape.names_unsharded || writes && may_change && reader.may_be_global
        {
            return Err(self.in_doubt());
        }
        let writes = writes && !reader.inserts_home;
        if reader.shape.refs.is_empty() && writes && reader.shape.names_global {
            self.check_everywhere(&reader.shape, text, d)?;
        }
        let is_at_hand = reader.shape.names_global && !reader.shape.names_unsharded;
        Ok(Some(reader.shape).filter(|shape| !shape.refs.is_empty() || is_at_hand))
    }
}

impl Placement {
    /// A write to global tables can be made in every group, and is the same there.
    fn check_everywhere(&self, shape: &Shape, text: &[u8], d: &Dialect) -> Result<(), Refused> {
        if !self.global_xa {
            return read::refuse(
                "a write to a global table: make it in every group yourself, or allow such writes with `global_writes = \"xa\"` in [sharding]",
            );
        }
        if shape.names_unsharded {
            return read::refuse(
                "a write to a global table that names one that is not in every group",
            );
        }
        if shape.obstacle.is_some() {
            return read::refuse(
                "a write to a global table with ORDER BY, LIMIT or RETURNING: groups may differ in which rows come first",
            );
        }
        sql::gives_the_same(text, d).map_err(|word| {
            Refused::new(format!(
                "a write to a global table with {word}, which each group would answer in its own way: send its value"
            ))
        })
    }
}

/// What to do with statements that are not analysed.
const ELSEWHERE: &str = "this kind of statement on a sharded or global table: send it to the servers of each group, with the names of the physical tables";

/// Whether a statement is of a kind that the parser is asked about.
fn is_query_or_change(text: &[u8], d: &Dialect) -> bool {
    const FIRST: [&str; 12] = [
        "select", "with", "table", "values", "insert", "replace", "update", "delete", "explain",
        "desc", "describe", "analyze",
    ];
    let mut tokens = sql::Tokens::new(text, d).skip_while(|t| t.tok == Tok::Open);
    let first = tokens.next().filter(|t| t.tok == Tok::Word);
    let is_analyze_table = tokens.next().is_some_and(|t| {
        let word = text.get(t.start..t.end).unwrap_or_default();
        [&b"table"[..], b"no_write_to_binlog", b"local"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    });
    first.is_some_and(|t| {
        let word = text.get(t.start..t.end).unwrap_or_default();
        let known = FIRST
            .iter()
            .find(|first| word.eq_ignore_ascii_case(first.as_bytes()));
        known.is_some_and(|first| *first != "analyze" || !is_analyze_table)
    })
}

impl Reader<'_> {
    fn statement(&mut self, statement: &Statement) -> Result<(), Refused> {
        match statement {
            Statement::Query(query) => read::walk(self, query.as_ref()),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Explain { statement, .. } => {
                self.statement(statement)?;
                self.obstacle("EXPLAIN of a statement for several shards");
                self.shape.act = Act::Read;
                self.shape.shows = Shows::Table;
                Ok(())
            }
            _ => read::refuse(ELSEWHERE),
        }
    }
}
