//! The `atlas` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    atlas::cli::main(std::env::args_os().skip(1))
}
