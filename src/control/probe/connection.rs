//! A check's connection to a server: log-in by the monitor's account, and its questions. What the answers mean for the server
//! is the prober's.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::Fault;
use super::link::{self, Link};
use super::node::Held;
use super::{heartbeat, part, replication};
use crate::config::{BackendTlsMode, HostAddress, MonitorConfig};
use crate::pool::{Beat, Replication, ServerFacts, Sight};
use crate::session::{Credentials, Failure, Ready, Step, TlsWish, Upstream, Wish};
use crate::wire::{Capabilities, ColumnDef, Command, ErrPacket, PacketWriter, Reader, TextRow};
use crate::worker::tls::BackendTls;

/// Columns and rows that an answer may have. The replication of a server has some sixty columns, and a row for each source.
const COLUMNS_MAX: u64 = 500;
const ROWS_MAX: usize = 256;

/// Where and how to connect.
pub(in crate::control) struct Target<'a> {
    pub(in crate::control) address: &'a HostAddress,
    /// What its name was resolved to; not looked at for other addresses.
    pub(in crate::control) resolved: &'a [SocketAddr],
    pub(in crate::control) tls_mode: BackendTlsMode,
    pub(in crate::control) tls: Option<&'a BackendTls>,
    pub(in crate::control) monitor: &'a MonitorConfig,
}

/// A connection by the monitor's account.
pub(in crate::control) struct Connection {
    link: Link,
    pub(super) facts: ServerFacts,
    /// Where it leads; nothing for unix sockets.
    pub(super) peer: Option<SocketAddr>,
    /// It must not be asked again.
    pub(super) is_spent: bool,
    /// It was asked before.
    is_known: bool,
    /// The account may not ask for the replication group.
    is_group_hidden: bool,
    /// It was told the time zone for heartbeats.
    is_zone_set: bool,
    /// The node that it makes this instance.
    pub(super) node: Option<Held>,
}

/// What a server answers to a statement.
pub(in crate::control) enum Answer {
    /// Names of the columns, and the rows.
    Rows(Vec<Vec<u8>>, Vec<Vec<Option<Vec<u8>>>>),
    /// It is done; there are no rows.
    Done,
    /// It refuses.
    Refused { code: u16, message: String },
}

/// What a check learns.
#[derive(Debug)]
pub(super) struct Findings {
    /// Whether the server's default sql_mode makes `"` an identifier quote; `None` when it does not say.
    pub(super) ansi_quotes: Option<bool>,
    /// Whether it refuses values that a column cannot hold.
    pub(super) is_strict: Option<bool>,
    /// Whether it says something of its own to each new connection.
    pub(super) init_connect: bool,
    /// After how long it closes idle connections, when it was asked.
    pub(super) wait_timeout: Option<Duration>,
    /// Its replication, if it was asked, and why it does not tell.
    pub(super) replication: Option<(Replication, String)>,
    /// Its heartbeat, if it was asked, or why it shows none.
    pub(super) heartbeat: Option<Result<Beat, String>>,
    /// Its part in its group.
    pub(super) sight: Sight,
}

/// What a check asks beside the settings.
#[derive(Debug)]
pub(super) struct Questions {
    /// From where it replicates and how far it is behind.
    pub(super) replication: bool,
    /// Its replication group, of servers that know such.
    pub(super) group: bool,
    /// The statement for its heartbeat.
    pub(super) heartbeat: Option<String>,
}

impl Connection {
    /// Logs in, by each of the listed passwords in turn.
    pub(super) fn open(target: &Target<'_>, deadline: Instant) -> Result<Self, Fault> {
        let mut attempt = 0;
        loop {
            match Self::open_by(target, attempt, deadline) {
                Err(Fault::Refused { code: 1045, .. })
                    if attempt + 1 < target.monitor.passwords.len() =>
                {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    fn open_by(target: &Target<'_>, attempt: usize, deadline: Instant) -> Result<Self, Fault> {
        let credentials = Credentials {
            user: target.monitor.user.clone().into_bytes(),
            passwords: target.monitor.passwords.clone().into(),
        };
        let (link, peer, ready) = enter(target, Wish::bare, credentials, attempt, deadline)?;
        Ok(Self {
            link,
            facts: ready.facts,
            peer,
            is_spent: false,
            is_known: false,
            is_group_hidden: false,
            is_zone_set: false,
            node: None,
        })
    }

    /// Asks what a check wants to know. That it answers is the better part of it.
    pub(super) fn examine(
        &mut self,
        questions: &Questions,
        deadline: Instant,
    ) -> Result<Findings, Fault> {
        let settings = self.ask(part::settings(&self.facts), deadline)?;
        // Of a server that is about to go.
        if let Answer::Refused {
            code: super::SHUTDOWN,
            message,
        } = settings
        {
            return Err(Fault::Down(message));
        }
        let settings = part::read_settings(&self.facts, &settings);
        let mut sight = settings.sight;
        sight.is_continuous = std::mem::replace(&mut self.is_known, true);
        let mut replication = None;
        if questions.replication {
            let answer = self.ask(replication::question(&self.facts), deadline);
            let (said, why) = match answer {
                Ok(answer) => {
                    sight.sources = part::sources(&answer);
                    replication::read(&answer)
                }
                Err(Fault::Down(why)) => {
                    // An answer may still come, and would be taken for the next one's.
                    self.is_spent = true;
                    (Replication::Silent, why)
                }
                Err(other) => return Err(other),
            };
            let is_known = !matches!(said, Replication::Hidden | Replication::Silent);
            // One that takes writes may be a replica all the same.
            sight.is_read_only = sight.is_read_only.filter(|closed| *closed || is_known);
            replication = Some((said, why));
        }
        if questions.group
            && !self.is_spent
            && !self.is_group_hidden
            && part::has_groups(&self.facts)
        {
            let answer = self.ask(part::GROUP, deadline)?;
            self.is_group_hidden = matches!(answer, Answer::Refused { .. });
            sight.view = part::view(&answer, &sight.identity);
        }
        let heartbeat = match &questions.heartbeat {
            Some(question) if !self.is_spent => Some(self.heartbeat(question, deadline)?),
            Some(_) => Some(Err("it does not answer in time".to_owned())),
            None => None,
        };
        Ok(Findings {
            ansi_quotes: settings.ansi_quotes,
            is_strict: settings.is_strict,
            init_connect: settings.init_connect,
            wait_timeout: settings.wait_timeout,
            replication,
            heartbeat,
            sight,
        })
    }

    fn heartbeat(
        &mut self,
        question: &str,
        deadline: Instant,
    ) -> Result<Result<Beat, String>, Fault> {
        if !std::mem::replace(&mut self.is_zone_set, true) {
            self.ask(heartbeat::ZONE, deadline)?;
        }
        Ok(heartbeat::read(&self.ask(question, deadline)?))
    }

    /// Leaves as one should, or the server counts an aborted client.
    pub(in crate::control) fn quit(mut self, deadline: Instant) {
        let mut packet = Vec::new();
        let mut writer = PacketWriter::begin(&mut packet, 0);
        writer.u8(Command::Quit.code());
        writer.finish();
        let _ = self.link.send(&packet, deadline);
    }

    pub(in crate::control) fn ask(
        &mut self,
        sql: &str,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        self.ask_many(sql, ROWS_MAX, deadline)
    }

    /// The same for an answer of up to so many rows.
    ///
    /// # Errors
    /// As there.
    pub(in crate::control) fn ask_many(
        &mut self,
        sql: &str,
        rows_max: usize,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let mut packet = Vec::new();
        let mut writer = PacketWriter::begin(&mut packet, 0);
        writer.u8(Command::Query.code());
        writer.bytes(sql.as_bytes());
        writer.finish();
        self.link.send(&packet, deadline)?;
        let first = self.link.packet(deadline)?;
        match first.first() {
            Some(0) => return Ok(Answer::Done),
            Some(0xff) => return Ok(refusal(&first)),
            _ => {}
        }
        // Count, definitions, EOF, rows, EOF: the connection was opened without DEPRECATE_EOF.
        let count = Reader::new("column count", &first)
            .lenenc("columns")
            .ok()
            .filter(|count| (1..=COLUMNS_MAX).contains(count))
            .ok_or("it gives no answer that can be read")?;
        let mut names = Vec::new();
        for _ in 0..count {
            let packet = self.link.packet(deadline)?;
            let column =
                ColumnDef::parse(&packet, Capabilities::NONE).map_err(|error| error.to_string())?;
            names.push(column.name.to_vec());
        }
        self.link.packet(deadline)?;
        let mut rows = Vec::new();
        loop {
            let packet = self.link.packet(deadline)?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => return Ok(Answer::Rows(names, rows)),
                Some(0xff) => return Ok(refusal(&packet)),
                _ if rows.len() >= rows_max => return Err("it gives rows without end".into()),
                _ => {}
            }
            let row: Result<Vec<_>, _> = TextRow::new(&packet)
                .map(|cell| cell.map(|cell| cell.map(<[u8]>::to_vec)))
                .collect();
            rows.push(row.map_err(|error| error.to_string())?);
        }
    }
}

/// Connects and logs in by one of the passwords; gives the connection, where it leads, and what the server said.
pub(in crate::control) fn enter(
    target: &Target<'_>,
    wish: impl FnOnce(TlsWish, bool) -> Wish,
    credentials: Credentials,
    attempt: usize,
    deadline: Instant,
) -> Result<(Link, Option<SocketAddr>, Box<Ready>), Fault> {
    let (stream, peer) = match target.address {
        HostAddress::Unix(path) => (link::unix(path, deadline)?, None),
        HostAddress::Ip(address) => connect(&[*address], deadline)?,
        HostAddress::Name(..) => connect(target.resolved, deadline)?,
    };
    let tls = match target.tls_mode {
        BackendTlsMode::Off => TlsWish::No,
        BackendTlsMode::Preferred => TlsWish::IfOffered,
        BackendTlsMode::Required | BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity => {
            TlsWish::Required
        }
    };
    let wish = wish(tls, stream.is_local());
    let mut upstream = Upstream::new(wish, credentials, attempt);
    let mut link = Link::new(stream);
    loop {
        let (consumed, step) = upstream.handle(&link.received);
        link.received.drain(..consumed);
        match step {
            Step::Wait if consumed == 0 => link.receive(deadline)?,
            Step::Wait => {}
            Step::Send(packets) => link.send(&packets, deadline)?,
            Step::SendThenTls(packets) => {
                link.send(&packets, deadline)?;
                start_tls(target, &mut link, deadline)?;
                if let Step::Send(packets) = upstream.tls_ready() {
                    link.send(&packets, deadline)?;
                }
            }
            Step::Ready(ready) => return Ok((link, peer, ready)),
            Step::Failed(Failure::Refused { code, message, .. }) => {
                return Err(Fault::Refused { code, message });
            }
            Step::Failed(Failure::Unreachable(why)) => return Err(Fault::Down(why)),
            Step::Failed(Failure::NoHost | Failure::Incompatible | Failure::Exhausted(_)) => {
                return Err(Fault::Down("it cannot be used".to_owned()));
            }
        }
    }
}

fn refusal(packet: &[u8]) -> Answer {
    match ErrPacket::parse(packet) {
        Ok(error) => Answer::Refused {
            code: error.code,
            message: String::from_utf8_lossy(error.message).into_owned(),
        },
        Err(error) => Answer::Refused {
            code: 0,
            message: error.to_string(),
        },
    }
}

fn connect(
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<(link::Stream, Option<SocketAddr>), Fault> {
    let (stream, peer) = link::tcp(addresses, deadline)?;
    Ok((stream, Some(peer)))
}

fn start_tls(target: &Target<'_>, link: &mut Link, deadline: Instant) -> Result<(), Fault> {
    let name = match target.address {
        HostAddress::Name(name, _) => name.clone(),
        HostAddress::Ip(address) => address.ip().to_string(),
        HostAddress::Unix(_) => "localhost".to_owned(),
    };
    let tls = target.tls.ok_or("no TLS is configured for the group")?;
    let session = tls.session(&name).map_err(|error| error.to_string())?;
    link.start_tls(session, deadline)?;
    Ok(())
}
