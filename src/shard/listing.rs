//! SHOW TABLES and SHOW TABLE STATUS where tables have other names on the servers than clients know: they are asked as queries of `information_schema`, so that patterns and conditions are about the names that clients know.

use std::ops::Range;

use super::describe::Item;
use super::fill::Edit;
use super::known::{Names, push_elsewhere, push_schema};
use super::map::{Placement, Table, is_name};
use super::refused::Refused;
use crate::sql::{self, Dialect, Server, Tok};

/// Longer ones are not read.
const WORDS_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Tables { with_types: bool },
    Status,
}

/// Such a statement.
#[derive(Clone, Debug)]
pub struct Listing {
    list: List,
    /// As the client has it.
    schema: Vec<u8>,
    /// Up to its pattern or condition.
    head: Range<usize>,
    /// The words in front of the pattern, and the pattern.
    like: Option<(Range<usize>, Range<usize>)>,
    end: usize,
}

/// The statements of a text that list tables which may have other names.
///
/// # Errors
/// It is not known of which schema one lists them.
pub(super) fn listings(
    placement: &Placement,
    text: &[u8],
    d: &Dialect,
    schema: Option<&[u8]>,
) -> Result<Vec<Listing>, Refused> {
    let mut found = Vec::new();
    // Those of a text are one behind the other; in what is stored they are left as they are.
    let mut goes_elsewhere = false;
    for words in Statements::of(text, d) {
        let is = |at: usize, of: &[&str]| words.get(at).is_some_and(|item| item.is_one_of(of));
        if is(0, &["create", "alter"]) || is(0, &["begin"]) && is(1, &["not"]) {
            break;
        }
        goes_elsewhere |= is(0, &["use"]);
        let schema = schema.filter(|_| !goes_elsewhere);
        match listing(placement, text, &words, schema) {
            None => {}
            Some(Lists::These(listing)) => found.push(listing),
            Some(Lists::Unknown) if goes_elsewhere => {
                return Err(Refused::new(
                    "SHOW TABLES behind USE in one text: name its schema (FROM), or send it alone",
                ));
            }
            Some(Lists::Unknown) => {}
        }
    }
    Ok(found)
}

/// Whether it is all that a text has.
pub(super) fn is_alone(listings: &[Listing], text: &[u8], d: &Dialect) -> bool {
    let others = Statements::of(text, d).filter(|words| !words.is_empty());
    listings.len() == 1 && others.count() == 1
}

/// The words of each statement of a text: of one that shows something all, and of any other those at its front.
struct Statements<'t> {
    text: &'t [u8],
    d: &'t Dialect,
    tokens: sql::Tokens<'t>,
}

impl<'t> Statements<'t> {
    fn of(text: &'t [u8], d: &'t Dialect) -> Self {
        Self {
            text,
            d,
            tokens: sql::Tokens::new(text, d),
        }
    }
}

impl Iterator for Statements<'_> {
    type Item = Vec<Item>;

    fn next(&mut self) -> Option<Vec<Item>> {
        let mut words: Vec<Item> = Vec::new();
        let mut is_any = false;
        for t in self.tokens.by_ref() {
            is_any = true;
            if t.tok == Tok::Semicolon {
                break;
            }
            let max = match words.first() {
                Some(first) if first.is_one_of(&["show"]) => WORDS_MAX,
                _ => 2,
            };
            if words.len() < max {
                words.push(Item::new(self.text, &t, self.d));
            }
        }
        is_any.then_some(words)
    }
}

enum Lists {
    These(Listing),
    /// Those of a schema that is not known.
    Unknown,
}

/// The statement of these words, if it lists tables that may have other names.
fn listing(
    placement: &Placement,
    text: &[u8],
    words: &[Item],
    schema: Option<&[u8]>,
) -> Option<Lists> {
    if !words.first()?.is_one_of(&["show"]) || words.len() >= WORDS_MAX {
        return None;
    }
    let (list, mut at) = kind(words)?;
    let is = |at: usize, of: &[&str]| words.get(at).is_some_and(|item| item.is_one_of(of));
    let mut schema = schema.map(<[u8]>::to_vec);
    if is(at, &["from", "in"]) {
        schema = words.get(at + 1).map(|item| item.name.clone());
        at += 2;
    }
    let Some(schema) = schema else {
        return Some(Lists::Unknown);
    };
    let start = words.first()?.place.start;
    let last = words.get(at.checked_sub(1)?)?;
    let of_schema = |table: &Table| is_name(&table.schema, &schema);
    if !placement.tables.iter().any(of_schema) {
        return None;
    }
    let like = match (words.get(at), words.get(at + 1)) {
        (Some(word), Some(pattern)) if word.is_one_of(&["like"]) => {
            Some((word.place.clone(), pattern.place.clone())).filter(|_| words.len() == at + 2)
        }
        _ => None,
    };
    let is_known = like.is_some() || is(at, &["where"]) || at == words.len();
    let end = words.last().map_or(text.len(), |item| item.place.end);
    is_known.then_some(Lists::These(Listing {
        list,
        schema,
        head: start..last.place.end,
        like,
        end,
    }))
}

/// What is listed, and how many words say so.
fn kind(items: &[Item]) -> Option<(List, usize)> {
    let is = |at: usize, words: &[&str]| items.get(at).is_some_and(|item| item.is_one_of(words));
    let mut at = 1;
    if is(at, &["table"]) && is(at + 1, &["status"]) {
        return Some((List::Status, at + 2));
    }
    at += usize::from(is(at, &["extended"]));
    let with_types = is(at, &["full"]);
    at += usize::from(with_types);
    is(at, &["tables"]).then_some((List::Tables { with_types }, at + 1))
}

impl Listing {
    /// What is to be done to the text where it is asked in this group.
    pub(super) fn edits(
        &self,
        placement: &Placement,
        group: usize,
        (text, d): (&[u8], &Dialect),
        edits: &mut Vec<Edit>,
    ) -> Result<(), Refused> {
        let schema = String::from_utf8_lossy(&self.schema);
        let names = placement.names_in(group).within(&schema);
        if names.is_plain() {
            return Ok(());
        }
        let pattern = self.like.as_ref();
        let pattern = pattern.and_then(|(_, place)| text.get(place.clone()));
        let header = self.header(&schema, pattern, d)?;
        let query = self.query(&names, &schema, &header, d);
        edits.push((self.head.clone(), query, None));
        if let (Some((words, place)), Some(pattern)) = (&self.like, pattern) {
            // Lists go by the case of letters where the server's file system does.
            let mut condition = b"WHERE CONVERT(".to_vec();
            condition.extend_from_slice(&header);
            condition.extend_from_slice(
                b" USING utf8mb4) COLLATE utf8mb4_bin LIKE CONVERT(IF(@@lower_case_table_names = 0, ",
            );
            condition.extend_from_slice(pattern);
            condition.extend_from_slice(b", LOWER(");
            condition.extend_from_slice(pattern);
            condition.extend_from_slice(b")) USING utf8mb4)");
            edits.push((words.start..place.end, condition, None));
        }
        // Lists are in the order of bytes, whole, whatever `sql_select_limit` says.
        let mut tail = b" ORDER BY CAST(".to_vec();
        tail.extend_from_slice(&header);
        tail.extend_from_slice(b" AS BINARY) LIMIT 18446744073709551615");
        edits.push((self.end..self.end, tail, None));
        Ok(())
    }

    /// The name of the first column, quoted.
    fn header(
        &self,
        schema: &str,
        pattern: Option<&[u8]>,
        d: &Dialect,
    ) -> Result<Vec<u8>, Refused> {
        let mut name = match self.list {
            List::Tables { .. } => format!("Tables_in_{schema}").into_bytes(),
            List::Status => b"Name".to_vec(),
        };
        if let Some(pattern) = pattern.filter(|_| self.list != List::Status) {
            name.extend_from_slice(b" (");
            name.extend(sql::decode(pattern, d).unwrap_or_default());
            name.push(b')');
        }
        let mut quoted = Vec::with_capacity(name.len() + 2);
        if sql::push_name(&mut quoted, &name, d) {
            Ok(quoted)
        } else {
            Err(Refused::new("a pattern that no column can have for a name"))
        }
    }

    /// The query without pattern, condition and order.
    fn query(&self, names: &Names<'_>, schema: &str, header: &[u8], d: &Dialect) -> Vec<u8> {
        let mut sql = b"SELECT * FROM (SELECT ".to_vec();
        names.push_known(&mut sql, ("TABLE_SCHEMA", "TABLE_NAME"), d);
        sql.extend_from_slice(b" AS ");
        sql.extend_from_slice(header);
        let others = self.others(d);
        for (column, title) in &others {
            sql.extend_from_slice(format!(", {column} AS `{title}`").as_bytes());
        }
        sql.extend_from_slice(b" FROM information_schema.TABLES WHERE TABLE_SCHEMA = ");
        sql::push_string(&mut sql, schema.as_bytes(), d);
        names.push_others_only(&mut sql, ("TABLE_SCHEMA", "TABLE_NAME"), d);
        for (_, name) in &names.elsewhere {
            sql.extend_from_slice(b" UNION ALL SELECT ");
            push_elsewhere(&mut sql, name, d);
            for (column, _) in &others {
                sql.extend_from_slice(match *column {
                    "TABLE_TYPE" => b", 'BASE TABLE'",
                    _ => b", NULL",
                });
            }
            push_schema(&mut sql, schema, d);
        }
        sql.extend_from_slice(b") AS TABLES ");
        sql
    }

    /// The columns behind the first, and what they are called.
    fn others(&self, d: &Dialect) -> Vec<(&'static str, &'static str)> {
        match self.list {
            List::Tables { with_types: true } => vec![("TABLE_TYPE", "Table_type")],
            List::Tables { .. } => Vec::new(),
            List::Status => {
                let is_more = d.server == Server::MariaDb && d.version >= 100_300;
                let more = &[
                    ("MAX_INDEX_LENGTH", "Max_index_length"),
                    ("TEMPORARY", "Temporary"),
                ];
                let more = more.iter().filter(|_| is_more);
                STATUS.iter().chain(more).copied().collect()
            }
        }
    }
}

const STATUS: [(&str, &str); 17] = [
    ("ENGINE", "Engine"),
    ("VERSION", "Version"),
    ("ROW_FORMAT", "Row_format"),
    ("TABLE_ROWS", "Rows"),
    ("AVG_ROW_LENGTH", "Avg_row_length"),
    ("DATA_LENGTH", "Data_length"),
    ("MAX_DATA_LENGTH", "Max_data_length"),
    ("INDEX_LENGTH", "Index_length"),
    ("DATA_FREE", "Data_free"),
    ("AUTO_INCREMENT", "Auto_increment"),
    ("CREATE_TIME", "Create_time"),
    ("UPDATE_TIME", "Update_time"),
    ("CHECK_TIME", "Check_time"),
    ("TABLE_COLLATION", "Collation"),
    ("CHECKSUM", "Checksum"),
    ("CREATE_OPTIONS", "Create_options"),
    ("TABLE_COMMENT", "Comment"),
];
