//! Whether a table has the same rows in several groups, as far as a short look tells: their number, and where all servers reckon alike
//! the servers' own checksum.

use std::time::Instant;

use super::Fault;
use super::connection::{Answer, Connection};

/// Of more rows only that there are more is looked at.
const ROWS_MAX: u64 = 100_000;

/// What was seen of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    /// At most one more than are looked at.
    rows: u64,
    /// The server, by whose reckoning it is, and the checksum.
    checksum: Option<(String, Vec<u8>)>,
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rows {
    /// No difference was seen.
    Alike,
    /// They are others.
    Others,
    /// They cannot be compared.
    Unknown(Unknown),
}

/// Why rows cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) why: String,
    /// The connection is not to be asked any more: an answer may come late.
    pub(super) is_lost: bool,
}

fn unknown(why: impl Into<String>) -> Unknown {
    Unknown {
        why: why.into(),
        is_lost: false,
    }
}

/// Looks at a table on a server.
pub(super) fn of(
    connection: &mut Connection,
    (schema, name): (&str, &str),
    deadline: Instant,
) -> Result<Sum, Unknown> {
    let named = format!(
        "`{}`.`{}`",
        schema.replace('`', "``"),
        name.replace('`', "``")
    );
    let more = ROWS_MAX + 1;
    let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {named} LIMIT {more}) AS t");
    let count = cell(connection, &sql, 0, deadline)?;
    let count = String::from_utf8(count)
        .ok()
        .and_then(|text| text.parse().ok());
    let rows: u64 = count.ok_or_else(|| unknown("the number of rows is none"))?;
    let mut checksum = None;
    if rows <= ROWS_MAX {
        let of = String::from_utf8_lossy(&connection.facts.version).into_owned();
        let sql = format!("CHECKSUM TABLE {named}");
        checksum = Some((of, cell(connection, &sql, 1, deadline)?));
    }
    Ok(Sum { rows, checksum })
}

/// A value of the first row.
fn cell(
    connection: &mut Connection,
    sql: &str,
    at: usize,
    deadline: Instant,
) -> Result<Vec<u8>, Unknown> {
    let answer: Result<Answer, Fault> = connection.ask(sql, deadline);
    match answer {
        Ok(Answer::Rows(_, rows)) => {
            let row = rows.into_iter().next().unwrap_or_default();
            let value = row.into_iter().nth(at).flatten();
            value.ok_or_else(|| unknown(format!("no answer to {sql}")))
        }
        Ok(Answer::Done) => Err(unknown(format!("no answer to {sql}"))),
        Ok(Answer::Refused { code, message }) => Err(unknown(format!("{code} {message}"))),
        Err(fault) => Err(Unknown {
            why: fault.to_string(),
            is_lost: true,
        }),
    }
}

/// What was seen in all groups, held against each other.
pub(super) fn compare(seen: &[Result<Sum, Unknown>]) -> Rows {
    let mut first: Option<&Sum> = None;
    for sum in seen {
        let sum = match sum {
            Ok(sum) => sum,
            Err(why) => return Rows::Unknown(why.clone()),
        };
        let Some(first) = first else {
            first = Some(sum);
            continue;
        };
        let is_other_sum = match (&first.checksum, &sum.checksum) {
            (Some((by, one)), Some((with, other))) => by == with && one != other,
            _ => false,
        };
        if first.rows != sum.rows || is_other_sum {
            return Rows::Others;
        }
    }
    Rows::Alike
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: u64, checksum: Option<(&str, &str)>) -> Result<Sum, Unknown> {
        let checksum = checksum.map(|(by, sum)| (by.to_owned(), sum.as_bytes().to_vec()));
        Ok(Sum { rows, checksum })
    }

    #[test]
    fn numbers_and_checksums_tell() {
        let one = sum(3, Some(("a", "17")));
        for (other, wanted) in [
            (sum(3, Some(("a", "17"))), Rows::Alike),
            (sum(3, Some(("a", "18"))), Rows::Others),
            (sum(4, Some(("a", "17"))), Rows::Others),
            // Another server reckons otherwise.
            (sum(3, Some(("b", "18"))), Rows::Alike),
            (sum(4, Some(("b", "17"))), Rows::Others),
            (Err(unknown("no")), Rows::Unknown(unknown("no"))),
        ] {
            assert_eq!(compare(&[one.clone(), other.clone()]), wanted, "{other:?}");
            assert_eq!(compare(&[one.clone(), one.clone(), other]), wanted);
        }
        let many = sum(ROWS_MAX + 1, None);
        assert_eq!(compare(&[many.clone(), many.clone()]), Rows::Alike);
        assert_eq!(compare(&[many, one]), Rows::Others);
        assert_eq!(compare(&[]), Rows::Alike);
    }
}
