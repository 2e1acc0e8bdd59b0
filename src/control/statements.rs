//! Writing the logs of statements: a thread for each, so that a disk that stands still keeps neither the other log nor a worker. Formats are
//! `record`'s.
//!
//! A file that cannot be written is tried again and again, and said so once; what waits meanwhile has the limits of its queue. A file is
//! opened anew when the configuration is read (HUP, `RELOAD CONFIG`), so that it can be moved away before, and never begins or goes on in
//! the middle of an entry.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::LogConfig;
use crate::record::{self, Entry, Names, Place, What};
use crate::worker::{Live, Message, Queue, Shared, Work};

/// Entries that are written at once.
const BATCH: usize = 512;
/// A writer that has nothing left looks again after so long before it has to be woken.
const PACE: Duration = Duration::from_millis(5);
/// So often in a row a reader of a pipe is waited for, for that long each time, before it counts as one that reads no more.
const WAITS: u32 = 200;
/// A file that cannot be written is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// So often when the process ends.
const LAST_TRIES: u32 = 3;
/// Who may read the files: their owner and group, for statements hold what is nobody else's business.
const MODE: u32 = 0o640;

/// Which log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Slow,
    Audit,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow log",
            Self::Audit => "audit log",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Audit => "audit",
        }
    }

    fn path(self, log: &LogConfig) -> Option<&Path> {
        match self {
            Self::Slow => log.slow_file.as_deref(),
            Self::Audit => log.audit_file.as_deref(),
        }
    }

    fn queue(self, shared: &Shared) -> &Queue {
        match self {
            Self::Slow => &shared.logs.slow,
            Self::Audit => &shared.logs.audit,
        }
    }
}

/// The threads.
#[derive(Debug)]
pub struct Writers(Vec<JoinHandle<()>>);

impl Writers {
    /// Has them write what is left, and waits for it.
    pub fn finish(self, shared: &Shared) {
        shared.logs.close();
        for thread in self.0 {
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Opens the files that are configured, and starts the threads.
///
/// # Errors
/// A file cannot be opened, or a thread not be started.
pub fn start(shared: &Arc<Shared>) -> io::Result<Writers> {
    check(&shared.live().snapshot.config.log)?;
    let mut threads = Vec::new();
    for which in [Which::Slow, Which::Audit] {
        let shared = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("{}-log", which.key()))
            .spawn(move || Writer::new(which, &shared).run())?;
        threads.push(thread);
    }
    Ok(Writers(threads))
}

/// Whether the files that are configured can be opened. Those that are not there are made.
///
/// # Errors
/// One cannot.
pub fn check(log: &LogConfig) -> io::Result<()> {
    for which in [Which::Slow, Which::Audit] {
        if let Some(path) = which.path(log) {
            open(path).map_err(|error| {
                let text = format!(
                    "the {} {} cannot be opened: {error}; see `{}` in [log]",
                    which.name(),
                    path.display(),
                    which.key()
                );
                io::Error::new(error.kind(), text)
            })?;
        }
    }
    Ok(())
}

/// What is no file, such as a pipe, has to have a reader, and is not waited for without an end.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(MODE)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

struct Writer<'a> {
    which: Which,
    shared: &'a Shared,
    file: Option<(PathBuf, File)>,
    /// Entries as they are to be written…
    text: Vec<u8>,
    /// …where each of them ends…
    ends: Vec<usize>,
    /// …and how much of it is in the file.
    written: usize,
    /// The last attempt failed.
    fails: bool,
}

impl<'a> Writer<'a> {
    fn new(which: Which, shared: &'a Shared) -> Self {
        Self {
            which,
            shared,
            file: None,
            text: Vec::new(),
            ends: Vec::new(),
            written: 0,
            fails: false,
        }
    }

    fn run(&mut self) {
        let queue = self.which.queue(self.shared);
        loop {
            let Work {
                entries,
                reopen,
                is_last,
                closed,
                has_room_again,
            } = queue.take(BATCH);
            if has_room_again {
                self.tell_of_room();
            }
            if reopen {
                self.file = None;
            }
            self.format(&entries);
            drop(entries);
            self.write();
            match (is_last, closed) {
                (true, true) => return,
                // What comes meanwhile is written together, and nobody has to wake this thread for it.
                (true, false) => std::thread::sleep(PACE),
                (false, _) => {}
            }
        }
    }

    fn format(&mut self, entries: &[Arc<Entry>]) {
        self.text.clear();
        self.text.shrink_to(1024 * 1024);
        self.ends.clear();
        self.written = 0;
        let live = self.shared.live();
        let how = live.snapshot.config.log.audit_text;
        for entry in entries {
            let names = names(entry, &live);
            match (self.which, &entry.what) {
                (Which::Slow, What::Statement(statement)) => {
                    record::write_slow(&mut self.text, entry, statement, &names);
                }
                (Which::Slow, _) => {}
                (Which::Audit, _) => record::write_json(&mut self.text, entry, &names, how),
            }
            self.ends.push(self.text.len());
        }
    }

    /// Writes what there is, however long that takes.
    fn write(&mut self) {
        let queue = self.which.queue(self.shared);
        let mut last_tries = 0;
        loop {
            let live = self.shared.live();
            let path = self.which.path(&live.snapshot.config.log);
            let Some(path) = path else {
                // There is no such log any more.
                self.file = None;
                self.fails = false;
                return queue.note_dropped(self.left());
            };
            let error = match self.attempt(path) {
                Ok(()) => {
                    queue.note_written(self.ends.len());
                    if std::mem::take(&mut self.fails) {
                        self.tell(format!("{} is written again", path.display()));
                    }
                    return;
                }
                Err(error) => error,
            };
            if !std::mem::replace(&mut self.fails, true) {
                let then = if self.which == Which::Audit && live.snapshot.config.log.audit_waits() {
                    "statements wait when too much has come together"
                } else {
                    "what finds no room is dropped"
                };
                log::error!("the {} cannot be written: {error}", self.which.name());
                self.tell(format!(
                    "{} cannot be written: {error}; it is tried again, and {then}",
                    path.display()
                ));
            }
            let (reopen, closed) = queue.pause(if last_tries > 0 { AGAIN / 4 } else { AGAIN });
            if reopen {
                self.file = None;
            }
            if closed {
                last_tries += 1;
                if last_tries > LAST_TRIES {
                    let left = self.left();
                    log::error!("{left} entries of the {} are lost", self.which.name());
                    return queue.note_dropped(left);
                }
                std::thread::sleep(AGAIN / 4);
            }
        }
    }

    /// Writes on where the last attempt has ended.
    fn attempt(&mut self, path: &Path) -> io::Result<()> {
        if self.file.as_ref().is_none_or(|(open, _)| open != path) {
            // What stands half in another file is written anew.
            self.written = self.whole();
            self.file = Some((path.to_owned(), open(path)?));
        }
        let Some((_, file)) = &mut self.file else {
            return Ok(());
        };
        let mut waits = 0;
        while let Some(rest) = self
            .text
            .get(self.written..)
            .filter(|rest| !rest.is_empty())
        {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.written += n;
                    waits = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reader of a pipe is behind.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waits < WAITS => {
                    waits += 1;
                    std::thread::sleep(PACE);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Up to where entries are written as a whole.
    fn whole(&self) -> usize {
        let ends = self.ends.iter().take_while(|end| **end <= self.written);
        ends.last().copied().unwrap_or(0)
    }

    /// Entries that are not written as a whole.
    fn left(&self) -> usize {
        let is_left = |end: &&usize| **end > self.written;
        self.ends.iter().filter(is_left).count()
    }

    fn tell(&self, text: String) {
        self.shared.notices.tell(self.which.name(), text);
    }

    fn tell_of_room(&self) {
        for mailbox in &self.shared.mailboxes {
            // One that is full is read soon, and its worker looks by itself now and then.
            let _ = mailbox.send(Message::Room);
        }
    }
}

/// What the numbers in an entry are called: places in lists are for the process's life.
fn names<'l>(entry: &Entry, live: &'l Live) -> Names<'l> {
    let snapshot = &live.snapshot;
    let account = entry.account.and_then(|at| snapshot.accounts.get(at));
    let host = match &entry.what {
        What::Statement(statement) => match statement.place {
            Place::Server { host, .. } => snapshot.hosts.get(host),
            Place::Shards | Place::Atlas => None,
        },
        What::LogIn { .. } | What::LogOut | What::Reset | What::Refused(_) => None,
    };
    let groups = match &entry.what {
        What::Statement(statement) => statement.groups.as_slice(),
        What::LogIn { .. } | What::LogOut | What::Reset | What::Refused(_) => &[],
    };
    let groups = groups.iter().filter_map(|at| snapshot.groups.get(*at));
    Names {
        groups: groups.map(|group| group.name.as_str()).collect(),
        account: account.map_or(&b""[..], |account| &account.name),
        labels: account.map(|account| &*account.labels),
        server: host
            .map(|host| host.address.to_string())
            .unwrap_or_default(),
        group: host
            .and_then(|host| snapshot.groups.get(host.group))
            .map_or("", |group| &group.name),
    }
}
