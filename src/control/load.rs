//! Reads the configuration file: its bytes, its permission bits, the environment. What the text means is `config`'s.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::config::{self, Config, InputFile, Problem, Severity};

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

/// Reads and checks the file; `env:NAME` values come from this process's environment.
///
/// # Errors
/// When it cannot be read or used.
pub fn load_config(path: &Path) -> Result<Config, LoadError> {
    let config = load(path, &|name| std::env::var(name).ok())?;
    let missing = unreadable_files(&config, &path.to_string_lossy());
    if missing.is_empty() {
        return Ok(config);
    }
    let mut problems = config.notes;
    problems.extend(missing);
    problems.sort_by_key(|problem| problem.line);
    Err(LoadError::Problems(problems))
}

/// The files named in the configuration that cannot be opened.
fn unreadable_files(config: &Config, file: &str) -> Vec<Problem> {
    let check = |input: &InputFile| {
        let error = File::open(&input.path).err()?;
        Some(Problem {
            file: file.to_owned(),
            line: input.line,
            key: input.key.clone(),
            severity: Severity::Error,
            text: format!("{}: {error}", input.path.display()),
        })
    };
    config.input_files.iter().filter_map(check).collect()
}

/// As [`load_config`], for uses that need no password and no other file: one that is not there is no mistake.
///
/// # Errors
/// When it cannot be read or used.
pub fn load_config_alone(path: &Path) -> Result<Config, LoadError> {
    load(path, &|_| Some(String::new()))
}

fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, LoadError> {
    let (text, mode) = read(path).map_err(|error| LoadError::Unreadable(path.to_owned(), error))?;
    let name = path.to_string_lossy();
    let text = std::str::from_utf8(&text)
        .map_err(|error| LoadError::Problems(vec![not_utf8(&name, &text, error.valid_up_to())]))?;
    let mut config = config::load(text, &name, env).map_err(LoadError::Problems)?;
    let about_mode = config::check_mode(&config, &name, mode);
    config.notes.splice(0..0, about_mode);
    Ok(config)
}

/// The bytes (wiped when dropped: they hold passwords) and the permission bits of one and the same open file.
fn read(path: &Path) -> io::Result<(Zeroizing<Vec<u8>>, u32)> {
    let file = File::open(path)?;
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
        assert!(notes[0].to_string().ends_with(":1: warning: everyone on this machine can read this file, and it holds passwords in clear: chmod 640, or use env:NAME values"), "{}", notes[0]);
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
    fn files_that_are_named_must_be_there() {
        let text = format!(
            "{GOOD}[server.tls]\nmode = \"required\"\ncert = \"/nonexistent/c\"\nkey = \"/dev/null\"\n"
        );
        let file = file(text.as_bytes());
        let path = file.path().display();
        let told = load_config(file.path()).unwrap_err().to_string();
        assert!(told.ends_with(&format!("{path}:9: server.tls.cert: /nonexistent/c: No such file or directory (os error 2)\n")), "{told}");
        assert!(load_config_alone(file.path()).is_ok());
    }
}
