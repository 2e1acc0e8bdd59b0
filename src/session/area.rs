//! The conditions that the session's last statement left, when its connection was given back: they are asked for before, and questions
//! about them (GET DIAGNOSTICS, the forms of SHOW WARNINGS) are answered from here.

use std::collections::VecDeque;

use super::bring::write_query;
use super::hold::last_row;
use super::sync::Said;
use super::{Cx, Fault, Outputs, Role, Session};
use crate::route::Route;
use crate::sql::{
    self, AreaQuestion, CONDITION_ITEMS, ConditionItem, ConditionNumber, Kind, Server, Statement,
    StatementItem, Traits,
};
use crate::wire::{Capabilities, Packets, Reader, write_payload};

/// Of so many conditions everything is asked for; of the others only what SHOW WARNINGS shows.
const CONDITIONS: usize = 16;
/// A statement that fails leaves more than its error now and then, which its reply does not tell of.
const OF_A_FAILURE: usize = 3;
/// The last of the items, which MariaDB has since this version.
const ROW_NUMBER_SINCE: u32 = 100_700;
/// The item that is a number beside that one.
const ERRNO: usize = 12;

/// See the module's words.
#[derive(Debug)]
pub(super) struct Area {
    /// The reply to SHOW WARNINGS.
    shown: Vec<u8>,
    /// Packets before the rows of that.
    head: usize,
    /// What GET DIAGNOSTICS gives of each, as SQL; nothing for what the server does not know.
    conditions: Vec<Vec<Option<Vec<u8>>>>,
    /// More than are shown, where the server does not keep them all.
    warnings: u16,
}

/// What becomes of a question.
#[derive(Debug)]
pub(super) enum AreaStep {
    /// It goes as it is, to the connection at hand.
    Forward,
    /// This goes in its place.
    Text(Vec<u8>),
    /// It was answered.
    Done,
    /// This is the answer to a text.
    Shown(Vec<u8>),
    /// What it needs has been asked for.
    Waits,
    /// Nobody knows.
    Refuse(Fault),
}

impl Area {
    pub(super) fn new(shown: Vec<u8>, warnings: u16, capabilities: Capabilities) -> Self {
        let has_eof = !capabilities.contains(Capabilities::DEPRECATE_EOF);
        // The count, three definitions.
        let head = 4 + usize::from(has_eof);
        Self {
            shown,
            head,
            conditions: Vec::new(),
            warnings,
        }
    }

    /// One more is shown.
    fn add(&mut self, level: &str, code: &str, message: &str) {
        let mut row = Vec::new();
        for value in [level, code, message] {
            row.push(u8::try_from(value.len()).unwrap_or(0));
            row.extend_from_slice(value.as_bytes());
        }
        let shown = std::mem::take(&mut self.shown);
        let mut packets: Vec<&[u8]> = Packets::new(&shown).map(|(_, packet)| packet).collect();
        packets.insert(packets.len().saturating_sub(1), &row);
        let mut seq = 1;
        for packet in packets {
            seq = write_payload(&mut self.shown, seq, packet);
        }
        self.warnings = self.warnings.saturating_add(1);
    }

    fn rows(&self) -> Vec<&[u8]> {
        let mut packets: Vec<&[u8]> = Packets::new(&self.shown)
            .map(|(_, packet)| packet)
            .collect();
        packets.pop();
        packets.get(self.head..).unwrap_or_default().to_vec()
    }

    /// How many there are, of errors or of all.
    pub(super) fn count(&self, errors: bool) -> u16 {
        let rows = self.rows();
        let count = rows.iter().filter(|row| !errors || is_error(row)).count();
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        if errors {
            count
        } else {
            count.max(self.warnings)
        }
    }

    /// The reply to SHOW WARNINGS or SHOW ERRORS.
    fn show(&self, errors: bool, from: u64, limit: u64) -> Vec<u8> {
        let packets: Vec<&[u8]> = Packets::new(&self.shown)
            .map(|(_, packet)| packet)
            .collect();
        let (head, rest) = packets.split_at(self.head.min(packets.len()));
        let (rows, end) = rest.split_at(rest.len().saturating_sub(1));
        let (from, limit) = (
            usize::try_from(from).unwrap_or(usize::MAX),
            usize::try_from(limit).unwrap_or(usize::MAX),
        );
        let rows = rows
            .iter()
            .filter(|row| !errors || is_error(row))
            .skip(from)
            .take(limit);
        let mut out = Vec::with_capacity(self.shown.len());
        let mut seq = 1_u8;
        for packet in head.iter().chain(rows).chain(end) {
            seq = write_payload(&mut out, seq, packet);
        }
        out
    }
}

/// A row of SHOW WARNINGS whose level says so.
fn is_error(row: &[u8]) -> bool {
    Reader::new("row", row).lenenc_bytes("level") == Ok(b"Error")
}

/// The variable into which a condition's item is got.
fn variable(condition: usize, item: usize) -> String {
    format!("@`atlas {condition} {item}`")
}

/// How many items a condition has on this server.
fn items(server: Server, version: u32) -> usize {
    let has_row = server == Server::MariaDb && version >= ROW_NUMBER_SINCE;
    CONDITION_ITEMS.len() - usize::from(!has_row)
}

impl Session {
    /// Asks for everything that is known of the conditions on the connection; behind SHOW WARNINGS.
    pub(super) fn say_conditions(
        &self,
        role: Role,
        said: &mut VecDeque<Said>,
        out: &mut Outputs,
    ) -> usize {
        let Some(known) = self.link(role).known() else {
            return 0;
        };
        let count = self.warned.map_or(0, |last| match last.failed {
            true => OF_A_FAILURE,
            false => usize::from(last.warnings).min(CONDITIONS),
        });
        for condition in 0..count {
            let mut text = format!("GET DIAGNOSTICS CONDITION {} ", condition + 1);
            let names = CONDITION_ITEMS.iter().enumerate();
            for (item, name) in names.take(items(known.server, known.version)) {
                let join = if item > 0 { ", " } else { "" };
                text.push_str(&format!("{join}{} = {name}", variable(condition, item)));
            }
            write_query(&mut out.arena, known.capabilities, text.as_bytes());
            said.push_back(Said::Condition);
        }
        count
    }

    /// Asks what that gave, and forgets the variables.
    pub(super) fn say_got(
        &self,
        role: Role,
        count: usize,
        said: &mut VecDeque<Said>,
        out: &mut Outputs,
    ) {
        let Some(known) = self.link(role).known().filter(|_| count > 0) else {
            return;
        };
        let (mut select, mut set) = ("SELECT ".to_owned(), "SET ".to_owned());
        let items = items(known.server, known.version);
        for n in 0..count * items {
            let (condition, item) = (n / items, n % items);
            let name = variable(condition, item);
            let join = if n > 0 { ", " } else { "" };
            set.push_str(&format!("{join}{name} = NULL"));
            select.push_str(&if item >= ERRNO {
                format!("{join}COALESCE({name}, '-')")
            } else {
                format!("{join}COALESCE(HEX({name}), '-')")
            });
        }
        write_query(&mut out.arena, known.capabilities, select.as_bytes());
        said.push_back(Said::Conditions);
        write_query(&mut out.arena, known.capabilities, set.as_bytes());
        said.push_back(Said::Condition);
    }

    /// The answer to that.
    pub(super) fn note_conditions(&mut self, role: Role, answer: &[u8]) {
        let Some(known) = self.links[role as usize].known() else {
            return;
        };
        let items = items(known.server, known.version);
        let introducer = match known.server {
            Server::MariaDb => "_utf8mb3",
            // That it is what the server has is nothing that it would not warn of.
            Server::MySql => "_utf8mb4",
        };
        let (Some(area), Some(row)) = (&mut self.kept, last_row(answer)) else {
            return;
        };
        let count = area.rows().len();
        let value = |(item, value): (usize, &&[u8])| -> Option<Vec<u8>> {
            let is_number = item >= ERRNO;
            match *value {
                b"-" => None,
                digits if is_number && digits.iter().all(u8::is_ascii_digit) => {
                    Some(digits.to_vec())
                }
                hex if !is_number && hex.iter().all(u8::is_ascii_hexdigit) => {
                    Some([introducer.as_bytes(), b" X'", hex, b"'"].concat())
                }
                _ => None,
            }
        };
        area.conditions = row
            .chunks(items)
            .take(count)
            .map(|row| row.iter().enumerate().map(value).collect())
            .collect();
    }

    /// What becomes of a question about the conditions of the statement before, whose connection is of the role `asked`. `asks` says
    /// that this connection is not at hand, `others` that what it would show is not for this session, which has none.
    pub(super) fn ask_area(
        &mut self,
        cx: &mut Cx<'_>,
        (route, asked): (Route, Role),
        (sql, statement): (&[u8], &Statement<'_>),
        (asks, others): (bool, bool),
        out: &mut Outputs,
    ) -> AreaStep {
        let traits = statement.traits;
        if traits.contains(Traits::MULTI) {
            return AreaStep::Forward;
        }
        let is_shown = statement.kind == Kind::Show;
        if !is_shown && !traits.contains(Traits::AREA) {
            return AreaStep::Forward;
        }
        let question = sql::area_question(sql, &self.dialect());
        let holds = self.warned.is_some_and(|last| last.holds);
        if !asks && holds && asked != route.role && question != Some(AreaQuestion::Wrong) {
            // Variables are set on the primary, and within a transaction it alone is asked.
            self.ask_before_leaving(asked, out);
            return AreaStep::Waits;
        }
        let is_here = !asks && !others && asked == route.role;
        if is_shown {
            return match &self.kept {
                _ if is_here => AreaStep::Forward,
                None if others => nothing(sql, question.as_ref()),
                None => self.clean(cx, route.role, out),
                Some(area) => {
                    let step = shown(area, question.as_ref());
                    if matches!(step, AreaStep::Shown(_)) {
                        self.note_changed_nothing();
                    }
                    step
                }
            };
        }
        let Some(question) = question else {
            // Nobody but the server knows what it asks for.
            return match holds || self.kept.is_some() {
                _ if is_here => AreaStep::Forward,
                false => self.clean(cx, route.role, out),
                true => AreaStep::Refuse(Fault::LostPrevious),
            };
        };
        if question == AreaQuestion::Wrong {
            return AreaStep::Forward;
        }
        let serial_of = |last: Option<super::Last>| last.map(|last| last.serial);
        let is_one = serial_of(self.last) == serial_of(self.warned);
        let counts = matches!(&question, AreaQuestion::Statement(items) if items.iter().any(|(_, item)| *item == StatementItem::RowCount));
        if is_here && (is_one || !counts) {
            return AreaStep::Forward;
        }
        if is_here && holds && self.numbers.row_count.is_some() {
            // The conditions are here, the number of rows is another statement's.
            self.ask_before_leaving(route.role, out);
            return AreaStep::Waits;
        }
        if holds {
            return AreaStep::Refuse(Fault::LostPrevious);
        }
        self.got(cx, route.role, &question, out)
    }

    /// What sets the variables that GET DIAGNOSTICS names to what it gives.
    fn got(
        &mut self,
        cx: &mut Cx<'_>,
        role: Role,
        question: &AreaQuestion<'_>,
        out: &mut Outputs,
    ) -> AreaStep {
        let mut text = b"SET ".to_vec();
        let mut set = |target: &[u8], value: &[u8]| {
            if text.len() > 4 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(target);
            text.extend_from_slice(b" = ");
            text.extend_from_slice(value);
        };
        let count = self.kept.as_ref().map_or(0, |area| area.rows().len());
        match question {
            AreaQuestion::Statement(items) => {
                for (target, item) in items {
                    let value = match item {
                        StatementItem::Number => Some(format!("CAST({count} AS UNSIGNED)")),
                        StatementItem::RowCount => self.numbers.row_count.map(|n| n.to_string()),
                    };
                    let Some(value) = value else {
                        return AreaStep::Refuse(Fault::LostPrevious);
                    };
                    set(target, value.as_bytes());
                }
            }
            AreaQuestion::Condition(number, items) => {
                let number = match number {
                    ConditionNumber::Literal(number) => Some(*number),
                    ConditionNumber::Variable(name) => self.state.number_of_variable(name),
                };
                let Some(number) = number.and_then(|number| usize::try_from(number).ok()) else {
                    return AreaStep::Refuse(Fault::LostPrevious);
                };
                if number == 0 || number > count {
                    return self.invalid_condition(cx, role, out);
                }
                let conditions = self.kept.as_ref().map(|area| &area.conditions);
                let condition = conditions.and_then(|list| list.get(number - 1));
                for (target, ConditionItem(item)) in items {
                    let value = condition.and_then(|values| values.get(*item));
                    let Some(Some(value)) = value else {
                        return AreaStep::Refuse(Fault::LostPrevious);
                    };
                    set(target, value);
                }
            }
            AreaQuestion::Show { .. } | AreaQuestion::Count { .. } | AreaQuestion::Wrong => {
                return AreaStep::Forward;
            }
        }
        if self.numbers.row_count.is_some() {
            // The connection counts the rows of this text from here on; the client has not seen it.
            self.last = None;
        }
        AreaStep::Text(text)
    }

    /// A condition that there is not: servers say so by one condition more.
    fn invalid_condition(&mut self, cx: &mut Cx<'_>, role: Role, out: &mut Outputs) -> AreaStep {
        let Some(area) = &mut self.kept else {
            return self.clean(cx, role, out);
        };
        area.add("Error", "1758", "Invalid condition number");
        self.note_changed_nothing();
        self.local_ok_with(1, 1, out);
        AreaStep::Done
    }

    /// What Atlas has answered itself counts as a statement that changed no rows.
    fn note_changed_nothing(&mut self) {
        self.last = None;
        self.numbers.row_count = Some(-1);
    }

    /// The question goes as it is, to a connection that has no conditions.
    fn clean(&mut self, cx: &mut Cx<'_>, role: Role, out: &mut Outputs) -> AreaStep {
        if self.ensure_no_warnings(cx, role, out) {
            AreaStep::Forward
        } else {
            AreaStep::Waits
        }
    }
}

/// SHOW WARNINGS and its kin.
fn shown(area: &Area, question: Option<&AreaQuestion<'_>>) -> AreaStep {
    match question {
        Some(AreaQuestion::Show {
            errors,
            from,
            limit,
        }) => AreaStep::Shown(area.show(*errors, *from, *limit)),
        Some(AreaQuestion::Count { errors }) => {
            let name = if *errors { "error" } else { "warning" };
            counted(area.count(*errors), name)
        }
        _ => AreaStep::Refuse(Fault::LostPrevious),
    }
}

fn counted(count: u16, name: &str) -> AreaStep {
    let column = format!("@@session.{name}_count");
    AreaStep::Text(
        format!("SELECT IF(1,CAST({count} AS UNSIGNED),{column}) AS `{column}`").into_bytes(),
    )
}

/// What shows nothing of what the connection has.
fn nothing(sql: &[u8], question: Option<&AreaQuestion<'_>>) -> AreaStep {
    const NONE: &[u8] = b" LIMIT 0";
    let text: &[u8] = match question {
        // With the client's comments where they are before it.
        Some(AreaQuestion::Show { limit, .. })
            if *limit == u64::MAX && sql.last().is_some_and(u8::is_ascii_alphabetic) =>
        {
            return AreaStep::Text([sql, NONE].concat());
        }
        Some(AreaQuestion::Show { errors: true, .. }) => b"SHOW ERRORS LIMIT 0",
        Some(AreaQuestion::Show { errors: false, .. }) => b"SHOW WARNINGS LIMIT 0",
        Some(AreaQuestion::Count { errors: true }) => return counted(0, "error"),
        Some(AreaQuestion::Count { errors: false }) => return counted(0, "warning"),
        // A server has the same to say about it on every connection.
        _ => return AreaStep::Forward,
    };
    AreaStep::Text(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Area {
        let mut shown = Vec::new();
        let row = |level: &[u8], code: &[u8]| {
            let mut row = Vec::new();
            for value in [level, code, b"text"] {
                row.push(u8::try_from(value.len()).unwrap());
                row.extend_from_slice(value);
            }
            row
        };
        let rows = [
            row(b"Warning", b"1265"),
            row(b"Error", b"1062"),
            row(b"Error", b"1064"),
        ];
        let mut seq = 1;
        for packet in [&b"\x03"[..], b"def", b"def", b"def"] {
            seq = write_payload(&mut shown, seq, packet);
        }
        for row in &rows {
            seq = write_payload(&mut shown, seq, row);
        }
        write_payload(&mut shown, seq, b"\xfe\0\0\x02\0\0\0");
        Area::new(shown, 3, Capabilities::DEPRECATE_EOF)
    }

    fn codes(reply: &[u8]) -> Vec<String> {
        let packets: Vec<_> = Packets::new(reply).collect();
        let seqs: Vec<u8> = packets.iter().map(|(header, _)| header.seq).collect();
        let wanted: Vec<u8> = (1..).take(packets.len()).collect();
        assert_eq!(seqs, wanted);
        packets[4..packets.len() - 1]
            .iter()
            .map(|(_, row)| {
                let mut reader = Reader::new("row", row);
                reader.lenenc_bytes("level").unwrap();
                String::from_utf8(reader.lenenc_bytes("code").unwrap().to_vec()).unwrap()
            })
            .collect()
    }

    #[test]
    fn what_was_kept_is_shown_in_all_forms() {
        let area = area();
        assert_eq!((area.count(false), area.count(true)), (3, 2));
        assert_eq!(area.show(false, 0, u64::MAX), area.shown);
        assert_eq!(codes(&area.show(true, 0, u64::MAX)), ["1062", "1064"]);
        assert_eq!(codes(&area.show(true, 1, 5)), ["1064"]);
        assert_eq!(codes(&area.show(false, 1, 1)), ["1062"]);
        assert!(codes(&area.show(false, 7, 1)).is_empty());
        let mut area = area;
        area.add("Error", "1758", "Invalid condition number");
        assert_eq!((area.count(false), area.count(true)), (4, 3));
        assert_eq!(codes(&area.show(false, 3, 1)), ["1758"]);
    }
}
