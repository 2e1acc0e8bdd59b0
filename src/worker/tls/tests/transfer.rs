//! Bytes go through as they are, however they are cut, and nobody holds too many of them.

use super::*;

#[test]
fn input_split_at_every_byte() {
    for (capacity, step, buffer) in [
        (1 << 20, 1, 64 * 1024),
        (1, 1, 1),
        (3, 2, 8192),
        (1 << 20, 1 << 20, 1),
    ] {
        let mut pair = Pair::good(capacity, step, buffer);
        let (up, down) = (noise(700), noise(40_000));
        pair.client.to_send.extend(&up);
        pair.server.to_send.extend(&down);
        pair.run_well();
        assert!(
            pair.server.received == up && pair.client.received == down,
            "{capacity} {step} {buffer}"
        );
        assert_eq!(
            pair.client.session.describe(),
            pair.server.session.describe()
        );
        assert!(
            pair.client.session.describe().starts_with("TLSv1_3 "),
            "{:?}",
            pair.client.session
        );
    }
}

#[test]
fn large_transfers_both_ways_through_small_sockets() {
    for (capacity, step, buffer) in [
        (1400, 1400, 64 * 1024),
        (64 * 1024, 64 * 1024, 16 * 1024),
        (1 << 24, 1 << 24, 100),
    ] {
        let mut pair = Pair::good(capacity, step, buffer);
        let (up, down) = (noise(3 << 20), noise((5 << 20) + 17));
        pair.client.to_send.extend(&up);
        pair.server.to_send.extend(&down);
        pair.run_well();
        assert!(
            pair.server.received == up && pair.client.received == down,
            "{capacity} {step} {buffer}"
        );
    }
}

#[test]
fn a_full_socket_makes_back_pressure() {
    let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
    pair.run_well();
    let server = &mut pair.server.session;
    let data = noise(1 << 20);
    let accepted = server.write(&data);
    assert!((1..=WRITE_BUFFER_MAX).contains(&accepted), "{accepted}");
    assert_eq!(
        server.write(&data[accepted..]),
        0,
        "nothing fits before a flush"
    );
    let mut tiny = Pipe::new(10, 10);
    assert!(!server.flush_to(&mut tiny).unwrap());
    assert!(server.wants_write());
    let mut wide = Pipe::new(1 << 20, 1 << 20);
    assert!(server.flush_to(&mut wide).unwrap());
    assert!(!server.wants_write());
    assert!(server.write(&data[accepted..]) > 0);
    assert_eq!(server.write(b""), 0);
}

#[test]
fn a_reader_that_stops_holds_little_and_is_told_to_come_back() {
    let mut pair = Pair::good(1 << 24, 1 << 24, 64 * 1024);
    pair.run_well();
    let data = noise(1 << 20);
    let mut sent = 0;
    while sent < data.len() {
        sent += pair.server.session.write(&data[sent..]);
        assert!(
            pair.server
                .session
                .flush_to(&mut pair.server.output)
                .unwrap()
        );
    }
    // 100 bytes at a time, with one socket read at most per call.
    let client = &mut pair.client;
    let mut got = Vec::new();
    let mut small = [0; 100];
    while got.len() < data.len() {
        let outcome = client
            .session
            .read_from(&mut client.input, &mut small)
            .unwrap();
        got.extend_from_slice(&small[..outcome.bytes]);
        assert!(client.session.undrained + client.session.pending.len() <= 64 * 1024);
        assert!(outcome.more_possible || got.len() == data.len());
    }
    assert!(got == data);
}

/// A client may send its SSLRequest and the first bytes of TLS in one segment.
#[test]
fn bytes_behind_the_ssl_request_are_fed_to_tls() {
    let mut hello = Pipe::new(1 << 20, 1 << 20);
    let tls = backend_tls(BackendTlsMode::Required, None, None);
    tls.session("db.example")
        .unwrap()
        .flush_to(&mut hello)
        .unwrap();
    for cut in 0..hello.take_all().len() {
        let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
        pair.client
            .session
            .flush_to(&mut pair.client.output)
            .unwrap();
        let bytes = pair.server.input.take_all();
        pair.server.session.feed(&bytes[..cut / 2]);
        pair.server.session.feed(&bytes[cut / 2..cut]);
        pair.server.input.put(&bytes[cut..]);
        pair.client.to_send.extend(b"login");
        pair.run_well();
        assert_eq!(pair.server.received, b"login", "{cut}");
    }
}

#[test]
fn a_clean_end_and_an_unclean_one() {
    let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
    pair.client.to_send.extend(b"quit");
    pair.run_well();
    pair.client.session.close();
    pair.client
        .session
        .flush_to(&mut pair.client.output)
        .unwrap();
    pair.server.input.put(b"whatever follows is ignored");
    pair.settle();
    assert_eq!(pair.server.received, b"quit");
    assert!(pair.server.last.eof && !pair.server.last.truncated && !pair.server.last.more_possible);
    // The other direction still works.
    pair.server.to_send.extend(b"last words");
    pair.settle();
    assert_eq!(pair.client.received, b"last words");

    let mut pair = Pair::good(1 << 20, 1 << 20, 4096);
    pair.client.to_send.extend(noise(50_000));
    pair.run_well();
    pair.server.input.close();
    pair.settle();
    assert_eq!(pair.server.received, noise(50_000));
    assert!(pair.server.last.eof && pair.server.last.truncated);
    let again = pair
        .server
        .session
        .read_from(&mut pair.server.input, &mut [0; 64])
        .unwrap();
    assert!(again.eof && again.bytes == 0, "an end stays an end");
}

#[test]
fn plaintext_held_at_the_end_is_given_first() {
    let mut pair = Pair::good(1 << 20, 1 << 20, 64 * 1024);
    pair.run_well();
    let data = noise(30_000);
    let mut sent = 0;
    while sent < data.len() {
        sent += pair.client.session.write(&data[sent..]);
    }
    pair.client.session.close();
    pair.client
        .session
        .flush_to(&mut pair.client.output)
        .unwrap();
    pair.server.input.close();
    pair.server.buffer = vec![0; 333];
    pair.settle();
    assert!(pair.server.received == data);
    assert!(pair.server.last.eof && !pair.server.last.truncated);
}

#[test]
fn socket_errors_pass_and_interruptions_do_not() {
    struct Flaky(VecDeque<ErrorKind>);
    impl Read for Flaky {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.pop_front().unwrap().into())
        }
    }
    impl Write for Flaky {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                Some(kind) => Err(kind.into()),
                None => Ok(0),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let session = || {
        backend_tls(BackendTlsMode::Required, None, None)
            .session("h")
            .unwrap()
    };
    let flaky = |kinds: &[ErrorKind]| Flaky(kinds.iter().copied().collect());
    let read = session()
        .read_from(
            &mut flaky(&[ErrorKind::Interrupted, ErrorKind::WouldBlock]),
            &mut [0; 10],
        )
        .unwrap();
    assert_eq!(read, ReadOutcome::default());
    let read = session().read_from(&mut flaky(&[ErrorKind::ConnectionReset]), &mut [0; 10]);
    assert!(matches!(read, Err(TlsError::Io(e)) if e.kind() == ErrorKind::ConnectionReset));
    assert!(
        !session()
            .flush_to(&mut flaky(&[ErrorKind::Interrupted, ErrorKind::WouldBlock]))
            .unwrap()
    );
    let written = session().flush_to(&mut flaky(&[ErrorKind::Interrupted, ErrorKind::BrokenPipe]));
    assert!(matches!(written, Err(TlsError::Io(e)) if e.kind() == ErrorKind::BrokenPipe));
    let written = session().flush_to(&mut flaky(&[]));
    assert!(matches!(written, Err(TlsError::Io(e)) if e.kind() == ErrorKind::WriteZero));
    let mut closed = Pipe::new(1, 1);
    closed.close();
    assert!(matches!(
        session().read_from(&mut closed, &mut [0; 10]),
        Err(TlsError::ClosedInHandshake)
    ));
}

/// The price of an exchange in system calls: one write and one read each way while the reply is small.
#[test]
fn system_calls_of_an_exchange() {
    let mut pair = Pair::good(1 << 20, 1 << 20, 64 * 1024);
    pair.run_well();
    for (len, reads) in [
        (1, 1),
        (1_000, 1),
        (16_000, 1),
        (30_000, 1),
        (WRITE_BUFFER_MAX, 3),
    ] {
        let Pair { client, server } = &mut pair;
        let message = noise(len);
        server.output.take_calls();
        assert_eq!(server.session.write(&message), len);
        assert!(server.session.flush_to(&mut server.output).unwrap());
        assert_eq!(server.output.take_calls(), 1, "writes of {len} bytes");
        client.received.clear();
        loop {
            let outcome = client
                .session
                .read_from(&mut client.input, &mut client.buffer)
                .unwrap();
            client
                .received
                .extend_from_slice(&client.buffer[..outcome.bytes]);
            if !outcome.more_possible {
                break;
            }
        }
        assert!(client.received == message);
        assert_eq!(client.input.take_calls(), reads, "reads of {len} bytes");
        assert!(!client.session.wants_write(), "nothing to acknowledge");
    }
}

/// However much is held, rustls gets no more of it than the caller takes out.
#[test]
fn much_ciphertext_comes_out_through_a_small_buffer() {
    let mut pair = Pair::good(1 << 24, 1 << 24, 100);
    pair.run_well();
    let Pair { client, server } = &mut pair;
    let data = noise(300_000);
    let mut sent = 0;
    while sent < data.len() {
        sent += server.session.write(&data[sent..]);
        assert!(server.session.flush_to(&mut server.output).unwrap());
    }
    client.session.feed(&client.input.take_all());
    let mut got = Vec::new();
    while got.len() < data.len() {
        let outcome = client
            .session
            .read_from(&mut client.input, &mut client.buffer)
            .unwrap();
        got.extend_from_slice(&client.buffer[..outcome.bytes]);
        assert!(client.session.undrained <= 2 * 18 * 1024);
    }
    assert!(got == data);
}
