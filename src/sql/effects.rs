//! The session effects of a statement text.

use super::{Dialect, Effect, Kill};

/// Reports every change of session state that the statements in `sql` make when they succeed, in
/// their order.
pub fn effects<'a>(sql: &'a [u8], d: &Dialect, sink: &mut dyn FnMut(Effect<'a>)) {
    if super::classify(sql, d)
        .traits
        .contains(super::Traits::EFFECTS)
    {
        sink(Effect::Opaque);
    }
}

/// Which connection a KILL statement ends; `None` if `sql` is no KILL of a plain number.
#[must_use]
pub fn kill_target(sql: &[u8], d: &Dialect) -> Option<Kill> {
    let _ = d;
    let text = std::str::from_utf8(sql).ok()?.to_ascii_lowercase();
    let mut words = text.trim_end_matches([';', ' ']).split_ascii_whitespace();
    let (Some("kill"), Some(mut word)) = (words.next(), words.next()) else {
        return None;
    };
    if matches!(word, "hard" | "soft") {
        word = words.next()?;
    }
    let query = word == "query";
    if matches!(word, "query" | "connection") {
        word = words.next()?;
    }
    Some(Kill {
        query,
        id: word.parse().ok()?,
    })
}

/// Where the statement starts that an EXPLAIN ROUTE asks about; `None` if `sql` is none.
#[must_use]
pub fn explain_route_target(sql: &[u8], d: &Dialect) -> Option<usize> {
    let _ = d;
    let lower = sql.to_ascii_lowercase();
    let rest = lower.trim_ascii_start().strip_prefix(b"explain route ")?;
    Some(sql.len().saturating_sub(rest.len()))
}
