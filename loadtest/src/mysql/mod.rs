//! A measuring MySQL client: blocking, log-in with `mysql_native_password`, text and prepared statements, replies walked without
//! being kept. One write and (where the reply is one segment) one read per statement, so that the client adds as little as it can.
//! Not a client library: no TLS, no values but the first row's texts, no other plugins.

mod login;
mod reply;
mod sha1;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) use reply::Reply;
use reply::{Expect, Walk};

/// The account and schema that all measurements use.
pub(crate) const USER: &str = "sbtest";
pub(crate) const PASSWORD: &str = "sbpass";
pub(crate) const SCHEMA: &str = "sbtest";

/// Longest wait for any byte.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a statement or a log-in gave no result.
#[derive(Debug)]
pub(crate) enum ClientError {
    Io(io::Error),
    /// The server's own error: number and text.
    Server(u16, String),
    /// Bytes that a server does not send at this place.
    Protocol(&'static str),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "{e}"),
            Self::Server(code, text) => write!(f, "error {code}: {text}"),
            Self::Protocol(what) => write!(f, "unexpected bytes in {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buf),
            Self::Unix(s) => s.read(buf),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.write_all(bytes),
            Self::Unix(s) => s.write_all(bytes),
        }
    }
}

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared(u32);

/// A reply that has not arrived whole.
#[derive(Debug)]
pub(crate) struct Pending(Walk);

impl Pending {
    pub(crate) fn rows(&self) -> u64 {
        self.0.rows()
    }
}

/// A logged-in connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// The packet being sent.
    out: Vec<u8>,
    /// Bytes read but not walked yet; empty between statements.
    input: Vec<u8>,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(s) => s.as_fd(),
            Stream::Unix(s) => s.as_fd(),
        }
    }
}

impl Connection {
    /// Connects over TCP and logs in as [`USER`].
    ///
    /// # Errors
    /// The server's refusal, or what went wrong on the way.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, ClientError> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Self::log_in(Stream::Tcp(stream), USER, PASSWORD, SCHEMA)
    }

    /// Connects through a unix socket and logs in as `user` without a password.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_unix(path: &Path, user: &str, schema: &str) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path)?;
        Self::log_in(Stream::Unix(stream), user, "", schema)
    }

    fn log_in(
        stream: Stream,
        user: &str,
        password: &str,
        schema: &str,
    ) -> Result<Self, ClientError> {
        let mut c = Self {
            stream,
            out: Vec::new(),
            input: Vec::new(),
        };
        let (mut seq, greeting) = c.read_packet()?;
        let mut answer = login::response(&greeting, user, password, schema)?;
        loop {
            c.send(seq.wrapping_add(1), &answer)?;
            let packet;
            (seq, packet) = c.read_packet()?;
            match login::next(&packet, password)? {
                Some(more) => answer = more,
                None => return Ok(c),
            }
        }
    }

    /// Runs a text statement to the end of its reply.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Reply, ClientError> {
        self.query_watched(sql, &mut |_, _| {})
    }

    /// As [`Self::query`]; `watch` is called after every read with the number of bytes read and of whole rows so far.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(crate) fn query_watched(
        &mut self,
        sql: &str,
        watch: &mut dyn FnMut(usize, u64),
    ) -> Result<Reply, ClientError> {
        self.command(0x03, sql.as_bytes())?;
        self.finish(Expect::Result, watch)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(crate) fn prepare(&mut self, sql: &str) -> Result<Prepared, ClientError> {
        self.command(0x16, sql.as_bytes())?;
        Ok(Prepared(
            self.finish(Expect::Prepare, &mut |_, _| {})?.statement_id,
        ))
    }

    /// Runs a prepared statement of one integer parameter.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(crate) fn execute(
        &mut self,
        statement: Prepared,
        value: u32,
    ) -> Result<Reply, ClientError> {
        let mut body = [0; 19];
        body[0..4].copy_from_slice(&statement.0.to_le_bytes());
        // [4]: no cursor; one iteration; [9]: no NULL; types follow: [11..13] a 32-bit integer
        body[5] = 1;
        body[10] = 1;
        body[11] = 3;
        body[13..17].copy_from_slice(&value.to_le_bytes());
        self.command(0x17, &body[..17])?;
        self.finish(Expect::Result, &mut |_, _| {})
    }

    /// Sends a text statement; its reply is taken with [`Self::take`].
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(crate) fn ask(&mut self, sql: &str) -> Result<Pending, ClientError> {
        self.command(0x03, sql.as_bytes())?;
        Ok(Pending(Walk::new(Expect::Result)))
    }

    /// Reads once, which waits when nothing has arrived; true when the reply is complete.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(crate) fn take(
        &mut self,
        pending: &mut Pending,
        chunk: &mut [u8],
    ) -> Result<bool, ClientError> {
        let n = self.stream.read(chunk)?;
        let Some(read) = chunk.get(..n).filter(|r| !r.is_empty()) else {
            return Err(closed());
        };
        pending.0.feed(read)
    }

    /// Says good-bye and closes.
    pub(crate) fn quit(mut self) {
        // The connection is closed in any case.
        let _ = self.command(0x01, &[]);
    }

    fn command(&mut self, code: u8, body: &[u8]) -> Result<(), ClientError> {
        let len = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
        let [a, b, c, 0] = len.to_le_bytes() else {
            return Err(ClientError::Protocol("a command of 16 MiB"));
        };
        self.out.clear();
        self.out.extend_from_slice(&[a, b, c, 0, code]);
        self.out.extend_from_slice(body);
        Ok(self.stream.write_all(&self.out)?)
    }

    fn send(&mut self, seq: u8, payload: &[u8]) -> Result<(), ClientError> {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let [a, b, c, 0] = len.to_le_bytes() else {
            return Err(ClientError::Protocol("a packet of 16 MiB"));
        };
        self.out.clear();
        self.out.extend_from_slice(&[a, b, c, seq]);
        self.out.extend_from_slice(payload);
        Ok(self.stream.write_all(&self.out)?)
    }

    /// Reads one whole packet of the log-in: its sequence number and payload.
    fn read_packet(&mut self) -> Result<(u8, Vec<u8>), ClientError> {
        loop {
            if let Some((&[a, b, c, seq], rest)) = self.input.split_first_chunk::<4>() {
                let len = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
                if let Some(payload) = rest.get(..len) {
                    let payload = payload.to_vec();
                    self.input.drain(..4 + len);
                    return Ok((seq, payload));
                }
            }
            let mut chunk = [0; 4096];
            let n = self.stream.read(&mut chunk)?;
            let Some(read) = chunk.get(..n).filter(|r| !r.is_empty()) else {
                return Err(closed());
            };
            self.input.extend_from_slice(read);
        }
    }

    /// Reads to the end of a reply.
    fn finish(
        &mut self,
        expect: Expect,
        watch: &mut dyn FnMut(usize, u64),
    ) -> Result<Reply, ClientError> {
        let mut walk = Walk::new(expect);
        let mut chunk = [0; 65536];
        loop {
            let n = self.stream.read(&mut chunk)?;
            let Some(read) = chunk.get(..n).filter(|r| !r.is_empty()) else {
                return Err(closed());
            };
            let done = walk.feed(read)?;
            watch(n, walk.rows());
            if done {
                return Ok(walk.into_reply());
            }
        }
    }
}

fn closed() -> ClientError {
    ClientError::Io(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the server closed the connection",
    ))
}
