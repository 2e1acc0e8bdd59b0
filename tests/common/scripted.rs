//! A server of a few lines: it greets, lets everyone in, and answers each command as the test's script says. It keeps what arrived.
//! For what no real server does on demand: malformed replies, deaths in the middle of one, words out of turn.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::atlas::wire::{Capabilities, Greeting, Login as LoginPacket, Status};
use socket2::SockRef;

use super::binary::{put_bytes, put_lenenc};
use super::packet::frame;

/// One running server. It ends with the process of the test.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A command that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The connection's number, from 1 on, which is also the id that its greeting names.
    pub connection: usize,
    pub payload: Vec<u8>,
}

impl Arrival {
    /// The statement of a COM_QUERY; of other commands nothing.
    pub fn sql(&self) -> String {
        match self.payload.split_first() {
            Some((3, sql)) => String::from_utf8_lossy(sql).into_owned(),
            _ => String::new(),
        }
    }
}

/// What kind of server it is.
#[derive(Clone, Debug)]
pub struct Role {
    pub version: &'static str,
    pub capabilities: Capabilities,
    /// Of the greeting, the log-in's OK and every other OK and EOF.
    pub status: Status,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            version: "8.4.6",
            capabilities: super::Login::USUAL
                | Capabilities::FOUND_ROWS
                | Capabilities::CONNECT_WITH_DB,
            status: Status::AUTOCOMMIT,
        }
    }
}

type Script = dyn Fn(&mut Talk<'_>, &Arrival) + Send + Sync;

struct Shared {
    role: Role,
    script: Box<Script>,
    arrivals: Mutex<Vec<Arrival>>,
    count: AtomicUsize,
    /// Said to newcomers in place of a greeting; an empty packet says nothing at all.
    refusal: Mutex<Option<Vec<u8>>>,
    streams: Mutex<Vec<(usize, TcpStream)>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// The script's side of one command's conversation. Sequence ids count on by themselves.
#[derive(Debug)]
pub struct Talk<'a> {
    stream: &'a TcpStream,
    pub seq: u8,
    pub capabilities: Capabilities,
    pub status: Status,
    is_over: bool,
}

impl Scripted {
    /// `script` answers every command but COM_PING, COM_INIT_DB, COM_QUIT, and the questions that checks ask.
    pub fn start(script: impl Fn(&mut Talk<'_>, &Arrival) + Send + Sync + 'static) -> Self {
        Self::start_as(Role::default(), script)
    }

    pub fn start_as(
        role: Role,
        script: impl Fn(&mut Talk<'_>, &Arrival) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            role,
            script: Box::new(script),
            arrivals: Mutex::default(),
            count: AtomicUsize::new(0),
            refusal: Mutex::default(),
            streams: Mutex::default(),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = accepting.clone();
                std::thread::spawn(move || {
                    // The other side hung up: that is the end of it.
                    let _ = shared.serve(&stream);
                });
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The commands that arrived, but for those of checks: COM_PING, COM_QUIT, the questions for the sql_mode and the replication.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.lock().expect("not poisoned").clone()
    }

    /// The statements among them.
    pub fn statements(&self) -> Vec<String> {
        let arrivals = self.arrivals().into_iter();
        arrivals
            .map(|arrival| arrival.sql())
            .filter(|sql| !sql.is_empty())
            .collect()
    }

    /// From now on newcomers are refused with this error in place of a greeting.
    pub fn refuse(&self, code: u16, text: &str) {
        let payload = [&[0xff][..], &code.to_le_bytes(), text.as_bytes()].concat();
        *self.shared.refusal.lock().expect("not poisoned") = Some(frame(0, &payload));
    }

    /// From now on newcomers get no greeting and no end.
    pub fn fall_silent(&self) {
        *self.shared.refusal.lock().expect("not poisoned") = Some(Vec::new());
    }

    /// Says something to a connection that has asked for nothing, or ends it: `None`.
    pub fn interrupt(&self, connection: usize, bytes: Option<&[u8]>) {
        let streams = self.shared.streams.lock().expect("not poisoned");
        let found = streams.iter().find(|(number, _)| *number == connection);
        match (found, bytes) {
            (Some((_, stream)), Some(bytes)) => (&*stream).write_all(bytes).expect("say"),
            (Some((_, stream)), None) => {
                // The other side may have done so meanwhile.
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            (None, None) => {}
            (None, Some(_)) => panic!("no such connection"),
        }
    }

    /// Whether the other side has closed this connection.
    pub fn is_closed(&self, connection: usize) -> bool {
        let streams = self.shared.streams.lock().expect("not poisoned");
        !streams.iter().any(|(number, _)| *number == connection)
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let refusal = self.refusal.lock().expect("not poisoned").clone();
        if let Some(refusal) = refusal {
            (&*stream).write_all(&refusal)?;
            if refusal.is_empty() {
                // Until the other side gives up.
                let _ = (&*stream).read(&mut [0; 1]);
            }
            return Ok(());
        }
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.streams
            .lock()
            .expect("not poisoned")
            .push((number, stream.try_clone()?));
        let result = self.session(stream, number);
        self.streams
            .lock()
            .expect("not poisoned")
            .retain(|(other, _)| *other != number);
        result
    }

    fn session(&self, stream: &TcpStream, number: usize) -> io::Result<()> {
        let mut greeting = Vec::new();
        Greeting {
            version: self.role.version.as_bytes(),
            thread_id: u32::try_from(number).expect("few"),
            nonce: [b'n'; 20],
            capabilities: self.role.capabilities,
            charset: 45,
            status: self.role.status,
            plugin: b"mysql_native_password",
        }
        .write(&mut greeting, 0);
        (&*stream).write_all(&greeting)?;
        let (seq, payload) = read_packet(stream)?;
        let capabilities = LoginPacket::parse(&payload).map_or(Capabilities::NONE, |login| {
            login.capabilities & self.role.capabilities
        });
        let mut talk = Talk {
            stream,
            seq: seq.wrapping_add(1),
            capabilities,
            status: self.role.status,
            is_over: false,
        };
        talk.ok();
        while !talk.is_over {
            let (seq, payload) = read_packet(stream)?;
            talk.seq = seq.wrapping_add(1);
            match payload.first() {
                Some(0x01) => break,
                Some(0x0e | 0x02) => talk.ok(),
                _ if payload.starts_with(b"\x03SELECT @@global.sql_mode") => {
                    talk.rows(&["m", "i", "w"], &[&["", "", "28800"]]);
                }
                // Atlas has the server tell of changes of session state.
                _ if payload.starts_with(b"\x03SELECT @@session_track_schema") => {
                    talk.rows(
                        &["schema", "state", "variables"],
                        &[&["1", "0", "autocommit"]],
                    );
                }
                _ if payload.starts_with(b"\x03SET SESSION session_track_")
                    || payload.starts_with(b"\x03EXECUTE IMMEDIATE CONCAT(")
                    || payload == b"\x03DO 0" =>
                {
                    talk.ok();
                }
                _ if payload == b"\x03SHOW REPLICA STATUS" => talk.rows(&["s"], &[]),
                _ if payload == b"\x03SHOW ALL SLAVES STATUS" => talk.rows(&["s"], &[]),
                _ => {
                    let arrival = Arrival {
                        connection: number,
                        payload,
                    };
                    self.arrivals
                        .lock()
                        .expect("not poisoned")
                        .push(arrival.clone());
                    (self.script)(&mut talk, &arrival);
                }
            }
        }
        Ok(())
    }
}

impl Talk<'_> {
    /// One packet with this payload.
    pub fn packet(&mut self, payload: &[u8]) {
        let bytes = frame(self.seq, payload);
        self.raw(&bytes);
        self.seq = self.seq.wrapping_add(1);
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        if (&mut &*self.stream).write_all(bytes).is_err() {
            self.is_over = true;
        }
    }

    pub fn ok(&mut self) {
        self.ok_with(self.status);
    }

    pub fn ok_with(&mut self, status: Status) {
        let [low, high] = status.0.to_le_bytes();
        self.packet(&[0, 0, 0, low, high, 0, 0]);
    }

    pub fn error(&mut self, code: u16, text: &str) {
        let payload = [&[0xff][..], &code.to_le_bytes(), b"#HY000", text.as_bytes()].concat();
        self.packet(&payload);
    }

    /// A whole result set of text columns.
    pub fn rows(&mut self, columns: &[&str], rows: &[&[&str]]) {
        self.columns(columns);
        for row in rows {
            self.row(row);
        }
        self.end_of_rows(self.status);
    }

    /// The head of a result set: count, definitions, and the EOF where there is one.
    pub fn columns(&mut self, columns: &[&str]) {
        let mut count = Vec::new();
        put_lenenc(&mut count, columns.len() as u64);
        self.packet(&count);
        for name in columns {
            let mut definition = Vec::new();
            for text in ["def", "", "", "", name, name] {
                put_bytes(&mut definition, text.as_bytes());
            }
            // Character set, width, type VAR_STRING, flags, decimals, filler.
            definition.extend_from_slice(&[12, 45, 0, 0, 1, 0, 0, 0xfd, 0, 0, 0, 0, 0]);
            self.packet(&definition);
        }
        if !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            let [low, high] = self.status.0.to_le_bytes();
            self.packet(&[0xfe, 0, 0, low, high]);
        }
    }

    pub fn row(&mut self, cells: &[&str]) {
        let mut row = Vec::new();
        for cell in cells {
            put_bytes(&mut row, cell.as_bytes());
        }
        self.packet(&row);
    }

    pub fn end_of_rows(&mut self, status: Status) {
        let [low, high] = status.0.to_le_bytes();
        if self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.packet(&[0xfe, 0, 0, low, high, 0, 0]);
        } else {
            self.packet(&[0xfe, 0, 0, low, high]);
        }
    }

    /// The client's next packet: what it sends when it is asked for a file.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        let (seq, payload) = read_packet(self.stream).ok()?;
        self.seq = seq.wrapping_add(1);
        Some(payload)
    }

    /// Ends the connection, by a goodbye of TCP.
    pub fn close(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.is_over = true;
    }

    /// Ends the connection by a reset, as a dying machine does.
    pub fn reset(&mut self) {
        let _ = SockRef::from(self.stream).set_linger(Some(Duration::ZERO));
        self.is_over = true;
    }
}

/// One packet: sequence id of its last frame and payload.
fn read_packet(mut stream: &TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut payload = Vec::new();
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let len = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        let from = payload.len();
        payload.resize(from + len, 0);
        stream.read_exact(&mut payload[from..])?;
        if len < 0xff_ff_ff {
            return Ok((head[3], payload));
        }
    }
}
