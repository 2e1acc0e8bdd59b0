//! `atlas encrypt`: a password from standard input, its `enc:v1:` value to standard output.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{DEFAULT_CONFIG, fail, print};
use crate::config::Secret;
use crate::control::{self, LoadError};

/// No password is longer: what is, is another kind of input.
const PASSWORD_BYTES_MAX: u64 = 64 << 10;

pub(super) fn run(config: Option<&Path>) -> ExitCode {
    let key_file = match key_file(config) {
        Ok(path) => path,
        Err(error) => return fail(&error),
    };
    match read_password().and_then(|password| control::encrypt(&password, &key_file)) {
        Ok((value, is_new)) => {
            if is_new {
                eprintln!(
                    "atlas: made the key file {}: Atlas needs it to start, and without it the value cannot be read again",
                    key_file.display()
                );
            }
            print(&format!("{value}\n"))
        }
        Err(text) => {
            eprintln!("atlas: {text}");
            ExitCode::FAILURE
        }
    }
}

/// Where the configuration says the key is; the default place when none was named and there is none at its default place.
fn key_file(config: Option<&Path>) -> Result<PathBuf, LoadError> {
    match control::key_file(config.unwrap_or_else(|| Path::new(DEFAULT_CONFIG))) {
        Err(LoadError::Unreadable(_, error))
            if config.is_none() && error.kind() == io::ErrorKind::NotFound =>
        {
            Ok(PathBuf::from("atlas.key"))
        }
        other => other,
    }
}

/// One line, with or without its end. A terminal shows nothing of it and is asked twice.
fn read_password() -> Result<Secret, String> {
    let text = |error: io::Error| format!("cannot read the password: {error}");
    if io::stdin().is_terminal() {
        let ask = |prompt| {
            rpassword::prompt_password(prompt)
                .map(Secret::from)
                .map_err(text)
        };
        let password = check(ask("password: ")?)?;
        return if ask("once more: ")? == password {
            Ok(password)
        } else {
            Err("the two are not the same".to_owned())
        };
    }
    // With its whole capacity from the start: growing would leave copies behind that nothing wipes.
    let mut bytes = Vec::with_capacity(usize::try_from(PASSWORD_BYTES_MAX).unwrap_or(0) + 32);
    let read = io::stdin()
        .lock()
        .take(PASSWORD_BYTES_MAX + 1)
        .read_to_end(&mut bytes);
    if let Some(line) = bytes.strip_suffix(b"\n") {
        let len = line.strip_suffix(b"\r").unwrap_or(line).len();
        bytes.truncate(len);
    }
    let password = Secret::new(bytes);
    if read.map_err(text)? > usize::try_from(PASSWORD_BYTES_MAX).unwrap_or(0) {
        return Err("longer than 64 KiB: not a password".to_owned());
    }
    check(password)
}

fn check(password: Secret) -> Result<Secret, String> {
    let bytes = password.expose();
    if bytes.is_empty() {
        Err("no password on standard input".to_owned())
    } else if bytes.contains(&b'\n') {
        Err("a password is one line".to_owned())
    } else if bytes.contains(&0) {
        Err("a password cannot contain a NUL byte".to_owned())
    } else {
        Ok(password)
    }
}
