//! Tests of TLS sessions over pipes in memory: splits, tiny buffers, cut and forged streams, certificates of every kind.

mod hostile;
mod peers;
mod transfer;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::LazyLock;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

use super::*;
use crate::config::BackendTlsMode;

/// PEM texts, made anew by every test process.
struct Certificates {
    ca: String,
    other_ca: String,
    /// Names `db.example` and 127.0.0.1.
    good: Identity,
    other_name: Identity,
    expired: Identity,
    not_yet: Identity,
    /// Signed by the other authority.
    foreign: Identity,
    self_signed: Identity,
    /// A client's.
    client: Identity,
    foreign_client: Identity,
}

/// PEM texts of a certificate and its private key.
type Identity = (String, String);
type Issuer = CertifiedIssuer<'static, KeyPair>;

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(|| {
    let ca = issuer("bed");
    let other_ca = issuer("other");
    let names = ["db.example", "127.0.0.1"];
    let mut expired = params(&names);
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 1, 1);
    let mut not_yet = params(&names);
    not_yet.not_before = date_time_ymd(2900, 1, 1);
    not_yet.not_after = date_time_ymd(2901, 1, 1);
    let self_signed = issuer("self");
    Certificates {
        good: signed(&params(&names), &ca),
        other_name: signed(&params(&["other.example"]), &ca),
        expired: signed(&expired, &ca),
        not_yet: signed(&not_yet, &ca),
        foreign: signed(&params(&names), &other_ca),
        self_signed: (self_signed.pem(), self_signed.key().serialize_pem()),
        client: signed(&params(&["client"]), &ca),
        foreign_client: signed(&params(&["client"]), &other_ca),
        ca: ca.pem(),
        other_ca: other_ca.pem(),
    }
});

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

fn issuer(name: &str) -> Issuer {
    let mut params = params(&[name]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn signed(params: &CertificateParams, issuer: &Issuer) -> Identity {
    let key = KeyPair::generate().unwrap();
    (
        params.signed_by(&key, issuer).unwrap().pem(),
        key.serialize_pem(),
    )
}

fn server_tls(identity: &Identity, ca: Option<&str>) -> ServerTls {
    ServerTls::load(
        identity.0.as_bytes(),
        identity.1.as_bytes(),
        ca.map(str::as_bytes),
    )
    .unwrap()
}

fn backend_tls(mode: BackendTlsMode, ca: Option<&str>, identity: Option<&Identity>) -> BackendTls {
    BackendTls::load(
        mode,
        ca.map(str::as_bytes),
        identity.map(|(cert, key)| (cert.as_bytes(), key.as_bytes())),
    )
    .unwrap()
}

/// One direction of a socket: bounded, non-blocking, and read in pieces of `step`.
#[derive(Clone)]
struct Pipe(Rc<RefCell<PipeState>>);

struct PipeState {
    bytes: VecDeque<u8>,
    capacity: usize,
    step: usize,
    is_closed: bool,
    /// Everything that was ever written.
    record: Vec<u8>,
    /// Bytes that were ever read.
    read: usize,
    /// System calls that there would have been.
    calls: usize,
}

impl Pipe {
    fn new(capacity: usize, step: usize) -> Self {
        let (bytes, record) = (VecDeque::new(), Vec::new());
        Self(Rc::new(RefCell::new(PipeState {
            bytes,
            capacity,
            step,
            is_closed: false,
            read: 0,
            calls: 0,
            record,
        })))
    }

    fn close(&self) {
        self.0.borrow_mut().is_closed = true;
    }

    fn put(&self, bytes: &[u8]) {
        self.0.borrow_mut().bytes.extend(bytes);
    }

    fn take_all(&self) -> Vec<u8> {
        self.0.borrow_mut().bytes.drain(..).collect()
    }

    fn take_calls(&self) -> usize {
        std::mem::take(&mut self.0.borrow_mut().calls)
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().bytes.is_empty()
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.calls += 1;
        let n = buffer.len().min(state.step).min(state.bytes.len());
        if n == 0 && !state.is_closed {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (to, from) in buffer.iter_mut().zip(state.bytes.drain(..n)) {
            *to = from;
        }
        state.read += n;
        Ok(n)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.calls += 1;
        if state.is_closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut total = 0;
        for slice in slices {
            let n = slice
                .len()
                .min(state.capacity.saturating_sub(state.bytes.len()));
            state.bytes.extend(&slice[..n]);
            state.record.extend(&slice[..n]);
            total += n;
        }
        if total == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(total)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A session with its two pipes, what it still has to send, and what it received.
struct Side {
    session: TlsSession,
    input: Pipe,
    output: Pipe,
    to_send: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    buffer: Vec<u8>,
    last: ReadOutcome,
}

impl Side {
    /// One turn as the worker would take it. True when anything moved.
    fn turn(&mut self) -> Result<bool, TlsError> {
        let read_before = self.input.0.borrow().read;
        let mut moved = false;
        while !self.last.eof {
            self.last = self.session.read_from(&mut self.input, &mut self.buffer)?;
            self.received
                .extend_from_slice(&self.buffer[..self.last.bytes]);
            assert!(self.session.pending.len() <= self.buffer.len().max(SMALL_READ));
            assert!(
                self.session.undrained <= 2 * 18 * 1024,
                "{}",
                self.session.undrained
            );
            if !self.last.more_possible {
                break;
            }
        }
        if !self.session.is_handshaking() {
            let n = self.session.write(&self.to_send[self.sent..]);
            self.sent += n;
            moved |= n > 0;
        }
        let held = self
            .session
            .conn
            .process_new_packets()
            .unwrap()
            .tls_bytes_to_write();
        assert!(held <= WRITE_BUFFER_MAX + 4096, "{held}");
        let before = self.output.0.borrow().record.len();
        self.session.flush_to(&mut self.output)?;
        let read = self.input.0.borrow().read - read_before;
        Ok(moved || read > 0 || self.output.0.borrow().record.len() > before)
    }
}

struct Pair {
    client: Side,
    server: Side,
}

impl Pair {
    fn new(
        client: TlsSession,
        server: TlsSession,
        capacity: usize,
        step: usize,
        buffer: usize,
    ) -> Self {
        let (up, down) = (Pipe::new(capacity, step), Pipe::new(capacity, step));
        let side = |session, input: &Pipe, output: &Pipe| Side {
            session,
            input: input.clone(),
            output: output.clone(),
            to_send: Vec::new(),
            sent: 0,
            received: Vec::new(),
            buffer: vec![0; buffer],
            last: ReadOutcome::default(),
        };
        Self {
            client: side(client, &down, &up),
            server: side(server, &up, &down),
        }
    }

    fn good(capacity: usize, step: usize, buffer: usize) -> Self {
        let client = backend_tls(BackendTlsMode::VerifyIdentity, Some(&CERTIFICATES.ca), None)
            .session("db.example")
            .unwrap();
        let server = server_tls(&CERTIFICATES.good, None).session().unwrap();
        Self::new(client, server, capacity, step, buffer)
    }

    /// Turns until nothing moves. What each side ended with.
    fn run(&mut self) -> (Result<(), TlsError>, Result<(), TlsError>) {
        loop {
            let (client, server) = (self.client.turn(), self.server.turn());
            match (client, server) {
                (Ok(false), Ok(false)) => return (Ok(()), Ok(())),
                (Ok(_), Ok(_)) => {}
                (client, server) => {
                    // The alert goes out, and the other side hears of it.
                    let _ = self.client.session.flush_to(&mut self.client.output);
                    let _ = self.server.session.flush_to(&mut self.server.output);
                    let client = client.and_then(|_| self.client.turn());
                    let server = server.and_then(|_| self.server.turn());
                    return (client.map(drop), server.map(drop));
                }
            }
        }
    }

    fn settle(&mut self) {
        assert!(matches!(self.run(), (Ok(()), Ok(()))));
    }

    fn run_well(&mut self) {
        self.settle();
        assert!(!self.client.session.is_handshaking() && !self.server.session.is_handshaking());
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 12_345_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}
