//! The admin port without its sockets: what operators say and what they are told, as bytes and values.
//!
//! | file | subject |
//! | --- | --- |
//! | `words` | the text of a command cut into words |
//! | `command` | words to a [`Command`]: the original Atlas's commands and this one's |
//! | `help` | the list of all commands, which `SELECT * FROM help` shows |
//! | `local` | what drivers and command lines ask when they start, answered without looking at anything |
//! | `table` | rows with named columns, and the packets that carry them |
//! | `edit` | what commands change in the text of the configuration |
//! | `connection` | one client's state machine: log-in, commands, who may do what |
//!
//! What a command finds and changes is `control`'s business: a [`Connection`] hands out a [`Request`] and takes an [`Answer`].

mod command;
mod connection;
pub mod edit;
mod help;
mod local;
mod table;
mod words;

pub use command::{BackendRef, Command, Report, State, parse};
pub use connection::{Connection, Cx, Request, Step, Who};
pub use help::help;
pub use table::{Answer, Refusal, Table, timestamp};
