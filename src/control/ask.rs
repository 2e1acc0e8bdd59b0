//! Questions to all workers, who answer between two turns of their loops.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::worker::{Message, Question, Shared};

/// Asks every worker, and gives the answers that came within that time.
pub(super) fn ask<T>(
    shared: &Shared,
    patience: Duration,
    question: impl Fn(SyncSender<T>) -> Question,
) -> Vec<T> {
    let pending: Vec<Receiver<T>> = shared
        .mailboxes
        .iter()
        .filter_map(|mailbox| {
            let (sender, receiver) = sync_channel(1);
            mailbox.send(Message::Ask(question(sender))).ok()?;
            Some(receiver)
        })
        .collect();
    let deadline = Instant::now() + patience;
    pending
        .into_iter()
        .filter_map(|answer| {
            let left = deadline.saturating_duration_since(Instant::now());
            answer.recv_timeout(left).ok()
        })
        .collect()
}
