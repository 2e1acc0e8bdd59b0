//! Random values and conditions.

use crate::common::Param;

/// Types of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Int,
    Text,
    Date,
}

/// A generator of numbers, the same in every run.
pub(super) struct Dice {
    state: u64,
    pub(super) keys: Keys,
    /// The least number that is a key.
    pub(super) base: i128,
    /// What was made since this was unset has values of other types in it.
    pub(super) is_odd: bool,
    /// Values that are sent beside the text, if some are.
    pub(super) params: Option<Vec<Param>>,
}

const TEXTS: [&str; 14] = [
    "a", "B", "Ab", "ab ", "", "12", "1", "x9", "zz", "-1", "m", "M ", "5", "it's",
];

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            keys: Keys::Int,
            base: -3,
            is_odd: false,
            params: None,
        }
    }

    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % sides
    }

    pub(super) fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }

    pub(super) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn number(&mut self) -> i128 {
        i128::from(self.roll(16)) + self.base
    }

    /// Of a statement that is prepared, some values go beside the text.
    fn or_param(&mut self, literal: String, param: Param) -> String {
        let is_beside = self.params.is_some() && self.roll(3) > 0;
        match &mut self.params {
            Some(params) if is_beside => {
                params.push(param);
                "?".to_owned()
            }
            _ => literal,
        }
    }

    /// A key as it may be stored.
    pub(super) fn key(&mut self) -> String {
        match self.keys {
            Keys::Int => {
                let number = self.number();
                match self.roll(8) {
                    1 if self.base > 0 => number.to_string(),
                    0 => self.or_param(format!("'{number}'"), Param::Text(number.to_string())),
                    #[expect(clippy::cast_precision_loss, reason = "it is small")]
                    1 => self.or_param(format!("{number}.0"), Param::Double(number as f64)),
                    _ => self.or_param(
                        number.to_string(),
                        i64::try_from(number)
                            .map_or_else(|_| Param::Text(number.to_string()), Param::Int),
                    ),
                }
            }
            Keys::Text => {
                let text = self.one(&TEXTS);
                let literal = match self.roll(6) {
                    0 => format!("_utf8mb4'{}'", text.replace('\'', "''")),
                    1 if !text.contains('\'') => format!("\"{text}\""),
                    _ => format!("'{}'", text.replace('\'', "\\'")),
                };
                self.or_param(literal, Param::from(text))
            }
            Keys::Date => {
                let day = 1 + self.roll(12);
                let text = format!("2024-01-{day:02}");
                let literal = match self.roll(6) {
                    0 => format!("DATE'{text}'"),
                    1 => format!("'{text} 00:00:00'"),
                    _ => format!("'{text}'"),
                };
                self.or_param(literal, Param::Text(text))
            }
        }
    }

    /// What a key may be compared with.
    pub(super) fn value(&mut self) -> String {
        let number = self.number();
        let odd = match (self.keys, self.roll(12)) {
            // Among numbers that are no doubles servers differ from themselves, by how they look for the rows.
            (Keys::Int, 2 | 4) if self.base > 0 => 6,
            // MySQL compares a text as what the text of the first execution is, see `prepared::a_text_is_compared_as_the_first_was`.
            (Keys::Int, 3) if self.base > 0 && self.params.is_some() => 6,
            (_, odd) => odd,
        };
        self.is_odd |= matches!(odd, 1..=5);
        match (self.keys, odd) {
            (_, 0) => self.or_param("NULL".to_owned(), Param::Null),
            (Keys::Int, 1) => format!("{} + 1", number - 1),
            (Keys::Int, 2) => self.or_param(
                format!("{}.5", number.abs()),
                Param::Text(format!("{}.5", number.abs())),
            ),
            (Keys::Int, 3) => {
                self.or_param(format!("' {number}x'"), Param::Text(format!(" {number}x")))
            }
            (Keys::Int, 4) => format!("0x{:02x}", number.abs()),
            (Keys::Int, 5) => self
                .one(&["TRUE", "1e0", "-(-3)", "18446744073709551615", "ABS(-2)"])
                .to_owned(),
            (Keys::Text, 1) => self.small(),
            (Keys::Text, 2) => self.one(&["'AB'", "'a  '", "'M'", "' m'"]).to_owned(),
            (Keys::Text, 3) => self
                .one(&["0x61", "x'42'", "CONCAT('a', 'b')", "1.0", "'1e0'", "N'a'"])
                .to_owned(),
            (Keys::Text, 4) => self
                .one(&["'é'", "'a' COLLATE utf8mb4_bin", "'%'", "TRUE"])
                .to_owned(),
            (Keys::Date, 1) => format!("202401{:02}", number.rem_euclid(12) + 1),
            (Keys::Date, 2) => format!("'2024-01-{:02} 10:00:00'", number.rem_euclid(12) + 1),
            (Keys::Date, 3) => self
                .one(&[
                    "'2024-1-5'",
                    "'24-01-05'",
                    "'2024-01-05T00:00:00'",
                    "TIMESTAMP'2024-01-05 00:00:00'",
                    "20240105000000",
                ])
                .to_owned(),
            (Keys::Date, 4) => self
                .one(&[
                    "'2024.01.05'",
                    "DATE'2024-01-05' + INTERVAL 1 DAY",
                    "'2023-12-31'",
                    "CURRENT_DATE",
                ])
                .to_owned(),
            _ => self.key(),
        }
    }

    pub(super) fn small(&mut self) -> String {
        let number = self.roll(9);
        self.or_param(
            number.to_string(),
            Param::Int(i64::try_from(number).unwrap()),
        )
    }

    /// About rows of `ord`, whose key has this name in the statement.
    pub(super) fn condition(&mut self, key: &str, depth: u64) -> String {
        match self.roll(if depth == 0 { 10 } else { 16 }) {
            0 | 1 => {
                let op = self.one(&["=", "=", "<>", "<", "<=", ">", ">=", "<=>", "!="]);
                format!("{key} {op} {}", self.value())
            }
            2 => {
                let value = self.value();
                let op = self.one(&["=", "<>", "<", "<=", ">", ">=", "<=>"]);
                format!("{value} {op} {key}")
            }
            3 => {
                let not = self.one(&["", "NOT "]);
                let (a, b, c) = (self.value(), self.value(), self.value());
                format!("{key} {not}IN ({a}, {b}, {c})")
            }
            4 => {
                let not = self.one(&["", "NOT "]);
                let (low, high) = (self.value(), self.value());
                format!("{key} {not}BETWEEN {low} AND {high}")
            }
            5 => {
                let op = self.one(&["=", "<", ">=", "<=>"]);
                format!("amt {op} {}", self.small())
            }
            6 => {
                self.is_odd = true;
                let what = self.one(&[
                    "n IS NULL",
                    "code = 'a'",
                    "KEY IS NOT NULL",
                    "KEY IS NULL",
                    "1",
                    "NULL",
                    "1 = 2",
                    "n = amt",
                    "code LIKE 'b%'",
                    "'a' = 'A'",
                    "NOT KEY = amt",
                ]);
                what.replace("KEY", key)
            }
            7 => {
                let (a, m, b) = (self.value(), self.small(), self.value());
                format!("({key}, amt) IN (({a}, {m}), ({b}, 5))")
            }
            8 => {
                self.is_odd = true;
                let value = self.value();
                let form = self.one(&[
                    "COALESCE(KEY, VALUE) = VALUE",
                    "KEY + 0 = VALUE",
                    "CASE WHEN amt > 3 THEN KEY ELSE VALUE END = KEY",
                    "KEY LIKE VALUE",
                    "KEY IN (VALUE, amt)",
                    "BINARY KEY = VALUE",
                    "(KEY) = (VALUE)",
                    "IF(amt, KEY, VALUE) = VALUE",
                    "KEY = VALUE IS TRUE",
                ]);
                // A value that goes beside the text stands once only.
                let literal = if value == "?" {
                    "'1'".to_owned()
                } else {
                    value.clone()
                };
                form.replacen("VALUE", &value, 1)
                    .replace("VALUE", &literal)
                    .replace("KEY", key)
            }
            9 => {
                let (a, m) = (self.value(), self.small());
                format!("({key}, amt) = ({a}, {m})")
            }
            10 | 11 => {
                let (a, b) = (
                    self.condition(key, depth - 1),
                    self.condition(key, depth - 1),
                );
                format!("({a} AND {b})")
            }
            12 | 13 => {
                let (a, b) = (
                    self.condition(key, depth - 1),
                    self.condition(key, depth - 1),
                );
                format!("({a} OR {b})")
            }
            14 => format!("NOT ({})", self.condition(key, depth - 1)),
            _ => {
                let what = self.one(&[
                    "IS TRUE",
                    "IS NOT TRUE",
                    "IS FALSE",
                    "XOR amt = 5",
                    "IS UNKNOWN",
                ]);
                format!("({}) {what}", self.condition(key, depth - 1))
            }
        }
    }

    /// A condition that most often holds for one shard only.
    pub(super) fn place(&mut self, key: &str) -> String {
        match self.roll(6) {
            0 => self.condition(key, 3),
            1 => {
                let (a, b) = (self.key(), self.key());
                let rest = self.condition(key, 2);
                format!("{key} IN ({a}, {b}) AND {rest}")
            }
            2 => {
                let rest = self.condition(key, 2);
                format!("({rest}) AND {key} = {}", self.key())
            }
            3 => format!("{key} = {}", self.key()),
            _ => {
                let one = self.key();
                let rest = self.condition(key, 2);
                format!("{key} = {one} AND ({rest})")
            }
        }
    }

    /// Another value for a parameter, as another execution may have. Of the same type: what MySQL compares later ones as hangs on
    /// the first, and a shard may see another first than one server would. What a text is matters among numbers that are no doubles.
    pub(super) fn again(&mut self, param: &Param) -> Param {
        self.params = Some(Vec::new());
        for _ in 0..20 {
            self.key();
            let made = self.params.as_mut().and_then(Vec::pop);
            if let Some(made) = made
                && std::mem::discriminant(&made) == std::mem::discriminant(param)
                && self.roll(2) == 0
            {
                return made;
            }
        }
        param.clone()
    }
}
