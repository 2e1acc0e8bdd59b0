//! What keeps the rows of several shards from following each other: everything that a server does with all rows of a query together.

use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, GroupByExpr, LimitClause, Query, Select, SetExpr,
};

use super::map::Table;
use super::read::Reader;
use super::refused::Refused;
use super::shape::Act;
use super::values::operand;
use crate::config::Broadcast;

/// Functions of several rows: what they say of one shard is not what they say of all.
const AGGREGATES: [&str; 21] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "group_concat",
    "bit_and",
    "bit_or",
    "bit_xor",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "json_arrayagg",
    "json_objectagg",
    "st_collect",
    "median",
    "percentile_cont",
];

impl Reader<'_> {
    /// Those of the outermost query as a whole.
    pub(super) fn outer_obstacles(&mut self, query: &Query) {
        if query.with.is_some() {
            self.obstacle("a query with WITH over several shards");
        }
        if query.order_by.is_some() {
            self.obstacle("ORDER BY over several shards");
        }
        if !query.locks.is_empty() {
            self.obstacle("a locking read over several shards");
        }
        let is_inserted =
            self.shape.act == Act::Insert && matches!(*query.body, SetExpr::Values(_));
        match *query.body {
            SetExpr::Select(_) => {}
            SetExpr::Query(_) => {
                self.obstacle("a query in parentheses over several shards: write it without them");
            }
            _ if is_inserted => {}
            _ => self.obstacle("UNION, EXCEPT, INTERSECT or VALUES over several shards"),
        }
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit: Some(limit),
                offset: None,
                limit_by,
            }) if limit_by.is_empty() => {
                self.shape.limit = operand(limit, self.text, self.d);
                if self.shape.limit.is_none() {
                    self.obstacle("a LIMIT that is not understood, over several shards");
                }
            }
            Some(_) => self.obstacle(
                "LIMIT with an offset over several shards: page by key (WHERE id > last ... LIMIT n)",
            ),
        }
    }

    /// Those of the outermost SELECT.
    pub(super) fn obstacles(&mut self, select: &Select) {
        if !matches!(select.distinct, None | Some(Distinct::All)) {
            self.obstacle("DISTINCT over several shards");
        }
        let groups = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(list, modifiers) => !list.is_empty() || !modifiers.is_empty(),
        };
        if groups || select.having.is_some() {
            self.obstacle("GROUP BY or HAVING over several shards");
        }
        if select.into.is_some() {
            self.obstacle("SELECT ... INTO over several shards");
        }
        let counts = |m: &sqlparser::ast::SelectModifiers| m.sql_calc_found_rows;
        if select.select_modifiers.as_ref().is_some_and(counts) {
            self.obstacle("SQL_CALC_FOUND_ROWS over several shards");
        }
    }

    /// Those of an expression, wherever it stands.
    pub(super) fn expr_obstacles(&mut self, expr: &Expr) {
        match expr {
            Expr::Function(function) => {
                let name = function.name.to_string().to_ascii_lowercase();
                if function.over.is_some() {
                    self.obstacle("a window function over several shards");
                } else if AGGREGATES.contains(&name.as_str()) {
                    self.obstacle(format!(
                        "{}() over several shards",
                        name.to_ascii_uppercase()
                    ));
                }
            }
            Expr::BinaryOp {
                op: BinaryOperator::Assignment,
                ..
            } => self.obstacle("an assignment to a variable over several shards"),
            _ => {}
        }
    }
}

impl Table {
    /// Whether its rows may be read without the key, by a statement that a rule lists or does not.
    ///
    /// # Errors
    /// They may not.
    pub(super) fn check_broadcast(&self, is_listed: bool) -> Result<(), Refused> {
        let (schema, name, key) = (&self.schema, &self.name, &self.key);
        match self.broadcast {
            Broadcast::Allow => Ok(()),
            Broadcast::Listed if is_listed => Ok(()),
            Broadcast::Listed => Err(Refused::new(format!(
                "a read of {schema}.{name} without its shard key {key}, which `broadcast = \"listed\"` allows to statements only for which a rule has `action = \"allow\"`"
            ))),
            Broadcast::Deny => Err(Refused::new(format!(
                "a read of {schema}.{name} without its shard key {key}, which `broadcast = \"deny\"` does not allow"
            ))),
        }
    }
}
