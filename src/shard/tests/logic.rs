//! The promise that the set of shards is never smaller than the truth: random conditions on random rows, against an evaluator that knows
//! nothing of sets.

use std::fmt::Write;

use proptest::prelude::*;

use super::super::{Asked, Numbers, Plan, Scalar};
use super::{D, placement};

/// A value to compare with, as it is written, and what it is.
#[derive(Clone, Debug)]
enum Value {
    Null,
    Number(i128, u8),
    Half(i128),
    Param(i128),
    ParamText(i128),
}

#[derive(Clone, Debug)]
enum Test {
    Compare(&'static str, bool, Value),
    In(bool, Vec<Value>),
    Between(bool, Value, Value),
    IsNull(bool),
    Other(i64),
    Pair(bool, Vec<(Value, i64)>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Xor(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Bang(Box<Self>),
    Is(&'static str, Box<Self>),
    Constant(&'static str),
}

struct Row {
    key: Option<i128>,
    amt: i64,
}

impl Value {
    /// Twice the number.
    fn doubled(&self) -> Option<i128> {
        match self {
            Self::Null => None,
            Self::Number(n, _) | Self::Param(n) | Self::ParamText(n) => Some(n * 2),
            Self::Half(n) => Some(n * 2 + 1),
        }
    }

    fn write(&self, out: &mut String, params: &mut Vec<Scalar>) {
        match self {
            Self::Null => out.push_str("NULL"),
            Self::Number(n, form) => {
                let _ = match form % 7 {
                    0 => write!(out, "{n}"),
                    1 => write!(out, "'{n}'"),
                    2 => write!(out, "{n}.0"),
                    3 => write!(out, "({n})"),
                    4 => write!(out, "{} + 1", n - 1),
                    5 if *n >= 0 => write!(out, "0x{n:02x}"),
                    5 => write!(out, "-(-({n}))"),
                    _ => write!(out, "' {n}x'"),
                };
            }
            Self::Half(n) if *n >= 0 => {
                let _ = write!(out, "{n}.5");
            }
            Self::Half(n) => {
                let _ = write!(out, "-{}.5", -n - 1);
            }
            Self::Param(n) => {
                out.push('?');
                params.push(Scalar::Int(*n));
            }
            Self::ParamText(n) => {
                out.push('?');
                params.push(Scalar::Text(n.to_string().into_bytes()));
            }
        }
    }
}

fn compare(key: Option<i128>, op: &str, value: &Value) -> Option<bool> {
    let key = key.map(|key| key * 2);
    let value = value.doubled();
    if op == "<=>" {
        return Some(key == value);
    }
    let (key, value) = (key?, value?);
    Some(match op {
        "=" => key == value,
        "<>" | "!=" => key != value,
        "<" => key < value,
        "<=" => key <= value,
        ">" => key > value,
        _ => key >= value,
    })
}

fn either(list: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let all: Vec<Option<bool>> = list.collect();
    if all.contains(&Some(true)) {
        return Some(true);
    }
    all.iter().all(Option::is_some).then_some(false)
}

impl Test {
    fn eval(&self, row: &Row) -> Option<bool> {
        match self {
            Self::Compare(op, flipped, value) => {
                let op = match (*op, flipped) {
                    ("<", true) => ">",
                    ("<=", true) => ">=",
                    (">", true) => "<",
                    (">=", true) => "<=",
                    (op, _) => op,
                };
                compare(row.key, op, value)
            }
            Self::In(negated, list) => {
                let found = either(list.iter().map(|value| compare(row.key, "=", value)));
                found.map(|found| found != *negated)
            }
            Self::Between(negated, low, high) => {
                let outside =
                    either([compare(row.key, "<", low), compare(row.key, ">", high)].into_iter());
                outside.map(|outside| outside == *negated)
            }
            Self::IsNull(negated) => Some(row.key.is_none() != *negated),
            Self::Other(amt) => Some(row.amt == *amt),
            Self::Pair(negated, list) => {
                let found = either(list.iter().map(|(value, amt)| {
                    let (a, b) = (compare(row.key, "=", value), Some(row.amt == *amt));
                    either([a.map(|a| !a), b.map(|b| !b)].into_iter()).map(|x| !x)
                }));
                found.map(|found| found != *negated)
            }
            Self::And(a, b) => {
                either([a.eval(row).map(|a| !a), b.eval(row).map(|b| !b)].into_iter()).map(|x| !x)
            }
            Self::Or(a, b) => either([a.eval(row), b.eval(row)].into_iter()),
            Self::Xor(a, b) => Some(a.eval(row)? != b.eval(row)?),
            Self::Not(a) | Self::Bang(a) => a.eval(row).map(|a| !a),
            Self::Is(what, a) => {
                let a = a.eval(row);
                Some(match *what {
                    "IS TRUE" => a == Some(true),
                    "IS FALSE" => a == Some(false),
                    "IS NOT TRUE" => a != Some(true),
                    "IS NOT FALSE" => a != Some(false),
                    _ => a.is_none(),
                })
            }
            Self::Constant(what) => match *what {
                "1" | "TRUE" | "1 = 1" | "2 > 1" => Some(true),
                "NULL" => None,
                _ => Some(false),
            },
        }
    }

    fn write(&self, out: &mut String, params: &mut Vec<Scalar>) {
        let list = |values: &[Value], out: &mut String, params: &mut Vec<Scalar>| {
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                value.write(out, params);
            }
        };
        match self {
            Self::Compare(op, false, value) => {
                let _ = write!(out, "uid {op} ");
                value.write(out, params);
            }
            Self::Compare(op, true, value) => {
                value.write(out, params);
                let _ = write!(out, " {op} o.uid");
            }
            Self::In(negated, values) => {
                out.push_str(if *negated { "uid NOT IN (" } else { "uid IN (" });
                list(values, out, params);
                out.push(')');
            }
            Self::Between(negated, low, high) => {
                out.push_str(if *negated {
                    "uid NOT BETWEEN "
                } else {
                    "uid BETWEEN "
                });
                low.write(out, params);
                out.push_str(" AND ");
                high.write(out, params);
            }
            Self::IsNull(negated) => {
                out.push_str(if *negated {
                    "uid IS NOT NULL"
                } else {
                    "uid IS NULL"
                });
            }
            Self::Other(amt) => {
                let _ = write!(out, "amt = {amt}");
            }
            Self::Pair(negated, pairs) => {
                out.push_str(if *negated {
                    "(uid, amt) NOT IN ("
                } else {
                    "(uid, amt) IN ("
                });
                for (at, (value, amt)) in pairs.iter().enumerate() {
                    out.push_str(if at == 0 { "(" } else { ", (" });
                    value.write(out, params);
                    let _ = write!(out, ", {amt})");
                }
                out.push(')');
            }
            Self::And(a, b) => infix(a, " AND ", b, out, params),
            Self::Or(a, b) => infix(a, " OR ", b, out, params),
            Self::Xor(a, b) => infix(a, " XOR ", b, out, params),
            Self::Not(a) => {
                out.push_str("NOT (");
                a.write(out, params);
                out.push(')');
            }
            Self::Bang(a) => {
                out.push_str("!(");
                a.write(out, params);
                out.push(')');
            }
            Self::Is(what, a) => {
                out.push('(');
                a.write(out, params);
                let _ = write!(out, ") {what}");
            }
            Self::Constant(what) => out.push_str(what),
        }
    }
}

fn infix(a: &Test, op: &str, b: &Test, out: &mut String, params: &mut Vec<Scalar>) {
    out.push('(');
    a.write(out, params);
    out.push_str(op);
    b.write(out, params);
    out.push(')');
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        8 => (-9..9_i128, any::<u8>()).prop_map(|(n, form)| Value::Number(n, form)),
        1 => (995..1005_i128, any::<u8>()).prop_map(|(n, form)| Value::Number(n, form)),
        1 => (-9..9_i128).prop_map(Value::Half),
        2 => (-9..9_i128).prop_map(Value::Param),
        1 => (-9..9_i128).prop_map(Value::ParamText),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    let leaf = prop_oneof![
        8 => (prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"]), any::<bool>(), value())
            .prop_map(|(op, flipped, value)| Test::Compare(op, flipped, value)),
        3 => (any::<bool>(), prop::collection::vec(value(), 1..4)).prop_map(|(n, list)| Test::In(n, list)),
        3 => (any::<bool>(), value(), value()).prop_map(|(n, a, b)| Test::Between(n, a, b)),
        1 => any::<bool>().prop_map(Test::IsNull),
        2 => (0..3_i64).prop_map(Test::Other),
        2 => (any::<bool>(), prop::collection::vec((value(), 0..3_i64), 1..3)).prop_map(|(n, list)| Test::Pair(n, list)),
        1 => prop::sample::select(vec!["1", "0", "NULL", "TRUE", "FALSE", "1 = 1", "1 = 2", "2 > 1"]).prop_map(Test::Constant),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => two.clone().prop_map(|(a, b)| Test::And(a.into(), b.into())),
            4 => two.clone().prop_map(|(a, b)| Test::Or(a.into(), b.into())),
            1 => two.prop_map(|(a, b)| Test::Xor(a.into(), b.into())),
            2 => inner.clone().prop_map(|a| Test::Not(a.into())),
            1 => inner.clone().prop_map(|a| Test::Bang(a.into())),
            1 => (prop::sample::select(vec!["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS UNKNOWN"]), inner)
                .prop_map(|(what, a)| Test::Is(what, a.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn every_row_that_fits_is_on_a_shard_that_is_asked(test in test()) {
        let placement = placement();
        for (name, key_of) in [("ord", "uid"), ("log", "id")] {
            let mut sql = format!("SELECT * FROM {name} AS o WHERE ");
            let mut params = Vec::new();
            test.write(&mut sql, &mut params);
            let sql = sql.replace("uid", key_of);
            let shape = placement.read(sql.as_bytes(), &D, Some(b"t1")).map_err(|e| TestCaseError::fail(format!("{sql}: {e}")))?.unwrap();
            let table = &placement.tables[shape.refs[0].table];
            let keys = &placement.key_sets(&shape, &params)[0];
            let shards = table.shards_of(keys);
            for key in (-12..12).chain(990..1010).chain([i128::from(i64::MIN), i128::from(u64::MAX)]) {
                let Some(shard) = table.shard_of(&super::super::Key::Int(key)) else { continue };
                for amt in 0..3 {
                    if test.eval(&Row { key: Some(key), amt }) == Some(true) {
                        prop_assert!(shards.contains(&shard), "{sql} {params:?}: key {key}");
                    }
                }
            }
            let asked = Asked { is_listed: false, is_lax: false, columns: None, text: sql.as_bytes(), d: &D, home: 0, here: 0, params: &params, numbers: Numbers::None };
            let plan = placement.plan(&shape, asked);
            prop_assert!(!matches!(plan, Plan::Refuse(_)), "{sql}: {plan:?}");
        }
    }
}
