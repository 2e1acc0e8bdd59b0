//! What FOUND_ROWS() is to give: the number of rows that the last query found, and after many another statement the number that the server
//! alone knows, or the one of before.
//!
//! Where the answer tells the number it is kept. Where the server has to be asked its connection is on call until it was (`hold`). And
//! where a statement may leave the number as it is, what the server then says could be another session's: so the connection is
//! brought to the session's number first, as to the rest of its state. What cannot be asked so (a number too large to be brought
//! about, an error in the midst of a query) stays in doubt, and who asks for it is told so, unless the connection gives
//! another number than before.
//!
//! Which statements are of which kind is seen in their text, by `sql::counts`.

use super::bring::write_query;
use super::expect::Info;
use super::parts::Found;
use super::sync::Said;
use super::{Access, Last, Outcome, Output, Outputs, Role, Session};
use crate::sql::{Kind, Server, Traits};

/// The largest number to which a connection is brought: so many rows are fetched for that.
const BROUGHT_MAX: u64 = 1000;

/// What FOUND_ROWS() gives behind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// What it gave before.
    Leaves,
    /// This number.
    Is(u64),
    /// A number that the server alone knows.
    Sets,
    /// Such a number (if not just this one), or what it gave before.
    May(Option<u64>),
}

/// A number that may be the one of before, where connection and session did not have the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    /// What the connection had.
    was: Option<u64>,
    /// What the session had.
    kept: Option<u64>,
    /// The number that it is if it is not the one of before.
    only: Option<u64>,
}

impl Doubt {
    /// The number, where the connection now gives this one.
    fn resolve(self, now: u64) -> Option<u64> {
        if self.was.is_some_and(|was| was != now) {
            return Some(now);
        }
        match self.only {
            Some(only) if only != now => self.kept,
            _ => self.kept.filter(|kept| *kept == now),
        }
    }
}

/// Whether the number behind such a statement may be the one of before without the answer telling.
fn may_leave(kind: Kind, traits: Traits) -> bool {
    traits.intersects(Traits::MAY_COUNT | Traits::CALL)
        || traits.contains(Traits::MULTI) && kind != Kind::Read
        || matches!(kind, Kind::Execute | Kind::Batch | Kind::Unknown)
}

fn effect(server: Server, kind: Kind, traits: Traits, outcome: Outcome) -> Effect {
    let counts_otherwise = Traits::COUNTS_OTHERWISE | Traits::CALC_FOUND_ROWS | Traits::MULTI;
    match outcome.error {
        _ if may_leave(kind, traits) => Effect::May(None),
        Some(_) if traits.contains(Traits::MULTI) => Effect::May(None),
        // A query that fails at its rows has counted some of them.
        Some(code) if server == Server::MariaDb && kind == Kind::Read => {
            let calls = traits.contains(Traits::UNKNOWN_FUNCTION);
            if is_before_rows(code) && !calls {
                Effect::Leaves
            } else {
                Effect::May(None)
            }
        }
        Some(_) => Effect::Leaves,
        None if traits.contains(Traits::UNCOUNTED) => Effect::Leaves,
        None if kind == Kind::Read && traits.intersects(counts_otherwise) => Effect::Sets,
        // The server has found all of a cursor's rows.
        None if kind == Kind::Read && opened_cursor(outcome) => Effect::Sets,
        None if matches!(kind, Kind::Read | Kind::Show) && outcome.rows => {
            Effect::Is(outcome.row_count)
        }
        None if traits.contains(Traits::MATCHES) && server == Server::MySql => {
            match outcome.said.info() {
                // It has not looked: there can be no such row.
                Info::None => Effect::Leaves,
                // Here that is not told apart from looking and finding none.
                Info::First(0) => Effect::May(Some(0)),
                Info::First(matched) => Effect::Is(matched.into()),
                Info::Unread => Effect::Sets,
            }
        }
        None => Effect::Leaves,
    }
}

fn opened_cursor(outcome: Outcome) -> bool {
    use crate::wire::Status;
    outcome
        .status
        .is_some_and(|status| status.contains(Status::CURSOR_EXISTS))
}

/// Errors of texts, names and rights, which come before a query looks for rows.
fn is_before_rows(code: u16) -> bool {
    matches!(
        code,
        1044..=1046
            | 1049
            | 1051..=1052
            | 1054..=1056
            | 1060
            | 1064
            | 1066
            | 1109
            | 1111
            | 1140..=1144
            | 1146
            | 1222
            | 1227
            | 1235
            | 1241
            | 1247
            | 1248
            | 1305
            | 1318
            | 1356
            | 1370
            | 1582..=1584
            | 4078
    )
}

impl Session {
    /// A statement is over: what FOUND_ROWS() is from here on, and who knows.
    #[inline]
    pub(super) fn note_found(
        &mut self,
        role: Role,
        (kind, traits): (Kind, Traits),
        outcome: Outcome,
        here: Last,
    ) {
        if kind == Kind::Read && traits == Traits::NONE && outcome.error.is_none() && outcome.rows {
            return self.found_are(role, outcome.row_count, here);
        }
        match effect(self.server, kind, traits, outcome) {
            Effect::Leaves => {}
            Effect::Is(number) => self.found_are(role, number, here),
            Effect::Sets => self.found_are_there(role, None, here),
            Effect::May(only) => self.found_may_be_there(role, only, here),
        }
    }

    fn found_are(&mut self, role: Role, number: u64, here: Last) {
        self.numbers.found_rows = Found::Are(number);
        self.last_rows = Some(here);
        if let Some(known) = self.link_mut(role).known_mut() {
            known.found_rows = Some(number);
        }
    }

    /// The connection has the number.
    #[cold]
    fn found_are_there(&mut self, role: Role, doubt: Option<Box<Doubt>>, here: Last) {
        self.numbers.found_rows = doubt.map_or(Found::There, Found::InDoubt);
        self.last_rows = Some(Last {
            holds: true,
            ..here
        });
        if let Some(known) = self.link_mut(role).known_mut() {
            known.found_rows = None;
        }
    }

    /// The connection has the number, or leaves it as it was.
    #[cold]
    pub(super) fn found_may_be_there(&mut self, role: Role, only: Option<u64>, here: Last) {
        let was = self.link(role).known().and_then(|known| known.found_rows);
        let kept = self.numbers.found_rows.number();
        let is_there = |last: &Last| last.holds && !last.lost && last.serial == here.serial;
        if self.last_rows.as_ref().is_some_and(is_there) {
            // Two in a row: it may be the one before both.
            let doubt = match std::mem::take(&mut self.numbers.found_rows) {
                Found::InDoubt(mut doubt) => {
                    doubt.only = doubt.only.filter(|before| only == Some(*before));
                    Some(doubt)
                }
                Found::Are(_) | Found::There => None,
            };
            return self.found_are_there(role, doubt, here);
        }
        if kept.is_some() && kept == was {
            return self.found_are_there(role, None, here);
        }
        if only.is_some() && kept == only {
            if let Some(known) = self.link_mut(role).known_mut() {
                known.found_rows = None;
            }
            return;
        }
        let doubt = Doubt { was, kept, only };
        self.found_are_there(role, Some(Box::new(doubt)), here);
        if only.is_some() && only == was {
            // It will say that number, whatever it means.
            self.numbers.found_rows = Found::There;
            if let Some(last) = &mut self.last_rows {
                (last.holds, last.lost) = (false, true);
            }
        }
    }

    /// The connection of the last statement that counted gives this number.
    pub(super) fn note_found_there(&mut self, number: u64) {
        self.numbers.found_rows = match &self.numbers.found_rows {
            Found::InDoubt(doubt) => doubt.resolve(number).map_or(Found::There, Found::Are),
            Found::Are(_) | Found::There => Found::Are(number),
        };
        if let Some(last) = &mut self.last_rows {
            last.holds = false;
        }
    }

    /// What the connection says to a question for the number is not what is to be answered.
    pub(super) fn found_in_doubt(&self, traits: Traits) -> bool {
        traits.contains(Traits::FOUND_ROWS)
            && matches!(self.numbers.found_rows, Found::InDoubt(_))
            && self.last_rows.is_some_and(|last| last.holds)
    }

    /// The session knows the number, and its connection gives another since it was asked.
    pub(super) fn found_are_kept(&self, role: Role, traits: Traits) -> bool {
        let serial = self.link(role).known().map(|known| known.serial);
        traits.contains(Traits::FOUND_ROWS)
            && self
                .last_rows
                .is_some_and(|last| last.role == role && !last.holds && serial != Some(last.serial))
    }

    /// Makes sure that the connection has the session's number where the statement may leave it as it is. False when that is on its
    /// way, and the command waits.
    #[inline]
    pub(super) fn ensure_found(
        &mut self,
        role: Role,
        (kind, traits): (Kind, Traits),
        out: &mut Outputs,
    ) -> bool {
        let may_leave = may_leave(kind, traits);
        let may_match = traits.contains(Traits::MATCHES)
            && self.diary.has_counted
            && self.server == Server::MySql;
        !(may_leave || may_match) || self.bring_found(role, may_leave, out)
    }

    /// The same for an execution of this statement.
    pub(super) fn ensure_found_for(&mut self, role: Role, id: u32, out: &mut Outputs) -> bool {
        let statement = self.statements.get_mut(id);
        let facts = statement.map(|statement| (statement.kind, statement.traits));
        facts.is_none_or(|facts| self.ensure_found(role, facts, out))
    }

    #[cold]
    fn bring_found(&mut self, role: Role, may_leave: bool, out: &mut Outputs) -> bool {
        // Nobody asks after a shard's own number.
        if self.attempt.brought_found || self.diary.is_leg {
            return true;
        }
        let Some(known) = self.link(role).known() else {
            return true;
        };
        let (capabilities, was, serial) = (known.capabilities, known.found_rows, known.serial);
        if let Some(last) = self.last_rows.filter(|last| last.holds && !last.lost) {
            let other = self.link(role.other()).known().map(|known| known.serial);
            if last.serial != serial && other == Some(last.serial) && last.role != role {
                self.ask_before_leaving(role.other(), out);
                return false;
            }
            return true;
        }
        let Some(number) = self.numbers.found_rows.number() else {
            return true;
        };
        // An UPDATE that finds nothing leaves it or sets it to 0.
        let tells = !may_leave && (number == 0 || was.is_some_and(|was| was != 0));
        if was == Some(number) || tells || number > BROUGHT_MAX {
            return true;
        }
        if self.has_unasked(role) {
            self.ask_before_leaving(role, out);
            return false;
        }
        self.attempt.brought_found = true;
        let start = out.arena.len();
        write_query(&mut out.arena, capabilities, query_of(number).as_bytes());
        out.push(Output::SendToBackend {
            role,
            range: start..out.arena.len(),
            access: Access::Read,
        });
        if let Some(known) = self.link_mut(role).known_mut() {
            known.found_rows = Some(number);
            // What it knew of statements before is gone with this one.
            known.set_asked();
        }
        self.start_sync(role, [Said::Found].into());
        false
    }
}

/// A query that finds so many rows, up to [`BROUGHT_MAX`].
fn query_of(number: u64) -> String {
    const TEN: &str = "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL \
                       SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1";
    match number {
        0..=10 => format!("SELECT 1 FROM ({TEN}) AS a LIMIT {number}"),
        _ => format!(
            "SELECT 1 FROM ({TEN}) AS a CROSS JOIN ({TEN}) AS b CROSS JOIN ({TEN}) AS c LIMIT {number}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_are_resolved_by_what_differs() {
        let doubt = |was, kept, only| Doubt { was, kept, only };
        for (doubt, now, wanted) in [
            // It has changed.
            (doubt(Some(3), Some(7), None), 5, Some(5)),
            // It may have been set to what it was.
            (doubt(Some(3), Some(7), None), 3, None),
            (doubt(Some(3), Some(3), None), 3, Some(3)),
            (doubt(None, Some(7), None), 5, None),
            (doubt(None, Some(7), None), 7, Some(7)),
            // Only to 0.
            (doubt(Some(3), Some(7), Some(0)), 0, Some(0)),
            (doubt(Some(3), Some(7), Some(0)), 3, Some(7)),
            (doubt(None, Some(7), Some(0)), 3, Some(7)),
            (doubt(None, Some(7), Some(0)), 0, None),
            (doubt(Some(3), None, Some(0)), 3, None),
        ] {
            assert_eq!(doubt.resolve(now), wanted, "{doubt:?} {now}");
        }
    }
}
