//! The files that a configuration names, looked at before it is put to use: those that are read must be files, and what is in them of use;
//! those that are written must be none of the others.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::certificates;
use crate::config::{Config, NamedFile, Problem, Severity};

/// Opens what is a file and nothing else: a pipe would keep whoever opens it until somebody writes, and has nothing for who reads it
/// again.
///
/// # Errors
/// The kernel's, or it is no file.
pub(super) fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// What is wrong with the files that the configuration at this path names.
pub(super) fn problems(config: &Config, path: &Path) -> Vec<Problem> {
    let mut problems: Vec<Problem> = unreadable(config, path).collect();
    if problems.is_empty() {
        problems.extend(useless(config, path));
    }
    problems.extend(unwritable(config, path));
    problems.sort_by_key(|problem| problem.line);
    problems
}

fn problem(path: &Path, named: &NamedFile, text: String) -> Problem {
    Problem {
        file: path.to_string_lossy().into_owned(),
        line: named.line,
        key: named.key.clone(),
        severity: Severity::Error,
        text,
    }
}

fn unreadable<'c>(config: &'c Config, path: &'c Path) -> impl Iterator<Item = Problem> + 'c {
    config.input_files.iter().filter_map(move |input| {
        let error = open_regular(&input.path).err()?;
        let text = format!("{}: {error}", input.path.display());
        Some(problem(path, input, text))
    })
}

/// Certificates and keys that can be read but are none, or do not belong together: told where the first of them is named.
fn useless(config: &Config, path: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut note = |section: &str, outcome: io::Result<()>| {
        let named = |input: &&NamedFile| input.key.starts_with(section);
        if let (Err(error), Some(named)) = (outcome, config.input_files.iter().find(named)) {
            problems.push(problem(path, named, error.to_string()));
        }
    };
    let clients = certificates::clients(&config.server);
    note("server.tls.", clients.map(drop));
    for (place, group) in config.groups.iter().enumerate() {
        let servers = certificates::backend(group);
        note(&format!("groups[{place}].tls."), servers.map(drop));
    }
    problems
}

/// Files that are to be written and cannot be: what is there is a folder, there is no folder for them, or they are needed for something
/// else. Whether this process may write them is not tried: who checks a configuration may be somebody else than who runs by it.
fn unwritable(config: &Config, path: &Path) -> Vec<Problem> {
    let own = NamedFile {
        path: path.to_owned(),
        line: 0,
        key: "the configuration itself".to_owned(),
    };
    let key_file = NamedFile {
        path: config.server.key_file.clone(),
        line: 0,
        key: "server.key_file".to_owned(),
    };
    let mut others: Vec<&NamedFile> = vec![&own, &key_file];
    others.extend(&config.input_files);
    let mut problems = Vec::new();
    for output in &config.output_files {
        let shown = output.path.display();
        let folder = folder_of(&output.path);
        let meta = fs::metadata(&output.path);
        let text = if meta.as_ref().is_ok_and(Metadata::is_dir) {
            Some(format!("{shown} is a folder"))
        } else if is_missing(folder) {
            Some(format!("{shown}: there is no folder {}", folder.display()))
        } else {
            let is_it = |other: &&&NamedFile| are_one(&output.path, &other.path);
            let other = others.iter().find(is_it);
            other.map(|other| format!("{shown} is {} as well", other.key))
        };
        problems.extend(text.map(|text| problem(path, output, text)));
        others.push(output);
    }
    problems
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn is_missing(folder: &Path) -> bool {
    match fs::metadata(folder) {
        Ok(meta) => !meta.is_dir(),
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

/// Whether two names lead to one file, which need not be there yet. What is no file, such as a terminal, may have several uses.
fn are_one(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => place(one).is_some_and(|at| Some(at) == place(other)),
        _ => false,
    }
}

fn place(path: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder_of(path)).ok()?;
    Some(folder.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::super::load_config;
    use super::*;

    const GOOD: &str =
        "[[groups]]\nname = \"main\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = \"x\"\n";

    fn told(folder: &Path, more: &str) -> Vec<String> {
        let path = folder.join("a.toml");
        fs::write(&path, format!("{GOOD}{more}")).unwrap();
        let Err(error) = load_config(&path) else {
            return Vec::new();
        };
        let text = error.to_string();
        let text = text.replace(&format!("{}/", folder.display()), "");
        let errors = text.lines().filter(|line| !line.contains(": note: "));
        errors.map(str::to_owned).collect()
    }

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn what_is_read_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        pipe(&folder.join("pipe"));
        std::os::unix::fs::symlink("loop", folder.join("loop")).unwrap();
        for (name, why) in [
            ("pipe", "not a regular file"),
            (".", "not a regular file"),
            ("/dev/zero", "not a regular file"),
            ("loop", "Too many levels of symbolic links (os error 40)"),
            ("none", "No such file or directory (os error 2)"),
            ("a.toml/x", "Not a directory (os error 20)"),
        ] {
            let tls =
                format!("[server.tls]\nmode = \"required\"\ncert = \"{name}\"\nkey = \"a.toml\"\n");
            let wanted = format!("a.toml:9: server.tls.cert: {name}: {why}");
            assert_eq!(
                told(folder, &tls),
                [wanted.replace("./: ", ".: ")],
                "{name}"
            );
        }
        // The key of passwords too, once it is needed.
        let key =
            "[server]\nkey_file = \"pipe\"\n[[users]]\nname = \"v\"\npassword = \"enc:v1:AAAA\"\n";
        let lines = told(folder, key);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("pipe: not a regular file"), "{lines:?}");
    }

    #[test]
    fn what_is_in_them_is_of_use() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("empty.pem"), "").unwrap();
        let server =
            "[server.tls]\nmode = \"optional\"\ncert = \"empty.pem\"\nkey = \"empty.pem\"\n";
        let lines = told(folder, server);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("a.toml:9: server.tls.cert: server.tls: "),
            "{lines:?}"
        );
        let group = "[[groups]]\nname = \"b\"\nprimary = \"i\"\ntls = { mode = \"verify-ca\", ca = \"empty.pem\" }\n[[users]]\nname = \"v\"\npassword = \"x\"\ngroup = \"b\"\n";
        let group = group.replacen("", "group = \"main\"\n", 1);
        let lines = told(folder, &group);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("a.toml:11: groups[1].tls.ca: TLS of group b: "),
            "{lines:?}"
        );
    }

    #[test]
    fn what_is_written_is_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join("sub")).unwrap();
        fs::write(folder.join("there.log"), "").unwrap();
        std::os::unix::fs::symlink("there.log", folder.join("link.log")).unwrap();
        std::os::unix::fs::symlink("atlas.key", folder.join("key.log")).unwrap();
        fs::write(folder.join("atlas.key"), "").unwrap();
        pipe(&folder.join("pipe"));
        for (slow, audit, wanted) in [
            ("s.log", "a.log", None),
            ("sub", "a.log", Some("8: log.slow.file: sub is a folder")),
            (
                "no/s.log",
                "a.log",
                Some("8: log.slow.file: no/s.log: there is no folder no"),
            ),
            (
                "there.log/s",
                "a.log",
                Some("8: log.slow.file: there.log/s: there is no folder there.log"),
            ),
            (
                "s.log",
                "sub/../s.log",
                Some("9: log.audit.file: sub/../s.log is log.slow.file as well"),
            ),
            (
                "there.log",
                "link.log",
                Some("9: log.audit.file: link.log is log.slow.file as well"),
            ),
            (
                "s.log",
                "./a.toml",
                Some("9: log.audit.file: ./a.toml is the configuration itself as well"),
            ),
            (
                "key.log",
                "a.log",
                Some("8: log.slow.file: key.log is server.key_file as well"),
            ),
            (
                "atlas.key",
                "a.log",
                Some("8: log.slow.file: atlas.key is server.key_file as well"),
            ),
            ("pipe", "sub/../pipe", None),
            ("/dev/null", "/dev/../dev/null", None),
        ] {
            let log = format!(
                "[log]\nslow = {{ file = \"{slow}\" }}\naudit = {{ file = \"{audit}\" }}\n"
            );
            let wanted: Vec<String> = wanted
                .map(|text| format!("a.toml:{text}"))
                .into_iter()
                .collect();
            assert_eq!(told(folder, &log), wanted, "{slow} {audit}");
        }
    }
}
