//! Cleaning up, whatever ends the load test. A guard process (a copy of this program) learns through a pipe what must go away:
//! process sessions, folders, network namespaces, control groups. When the pipe closes, because the test is done, was interrupted,
//! panicked or was killed, the guard removes what is left. There is no second way of cleaning up.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{Doing, Result};
use crate::machine;
use crate::programs::this_program;
use crate::sys;

static GUARD: Mutex<Option<(Child, ChildStdin)>> = Mutex::new(None);

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A thing that must not outlive the load test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    /// All processes of a session.
    Session(i32),
    /// A folder with all that is in it.
    Folder(String),
    /// A named network namespace, with its devices.
    Netns(String),
    /// A control group, empty by then.
    Cgroup(String),
}

impl Thing {
    fn to_line(&self) -> String {
        match self {
            Self::Session(sid) => format!("session {sid}"),
            Self::Folder(path) => format!("folder {path}"),
            Self::Netns(name) => format!("netns {name}"),
            Self::Cgroup(path) => format!("cgroup {path}"),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let (kind, what) = line.split_once(' ')?;
        Some(match kind {
            "session" => Self::Session(what.parse().ok().filter(|sid| *sid > 1)?),
            "folder" => Self::Folder(what.to_owned()),
            "netns" => Self::Netns(what.to_owned()),
            "cgroup" => Self::Cgroup(what.to_owned()),
            _ => return None,
        })
    }

    fn remove(&self) {
        // Nobody is there to be told of a failure, and the next thing is to be removed all the same.
        match self {
            Self::Session(sid) => machine::kill_session(*sid),
            Self::Folder(path) => drop(fs::remove_dir_all(path)),
            Self::Netns(name) => drop(
                Command::new("ip")
                    .args(["netns", "del", name])
                    .stderr(Stdio::null())
                    .status(),
            ),
            Self::Cgroup(path) => {
                // A task that was just killed leaves its group a moment later.
                for _ in 0..50 {
                    if fs::remove_dir(path).is_ok() || !Path::new(path).exists() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }
}

/// Starts the guard and the thread that ends the program on INT, TERM, HUP and QUIT.
///
/// # Errors
/// When the guard cannot be started. To be called before any other thread or process is started.
pub(crate) fn start() -> Result<()> {
    sys::block_ending_signals().doing(|| "block signals".into())?;
    let mut command = this_program();
    command
        .arg("guard")
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    // Not through `sys::arrange`: the guard must live on when its parent dies. Its signals stay blocked, as inherited,
    // so that an interrupt from the terminal does not end it.
    let mut child = command.spawn().doing(|| "start the guard".into())?;
    if let Some(stdin) = child.stdin.take() {
        *lock() = Some((child, stdin));
    }
    thread::spawn(|| {
        let signal = sys::wait_ending_signal();
        IS_INTERRUPTED.store(true, Ordering::SeqCst);
        finish();
        std::process::exit(128 + signal);
    });
    Ok(())
}

/// Registers a thing to be removed.
pub(crate) fn watch(thing: &Thing) {
    tell('+', thing);
}

/// Forgets a thing that is gone already.
pub(crate) fn forget(thing: &Thing) {
    tell('-', thing);
}

/// Lets the guard remove everything, and waits for it.
pub(crate) fn finish() {
    // The lock is held to the end, so that whoever comes second waits until everything is gone, too.
    let mut guard = lock();
    if let Some((mut child, stdin)) = guard.take() {
        drop(stdin);
        drop(child.wait());
    }
}

/// Whether a signal is ending the program; then errors are its consequence and not worth telling.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// What the guard process does: remember lines until the end of standard input, then remove, last thing first.
pub(crate) fn run(input: impl BufRead) {
    let mut things = Vec::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        note(&mut things, &line);
    }
    for thing in things.iter().rev() {
        thing.remove();
    }
}

fn note(things: &mut Vec<Thing>, line: &str) {
    if let Some(thing) = line.strip_prefix('+').and_then(Thing::from_line) {
        things.push(thing);
    } else if let Some(thing) = line.strip_prefix('-').and_then(Thing::from_line) {
        things.retain(|t| *t != thing);
    }
}

fn tell(sign: char, thing: &Thing) {
    if let Some((_, stdin)) = lock().as_mut() {
        // The guard can only be gone when someone killed it; then there is nobody to clean up and the test goes on.
        let _ = writeln!(stdin, "{sign}{}", thing.to_line());
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<(Child, ChildStdin)>> {
    GUARD
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The folder for everything that a load test writes, removed at the end.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn temporary_folder() -> Result<std::path::PathBuf> {
    let path = std::env::temp_dir().join(format!("loadtest-{}", std::process::id()));
    fs::create_dir(&path).doing(|| format!("make {}", path.display()))?;
    watch(&Thing::Folder(path.display().to_string()));
    // The database server may run as another user and must reach its folder inside.
    let readable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&path, readable).doing(|| format!("open {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_survive_the_pipe_and_are_forgotten() {
        let all = [
            Thing::Session(4711),
            Thing::Folder("/tmp/a folder".into()),
            Thing::Netns("lt1c".into()),
            Thing::Cgroup("/sys/fs/cgroup/x".into()),
        ];
        let mut things = Vec::new();
        for t in &all {
            assert_eq!(Thing::from_line(&t.to_line()).as_ref(), Some(t));
            note(&mut things, &format!("+{}", t.to_line()));
        }
        assert_eq!(things, all);
        note(&mut things, "-session 4711");
        note(&mut things, "-session 1");
        assert_eq!(things, all[1..]);
    }

    #[test]
    fn a_session_that_would_reach_others_is_refused() {
        for line in [
            "session 0",
            "session 1",
            "session -5",
            "session x",
            "session",
            "nonsense 4",
        ] {
            assert_eq!(Thing::from_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_guard_removes_a_folder_at_the_end_of_its_input() {
        let path = std::env::temp_dir().join(format!("loadtest-guard-test-{}", std::process::id()));
        fs::create_dir_all(path.join("sub")).expect("make the folder");
        run(std::io::Cursor::new(format!(
            "+folder {}\n",
            path.display()
        )));
        assert!(!path.exists());
    }
}
