//! Checks of servers: one thread for each host keeps one connection open by the monitor's account, asks at every interval
//! whether the server still answers, and publishes what it learns. Blocking I/O with deadlines: nothing waits for these
//! threads but the start, and a server that hangs holds up its own thread only.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::config::{BackendTlsMode, HostAddress, MonitorConfig};
use crate::pool::{HostId, Offer, ServerFacts};
use crate::session::{Credentials, Failure, Step, TlsWish, Upstream, Wish};
use crate::wire::{Capabilities, Command, Header, PacketWriter, Reader};
use crate::worker::tls::TlsSession;
use crate::worker::{Shared, is_exhaustion};

/// Starts a thread for each host. `first_round` counts the hosts whose first check has ended, well or not.
///
/// # Errors
/// A thread could not be started.
pub fn start(shared: &Arc<Shared>, first_round: &Arc<AtomicUsize>) -> io::Result<()> {
    for index in 0..shared.snapshot.hosts.len() {
        let Ok(id) = u16::try_from(index) else {
            continue;
        };
        let (shared, first_round) = (shared.clone(), first_round.clone());
        std::thread::Builder::new()
            .name(format!("check-{index}"))
            .spawn(move || Prober::new(shared, HostId(id)).run(&first_round))?;
    }
    Ok(())
}

/// What a check found.
#[derive(Debug)]
enum Fault {
    /// The server answers, but not to the monitor's account. What is refused is a log-in; the server may serve others well.
    Refused { code: u16, message: String },
    /// It does not answer.
    Down(String),
    /// This machine is short of something, which says nothing of the server.
    Ours(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if is_exhaustion(&error) {
            Self::Ours(error.to_string())
        } else {
            Self::Down(error.to_string())
        }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Down(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Self::Down(why.to_owned())
    }
}

/// Server shutdown in progress: the one refusal that says something of the server.
const SHUTDOWN: u16 = 1053;

struct Prober {
    shared: Arc<Shared>,
    host: HostId,
    connection: Option<Connection>,
    failures: u32,
    successes: u32,
    /// The log has the refusal already.
    is_refused: bool,
}

impl Prober {
    fn new(shared: Arc<Shared>, host: HostId) -> Self {
        Self {
            shared,
            host,
            connection: None,
            failures: 0,
            successes: 0,
            is_refused: false,
        }
    }

    fn run(mut self, first_round: &AtomicUsize) {
        let mut is_first = true;
        loop {
            let outcome = self.check();
            self.note(outcome);
            if std::mem::take(&mut is_first) {
                first_round.fetch_add(1, Ordering::Release);
            }
            std::thread::sleep(self.monitor().interval);
        }
    }

    fn monitor(&self) -> &MonitorConfig {
        &self.shared.snapshot.config.monitor
    }

    fn address(&self) -> &HostAddress {
        &self.shared.snapshot.hosts[self.host.index()].address
    }

    fn note(&mut self, outcome: Result<(), Fault>) {
        match outcome {
            Ok(()) => {
                self.is_refused = false;
                self.answered();
            }
            Err(Fault::Refused { code, message }) if code != SHUTDOWN => {
                if !std::mem::replace(&mut self.is_refused, true) {
                    log::warn!(
                        "server {} refuses the monitor's account: {code} {message}",
                        self.address()
                    );
                }
                self.answered();
            }
            Err(Fault::Ours(why)) => log::warn!("cannot check {}: {why}", self.address()),
            Err(Fault::Refused { message: why, .. } | Fault::Down(why)) => self.failed(&why),
        }
    }

    fn answered(&mut self) {
        let host = self.shared.hosts.get(self.host);
        self.failures = 0;
        self.successes = self.successes.saturating_add(1);
        if !host.is_up() && self.successes >= self.monitor().rise && host.set_up(true) {
            log::info!("server {} answers checks again", self.address());
        }
    }

    fn failed(&mut self, why: &str) {
        let host = self.shared.hosts.get(self.host);
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            log::warn!("check of server {} failed: {why}", self.address());
        }
        if self.failures >= self.monitor().fall && host.set_up(false) {
            log::warn!(
                "server {} is out: {} checks failed, the last with: {why}",
                self.address(),
                self.failures
            );
        }
    }

    fn check(&mut self) -> Result<(), Fault> {
        let deadline = Instant::now() + self.monitor().timeout;
        if let Some(connection) = &mut self.connection {
            match connection.ping(deadline) {
                Ok(()) => return Ok(()),
                // The server may have restarted; a new connection tells.
                Err(_) => self.connection = None,
            }
        }
        let mut connection = self.connect(deadline)?;
        let mut facts = connection.facts.clone();
        facts.ansi_quotes = connection.ansi_quotes(deadline)?;
        self.publish(facts);
        self.connection = Some(connection);
        Ok(())
    }

    fn publish(&self, facts: ServerFacts) {
        let host = self.shared.hosts.get(self.host);
        if host.facts().is_some_and(|known| *known == facts) {
            return;
        }
        host.set_facts(facts);
        // The primary of the first group comes first: clients are told of its version before anything is known of them.
        let all: Vec<_> = self
            .shared
            .snapshot
            .groups
            .iter()
            .flat_map(|group| {
                std::iter::once(group.primary).chain(group.replicas.iter().map(|(host, _)| *host))
            })
            .filter_map(|host| self.shared.hosts.get(host).facts())
            .collect();
        if let Some(offer) = Offer::of(all.iter().map(AsRef::as_ref)) {
            self.shared.offer.store(Arc::new(offer));
        }
    }

    /// Logs in, by each of the listed passwords in turn.
    fn connect(&self, deadline: Instant) -> Result<Connection, Fault> {
        let mut attempt = 0;
        loop {
            match self.connect_by(attempt, deadline) {
                Err(Fault::Refused { code: 1045, .. })
                    if attempt + 1 < self.monitor().passwords.len() =>
                {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    fn connect_by(&self, attempt: usize, deadline: Instant) -> Result<Connection, Fault> {
        let stream = match self.address() {
            HostAddress::Unix(path) => UnixStream::connect(path).map(Stream::Unix)?,
            HostAddress::Ip(address) => tcp(&[*address], deadline)?.0,
            HostAddress::Name(name, port) => {
                let found: Vec<SocketAddr> = (name.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|error| format!("cannot resolve {name}: {error}"))?
                    .collect();
                let (stream, address) = tcp(&found, deadline)?;
                self.shared.hosts.get(self.host).set_address(address);
                stream
            }
        };
        let monitor = self.monitor();
        let group = self.shared.snapshot.hosts[self.host.index()].group;
        let tls = match self.shared.snapshot.config.groups[group].tls.mode {
            BackendTlsMode::Off => TlsWish::No,
            BackendTlsMode::Preferred => TlsWish::IfOffered,
            BackendTlsMode::Required
            | BackendTlsMode::VerifyCa
            | BackendTlsMode::VerifyIdentity => TlsWish::Required,
        };
        let wish = Wish {
            capabilities: Capabilities::LONG_PASSWORD | Capabilities::PLUGIN_AUTH,
            needed: Capabilities::NONE,
            max_packet: 1 << 24,
            charset: 45,
            schema: None,
            attributes: Box::default(),
            tls,
            local: matches!(stream, Stream::Unix(_)),
        };
        let credentials = Credentials {
            user: monitor.user.clone().into_bytes(),
            passwords: monitor.passwords.clone().into(),
        };
        let mut upstream = Upstream::new(wish, credentials, attempt);
        let mut link = Link {
            stream,
            tls: None,
            received: Vec::new(),
        };
        loop {
            let (consumed, step) = upstream.handle(&link.received);
            link.received.drain(..consumed);
            match step {
                Step::Wait if consumed == 0 => link.receive(deadline)?,
                Step::Wait => {}
                Step::Send(packets) => link.send(&packets, deadline)?,
                Step::SendThenTls(packets) => {
                    link.send(&packets, deadline)?;
                    self.start_tls(&mut link, group, deadline)?;
                    if let Step::Send(packets) = upstream.tls_ready() {
                        link.send(&packets, deadline)?;
                    }
                }
                Step::Ready(ready) => {
                    return Ok(Connection {
                        link,
                        facts: ready.facts,
                    });
                }
                Step::Failed(Failure::Refused { code, message, .. }) => {
                    return Err(Fault::Refused { code, message });
                }
                Step::Failed(Failure::Unreachable(why)) => return Err(Fault::Down(why)),
                Step::Failed(Failure::NoHost | Failure::Incompatible | Failure::Exhausted(_)) => {
                    return Err(Fault::Down("it cannot be used".to_owned()));
                }
            }
        }
    }

    fn start_tls(&self, link: &mut Link, group: usize, deadline: Instant) -> Result<(), Fault> {
        let name = match self.address() {
            HostAddress::Name(name, _) => name.clone(),
            HostAddress::Ip(address) => address.ip().to_string(),
            HostAddress::Unix(_) => "localhost".to_owned(),
        };
        let tls = self.shared.backend_tls[group]
            .as_ref()
            .ok_or("no TLS is configured for the group")?;
        let mut session = tls.session(&name).map_err(|error| error.to_string())?;
        session.feed(&std::mem::take(&mut link.received));
        link.tls = Some(session);
        while link.tls.as_ref().is_some_and(TlsSession::is_handshaking) {
            link.send(&[], deadline)?;
            if link.tls.as_ref().is_some_and(TlsSession::is_handshaking) {
                link.receive(deadline)?;
            }
        }
        Ok(())
    }
}

fn tcp(addresses: &[SocketAddr], deadline: Instant) -> Result<(Stream, SocketAddr), Fault> {
    let mut why = "its name has no address".to_owned();
    for address in addresses {
        let Some(left) = left(deadline) else {
            return Err("it did not answer in time".into());
        };
        match TcpStream::connect_timeout(address, left) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok((Stream::Tcp(stream), *address));
            }
            Err(error) if is_exhaustion(&error) => return Err(error.into()),
            Err(error) => why = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(why.into())
}

fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_deadline(&self, deadline: Instant) -> io::Result<()> {
        let left = Some(left(deadline).ok_or(ErrorKind::TimedOut)?);
        match self {
            Self::Tcp(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
            Self::Unix(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream with its TLS and the bytes not looked at yet.
struct Link {
    stream: Stream,
    tls: Option<TlsSession>,
    received: Vec<u8>,
}

impl Link {
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        self.stream.set_deadline(deadline)?;
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some(tls) => {
                if tls.write(bytes) < bytes.len() {
                    return Err(ErrorKind::WriteZero.into());
                }
                tls.flush_to(&mut self.stream)
                    .map_err(io::Error::other)
                    .map(|_| ())
            }
        }
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<()> {
        self.stream.set_deadline(deadline)?;
        let mut buffer = [0; 16 * 1024];
        let n = match &mut self.tls {
            None => self.stream.read(&mut buffer)?,
            Some(tls) => loop {
                let outcome = tls
                    .read_from(&mut self.stream, &mut buffer)
                    .map_err(io::Error::other)?;
                if outcome.bytes > 0
                    || outcome.eof
                    || tls.is_handshaking()
                    || !outcome.more_possible
                {
                    break outcome.bytes;
                }
            },
        };
        if n == 0
            && self
                .tls
                .as_ref()
                .is_none_or(|tls| !tls.is_handshaking() && left(deadline).is_none())
        {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.received
            .extend_from_slice(buffer.get(..n).unwrap_or_default());
        Ok(())
    }

    fn packet(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        loop {
            if let Some(header) = Header::parse(&self.received)
                && let Some(payload) = self.received.get(4..4 + header.len)
            {
                let payload = payload.to_vec();
                self.received.drain(..4 + header.len);
                return Ok(payload);
            }
            self.receive(deadline)?;
        }
    }
}

/// A connection by the monitor's account.
struct Connection {
    link: Link,
    facts: ServerFacts,
}

impl Connection {
    fn ping(&mut self, deadline: Instant) -> io::Result<()> {
        self.link
            .send(&[1, 0, 0, 0, Command::Ping.code()], deadline)?;
        match self.link.packet(deadline)?.first() {
            Some(0) => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Whether the server's default sql_mode makes `"` an identifier quote; `None` when it does not say.
    fn ansi_quotes(&mut self, deadline: Instant) -> io::Result<Option<bool>> {
        let mut packet = Vec::new();
        let mut writer = PacketWriter::begin(&mut packet, 0);
        writer.u8(Command::Query.code());
        writer.bytes(b"SELECT @@global.sql_mode");
        writer.finish();
        self.link.send(&packet, deadline)?;
        // Column count, one definition, EOF, one row, EOF: the connection was opened without DEPRECATE_EOF.
        if self.link.packet(deadline)?.first() != Some(&1) {
            return Ok(None);
        }
        self.link.packet(deadline)?;
        self.link.packet(deadline)?;
        let row = self.link.packet(deadline)?;
        self.link.packet(deadline)?;
        let mode = Reader::new("row", &row)
            .lenenc_bytes("sql_mode")
            .map(<[u8]>::to_vec)
            .unwrap_or_default();
        Ok(Some(
            mode.split(|b| *b == b',')
                .any(|word| word.eq_ignore_ascii_case(b"ANSI_QUOTES")),
        ))
    }
}
