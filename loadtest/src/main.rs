//! Load tests of Atlas: what it costs beside a direct connection, a plain relay and other proxies. See README.md for how to run them
//! and how to read the figures.
//!
//! ```text
//! cpu latency conn idle bulk syscalls crowd  the measurements, one file each
//! client sysbench                        what makes the load
//! bed targets database network awake     what is set up for it
//! relay delay                            programs of our own that take part
//! usage figures record                   what is counted and how it is told
//! group guard machine programs sys       processes, cleaning up, /proc, system calls
//! ```

mod awake;
mod bed;
mod bulk;
mod client;
mod conn;
mod cpu;
mod crowd;
mod database;
mod delay;
mod error;
mod figures;
mod group;
mod guard;
mod idle;
mod latency;
mod machine;
mod mysql;
mod network;
mod options;
mod programs;
mod record;
mod relay;
mod sys;
mod sysbench;
mod syscalls;
mod targets;
mod usage;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use error::{Doing, Error, Result};
use options::{Measure, Options, Request};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = match helper(&arguments) {
        Some(result) => result,
        None => measure(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("loadtest: {e}");
            ExitCode::from(if matches!(e, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn measure(arguments: &[OsString]) -> Result<()> {
    let options = match options::parse(arguments)? {
        Request::Help => {
            record::say(options::HELP.trim_end());
            return Ok(());
        }
        Request::Run(options) => options,
    };
    guard::start()?;
    let result = run(&options);
    guard::finish();
    while guard::is_interrupted() {
        // The thread that waits for signals ends the program, with the exit code that belongs to the signal.
        std::thread::park();
    }
    result
}

fn run(options: &Options) -> Result<()> {
    let result = match options.measure {
        Measure::Cpu => cpu::run(options),
        Measure::Latency => latency::run(options),
        Measure::Conn => conn::run(options),
        Measure::Idle => idle::run(options),
        Measure::Bulk => bulk::run(options),
        Measure::Syscalls => syscalls::run(options),
        Measure::Crowd => crowd::run(options),
    };
    if result.is_ok() {
        eprintln!("samples: {}", options.json.display());
    }
    result
}

/// The processes that a load test starts from this same binary; `None` when the command line is not one of theirs.
fn helper(arguments: &[OsString]) -> Option<Result<()>> {
    let words: Vec<String> = arguments
        .iter()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let (name, rest) = words.split_first()?;
    Some(match (name.as_str(), rest) {
        ("guard", []) => {
            guard::run(std::io::stdin().lock());
            Ok(())
        }
        ("relay", [listen, target]) => relay(listen, target),
        ("delay", [nanoseconds, links @ ..]) => match nanoseconds.parse() {
            Ok(ns) => delay::run(Duration::from_nanos(ns), links),
            Err(_) => Err(Error::Usage("delay NANOSECONDS LINK…".into())),
        },
        ("spin", [procs]) => awake::spin(Path::new(procs)),
        ("client", rest) => client::run(rest),
        _ => return None,
    })
}

fn relay(listen: &str, target: &str) -> Result<()> {
    let address = |text: &str| {
        text.parse()
            .map_err(|_| Error::Usage(format!("{text} is not an address")))
    };
    relay::run(address(listen)?, address(target)?).doing(|| format!("relay at {listen}"))
}
