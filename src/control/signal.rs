//! Signals: what the process is told from outside. One thread waits for them, and one reads the configuration when told, so that
//! whatever keeps that file from being read keeps no other signal waiting.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::{Desk, stop};
use crate::worker::Shared;

/// The signals that come before anybody acts on them.
#[derive(Debug)]
pub struct Held(Signals);

/// Keeps the signals that say something to a process that serves until [`start`] acts on them: whoever rotates logs or looks after
/// health checks need not know that this one is about to. TERM and INT end it until then, since nothing is lost with it.
///
/// # Errors
/// The handlers could not be set up.
pub fn hold() -> io::Result<Held> {
    Signals::new([SIGHUP, SIGUSR1, SIGUSR2, SIGXFSZ]).map(Held)
}

/// Starts the threads. The first TERM or INT drains, the second ends at once; `forced` tells of the second.
///
/// # Errors
/// The handlers or the threads could not be set up.
pub fn start(
    Held(mut signals): Held,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    forced: Arc<AtomicBool>,
) -> io::Result<()> {
    signals.add_signal(SIGTERM)?;
    signals.add_signal(SIGINT)?;
    // One that waits reads the file after all that have come before it, so it is read once for all of these.
    let (reloads, wanted) = sync_channel(1);
    std::thread::Builder::new()
        .name("reload".to_owned())
        .spawn(move || reload(&desk, &wanted))?;
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
                        // Where one waits already nothing is to be added.
                        let _ = reloads.try_send(());
                    }
                    // A file is as long as a limit lets it be. Who writes gets an error; without this the process would end.
                    SIGXFSZ => {}
                    other => log::warn!("signal {other} is not acted on"),
                }
            }
        })?;
    Ok(())
}

fn reload(desk: &Desk, wanted: &Receiver<()>) {
    while wanted.recv().is_ok() {
        // What came of it is an event, and in the log.
        let _ = desk.reload("signal", false);
    }
}
