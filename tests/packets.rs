//! The protocol's packets, read and written by another implementation, the `mysql_common` crate.
//!
//! Not among the unit tests of `wire`: that crate brings trait implementations that make inference fail elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use mysql_common::Value;
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::misc::raw::{RawInt, int::LenEnc};
use mysql_common::packets;
use mysql_common::proto::{Binary, MyDeserialize, MySerialize, Text};
use mysql_common::row::RowDeserializer;
use mysql_common::value::ServerSide;

use atlas::wire::{
    Capabilities, ChangeUser, ColumnDef, ErrPacket, Execute, Greeting, HEADER_LEN, Login, OkPacket,
    Packets, PrepareOk, ResultSetWriter, RowFormat, Status,
};

const CAPS: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF);

fn their_caps(caps: Capabilities) -> CapabilityFlags {
    let base = caps.0 & u64::from(u32::MAX);
    CapabilityFlags::from_bits_truncate(u32::try_from(base).unwrap())
}

/// The payload of the one packet that `write` appends.
fn payload_of(write: impl FnOnce(&mut Vec<u8>) -> u8) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out.split_off(HEADER_LEN)
}

fn theirs<'a, T: MyDeserialize<'a>>(payload: &'a [u8], ctx: T::Ctx) -> T {
    ParseBuf(payload).parse(ctx).unwrap()
}

fn bytes(packet: &impl MySerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.serialize(&mut bytes);
    bytes
}

#[test]
fn greeting() {
    let greeting = Greeting {
        version: b"10.11.19-MariaDB",
        thread_id: 77,
        nonce: *b"abcdefghijklmnopqrst",
        capabilities: CAPS | Capabilities::MARIADB_CACHE_METADATA,
        charset: 45,
        status: Status::AUTOCOMMIT,
        plugin: b"mysql_native_password",
    };
    let payload = payload_of(|out| greeting.write(out, 0));
    let read: packets::HandshakePacket<'_> = theirs(&payload, ());
    assert_eq!(read.server_version_ref(), greeting.version);
    assert_eq!(read.connection_id(), 77);
    assert_eq!(read.nonce(), greeting.nonce);
    assert_eq!(read.capabilities(), their_caps(CAPS));
    assert_eq!(read.mariadb_ext_capabilities().bits(), 1 << 4);
    assert_eq!(read.auth_plugin_name_ref(), Some(greeting.plugin));
    assert_eq!(bytes(&read), payload);
}

#[test]
fn login() {
    let attributes = HashMap::from([("_os".to_owned(), "Linux".to_owned())]);
    for lenenc in [false, true] {
        let mut flags = their_caps(CAPS);
        flags.set(
            CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA,
            lenenc,
        );
        let written = bytes(&packets::HandshakeResponse::new(
            Some(&b"tttttttttttttttttttt"[..]),
            (8, 0, 0),
            Some(&b"app"[..]),
            Some(&b"test"[..]),
            Some(packets::AuthPlugin::CachingSha2Password),
            flags,
            Some(attributes.clone()),
            1 << 24,
        ));
        let login = Login::parse(&written).unwrap();
        assert_eq!((login.user, login.auth), (&b"app"[..], &[b't'; 20][..]));
        assert_eq!(login.schema, Some(&b"test"[..]));
        assert_eq!(login.plugin, Some(&b"caching_sha2_password"[..]));
        assert_eq!(login.attributes, b"\x03_os\x05Linux");
        assert_eq!((login.max_packet, login.charset), (1 << 24, 45));
        assert_eq!(payload_of(|out| login.write(out, 1)), written);
        let read: packets::HandshakeResponse<'_> = theirs(&written, ());
        assert_eq!(read.connect_attributes().as_ref(), Some(&attributes));
    }
}

#[test]
fn change_user() {
    let command = ChangeUser {
        user: b"app",
        auth: b"tttttttttttttttttttt",
        schema: b"test",
        charset: Some(45),
        plugin: Some(b"mysql_native_password"),
        attributes: b"\x03_os\x05Linux",
    };
    let payload = payload_of(|out| command.write(out, 0, CAPS));
    let read: packets::ComChangeUser<'_> = theirs(&payload, their_caps(CAPS));
    let more = packets::ComChangeUserMoreData::new(45)
        .with_auth_plugin(Some(packets::AuthPlugin::MysqlNativePassword))
        .with_connect_attributes(Some(HashMap::from([(
            "_os".to_owned(),
            "Linux".to_owned(),
        )])));
    let expected = packets::ComChangeUser::new()
        .with_user(Some(command.user))
        .with_auth_plugin_data(Some(command.auth))
        .with_database(Some(command.schema))
        .with_more_data(Some(more));
    assert_eq!(read, expected);
}

#[test]
fn ok_err_prepare() {
    let ok = OkPacket {
        affected: 300,
        insert_id: 1 << 40,
        status: Status::AUTOCOMMIT | Status::SESSION_STATE_CHANGED,
        warnings: 2,
        info: b"Records: 1",
        state: b"\x01\x05\x04test",
    };
    for caps in [CAPS, CAPS.without(Capabilities::SESSION_TRACK)] {
        let payload = payload_of(|out| ok.write(out, 1, caps));
        let read: packets::OkPacketDeserializer<'_, packets::CommonOkPacket> =
            theirs(&payload, their_caps(caps));
        let read = read.into_inner();
        assert_eq!(read.affected_rows(), ok.affected);
        assert_eq!(read.last_insert_id(), Some(ok.insert_id));
        assert_eq!(read.info_ref(), Some(ok.info));
        let tracks = caps.contains(Capabilities::SESSION_TRACK);
        assert_eq!(read.session_state_info_ref(), tracks.then_some(ok.state));
    }

    let err = ErrPacket {
        code: 1064,
        sqlstate: Some(*b"42000"),
        message: b"You have an error",
    };
    let payload = payload_of(|out| err.write(out, 1, CAPS));
    let read: packets::ErrPacket<'_> = theirs(&payload, their_caps(CAPS));
    let read = read.server_error();
    assert_eq!((read.error_code(), read.message_ref()), (1064, err.message));
    assert_eq!(
        read.sql_state_ref().map(packets::SqlState::as_bytes),
        Some(*b"42000")
    );

    let ok = PrepareOk {
        statement_id: 9,
        columns: 2,
        params: 3,
        warnings: 1,
        metadata: None,
    };
    let payload = payload_of(|out| ok.write(out, 1));
    assert_eq!(bytes(&theirs::<packets::StmtPacket>(&payload, ())), payload);
}

#[test]
fn execute() {
    let params = [
        Value::from(1_i64),
        Value::NULL,
        Value::from("text"),
        Value::from(1.5_f64),
        Value::Date(2026, 11, 29, 1, 2, 3, 0),
    ];
    for n in 0..params.len() {
        let (request, _) = packets::ComStmtExecuteRequestBuilder::new(5).build(&params[..n]);
        let payload = bytes(&request);
        let execute = Execute::parse(&payload, u16::try_from(n).unwrap(), CAPS).unwrap();
        assert_eq!((execute.statement_id, execute.iterations), (5, 1));
        if n > 0 {
            let flag_at = 10 + n.div_ceil(8);
            assert_eq!(execute.type_flag_at, Some(flag_at));
            assert_eq!(execute.types, Some(flag_at + 1..flag_at + 1 + 2 * n));
        }
    }
}

#[test]
fn result_set() {
    let names: Vec<Vec<u8>> = (0..9).map(|n| format!("column {n}").into_bytes()).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let long = [b'x'; 300];
    let row = [
        Some(&b"one"[..]),
        None,
        Some(b""),
        Some(&long),
        None,
        None,
        Some(b"7"),
        None,
        Some(b"last"),
    ];
    let expected: Vec<Value> = row
        .iter()
        .map(|value| value.map_or(Value::NULL, |bytes| Value::Bytes(bytes.to_vec())))
        .collect();
    for format in [RowFormat::Text, RowFormat::Binary] {
        let mut out = Vec::new();
        let mut writer =
            ResultSetWriter::begin(&mut out, 1, CAPS, Status::AUTOCOMMIT, format, &names);
        writer.row(&row);
        assert_eq!(writer.finish(), 13);
        let payloads: Vec<&[u8]> = Packets::new(&out).map(|(_, payload)| payload).collect();
        assert_eq!(theirs::<RawInt<LenEnc>>(payloads[0], ()).0, 9);
        let columns: Arc<[packets::Column]> = payloads[1..10]
            .iter()
            .map(|payload| theirs(payload, ()))
            .collect();
        for (column, name) in columns.iter().zip(&names) {
            assert_eq!(column.name_ref(), *name);
            assert_eq!(column.column_type() as u8, ColumnDef::VAR_STRING);
            assert_eq!(column.character_set(), 45);
        }
        let values = match format {
            RowFormat::Text => theirs::<RowDeserializer<ServerSide, Text>>(payloads[10], columns)
                .into_inner()
                .unwrap(),
            RowFormat::Binary => {
                theirs::<RowDeserializer<ServerSide, Binary>>(payloads[10], columns)
                    .into_inner()
                    .unwrap()
            }
        };
        assert_eq!(values, expected);
        let end: packets::OkPacketDeserializer<'_, packets::ResultSetTerminator> =
            theirs(payloads[11], their_caps(CAPS));
        assert_eq!(end.into_inner().status_flags().bits(), Status::AUTOCOMMIT.0);
    }
}
