//! Log-ins at their edges. B136, B142 and B146 name cases of real proxies that failed here; what is right was measured on
//! MySQL 9.7 and MariaDB 10.11 by sending the same bytes.

use super::{hex, payload_of};
use crate::wire::{Capabilities, ChangeUser, Login, Malformed, SslRequest};

const BASE: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::LONG_PASSWORD)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH);
const LENENC: Capabilities = BASE.union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA);
const NATIVE: &[u8] = b"mysql_native_password\0";

/// The 32 bytes before the user name.
fn head(caps: Capabilities) -> Vec<u8> {
    let [a, b, c, d, e, f, g, h] = caps.0.to_le_bytes();
    let mut head = vec![a, b, c, d, 0, 0, 0, 1, 33];
    head.extend([0; 19]);
    head.extend([e, f, g, h]);
    head
}

fn packet(caps: Capabilities, fields: &[&[u8]]) -> Vec<u8> {
    [head(caps), fields.concat()].concat()
}

fn lenenc(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    let [a, b, c, ..] = len.to_le_bytes();
    let head = match len {
        0..=250 => vec![a],
        251..=0xffff => vec![0xfc, a, b],
        _ => vec![0xfd, a, b, c],
    };
    [head, bytes.to_vec()].concat()
}

/// libmariadb 3.3.20 to a MariaDB server, as seen on the wire.
#[test]
fn the_mariadb_command_line() {
    let payload = hex(
        "8ca2bf00 00000010 21 00000000000000000000000000000000000000 1d000000 61707000 \
                       14 3f53612b9e338a49af79181ef415cf5fcce9c82d 73627465737400 \
                       6d7973716c5f6e61746976655f70617373776f726400 \
                       7e 035f6f73054c696e7578 0c5f636c69656e745f6e616d650a6c69626d617269616462 \
                       045f70696404373031340f5f636c69656e745f76657273696f6e06332e332e3230 \
                       095f706c6174666f726d067838365f3634 0c70726f6772616d5f6e616d65056d7973716c \
                       0c5f7365727665725f686f7374093132372e302e302e31",
    );
    let login = Login::parse(&payload).unwrap();
    assert_eq!(login.capabilities, Capabilities(0x1d_00bf_a28c));
    assert_eq!((login.max_packet, login.charset), (0x1000_0000, 33));
    assert_eq!((login.user, login.auth.len()), (&b"app"[..], 20));
    assert_eq!(login.schema, Some(&b"sbtest"[..]));
    assert_eq!(login.plugin, Some(&b"mysql_native_password"[..]));
    assert!(login.attributes.starts_with(b"\x03_os\x05Linux"));
    assert_eq!(login.attributes.len(), 0x7e);
    assert_eq!(payload_of(|out| login.write(out, 1)), payload);
}

/// libmysqlclient 9.7.4 with an empty password, and its TLS request.
#[test]
fn the_mysql_command_line() {
    let fixed = "8da2bf19 00000001 ff 0000000000000000000000000000000000000000000000";
    let payload = hex(&format!(
        "{fixed} 61707000 00 73627465737400 63616368696e675f736861325f70617373776f726400 \
         71 045f706964043730313509 5f706c6174666f726d067838365f3634 035f6f73054c696e7578 \
         0c5f636c69656e745f6e616d65086c69626d7973716c 076f735f7573657204726f6f74 \
         0f5f636c69656e745f76657273696f6e05392e372e34 0c70726f6772616d5f6e616d65056d7973716c"
    ));
    let login = Login::parse(&payload).unwrap();
    assert_eq!((login.auth, login.charset), (&b""[..], 255));
    assert_eq!(login.plugin, Some(&b"caching_sha2_password"[..]));
    assert_eq!(login.attributes.len(), 0x71);
    assert_eq!(payload_of(|out| login.write(out, 1)), payload);

    let request = hex("8daabf19 00000001 ff 0000000000000000000000000000000000000000000000");
    let parsed = SslRequest::parse(&request).unwrap();
    assert_eq!(parsed.capabilities, login.capabilities | Capabilities::SSL);
    assert_eq!(payload_of(|out| parsed.write(out, 1)), request);
}

#[test]
fn every_field() {
    let caps = LENENC
        | Capabilities::CONNECT_WITH_DB
        | Capabilities::CONNECT_ATTRS
        | Capabilities::ZSTD_COMPRESSION_ALGORITHM;
    let payload = packet(
        caps,
        &[
            b"app\0",
            b"\x03abc",
            b"sbtest\0",
            NATIVE,
            b"\x06\x02ab\x02cd",
            b"\x03",
        ],
    );
    let login = Login::parse(&payload).unwrap();
    assert_eq!(
        login,
        Login {
            capabilities: caps,
            max_packet: 1 << 24,
            charset: 33,
            user: b"app",
            auth: b"abc",
            schema: Some(b"sbtest"),
            plugin: Some(b"mysql_native_password"),
            attributes: b"\x02ab\x02cd",
            zstd_level: Some(3),
        }
    );
    assert_eq!(payload_of(|out| login.write(out, 1)), payload);
}

#[test]
fn b136_tokens_and_plugin_names() {
    const SHA2: &[u8] = b"caching_sha2_password\0";
    for len in [0_u8, 1, 32, 255] {
        let token = vec![b't'; usize::from(len)];
        let payload = packet(BASE, &[b"u\0", &[len], &token, SHA2]);
        let login = Login::parse(&payload).unwrap();
        assert_eq!(login.auth, token);
        assert_eq!(login.plugin, Some(&b"caching_sha2_password"[..]));
    }
    // No name, an empty name, a name without its end: to be answered by a switch, not by an error.
    for (name, plugin) in [(&b""[..], &b""[..]), (b"\0", b""), (b"mysql_n", b"mysql_n")] {
        let payload = packet(BASE, &[b"u\0\0", name]);
        assert_eq!(Login::parse(&payload).unwrap().plugin, Some(plugin));
    }
    // No user at all.
    let payload = packet(BASE, &[b"\0\0", NATIVE]);
    assert_eq!(Login::parse(&payload).unwrap().user, b"");
}

/// What MySQL 9.7 and MariaDB 10.11 take of a log-in that ends early, as the name of the field in which the cut may lie.
#[test]
fn b142_cut_anywhere() {
    let db = Capabilities::CONNECT_WITH_DB;
    let attrs = Capabilities::CONNECT_ATTRS;
    let plain = BASE.without(Capabilities::PLUGIN_AUTH);
    let user: (&str, &[u8]) = ("user", b"app\0");
    let token: (&str, &[u8]) = ("token", b"\x14ttttttttttttttttttttt");
    let schema: (&str, &[u8]) = ("schema", b"test\0");
    let plugin: (&str, &[u8]) = ("plugin", NATIVE);
    let attributes: (&str, &[u8]) = ("attributes", b"\x06\x02ab\x02cd");
    let token = (token.0, &token.1[..21]);
    for (caps, fields, may_end_in) in [
        (plain, vec![user, token], vec![]),
        (plain | db, vec![user, token, schema], vec!["schema"]),
        (BASE, vec![user, token, plugin], vec!["plugin"]),
        (
            BASE | db,
            vec![user, token, schema, plugin],
            vec!["schema", "plugin"],
        ),
        (BASE | attrs, vec![user, token, plugin, attributes], vec![]),
        (
            plain | db | attrs,
            vec![user, token, schema, attributes],
            vec![],
        ),
        (
            BASE | db | attrs,
            vec![user, token, schema, plugin, attributes],
            vec![],
        ),
    ] {
        let bytes: Vec<&[u8]> = fields.iter().map(|field| field.1).collect();
        let whole = packet(caps, &bytes);
        assert!(Login::parse(&whole).is_ok());
        let mut start = 32;
        for (name, bytes) in fields {
            for cut in start..start + bytes.len() {
                // The plugin's name may be missing altogether; the schema's may not.
                let may_end = may_end_in.contains(&name) && (cut > start || name == "plugin");
                let login = Login::parse(&whole[..cut]);
                assert_eq!(login.is_ok(), may_end, "{caps:x?} {name} cut at {cut}");
            }
            start += bytes.len();
        }
        for cut in 0..32 {
            assert!(Login::parse(&whole[..cut]).is_err());
        }
    }
}

#[test]
fn b142_lengths_that_lie() {
    let refused = |payload: &[u8]| Login::parse(payload).unwrap_err().field;
    assert_eq!(refused(&packet(BASE, &[b"app\0\xff", NATIVE])), "token");
    assert_eq!(
        refused(&packet(LENENC, &[b"app\0\xfc\x00\x01", NATIVE])),
        "token"
    );
    assert_eq!(refused(&packet(LENENC, &[b"app\0\xfb", NATIVE])), "token");
    assert_eq!(refused(&packet(LENENC, &[b"app\0\xff", NATIVE])), "token");
    let huge = [&b"app\0\xfe"[..], &[0xff; 8], NATIVE].concat();
    assert_eq!(refused(&packet(LENENC, &[&huge])), "token");
    let attrs = BASE | Capabilities::CONNECT_ATTRS;
    for lie in [&b"\x09\x01a\x01b"[..], b"\xfb", b"\xff", b"\xfc\x01"] {
        assert_eq!(
            refused(&packet(attrs, &[b"app\0\0", NATIVE, lie])),
            "connection attributes"
        );
    }
    // A user of 1 MB is a user; how much is read is the reader's limit.
    let long = vec![b'u'; 1 << 20];
    let payload = packet(BASE, &[&long, b"\0\0", NATIVE]);
    assert_eq!(Login::parse(&payload).unwrap().user.len(), 1 << 20);
}

#[test]
fn b142_short_payloads() {
    for payload in [
        &b""[..],
        b"\x01",
        b"\x00\x02",
        &hex("0182 0800"),
        &head(BASE)[..31],
        &head(BASE),
    ] {
        assert!(Login::parse(payload).is_err());
        assert!(SslRequest::parse(payload).is_err());
        assert!(!Login::is_pre_41(payload));
    }
}

#[test]
fn tls_requests_go_by_the_flag() {
    let caps = BASE | Capabilities::SSL;
    let request = SslRequest {
        capabilities: caps,
        max_packet: 1 << 24,
        charset: 33,
    };
    assert_eq!(SslRequest::parse(&head(caps)), Ok(request));
    assert_eq!(payload_of(|out| request.write(out, 1)), head(caps));
    let longer = packet(caps, &[b"app\0\0", NATIVE]);
    assert_eq!(SslRequest::parse(&longer), Ok(request));
    let flags_only = SslRequest::parse(&head(caps)[..4]).unwrap();
    assert_eq!(flags_only.capabilities, caps);
    assert!(SslRequest::parse(&head(caps)[..5]).is_err());
    let pre_41 = caps.without(Capabilities::PROTOCOL_41);
    assert!(SslRequest::parse(&head(pre_41)).is_err());
}

#[test]
fn b146_length_coded_tokens() {
    for len in [0, 20, 250, 251, 256, 70_000] {
        let token = vec![b't'; len];
        let payload = packet(LENENC, &[b"app\0", &lenenc(&token), NATIVE]);
        let login = Login::parse(&payload).unwrap();
        assert_eq!(login.auth, token);
        assert_eq!(login.plugin, Some(&b"mysql_native_password"[..]));
        assert_eq!(payload_of(|out| login.write(out, 1)), payload);
    }
    // The longer form of a short length.
    let payload = packet(LENENC, &[b"app\0\xfc\x02\x00ab", NATIVE]);
    assert_eq!(Login::parse(&payload).unwrap().auth, b"ab");
}

#[test]
fn b146_connection_attributes() {
    let caps = BASE | Capabilities::CONNECT_ATTRS | Capabilities::ZSTD_COMPRESSION_ALGORITHM;
    for len in [0, 250, 251, 70_000] {
        let attributes = vec![b'a'; len];
        let payload = packet(caps, &[b"app\0\0", NATIVE, &lenenc(&attributes), b"\x07"]);
        let login = Login::parse(&payload).unwrap();
        assert_eq!(login.attributes, attributes);
        assert_eq!(login.plugin, Some(&b"mysql_native_password"[..]));
        assert_eq!(login.zstd_level, Some(7));
    }
}

#[test]
fn b146_unknown_flags_and_trailing_bytes() {
    let unknown = Capabilities::CAPABILITY_EXTENSION
        | Capabilities::SSL_VERIFY_SERVER_CERT
        | Capabilities::REMEMBER_OPTIONS;
    let payload = packet(BASE | unknown, &[b"app\0\0", NATIVE, b"junk"]);
    let login = Login::parse(&payload).unwrap();
    assert_eq!(login.capabilities, BASE | unknown);
    assert_eq!(login.plugin, Some(&b"mysql_native_password"[..]));
}

#[test]
fn b146_an_empty_schema_is_none_and_the_character_set_is_one_byte() {
    let payload = packet(
        BASE | Capabilities::CONNECT_WITH_DB,
        &[b"app\0\0\0", NATIVE],
    );
    assert_eq!(Login::parse(&payload).unwrap().schema, None);
    for (bytes, charset) in [([0, 0], 0), ([255, 0], 255), ([33, 1], 33)] {
        let mut payload = packet(BASE, &[b"app\0\0", NATIVE]);
        payload[8..10].copy_from_slice(&bytes);
        assert_eq!(Login::parse(&payload).unwrap().charset, charset);
    }
}

#[test]
fn extended_capabilities_are_mariadb_clients_only() {
    let extended = Capabilities::MARIADB_CACHE_METADATA;
    let payload = packet(BASE | extended, &[b"app\0\0", NATIVE]);
    assert_eq!(Login::parse(&payload).unwrap().capabilities, BASE);
    let mariadb = BASE.without(Capabilities::LONG_PASSWORD) | extended;
    let payload = packet(mariadb, &[b"app\0\0", NATIVE]);
    let login = Login::parse(&payload).unwrap();
    assert_eq!(login.capabilities, mariadb);
    assert_eq!(payload_of(|out| login.write(out, 1)), payload);
}

#[test]
fn clients_without_plugins_or_the_long_nonce() {
    let no_plugin = BASE.without(Capabilities::PLUGIN_AUTH);
    let login = packet(no_plugin, &[b"app\0\x02ab"]);
    let login = Login::parse(&login).unwrap();
    assert_eq!((login.auth, login.plugin), (&b"ab"[..], None));

    let no_nonce = no_plugin.without(Capabilities::SECURE_CONNECTION);
    for (token, auth) in [
        (&b""[..], &b""[..]),
        (b"\0", b""),
        (b"abcdefgh\0", b"abcdefgh"),
        (b"abcdefgh", b"abcdefgh"),
    ] {
        let payload = packet(no_nonce, &[b"app\0", token]);
        assert_eq!(Login::parse(&payload).unwrap().auth, auth);
    }
}

#[test]
fn clients_before_4_1() {
    for (payload, is_pre_41) in [
        (&b"\x01\x00\xff\xff\xffapp\0"[..], true),
        (b"\x01\x80\xff\xff\xffapp\0xxxxxxxx", true),
        (b"\x01\x00\xff\xff\xff", false),
        (b"\x01\x00", false),
    ] {
        assert_eq!(Login::is_pre_41(payload), is_pre_41);
        assert!(Login::parse(payload).is_err());
    }
    let payload = packet(BASE.without(Capabilities::PROTOCOL_41), &[b"app\0\0"]);
    assert!(Login::is_pre_41(&payload));
    assert_eq!(Login::parse(&payload).unwrap_err().field, "capabilities");
}

/// A token too long for its length byte, and fields without their flags.
#[test]
fn writing_sets_the_flags_of_the_fields() {
    let token = [b't'; 256];
    let login = Login {
        capabilities: Capabilities::CONNECT_ATTRS,
        max_packet: 1,
        charset: 45,
        user: b"app",
        auth: &token,
        schema: Some(b"s"),
        plugin: Some(b"p"),
        attributes: b"",
        zstd_level: None,
    };
    let payload = payload_of(|out| login.write(out, 1));
    let expected = Login {
        capabilities: Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
            | Capabilities::CONNECT_WITH_DB
            | Capabilities::PLUGIN_AUTH,
        ..login
    };
    assert_eq!(Login::parse(&payload), Ok(expected));
}

/// As both servers have it: nothing that the capabilities announce may be missing; the last string may lack its end (MariaDB).
#[test]
fn change_user_cut_anywhere() {
    let attrs = Capabilities::CONNECT_ATTRS;
    let plain = BASE.without(Capabilities::PLUGIN_AUTH);
    let fields: [(&str, &[u8]); 6] = [
        ("user", b"\x11app\0"),
        ("token", b"\x02ab"),
        ("schema", b"test\0"),
        ("charset", b"\x21\x00"),
        ("plugin", NATIVE),
        ("attributes", b"\x06\x02ab\x02cd"),
    ];
    for (caps, n_fields, may_end_in) in [
        (plain, 4, &["schema", "charset"][..]),
        (BASE, 5, &["plugin"]),
        (BASE | attrs, 6, &[]),
    ] {
        let whole: Vec<u8> = fields[..n_fields]
            .iter()
            .flat_map(|f| f.1)
            .copied()
            .collect();
        let parse = |payload| ChangeUser::parse(payload, caps);
        assert!(parse(&whole).is_ok());
        let mut start = 0;
        for (name, bytes) in &fields[..n_fields] {
            for cut in start..start + bytes.len() {
                let may_end = may_end_in.contains(name) && (cut > start || *name == "charset");
                assert_eq!(
                    parse(&whole[..cut]).is_ok(),
                    may_end,
                    "{caps:x?} {name} cut at {cut}"
                );
            }
            start += bytes.len();
        }
    }
}

#[test]
fn change_user() {
    let caps = BASE | Capabilities::CONNECT_ATTRS;
    let payload = [
        b"\x11app\0\x02abtest\0\x09\x01",
        NATIVE,
        b"\x06\x02ab\x02cd",
    ]
    .concat();
    let command = ChangeUser::parse(&payload, caps).unwrap();
    assert_eq!(
        command,
        ChangeUser {
            user: b"app",
            auth: b"ab",
            schema: b"test",
            charset: Some(0x0109),
            plugin: Some(b"mysql_native_password"),
            attributes: b"\x02ab\x02cd",
        }
    );
    assert_eq!(payload_of(|out| command.write(out, 0, caps)), payload);
    assert_eq!(
        ChangeUser::parse(b"\x03select 1", caps),
        Err(Malformed {
            packet: "COM_CHANGE_USER",
            field: "command",
            why: "is not 11"
        })
    );
}

#[test]
fn change_user_by_old_capabilities() {
    let old = Capabilities::PROTOCOL_41;
    let command = ChangeUser::parse(b"\x11app\0abcdefgh\0test\0", old).unwrap();
    assert_eq!(
        (command.auth, command.schema),
        (&b"abcdefgh"[..], &b"test"[..])
    );
    assert_eq!((command.charset, command.plugin), (None, None));
    // What the capabilities announce is written even when it was not said.
    let payload = payload_of(|out| command.write(out, 0, BASE));
    assert_eq!(payload, b"\x11app\0\x08abcdefghtest\0\0\0\0");
}
