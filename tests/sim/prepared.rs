//! The commands of prepared statements on a model server.

use std::collections::BTreeMap;

use atlas::wire::{Capabilities, Command, Reader, RowFormat, Status};

use crate::answer::{Answer, Echo, Rows};
use crate::engine::run;
use crate::lex::{Token, scan};
use crate::memory::{Flavour, Memory, Prepared};
use crate::outcome::{After, Databases, Outcome};
use crate::server::{Estate, ServerConn};
use crate::statement::{Statement, asks_of_previous, parse};

fn tag_of(memory: &Memory, text: &[u8]) -> u32 {
    scan(text, memory.reading())
        .statements
        .first()
        .map_or(0, |(tag, _)| *tag)
}

/// What a prepare finds: the statement and whether it gives rows, or the error.
pub fn prepare(
    memory: &mut Memory,
    databases: &Databases,
    text: &[u8],
) -> Result<(u32, u16, bool, u32), u16> {
    memory.prepared_count += 1;
    let scanned = scan(text, memory.reading());
    let [(tag, tokens)] = scanned.statements.as_slice() else {
        return Err(1064);
    };
    let statement = parse(tokens);
    let is_mysql = memory.defaults.flavour == Flavour::MySql;
    let found = can_prepare(memory, databases, &statement, scanned.is_open);
    if found.is_err() {
        memory.previous.counts(*tag, -1);
    }
    let uses_tables = match &statement {
        Statement::Select(select) => select.from.is_some(),
        Statement::Write | Statement::Audited | Statement::Load => true,
        _ => false,
    };
    if found.is_err() || (is_mysql || uses_tables) && !asks_of_previous(&statement) {
        memory.previous.warn(*tag, found.is_err());
    }
    found?;
    let params = tokens.iter().filter(|t| **t == Token::Symbol(b'?')).count();
    let params = u16::try_from(params).expect("few parameters");
    let id = memory.prepared_count;
    let gives_rows = matches!(&statement, Statement::Select(s) if s.into.is_none());
    memory.prepared.insert(
        id,
        Prepared {
            text: text.to_vec(),
            params,
            types: None,
            long_data: BTreeMap::new(),
            cursor: None,
            executed: false,
        },
    );
    Ok((id, params, gives_rows, *tag))
}

fn can_prepare(
    memory: &Memory,
    databases: &Databases,
    statement: &Statement,
    is_open: bool,
) -> Result<(), u16> {
    if is_open || *statement == Statement::Bogus {
        return Err(1064);
    }
    if *statement == Statement::ShowWarnings && memory.defaults.flavour == Flavour::MySql {
        return Err(1295);
    }
    if let Statement::Select(select) = statement
        && let Some((schema, table)) = &select.from
    {
        let schema = schema
            .clone()
            .or_else(|| memory.schema.clone())
            .ok_or(1046_u16)?;
        let name = (schema, table.clone());
        let exists = memory.temporary.contains(&name)
            || databases.tables.contains(&name)
            || ["t", "none", "three", "many", "late"].contains(&table.as_str());
        if !exists {
            return Err(1146);
        }
    }
    Ok(())
}

/// The values of an execution, as texts that show type and value. Errors as the servers': 1210 without types.
pub fn parameters(
    statement: &mut Prepared,
    caps: Capabilities,
    body: &[u8],
) -> Result<(u8, Vec<String>), u16> {
    let mut r = Reader::new("execute", body);
    let read = |_| 1835_u16;
    r.u32("id").map_err(read)?;
    let flags = r.u8("flags").map_err(read)?;
    assert_eq!(r.u32("iterations").map_err(read)?, 1, "iterations");
    let named = caps.contains(Capabilities::QUERY_ATTRIBUTES);
    let mut count = usize::from(statement.params);
    if named && (count > 0 || flags & 8 != 0) {
        count = usize::try_from(r.lenenc("count").map_err(read)?).expect("small");
    }
    if count == 0 {
        return Ok((flags, Vec::new()));
    }
    let nulls = r.bytes(count.div_ceil(8), "nulls").map_err(read)?;
    if r.u8("new types").map_err(read)? != 0 {
        let mut types = Vec::new();
        for _ in 0..count {
            types.extend_from_slice(r.bytes(2, "type").map_err(read)?);
            if named {
                r.lenenc_bytes("name").map_err(read)?;
            }
        }
        statement.types = Some(types);
    }
    let types = statement.types.clone().ok_or(1210_u16)?;
    let mut values = Vec::new();
    for index in 0..count {
        let number = u16::try_from(index).expect("few parameters");
        if let Some(data) = statement.long_data.get(&number) {
            values.push(format!("long {}", String::from_utf8_lossy(data)));
        } else if nulls[index / 8] & (1 << (index % 8)) != 0 {
            values.push("NULL".to_owned());
        } else if types[index * 2] == 8 {
            values.push(format!("number {}", r.u64("number").map_err(read)?));
        } else {
            let text = r.lenenc_bytes("text").map_err(read)?;
            values.push(format!("text {}", String::from_utf8_lossy(text)));
        }
    }
    assert_eq!(r.remaining(), 0, "bytes behind the values of an execution");
    Ok((flags, values))
}

impl ServerConn {
    pub fn prepared(
        &mut self,
        estate: &mut Estate,
        command: Command,
        body: &[u8],
        answer: &mut Answer,
    ) {
        let memory = self.memory.as_mut().expect("logged in");
        if command == Command::StmtPrepare {
            match prepare(memory, &estate.databases, body) {
                Ok((id, params, gives_rows, tag)) => {
                    let name = format!("prepared {tag}");
                    let column = gives_rows.then_some(name.as_bytes());
                    answer.prepared(id, params, column, memory.status());
                }
                Err(code) => {
                    let tag = tag_of(memory, body);
                    answer.error(code, &format!("prepare {tag}"));
                }
            }
            return;
        }
        let id: [u8; 4] = body[..4].try_into().expect("four bytes");
        let id = u32::from_le_bytes(id);
        if command == Command::StmtClose {
            memory
                .prepared
                .remove(&id)
                .expect("a statement that is there is closed");
            return;
        }
        if command == Command::StmtSendLongData {
            let number = u16::from_le_bytes([body[4], body[5]]);
            let statement = memory
                .prepared
                .get_mut(&id)
                .expect("long data for a statement that is there");
            statement
                .long_data
                .entry(number)
                .or_default()
                .extend_from_slice(&body[6..]);
            return;
        }
        let Some(mut statement) = memory.prepared.remove(&id) else {
            return answer.error(1243, "Unknown prepared statement handler");
        };
        match command {
            Command::StmtReset => {
                statement.long_data.clear();
                statement.cursor = None;
                answer.plain_ok(memory.status(), "");
            }
            Command::StmtFetch => {
                let wanted = u32::from_le_bytes(body[4..8].try_into().expect("a number"));
                fetch(memory, &mut statement, wanted, answer);
            }
            _ => {
                self.execute(estate, &mut statement, body, answer);
            }
        }
        let memory = self.memory.as_mut().expect("logged in");
        memory.prepared.insert(id, statement);
    }

    fn execute(
        &mut self,
        estate: &mut Estate,
        statement: &mut Prepared,
        body: &[u8],
        answer: &mut Answer,
    ) {
        let memory = self.memory.as_mut().expect("logged in");
        let caps = self.caps;
        let (flags, values) = match parameters(statement, caps, body) {
            Ok(found) => found,
            Err(code) => {
                statement.long_data.clear();
                return answer.error(code, "execute");
            }
        };
        let had_long_data = !statement.long_data.is_empty();
        statement.long_data.clear();
        statement.cursor = None;
        if !had_long_data && asks_for_preparation(memory, estate, &statement.text, body) {
            return answer.error(1615, "Prepared statement needs to be re-prepared");
        }
        let done = run(memory, estate, &statement.text, &values);
        if let Outcome::Rows {
            rows,
            error_after: None,
            ..
        } = &done[0].outcome
            && flags & 1 != 0
        {
            statement.cursor = Some(*rows);
            assert!(!self.is_replica, "a cursor was opened on a replica");
            return answer.rows(&Rows {
                format: RowFormat::Binary,
                name: b"echo",
                value: b"",
                count: 0,
                definitions: true,
                eof_without_definitions: true,
                error: None,
                cursor: true,
                status: memory.status(),
                state: b"",
            });
        }
        // The prepare gave the definitions.
        let known = std::mem::replace(&mut statement.executed, true) || estate.rng.one_in(2);
        self.answer(estate, answer, &done, RowFormat::Binary, b"echo", known);
    }
}

/// Definitions have changed under a statement once more, which no client is to learn; nothing has run. What Atlas cannot say
/// again is spared.
fn asks_for_preparation(
    memory: &mut Memory,
    estate: &mut Estate,
    text: &[u8],
    body: &[u8],
) -> bool {
    const LONG: usize = 64 * 1024;
    let scanned = scan(text, memory.reading());
    let Some((tag, tokens)) = scanned.statements.first() else {
        return false;
    };
    let opens_tables = match parse(tokens) {
        Statement::Write | Statement::Audited => true,
        Statement::Select(select) => select.from.is_some(),
        _ => false,
    };
    let is_spared =
        !opens_tables || asks_of_previous(&parse(tokens)) || text.len() > LONG || body.len() > LONG;
    let asks = !is_spared && estate.rng.one_in(8);
    if asks {
        memory.previous.counts(*tag, -1);
        memory.previous.warn(*tag, true);
    }
    asks
}

/// Takes rows from a cursor: how many there were, and the statement's tag; or the error.
pub fn take_rows(
    memory: &mut Memory,
    statement: &mut Prepared,
    wanted: u32,
) -> Result<(usize, u32), u16> {
    let tag = tag_of(memory, &statement.text);
    memory.previous.counts(tag, -1);
    memory.previous.warn(tag, statement.cursor.is_none());
    let left = statement.cursor.as_mut().ok_or(1421_u16)?;
    let count = (*left).min(usize::try_from(wanted).expect("a usize"));
    *left -= count;
    Ok((count, tag))
}

fn fetch(memory: &mut Memory, statement: &mut Prepared, wanted: u32, answer: &mut Answer) {
    let (count, tag) = match take_rows(memory, statement, wanted) {
        Ok(taken) => taken,
        Err(code) => return answer.error(code, "The statement has no open cursor"),
    };
    let echo = Echo::of(&After::of(memory), tag, u64::MAX, 0, "fetched").text();
    let last = if count == 0 {
        Status::LAST_ROW_SENT
    } else {
        Status::CURSOR_EXISTS
    };
    answer.fetched(echo.as_bytes(), count, memory.status() | last);
}
