//! One connection of a model server: cuts the bytes that Atlas sent into commands (and fails the test where they are none),
//! logs it in, and answers from its [`Memory`]. When it answers, and whether it gets to, is the world's business.

use atlas::wire::{
    Capabilities, Command, Header, MAX_PAYLOAD, OkPacket, RowFormat, Status, query_text,
};

use crate::answer::{Answer, Echo, Rows};
use crate::changes::{Setup, Told};
use crate::engine::{loaded, run};
use crate::greeter::Greeter;
use crate::memory::{Memory, OF_A_COMMAND};
use crate::outcome::{After, Databases, Done, Outcome, Outside};
use crate::rng::Rng;

/// What the servers of a world have in common.
#[derive(Debug)]
pub struct Estate {
    pub databases: Databases,
    /// Tags of the rows that stay.
    pub committed: Vec<u32>,
    pub insert_ids: u64,
    pub log: Vec<Execution>,
    pub rng: Rng,
}

/// A statement that ran.
#[derive(Debug, Clone)]
pub struct Execution {
    pub tag: u32,
    pub writes: bool,
}

impl Outside for Estate {
    fn databases(&mut self) -> &mut Databases {
        &mut self.databases
    }

    fn committed(&mut self, tags: &[u32]) {
        self.committed.extend(tags);
    }

    fn next_insert_id(&mut self) -> u64 {
        self.insert_ids += 1;
        self.insert_ids
    }
}

/// See the module's words.
#[derive(Debug)]
pub struct ServerConn {
    pub thread_id: u32,
    /// The connection's number in the world.
    pub backend: usize,
    pub is_replica: bool,
    pub greeter: Option<Greeter>,
    pub memory: Option<Memory>,
    pub caps: Capabilities,
    input: Vec<u8>,
    /// A command is being executed.
    pub is_busy: bool,
    /// A file is awaited, for the statement with this tag; the next answer's sequence id.
    file: Option<(u32, u8)>,
    pub is_closed: bool,
}

/// What came of a command.
#[derive(Debug, Default)]
pub struct Reaction {
    pub bytes: Vec<u8>,
    pub close: bool,
}

impl ServerConn {
    pub fn new(thread_id: u32, backend: usize, is_replica: bool, greeter: Greeter) -> Self {
        Self {
            thread_id,
            backend,
            is_replica,
            greeter: Some(greeter),
            memory: None,
            caps: Capabilities::NONE,
            input: Vec::new(),
            is_busy: false,
            file: None,
            is_closed: false,
        }
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Takes the next packet with its continuations, if it is all there; its payload and the next sequence id.
    pub fn next_packet(&mut self) -> Option<(u8, Vec<u8>, u8)> {
        let mut payload = Vec::new();
        let mut at = 0;
        let mut first = None;
        loop {
            let header = Header::parse(self.input.get(at..)?)?;
            let body = self.input.get(at + 4..at + 4 + header.len)?;
            let start = *first.get_or_insert(header.seq);
            let frame = u8::try_from(payload.len() / MAX_PAYLOAD % 256).expect("below 256");
            assert_eq!(
                header.seq,
                start.wrapping_add(frame),
                "a server got a continuation out of order"
            );
            payload.extend_from_slice(body);
            at += 4 + header.len;
            if header.len < MAX_PAYLOAD {
                self.input.drain(..at);
                return Some((start, payload, header.seq.wrapping_add(1)));
            }
        }
    }

    pub fn awaits_file(&self) -> bool {
        self.file.is_some()
    }

    /// A whole packet or more waits.
    pub fn has_packet(&self) -> bool {
        Header::parse(&self.input).is_some_and(|h| self.input.len() >= h.len + 4)
    }

    /// Executes one packet: a command, or a piece of a file.
    pub fn react(
        &mut self,
        estate: &mut Estate,
        seq: u8,
        payload: &[u8],
        next_seq: u8,
    ) -> Reaction {
        if let Some((tag, expected)) = self.file {
            return self.file_packet(estate, tag, expected, seq, payload, next_seq);
        }
        assert_eq!(
            seq, 0,
            "a server got a command that does not start at 0: {payload:02x?}"
        );
        let mut reaction = Reaction::default();
        let mut answer = Answer::new(next_seq, self.caps);
        // An empty packet is taken for COM_SLEEP.
        let command = Command::from(payload.first().copied().unwrap_or(0));
        let body = payload.get(1..).unwrap_or_default();
        let memory = self.memory.as_mut().expect("logged in");
        match command {
            Command::Quit => reaction.close = true,
            Command::Query => {
                let range = query_text(payload, self.caps).expect("a COM_QUERY that can be read");
                let text = payload[range].to_vec();
                self.text(estate, &text, &mut answer);
            }
            Command::InitDb => {
                let name = String::from_utf8_lossy(body).into_owned();
                if estate.databases.names.contains(&name) {
                    memory.schema = Some(name.clone());
                    answer.ok(&OkPacket {
                        status: memory.status(),
                        info: b"init",
                        state: &Told::default().block(Some(&name)),
                        ..OkPacket::default()
                    });
                } else {
                    answer.error(1049, &format!("Unknown database '{name}'"));
                }
            }
            Command::FieldList => {
                let end = body
                    .iter()
                    .position(|b| *b == 0)
                    .expect("a table and a zero byte");
                let name = &body[..end];
                if name.starts_with(b"nosuch") {
                    answer.error(1146, "no such table");
                } else {
                    answer.fields(&[name, b"second"], memory.status());
                }
            }
            Command::Statistics => answer.packet(b"Uptime: 1  Threads: 2"),
            Command::ProcessInfo => answer.rows(&Rows {
                format: RowFormat::Text,
                name: b"processes",
                value: b"process",
                count: 2,
                definitions: true,
                eof_without_definitions: true,
                error: None,
                cursor: false,
                status: memory.status(),
                state: b"",
            }),
            Command::ProcessKill => answer.error(1094, "Unknown thread id"),
            Command::Debug => answer.eof(memory.status()),
            Command::Ping => answer.plain_ok(memory.status(), ""),
            Command::SetOption => {
                assert_eq!(body.len(), 2, "COM_SET_OPTION");
                memory.multi_statements = body[0] == 0;
                answer.eof(memory.status());
            }
            Command::ResetConnection => {
                memory.reset();
                answer.plain_ok(memory.status(), "");
            }
            Command::StmtPrepare
            | Command::StmtExecute
            | Command::StmtSendLongData
            | Command::StmtClose
            | Command::StmtReset
            | Command::StmtFetch => self.prepared(estate, command, body, &mut answer),
            Command::ChangeUser => panic!("COM_CHANGE_USER must not reach a server"),
            _ => answer.error(1047, "Unknown command"),
        }
        let is_statement = match command {
            Command::Query | Command::StmtPrepare => true,
            // Unless it names one that is not there.
            Command::StmtExecute | Command::StmtFetch => {
                answer.bytes.get(5..7) != Some(&1243_u16.to_le_bytes())
            }
            _ => false,
        };
        if !is_statement && answer.bytes.get(4) == Some(&0xff) {
            let memory = self.memory.as_mut().expect("logged in");
            memory.previous.warn(OF_A_COMMAND, true);
        }
        reaction.bytes = answer.bytes;
        reaction
    }

    fn file_packet(
        &mut self,
        estate: &mut Estate,
        tag: u32,
        expected: u8,
        seq: u8,
        payload: &[u8],
        next_seq: u8,
    ) -> Reaction {
        assert_eq!(seq, expected, "a file's packet is out of order");
        if !payload.is_empty() {
            assert!(
                payload.starts_with(format!("file {tag} ").as_bytes()),
                "a file got bytes that are not its own: {:?}",
                String::from_utf8_lossy(&payload[..payload.len().min(40)])
            );
            self.file = Some((tag, next_seq));
            return Reaction::default();
        }
        self.file = None;
        let memory = self.memory.as_mut().expect("logged in");
        let outcome = loaded(memory, estate, tag);
        let done = Done {
            tag,
            outcome,
            needs_primary: true,
            writes: true,
            mentions_user_variables: false,
            asks: false,
            told: Told::default(),
            after: After::of(memory),
        };
        let mut answer = Answer::new(next_seq, self.caps);
        self.answer(estate, &mut answer, &[done], RowFormat::Text, b"", false);
        Reaction {
            bytes: answer.bytes,
            close: false,
        }
    }

    fn text(&mut self, estate: &mut Estate, text: &[u8], answer: &mut Answer) {
        let memory = self.memory.as_mut().expect("logged in");
        if let Some(id) = login_charset(text) {
            memory.set_names(crate::memory::charset_of(id), None);
            return answer.plain_ok(memory.status(), "");
        }
        match Setup::of(memory, text) {
            Some(Setup::Ok) => return answer.plain_ok(memory.status(), ""),
            Some(Setup::Row(values)) => {
                return answer.row(&values.map(str::to_owned), memory.status());
            }
            None => {}
        }
        if text == b"SHOW WARNINGS" {
            // Asked by Atlas, which keeps the answer; the client's own has a tag.
            let value = format!("kept|{}", memory.previous.warnings_text());
            return answer.row(&[value], memory.status());
        }
        if text == b"SELECT 1 FROM (SELECT 1) AS t LIMIT 0" {
            memory.previous.warn(0, false);
            memory.previous.counts(0, -1);
            memory.previous.rows = 0;
            return answer.row(&["1".to_owned()], memory.status());
        }
        if let Some(rows) = brought_rows(text) {
            memory.previous.warn(0, false);
            memory.previous.counts(0, -1);
            memory.previous.rows = rows;
            return answer.row(&["1".to_owned()], memory.status());
        }
        if let Some(values) = own_question(memory, text) {
            answer.row(&values, memory.status());
            memory.previous.counts(0, -1);
            memory.previous.found = 0;
            memory.previous.rows = 1;
            return;
        }
        let done = run(memory, estate, text, &[]);
        self.answer(estate, answer, &done, RowFormat::Text, b"echo", false);
    }

    /// Writes the results of executed statements, and notes that they ran.
    pub fn answer(
        &mut self,
        estate: &mut Estate,
        answer: &mut Answer,
        done: &[Done],
        format: RowFormat,
        name: &[u8],
        definitions_known: bool,
    ) {
        let memory = self.memory.as_mut().expect("logged in");
        let mut untold = std::mem::take(&mut memory.untold);
        for (index, one) in done.iter().enumerate() {
            let more = if index + 1 < done.len() {
                Status::MORE_RESULTS
            } else {
                Status::NONE
            };
            let status = one.after.status | more;
            // What Atlas says for itself has no tag: it brings session state, which may go anywhere.
            assert!(
                !self.is_replica || !one.needs_primary || one.tag == 0 && !one.writes,
                "statement {} ran on a replica",
                one.tag
            );
            let execution = estate.log.len() as u64;
            estate.log.push(Execution {
                tag: one.tag,
                writes: one.writes && !matches!(one.outcome, Outcome::File),
            });
            let echo =
                |value: &str| Echo::of(&one.after, one.tag, execution, self.backend, value).text();
            untold.merge(&one.told);
            match &one.outcome {
                Outcome::Ok {
                    affected,
                    insert_id,
                    schema_dropped,
                } => {
                    let dropped = if *schema_dropped {
                        Status::DB_DROPPED
                    } else {
                        Status::NONE
                    };
                    answer.ok(&OkPacket {
                        affected: *affected,
                        insert_id: *insert_id,
                        status: status | dropped,
                        warnings: 0,
                        info: echo("").as_bytes(),
                        state: &std::mem::take(&mut untold)
                            .block(Some(memory.schema.as_deref().unwrap_or(""))),
                    });
                }
                Outcome::Rows {
                    rows,
                    value,
                    error_after,
                } => {
                    let tells =
                        error_after.is_none() && self.caps.contains(Capabilities::DEPRECATE_EOF);
                    let state = if tells {
                        std::mem::take(&mut untold).block(None)
                    } else {
                        Vec::new()
                    };
                    answer.rows(&Rows {
                        format,
                        name,
                        value: echo(value).as_bytes(),
                        count: *rows,
                        definitions: !definitions_known,
                        eof_without_definitions: estate.rng.one_in(2),
                        error: error_after.map(|_| (1242, echo(""))),
                        cursor: false,
                        status,
                        state: &state,
                    })
                }
                Outcome::File if self.caps.contains(Capabilities::LOCAL_FILES) => {
                    answer.packet(&[b"\xfbfile ", one.tag.to_string().as_bytes()].concat());
                    self.file = Some((one.tag, answer.seq));
                }
                Outcome::File => answer.error(1148, &echo("")),
                Outcome::Error(code) => answer.error(*code, &echo("")),
            }
        }
        self.memory.as_mut().expect("logged in").untold = untold;
    }
}

/// The collation id of a SET by which Atlas gives a connection the character set of its log-in back.
fn login_charset(text: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(text).ok()?;
    let rest = text.strip_prefix("SET character_set_client = ")?;
    rest.split(',').next()?.parse().ok()
}

/// The number of rows of a query by which Atlas gives a connection the session's FOUND_ROWS().
fn brought_rows(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_prefix("SELECT 1 FROM (SELECT 1 UNION ALL ")?;
    text.rsplit(' ').next()?.parse().ok()
}

/// The answer to a question that Atlas asks for itself.
fn own_question(memory: &Memory, text: &[u8]) -> Option<Vec<String>> {
    let values = match text {
        b"SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()" => [
            memory.previous.affected.to_string(),
            memory.previous.rows.to_string(),
            memory.insert_id.to_string(),
        ],
        _ => return None,
    };
    Some(values.to_vec())
}
