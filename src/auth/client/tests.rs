//! Tests of `client`: the packets of real servers, and servers that lie.

use proptest::prelude::*;

use super::super::rsa::testing::ServerKey;
use super::super::{verify_caching_sha2, verify_native};
use super::*;

const NONCE: [u8; 20] = *b"greeting-nonce-12345";
const OTHER: [u8; 20] = *b"switched-nonce-67890";
const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

fn switch(plugin: &str, data: &[u8]) -> Vec<u8> {
    [&[0xfe], plugin.as_bytes(), &[0], data].concat()
}

fn switch20(plugin: &str) -> Vec<u8> {
    switch(plugin, &[&OTHER[..], &[0]].concat())
}

fn sent(step: Result<AuthStep, AuthError>) -> Vec<u8> {
    match step {
        Ok(AuthStep::Send(payload)) => payload,
        other => panic!("{other:?}"),
    }
}

fn unexpected(step: &Result<AuthStep, AuthError>) -> bool {
    matches!(step, Err(AuthError::Unexpected { .. }))
}

fn client(password: &str, secure: bool) -> ClientAuth {
    ClientAuth::new(Secret::from(password), secure)
}

#[test]
fn native_at_once() {
    let mut auth = client("pw", false);
    let answer = auth.first(b"mysql_native_password", &NONCE);
    assert_eq!(auth.plugin(), "mysql_native_password");
    assert!(verify_native(b"pw", &NONCE, &answer));
    assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    assert!(unexpected(&auth.handle(&OK)), "over is over");
    assert!(unexpected(&auth.handle(&switch20("mysql_native_password"))));
}

#[test]
fn caching_sha2_fast() {
    for secure in [false, true] {
        let mut auth = client("pw", secure);
        let answer = auth.first(b"caching_sha2_password", &NONCE);
        assert!(verify_caching_sha2(b"pw", &NONCE, &answer));
        assert_eq!(auth.handle(&[1, 3]), Ok(AuthStep::Wait));
        assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    }
}

#[test]
fn caching_sha2_full_over_tls_or_a_unix_socket() {
    for mut auth in [
        client("pw", true),
        ClientAuth::on_unix_socket(Secret::from("pw")),
    ] {
        auth.first(b"caching_sha2_password", &NONCE);
        assert_eq!(sent(auth.handle(&[1, 4])), b"pw\0");
        assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    }
}

#[test]
fn caching_sha2_full_with_the_servers_key() {
    let key = ServerKey::generate();
    let mut auth = client("a password longer than the nonce", false);
    auth.first(b"mysql_native_password", &NONCE);
    sent(auth.handle(&switch20("caching_sha2_password")));
    assert_eq!(auth.plugin(), "caching_sha2_password");
    assert_eq!(sent(auth.handle(&[1, 4])), [2]);
    let encrypted = sent(auth.handle(&[&[1], &key.pem[..]].concat()));
    assert_eq!(
        key.decrypt(&encrypted, &OTHER),
        b"a password longer than the nonce\0"
    );
    assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
}

#[test]
fn sha256_password_by_transport() {
    let key = ServerKey::generate();
    let mut tls = client("pw", true);
    tls.first(b"caching_sha2_password", &NONCE);
    assert_eq!(sent(tls.handle(&switch20("sha256_password"))), b"pw\0");
    assert_eq!(tls.handle(&OK), Ok(AuthStep::Done));
    // The server looks at TLS only, so a unix socket is as good as the network.
    for mut auth in [
        client("pw", false),
        ClientAuth::on_unix_socket(Secret::from("pw")),
    ] {
        assert_eq!(
            auth.first(b"sha256_password", &NONCE),
            [1],
            "asks for the key"
        );
        let encrypted = sent(auth.handle(&[&[1], &key.pem[..]].concat()));
        assert_eq!(key.decrypt(&encrypted, &NONCE), b"pw\0");
        assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    }
}

#[test]
fn ed25519_signs_the_32_bytes() {
    let nonce: Vec<u8> = (0..32).collect();
    for data in [nonce.clone(), [&nonce[..], &[0]].concat()] {
        let mut auth = client("ed-pw", false);
        auth.first(b"mysql_native_password", &NONCE);
        assert_eq!(
            sent(auth.handle(&switch("client_ed25519", &data))),
            ed25519_sign(b"ed-pw", &nonce)
        );
        assert_eq!(auth.plugin(), "client_ed25519");
        assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    }
}

#[test]
fn clear_password_only_over_tls() {
    let mut auth = client("pw", true);
    auth.first(b"mysql_native_password", &NONCE);
    assert_eq!(
        sent(auth.handle(&switch("mysql_clear_password", b""))),
        b"pw\0"
    );
    for mut auth in [
        client("pw", false),
        ClientAuth::on_unix_socket(Secret::from("pw")),
    ] {
        auth.first(b"mysql_native_password", &NONCE);
        assert_eq!(
            auth.handle(&switch("mysql_clear_password", b"")),
            Err(AuthError::ClearTextWithoutTls)
        );
        assert_eq!(
            auth.handle(&OK),
            Err(AuthError::ClearTextWithoutTls),
            "an error stays"
        );
    }
}

#[test]
fn empty_passwords() {
    for (plugin, answer) in [
        ("mysql_native_password", &b""[..]),
        ("caching_sha2_password", b""),
        ("sha256_password", b"\0"),
    ] {
        let mut auth = client("", false);
        assert_eq!(auth.first(plugin.as_bytes(), &NONCE), answer, "{plugin}");
        assert_eq!(sent(auth.handle(&switch20(plugin))), answer, "{plugin}");
        assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
    }
}

#[test]
fn a_greeting_that_cannot_be_answered_gets_a_native_answer() {
    for (plugin, nonce, native) in [
        (&b"auth_gssapi_client"[..], &NONCE[..], true),
        (b"", &NONCE, true),
        (b"client_ed25519", &NONCE, true),
        (b"mysql_clear_password", &NONCE, true),
        (b"mysql_native_password", b"short", false),
        (b"", b"", false),
    ] {
        let mut auth = client("pw", false);
        let answer = auth.first(plugin, nonce);
        assert_eq!(auth.plugin(), "mysql_native_password");
        assert_eq!(verify_native(b"pw", &NONCE, &answer), native);
        assert_eq!(answer.is_empty(), !native);
        sent(auth.handle(&switch20("caching_sha2_password")));
    }
}

#[test]
fn several_switches_and_a_switch_in_the_middle() {
    let mut auth = client("pw", false);
    auth.first(b"caching_sha2_password", &NONCE);
    assert!(verify_native(
        b"pw",
        &OTHER,
        &sent(auth.handle(&switch20("mysql_native_password")))
    ));
    sent(auth.handle(&switch20("caching_sha2_password")));
    assert_eq!(sent(auth.handle(&[1, 4])), [2]);
    // Instead of the key.
    assert!(verify_native(
        b"pw",
        &OTHER,
        &sent(auth.handle(&switch20("mysql_native_password")))
    ));
    assert!(
        unexpected(&auth.handle(&[1, 3])),
        "native has no such packet"
    );
}

#[test]
fn a_server_that_never_decides_is_given_up() {
    let mut auth = client("pw", false);
    auth.first(b"mysql_native_password", &NONCE);
    for _ in 0..ROUNDS_MAX {
        sent(auth.handle(&switch20("mysql_native_password")));
    }
    assert_eq!(
        auth.handle(&switch20("mysql_native_password")),
        Err(AuthError::TooManyRounds)
    );
    assert_eq!(auth.handle(&OK), Err(AuthError::TooManyRounds));
}

#[test]
fn refusals_are_passed_on() {
    let mut auth = client("pw", false);
    auth.first(b"mysql_native_password", &NONCE);
    let mut err = vec![0xff, 0x15, 0x04];
    err.extend_from_slice(b"#28000Access denied");
    let step = auth.handle(&err).unwrap();
    assert_eq!(
        step,
        AuthStep::Refused {
            code: 1045,
            sqlstate: Some(*b"28000"),
            message: b"Access denied".to_vec()
        }
    );
    assert!(unexpected(&auth.handle(&OK)));
    // MySQL's "Too many connections" before the greeting has no SQL state.
    let mut auth = client("pw", false);
    let step = auth.handle(b"\xff\x10\x04Too many connections").unwrap();
    assert_eq!(
        step,
        AuthStep::Refused {
            code: 1040,
            sqlstate: None,
            message: b"Too many connections".to_vec()
        }
    );
}

/// COM_CHANGE_USER: the server's switch comes first.
#[test]
fn a_switch_may_be_the_first_packet() {
    let mut auth = client("pw", false);
    assert!(verify_native(
        b"pw",
        &OTHER,
        &sent(auth.handle(&switch20("mysql_native_password")))
    ));
    assert_eq!(auth.handle(&OK), Ok(AuthStep::Done));
}

#[test]
fn errors_say_what_to_do() {
    let after = |secure: bool, packets: &[&[u8]]| {
        let mut auth = client("pw", secure);
        auth.first(b"caching_sha2_password", &NONCE);
        let mut result = Ok(AuthStep::Wait);
        for packet in packets {
            result = auth.handle(packet);
        }
        result.expect_err("an error").to_string()
    };
    for (packets, words) in [
        (
            &[&switch("auth_gssapi_client", b"x")[..]] as &[&[u8]],
            "`auth_gssapi_client`",
        ),
        (&[b"\xfe"], "pre-4.1"),
        (&[&switch("mysql_old_password", b"12345678\0")], "pre-4.1"),
        (
            &[&switch("mysql_native_password", b"short\0")],
            "has 6 bytes, 20 are needed",
        ),
        (
            &[&switch("client_ed25519", &OTHER)],
            "has 20 bytes, 32 are needed",
        ),
        (&[b"\xfemysql_native_password"], "plugin"),
        (&[&switch("mysql_clear_password", b"")], "`tls`"),
        (&[&[2, b'x', 0]], "second authentication factor"),
        (&[&[1, 4], b"\x01no key"], "public key"),
        (&[&[1, 4], &[1, 4]], "public key"),
        (&[&[1, 3], &[1, 3]], "unexpected packet"),
        (&[&[1, 3], &[1, 4]], "unexpected packet"),
        (&[&[]], "0 bytes"),
        (&[&[0]], "unexpected packet"),
        (&[&[0xff]], "malformed"),
        (&[&[1]], "unexpected packet"),
        (&[&[1, 5]], "0x01, 2 bytes"),
    ] {
        let text = after(false, packets);
        assert!(text.contains(words), "{packets:?}: {text}");
    }
    let name = "p".repeat(1000) + "\x1b[2J";
    assert!(
        after(true, &[&switch(&name, b"")]).len() < 300,
        "what the server names is cut"
    );
    assert!(
        after(true, &[&switch("\x1b[2J\u{e9}", b"")]).is_ascii(),
        "and made printable"
    );
}

#[test]
fn debug_never_shows_the_password() {
    let mut auth = client("hunter2", true);
    auth.first(b"caching_sha2_password", &NONCE);
    let step = auth.handle(&[1, 4]).unwrap();
    assert_eq!(step, AuthStep::Send(b"hunter2\0".to_vec()));
    for shown in [format!("{auth:?}"), format!("{step:?}")] {
        assert!(
            !shown.contains("hunter2") && !shown.contains("104"),
            "{shown}"
        );
    }
}

fn packet() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just("mysql_native_password"),
        Just("caching_sha2_password"),
        Just("sha256_password"),
        Just("client_ed25519"),
        Just("mysql_clear_password"),
        Just("dialog"),
    ];
    prop_oneof![
        any::<Vec<u8>>(),
        Just(vec![1, 3]),
        Just(vec![1, 4]),
        Just(b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----".to_vec()),
        Just(OK.to_vec()),
        (name, any::<Vec<u8>>()).prop_map(|(name, data)| switch(name, &data)),
        any::<Vec<u8>>().prop_map(|rest| [&[0xff], &rest[..]].concat()),
    ]
}

proptest! {
    /// Whatever a server sends: no panic, an error stays, and the clear password leaves only over TLS.
    #[test]
    fn any_packets(
        secure in any::<bool>(),
        greeting in prop_oneof![Just("caching_sha2_password"), Just("sha256_password"), Just("x")],
        nonce in prop_oneof![Just(NONCE.to_vec()), any::<Vec<u8>>()],
        packets in proptest::collection::vec(packet(), 0..24),
    ) {
        let password = b"a rather long password";
        let holds = |sent: &[u8]| sent.windows(password.len()).any(|w| w == password);
        let mut auth = ClientAuth::new(Secret::new(&password[..]), secure);
        prop_assert!(secure || !holds(&auth.first(greeting.as_bytes(), &nonce)));
        let mut over = false;
        for packet in &packets {
            let step = auth.handle(packet);
            if let Ok(AuthStep::Send(sent)) = &step {
                prop_assert!(secure || !holds(sent));
            }
            prop_assert!(!over || step.is_err());
            over |= !matches!(step, Ok(AuthStep::Send(_) | AuthStep::Wait));
        }
    }
}
