//! Other programs: where they are, and running one to its end.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// Looks a program up in PATH and where servers are put.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|f| f.join(name)).find(|p| p.is_file())
}

/// Runs a program to its end and returns what it wrote; its failure is an error with its last words.
///
/// # Errors
/// When it cannot be started or does not end with success.
pub(crate) fn run_program(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing(format!("{name} is not installed")),
            _ => Error::Io {
                doing: format!("run {name}"),
                source,
            },
        })?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() {
        return Ok(text);
    }
    let words: Vec<_> = command
        .get_args()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    Err(Error::Failed(format!(
        "{name} {}: {text}{}",
        words.join(" "),
        String::from_utf8_lossy(&out.stderr).trim()
    )))
}
