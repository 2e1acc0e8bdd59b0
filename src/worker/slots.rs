//! Slots with identity: a slab whose keys carry a generation, so that a late event or timer can never reach another
//! connection that was put into the same place.

use slab::Slab;

/// A key to a slot: place and generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Generations have so many bits, to fit a token with the index and the kind.
const GENERATION_BITS: u32 = 28;

impl Key {
    /// Packs the key into the low 60 bits.
    #[must_use]
    pub(super) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Unpacks what [`Self::to_bits`] packed.
    #[must_use]
    pub(super) fn from_bits(bits: u64) -> Self {
        let generation = u32::try_from(bits >> 32 & ((1 << GENERATION_BITS) - 1)).unwrap_or(0);
        let index = u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
        Self { index, generation }
    }
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slab: Slab<(u32, T)>,
    next_generation: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slab: Slab::new(),
            next_generation: 0,
        }
    }
}

impl<T> Slots<T> {
    /// Puts in what `make` makes for its key.
    pub(super) fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        self.next_generation = (self.next_generation + 1) & ((1 << GENERATION_BITS) - 1);
        let generation = self.next_generation;
        let entry = self.slab.vacant_entry();
        let key = Key {
            index: u32::try_from(entry.key()).unwrap_or(u32::MAX),
            generation,
        };
        entry.insert((generation, make(key)));
        key
    }

    /// The slot, if it is still the one that the key was made for.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slab.get_mut(key.index as usize) {
            Some((generation, value)) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// As [`Self::get_mut`].
    pub(super) fn get(&self, key: Key) -> Option<&T> {
        match self.slab.get(key.index as usize) {
            Some((generation, value)) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// Takes the slot's value out.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        self.slab
            .try_remove(key.index as usize)
            .map(|(_, value)| value)
    }

    /// Takes all values out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.slab.drain().map(|(_, value)| value)
    }

    /// How many slots are taken.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Keys of all slots.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.slab
            .iter()
            .map(|(index, (generation, _))| Key {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                generation: *generation,
            })
            .collect()
    }

    /// All values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slab.iter().map(|(index, (generation, value))| {
            (
                Key {
                    index: u32::try_from(index).unwrap_or(u32::MAX),
                    generation: *generation,
                },
                value,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_never_reaches_the_next_tenant() {
        let mut slots = Slots::default();
        let first = slots.insert_with(|_| "a");
        assert_eq!(slots.remove(first), Some("a"));
        let second = slots.insert_with(|_| "b");
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second), Some(&"b"));
        assert_eq!(Key::from_bits(second.to_bits()), second);
    }
}
