//! Signals: what the process is told from outside. One thread waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::{Desk, stop};
use crate::worker::Shared;

/// Starts the thread. The first TERM or INT drains, the second ends at once; `forced` tells of the second.
///
/// # Errors
/// The handlers or the thread could not be set up.
pub fn start(shared: Arc<Shared>, desk: Arc<Desk>, forced: Arc<AtomicBool>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXFSZ])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut is_draining = false;
            for signal in &mut signals {
                match signal {
                    SIGTERM | SIGINT if is_draining => {
                        log::warn!("told to stop again: ending at once");
                        forced.store(true, Ordering::Relaxed);
                        stop::force(&shared);
                    }
                    SIGTERM | SIGINT => {
                        is_draining = true;
                        stop::begin(&shared);
                    }
                    SIGUSR1 | SIGUSR2 => {
                        let offline = signal == SIGUSR2;
                        let word = if offline { "offline" } else { "online" };
                        if shared.condition.set_offline(offline) {
                            log::info!("{word} for health checks");
                        } else {
                            log::info!("told to be {word} for health checks, and is already");
                        }
                    }
                    SIGHUP => {
                        // What came of it is an event, and in the log.
                        let _ = desk.reload("signal", false);
                    }
                    // A file is as long as a limit lets it be. Who writes gets an error; without this the process would end.
                    SIGXFSZ => {}
                    other => log::warn!("signal {other} is not acted on"),
                }
            }
        })?;
    Ok(())
}
