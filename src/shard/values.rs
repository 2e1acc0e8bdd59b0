//! Expressions that are values: literals, parameters, and arithmetic with whole numbers.

use sqlparser::ast::{BinaryOperator, DataType, Expr, UnaryOperator, Value, ValueWithSpan};

use super::cond::Operand;
use super::key::{EXACT, Scalar, parse_date};
use super::tokens::bytes;
use crate::sql::{self, Dialect};

/// Introducers of character sets in which ASCII is ASCII.
const INTRODUCERS: [&str; 6] = [
    "_utf8mb4", "_utf8mb3", "_utf8", "_latin1", "_ascii", "_binary",
];

/// The value of an expression; `None` when it is known to the server only.
pub(super) fn operand(expr: &Expr, text: &[u8], d: &Dialect) -> Option<Operand> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => name.get(1..)?.parse().ok().map(Operand::Param),
            _ => literal(value, text, d).map(Operand::Value),
        },
        _ => scalar(expr, text, d).map(Operand::Value),
    }
}

fn scalar(expr: &Expr, text: &[u8], d: &Dialect) -> Option<Scalar> {
    match expr {
        Expr::Value(value) => literal(value, text, d),
        Expr::Nested(inner) => scalar(inner, text, d),
        Expr::UnaryOp { op, expr } => match (op, scalar(expr, text, d)?) {
            (
                UnaryOperator::Plus,
                value @ (Scalar::Int(_) | Scalar::Decimal(_) | Scalar::Float(_)),
            ) => Some(value),
            (UnaryOperator::Minus, Scalar::Int(number)) => number.checked_neg().map(Scalar::Int),
            (UnaryOperator::Minus, Scalar::Decimal(number)) => {
                number.checked_neg().map(Scalar::Decimal)
            }
            (UnaryOperator::Minus, Scalar::Float(number)) => Some(Scalar::Float(-number)),
            (UnaryOperator::Minus, Scalar::Between(below)) => {
                below.checked_neg()?.checked_sub(1).map(Scalar::Between)
            }
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            let (Scalar::Int(a), Scalar::Int(b)) =
                (scalar(left, text, d)?, scalar(right, text, d)?)
            else {
                return None;
            };
            let number = match op {
                BinaryOperator::Plus => a.checked_add(b),
                BinaryOperator::Minus => a.checked_sub(b),
                BinaryOperator::Multiply => a.checked_mul(b),
                _ => None,
            }?;
            // Beyond these the servers say that it is out of range.
            let is_exact = |n: i128| i64::try_from(n).is_ok();
            (is_exact(a) && is_exact(b) && is_exact(number)).then_some(Scalar::Int(number))
        }
        Expr::Prefixed { prefix, value } => {
            let is_known = INTRODUCERS
                .iter()
                .any(|name| prefix.value.eq_ignore_ascii_case(name));
            let Expr::Value(value) = value.as_ref() else {
                return None;
            };
            match literal(value, text, d)? {
                text @ Scalar::Text(_) if is_known => Some(text),
                _ => None,
            }
        }
        Expr::TypedString(typed) if matches!(typed.data_type, DataType::Date) => {
            match literal(&typed.value, text, d)? {
                Scalar::Text(date) => parse_date(&date).map(|(day, time)| Scalar::Date(day, time)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn literal(value: &ValueWithSpan, text: &[u8], d: &Dialect) -> Option<Scalar> {
    let source = || text.get(bytes(value.span)?);
    match &value.value {
        Value::Null => Some(Scalar::Null),
        Value::Boolean(is_true) => Some(Scalar::Int(i128::from(*is_true))),
        Value::Number(number, _) => number_of(number),
        Value::SingleQuotedString(_) => sql::decode(source()?, d).map(Scalar::Text),
        Value::NationalStringLiteral(_) => sql::decode(source()?.get(1..)?, d).map(Scalar::Text),
        // `x'33'` is a text to one server and a number to the other.
        Value::HexStringLiteral(digits) if source()?.first() == Some(&b'0') => {
            hex(digits).map(Scalar::Hex)
        }
        _ => None,
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let padded = format!("{}{digits}", if digits.len() % 2 == 1 { "0" } else { "" });
    padded
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// A number as it is written; `None` for what is none.
#[must_use]
pub fn number_of(number: &str) -> Option<Scalar> {
    if number.contains(['e', 'E']) {
        return number.parse().ok().map(Scalar::Float);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let digits = whole.trim_start_matches(['-', '+']);
    let is_number = digits
        .bytes()
        .chain(fraction.bytes())
        .all(|b| b.is_ascii_digit());
    if !is_number || digits.len() > 36 || digits.len() + fraction.len() == 0 {
        return None;
    }
    let below: i128 = if digits.is_empty() {
        0
    } else {
        digits.parse().ok()?
    };
    let below = if negative { -below } else { below };
    if below.abs() >= EXACT && number.contains('.') {
        // Among others it is compared as a double.
        return number.parse().ok().map(Scalar::Float);
    }
    Some(if fraction.is_empty() {
        Scalar::Int(below)
    } else if fraction.bytes().all(|b| b == b'0') {
        Scalar::Decimal(below)
    } else if negative {
        Scalar::Between(below - 1)
    } else {
        Scalar::Between(below)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, wanted) in [
            ("0", Some(Scalar::Int(0))),
            ("18446744073709551616", Some(Scalar::Int(1 << 64))),
            ("3.0", Some(Scalar::Decimal(3))),
            ("-3.00", Some(Scalar::Decimal(-3))),
            ("3.", Some(Scalar::Int(3))),
            (".5", Some(Scalar::Between(0))),
            ("3.25", Some(Scalar::Between(3))),
            ("-3.25", Some(Scalar::Between(-4))),
            ("-0.5", Some(Scalar::Between(-1))),
            ("3e2", Some(Scalar::Float(300.0))),
            (
                "9223372036854775814.0",
                Some(Scalar::Float(9_223_372_036_854_775_814.0)),
            ),
            ("", None),
            (".", None),
            ("1x", None),
        ] {
            assert_eq!(number_of(text), wanted, "{text}");
        }
        assert_eq!(hex("41"), Some(vec![0x41]));
        assert_eq!(hex("141"), Some(vec![1, 0x41]));
    }
}
