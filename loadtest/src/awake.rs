//! Keeps the cores from idling while latency is measured: a halted virtual core costs tens of microseconds to wake, which would be
//! counted as latency. One spinning process per core, in an idle-class control group so that any other task preempts it at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::group::Group;
use crate::guard::{self, Thing};
use crate::machine;
use crate::programs::this_program;
use crate::sys::Placement;

/// The spinners; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct KeptAwake(Vec<Group>);

impl KeptAwake {
    /// Starts a spinner on every core.
    ///
    /// # Errors
    /// Where no control group with `cpu.idle` can be made (cgroup v1 or v2, Linux 5.15 or later, root).
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let cgroup = make_idle_group()?;
        let mut spinners = Vec::new();
        for core in 0..machine::cores() {
            let mut command = this_program();
            command.arg("spin").arg(cgroup.join("cgroup.procs"));
            let place = Placement {
                core: Some(core),
                is_idle_class: true,
                ..Placement::default()
            };
            spinners.push(Group::start(
                command,
                place,
                folder,
                &format!("spin{core}"),
            )?);
        }
        std::thread::sleep(Duration::from_millis(200));
        if let Some(s) = spinners
            .iter_mut()
            .find_map(|s| s.has_ended().then(|| s.last_words()))
        {
            return Err(Error::Failed(format!("a spinner ended: {s}")));
        }
        Ok(Self(spinners))
    }

    /// CPU time of all spinners.
    pub(crate) fn cpu(&self) -> Duration {
        self.0.iter().map(|s| machine::session_cpu(s.sid())).sum()
    }
}

/// What a spinner does: join the group, then spin until it is killed.
///
/// # Errors
/// When it cannot join; it must not spin outside.
pub(crate) fn spin(procs: &Path) -> Result<()> {
    fs::write(procs, std::process::id().to_string())
        .doing(|| format!("join {}", procs.display()))?;
    loop {
        // Not `spin_loop`: its PAUSE makes some hypervisors take the core away.
        std::hint::black_box(());
    }
}

fn make_idle_group() -> Result<PathBuf> {
    for root in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"] {
        let path = Path::new(root).join(format!("loadtest-{}", std::process::id()));
        if fs::create_dir(&path).is_err() {
            continue;
        }
        guard::watch(&Thing::Cgroup(path.display().to_string()));
        if fs::write(path.join("cpu.idle"), "1").is_ok() {
            return Ok(path);
        }
    }
    Err(Error::Missing(
        "no control group with cpu.idle can be made".into(),
    ))
}
