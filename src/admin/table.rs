//! What a command answers: rows with named columns, an OK, or an error; and the packets that carry it.

use std::borrow::Cow;
use std::time::Duration;

use crate::wire::{
    Capabilities, ColumnDef, ErrPacket, OkPacket, ResultSetWriter, RowFormat, Status,
};

/// Rows with named columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: Cow<'static, str>,
    is_number: bool,
}

impl Table {
    /// A table without rows. A column whose name ends with `#` (which is not part of the name) holds numbers.
    #[must_use]
    pub fn new<const N: usize>(columns: [&'static str; N]) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|name| Column {
                    name: Cow::Borrowed(name.strip_suffix('#').unwrap_or(name)),
                    is_number: name.ends_with('#'),
                })
                .collect(),
            rows: Vec::new(),
        }
    }

    /// A table whose columns are named by who asks.
    #[must_use]
    pub fn with_columns(names: impl Iterator<Item = String>) -> Self {
        Self {
            columns: names
                .map(|name| Column {
                    name: Cow::Owned(name),
                    is_number: false,
                })
                .collect(),
            rows: Vec::new(),
        }
    }

    /// The original's answer to a change that was made: a column `status`, and no row.
    #[must_use]
    pub fn status() -> Self {
        Self::new(["status"])
    }

    /// Adds a row with a value for each column.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        self.push_row(row.into_iter().map(Some).collect());
    }

    /// Adds a row, `None` for NULL.
    pub fn push_row(&mut self, row: Vec<Option<String>>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Option<String>>] {
        &self.rows
    }

    /// Names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// Keeps the rows for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&Vec<Option<String>>) -> bool) {
        self.rows.retain(keep);
    }

    fn write(&self, out: &mut Vec<u8>, caps: Capabilities, status: Status, format: RowFormat) {
        let columns: Vec<ColumnDef<'_>> = self
            .columns
            .iter()
            // In binary rows a number would be no text: there all columns are texts.
            .map(|column| match format {
                RowFormat::Text if column.is_number => ColumnDef::number(column.name.as_bytes()),
                RowFormat::Text | RowFormat::Binary => ColumnDef::text(column.name.as_bytes()),
            })
            .collect();
        let mut result = ResultSetWriter::begin_with(out, 1, caps, status, format, &columns);
        for row in &self.rows {
            let values: Vec<Option<&[u8]>> = row
                .iter()
                .map(|value| value.as_deref().map(str::as_bytes))
                .collect();
            result.row(&values);
        }
        result.finish();
    }
}

/// A moment, counted since 1970, as `2026-11-30 04:05:06.789` in UTC.
#[must_use]
pub fn timestamp(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; an era has 400 of them.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}",
        era * 400 + year + carry,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        since_1970.subsec_millis()
    )
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The error's code.
    pub code: u16,
    /// Its SQL state.
    pub state: [u8; 5],
    /// What happened and what to do.
    pub text: String,
}

impl Refusal {
    /// With the code and state that the original used for all errors of commands.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            code: 1105,
            state: *b"07000",
            text: text.into(),
        }
    }

    /// With a code of the servers.
    #[must_use]
    pub fn with(code: u16, state: [u8; 5], text: impl Into<String>) -> Self {
        Self {
            code,
            state,
            text: text.into(),
        }
    }

    /// Writes it in place of a greeting.
    pub fn write_alone(&self, out: &mut Vec<u8>) {
        self.write(out, 0, Capabilities::NONE);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let end = self
            .text
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .take_while(|end| *end <= TEXT_MAX)
            .last();
        let text = self.text.get(..end.unwrap_or(0)).unwrap_or_default();
        let error = ErrPacket {
            code: self.code,
            sqlstate: Some(self.state),
            message: text.as_bytes(),
        };
        error.write(out, seq, caps)
    }
}

/// Bytes of an error's text: clients have room for about as many.
const TEXT_MAX: usize = 500;

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done, without rows.
    Ok,
    /// Rows.
    Table(Table),
    /// Not done.
    Refused(Refusal),
}

impl From<Result<Table, Refusal>> for Answer {
    fn from(result: Result<Table, Refusal>) -> Self {
        match result {
            Ok(table) => Self::Table(table),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

impl Answer {
    /// Writes the packets of a reply to a command.
    pub(super) fn write(&self, out: &mut Vec<u8>, caps: Capabilities, format: RowFormat) {
        match self {
            Self::Ok => {
                let ok = OkPacket {
                    status: Status::AUTOCOMMIT,
                    ..OkPacket::default()
                };
                ok.write(out, 1, caps);
            }
            Self::Table(table) => table.write(out, caps, Status::AUTOCOMMIT, format),
            Self::Refused(refusal) => {
                refusal.write(out, 1, caps);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (seconds, wanted) in [
            (0, "1970-01-01 00:00:00.007"),
            (951_782_399, "2000-02-28 23:59:59.007"),
            (951_782_400, "2000-02-29 00:00:00.007"),
            (951_868_800, "2000-03-01 00:00:00.007"),
            (1_796_011_506, "2026-11-30 04:05:06.007"),
            (4_107_542_399, "2100-02-28 23:59:59.007"),
            (4_107_542_400, "2100-03-01 00:00:00.007"),
        ] {
            let moment = Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(timestamp(moment), wanted);
        }
    }
}
