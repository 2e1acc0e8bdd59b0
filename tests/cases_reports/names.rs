//! Reports about servers that are known by a name. The system's resolver answers from a file of the test's own, which a mount namespace
//! puts in the place of `/etc/hosts`.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::common::{Atlas, Bed, Login, Node, Wire, config_for, eventually};

/// A server at another address.
struct Way {
    address: SocketAddr,
    server: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_open: bool,
    /// Both ends of each connection.
    streams: Vec<[TcpStream; 2]>,
}

impl Way {
    fn open(address: SocketAddr, server: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("bind");
        let way = Self {
            address: listener.local_addr().expect("bound"),
            server,
            state: Arc::default(),
        };
        way.serve(listener);
        way
    }

    fn serve(&self, listener: TcpListener) {
        self.state.lock().expect("whole").is_open = true;
        let (server, state) = (self.server, self.state.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut state = state.lock().expect("whole");
                if !state.is_open {
                    return;
                }
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                pump(&client, &server);
                pump(&server, &client);
                state.streams.push([client, server]);
            }
        });
    }

    /// Whoever connects is refused, and those who have are cut off.
    fn close(&self) {
        let mut state = self.state.lock().expect("whole");
        state.is_open = false;
        for stream in state.streams.drain(..).flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the listener, which ends.
        drop(TcpStream::connect(self.address));
        eventually("nobody listens", || {
            TcpStream::connect(self.address).is_err()
        });
    }

    fn open_again(&self) {
        self.serve(TcpListener::bind(self.address).expect("bind again"));
    }

    /// Connections that neither side has closed.
    fn connections(&self) -> usize {
        let state = self.state.lock().expect("whole");
        let is_up = |pair: &&[TcpStream; 2]| {
            pair[0].set_nonblocking(true).expect("a socket");
            let mut byte = [0];
            let seen = pair[0].peek(&mut byte);
            pair[0].set_nonblocking(false).expect("a socket");
            !matches!(seen, Ok(0)) && pair[0].take_error().ok().flatten().is_none()
        };
        state.streams.iter().filter(is_up).count()
    }
}

fn pump(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("fd"), to.try_clone().expect("fd"));
    let _ = from.set_nodelay(true);
    std::thread::spawn(move || {
        // The kernel's own loop: nothing here is about the bytes.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

fn resolve_to(hosts: &Path, address: SocketAddr) {
    // In place: the mount is of this very file.
    let text = format!("127.0.0.1 localhost\n{} moving.test\n", address.ip());
    std::fs::write(hosts, text).expect("write the hosts");
}

/// The server stops and its name leads elsewhere; and the same while it goes on.
#[test]
fn b197_a_name_that_leads_elsewhere() {
    for bed in Bed::both() {
        let first = Way::open(
            "127.0.0.2:0".parse().expect("an address"),
            bed.address(Node::Replica1),
        );
        let port = first.address.port();
        let second = Way::open(
            SocketAddr::from(([127, 0, 0, 3], port)),
            bed.address(Node::Replica2),
        );
        let folder = tempfile::tempdir().expect("a folder");
        let hosts = folder.path().join("hosts");
        resolve_to(&hosts, first.address);
        let mut program = Command::new("unshare");
        program.args(["--mount", "--map-root-user", "sh", "-c"]);
        program.arg("mount --bind \"$HOSTS\" /etc/hosts && exec \"$0\" \"$@\"");
        program
            .arg(env!("CARGO_BIN_EXE_atlas"))
            .env("HOSTS", &hosts);
        let config = config_for(&bed)
            .group(&format!("replicas = [\"moving.test:{port}\"]"))
            .append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ninterval = \"200ms\"\n");
        let atlas = Atlas::start_by(config, program, None).expect("it starts");
        let read = || {
            let mut client = Wire::connect(atlas.address(), &Login::plain());
            client.query("SELECT @@port").cell()
        };
        let port_of = |node| bed.address(node).port().to_string();
        eventually("the first answers", || read() == port_of(Node::Replica1));

        first.close();
        resolve_to(&hosts, second.address);
        eventually("the second answers", || read() == port_of(Node::Replica2));

        first.open_again();
        resolve_to(&hosts, first.address);
        eventually("the first answers again", || {
            read() == port_of(Node::Replica1)
        });
        eventually("nobody is left at the second", || second.connections() == 0);
    }
}
