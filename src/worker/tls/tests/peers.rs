//! Whom a session believes, and what it says when it does not.

use std::sync::Arc;

use rustls::pki_types::ServerName;

use super::*;

#[test]
fn certificates_by_mode() {
    use BackendTlsMode::{Preferred, Required, VerifyCa, VerifyIdentity};
    let c = &*CERTIFICATES;
    let cases: [(&str, &Identity, &str, [bool; 3], &str); 9] = [
        // name, the server's certificate, the host asked for; accepted by required, verify-ca, verify-identity; words
        ("good", &c.good, "db.example", [true, true, true], ""),
        (
            "good, upper case",
            &c.good,
            "DB.Example",
            [true, true, true],
            "",
        ),
        (
            "good, by address",
            &c.good,
            "127.0.0.1",
            [true, true, true],
            "",
        ),
        (
            "another address",
            &c.good,
            "[::1]",
            [true, true, false],
            "does not name this host",
        ),
        (
            "another name",
            &c.other_name,
            "db.example",
            [true, true, false],
            "expected db.example, it names [other.example]",
        ),
        (
            "expired",
            &c.expired,
            "db.example",
            [true, false, false],
            "has expired",
        ),
        (
            "not yet valid",
            &c.not_yet,
            "db.example",
            [true, false, false],
            "not valid yet",
        ),
        (
            "foreign",
            &c.foreign,
            "db.example",
            [true, false, false],
            "no authority of the `ca` file",
        ),
        (
            "self-signed",
            &c.self_signed,
            "self",
            [true, false, false],
            "self-signed authority",
        ),
    ];
    for (name, identity, host, accepted, words) in cases {
        for (mode, accepted) in [Required, VerifyCa, VerifyIdentity]
            .into_iter()
            .zip(accepted)
        {
            let client = backend_tls(mode, Some(&c.ca), None).session(host).unwrap();
            let mut pair = Pair::new(
                client,
                server_tls(identity, None).session().unwrap(),
                1 << 20,
                1 << 20,
                4096,
            );
            let (client, server) = pair.run();
            if accepted {
                assert!(
                    client.is_ok() && server.is_ok(),
                    "{name} {mode:?} {client:?}"
                );
                assert!(
                    !pair.client.session.is_handshaking() && !pair.server.session.is_handshaking()
                );
            } else {
                let text = client.expect_err(name).to_string();
                assert!(
                    text.contains("certificate is refused") && text.contains(words),
                    "{name} {mode:?}: {text}"
                );
                assert!(
                    matches!(server, Err(TlsError::Alert(_))),
                    "{name} {mode:?}: {server:?}"
                );
            }
        }
    }
    // Without a `ca`, and where the host is no name at all.
    for mode in [Preferred, Required] {
        for host in [
            "db.example",
            "/run/mysqld/mysqld.sock",
            "",
            "a b",
            "10.0.0.1",
        ] {
            let client = backend_tls(mode, None, None).session(host).unwrap();
            let mut pair = Pair::new(
                client,
                server_tls(&c.foreign, None).session().unwrap(),
                1 << 20,
                1 << 20,
                4096,
            );
            pair.run_well();
        }
    }
    let strict = backend_tls(VerifyIdentity, Some(&c.ca), None);
    assert!(matches!(
        strict.session("/run/mysqld/mysqld.sock"),
        Err(TlsError::BadName(_))
    ));
    // The authority itself as the server's certificate: OpenSSL would take it, webpki does not.
    let client = backend_tls(VerifyCa, Some(&c.self_signed.0), None)
        .session("self")
        .unwrap();
    let mut pair = Pair::new(
        client,
        server_tls(&c.self_signed, None).session().unwrap(),
        1 << 20,
        1 << 20,
        4096,
    );
    let text = pair.run().0.expect_err("an authority").to_string();
    assert!(text.contains("self-signed authority"), "{text}");
}

#[test]
fn client_certificates_are_optional_and_checked() {
    let c = &*CERTIFICATES;
    for (ca, identity, accepted) in [
        (None, None, true),
        (None, Some(&c.foreign_client), true),
        (Some(&c.ca), None, true),
        (Some(&c.ca), Some(&c.client), true),
        (Some(&c.ca), Some(&c.foreign_client), false),
        (Some(&c.other_ca), Some(&c.client), false),
    ] {
        let client = backend_tls(BackendTlsMode::Required, None, identity)
            .session("db.example")
            .unwrap();
        let server = server_tls(&c.good, ca.map(String::as_str))
            .session()
            .unwrap();
        let mut pair = Pair::new(client, server, 1 << 20, 1 << 20, 4096);
        pair.client.to_send.extend(b"login");
        let (client, server) = pair.run();
        if accepted {
            assert!(client.is_ok() && server.is_ok(), "{client:?} {server:?}");
            assert_eq!(pair.server.received, b"login");
        } else {
            assert!(
                matches!(server, Err(TlsError::Certificate(_))),
                "{server:?}"
            );
            assert!(matches!(client, Err(TlsError::Alert(_))), "{client:?}");
            assert!(pair.server.received.is_empty());
        }
    }
}

#[test]
fn tls_1_2_works_and_older_is_refused_in_words() {
    let c = &*CERTIFICATES;
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS12])
    .unwrap()
    .with_root_certificates(rustls::RootCertStore::empty())
    .with_no_client_auth();
    config
        .dangerous()
        .set_certificate_verifier(config::any_certificate());
    let name = ServerName::try_from("db.example").unwrap();
    let conn = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let client = TlsSession::new(Connection::Client(conn));
    let mut pair = Pair::new(
        client,
        server_tls(&c.good, None).session().unwrap(),
        5000,
        1000,
        8192,
    );
    pair.client.to_send.extend(noise(100_000));
    pair.server.to_send.extend(noise(100_000));
    pair.run_well();
    assert!(pair.server.session.describe().starts_with("TLSv1_2 "));
    assert!(pair.client.received == noise(100_000) && pair.server.received == noise(100_000));
    // A ClientHello of TLS 1.0, as yaSSL sent it.
    let mut server = server_tls(&c.good, None).session().unwrap();
    let mut body = vec![1, 0, 0, 43, 3, 1];
    body.extend([7; 32]);
    body.extend([0, 0, 4, 0, 0x2f, 0, 0x35, 1, 0]);
    let mut hello = vec![0x16, 3, 1, 0, 47];
    hello.extend(body);
    server.feed(&hello);
    let error = server
        .read_from(&mut Pipe::new(1, 1), &mut [0; 100])
        .expect_err("TLS 1.0");
    assert!(matches!(error, TlsError::Incompatible(_)), "{error}");
    let mut alert = Pipe::new(100, 100);
    assert!(server.flush_to(&mut alert).unwrap());
    assert!(!alert.is_empty(), "the peer is told");
    assert!(matches!(
        server.read_from(&mut Pipe::new(1, 1), &mut [0; 100]),
        Err(TlsError::AlreadyFailed)
    ));
    assert_eq!(server.write(b"x"), 0);
}

#[test]
fn configuration_mistakes_are_told() {
    let c = &*CERTIFICATES;
    let (cert, key) = (c.good.0.as_bytes(), c.good.1.as_bytes());
    let server =
        |cert: &[u8], key: &[u8], ca: Option<&[u8]>| ServerTls::load(cert, key, ca).map(drop);
    assert_eq!(server(cert, key, Some(c.ca.as_bytes())), Ok(()));
    // Chain and key may lie in one file, and text around the blocks does not matter.
    let both = format!("# my chain\n{}\n{}{}", c.good.0, c.ca, c.good.1);
    assert_eq!(server(both.as_bytes(), both.as_bytes(), None), Ok(()));
    assert_eq!(
        server(b"", key, None),
        Err(TlsConfigError::NoCertificate("cert"))
    );
    assert_eq!(
        server(key, key, None),
        Err(TlsConfigError::NoCertificate("cert"))
    );
    assert_eq!(server(cert, cert, None), Err(TlsConfigError::NoKey));
    assert_eq!(server(cert, b"", None), Err(TlsConfigError::NoKey));
    assert_eq!(
        server(cert, c.client.1.as_bytes(), None),
        Err(TlsConfigError::KeyMismatch)
    );
    assert_eq!(
        server(cert, key, Some(b"")),
        Err(TlsConfigError::NoCertificate("ca"))
    );
    for encrypted in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
    ] {
        assert_eq!(
            server(cert, encrypted.as_bytes(), None),
            Err(TlsConfigError::EncryptedKey)
        );
    }
    let garbled = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(matches!(
        server(cert, garbled.as_bytes(), None),
        Err(TlsConfigError::BadKey(_))
    ));
    let cut = &key[..key.len() - 20];
    let error = server(cert, cut, None).expect_err("cut");
    assert!(matches!(error, TlsConfigError::BadPem("key", _)), "{error}");
    let body: String = c.good.1.lines().nth(1).unwrap().to_owned();
    assert!(!error.to_string().contains(&body), "a key is never quoted");
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        server(garbled.as_bytes(), key, None),
        Err(TlsConfigError::BadCertificate("cert", _))
    ));
    assert!(matches!(
        server(cert, key, Some(garbled.as_bytes())),
        Err(TlsConfigError::BadCertificate("ca", _))
    ));
    for mode in [BackendTlsMode::VerifyCa, BackendTlsMode::VerifyIdentity] {
        assert_eq!(
            BackendTls::load(mode, None, None).map(drop),
            Err(TlsConfigError::CaNeeded)
        );
    }
    let mixed = Some((cert, c.client.1.as_bytes()));
    assert_eq!(
        BackendTls::load(BackendTlsMode::Required, None, mixed).map(drop),
        Err(TlsConfigError::KeyMismatch)
    );
}
