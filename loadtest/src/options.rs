//! The command line: commands, options and their defaults.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::error::{Error, Result};

/// The targets that need no command line.
const TARGETS: [&str; 5] = ["direct", "relay", "haproxy", "nginx", "atlas"];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Cpu,
    Latency,
    Conn,
    Idle,
    Bulk,
    Syscalls,
    Crowd,
}

impl Measure {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Latency => "latency",
            Self::Conn => "conn",
            Self::Idle => "idle",
            Self::Bulk => "bulk",
            Self::Syscalls => "syscalls",
            Self::Crowd => "crowd",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [
            Self::Cpu,
            Self::Latency,
            Self::Conn,
            Self::Idle,
            Self::Bulk,
            Self::Syscalls,
            Self::Crowd,
        ]
        .into_iter()
        .find(|m| m.name() == name)
    }
}

/// A workload: a sysbench script with its protocol, or (text and prepared point selects only) the measuring client's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// sysbench's script.
    pub(crate) script: &'static str,
    pub(crate) is_prepared: bool,
}

const fn kind(name: &'static str, script: &'static str, is_prepared: bool) -> Kind {
    Kind {
        name,
        script,
        is_prepared,
    }
}

impl Kind {
    pub(crate) const POINT_TEXT: Self = kind("point-text", "oltp_point_select", false);
    pub(crate) const POINT_PREPARED: Self = kind("point-prepared", "oltp_point_select", true);

    const ALL: [Self; 6] = [
        Self::POINT_TEXT,
        Self::POINT_PREPARED,
        kind("read-only", "oltp_read_only", false),
        kind("read-write", "oltp_read_write", false),
        kind("read-only-prepared", "oltp_read_only", true),
        kind("read-write-prepared", "oltp_read_write", true),
    ];

    /// Whether the workload is one statement again and again.
    pub(crate) fn is_point(self) -> bool {
        self.script == "oltp_point_select"
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|k| k.name).join(", ");
        Self::ALL
            .into_iter()
            .find(|k| k.name == name)
            .ok_or_else(|| format!("{name} is not one of {}", names()))
    }
}

/// A proxy given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// A shell command with @PORT@, @HOST@ (to listen at), @DBHOST@, @DBPORT@ and @RUN@ (a folder of its own) to be filled in.
    pub(crate) command: String,
}

/// All that a run needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) measure: Measure,
    /// Names of targets; empty means all that are installed.
    pub(crate) targets: Vec<String>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) atlas: Option<PathBuf>,
    pub(crate) json: PathBuf,
    pub(crate) core: usize,
    pub(crate) is_pinned: bool,
    pub(crate) secs: u64,
    pub(crate) rounds: usize,
    pub(crate) threads: Vec<usize>,
    pub(crate) oltp_threads: Vec<usize>,
    pub(crate) kinds: Vec<Kind>,
    /// Rows in each of the four tables.
    pub(crate) rows: u32,
    pub(crate) max_foreign: f64,
    pub(crate) attempts: usize,
    pub(crate) rtts: Vec<Duration>,
    /// Statements a second over all targets; `None` is the rate that belongs to the number of threads.
    pub(crate) rate: Option<f64>,
    pub(crate) windows: usize,
    pub(crate) block: usize,
    pub(crate) clients: usize,
    pub(crate) is_login_only: bool,
    pub(crate) mib: u64,
    pub(crate) slow_mb_per_second: u64,
    pub(crate) statements: usize,
    /// Where the server runs, if not where everything else does.
    pub(crate) server_core: Option<usize>,
    /// How many connections Atlas may open to the server; `None` is as many as there are clients.
    pub(crate) server_connections: Option<usize>,
}

impl Options {
    fn new(measure: Measure, is_quick: bool) -> Self {
        let point = vec![Kind::POINT_TEXT, Kind::POINT_PREPARED];
        let full = Self {
            measure,
            targets: Vec::new(),
            peers: Vec::new(),
            atlas: None,
            json: PathBuf::from(format!("loadtest-{}.jsonl", measure.name())),
            core: 0,
            is_pinned: matches!(
                measure,
                Measure::Cpu | Measure::Latency | Measure::Syscalls | Measure::Crowd
            ),
            secs: match measure {
                Measure::Latency => 15,
                Measure::Crowd => 8,
                _ => 3,
            },
            rounds: if measure == Measure::Conn { 2 } else { 3 },
            threads: if measure == Measure::Cpu {
                vec![1, 8, 64]
            } else {
                vec![1, 8]
            },
            oltp_threads: vec![8],
            kinds: if measure == Measure::Cpu {
                Kind::ALL[..4].to_vec()
            } else {
                point.clone()
            },
            rows: 100_000,
            max_foreign: 0.10,
            attempts: 1,
            rtts: vec![Duration::from_micros(1000)],
            rate: None,
            windows: 20,
            block: 1,
            clients: if measure == Measure::Crowd {
                1000
            } else {
                10_000
            },
            is_login_only: false,
            mib: 1024,
            slow_mb_per_second: 64,
            statements: 2000,
            server_core: (measure == Measure::Crowd).then_some(1),
            server_connections: (measure == Measure::Crowd).then_some(50),
        };
        if !is_quick {
            return full;
        }
        Self {
            targets: vec!["direct".into(), "relay".into(), "atlas?".into()],
            secs: if measure == Measure::Latency { 3 } else { 1 },
            rounds: 1,
            threads: vec![if measure == Measure::Latency { 1 } else { 8 }],
            kinds: point,
            rows: 10_000,
            clients: if measure == Measure::Crowd { 100 } else { 1000 },
            mib: 32,
            statements: 500,
            server_connections: full.server_connections.map(|_| 8),
            ..full
        }
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Request {
    Help,
    Run(Box<Options>),
}

/// Reads the command line (without the program's name).
///
/// # Errors
/// A [`Error::Usage`] that names the option.
pub(crate) fn parse(arguments: &[std::ffi::OsString]) -> Result<Request> {
    let is_quick = arguments.iter().any(|a| a == "--quick");
    let mut rest = arguments.to_vec();
    let measure = match rest
        .first()
        .and_then(|a| a.to_str())
        .filter(|a| !a.starts_with('-'))
    {
        Some(name) => Measure::from_name(name)
            .ok_or_else(|| Error::Usage(format!("there is no command {name}")))?,
        None => Measure::Cpu,
    };
    if rest
        .first()
        .is_some_and(|a| a.to_str() == Some(measure.name()))
    {
        rest.remove(0);
    }
    let mut o = Options::new(measure, is_quick);
    let mut parser = lexopt::Parser::from_args(rest);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Long("quick") => {}
            Long("targets") => o.targets = list(&mut parser)?,
            Long("peer") => {
                let text = parser.value()?.string()?;
                let (name, command) = text
                    .split_once('=')
                    .ok_or_else(|| Error::Usage("--peer wants NAME=COMMAND".into()))?;
                o.peers.push(Peer {
                    name: name.to_owned(),
                    command: command.to_owned(),
                });
            }
            Long("atlas") => o.atlas = Some(parser.value()?.into()),
            Long("json") => o.json = parser.value()?.into(),
            Long("core") => o.core = parser.value()?.parse()?,
            Long("pin") => o.is_pinned = true,
            Long("no-pin") => o.is_pinned = false,
            Long("secs") => o.secs = at_least(1, parser.value()?.parse()?, "--secs")?,
            Long("rounds" | "runs") => {
                o.rounds = at_least(1, parser.value()?.parse()?, "--rounds")?
            }
            Long("threads") => o.threads = list(&mut parser)?,
            Long("oltp-threads") => o.oltp_threads = list(&mut parser)?,
            Long("kinds") => o.kinds = list(&mut parser)?,
            Long("rows") => o.rows = at_least(1000, parser.value()?.parse()?, "--rows")?,
            Long("max-foreign") => o.max_foreign = parser.value()?.parse()?,
            Long("attempts") => o.attempts = at_least(1, parser.value()?.parse()?, "--attempts")?,
            Long("rtt-us") => {
                o.rtts = list(&mut parser)?
                    .into_iter()
                    .map(Duration::from_micros)
                    .collect()
            }
            Long("rate") => o.rate = Some(at_least(1.0, parser.value()?.parse()?, "--rate")?),
            Long("windows") => o.windows = at_least(2, parser.value()?.parse()?, "--windows")?,
            Long("block") => o.block = at_least(1, parser.value()?.parse()?, "--block")?,
            Long("clients") => o.clients = at_least(1, parser.value()?.parse()?, "--clients")?,
            Long("server-core") => o.server_core = Some(parser.value()?.parse()?),
            Long("server-connections") => {
                o.server_connections = Some(at_least(
                    1,
                    parser.value()?.parse()?,
                    "--server-connections",
                )?)
            }
            Long("login-only") => o.is_login_only = true,
            Long("mib") => o.mib = at_least(1, parser.value()?.parse()?, "--mib")?,
            Long("slow-mb") => {
                o.slow_mb_per_second = at_least(1, parser.value()?.parse()?, "--slow-mb")?
            }
            Long("statements") => {
                o.statements = at_least(100, parser.value()?.parse()?, "--statements")?
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if o.threads
        .iter()
        .chain(&o.oltp_threads)
        .any(|t| !(1..=1024).contains(t))
    {
        return Err(Error::Usage(
            "--threads wants numbers from 1 to 1024".into(),
        ));
    }
    let is_known = |name: &str| TARGETS.contains(&name) || o.peers.iter().any(|p| p.name == name);
    if let Some(name) = o
        .targets
        .iter()
        .map(|t| t.strip_suffix('?').unwrap_or(t))
        .find(|t| !is_known(t))
    {
        return Err(Error::Usage(format!("there is no target {name}")));
    }
    if let Some(kind) = o
        .kinds
        .iter()
        .find(|k| measure != Measure::Cpu && !k.is_point())
    {
        return Err(Error::Usage(format!(
            "{} measures point queries only, not {}",
            measure.name(),
            kind.name
        )));
    }
    Ok(Request::Run(Box::new(o)))
}

fn list<T: FromStr>(parser: &mut lexopt::Parser) -> Result<Vec<T>>
where
    T::Err: Display,
{
    let text = parser.value()?.string()?;
    text.split(',')
        .map(|word| {
            word.parse()
                .map_err(|e: T::Err| Error::Usage(format!("{word}: {e}")))
        })
        .collect()
}

fn at_least<T: PartialOrd + Display + Copy>(least: T, value: T, option: &str) -> Result<T> {
    if value < least {
        Err(Error::Usage(format!("{option} wants at least {least}")))
    } else {
        Ok(value)
    }
}

pub(crate) const HELP: &str = "\
loadtest - measures Atlas beside a direct connection, a plain relay and other proxies, all in one interleaved run

    loadtest [COMMAND] [OPTIONS]

Commands:
    cpu        QPS, latency and CPU seconds per million statements, everything on one core (the default command)
    latency    added latency at a fixed rate and a distance, query by query in random order (needs root)
    conn       connect + authenticate + SELECT 1 + close, per second
    idle       resident memory per idle client
    bulk       a large result to a fast and to a slow reader: MB/s, first row, peak memory
    syscalls   system calls of the proxy per statement (needs strace)
    crowd      many clients on few server connections: QPS beside the same clients connected directly

Options of all commands:
    --quick                a smoke test of a few seconds: direct, relay, and Atlas where it is built
    --targets LIST         of direct, relay, haproxy, nginx, atlas and peers' names; default: all that are installed;
                           a name with ? is left out where it is not installed
    --peer NAME=COMMAND    another proxy: a shell command with @HOST@ @PORT@ (listen) @DBHOST@ @DBPORT@ @RUN@ (a folder)
    --atlas FILE           the atlas binary (default: beside this program)
    --json FILE            where to write one JSON line per sample (default: loadtest-COMMAND.jsonl)
    --core N               the core that everything is pinned to (default 0)
    --pin, --no-pin        pin client, proxy and server to that core (default: cpu, latency, syscalls, crowd yes; others no)
    --secs N               length of one sample (default 3; latency 15, crowd 8)
    --rounds N             samples of each target (default 3; conn 2)
    --rows N               rows in each of the four tables (default 100000)
cpu:
    --kinds LIST           of point-text, point-prepared, read-only, read-write, read-only-prepared, read-write-prepared
    --threads LIST         client threads of point queries (default 1,8,64)
    --oltp-threads LIST    client threads of the others (default 8)
    --max-foreign SHARE    CPU share of other programs above which a sample is suspect (default 0.10)
    --attempts N           how often such a sample is repeated; the least disturbed one counts (default 1)
latency:
    --kinds LIST           of point-text, point-prepared
    --threads LIST         (default 1,8)
    --rtt-us LIST          round trips between client and server (default 1000)
    --rate N               statements a second over all targets (default 400 with one thread, else 1000)
    --windows N            windows over which differences are averaged (default 20)
    --block N              queries in a row on one target (default 1, the strict setting)
conn:   --threads LIST     (default 1,8)
idle:   --clients N        (default 10000)
        --login-only       clients that never ran a statement
bulk:   --mib N            size of the result (default 1024)
        --slow-mb N        what the slow reader takes, MB/s (default 64)
syscalls: --statements N   (default 2000)
crowd:  --clients N        (default 1000)
        --server-connections N   what Atlas may open (default 50)
        --server-core N    the server's core: the server is another machine as a rule (default 1)
";

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Result<Options> {
        let words: Vec<_> = words.split_ascii_whitespace().map(Into::into).collect();
        match parse(&words)? {
            Request::Run(o) => Ok(*o),
            Request::Help => Err(Error::Usage("help".into())),
        }
    }

    #[test]
    fn defaults_follow_the_command() {
        let o = options("").expect("no options");
        assert_eq!(
            (o.measure, o.secs, o.rounds, o.threads),
            (Measure::Cpu, 3, 3, vec![1, 8, 64])
        );
        let o = options("latency").expect("a command");
        assert_eq!(
            (o.secs, o.rtts, o.is_pinned),
            (15, vec![Duration::from_millis(1)], true)
        );
        assert!(!options("bulk").expect("a command").is_pinned);
    }

    #[test]
    fn quick_is_a_set_of_defaults() {
        let o = options("cpu --secs 2 --quick").expect("quick");
        assert_eq!((o.secs, o.rounds, o.threads), (2, 1, vec![8]));
        assert_eq!(o.targets, ["direct", "relay", "atlas?"]);
        assert!(options("--targets haproxy?,x --peer x=y").is_ok());
    }

    #[test]
    fn lists_and_peers() {
        let o = options("cpu --threads 2,4 --kinds read-write,point-text --targets direct,relay")
            .expect("lists");
        assert_eq!(
            (o.threads, o.kinds.len(), o.targets.len()),
            (vec![2, 4], 2, 2)
        );
        let o = options("--peer x=run-x=1").expect("a peer");
        assert_eq!(
            o.peers,
            [Peer {
                name: "x".into(),
                command: "run-x=1".into()
            }]
        );
    }

    #[test]
    fn mistakes_are_told() {
        for wrong in [
            "nothing",
            "--no-such",
            "cpu --threads 0",
            "cpu --threads x",
            "--kinds points",
            "--secs 0",
            "--peer x",
            "--targets direct,relai",
            "latency --kinds read-only",
            "cpu more",
        ] {
            assert!(matches!(options(wrong), Err(Error::Usage(_))), "{wrong}");
        }
        for command in ["cpu", "latency", "conn", "idle", "bulk", "syscalls"] {
            assert!(
                HELP.contains(&format!("\n    {command} ")),
                "{command} is not in the help"
            );
        }
    }
}
