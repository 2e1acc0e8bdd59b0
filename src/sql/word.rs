//! Finding words: one table of keywords and function names, made at compile time.
//!
//! A word is folded to lower case by setting one bit of each byte, which is exact among the bytes of
//! unquoted names, and is compared as two 8-byte numbers: the first bytes and the last bytes, which
//! overlap in words under 16 bytes and so hold all of it. Longer words are compared in full.

use super::function::GROUPS;
use super::keyword::{KEYWORDS, Kw};

/// A known word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    text: &'static [u8],
    key: Key,
    /// What it means to the classifier.
    pub(super) kw: Kw,
    /// Its group of functions, for [`super::function::group`].
    pub(super) group: u16,
}

/// The entry of a word, whatever its case.
#[inline]
pub(super) fn lookup(word: &[u8]) -> Option<&'static Word> {
    if word.len() > LONGEST {
        return None;
    }
    let key = Key::of(word);
    let mut slot = key.hash();
    loop {
        let index = *TABLE.slots.get(slot)?;
        let found = TABLE.words.get(usize::from(index).checked_sub(1)?)?;
        if found.key == key && (word.len() <= 16 || found.text.eq_ignore_ascii_case(word)) {
            return Some(found);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    head: u64,
    tail: u64,
    len: usize,
}

/// 0x20 in each byte: makes ASCII letters lower case, and keeps different bytes of names different.
const FOLD: u64 = 0x2020_2020_2020_2020;

impl Key {
    #[inline]
    fn of(word: &[u8]) -> Self {
        let (head, tail) = if let (Some(head), Some(tail)) = (word.first_chunk(), word.last_chunk())
        {
            (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
        } else if let (Some(head), Some(tail)) = (word.first_chunk(), word.last_chunk()) {
            let both =
                u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << 32;
            (both, 0)
        } else {
            let byte = |at: usize| u64::from(word.get(at).copied().unwrap_or(0));
            (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
        };
        Self {
            head: head | FOLD,
            tail: tail | FOLD,
            len: word.len(),
        }
    }

    /// The same at compile time.
    const fn of_const(word: &[u8]) -> Self {
        let len = word.len();
        let (head, tail) = if len >= 8 {
            (le_bytes(word, 0, 8), le_bytes(word, len - 8, 8))
        } else if len >= 4 {
            (le_bytes(word, 0, 4) | le_bytes(word, len - 4, 4) << 32, 0)
        } else {
            (le_bytes(word, 0, len), 0)
        };
        Self {
            head: head | FOLD,
            tail: tail | FOLD,
            len,
        }
    }

    #[inline]
    const fn hash(&self) -> usize {
        let mixed = (self.head ^ self.tail.rotate_left(23) ^ self.len as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - SLOT_BITS)) as usize
    }
}

const fn le_bytes(word: &[u8], from: usize, len: usize) -> u64 {
    let mut value = 0;
    let mut i = 0;
    while i < len {
        value |= (word[from + i] as u64) << (8 * i);
        i += 1;
    }
    value
}

/// No known word is longer.
const LONGEST: usize = 40;
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;
const MOST_WORDS: usize = SLOTS / 4;

struct Table {
    /// Place in `words` and 1; 0 is empty. Collisions go to the next slot.
    slots: [u16; SLOTS],
    words: [Word; MOST_WORDS],
    len: usize,
}

static TABLE: Table = Table::build();

impl Table {
    const fn build() -> Self {
        let nothing = Word {
            text: b"",
            key: Key::of_const(b""),
            kw: Kw::Name,
            group: 0,
        };
        let mut table = Self {
            slots: [0; SLOTS],
            words: [nothing; MOST_WORDS],
            len: 0,
        };
        let mut i = 0;
        while i < KEYWORDS.len() {
            let (text, kw) = KEYWORDS[i];
            let word = table.word(text.as_bytes());
            assert!(
                matches!(table.words[word].kw, Kw::Name),
                "a keyword is listed twice"
            );
            table.words[word].kw = kw;
            i += 1;
        }
        let mut group = 0;
        while group < GROUPS.len() {
            let mut rest = GROUPS[group].names.as_bytes();
            while !rest.is_empty() {
                let mut len = 0;
                while len < rest.len() && rest[len] != b' ' {
                    len += 1;
                }
                let (name, tail) = rest.split_at(len);
                let word = table.word(name);
                assert!(table.words[word].group == 0, "a function is listed twice");
                table.words[word].group = small(group + 1);
                rest = if tail.is_empty() {
                    tail
                } else {
                    tail.split_at(1).1
                };
            }
            group += 1;
        }
        table
    }

    /// The place of a word in `words`, where it is put if it is new.
    const fn word(&mut self, text: &'static [u8]) -> usize {
        assert!(!text.is_empty() && text.len() <= LONGEST);
        let key = Key::of_const(text);
        let mut slot = key.hash();
        while self.slots[slot] != 0 {
            let found = self.slots[slot] as usize - 1;
            if is_same(self.words[found].text, text) {
                return found;
            }
            slot = (slot + 1) % SLOTS;
        }
        let place = self.len;
        self.words[place] = Word {
            text,
            key,
            kw: Kw::Name,
            group: 0,
        };
        self.len += 1;
        self.slots[slot] = small(self.len);
        place
    }
}

/// The number itself, which must fit.
#[expect(clippy::cast_possible_truncation, reason = "checked")]
const fn small(number: usize) -> u16 {
    assert!(number <= u16::MAX as usize);
    number as u16
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
