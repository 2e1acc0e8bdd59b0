//! `SAVE CONFIG`: the configuration in force to the file that it came from, whole or not at all. The file of before is kept beside it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::admin::{Refusal, Table};
use crate::control::{Desk, read_file};

/// What the name of the file of before ends with.
const PREVIOUS: &str = ".previous";

/// Saves.
pub(super) fn save(desk: &Desk, who: &str) -> Result<Table, Refusal> {
    desk.save(who, write)?;
    Ok(Table::status())
}

/// Writes `text` unless the file holds something else than `known`; gives what it holds now.
fn write(path: &Path, text: &str, known: &[u8]) -> Result<Vec<u8>, Refusal> {
    let told = |error: io::Error| {
        Refusal::new(format!(
            "{} is not saved and stays as it is: {error}",
            path.display()
        ))
    };
    // Through a link the file behind it is replaced, and the link stays.
    let path = fs::canonicalize(path).map_err(told)?;
    if **read_file(&path).map_err(told)? != *known {
        return Err(Refusal::new(format!(
            "{} was changed since it was read, and stays as it is: RELOAD CONFIG takes up what it says now (and drops what was changed here), or move it away and save again",
            path.display()
        )));
    }
    if text.as_bytes() != known {
        replace(&path, text.as_bytes()).map_err(told)?;
    }
    Ok(text.as_bytes().to_vec())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// At every moment there is one whole file of that name, whatever happens.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = beside(path, &format!(".{}", std::process::id()));
    let outcome = draw_up(path, &draft, bytes).and_then(|()| {
        keep(path)?;
        fs::rename(&draft, path)?;
        sync_folder(path)
    });
    if outcome.is_err() {
        let _ = fs::remove_file(&draft);
    }
    outcome
}

/// Writes the draft with owner and permissions of the file that it will replace: it holds the same secrets.
fn draw_up(path: &Path, draft: &Path, bytes: &[u8]) -> io::Result<()> {
    let meta = fs::metadata(path)?;
    // One that is left is of a process of this number that was killed here.
    let _ = fs::remove_file(draft);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
        fchown(&file, Some(meta.uid()), Some(meta.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Gives the file of now a second name, under which it stays.
fn keep(path: &Path) -> io::Result<()> {
    let link = beside(path, &format!("{PREVIOUS}.{}", std::process::id()));
    let _ = fs::remove_file(&link);
    fs::hard_link(path, &link)?;
    fs::rename(&link, beside(path, PREVIOUS))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_is_kept_and_what_was_changed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("atlas.toml");
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(write(&path, "two", b"one"), Ok(b"two".to_vec()));
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        let previous = folder.path().join("atlas.toml.previous");
        assert_eq!(fs::read(&previous).unwrap(), b"one");
        assert_eq!(names(folder.path()), ["atlas.toml", "atlas.toml.previous"]);
        // Somebody has edited it meanwhile.
        fs::write(&path, "mine").unwrap();
        let refusal = write(&path, "three", b"two").unwrap_err();
        assert!(
            refusal.text.contains("was changed since it was read"),
            "{refusal}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        // By a link the file behind it.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("atlas.toml", &link).unwrap();
        assert_eq!(write(&link, "four", b"mine"), Ok(b"four".to_vec()));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"four");
        assert_eq!(fs::read(&previous).unwrap(), b"mine");
        // Nothing to write, nothing to keep.
        assert_eq!(write(&path, "four", b"four"), Ok(b"four".to_vec()));
        assert_eq!(fs::read(&previous).unwrap(), b"mine");
        assert!(write(&folder.path().join("none"), "x", b"").is_err());
    }
}
