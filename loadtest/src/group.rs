//! A program that runs beside the test in a session of its own, ended when its handle is dropped; and a program that is run to its
//! end within a time, its output in a file so that nobody has to read along.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::guard::{self, Thing};
use crate::machine;
use crate::sys::{self, Placement};

/// A running program with all the processes it started.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    sid: i32,
    log: std::path::PathBuf,
}

impl Group {
    /// Starts `command` at its place; what it writes goes to `NAME.log` in `folder`.
    ///
    /// # Errors
    /// When the program is not there or may not do what the placement asks for.
    pub(crate) fn start(
        mut command: Command,
        place: Placement,
        folder: &Path,
        name: &str,
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).doing(|| format!("make {}", log.display()))?;
        let err = out
            .try_clone()
            .doing(|| format!("make {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        sys::arrange(&mut command, place);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().doing(|| format!("start {program}"))?;
        let sid = i32::try_from(child.id()).map_err(|e| Error::Failed(e.to_string()))?;
        guard::watch(&Thing::Session(sid));
        machine::prefer_session(sid);
        Ok(Self { child, sid, log })
    }

    /// The session: what CPU time and memory are asked for by.
    pub(crate) fn sid(&self) -> i32 {
        self.sid
    }

    /// Whether the program itself has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// The end of what the program wrote.
    pub(crate) fn last_words(&self) -> String {
        last_words(&self.log)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        machine::kill_session(self.sid);
        drop(self.child.wait());
        guard::forget(&Thing::Session(self.sid));
    }
}

/// Runs `command` to its end and returns its standard output.
///
/// # Errors
/// When it cannot be started, fails, or takes longer than `limit`; with its last words.
pub(crate) fn run(
    mut command: Command,
    place: Placement,
    limit: Duration,
    folder: &Path,
    name: &str,
) -> Result<String> {
    let (out, err) = (
        folder.join(format!("{name}.out")),
        folder.join(format!("{name}.err")),
    );
    let file = |path: &Path| File::create(path).doing(|| format!("make {}", path.display()));
    command
        .stdin(Stdio::null())
        .stdout(file(&out)?)
        .stderr(file(&err)?);
    sys::arrange(&mut command, place);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().doing(|| format!("start {program}"))?;
    let sid = i32::try_from(child.id()).map_err(|e| Error::Failed(e.to_string()))?;
    guard::watch(&Thing::Session(sid));
    machine::prefer_session(sid);
    let mut group = Group {
        child,
        sid,
        log: err.clone(),
    };
    let give_up = Instant::now() + limit;
    loop {
        match group
            .child
            .try_wait()
            .doing(|| format!("wait for {program}"))?
        {
            Some(status) if status.success() => break,
            Some(status) => {
                return Err(Error::Failed(format!(
                    "{program} ended with {status}: {} {}",
                    last_words(&out),
                    last_words(&err)
                )));
            }
            None if Instant::now() > give_up => {
                return Err(Error::Failed(format!(
                    "{program} was not done after {} s",
                    limit.as_secs()
                )));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
    fs::read_to_string(&out).doing(|| format!("read {}", out.display()))
}

fn last_words(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default())
        .trim()
        .replace('\n', " / ");
    let skip = text.chars().count().saturating_sub(400);
    text.chars().skip(skip).collect()
}
