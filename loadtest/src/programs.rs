//! Where other programs are.

use std::path::PathBuf;

/// Looks a program up in PATH and where servers are put.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|f| f.join(name)).find(|p| p.is_file())
}
