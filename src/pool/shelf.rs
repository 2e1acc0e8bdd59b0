//! Idle server connections of one host and one worker, the newest on top, so that the same few stay warm. Knows keys of
//! connections, not connections. Moments are times since some start.

use std::time::Duration;

use super::Shape;

/// An idle connection.
#[derive(Debug, Clone, Copy)]
pub struct Slot<K> {
    /// Its key.
    pub key: K,
    /// For whom it can serve.
    pub shape: Shape,
    /// A number of its state: equal numbers are most likely equal states.
    pub state: u64,
    /// The number of its last use.
    pub serial: u64,
    /// Idle since then.
    pub since: Duration,
    /// To be closed after that, however busy.
    pub expires: Duration,
}

/// See the module's words.
#[derive(Debug)]
pub struct Shelf<K> {
    /// The newest last.
    slots: Vec<Slot<K>>,
}

impl<K> Default for Shelf<K> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

/// So many of the newest are looked at for one in the very state that is wanted: bringing about a state costs less than a
/// long search, and the older ones are cold.
const LOOK: usize = 16;

impl<K: Copy + PartialEq> Shelf<K> {
    /// Puts a connection on top.
    pub fn put(&mut self, slot: Slot<K>) {
        self.slots.push(slot);
    }

    /// Takes the newest connection of a shape, one in the wanted state before others.
    pub fn take(&mut self, shape: Shape, state: u64) -> Option<Slot<K>> {
        let mut found = None;
        let fitting = self
            .slots
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, slot)| slot.shape == shape);
        for (at, slot) in fitting.take(LOOK) {
            if slot.state == state {
                found = Some(at);
                break;
            }
            found = found.or(Some(at));
        }
        found.map(|at| self.slots.remove(at))
    }

    /// Takes the connection that was last used under this number.
    pub fn take_same(&mut self, serial: u64) -> Option<Slot<K>> {
        let at = self.slots.iter().rposition(|slot| slot.serial == serial)?;
        Some(self.slots.remove(at))
    }

    /// Their shapes, that of the newest first.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> + '_ {
        self.slots.iter().rev().map(|slot| slot.shape)
    }

    /// Takes the one that was idle for longest.
    pub fn take_oldest(&mut self) -> Option<Slot<K>> {
        (!self.slots.is_empty()).then(|| self.slots.remove(0))
    }

    /// Takes the newest, whatever it is like.
    pub fn take_newest(&mut self) -> Option<Slot<K>> {
        self.slots.pop()
    }

    /// Takes the first of which this holds.
    pub fn take_if(&mut self, holds: impl FnMut(&Slot<K>) -> bool) -> Option<Slot<K>> {
        let at = self.slots.iter().position(holds)?;
        Some(self.slots.remove(at))
    }

    /// Takes one out that is gone.
    pub fn remove(&mut self, key: K) -> bool {
        let before = self.slots.len();
        self.slots.retain(|slot| slot.key != key);
        self.slots.len() < before
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes one whose time is over: its life's always, that of being idle only while `spare` says that it can be done without.
    pub fn take_overdue(&mut self, now: Duration, idle: Duration, spare: bool) -> Option<Slot<K>> {
        self.take_if(|slot| {
            slot.expires <= now || (spare && now.saturating_sub(slot.since) >= idle)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Capabilities;

    fn shape(charset: u16) -> Shape {
        Shape {
            account: 0,
            capabilities: Capabilities::NONE,
            charset,
            has_schema: false,
        }
    }

    fn slot(key: u32, charset: u16, state: u64, now: Duration) -> Slot<u32> {
        Slot {
            key,
            shape: shape(charset),
            state,
            serial: u64::from(key) + 100,
            since: now,
            expires: now + Duration::from_secs(60),
        }
    }

    #[test]
    fn the_newest_of_the_shape_and_rather_one_in_the_state() {
        let now = Duration::from_secs(1000);
        let mut shelf = Shelf::default();
        for (key, charset, state) in [(1, 45, 7), (2, 45, 8), (3, 45, 8), (4, 33, 7)] {
            shelf.put(slot(key, charset, state, now));
        }
        assert_eq!(shelf.take(shape(45), 7).map(|s| s.key), Some(1));
        assert_eq!(shelf.take(shape(45), 7).map(|s| s.key), Some(3));
        assert_eq!(shelf.take(shape(8), 7).map(|s| s.key), None);
        assert_eq!(shelf.take_same(104).map(|s| s.key), Some(4));
        assert_eq!(shelf.take_same(104).map(|s| s.key), None);
        assert!(shelf.remove(2));
        assert!(shelf.is_empty());
    }

    /// B27.
    #[test]
    fn overdue_ones_leave_the_oldest_first_and_only_while_they_can_be_spared() {
        let now = Duration::from_secs(1000);
        let mut shelf = Shelf::default();
        shelf.put(slot(1, 45, 0, now));
        shelf.put(slot(2, 45, 0, now + Duration::from_secs(5)));
        let idle = Duration::from_secs(10);
        let later = now + Duration::from_secs(12);
        assert!(shelf.take_overdue(later, idle, false).is_none());
        assert_eq!(
            shelf.take_overdue(later, idle, true).map(|s| s.key),
            Some(1)
        );
        assert!(shelf.take_overdue(later, idle, true).is_none());
        let end = now + Duration::from_secs(70);
        assert_eq!(shelf.take_overdue(end, idle, false).map(|s| s.key), Some(2));
    }
}
