//! Tests of `server`: every kind of client, and what an attacker can tell apart.

use proptest::prelude::*;

use super::super::{caching_sha2_scramble, native_scramble};
use super::*;

const NONCE: [u8; 20] = *b"greeting-nonce-12345";
const FRESH: [u8; 20] = *b"switched-nonce-67890";
const PLUGINS: [Plugin; 2] = [Plugin::CachingSha2, Plugin::Native];

fn accounts(passwords: &[&str]) -> Option<Arc<[Secret]>> {
    Some(passwords.iter().map(|p| Secret::from(*p)).collect())
}

fn scramble(plugin: Plugin, password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    match plugin {
        Plugin::CachingSha2 => caching_sha2_scramble(password.as_bytes(), nonce),
        Plugin::Native => native_scramble(password.as_bytes(), nonce),
    }
}

fn success(plugin: Plugin) -> ServerStep {
    match plugin {
        Plugin::CachingSha2 => ServerStep::FastOk,
        Plugin::Native => ServerStep::Verified,
    }
}

fn proof<'a>(plugin: Option<&'a str>, response: &'a [u8]) -> Proof<'a> {
    Proof {
        plugin_auth: true,
        plugin: plugin.map(str::as_bytes),
        response,
    }
}

fn denied(using_password: bool, step: ServerStep) -> bool {
    matches!(step, ServerStep::Denied(d) if d.using_password == using_password)
}

#[test]
fn the_clients_own_plugin_is_used_whatever_was_offered() {
    for offered in PLUGINS {
        for plugin in PLUGINS {
            let login = |password: &str| {
                let response = scramble(plugin, password, &NONCE);
                ServerAuth::new(offered, accounts(&["pw"])).login(
                    proof(Some(plugin.name()), &response),
                    &NONCE,
                    &FRESH,
                )
            };
            assert_eq!(login("pw"), success(plugin), "{offered:?} {plugin:?}");
            assert!(denied(true, login("wrong")), "{offered:?} {plugin:?}");
        }
    }
}

#[test]
fn other_plugins_are_switched_to_the_offered_one() {
    for offered in PLUGINS {
        for named in [
            Some("client_ed25519"),
            Some("sha256_password"),
            Some("mysql_clear_password"),
            Some("dialog"),
            Some("mysql_old_password"),
            Some(""),
            None,
        ] {
            for given in [&b""[..], b"pw\0", &[7; 20], &[7; 32], &[7; 64]] {
                let mut auth = ServerAuth::new(offered, accounts(&["pw"]));
                let step = auth.login(proof(named, given), &NONCE, &FRESH);
                assert_eq!(
                    step,
                    ServerStep::Switch {
                        plugin: offered,
                        nonce: FRESH
                    },
                    "{named:?}"
                );
                assert_eq!(
                    auth.answer(&scramble(offered, "pw", &FRESH)),
                    success(offered)
                );
            }
        }
    }
}

#[test]
fn a_response_of_another_length_is_asked_for_again_once() {
    for plugin in PLUGINS {
        for len in [1, 8, 16, 19, 21, 31, 33, 64, 255] {
            let mut auth = ServerAuth::new(plugin, accounts(&["pw"]));
            let response = vec![7; len];
            let step = auth.login(proof(Some(plugin.name()), &response), &NONCE, &FRESH);
            assert_eq!(
                step,
                ServerStep::Switch {
                    plugin,
                    nonce: FRESH
                },
                "{plugin:?} {len}"
            );
            assert!(denied(true, auth.answer(&response)), "{plugin:?} {len}");
            assert!(
                denied(true, auth.answer(&scramble(plugin, "pw", &FRESH))),
                "over is over"
            );
        }
    }
}

/// libmysqlclient with `--default-auth` other than the greeting's plugin.
#[test]
fn an_empty_response_of_a_plugin_that_was_not_offered_is_no_answer_yet() {
    for (offered, plugin) in [
        (Plugin::CachingSha2, Plugin::Native),
        (Plugin::Native, Plugin::CachingSha2),
    ] {
        let mut auth = ServerAuth::new(offered, accounts(&["pw"]));
        let step = auth.login(proof(Some(plugin.name()), b""), &NONCE, &FRESH);
        assert_eq!(
            step,
            ServerStep::Switch {
                plugin,
                nonce: FRESH
            }
        );
        assert_eq!(
            auth.answer(&scramble(plugin, "pw", &FRESH)),
            success(plugin)
        );
    }
}

#[test]
fn empty_passwords() {
    for plugin in PLUGINS {
        let login = |passwords: &[&str], response: &[u8]| {
            ServerAuth::new(plugin, accounts(passwords)).login(
                proof(Some(plugin.name()), response),
                &NONCE,
                &FRESH,
            )
        };
        assert_eq!(
            login(&[""], b""),
            ServerStep::Verified,
            "no fast-path packet without a password"
        );
        assert!(
            denied(false, login(&["pw"], b"")),
            "an empty answer against a password"
        );
        assert!(
            denied(true, login(&[""], &scramble(plugin, "pw", &NONCE))),
            "an answer against no password"
        );
        assert_eq!(login(&["", "pw"], b""), ServerStep::Verified);
        assert_eq!(
            login(&["", "pw"], &scramble(plugin, "pw", &NONCE)),
            success(plugin)
        );
    }
    let zero = proof(Some("caching_sha2_password"), b"\0");
    let login = |passwords: &[&str]| {
        ServerAuth::new(Plugin::CachingSha2, accounts(passwords)).login(zero, &NONCE, &FRESH)
    };
    assert_eq!(login(&[""]), ServerStep::Verified);
    assert!(denied(false, login(&["pw"])));
}

/// B143: a password is changed without an outage.
#[test]
fn b143_any_listed_password_is_accepted() {
    for plugin in PLUGINS {
        let login = |passwords: &[&str], with: &str| {
            let response = scramble(plugin, with, &NONCE);
            ServerAuth::new(plugin, accounts(passwords)).login(
                proof(Some(plugin.name()), &response),
                &NONCE,
                &FRESH,
            )
        };
        assert_eq!(login(&["old", "new"], "old"), success(plugin));
        assert_eq!(login(&["old", "new"], "new"), success(plugin));
        assert!(denied(true, login(&["new"], "old")));
        assert!(
            denied(true, login(&[], "new")),
            "an account without any password admits nobody"
        );
    }
}

#[test]
fn clients_without_plugins_answer_by_native() {
    let login = |passwords, response: &[u8]| {
        let proof = Proof {
            plugin_auth: false,
            plugin: None,
            response,
        };
        ServerAuth::new(Plugin::CachingSha2, passwords).login(proof, &NONCE, &FRESH)
    };
    assert_eq!(
        login(accounts(&["pw"]), &native_scramble(b"pw", &NONCE)),
        ServerStep::Verified
    );
    assert_eq!(login(accounts(&[""]), b""), ServerStep::Verified);
    assert!(denied(
        true,
        login(accounts(&["pw"]), &native_scramble(b"no", &NONCE))
    ));
    // They could not follow a switch, so what does not fit is refused: the 8 bytes of the scheme before 4.1 too.
    assert!(denied(true, login(accounts(&["pw"]), &[7; 8])));
    assert!(denied(
        true,
        login(accounts(&["pw"]), &caching_sha2_scramble(b"pw", &NONCE))
    ));
    assert!(denied(false, login(None, b"")));
}

#[test]
fn change_user_always_switches_and_to_a_new_nonce_unless_native() {
    for offered in PLUGINS {
        for (named, plugin) in [
            (Some("caching_sha2_password"), Plugin::CachingSha2),
            (Some("mysql_native_password"), Plugin::Native),
            (Some("client_ed25519"), offered),
            (None, offered),
        ] {
            let mut auth = ServerAuth::new(offered, accounts(&["pw"]));
            let early = scramble(plugin, "pw", &NONCE);
            let step = auth.change_user(proof(named, &early), &NONCE, &FRESH);
            let nonce = match plugin {
                Plugin::Native => NONCE,
                _ => FRESH,
            };
            assert_eq!(step, ServerStep::Switch { plugin, nonce }, "{named:?}");
            assert_eq!(
                auth.answer(&scramble(plugin, "pw", &nonce)),
                success(plugin)
            );
        }
    }
    let old = |with: &[u8]| {
        let proof = Proof {
            plugin_auth: false,
            plugin: None,
            response: with,
        };
        ServerAuth::new(Plugin::CachingSha2, accounts(&["pw"])).change_user(proof, &NONCE, &FRESH)
    };
    assert_eq!(old(&native_scramble(b"pw", &NONCE)), ServerStep::Verified);
    assert!(denied(true, old(&native_scramble(b"pw", &FRESH))));
}

/// B136: what a client whose default plugin is caching_sha2_password may send.
#[test]
fn b136_token_lengths_of_caching_sha2() {
    for passwords in [accounts(&["pw"]), accounts(&[""]), None] {
        for len in [0, 1, 32, 255] {
            for named in [Some("caching_sha2_password"), None] {
                let response = vec![0; len];
                let mut auth = ServerAuth::new(Plugin::Native, passwords.clone());
                let mut step = auth.login(proof(named, &response), &NONCE, &FRESH);
                if matches!(step, ServerStep::Switch { .. }) {
                    step = auth.answer(&response);
                }
                // Zeros are no scramble: only the empty password gets in, and only by saying so.
                let sha2 = named.is_some();
                let is_empty = len == 0 || sha2 && len == 1;
                let admits_empty = passwords.as_ref().is_some_and(|p| p[0].is_empty());
                if is_empty && admits_empty {
                    assert_eq!(step, ServerStep::Verified, "{len} {named:?}");
                } else {
                    assert!(denied(!is_empty, step), "{len} {named:?} {step:?}");
                }
            }
        }
    }
}

#[test]
fn a_nonce_works_once_and_only_its_own() {
    let mut auth = ServerAuth::new(Plugin::Native, accounts(&["pw"]));
    let other = proof(Some("client_ed25519"), b"");
    assert!(matches!(
        auth.login(other, &NONCE, &FRESH),
        ServerStep::Switch { .. }
    ));
    assert!(
        denied(true, auth.answer(&native_scramble(b"pw", &NONCE))),
        "made with the greeting's nonce"
    );
    let right = native_scramble(b"pw", &FRESH);
    assert!(denied(true, auth.answer(&right)));
    assert!(denied(
        true,
        auth.login(proof(Some("mysql_native_password"), &right), &FRESH, &FRESH)
    ));
    assert!(
        denied(
            true,
            ServerAuth::new(Plugin::Native, accounts(&["pw"])).answer(&right)
        ),
        "nothing was asked"
    );
}

#[test]
fn texts_and_debug() {
    assert_eq!(
        access_denied_text(b"shop", "10.0.0.7", true),
        "Access denied for user 'shop'@'10.0.0.7' (using password: YES)"
    );
    assert_eq!(
        access_denied_text(b"", "::1", false),
        "Access denied for user ''@'::1' (using password: NO)"
    );
    let long = access_denied_text(&[0xc3; 1 << 20], "h", true);
    assert!(long.len() < 1024);
    let shown = format!("{:?}", proof(Some("mysql_clear_password"), b"hunter2\0"));
    assert!(
        !shown.contains("hunter2") && !shown.contains("104"),
        "{shown}"
    );
}

fn any_proof() -> impl Strategy<Value = (bool, Option<Vec<u8>>, Vec<u8>)> {
    let plugin = prop_oneof![
        Just(None),
        Just(Some(b"caching_sha2_password".to_vec())),
        Just(Some(b"mysql_native_password".to_vec())),
        Just(Some(b"sha256_password".to_vec())),
        any::<Option<Vec<u8>>>(),
    ];
    let response = prop_oneof![
        Just(vec![]),
        Just(vec![0]),
        proptest::collection::vec(any::<u8>(), 20),
        proptest::collection::vec(any::<u8>(), 32),
        any::<Vec<u8>>(),
    ];
    (any::<bool>(), plugin, response)
}

proptest! {
    /// Whoever does not know the password sees the same with and without the account, and never gets in.
    #[test]
    fn unknown_user_and_wrong_password_look_the_same(
        (plugin_auth, plugin, first) in any_proof(),
        answers in proptest::collection::vec(any::<Vec<u8>>(), 0..3),
        is_change in any::<bool>(),
        offered in prop_oneof![Just(Plugin::CachingSha2), Just(Plugin::Native)],
    ) {
        let run = |accepted| {
            let mut auth = ServerAuth::new(offered, accepted);
            let proof = Proof { plugin_auth, plugin: plugin.as_deref(), response: &first };
            let mut steps = vec![if is_change {
                auth.change_user(proof, &NONCE, &FRESH)
            } else {
                auth.login(proof, &NONCE, &FRESH)
            }];
            steps.extend(answers.iter().map(|answer| auth.answer(answer)));
            for step in &mut steps {
                assert!(!matches!(step, ServerStep::Verified | ServerStep::FastOk));
                if let ServerStep::Denied(denied) = step {
                    denied.why = "";
                }
            }
            steps
        };
        prop_assert_eq!(run(None), run(accounts(&["not guessed", "another"])));
    }
}
