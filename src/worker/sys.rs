//! What only the C library and the kernel can do: pinning a thread to a core, raising the limit of descriptors, asking a socket
//! when it was last written to, reading and writing sockets for as little as the kernel takes for it.
//! The only unsafe code of Atlas.

#![expect(
    unsafe_code,
    reason = "sched_setaffinity, setrlimit, TCP_INFO and plain system calls have no safe interface in std"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Binds the calling thread to one core.
///
/// # Errors
/// The kernel's: no such core, or one that the process may not use.
pub fn pin_to(core: usize) -> io::Result<()> {
    if core >= usize::try_from(libc::CPU_SETSIZE).unwrap_or(0) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: cpu_set_t is a plain array of integers, for which all zeroes is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core is below CPU_SETSIZE, so the bit lies within the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is initialised and its size is the one passed; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Cores that the process may use, in order.
#[must_use]
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size passed into the set.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result != 0 {
        return Vec::new();
    }
    let count = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: every core asked for is below CPU_SETSIZE.
    (0..count)
        .filter(|core| unsafe { libc::CPU_ISSET(*core, &set) })
        .collect()
}

/// Raises the limit of open descriptors to the most that the process may have; gives the limit then in force.
///
/// # Errors
/// The kernel's.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one rlimit into the place passed.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads one rlimit from the place passed.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

/// How long ago the last bytes were sent on a TCP connection, as the kernel knows it. Nothing on any other socket.
#[must_use]
pub(super) fn since_last_sent(socket: BorrowedFd<'_>) -> Option<Duration> {
    let info = tcp_info(socket)?;
    Some(Duration::from_millis(info.tcpi_last_data_sent.into()))
}

/// How long ago the last bytes were sent or came.
#[must_use]
pub(super) fn quiet_for(socket: BorrowedFd<'_>) -> Option<Duration> {
    let info = tcp_info(socket)?;
    let millis = info.tcpi_last_data_sent.min(info.tcpi_last_data_recv);
    Some(Duration::from_millis(millis.into()))
}

fn tcp_info(socket: BorrowedFd<'_>) -> Option<libc::tcp_info> {
    // SAFETY: tcp_info is a plain structure of integers, for which all zeroes is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of the structure, into the place passed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(info)
}

/// Reads from a socket. The C library's `recv` is a place where a thread may be cancelled, which in a process of several threads
/// costs it two locked instructions and four cold lines around every call; no thread of Atlas is ever cancelled.
///
/// # Errors
/// The kernel's.
#[inline]
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes to the buffer, which is exclusively borrowed; the null pointers say that the
    // sender's address is not wanted.
    let result = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            socket.as_raw_fd(),
            buffer.as_mut_ptr(),
            buffer.len(),
            0,
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Writes to a socket, as [`receive`] reads. A peer that is gone is an error and no signal.
///
/// # Errors
/// The kernel's.
#[inline]
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads at most `len` bytes of the borrowed slice; the null pointer and 0 say that the socket is connected.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            socket.as_raw_fd(),
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            std::ptr::null::<libc::sockaddr>(),
            0_usize,
        )
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_carry_bytes_and_errors() {
        let (one, other) = UnixStream::pair().expect("a pair");
        other.set_nonblocking(true).expect("a flag");
        let mut buffer = [0; 8];
        let error = receive(other.as_fd(), &mut buffer).expect_err("nothing is there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(send(one.as_fd(), b"hello").expect("room"), 5);
        assert_eq!(receive(other.as_fd(), &mut buffer[..2]).expect("bytes"), 2);
        assert_eq!(receive(other.as_fd(), &mut buffer[2..]).expect("bytes"), 3);
        assert_eq!(&buffer, b"hello\0\0\0");
        drop(one);
        assert_eq!(receive(other.as_fd(), &mut buffer).expect("the end"), 0);
        let error = send(other.as_fd(), b"x").expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
