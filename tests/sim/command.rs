//! The commands that clients send: their bytes, and what has to be remembered to judge the reply.

use std::collections::VecDeque;

use atlas::wire::{Capabilities, ChangeUser, PacketWriter, write_payload};

use crate::reply::Want;

/// A command that was sent and is not answered yet.
#[derive(Debug, Clone)]
pub struct Sent {
    pub kind: Kind,
    pub want: Want,
    /// Tags of its statements.
    pub tags: Vec<u32>,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Text(Vec<u8>),
    InitDb(String),
    FieldList(String),
    SetOption(bool),
    Reset,
    Ping,
    Statistics,
    ProcessInfo,
    Debug,
    /// A command byte that no server knows.
    Unknown,
    /// A packet without a command byte.
    Empty,
    Prepare(Vec<u8>),
    /// The payload behind the command byte; ids are the client's.
    Execute(u32, Vec<u8>),
    LongData(u32, u16, Vec<u8>),
    Close(u32),
    StmtReset(u32),
    Fetch(u32, u32),
    ChangeUser {
        password_is_right: bool,
        schema: Option<String>,
        charset: u16,
    },
    /// Another client, by its place among the clients.
    Kill(usize),
    /// SHOW LAST ROUTE.
    LastRoute,
    /// EXPLAIN ROUTE of a read.
    ExplainRoute,
}

/// Commands in the making: bytes to be written at once, and what is remembered of each.
#[derive(Debug, Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub sent: VecDeque<Sent>,
}

impl Batch {
    fn add(&mut self, payload: &[u8], kind: Kind, want: Want, tags: Vec<u32>) {
        write_payload(&mut self.bytes, 0, payload);
        self.sent.push_back(Sent { kind, want, tags });
    }

    /// A COM_QUERY, with query attributes where the connection has them.
    pub fn text(&mut self, caps: Capabilities, text: &[u8], tags: Vec<u32>, attribute: bool) {
        let mut payload = vec![3];
        if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
            if attribute {
                payload.extend_from_slice(b"\x01\x01\x00\x01\xfe\x00\x04name\x05value");
            } else {
                payload.extend_from_slice(&[0, 1]);
            }
        }
        payload.extend_from_slice(text);
        let want = Want::Response { binary: false };
        self.add(&payload, Kind::Text(text.to_vec()), want, tags);
    }

    /// A statement that Atlas answers itself.
    pub fn local(&mut self, caps: Capabilities, text: &[u8], kind: Kind) {
        let mut payload = vec![3];
        if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
            payload.extend_from_slice(&[0, 1]);
        }
        payload.extend_from_slice(text);
        self.add(&payload, kind, Want::Response { binary: false }, Vec::new());
    }

    pub fn simple(&mut self, kind: Kind) {
        let (payload, want) = match &kind {
            Kind::InitDb(name) => ([b"\x02", name.as_bytes()].concat(), Want::Terminal),
            Kind::FieldList(table) => {
                ([b"\x04", table.as_bytes(), b"\0"].concat(), Want::FieldList)
            }
            Kind::SetOption(on) => (vec![0x1b, u8::from(!on), 0], Want::Terminal),
            Kind::Reset => (vec![0x1f], Want::Terminal),
            Kind::Ping => (vec![0x0e], Want::Terminal),
            Kind::Statistics => (vec![0x09], Want::Single),
            Kind::ProcessInfo => (vec![0x0a], Want::Response { binary: false }),
            Kind::Debug => (vec![0x0d], Want::Terminal),
            Kind::Unknown => (vec![0x7f, 1, 2, 3], Want::Terminal),
            Kind::Empty => (Vec::new(), Want::Terminal),
            Kind::Close(id) => ([&[0x19][..], &id.to_le_bytes()].concat(), Want::Nothing),
            Kind::StmtReset(id) => ([&[0x1a][..], &id.to_le_bytes()].concat(), Want::Terminal),
            Kind::Fetch(id, rows) => (
                [&[0x1c][..], &id.to_le_bytes(), &rows.to_le_bytes()].concat(),
                Want::Fetch,
            ),
            Kind::LongData(id, parameter, data) => (
                [
                    &[0x18][..],
                    &id.to_le_bytes(),
                    &parameter.to_le_bytes(),
                    data,
                ]
                .concat(),
                Want::Nothing,
            ),
            other => panic!("{other:?} is not simple"),
        };
        self.add(&payload, kind, want, Vec::new());
    }

    pub fn prepare(&mut self, text: &[u8], tag: u32) {
        let payload = [b"\x16", text].concat();
        self.add(
            &payload,
            Kind::Prepare(text.to_vec()),
            Want::Prepare,
            vec![tag],
        );
    }

    pub fn execute(&mut self, id: u32, body: Vec<u8>, tag: u32) {
        let payload = [b"\x17", &body[..]].concat();
        let want = Want::Response { binary: true };
        self.add(&payload, Kind::Execute(id, body), want, vec![tag]);
    }

    pub fn kill(&mut self, place: usize, id: u32) {
        let payload = [&[0x0c][..], &id.to_le_bytes()].concat();
        self.add(&payload, Kind::Kill(place), Want::Terminal, Vec::new());
    }

    pub fn change_user(&mut self, caps: Capabilities, user: &str, plugin: &str, kind: Kind) {
        let Kind::ChangeUser {
            schema, charset, ..
        } = &kind
        else {
            panic!("{kind:?} is no change of user");
        };
        let packet = ChangeUser {
            user: user.as_bytes(),
            // A scramble of nothing in particular: servers ask again.
            auth: &[1; 20],
            schema: schema.as_deref().unwrap_or("").as_bytes(),
            charset: Some(*charset),
            plugin: Some(plugin.as_bytes()),
            attributes: &[],
        };
        packet.write(&mut self.bytes, 0, caps);
        self.sent.push_back(Sent {
            kind,
            want: Want::Login,
            tags: Vec::new(),
        });
    }
}

/// The body of a COM_STMT_EXECUTE (behind the command byte).
pub fn execute_body(
    caps: Capabilities,
    id: u32,
    flags: u8,
    parameters: &[Parameter],
    with_types: bool,
) -> Vec<u8> {
    let named = caps.contains(Capabilities::QUERY_ATTRIBUTES);
    let mut packet = Vec::new();
    let mut w = PacketWriter::begin(&mut packet, 0);
    w.u32(id);
    w.u8(flags);
    w.u32(1);
    if !parameters.is_empty() {
        if named {
            w.lenenc(parameters.len() as u64);
        }
        let mut nulls = vec![0_u8; parameters.len().div_ceil(8)];
        for (index, parameter) in parameters.iter().enumerate() {
            if matches!(parameter, Parameter::Null) {
                nulls[index / 8] |= 1 << (index % 8);
            }
        }
        w.bytes(&nulls);
        w.u8(u8::from(with_types));
        if with_types {
            for parameter in parameters {
                let kind = match parameter {
                    Parameter::Number(_) => 8,
                    Parameter::Text(_) | Parameter::Long | Parameter::Null => 0xfd,
                };
                w.u16(kind);
                if named {
                    w.lenenc_bytes(b"");
                }
            }
        }
        for parameter in parameters {
            match parameter {
                Parameter::Number(number) => w.u64(*number),
                Parameter::Text(text) => w.lenenc_bytes(text.as_bytes()),
                Parameter::Long | Parameter::Null => {}
            }
        }
    }
    w.finish();
    packet.split_off(4)
}

/// A value for a marker.
#[derive(Debug, Clone)]
pub enum Parameter {
    Number(u64),
    Text(String),
    /// Sent before as long data.
    Long,
    Null,
}
