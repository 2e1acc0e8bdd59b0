//! Log-ins to servers: every plugin's way, cut anywhere; servers that refuse, lie, send rubbish or vanish.

mod server;

use proptest::prelude::*;

use self::server::{NONCE, OK, OTHER, SERVER_CAPABILITIES, Server, Way, with_zero};
use super::*;
use crate::auth::verify_native;

fn wish(tls: TlsWish) -> Wish {
    Wish {
        capabilities: SERVER_CAPABILITIES | Capabilities::LONG_PASSWORD,
        needed: Capabilities::DEPRECATE_EOF,
        max_packet: 1 << 24,
        charset: 45,
        schema: Some(b"shop".to_vec()),
        attributes: Box::from(&b"\x01a\x01b"[..]),
        tls,
        local: false,
    }
}

fn upstream_of(wish: Wish, passwords: &[&str]) -> Upstream {
    let passwords = passwords.iter().map(|p| Secret::from(*p)).collect();
    let user = b"app".to_vec();
    Upstream::new(wish, Credentials { user, passwords }, 0)
}

fn upstream(tls: TlsWish) -> Upstream {
    upstream_of(wish(tls), &["pw"])
}

/// Runs a log-in as the worker does, the server's bytes arriving `size` at a time, `limit` of them at most. `None` while it waits.
fn run(
    mut upstream: Upstream,
    mut server: Server,
    size: usize,
    limit: usize,
) -> (Option<Step>, usize) {
    let mut coming = server.greeting();
    let (mut held, mut arrived) = (Vec::new(), 0);
    loop {
        let n = size.min(coming.len()).min(limit - arrived);
        if n == 0 {
            return (None, arrived);
        }
        held.extend(coming.drain(..n));
        arrived += n;
        loop {
            let (consumed, mut step) = upstream.handle(&held);
            assert!(consumed <= held.len());
            held.drain(..consumed);
            let waits = step == Step::Wait && consumed == 0;
            loop {
                match step {
                    Step::Send(bytes) => coming.extend(server.take(&bytes)),
                    Step::SendThenTls(bytes) => {
                        assert!(upstream.awaits_tls());
                        coming.extend(server.take(&bytes));
                        server.in_tls = true;
                        step = upstream.tls_ready();
                        continue;
                    }
                    Step::Wait => {}
                    Step::Ready(_) | Step::Failed(_) => {
                        assert!(held.is_empty() && coming.is_empty(), "bytes left");
                        return (Some(step), arrived);
                    }
                }
                break;
            }
            if waits {
                break;
            }
        }
    }
}

fn is_ready(step: Option<&Step>, with_tls: bool) -> bool {
    let Some(Step::Ready(ready)) = step else {
        return false;
    };
    assert_eq!(ready.thread_id, 77);
    assert_eq!(ready.ok, OK);
    assert_eq!(ready.status, Status::AUTOCOMMIT);
    assert_eq!(ready.facts.version, b"9.7.4");
    assert_eq!(ready.capabilities.contains(Capabilities::SSL), with_tls);
    true
}

const EVERYWHERE: [Way; 6] = [
    Way::Native,
    Way::CachingFast,
    Way::SwitchToNative,
    Way::SwitchToEd25519,
    Way::TwoSwitches,
    Way::CachingFast,
];
const IN_CLEAR: [Way; 3] = [
    Way::CachingKey,
    Way::SwitchToCachingKey,
    Way::SwitchToSha256Key,
];
const IN_TLS: [Way; 3] = [
    Way::CachingClear,
    Way::SwitchToSha256Clear,
    Way::SwitchToClear,
];

#[test]
fn every_plugin_logs_in_however_the_bytes_are_cut() {
    for (ways, wishes, offers_tls, with_tls) in [
        (
            &IN_CLEAR[..],
            &[TlsWish::No, TlsWish::IfOffered][..],
            false,
            false,
        ),
        (&IN_CLEAR[..], &[TlsWish::No][..], true, false),
        (
            &EVERYWHERE[..],
            &[TlsWish::No, TlsWish::IfOffered][..],
            false,
            false,
        ),
        (
            &EVERYWHERE[..],
            &[TlsWish::IfOffered, TlsWish::Required][..],
            true,
            true,
        ),
        (
            &IN_TLS[..],
            &[TlsWish::IfOffered, TlsWish::Required][..],
            true,
            true,
        ),
    ] {
        for way in ways {
            for tls in wishes {
                for size in [1, 2, 3, 7, 64, 100_000] {
                    let (step, _) = run(
                        upstream(*tls),
                        Server::new(*way, offers_tls),
                        size,
                        usize::MAX,
                    );
                    assert!(
                        is_ready(step.as_ref(), with_tls),
                        "{way:?} {tls:?} by {size}: {step:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn over_a_unix_socket_caching_sha2_sends_the_clear_password() {
    let local = Wish {
        local: true,
        ..wish(TlsWish::No)
    };
    let (step, _) = run(
        upstream_of(local, &["pw"]),
        Server::new(Way::CachingClear, false),
        5,
        usize::MAX,
    );
    assert!(is_ready(step.as_ref(), false), "{step:?}");
}

#[test]
fn a_server_that_vanishes_anywhere_leaves_a_log_in_that_waits() {
    for (way, tls) in [
        (Way::CachingKey, TlsWish::No),
        (Way::TwoSwitches, TlsWish::Required),
    ] {
        let server = || Server::new(way, tls == TlsWish::Required);
        let (step, all) = run(upstream(tls), server(), usize::MAX, usize::MAX);
        assert!(is_ready(step.as_ref(), tls == TlsWish::Required));
        for limit in 1..all {
            assert_eq!(run(upstream(tls), server(), limit, limit), (None, limit));
        }
    }
}

#[test]
fn no_clear_password_leaves_without_tls() {
    for way in IN_TLS {
        if way == Way::CachingClear {
            continue; // It asks for the key instead.
        }
        let mut server = Server::new(way, false);
        let mut upstream = upstream(TlsWish::No);
        let (_, step) = upstream.handle(&server.greeting());
        let Step::Send(login) = step else {
            panic!("{step:?}");
        };
        let (_, step) = upstream.handle(&server.take(&login));
        match step {
            Step::Failed(Failure::Unreachable(why)) => assert!(way == Way::SwitchToClear, "{why}"),
            Step::Send(bytes) => assert!(!bytes.windows(2).any(|pair| pair == b"pw"), "{way:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn tls_that_is_required_and_not_offered_fails_before_anything_is_sent() {
    let (step, _) = run(
        upstream(TlsWish::Required),
        Server::new(Way::Native, false),
        9,
        usize::MAX,
    );
    assert!(
        matches!(&step, Some(Step::Failed(Failure::Unreachable(why))) if why.contains("no TLS")),
        "{step:?}"
    );
}

#[test]
fn bytes_in_clear_behind_the_request_for_tls_end_it() {
    let mut server = Server::new(Way::Native, true);
    let mut upstream = upstream(TlsWish::Required);
    let (_, step) = upstream.handle(&server.greeting());
    assert!(matches!(step, Step::SendThenTls(_)));
    let (_, step) = upstream.handle(&[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]);
    assert!(matches!(step, Step::Failed(Failure::Unreachable(_))));
    assert!(matches!(upstream.tls_ready(), Step::Failed(_)));
    assert!(!upstream.awaits_tls());
}

#[test]
fn a_server_without_what_the_client_was_promised_is_not_used() {
    let wish = Wish {
        needed: Capabilities::QUERY_ATTRIBUTES,
        ..wish(TlsWish::No)
    };
    let (step, _) = run(
        upstream_of(wish, &["pw"]),
        Server::new(Way::Native, false),
        9,
        usize::MAX,
    );
    assert_eq!(step, Some(Step::Failed(Failure::Incompatible)));
}

#[test]
fn refusals_are_passed_on_wherever_they_come() {
    let refusal = |seq: u8, payload: &[u8]| {
        let mut bytes = Vec::new();
        write_payload(&mut bytes, seq, payload);
        bytes
    };
    // Too many connections, which comes before any greeting and so without a state.
    let (_, step) = upstream(TlsWish::No).handle(&refusal(0, b"\xff\x10\x04Too many"));
    assert_eq!(
        step,
        Step::Failed(Failure::Refused {
            code: 1040,
            sqlstate: *b"08004",
            message: "Too many".to_owned(),
        })
    );
    let (_, step) = upstream(TlsWish::No).handle(&refusal(0, b"\xff"));
    assert!(matches!(step, Step::Failed(Failure::Unreachable(_))));
    let mut server = Server::new(Way::Native, false);
    let mut upstream = upstream_of(wish(TlsWish::No), &["old", "pw"]);
    let (_, step) = upstream.handle(&server.greeting());
    assert!(matches!(step, Step::Send(_)));
    let (consumed, step) = upstream.handle(&refusal(2, b"\xff\x15\x04#28000denied"));
    assert_eq!(consumed, 4 + 15);
    assert_eq!(
        step,
        Step::Failed(Failure::Refused {
            code: 1045,
            sqlstate: *b"28000",
            message: "denied".to_owned(),
        })
    );
    // The next password, on another connection; then there is none.
    let next = upstream.by_next_password().expect("a second password");
    assert!(next.by_next_password().is_none());
    let (step, _) = run(next, Server::new(Way::Native, false), 4, usize::MAX);
    assert!(is_ready(step.as_ref(), false));
}

#[test]
fn a_packet_too_long_for_a_log_in_is_not_waited_for() {
    let (consumed, step) = upstream(TlsWish::No).handle(&[0xff, 0xff, 0xff, 0]);
    assert_eq!(consumed, 0);
    assert!(matches!(step, Step::Failed(Failure::Unreachable(_))));
}

#[test]
fn the_log_in_names_what_the_server_knows_only() {
    let mut server = Server::new(Way::Native, false);
    let greeting = server.greeting();
    let plain = Capabilities::PLUGIN_AUTH
        | Capabilities::CONNECT_ATTRS
        | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA;
    let parsed = Greeting::parse(&greeting[4..]).expect("a greeting");
    let mut bytes = Vec::new();
    let old = Greeting {
        capabilities: parsed.capabilities.without(plain),
        plugin: b"",
        ..parsed
    };
    old.write(&mut bytes, 0);
    let (_, step) = upstream(TlsWish::No).handle(&bytes);
    let Step::Send(bytes) = step else {
        panic!("{step:?}");
    };
    let login = Login::parse(&bytes[4..]).expect("a log-in");
    assert_eq!((login.plugin, login.attributes), (None, &b""[..]));
    assert_eq!(login.schema, Some(&b"shop"[..]));
    assert!(verify_native(b"pw", &NONCE, login.auth));
}

/// Packets that a log-in may meet, and rubbish.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let rubbish = || prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        1 => rubbish(),
        2 => Just(OK.to_vec()),
        1 => rubbish().prop_map(|rest| [&[0xff], &rest[..]].concat()),
        1 => Just(Server::new(Way::Native, true).greeting()[4..].to_vec()),
        1 => rubbish().prop_map(|rest| [&[1], &rest[..]].concat()),
        1 => Just(vec![1, 3]),
        1 => Just(vec![1, 4]),
        1 => rubbish().prop_map(|rest| [b"\xfecaching_sha2_password\0", &rest[..]].concat()),
        1 => rubbish().prop_map(|rest| [&[0xfe], &rest[..]].concat()),
        1 => Just(with_zero(&OTHER)),
    ]
}

proptest! {
    #[test]
    fn any_packets_end_in_a_verdict_or_wait(
        packets in prop::collection::vec(packet(), 1..8),
        starts_well in any::<bool>(),
        tls in prop_oneof![Just(TlsWish::No), Just(TlsWish::IfOffered), Just(TlsWish::Required)],
        tls_ready_at in 0_usize..8,
        size in 1_usize..50,
    ) {
        let mut bytes = Vec::new();
        let mut seq = 0;
        if starts_well {
            bytes = Server::new(Way::CachingFast, true).greeting();
            seq = 2;
        }
        for payload in &packets {
            seq = write_payload(&mut bytes, seq, payload).wrapping_add(1);
        }
        let mut upstream = upstream(tls);
        let (mut at, mut arrived, mut count) = (0, 0, 0);
        let mut is_over = false;
        while arrived < bytes.len() {
            arrived = bytes.len().min(arrived + size);
            loop {
                let (consumed, mut step) = upstream.handle(&bytes[at..arrived]);
                prop_assert!(consumed <= arrived - at);
                at += consumed;
                count += 1;
                if count > tls_ready_at && upstream.awaits_tls() {
                    step = upstream.tls_ready();
                }
                if is_over {
                    // Over is over, whatever comes.
                    prop_assert!(matches!(step, Step::Failed(_)) || consumed == 0);
                }
                is_over |= matches!(step, Step::Ready(_) | Step::Failed(_));
                if consumed == 0 {
                    break;
                }
            }
        }
    }
}
