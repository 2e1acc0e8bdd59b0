//! Server.

use std::path::Path;
use std::process::ExitCode;

use crate::config::Config;

/// Runs the proxy until it is told to stop.
pub fn run(_config: Config, _path: &Path) -> ExitCode {
    log::error!("this build cannot run the proxy yet");
    ExitCode::FAILURE
}
