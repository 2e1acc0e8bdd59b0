//! The bytes of the MySQL and MariaDB protocol: views of packets, and their emission. Pure formats: no session, no log, no I/O.
//!
//! The contract of every `parse` here:
//! - it takes one logical payload (without the 4-byte header, continuations already joined) and never panics, whatever the bytes;
//! - every length is checked against what is there before it is used; [`Malformed`] names the packet and the field;
//! - views borrow from the payload and copy nothing; ranges are given where the caller edits the payload in place;
//! - bytes after the last known field are ignored, as the servers do.
//!
//! The contract of every `write`: it appends whole packets to a buffer, starting with the given sequence id, and returns the next one.
//!
//! Pages followed: "Client/Server Protocol" of the MySQL source documentation and "MariaDB protocol" of the MariaDB
//! documentation; where the two servers differ, or differ from their pages, the place in question says so.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod auth;
mod changes;
mod column;
mod command;
mod flags;
mod framer;
mod greeting;
mod header;
mod login;
mod proxy;
mod query;
mod reader;
mod reply;
mod result;
mod row;
mod state;
mod stmt;
#[cfg(test)]
mod tests;
mod writer;

pub use auth::{AuthMore, AuthSwitch};
pub use changes::{hide_change, keep_changes};
pub use column::{ColumnCount, ColumnDef};
pub use command::Command;
pub use flags::{Capabilities, Status};
pub use framer::Packets;
pub use greeting::Greeting;
pub use header::{HEADER_LEN, Header, MAX_PAYLOAD};
pub use login::{ChangeUser, Login, SslRequest};
pub use proxy::ProxyHeader;
pub use query::query_text;
pub use reader::{Malformed, Reader};
pub use reply::{EofPacket, ErrPacket, OkPacket};
pub use result::{ResultSetWriter, write_prepared};
pub use row::{RowFormat, TextRow};
pub use state::{StateChange, StateChanges};
pub use stmt::{Execute, PrepareOk};
pub use writer::{PacketWriter, write_payload};
