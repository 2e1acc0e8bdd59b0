//! Judges replies: each client's shadow does what a direct connection would have done, and the reply must say the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use atlas::wire::Capabilities;

use crate::command::{Kind, Sent};
use crate::engine::run;
use crate::memory::{Memory, OF_A_COMMAND, Prepared, charset_of};
use crate::outcome::{Databases, Outside};
use crate::reply::{Part, Want, values};

/// What a client knows and what is known of it.
#[derive(Debug)]
pub struct Oracle {
    pub shadow: Memory,
    pub caps: Capabilities,
    pub databases: Databases,
    /// The client's ids of prepared statements and the shadow's.
    pub ids: BTreeMap<u32, u32>,
    /// Rows that the client was told are there.
    pub believed: Vec<u32>,
    /// Rows of which the client cannot know.
    pub unknown: Vec<u32>,
    /// Executions whose replies were seen, in the whole world.
    pub executions: BTreeSet<u64>,
    /// Executions asked for, by tag.
    pub asked: BTreeMap<u32, usize>,
    pub last_role: Option<bool>,
    /// A fault has left the session's state unknown: only more faults or the end may follow.
    pub is_doomed: bool,
}

/// What a reply may be beside the right one.
#[derive(Clone, Copy)]
pub struct Lenience<'a> {
    /// Faults have happened in the world.
    pub faults: bool,
    /// Whether a server connection is one to a replica.
    pub is_replica: &'a dyn Fn(usize) -> bool,
    /// It was both in turn, so that it is not known which it was for a statement.
    pub was_both: &'a dyn Fn(usize) -> bool,
}

pub struct ShadowOutside<'a> {
    pub databases: &'a mut Databases,
    pub believed: &'a mut Vec<u32>,
    pub insert_ids: VecDeque<u64>,
}

impl Outside for ShadowOutside<'_> {
    fn databases(&mut self) -> &mut Databases {
        self.databases
    }

    fn committed(&mut self, tags: &[u32]) {
        self.believed.extend(tags);
    }

    fn next_insert_id(&mut self) -> u64 {
        self.insert_ids.pop_front().unwrap_or(0)
    }
}

/// Codes of errors that tell of a fault and not of the statement.
const FAULTS: [u16; 9] = [1040, 1045, 1053, 1105, 1130, 1317, 1421, 1927, 4031];

impl Oracle {
    pub fn new(shadow: Memory, caps: Capabilities, databases: Databases) -> Self {
        Self {
            shadow,
            caps,
            databases,
            ids: BTreeMap::new(),
            believed: Vec::new(),
            unknown: Vec::new(),
            executions: BTreeSet::new(),
            asked: BTreeMap::new(),
            last_role: None,
            is_doomed: false,
        }
    }

    /// Prepared statements as a script needs them.
    pub fn statements(&self) -> Vec<(u32, u16, Option<Vec<bool>>)> {
        self.ids
            .iter()
            .filter_map(|(id, shadow)| {
                let statement = self.shadow.prepared.get(shadow)?;
                let types = statement
                    .types
                    .as_ref()
                    .map(|types| types.chunks(2).map(|kind| kind[0] == 8).collect());
                Some((*id, statement.params, types))
            })
            .collect()
    }

    /// Notes what a command may do, before it is sent.
    pub fn note_sent(&mut self, sent: &mut Sent) {
        if let Kind::Execute(id, _) = &sent.kind
            && let Some(statement) = self.statement(*id)
        {
            let text = String::from_utf8_lossy(&statement.text).into_owned();
            let tag = text
                .trim_start_matches("/* tag:")
                .split(' ')
                .next()
                .and_then(|tag| tag.parse().ok());
            sent.tags = tag.into_iter().collect();
        }
        if !matches!(sent.kind, Kind::Prepare(_)) {
            for tag in &sent.tags {
                *self.asked.entry(*tag).or_default() += 1;
            }
        }
    }

    pub fn statement(&mut self, id: u32) -> Option<&mut Prepared> {
        let shadow = self.ids.get(&id)?;
        self.shadow.prepared.get_mut(shadow)
    }

    /// The connection has ended: what was under way may have happened or not.
    pub fn ended(&mut self, pending: &VecDeque<Sent>) {
        let open = self.shadow.transaction.take();
        let is_pending = pending.iter().any(|sent| sent.want != Want::Nothing);
        if let Some(transaction) = open
            && is_pending
        {
            self.unknown.extend(transaction.rows);
        }
        for sent in pending {
            self.unknown.extend(&sent.tags);
        }
    }

    /// Judges a whole reply.
    pub fn judge(
        &mut self,
        sent: &Sent,
        parts: &[Part],
        lenience: Lenience<'_>,
    ) -> Result<(), String> {
        let before = (
            self.shadow.clone(),
            self.databases.clone(),
            self.ids.clone(),
            self.believed.len(),
        );
        let verdict = self.exact(sent, parts, lenience);
        let code = match parts.last() {
            Some(
                Part::Error(code, _)
                | Part::Rows {
                    error: Some((code, _)),
                    ..
                },
            ) => Some(*code),
            _ => None,
        };
        // Atlas refuses what it cannot answer rightly.
        let is_refused = matches!(parts, [Part::Error(1105, message)] if is_elsewhere(message));
        if verdict.is_err()
            && (is_refused || lenience.faults)
            && code.is_some_and(|code| FAULTS.contains(&code))
        {
            (self.shadow, self.databases, self.ids) = (before.0, before.1, before.2);
            self.believed.truncate(before.3);
            self.fault(sent, parts);
            return Ok(());
        }
        if verdict.is_ok()
            && self.is_doomed
            && matches!(sent.kind, Kind::Text(_) | Kind::Execute(..))
        {
            return Err("a good reply although what the session had is lost".to_owned());
        }
        verdict
    }

    /// An error that a fault explains: the command had no effect, or may have had.
    fn fault(&mut self, sent: &Sent, parts: &[Part]) {
        if let [Part::Error(1105, message)] = parts
            && is_elsewhere(message)
        {
            // A question that cannot be answered any more; nothing else is lost.
            self.last_role = None;
            return;
        }
        self.unknown.extend(&sent.tags);
        self.last_role = None;
        match &sent.kind {
            // A connection that cannot reset is given up, and the session begins anew all the same.
            Kind::Reset => {
                self.shadow.reset();
                self.ids.clear();
            }
            Kind::ChangeUser { .. } => self.is_doomed = true,
            // Long data that could not be sent is told of by now, and gone.
            Kind::Execute(id, _) => {
                if let Some(statement) = self.statement(*id) {
                    statement.long_data.clear();
                }
            }
            Kind::Fetch(id, _) => {
                if let Some(statement) = self.statement(*id) {
                    statement.cursor = None;
                }
            }
            _ => {}
        }
        if let Some(transaction) = self.shadow.transaction.take() {
            self.unknown.extend(transaction.rows);
            self.is_doomed = true;
        }
        // Of a batch the statements before the error have run.
        let is_batch = matches!(sent.kind, Kind::Text(_) | Kind::Execute(..));
        self.is_doomed |= is_batch && parts.len() > 1;
    }

    fn exact(&mut self, sent: &Sent, parts: &[Part], lenience: Lenience<'_>) -> Result<(), String> {
        match &sent.kind {
            Kind::Text(text) => {
                self.last_role = None;
                let mut outside = ShadowOutside {
                    databases: &mut self.databases,
                    believed: &mut self.believed,
                    insert_ids: insert_ids(parts),
                };
                let done = run(&mut self.shadow, &mut outside, text, &[]);
                self.results(&done, parts, false, lenience)
            }
            Kind::Execute(id, body) => self.execute(*id, body, parts, lenience),
            Kind::Prepare(text) => self.prepare(text, parts),
            Kind::Close(id) => {
                if let Some(shadow) = self.ids.remove(id) {
                    self.shadow.prepared.remove(&shadow);
                }
                Ok(())
            }
            Kind::LongData(id, parameter, data) => {
                if let Some(statement) = self.statement(*id) {
                    let place = statement.long_data.entry(*parameter).or_default();
                    place.extend_from_slice(data);
                }
                Ok(())
            }
            Kind::StmtReset(id) => match self.statement(*id) {
                Some(statement) => {
                    statement.long_data.clear();
                    statement.cursor = None;
                    self.plain_ok(parts)
                }
                None => self.command_error(1243, parts),
            },
            Kind::Fetch(id, rows) => self.fetch(*id, *rows, parts),
            Kind::InitDb(name) => {
                if !self.databases.names.contains(name) {
                    return self.command_error(1049, parts);
                }
                self.shadow.schema = Some(name.clone());
                self.plain_ok(parts)
            }
            Kind::SetOption(on) => {
                self.shadow.multi_statements = *on;
                self.eof(parts)
            }
            Kind::Reset => {
                self.shadow.reset();
                self.ids.clear();
                self.last_role = None;
                self.plain_ok(parts)
            }
            Kind::Ping => self.plain_ok(parts),
            Kind::Debug => self.eof(parts),
            Kind::Statistics => match parts {
                [Part::Text(text)] if text.starts_with(b"Uptime") => Ok(()),
                other => Err(format!("statistics: {other:?}")),
            },
            Kind::ProcessInfo => match parts {
                [Part::Rows { rows, names, .. }]
                    if rows.len() == 2 && *names == [b"processes".to_vec()] =>
                {
                    Ok(())
                }
                other => Err(format!("processes: {other:?}")),
            },
            Kind::FieldList(table) if table == "nosuch" => self.command_error(1146, parts),
            Kind::FieldList(table) => match parts {
                [Part::Rows { rows, .. }]
                    if rows.len() == 2
                        && rows[0].windows(table.len()).any(|w| w == table.as_bytes()) =>
                {
                    Ok(())
                }
                other => Err(format!("fields of {table}: {other:?}")),
            },
            Kind::Unknown | Kind::Empty => self.command_error(1047, parts),
            Kind::Kill(_) => match parts {
                [Part::Ok { .. }] => Ok(()),
                // Atlas's own answer, with a client's id in it, is no warning of a server's.
                [Part::Error(1094, message)] if message.contains(&b':') => Ok(()),
                [Part::Error(1094, _)] => self.command_error(1094, parts),
                other => Err(format!("KILL: {other:?}")),
            },
            Kind::ChangeUser {
                password_is_right,
                schema,
                charset,
            } => self.change_user(*password_is_right, schema.clone(), *charset, parts),
            Kind::LastRoute => self.last_route(parts),
            Kind::ExplainRoute => match parts {
                [Part::Rows { rows, names, .. }] if names.len() == 2 && rows.len() > 4 => Ok(()),
                other => Err(format!("EXPLAIN ROUTE: {other:?}")),
            },
        }
    }

    /// The error of a command that is no statement.
    pub fn command_error(&mut self, code: u16, parts: &[Part]) -> Result<(), String> {
        self.shadow.previous.warn(OF_A_COMMAND, true);
        expect_error(code, parts)
    }

    fn change_user(
        &mut self,
        password_is_right: bool,
        schema: Option<String>,
        charset: u16,
        parts: &[Part],
    ) -> Result<(), String> {
        if !password_is_right {
            self.is_doomed = true;
            return expect_error(1045, &parts[parts.len().saturating_sub(1)..]);
        }
        if let Some(name) = &schema
            && !self.databases.names.contains(name)
        {
            self.is_doomed = true;
            return expect_error(1049, &parts[parts.len().saturating_sub(1)..]);
        }
        let defaults = self.shadow.defaults;
        // The old user's open transaction is rolled back.
        let multi_statements = self.shadow.multi_statements;
        let previous = self.shadow.previous;
        self.shadow = Memory::new(defaults, charset_of(charset), schema);
        self.shadow.previous.keep_found(previous);
        self.shadow.multi_statements = multi_statements;
        self.ids.clear();
        self.last_role = None;
        match parts {
            [.., Part::Ok { status, .. }] => self.status(*status),
            other => Err(format!("change of user: {other:?}")),
        }
    }

    fn last_route(&self, parts: &[Part]) -> Result<(), String> {
        let [Part::Rows { rows, .. }] = parts else {
            return Err(format!("SHOW LAST ROUTE: {parts:?}"));
        };
        let Some(is_replica) = self.last_role else {
            return Ok(());
        };
        let found = rows
            .first()
            .map(|row| values(row, false, 2))
            .transpose()?
            .unwrap_or_default();
        let expected: &[u8] = if is_replica { b"replica" } else { b"primary" };
        match found.as_slice() {
            [step, detail] if step == b"route" && detail == expected => Ok(()),
            other => Err(format!("SHOW LAST ROUTE says {other:02x?}")),
        }
    }
}

fn is_elsewhere(message: &[u8]) -> bool {
    contains(
        message,
        b"asks about the previous one, which a replica answered",
    ) || contains(message, b"the previous statement was lost")
        || contains(message, b"FOUND_ROWS() is not known")
}

fn contains(message: &[u8], words: &[u8]) -> bool {
    message.windows(words.len()).any(|w| w == words)
}

/// The keys that the servers gave, in order.
pub fn insert_ids(parts: &[Part]) -> VecDeque<u64> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Ok { insert_id, .. } if *insert_id != 0 => Some(*insert_id),
            _ => None,
        })
        .collect()
}

pub fn expect_error(code: u16, parts: &[Part]) -> Result<(), String> {
    match parts {
        [Part::Error(found, _)] if *found == code => Ok(()),
        other => Err(format!("instead of error {code}: {other:?}")),
    }
}
