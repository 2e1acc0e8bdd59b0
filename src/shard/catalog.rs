//! The servers' own tables of names, `information_schema`, with the names that clients know: in the place of each that a query asks
//! stands one of the same columns, in which a sharded table is there once, as its first table in the group is, by its own name.
//!
//! Not here: SHOW TABLES and its kin, which are `listing`'s. A query is read token by token, so that one is answered too that the parser
//! does not know.

use std::ops::Range;

use super::fill::Edit;
use super::known::{Names, push_elsewhere, push_schema};
use crate::sql::{self, Dialect, Server, Tok};

/// What a column has.
#[derive(Clone, Copy, Debug)]
enum Has {
    /// No name of a table.
    Other,
    /// The name of a table in the schema that this column has.
    Table(&'static str),
}

/// A column, and the versions that have it.
#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    has: Has,
    mysql: u32,
    mariadb: u32,
}

const NEVER: u32 = u32::MAX;

const fn other(name: &'static str) -> Column {
    Column {
        name,
        has: Has::Other,
        mysql: 0,
        mariadb: 0,
    }
}

const fn table(name: &'static str, of: &'static str) -> Column {
    Column {
        has: Has::Table(of),
        ..other(name)
    }
}

const fn mysql(name: &'static str, since: u32) -> Column {
    Column {
        mysql: since,
        mariadb: NEVER,
        ..other(name)
    }
}

const fn mariadb(name: &'static str, since: u32) -> Column {
    Column {
        mysql: NEVER,
        mariadb: since,
        ..other(name)
    }
}

impl Column {
    fn is_in(&self, d: &Dialect) -> bool {
        d.version
            >= match d.server {
                Server::MySql => self.mysql,
                Server::MariaDb => self.mariadb,
            }
    }
}

/// A table of `information_schema`; its rows are about the table that the first of its columns names which names one.
#[derive(Debug)]
struct View {
    name: &'static str,
    columns: &'static [Column],
}

const VIEWS: [View; 6] = [
    View {
        name: "TABLES",
        columns: &[
            other("TABLE_CATALOG"),
            other("TABLE_SCHEMA"),
            table("TABLE_NAME", "TABLE_SCHEMA"),
            other("TABLE_TYPE"),
            other("ENGINE"),
            other("VERSION"),
            other("ROW_FORMAT"),
            other("TABLE_ROWS"),
            other("AVG_ROW_LENGTH"),
            other("DATA_LENGTH"),
            other("MAX_DATA_LENGTH"),
            other("INDEX_LENGTH"),
            other("DATA_FREE"),
            other("AUTO_INCREMENT"),
            other("CREATE_TIME"),
            other("UPDATE_TIME"),
            other("CHECK_TIME"),
            other("TABLE_COLLATION"),
            other("CHECKSUM"),
            other("CREATE_OPTIONS"),
            other("TABLE_COMMENT"),
            mariadb("MAX_INDEX_LENGTH", 100_300),
            mariadb("TEMPORARY", 100_300),
        ],
    },
    View {
        name: "COLUMNS",
        columns: &[
            other("TABLE_CATALOG"),
            other("TABLE_SCHEMA"),
            table("TABLE_NAME", "TABLE_SCHEMA"),
            other("COLUMN_NAME"),
            other("ORDINAL_POSITION"),
            other("COLUMN_DEFAULT"),
            other("IS_NULLABLE"),
            other("DATA_TYPE"),
            other("CHARACTER_MAXIMUM_LENGTH"),
            other("CHARACTER_OCTET_LENGTH"),
            other("NUMERIC_PRECISION"),
            other("NUMERIC_SCALE"),
            other("DATETIME_PRECISION"),
            other("CHARACTER_SET_NAME"),
            other("COLLATION_NAME"),
            other("COLUMN_TYPE"),
            other("COLUMN_KEY"),
            other("EXTRA"),
            other("PRIVILEGES"),
            other("COLUMN_COMMENT"),
            mariadb("IS_GENERATED", 100_205),
            Column {
                mysql: 50_700,
                mariadb: 100_205,
                ..other("GENERATION_EXPRESSION")
            },
            mysql("SRS_ID", 80_003),
        ],
    },
    View {
        name: "STATISTICS",
        columns: &[
            other("TABLE_CATALOG"),
            other("TABLE_SCHEMA"),
            table("TABLE_NAME", "TABLE_SCHEMA"),
            other("NON_UNIQUE"),
            other("INDEX_SCHEMA"),
            other("INDEX_NAME"),
            other("SEQ_IN_INDEX"),
            other("COLUMN_NAME"),
            other("COLLATION"),
            other("CARDINALITY"),
            other("SUB_PART"),
            other("PACKED"),
            other("NULLABLE"),
            other("INDEX_TYPE"),
            other("COMMENT"),
            other("INDEX_COMMENT"),
            mariadb("IGNORED", 100_600),
            mysql("IS_VISIBLE", 80_000),
            mysql("EXPRESSION", 80_013),
        ],
    },
    View {
        name: "KEY_COLUMN_USAGE",
        columns: &[
            other("CONSTRAINT_CATALOG"),
            other("CONSTRAINT_SCHEMA"),
            other("CONSTRAINT_NAME"),
            other("TABLE_CATALOG"),
            other("TABLE_SCHEMA"),
            table("TABLE_NAME", "TABLE_SCHEMA"),
            other("COLUMN_NAME"),
            other("ORDINAL_POSITION"),
            other("POSITION_IN_UNIQUE_CONSTRAINT"),
            other("REFERENCED_TABLE_SCHEMA"),
            table("REFERENCED_TABLE_NAME", "REFERENCED_TABLE_SCHEMA"),
            other("REFERENCED_COLUMN_NAME"),
        ],
    },
    View {
        name: "TABLE_CONSTRAINTS",
        columns: &[
            other("CONSTRAINT_CATALOG"),
            other("CONSTRAINT_SCHEMA"),
            other("CONSTRAINT_NAME"),
            other("TABLE_SCHEMA"),
            table("TABLE_NAME", "TABLE_SCHEMA"),
            other("CONSTRAINT_TYPE"),
            mysql("ENFORCED", 80_016),
        ],
    },
    View {
        name: "REFERENTIAL_CONSTRAINTS",
        columns: &[
            other("CONSTRAINT_CATALOG"),
            other("CONSTRAINT_SCHEMA"),
            other("CONSTRAINT_NAME"),
            other("UNIQUE_CONSTRAINT_CATALOG"),
            other("UNIQUE_CONSTRAINT_SCHEMA"),
            other("UNIQUE_CONSTRAINT_NAME"),
            other("MATCH_OPTION"),
            other("UPDATE_RULE"),
            other("DELETE_RULE"),
            table("TABLE_NAME", "CONSTRAINT_SCHEMA"),
            table("REFERENCED_TABLE_NAME", "UNIQUE_CONSTRAINT_SCHEMA"),
        ],
    },
];

/// A place where a query names one of these tables.
#[derive(Clone, Debug)]
pub struct Place {
    view: usize,
    /// From the name of the schema to its own.
    whole: Range<usize>,
    name: Range<usize>,
    /// From the SELECT before it.
    selected: Range<usize>,
    /// A column follows.
    is_qualifier: bool,
    has_alias: bool,
}

/// What may be stored, with statements in it.
const STORED: [&str; 3] = ["create", "alter", "begin"];

/// The places where queries name them; none in what is no query.
pub(super) fn places(text: &[u8], d: &Dialect) -> Vec<Place> {
    const QUERIES: [&str; 6] = ["select", "with", "explain", "desc", "describe", "analyze"];
    let is = |bytes: &[u8], words: &[&str]| {
        let is_it = |word: &&str| bytes.eq_ignore_ascii_case(word.as_bytes());
        words.iter().any(is_it)
    };
    let mut found = Vec::new();
    let (mut is_first, mut select_at) = (true, None);
    // It is no query.
    let mut is_other = false;
    let mut tokens = sql::Tokens::new(text, d).peekable();
    // The two tokens before.
    let (mut schema_at, mut dot_of): (Option<Range<usize>>, Option<Range<usize>>) = (None, None);
    while let Some(t) = tokens.next() {
        let bytes = text.get(t.start..t.end).unwrap_or_default();
        let is_name = matches!(t.tok, Tok::Word | Tok::Name);
        if t.tok == Tok::Semicolon {
            (is_first, select_at, is_other) = (true, None, false);
            (schema_at, dot_of) = (None, None);
            continue;
        }
        if t.tok == Tok::Word {
            if is_first && is(bytes, &STORED) {
                break;
            }
            is_other |= is_first && !is(bytes, &QUERIES);
            if is(bytes, &["select"]) {
                select_at = Some(t.start);
            }
        }
        is_first &= t.tok == Tok::Open;
        if is_other {
            continue;
        }
        let whole = dot_of.take();
        if t.tok == Tok::Dot {
            dot_of = schema_at.take();
            continue;
        }
        schema_at = None;
        if !is_name {
            continue;
        }
        let name = unquoted(bytes);
        if let Some(whole) = whole {
            let view = VIEWS
                .iter()
                .position(|view| name.eq_ignore_ascii_case(view.name.as_bytes()));
            let next = tokens.peek();
            let next_bytes = next.and_then(|t| text.get(t.start..t.end));
            let next_bytes = next_bytes.unwrap_or_default();
            if let Some((view, selects)) = view.zip(select_at) {
                found.push(Place {
                    view,
                    whole: whole.start..t.end,
                    name: t.start..t.end,
                    selected: selects..whole.start,
                    is_qualifier: next.is_some_and(|t| t.tok == Tok::Dot),
                    has_alias: next.is_some_and(|t| match t.tok {
                        Tok::Word => !is(next_bytes, &BEHIND),
                        Tok::Name => true,
                        _ => false,
                    }),
                });
            }
        } else if name.eq_ignore_ascii_case(b"information_schema") {
            schema_at = Some(t.start..t.end);
        }
    }
    found
}

fn unquoted(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'`' | b'"', inside @ .., _] => inside,
        _ => bytes,
    }
}

/// What can stand behind a table that has no other name.
const BEHIND: [&str; 28] = [
    "where",
    "join",
    "inner",
    "left",
    "right",
    "cross",
    "natural",
    "straight_join",
    "on",
    "using",
    "group",
    "order",
    "having",
    "limit",
    "union",
    "except",
    "intersect",
    "for",
    "lock",
    "into",
    "procedure",
    "window",
    "use",
    "ignore",
    "force",
    "partition",
    "set",
    "fetch",
];

impl Place {
    /// What is to be done to the text where it is asked in a group.
    pub(super) fn edits(&self, names: &Names<'_>, text: &[u8], d: &Dialect, edits: &mut Vec<Edit>) {
        let Some(view) = VIEWS.get(self.view).filter(|_| !names.is_plain()) else {
            return;
        };
        if self.is_qualifier {
            edits.push((self.whole.start..self.name.start, Vec::new(), None));
            return;
        }
        // What its query selects names the columns of the answer.
        let before = text.get(self.selected.clone()).unwrap_or_default();
        let mut sql = view.told(names, before, d);
        if !self.has_alias {
            sql.extend_from_slice(b" AS ");
            let name = unquoted(text.get(self.name.clone()).unwrap_or_default());
            sql.push(b'`');
            sql.extend_from_slice(name);
            sql.push(b'`');
        }
        edits.push((self.whole.clone(), sql, None));
    }
}

impl View {
    /// The query that stands for it.
    fn told(&self, names: &Names<'_>, before: &[u8], d: &Dialect) -> Vec<u8> {
        let columns = || self.columns.iter().filter(|column| column.is_in(d));
        let mut sql = b"(SELECT ".to_vec();
        for (number, column) in columns().enumerate() {
            sql.extend_from_slice(if number == 0 { b"" } else { b", " });
            match column.has {
                Has::Other => sql.extend_from_slice(column.name.as_bytes()),
                Has::Table(schema) => names.push_known(&mut sql, (schema, column.name), d),
            }
            sql.extend_from_slice(b" AS `");
            sql.extend_from_slice(&spelled(column.name, before, d));
            sql.push(b'`');
        }
        sql.extend_from_slice(b" FROM information_schema.");
        sql.extend_from_slice(self.name.as_bytes());
        let about = self.columns.iter().find_map(|column| match column.has {
            Has::Table(schema) => Some((schema, column.name)),
            Has::Other => None,
        });
        sql.extend_from_slice(b" WHERE 1");
        if let Some(about) = about {
            names.push_others_only(&mut sql, about, d);
        }
        if self.name == "TABLES" {
            for (schema, name) in &names.elsewhere {
                sql.extend_from_slice(b" UNION ALL SELECT 'def', SCHEMA_NAME, ");
                push_elsewhere(&mut sql, name, d);
                sql.extend_from_slice(b", 'BASE TABLE'");
                let rest = columns().count().saturating_sub(4);
                sql.extend(b", NULL".iter().copied().cycle().take(6 * rest));
                push_schema(&mut sql, schema, d);
            }
        }
        sql.push(b')');
        sql
    }
}

/// The name of a column as the client writes it: MariaDB heads columns so, MySQL by the names of its own.
fn spelled(name: &str, before: &[u8], d: &Dialect) -> Vec<u8> {
    let mut written = sql::Tokens::new(before, d)
        .filter(|t| matches!(t.tok, Tok::Word | Tok::Name))
        .filter_map(|t| before.get(t.start..t.end).map(unquoted));
    let is_it = |written: &&[u8]| written.eq_ignore_ascii_case(name.as_bytes());
    match d.server {
        Server::MySql => None,
        Server::MariaDb => written.find(is_it),
    }
    .unwrap_or(name.as_bytes())
    .to_vec()
}
