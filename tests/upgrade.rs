//! One process takes over from another: nobody notices who comes or who is busy, whatever the load, the number of workers, or the
//! end of the new process.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use socket2::{Domain, SockAddr, Socket, Type};

/// The time that an end without a reason to wait may take on a busy machine.
const SOON: Duration = Duration::from_secs(15);

fn config(bed: &Bed) -> Config {
    config_for(bed)
        .server("listen = [\"{listen}\", \"unix:{dir}/atlas.sock\"]")
        .server("http_listen = \"127.0.0.1:0\"")
        .server("admin_listen = \"127.0.0.1:0\"")
        .append(
            "[admin]\nusers = [{ name = \"admin\", password = \"admin-pw\", role = \"operator\" }]",
        )
}

/// The admin port of the process that serves, by what it has said last.
fn admin(atlas: &Atlas) -> Wire {
    let log = atlas.log();
    let (before, _) = log
        .rsplit_once(" (admin port)")
        .expect("the log names the port");
    let address = before.rsplit(' ').next().expect("a word");
    let address = address.parse().expect("an address");
    Wire::connect(address, &Login::new("admin", "admin-pw"))
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    bed.root(Node::Primary).ok(&format!(
        "CREATE TABLE {schema}.t(id INT PRIMARY KEY) ENGINE=InnoDB"
    ));
    schema
}

fn rows(bed: &Bed, schema: &Schema) -> String {
    bed.root(Node::Primary)
        .query(&format!("SELECT COUNT(*) FROM {schema}.t"))
        .cell()
}

fn by_unix(atlas: &Atlas, login: &Login) -> Result<Wire, Refused> {
    Wire::try_connect_unix(&atlas.dir().join("atlas.sock"), login)
}

#[test]
fn clients_stay_and_new_ones_meet_the_new_process() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::app().schema(&schema);
        let mut old = Atlas::start(config(&bed));
        let http = http_of(&old.log()).expect("the log names the port");
        let mut operator = admin(&old);
        let mut writer = Wire::connect(old.address(), &login);
        writer.ok("BEGIN");
        writer.ok("INSERT INTO t VALUES (1)");
        let mut idle = by_unix(&old, &login).expect("log-in");
        assert_eq!(idle.query("SELECT 1").cell(), "1");
        // In the middle of its log-in.
        let slow = Wire::greet(old.address()).expect("a greeting");
        let new = old.successor();
        // Longer than idle sessions have, of which the old process tells by now.
        let packet = idle.try_packet().expect("an error");
        assert_eq!(packet.payload[..3], *b"\xff\x1d\x04", "{packet:?}");
        let mut slow = slow.log_in(&login).expect("log-in");
        assert_eq!(slow.query("SELECT 1").cell(), "1");
        writer.ok("INSERT INTO t VALUES (2)");
        // By every way in.
        let mut fresh = Wire::connect(new.address(), &login);
        fresh.ok("INSERT INTO t VALUES (3)");
        let mut local = by_unix(&new, &login).expect("log-in");
        assert_eq!(local.query("SELECT 1").cell(), "1");
        assert_eq!(http_get(http, "/readyz"), (200, "ready\n".to_owned()));
        // The old process answers who is connected to it, the new one who comes.
        let tells = |wire: &mut Wire| {
            let events = wire.query("SHOW EVENTS");
            events.packets.iter().any(|packet| {
                String::from_utf8_lossy(&packet.payload).contains("serves from here on")
            })
        };
        assert!(tells(&mut operator), "an event of the old process");
        assert!(!tells(&mut admin(&new)), "the new one has none yet");
        let packet = slow.try_packet().expect("an error");
        assert_eq!(packet.payload[..3], *b"\xff\x1d\x04", "{packet:?}");
        assert!(old.ended().is_none(), "a transaction is open");
        writer.ok("COMMIT");
        assert!(old.wait(SOON).success(), "{}", old.log());
        assert_eq!(rows(&bed, &schema), "3");
        // The end of the old process took nothing with it.
        let mut new = new;
        assert_eq!(local.query("SELECT 1").cell(), "1");
        by_unix(&new, &login).expect("log-in");
        Wire::connect(new.address(), &login);
        assert_eq!(http_get(http, "/readyz").0, 200);
        admin(&new).ok("SELECT VERSION");
        new.signal("TERM");
        assert!(new.wait(SOON).success());
        for file in ["atlas.sock", "atlas.upgrade"] {
            assert!(!new.dir().join(file).exists(), "{file}");
        }
    }
}

struct Load<'l> {
    login: &'l Login,
    over: AtomicBool,
    next: AtomicUsize,
    written: AtomicUsize,
    faults: Mutex<Vec<String>>,
}

impl Load<'_> {
    fn fault(&self, text: String) {
        self.faults.lock().expect("no panic").push(text);
        self.over.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn insert(&self) -> String {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        format!("INSERT INTO t VALUES ({id})")
    }

    /// A connection for every statement: none is refused, none of their statements fails.
    fn comes_and_goes(&self, connect: impl Fn(&Login) -> Result<Wire, Refused>) {
        while self.goes_on() {
            let mut client = match connect(self.login) {
                Ok(client) => client,
                Err(refused) => return self.fault(format!("a connection: {refused:?}")),
            };
            match client.try_query(&self.insert()) {
                Ok(reply) if reply.error().is_none() => {}
                other => return self.fault(format!("a statement: {other:?}")),
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One connection for as long as it is given: it ends between two transactions, by the error that says so.
    fn stays(&self, connect: impl Fn(&Login) -> Result<Wire, Refused>) {
        'connection: while self.goes_on() {
            let mut client = match connect(self.login) {
                Ok(client) => client,
                Err(refused) => return self.fault(format!("a connection: {refused:?}")),
            };
            while self.goes_on() {
                match client.try_query("BEGIN") {
                    Ok(reply) if reply.error().is_none() => {}
                    Ok(reply) if reply.error_code() == 1053 => continue 'connection,
                    other => return self.fault(format!("BEGIN: {other:?}")),
                }
                for sql in [&self.insert(), "COMMIT"] {
                    match client.try_query(sql) {
                        Ok(reply) if reply.error().is_none() => {}
                        other => return self.fault(format!("{sql}: {other:?}")),
                    }
                }
                self.written.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn twenty_upgrades_under_load() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::app().schema(&schema);
        let of_round = |round: usize| {
            config(&bed)
                .server(&format!("workers = {}", [2, 1, 3][round % 3]))
                .server("drain_timeout = \"4s\"")
        };
        let mut now = Atlas::start(of_round(0));
        let (address, socket) = (now.address(), now.dir().join("atlas.sock"));
        let load = Load {
            login: &login,
            over: AtomicBool::new(false),
            next: AtomicUsize::new(1),
            written: AtomicUsize::new(0),
            faults: Mutex::default(),
        };
        let tcp = |login: &Login| Wire::try_connect(address, login);
        let unix = |login: &Login| Wire::try_connect_unix(&socket, login);
        let mut before = Vec::new();
        std::thread::scope(|scope| {
            let load = &load;
            for _ in 0..3 {
                scope.spawn(move || load.comes_and_goes(tcp));
            }
            scope.spawn(|| load.comes_and_goes(unix));
            scope.spawn(move || load.stays(tcp));
            scope.spawn(|| load.stays(unix));
            for round in 1..=20 {
                let written = load.written.load(Ordering::Relaxed);
                eventually("the load goes on", || {
                    load.written.load(Ordering::Relaxed) > written + 20 || !load.goes_on()
                });
                now.write_config(of_round(round));
                let next = now.successor();
                before.push(std::mem::replace(&mut now, next));
                if !load.goes_on() {
                    break;
                }
            }
            load.over.store(true, Ordering::Relaxed);
        });
        let faults = load.faults.into_inner().expect("no panic");
        assert!(faults.is_empty(), "{faults:#?}");
        assert_eq!(before.len(), 20);
        for old in &mut before {
            assert!(old.wait(SOON).success());
        }
        assert_eq!(rows(&bed, &schema), load.written.into_inner().to_string());
        assert!(now.ended().is_none());
    }
}

/// Whatever becomes of the new process, the old one goes on.
#[test]
fn a_new_process_that_fails_changes_nothing() {
    let bed = Bed::mariadb();
    let mut atlas = Atlas::start(config(&bed));
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    let mut is_well = || {
        assert_eq!(client.query("SELECT 1").cell(), "1");
        Wire::connect(atlas.address(), &Login::plain());
        by_unix(&atlas, &Login::plain()).expect("log-in");
    };
    // One whose configuration is of no use.
    atlas.write_config("[server]\nlisten = []\n");
    assert_eq!(atlas.try_successor().err().and_then(|s| s.code()), Some(1));
    is_well();
    // One that ends after it got the sockets, before it is ready.
    let line = ask(&atlas.dir().join("atlas.upgrade"));
    line.send(b"take over 1").expect("send");
    let mut heard = String::new();
    while heard != "that is all" {
        heard = hear(&line);
    }
    is_well();
    drop(line);
    atlas.wait_log("no upgrade: the new process did not become ready");
    is_well();
    // One that asks for what nobody knows.
    let line = ask(&atlas.dir().join("atlas.upgrade"));
    line.send(b"take over 9").expect("send");
    assert!(hear(&line).starts_with("no: "), "it is told");
    is_well();
    atlas.write_config(config(&bed));
    let new = atlas.successor();
    drop(client);
    assert!(atlas.wait(SOON).success());
    Wire::connect(new.address(), &Login::plain());
}

fn ask(path: &Path) -> Socket {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a socket");
    socket
        .connect(&SockAddr::unix(path).expect("an address"))
        .expect("connect");
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    socket
}

fn hear(mut line: &Socket) -> String {
    let mut bytes = [0; 512];
    let n = std::io::Read::read(&mut line, &mut bytes).expect("a message");
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

/// Two that share a port would each get some of the clients.
#[test]
fn a_second_process_must_take_over() {
    let bed = Bed::mariadb();
    let mut atlas = Atlas::start(config(&bed));
    let second = Command::new(env!("CARGO_BIN_EXE_atlas"))
        .args(["run", "-c", "atlas.toml"])
        .current_dir(atlas.dir())
        .output()
        .expect("atlas");
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains("atlas run --take-over"), "{text}");
    Wire::connect(atlas.address(), &Login::plain());
    // One that was killed leaves its files, which are in nobody's way.
    atlas.signal("KILL");
    atlas.wait(SOON);
    assert!(atlas.dir().join("atlas.upgrade").exists());
    let mut next = atlas.start_again();
    by_unix(&next, &Login::plain()).expect("log-in");
    // There is nobody to take over from: it just starts.
    next.signal("TERM");
    assert!(next.wait(SOON).success());
}

/// Who asks while an upgrade is under way is told so, and one that is told to stop before it serves takes nothing over.
#[test]
fn one_upgrade_at_a_time() {
    let bed = Bed::mariadb();
    let atlas = Atlas::start(config(&bed));
    // The next one waits for a server that says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = silent.local_addr().expect("an address");
    atlas.write_config(config(&bed).append(&format!(
        "[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ntimeout = \"1h\"\n[[groups]]\nname = \"silent\"\nprimary = \"{address}\"\n"
    )).all_users("group = \"main\""));
    let upgrade = || {
        let output = Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["upgrade", "-c", "atlas.toml"])
            .current_dir(atlas.dir())
            .output()
            .expect("atlas");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(upgrade);
        let mut successor = None;
        eventually("there is a new process, which acts on signals", || {
            successor = child_of(atlas.pid());
            successor.is_some_and(acts_on_term)
        });
        for _ in 0..3 {
            let text = upgrade();
            assert!(text.contains("an upgrade is under way"), "{text}");
        }
        Wire::connect(atlas.address(), &Login::plain());
        drop(Ended(successor.expect("there is one")));
        let text = first.join().expect("no panic");
        assert!(text.contains("no upgrade"), "{text}");
    });
    assert!(
        atlas.log().contains("told to stop before it took over"),
        "{}",
        atlas.log()
    );
    // All is as it was, and the next one does as if nothing had been.
    Wire::connect(atlas.address(), &Login::plain());
    by_unix(&atlas, &Login::plain()).expect("log-in");
    atlas.write_config(config(&bed));
    let mut atlas = atlas;
    let new = atlas.successor();
    assert!(atlas.wait(SOON).success());
    by_unix(&new, &Login::plain()).expect("log-in");
}

/// A process that this one has started.
fn child_of(parent: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .into_iter()
        .find(|pid: &u32| status(*pid, "PPid:") == Some(parent.to_string()))
}

fn acts_on_term(pid: u32) -> bool {
    let mask = status(pid, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask & (1 << 14) != 0)
}

fn status(pid: u32, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().to_owned())
}

/// `atlas upgrade`: what systemd is told, so that it knows whose process the service is.
#[test]
fn the_old_process_starts_the_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).expect("bind");
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    let heard = || {
        let mut buffer = [0; 300];
        let n = manager.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..n].to_vec()).expect("UTF-8")
    };
    let bed = Bed::mariadb();
    let variables = [("NOTIFY_SOCKET", path.to_str().expect("UTF-8"))];
    let mut atlas = Atlas::try_start(config(&bed), &variables).expect("a start");
    assert!(heard().starts_with("READY=1\n"));
    let upgrade = || {
        let output = Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["upgrade", "-c", "atlas.toml"])
            .current_dir(atlas.dir())
            .output()
            .expect("atlas");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    // A configuration of no use: all stays as it was.
    atlas.write_config("[server]\n");
    let (code, text) = upgrade();
    assert_eq!(code, Some(1), "{text}");
    atlas.write_config(config(&bed).server(
        "tls = { mode = \"required\", cert = \"{dir}/atlas.toml\", key = \"{dir}/atlas.toml\" }",
    ));
    let (code, text) = upgrade();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the new process "), "{text}");
    assert!(heard().starts_with("RELOADING=1\n"));
    assert!(heard().starts_with("READY=1\n"));
    atlas.write_config(config(&bed));
    let (code, text) = upgrade();
    assert_eq!(code, Some(0), "{text}");
    let successor = text
        .strip_prefix("process ")
        .and_then(|rest| rest.split(' ').next())
        .and_then(|pid| pid.parse::<u32>().ok())
        .expect("its number");
    let _end = Ended(successor);
    assert!(heard().starts_with("RELOADING=1\n"));
    assert_eq!(heard(), format!("MAINPID={successor}"));
    assert!(heard().starts_with("READY=1\n"));
    assert!(atlas.wait(SOON).success());
    let mut client = Wire::connect(atlas.address(), &Login::plain());
    assert_eq!(client.query("SELECT 1").cell(), "1");
    assert!(
        atlas
            .log()
            .contains(&format!("process {successor} serves from here on"))
    );
}

/// A process that is not this one's child is ended with the value.
struct Ended(u32);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = Command::new("sh")
            .args(["-c", "kill -s TERM \"$0\"", &self.0.to_string()])
            .status();
    }
}
