//! Properties: what is written reads back the same, and no bytes make a parser panic.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::payload_of;
use crate::wire::{
    AuthMore, AuthSwitch, Capabilities, ChangeUser, ColumnCount, ColumnDef, EofPacket, ErrPacket,
    Execute, Greeting, Header, Login, MAX_PAYLOAD, OkPacket, Packets, PrepareOk, RowFormat,
    SslRequest, Status, TextRow, query_text, write_payload,
};

/// Capabilities as they can be on the wire: extended ones only with a clear `LONG_PASSWORD`.
fn capabilities() -> impl Strategy<Value = Capabilities> {
    (any::<u32>(), any::<u32>())
        .prop_map(|(base, extended)| Capabilities::from_words(base, extended))
}

fn negotiated() -> impl Strategy<Value = Capabilities> {
    capabilities()
        .prop_map(|caps| caps | Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION)
}

/// What can stand before a zero byte; now and then longer than a length byte can say.
fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(1..=u8::MAX, 0..40)
}

fn blob() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 245..260)]
}

/// Bytes that look like a packet more often than random ones: a real one, some bytes changed, cut anywhere.
fn mutated(packet: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let len = packet.len();
    (vec((0..len, any::<u8>()), 0..6), 0..=len).prop_map(move |(changes, cut)| {
        let mut packet = packet.clone();
        for (at, byte) in changes {
            packet[at] = byte;
        }
        packet.truncate(cut);
        packet
    })
}

fn some_packet() -> impl Strategy<Value = Vec<u8>> {
    let login = Login {
        capabilities: Capabilities(0xffff_ffff),
        max_packet: 1,
        charset: 45,
        user: b"app",
        auth: &[b't'; 32],
        schema: Some(b"test"),
        plugin: Some(b"caching_sha2_password"),
        attributes: b"\x02ab\x02cd",
        zstd_level: Some(3),
    };
    let login = payload_of(|out| login.write(out, 1));
    let ok =
        b"\x00\xfc\x01\x01\x02\x02\x40\x00\x00\x02hi\x0b\x00\x04\x01a\x01b\x01\x03\x02xy".to_vec();
    let query = b"\x03\x02\x01\x02\x01\xfe\x00\x01n\x08\x80\x01m\x03abcDO 1".to_vec();
    let execute =
        b"\x17\x01\0\0\0\x08\x01\0\0\0\x01\x00\x01\x08\x00\x01n\x01\0\0\0\0\0\0\0".to_vec();
    let column = b"\x03def\x01s\x01t\x01o\x01n\x01p\x00\x0c-\0\x01\0\0\0\xfd\0\0\x1f\0\0".to_vec();
    prop_oneof![
        vec(any::<u8>(), 0..80),
        mutated(login),
        mutated(ok),
        mutated(query),
        mutated(execute),
        mutated(column),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every parser takes any bytes, and ranges that it gives lie inside the payload.
    #[test]
    fn nothing_panics(bytes in some_packet(), caps in capabilities(), n_params in 0_u16..20) {
        let _ = Header::parse(&bytes);
        let _ = Greeting::parse(&bytes);
        let _ = SslRequest::parse(&bytes);
        let _ = Login::parse(&bytes);
        let _ = ChangeUser::parse(&bytes, caps);
        let _ = AuthSwitch::parse(&bytes).map(|switch| switch.nonce().len());
        let _ = AuthMore::parse(&bytes);
        let _ = OkPacket::parse(&bytes, caps).map(|ok| ok.changes().count());
        let _ = ErrPacket::parse(&bytes);
        let _ = EofPacket::parse(&bytes);
        let _ = ColumnCount::parse(&bytes, caps);
        let _ = ColumnDef::parse(&bytes, caps);
        let _ = PrepareOk::parse(&bytes);
        let _ = TextRow::new(&bytes).count();
        let _ = Packets::new(&bytes).count();
        if let Ok(text) = query_text(&bytes, caps) {
            prop_assert!(bytes.get(text).is_some());
        }
        if let Ok(execute) = Execute::parse(&bytes, n_params, caps) {
            prop_assert!(execute.values_at <= bytes.len());
            prop_assert_eq!(execute.type_flag_at.is_some_and(|at| at >= bytes.len()), false);
            prop_assert!(execute.types.is_none_or(|types| types.end == execute.values_at));
        }
    }

    #[test]
    fn login(
        caps in capabilities(),
        (max_packet, charset, zstd_level) in (any::<u32>(), any::<u8>(), option::of(any::<u8>())),
        (user, auth, schema) in (name(), blob(), option::of(name())),
        (plugin, attributes) in (option::of(name()), blob()),
    ) {
        let login = Login {
            capabilities: caps,
            max_packet,
            charset: u16::from(charset),
            user: &user,
            auth: &auth,
            schema: schema.as_deref(),
            plugin: plugin.as_deref(),
            attributes: &attributes,
            zstd_level,
        };
        let payload = payload_of(|out| login.write(out, 1));
        let read = Login::parse(&payload).unwrap();
        let flags = Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
            | Capabilities::CONNECT_WITH_DB
            | Capabilities::PLUGIN_AUTH
            | Capabilities::CONNECT_ATTRS
            | Capabilities::ZSTD_COMPRESSION_ALGORITHM;
        prop_assert_eq!(read.capabilities.without(flags), caps.without(flags));
        let schema = login.schema.filter(|name| !name.is_empty());
        prop_assert_eq!(read, Login { capabilities: read.capabilities, schema, ..login });
    }

    #[test]
    fn greeting(
        (version, plugin) in (name(), name()),
        (thread_id, nonce, caps) in (any::<u32>(), any::<[u8; 20]>(), negotiated()),
        (charset, status) in (any::<u8>(), any::<u16>()),
    ) {
        let capabilities = caps | Capabilities::PLUGIN_AUTH;
        let greeting = Greeting {
            version: &version, thread_id, nonce, capabilities, charset, status: Status(status), plugin: &plugin,
        };
        let payload = payload_of(|out| greeting.write(out, 0));
        prop_assert_eq!(Greeting::parse(&payload), Ok(greeting));
    }

    #[test]
    fn change_user(
        caps in negotiated(),
        (user, auth, schema) in (name(), vec(any::<u8>(), 0..=255), name()),
        (charset, plugin, attributes) in (any::<u16>(), name(), blob()),
    ) {
        let has = |flag| caps.contains(flag);
        let command = ChangeUser {
            user: &user,
            auth: &auth,
            schema: &schema,
            charset: Some(charset),
            plugin: has(Capabilities::PLUGIN_AUTH).then_some(&plugin[..]),
            attributes: if has(Capabilities::CONNECT_ATTRS) { &attributes } else { b"" },
        };
        let payload = payload_of(|out| command.write(out, 0, caps));
        prop_assert_eq!(ChangeUser::parse(&payload, caps), Ok(command));
    }

    #[test]
    fn auth(plugin in name(), data in blob()) {
        let switch = AuthSwitch { plugin: &plugin, data: &data };
        let payload = payload_of(|out| switch.write(out, 2));
        prop_assert_eq!(AuthSwitch::parse(&payload), Ok(switch));
        let payload = payload_of(|out| AuthMore(&data).write(out, 2));
        prop_assert_eq!(AuthMore::parse(&payload), Ok(AuthMore(&data)));
    }

    #[test]
    fn ok(
        caps in negotiated(),
        (affected, insert_id, status, warnings) in (any::<u64>(), any::<u64>(), any::<u16>(), any::<u16>()),
        (info, state) in (blob(), blob()),
    ) {
        let has_state = caps.contains(Capabilities::SESSION_TRACK) && !state.is_empty();
        let mut ok = OkPacket {
            affected, insert_id, status: Status(status), warnings, info: &info, state: &state,
        };
        let payload = payload_of(|out| ok.write(out, 1, caps));
        let end = payload_of(|out| ok.write_end(out, 1, caps));
        ok.status = ok.status.without(Status::SESSION_STATE_CHANGED);
        if has_state {
            ok.status = ok.status | Status::SESSION_STATE_CHANGED;
        } else {
            ok.state = b"";
        }
        prop_assert_eq!(OkPacket::parse(&payload, caps), Ok(ok));
        prop_assert_eq!(end[0], 0xfe);
        prop_assert_eq!(OkPacket::parse(&end, caps), Ok(ok));
    }

    #[test]
    fn err(code in any::<u16>(), state in option::of(any::<[u8; 5]>()), message in blob()) {
        let is_plain = state.is_none() && message.first() == Some(&b'#');
        prop_assume!(code != ErrPacket::PROGRESS && !is_plain);
        let err = ErrPacket { code, sqlstate: state, message: &message };
        let payload = payload_of(|out| err.write(out, 1, Capabilities::PROTOCOL_41));
        prop_assert_eq!(ErrPacket::parse(&payload), Ok(err));
    }

    #[test]
    fn column(
        caps in capabilities(),
        names in proptest::array::uniform5(blob()),
        extended in blob(),
        (charset, length, kind, flags, decimals) in any::<(u16, u32, u8, u16, u8)>(),
    ) {
        let [schema, table, org_table, name, org_name] = &names;
        let has_extended = caps.contains(Capabilities::MARIADB_EXTENDED_METADATA);
        let column = ColumnDef {
            schema, table, org_table, name, org_name,
            extended: if has_extended { &extended } else { b"" },
            charset, length, kind, flags, decimals,
        };
        let payload = payload_of(|out| column.write(out, 1, caps));
        prop_assert_eq!(ColumnDef::parse(&payload, caps), Ok(column));
    }

    #[test]
    fn text_row(values in vec(option::of(blob()), 1..10)) {
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        let payload = payload_of(|out| RowFormat::Text.write_row(out, 1, &values));
        let read: Result<Vec<_>, _> = TextRow::new(&payload).collect();
        prop_assert_eq!(read, Ok(values));
    }

    #[test]
    fn header(len in 0..=MAX_PAYLOAD, seq in any::<u8>()) {
        let header = Header { len, seq };
        prop_assert_eq!(Header::parse(&header.to_bytes()), Some(header));
    }

    /// Packets come back whole however much of the stream is there.
    #[test]
    fn packets(payloads in vec(blob(), 0..6), seq in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut stream = Vec::new();
        let mut next = seq;
        let mut ends = vec![0];
        for payload in &payloads {
            next = write_payload(&mut stream, next, payload);
            ends.push(stream.len());
        }
        let cut = cut.index(stream.len() + 1);
        let n_whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
        let mut packets = Packets::new(&stream[..cut]);
        let walked: Vec<&[u8]> = packets.by_ref().map(|(_, payload)| payload).collect();
        prop_assert_eq!(&walked, &payloads[..n_whole]);
        prop_assert_eq!(packets.rest(), &stream[ends[n_whole]..cut]);
    }
}
