//! Reports about logging in: odd and broken packets of the log-in, passwords that change, what an account may see.

use ::atlas::wire::Capabilities;

use super::common::{
    Atlas, Ended, Expect, Kind, Login, Node, Refused, Wire, config_for, frame, unique_name,
};
use super::raw_login::{Answer, NATIVE, Raw, SHA2, lenenc, right, verdict, verdict_of, wrong};
use super::stage::{Stage, outcome};

const SQL_STATE: &[u8] = b"#08S01";

#[test]
fn b136_tokens_of_every_length_for_caching_sha2() {
    let stage = Stage::with(Kind::MariaDb, "", |c| c.user("root", "", &[]));
    let try_as = |user: &[u8], token: &[u8], plugin: Option<&'static [u8]>, answer: &Answer| {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        let mut raw = Raw::native(&wire).with(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA);
        raw.user = user.to_vec();
        raw.plugin = plugin;
        raw.token = [lenenc(token.len()), token.to_vec()].concat();
        wire.send_as(1, &raw.payload());
        verdict_of(&mut wire, answer)
    };
    for length in [0, 1, 20, 31, 32, 33, 250, 251, 255, 256] {
        let token = vec![9; length];
        assert_eq!(
            try_as(b"plain", &token, Some(SHA2), &wrong),
            1045,
            "{length}"
        );
        assert_eq!(
            try_as(b"nobody", &token, Some(SHA2), &wrong),
            1045,
            "{length}"
        );
        // Where the answer could not have been one, the client is asked again and may be right.
        let second = try_as(b"plain", &token, Some(SHA2), &right);
        assert!(
            second == 0 || matches!(length, 0 | 32),
            "{length}: {second}"
        );
        assert_eq!(
            try_as(b"plain", &token, Some(b"no_such_plugin"), &right),
            0,
            "{length}"
        );
    }
    assert_eq!(
        try_as(b"plain", &[], None, &right),
        0,
        "the plugin's name is missing"
    );
    assert_eq!(try_as(b"nobody", &[], None, &wrong), 1045);
    // Without a password, by either plugin.
    for plugin in [SHA2, NATIVE] {
        assert_eq!(try_as(b"root", &[], Some(plugin), &|_, _| Vec::new()), 0);
        assert_eq!(try_as(b"root", &[1; 20], Some(plugin), &wrong), 1045);
    }
    assert_eq!(stage.client().query("SELECT 1").cell(), "1");
}

#[test]
fn b137_compression_is_not_offered_and_not_begun() {
    let compression = Capabilities::COMPRESS | Capabilities::ZSTD_COMPRESSION_ALGORITHM;
    for stage in Stage::both() {
        let wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        assert_eq!((wire.offered & compression).0, 0);
        // A client that says it compresses is not answered in compressed packets, and its server does not hear of it.
        for plugin in [SHA2, NATIVE] {
            let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
            let mut raw = Raw::native(&wire).with(
                compression
                    | Capabilities::CONNECT_WITH_DB
                    | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA,
            );
            raw.schema = Some(b"bed");
            raw.plugin = Some(plugin);
            raw.token = vec![5, 1, 1, 1, 1, 1];
            raw.tail = vec![3];
            wire.send_as(1, &raw.payload());
            assert_eq!(verdict_of(&mut wire, &right), 0);
            wire.capabilities = Capabilities::PROTOCOL_41;
            let compressed = wire.query("SHOW STATUS LIKE 'Compression'");
            assert_eq!(compressed.rows()[0][1].as_deref(), Some("OFF"));
        }
    }
}

#[test]
fn b141_what_a_schema_allows_is_the_servers_to_say() {
    for stage in Stage::both() {
        let user = unique_name("g").replace('_', "");
        let other = stage.bed.schema();
        let mut root = stage.root();
        root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'g-pw'"));
        root.ok(&format!("GRANT SELECT ON {}.t TO {user}@'%'", stage.schema));
        stage.bed.wait_replicas();
        let atlas = Atlas::start(config_for(&stage.bed).user(&user, "g-pw", &[]));
        let login = Login::new(&user, "g-pw");
        let mut client = Wire::connect(atlas.address(), &login.clone().schema(&stage.schema));
        assert_eq!(client.query("SELECT v FROM t WHERE id=1").cell(), "10");
        assert_eq!(outcome(&client.query("SELECT id FROM u")), "E1142");
        assert_eq!(outcome(&client.query(&format!("USE {other}"))), "E1044");
        assert_eq!(
            client
                .command(format!("\x02{other}").as_bytes())
                .error_code(),
            1044
        );
        assert_eq!(
            client.query("SELECT DATABASE()").cell(),
            stage.schema.name()
        );
        let refused = Wire::try_connect(atlas.address(), &login.clone().schema(&other));
        let direct = Wire::try_connect(stage.bed.address(Node::Primary), &login.schema(&other));
        assert!(
            matches!(refused, Err(Refused::Error { code: 1044, .. })),
            "{refused:?}"
        );
        assert_eq!(refused.err(), direct.err());
        root.ok(&format!("DROP USER {user}@'%'"));
    }
}

#[test]
fn b142_log_ins_cut_short_or_overlong() {
    let stage = Stage::mariadb();
    let wire = Wire::greet(stage.atlas.address()).expect("a greeting");
    let good = Raw::native(&wire).with(Capabilities::CONNECT_WITH_DB);
    let whole = Raw {
        schema: Some(b"bed"),
        ..good.clone()
    }
    .payload();
    // Cut at every byte: a refusal, or a log-in by what the lengths say; then the end. Never more bytes than there are.
    for cut in 0..whole.len() {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        wire.send_as(1, &whole[..cut]);
        let code = verdict_of(&mut wire, &wrong);
        assert!(matches!(code, 1043 | 1045 | 1251), "cut at {cut}: {code}");
    }
    let code = |raw: &Raw| verdict(&stage, &raw.payload(), &wrong);
    assert_eq!(
        code(&Raw {
            user: vec![b'u'; 1 << 20],
            ..good.clone()
        }),
        1043,
        "a user of 1 MB"
    );
    assert_eq!(
        code(&Raw {
            user: vec![b'u'; 60_000],
            ..good.clone()
        }),
        1045,
        "a long user"
    );
    let longer_than_the_rest = Raw {
        token: vec![200, 1, 2, 3],
        schema: None,
        plugin: None,
        ..good.clone()
    };
    assert_eq!(code(&longer_than_the_rest), 1043);
    assert_eq!(verdict(&stage, &[0, 2, 0, 0], &wrong), 1043, "four bytes");
    // As long as a request for TLS, which is not offered, without its bit.
    assert_eq!(verdict(&stage, &whole[..32], &wrong), 1043);
    let zeroes = vec![0; 32];
    assert!(matches!(verdict(&stage, &zeroes, &wrong), 1043 | 1251));
    // A schema without its zero byte, as the last thing in the packet.
    let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
    let mut raw = Raw::native(&wire)
        .with(Capabilities::CONNECT_WITH_DB)
        .without(Capabilities::PLUGIN_AUTH);
    raw.plugin = None;
    let mut payload = raw.payload();
    payload.extend_from_slice(b"bed");
    wire.send_as(1, &payload);
    assert!(matches!(verdict_of(&mut wire, &wrong), 0 | 1043));
    assert_eq!(stage.client().query("SELECT 1").cell(), "1");
}

#[test]
fn b142_frames_of_the_log_in_out_of_order() {
    let stage = Stage::mariadb();
    let good = |wire: &Wire| Raw::native(wire).payload();
    for seq in [0, 2, 3, 255] {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        let payload = good(&wire);
        wire.send_as(seq, &payload);
        let code = verdict_of(&mut wire, &wrong);
        assert!(matches!(code, 1043 | 1156), "{seq}: {code}");
    }
    // The packet in two frames would be one of 16 MiB: refused at its header.
    let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
    wire.send_bytes(&[0xff, 0xff, 0xff, 1]);
    assert_eq!(verdict_of(&mut wire, &wrong), 1043);
}

#[test]
fn b146_log_ins_with_everything_a_command_line_sends() {
    for stage in Stage::both() {
        let lenenc_token = Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA;
        let attributes = Capabilities::CONNECT_ATTRS;
        let run = |change: &dyn Fn(&mut Raw)| {
            let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
            let mut raw = Raw::native(&wire);
            change(&mut raw);
            wire.send_as(1, &raw.payload());
            verdict_of(&mut wire, &right)
        };
        let pair = |bytes: usize| {
            // One attribute whose value fills the block.
            let value = bytes.saturating_sub(2 + 4);
            [vec![1, b'n'], lenenc(value), vec![b'v'; value]].concat()
        };
        for length in [0_usize, 250, 251, 60_000] {
            let code = run(&|raw| {
                raw.capabilities |= (attributes | lenenc_token).0;
                raw.attributes = Some(if length == 0 {
                    Vec::new()
                } else {
                    pair(length)
                });
            });
            assert_eq!(code, 0, "{length} bytes of attributes");
        }
        let oversized = run(&|raw| {
            raw.capabilities |= attributes.0;
            raw.attributes = Some(pair(70_000));
        });
        assert_eq!(oversized, 1043);
        for length in [0, 250, 251, 256] {
            let code = run(&|raw| {
                raw.capabilities |= lenenc_token.0;
                raw.token = [lenenc(length), vec![1; length]].concat();
            });
            // No plugin answers like that: the client is asked again, and is right.
            assert_eq!(code, 0, "a token of {length}");
        }
        for charset in [0, 255, 45, 8] {
            assert_eq!(run(&|raw| raw.charset = charset), 0, "charset {charset}");
        }
        let everything = run(&|raw| {
            raw.capabilities |= 0xe000_0000;
            raw.capabilities |= (attributes
                | lenenc_token
                | Capabilities::ZSTD_COMPRESSION_ALGORITHM
                | Capabilities::CONNECT_WITH_DB)
                .0;
            raw.capabilities &= !Capabilities::SSL.0;
            raw.schema = Some(b"");
            raw.attributes = Some(pair(20));
            raw.tail = vec![3, 1, 2, 3, 4, 5];
        });
        assert_eq!(
            everything, 0,
            "unknown bits, an empty schema, a level of zstd, more bytes behind"
        );
    }
}

/// What is refused is closed, and told apart by its number only.
#[test]
fn refusals_are_one_packet_and_the_end() {
    let stage = Stage::with(Kind::MariaDb, "", |c| {
        c.user("far", "far-pw", &["networks = [\"10.9.8.0/24\"]"])
    });
    let expect = |payload: &[u8], code: u16, state: &[u8]| {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        wire.send_as(1, payload);
        let mut packet = wire.try_packet().expect("a refusal");
        while packet.first() == 0xfe {
            wire.send_as(packet.seq.wrapping_add(1), &[7; 20]);
            packet = wire.try_packet().expect("a refusal");
        }
        assert_eq!(packet.first(), 0xff);
        assert_eq!(
            u16::from_le_bytes([packet.payload[1], packet.payload[2]]),
            code
        );
        assert!(packet.payload[3..].starts_with(state), "{packet:?}");
        assert!(wire.read_to_close().is_empty());
    };
    let wire = Wire::greet(stage.atlas.address()).expect("a greeting");
    let good = Raw::native(&wire);
    expect(
        &good.payload(),
        1045,
        b"#28000Access denied for user 'plain'@'127.0.0.1' (using password: YES)",
    );
    expect(
        &Raw {
            user: b"far".to_vec(),
            ..good.clone()
        }
        .payload(),
        1045,
        b"#28000Access denied for user 'far'@'127.0.0.1' (using password: YES)",
    );
    expect(
        &Raw {
            user: b"nobody".to_vec(),
            ..good.clone()
        }
        .payload(),
        1045,
        b"#28000Access denied for user 'nobody'@'127.0.0.1' (using password: YES)",
    );
    expect(&[1, 2, 3], 1043, SQL_STATE);
    // A client of before 4.1: it knows no SQL states.
    let old = [&[0x05, 0x20, 0, 0, 0][..], b"plain\0abcdefgh"].concat();
    expect(&old, 1251, b"Client does not support");
}

#[test]
fn change_of_user_with_a_wrong_password_closes() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET @a=1");
        let refused = client.change_user(&Login::new("app", "wrong"));
        assert!(
            matches!(refused, Err(Refused::Error { code: 1045, .. })),
            "{refused:?}"
        );
        assert!(client.read_to_close().is_empty());
        let ended = client.try_query("SELECT 1");
        assert!(
            matches!(ended, Err(Ended::Closed { .. } | Ended::Reset)),
            "{ended:?}"
        );
    }
}

/// Servers take no client whose characters have two bytes at least; that is said at the log-in, also to one that names no schema.
#[test]
fn character_sets_that_are_not_for_clients() {
    for stage in Stage::both() {
        for collation in [35, 54, 56, 60, 62, 101, 128, 183] {
            let login = Login::app().charset(collation);
            let direct = Wire::try_connect(stage.bed.address(Node::Primary), &login);
            let through = Wire::try_connect(stage.atlas.address(), &login);
            let (Err(direct), Err(through)) = (direct, through) else {
                panic!("collation {collation} was taken");
            };
            assert!(
                matches!(direct, Refused::Error { code: 1231, .. }),
                "{direct:?}"
            );
            assert_eq!(format!("{through:?}"), format!("{direct:?}"));
        }
    }
}

/// A client without plugins answers at once, by native password.
#[test]
fn clients_without_plugin_auth_log_in() {
    for stage in Stage::both() {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        let mut raw = Raw::native(&wire).without(Capabilities::PLUGIN_AUTH);
        raw.plugin = None;
        wire.send_as(1, &raw.payload());
        assert_eq!(verdict_of(&mut wire, &wrong), 0);
    }
}

/// A client that does not wait for the verdict: its first command stays until it may run.
#[test]
fn a_command_sent_along_with_the_log_in_is_answered_behind_it() {
    for stage in Stage::both() {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        let mut bytes = frame(1, &Raw::native(&wire).payload());
        bytes.extend(frame(0, b"\x03SELECT 5"));
        wire.send_bytes(&bytes);
        assert_eq!(wire.try_packet().expect("a verdict").first(), 0);
        wire.capabilities = Capabilities::PROTOCOL_41;
        assert_eq!(wire.reply(Expect::Text).cell(), "5");
    }
}
