//! Listening sockets that somebody else has made: a service manager, who passes them as systemd's sd_listen_fds(3) says, or the
//! process before this one, which had them from there. They stand in the place of what the configuration says to listen on.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use socket2::{Domain, SockRef, Socket as RawSocket};

use crate::control::handover::Inherited;

/// A socket of either kind.
pub(super) enum Given {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What the sockets are for that have this name. Whoever says nothing else means clients: systemd calls a socket by the name of
/// its unit then.
fn purpose(name: &str) -> &'static str {
    match name {
        "admin" => "admin",
        "http" => "http",
        _ => "clients",
    }
}

/// Of which [`super::sockets`] takes what it needs.
#[derive(Default)]
pub(super) struct Sockets(Vec<(&'static str, Given)>);

impl Sockets {
    /// What a service manager passes to this process; nothing when it passes none, or to another process. To be called once,
    /// before there are other threads: the environment is cleared of it.
    pub(super) fn from_environment() -> io::Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for place in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            let given = match passed.take_tcp_listener(place) {
                Ok(socket) => socket.map(Given::Tcp),
                Err(_) => passed
                    .take_unix_listener(place)
                    .map_err(|_| refused(name, "is neither a TCP nor a unix stream socket"))?
                    .map(Given::Unix),
            };
            let Some(given) = given else {
                continue;
            };
            if !given.listens()? {
                return Err(refused(
                    name,
                    "does not listen (Accept=yes is not for Atlas)",
                ));
            }
            sockets.push((purpose(name), given));
        }
        Ok(Self(sockets))
    }

    /// The sockets for a purpose: those that were passed, or else those that the process before this one had been passed.
    pub(super) fn take(&mut self, purpose: &str, inherited: &mut Inherited) -> Vec<Given> {
        let taken = self.0.extract_if(.., |(other, _)| *other == purpose);
        let taken: Vec<Given> = taken.map(|(_, given)| given).collect();
        let before = inherited.take(&label(purpose));
        if taken.is_empty() {
            before.into_iter().filter_map(Given::of).collect()
        } else {
            taken
        }
    }
}

fn refused(name: &str, why: &str) -> io::Error {
    io::Error::other(format!(
        "the socket \"{name}\" that the service manager passes (LISTEN_FDS) {why}"
    ))
}

/// By which a successor knows them.
pub(super) fn label(purpose: &str) -> String {
    format!("given {purpose}")
}

impl Given {
    fn of(socket: OwnedFd) -> Option<Self> {
        let socket = RawSocket::from(socket);
        match socket.domain().ok()? {
            Domain::UNIX => Some(Self::Unix(socket.into())),
            _ => Some(Self::Tcp(socket.into())),
        }
    }

    fn listens(&self) -> io::Result<bool> {
        match self {
            Self::Tcp(socket) => SockRef::from(socket).is_listener(),
            Self::Unix(socket) => SockRef::from(socket).is_listener(),
        }
    }

    /// Where it listens, for the log.
    pub(super) fn address(&self) -> String {
        let address = match self {
            Self::Tcp(socket) => socket.local_addr().map(|address| address.to_string()),
            Self::Unix(socket) => socket
                .local_addr()
                .map(|address| match address.as_pathname() {
                    Some(path) => format!("unix:{}", path.display()),
                    None => "a unix socket without a path".to_owned(),
                }),
        };
        address.unwrap_or_else(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_for() {
        for (name, wanted) in [
            ("admin", "admin"),
            ("http", "http"),
            ("clients", "clients"),
            ("atlas.socket", "clients"),
            ("unknown", "clients"),
            ("", "clients"),
        ] {
            assert_eq!(purpose(name), wanted, "{name}");
        }
    }

    #[test]
    fn what_was_passed_goes_before_what_was_inherited() {
        let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets(vec![
            ("clients", Given::Tcp(tcp())),
            ("http", Given::Tcp(tcp())),
        ]);
        let mut nothing = Inherited::default();
        assert_eq!(sockets.take("admin", &mut nothing).len(), 0);
        assert_eq!(sockets.take("clients", &mut nothing).len(), 1);
        assert_eq!(sockets.take("clients", &mut nothing).len(), 0);
        let given = Given::of(tcp().into()).unwrap();
        assert!(matches!(given, Given::Tcp(_)) && given.listens().unwrap());
        assert!(given.address().starts_with("127.0.0.1:"));
    }
}
