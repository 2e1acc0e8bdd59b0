//! Writes to several physical tables: one part for each, where all of them are in one group.

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
        let (number, _) = self.written(shape)?;
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
        let place = self.one_group(number, parts.iter().map(|(shard, _)| *shard));
        let place = place.filter(|place| self.may_write(shape, *place, asked));
        let Some(place) = place else {
            return Err(Refused::new(
                "its rows belong on several shards: insert them apart",
            ));
        };
        let legs = parts
            .into_iter()
            .map(|(shard, rows)| self.leg_with(shape, place, &[shard], rows, asked));
        Ok(Plan::Parts(legs.collect::<Result<Vec<Leg>, _>>()?))
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
        let place = self.one_group(number, all.iter().copied());
        let place = place.filter(|place| self.may_write(shape, *place, asked));
        let (Some(place), 1) = (place, shape.refs.len()) else {
            return Err(Refused::new(format!(
                "a write that several shards may have rows for: say which with {} = ... or IN (...)",
                table.key
            )));
        };
        let legs = all
            .iter()
            .map(|shard| self.leg_with(shape, place, &[*shard], Vec::new(), asked));
        Ok(Plan::Parts(legs.collect::<Result<Vec<Leg>, _>>()?))
    }

    fn written(&self, shape: &Shape) -> Result<(usize, &Table), Refused> {
        if let Some(obstacle) = &shape.obstacle {
            return Err(obstacle.clone());
        }
        let number = shape.refs.first().map_or(usize::MAX, |r| r.table);
        Ok((number, self.known(number)?))
    }

    /// The group that has all these shards.
    fn one_group(&self, table: usize, mut shards: impl Iterator<Item = usize>) -> Option<usize> {
        let first = group(self, table, shards.next()?)?;
        shards
            .all(|shard| group(self, table, shard) == Some(first))
            .then_some(first)
    }

    fn may_write(&self, shape: &Shape, group: usize, asked: Asked<'_>) -> bool {
        !shape.names_unsharded || group == asked.home
    }
}
