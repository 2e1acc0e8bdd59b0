//! Sets of keys, as conditions make them. A set may hold more than it has to, never less.

use super::key::{INT_MAX, INT_MIN};

/// A set of keys of one table, and whether NULL is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet {
    /// A row without a key would be in it too.
    pub null: bool,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    All,
    /// Numbers or days: closed spans, in order, with a gap between any two.
    Spans(Vec<(i128, i128)>),
    /// Folded texts, in order.
    Texts(Vec<Vec<u8>>),
}

impl KeySet {
    /// Everything, NULL too.
    pub const ALL: Self = Self {
        null: true,
        body: Body::All,
    };
    /// Every key.
    pub const KEYS: Self = Self {
        null: false,
        body: Body::All,
    };
    /// Nothing.
    pub const NONE: Self = Self {
        null: false,
        body: Body::Spans(Vec::new()),
    };
    /// NULL only.
    pub const NULL: Self = Self {
        null: true,
        body: Body::Spans(Vec::new()),
    };

    /// One number.
    #[must_use]
    pub fn of(number: i128) -> Self {
        Self::span(number, number)
    }

    /// Numbers or days from one to another; nothing if they are the wrong way round.
    pub(super) fn span(from: i128, to: i128) -> Self {
        let spans = if from <= to {
            vec![(from, to)]
        } else {
            Vec::new()
        };
        Self {
            null: false,
            body: Body::Spans(spans),
        }
    }

    /// Every number but one.
    pub(super) fn but(number: i128) -> Self {
        Self::span(INT_MIN, number.saturating_sub(1))
            .union(&Self::span(number.saturating_add(1), INT_MAX))
    }

    /// One text.
    pub(super) fn text(folded: Vec<u8>) -> Self {
        Self {
            null: false,
            body: Body::Texts(vec![folded]),
        }
    }

    /// The same keys, with NULL or without.
    pub(super) fn with_null(mut self, null: bool) -> Self {
        self.null = null;
        self
    }

    /// No key is in it.
    #[must_use]
    pub fn has_no_key(&self) -> bool {
        match &self.body {
            Body::All => false,
            Body::Spans(spans) => spans.is_empty(),
            Body::Texts(texts) => texts.is_empty(),
        }
    }

    /// Spans of numbers or days; `None` if these say nothing about it.
    pub(super) fn spans(&self) -> Option<&[(i128, i128)]> {
        match &self.body {
            Body::Spans(spans) => Some(spans),
            Body::All | Body::Texts(_) => None,
        }
    }

    /// Folded texts; `None` if these say nothing about it.
    pub(super) fn texts(&self) -> Option<&[Vec<u8>]> {
        match &self.body {
            Body::Texts(texts) => Some(texts),
            Body::All | Body::Spans(_) => None,
        }
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let body = match (&self.body, &other.body) {
            (Body::All, body) | (body, Body::All) => body.clone(),
            (Body::Spans(a), Body::Spans(b)) => Body::Spans(meet(a, b)),
            (Body::Texts(a), Body::Texts(b)) => {
                let both = a.iter().filter(|text| b.binary_search(text).is_ok());
                Body::Texts(both.cloned().collect())
            }
            // Nothing at all is written as no spans, whatever the keys are.
            (Body::Spans(spans), Body::Texts(_)) | (Body::Texts(_), Body::Spans(spans)) => {
                if spans.is_empty() {
                    Body::Spans(Vec::new())
                } else {
                    Body::All
                }
            }
        };
        Self {
            null: self.null && other.null,
            body,
        }
    }

    /// What is in one of the two.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of([self.clone(), other.clone()])
    }

    /// What is in all of them. Two and two, since a list of many values has as many sets, each as large as what was met before.
    pub(super) fn intersection_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let meet = |pair: &[Self]| match pair {
                [one, other] => one.intersection(other),
                rest => rest.first().cloned().unwrap_or(Self::ALL),
            };
            sets = sets.chunks(2).map(meet).collect();
        }
        sets.pop().unwrap_or(Self::ALL)
    }

    /// What is in one of them.
    pub(super) fn union_of(sets: impl IntoIterator<Item = Self>) -> Self {
        let (mut null, mut all) = (false, false);
        let mut every_span = Vec::new();
        let mut every_text = Vec::new();
        for set in sets {
            null |= set.null;
            match set.body {
                Body::All => all = true,
                Body::Spans(spans) => every_span.extend(spans),
                Body::Texts(texts) => every_text.extend(texts),
            }
        }
        let body = if all || !every_span.is_empty() && !every_text.is_empty() {
            Body::All
        } else if every_text.is_empty() {
            Body::Spans(in_order(every_span))
        } else {
            every_text.sort_unstable();
            every_text.dedup();
            Body::Texts(every_text)
        };
        Self { null, body }
    }
}

/// Sorts spans and joins those that touch.
fn in_order(mut spans: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    spans.sort_unstable();
    let mut joined: Vec<(i128, i128)> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn meet(a: &[(i128, i128)], b: &[(i128, i128)]) -> Vec<(i128, i128)> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from <= to {
            both.push((from, to));
        }
        if x.1 < y.1 {
            a.next();
        } else {
            b.next();
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = KeySet> {
        (
            any::<bool>(),
            proptest::collection::vec((-6..6_i128, -6..6_i128), 0..4),
        )
            .prop_map(|(null, spans)| {
                KeySet::union_of(spans.into_iter().map(|(a, b)| KeySet::span(a, b))).with_null(null)
            })
    }

    fn has(set: &KeySet, number: i128) -> bool {
        let spans = set.spans().unwrap();
        spans
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&number))
    }

    proptest! {
        #[test]
        fn sets_are_sets(a in set(), b in set()) {
            let (union, both) = (a.union(&b), a.intersection(&b));
            for number in -8..8 {
                prop_assert_eq!(has(&union, number), has(&a, number) || has(&b, number));
                prop_assert_eq!(has(&both, number), has(&a, number) && has(&b, number));
            }
            prop_assert_eq!(union.null, a.null || b.null);
            prop_assert_eq!(both.null, a.null && b.null);
            let spans = union.spans().unwrap();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }

    #[test]
    fn texts() {
        let of = |text: &str| KeySet::text(text.as_bytes().to_vec());
        let ab = of("a").union(&of("b"));
        assert_eq!(ab.intersection(&of("b")), of("b"));
        assert!(ab.intersection(&of("c")).has_no_key());
        assert!(ab.intersection(&KeySet::NONE).has_no_key());
        assert_eq!(ab.union(&KeySet::NONE), ab);
        assert_eq!(ab.union(&KeySet::KEYS), KeySet::KEYS);
    }
}
