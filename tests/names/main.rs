//! Servers that are configured by a name whose address changes.

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Atlas, Bed, Login, Node, Wire};

const NAME: &str = "db.atlas.test";

/// A way to a server, at an address of its own, that can be taken away.
struct Way {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    is_open: Arc<Mutex<bool>>,
}

impl Way {
    fn new(listener: TcpListener, server: SocketAddr) -> Self {
        let address = listener.local_addr().expect("bound");
        let way = Self {
            address,
            streams: Arc::default(),
            is_open: Arc::new(Mutex::new(true)),
        };
        let (streams, is_open) = (way.streams.clone(), way.is_open.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if !*is_open.lock().expect("no panic") {
                    // Closes the port, and this connection with it.
                    return;
                }
                let server = TcpStream::connect(server).expect("the server");
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) =
                        (from.try_clone().expect("fd"), to.try_clone().expect("fd"));
                    std::thread::spawn(move || {
                        let mut buffer = [0; 8192];
                        while let Ok(n @ 1..) = from.read(&mut buffer) {
                            if to.write_all(&buffer[..n]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                        let _ = from.shutdown(Shutdown::Both);
                    });
                }
                streams.lock().expect("no panic").push(client);
            }
        });
        way
    }

    /// Whether somebody is connected by it.
    fn is_used(&self) -> bool {
        let streams = self.streams.lock().expect("no panic");
        streams.iter().any(|stream| stream.peer_addr().is_ok())
    }

    /// Nothing is there any more.
    fn stop(&self) {
        *self.is_open.lock().expect("no panic") = false;
        let _ = TcpStream::connect(self.address);
        for stream in self.streams.lock().expect("no panic").iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The same port at two addresses of this machine.
fn two_listeners() -> [TcpListener; 2] {
    for _ in 0..50 {
        let one = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).expect("a port");
        let port = one.local_addr().expect("bound").port();
        if let Ok(two) = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 3), port)) {
            return [one, two];
        }
    }
    panic!("no port that is free at both addresses");
}

fn resolver(folder: &Path) -> std::path::PathBuf {
    let library = folder.join("resolver.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/names/resolver.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()
        .expect("a C compiler, which the build needs too");
    assert!(status.success(), "cc: {status}");
    library
}

fn within(time: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while !done() {
        assert!(Instant::now() < end, "not within {time:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// B197: the name's address is looked up again when the one of before fails, and in the background while it does not.
#[test]
fn b197_a_name_moves() {
    for bed in Bed::both() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = folder.path().join("address");
        let move_to = |to: &str| {
            // At once, so that no half of it is read.
            let new = folder.path().join("new");
            fs::write(&new, to).expect("write");
            fs::rename(&new, &address).expect("rename");
        };
        let [one, two] = two_listeners();
        let port = one.local_addr().expect("bound").port();
        let first = Way::new(one, bed.address(Node::Primary));
        let second = Way::new(two, bed.address(Node::Second));
        move_to("127.0.0.2");
        let library = resolver(folder.path());
        let variables = [
            ("LD_PRELOAD", library.to_str().expect("UTF-8")),
            ("ATLAS_TEST_NAME", NAME),
            ("ATLAS_TEST_ADDRESS", address.to_str().expect("UTF-8")),
        ];
        let config = format!(
            "[server]\nlisten = [\"{{listen}}\"]\n[[groups]]\nname = \"main\"\nprimary = \"{NAME}:{port}\"\n\
             primary_wait = \"30s\"\n[[users]]\nname = \"app\"\npassword = \"app-pw\"\n\
             [monitor]\nuser = \"app\"\npassword = \"app-pw\"\n"
        );
        let atlas = Atlas::try_start(config, &variables).expect("a start");
        let id = |node| bed.address(node).port().to_string();
        let mut idle = Wire::connect(atlas.address(), &Login::app());
        assert_eq!(idle.query("SELECT @@server_id").cell(), id(Node::Primary));

        // What was there is gone: the next connection asks anew. A statement that comes meanwhile waits.
        move_to("127.0.0.3");
        first.stop();
        let begun = Instant::now();
        let mut client = Wire::connect(atlas.address(), &Login::app());
        client.set_timeout(Duration::from_secs(30));
        assert_eq!(client.query("SELECT @@server_id").cell(), id(Node::Second));
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
        // Of a resolver that fails what it said before holds.
        move_to("");
        assert_eq!(idle.query("SELECT @@server_id").cell(), id(Node::Second));

        // The one of before is still there, and the name is another's: noticed in the background, idle connections are given up.
        let one = TcpListener::bind(first.address).expect("the port is free again");
        let third = Way::new(one, bed.address(Node::Primary));
        move_to("127.0.0.2");
        within(Duration::from_secs(20), "new connections go there", || {
            third.is_used() && idle.query("SELECT @@server_id").cell() == id(Node::Primary)
        });
        within(Duration::from_secs(20), "idle ones are closed", || {
            !second.is_used()
        });
        assert!(atlas.log().contains("is now at"), "{}", atlas.log());
    }
}

/// B275: connections to servers do not each ask for their name, and a resolver that does not answer keeps nobody waiting.
#[test]
fn b275_names_are_not_asked_for_with_each_connection() {
    const SESSIONS: usize = 200;
    let bed = Bed::mariadb();
    let folder = tempfile::tempdir().expect("a folder");
    let [address, asked, held] = ["address", "asked", "held"].map(|name| folder.path().join(name));
    fs::write(&address, "127.0.0.1").expect("write");
    let library = resolver(folder.path());
    let variables = [
        ("LD_PRELOAD", library.to_str().expect("UTF-8")),
        ("ATLAS_TEST_NAME", NAME),
        ("ATLAS_TEST_ADDRESS", address.to_str().expect("UTF-8")),
        ("ATLAS_TEST_ASKED", asked.to_str().expect("UTF-8")),
        ("ATLAS_TEST_HELD", held.to_str().expect("UTF-8")),
    ];
    let port = bed.address(Node::Primary).port();
    // Each session has a server connection of its own.
    let config = format!(
        "[server]\nlisten = [\"{{listen}}\"]\n[pool]\nmin_idle = 0\nconnect_rate = 10000\n\
         [[groups]]\nname = \"main\"\nprimary = \"{NAME}:{port}\"\n\
         [[users]]\nname = \"app\"\npassword = \"app-pw\"\nsharing = \"session\"\n"
    );
    let atlas = Atlas::try_start(config, &variables).expect("a start");
    let ids = |count: usize| {
        let mut ids: Vec<String> = (0..count)
            .map(|_| {
                let mut client = Wire::connect(atlas.address(), &Login::app());
                let id = client.query("SELECT CONNECTION_ID()").cell();
                client.quit();
                id
            })
            .collect();
        ids.sort();
        ids.dedup();
        ids.len()
    };
    let questions = || fs::metadata(&asked).map_or(0, |meta| meta.len());
    let (begun, before) = (Instant::now(), questions());
    assert_eq!(ids(SESSIONS), SESSIONS, "as many connections");
    // In the background, every five seconds; however long this took, it was not once for each.
    let most = begun.elapsed().as_secs() / 4 + 3;
    let during = questions() - before;
    assert!(during <= most, "{during} questions, {most} at most");
    // Nobody answers any more: what was known holds, for connections that are there and for new ones.
    let mut client = Wire::connect(atlas.address(), &Login::app());
    fs::write(&held, "").expect("write");
    let before = questions();
    within(Duration::from_secs(60), "somebody asks", || {
        questions() > before
    });
    assert_eq!(client.query("SELECT 7").cell(), "7");
    assert_eq!(ids(20), 20);
    fs::remove_file(&held).expect("remove");
}
