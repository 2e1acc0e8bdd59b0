//! The command byte, the first of a payload that a client sends after log-in.

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident = $code:literal),* $(,)?) => {
        /// A client's command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Command {
            $($(#[$doc])* $name,)*
            /// A byte that names no command.
            Unknown(u8),
        }

        impl From<u8> for Command {
            fn from(code: u8) -> Self {
                match code {
                    $($code => Self::$name,)*
                    other => Self::Unknown(other),
                }
            }
        }

        impl Command {
            /// The byte on the wire.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Unknown(other) => other,
                }
            }
        }
    };
}

commands! {
    /// Internal to the server.
    Sleep = 0x00,
    /// The client leaves; no reply.
    Quit = 0x01,
    /// USE.
    InitDb = 0x02,
    /// A text statement.
    Query = 0x03,
    /// Columns of a table; definitions and an EOF.
    FieldList = 0x04,
    /// CREATE DATABASE of old.
    CreateDb = 0x05,
    /// DROP DATABASE of old.
    DropDb = 0x06,
    /// FLUSH of old.
    Refresh = 0x07,
    /// SHUTDOWN of old.
    Shutdown = 0x08,
    /// One packet of plain text.
    Statistics = 0x09,
    /// SHOW PROCESSLIST of old.
    ProcessInfo = 0x0a,
    /// Internal to the server.
    Connect = 0x0b,
    /// KILL of old.
    ProcessKill = 0x0c,
    /// Makes the server write to its log.
    Debug = 0x0d,
    /// Is the server there.
    Ping = 0x0e,
    /// Internal to the server.
    Time = 0x0f,
    /// Internal to the server.
    DelayedInsert = 0x10,
    /// Log in again as another user.
    ChangeUser = 0x11,
    /// Replication stream by position.
    BinlogDump = 0x12,
    /// Replication of old.
    TableDump = 0x13,
    /// Internal to the server.
    ConnectOut = 0x14,
    /// A replica introduces itself.
    RegisterReplica = 0x15,
    /// Prepare a statement.
    StmtPrepare = 0x16,
    /// Execute a prepared statement.
    StmtExecute = 0x17,
    /// A piece of a parameter; no reply.
    StmtSendLongData = 0x18,
    /// Forget a prepared statement; no reply.
    StmtClose = 0x19,
    /// Forget long data and close the cursor.
    StmtReset = 0x1a,
    /// Several statements on or off.
    SetOption = 0x1b,
    /// Rows of a cursor.
    StmtFetch = 0x1c,
    /// Internal to the server.
    Daemon = 0x1d,
    /// Replication stream by GTID (MySQL).
    BinlogDumpGtid = 0x1e,
    /// Session state back to what it was after log-in.
    ResetConnection = 0x1f,
    /// Clone protocol (MySQL).
    Clone = 0x20,
    /// Group replication (MySQL).
    SubscribeGroupReplication = 0x21,
    /// One statement with many rows of parameters (MariaDB).
    StmtBulkExecute = 0xfa,
    /// Several commands in one packet (MariaDB, withdrawn).
    Multi = 0xfe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        for code in 0..=255 {
            assert_eq!(Command::from(code).code(), code);
        }
        assert_eq!(Command::from(0x03), Command::Query);
        assert_eq!(Command::from(0xfa), Command::StmtBulkExecute);
        assert_eq!(Command::from(0x22), Command::Unknown(0x22));
    }
}
