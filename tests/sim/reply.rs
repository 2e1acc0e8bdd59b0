//! The clients' reading of replies, written apart from Atlas's tracker: sequence ids, framing, and where a reply ends.

use atlas::wire::{
    Capabilities, ColumnDef, EofPacket, ErrPacket, Header, MAX_PAYLOAD, OkPacket, PrepareOk,
    Reader, StateChange, Status,
};

/// Cuts the stream into packets and checks their numbers.
#[derive(Debug, Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    /// The next packet's number; `None` takes any (at the start of a connection).
    pub seq: u8,
}

impl Receiver {
    pub fn receive(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next payload, its continuations joined, if it is all there.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut payload = Vec::new();
        let mut at = 0;
        let mut seq = self.seq;
        loop {
            let rest = &self.bytes[at..];
            let Some(header) = Header::parse(rest) else {
                return Ok(None);
            };
            if header.seq != seq {
                return Err(format!(
                    "packet {} instead of {seq}: {:02x?}",
                    header.seq,
                    &rest[..rest.len().min(60)]
                ));
            }
            let Some(body) = rest.get(4..4 + header.len) else {
                return Ok(None);
            };
            payload.extend_from_slice(body);
            at += 4 + header.len;
            seq = seq.wrapping_add(1);
            if header.len < MAX_PAYLOAD {
                self.bytes.drain(..at);
                self.seq = seq;
                return Ok(Some(payload));
            }
        }
    }
}

/// What kind of reply a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Nothing,
    Response {
        binary: bool,
    },
    Prepare,
    FieldList,
    Fetch,
    /// One OK, EOF or ERR.
    Terminal,
    /// A text.
    Single,
    /// Packets of a log-in, up to OK or ERR.
    Login,
}

/// A part of a reply.
#[derive(Clone, PartialEq, Eq)]
pub enum Part {
    Ok {
        affected: u64,
        insert_id: u64,
        status: Status,
        info: Vec<u8>,
    },
    Rows {
        names: Vec<Vec<u8>>,
        rows: Vec<Vec<u8>>,
        status: Status,
        error: Option<(u16, Vec<u8>)>,
    },
    Error(u16, Vec<u8>),
    Eof(Status),
    Text(Vec<u8>),
    Prepared {
        id: u32,
        params: u16,
        names: Vec<Vec<u8>>,
    },
    File(Vec<u8>),
    /// A packet of a log-in that is neither OK nor ERR.
    Auth(Vec<u8>),
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        match self {
            Self::Ok { status, info, .. } => write!(f, "OK({:04x} {})", status.0, text(info)),
            Self::Rows {
                rows,
                status,
                error,
                ..
            } => {
                let first = rows.first().map(|row| text(row));
                let error = error.as_ref().map(|(code, message)| (code, text(message)));
                write!(
                    f,
                    "Rows({} {first:?} {:04x} {error:?})",
                    rows.len(),
                    status.0
                )
            }
            Self::Error(code, message) => write!(f, "Error({code} {})", text(message)),
            Self::Eof(status) => write!(f, "EOF({:04x})", status.0),
            Self::Text(bytes) => write!(f, "Text({})", text(bytes)),
            Self::Prepared { id, params, names } => {
                let names: Vec<_> = names.iter().map(|name| text(name)).collect();
                write!(f, "Prepared({id} {params} {names:?})")
            }
            Self::File(name) => write!(f, "File({})", text(name)),
            Self::Auth(bytes) => write!(f, "Auth({bytes:02x?})"),
        }
    }
}

/// How far a reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// The client has to send a file.
    File,
    /// The client has to answer a challenge.
    Challenge,
    Done,
}

#[derive(Debug)]
enum State {
    First,
    Parameters(u16, u16),
    ParametersEof(u16),
    Columns(u64),
    ColumnsEof,
    Rows,
}

/// Reads one reply, packet by packet.
#[derive(Debug)]
pub struct Parser {
    want: Want,
    caps: Capabilities,
    state: State,
    names: Vec<Vec<u8>>,
    columns: u64,
    rows: Vec<Vec<u8>>,
    pub parts: Vec<Part>,
}

impl Parser {
    pub fn new(want: Want, caps: Capabilities) -> Self {
        Self {
            want,
            caps,
            state: match want {
                Want::FieldList | Want::Fetch => State::Rows,
                _ => State::First,
            },
            names: Vec::new(),
            columns: 1,
            rows: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn deprecate_eof(&self) -> bool {
        self.caps.contains(Capabilities::DEPRECATE_EOF)
    }

    pub fn push(&mut self, payload: &[u8]) -> Result<Progress, String> {
        let fail = |what: &str| format!("{what}: {:02x?}", &payload[..payload.len().min(80)]);
        let first = payload.first().copied();
        // An error ends a reply wherever it comes.
        if first == Some(0xff) && !matches!(self.state, State::First | State::Rows) {
            let error = ErrPacket::parse(payload).map_err(|e| fail(&e.to_string()))?;
            self.parts
                .push(Part::Error(error.code, error.message.to_vec()));
            return Ok(Progress::Done);
        }
        match self.state {
            State::First => self.first(payload).map_err(|e| fail(&e)),
            State::Parameters(left, columns) => {
                let column =
                    ColumnDef::parse(payload, self.caps).map_err(|e| fail(&e.to_string()))?;
                self.names.push(column.name.to_vec());
                self.state = match left {
                    1 if self.deprecate_eof() => return self.begin_columns(columns),
                    1 => State::ParametersEof(columns),
                    _ => State::Parameters(left - 1, columns),
                };
                Ok(Progress::More)
            }
            State::ParametersEof(columns) => {
                EofPacket::parse(payload).map_err(|e| fail(&e.to_string()))?;
                self.begin_columns(columns)
            }
            State::Columns(left) => {
                let column =
                    ColumnDef::parse(payload, self.caps).map_err(|e| fail(&e.to_string()))?;
                self.names.push(column.name.to_vec());
                if left > 1 {
                    self.state = State::Columns(left - 1);
                    return Ok(Progress::More);
                }
                self.after_columns()
            }
            State::ColumnsEof if first == Some(0xfe) && payload.len() == 5 => {
                let eof = EofPacket::parse(payload).map_err(|e| fail(&e.to_string()))?;
                if self.want == Want::Prepare {
                    return Ok(self.done());
                }
                if eof.status.contains(Status::CURSOR_EXISTS) {
                    return Ok(self.end_rows(eof.status, None));
                }
                self.state = State::Rows;
                Ok(Progress::More)
            }
            // Left out with the definitions.
            State::ColumnsEof => {
                self.state = State::Rows;
                self.row(payload).map_err(|e| fail(&e))
            }
            State::Rows => self.row(payload).map_err(|e| fail(&e)),
        }
    }

    fn begin_columns(&mut self, columns: u16) -> Result<Progress, String> {
        if columns == 0 {
            return Ok(self.done());
        }
        self.state = State::Columns(u64::from(columns));
        Ok(Progress::More)
    }

    fn after_columns(&mut self) -> Result<Progress, String> {
        if self.want == Want::Prepare && self.deprecate_eof() {
            return Ok(self.done());
        }
        self.state = if self.deprecate_eof() {
            State::Rows
        } else {
            State::ColumnsEof
        };
        Ok(Progress::More)
    }

    fn done(&mut self) -> Progress {
        if let Some(Part::Prepared { names, .. }) = self.parts.last_mut() {
            *names = std::mem::take(&mut self.names);
        }
        Progress::Done
    }

    fn first(&mut self, payload: &[u8]) -> Result<Progress, String> {
        let Some(first) = payload.first() else {
            return Err("an empty packet".to_owned());
        };
        match (self.want, first) {
            (Want::Single, byte) if *byte != 0xff => {
                self.parts.push(Part::Text(payload.to_vec()));
                Ok(Progress::Done)
            }
            (_, 0xff) => {
                let error = ErrPacket::parse(payload).map_err(|e| e.to_string())?;
                self.parts
                    .push(Part::Error(error.code, error.message.to_vec()));
                Ok(Progress::Done)
            }
            (Want::Login, 1 | 0xfe) => {
                self.parts.push(Part::Auth(payload.to_vec()));
                Ok(Progress::Challenge)
            }
            (Want::Prepare, 0) => {
                let ok = PrepareOk::parse(payload).map_err(|e| e.to_string())?;
                let expected = 12
                    + usize::from(
                        self.caps
                            .contains(Capabilities::OPTIONAL_RESULTSET_METADATA),
                    );
                if payload.len() != expected {
                    return Err("a prepare reply of another length".to_owned());
                }
                self.parts.push(Part::Prepared {
                    id: ok.statement_id,
                    params: ok.params,
                    names: Vec::new(),
                });
                if ok.params > 0 {
                    self.state = State::Parameters(ok.params, ok.columns);
                    return Ok(Progress::More);
                }
                self.begin_columns(ok.columns)
            }
            (_, 0) => {
                let ok = OkPacket::parse(payload, self.caps).map_err(|e| e.to_string())?;
                let changed = ok.status.contains(Status::SESSION_STATE_CHANGED);
                if changed == ok.state.is_empty() {
                    return Err(
                        "the flag of a state block without the block, or the reverse".into(),
                    );
                }
                for change in ok.changes() {
                    // Of more the server told Atlas only.
                    if !matches!(change, Ok(StateChange::Schema(_))) {
                        return Err(format!("the client is told of {change:?}"));
                    }
                }
                self.parts.push(Part::Ok {
                    affected: ok.affected,
                    insert_id: ok.insert_id,
                    status: ok.status,
                    info: ok.info.to_vec(),
                });
                Ok(self.next_result(ok.status))
            }
            (Want::Terminal, 0xfe) => {
                let eof = EofPacket::parse(payload).map_err(|e| e.to_string())?;
                self.parts.push(Part::Eof(eof.status));
                Ok(Progress::Done)
            }
            (Want::Response { .. }, 0xfb) => {
                self.parts.push(Part::File(payload[1..].to_vec()));
                Ok(Progress::File)
            }
            (Want::Response { .. }, _) => self.column_count(payload),
            _ => Err("no reply to that command".to_owned()),
        }
    }

    fn column_count(&mut self, payload: &[u8]) -> Result<Progress, String> {
        let mut r = Reader::new("count", payload);
        self.columns = r.lenenc("count").map_err(|e| e.to_string())?;
        let flagged = self
            .caps
            .contains(Capabilities::OPTIONAL_RESULTSET_METADATA)
            || self.caps.contains(Capabilities::MARIADB_CACHE_METADATA);
        let definitions = !flagged || r.u8("flag").map_err(|e| e.to_string())? != 0;
        if r.remaining() > 0 || self.columns == 0 || self.columns > 10 {
            return Err("no column count".to_owned());
        }
        self.names.clear();
        if definitions {
            self.state = State::Columns(self.columns);
            return Ok(Progress::More);
        }
        self.after_columns()
    }

    fn row(&mut self, payload: &[u8]) -> Result<Progress, String> {
        match payload.first() {
            Some(0xff) => {
                let error = ErrPacket::parse(payload).map_err(|e| e.to_string())?;
                let error = (error.code, error.message.to_vec());
                let is_alone = self.rows.is_empty();
                if is_alone && matches!(self.want, Want::FieldList | Want::Fetch) {
                    self.parts.push(Part::Error(error.0, error.1));
                } else {
                    self.end_rows(Status::NONE, Some(error));
                }
                Ok(Progress::Done)
            }
            Some(0xfe) if self.deprecate_eof() && payload.len() < MAX_PAYLOAD => {
                let ok = OkPacket::parse(payload, self.caps).map_err(|e| e.to_string())?;
                Ok(self.end_rows(ok.status, None))
            }
            Some(0xfe) if payload.len() < 9 => {
                let eof = EofPacket::parse(payload).map_err(|e| e.to_string())?;
                Ok(self.end_rows(eof.status, None))
            }
            _ => {
                self.rows.push(payload.to_vec());
                Ok(Progress::More)
            }
        }
    }

    fn end_rows(&mut self, status: Status, error: Option<(u16, Vec<u8>)>) -> Progress {
        self.parts.push(Part::Rows {
            names: std::mem::take(&mut self.names),
            rows: std::mem::take(&mut self.rows),
            status,
            error,
        });
        self.next_result(status)
    }

    fn next_result(&mut self, status: Status) -> Progress {
        let response = matches!(self.want, Want::Response { .. });
        if response && status.contains(Status::MORE_RESULTS) {
            self.state = State::First;
            return Progress::More;
        }
        Progress::Done
    }
}

/// The values of a row.
pub fn values(row: &[u8], binary: bool, columns: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut r = Reader::new("row", row);
    if binary {
        r.u8("header").map_err(|e| e.to_string())?;
        r.bytes((columns + 9) / 8, "nulls")
            .map_err(|e| e.to_string())?;
    }
    let mut values = Vec::new();
    while r.remaining() > 0 {
        values.push(r.lenenc_bytes("value").map_err(|e| e.to_string())?.to_vec());
    }
    Ok(values)
}
