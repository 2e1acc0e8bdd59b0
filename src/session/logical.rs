//! What is kept of a prepared statement that names a sharded table, and of the shards where it was executed.
//!
//! Not here: which shard an execution needs, which is in `sharded_stmt`.

use std::sync::Arc;

use super::texts::Text;
use crate::shard::{Asked, Leg, Placement, Point, Scalar, Shape, There};
use crate::sql::Dialect;

/// What a client prepared.
#[derive(Debug)]
pub(super) struct Logical {
    pub(super) sql: Box<[u8]>,
    /// What decided how it was read.
    pub(super) dialect: Dialect,
    pub(super) schema: Option<Box<[u8]>>,
    /// The map that it was read by; another may have come into force since.
    pub(super) placement: Arc<Placement>,
    pub(super) shape: Shape,
    /// Texts of shards that were executed, so that connections that have prepared them keep them.
    pub(super) of_shards: Vec<Arc<Text>>,
    /// It is about one key.
    pub(super) point: Option<Point>,
    /// Its texts for shards of which that knows.
    pub(super) ready: Vec<(usize, Arc<Text>)>,
}

/// More are not kept in use by one statement.
const SHARDS_MAX: usize = 64;

impl Logical {
    /// Notes the text of a shard in whose place that of another comes.
    pub(super) fn keep(&mut self, text: Arc<Text>, era: u64) {
        self.of_shards
            .retain(|kept| kept.is_of(era) && !Arc::ptr_eq(kept, &text));
        if self.of_shards.len() >= SHARDS_MAX {
            self.of_shards.remove(0);
        }
        self.of_shards.push(text);
    }

    /// What the client prepared.
    pub(super) fn sql(&self) -> &[u8] {
        &self.sql
    }

    /// Notes what an execution with these parameters was planned to be.
    pub(super) fn learn(&mut self, (asked, leg): (Given<'_>, &Leg), text: &Arc<Text>, era: u64) {
        let Some(point) = &mut self.point else {
            return;
        };
        let Some(shard) = asked
            .params
            .get(point.param())
            .and_then(|value| point.shard(&self.placement, value))
        else {
            return;
        };
        let asked = Asked {
            here: asked.here,
            params: asked.params,
            ..Asked::of(&self.sql, &self.dialect, asked.home)
        };
        if point.there(shard).is_none() {
            point.note(&self.placement, &self.shape, (shard, leg), asked);
        }
        if !point.is_of(shard, leg, &self.sql) {
            return;
        }
        self.ready
            .retain(|(of, kept)| *of != shard && kept.is_of(era));
        if self.ready.len() < SHARDS_MAX {
            self.ready.push((shard, text.clone()));
        }
    }

    /// What is known of the shard where the rows of a key lie, and the text there.
    pub(super) fn ready(&self, value: &Scalar, era: u64) -> Option<(&There, &Arc<Text>)> {
        let point = self.point.as_ref()?;
        let shard = point.shard(&self.placement, value)?;
        let (_, text) = self.ready.iter().find(|(of, _)| *of == shard)?;
        Some((point.there(shard)?, text)).filter(|_| text.is_of(era))
    }
}

/// What an execution is planned by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub(super) params: &'a [Scalar],
    pub(super) home: usize,
    pub(super) here: usize,
}
