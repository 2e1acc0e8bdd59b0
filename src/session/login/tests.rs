//! Clients that log in: by every plugin, cut anywhere; wrong passwords, wrong turns, rubbish, clients that vanish. Whoever is
//! refused gets one error and is closed.

mod client;

use proptest::prelude::*;

use self::client::{APP, Client, FRESH, NONCE, Says, proof};
use super::*;
use crate::pool::HostId;
use crate::session::Wants;
use crate::wire::{Greeting, Status};

const SIZES: [usize; 6] = [1, 2, 3, 5, 40, 1000];

fn is_ok(packet: &[u8], seq: u8) -> bool {
    packet[..2] == [seq, 0]
}

#[test]
fn the_greeting_says_what_is_asked_of_clients() {
    for (plugin, key) in [
        ("caching_sha2_password", ""),
        (
            "mysql_native_password",
            "auth_plugin = \"mysql_native_password\"",
        ),
    ] {
        let mut client = Client::new(key);
        let sent = client.take();
        let greeting = Greeting::parse(&sent[0][1..]).expect("a greeting");
        assert_eq!(greeting.plugin, plugin.as_bytes());
        assert_eq!(
            (greeting.nonce, greeting.thread_id, sent[0][0]),
            (NONCE, 7, 0)
        );
        assert!(!greeting.capabilities.contains(Capabilities::SSL));
        assert!(!greeting.capabilities.contains(Capabilities::COMPRESS));
    }
}

#[test]
fn every_plugin_logs_in_however_the_bytes_are_cut() {
    for size in SIZES {
        for password in ["pw", "old"] {
            // By the plugin that was offered: 0x03, then OK.
            let mut client = Client::new("");
            client.take();
            client.arrive(&Says { password, ..APP }.bytes(), size);
            let sent = client.take();
            assert_eq!(sent[0], [2, 1, 3]);
            assert!(is_ok(&sent[1], 3) && client.session.is_logged_in());
            // By the client's own, without a switch; and by a client that names none.
            for plugin in [Some("mysql_native_password"), None] {
                let mut client = Client::new("");
                client.take();
                let says = Says {
                    password,
                    plugin,
                    ..APP
                };
                client.arrive(&says.bytes(), size);
                let sent = client.take();
                assert!(is_ok(&sent[0], 2) && sent.len() == 1, "{plugin:?}");
                assert!(client.session.is_logged_in());
            }
        }
    }
}

#[test]
fn a_plugin_that_nobody_offered_is_switched() {
    for size in SIZES {
        for (key, plugin) in [
            ("", "caching_sha2_password"),
            (
                "auth_plugin = \"mysql_native_password\"",
                "mysql_native_password",
            ),
        ] {
            for (password, right) in [("pw", true), ("no", false)] {
                let mut client = Client::new(key);
                client.take();
                let says = Says {
                    plugin: Some("dialog"),
                    ..APP
                };
                client.arrive(&says.bytes(), size);
                let sent = client.take();
                let switch = AuthSwitch::parse(&sent[0][1..]).expect("a switch");
                assert_eq!(
                    (switch.plugin, switch.nonce()),
                    (plugin.as_bytes(), &FRESH[..])
                );
                let mut answer = Vec::new();
                write_payload(&mut answer, 3, &proof(Some(plugin), password, &FRESH));
                client.arrive(&answer, size);
                if right {
                    assert!(client.session.is_logged_in());
                    let sent = client.take();
                    assert!(is_ok(
                        sent.last().expect("an OK"),
                        3 + u8::try_from(sent.len()).unwrap()
                    ));
                } else {
                    assert_eq!(client.refusal().0, 1045);
                }
            }
        }
    }
}

#[test]
fn whoever_is_wrong_is_told_the_same_and_closed() {
    let refused = |says: &Says| {
        let mut client = Client::new("");
        client.take();
        client.arrive(&says.bytes(), 17);
        client.refusal()
    };
    for plugin in [
        Some("caching_sha2_password"),
        Some("mysql_native_password"),
        None,
    ] {
        let says = Says { plugin, ..APP };
        let text = |user| {
            (
                1045,
                format!("Access denied for user '{user}'@'127.0.0.1' (using password: YES)"),
            )
        };
        let wrong = Says {
            password: "no",
            ..says.clone()
        };
        assert_eq!(refused(&wrong), text("app"));
        let unknown = Says {
            user: "who",
            ..says.clone()
        };
        assert_eq!(refused(&unknown), text("who"));
        // The right password from the wrong network.
        let far = Says {
            user: "far",
            ..says
        };
        assert_eq!(refused(&far), text("far"));
    }
}

#[test]
fn packets_out_of_turn_of_no_size_and_from_before_4_1_are_refused() {
    for (bytes, code) in [
        (Says { seq: 2, ..APP }.bytes(), 1156),
        (vec![0, 0, 0, 1], 1043),
        (vec![0xff, 0xff, 0xff, 1], 1043),
        (vec![3, 0, 0, 1, 1, 2, 3], 1043),
        // Flags without CLIENT_PROTOCOL_41.
        (
            vec![10, 0, 0, 1, 5, 0, 0, 0, 0, b'a', 0, b'x', b'y', 0],
            1251,
        ),
    ] {
        let mut client = Client::new("");
        client.take();
        client.arrive(&bytes, 3);
        assert_eq!(client.refusal().0, code, "{bytes:?}");
        assert!(client.opens.is_empty());
    }
}

#[test]
fn a_schema_is_asked_of_the_primary_and_its_words_are_passed_on() {
    let cases = [
        Says {
            schema: Some("shop"),
            ..APP
        },
        Says {
            user: "home",
            ..APP
        },
    ];
    for says in cases {
        let waiting = || {
            let mut client = Client::new("");
            client.take();
            client.arrive(&says.bytes(), 9);
            assert_eq!(client.opens, [Role::Primary]);
            assert_eq!(client.take(), [vec![2, 1, 3]]);
            assert_eq!(client.session.wants(), Wants::Nothing);
            client
        };
        let ready = crate::session::Ready {
            thread_id: 9,
            capabilities: Capabilities::PROTOCOL_41,
            status: Status::AUTOCOMMIT,
            ok: vec![0, 0, 0, 2, 0, 0, 0, b'!'],
            facts: Client::new("").offer.facts,
        };
        let mut client = waiting();
        let shape = client.session.shape(Role::Primary, &client.snapshot);
        let known = crate::session::Known::new(HostId(0), shape, Some(b"shop"), &ready);
        client.tell(|session, _, _, out| session.on_backend_ready(Role::Primary, known, out));
        assert_eq!(client.take(), [vec![3, 0, 0, 0, 2, 0, 0, 0, b'!']]);
        assert!(client.session.is_logged_in());

        let refusal = Failure::Refused {
            code: 1049,
            sqlstate: *b"42000",
            message: "Unknown database 'shop'".to_owned(),
        };
        let mut client = waiting();
        client.tell(|session, cx, bytes, out| {
            session.on_backend_failed(cx, Role::Primary, Some(HostId(0)), &refusal, bytes, out);
        });
        assert_eq!(
            client.refusal(),
            (1049, "Unknown database 'shop'".to_owned())
        );

        // Without the primary a replica decides; without both it is the primary that is missed.
        let gone = Failure::Unreachable("no route".to_owned());
        let mut client = waiting();
        for role in Role::BOTH {
            client.tell(|session, cx, bytes, out| {
                session.on_backend_failed(cx, role, None, &gone, bytes, out);
            });
        }
        assert_eq!(client.opens, [Role::Primary, Role::Replica]);
        let (_, text) = client.refusal();
        assert!(text.contains("no primary in group main"), "{text}");
    }
}

const TLS: &str = "tls = { mode = \"MODE\", cert = \"cert.pem\", key = \"key.pem\" }";

#[test]
fn tls_begins_at_the_request_and_what_came_behind_it_is_dropped() {
    let mut request = Vec::new();
    let next = SslRequest {
        capabilities: Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::SSL,
        max_packet: 1 << 24,
        charset: 45,
    }
    .write(&mut request, 1);
    assert_eq!(next, 2);
    for mode in ["optional", "required"] {
        for size in SIZES {
            let mut client = Client::new(&TLS.replace("MODE", mode));
            client.take();
            client.arrive(&request, size);
            assert!(client.starts_tls && client.received.is_empty());
            assert_eq!(client.session.wants(), Wants::Nothing);
            // A log-in before the handshake is through is not looked at.
            let bytes = Says { seq: 2, ..APP }.bytes();
            client.arrive(&bytes, 1000);
            assert!(client.take().is_empty() && !client.session.is_logged_in());
            client.received.clear();
            client.session.on_tls_ready();
            client.arrive(&bytes, size);
            let sent = client.take();
            assert!(is_ok(&sent[1], 4) && client.session.is_logged_in());
        }
    }
    let mut client = Client::new(&TLS.replace("MODE", "required"));
    client.take();
    client.arrive(&APP.bytes(), 8);
    assert_eq!(client.refusal().0, 3159);
    // Where there is none the request is a log-in that is cut off.
    let mut client = Client::new("");
    client.take();
    client.arrive(&request, 8);
    assert_eq!(client.refusal().0, 1043);
}

#[test]
fn a_client_that_vanishes_anywhere_leaves_nothing() {
    let bytes = APP.bytes();
    for end in 0..bytes.len() {
        let mut client = Client::new("");
        client.take();
        client.arrive(&bytes[..end], end.max(1));
        assert!(!client.session.is_logged_in() && client.take().is_empty());
        client.tell(|session, _, _, out| session.on_client_closed(out));
        assert!(client.session.is_closed() && client.opens.is_empty());
    }
}

#[test]
fn another_user_begins_anew_and_a_wrong_one_is_closed() {
    for (password, right) in [("pw", true), ("no", false)] {
        let mut client = Client::new("");
        client.take();
        client.arrive(&APP.bytes(), 9);
        client.take();
        let mut command = Vec::new();
        ChangeUser {
            user: b"app",
            auth: b"",
            schema: b"",
            charset: Some(45),
            plugin: Some(b"caching_sha2_password"),
            attributes: b"",
        }
        .write(&mut command, 0, client.session.capabilities);
        client.arrive(&command, 4);
        let sent = client.take();
        let switch = AuthSwitch::parse(&sent[0][1..]).expect("a switch");
        let nonce: [u8; 20] = switch.nonce().try_into().expect("twenty bytes");
        let mut answer = Vec::new();
        write_payload(
            &mut answer,
            2,
            &proof(Some("caching_sha2_password"), password, &nonce),
        );
        client.arrive(&answer, 4);
        if right {
            assert_eq!(client.take()[0], [3, 1, 3]);
            assert!(client.session.is_logged_in());
        } else {
            assert_eq!(client.refusal().0, 1045);
        }
    }
}

fn packet() -> impl Strategy<Value = Vec<u8>> {
    let rubbish = || prop::collection::vec(any::<u8>(), 0..90);
    prop_oneof![
        2 => rubbish(),
        1 => Just(APP.bytes()[4..].to_vec()),
        1 => Just(Says { plugin: Some("dialog"), ..APP }.bytes()[4..].to_vec()),
        1 => Just(Says { schema: Some("shop"), ..APP }.bytes()[4..].to_vec()),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| {
            let mut payload = APP.bytes()[4..].to_vec();
            let at = at.index(payload.len());
            payload[at] = byte;
            payload
        }),
        1 => any::<prop::sample::Index>().prop_map(|at| {
            let payload = APP.bytes()[4..].to_vec();
            payload[..at.index(payload.len())].to_vec()
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_is_sent_a_client_waits_or_is_in_or_is_refused_and_closed(
        packets in prop::collection::vec((packet(), prop::option::weighted(0.1, any::<u8>())), 1..4),
        key in prop::sample::select(&["", "auth_plugin = \"mysql_native_password\""][..]),
        size in 1_usize..60,
    ) {
        let mut client = Client::new(key);
        client.take();
        let mut seq = 1;
        for (payload, other_seq) in &packets {
            let mut bytes = Vec::new();
            write_payload(&mut bytes, other_seq.unwrap_or(seq), payload);
            seq += 2;
            client.arrive(&bytes, size);
            if client.session.is_logged_in() || !client.opens.is_empty() {
                return Ok(());
            }
            if client.session.is_closed() {
                client.refusal();
                return Ok(());
            }
            // At most a switch was sent.
            prop_assert!(client.take().len() <= 1);
        }
    }
}
