//! Scripts: what a client sends, step by step, whoever is at the other end; and the bytes of each step.
//!
//! `{s}` in a text stands for the schema of the run, `{id}` for the connection's id (four bytes in a command). Statements are numbered by their preparations, from 1; the ids that the servers gave
//! are put in when the script runs. Other numbers stand for themselves.

use ::atlas::wire::Capabilities;

use crate::common::{Expect, Login, Mask, Param};

/// A script, made by its methods, each of which adds a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    prepared: u32,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    /// Where the servers' logs must show it when it went through Atlas.
    pub(crate) at: At,
    pub(crate) masks: Vec<Mask>,
}

/// Where a statement is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Anywhere,
    Primary,
    /// Any of the replicas.
    Replica,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// COM_QUERY, with attributes where the connection has them.
    Query {
        sql: String,
        attributes: Vec<(String, Param)>,
    },
    /// COM_STMT_PREPARE.
    Prepare(String),
    /// COM_STMT_EXECUTE.
    Execute(Execute),
    /// Any other payload.
    Command(Vec<u8>),
    /// A payload in a frame with another sequence id than 0.
    OutOfTurn { seq: u8, payload: Vec<u8> },
    /// A payload that the command's own rules forbid: there may be a reply or none, so everything counts that comes before the reply to
    /// a COM_PING sent behind it.
    Malformed(Vec<u8>),
    /// A query that asks for a file, and the packets of the file without the empty one at its end.
    File { sql: String, chunks: Vec<Vec<u8>> },
    /// COM_CHANGE_USER with its conversation. The schema is that of the run if the flag says so.
    ChangeUser { login: Login, schema: bool },
    /// Not sent: waits until the replicas have what the primary has.
    Sync,
}

/// COM_STMT_EXECUTE.
#[derive(Clone, Debug)]
pub(crate) struct Execute {
    pub(crate) id: u32,
    pub(crate) flags: u8,
    pub(crate) params: Vec<Param>,
    /// Whether the parameters' types go along.
    pub(crate) types: bool,
    /// Query attributes: parameters with names, behind the statement's own.
    pub(crate) attributes: Vec<(String, Param)>,
    /// The packets of a file, if the server asks for one.
    pub(crate) file: Vec<Vec<u8>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A script of [`Self::lines`] only.
    pub(crate) fn of(text: &str) -> Self {
        let mut script = Self::new();
        script.lines(text);
        script
    }

    fn step(&mut self, act: Act) -> &mut Self {
        self.steps.push(Step {
            act,
            at: At::Anywhere,
            masks: Vec::new(),
        });
        self
    }

    fn last(&mut self) -> &mut Step {
        self.steps.last_mut().expect("a step to speak of")
    }

    /// The step before is to be seen at that place.
    pub(crate) fn at(&mut self, at: At) -> &mut Self {
        self.last().at = at;
        self
    }

    /// No step says any longer where it is to be seen.
    pub(crate) fn anywhere(&mut self) {
        for step in &mut self.steps {
            step.at = At::Anywhere;
        }
    }

    /// The step before may differ in this.
    pub(crate) fn mask(&mut self, mask: Mask) -> &mut Self {
        self.last().masks.push(mask);
        self
    }

    pub(crate) fn query(&mut self, sql: &str) -> &mut Self {
        self.step(Act::Query {
            sql: sql.to_owned(),
            attributes: Vec::new(),
        })
    }

    /// Queries, one a line. A line that starts with `<` must be answered by a replica, one with `>` must reach the primary and nothing else,
    /// `~` alone waits for the replicas.
    pub(crate) fn lines(&mut self, text: &str) -> &mut Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_at(1) {
                ("<", sql) => self.read(sql.trim_start()),
                (">", sql) => self.write(sql.trim_start()),
                ("~", _) => self.sync(),
                _ => self.query(line),
            };
        }
        self
    }

    /// A query that a replica must answer.
    pub(crate) fn read(&mut self, sql: &str) -> &mut Self {
        self.query(sql).at(At::Replica)
    }

    /// A query that must reach the primary and nothing else.
    pub(crate) fn write(&mut self, sql: &str) -> &mut Self {
        self.query(sql).at(At::Primary)
    }

    pub(crate) fn query_with(&mut self, sql: &str, attributes: &[(&str, Param)]) -> &mut Self {
        self.step(Act::Query {
            sql: sql.to_owned(),
            attributes: owned(attributes),
        })
    }

    pub(crate) fn command(&mut self, payload: &[u8]) -> &mut Self {
        self.step(Act::Command(payload.to_vec()))
    }

    /// A command with a name or text behind its first byte.
    pub(crate) fn named(&mut self, command: u8, text: &str) -> &mut Self {
        let mut payload = vec![command];
        payload.extend_from_slice(text.as_bytes());
        self.command(&payload)
    }

    pub(crate) fn out_of_turn(&mut self, seq: u8, payload: &[u8]) -> &mut Self {
        self.step(Act::OutOfTurn {
            seq,
            payload: payload.to_vec(),
        })
    }

    pub(crate) fn malformed(&mut self, payload: &[u8]) -> &mut Self {
        self.step(Act::Malformed(payload.to_vec()))
    }

    pub(crate) fn ping(&mut self) -> &mut Self {
        self.command(&[0x0e])
    }

    pub(crate) fn file(&mut self, sql: &str, chunks: &[&[u8]]) -> &mut Self {
        self.step(Act::File {
            sql: sql.to_owned(),
            chunks: chunks.iter().map(|chunk| chunk.to_vec()).collect(),
        })
    }

    pub(crate) fn change_user(&mut self, login: &Login, schema: bool) -> &mut Self {
        self.step(Act::ChangeUser {
            login: login.clone(),
            schema,
        })
    }

    pub(crate) fn sync(&mut self) -> &mut Self {
        self.step(Act::Sync)
    }

    /// Gives the statement's number. A preparation that fails is counted too.
    pub(crate) fn prepare(&mut self, sql: &str) -> u32 {
        self.step(Act::Prepare(sql.to_owned()));
        self.prepared += 1;
        self.prepared
    }

    pub(crate) fn execute(&mut self, id: u32, params: &[Param]) -> &mut Self {
        self.execute_as(Execute {
            id,
            flags: 0,
            params: params.to_vec(),
            types: true,
            attributes: Vec::new(),
            file: Vec::new(),
        })
    }

    /// With the types of the execution before.
    pub(crate) fn execute_again(&mut self, id: u32, params: &[Param]) -> &mut Self {
        self.execute_as(Execute {
            id,
            flags: 0,
            params: params.to_vec(),
            types: false,
            attributes: Vec::new(),
            file: Vec::new(),
        })
    }

    pub(crate) fn execute_as(&mut self, execute: Execute) -> &mut Self {
        self.step(Act::Execute(execute))
    }

    /// A command that starts with a statement's number: fetch, reset, close, long data, bulk execution.
    pub(crate) fn statement(&mut self, command: u8, id: u32, rest: &[u8]) -> &mut Self {
        let mut payload = vec![command];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(rest);
        self.command(&payload)
    }

    pub(crate) fn fetch(&mut self, id: u32, rows: u32) -> &mut Self {
        self.statement(0x1c, id, &rows.to_le_bytes())
    }

    pub(crate) fn reset(&mut self, id: u32) -> &mut Self {
        self.statement(0x1a, id, &[])
    }

    pub(crate) fn close(&mut self, id: u32) -> &mut Self {
        self.statement(0x19, id, &[])
    }

    pub(crate) fn long_data(&mut self, id: u32, param: u16, data: &[u8]) -> &mut Self {
        let rest = [&param.to_le_bytes(), data].concat();
        self.statement(0x18, id, &rest)
    }
}

pub(crate) fn owned(attributes: &[(&str, Param)]) -> Vec<(String, Param)> {
    let attributes = attributes.iter();
    attributes
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

/// What a step's bytes depend on.
pub(crate) struct Place<'a> {
    pub(crate) schema: &'a str,
    /// Behind each text.
    pub(crate) tag: &'a str,
    /// The id of the connection, as the greeting named it.
    pub(crate) connection: u32,
    /// The ids of the statements prepared so far; empty when they are the numbers themselves.
    pub(crate) ids: &'a [u32],
    pub(crate) caps: Capabilities,
}

impl Act {
    /// The payload of the step's first packet; None where there is none, or only a conversation knows it.
    pub(crate) fn payload(&self, place: &Place<'_>) -> Option<Vec<u8>> {
        let caps = place.caps;
        let fill = |sql: &str| {
            let sql = sql.replace("{s}", place.schema);
            sql.replace("{id}", &place.connection.to_string()) + place.tag
        };
        let mut payload = match self {
            Self::Query { sql, attributes } => query_payload(&fill(sql), attributes, caps),
            Self::File { sql, .. } => query_payload(&fill(sql), &[], caps),
            Self::Prepare(sql) => [b"\x16", fill(sql).as_bytes()].concat(),
            Self::Execute(execute) => execute.payload(caps),
            Self::Command(payload) | Self::Malformed(payload) => {
                let payload = replace_all(payload, b"{s}", place.schema.as_bytes());
                replace_all(&payload, b"{id}", &place.connection.to_le_bytes())
            }
            Self::OutOfTurn { payload, .. } => payload.clone(),
            Self::ChangeUser { .. } | Self::Sync => return None,
        };
        if matches!(payload.first(), Some(0x17..=0x1a | 0x1c | 0xfa))
            && let Some(bytes) = payload.get_mut(1..5)
            && let Ok(number) = bytes.try_into().map(u32::from_le_bytes)
            && let Some(id) = usize::try_from(number)
                .ok()
                .and_then(|number| place.ids.get(number.checked_sub(1)?))
        {
            bytes.copy_from_slice(&id.to_le_bytes());
        }
        Some(payload)
    }

    /// Whether the step is sure to make the server ask for a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// The packets of the file that the server may ask for, framed from that sequence id on.
    pub(crate) fn tail(&self, seq: u8) -> Vec<u8> {
        let (Self::File { chunks, .. } | Self::Execute(Execute { file: chunks, .. })) = self else {
            return Vec::new();
        };
        let mut seq = seq;
        let mut out = Vec::new();
        for chunk in chunks.iter().map(Vec::as_slice).chain([&[][..]]) {
            out.extend(crate::common::frame(seq, chunk));
            let frames = u8::try_from(chunk.len() / 0xff_ff_ff + 1).expect("a small file");
            seq = seq.wrapping_add(frames);
        }
        out
    }

    /// The shape of the reply.
    pub(crate) fn expect(&self) -> Expect {
        match self {
            Self::Query { .. } | Self::File { .. } => Expect::Text,
            Self::Prepare(_) => Expect::Prepare,
            Self::Execute(execute) if execute.flags & 7 != 0 => Expect::Cursor,
            Self::Execute(_) => Expect::Binary,
            Self::Command(payload) => Expect::of(payload),
            Self::OutOfTurn { .. } | Self::Malformed(_) | Self::ChangeUser { .. } | Self::Sync => {
                Expect::Single
            }
        }
    }

    /// In words, for messages.
    pub(crate) fn words(&self) -> String {
        let mut words = match self {
            Self::Query { sql, attributes } if attributes.is_empty() => sql.clone(),
            Self::Command(payload) => {
                let shown = &payload[..payload.len().min(100)];
                format!("command {}", shown.escape_ascii())
            }
            other => format!("{other:?}"),
        };
        if words.len() > 300 {
            let cut = (0..=300)
                .rev()
                .find(|at| words.is_char_boundary(*at))
                .unwrap_or(0);
            words.truncate(cut);
        }
        words
    }
}

fn query_payload(sql: &str, attributes: &[(String, Param)], caps: Capabilities) -> Vec<u8> {
    let mut out = vec![0x03];
    if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
        out.push(u8::try_from(attributes.len()).expect("few attributes"));
        // One set of values.
        out.push(1);
        if !attributes.is_empty() {
            let values: Vec<&Param> = attributes.iter().map(|(_, value)| value).collect();
            let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
            put_values(&mut out, &values, true, Some(&names));
        }
    }
    out.extend_from_slice(sql.as_bytes());
    out
}

impl Execute {
    fn payload(&self, caps: Capabilities) -> Vec<u8> {
        let with_count = caps.contains(Capabilities::QUERY_ATTRIBUTES);
        let mut values: Vec<&Param> = self.params.iter().collect();
        let mut names: Vec<&str> = vec![""; values.len()];
        if with_count {
            values.extend(self.attributes.iter().map(|(_, value)| value));
            names.extend(self.attributes.iter().map(|(name, _)| name.as_str()));
        }
        let mut out = vec![0x17];
        out.extend_from_slice(&self.id.to_le_bytes());
        // 8: PARAMETER_COUNT_AVAILABLE.
        let has_count = with_count && !values.is_empty();
        out.push(self.flags | if has_count { 8 } else { 0 });
        out.extend_from_slice(&1_u32.to_le_bytes());
        if has_count {
            put_length(&mut out, values.len());
        }
        if !values.is_empty() {
            put_values(&mut out, &values, self.types, with_count.then_some(&names));
        }
        out
    }
}

/// NULL bitmap, flag, types (with names where the protocol has them), values.
fn put_values(out: &mut Vec<u8>, values: &[&Param], types: bool, names: Option<&[&str]>) {
    let mut nulls = vec![0_u8; values.len().div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        if **value == Param::Null {
            nulls[i / 8] |= 1 << (i % 8);
        }
    }
    out.extend_from_slice(&nulls);
    out.push(u8::from(types));
    for (i, value) in values.iter().enumerate().filter(|_| types) {
        out.extend_from_slice(&[value.type_code(), 0]);
        if let Some(name) = names.map(|names| names[i]) {
            put_length(out, name.len());
            out.extend_from_slice(name.as_bytes());
        }
    }
    for value in values {
        value.write(out);
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let bytes = u32::try_from(length).expect("short").to_le_bytes();
    match length {
        0..0xfb => out.push(bytes[0]),
        0xfb..0x1_0000 => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        _ => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
    }
}

fn replace_all(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    if !bytes.contains(&from[0]) {
        // Some are of 16 MiB.
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        if let Some(behind) = rest.strip_prefix(from) {
            out.extend_from_slice(to);
            rest = behind;
        } else {
            out.push(first);
            rest = &rest[1..];
        }
    }
    out
}

/// The comment behind a statement by which it is found in the logs: its run and its step.
pub(crate) fn tag(schema: &str, step: usize) -> String {
    format!(" /* {schema}.{step} */")
}

impl Step {
    /// Only statements whose place is asked for carry a tag, and preparations, for their executions.
    pub(crate) fn tag(&self, schema: &str, step: usize) -> String {
        if self.at != At::Anywhere || matches!(self.act, Act::Prepare(_)) {
            tag(schema, step)
        } else {
            String::new()
        }
    }
}

impl Script {
    /// Whether no step depends on what came before it.
    pub(crate) fn is_pipelinable(&self) -> bool {
        let mut acts = self.steps.iter().map(|step| &step.act);
        !acts.any(|act| {
            matches!(
                act,
                Act::ChangeUser { .. } | Act::Sync | Act::Malformed(_) | Act::OutOfTurn { .. }
            )
        })
    }
}
