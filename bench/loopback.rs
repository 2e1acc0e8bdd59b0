//! A real worker loop between a client and two servers that answer from a script, over loopback sockets in one process. The client
//! knows every byte that it must get.

#![allow(dead_code, unreachable_pub, reason = "shared by a test and an example")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};

use atlas::auth::{AuthStep, ClientAuth, Secret};
use atlas::pool::Offer;
use atlas::snapshot::Snapshot;
use atlas::wire::{Greeting, Header, Login, OkPacket, RowFormat, Status, write_payload};
use atlas::worker::{Listener, Live, Message, Shared, Target, Tls, Worker, mailbox};
use mio::{Poll, Waker};

use crate::script::{self, CAPABILITIES, Form};

/// The worker and its servers; stopped when dropped.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    servers: [Server; 2],
}

#[derive(Debug)]
struct Server {
    address: SocketAddr,
    /// Reads and writes answered, prepares not counted.
    answered: Arc<AtomicU64>,
}

impl Loopback {
    /// Starts all threads. `first` runs on the worker's thread before its loop.
    pub fn start(first: impl FnOnce() + Send + 'static) -> Self {
        // As `atlas::server` does it; else the worker would do that for its first client, with never the same instructions.
        aws_lc_rs::rand::fill(&mut [0]).expect("random bytes");
        // The worker's thread is started before the servers', so that it is the second of the process.
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("bind"));
        let addresses = [0, 1].map(|place: usize| sockets[place].local_addr().expect("bound"));
        let config = format!(
            "[[groups]]\nname = \"main\"\nprimary = \"{}\"\nreplicas = [{{ address = \"{}\" }}]\n\
             [[users]]\nname = \"app\"\npassword = \"app-pw\"\n",
            addresses[0], addresses[1]
        );
        let config = atlas::config::load(&config, "bench.toml", &|_| None)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        let mut offer = Offer::default();
        offer.facts.version = VERSION.to_vec();
        offer.facts.ansi_quotes = Some(false);
        let poll = Poll::new().expect("epoll");
        let waker = Waker::new(poll.registry(), Target::Mailbox.token()).expect("a waker");
        let (mailbox, messages) = mailbox(waker);
        let tls = Tls {
            clients: None,
            backends: vec![None],
        };
        let live = Live::new(Snapshot::new(config), tls, 1);
        let shared = Arc::new(Shared::new(live, offer, vec![mailbox]));
        let listener = Listener::tcp(SocketAddr::from(([127, 0, 0, 1], 0))).expect("listen");
        let address = listener.local_addr().expect("bound");
        let listeners = vec![Listener::from_tcp(listener)];
        let mut worker =
            Worker::new(0, poll, shared.clone(), messages, listeners).expect("a worker");
        let worker = spawn(move || {
            first();
            worker.run().expect("the worker's loop");
        });
        Self {
            address,
            shared,
            worker: Some(worker),
            servers: sockets.map(Server::start),
        }
    }

    /// Statements that the primary and the replica have answered.
    pub fn answered(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| self.servers[place].answered.load(Ordering::Relaxed))
    }

    /// A client that has logged in, with the statements prepared that [`Form`] executes, whose server connections are there.
    pub fn client(&self) -> Client {
        let mut client = Client::log_in(self.address);
        client.exchange(
            &script::prepare(script::SELECT_PREPARED),
            &script::prepared(1, 1),
        );
        client.exchange(
            &script::prepare(script::INSERT_PREPARED),
            &script::prepared(2, 0),
        );
        for form in Form::ALL {
            client.exchange(&form.command(), &form.reply());
        }
        client
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        for mailbox in &self.shared.mailboxes {
            let _ = mailbox.send(Message::Stop);
        }
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// A client that waits for each reply.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn log_in(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let mut client = Self {
            stream,
            received: Vec::new(),
        };
        let (_, payload) = read_packet(&mut client.stream).expect("a greeting");
        let greeting = Greeting::parse(&payload).expect("a greeting");
        let mut auth = ClientAuth::new(Secret::from("app-pw"), false);
        let response = auth.first(greeting.plugin, &greeting.nonce);
        let mut out = Vec::new();
        let login = Login {
            capabilities: CAPABILITIES,
            max_packet: 1 << 24,
            charset: 45,
            user: b"app",
            auth: &response,
            schema: None,
            plugin: Some(greeting.plugin),
            attributes: b"",
            zstd_level: None,
        };
        login.write(&mut out, 1);
        client.stream.write_all(&out).expect("write");
        loop {
            let (header, payload) = read_packet(&mut client.stream).expect("an answer");
            match auth.handle(&payload).expect("a log-in") {
                AuthStep::Done => return client,
                AuthStep::Wait => {}
                AuthStep::Send(answer) => {
                    let mut out = Vec::new();
                    write_payload(&mut out, header.seq.wrapping_add(1), &answer);
                    client.stream.write_all(&out).expect("write");
                }
                refused @ AuthStep::Refused { .. } => panic!("{refused:?}"),
            }
        }
    }

    /// Sends a command and waits for its reply, which must be this one.
    pub fn exchange(&mut self, command: &[u8], reply: &[u8]) {
        self.stream.write_all(command).expect("write");
        self.received.resize(reply.len(), 0);
        self.stream.read_exact(&mut self.received).expect("a reply");
        assert_eq!(self.received, reply);
    }
}

const VERSION: &[u8] = b"10.11.19-MariaDB";

impl Server {
    fn start(listener: TcpListener) -> Self {
        let server = Self {
            address: listener.local_addr().expect("bound"),
            answered: Arc::default(),
        };
        let answered = server.answered.clone();
        // Ends with the process.
        spawn(move || {
            for stream in listener.incoming() {
                let answered = answered.clone();
                spawn(move || serve(stream.expect("a connection"), &answered));
            }
        });
        server
    }
}

/// One connection: whoever logs in is welcome; each statement gets the reply of the script.
fn serve(mut stream: TcpStream, answered: &AtomicU64) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    let mut out = Vec::new();
    let greeting = Greeting {
        version: VERSION,
        thread_id: 1,
        nonce: *b"twenty bytes, no nul",
        capabilities: CAPABILITIES,
        charset: 45,
        status: Status::AUTOCOMMIT,
        plugin: b"mysql_native_password",
    };
    greeting.write(&mut out, 0);
    stream.write_all(&out).expect("write");
    let (header, _) = read_packet(&mut stream).expect("a log-in");
    out.clear();
    let ok = OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    };
    ok.write(&mut out, header.seq.wrapping_add(1), CAPABILITIES);
    stream.write_all(&out).expect("write");
    let (rows, binary_rows) = (
        script::one_row(RowFormat::Text),
        script::one_row(RowFormat::Binary),
    );
    let ok = script::ok();
    while let Some((_, payload)) = read_packet(&mut stream) {
        let (command, body) = payload.split_first().expect("a command");
        let is_read =
            body.starts_with(b"SELECT") || body.starts_with(&script::SELECT_ID.to_le_bytes());
        let prepared;
        let reply = match (command, is_read) {
            (0x03, true) => &rows,
            (0x17, true) => &binary_rows,
            (0x03 | 0x17, false) => &ok,
            (0x16, true) => {
                prepared = script::prepared(script::SELECT_ID, 1);
                &prepared
            }
            (0x16, false) => {
                prepared = script::prepared(script::INSERT_ID, 0);
                &prepared
            }
            (0x01, _) => return,
            // COM_STMT_CLOSE has no reply.
            (0x19, _) => continue,
            // COM_SET_OPTION, which Atlas says of its own accord.
            (0x1b, _) => {
                stream.write_all(&ok).expect("write");
                continue;
            }
            other => panic!("not in the script: {other:?}"),
        };
        stream.write_all(reply).expect("write");
        if *command != 0x16 {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A packet, or nothing when the peer has gone.
fn read_packet(stream: &mut TcpStream) -> Option<(Header, Vec<u8>)> {
    let mut header = [0; 4];
    match stream.read_exact(&mut header) {
        Ok(()) => {}
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let header = Header::parse(&header)?;
    let mut payload = vec![0; header.len];
    stream.read_exact(&mut payload).expect("a packet");
    Some((header, payload))
}
