//! How a table is defined on a server, and in what two definitions differ.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Fault;
use super::connection::{Answer, Connection};
use crate::sql::Server;

/// What is asked of each column: its name and what both kinds of servers say alike, then what they word each in its own way.
const COLUMNS: &str = "COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_TYPE, COLUMN_DEFAULT, COLLATION_NAME, COLUMN_KEY, EXTRA";
/// So many of them are alike on both.
const ALIKE: usize = 3;
/// Tables that are asked for at once, and columns that they may have together.
const TABLES_AT_ONCE: usize = 16;
const COLUMNS_MAX: usize = 65_536;

type Column = Vec<Option<Vec<u8>>>;

/// A table as a server describes it.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) group: String,
    pub(super) kind: Server,
    pub(super) columns: Vec<Column>,
}

/// The columns of a schema's tables of these names, by name as the server writes it; those that are not there have none.
///
/// # Errors
/// The server does not tell.
pub(super) fn columns(
    connection: &mut Connection,
    schema: &str,
    names: &[&str],
    deadline: Instant,
) -> Result<BTreeMap<Vec<u8>, Vec<Column>>, Fault> {
    let mut tables: BTreeMap<Vec<u8>, Vec<Column>> = BTreeMap::new();
    for names in names.chunks(TABLES_AT_ONCE) {
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let sql = format!(
            "SELECT TABLE_NAME, {COLUMNS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME IN ({}) ORDER BY TABLE_NAME, ORDINAL_POSITION",
            quoted(schema),
            list.join(", ")
        );
        match connection.ask_many(&sql, COLUMNS_MAX, deadline)? {
            Answer::Rows(_, rows) => {
                for row in rows {
                    let mut cells = row.into_iter();
                    let name = cells.next().flatten().unwrap_or_default();
                    tables.entry(name).or_default().push(cells.collect());
                }
            }
            Answer::Done => {}
            Answer::Refused { code, message } => return Err(Fault::Refused { code, message }),
        }
    }
    Ok(tables)
}

/// A name as a text of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"))
}

/// In what two groups' definitions differ; servers of two kinds word some things in two ways, which are passed over.
pub(super) fn difference(first: &Definition, other: &Definition) -> Option<String> {
    let compared = if first.kind == other.kind {
        usize::MAX
    } else {
        ALIKE
    };
    let named = |column: Option<&Column>| {
        let text = |at: usize| {
            let cell = column.and_then(|column| column.get(at)).cloned().flatten();
            String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned()
        };
        match column {
            None => "none".to_owned(),
            Some(_) => format!("`{}` {}", text(0), text(ALIKE)),
        }
    };
    let count = first.columns.len().max(other.columns.len());
    let at = (0..count).find(|at| {
        let of = |definition: &Definition| {
            let column = definition.columns.get(*at).cloned();
            column.map(|column| column.into_iter().take(compared).collect::<Vec<_>>())
        };
        of(first) != of(other)
    })?;
    Some(format!(
        "column {} is {} there and {} here (type, default, collation and keys are compared too)",
        at + 1,
        named(first.columns.get(at)),
        named(other.columns.get(at)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(kind: Server, columns: &[[&str; 5]]) -> Definition {
        let cell = |text: &&str| Some(text.as_bytes().to_vec());
        Definition {
            group: String::new(),
            kind,
            columns: columns
                .iter()
                .map(|column| column.iter().map(cell).collect())
                .collect(),
        }
    }

    #[test]
    fn definitions_are_compared() {
        const ID: [&str; 5] = ["id", "int", "NO", "int(11)", "NULL"];
        const ID_THERE: [&str; 5] = ["id", "int", "NO", "int", ""];
        const NAME: [&str; 5] = ["name", "varchar", "YES", "varchar(9)", "NULL"];
        let (maria, mysql) = (Server::MariaDb, Server::MySql);
        let first = definition(maria, &[ID, NAME]);
        assert_eq!(difference(&first, &definition(maria, &[ID, NAME])), None);
        let told = difference(&first, &definition(maria, &[ID_THERE, NAME])).unwrap();
        assert!(
            told.starts_with("column 1 is `id` int(11) there and `id` int here"),
            "{told}"
        );
        // As the other kind of server words it.
        assert_eq!(
            difference(&first, &definition(mysql, &[ID_THERE, NAME])),
            None
        );
        let told = difference(&first, &definition(mysql, &[ID])).unwrap();
        assert!(
            told.starts_with("column 2 is `name` varchar(9) there and none here"),
            "{told}"
        );
        let told = difference(&first, &definition(mysql, &[NAME, ID])).unwrap();
        assert!(told.starts_with("column 1 is `id`"), "{told}");
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a'b\\c"), "'a''b\\\\c'");
    }
}
