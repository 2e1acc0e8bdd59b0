//! What /proc tells: which processes belong to a session, their CPU time and memory, how busy the machine was. And the two things
//! done to all tasks of a session: pinning and killing.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::sys;

/// CPU time that the machine has spent on anything since it started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Busy {
    /// All cores, interrupts included, idle and stolen time not.
    pub(crate) machine: Duration,
    /// The same of the core that was asked for.
    pub(crate) core: Duration,
    /// Time that the hypervisor gave to others, all cores.
    pub(crate) stolen: Duration,
}

/// Reads /proc/stat; zero where it cannot be read.
pub(crate) fn busy(core: usize) -> Busy {
    busy_from(
        &fs::read_to_string("/proc/stat").unwrap_or_default(),
        core,
        sys::ticks_per_second(),
    )
}

fn busy_from(stat: &str, core: usize, ticks_per_second: u64) -> Busy {
    let core_name = format!("cpu{core}");
    let mut busy = Busy::default();
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let ticks: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        // user, nice, system, (idle, iowait), irq, softirq, steal
        let used = at(0) + at(1) + at(2) + at(5) + at(6);
        let time = |t: u64| Duration::from_millis(t * 1000 / ticks_per_second.max(1));
        if name == "cpu" {
            busy.machine = time(used);
            busy.stolen = time(at(7));
        } else if name == core_name {
            busy.core = time(used);
        }
    }
    busy
}

/// The number of cores that are on line.
pub(crate) fn cores() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines()
        .filter(|l| l.starts_with("cpu") && !l.starts_with("cpu "))
        .count()
        .max(1)
}

/// The processes of a session.
pub(crate) fn session_pids(sid: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|s| session_of(&s) == Some(sid))
        })
        .collect()
}

/// The session in a line of /proc/PID/stat, whose second field, the name, may hold anything.
fn session_of(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(3)?
        .parse()
        .ok()
}

/// The CPU time that the living processes of a session have used.
pub(crate) fn session_cpu(sid: i32) -> Duration {
    session_pids(sid)
        .into_iter()
        .filter_map(sys::process_cpu)
        .sum()
}

/// A memory figure (`VmRSS`, `VmHWM`) summed over the processes of a session, in KiB.
pub(crate) fn session_memory_kib(sid: i32, key: &str) -> u64 {
    let of = |pid: i32| {
        memory_from(
            &fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(),
            key,
        )
    };
    session_pids(sid).into_iter().map(of).sum()
}

fn memory_from(status: &str, key: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|l| l.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Sets the peaks (`VmHWM`) of a session back to what its processes use now.
pub(crate) fn reset_peak(sid: i32) {
    for pid in session_pids(sid) {
        // Without the right to do so the peak since the start is reported, which is the stricter figure.
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// Pins every thread of a session to one core.
pub(crate) fn pin_session(sid: i32, core: usize) {
    for pid in session_pids(sid) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for tid in tasks.filter_map(|t| t.file_name().to_str()?.parse().ok()) {
            // A thread that ended in between has no place to be pinned to.
            let _ = sys::pin_task(tid, core);
        }
    }
}

/// Gives a session precedence over other work of the machine. The kernel shares cores between sessions ("autogroup") first, so this
/// is what keeps a foreign compiler from taking half of the measured core. Needs privileges; without them the figures are noisier.
pub(crate) fn prefer_session(leader: i32) {
    let _ = fs::write(format!("/proc/{leader}/autogroup"), "-10");
}

/// Kills all processes of a session, also those that it starts meanwhile; gives up after three seconds.
pub(crate) fn kill_session(sid: i32) {
    let give_up = Instant::now() + Duration::from_secs(3);
    loop {
        let pids = session_pids(sid);
        if pids.iter().all(|pid| is_zombie(*pid)) || Instant::now() > give_up {
            return;
        }
        for pid in pids {
            sys::signal(pid, sys::SIGKILL);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_leaves_out_idle_and_counts_the_core() {
        let stat = "cpu  100 20 30 1000 5 4 6 7 0 0\ncpu0 50 10 15 500 1 2 3 4 0 0\ncpu1 50 10 15 500 4 2 3 3 0 0\nintr 1\n";
        let busy = busy_from(stat, 1, 100);
        assert_eq!(busy.machine, Duration::from_millis(1600));
        assert_eq!(busy.core, Duration::from_millis(800));
        assert_eq!(busy.stolen, Duration::from_millis(70));
    }

    #[test]
    fn the_session_is_found_behind_any_name() {
        assert_eq!(session_of("42 (a) b) (c) S 1 42 77 0 -1 4194560"), Some(77));
        assert_eq!(session_of("garbage"), None);
    }

    #[test]
    fn memory_is_read_by_its_whole_name() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(memory_from(status, "VmRSS"), 1024);
        assert_eq!(memory_from(status, "VmHWM"), 2048);
        assert_eq!(memory_from(status, "Vm"), 0);
    }

    #[test]
    fn this_process_has_used_cpu_time() {
        let me = i32::try_from(std::process::id()).expect("a process id");
        assert!(sys::process_cpu(me).is_some_and(|t| !t.is_zero()));
    }
}
