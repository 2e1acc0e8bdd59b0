//! The way to the end of the process: health checks fail, clients are told, transactions end. Whoever wants a stop (a signal, an
//! operator at the admin port) says so here.

use std::sync::Arc;
use std::time::Duration;

use super::notify;
use crate::worker::{Manner, Message, Shared};

/// Begins a stop; nothing is to be seen of a second call.
pub fn begin(shared: &Arc<Shared>) {
    let live = shared.live();
    let server = &live.snapshot.config.server;
    let (delay, limit) = (server.drain_delay, server.drain_timeout);
    // Before clients are refused: who sends them here is told first.
    if !shared.condition.set_draining() {
        return;
    }
    if !shared.doors.are_handed_over() {
        notify::stopping("letting transactions end", delay.saturating_add(limit));
    }
    log::info!(
        "stopping: {} clients, open transactions may end",
        shared.clients()
    );
    if delay.is_zero() {
        return drain(shared);
    }
    let waiting = shared.clone();
    let later = std::thread::Builder::new()
        .name("drain".to_owned())
        .spawn(move || {
            std::thread::sleep(delay);
            drain(&waiting);
        });
    if let Err(error) = later {
        log::error!("the stop does not wait for drain_delay: {error}");
        drain(shared);
    }
}

fn drain(shared: &Shared) {
    shared.doors.forget();
    tell_all(shared, || Message::Drain(Manner::Stop));
}

/// Ends the process without waiting for anybody.
pub fn force(shared: &Shared) {
    tell_all(shared, || Message::Stop);
}

/// Tells all workers.
pub(super) fn tell_all(shared: &Shared, message: impl Fn() -> Message) {
    for mailbox in &shared.mailboxes {
        let is_told = (0..ATTEMPTS).any(|attempt| {
            if attempt > 0 {
                // It is full: its worker reads it in each turn.
                std::thread::sleep(RETRY);
            }
            mailbox.send(message()).is_ok()
        });
        if !is_told {
            log::error!("a worker does not take messages");
        }
    }
}

const ATTEMPTS: usize = 20;
const RETRY: Duration = Duration::from_millis(5);
