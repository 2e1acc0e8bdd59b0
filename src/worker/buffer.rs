//! Buffers of received bytes, and the pool that they come from. An idle connection owns none.

/// Received bytes that are not consumed yet.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The size of a pooled buffer (bytes): a command of nearly every client fits.
const SIZE: usize = 16 * 1024;
/// So many unused buffers are kept by a worker.
const KEPT: usize = 256;

impl Buffer {
    /// How many bytes are held.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Nothing is held.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// What is held.
    #[must_use]
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// What is held.
    pub(super) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// The first bytes are done with.
    pub(super) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// So many bytes were read into [`Self::space`].
    pub(super) fn filled_more(&mut self, n: usize) {
        self.end = (self.end + n).min(self.bytes.len());
    }

    /// Room behind what is held, so that at least `total` bytes can be held in one piece and there is room for one more.
    pub(super) fn space(&mut self, total: usize, pool: &mut Pool) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = pool.take();
        }
        let wanted = total.max(self.len() + 1);
        if self.bytes.len() - self.start < wanted {
            self.make_room(wanted);
        }
        &mut self.bytes[self.end..]
    }

    #[cold]
    fn make_room(&mut self, wanted: usize) {
        if self.start > 0 && self.bytes.len() - self.start < wanted {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.max(self.bytes.len() * 2), 0);
        }
    }

    /// Appends bytes that arrived elsewhere.
    pub(super) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if !bytes.is_empty() {
            let total = self.len() + bytes.len();
            self.space(total, pool)[..bytes.len()].copy_from_slice(bytes);
            self.filled_more(bytes.len());
        }
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn release(&mut self, pool: &mut Pool) {
        if self.is_empty() && !self.bytes.is_empty() {
            pool.give(std::mem::take(&mut self.bytes));
        }
    }
}

/// Unused buffers of one worker.
#[derive(Debug, Default)]
pub(super) struct Pool(Vec<Vec<u8>>);

impl Pool {
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_else(Self::make)
    }

    #[cold]
    fn make() -> Vec<u8> {
        vec![0; SIZE]
    }

    fn give(&mut self, bytes: Vec<u8>) {
        // One that grew for a long command is not kept.
        if bytes.len() == SIZE && self.0.len() < KEPT {
            self.0.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_grows_moves_and_gives_back() {
        let mut pool = Pool::default();
        let mut buffer = Buffer::default();
        buffer.append(b"hello", &mut pool);
        buffer.consume(2);
        assert_eq!(buffer.filled(), b"llo");
        assert!(buffer.space(100_000, &mut pool).len() >= 100_000 - 3);
        assert_eq!(buffer.filled(), b"llo");
        buffer.consume(3);
        buffer.release(&mut pool);
        assert!(pool.0.is_empty(), "a grown buffer is not kept");
        buffer.append(b"x", &mut pool);
        buffer.consume(1);
        buffer.release(&mut pool);
        assert_eq!(pool.0.len(), 1);
        assert_eq!(buffer.bytes.capacity(), 0);
    }

    #[test]
    fn there_is_always_room_for_one_more_byte() {
        let mut pool = Pool::default();
        let mut buffer = Buffer::default();
        for _ in 0..3 * SIZE {
            let space = buffer.space(0, &mut pool);
            space[0] = 7;
            buffer.filled_more(1);
        }
        assert_eq!(buffer.len(), 3 * SIZE);
        assert!(buffer.filled().iter().all(|b| *b == 7));
    }
}
