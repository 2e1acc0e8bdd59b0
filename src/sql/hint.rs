//! Routing hints in comments.
//!
//! A hint is a comment, of any style and at any place, that holds nothing but the hint: blanks
//! around it and case do not matter, nor does the `+` of an optimizer comment. A hint word inside a
//! longer comment is not a hint: comments of frameworks and people talk about masters and replicas
//! without meaning to move the statement.

use super::Hint;

/// The hints met in a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints<'a> {
    /// Somewhere stands `/*master*/`.
    pub(super) primary: bool,
    replica: bool,
    /// The first group that is named.
    group: Option<&'a [u8]>,
}

impl<'a> Hints<'a> {
    /// Takes a comment's text into account.
    #[inline]
    pub(super) fn see(&mut self, comment: &'a [u8]) {
        if comment.len() > LONGEST {
            return;
        }
        match parse(comment) {
            Some(Hint::Primary) => self.primary = true,
            Some(Hint::Replica) => self.replica = true,
            Some(Hint::Group(name)) => self.group = self.group.or(Some(name)),
            None => {}
        }
    }

    /// The hint of the text: the group if one is named, else the primary if it is asked for.
    pub(super) fn hint(&self) -> Option<Hint<'a>> {
        let role = if self.primary {
            Some(Hint::Primary)
        } else {
            self.replica.then_some(Hint::Replica)
        };
        self.group.map(Hint::Group).or(role)
    }
}

/// Longer comments hold no hint; group names are short.
const LONGEST: usize = 256;

fn parse(comment: &[u8]) -> Option<Hint<'_>> {
    let text = comment.strip_prefix(b"+").unwrap_or(comment).trim_ascii();
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    match text.first()?.to_ascii_lowercase() {
        b'm' if is("master") => Some(Hint::Primary),
        b'p' if is("primary") => Some(Hint::Primary),
        b's' if is("slave") => Some(Hint::Replica),
        b'r' if is("replica") => Some(Hint::Replica),
        b'g' => {
            let (word, name) = text.split_at_checked(text.iter().position(|b| *b == b':')?)?;
            let name = name.get(1..)?.trim_ascii();
            let is_group = word.trim_ascii_end().eq_ignore_ascii_case(b"group");
            (is_group && !name.is_empty() && !name.iter().any(u8::is_ascii_whitespace))
                .then_some(Hint::Group(name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_whole_comments() {
        for (comment, hint) in [
            ("master", Some(Hint::Primary)),
            (" Master\n", Some(Hint::Primary)),
            ("PRIMARY", Some(Hint::Primary)),
            ("+ master ", Some(Hint::Primary)),
            ("slave", Some(Hint::Replica)),
            ("\treplica ", Some(Hint::Replica)),
            ("group:g1", Some(Hint::Group(b"g1"))),
            (" GROUP : g-1_x ", Some(Hint::Group(b"g-1_x"))),
            ("group:", None),
            ("group", None),
            ("group:a b", None),
            ("groups:a", None),
            ("", None),
            ("+", None),
            (" ", None),
            ("masters", None),
            ("no master", None),
            ("master of none", None),
            ("! master", None),
        ] {
            assert_eq!(parse(comment.as_bytes()), hint, "{comment:?}");
        }
    }

    #[test]
    fn the_primary_wins_over_a_replica_and_a_group_keeps_its_name() {
        let hints = |all: &[&'static str]| {
            let mut hints = Hints::default();
            all.iter().for_each(|c| hints.see(c.as_bytes()));
            (hints.hint(), hints.primary)
        };
        assert_eq!(hints(&["replica", "master"]), (Some(Hint::Primary), true));
        assert_eq!(hints(&["master", "replica"]), (Some(Hint::Primary), true));
        assert_eq!(
            hints(&["replica", "group:a"]),
            (Some(Hint::Group(b"a")), false)
        );
        assert_eq!(
            hints(&["group:a", "master"]),
            (Some(Hint::Group(b"a")), true)
        );
        assert_eq!(hints(&["note"]), (None, false));
    }
}
