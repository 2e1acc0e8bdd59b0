//! Values: those of shard keys, those that stand in statements, and how a server would store the one as the other.
//!
//! A **text** key is placed by its folded form: ASCII letters in lower case, blanks at the end dropped. Two texts that are equal
//! under a collation of the servers then lie on one shard, as long as both are printable ASCII. Others are not placed: whether `é`
//! equals `e` hangs on the collation. (In the `roman` collations, where `i` equals `j`, texts cannot be keys.)
//!
//! A **date** key is placed by its day, so that the column may be a DATE or a DATETIME. A TIMESTAMP is another day in another time
//! zone, so it cannot be a key.

use crate::config::{KeyType, day, print_day};

/// A value of a shard key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A whole number between those of `BIGINT` and `BIGINT UNSIGNED`.
    Int(i128),
    /// A folded text.
    Text(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
}

/// A value in a statement, as far as it matters to a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// NULL.
    Null,
    /// A whole number.
    Int(i128),
    /// A whole number that is written with a fraction, of zeros: the same number, and another text.
    Decimal(i128),
    /// An exact number that is not whole: it lies between this one and the next.
    Between(i128),
    /// An approximate number.
    Float(f64),
    /// A text in the client's character set.
    Text(Vec<u8>),
    /// `0x…`: a text, or a number where one is wanted.
    Hex(Vec<u8>),
    /// A day, and whether there is a time of day with it.
    Date(i32, bool),
    /// Something that is known to the server only.
    Unknown,
}

/// Why a value cannot be stored as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is NULL.
    Null,
    /// Its value is known to the server only.
    Unknown,
    /// The server would change it, or refuse it.
    Type,
    /// A text that is not printable ASCII.
    Text,
}

impl Misfit {
    /// What a person is told of it.
    pub(super) fn why(self, key: &str) -> String {
        match self {
            Self::Null => format!("the shard key {key} is NULL: such a row has no place"),
            Self::Unknown => {
                format!("the value of the shard key {key} is known to the server only")
            }
            Self::Type => format!(
                "the server would store another value for the shard key {key}, or none: give it as its type is"
            ),
            Self::Text => format!(
                "the shard key {key} is a text that is not printable ASCII: where it lies would hang on the collation"
            ),
        }
    }
}

/// Keys of this type lie in this span.
pub(super) const INT_MIN: i128 = i64::MIN as i128;
/// See [`INT_MIN`].
pub(super) const INT_MAX: i128 = u64::MAX as i128;

/// Numbers below this one are the same as doubles and as whole numbers.
pub(super) const EXACT: i128 = 1 << 53;

impl Key {
    /// The text that is hashed.
    pub(super) fn to_text(&self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.clone(),
            Self::Date(day) => print_day(*day).into_bytes(),
        }
    }

    /// The key that a row gets in whose column `scalar` is stored.
    ///
    /// # Errors
    /// What the server would store is not known for sure.
    pub fn stored(scalar: &Scalar, key_type: KeyType) -> Result<Self, Misfit> {
        match (key_type, scalar) {
            (_, Scalar::Null) => Err(Misfit::Null),
            (_, Scalar::Unknown) => Err(Misfit::Unknown),
            (KeyType::Int, Scalar::Int(number) | Scalar::Decimal(number)) => int(*number),
            (KeyType::Int, Scalar::Float(number)) => whole(*number).map_or(Err(Misfit::Type), int),
            (KeyType::Int, Scalar::Text(text)) => clean_int(text).map_or(Err(Misfit::Type), int),
            (KeyType::Int, Scalar::Hex(bytes)) => hex_number(bytes).map_or(Err(Misfit::Type), int),
            (KeyType::String, Scalar::Text(text) | Scalar::Hex(text)) => {
                fold(text).map(Self::Text).ok_or(Misfit::Text)
            }
            (KeyType::String, Scalar::Int(number)) => {
                Ok(Self::Text(number.to_string().into_bytes()))
            }
            (KeyType::Date, Scalar::Date(day, _)) => Ok(Self::Date(*day)),
            (KeyType::Date, Scalar::Text(text)) => {
                parse_date(text).map_or(Err(Misfit::Type), |(day, _)| Ok(Self::Date(day)))
            }
            (KeyType::Int, Scalar::Between(_) | Scalar::Date(..))
            | (
                KeyType::String,
                Scalar::Decimal(_) | Scalar::Between(_) | Scalar::Float(_) | Scalar::Date(..),
            )
            | (
                KeyType::Date,
                Scalar::Int(_)
                | Scalar::Decimal(_)
                | Scalar::Between(_)
                | Scalar::Float(_)
                | Scalar::Hex(_),
            ) => Err(Misfit::Type),
        }
    }
}

fn int(number: i128) -> Result<Key, Misfit> {
    if (INT_MIN..=INT_MAX).contains(&number) {
        Ok(Key::Int(number))
    } else {
        Err(Misfit::Type)
    }
}

/// The whole number that a double is, where that is exact.
pub(super) fn whole(number: f64) -> Option<i128> {
    let is_whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
    is_whole.then_some(number as i128)
}

/// A text that is a whole number and nothing else.
pub(super) fn clean_int(text: &[u8]) -> Option<i128> {
    let digits = match text {
        [b'-' | b'+', rest @ ..] => rest,
        _ => text,
    };
    let is_clean =
        !digits.is_empty() && digits.len() <= 30 && digits.iter().all(u8::is_ascii_digit);
    is_clean
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

/// `0x…` as a number.
pub(super) fn hex_number(bytes: &[u8]) -> Option<i128> {
    (bytes.len() <= 8).then(|| {
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | i128::from(*byte))
    })
}

/// The form of a text by which it is placed; `None` for a text that is not placed.
pub(super) fn fold(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1);
    let text = text.get(..end).unwrap_or_default();
    let is_placed = text.iter().all(|b| matches!(b, b' '..=b'~'));
    is_placed.then(|| text.to_ascii_lowercase())
}

/// `YYYY-MM-DD`, with or without ` hh:mm:ss` and a fraction: the day, and whether there is a time of day that is not midnight.
pub(super) fn parse_date(text: &[u8]) -> Option<(i32, bool)> {
    let (date, time) = match text {
        _ if text.len() == 10 => (text, None),
        date if text.get(10) == Some(&b' ') => (date.get(..10)?, text.get(11..)),
        _ => return None,
    };
    let day = day(date)?;
    let Some(time) = time else {
        return Some((day, false));
    };
    let (clock, fraction) = match time.get(8) {
        None => (time, &b""[..]),
        Some(b'.') => (time.get(..8)?, time.get(9..)?),
        Some(_) => return None,
    };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *clock else {
        return None;
    };
    let below = |tens: u8, ones: u8, first: u8| {
        tens.is_ascii_digit() && ones.is_ascii_digit() && [tens, ones] < [first, b'0']
    };
    let is_clock =
        [h1, h2] < *b"24" && below(h1, h2, b'3') && below(m1, m2, b'6') && below(s1, s2, b'6');
    let is_part = fraction.iter().any(|digit| *digit != b'0');
    // Where fewer digits are kept it is rounded, perhaps into the next day.
    let may_be_next = is_part && clock == b"23:59:59";
    let is_fraction =
        fraction.len() <= 6 && fraction.iter().all(u8::is_ascii_digit) && !may_be_next;
    let has_time = clock != b"00:00:00" || is_part;
    (is_clock && is_fraction).then_some((day, has_time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let day = day(b"2024-01-05").unwrap();
        for (text, wanted) in [
            ("2024-01-05", Some((day, false))),
            ("2024-01-05 00:00:00", Some((day, false))),
            ("2024-01-05 00:00:00.000", Some((day, false))),
            ("2024-01-05 10:11:12.5", Some((day, true))),
            ("2024-01-05 23:59:59.000", Some((day, true))),
            ("2024-01-05 23:59:59.4", None),
            ("2024-01-05 23:59:58.9", Some((day, true))),
            ("2024-01-05 23:59:59.9999999", None),
            ("2024-01-05 24:00:00", None),
            ("2024-1-5", None),
            ("2024-02-30", None),
            ("2024-01-05T10:11:12", None),
            ("2024-01-05 10:11:12+00:00", None),
            ("", None),
        ] {
            assert_eq!(parse_date(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_stored() {
        let int = |scalar| Key::stored(&scalar, KeyType::Int);
        let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
        assert_eq!(int(Scalar::Int(-35)), Ok(Key::Int(-35)));
        assert_eq!(int(text("32")), Ok(Key::Int(32)));
        assert_eq!(int(text("+032")), Ok(Key::Int(32)));
        assert_eq!(int(text("32a")), Err(Misfit::Type));
        assert_eq!(int(text(" 32")), Err(Misfit::Type));
        assert_eq!(int(Scalar::Float(33.0)), Ok(Key::Int(33)));
        assert_eq!(int(Scalar::Float(33.5)), Err(Misfit::Type));
        assert_eq!(int(Scalar::Hex(vec![0x22])), Ok(Key::Int(34)));
        assert_eq!(int(Scalar::Null), Err(Misfit::Null));
        assert_eq!(int(Scalar::Int(INT_MAX + 1)), Err(Misfit::Type));
        let string = |scalar| Key::stored(&scalar, KeyType::String);
        assert_eq!(string(text("Ab  ")), Ok(Key::Text(b"ab".to_vec())));
        assert_eq!(string(text("é")), Err(Misfit::Text));
        assert_eq!(string(text("a\tb")), Err(Misfit::Text));
        assert_eq!(string(Scalar::Int(12)), Ok(Key::Text(b"12".to_vec())));
        // The server stores `12.0`.
        assert_eq!(string(Scalar::Decimal(12)), Err(Misfit::Type));
        assert_eq!(int(Scalar::Decimal(12)), Ok(Key::Int(12)));
    }
}
