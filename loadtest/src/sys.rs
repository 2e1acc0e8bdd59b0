//! The operating-system calls that the standard library lacks, behind safe functions: where a child process runs, CPU clocks of
//! other processes, clocks and waits in nanoseconds, signals, network namespaces, TUN devices, level-triggered epoll. No policy.
#![expect(
    unsafe_code,
    reason = "these calls exist only as C functions; every use is a single call with checked arguments"
)]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Where and how a child process is to run.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// The only core it may use.
    pub(crate) core: Option<usize>,
    /// The network namespace it enters.
    pub(crate) netns: Option<File>,
    /// Scheduled only when nothing else wants the core.
    pub(crate) is_idle_class: bool,
}

/// Makes `command` start in a session of its own (so that its CPU time, memory and end can be asked for by session), die with the
/// thread that spawns it, with no signal blocked, and at its place.
pub(crate) fn arrange(command: &mut Command, place: Placement) {
    let child = move || {
        // SAFETY: setsid takes no arguments.
        check(unsafe { libc::setsid() })?;
        // SAFETY: PR_SET_PDEATHSIG takes one integer.
        check(unsafe {
            libc::prctl(
                libc::PR_SET_PDEATHSIG,
                libc::c_ulong::from(libc::SIGKILL.cast_unsigned()),
            )
        })?;
        if let Some(netns) = &place.netns {
            enter_netns(netns)?;
        }
        if let Some(core) = place.core {
            pin_task(0, core)?;
        }
        if place.is_idle_class {
            // SAFETY: sched_param is plain integers, for which zero is valid.
            let param: libc::sched_param = unsafe { mem::zeroed() };
            // SAFETY: `param` lives through the call.
            check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) })?;
        }
        set_signal_mask(libc::SIG_SETMASK, &[])
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock between fork and exec.
    unsafe { command.pre_exec(child) };
}

/// Lets the task (a thread id; 0 is the caller) run on one core only.
pub(crate) fn pin_task(tid: i32, core: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is an array of integers, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if core >= size_of::<libc::cpu_set_t>() * 8 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `core` is within the set, as checked above.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` lives through the call and its size is the one given.
    check(unsafe { libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &raw const set) })
        .map(drop)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_netns(netns: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `netns` is borrowed.
    check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Attaches to the TUN device `name` of the calling thread's namespace; reads and writes of the file are whole IP packets and do not block.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    // SAFETY: ifreq is integers and a union of them, for which zero is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_TUN | libc::IFF_NO_PI).map_err(io::Error::other)?;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    // SAFETY: F_SETFL takes one integer.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok(file)
}

/// Waits until one of the files can be read or the time is over; `None` waits for ever. Precise to the nanosecond, unlike poll.
pub(crate) fn wait_readable(
    files: &[File],
    ready: &mut Vec<bool>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> = files
        .iter()
        .map(|f| libc::pollfd {
            fd: f.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let spec = timeout.map(timespec);
    let spec_ptr = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(polled.len()).map_err(io::Error::other)?;
    // SAFETY: `polled` holds `count` entries; the timeout is null or lives through the call; the mask may be null.
    check(unsafe { libc::ppoll(polled.as_mut_ptr(), count, spec_ptr, std::ptr::null()) })?;
    ready.clear();
    ready.extend(polled.iter().map(|p| p.revents != 0));
    Ok(())
}

/// The CPU time that a process has used, all its threads (also ended ones) together; `None` when it is gone.
pub(crate) fn process_cpu(pid: i32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` lives through the call.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    read_clock(clock).ok()
}

/// The CPU time of all children that have ended and been waited for.
pub(crate) fn children_cpu() -> Duration {
    // SAFETY: rusage is plain integers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` lives through the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let of = |t: libc::timeval| {
        Duration::from_secs(u64::try_from(t.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(t.tv_usec).unwrap_or(0))
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = read_clock(libc::CLOCK_MONOTONIC).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until the monotonic clock shows `at_ns`; at once when that is past.
pub(crate) fn sleep_until(at_ns: u64) {
    let at = timespec(Duration::from_nanos(at_ns));
    // SAFETY: `at` lives through the call; the remainder may be null for an absolute time.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// Takes away the 50 us of slack that the kernel grants itself on the calling thread's timers.
pub(crate) fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer. A failure leaves the default slack, which only adds latency to all targets alike.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(1u32)) };
}

/// Raises the limit of open descriptors (inherited by children) towards `want`; returns what it is then.
pub(crate) fn raise_descriptors(want: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives through the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let higher = libc::rlimit {
        rlim_cur: want,
        rlim_max: limit.rlim_max.max(want),
    };
    let capped = libc::rlimit {
        rlim_cur: limit.rlim_max.min(want),
        rlim_max: limit.rlim_max,
    };
    for attempt in [higher, capped]
        .into_iter()
        .filter(|a| a.rlim_cur > limit.rlim_cur)
    {
        // SAFETY: `attempt` lives through the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const attempt) } == 0 {
            return attempt.rlim_cur;
        }
    }
    limit.rlim_cur
}

/// Whether the process runs as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Clock ticks per second of /proc/stat.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes one integer.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}

/// Sends a signal to one process; that it may be gone already is not an error.
pub(crate) fn signal(pid: i32, signal: i32) {
    if pid > 1 {
        // SAFETY: kill takes two integers; 0 and negative ids, which would reach others, are kept out.
        unsafe { libc::kill(pid, signal) };
    }
}

pub(crate) const SIGKILL: i32 = libc::SIGKILL;
pub(crate) const SIGINT: i32 = libc::SIGINT;

/// The signals that end a load test.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Blocks the ending signals in the calling thread and the threads it starts from now on.
pub(crate) fn block_ending_signals() -> io::Result<()> {
    set_signal_mask(libc::SIG_BLOCK, &ENDING)
}

/// Waits for one of the ending signals, which must be blocked; returns its number.
pub(crate) fn wait_ending_signal() -> i32 {
    let mut got = 0;
    let set = signal_set(&ENDING);
    // SAFETY: both live through the call.
    unsafe { libc::sigwait(&raw const set, &raw mut got) };
    got
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigset_t is an array of integers, for which zero is valid (and empty).
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    for s in signals {
        // SAFETY: `set` lives through the call.
        unsafe { libc::sigaddset(&raw mut set, *s) };
    }
    set
}

fn set_signal_mask(how: i32, signals: &[i32]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: `set` lives through the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` lives through the call.
    check(unsafe { libc::clock_gettime(clock, &raw mut now) })?;
    Ok(Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    ))
}

fn timespec(d: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(d.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: d.subsec_nanos().into(),
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// What happened to a registered socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) token: u64,
    /// Bytes, the end of the stream or an error are there to be read.
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
}

/// Level-triggered epoll. (mio is edge-triggered; the plain relay is to be what a simple C program would be.)
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes one integer.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `fd` was just opened and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 256],
        })
    }

    /// Registers a socket. It leaves the set by itself when it is closed.
    pub(crate) fn add(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        read: bool,
        write: bool,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, read, write)
    }

    /// Changes what a registered socket waits for.
    pub(crate) fn modify(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        read: bool,
        write: bool,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, read, write)
    }

    /// Waits without end for at least one event.
    pub(crate) fn wait(&mut self, out: &mut Vec<Event>) -> io::Result<()> {
        let room = i32::try_from(self.events.len()).map_err(io::Error::other)?;
        // SAFETY: `events` has room for the number of entries given.
        let n = check(unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), room, -1)
        })?;
        out.clear();
        out.extend(
            self.events
                .iter()
                .take(usize::try_from(n).unwrap_or(0))
                .map(|e| {
                    let bits = e.events.cast_signed();
                    Event {
                        token: e.u64,
                        is_readable: bits & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) != 0,
                        is_writable: bits & libc::EPOLLOUT != 0,
                    }
                }),
        );
        Ok(())
    }

    fn control(
        &self,
        what: i32,
        socket: BorrowedFd<'_>,
        token: u64,
        read: bool,
        write: bool,
    ) -> io::Result<()> {
        let bits = if read { libc::EPOLLIN } else { 0 } | if write { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: bits.cast_unsigned(),
            u64: token,
        };
        // SAFETY: both descriptors are open while borrowed and `event` lives through the call.
        check(unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                what,
                socket.as_raw_fd(),
                &raw mut event,
            )
        })
        .map(drop)
    }
}
