//! What Atlas itself says when something goes wrong: the one place with codes, SQL states and texts of its errors.
//! The table in product.md ("Errors that Atlas itself raises") is followed; the rest are the codes that a server uses.

use crate::shard::Refused;
use crate::wire::{Capabilities, ErrPacket};

/// An error that Atlas raises towards a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Log-in refused.
    #[error("{0}")]
    AccessDenied(String),
    /// The address may not connect at all.
    #[error("Host '{0}' is not allowed to connect to this MySQL server")]
    HostNotAllowed(String),
    /// `server.max_connections` reached.
    #[error("Too many connections")]
    TooManyClients,
    /// The account's own `max_connections` reached.
    #[error("User '{user}' has exceeded the 'max_connections' resource (current value: {limit})")]
    TooManyForAccount {
        /// The account.
        user: String,
        /// Its limit.
        limit: usize,
    },
    /// A log-in packet that cannot be read, is too long, or comes out of turn.
    #[error("Bad handshake")]
    BadHandshake,
    /// A client from before 4.1.
    #[error(
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client"
    )]
    OldClient,
    /// The instance takes TLS only.
    #[error(
        "Connections using insecure transport are prohibited while --require_secure_transport=ON."
    )]
    TlsRequired,
    /// The session's account, or the address of its client, is configured no more.
    #[error(
        "Proxy Warning - this account or address was taken out of the configuration; the session ends"
    )]
    Dismissed,
    /// A command's packet does not have sequence id 0.
    #[error("Got packets out of order")]
    OutOfOrder,
    /// A command that no server answers here.
    #[error("Unknown command")]
    UnknownCommand,
    /// A command whose packet cannot be read.
    #[error("Malformed communication packet")]
    MalformedCommand,
    /// Replication and cloning do not go through a proxy.
    #[error(
        "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s) for this operation"
    )]
    ReplicationRefused,
    /// An unknown prepared statement.
    #[error("Unknown prepared statement handler ({id}) given to {command}")]
    UnknownStatement {
        /// The client's id.
        id: u32,
        /// As servers name the caller.
        command: &'static str,
    },
    /// An execution without parameter types that is too long to have them put in.
    #[error(
        "Proxy Warning - the parameter types of this statement are not known on its server connection; send them with the execution"
    )]
    TypesUnknown,
    /// An execution whose client has never told the types, as MariaDB says it of one that comes over the wire. It is not asked: some of
    /// its versions read what is not there, and end.
    #[error("Incorrect arguments to mysqld_stmt_execute")]
    NeverTyped,
    /// No client with that id.
    #[error("Unknown thread id: {0}")]
    UnknownThread(u32),
    /// The client with that id belongs to another account.
    #[error("You are not owner of thread {0}")]
    NotOwner(u32),
    /// The session was ended by its own KILL, as MariaDB says it.
    #[error("Connection was killed")]
    Killed,
    /// The session was killed by its own KILL or another's.
    #[error("Query execution was interrupted")]
    Interrupted,
    /// The primary could not be reached within `primary_wait`.
    #[error("Proxy Warning - no primary in group {group}: {why}")]
    NoPrimary {
        /// The group.
        group: String,
        /// What was tried.
        why: String,
    },
    /// No replica may serve the read and the policy forbids the primary.
    #[error("Proxy Warning - no replica in group {group}: {why}")]
    NoReplica {
        /// The group.
        group: String,
        /// What was tried.
        why: String,
    },
    /// No socket for a server connection.
    #[error("Proxy Warning - no server connection: {0}")]
    Exhausted(String),
    /// A hint for a group that the session is not in.
    #[error(
        "Proxy Warning - the hint names group {asked}, but this account's statements run in group {own}"
    )]
    OtherGroup {
        /// The hint's group.
        asked: String,
        /// The account's.
        own: String,
    },
    /// A statement for another group than the one that the transaction is in.
    #[error(
        "Proxy Warning - sharding dbgroup is in trans, transaction will not work across multi dbgroup"
    )]
    OtherGroupInTransaction,
    /// A statement for another group than the one in which the session has what it would lose by leaving.
    #[error(
        "Proxy Warning - this session holds {held} in group {group}, and the statement belongs in group {asked}"
    )]
    Tied {
        /// What it holds.
        held: &'static str,
        /// Where.
        group: String,
        /// Where it is to go.
        asked: String,
    },
    /// A rule, `[safety]` or a limit refuses the statement.
    #[error("Proxy Warning - {0}")]
    Ruled(String),
    /// A statement ran for longer than it may, as the server says it of its own limit; and which limit it was.
    #[error("{}: {limit}", timed_out_words(*.is_mysql))]
    TimedOut {
        /// As MySQL says it.
        is_mysql: bool,
        /// How long it may run, and who says so.
        limit: String,
    },
    /// A statement about sharded tables that is not run.
    #[error("{0}")]
    Sharded(Refused),
    /// A server connection went away while a statement was on it.
    #[error("Lost connection to MySQL server during query ({0})")]
    Lost(String),
    /// The decision log cannot be written, and may have it all the same.
    #[error(
        "Proxy Warning - the decision log cannot be written: whether transaction {0} is done shows when Atlas is started again"
    )]
    Undecided(String),
    /// The statement asks about one before it, whose connection is gone.
    #[error(
        "Proxy Warning - the connection that ran the previous statement was lost, so what it knew is lost too"
    )]
    LostPrevious,
    /// It may be one of two numbers.
    #[error(
        "Proxy Warning - FOUND_ROWS() is not known: the statement before may have left it as it was, on a connection that others had before"
    )]
    FoundRowsInDoubt,
    /// The statement asks about one before it, which ran on a replica, and must itself run on the primary.
    #[error(
        "Proxy Warning - this statement belongs on the primary, but asks about the previous one, which a replica answered; put /*master*/ into that one"
    )]
    PreviousElsewhere,
    /// A server refused the connection or an injected statement; its own words.
    #[error("{message}")]
    Server {
        /// The server's code.
        code: u16,
        /// The server's SQL state.
        sqlstate: [u8; 5],
        /// The server's text.
        message: String,
    },
    /// The server cannot do what the client was promised.
    #[error(
        "Proxy Warning - server {0} lacks abilities that this session was given at log-in; connect again"
    )]
    Incompatible(String),
    /// The last-moment check found that the host is no longer the primary.
    #[error(
        "Proxy Warning - {0} is no longer the primary of its group; the statement was not sent"
    )]
    NotPrimary(String),
    /// The server sent what no server sends.
    #[error("Proxy Warning - {0}")]
    BadReply(String),
    /// The session was idle for longer than it said, as MySQL says it.
    #[error(
        "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior."
    )]
    Inactive,
    /// The instance is going down.
    #[error("Server shutdown in progress")]
    Draining,
}

impl Fault {
    /// Error code and SQL state.
    #[must_use]
    pub fn code(&self) -> (u16, [u8; 5]) {
        match self {
            Self::AccessDenied(_) => (1045, *b"28000"),
            Self::HostNotAllowed(_) => (1130, *b"HY000"),
            Self::TooManyClients => (1040, *b"08004"),
            Self::TooManyForAccount { .. } => (1226, *b"42000"),
            Self::BadHandshake => (1043, *b"08S01"),
            Self::OldClient => (1251, *b"08004"),
            Self::TlsRequired => (3159, *b"HY000"),
            Self::OutOfOrder => (1156, *b"08S01"),
            Self::UnknownCommand => (1047, *b"08S01"),
            Self::MalformedCommand => (1835, *b"HY000"),
            Self::ReplicationRefused => (1227, *b"42000"),
            Self::UnknownStatement { .. } => (1243, *b"HY000"),
            Self::NeverTyped => (1210, *b"HY000"),
            Self::UnknownThread(_) => (1094, *b"HY000"),
            Self::NotOwner(_) => (1095, *b"HY000"),
            Self::Killed => (1927, *b"70100"),
            Self::Interrupted => (1317, *b"70100"),
            Self::TimedOut { is_mysql: true, .. } => (3024, *b"HY000"),
            Self::TimedOut {
                is_mysql: false, ..
            } => (1969, *b"70100"),
            Self::Exhausted(_) => (1203, *b"42000"),
            // Not 2013, which clients say themselves when their own connection is lost: MariaDB's C library takes no code of that
            // range from a server, and shows such a packet as malformed. Drivers and pools know both, this code and this state.
            Self::Lost(_) => (1927, *b"08S01"),
            Self::Dismissed => (1105, *b"HY000"),
            Self::OtherGroupInTransaction => (1179, *b"25000"),
            Self::Draining => (1053, *b"08S01"),
            Self::Inactive => (4031, *b"HY000"),
            Self::Server { code, sqlstate, .. } => (*code, *sqlstate),
            Self::NoPrimary { .. }
            | Self::NoReplica { .. }
            | Self::LostPrevious
            | Self::FoundRowsInDoubt
            | Self::Undecided(_)
            | Self::PreviousElsewhere
            | Self::TypesUnknown
            | Self::OtherGroup { .. }
            | Self::Ruled(_)
            | Self::Sharded(_)
            | Self::Tied { .. }
            | Self::Incompatible(_)
            | Self::NotPrimary(_)
            | Self::BadReply(_) => (1105, *b"HY000"),
        }
    }

    /// Appends the ERR packet; gives the next sequence id. Before a client has shown its capabilities the packet has no
    /// SQL state, as servers send it.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, capabilities: Capabilities) -> u8 {
        let (code, sqlstate) = self.code();
        let message = self.to_string();
        let message = truncate(&message);
        let sqlstate = capabilities
            .contains(Capabilities::PROTOCOL_41)
            .then_some(sqlstate);
        ErrPacket {
            code,
            sqlstate,
            message: message.as_bytes(),
        }
        .write(out, seq, capabilities)
    }
}

fn timed_out_words(is_mysql: bool) -> &'static str {
    if is_mysql {
        "Query execution was interrupted, maximum statement execution time exceeded"
    } else {
        "Query execution was interrupted (max_statement_time exceeded)"
    }
}

/// Servers cut messages at 512 bytes.
fn truncate(message: &str) -> &str {
    let mut end = message.len().min(511);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or(message)
}
