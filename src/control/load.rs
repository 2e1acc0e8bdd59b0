//! Reads the configuration file: its bytes, its permission bits, the environment. What the text means is `config`'s.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::files::{self, open_regular};
use super::key::read_key;
use crate::config::{self, Config, Outside, Problem, Severity};

/// No configuration is longer: what is, is another kind of file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Why there is no configuration.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The file cannot be used; errors, with warnings and notes between.
    Problems(Vec<Problem>),
}

impl fmt::Display for LoadError {
    /// One or more lines, each with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => writeln!(f, "{}: {error}", path.display()),
            Self::Problems(problems) => problems
                .iter()
                .try_for_each(|problem| writeln!(f, "{problem}")),
        }
    }
}

impl std::error::Error for LoadError {}

/// A configuration and the text that it was read from.
pub struct Loaded {
    /// The text, wiped when dropped: it may hold passwords.
    pub text: Zeroizing<String>,
    /// What it says.
    pub config: Config,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").finish_non_exhaustive()
    }
}

/// As [`load_config`], with the text.
///
/// # Errors
/// As there.
pub fn load_file(path: &Path) -> Result<Loaded, LoadError> {
    loaded(path, File::open)
}

/// The same in a process that serves, which must not wait for whoever writes into a pipe.
///
/// # Errors
/// As there.
pub(super) fn load_again(path: &Path) -> Result<Loaded, LoadError> {
    loaded(path, open_regular)
}

fn loaded(path: &Path, open: impl Fn(PathBuf) -> io::Result<File>) -> Result<Loaded, LoadError> {
    let (text, mode) = open(path.to_owned())
        .and_then(read)
        .map_err(|error| LoadError::Unreadable(path.to_owned(), error))?;
    let text = as_text(&path.to_string_lossy(), &text)?.to_owned();
    let mut loaded = load_text(text.into(), path)?;
    let about_mode = config::check_mode(&loaded.config, &path.to_string_lossy(), mode);
    loaded.config.notes.splice(0..0, about_mode);
    Ok(loaded)
}

/// Checks a text that is to stand for the file's.
///
/// # Errors
/// When it cannot be used.
pub(super) fn load_text(text: Zeroizing<String>, path: &Path) -> Result<Loaded, LoadError> {
    let outside = Outside {
        env: &|name| std::env::var(name).ok(),
        key: &|path| read_key(path).map(Some),
    };
    let name = path.to_string_lossy();
    let config = config::load_with(&text, &name, outside).map_err(LoadError::Problems)?;
    let wrong = files::problems(&config, path);
    if wrong.is_empty() {
        return Ok(Loaded { text, config });
    }
    let mut problems = config.notes;
    problems.extend(wrong);
    problems.sort_by_key(|problem| problem.line);
    Err(LoadError::Problems(problems))
}

/// Reads and checks the file; `env:NAME` values come from this process's environment, the key for `enc:v1:` values from its file.
///
/// # Errors
/// When it cannot be read or used.
pub fn load_config(path: &Path) -> Result<Config, LoadError> {
    load_file(path).map(|loaded| loaded.config)
}

/// As [`load_config`], for uses that need no password and no other file: one that is not there is no mistake.
///
/// # Errors
/// When it cannot be read or used.
pub fn load_config_alone(path: &Path) -> Result<Config, LoadError> {
    let outside = Outside {
        env: &|_| Some(String::new()),
        key: &|_| Ok(None),
    };
    load(path, outside)
}

/// Where the configuration says that the key for `enc:v1:` values is; the rest of it need not be right.
///
/// # Errors
/// When it cannot be read, or says it wrongly.
pub fn key_file(path: &Path) -> Result<PathBuf, LoadError> {
    let (text, _) = File::open(path)
        .and_then(read)
        .map_err(|error| LoadError::Unreadable(path.to_owned(), error))?;
    let name = path.to_string_lossy();
    config::key_file(as_text(&name, &text)?, &name).map_err(LoadError::Problems)
}

fn load(path: &Path, outside: Outside<'_>) -> Result<Config, LoadError> {
    let (text, mode) = File::open(path)
        .and_then(read)
        .map_err(|error| LoadError::Unreadable(path.to_owned(), error))?;
    let name = path.to_string_lossy();
    let text = as_text(&name, &text)?;
    let mut config = config::load_with(text, &name, outside).map_err(LoadError::Problems)?;
    let about_mode = config::check_mode(&config, &name, mode);
    config.notes.splice(0..0, about_mode);
    Ok(config)
}

/// A file that may hold passwords, wiped when dropped.
///
/// # Errors
/// The kernel's, or it is no file or longer than any configuration.
pub fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    read(open_regular(path)?).map(|(text, _)| text)
}

/// The bytes (wiped when dropped: they hold passwords) and the permission bits of one and the same open file.
fn read(file: File) -> io::Result<(Zeroizing<Vec<u8>>, u32)> {
    let meta = file.metadata()?;
    let mut text = Zeroizing::new(Vec::with_capacity(
        usize::try_from(meta.len().min(FILE_BYTES_MAX)).unwrap_or(0),
    ));
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "longer than 16 MiB: not a configuration",
        ));
    }
    Ok((text, meta.mode()))
}

fn as_text<'t>(file: &str, text: &'t [u8]) -> Result<&'t str, LoadError> {
    std::str::from_utf8(text)
        .map_err(|error| LoadError::Problems(vec![not_utf8(file, text, error.valid_up_to())]))
}

fn not_utf8(file: &str, text: &[u8], offset: usize) -> Problem {
    let line = memchr::memchr_iter(b'\n', text.get(..offset).unwrap_or(text)).count() + 1;
    let text = "not UTF-8 text".to_owned();
    Problem {
        file: file.to_owned(),
        line,
        key: String::new(),
        severity: Severity::Error,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[[groups]]\nname = \"main\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = \"x\"\n";

    fn file(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn permission_bits_are_noted() {
        use std::os::unix::fs::PermissionsExt;
        let file = file(GOOD.as_bytes());
        assert_eq!(load_config(file.path()).unwrap().notes.len(), 1);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let notes = load_config(file.path()).unwrap().notes;
        assert!(notes[0].to_string().ends_with(":1: warning: everyone on this machine can read this file, and it holds passwords in clear: chmod 640, or use env:NAME or enc:v1: values"), "{}", notes[0]);
    }

    #[test]
    fn what_cannot_be_read() {
        let missing = load_config(Path::new("/nonexistent/atlas.toml"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            missing,
            "/nonexistent/atlas.toml: No such file or directory (os error 2)\n"
        );
        let file = file(b"a = 1\nb = \"\xff\"\n");
        let path = file.path().display().to_string();
        assert_eq!(
            load_config(file.path()).unwrap_err().to_string(),
            format!("{path}:2: not UTF-8 text\n")
        );
        assert!(
            load_config(Path::new("/dev/zero"))
                .unwrap_err()
                .to_string()
                .contains("16 MiB")
        );
        assert!(matches!(
            load_config(Path::new("/")),
            Err(LoadError::Unreadable(..))
        ));
    }

    #[test]
    fn a_configuration_can_be_read_alone() {
        let file = file(GOOD.replace("\"x\"", "\"env:ATLAS_TEST_UNSET\"").as_bytes());
        assert!(load_config(file.path()).is_err());
        assert!(load_config_alone(file.path()).is_ok());
    }

    #[test]
    fn encrypted_passwords() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("a.toml"), folder.path().join("k"));
        let (sealed, _) = super::super::encrypt(&"secret".into(), &key).unwrap();
        let write = |password: &str| {
            let text = GOOD.replace("\"x\"", &format!("[\"{password}\", \"{password}\"]"));
            std::fs::write(&path, format!("{text}[server]\nkey_file = \"k\"\n")).unwrap();
        };
        let told = || {
            let told = load_config(&path).unwrap_err().to_string();
            told.replace(&folder.path().display().to_string(), "DIR")
        };
        write(&sealed);
        assert_eq!(key_file(&path).unwrap(), key);
        let config = load_config(&path).unwrap();
        assert_eq!(
            config.users[0].passwords,
            ["secret".into(), "secret".into()]
        );
        assert!(!config.has_clear_passwords);
        let note = "DIR/a.toml:1: note: monitor.user: not given: servers are checked with the account \"u\"\n";
        // What is wrong with the key is said once, at the first value that needs it.
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            told(),
            format!(
                "{note}DIR/a.toml:6: users[0].password[0]: cannot be decrypted: the key file DIR/k can be read or changed by others than its owner: chmod 600 DIR/k\n"
            )
        );
        std::fs::remove_file(&key).unwrap();
        assert!(told().starts_with(&format!("{note}DIR/a.toml:6: users[0].password[0]: cannot be decrypted: there is no key file DIR/k: ")));
        assert!(load_config_alone(&path).is_ok());
        // Another key, and damage: at each value.
        super::super::encrypt(&"other".into(), &key).unwrap();
        let at = |index: usize, why: &str| {
            format!("DIR/a.toml:6: users[0].password[{index}]: cannot be decrypted: {why}\n")
        };
        let both = |why: &str| format!("{note}{}{}", at(0, why), at(1, why));
        assert_eq!(told(), both("encrypted with another key than this one"));
        let (sealed, _) = super::super::encrypt(&"other".into(), &key).unwrap();
        write(&sealed[..sealed.len() - 2]);
        assert_eq!(
            told(),
            both("damaged: characters were changed, added or lost")
        );
        write("enc:secret");
        assert_eq!(
            told(),
            both("not a value that `atlas encrypt` prints: those start with enc:v1:")
        );
        // Where the key is can be known whatever the rest of the file says.
        std::fs::write(&path, "[server]\nwhat = 1\n").unwrap();
        assert_eq!(key_file(&path).unwrap(), folder.path().join("atlas.key"));
        std::fs::write(&path, "[server]\nkey_file = 1\n").unwrap();
        assert!(
            key_file(&path)
                .unwrap_err()
                .to_string()
                .contains(":2: server.key_file: expected a string")
        );
        std::fs::write(&path, "[server]\nkey_file = \n").unwrap();
        assert!(key_file(&path).is_err());
    }

    #[test]
    fn files_that_are_named_must_be_there() {
        let text = format!(
            "{GOOD}[server.tls]\nmode = \"required\"\ncert = \"/nonexistent/c\"\nkey = \"/etc/passwd\"\n"
        );
        let file = file(text.as_bytes());
        let path = file.path().display();
        let told = load_config(file.path()).unwrap_err().to_string();
        assert!(told.ends_with(&format!("{path}:9: server.tls.cert: /nonexistent/c: No such file or directory (os error 2)\n")), "{told}");
        assert!(load_config_alone(file.path()).is_ok());
    }
}
