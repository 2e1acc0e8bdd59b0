//! What is measured against what: the direct connection, the plain relay, HAProxy, nginx, Atlas and proxies of the command line,
//! each started in front of the one server.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::group::Group;
use crate::mysql::{Connection, PASSWORD, USER};
use crate::options::{Options, Peer};
use crate::programs::{find_program, this_program};
use crate::record::say;
use crate::sys::{self, Placement};

/// As many descriptors as a run may need.
pub(crate) const DESCRIPTORS: u64 = 50_000;

/// One way to the server.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// The proxy; `None` for the direct connection.
    group: Option<Group>,
}

impl Target {
    /// The direct connection.
    pub(crate) fn direct(name: &str, address: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            group: None,
        }
    }

    /// The proxy's session, by which its CPU time and memory are asked for.
    pub(crate) fn sid(&self) -> Option<i32> {
        self.group.as_ref().map(Group::sid)
    }

    /// Waits until a client gets an answer through this target.
    ///
    /// # Errors
    /// When the proxy ended, or there is no answer within 15 seconds.
    pub(crate) fn wait_until_up(&mut self) -> Result<()> {
        let give_up = Instant::now() + Duration::from_secs(15);
        loop {
            let answer = Connection::open(self.address).and_then(|mut c| c.query("SELECT 1"));
            let Err(e) = answer else { return Ok(()) };
            self.fail_if_ended()?;
            if Instant::now() > give_up {
                let words = self
                    .group
                    .as_ref()
                    .map(Group::last_words)
                    .unwrap_or_default();
                return Err(Error::Failed(format!(
                    "{}: no answer: {e}. It says: {words}",
                    self.name
                )));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// # Errors
    /// When the proxy's program has ended.
    pub(crate) fn fail_if_ended(&mut self) -> Result<()> {
        if let Some(group) = &mut self.group
            && group.has_ended()
        {
            return Err(Error::Failed(format!(
                "{} ended: {}",
                self.name,
                group.last_words()
            )));
        }
        Ok(())
    }
}

/// Where proxies are started.
pub(crate) struct Site<'a> {
    pub(crate) folder: &'a Path,
    /// The address that they listen at.
    pub(crate) listen: IpAddr,
    pub(crate) server: SocketAddr,
    pub(crate) core: usize,
    /// How many descriptors a process may have open; a proxied client takes two.
    pub(crate) descriptors: u64,
    /// Whether `listen` is in this process's own network, so that free ports can be found by trying.
    pub(crate) is_here: bool,
    pub(crate) place: &'a dyn Fn() -> Result<Placement>,
}

/// Starts all targets that the options name, in that order.
///
/// # Errors
/// When one that was asked for cannot be started. Without a list, what is not installed is left out with a note.
pub(crate) fn start(options: &Options, site: &Site<'_>) -> Result<Vec<Target>> {
    let mut names = options.targets.clone();
    if names.is_empty() {
        names = ["direct", "relay", "haproxy?", "nginx?", "atlas?"]
            .map(String::from)
            .to_vec();
        names.extend(options.peers.iter().map(|p| p.name.clone()));
    }
    let mut targets = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let (name, may_miss) = name
            .strip_suffix('?')
            .map_or((name.as_str(), false), |n| (n, true));
        match start_one(options, site, name, index) {
            Ok(t) => targets.push(t),
            Err(Error::Missing(why)) if may_miss => say(&format!("left out: {name}: {why}")),
            Err(e) => return Err(e),
        }
    }
    Ok(targets)
}

fn start_one(options: &Options, site: &Site<'_>, name: &str, index: usize) -> Result<Target> {
    if name == "direct" {
        return Ok(Target::direct(name, site.server));
    }
    let port = if site.is_here {
        free_port()?
    } else {
        u16::try_from(3400 + index).map_err(|e| Error::Usage(e.to_string()))?
    };
    let listen = SocketAddr::new(site.listen, port);
    let run = site.folder.join(format!("target-{index}"));
    fs::create_dir(&run).doing(|| format!("make {}", run.display()))?;
    let peer = options.peers.iter().find(|p| p.name == name);
    let command = match (peer, name) {
        (Some(peer), _) => peer_command(peer, listen, site.server, &run),
        (None, "relay") => {
            let mut c = this_program();
            c.args(["relay", &listen.to_string(), &site.server.to_string()]);
            c
        }
        (None, "haproxy") => haproxy(listen, site, &run)?,
        (None, "nginx") => nginx(listen, site, &run)?,
        (None, "atlas") => atlas(options, site, listen, &run)?,
        (None, _) => return Err(Error::Usage(format!("there is no target {name}"))),
    };
    let group = Group::start(command, (site.place)()?, &run, "out")?;
    Ok(Target {
        name: name.to_owned(),
        address: listen,
        group: Some(group),
    })
}

fn peer_command(peer: &Peer, listen: SocketAddr, server: SocketAddr, run: &Path) -> Command {
    let filled = peer
        .command
        .replace("@HOST@", &listen.ip().to_string())
        .replace("@PORT@", &listen.port().to_string())
        .replace("@DBHOST@", &server.ip().to_string())
        .replace("@DBPORT@", &server.port().to_string())
        .replace("@RUN@", &run.display().to_string());
    let mut c = Command::new("sh");
    c.args(["-c", &filled]).current_dir(run);
    c
}

fn haproxy(listen: SocketAddr, site: &Site<'_>, run: &Path) -> Result<Command> {
    let (server, clients) = (site.server, clients_max(site.descriptors));
    let program = find_program("haproxy").ok_or_else(|| Error::Missing("not installed".into()))?;
    let file = write(
        &run.join("haproxy.cfg"),
        &format!(
            "global
  nbthread 1
  maxconn {clients}
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option clitcpka
listen db
  bind {listen}
  server s1 {server}
"
        ),
    )?;
    let mut c = Command::new(program);
    c.arg("-db").arg("-f").arg(file);
    Ok(c)
}

fn nginx(listen: SocketAddr, site: &Site<'_>, run: &Path) -> Result<Command> {
    let (server, descriptors) = (site.server, site.descriptors);
    let program = find_program("nginx").ok_or_else(|| Error::Missing("not installed".into()))?;
    let module = [
        "/usr/lib/nginx/modules",
        "/usr/lib64/nginx/modules",
        "/usr/share/nginx/modules",
    ]
    .map(|f| Path::new(f).join("ngx_stream_module.so"))
    .into_iter()
    .find(|p| p.is_file())
    .ok_or_else(|| {
        Error::Missing("its stream module is not installed (Debian: libnginx-mod-stream)".into())
    })?;
    let (module, run_name) = (module.display(), run.display());
    let file = write(
        &run.join("nginx.conf"),
        &format!(
            "load_module {module};
daemon off;
worker_processes 1;
pid {run_name}/nginx.pid;
error_log {run_name}/error.log warn;
events {{ worker_connections {descriptors}; }}
stream {{
  upstream db {{ server {server}; }}
  server {{ listen {listen} so_keepalive=on; proxy_pass db; proxy_timeout 1h; tcp_nodelay on; }}
}}
"
        ),
    )?;
    let mut c = Command::new(program);
    c.arg("-p")
        .arg(run)
        .arg("-c")
        .arg(file)
        .arg("-e")
        .arg(run.join("start.log"));
    Ok(c)
}

/// Atlas with one worker; the server is primary and replica at once, so that reads take the replica's route.
fn atlas(options: &Options, site: &Site<'_>, listen: SocketAddr, run: &Path) -> Result<Command> {
    let program = match &options.atlas {
        Some(p) => p.clone(),
        None => std::env::current_exe()
            .doing(|| "find this program".into())?
            .with_file_name("atlas"),
    };
    if !program.is_file() {
        return Err(Error::Missing(format!(
            "{} is not built",
            program.display()
        )));
    }
    let pin = if options.is_pinned {
        format!("[{}]", site.core)
    } else {
        "false".into()
    };
    let (server, clients) = (site.server, clients_max(site.descriptors));
    let connections = options
        .server_connections
        .map_or(clients, |n| u64::try_from(n).unwrap_or(u64::MAX));
    let file = write(
        &run.join("atlas.toml"),
        &format!(
            "[server]
listen = [\"{listen}\"]
workers = 1
pin_workers = {pin}
auth_plugin = \"mysql_native_password\"
max_connections = {clients}

[pool]
max_connections = {connections}
connect_rate = 100000

[[groups]]
name = \"main\"
primary = \"{server}\"
replicas = [{{ address = \"{server}\" }}]

[[users]]
name = \"{USER}\"
password = \"{PASSWORD}\"
read_from = \"replica\"
"
        ),
    )?;
    let mut c = Command::new(program);
    c.arg("run").arg("-c").arg(file).current_dir(run);
    Ok(c)
}

/// How many clients a proxy can serve that holds a server connection for each.
pub(crate) fn clients_max(descriptors: u64) -> u64 {
    descriptors.saturating_sub(200) / 2
}

fn write(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).doing(|| format!("write {}", path.display()))?;
    Ok(path.to_owned())
}

/// A port of the loopback that was free a moment ago, from below the range that the kernel gives to outgoing connections: a load test
/// makes so many of them that one could take the port before its listener does.
///
/// # Errors
/// When there is none.
pub(crate) fn free_port() -> Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    // Two load tests at a time look in different places.
    let offset = u16::try_from(sys::now_ns() / 1000 % u64::from(COUNT)).unwrap_or(0);
    (0..COUNT)
        .map(|n| FIRST + (offset + n) % COUNT)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| Error::Failed("there is no free port".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_command_is_filled_in() {
        let peer = Peer {
            name: "x".into(),
            command: "x --listen @HOST@:@PORT@ --to @DBHOST@:@DBPORT@ --in @RUN@".into(),
        };
        let address = |text: &str| text.parse().expect("an address");
        let c = peer_command(
            &peer,
            address("127.0.0.1:1"),
            address("10.0.0.1:2"),
            Path::new("/r"),
        );
        let words: Vec<_> = c
            .get_args()
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            words,
            ["-c", "x --listen 127.0.0.1:1 --to 10.0.0.1:2 --in /r"]
        );
    }
}
