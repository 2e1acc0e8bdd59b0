//! `atlas import-cnf`: the original's configuration to standard output in the new form, findings to standard error.

use std::path::Path;
use std::process::ExitCode;

use super::{lines, print};
use crate::control;
use crate::import::import_cnf;

/// Exit code 1 when something needs a hand.
pub(super) fn run(old: &Path, key_file: Option<&Path>) -> ExitCode {
    let bytes = match control::read_file(old) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("atlas: {}: {error}", old.display());
            return ExitCode::FAILURE;
        }
    };
    let key = key_file.unwrap_or_else(|| Path::new("atlas.key"));
    let named = key_file.map(Path::to_string_lossy);
    let mut is_key_new = false;
    let mut seal = |password: &_| {
        let (value, is_new) = control::encrypt(password, key)?;
        is_key_new |= is_new;
        Ok(value)
    };
    let imported = import_cnf(
        &String::from_utf8_lossy(&bytes),
        &old.to_string_lossy(),
        named.as_deref(),
        &mut seal,
    );
    if is_key_new {
        eprintln!(
            "atlas: made the key file {}: keep it where the new configuration will be",
            key.display()
        );
    }
    eprint!("{}", lines(&imported.problems));
    let printed = print(&imported.toml);
    if imported.problems.iter().any(|problem| problem.is_error()) {
        ExitCode::FAILURE
    } else {
        printed
    }
}
