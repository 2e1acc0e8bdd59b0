//! Listening sockets that a service manager makes and passes (LISTEN_FDS, as systemd does): a shell that starts Atlas in its own
//! place passes them here.

mod common;

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use common::*;

/// A program that gets these descriptors, under these names, and `variables` besides.
fn starter(sockets: &[(&str, BorrowedFd<'_>)], pid: &str) -> Command {
    let mut script = String::new();
    let mut names = Vec::new();
    // First far away from where they are to be, so that none takes another one's place.
    for (place, (name, socket)) in sockets.iter().enumerate() {
        rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::empty()).expect("FD_CLOEXEC");
        script += &format!("exec {}<&{}; ", 100 + place, socket.as_raw_fd());
        names.push(*name);
    }
    for place in 0..sockets.len() {
        script += &format!("exec {}<&{1}; exec {1}<&-; ", 3 + place, 100 + place);
    }
    script += &format!(
        "export LISTEN_PID={pid} LISTEN_FDS={} LISTEN_FDNAMES={}; exec \"$0\" \"$@\"",
        sockets.len(),
        names.join(":")
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_atlas")]);
    shell
}

/// The process that is started is the one that is meant.
const SELF: &str = "$$";
/// An address that this machine does not have: listening on it fails.
const ELSEWHERE: &str = "listen = [\"192.0.2.1:3306\"]";

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

fn query(address: SocketAddr) -> Wire {
    let mut client = Wire::connect(address, &Login::plain());
    assert_eq!(client.query("SELECT 1").cell(), "1");
    client
}

#[test]
fn clients_admin_and_http_come_by_what_is_passed() {
    let bed = Bed::mariadb();
    let ((clients, address), (admin, admin_address), (http, http_address)) =
        (listener(), listener(), listener());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("atlas.sock");
    let unix = UnixListener::bind(&path).expect("bind");
    let program = starter(
        &[
            ("atlas.socket", clients.as_fd()),
            ("http", http.as_fd()),
            ("clients", unix.as_fd()),
            ("admin", admin.as_fd()),
        ],
        SELF,
    );
    let config = config_for(&bed)
        .server(ELSEWHERE)
        .server("workers = 2")
        .append("[admin]\nusers = [{ name = \"boss\", password = \"x\", role = \"operator\" }]\n");
    let mut atlas = Atlas::start_by(config, program, Some(address)).expect("it starts");

    // One socket, of which one worker takes all clients in: the others get their share.
    let sessions: Vec<Wire> = (0..8).map(|_| query(address)).collect();
    let mut per_worker = [0; 2];
    for mut session in sessions {
        let id: u32 = session
            .query("SELECT CONNECTION_ID()")
            .cell()
            .parse()
            .expect("an id");
        per_worker[atlas::session::worker_of(id)] += 1;
        session.quit();
    }
    assert_eq!(per_worker, [4, 4]);

    let mut by_path = Wire::try_connect_unix(&path, &Login::plain()).expect("log in");
    assert_eq!(by_path.query("SELECT 1").cell(), "1");
    by_path.quit();
    assert_eq!(http_get(http_address, "/readyz").0, 200);
    let mut boss = Wire::connect(admin_address, &Login::new("boss", "x"));
    assert!(!boss.query("SELECT * FROM backends").rows().is_empty());
    boss.quit();

    atlas.signal("TERM");
    assert!(atlas.wait(Duration::from_secs(20)).success());
    assert!(
        path.exists(),
        "the file of a socket that was passed is not ours"
    );
}

/// While the process is away clients wait, and the next one serves them.
#[test]
fn clients_wait_over_a_restart() {
    let bed = Bed::mariadb();
    let (clients, address) = listener();
    let passed = || starter(&[("clients", clients.as_fd())], SELF);
    let config = || config_for(&bed).server(ELSEWHERE);
    let mut first = Atlas::start_by(config(), passed(), Some(address)).expect("it starts");
    query(address).quit();
    first.signal("TERM");
    assert!(first.wait(Duration::from_secs(20)).success());
    // Nobody accepts now.
    let waiting = std::thread::spawn(move || query(address).quit());
    let early = TcpStream::connect(address).expect("in the queue");
    let second = Atlas::start_by(config(), passed(), Some(address)).expect("it starts again");
    waiting.join().expect("served by the next one");
    drop(early);

    // A new version gets them from the process, not from the manager.
    let third = second.successor();
    query(address).quit();
    third.wait_log("listening on 127.0.0.1");
    drop(second);
    let mut kept = query(address);
    assert_eq!(kept.query("SELECT 2").cell(), "2");
}

#[test]
fn what_is_meant_for_another_process_is_not_taken() {
    let bed = Bed::mariadb();
    let (clients, address) = listener();
    clients.set_nonblocking(true).expect("a socket");
    let program = starter(&[("clients", clients.as_fd())], "1");
    let (own, own_address) = listener();
    drop(own);
    let config = config_for(&bed).server(&format!("listen = [\"{own_address}\"]"));
    let _atlas = Atlas::start_by(config, program, Some(own_address)).expect("it starts");
    query(own_address).quit();
    let waiting = TcpStream::connect(address).expect("in the queue");
    let accepted = clients.accept().expect("it still waits").0;
    assert_eq!(accepted.peer_addr().ok(), waiting.local_addr().ok());
}

#[test]
fn what_cannot_be_listened_on_is_named() {
    let bed = Bed::mariadb();
    let (_, address) = listener();
    let file = File::open("/dev/null").expect("a file");
    let stream = {
        let (listener, address) = listener();
        let stream = TcpStream::connect(address).expect("connect");
        drop(listener);
        stream
    };
    for (socket, why) in [
        (file.as_fd(), "is neither a TCP nor a unix stream socket"),
        (stream.as_fd(), "does not listen"),
    ] {
        let program = starter(&[("odd", socket)], SELF);
        let log = Atlas::start_by(config_for(&bed).server(ELSEWHERE), program, Some(address))
            .expect_err("no start");
        assert!(
            log.contains("the socket \"odd\"") && log.contains(why),
            "{log}"
        );
    }
}
