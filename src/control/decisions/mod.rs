//! Decisions about writes over several groups: writing them down, and finishing what nobody is about any more. Two threads: one writes, so
//! that no worker waits for a disk, and one looks what is prepared on the servers. What is to be done with it is decided in `recovery`; the
//! files are `journal`'s.

mod journal;
mod recovery;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use self::journal::Log;
use self::recovery::Recovery;
use super::desk::Desk;
use crate::config::Config;
use crate::session::Verdict;
use crate::worker::{Message, Shared, Wish};

/// So many decisions wait to be written.
const QUEUE: usize = 4096;
/// So many are written at once.
const BATCH: usize = 512;
/// Between two looks at whether there is something to do.
const TICK: Duration = Duration::from_millis(250);
/// A log that cannot be made is tried again after so long.
const AGAIN: Duration = Duration::from_secs(10);
/// A worker reads its mailbox in less than that, or has ended.
const MAILBOX_TIME: Duration = Duration::from_secs(30);

/// Starts the threads, and makes the log where there are writes that need one.
///
/// # Errors
/// The log cannot be made, or a thread not be started.
pub fn start(shared: Arc<Shared>, desk: Arc<Desk>) -> io::Result<()> {
    if needs_log(&shared.live().snapshot.config) {
        open(&shared)?;
    }
    std::thread::Builder::new()
        .name("recovery".to_owned())
        .spawn(move || watch(&shared, &desk))?;
    Ok(())
}

fn needs_log(config: &Config) -> bool {
    config.sharding.global_xa || config.tables.iter().any(|table| table.multi_shard_xa)
}

/// Makes the log of this process, and the thread that writes it.
fn open(shared: &Arc<Shared>) -> io::Result<()> {
    let folder = shared.live().snapshot.config.sharding.decision_log.clone();
    let at = |error: io::Error| {
        let text = format!(
            "the decision log in {} cannot be made: {error}; see `decision_log` in [sharding]",
            folder.display()
        );
        io::Error::new(error.kind(), text)
    };
    let log = Log::create(&folder).map_err(at)?;
    let (sender, wishes) = sync_channel(QUEUE);
    let run = log.run();
    let writer = shared.clone();
    std::thread::Builder::new()
        .name("decisions".to_owned())
        .spawn(move || write(log, &writer, &wishes))?;
    shared.decisions.open(run, sender);
    shared.announce();
    Ok(())
}

/// Writes decisions down as they come, those that wait together, and tells who waits.
fn write(mut log: Log, shared: &Shared, wishes: &Receiver<Wish>) {
    while let Ok(first) = wishes.recv() {
        let batch: Vec<Wish> = std::iter::once(first)
            .chain(wishes.try_iter().take(BATCH))
            .collect();
        let xids: Vec<_> = batch.iter().map(|wish| wish.xid).collect();
        let verdict = match log.append(&xids) {
            Ok(()) => Verdict::Yes,
            Err(error) => {
                log::error!(
                    "decisions cannot be written to {}: {error}; writes over several groups are refused until they can",
                    log.path().display()
                );
                match log.take_back() {
                    Ok(()) => Verdict::No,
                    Err(_) => Verdict::Unknown,
                }
            }
        };
        for wish in batch {
            shared.decisions.note(wish.xid, verdict);
            tell(shared, &wish, verdict);
        }
        if verdict == Verdict::Unknown {
            // The next one is another run.
            shared.decisions.shut();
            shared.announce();
            log.keep_for_good();
            for wish in wishes {
                shared.decisions.note(wish.xid, Verdict::No);
                tell(shared, &wish, Verdict::No);
            }
            return;
        }
        if log.is_long()
            && let Err(error) = log.shorten(&shared.decisions.decided())
        {
            log::warn!("{} cannot be made shorter: {error}", log.path().display());
        }
    }
}

fn tell(shared: &Shared, wish: &Wish, verdict: Verdict) {
    let (worker, client) = wish.asker;
    let Some(mailbox) = shared.mailboxes.get(worker) else {
        return;
    };
    let until = Instant::now() + MAILBOX_TIME;
    let mut message = Message::Decided {
        client,
        xid: wish.xid,
        verdict,
    };
    while let Err(back) = mailbox.send(message) {
        if Instant::now() >= until {
            return;
        }
        message = back;
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn watch(shared: &Arc<Shared>, desk: &Desk) {
    while !desk.checks().first_round_is_over() {
        std::thread::sleep(TICK);
    }
    let mut recovery = Recovery::default();
    let mut opened: Option<Instant> = None;
    loop {
        let live = shared.live();
        let config = &live.snapshot.config;
        let is_missing = needs_log(config) && shared.decisions.run().is_none();
        if is_missing && opened.is_none_or(|at| at.elapsed() >= AGAIN) {
            opened = Some(Instant::now());
            if let Err(error) = open(shared) {
                log::error!("{error}");
            }
        }
        let folder: &Path = &config.sharding.decision_log;
        if recovery.is_due(shared, folder, needs_log(config)) {
            recovery.look(desk, &live, folder);
        }
        std::thread::sleep(TICK);
    }
}
