//! From a statement's shape and its parameters to the shards that it needs. The set of shards is never smaller than the truth.

use std::ops::Range;
use std::sync::Arc;

use super::columns::Columns;
use super::dress::{Dress, Shows};
use super::fill::Numbers;
use super::key::Scalar;
use super::keyset::KeySet;
use super::map::{Placement, Table};
use super::refused::Refused;
use super::shape::{Act, Rows, Shape};
use super::splice::{Given, group, splice};
use crate::sql::Dialect;

/// The tables that a condition chooses rows of, each with whether it is optional.
type Chosen = Vec<(usize, bool)>;

/// A statement for one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The number of the group that gets it.
    pub group: usize,
    /// What it gets; nothing stands for the client's own text.
    pub text: Option<Vec<u8>>,
    /// The tables, with their shards, that have another name there.
    pub renamed: Vec<(usize, usize)>,
    /// Where the rows name tables.
    pub shows: Shows,
    /// The rows of the client's INSERT that it has, where it has not all of them.
    pub rows: Vec<usize>,
    /// Its parameters, where they are not the client's, all of them.
    pub params: Option<Vec<Given>>,
    /// What stands in its text in the place of something else: that place in the client's text, and its length. Nothing is told here of
    /// a text that was made without planning.
    pub put: Vec<(Range<usize>, usize)>,
    /// The client's names, where they are known already; then nothing else tells of them.
    pub dress: Option<Arc<Dress>>,
}

/// What becomes of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// One group has all that it needs.
    One(Leg),
    /// Its rows are those of several shards, one behind the other, at most so many.
    Scatter {
        /// For each shard.
        legs: Vec<Leg>,
        /// LIMIT.
        limit: Option<u64>,
    },
    /// A write in parts, each for another physical table, all in one group: all of them are done or none.
    Parts(Vec<Leg>),
    /// A write in parts in several groups: all of them are done or none.
    Across(Vec<Leg>),
    /// A write to tables that every group has, in each group: all of them have it or none.
    Everywhere(Vec<Leg>),
    /// A definition, of each physical table.
    Each(Vec<Leg>),
    /// The columns of this table are to be asked of a server first.
    Columns(usize),
    /// So many ids are to be generated first.
    Ids {
        /// How many.
        count: usize,
        /// The group that says which node this is.
        group: usize,
    },
    /// It is not run.
    Refuse(Refused),
}

/// What a plan is made for, beside the statement.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The text.
    pub text: &'a [u8],
    /// How it is read.
    pub d: &'a Dialect,
    /// The account's own group.
    pub home: usize,
    /// The group where the session is.
    pub here: usize,
    /// Values of the parameters.
    pub params: &'a [Scalar],
    /// Ids for its rows.
    pub numbers: Numbers,
    /// A rule lists it among those that may be asked of several shards.
    pub is_listed: bool,
    /// Its server may store another value than it is given, where a column cannot hold that.
    pub is_lax: bool,
    /// What is known of columns, where that may be asked for.
    pub columns: Option<&'a Columns>,
}

impl<'a> Asked<'a> {
    /// A text that a client of an account in this group sends first.
    #[must_use]
    pub fn of(text: &'a [u8], d: &'a Dialect, group: usize) -> Self {
        Self {
            text,
            d,
            home: group,
            here: group,
            params: &[],
            numbers: Numbers::None,
            is_listed: false,
            is_lax: false,
            columns: None,
        }
    }
}

impl Placement {
    /// See the module's words.
    #[must_use]
    pub fn plan(&self, shape: &Shape, asked: Asked<'_>) -> Plan {
        self.try_plan(shape, asked).unwrap_or_else(Plan::Refuse)
    }

    fn try_plan(&self, shape: &Shape, asked: Asked<'_>) -> Result<Plan, Refused> {
        if shape.refs.is_empty() {
            // Global tables only, which are at hand everywhere.
            if shape.act != Act::Read {
                return self.everywhere(shape, asked);
            }
            let is_home = shape.asks_names();
            let group = if is_home { asked.home } else { asked.here };
            return Ok(Plan::One(self.leg(shape, group, &[], asked)?));
        }
        if let Some(fill) = &shape.fill
            && shape.act == Act::Insert
            && asked.numbers == Numbers::None
        {
            let table = self.known(shape.refs.first().map_or(usize::MAX, |r| r.table))?;
            return Ok(Plan::Ids {
                count: fill.rows.len(),
                group: table.shards.first().map_or(asked.home, |shard| shard.group),
            });
        }
        let sets = self.key_sets(shape, asked.params);
        let mut shards: Vec<Vec<usize>> = Vec::with_capacity(sets.len());
        for (named, keys) in shape.refs.iter().zip(&sets) {
            let table = self.known(named.table)?;
            shards.push(table.shards_of(keys));
        }
        let mut targets = Vec::new();
        match &shape.rows {
            None => {}
            Some(Rows::Unlisted) => {
                let table = shape.refs.first().map_or(usize::MAX, |r| r.table);
                return Ok(Plan::Columns(table));
            }
            Some(rows) => {
                if let Some(table) = self.unknown_column(shape, rows, asked)? {
                    return Ok(Plan::Columns(table));
                }
                targets = self.inserted(shape, rows, &shards, asked)?;
                if let Some(first) = shards.first_mut() {
                    first.clone_from(&targets);
                    first.sort_unstable();
                    first.dedup();
                }
            }
        }
        if shape.act == Act::Describe {
            return self.describe(shape, asked);
        }
        if shape.act == Act::Define {
            return self.each(shape, asked);
        }
        if shards.iter().all(|shards| shards.len() <= 1)
            && let Some(plan) = self.one(shape, &shards, asked)?
        {
            return Ok(plan);
        }
        match shape.act {
            Act::Insert => self.rows_apart(shape, &targets, asked),
            Act::Change => self.changes_apart(shape, &shards, asked),
            Act::Read | Act::Describe | Act::Define => self.several(shape, &shards, asked),
        }
    }

    pub(super) fn known(&self, table: usize) -> Result<&Table, Refused> {
        self.tables
            .get(table)
            .ok_or_else(|| Refused::new("the table is not known any more"))
    }

    /// The keys that rows of each table can have that matter to the statement.
    #[must_use]
    pub fn key_sets(&self, shape: &Shape, params: &[Scalar]) -> Vec<KeySet> {
        let mut sets = vec![KeySet::KEYS; shape.refs.len()];
        let key_type = |of: usize| {
            let table = shape.refs.get(of).map(|r| r.table)?;
            self.tables.get(table).map(|table| table.key_type)
        };
        for fact in &shape.facts {
            for (of, is_optional) in &fact.of {
                let (Some(set), Some(key_type)) = (sets.get_mut(*of), key_type(*of)) else {
                    continue;
                };
                let yes = fact.cond.truth(*of, key_type, params).yes;
                // A row that the condition needs to be missing must not be looked for in one place only.
                if !(*is_optional && yes.null) {
                    *set = set.intersection(&yes.with_null(false));
                }
            }
        }
        // Equal keys: where the one can be, the other is. Each round passes it on by one table.
        let pairs: Vec<(usize, usize, &Chosen)> = shape
            .facts
            .iter()
            .flat_map(|fact| {
                fact.cond
                    .same_keys()
                    .into_iter()
                    .map(|(a, b)| (a, b, &fact.of))
            })
            .collect();
        for _ in 0..shape.refs.len().min(16) {
            for (a, b, of) in &pairs {
                for (to, from) in [(*a, *b), (*b, *a)] {
                    if !of.iter().any(|(chosen, _)| *chosen == to) || key_type(to) != key_type(from)
                    {
                        continue;
                    }
                    if let Some(keys) = sets.get(from).cloned()
                        && let Some(set) = sets.get_mut(to)
                    {
                        *set = set.intersection(&keys);
                    }
                }
            }
        }
        sets
    }

    /// Whether no row of its first table can fit.
    pub(super) fn is_nowhere(&self, shape: &Shape, params: &[Scalar]) -> bool {
        let sets = self.key_sets(shape, params);
        let first = shape
            .refs
            .first()
            .and_then(|named| self.tables.get(named.table));
        let shards = first
            .zip(sets.first())
            .map(|(table, keys)| table.shards_of(keys));
        shards.is_some_and(|shards| shards.is_empty())
    }

    /// A statement that one group can answer; `None` if there is none.
    fn one(
        &self,
        shape: &Shape,
        shards: &[Vec<usize>],
        asked: Asked<'_>,
    ) -> Result<Option<Plan>, Refused> {
        let table_of = |of: usize| shape.refs.get(of).map_or(usize::MAX, |r| r.table);
        let mut groups = shards
            .iter()
            .enumerate()
            .filter_map(|(of, shards)| group(self, table_of(of), *shards.first()?));
        // Where no row fits any shard will say so: the account's own group, if it has one, or the first.
        let wanted = match groups.next() {
            Some(first) if groups.all(|other| other == first) => first,
            Some(_) => return Ok(None),
            None => {
                let table = self.known(table_of(0))?;
                let is_home = table.shards.iter().any(|shard| shard.group == asked.home);
                match table.shards.first() {
                    _ if is_home => asked.home,
                    Some(shard) => shard.group,
                    None => return Err(Refused::new("the table has no shard")),
                }
            }
        };
        if shape.names_unsharded && wanted != asked.home {
            return Err(Refused::UNSHARDED);
        }
        let mut chosen = Vec::with_capacity(shards.len());
        for (of, shards) in shards.iter().enumerate() {
            let table = self.known(table_of(of))?;
            let in_group = || table.shards.iter().position(|shard| shard.group == wanted);
            let Some(shard) = shards.first().copied().or_else(in_group) else {
                return Ok(None);
            };
            chosen.push(shard);
        }
        Ok(Some(Plan::One(self.leg(shape, wanted, &chosen, asked)?)))
    }

    /// The statement for one shard of each table.
    fn leg(
        &self,
        shape: &Shape,
        group: usize,
        chosen: &[usize],
        asked: Asked<'_>,
    ) -> Result<Leg, Refused> {
        self.leg_with(shape, group, chosen, Vec::new(), asked)
    }

    /// The same with some rows of an INSERT only; with all of them if none is named.
    pub(super) fn leg_with(
        &self,
        shape: &Shape,
        group: usize,
        chosen: &[usize],
        rows: Vec<usize>,
        asked: Asked<'_>,
    ) -> Result<Leg, Refused> {
        if shape.asks_schema && self.schemas_of(group).next().is_some() {
            return Err(Refused::new(
                "DATABASE() or SCHEMA() where the statement runs in a group whose schemas have other names: write the name",
            ));
        }
        let places = shape.refs.iter().map(|named| named.table).zip(chosen);
        let is_renamed = |table: usize, shard: usize| {
            let table = self.tables.get(table);
            table.is_some_and(|table| {
                table
                    .shards
                    .get(shard)
                    .is_some_and(|s| s.name != table.name)
            })
        };
        let spliced = splice(self, shape, (chosen, group), &rows, asked)?;
        Ok(Leg {
            group,
            text: spliced.text,
            params: spliced.params,
            put: spliced.put,
            renamed: places
                .map(|(table, shard)| (table, *shard))
                .filter(|(table, shard)| is_renamed(*table, *shard))
                .collect(),
            shows: shape.shows,
            rows,
            dress: None,
        })
    }

    /// Some shard by which a statement can be prepared whose parameters are not known yet.
    ///
    /// # Errors
    /// There is no group that has all its tables.
    pub fn any_leg(&self, shape: &Shape, asked: Asked<'_>) -> Result<Leg, Refused> {
        let mut tables = Vec::with_capacity(shape.refs.len());
        for named in &shape.refs {
            tables.push(self.known(named.table)?);
        }
        let in_group = |group: usize| -> Option<Vec<usize>> {
            let shard = |table: &&Table| table.shards.iter().position(|s| s.group == group);
            tables.iter().map(shard).collect()
        };
        let others = tables.first().into_iter().flat_map(|table| &table.shards);
        let mut groups = std::iter::once(asked.home)
            .chain(others.map(|shard| shard.group))
            .filter(|group| !shape.names_unsharded || *group == asked.home);
        let found = groups.find_map(|group| Some((group, in_group(group)?)));
        let Some((group, chosen)) = found else {
            return Err(Refused::new(
                "no group has all the tables that it names: ask them apart",
            ));
        };
        self.leg(shape, group, &chosen, asked)
    }

    fn each(&self, shape: &Shape, asked: Asked<'_>) -> Result<Plan, Refused> {
        let table = self.known(shape.refs.first().map_or(usize::MAX, |r| r.table))?;
        let shards = table.shards.iter().enumerate();
        let legs = shards.map(|(shard, of)| self.leg(shape, of.group, &[shard], asked));
        Ok(Plan::Each(legs.collect::<Result<Vec<Leg>, _>>()?))
    }

    fn describe(&self, shape: &Shape, asked: Asked<'_>) -> Result<Plan, Refused> {
        let table = self.known(shape.refs.first().map_or(usize::MAX, |r| r.table))?;
        let at_home = table.shards.iter().position(|s| s.group == asked.home);
        let shard = at_home.unwrap_or(0);
        let of = table
            .shards
            .get(shard)
            .ok_or_else(|| Refused::new("the table has no shard"))?;
        Ok(Plan::One(self.leg(shape, of.group, &[shard], asked)?))
    }

    /// A statement that needs several shards.
    fn several(
        &self,
        shape: &Shape,
        shards: &[Vec<usize>],
        asked: Asked<'_>,
    ) -> Result<Plan, Refused> {
        let first = self.known(shape.refs.first().map_or(usize::MAX, |r| r.table))?;
        if let Some(obstacle) = &shape.obstacle {
            return Err(obstacle.with_key(&first.key));
        }
        if shape.refs.iter().any(|r| !r.is_outer) {
            return Err(Refused::new(format!(
                "a subquery on a sharded table over several shards: say which with {} = ...",
                first.key
            )));
        }
        if shape.refs.iter().all(|r| r.is_optional) {
            return Err(Refused::new(
                "an outer join over several shards that keeps rows of a table that is not sharded",
            )
            .with_key(&first.key));
        }
        let all = self.joined(shape, shards)?;
        for named in &shape.refs {
            self.known(named.table)?.check_broadcast(asked.is_listed)?;
        }
        let limit = match &shape.limit {
            None => None,
            Some(limit) => match limit.value(asked.params) {
                Scalar::Int(number) => u64::try_from(*number).ok(),
                _ => {
                    return Err(Refused::new(
                        "a LIMIT that is not understood, over several shards",
                    ));
                }
            },
        };
        let mut legs = Vec::with_capacity(all.len());
        for shard in all {
            let group = group(
                self,
                shape.refs.first().map_or(usize::MAX, |r| r.table),
                shard,
            )
            .ok_or_else(|| Refused::new("its shard is not known"))?;
            if shape.names_unsharded && group != asked.home {
                return Err(Refused::UNSHARDED);
            }
            let chosen = vec![shard; shape.refs.len()];
            legs.push(self.leg(shape, group, &chosen, asked)?);
        }
        Ok(Plan::Scatter { legs, limit })
    }

    /// The shards of tables that are joined on their keys and placed alike: their rows meet on one shard only.
    fn joined(&self, shape: &Shape, shards: &[Vec<usize>]) -> Result<Vec<usize>, Refused> {
        let anchor = shape.refs.iter().position(|r| !r.is_optional).unwrap_or(0);
        let table = |of: usize| self.known(shape.refs.get(of).map_or(usize::MAX, |r| r.table));
        let pairs: Vec<(usize, usize)> = shape
            .facts
            .iter()
            .flat_map(|fact| {
                let chooses = |of: usize| fact.of.iter().any(|(chosen, _)| *chosen == of);
                let pairs = fact.cond.same_keys().into_iter();
                pairs.filter(move |(a, b)| chooses(*a) || chooses(*b))
            })
            .collect();
        let mut met = vec![anchor];
        let mut at = 0;
        while let Some(of) = met.get(at).copied() {
            for (a, b) in &pairs {
                for (from, to) in [(*a, *b), (*b, *a)] {
                    if from == of && !met.contains(&to) && table(to)?.is_placed_like(table(of)?) {
                        met.push(to);
                    }
                }
            }
            at += 1;
        }
        if met.len() < shape.refs.len() {
            return Err(Refused::new(
                "a join of sharded tables over several shards that is not on their shard keys, or of tables that are not placed alike",
            )
            .with_key(&table(anchor)?.key));
        }
        Ok(shards.get(anchor).cloned().unwrap_or_default())
    }
}
