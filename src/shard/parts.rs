//! Writes to several physical tables: one part for each. Over several groups where the table's `multi_shard_writes` allows it.

use super::map::Table;
use super::plan::{Asked, Leg, Plan};
use super::refused::Refused;
use super::shape::Shape;
use super::{Placement, splice::group};

impl Placement {
    /// An INSERT whose rows belong on these shards: the rows of each.
    pub(super) fn rows_apart(
        &self,
        shape: &Shape,
        targets: &[usize],
        asked: Asked<'_>,
    ) -> Result<Plan, Refused> {
        let (number, table) = self.written(shape)?;
        let is_listed = shape.row_places.len() == targets.len();
        if shape.refs.len() != 1 || !is_listed {
            return Err(Refused::new(
                "its rows belong on several shards: insert them apart",
            ));
        }
        let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
        for (row, shard) in targets.iter().enumerate() {
            match parts.iter_mut().find(|(of, _)| of == shard) {
                Some((_, rows)) => rows.push(row),
                None => parts.push((*shard, vec![row])),
            }
        }
        let Some(kind) = self.kind_of(shape, parts.iter().map(|(shard, _)| *shard), asked)? else {
            return Err(Refused::new(format!(
                "its rows belong on shards of several groups: insert them apart{}",
                hint(table)
            )));
        };
        let mut legs = Vec::with_capacity(parts.len());
        for (shard, rows) in parts {
            let place = group(self, number, shard).ok_or_else(unknown)?;
            legs.push(self.leg_with(shape, place, &[shard], rows, asked)?);
        }
        Ok(kind(legs))
    }

    /// An UPDATE or DELETE of rows that these shards may have.
    pub(super) fn changes_apart(
        &self,
        shape: &Shape,
        shards: &[Vec<usize>],
        asked: Asked<'_>,
    ) -> Result<Plan, Refused> {
        let (number, table) = self.written(shape)?;
        let all = shards.first().map_or(&[][..], Vec::as_slice);
        let kind = self.kind_of(shape, all.iter().copied(), asked)?;
        let (Some(kind), 1) = (kind, shape.refs.len()) else {
            return Err(Refused::new(format!(
                "a write that several shards may have rows for: say which with {} = ... or IN (...){}",
                table.key,
                hint(table)
            )));
        };
        let mut legs = Vec::with_capacity(all.len());
        for shard in all {
            let place = group(self, number, *shard).ok_or_else(unknown)?;
            legs.push(self.leg_with(shape, place, &[*shard], Vec::new(), asked)?);
        }
        Ok(kind(legs))
    }

    /// A write to tables that every group has.
    pub(super) fn everywhere(&self, shape: &Shape, asked: Asked<'_>) -> Result<Plan, Refused> {
        let legs = self.groups.iter();
        let mut legs = legs
            .map(|group| self.leg_with(shape, *group, &[], Vec::new(), asked))
            .collect::<Result<Vec<Leg>, _>>()?;
        Ok(match legs.pop() {
            Some(only) if legs.is_empty() => Plan::One(only),
            last => {
                legs.extend(last);
                Plan::Everywhere(legs)
            }
        })
    }

    fn written(&self, shape: &Shape) -> Result<(usize, &Table), Refused> {
        let number = shape.refs.first().map_or(usize::MAX, |r| r.table);
        let table = self.known(number)?;
        match &shape.obstacle {
            Some(obstacle) => Err(obstacle.with_key(&table.key)),
            None => Ok((number, table)),
        }
    }

    /// How parts for these shards are done: within one group, or over several where that is allowed.
    fn kind_of(
        &self,
        shape: &Shape,
        shards: impl Iterator<Item = usize>,
        asked: Asked<'_>,
    ) -> Result<Option<Kind>, Refused> {
        let (number, table) = self.written(shape)?;
        let mut groups = Vec::new();
        for shard in shards {
            groups.push(group(self, number, shard).ok_or_else(unknown)?);
        }
        let may_be = !shape.names_unsharded || groups.iter().all(|place| *place == asked.home);
        let is_one = groups.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(match is_one {
            _ if !may_be => None,
            true => Some(Plan::Parts),
            false if table.multi_shard_xa => Some(Plan::Across),
            false => None,
        })
    }
}

type Kind = fn(Vec<Leg>) -> Plan;

fn unknown() -> Refused {
    Refused::new("its shard is not known")
}

fn hint(table: &Table) -> &'static str {
    if table.multi_shard_xa {
        ""
    } else {
        ", or allow such writes with `multi_shard_writes = \"xa\"`"
    }
}
