//! The command line: arguments to a [`Command`], and carrying it out.
//!
//! Exit codes: 0 well, 1 something is wrong with the configuration or the run, 2 wrong use of the command line.

mod encrypt;
mod import;
mod logger;
mod route;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::{Long, Short, Value};

use crate::config::{Config, Problem};
use crate::control::{LoadError, handover, load_config, load_config_alone, load_file, signal};
use crate::server;

/// Where the configuration is when no `-c` says otherwise.
const DEFAULT_CONFIG: &str = "atlas.toml";

/// What `atlas init` prints.
pub const EXAMPLE: &str = include_str!("cli/example.toml");

const HELP: &str = "\
Atlas, a proxy for MySQL and MariaDB.

usage:
  atlas run   [-c atlas.toml]      run in the foreground (the default command), log to stderr
              [--take-over]        have the process that serves give its listening sockets and end when its clients are done
  atlas upgrade [-c atlas.toml]    have the process that serves start its program anew and give it its place
  atlas check [-c atlas.toml]      check the configuration; every problem as file:line: text; exit 0 or 1
  atlas route [-c atlas.toml] [--user U] [--schema S] [--in-transaction] 'SQL'
                                   print where the statement would go and why; no network
                                   with - in place of SQL: statements from standard input, one a line (\\n \\t \\\\
                                   escapes), one line each: class, route, group, reason, separated by tabs
  atlas init                       print a commented example configuration
  atlas encrypt [-c atlas.toml]    read a password on standard input, print it as an enc:v1: value; the key file is made
                                   when there is none
  atlas import-cnf [--key-file atlas.key] old.cnf
                                   the configuration of the original Atlas as atlas.toml on standard output, with a comment
                                   for every key that changed its meaning; passwords are encrypted anew
  atlas --version, atlas --help

signals:
  TERM, INT                        finish open transactions, then exit
  USR1, USR2                       be online or offline for health checks (/readyz)
";

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Run {
        config: PathBuf,
        takes_over: bool,
    },
    Upgrade {
        config: PathBuf,
    },
    Check {
        config: PathBuf,
    },
    Route(RouteArguments),
    Init,
    /// Without a configuration: the default one if it exists.
    Encrypt {
        config: Option<PathBuf>,
    },
    Import {
        old: PathBuf,
        key_file: Option<PathBuf>,
    },
    Help,
    Version,
}

#[derive(Debug, PartialEq, Eq)]
struct RouteArguments {
    /// Not given: the default one if it exists.
    config: Option<PathBuf>,
    user: Option<String>,
    schema: Option<String>,
    in_transaction: bool,
    input: Input,
}

#[derive(Debug, PartialEq, Eq)]
enum Input {
    Statement(Vec<u8>),
    Lines,
}

/// Carries out what the arguments (without the program's name) ask for.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match parse(arguments) {
        Ok(command) => command,
        Err(text) => {
            eprintln!("atlas: {text}\nTry `atlas --help`.");
            return ExitCode::from(2);
        }
    };
    match command {
        Command::Run { config, takes_over } => run(&config, takes_over),
        Command::Upgrade { config } => upgrade(&config),
        Command::Check { config } => check(&config),
        Command::Route(arguments) => explain(&arguments),
        Command::Init => print(EXAMPLE),
        Command::Encrypt { config } => encrypt::run(config.as_deref()),
        Command::Import { old, key_file } => import::run(&old, key_file.as_deref()),
        Command::Help => print(HELP),
        Command::Version => print(concat!("atlas ", env!("CARGO_PKG_VERSION"), "\n")),
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut name, mut config, mut input) = (None, None, None);
    let (mut user, mut schema, mut in_transaction) = (None, None, false);
    let (mut old, mut key_file, mut takes_over) = (None, None, false);
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        let is_route = name.as_deref() == Some("route");
        let is_import = name.as_deref() == Some("import-cnf");
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('V') | Long("version") => return Ok(Command::Version),
            Short('c') | Long("config") => {
                config = Some(PathBuf::from(parser.value().map_err(|e| e.to_string())?))
            }
            Long("user") if is_route => user = Some(text_value(&mut parser, "--user")?),
            Long("schema") if is_route => schema = Some(text_value(&mut parser, "--schema")?),
            Long("take-over") if matches!(name.as_deref(), None | Some("run")) => takes_over = true,
            Long("in-transaction") if is_route => in_transaction = true,
            Value(value) if name.is_none() => name = Some(value.to_string_lossy().into_owned()),
            Value(value) if is_route && input.is_none() => {
                input = Some(if value == "-" {
                    Input::Lines
                } else {
                    Input::Statement(value.into_vec())
                });
            }
            Long("key-file") if is_import => {
                key_file = Some(PathBuf::from(parser.value().map_err(|e| e.to_string())?));
            }
            Value(value) if is_import && old.is_none() => old = Some(PathBuf::from(value)),
            Value(_) if is_route => {
                return Err("route takes one statement: put it in quotes".to_owned());
            }
            // A shell's history and the list of processes are no places for a password.
            Value(_) if name.as_deref() == Some("encrypt") => {
                return Err("encrypt reads the password from standard input".to_owned());
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    let config_or_default =
        |config: Option<PathBuf>| config.unwrap_or_else(|| PathBuf::from(DEFAULT_CONFIG));
    match name.as_deref() {
        None | Some("run") => Ok(Command::Run {
            config: config_or_default(config),
            takes_over,
        }),
        Some(name) if takes_over => Err(format!("{name} takes nothing over")),
        Some("upgrade") => Ok(Command::Upgrade {
            config: config_or_default(config),
        }),
        Some("check") => Ok(Command::Check {
            config: config_or_default(config),
        }),
        Some("init") if config.is_some() => Err("init reads no configuration".to_owned()),
        Some("init") => Ok(Command::Init),
        Some("encrypt") => Ok(Command::Encrypt { config }),
        Some("import-cnf") if config.is_some() => {
            Err("import-cnf reads the old configuration only".to_owned())
        }
        Some("import-cnf") => Ok(Command::Import {
            old: old.ok_or("import-cnf needs the old configuration's file")?,
            key_file,
        }),
        Some("route") => {
            let input =
                input.ok_or("route needs a statement, or - for statements on standard input")?;
            Ok(Command::Route(RouteArguments {
                config,
                user,
                schema,
                in_transaction,
                input,
            }))
        }
        Some(name) => Err(format!("there is no command `{}`", name.escape_debug())),
    }
}

fn text_value(parser: &mut lexopt::Parser, option: &str) -> Result<String, String> {
    let value = parser.value().map_err(|e| e.to_string())?;
    value
        .into_string()
        .map_err(|_| format!("the value of {option} is not UTF-8"))
}

fn run(path: &Path, takes_over: bool) -> ExitCode {
    let held = match signal::hold() {
        Ok(held) => held,
        Err(error) => {
            eprintln!("atlas: no signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    let loaded = match load_file(path) {
        Ok(loaded) => loaded,
        Err(error) => return fail(&error),
    };
    logger::start(loaded.config.log.level);
    for note in &loaded.config.notes {
        log::warn!("{note}");
    }
    server::run(loaded, path, takes_over, held)
}

fn upgrade(path: &Path) -> ExitCode {
    let config = match load_config_alone(path) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    match handover::ask_upgrade(&handover::socket_path(&config.server, path)) {
        Ok(successor) => print(&format!("process {successor} serves\n")),
        Err(error) => {
            eprintln!("atlas: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(path: &Path) -> ExitCode {
    match load_config(path) {
        Ok(config) => print(&format!("{}{}: ok\n", lines(&config.notes), path.display())),
        Err(LoadError::Problems(problems)) => {
            print(&lines(&problems));
            ExitCode::FAILURE
        }
        Err(error @ LoadError::Unreadable(..)) => fail(&error),
    }
}

fn explain(arguments: &RouteArguments) -> ExitCode {
    let config = match read_for_route(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let session = match route::Session::new(config.as_ref(), arguments) {
        Ok(session) => session,
        Err(text) => {
            eprintln!("atlas: {text}");
            return ExitCode::FAILURE;
        }
    };
    match &arguments.input {
        Input::Statement(sql) => print(&session.explain(sql).to_text()),
        Input::Lines => {
            match session.explain_lines(&mut io::stdin().lock(), &mut io::stdout().lock()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => broken_output(&error),
            }
        }
    }
}

/// The configuration for `atlas route`; none when no file was named and there is none at the default place.
fn read_for_route(path: Option<&Path>) -> Result<Option<Config>, LoadError> {
    match load_config_alone(path.unwrap_or_else(|| Path::new(DEFAULT_CONFIG))) {
        Ok(config) => Ok(Some(config)),
        Err(LoadError::Unreadable(_, error))
            if path.is_none() && error.kind() == io::ErrorKind::NotFound =>
        {
            eprintln!(
                "atlas: no {DEFAULT_CONFIG} here: one group \"main\" with replicas is assumed"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect()
}

fn fail(error: &LoadError) -> ExitCode {
    eprint!("{error}");
    ExitCode::FAILURE
}

fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => broken_output(&error),
    }
}

/// A reader that has seen enough (`atlas init | head`) is no reason to complain.
fn broken_output(error: &io::Error) -> ExitCode {
    if error.kind() != io::ErrorKind::BrokenPipe {
        eprintln!("atlas: {error}");
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn arguments() {
        let run = |path: &str| {
            Ok(Command::Run {
                config: PathBuf::from(path),
                takes_over: false,
            })
        };
        for (line, wanted) in [
            ("", run("atlas.toml")),
            ("run", run("atlas.toml")),
            ("-c x.toml", run("x.toml")),
            ("run -c x.toml", run("x.toml")),
            ("-c x.toml run", run("x.toml")),
            (
                "run --take-over",
                Ok(Command::Run {
                    config: PathBuf::from(DEFAULT_CONFIG),
                    takes_over: true,
                }),
            ),
            (
                "upgrade -c x.toml",
                Ok(Command::Upgrade {
                    config: PathBuf::from("x.toml"),
                }),
            ),
            ("run --config=x.toml", run("x.toml")),
            (
                "check -cx.toml",
                Ok(Command::Check {
                    config: PathBuf::from("x.toml"),
                }),
            ),
            ("init", Ok(Command::Init)),
            (
                "import-cnf old.cnf --key-file=k",
                Ok(Command::Import {
                    old: PathBuf::from("old.cnf"),
                    key_file: Some(PathBuf::from("k")),
                }),
            ),
            ("encrypt", Ok(Command::Encrypt { config: None })),
            (
                "encrypt -c x.toml",
                Ok(Command::Encrypt {
                    config: Some(PathBuf::from("x.toml")),
                }),
            ),
            ("--help", Ok(Command::Help)),
            ("route --help", Ok(Command::Help)),
            ("-h", Ok(Command::Help)),
            ("--version", Ok(Command::Version)),
        ] {
            assert_eq!(words(line), wanted, "{line}");
        }
    }

    #[test]
    fn route_arguments() {
        let route = |config: Option<&str>, user: Option<&str>, in_transaction, input| {
            Ok(Command::Route(RouteArguments {
                config: config.map(PathBuf::from),
                user: user.map(str::to_owned),
                schema: None,
                in_transaction,
                input,
            }))
        };
        let statement = |sql: &str| Input::Statement(sql.as_bytes().to_vec());
        for (line, wanted) in [
            ("route -", route(None, None, false, Input::Lines)),
            (
                "route SELECT",
                route(None, None, false, statement("SELECT")),
            ),
            (
                "route --user u --in-transaction x",
                route(None, Some("u"), true, statement("x")),
            ),
            (
                "-c f route x --user=u",
                route(Some("f"), Some("u"), false, statement("x")),
            ),
            ("route -- --x", route(None, None, false, statement("--x"))),
        ] {
            assert_eq!(words(line), wanted, "{line}");
        }
    }

    #[test]
    fn wrong_use() {
        for (line, wanted) in [
            ("start", "there is no command `start`"),
            (
                "encrypt secret",
                "encrypt reads the password from standard input",
            ),
            (
                "import-cnf",
                "import-cnf needs the old configuration's file",
            ),
            (
                "import-cnf a.cnf -c x",
                "import-cnf reads the old configuration only",
            ),
            ("import-cnf a b", "unexpected argument \"b\""),
            ("run --key-file x", "invalid option '--key-file'"),
            (
                "route",
                "route needs a statement, or - for statements on standard input",
            ),
            (
                "route SELECT 1",
                "route takes one statement: put it in quotes",
            ),
            ("run --user x", "invalid option '--user'"),
            ("check --take-over", "invalid option '--take-over'"),
            ("--take-over check", "check takes nothing over"),
            ("run x", "unexpected argument \"x\""),
            ("check -c", "missing argument for option '-c'"),
            ("init -c x", "init reads no configuration"),
            ("--what", "invalid option '--what'"),
        ] {
            assert_eq!(words(line).unwrap_err(), wanted, "{line}");
        }
    }

    #[test]
    fn help_names_only_what_is_there() {
        assert!(!HELP.contains("HUP"));
    }
}
