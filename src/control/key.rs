//! The key file of `enc:v1:` values: reading it with a look at who else can, and making it. The formats are `auth`'s.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use super::files::open_regular;
use crate::auth::{SealKey, Secret, key_file_text};

/// A key file has two lines; what is longer is another kind of file.
const KEY_FILE_BYTES_MAX: u64 = 4096;

/// Reads the key.
///
/// # Errors
/// The sentence for the operator: why there is no key, and what to do.
pub(super) fn read_key(path: &Path) -> Result<SealKey, String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let file = open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no key file {}: copy the one that the value was encrypted with, or encrypt the password again (`atlas encrypt` makes a key file)",
            path.display()
        ),
        _ => told(error),
    })?;
    let meta = file.metadata().map_err(told)?;
    if !is_kept(meta.mode(), meta.uid()) {
        return Err(format!(
            "the key file {} can be read or changed by others than its owner: chmod 600 {}",
            path.display(),
            path.display()
        ));
    }
    let mut text = Zeroizing::new(Vec::new());
    file.take(KEY_FILE_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(told)?;
    SealKey::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether only those who may can read the file: its owner, and the group of a file of root, which is how a key is handed to a
/// service that must not change it.
fn is_kept(mode: u32, owner: u32) -> bool {
    let others = if owner == 0 { 0o027 } else { 0o077 };
    mode & others == 0
}

/// Encrypts a password with the key of the file, which is made when there is none. Tells whether it was.
///
/// # Errors
/// The sentence for the operator: the file can be neither used nor made.
pub fn encrypt(password: &Secret, key_file: &Path) -> Result<(String, bool), String> {
    let random = |bytes: &mut [u8]| {
        aws_lc_rs::rand::fill(bytes).map_err(|_| "there are no random bytes".to_owned())
    };
    let mut key = Zeroizing::new([0; 32]);
    random(key.as_mut_slice())?;
    let is_new = make_key(key_file, key_file_text(&key).as_bytes())
        .map_err(|error| format!("cannot make the key file {}: {error}", key_file.display()))?;
    let mut nonce = [0; 12];
    random(&mut nonce)?;
    Ok((read_key(key_file)?.seal(password, nonce), is_new))
}

/// Makes the file unless it is there, whole or not at all: two that make it at the same time end up with one key.
fn make_key(path: &Path, text: &[u8]) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)
        .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::hard_link(draft, path));
    match made {
        // The draft is somebody else's.
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && path.symlink_metadata().is_err() =>
        {
            Err(error)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let _ = std::fs::remove_file(draft);
            Ok(false)
        }
        other => {
            let _ = std::fs::remove_file(draft);
            other.map(|()| true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("atlas.key");
        let (first, is_new) = encrypt(&Secret::from("a"), &path).unwrap();
        assert!(is_new);
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        let text = std::fs::read(&path).unwrap();
        let (second, is_new) = encrypt(&Secret::from("a"), &path).unwrap();
        assert!(!is_new && first != second);
        assert_eq!(std::fs::read(&path).unwrap(), text);
        let key = read_key(&path).unwrap();
        assert_eq!(key.unseal(&first), Ok(Secret::from("a")));
        assert_eq!(key.unseal(&second), Ok(Secret::from("a")));
        // Nothing is left beside it.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn who_makes_it_at_the_same_time_gets_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("atlas.key");
        assert!(make_key(&path, b"first").unwrap());
        assert!(!make_key(&path, b"second").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert!(make_key(&folder.path().join("none/atlas.key"), b"x").is_err());
    }

    #[test]
    fn whom_a_key_may_be_readable_for() {
        for (mode, owner, wanted) in [
            (0o100_600, 7, true),
            (0o100_400, 7, true),
            (0o100_640, 7, false),
            (0o100_604, 7, false),
            (0o100_620, 7, false),
            (0o100_644, 7, false),
            (0o100_640, 0, true),
            (0o100_660, 0, false),
            (0o100_644, 0, false),
        ] {
            assert_eq!(is_kept(mode, owner), wanted, "{mode:o} {owner}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("atlas.key");
        let told = read_key(&path).unwrap_err();
        assert!(
            told.starts_with(&format!("there is no key file {}", path.display())),
            "{told}"
        );
        encrypt(&Secret::from("a"), &path).unwrap();
        set_mode(&path, 0o644);
        let wanted = format!(
            "the key file {0} can be read or changed by others than its owner: chmod 600 {0}",
            path.display()
        );
        assert_eq!(read_key(&path).unwrap_err(), wanted);
        assert_eq!(encrypt(&Secret::from("a"), &path).unwrap_err(), wanted);
        set_mode(&path, 0o600);
        std::fs::write(&path, "x").unwrap();
        assert!(
            read_key(&path)
                .unwrap_err()
                .contains("no key file of Atlas")
        );
        assert!(read_key(folder.path()).is_err());
    }
}
