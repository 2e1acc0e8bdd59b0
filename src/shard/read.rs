//! From a statement's tree to its [`Shape`]: every query in it, from the outer ones to the inner ones.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, Visit, Visitor,
};

use super::columns::Columns;
use super::map::Placement;
use super::names::{Meaning, Scope, Visible, find, idents, name_bytes};
use super::refused::Refused;
use super::shape::{Act, Fact, Qualifier, Rows, Shape, TableRef};
use super::tokens::bytes;
use super::values::operand;
use crate::sql::Dialect;

/// What is known while a statement is read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) placement: &'a Placement,
    pub(super) text: &'a [u8],
    pub(super) d: &'a Dialect,
    pub(super) schema: Option<&'a [u8]>,
    pub(super) columns: &'a Columns,
    /// Conditions cannot be trusted.
    pub(super) is_doubtful: bool,
    pub(super) scopes: Vec<Scope>,
    /// Names that WITH gives, for each query that is open, and where in the text they begin to hold.
    with: Vec<Vec<(Vec<u8>, usize)>>,
    /// Where the names start that are accounted for.
    pub(super) seen: BTreeSet<usize>,
    /// Queries so far.
    queries: usize,
    /// The query that is inserted gives the key in this column.
    pub(super) inserted: Option<usize>,
    /// It inserts into a table that only the account's own group has.
    pub(super) inserts_home: bool,
    /// It names a table that every group may have, while that is not known.
    pub(super) may_be_global: bool,
    pub(super) shape: Shape,
}

pub(super) type Flow = ControlFlow<Refused>;

pub(super) fn refuse<T>(reason: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::new(reason))
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        placement: &'a Placement,
        text: &'a [u8],
        d: &'a Dialect,
        schema: Option<&'a [u8]>,
        columns: &'a Columns,
        is_doubtful: bool,
    ) -> Self {
        Self {
            placement,
            text,
            d,
            schema,
            columns,
            is_doubtful,
            scopes: Vec::new(),
            with: Vec::new(),
            seen: BTreeSet::new(),
            queries: 0,
            inserted: None,
            inserts_home: false,
            may_be_global: false,
            shape: Shape::new(Act::Read),
        }
    }

    pub(super) fn obstacle(&mut self, reason: impl Into<String>) {
        if self.shape.obstacle.is_none() {
            self.shape.obstacle = Some(Refused::new(reason));
        }
    }

    /// What the name of a table means, with regard to WITH.
    pub(super) fn meaning(&self, name: &ObjectName) -> Result<Option<Meaning>, Refused> {
        let Some(parts) = idents(name) else {
            return refuse("a table's name is not understood");
        };
        if let [single] = parts[..] {
            let at = bytes(single.span).map_or(0, |place| place.start);
            let single = name_bytes(single);
            let mut names = self.with.iter().flatten();
            if names.any(|(name, from)| name.eq_ignore_ascii_case(&single) && *from <= at) {
                return Ok(None);
            }
            if single.eq_ignore_ascii_case(b"dual") {
                return Ok(None);
            }
        }
        Ok(Some(self.placement.meaning(self.schema, &parts)))
    }

    /// Notes a table of the statement; gives its number if it is sharded.
    pub(super) fn note_table(
        &mut self,
        name: &ObjectName,
        alias: Option<Vec<u8>>,
        may_have_alias: bool,
    ) -> Result<Option<usize>, Refused> {
        let meaning = self.meaning(name)?;
        let parts = idents(name).unwrap_or_default();
        let Some(last) = parts.last() else {
            return refuse("a table's name is not understood");
        };
        if let Some(start) = parts.first().and_then(|part| bytes(part.span)) {
            self.seen.insert(start.start);
        }
        let of = match meaning {
            Some(Meaning::Sharded(table)) => {
                let Some(place) = bytes(last.span) else {
                    return refuse("a table's name is not understood");
                };
                let schema = match parts[..] {
                    [schema, _] => bytes(schema.span),
                    _ => None,
                };
                self.shape.refs.push(TableRef {
                    table,
                    name: place,
                    schema,
                    has_alias: alias.is_some(),
                    may_have_alias,
                    is_outer: self.queries <= 1,
                    is_optional: false,
                });
                Some(self.shape.refs.len() - 1)
            }
            Some(Meaning::Global) => {
                self.shape.names_global = true;
                if let [schema, _] = parts[..]
                    && let Some(place) = bytes(schema.span)
                {
                    let known = self
                        .placement
                        .global_schema(&name_bytes(schema), &name_bytes(last));
                    let known = known.map(|known| (known.to_owned(), place));
                    self.shape.globals.extend(known);
                }
                None
            }
            Some(Meaning::Unsharded) => {
                self.shape.names_unsharded = true;
                let schema = match parts[..] {
                    [schema, _] => Some(name_bytes(schema)),
                    _ => self.schema.map(<[u8]>::to_vec),
                };
                let schema = schema.unwrap_or_default();
                self.may_be_global |= !self.placement.is_apart(&schema, &name_bytes(last));
                None
            }
            None => None,
        };
        let name = alias.unwrap_or_else(|| name_bytes(last));
        if let Some(scope) = self.scopes.last_mut() {
            scope.visible.push(Visible {
                name,
                of,
                is_global: meaning == Some(Meaning::Global),
            });
        }
        Ok(of)
    }

    /// The sharded table whose key this column is.
    pub(super) fn key_of(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Nested(inner) => self.key_of(inner),
            Expr::Identifier(column) => {
                // Only the innermost tables: a column of theirs that is not known here goes before those further out.
                let column = name_bytes(column);
                let scope = self.scopes.last()?;
                let mut keys = scope.visible.iter().map(|v| v.of);
                if scope.merges(&column) {
                    // It is that of another table, which may be of another type and be compared otherwise.
                    let first = keys.next()??;
                    let is_alike = |of: Option<usize>| {
                        of.is_some_and(|of| {
                            self.is_key(of, &column) && self.is_placed_like(of, first)
                        })
                    };
                    return keys.chain([Some(first)]).all(is_alike).then_some(first);
                }
                let mut fitting = keys.flatten().filter(|of| self.is_key(*of, &column));
                fitting.next().filter(|_| fitting.next().is_none())
            }
            Expr::CompoundIdentifier(parts) => {
                let column = name_bytes(parts.last()?);
                let of = self.qualified(parts.get(..parts.len() - 1)?)?;
                self.is_key(of, &column).then_some(of)
            }
            _ => None,
        }
    }

    fn is_placed_like(&self, of: usize, other: usize) -> bool {
        let table = |of: usize| self.placement.tables.get(self.shape.refs.get(of)?.table);
        matches!((table(of), table(other)), (Some(a), Some(b)) if a.is_placed_like(b))
    }

    pub(super) fn is_key(&self, of: usize, column: &[u8]) -> bool {
        let table = self.shape.refs.get(of).map(|r| r.table);
        table
            .and_then(|table| self.placement.tables.get(table))
            .is_some_and(|table| table.key.as_bytes().eq_ignore_ascii_case(column))
    }

    /// The sharded table that these parts in front of a column name.
    pub(super) fn qualified(&self, parts: &[sqlparser::ast::Ident]) -> Option<usize> {
        let name = name_bytes(parts.last()?);
        let of = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| find(scope, &name))?
            .of?;
        match parts {
            [_] => Some(of),
            [schema, _] => {
                let table = self.placement.tables.get(self.shape.refs.get(of)?.table)?;
                let is_same = table
                    .schema
                    .as_bytes()
                    .eq_ignore_ascii_case(&name_bytes(schema));
                is_same.then_some(of)
            }
            _ => None,
        }
    }

    /// Notes where a column, or all of them, are named together with their table.
    pub(super) fn note_qualifier(&mut self, parts: &[sqlparser::ast::Ident]) {
        if let Some(of) = self.qualified(parts)
            && let Some(name) = parts.last().and_then(|name| bytes(name.span))
        {
            let schema = match parts {
                [schema, _] => bytes(schema.span),
                _ => None,
            };
            self.shape.qualifiers.push(Qualifier { of, name, schema });
        }
    }

    fn query(&mut self, query: &Query) -> Result<(), Refused> {
        // Within its own query, and in those before it, a name means what it did: `WITH t AS (SELECT * FROM t)`.
        let names = query.with.iter().flat_map(|with| {
            with.cte_tables.iter().map(|cte| {
                let end = bytes(cte.closing_paren_token.0.span).map_or(usize::MAX, |end| end.end);
                let from = if with.recursive { 0 } else { end };
                (name_bytes(&cte.alias.name), from)
            })
        });
        let names: Vec<(Vec<u8>, usize)> = names.collect();
        for (name, _) in &names {
            let is_known =
                |table: &super::map::Table| table.name.as_bytes().eq_ignore_ascii_case(name);
            if self.placement.tables.iter().any(is_known) {
                return refuse(
                    "WITH gives a query the name of a sharded table: give it another one",
                );
            }
        }
        self.with.push(names);
        self.queries += 1;
        let is_odd = query.fetch.is_some()
            || query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if is_odd {
            return refuse("it has a clause that servers do not know");
        }
        self.body(&query.body)?;
        if self.queries > 1 {
            return Ok(());
        }
        self.outer_obstacles(query);
        Ok(())
    }

    fn body(&mut self, body: &SetExpr) -> Result<(), Refused> {
        match body {
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                refuse("a write behind WITH: write it without")
            }
            SetExpr::Table(_) => refuse("TABLE ...: write SELECT * FROM ..."),
        }
    }

    fn select(&mut self, select: &Select) -> Result<(), Refused> {
        self.scopes.push(Scope::default());
        let is_odd = select.top.is_some()
            || select.exclude.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || select.qualify.is_some()
            || select.value_table_mode.is_some();
        if is_odd {
            return refuse("it has a clause that servers do not know");
        }
        let mut tables = Vec::new();
        for list in &select.from {
            tables.extend(self.tables(list)?);
        }
        for (of, is_optional) in &tables {
            if let Some(table) = self.shape.refs.get_mut(*of) {
                table.is_optional = *is_optional;
            }
        }
        if let Some(condition) = &select.selection {
            self.fact(condition, tables);
        }
        for item in &select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
            {
                let parts = idents(name).unwrap_or_default();
                let parts: Vec<_> = parts.into_iter().cloned().collect();
                self.note_qualifier(&parts);
            }
        }
        if let Some(at) = self.inserted.take() {
            self.shape.rows = Some(self.selected_key(select, at).unwrap_or(Rows::Unknown));
        }
        if self.queries == 1 {
            self.obstacles(select);
        }
        Ok(())
    }

    /// What the query gives for the column of this number.
    fn selected_key(&self, select: &Select, at: usize) -> Option<Rows> {
        let before = select.projection.get(..=at)?;
        let is_plain = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
            )
        };
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
            before.last()?
        else {
            return None;
        };
        if !before.iter().all(is_plain) {
            return None;
        }
        if let Some(operand) = operand(expr, self.text, self.d) {
            return Some(Rows::Values(vec![operand]));
        }
        // A row may be without: one that an outer join fills up, or the sum of a ROLLUP.
        let has_sums = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(_, modifiers) => !modifiers.is_empty(),
        };
        let of = self.key_of(expr).filter(|_| !has_sums)?;
        let is_always_there = self.shape.refs.get(of).is_some_and(|r| !r.is_optional);
        is_always_there.then_some(Rows::KeyOf(of))
    }

    /// Notes a condition on the rows of these tables.
    pub(super) fn fact(&mut self, condition: &Expr, of: Vec<(usize, bool)>) {
        if !of.is_empty() && !self.is_doubtful {
            let cond = self.cond(condition);
            self.shape.facts.push(Fact { cond, of });
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let Expr::CompoundIdentifier(parts) = expr {
            self.note_qualifier(
                parts
                    .get(..parts.len().saturating_sub(1))
                    .unwrap_or_default(),
            );
        }
        self.expr_obstacles(expr);
    }

    fn relation(&mut self, name: &ObjectName) -> Result<(), Refused> {
        let start = idents(name)
            .and_then(|parts| bytes(parts.first()?.span))
            .map(|place| place.start);
        if start.is_some_and(|start| self.seen.contains(&start)) {
            return Ok(());
        }
        match self.meaning(name)? {
            None => Ok(()),
            Some(Meaning::Unsharded) => {
                self.shape.names_unsharded = true;
                Ok(())
            }
            Some(Meaning::Sharded(_) | Meaning::Global) => {
                refuse("a sharded or global table stands where its rows cannot be followed")
            }
        }
    }
}

fn flow(result: Result<(), Refused>) -> Flow {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(refused) => ControlFlow::Break(refused),
    }
}

impl Visitor for Reader<'_> {
    type Break = Refused;

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        flow(self.query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> Flow {
        self.with.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        flow(self.select(select))
    }

    fn post_visit_select(&mut self, _: &Select) -> Flow {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> Flow {
        flow(self.relation(name))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        flow(match factor {
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::NestedJoin { .. } => Ok(()),
            _ => refuse("it reads from something that is neither a table nor a query"),
        })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        self.expr(expr);
        ControlFlow::Continue(())
    }
}

/// Walks what is left of a tree.
///
/// # Errors
/// Something in it is not understood.
pub(super) fn walk(reader: &mut Reader<'_>, part: &impl Visit) -> Result<(), Refused> {
    match part.visit(reader) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refused) => Err(refused),
    }
}
