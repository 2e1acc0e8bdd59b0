//! The sum of what the parts of a write have answered.

use crate::shard::Dress;
use crate::sql::{self, Dialect};
use crate::wire::{OkPacket, Packets, TextRow};

/// Warnings about a statement's text, which each of its parts gives again: what is deprecated.
const ONCE: [u16; 4] = [1287, 1681, 3719, 3778];

/// Warnings that are kept of all parts together, in bytes.
const WARNINGS_MAX: usize = 1024 * 1024;

/// What the parts have answered.
#[derive(Debug, Default)]
pub(in crate::session) struct Total {
    pub(in crate::session) affected: u64,
    /// What the OK packet told of the part with the last row: an id that stands in the client's statement.
    pub(in crate::session) insert_id: u64,
    pub(in crate::session) last_row: Option<usize>,
    /// The first that was generated.
    pub(in crate::session) generated: Option<u64>,
    /// That of the last part, to be told apart from one that was generated.
    pub(in crate::session) told: u64,
    pub(in crate::session) warnings: u64,
    /// Level, code, message.
    pub(in crate::session) shown: Vec<[Vec<u8>; 3]>,
    pub(in crate::session) shown_size: usize,
    pub(in crate::session) info: Vec<(String, u64)>,
    /// Rows that are there already are passed over.
    pub(in crate::session) ignores: bool,
}

impl Total {
    pub(in crate::session) fn add(&mut self, ok: &OkPacket<'_>, rows: &[usize]) {
        self.affected = self.affected.saturating_add(ok.affected);
        self.told = ok.insert_id;
        if rows.last().copied() >= self.last_row {
            self.insert_id = ok.insert_id;
            self.last_row = rows.last().copied();
        }
        self.warnings += u64::from(ok.warnings);
        let mut info = read_info(ok.info);
        if info.is_empty() && rows.len() == 1 {
            // None is affected where one is passed over, or would become what it is.
            let duplicates = u64::from(ok.affected > 1 || ok.affected == 0 && self.ignores);
            let numbers = [
                ("Records", 1),
                ("Duplicates", duplicates),
                ("Warnings", u64::from(ok.warnings)),
            ];
            info = numbers
                .map(|(name, number)| (name.to_owned(), number))
                .to_vec();
        }
        for (at, (name, number)) in info.into_iter().enumerate() {
            match self.info.get_mut(at) {
                Some(sum) => sum.1 += number,
                None => self.info.push((name, number)),
            }
        }
    }

    /// Adds the answer to SHOW WARNINGS behind a part with these rows.
    pub(in crate::session) fn add_warnings(
        &mut self,
        answer: &[u8],
        rows: &[usize],
        is_definition: bool,
        dress: Option<&Dress>,
    ) {
        for (_, payload) in Packets::new(answer) {
            let row: Option<Vec<Vec<u8>>> = TextRow::new(payload)
                .map(|value| value.ok().flatten().map(<[u8]>::to_vec))
                .collect();
            // Definitions have more values, ends fewer.
            let Some([level, code, message]) =
                row.and_then(|row| <[Vec<u8>; 3]>::try_from(row).ok())
            else {
                continue;
            };
            let number = std::str::from_utf8(&code)
                .ok()
                .and_then(|code| code.parse().ok());
            let dressed = number
                .zip(dress)
                .and_then(|(code, dress)| dress.message(code, &message));
            let message = with_row(&dressed.unwrap_or(message), rows);
            let is_once = is_definition || number.is_some_and(|code: u16| ONCE.contains(&code));
            let is_it = |shown: &[Vec<u8>; 3]| shown[1] == code && shown[2] == message;
            if is_once && self.shown.iter().any(is_it) {
                self.take_warning_back();
                continue;
            }
            self.shown_size += message.len();
            if self.shown_size <= WARNINGS_MAX {
                self.shown.push([level, code, message]);
            }
        }
    }

    /// Adds the answer to SELECT LAST_INSERT_ID() behind a part: whether its id was generated.
    pub(in crate::session) fn add_id(&mut self, answer: &[u8]) {
        let row = Packets::new(answer).filter_map(|(_, payload)| {
            let mut row = TextRow::new(payload);
            let value = row.next()?.ok()??;
            let is_one = row.next().is_none();
            is_one
                .then(|| std::str::from_utf8(value).ok()?.parse::<u64>().ok())
                .flatten()
        });
        let id = row.last();
        if id == Some(self.told) && self.told != 0 {
            self.generated = self.generated.or(id);
        }
    }

    /// Adds a note of Atlas's own.
    pub(in crate::session) fn add_note(&mut self, text: String) {
        self.warnings = self.warnings.saturating_add(1);
        self.shown
            .push([b"Note".to_vec(), b"1105".to_vec(), text.into_bytes()]);
    }

    fn take_warning_back(&mut self) {
        self.warnings = self.warnings.saturating_sub(1);
        let mut told = self.info.iter_mut().filter(|(name, _)| name == "Warnings");
        if let Some((_, number)) = told.next() {
            *number = number.saturating_sub(1);
        }
    }

    pub(in crate::session) fn info(&self) -> Vec<u8> {
        let parts = self
            .info
            .iter()
            .map(|(name, number)| format!("{name}: {number}"));
        parts.collect::<Vec<_>>().join("  ").into_bytes()
    }
}

/// `INSERT LOW_PRIORITY IGNORE`
pub(in crate::session) fn ignores(text: &[u8], d: &Dialect) -> bool {
    let word = |t: sql::Token| text.get(t.start..t.end).unwrap_or_default();
    let mut words = sql::Tokens::new(text, d).take(3).map(word);
    words.any(|word| word.eq_ignore_ascii_case(b"ignore"))
}

/// `Records: 3  Duplicates: 0  Warnings: 0`
fn read_info(info: &[u8]) -> Vec<(String, u64)> {
    let text = String::from_utf8_lossy(info);
    let part = |part: &str| {
        let (name, number) = part.split_once(": ")?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.split("  ").filter_map(part).collect()
}

/// A message that ends in `at row N`, with the number that the row has in the client's statement.
pub(in crate::session) fn with_row(message: &[u8], rows: &[usize]) -> Vec<u8> {
    const MARK: &[u8] = b" at row ";
    let at = message.windows(MARK.len()).rposition(|w| w == MARK);
    let Some(at) = at.map(|at| at + MARK.len()) else {
        return message.to_vec();
    };
    let (head, number) = message.split_at(at);
    let number = std::str::from_utf8(number)
        .ok()
        .and_then(|n| n.parse::<usize>().ok());
    let row = number.and_then(|number| rows.get(number.checked_sub(1)?));
    match row {
        Some(row) => [head, (row + 1).to_string().as_bytes()].concat(),
        None => message.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_numbers_of_the_clients_statement() {
        let rows = [1, 4, 9];
        for (message, wanted) in [
            (
                "Data too long for column 's' at row 2",
                "Data too long for column 's' at row 5",
            ),
            (
                "Data too long for column ' at row 1' at row 3",
                "Data too long for column ' at row 1' at row 10",
            ),
            ("at row 4", "at row 4"),
            ("x at row 4", "x at row 4"),
            ("x at row 0", "x at row 0"),
            ("x at row two", "x at row two"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(with_row(message.as_bytes(), &rows), wanted.as_bytes());
        }
    }

    #[test]
    fn numbers_of_all_parts_are_summed() {
        let mut total = Total::default();
        let ok = |affected, insert_id, warnings, info| OkPacket {
            affected,
            insert_id,
            warnings,
            info,
            ..OkPacket::default()
        };
        total.add(
            &ok(2, 0, 0, b"Records: 2  Duplicates: 0  Warnings: 0"),
            &[0, 2],
        );
        total.add(&ok(2, 7, 1, b""), &[4]);
        total.add(
            &ok(3, 8, 0, b"Records: 2  Duplicates: 1  Warnings: 0"),
            &[1, 3],
        );
        assert_eq!((total.affected, total.insert_id, total.warnings), (7, 7, 1));
        assert_eq!(total.info(), b"Records: 5  Duplicates: 2  Warnings: 1");
        let mut total = Total::default();
        total.add(
            &ok(1, 0, 0, b"Rows matched: 2  Changed: 1  Warnings: 0"),
            &[],
        );
        total.add(
            &ok(0, 0, 0, b"Rows matched: 1  Changed: 0  Warnings: 0"),
            &[],
        );
        assert_eq!(total.info(), b"Rows matched: 3  Changed: 1  Warnings: 0");
    }
}
