//! The raw client: connects, sends commands as the test wants them cut, reads whole replies as packets.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ::atlas::wire::{Capabilities, Greeting};
use socket2::{Domain, Socket, Type};

use super::binary::{Param, execute_payload};
use super::packet::{Ended, Link, Packet, Part, Stream, frame};
use super::reply::{Expect, Reply, ReplyReader, error_of};
use super::{Login, Refused};

/// A connection to a server or to Atlas. The methods panic when something breaks that the test did not ask about; those named
/// `try_…` tell.
///
/// ```ignore
/// let mut wire = Wire::connect(address, &Login::plain().without(Capabilities::DEPRECATE_EOF));
/// assert_eq!(wire.query("SELECT 1").cell(), "1");
/// let statement = wire.prepare("SELECT ? + 1");
/// let reply = wire.execute(&statement, &[Param::Int(41)]);
/// wire.send_split(b"\x03SELECT 2", &[1, 6], Duration::from_millis(2));    // header and one byte more, five bytes, the rest
/// let reply = wire.reply(Expect::Text);
/// ```
#[derive(Debug)]
pub struct Wire {
    pub(super) link: Link,
    pub(super) nonce: [u8; 20],
    pub(super) plugin: String,
    pub(super) unix: bool,
    /// The sequence ids with which the replies to the commands sent start: behind the last one of the command.
    pub(super) due: VecDeque<u8>,
    /// What the server's greeting offered.
    pub offered: Capabilities,
    /// What the connection has: known after the log-in.
    pub capabilities: Capabilities,
    /// The connection id that the greeting named.
    pub id: u32,
    pub version: String,
    pub greeting: Packet,
    /// The server's packets of the log-in, from behind the greeting to the verdict.
    pub login_packets: Vec<Packet>,
}

/// A prepared statement of one connection.
#[derive(Clone, Debug)]
pub struct Statement {
    pub id: u32,
    pub columns: u16,
    pub params: u16,
    /// The whole answer to the preparation.
    pub reply: Reply,
}

impl Wire {
    /// Connects and logs in.
    pub fn connect(address: SocketAddr, login: &Login) -> Self {
        Self::try_connect(address, login)
            .unwrap_or_else(|refused| panic!("log-in of {} at {address}: {refused:?}", login.user))
    }

    pub fn try_connect(address: SocketAddr, login: &Login) -> Result<Self, Refused> {
        Self::greet(address)?.log_in(login)
    }

    /// The same over a unix socket.
    pub fn try_connect_unix(path: &Path, login: &Login) -> Result<Self, Refused> {
        let stream = UnixStream::connect(path).map_err(|e| Refused::Connect(e.to_string()))?;
        Self::start(Link::new(Stream::Unix(stream)), true, TIMEOUT)?.log_in(login)
    }

    /// Connects and reads the greeting, no more: for tests that send log-ins of their own making, or none.
    pub fn greet(address: SocketAddr) -> Result<Self, Refused> {
        Self::greet_within(address, TIMEOUT)
    }

    /// The same, for servers that may hang; later reads wait as long.
    pub fn greet_within(address: SocketAddr, timeout: Duration) -> Result<Self, Refused> {
        let stream = TcpStream::connect_timeout(&address, timeout)
            .map_err(|error| Refused::Connect(error.to_string()))?;
        // Each write of a test is a segment of its own.
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self::start(Link::new(Stream::Tcp(stream)), false, timeout)
    }

    /// The same from another address of this machine.
    pub fn greet_from(address: SocketAddr, source: Ipv4Addr) -> Result<Self, Refused> {
        let connect = || -> std::io::Result<TcpStream> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddr::from((source, 0)).into())?;
            socket.connect(&address.into())?;
            Ok(socket.into())
        };
        let stream = connect().map_err(|error| Refused::Connect(error.to_string()))?;
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self::start(Link::new(Stream::Tcp(stream)), false, TIMEOUT)
    }

    /// Says that nothing more comes.
    pub fn end(&mut self) {
        self.link.end();
    }

    /// The same behind what a balancer sends first; it goes out in two pieces, cut at this place.
    pub fn greet_behind(address: SocketAddr, header: &[u8], cut: usize) -> Result<Self, Refused> {
        let stream = TcpStream::connect(address).map_err(|e| Refused::Connect(e.to_string()))?;
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let mut link = Link::new(Stream::Tcp(stream));
        let (first, rest) = header.split_at(cut.min(header.len()));
        link.write(first)?;
        if !rest.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
            link.write(rest)?;
        }
        Self::start(link, false, TIMEOUT)
    }

    fn start(mut link: Link, unix: bool, timeout: Duration) -> Result<Self, Refused> {
        link.set_timeout(timeout);
        let greeting = link.read()?.in_part(Part::Greeting);
        if greeting.first() == 0xff {
            let (code, state, text) = error_of(&greeting);
            return Err(Refused::Error { code, state, text });
        }
        let parsed = Greeting::parse(&greeting.payload)
            .unwrap_or_else(|error| panic!("greeting: {error}: {greeting:?}"));
        Ok(Self {
            link,
            nonce: parsed.nonce,
            plugin: String::from_utf8_lossy(parsed.plugin).into_owned(),
            unix,
            due: VecDeque::new(),
            offered: parsed.capabilities,
            capabilities: Capabilities::NONE,
            id: parsed.thread_id,
            version: String::from_utf8_lossy(parsed.version).into_owned(),
            greeting,
            login_packets: Vec::new(),
        })
    }

    /// The challenge of the greeting.
    pub fn nonce(&self) -> [u8; 20] {
        self.nonce
    }

    /// How long a read waits; 20 s at first.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.link.set_timeout(timeout);
    }

    /// From now on everything that is sent, log-in included, goes out in pieces of `size` bytes with a pause behind each; `None`
    /// sends whole again.
    #[must_use]
    pub fn in_pieces(mut self, pieces: Option<(usize, Duration)>) -> Self {
        self.link.pieces = pieces;
        self
    }

    // ---- commands with their replies ----

    /// COM_QUERY.
    pub fn query(&mut self, sql: &str) -> Reply {
        self.try_query(sql)
            .unwrap_or_else(|ended| panic!("{sql}: {ended:?}"))
    }

    pub fn try_query(&mut self, sql: &str) -> Result<Reply, Ended> {
        let payload = self.query_payload(sql.as_bytes());
        self.try_command(&payload)
    }

    /// The same, and panics on an error.
    pub fn ok(&mut self, sql: &str) -> Reply {
        let reply = self.query(sql);
        if let Some(error) = reply.error() {
            panic!("{sql}: {error:?}");
        }
        reply
    }

    /// The payload of COM_QUERY on this connection: with QUERY_ATTRIBUTES the statement stands behind two more bytes.
    pub fn query_payload(&self, sql: &[u8]) -> Vec<u8> {
        let mut payload = vec![0x03];
        if self.capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
            payload.extend_from_slice(&[0, 1]);
        }
        payload.extend_from_slice(sql);
        payload
    }

    /// COM_QUERY of a LOAD DATA LOCAL INFILE; the "file" is sent in packets of `piece` bytes. The request is in the reply too.
    pub fn query_with_file(&mut self, sql: &str, file: &[u8], piece: usize) -> Reply {
        let mut reply = self.query(sql);
        if reply.last().part != Part::FileRequest {
            return reply;
        }
        let mut seq = reply.last().seq.wrapping_add(1);
        for piece in file.chunks(piece) {
            self.send_as(seq, piece);
            seq = seq.wrapping_add(seq_behind(piece.len()));
        }
        self.send_as(seq, &[]);
        let rest = self
            .try_reply_from(Expect::Text, seq.wrapping_add(1))
            .unwrap_or_else(|ended| panic!("{sql}, after the file: {ended:?}"));
        reply.packets.extend(rest.packets);
        reply
    }

    /// Any command: sends the payload and reads the reply that this command has.
    pub fn command(&mut self, payload: &[u8]) -> Reply {
        self.try_command(payload)
            .unwrap_or_else(|ended| panic!("command {}: {ended:?}", payload.escape_ascii()))
    }

    pub fn try_command(&mut self, payload: &[u8]) -> Result<Reply, Ended> {
        self.due.push_back(seq_behind(payload.len()));
        self.link.send(0, payload)?;
        self.try_reply(Expect::of(payload))
    }

    pub fn prepare(&mut self, sql: &str) -> Statement {
        let prepared = self.try_prepare(sql);
        prepared.unwrap_or_else(|refused| panic!("prepare {sql}: {:?}", refused.error()))
    }

    /// Gives the answer that is an error.
    pub fn try_prepare(&mut self, sql: &str) -> Result<Statement, Box<Reply>> {
        let mut payload = vec![0x16];
        payload.extend_from_slice(sql.as_bytes());
        let reply = self.command(&payload);
        if reply.error().is_some() {
            return Err(Box::new(reply));
        }
        let head = &reply.packets[0].payload;
        let id = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let count = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        Ok(Statement {
            id,
            columns: count(5),
            params: count(7),
            reply,
        })
    }

    pub fn execute(&mut self, statement: &Statement, params: &[Param]) -> Reply {
        let payload = self.execute_payload(statement.id, 0, params, true);
        self.command(&payload)
    }

    /// Executes and leaves the rows in a cursor on the server; take them by [`Self::fetch`].
    pub fn execute_cursor(&mut self, statement: &Statement, params: &[Param]) -> Reply {
        let payload = self.execute_payload(statement.id, 1, params, true);
        self.command(&payload)
    }

    /// The payload of COM_STMT_EXECUTE. `cursor`: 0 none, 1 read-only. `types`: whether the parameters' types go along; without them
    /// the server takes those of the execution before.
    pub fn execute_payload(&self, id: u32, cursor: u8, params: &[Param], types: bool) -> Vec<u8> {
        execute_payload(id, cursor, params, types, self.capabilities)
    }

    pub fn fetch(&mut self, statement: &Statement, rows: u32) -> Reply {
        let mut payload = vec![0x1c];
        payload.extend_from_slice(&statement.id.to_le_bytes());
        payload.extend_from_slice(&rows.to_le_bytes());
        self.command(&payload)
    }

    pub fn long_data(&mut self, statement: &Statement, param: u16, data: &[u8]) {
        let mut payload = vec![0x18];
        payload.extend_from_slice(&statement.id.to_le_bytes());
        payload.extend_from_slice(&param.to_le_bytes());
        payload.extend_from_slice(data);
        self.command(&payload);
    }

    pub fn reset_statement(&mut self, statement: &Statement) -> Reply {
        let mut payload = vec![0x1a];
        payload.extend_from_slice(&statement.id.to_le_bytes());
        self.command(&payload)
    }

    pub fn close_statement(&mut self, statement: &Statement) {
        let mut payload = vec![0x19];
        payload.extend_from_slice(&statement.id.to_le_bytes());
        self.command(&payload);
    }

    /// COM_QUIT, then waits until the other side has closed.
    pub fn quit(mut self) {
        self.command(&[0x01]);
        let rest = self.read_to_close();
        assert!(
            rest.is_empty(),
            "bytes after COM_QUIT: {}",
            rest.escape_ascii()
        );
    }

    // ---- halves of commands ----

    /// Sends a command's payload, framed from sequence id 0 on.
    pub fn send(&mut self, payload: &[u8]) {
        self.due.push_back(seq_behind(payload.len()));
        self.send_as(0, payload);
    }

    pub fn send_as(&mut self, seq: u8, payload: &[u8]) {
        self.link.send(seq, payload).expect("send");
    }

    /// Sends a command's payload in pieces: its frame is cut at these places (0 is the first byte of the payload, so negative ones lie
    /// in the header: -3 is behind its first byte), with a pause at each cut so that the other side reads them one by one.
    pub fn send_split(&mut self, payload: &[u8], cuts: &[isize], pause: Duration) {
        self.due.push_back(seq_behind(payload.len()));
        let framed = frame(0, payload);
        let mut from = 0;
        for cut in cuts {
            let cut = usize::try_from(cut + 4).expect("the header has four bytes");
            self.send_bytes(&framed[from..cut]);
            std::thread::sleep(pause);
            from = cut;
        }
        self.send_bytes(&framed[from..]);
    }

    /// Bytes as they are, without a header.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes).expect("send");
    }

    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.link.write(bytes)
    }

    /// One whole reply to a command that was sent.
    pub fn reply(&mut self, expect: Expect) -> Reply {
        self.try_reply(expect)
            .unwrap_or_else(|ended| panic!("no whole reply ({expect:?}): {ended:?}"))
    }

    pub fn try_reply(&mut self, expect: Expect) -> Result<Reply, Ended> {
        let seq = self.due.pop_front().unwrap_or(1);
        self.try_reply_from(expect, seq)
    }

    /// The same where the first packet has a sequence id that does not follow from the command sent by [`Self::send`].
    pub fn try_reply_from(&mut self, expect: Expect, seq: u8) -> Result<Reply, Ended> {
        let mut packets = Vec::new();
        self.read_reply(expect, seq, &mut |packet| packets.push(packet))?;
        Ok(Reply {
            packets,
            capabilities: self.capabilities,
        })
    }

    /// One whole reply that is too large to keep: how many packets and bytes of payload, and the last packet.
    pub fn skim(&mut self, expect: Expect) -> (usize, usize, Packet) {
        let (mut packets, mut bytes, mut last) = (0, 0, None);
        let seq = self.due.pop_front().unwrap_or(1);
        self.read_reply(expect, seq, &mut |packet| {
            packets += 1;
            bytes += packet.payload.len();
            last = Some(packet);
        })
        .unwrap_or_else(|ended| panic!("after {packets} packets: {ended:?}"));
        (packets, bytes, last.expect("a reply"))
    }

    fn read_reply(
        &mut self,
        expect: Expect,
        seq: u8,
        sink: &mut dyn FnMut(Packet),
    ) -> Result<(), Ended> {
        ReplyReader {
            link: &mut self.link,
            capabilities: self.capabilities,
            seq,
            sink,
        }
        .read(expect)
    }

    /// The next packet, whatever it is.
    pub fn try_packet(&mut self) -> Result<Packet, Ended> {
        self.link.read()
    }

    /// Whether anything arrives within `time`. It stays to be read.
    pub fn speaks_within(&mut self, time: Duration) -> bool {
        self.link.set_timeout(time);
        let speaks = self.link.has_bytes();
        self.link.set_timeout(TIMEOUT);
        speaks
    }

    /// Everything up to the other side's close. Panics when it does not close.
    pub fn read_to_close(&mut self) -> Vec<u8> {
        match self.link.read_to_close() {
            Ok(bytes) => bytes,
            Err(Ended::Reset) => Vec::new(),
            Err(other) => panic!("the connection stays open: {other:?}"),
        }
    }
}

/// The sequence id behind a command with a payload of that length: each frame of 16 MiB - 1 takes one.
fn seq_behind(len: usize) -> u8 {
    u8::try_from((len / 0xff_ff_ff + 1) % 256).expect("small")
}

const TIMEOUT: Duration = Duration::from_secs(60);
