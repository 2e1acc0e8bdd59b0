//! A running Atlas: the built binary in a folder of its own, on a port that nobody else takes, ended with the value.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::{Refused, Wire};

/// The process. Its log and configuration lie in [`Atlas::dir`]; when the test fails, the end of the log is printed.
#[derive(Debug)]
pub struct Atlas {
    child: Child,
    address: SocketAddr,
    dir: Arc<tempfile::TempDir>,
    reservation: Arc<Socket>,
}

impl Atlas {
    /// Starts `atlas run` and waits until it greets. In the text `{listen}` is replaced by a free address, `{dir}` by the folder.
    pub fn start(config: impl Into<String>) -> Self {
        Self::try_start(config, &[]).unwrap_or_else(|log| panic!("Atlas does not start:\n{log}"))
    }

    /// The same for one that awaits a balancer's header before it greets.
    pub fn start_behind(config: impl Into<String>) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_atlas"));
        Self::spawn(config, program, b"PROXY UNKNOWN\r\n", None)
            .unwrap_or_else(|log| panic!("Atlas does not start:\n{log}"))
    }

    /// Starts it with whatever `prepare` puts into its folder, and does not wait for anything: it is given the folder, the file that is to be
    /// the configuration, and the address.
    pub fn begin(prepare: impl FnOnce(&Path, &Path, SocketAddr)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (address, reservation) = reserve_port();
        prepare(dir.path(), &dir.path().join(CONFIG), address);
        let program = Command::new(env!("CARGO_BIN_EXE_atlas"));
        Self::launch(dir, program, address, reservation)
    }

    /// The same with a limit of open files, which Atlas cannot raise.
    pub fn start_limited(config: impl Into<String>, open_files: usize) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {open_files}; exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_atlas")]);
        Self::spawn(config, shell, b"", None)
            .unwrap_or_else(|log| panic!("Atlas does not start:\n{log}"))
    }

    /// The same with environment variables; what it wrote to its log when it ends instead.
    pub fn try_start(
        config: impl Into<String>,
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_atlas"));
        program.envs(variables.iter().copied());
        Self::spawn(config, program, b"", None)
    }

    /// The same by a program that becomes Atlas, and that may have it serve clients at another address.
    pub fn start_by(
        config: impl Into<String>,
        program: Command,
        serves_at: Option<SocketAddr>,
    ) -> Result<Self, String> {
        Self::spawn(config, program, b"", serves_at)
    }

    fn spawn(
        config: impl Into<String>,
        program: Command,
        header: &[u8],
        serves_at: Option<SocketAddr>,
    ) -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (address, reservation) = reserve_port();
        let address = serves_at.unwrap_or(address);
        let config = fill_in(&config.into(), address, dir.path());
        fs::write(dir.path().join(CONFIG), &config).expect("write the configuration");
        let mut atlas = Self::launch(dir, program, address, reservation);
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match Wire::greet_behind(address, header, header.len()) {
                Ok(_) | Err(Refused::Error { .. }) => return Ok(atlas),
                Err(_) => {}
            }
            if let Some(status) = atlas.child.try_wait().expect("wait") {
                return Err(format!("{status}\n{}\n{config}", atlas.log()));
            }
            if Instant::now() > end {
                return Err(format!("no greeting in 20 s\n{}\n{config}", atlas.log()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn launch(
        dir: tempfile::TempDir,
        mut program: Command,
        address: SocketAddr,
        reservation: Socket,
    ) -> Self {
        let log = log_file(dir.path());
        let child = program
            .args(["run", "-c", CONFIG])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("one more handle"))
            .stderr(log)
            .spawn()
            .expect("start atlas");
        Self {
            child,
            address,
            dir: Arc::new(dir),
            reservation: Arc::new(reservation),
        }
    }

    /// Starts a process that takes over from this one, with the configuration that lies there now, and waits until it has. Both
    /// write to the same log.
    pub fn successor(&self) -> Self {
        self.try_successor()
            .unwrap_or_else(|status| panic!("nothing is taken over: {status}\n{}", self.log()))
    }

    /// The same; how it ended when it does not take over.
    pub fn try_successor(&self) -> Result<Self, ExitStatus> {
        self.follow("took over")
    }

    /// Starts another process in the folder of this one, which has ended, with the configuration that lies there now.
    pub fn start_again(&self) -> Self {
        self.follow("ready: ")
            .unwrap_or_else(|status| panic!("no start: {status}\n{}", self.log()))
    }

    /// Starts another process that takes over if there is somebody to take over from; waits until it says `word`.
    fn follow(&self, word: &str) -> Result<Self, ExitStatus> {
        let count = |log: String| log.matches(word).count();
        let before = count(self.log());
        let log = log_file(self.dir());
        let mut child = Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["run", "-c", CONFIG, "--take-over"])
            .current_dir(self.dir())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("one more handle"))
            .stderr(log)
            .spawn()
            .expect("start atlas");
        let end = Instant::now() + Duration::from_secs(20);
        while count(self.log()) == before {
            if let Some(status) = child.try_wait().expect("wait") {
                return Err(status);
            }
            assert!(Instant::now() < end, "not within 20 s:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            child,
            address: self.address,
            dir: self.dir.clone(),
            reservation: self.reservation.clone(),
        })
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait")
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder: `atlas.toml`, `atlas.log`, and what the configuration puts at `{dir}`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn config_path(&self) -> PathBuf {
        self.dir.path().join(CONFIG)
    }

    /// Writes another configuration in place of the first one; say `signal("HUP")` to have it read.
    pub fn write_config(&self, config: impl Into<String>) {
        let text = fill_in(&config.into(), self.address, self.dir.path());
        fs::write(self.config_path(), text).expect("write the configuration");
    }

    /// What it has logged up to now.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.dir.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the log has `text`.
    pub fn wait_log(&self, text: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.log().contains(text) {
            assert!(
                Instant::now() < end,
                "not in the log within 30 s: {text}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal by name: TERM, HUP, USR1, STOP, …
    pub fn signal(&self, name: &str) {
        // The shell's own kill: no unsafe code here, and no package for it.
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name, &self.pid().to_string()])
            .status()
            .expect("sh");
        assert!(status.success(), "kill -s {name}");
    }

    /// Waits for its end. Panics when it goes on.
    pub fn wait(&mut self, timeout: Duration) -> ExitStatus {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status;
            }
            assert!(Instant::now() < end, "Atlas goes on:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A line of /proc/PID/status in KiB: `VmRSS`, `RssAnon`, `VmHWM`.
    pub fn memory_kib(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status");
        let line = status
            .lines()
            .find(|line| line.starts_with(&format!("{key}:")));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("no {key} in\n{status}"))
    }

    /// How many of its TCP connections lead there.
    pub fn connections_to(&self, server: SocketAddr) -> usize {
        let SocketAddr::V4(server) = server else {
            panic!("beds listen on IPv4");
        };
        let folder = format!("/proc/{}/fd", self.pid());
        let own: Vec<String> = fs::read_dir(folder)
            .expect("fd")
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter_map(|link| {
                let link = link.to_string_lossy().into_owned();
                Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
            })
            .collect();
        let [a, b, c, d] = server.ip().octets();
        let remote = format!(
            "{:08X}:{:04X}",
            u32::from_le_bytes([a, b, c, d]),
            server.port()
        );
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.pid())).expect("tcp");
        let fields = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        fields
            .filter(|line| line.get(2) == Some(&remote.as_str()))
            .filter(|line| {
                line.get(9)
                    .is_some_and(|inode| own.iter().any(|o| o == inode))
            })
            .count()
    }

    /// How many descriptors it has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .expect("fd")
            .count()
    }
}

impl Drop for Atlas {
    fn drop(&mut self) {
        // Its own child, by its handle; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            eprintln!("---- log of Atlas at {} (its end)", self.address);
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
        }
    }
}

/// A port for a process that listens with SO_REUSEPORT, and the socket that keeps it: bound with SO_REUSEPORT too, so that Atlas can
/// bind beside it, but not listening, so that it gets no connection; the kernel gives the port to nobody else meanwhile. (A port found
/// by bind and close could be found by two tests, and their Atlases would share it without a word.)
fn reserve_port() -> (SocketAddr, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_port(true).expect("SO_REUSEPORT");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&any.into()).expect("bind");
    let address = socket.local_addr().expect("an address");
    (address.as_socket().expect("an IP address"), socket)
}

/// Several processes may write to it.
fn log_file(dir: &Path) -> fs::File {
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(LOG))
        .expect("open the log")
}

/// The text of a configuration with the address and the folder put in.
pub fn fill_in(config: &str, address: SocketAddr, dir: &Path) -> String {
    config
        .replace("{listen}", &address.to_string())
        .replace("{dir}", &dir.to_string_lossy())
}

const CONFIG: &str = "atlas.toml";
const LOG: &str = "atlas.log";
