//! What is said in the measured exchanges, as bytes: commands of a client, replies of a server.

// Each binary that compiles this file for itself uses a part of it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by benches, a test and an example"
)]

use atlas::wire::{
    Capabilities, ColumnCount, ColumnDef, Command, OkPacket, PacketWriter, PrepareOk, RowFormat,
    Status,
};

/// What client and servers agree on: as present-day clients have it, without EOF packets.
pub const CAPABILITIES: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF);

/// sysbench's point select, which a replica answers.
pub const SELECT: &str = "SELECT c FROM sbtest1 WHERE id=5021";
/// The same, to be prepared.
pub const SELECT_PREPARED: &str = "SELECT c FROM sbtest1 WHERE id=?";
/// A write, for the primary.
pub const INSERT: &str = "INSERT INTO sbtest1 (id, k, c, pad) VALUES (5021, 17, 'some text', '')";
/// The same, to be prepared.
pub const INSERT_PREPARED: &str =
    "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, 17, 'some text', '')";
/// A longer read: three tables.
pub const JOIN: &str = "SELECT o.id, o.amount, c.name, COUNT(i.id) AS items FROM orders o \
    JOIN customers c ON c.id = o.customer_id LEFT JOIN order_items i ON i.order_id = o.id \
    WHERE o.created_at > NOW() - INTERVAL 7 DAY AND c.country IN ('de', 'at', 'ch') \
    GROUP BY o.id ORDER BY o.created_at DESC LIMIT 50";

/// The ids that the servers give; a client is told others.
pub const SELECT_ID: u32 = 11;
/// See [`SELECT_ID`].
pub const INSERT_ID: u32 = 12;

/// What clients call the table, and what it is called where the row of the statements lies if the table is sharded.
const TABLE: &[u8] = b"sbtest1";
const SHARD: &[u8] = b"sbtest1_5";

/// A value of sbtest1.c.
const VALUE: &[u8] = b"08566691963-88624912351-16662227201-46648573979-64646226163-77505759394-\
    75470094713-41097360717-15161106334-50535565977";

/// A command with one body.
fn command(command: Command, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketWriter::begin(&mut out, 0);
    packet.u8(command.code());
    packet.bytes(body);
    packet.finish();
    out
}

/// COM_QUERY.
pub fn query(sql: &str) -> Vec<u8> {
    command(Command::Query, sql.as_bytes())
}

/// COM_STMT_PREPARE.
pub fn prepare(sql: &str) -> Vec<u8> {
    command(Command::StmtPrepare, sql.as_bytes())
}

/// COM_STMT_EXECUTE with one parameter, a 64-bit integer. Drivers say its type every time; libmysql only the first time.
pub fn execute(id: u32, with_type: bool) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend_from_slice(&[0, 1, 0, 0, 0, 0]);
    if with_type {
        body.extend_from_slice(&[1, 8, 0]);
    } else {
        body.push(0);
    }
    body.extend_from_slice(&5021_u64.to_le_bytes());
    command(Command::StmtExecute, &body)
}

/// The end of rows.
fn end(out: &mut Vec<u8>, seq: u8) {
    let ok = OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    };
    ok.write_end(out, seq, CAPABILITIES);
}

fn column(out: &mut Vec<u8>, seq: u8, table: &[u8]) -> u8 {
    let column = ColumnDef {
        schema: b"sbtest",
        table: b"sbtest1",
        org_table: table,
        name: b"c",
        org_name: b"c",
        charset: 45,
        length: 480,
        kind: 0xfe,
        flags: 1,
        ..ColumnDef::default()
    };
    column.write(out, seq, CAPABILITIES)
}

/// A result set of one column with these rows.
pub fn rows(format: RowFormat, values: &[&[u8]]) -> Vec<u8> {
    rows_of(TABLE, format, values)
}

/// The same where a server calls the table so.
fn rows_of(table: &[u8], format: RowFormat, values: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let count = ColumnCount {
        columns: 1,
        has_definitions: true,
    };
    let seq = count.write(&mut out, 1, CAPABILITIES);
    let mut seq = column(&mut out, seq, table);
    for value in values {
        seq = format.write_row(&mut out, seq, &[Some(value)]);
    }
    end(&mut out, seq);
    out
}

/// The reply to a point select.
pub fn one_row(format: RowFormat) -> Vec<u8> {
    rows(format, &[VALUE])
}

/// The reply to a write.
pub fn ok() -> Vec<u8> {
    let mut out = Vec::new();
    let ok = OkPacket {
        affected: 1,
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    };
    ok.write(&mut out, 1, CAPABILITIES);
    out
}

/// The reply to a prepare of a statement with one parameter, and with one column or none.
pub fn prepared(statement_id: u32, columns: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let ok = PrepareOk {
        statement_id,
        columns,
        params: 1,
        warnings: 0,
        metadata: None,
    };
    let mut seq = ok.write(&mut out, 1);
    for _ in 0..=columns {
        seq = column(&mut out, seq, TABLE);
    }
    out
}

/// A form of statement that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, read on the replica.
    TextRead,
    /// Text, written on the primary.
    TextWrite,
    /// Prepared, read on the replica.
    PreparedRead,
    /// Prepared, written on the primary.
    PreparedWrite,
}

impl Form {
    /// All of them. Executions name the statements that [`Form::prepares`] made, in that order.
    pub const ALL: [Self; 4] = [
        Self::TextRead,
        Self::TextWrite,
        Self::PreparedRead,
        Self::PreparedWrite,
    ];

    /// For reports and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::TextRead => "text-read",
            Self::TextWrite => "text-write",
            Self::PreparedRead => "prepared-read",
            Self::PreparedWrite => "prepared-write",
        }
    }

    /// What must be prepared on a session before its executions make sense: command and reply. The client's ids are 1 and 2.
    pub fn prepares() -> [(Vec<u8>, Vec<u8>); 2] {
        [
            (prepare(SELECT_PREPARED), prepared(SELECT_ID, 1)),
            (prepare(INSERT_PREPARED), prepared(INSERT_ID, 0)),
        ]
    }

    /// The client's bytes.
    pub fn command(self) -> Vec<u8> {
        match self {
            Self::TextRead => query(SELECT),
            Self::TextWrite => query(INSERT),
            Self::PreparedRead => execute(1, true),
            Self::PreparedWrite => execute(2, true),
        }
    }

    /// The server's.
    pub fn reply(self) -> Vec<u8> {
        match self {
            Self::TextRead => one_row(RowFormat::Text),
            Self::PreparedRead => one_row(RowFormat::Binary),
            Self::TextWrite | Self::PreparedWrite => ok(),
        }
    }

    /// What the server of a shard sends.
    pub fn reply_of_shard(self) -> Vec<u8> {
        match self {
            Self::TextRead => rows_of(SHARD, RowFormat::Text, &[VALUE]),
            Self::PreparedRead => rows_of(SHARD, RowFormat::Binary, &[VALUE]),
            Self::TextWrite | Self::PreparedWrite => self.reply(),
        }
    }

    /// Whether a replica is to run it.
    pub fn is_read(self) -> bool {
        matches!(self, Self::TextRead | Self::PreparedRead)
    }
}
