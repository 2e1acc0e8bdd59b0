//! FROM and WHERE: the tables of a query, which conditions choose their rows, and what these say about keys.

use sqlparser::ast::{
    BinaryOperator, Expr, InTarget, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor,
    TableWithJoins, UnaryOperator,
};

use super::compare::Comparison;
use super::cond::Cond;
use super::key::Scalar;
use super::names::{Visible, idents, name_bytes};
use super::read::{Reader, refuse};
use super::refused::Refused;
use super::shape::Fact;
use super::values::operand;

/// Tables, each with whether its columns are NULL where it has no fitting row.
type Tables = Vec<(usize, bool)>;

impl Reader<'_> {
    /// Notes the tables of one item of FROM.
    pub(super) fn tables(&mut self, list: &TableWithJoins) -> Result<Tables, Refused> {
        let mut left = self.factor(&list.relation)?;
        for join in &list.joins {
            let right = self.factor(&join.relation)?;
            left = self.join(join, &left, &right)?;
        }
        Ok(left)
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<Tables, Refused> {
        let name_of = |alias: &Option<TableAlias>| alias.as_ref().map(|a| name_bytes(&a.name));
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives: _,
                inheritance,
            } => {
                let is_odd = args.is_some()
                    || !with_hints.is_empty()
                    || *with_ordinality
                    || json_path.is_some()
                    || sample.is_some()
                    || inheritance.is_some();
                if is_odd {
                    return refuse("it reads from something that is neither a table nor a query");
                }
                let of = self.note_table(name, name_of(alias), true)?;
                if of.is_some() && !partitions.is_empty() {
                    return refuse("PARTITION (...) of a sharded table");
                }
                if of.is_some() && version.is_some() {
                    return refuse("rows of the past of a sharded table");
                }
                Ok(of.map(|of| (of, false)).into_iter().collect())
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.tables(table_with_joins),
            TableFactor::Derived { alias, .. } | TableFactor::JsonTable { alias, .. } => {
                let name = name_of(alias).unwrap_or_default();
                if let Some(scope) = self.scopes.last_mut() {
                    scope.visible.push(Visible {
                        name,
                        of: None,
                        is_global: false,
                    });
                }
                Ok(Vec::new())
            }
            _ => refuse("it reads from something that is neither a table nor a query"),
        }
    }

    fn join(&mut self, join: &Join, left: &Tables, right: &Tables) -> Result<Tables, Refused> {
        let as_null =
            |tables: &Tables| -> Tables { tables.iter().map(|(of, _)| (*of, true)).collect() };
        // The condition chooses rows of both sides, or of the side that is filled up with NULL.
        let (constraint, chosen, all) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => {
                let all: Tables = left.iter().chain(right).copied().collect();
                (constraint, all.clone(), all)
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                let all = left.iter().copied().chain(as_null(right)).collect();
                (constraint, right.clone(), all)
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                let all = as_null(left)
                    .into_iter()
                    .chain(right.iter().copied())
                    .collect();
                (constraint, left.clone(), all)
            }
            _ => return refuse("it has a join that servers do not know"),
        };
        match constraint {
            JoinConstraint::On(condition) => self.fact(condition, chosen),
            JoinConstraint::Using(columns) => {
                for column in columns {
                    let Some([column]) = idents(column)
                        .as_deref()
                        .map(|c| c.to_vec())
                        .and_then(|c| <[_; 1]>::try_from(c).ok())
                    else {
                        continue;
                    };
                    let column = name_bytes(column);
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.merged.push(column.clone());
                    }
                    let of = |side: &Tables| {
                        let mut keys = side.iter().filter(|(of, _)| self.is_key(*of, &column));
                        let first = keys.next().map(|(of, _)| *of);
                        first.filter(|_| keys.next().is_none())
                    };
                    if let (Some(a), Some(b)) = (of(left), of(right)) {
                        self.shape.facts.push(Fact {
                            cond: Cond::SameKey(a, b),
                            of: chosen.clone(),
                        });
                    }
                }
            }
            JoinConstraint::None => {}
            JoinConstraint::Natural | JoinConstraint::UsingAlias(..) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.is_natural = true;
                }
            }
        }
        Ok(all)
    }

    /// What a condition says about keys.
    pub(super) fn cond(&self, expr: &Expr) -> Cond {
        match expr {
            Expr::Nested(inner) => self.cond(inner),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And => Cond::All(self.chain(expr, &BinaryOperator::And)),
                BinaryOperator::Or => Cond::Any(self.chain(expr, &BinaryOperator::Or)),
                BinaryOperator::NotEq => self.not(self.compare(left, Comparison::Equal, right)),
                _ => comparison(op).map_or(Cond::Open, |op| self.compare(left, op, right)),
            },
            // Without parentheses it may bind closer than the comparison, in another sql_mode.
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } if matches!(**expr, Expr::Nested(_)) => self.not(self.cond(expr)),
            Expr::In {
                expr,
                target: InTarget::List(list),
                negated,
                global: false,
            } => self.negated(*negated, self.is_in(expr, list)),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let (low, high) = (self.operand(low), self.operand(high));
                let cond = match (self.key_of(expr), low, high) {
                    (Some(of), Some(low), Some(high)) => Cond::Between(of, low, high),
                    _ => Cond::Open,
                };
                self.negated(*negated, cond)
            }
            Expr::IsNull(of) | Expr::IsUnknown(of) => {
                self.key_of(of).map_or(Cond::Open, Cond::IsNull)
            }
            Expr::IsNotNull(of) | Expr::IsNotUnknown(of) => self
                .key_of(of)
                .map_or(Cond::Open, |of| self.not(Cond::IsNull(of))),
            Expr::IsTrue(of) => Cond::Is(true, Box::new(self.cond(of))),
            Expr::IsFalse(of) => Cond::Is(false, Box::new(self.cond(of))),
            Expr::IsNotTrue(of) => self.not(Cond::Is(true, Box::new(self.cond(of)))),
            Expr::IsNotFalse(of) => self.not(Cond::Is(false, Box::new(self.cond(of)))),
            _ => match self.operand(expr) {
                Some(super::cond::Operand::Value(Scalar::Int(number))) => {
                    Cond::Known(Some(number != 0))
                }
                Some(super::cond::Operand::Value(Scalar::Null)) => Cond::Known(None),
                _ => Cond::Open,
            },
        }
    }

    /// The parts of a chain of ANDs or ORs, which the parser makes as deep as it is long.
    fn chain(&self, expr: &Expr, of: &BinaryOperator) -> Vec<Cond> {
        let mut parts = Vec::new();
        let mut rest = expr;
        while let Expr::BinaryOp { left, op, right } = rest
            && op == of
        {
            parts.push(self.cond(right));
            rest = left;
        }
        parts.push(self.cond(rest));
        parts
    }

    fn operand(&self, expr: &Expr) -> Option<super::cond::Operand> {
        operand(expr, self.text, self.d)
    }

    fn not(&self, cond: Cond) -> Cond {
        match cond {
            Cond::Open => Cond::Open,
            cond => Cond::Not(Box::new(cond)),
        }
    }

    fn negated(&self, negated: bool, cond: Cond) -> Cond {
        if negated { self.not(cond) } else { cond }
    }

    fn is_in(&self, expr: &Expr, list: &[Expr]) -> Cond {
        if let Expr::Tuple(columns) = expr {
            let at = columns
                .iter()
                .position(|column| self.key_of(column).is_some());
            let values = at.and_then(|at| {
                let value = |row: &Expr| match row {
                    Expr::Tuple(row) if row.len() == columns.len() => self.operand(row.get(at)?),
                    _ => None,
                };
                list.iter().map(value).collect()
            });
            let key = at.and_then(|at| self.key_of(columns.get(at)?));
            // The other columns may make it false, or NULL, for any key.
            return match (key, values) {
                (Some(of), Some(values)) => Cond::All(vec![Cond::In(of, values), Cond::Open]),
                _ => Cond::Open,
            };
        }
        let values: Option<Vec<_>> = list.iter().map(|value| self.operand(value)).collect();
        match (self.key_of(expr), values) {
            (Some(of), Some(values)) => Cond::In(of, values),
            _ => Cond::Open,
        }
    }

    fn compare(&self, left: &Expr, op: Comparison, right: &Expr) -> Cond {
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) {
            if op != Comparison::Equal || left.len() != right.len() {
                return Cond::Open;
            }
            let pairs = left.iter().zip(right);
            return Cond::All(pairs.map(|(a, b)| self.compare(a, op, b)).collect());
        }
        match (self.key_of(left), self.key_of(right)) {
            (Some(a), Some(b)) if a != b && op == Comparison::Equal => Cond::SameKey(a, b),
            (Some(of), None) => match self.operand(right) {
                Some(value) => Cond::Compare(of, op, value),
                None => Cond::Open,
            },
            (None, Some(of)) => match self.operand(left) {
                Some(value) => Cond::Compare(of, op.flipped(), value),
                None => Cond::Open,
            },
            (Some(_), Some(_)) => Cond::Open,
            (None, None) => self.constant(left, op, right),
        }
    }

    /// A comparison of two whole numbers that stand there.
    fn constant(&self, left: &Expr, op: Comparison, right: &Expr) -> Cond {
        use super::cond::Operand::Value;
        let (Some(Value(Scalar::Int(a))), Some(Value(Scalar::Int(b)))) =
            (self.operand(left), self.operand(right))
        else {
            return Cond::Open;
        };
        Cond::Known(Some(match op {
            Comparison::Equal | Comparison::NullSafe => a == b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }))
    }
}

fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::Spaceship => Comparison::NullSafe,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
