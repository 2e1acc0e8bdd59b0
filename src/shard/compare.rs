//! What a comparison of the key with a value says about the key: for which keys it may be true, and for which false. A NULL
//! makes it neither. What a server's conversions do to a value is followed only as far as it is sure.

use super::key::{EXACT, INT_MAX, INT_MIN, Scalar, clean_int, fold, hex_number, parse_date, whole};
use super::keyset::KeySet;
use crate::config::KeyType;

/// `key op value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<=>`
    NullSafe,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// For which keys a condition may be true, and for which it may be false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// It may be true.
    pub yes: KeySet,
    /// It may be false.
    pub no: KeySet,
}

impl Truth {
    /// Nothing is known.
    pub(super) const OPEN: Self = Self {
        yes: KeySet::ALL,
        no: KeySet::ALL,
    };
    /// It is never true and never false.
    pub(super) const NULL: Self = Self {
        yes: KeySet::NONE,
        no: KeySet::NONE,
    };
    /// Nothing is known, but that it is neither for NULL.
    const OPEN_FOR_KEYS: Self = Self {
        yes: KeySet::KEYS,
        no: KeySet::KEYS,
    };

    /// The truth of what is true for one of the two, false for the other.
    pub(super) fn not(self) -> Self {
        Self {
            yes: self.no,
            no: self.yes,
        }
    }

    /// The key is NULL.
    pub(super) fn is_null() -> Self {
        Self {
            yes: KeySet::NULL,
            no: KeySet::KEYS,
        }
    }
}

impl Comparison {
    /// The same comparison with its sides exchanged.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Equal | Self::NullSafe => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// The same among other values that are no whole numbers: a server may take all for doubles then.
    pub(super) fn truth_among(self, key_type: KeyType, value: &Scalar, is_mixed: bool) -> Truth {
        match value {
            Scalar::Int(number) | Scalar::Decimal(number)
                if is_mixed && key_type == KeyType::Int && number.abs() >= EXACT =>
            {
                near(*number).truth(self)
            }
            _ => self.truth(key_type, value),
        }
    }

    /// Where the key lies when it is true, and where when it is false.
    #[must_use]
    pub fn truth(self, key_type: KeyType, value: &Scalar) -> Truth {
        match (self, value) {
            (Self::NullSafe, Scalar::Null) => return Truth::is_null(),
            (_, Scalar::Null) => return Truth::NULL,
            (_, Scalar::Unknown) => return Truth::OPEN,
            _ => {}
        }
        if self == Self::NullSafe {
            let Truth { yes, no } = Self::Equal.truth(key_type, value);
            return Truth {
                yes,
                no: no.with_null(true),
            };
        }
        match key_type {
            KeyType::Int => place(value).truth(self),
            KeyType::String => self.of_text(value),
            KeyType::Date => self.of_date(value),
        }
    }

    /// Only equality: in what order texts are hangs on the collation.
    fn of_text(self, value: &Scalar) -> Truth {
        let (Scalar::Text(text) | Scalar::Hex(text)) = value else {
            // Compared as numbers: `'12'`, `'012'` and `' 12 apples'` all equal 12.
            return Truth::OPEN_FOR_KEYS;
        };
        match (self, fold(text)) {
            (Self::Equal, Some(folded)) => Truth {
                yes: KeySet::text(folded),
                no: KeySet::KEYS,
            },
            _ => Truth::OPEN_FOR_KEYS,
        }
    }

    /// The column may hold a time of day too, so the day itself may lie on either side.
    fn of_date(self, value: &Scalar) -> Truth {
        let parsed = match value {
            Scalar::Date(day, has_time) => Some((*day, *has_time)),
            Scalar::Text(text) => parse_date(text),
            _ => None,
        };
        let Some((day, has_time)) = parsed else {
            return Truth::OPEN_FOR_KEYS;
        };
        let day = i128::from(day);
        let up_to = |day| KeySet::span(i128::from(i32::MIN), day);
        let from = |day| KeySet::span(day, i128::from(i32::MAX));
        let before = if has_time { day } else { day - 1 };
        let (yes, no) = match self {
            Self::Equal | Self::NullSafe => (KeySet::span(day, day), KeySet::KEYS),
            Self::Less => (up_to(before), from(day)),
            Self::LessOrEqual => (up_to(day), from(day)),
            Self::Greater => (from(day), up_to(day)),
            Self::GreaterOrEqual => (from(day), up_to(before)),
        };
        Truth { yes, no }
    }
}

/// Where a value lies among whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// It is this number.
    At(i128),
    /// It lies between this one and the next.
    Behind(i128),
    /// It lies somewhere from one to the other, or is rounded to one of them.
    Within(i128, i128),
    Open,
}

/// What a server compares a column of whole numbers with.
fn place(value: &Scalar) -> Place {
    match value {
        Scalar::Int(number) | Scalar::Decimal(number) => Place::At(*number),
        Scalar::Between(below) if below.abs() < EXACT => Place::Behind(*below),
        Scalar::Between(below) => near(*below),
        Scalar::Float(number) => match whole(*number) {
            Some(number) => Place::At(number),
            None => around(*number),
        },
        Scalar::Text(text) => match clean_int(text) {
            Some(number) if number.abs() < EXACT => Place::At(number),
            Some(number) => near(number),
            None => leading_double(text).map_or(Place::Open, around),
        },
        Scalar::Hex(bytes) => match hex_number(bytes) {
            Some(number) if number < EXACT => Place::At(number),
            Some(number) => near(number),
            None => Place::Open,
        },
        Scalar::Date(..) | Scalar::Null | Scalar::Unknown => Place::Open,
    }
}

/// What is compared as a whole number or as a double, between which there are gaps of up to 2048.
fn near(number: i128) -> Place {
    Place::Within(number.saturating_sub(4096), number.saturating_add(4096))
}

fn around(number: f64) -> Place {
    match (whole(number.floor()), whole(number.ceil())) {
        (Some(below), Some(above)) => Place::Within(below, above),
        _ => Place::Open,
    }
}

/// The number that a text begins with, as servers read it; 0 when there is none.
fn leading_double(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii_start();
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let start = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let mut end = digits(start);
    let mut has_digits = end > start;
    if text.get(end) == Some(&b'.') {
        let fraction_end = digits(end + 1);
        has_digits |= fraction_end > end + 1;
        end = fraction_end;
    }
    if !has_digits {
        return Some(0.0);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    std::str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}

impl Place {
    fn truth(self, comparison: Comparison) -> Truth {
        let up_to = |number: i128| KeySet::span(INT_MIN, number);
        let from = |number: i128| KeySet::span(number, INT_MAX);
        let (yes, no) = match (self, comparison) {
            (Self::Open, _) => return Truth::OPEN_FOR_KEYS,
            (Self::At(n), Comparison::Equal | Comparison::NullSafe) => {
                (KeySet::span(n, n), KeySet::but(n))
            }
            (Self::At(n), Comparison::Less) => (up_to(n.saturating_sub(1)), from(n)),
            (Self::At(n), Comparison::LessOrEqual) => (up_to(n), from(n.saturating_add(1))),
            (Self::At(n), Comparison::Greater) => (from(n.saturating_add(1)), up_to(n)),
            (Self::At(n), Comparison::GreaterOrEqual) => (from(n), up_to(n.saturating_sub(1))),
            // None, but MariaDB rounds it where it looks for it by an index, and finds the next.
            (Self::Behind(n), Comparison::Equal | Comparison::NullSafe) => {
                (KeySet::span(n, n.saturating_add(1)), KeySet::KEYS)
            }
            (Self::Behind(n), Comparison::Less | Comparison::LessOrEqual) => {
                (up_to(n), from(n.saturating_add(1)))
            }
            (Self::Behind(n), Comparison::Greater | Comparison::GreaterOrEqual) => {
                (from(n.saturating_add(1)), up_to(n))
            }
            (Self::Within(low, high), Comparison::Equal | Comparison::NullSafe) => {
                (KeySet::span(low, high), KeySet::KEYS)
            }
            (Self::Within(low, high), Comparison::Less | Comparison::LessOrEqual) => {
                (up_to(high), from(low))
            }
            (Self::Within(low, high), Comparison::Greater | Comparison::GreaterOrEqual) => {
                (from(low), up_to(high))
            }
        };
        Truth { yes, no }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yes(comparison: Comparison, value: &Scalar) -> Option<Vec<(i128, i128)>> {
        let truth = comparison.truth(KeyType::Int, value);
        truth.yes.spans().map(<[_]>::to_vec)
    }

    fn text(text: &str) -> Scalar {
        Scalar::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn numbers_in_all_their_forms() {
        let equal = |value| yes(Comparison::Equal, &value);
        let one = |n| Some(vec![(n, n)]);
        for value in [
            Scalar::Int(3),
            Scalar::Float(3.0),
            text("3"),
            text("03"),
            text("+3"),
            text(" 3"),
            text("3x"),
            text("3.0"),
            text("3e0"),
            text("30e-1"),
            Scalar::Hex(vec![3]),
        ] {
            assert_eq!(equal(value.clone()), one(3), "{value:?}");
        }
        assert_eq!(equal(text("x")), one(0));
        assert_eq!(equal(text("")), one(0));
        assert_eq!(equal(text("-")), one(0));
        assert_eq!(equal(text("0x10")), one(0));
        assert_eq!(equal(text("3.5")), Some(vec![(3, 4)]));
        assert_eq!(equal(text("-3.5")), Some(vec![(-4, -3)]));
        assert_eq!(equal(Scalar::Between(3)), Some(vec![(3, 4)]));
        assert_eq!(equal(text("1e400")), None);
        assert_eq!(equal(Scalar::Float(f64::NAN)), None);
        let big = 1 << 60;
        assert_eq!(
            equal(text(&big.to_string())),
            Some(vec![(big - 4096, big + 4096)])
        );
        assert_eq!(equal(Scalar::Int(big)), one(big));
        // Servers take these for doubles, some of them among others only.
        let close = Some(vec![(big - 4096, big + 4096)]);
        assert_eq!(equal(Scalar::Hex(big.to_be_bytes()[8..].to_vec())), close);
        assert_eq!(equal(Scalar::Between(big)), close);
        let among = |value: &Scalar, is_mixed| {
            let truth = Comparison::Equal.truth_among(KeyType::Int, value, is_mixed);
            truth.yes.spans().map(<[_]>::to_vec)
        };
        assert_eq!(among(&Scalar::Int(big), true), close);
        assert_eq!(among(&Scalar::Decimal(big), true), close);
        assert_eq!(among(&Scalar::Int(big), false), one(big));
        assert_eq!(equal(Scalar::Decimal(big)), one(big));
        assert_eq!(among(&Scalar::Int(3), true), one(3));
        assert_eq!(equal(Scalar::Int(INT_MAX + 1)), one(INT_MAX + 1));
        assert_eq!(
            yes(Comparison::Less, &Scalar::Int(3)),
            Some(vec![(INT_MIN, 2)])
        );
        assert_eq!(
            yes(Comparison::Less, &Scalar::Between(3)),
            Some(vec![(INT_MIN, 3)])
        );
        assert_eq!(
            yes(Comparison::Greater, &text("3.5")),
            Some(vec![(3, INT_MAX)])
        );
    }

    #[test]
    fn nulls() {
        assert_eq!(
            Comparison::Equal.truth(KeyType::Int, &Scalar::Null),
            Truth::NULL
        );
        let truth = Comparison::NullSafe.truth(KeyType::Int, &Scalar::Null);
        assert_eq!((truth.yes, truth.no), (KeySet::NULL, KeySet::KEYS));
        let truth = Comparison::NullSafe.truth(KeyType::Int, &Scalar::Int(1));
        assert!(truth.no.null && !truth.yes.null);
    }

    #[test]
    fn days_and_texts() {
        let truth = |comparison: Comparison, day| comparison.truth(KeyType::Date, &text(day));
        assert_eq!(
            truth(Comparison::Less, "1970-01-02").yes.spans().unwrap(),
            [(i128::from(i32::MIN), 0)]
        );
        assert_eq!(
            truth(Comparison::Less, "1970-01-02 10:00:00")
                .yes
                .spans()
                .unwrap(),
            [(i128::from(i32::MIN), 1)]
        );
        assert_eq!(
            truth(Comparison::Equal, "1970-01-02").yes.spans().unwrap(),
            [(1, 1)]
        );
        assert_eq!(truth(Comparison::Equal, "70-1-2"), Truth::OPEN_FOR_KEYS);
        let truth = Comparison::Equal.truth(KeyType::String, &text("Ab "));
        assert_eq!(truth.yes.texts().unwrap(), [b"ab".to_vec()]);
        assert_eq!(truth.no, KeySet::KEYS);
        let number = Comparison::Equal.truth(KeyType::String, &Scalar::Int(12));
        assert_eq!(number, Truth::OPEN_FOR_KEYS);
    }
}
