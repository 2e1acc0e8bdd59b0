//! The plain relay: the floor that a proxy in user space is measured against. One thread, level-triggered epoll, one read and one
//! write per direction and readiness, no parsing. What a socket does not take at once is kept, and then its peer is not read.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys::{Epoll, Event};

/// The token of the listener; those of sockets are slot * 2 + side.
const LISTENER: u64 = u64::MAX;
const BUFFER: usize = 65536;

/// One side of a relayed connection.
#[derive(Debug)]
struct End {
    socket: TcpStream,
    /// Bytes of the other side that this socket has not taken yet.
    pending: Vec<u8>,
}

/// Client and server side.
type Pair = [End; 2];

/// Relays every connection made to `listen` to `target`, until the process is killed.
///
/// # Errors
/// When the listener cannot be set up or epoll fails.
pub(crate) fn run(listen: SocketAddr, target: SocketAddr) -> io::Result<()> {
    let listener = Socket::new(
        Domain::for_address(listen),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    listener.set_reuse_address(true)?;
    listener.bind(&listen.into())?;
    listener.listen(4096)?;
    listener.set_nonblocking(true)?;
    serve(&TcpListener::from(listener), target)
}

fn serve(listener: &TcpListener, target: SocketAddr) -> io::Result<()> {
    let mut relay = Relay {
        epoll: Epoll::new()?,
        slots: Vec::new(),
        free: Vec::new(),
        closed: Vec::new(),
        buffer: vec![0; BUFFER],
    };
    relay.epoll.add(listener.as_fd(), LISTENER, true, false)?;
    let mut events = Vec::new();
    loop {
        match relay.epoll.wait(&mut events) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token == LISTENER {
                relay.accept(listener, target);
            } else if let Err(slot) = relay.serve_end(*event) {
                relay.close(slot);
            }
        }
        // Only now: a later event of the same batch may still name a slot that was closed.
        relay.free.append(&mut relay.closed);
    }
}

#[derive(Debug)]
struct Relay {
    epoll: Epoll,
    slots: Vec<Option<Pair>>,
    free: Vec<usize>,
    /// Slots closed in this batch of events.
    closed: Vec<usize>,
    buffer: Vec<u8>,
}

impl Relay {
    fn accept(&mut self, listener: &TcpListener, target: SocketAddr) {
        for _ in 0..64 {
            let Ok((client, _)) = listener.accept() else {
                return;
            };
            // A connection that cannot be set up is dropped, which the client sees as closed.
            let _ = self.open(client, target);
        }
    }

    fn open(&mut self, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        let server = Socket::new(
            Domain::for_address(target),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        server.set_nonblocking(true)?;
        server.set_tcp_nodelay(true)?;
        match server.connect(&target.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => return Err(e),
            _ => {}
        }
        let server = TcpStream::from(server);
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let token = u64::try_from(slot).map_err(io::Error::other)? * 2;
        self.epoll.add(client.as_fd(), token, true, false)?;
        self.epoll.add(server.as_fd(), token + 1, true, false)?;
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some([client, server].map(|socket| End {
            socket,
            pending: Vec::new(),
        }));
        Ok(())
    }

    /// Serves one event; an error is the slot to be closed.
    fn serve_end(&mut self, event: Event) -> Result<(), usize> {
        let Ok(slot) = usize::try_from(event.token / 2) else {
            return Ok(());
        };
        let Some(Some(pair)) = self.slots.get_mut(slot) else {
            return Ok(());
        };
        let is_server = event.token % 2 == 1;
        let [client, server] = pair;
        let (this, other) = if is_server {
            (server, client)
        } else {
            (client, server)
        };
        let ends = Ends {
            this: (this, event.token),
            other: (other, event.token ^ 1),
        };
        ends.serve(&self.epoll, event, &mut self.buffer)
            .map_err(|_| slot)
    }

    fn close(&mut self, slot: usize) {
        if let Some(pair) = self.slots.get_mut(slot)
            && pair.take().is_some()
        {
            self.closed.push(slot);
        }
    }
}

/// The end that an event is about and its peer, with their tokens.
struct Ends<'a> {
    this: (&'a mut End, u64),
    other: (&'a mut End, u64),
}

impl Ends<'_> {
    /// An error means that the connection is over.
    fn serve(self, epoll: &Epoll, event: Event, buffer: &mut [u8]) -> io::Result<()> {
        let Self {
            this: (this, this_token),
            other: (other, other_token),
        } = self;
        if event.is_writable && !this.pending.is_empty() {
            let n = written(this.socket.write(&this.pending))?;
            this.pending.drain(..n);
            if this.pending.is_empty() {
                this.pending = Vec::new();
                epoll.modify(
                    this.socket.as_fd(),
                    this_token,
                    other.pending.is_empty(),
                    false,
                )?;
                epoll.modify(
                    other.socket.as_fd(),
                    other_token,
                    true,
                    !other.pending.is_empty(),
                )?;
            }
        }
        if !event.is_readable || !other.pending.is_empty() {
            return Ok(());
        }
        let n = match this.socket.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        let n = written(other.socket.write(bytes))?;
        let rest = bytes.get(n..).unwrap_or_default();
        if !rest.is_empty() {
            other.pending = rest.to_vec();
            epoll.modify(
                other.socket.as_fd(),
                other_token,
                this.pending.is_empty(),
                true,
            )?;
            epoll.modify(
                this.socket.as_fd(),
                this_token,
                false,
                !this.pending.is_empty(),
            )?;
        }
        Ok(())
    }
}

/// How much a write took; nothing when the socket is full or still connecting.
fn written(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::NotConnected
            ) =>
        {
            Ok(0)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A relay in front of a server that sends everything back.
    fn echo_behind_relay() -> SocketAddr {
        let server = TcpListener::bind("127.0.0.1:0").expect("bind");
        let target = server.local_addr().expect("address");
        thread::spawn(move || {
            for stream in server.incoming().flatten() {
                thread::spawn(move || {
                    let mut from = stream.try_clone().expect("clone");
                    let mut to = stream;
                    drop(io::copy(&mut from, &mut to));
                });
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.set_nonblocking(true).expect("nonblocking");
        let address = listener.local_addr().expect("address");
        thread::spawn(move || serve(&listener, target));
        address
    }

    #[test]
    fn bytes_come_back_also_when_nobody_reads_for_a_while() {
        let address = echo_behind_relay();
        let mut stream = TcpStream::connect(address).expect("connect");
        let sent: Vec<u8> = (0..20_000_000u32)
            .map(|i| i.to_le_bytes()[usize::from(i % 3 == 0)])
            .collect();
        let mut reading = stream.try_clone().expect("clone");
        let to_send = sent.clone();
        let writer = thread::spawn(move || stream.write_all(&to_send).map(|()| stream));
        thread::sleep(std::time::Duration::from_millis(100));
        let mut got = vec![0; sent.len()];
        reading.read_exact(&mut got).expect("read back");
        assert!(got == sent, "bytes differ");
        drop(writer.join().expect("writer").expect("sent"));
    }

    #[test]
    fn slots_are_used_again_and_never_mixed_up() {
        let address = echo_behind_relay();
        for round in 0..50u8 {
            let mut streams: Vec<_> = (0..10)
                .map(|_| TcpStream::connect(address).expect("connect"))
                .collect();
            for (i, s) in streams.iter_mut().enumerate() {
                s.write_all(&[round, u8::try_from(i).expect("few")])
                    .expect("send");
            }
            for (i, s) in streams.iter_mut().enumerate() {
                let mut got = [0; 2];
                s.read_exact(&mut got).expect("read back");
                assert_eq!(got, [round, u8::try_from(i).expect("few")]);
            }
        }
    }
}
