//! The way to a server that can be cut as a firewall cuts it: nothing is closed and nothing refused, but no byte moves any more, and
//! whoever connects anew hears nothing.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// The way; what is underway when the value goes is cut.
#[derive(Debug)]
pub struct Firewall {
    address: SocketAddr,
    gate: Arc<Gate>,
    /// They fill the queue of those who wait to be accepted, so that the kernel drops further attempts.
    fillers: Vec<TcpStream>,
}

#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn is_closed(&self) -> MutexGuard<'_, bool> {
        self.is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn set_closed(&self, is_closed: bool) {
        *self.is_closed() = is_closed;
        self.changed.notify_all();
    }

    /// Waits until bytes may move.
    fn pass(&self) {
        let closed = self.is_closed();
        drop(self.changed.wait_while(closed, |closed| *closed));
    }
}

impl Firewall {
    /// An open way to that server.
    pub fn before(server: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("bind");
        // The least that the kernel knows, for `drop_all`; who finds it full tries again within the second.
        socket.listen(BACKLOG).expect("listen");
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().expect("bound");
        let gate = Arc::new(Gate::default());
        let theirs = gate.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                theirs.pass();
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                pump(&client, &server, &theirs);
                pump(&server, &client, &theirs);
            }
        });
        Self {
            address,
            gate,
            fillers: Vec::new(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drops whatever comes, in both directions.
    pub fn drop_all(&mut self) {
        self.gate.set_closed(true);
        // Until one is dropped: the thread that accepts holds one, and the queue the others.
        for _ in 0..BACKLOG + 3 {
            match TcpStream::connect_timeout(&self.address, Duration::from_millis(300)) {
                Ok(filler) => self.fillers.push(filler),
                Err(_) => return,
            }
        }
        panic!("the kernel takes more connections than it was told to");
    }

    /// Lets through what waits, and what comes.
    pub fn let_through(&mut self) {
        self.fillers.clear();
        self.gate.set_closed(false);
    }
}

impl Drop for Firewall {
    fn drop(&mut self) {
        self.gate.set_closed(false);
    }
}

/// Connections that wait in the queue beside the first.
const BACKLOG: i32 = 16;

fn pump(from: &TcpStream, to: &TcpStream, gate: &Arc<Gate>) {
    let (mut from, mut to) = (from.try_clone().expect("fd"), to.try_clone().expect("fd"));
    let _ = to.set_nodelay(true);
    let gate = gate.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            gate.pass();
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        gate.pass();
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
