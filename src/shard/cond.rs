//! Conditions, as far as they say something about keys, and where they put the keys.
//!
//! A condition is true, false or NULL for a row. [`Cond::truth`] gives, for one table of the statement, the keys that a row can have
//! for which it is true, and those for which it is false; each set may be too large. What is not understood may be anything.

use super::compare::{Comparison, Truth};
use super::key::Scalar;
use super::keyset::KeySet;
use crate::config::KeyType;

/// A value that is compared with a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// It stands in the text.
    Value(Scalar),
    /// It is the parameter of this number.
    Param(usize),
}

impl Operand {
    /// Its value, once the parameters are known.
    #[must_use]
    pub fn value<'a>(&'a self, params: &'a [Scalar]) -> &'a Scalar {
        match self {
            Self::Value(value) => value,
            Self::Param(number) => params.get(*number).unwrap_or(&Scalar::Unknown),
        }
    }
}

impl Operand {
    fn is_no_number(&self, params: &[Scalar]) -> bool {
        !matches!(self.value(params), Scalar::Int(_))
    }
}

/// A condition. Tables are numbers of references in the statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Cond {
    /// Anything.
    Open,
    /// It is this for every row.
    Known(Option<bool>),
    /// `key op value`
    Compare(usize, Comparison, Operand),
    /// `key IN (…)`
    In(usize, Vec<Operand>),
    /// `key BETWEEN … AND …`
    Between(usize, Operand, Operand),
    /// `key IS NULL`
    IsNull(usize),
    /// Two keys are equal.
    SameKey(usize, usize),
    /// Each of them.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    /// The opposite.
    Not(Box<Self>),
    /// `IS TRUE`, `IS FALSE`: never NULL.
    Is(bool, Box<Self>),
}

impl Cond {
    /// See the module's words.
    #[must_use]
    pub fn truth(&self, table: usize, key_type: KeyType, params: &[Scalar]) -> Truth {
        match self {
            Self::Open | Self::SameKey(..) => Truth::OPEN,
            Self::Known(None) => Truth::NULL,
            Self::Known(Some(is_true)) => {
                let truth = Truth {
                    yes: KeySet::ALL,
                    no: KeySet::NONE,
                };
                if *is_true { truth } else { truth.not() }
            }
            Self::Compare(of, comparison, operand) if *of == table => {
                comparison.truth(key_type, operand.value(params))
            }
            Self::In(of, list) if *of == table => {
                let is_mixed = list.iter().any(|value| value.is_no_number(params));
                let truth = |operand: &Operand| {
                    Comparison::Equal.truth_among(key_type, operand.value(params), is_mixed)
                };
                any(list.iter().map(truth))
            }
            Self::Between(of, low, high) if *of == table => {
                let is_mixed = low.is_no_number(params) || high.is_no_number(params);
                let truth = |comparison: Comparison, operand: &Operand| {
                    comparison.truth_among(key_type, operand.value(params), is_mixed)
                };
                all([
                    truth(Comparison::GreaterOrEqual, low),
                    truth(Comparison::LessOrEqual, high),
                ])
            }
            Self::IsNull(of) if *of == table => Truth::is_null(),
            Self::Compare(..) | Self::In(..) | Self::Between(..) | Self::IsNull(_) => Truth::OPEN,
            Self::All(list) => all(list.iter().map(|c| c.truth(table, key_type, params))),
            Self::Any(list) => any(list.iter().map(|c| c.truth(table, key_type, params))),
            Self::Not(cond) => cond.truth(table, key_type, params).not(),
            Self::Is(wanted, cond) => {
                let truth = cond.truth(table, key_type, params);
                Truth {
                    yes: if *wanted { truth.yes } else { truth.no },
                    no: KeySet::ALL,
                }
            }
        }
    }

    /// Pairs of keys that are equal wherever the condition is true.
    pub(super) fn same_keys(&self) -> Vec<(usize, usize)> {
        match self {
            Self::SameKey(a, b) => vec![(*a, *b)],
            Self::All(list) => list.iter().flat_map(Self::same_keys).collect(),
            _ => Vec::new(),
        }
    }
}

fn all(truths: impl IntoIterator<Item = Truth>) -> Truth {
    let sets = truths.into_iter().map(|truth| (truth.yes, truth.no));
    let (yes, no): (Vec<KeySet>, Vec<KeySet>) = sets.unzip();
    Truth {
        yes: KeySet::intersection_of(yes),
        no: KeySet::union_of(no),
    }
}

fn any(truths: impl IntoIterator<Item = Truth>) -> Truth {
    all(truths.into_iter().map(Truth::not)).not()
}
