//! What the integration tests stand on: real servers, a running Atlas, and a client that shows every packet.
//!
//! - [`Bed`]: four real servers of one kind, started by `scripts/bed` (which `scripts/test` calls): a primary, two replicas that
//!   follow it, and a second primary that stands alone. [`Bed::mariadb`] and [`Bed::mysql`] share one bed among all tests;
//!   [`Bed::own`] starts one that a test may stop and kill.
//! - [`Schema`]: a fresh schema for one test, present on the replicas too, dropped at the end.
//!   What operators do to servers by hand (roles, replication) is there too, in `hands`.
//! - [`Marks`]: what arrived at which server since a moment, read from the servers' general logs: the proof of a route.
//! - [`Atlas`]: the built binary, running with a configuration in a folder of its own, killed at the end.
//!   [`config_for`] makes the configuration for a bed.
//! - [`Scripted`]: a server of a few lines that says what a test wants and keeps what it is told.
//! - [`Trail`]: what the server connections of one test did, without tags in its statements.
//! - [`Wire`]: a raw client. It logs in with the capabilities, character set and plugin that the test wants, sends commands
//!   split where the test wants, and gives back every packet of a reply. It knows where replies end by a reading of the protocol of
//!   its own, not by Atlas's.
//! - [`Relay`]: a server seen through a line that cuts what it says into small pieces.
//! - [`Mask`] and [`assert_same`]: compares the packets of a direct connection with those through Atlas, byte by byte, but for what
//!   must differ (connection ids, times).
//!
//! A test in short:
//!
//! ```ignore
//! mod common;
//! use common::*;
//!
//! #[test]
//! fn reads_go_to_replicas() {
//!     for bed in Bed::both() {
//!         let schema = bed.schema();
//!         let atlas = Atlas::start(config_for(&bed));
//!         let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
//!         let marks = bed.marks();
//!         client.query("SELECT 1 /* tag-1 */");
//!         assert!(marks.only_on("tag-1", &[Node::Replica1, Node::Replica2]));
//!     }
//! }
//! ```
//!
//! Nothing here skips: without the servers a test fails and says how to start them. Everything here panics on what a test did
//! not expect; the functions named `try_…` give the fault back instead.

// Each test binary compiles this module for itself and uses a part of it.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "shared by several test binaries"
)]

mod bed;
mod binary;
mod config;
mod firewall;
mod general_log;
mod hands;
mod http;
mod login;
mod mask;
mod packet;
mod process;
mod relay;
mod reply;
mod schema;
mod scripted;
mod trail;
mod wire;

pub use bed::{Bed, Kind, Node, Server, eventually};
pub use binary::Param;
pub use config::{Config, config_for};
pub use firewall::Firewall;
pub use general_log::{Entry, Marks, parse as parse_general_log};
pub use http::{http_exchange, http_get, http_of};
pub use login::{Login, Refused, Tls};
pub use mask::{Mask, assert_same, difference, masked};
pub use packet::{Ended, Packet, Part, frame};
pub use process::{Atlas, fill_in};
pub use relay::{Pieces, Relay};
pub use reply::{Expect, Reply};
pub use schema::{Schema, unique_name};
pub use scripted::{Arrival, Role as ScriptedRole, Scripted, Talk};
pub use trail::{Seen, Trail};
pub use wire::{Statement, Wire};
