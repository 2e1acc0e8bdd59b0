//! A server seen through a line that delivers what it says in small pieces, so that Atlas meets packets cut everywhere.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How the relay cuts what the server says.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    /// Bytes of a piece.
    pub size: usize,
    /// Behind each piece.
    pub pause: Duration,
}

/// The relay; ended with the value. What clients say passes as it comes.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Relay {
    /// Listens on a port of its own and connects to `server` for each connection that comes.
    pub fn start(server: SocketAddr, pieces: Pieces) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let address = listener.local_addr().expect("an address");
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else {
                    continue;
                };
                join(client, server, pieces);
            }
        });
        Self { address, over }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the listener, which sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn join(client: TcpStream, server: TcpStream, pieces: Pieces) {
    // Or pieces would be joined again on their way.
    client.set_nodelay(true).expect("TCP_NODELAY");
    server.set_nodelay(true).expect("TCP_NODELAY");
    let (from_client, to_server) = (client.try_clone(), server.try_clone());
    let (from_client, to_server) = (from_client.expect("a handle"), to_server.expect("a handle"));
    std::thread::spawn(move || pass(from_client, to_server, None));
    std::thread::spawn(move || pass(server, client, Some(pieces)));
}

/// Until either side ends; then both do.
fn pass(mut from: TcpStream, mut to: TcpStream, pieces: Option<Pieces>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        let size = pieces.map_or(read, |pieces| pieces.size);
        for piece in buffer[..read].chunks(size) {
            if to.write_all(piece).is_err() {
                break;
            }
            if let Some(pieces) = pieces {
                std::thread::sleep(pieces.pause);
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
