//! Three network namespaces in a row, client - proxy - server, joined by two links with a constant delay. The one in the middle
//! forwards, so a direct connection crosses the same two links as a proxied one and only the proxy process is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::delay::open_netns;
use crate::error::{Doing, Error, Result};
use crate::group::Group;
use crate::guard::{self, Thing};
use crate::machine;
use crate::programs::{find_program, this_program};
use crate::sys::{self, Placement};

/// Where proxies listen, seen from the client.
pub(crate) const PROXY: &str = "10.99.1.2";
/// Where the server listens, seen from client and proxy.
pub(crate) const SERVER: &str = "10.99.2.2";

/// The namespaces and the delay program between them.
#[derive(Debug)]
pub(crate) struct Network {
    prefix: String,
    folder: PathBuf,
    links: Option<Group>,
}

/// One of the three places.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Client,
    Proxy,
    Server,
}

impl Network {
    /// Makes the namespaces, devices, addresses and routes; the links carry nothing yet.
    ///
    /// # Errors
    /// Without root, the `ip` program or TUN devices.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        if !sys::is_root() {
            return Err(Error::Missing("network namespaces need root".into()));
        }
        let net = Self {
            prefix: format!("lt{}", std::process::id()),
            folder: folder.to_owned(),
            links: None,
        };
        for place in [Place::Client, Place::Proxy, Place::Server] {
            let name = net.name(place);
            guard::watch(&Thing::Netns(name.clone()));
            ip(&["netns", "add", &name])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        for (place, device, address) in [
            (Place::Client, "left", "10.99.1.1/24"),
            (Place::Proxy, "left", "10.99.1.2/24"),
            (Place::Proxy, "right", "10.99.2.1/24"),
            (Place::Server, "right", "10.99.2.2/24"),
        ] {
            let name = net.name(place);
            ip(&[
                "netns", "exec", &name, "ip", "tuntap", "add", "dev", device, "mode", "tun",
            ])?;
            ip(&["-n", &name, "link", "set", device, "txqueuelen", "4000"])?;
            ip(&["-n", &name, "addr", "add", address, "dev", device])?;
            ip(&["-n", &name, "link", "set", device, "up"])?;
        }
        ip(&[
            "-n",
            &net.name(Place::Client),
            "route",
            "add",
            "default",
            "dev",
            "left",
        ])?;
        ip(&[
            "-n",
            &net.name(Place::Server),
            "route",
            "add",
            "default",
            "dev",
            "right",
        ])?;
        ip(&[
            "netns",
            "exec",
            &net.name(Place::Proxy),
            "sh",
            "-c",
            "echo 1 > /proc/sys/net/ipv4/ip_forward",
        ])?;
        Ok(net)
    }

    /// A process's place in the network, on one core.
    ///
    /// # Errors
    /// When the namespace is gone.
    pub(crate) fn placement(&self, place: Place, core: Option<usize>) -> Result<Placement> {
        Ok(Placement {
            core,
            netns: Some(open_netns(&self.name(place))?),
            ..Placement::default()
        })
    }

    /// Starts the links anew with a round trip of `rtt` between client and server (four hops of a quarter).
    ///
    /// # Errors
    /// When the delay program does not start.
    pub(crate) fn set_round_trip(&mut self, rtt: Duration, core: Option<usize>) -> Result<()> {
        self.links = None;
        let (client, proxy, server) = (
            self.name(Place::Client),
            self.name(Place::Proxy),
            self.name(Place::Server),
        );
        let mut command = this_program();
        command.arg("delay").arg((rtt / 4).as_nanos().to_string());
        command
            .arg(format!("{client}:left:{proxy}:left"))
            .arg(format!("{proxy}:right:{server}:right"));
        let mut links = Group::start(
            command,
            Placement {
                core,
                ..Placement::default()
            },
            &self.folder,
            "delay",
        )?;
        thread::sleep(Duration::from_millis(500));
        if links.has_ended() {
            return Err(Error::Failed(format!(
                "the delay program: {}",
                links.last_words()
            )));
        }
        self.links = Some(links);
        Ok(())
    }

    /// CPU time of the delay program.
    pub(crate) fn links_cpu(&self) -> Duration {
        self.links
            .as_ref()
            .map_or(Duration::ZERO, |l| machine::session_cpu(l.sid()))
    }

    fn name(&self, place: Place) -> String {
        let letter = match place {
            Place::Client => 'c',
            Place::Proxy => 'p',
            Place::Server => 's',
        };
        format!("{}{letter}", self.prefix)
    }
}

/// Runs the `ip` program; its failure is an error with its words.
fn ip(arguments: &[&str]) -> Result<()> {
    let program = find_program("ip")
        .ok_or_else(|| Error::Missing("ip is not installed (Debian: iproute2)".into()))?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .doing(|| "run ip".into())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed(format!(
        "ip {}: {}",
        arguments.join(" "),
        words.trim()
    )))
}
