//! Where programs are: others, and this one.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Looks a program up in PATH and where servers are put.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|f| f.join(name)).find(|p| p.is_file())
}

/// This program once more, to be given the arguments of a helper. Not by its path: the same file may meanwhile have been built anew,
/// and a helper of another build would measure something else.
pub(crate) fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("loadtest");
    command
}
