//! Words to commands: the original Atlas's and this one's, in any case, with or without `;`, with comments and blanks anywhere.

mod arguments;

use super::help::nearest;
use super::local::{Facts, answer_driver};
use super::table::{Answer, Refusal};
use super::words::{Word, Words};
use crate::auth::Secret;
use crate::config::HostAddress;

/// What an operator wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The list of commands.
    Help,
    /// The original's list of servers.
    Backends,
    /// No new work for a server, or work again.
    SetState(BackendRef, State),
    /// A server more.
    AddBackend {
        /// Its group; needed when there are several.
        group: Option<String>,
        /// The original's MASTER, not SLAVE.
        is_primary: bool,
        /// Where it is.
        address: HostAddress,
        /// Its share of the reads.
        weight: u32,
    },
    /// A server less.
    RemoveBackend {
        /// Its group, for `REMOVE GBACKEND`.
        group: Option<String>,
        /// Which.
        backend: BackendRef,
    },
    /// Another share of the reads.
    SetWeight(BackendRef, u32),
    /// Another primary.
    SwitchPrimary {
        /// The group.
        group: String,
        /// The server.
        to: HostAddress,
    },
    /// The networks that may connect.
    Clients,
    /// A network more.
    AddClient(String),
    /// A network less.
    RemoveClient(String),
    /// The accounts.
    Accounts,
    /// An account more.
    AddAccount {
        /// Its group, when it is named.
        group: Option<String>,
        /// Its name.
        name: String,
        /// Its password, clear or encrypted.
        password: Secret,
        /// `ADD ENPWD`, `ADD GENPWD`.
        is_encrypted: bool,
    },
    /// An account less.
    RemoveAccount(String),
    /// The configuration in force to its file.
    SaveConfig,
    /// The file to the configuration in force.
    ReloadConfig {
        /// Rows of sharded tables may lie elsewhere by it.
        is_forced: bool,
    },
    /// Atlas's version.
    Version,
    /// A table of what is.
    Show(Report),
    /// Settings of servers that do not fit.
    CheckBackends,
    /// Who is connected to the servers without this instance.
    CheckConnections,
    /// Where a statement would go.
    ExplainRoute {
        /// The account that would send it; the first one unless named.
        user: Option<String>,
        /// The statement.
        sql: String,
    },
    /// End a client, or its statement.
    Kill {
        /// Its id.
        id: u32,
        /// Only its statement.
        query_only: bool,
    },
    /// Stop, when transactions have ended.
    Drain,
    /// Stop at once.
    Stop,
}

impl Command {
    /// Whether only operators may say it.
    #[must_use]
    pub fn needs_operator(&self) -> bool {
        match self {
            Self::Help
            | Self::Backends
            | Self::Clients
            | Self::Accounts
            | Self::Version
            | Self::Show(_)
            | Self::CheckBackends
            | Self::CheckConnections
            | Self::ExplainRoute { .. } => false,
            Self::SetState(..)
            | Self::AddBackend { .. }
            | Self::RemoveBackend { .. }
            | Self::SetWeight(..)
            | Self::SwitchPrimary { .. }
            | Self::AddClient(_)
            | Self::RemoveClient(_)
            | Self::AddAccount { .. }
            | Self::RemoveAccount(_)
            | Self::SaveConfig
            | Self::ReloadConfig { .. }
            | Self::Kill { .. }
            | Self::Drain
            | Self::Stop => true,
        }
    }
}

/// What an operator does to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It gets work again, when checks find it well.
    Online,
    /// It gets no new work.
    Offline,
}

/// Which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendRef {
    /// By the number in `SELECT * FROM backends`.
    Id(u32),
    /// By its address.
    Address(HostAddress),
}

/// A table of what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// Servers.
    Backends,
    /// Server connections.
    Pools,
    /// Clients.
    Sessions,
    /// Clients, as servers list theirs.
    ProcessList,
    /// Sessions that keep their server connection.
    Pins,
    /// Kinds of statements.
    Digests,
    /// Where statements went.
    Routes,
    /// Who uses the instance.
    Accounts,
    /// Rules.
    Rules,
    /// Sharded tables.
    Tables,
    /// What happened.
    Events,
}

/// What a text says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Something to do.
    Do(Command),
    /// Something that is answered without looking at anything.
    Answered(Answer),
}

/// Bytes of a command. More is no command.
const LENGTH_MAX: usize = 64 * 1024;
/// Words of a command that are looked at; the lists of drivers are the longest.
const WORDS_MAX: usize = 500;

/// Reads a command.
///
/// # Errors
/// It is none; the text says what it might have meant.
pub fn parse(text: &str) -> Result<Command, Refusal> {
    match read(text, &Facts::default())? {
        Said::Do(command) => Ok(command),
        Said::Answered(_) => Err(unknown(text)),
    }
}

/// Reads what a client says: a command, or one of the questions that drivers ask.
pub(super) fn read(text: &str, facts: &Facts<'_>) -> Result<Said, Refusal> {
    if text.len() > LENGTH_MAX {
        return Err(unknown(""));
    }
    if let Some(command) = raw(text) {
        return command.map(Said::Do);
    }
    let mut words: Vec<Word<'_>> = Words::new(text).take(WORDS_MAX).collect();
    while words.last() == Some(&Word::Sign(';')) {
        words.pop();
    }
    if words.contains(&Word::Sign(';')) {
        return Err(Refusal::new(
            "one command at a time: there is another one behind the `;`",
        ));
    }
    match command(&words) {
        Some(command) => command.map(Said::Do),
        None => match answer_driver(&words, facts) {
            Some(answer) => Ok(Said::Answered(answer)),
            None => Err(unknown(text)),
        },
    }
}

fn unknown(text: &str) -> Refusal {
    let mut told = "use 'SELECT * FROM help' to see the supported commands".to_owned();
    if let Some(near) = nearest(text) {
        told.push_str(&format!("; did you mean '{near}'?"));
    }
    Refusal::new(told)
}

/// Commands whose last part is taken as it stands: passwords and statements.
fn raw(text: &str) -> Option<Result<Command, Refusal>> {
    let mut words = Words::new(text);
    let (first, second) = (words.next()?, words.next()?);
    let rest = || {
        let rest = words.rest().trim();
        rest.strip_suffix(';').unwrap_or(rest).trim_end()
    };
    if first.is("add") && (second.is("pwd") || second.is("enpwd")) {
        return Some(account(None, rest(), second.is("enpwd")));
    }
    if first.is("add") && (second.is("gpwd") || second.is("genpwd")) {
        let group = words.next().and_then(Word::text).map(str::to_owned);
        let rest = words.rest().trim();
        let rest = rest.strip_suffix(';').unwrap_or(rest).trim_end();
        return Some(account(group, rest, second.is("genpwd")));
    }
    if first.is("explain") && second.is("route") {
        let mut ahead = words.clone();
        let mut user = None;
        if ahead.next().is_some_and(|word| word.is("for")) {
            user = ahead.next().and_then(Word::text).map(str::to_owned);
            words = ahead;
        }
        let sql = words.rest().trim();
        if sql.is_empty() {
            return Some(Err(Refusal::new(
                "EXPLAIN ROUTE needs a statement: EXPLAIN ROUTE [FOR user] statement",
            )));
        }
        return Some(Ok(Command::ExplainRoute {
            user,
            sql: sql.to_owned(),
        }));
    }
    None
}

fn account(group: Option<String>, text: &str, is_encrypted: bool) -> Result<Command, Refusal> {
    // As in the original, the last colon; base64 has none, and `enc:v1:` is known by its first letters.
    let split = match text.find(":enc:") {
        Some(at) if is_encrypted => Some((text.get(..at), text.get(at + 1..))),
        _ => text
            .rsplit_once(':')
            .map(|(name, password)| (Some(name), Some(password))),
    };
    let Some((Some(name), Some(password))) = split else {
        return Err(Refusal::new("an account is user:password"));
    };
    // Taken by their last colon these would be accounts of other names, with passwords that are not meant.
    if !is_encrypted && text.contains(":enc:v1:") {
        return Err(Refusal::new("an encrypted password is added by ADD ENPWD"));
    }
    if !is_encrypted && name.ends_with(":env") {
        return Err(Refusal::new(
            "env: is for passwords in the file: ADD PWD takes them in clear",
        ));
    }
    let unquoted = |text: &str| -> String {
        let text = text.trim();
        let inside = ['\'', '"']
            .iter()
            .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
        inside.unwrap_or(text).to_owned()
    };
    // Quoted as a whole, `'user:password'`, or each part by itself.
    let (name, password) = match (name.chars().next(), password.chars().last()) {
        (Some(open @ ('\'' | '"')), Some(close))
            if open == close && name.matches(open).count() == 1 =>
        {
            (name.get(1..), password.get(..password.len() - 1))
        }
        _ => (Some(name), Some(password)),
    };
    let (name, password) = (name.unwrap_or_default(), password.unwrap_or_default());
    Ok(Command::AddAccount {
        group,
        name: unquoted(name),
        password: Secret::new(unquoted(password)),
        is_encrypted,
    })
}

/// A command that is made of words; nothing when it is none.
fn command(words: &[Word<'_>]) -> Option<Result<Command, Refusal>> {
    let is = |pattern: &[&str]| {
        let is_one = |(word, want): (&Word<'_>, &&str)| word.is(want);
        words.len() == pattern.len()
            && match (words, pattern) {
                // Tools put the names of tables into quotes.
                ([words @ .., Word::Quoted(table)], ["select", .., want]) => {
                    table.eq_ignore_ascii_case(want) && words.iter().zip(pattern).all(is_one)
                }
                _ => words.iter().zip(pattern).all(is_one),
            }
    };
    let fixed: &[(&[&str], Command)] = &[
        (&["select", "*", "from", "help"], Command::Help),
        (&["help"], Command::Help),
        (&["select", "*", "from", "backends"], Command::Backends),
        (&["select", "*", "from", "clients"], Command::Clients),
        (&["select", "*", "from", "pwds"], Command::Accounts),
        (&["select", "version"], Command::Version),
        (&["save", "config"], Command::SaveConfig),
        (
            &["reload", "config"],
            Command::ReloadConfig { is_forced: false },
        ),
        (
            &["reload", "config", "force"],
            Command::ReloadConfig { is_forced: true },
        ),
        (&["show", "backends"], Command::Show(Report::Backends)),
        (&["show", "pools"], Command::Show(Report::Pools)),
        (&["show", "sessions"], Command::Show(Report::Sessions)),
        (&["show", "processlist"], Command::Show(Report::ProcessList)),
        (
            &["show", "full", "processlist"],
            Command::Show(Report::ProcessList),
        ),
        (&["show", "pins"], Command::Show(Report::Pins)),
        (&["show", "digests"], Command::Show(Report::Digests)),
        (&["show", "routes"], Command::Show(Report::Routes)),
        (&["show", "accounts"], Command::Show(Report::Accounts)),
        (&["show", "rules"], Command::Show(Report::Rules)),
        (&["show", "tables"], Command::Show(Report::Tables)),
        (&["show", "events"], Command::Show(Report::Events)),
        (&["check", "backends"], Command::CheckBackends),
        (&["check", "connections"], Command::CheckConnections),
        (&["drain"], Command::Drain),
        (&["shutdown"], Command::Drain),
        (&["shutdown", "normal"], Command::Drain),
        (&["shutdown", "immediate"], Command::Stop),
    ];
    if let Some((_, command)) = fixed.iter().find(|(pattern, _)| is(pattern)) {
        return Some(Ok(command.clone()));
    }
    arguments::command(words)
}

#[cfg(test)]
mod tests;
