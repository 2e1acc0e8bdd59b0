//! What a service manager is told: one datagram to the socket that `NOTIFY_SOCKET` names, as systemd's sd_notify(3) says.
//! Without that variable nobody wants to know.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Clients are accepted.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}"));
}

/// Something goes on that ends with [`ready`], of this process or the next.
pub fn reloading(status: &str) {
    tell(&format!("RELOADING=1\nSTATUS={status}"));
}

/// Another process is the service from here on, and speaks for itself.
pub fn handed_over(successor: u32) {
    tell(&format!("MAINPID={successor}"));
}

/// The stop has begun and may take so long, whatever the manager's own limit says.
pub fn stopping(status: &str, at_most: Duration) {
    let limit = at_most.saturating_add(MARGIN).as_micros();
    tell(&format!(
        "STOPPING=1\nSTATUS={status}\nEXTEND_TIMEOUT_USEC={limit}"
    ));
}

/// What a stop takes beyond the time that transactions are given.
const MARGIN: Duration = Duration::from_secs(10);

fn tell(message: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, message) {
        log::warn!(
            "cannot tell the service manager at {}: {error}",
            socket.display()
        );
    }
}

/// A path, or behind an `@` a name that is in no folder.
fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        Some((b'/', _)) => SocketAddr::from_pathname(socket)?,
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "NOTIFY_SOCKET is neither a path nor @name",
            ));
        }
    };
    let sender = UnixDatagram::unbound()?;
    // A manager that does not read must hold up nothing.
    sender.set_nonblocking(true)?;
    sender
        .send_to_addr(message.as_bytes(), &address)
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 100];
        let n = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..n].to_vec()).unwrap()
    }

    #[test]
    fn by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(heard(&socket), "READY=1");
        let name = format!("atlas-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(heard(&socket), "STOPPING=1");
    }

    #[test]
    fn what_cannot_be_told() {
        for socket in ["", "relative", "/nonexistent/notify"] {
            assert!(send(OsStr::new(socket), "READY=1").is_err(), "{socket}");
        }
    }
}
