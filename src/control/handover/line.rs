//! A connection between two processes of this machine that keeps the bounds of messages and carries descriptors: what is on the
//! upgrade socket. Who listens there and who speaks is of the same user, or root, or is not heard.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// A label is an address; nothing that is said is longer.
const TEXT_MAX: usize = 512;

/// See the module's words.
#[derive(Debug)]
pub(super) struct Line(OwnedFd);

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Listens, in place of a process that is gone. An error of kind `AddrInUse` when there is one that is not.
pub(super) fn listen(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let listener = socket()?;
    match rustix::net::bind(&listener, &address) {
        Err(rustix::io::Errno::ADDRINUSE) => {
            let is_socket =
                std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
            if !is_socket || Line::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
            rustix::net::bind(&listener, &address)?;
        }
        other => other?,
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&listener, 8)?;
    Ok(listener)
}

impl Line {
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let line = socket()?;
        rustix::net::connect(&line, &SocketAddrUnix::new(path)?)?;
        let line = Self(line);
        if line.peer()?.is_some() {
            Ok(line)
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it belongs to another user",
            ))
        }
    }

    pub(super) fn accept(listener: &OwnedFd) -> io::Result<Self> {
        Ok(Self(rustix::net::accept_with(
            listener,
            SocketFlags::CLOEXEC,
        )?))
    }

    /// The process at the other end; `None` when it is not to be trusted.
    pub(super) fn peer(&self) -> io::Result<Option<u32>> {
        let peer = socket_peercred(&self.0)?;
        let is_trusted = peer.uid == rustix::process::geteuid() || peer.uid.is_root();
        Ok(is_trusted.then(|| peer.pid.as_raw_nonzero().get().unsigned_abs()))
    }

    /// How long saying and hearing may take.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(timeout))?;
        Ok(set_socket_timeout(&self.0, Timeout::Send, Some(timeout))?)
    }

    pub(super) fn say(&self, text: &str) -> io::Result<()> {
        self.send(text, &[])
    }

    pub(super) fn pass(&self, text: &str, socket: &OwnedFd) -> io::Result<()> {
        self.send(text, &[socket.as_fd()])
    }

    fn send(&self, text: &str, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let text = [IoSlice::new(text.as_bytes())];
        rustix::net::sendmsg(&self.0, &text, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// One message and the descriptor that came with it. The end of the connection is an error of kind `UnexpectedEof`.
    pub(super) fn hear(&self) -> io::Result<(String, Option<OwnedFd>)> {
        let mut bytes = [0; TEXT_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        let mut socket = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                socket = sockets.last();
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_whole = !received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        let text = bytes
            .get(..received.bytes)
            .and_then(|bytes| str::from_utf8(bytes).ok())
            .filter(|_| is_whole);
        match text {
            Some(text) => Ok((text.to_owned(), socket)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// How long an accept waits; none for as long as it takes.
pub(super) fn set_accept_timeout(listener: &OwnedFd, timeout: Option<Duration>) -> io::Result<()> {
    Ok(set_socket_timeout(listener, Timeout::Recv, timeout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("line");
        let listener = listen(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // It is served.
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let _rejected = Line::accept(&listener).unwrap();
        let client = Line::connect(&path).unwrap();
        let server = Line::accept(&listener).unwrap();
        assert_eq!(server.peer().unwrap(), Some(std::process::id()));
        client.say("one").unwrap();
        client.pass("two", &listener).unwrap();
        assert_eq!(server.hear().unwrap().0, "one");
        let (text, socket) = server.hear().unwrap();
        assert_eq!(text, "two");
        let copy = socket.expect("a descriptor");
        assert!(server.set_timeout(Duration::from_millis(1)).is_ok());
        assert!(server.hear().is_err());
        client.say(&"x".repeat(TEXT_MAX + 1)).unwrap();
        assert_eq!(
            server.hear().unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        drop(client);
        assert_eq!(
            server.hear().unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        // The copy is the same socket; when both are gone another process takes the place.
        drop(listener);
        let _client = Line::connect(&path).unwrap();
        drop(copy);
        listen(&path).unwrap();
    }
}
