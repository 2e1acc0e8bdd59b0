//! Replies of the model servers, written with `atlas::wire`; and the echo in each: which statement it answers, where it ran,
//! and what session state it saw there.

use atlas::wire::{
    Capabilities, ColumnCount, ColumnDef, EofPacket, ErrPacket, OkPacket, PrepareOk, RowFormat,
    Status,
};

use crate::outcome::After;

/// What every reply to a statement tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Echo {
    pub tag: u32,
    /// Counts executions in the whole world.
    pub execution: u64,
    /// The server connection.
    pub backend: usize,
    pub value: String,
    pub common: String,
    pub users: String,
    pub own: String,
}

impl Echo {
    pub fn of(after: &After, tag: u32, execution: u64, backend: usize, value: &str) -> Self {
        Self {
            tag,
            execution,
            backend,
            value: value.to_owned(),
            common: after.common.clone(),
            users: after.users.clone(),
            own: after.own.clone(),
        }
    }

    pub fn text(&self) -> String {
        format!(
            "{}|{}|{}|{}|{}|{}|{}",
            self.tag, self.execution, self.backend, self.value, self.common, self.users, self.own
        )
    }

    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split('|').map(str::to_owned);
        let echo = Self {
            tag: parts.next()?.parse().ok()?,
            execution: parts.next()?.parse().ok()?,
            backend: parts.next()?.parse().ok()?,
            value: parts.next()?,
            common: parts.next()?,
            users: parts.next()?,
            own: parts.next()?,
        };
        parts.next().is_none().then_some(echo)
    }
}

/// A reply in the making.
#[derive(Debug)]
pub struct Answer {
    pub bytes: Vec<u8>,
    pub seq: u8,
    caps: Capabilities,
}

/// A result set to be written.
#[derive(Debug)]
pub struct Rows<'a> {
    pub format: RowFormat,
    pub name: &'a [u8],
    pub value: &'a [u8],
    pub count: usize,
    /// MariaDB leaves definitions out that the client knows.
    pub definitions: bool,
    /// The EOF behind definitions that were left out; some servers leave it out too.
    pub eof_without_definitions: bool,
    /// An error comes behind the rows.
    pub error: Option<(u16, String)>,
    /// Rows come by COM_STMT_FETCH.
    pub cursor: bool,
    pub status: Status,
    /// The session-state block of the end.
    pub state: &'a [u8],
}

impl Answer {
    pub fn new(seq: u8, caps: Capabilities) -> Self {
        Self {
            bytes: Vec::new(),
            seq,
            caps,
        }
    }

    fn deprecate_eof(&self) -> bool {
        self.caps.contains(Capabilities::DEPRECATE_EOF)
    }

    pub fn ok(&mut self, ok: &OkPacket<'_>) {
        self.seq = ok.write(&mut self.bytes, self.seq, self.caps);
    }

    pub fn plain_ok(&mut self, status: Status, info: &str) {
        self.ok(&OkPacket {
            status,
            info: info.as_bytes(),
            ..OkPacket::default()
        });
    }

    pub fn error(&mut self, code: u16, message: &str) {
        let error = ErrPacket {
            code,
            sqlstate: Some(*b"HY000"),
            message: message.as_bytes(),
        };
        self.seq = error.write(&mut self.bytes, self.seq, self.caps);
    }

    pub fn eof(&mut self, status: Status) {
        let eof = EofPacket {
            warnings: 0,
            status,
        };
        self.seq = eof.write(&mut self.bytes, self.seq);
    }

    fn end_of_rows(&mut self, status: Status, state: &[u8]) {
        if self.deprecate_eof() {
            let end = OkPacket {
                status,
                state,
                ..OkPacket::default()
            };
            self.seq = end.write_end(&mut self.bytes, self.seq, self.caps);
        } else {
            self.eof(status);
        }
    }

    pub fn packet(&mut self, payload: &[u8]) {
        self.seq = atlas::wire::write_payload(&mut self.bytes, self.seq, payload);
    }

    fn column(&mut self, name: &[u8]) {
        let column = ColumnDef {
            schema: b"s",
            table: b"t",
            name,
            charset: 45,
            length: 1000,
            kind: ColumnDef::VAR_STRING,
            ..ColumnDef::default()
        };
        self.seq = column.write(&mut self.bytes, self.seq, self.caps);
    }

    pub fn rows(&mut self, rows: &Rows<'_>) {
        let flag = Capabilities::MARIADB_CACHE_METADATA;
        let has_definitions = rows.definitions || !self.caps.contains(flag);
        let count = ColumnCount {
            columns: 1,
            has_definitions,
        };
        self.seq = count.write(&mut self.bytes, self.seq, self.caps);
        if has_definitions {
            self.column(rows.name);
        }
        let has_eof = has_definitions || rows.eof_without_definitions;
        if !self.deprecate_eof() && has_eof {
            let cursor = if rows.cursor {
                Status::CURSOR_EXISTS
            } else {
                Status::NONE
            };
            self.eof(rows.status.without(Status::MORE_RESULTS) | cursor);
        }
        if rows.cursor {
            if self.deprecate_eof() {
                self.end_of_rows(rows.status | Status::CURSOR_EXISTS, b"");
            }
            return;
        }
        self.row_values(rows.format, rows.value, rows.count);
        match &rows.error {
            Some((code, message)) => self.error(*code, message),
            None => self.end_of_rows(rows.status, rows.state),
        }
    }

    /// One row of texts, as an answer to what Atlas itself asks.
    pub fn row(&mut self, values: &[String], status: Status) {
        let count = ColumnCount {
            columns: values.len() as u64,
            has_definitions: true,
        };
        self.seq = count.write(&mut self.bytes, self.seq, self.caps);
        for _ in values {
            self.column(b"own");
        }
        if !self.deprecate_eof() {
            self.eof(status);
        }
        let row: Vec<_> = values.iter().map(|v| Some(v.as_bytes())).collect();
        self.seq = RowFormat::Text.write_row(&mut self.bytes, self.seq, &row);
        self.end_of_rows(status, b"");
    }

    fn row_values(&mut self, format: RowFormat, value: &[u8], count: usize) {
        for _ in 0..count {
            self.seq = format.write_row(&mut self.bytes, self.seq, &[Some(value)]);
        }
    }

    /// The reply to COM_STMT_FETCH.
    pub fn fetched(&mut self, value: &[u8], count: usize, status: Status) {
        self.row_values(RowFormat::Binary, value, count);
        self.end_of_rows(status, b"");
    }

    /// The reply to COM_FIELD_LIST.
    pub fn fields(&mut self, names: &[&[u8]], status: Status) {
        for name in names {
            self.column(name);
        }
        self.end_of_rows(status, b"");
    }

    /// The reply to COM_STMT_PREPARE.
    pub fn prepared(&mut self, id: u32, params: u16, column: Option<&[u8]>, status: Status) {
        let ok = PrepareOk {
            statement_id: id,
            columns: u16::from(column.is_some()),
            params,
            warnings: 0,
            metadata: self
                .caps
                .contains(Capabilities::OPTIONAL_RESULTSET_METADATA)
                .then_some(1),
        };
        self.seq = ok.write(&mut self.bytes, self.seq);
        for _ in 0..params {
            self.column(b"?");
        }
        if params > 0 && !self.deprecate_eof() {
            self.eof(status);
        }
        if let Some(name) = column {
            self.column(name);
            if !self.deprecate_eof() {
                self.eof(status);
            }
        }
    }
}
