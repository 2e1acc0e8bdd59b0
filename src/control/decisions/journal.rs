//! The files in which decisions are written down: one for each run, in a folder of their own, locked for as long as the process lives whose
//! it is. A run whose file can be locked is over, and whoever has locked it finishes what it left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::shard::{Xid, read_log, title};

/// A file is made shorter when it is longer than this.
const LONG: u64 = 4 << 20;
const ENDING: &str = "run";

/// The file of the run that this process is.
#[derive(Debug)]
pub(super) struct Log {
    run: u64,
    path: PathBuf,
    file: File,
    /// So much of it is good.
    len: u64,
    /// It was that long when it was made shorter last.
    rest: u64,
}

/// The file of a run that is over.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) run: u64,
    pub(super) decided: Vec<Xid>,
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Log {
    /// Makes the file of a new run.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| io::Error::other("no random bytes for its name"))?;
        // 0 stands for none.
        let run = u64::from_le_bytes(random).max(1);
        let path = folder.join(format!("{run:016x}.{ENDING}"));
        // Under another name until it is locked: a file of a run that is not locked is of one that is over.
        let new = path.with_extension("new");
        let file = write_new(&new, title(run).as_bytes())?;
        fs::rename(&new, &path)?;
        sync_folder(folder)?;
        let len = u64::try_from(title(run).len()).unwrap_or(0);
        Ok(Self {
            run,
            path,
            file,
            len,
            rest: len,
        })
    }

    pub(super) fn run(&self) -> u64 {
        self.run
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes these down; when it returns they are on the disk.
    ///
    /// # Errors
    /// They may be there or not: see [`Self::take_back`].
    pub(super) fn append(&mut self, xids: &[Xid]) -> io::Result<()> {
        let text: String = xids.iter().map(|xid| xid.decision()).collect();
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.len += u64::try_from(text.len()).unwrap_or(0);
        Ok(())
    }

    /// Has the file be as it was before an `append` that failed.
    ///
    /// # Errors
    /// It is not known what is in it.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.len)?;
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.sync_all()
    }

    /// Nothing more is written to it; who reads it finds the truth when this process is over.
    pub(super) fn keep_for_good(self) {
        // The lock is as old as the process.
        std::mem::forget(self.file);
    }

    pub(super) fn is_long(&self) -> bool {
        self.len > LONG && self.len > self.rest.saturating_mul(2)
    }

    /// Leaves out all decisions but these.
    ///
    /// # Errors
    /// The file stays as it is.
    pub(super) fn shorten(&mut self, xids: &[Xid]) -> io::Result<()> {
        let mut text = title(self.run);
        text.extend(xids.iter().map(|xid| xid.decision()));
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let file = write_new(&new, text.as_bytes())?;
        fs::rename(&new, &self.path)?;
        self.file = file;
        self.len = u64::try_from(text.len()).unwrap_or(0);
        self.rest = self.len;
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

impl Remains {
    /// Nothing is left of the run on any server.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(text)?;
    file.sync_all()?;
    Ok(file)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether there are files of other runs than this.
pub(super) fn has_others(folder: &Path, own: Option<u64>) -> bool {
    files(folder).is_ok_and(|files| files.iter().any(|(run, _)| Some(*run) != own))
}

/// Files of runs, by their names.
fn files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_it = path.extension().is_some_and(|ending| ending == ENDING);
        let run = path.file_stem().and_then(|stem| stem.to_str());
        let run = run.and_then(|run| u64::from_str_radix(run, 16).ok());
        if let (true, Some(run)) = (is_it, run) {
            files.push((run, path));
        }
    }
    Ok(files)
}

/// What is found in the folder of the runs that are over, and the runs that are not, or of which nothing can be said: these with why.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) over: Vec<Remains>,
    pub(super) living: Vec<u64>,
    pub(super) unread: Vec<(u64, String)>,
}

/// Looks for files of other runs than this.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn find(folder: &Path, own: Option<u64>) -> io::Result<Found> {
    let mut found = Found::default();
    for (run, path) in files(folder)? {
        if Some(run) == own {
            continue;
        }
        match take_over(run, &path) {
            Ok(Some(remains)) => found.over.push(remains),
            Ok(None) => found.living.push(run),
            Err(why) => {
                let why = format!("decision log {} cannot be used: {why}", path.display());
                found.unread.push((run, why));
            }
        }
    }
    Ok(found)
}

fn take_over(run: u64, path: &Path) -> Result<Option<Remains>, String> {
    let told = |error: io::Error| error.to_string();
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        // Another has just done with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(told)?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    // It may have been replaced by a shorter one before it was locked.
    let is_same = same_file(&file, path).map_err(told)?;
    if !is_same {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(told)?;
    // Its process ended when it had just made it.
    let (is, decided) = if text.contains(&b'\n') {
        read_log(&text).map_err(|line| {
            format!("line {line} makes no sense; what it decided has to be done by hand")
        })?
    } else {
        (run, Vec::new())
    };
    if is != run {
        return Err("it is of another run than its name says".to_owned());
    }
    Ok(Some(Remains {
        run,
        decided,
        path: path.to_owned(),
        _file: file,
    }))
}

fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let of = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(of(there?) == of(file.metadata()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found_when_its_process_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/er");
        assert!(!has_others(&folder, None));
        let mut log = Log::create(&folder).unwrap();
        let xid = |n| Xid::new(log.run(), [n; 20]);
        let (one, two, three) = (xid(1), xid(2), xid(3));
        log.append(&[one, two]).unwrap();
        assert!(has_others(&folder, None));
        assert!(!has_others(&folder, Some(log.run())));
        let found = find(&folder, None).unwrap();
        assert_eq!(found.living, [log.run()]);
        assert!(found.over.is_empty() && found.unread.is_empty());

        // What failed half-way is taken back.
        log.file.write_all(b"commit at").unwrap();
        log.take_back().unwrap();
        log.append(&[three]).unwrap();
        let run = log.run();
        drop(log);
        let found = find(&folder, None).unwrap();
        let [remains] = &found.over[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (remains.run, &remains.decided),
            (run, &vec![one, two, three])
        );
        // Nobody else is about it meanwhile.
        assert_eq!(find(&folder, None).unwrap().living, [run]);
        for remains in found.over {
            remains.remove().unwrap();
        }
        assert!(!has_others(&folder, None));
    }

    #[test]
    fn a_log_that_was_made_shorter_has_what_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        let xids: Vec<Xid> = (0..100).map(|n| Xid::new(log.run(), [n; 20])).collect();
        log.append(&xids).unwrap();
        log.shorten(&xids[7..9]).unwrap();
        log.append(&xids[50..51]).unwrap();
        assert_eq!(find(folder.path(), None).unwrap().living, [log.run()]);
        drop(log);
        let found = find(folder.path(), None).unwrap();
        assert_eq!(found.over[0].decided, [xids[7], xids[8], xids[50]]);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_not_acted_on() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(folder.path()).unwrap();
        let (run, path) = (log.run(), log.path().to_owned());
        drop(log);
        fs::write(&path, title(run) + "commit all\n").unwrap();
        let found = find(folder.path(), None).unwrap();
        assert!(found.over.is_empty());
        assert!(
            found.unread[0].1.contains("line 2 makes no sense"),
            "{found:?}"
        );
        fs::write(&path, &title(run)[..9]).unwrap();
        assert_eq!(find(folder.path(), None).unwrap().over[0].decided, []);
        fs::write(&path, title(run ^ 1)).unwrap();
        let found = find(folder.path(), None).unwrap();
        assert!(found.unread[0].1.contains("another run"), "{found:?}");
    }
}
