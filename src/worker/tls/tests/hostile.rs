//! Bytes that were slipped in, cut off or changed.

use proptest::prelude::*;

use super::*;

/// What was sent in clear behind the SSLRequest never comes out as plaintext, not even after a real handshake.
#[test]
fn commands_slipped_in_before_tls_end_the_connection() {
    let query = b"\x09\x00\x00\x00\x03SELECT 1";
    let quit = b"\x01\x00\x00\x00\x01";
    for injected in [&query[..], quit, &[0x16], b"\x16\x03\x01\x00\x05SELEC"] {
        let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
        pair.server.session.feed(injected);
        pair.client.to_send.extend(b"login");
        let (client, server) = pair.run();
        assert!(pair.server.received.is_empty() && pair.client.received.is_empty());
        assert!(pair.server.session.is_handshaking() || server.is_err());
        assert!(
            server.is_err() || injected.len() == 1,
            "{injected:?} {client:?}"
        );
    }
    // Behind the ClientHello.
    let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
    pair.client
        .session
        .flush_to(&mut pair.client.output)
        .unwrap();
    pair.server.input.put(query);
    let (_, server) = pair.run();
    assert!(
        matches!(server, Err(TlsError::NotTls | TlsError::Protocol(_))),
        "{server:?}"
    );
    assert!(pair.server.received.is_empty());
    // And a server that answers an SSLRequest with an error packet in clear.
    let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
    pair.client
        .input
        .put(b"\x17\x00\x00\x02\xff\x15\x04#28000Access denied");
    let (client, _) = pair.run();
    assert!(matches!(client, Err(TlsError::NotTls)), "{client:?}");
    assert!(pair.client.received.is_empty());
}

/// The stream of the server cut at every byte: a prefix of the plaintext, then an end or an error.
#[test]
fn streams_cut_anywhere() {
    let data = noise(300);
    let total = {
        let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
        pair.server.to_send.extend(&data);
        pair.run_well();
        pair.client.input.0.borrow().record.len()
    };
    for cut in (0..total).step_by(7).chain(total.saturating_sub(40)..total) {
        let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
        pair.server.to_send.extend(&data);
        // The client gets `cut` bytes of the server's stream, and then the socket is closed.
        let mut delivered = 0;
        let ended = loop {
            pair.server.turn().ok();
            let chunk = pair.client.input.take_all();
            let n = chunk.len().min(cut - delivered);
            delivered += n;
            pair.client.input.put(&chunk[..n]);
            // Signatures differ in length from handshake to handshake: this stream may be shorter than the measured one.
            let is_over = chunk.is_empty() && pair.server.sent == data.len();
            if delivered == cut || is_over {
                pair.client.input.close();
            }
            match pair.client.turn() {
                Ok(_) if pair.client.last.eof => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        assert!(data.starts_with(&pair.client.received), "{cut}");
        match ended {
            Ok(()) => assert!(pair.client.last.truncated, "{cut}"),
            Err(error) => assert!(
                matches!(error, TlsError::ClosedInHandshake),
                "{cut} {error}"
            ),
        }
    }
}

/// Whether this byte is in the version of a record's header, which is ignored for all purposes (RFC 8446, 5.1).
fn is_version(bytes: &[u8], at: usize) -> bool {
    let mut start = 0;
    while let Some(&[_, _, _, high, low]) = bytes.get(start..start + 5) {
        if (start + 1..start + 3).contains(&at) {
            return true;
        }
        start += 5 + usize::from(u16::from_be_bytes([high, low]));
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes of a stranger: an error or waiting, never plaintext, never a panic.
    #[test]
    fn anything_may_arrive(bytes in proptest::collection::vec(any::<u8>(), 0..2000), handshake in any::<bool>(), size in 1_usize..20_000) {
        let c = &*CERTIFICATES;
        let mut bytes = bytes;
        if handshake && bytes.len() > 5 {
            bytes[..3].copy_from_slice(&[0x16, 3, 1]);
        }
        let sessions = [
            server_tls(&c.good, None).session().unwrap(),
            backend_tls(BackendTlsMode::Required, None, None).session("h").unwrap(),
        ];
        for mut session in sessions {
            let mut pipe = Pipe::new(1 << 20, 1 << 20);
            pipe.put(&bytes);
            pipe.close();
            let mut buffer = vec![0; size];
            let error = loop {
                match session.read_from(&mut pipe, &mut buffer) {
                    Ok(outcome) => prop_assert!(outcome.bytes == 0 && !outcome.eof),
                    Err(error) => break error,
                }
            };
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// One changed byte anywhere behind the handshake: what came before it may be read, nothing else.
    #[test]
    fn forged_records_are_never_read(at in any::<prop::sample::Index>(), flip in 1_u8.., len in 1_usize..40_000) {
        let mut pair = Pair::good(1 << 20, 1 << 20, 16 * 1024);
        pair.run_well();
        let data = noise(len);
        let mut sent = 0;
        while sent < len {
            sent += pair.server.session.write(&data[sent..]);
        }
        pair.server.session.flush_to(&mut pair.server.output).unwrap();
        let mut bytes = pair.client.input.take_all();
        let at = at.index(bytes.len());
        prop_assume!(!is_version(&bytes, at));
        bytes[at] ^= flip;
        pair.client.input.put(&bytes);
        pair.client.input.close();
        let mut error = None;
        while error.is_none() && !pair.client.last.eof {
            error = pair.client.turn().err();
        }
        prop_assert!(data.starts_with(&pair.client.received));
        prop_assert!(pair.client.received.len() < len);
        prop_assert!(error.is_some() || pair.client.last.truncated);
    }
}
