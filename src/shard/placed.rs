//! Where the rows of an INSERT go, and whether a server stores their keys as they are given: where sql_mode is not strict, and for INSERT
//! IGNORE, it stores what the column can hold, and the row would be looked for elsewhere.
//!
//! Not here: what a key is made of (`key`), and rows apart (`parts`).

use super::cond::Operand;
use super::key::{Key, Misfit, Scalar, fold};
use super::map::Placement;
use super::plan::Asked;
use super::refused::Refused;
use super::shape::{Rows, Shape};
use crate::config::KeyType;

impl Placement {
    /// The shards that an INSERT's rows go to, for each row where it has them.
    pub(super) fn inserted(
        &self,
        shape: &Shape,
        rows: &Rows,
        shards: &[Vec<usize>],
        asked: Asked<'_>,
    ) -> Result<Vec<usize>, Refused> {
        let table = self.known(shape.refs.first().map_or(usize::MAX, |r| r.table))?;
        let key = &table.key;
        let fill = shape.fill.as_ref().filter(|fill| fill.is_key);
        let unknown = [Operand::Value(Scalar::Unknown)];
        let values = match rows {
            Rows::Values(values) => values.as_slice(),
            // `SET` without it.
            Rows::Unknown if fill.is_some() => &unknown,
            _ => &[],
        };
        match rows {
            Rows::Values(_) | Rows::Unknown if !values.is_empty() => {
                let mut targets = Vec::new();
                for (row, value) in values.iter().enumerate() {
                    let is_filled = fill.is_some_and(|f| matches!(f.rows.get(row), Some(Some(_))));
                    let id = asked.numbers.of(row).filter(|_| is_filled);
                    let id = id.map(|id| Scalar::Int(id.into()));
                    let value = id.as_ref().unwrap_or_else(|| value.value(asked.params));
                    let stored = Key::stored(value, table.key_type);
                    let stored = stored.map_err(|misfit| Refused::new(misfit.why(key)))?;
                    let shard = table.shard_of(&stored).ok_or_else(|| {
                        Refused::new(format!(
                            "no range of {}.{} holds the shard key {}",
                            table.schema,
                            table.name,
                            String::from_utf8_lossy(&stored.to_text())
                        ))
                    })?;
                    targets.push(shard);
                }
                Ok(targets)
            }
            Rows::Values(_) => Ok(Vec::new()),
            Rows::Unknown | Rows::Unlisted => Err(Refused::new(format!(
                "the value of the shard key {key} is known to the server only: write it as a literal or a parameter"
            ))),
            Rows::KeyOf(of) => {
                let source = self.known(shape.refs.get(*of).map_or(usize::MAX, |r| r.table))?;
                if !source.is_placed_like(table) {
                    return Err(Refused::new(format!(
                        "{}.{} and {}.{} are not placed alike",
                        source.schema, source.name, table.schema, table.name
                    )));
                }
                Ok(shards.get(*of).cloned().unwrap_or_default())
            }
        }
    }

    /// The table whose columns have to be known before it is sure that keys are stored as they are; nothing where that is sure.
    ///
    /// # Errors
    /// The server would store another key.
    pub(super) fn unknown_column(
        &self,
        shape: &Shape,
        rows: &Rows,
        asked: Asked<'_>,
    ) -> Result<Option<usize>, Refused> {
        let of = |at: usize| shape.refs.get(at).map_or(usize::MAX, |r| r.table);
        let number = of(0);
        let table = self.known(number)?;
        // A time is rounded wherever fewer digits are kept.
        let is_rounded = matches!(rows, Rows::KeyOf(_)) && table.key_type == KeyType::Date;
        if !asked.is_lax && !shape.is_lax && !is_rounded {
            return Ok(None);
        }
        // `None` where nothing is known of the table.
        let type_of = |number: usize| -> Result<Option<&[u8]>, Refused> {
            let table = self.known(number)?;
            let columns = asked.columns.and_then(|columns| columns.of(table));
            Ok(columns.map(|columns| columns.type_of(&table.key).unwrap_or_default()))
        };
        let changed = || Refused::new(Misfit::Type.why(&table.key));
        match rows {
            Rows::Values(values) => {
                let given = values.iter().enumerate().map(|(row, value)| {
                    let id = asked.numbers.of(row).map(|id| Scalar::Int(id.into()));
                    let is_filled = shape.fill.as_ref().is_some_and(|fill| {
                        fill.is_key && matches!(fill.rows.get(row), Some(Some(_)))
                    });
                    match id.filter(|_| is_filled) {
                        Some(id) => id,
                        None => value.value(asked.params).clone(),
                    }
                });
                for scalar in given {
                    if is_held_by_all(&scalar, table.key_type) {
                        continue;
                    }
                    match type_of(number)? {
                        None => return Ok(Some(number)),
                        Some(column) if !holds(column, &scalar, table.key_type) => {
                            return Err(changed());
                        }
                        Some(_) => {}
                    }
                }
                Ok(None)
            }
            Rows::KeyOf(source) => match (type_of(number)?, type_of(of(*source))?) {
                (None, _) => Ok(Some(number)),
                (_, None) => Ok(Some(of(*source))),
                (Some(to), Some(from)) if !keeps(to, from, table.key_type) => Err(changed()),
                _ => Ok(None),
            },
            Rows::Unknown | Rows::Unlisted => Ok(None),
        }
    }
}

/// Whether every column of a type of keys holds a value, or would not be given it.
fn is_held_by_all(scalar: &Scalar, key_type: KeyType) -> bool {
    match Key::stored(scalar, key_type) {
        Ok(Key::Int(number)) => (0..=127).contains(&number),
        Ok(Key::Text(_)) => false,
        Ok(Key::Date(_)) | Err(_) => true,
    }
}

/// Whether a column keeps the keys of another, by their types as SHOW COLUMNS has them.
fn keeps(to: &[u8], from: &[u8], key_type: KeyType) -> bool {
    let is_day =
        |of: &[u8]| of.eq_ignore_ascii_case(b"date") || of.eq_ignore_ascii_case(b"datetime");
    let is_known = key_type == KeyType::Date && (is_day(to) || to.starts_with(b"datetime("));
    // Without a fraction nothing is rounded.
    to.eq_ignore_ascii_case(from) || is_known && is_day(from)
}

/// Whether a column of this type, as SHOW COLUMNS has it, holds a value as it is.
fn holds(column: &[u8], scalar: &Scalar, key_type: KeyType) -> bool {
    let column = String::from_utf8_lossy(column).to_ascii_lowercase();
    let end = column.find(|c: char| !c.is_ascii_alphabetic());
    let (base, rest) = column.split_at(end.unwrap_or(column.len()));
    match Key::stored(scalar, key_type) {
        Ok(Key::Int(number)) => {
            let bits = match base {
                "tinyint" => 8,
                "smallint" => 16,
                "mediumint" => 24,
                "int" => 32,
                "bigint" => 64,
                _ => return false,
            };
            let span = if rest.contains("unsigned") {
                0..1_i128 << bits
            } else {
                -(1_i128 << (bits - 1))..1_i128 << (bits - 1)
            };
            span.contains(&number)
        }
        Ok(Key::Text(folded)) => {
            // Blanks at the end may go: they do not matter to where it lies.
            let length = fold(&folded).map_or(usize::MAX, |text| text.len());
            let size = rest
                .strip_prefix('(')
                .and_then(|rest| rest.split(')').next());
            let size = match base {
                "char" | "varchar" | "binary" | "varbinary" => {
                    size.and_then(|size| size.parse().ok()).unwrap_or(0)
                }
                "tinytext" | "tinyblob" => 255,
                "text" | "blob" => 65_535,
                "mediumtext" | "mediumblob" | "longtext" | "longblob" => 1 << 24,
                _ => return false,
            };
            length <= size
        }
        Ok(Key::Date(_)) => base == "date" || base == "datetime",
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_columns_hold() {
        let int = |column: &str, number: i128| {
            holds(column.as_bytes(), &Scalar::Int(number), KeyType::Int)
        };
        for (column, number, wanted) in [
            ("tinyint(4)", 127, true),
            ("tinyint(4)", 128, false),
            ("tinyint", -128, true),
            ("tinyint", -129, false),
            ("tinyint(3) unsigned", 255, true),
            ("tinyint unsigned", 256, false),
            ("TINYINT UNSIGNED", -1, false),
            ("mediumint", 8_388_607, true),
            ("mediumint", 8_388_608, false),
            ("int(11)", 2_147_483_648, false),
            ("int(10) unsigned zerofill", 4_294_967_295, true),
            ("bigint(20)", i64::MAX.into(), true),
            ("bigint(20)", u64::MAX.into(), false),
            ("bigint unsigned", u64::MAX.into(), true),
            ("decimal(10,0)", 5, false),
            ("enum('a','b')", 1, false),
            ("", 1, false),
        ] {
            assert_eq!(int(column, number), wanted, "{column} {number}");
        }
        let text = |column: &str, text: &str| {
            let text = Scalar::Text(text.as_bytes().to_vec());
            holds(column.as_bytes(), &text, KeyType::String)
        };
        assert!(text("varchar(3)", "abc") && text("char(3)", "abc   "));
        assert!(!text("varchar(3)", "abcd") && !text("varbinary(2)", "abc"));
        assert!(text("text", "abcd") && !text("enum('abc')", "abc"));
        assert!(!text("set('a','b')", "a"));
        for (to, from, wanted) in [
            ("datetime", "datetime", true),
            ("datetime(3)", "DATETIME(3)", true),
            ("datetime(3)", "datetime", true),
            ("date", "datetime", true),
            ("datetime", "date", true),
            ("datetime", "datetime(6)", false),
            ("date", "datetime(1)", false),
            ("timestamp", "datetime", false),
        ] {
            let is_kept = keeps(to.as_bytes(), from.as_bytes(), KeyType::Date);
            assert_eq!(is_kept, wanted, "{to} {from}");
        }
        assert!(!keeps(b"smallint", b"int", KeyType::Int));
        assert!(keeps(b"int", b"INT", KeyType::Int));
        assert!(is_held_by_all(&Scalar::Int(127), KeyType::Int));
        assert!(!is_held_by_all(&Scalar::Int(-1), KeyType::Int));
        // What is refused anyway needs no look at the column.
        assert!(is_held_by_all(&Scalar::Null, KeyType::Int));
    }
}
