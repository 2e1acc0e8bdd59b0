//! Atlas, a proxy for MySQL and MariaDB.
//!
//! Everything that *decides* is a pure state machine driven by (input, now); everything that *does* is a thin mio shell.
//! This page is the map; each room's first lines say what lives there.
//!
//! ```text
//! main ─ cli ─ server                    assembly, no logic
//! control                                checks, signals, files, HTTP, the admin port (own threads)
//! worker                                 data-plane shell: sockets, clock, TLS; one event loop a thread
//! snapshot  session  pool  route  shard  admin   pure decisions
//! wire  sql  auth  config  metrics  record  mirror  import   pure formats and values
//! ```
//!
//! A room may use what stands below it and, of its own layer, what `tests/tidy.rs` lists; never what stands above. The pure
//! rooms name no sockets, clock, threads, files or entropy: time and random bytes come in as arguments.
//!
//! # A statement's way
//!
//! 1. `worker::client` reads into the client's buffer and shows the session what is there.
//! 2. `session::command` cuts the command, `sql::classify` says what it is, `route::decide` where it goes.
//! 3. `session::bring` makes sure that the server connection is there (lent by `worker::lender`, newly opened, or waited for in
//!    line) and has the session's state.
//! 4. The command's bytes go from the client's buffer to the server's socket as they are.
//! 5. `worker::backend` reads the reply into the worker's one scratch buffer; `session::track` walks its packet headers, and
//!    the bytes go to the client's socket as they are.
//! 6. At the reply's end the session notes what the statement changed (`session::note`, `session::state`) and gives the
//!    connection back if nothing ties it (`session::hold`).
//!
//! What a socket does not take is kept with its connection, and whoever feeds it is not read until it has.
//!
//! # Words
//!
//! *client*: who connects to Atlas. *host*: a server in the configuration. *group*: a primary and its replicas. *backend* or
//! server connection: a connection to a host. *role*: which of a session's two places for server connections. *session*: one
//! client's state machine. *history*: what gives a fresh connection a session's state. *shape*: what makes two connections
//! interchangeable. *pin*: a reason for which a session keeps its connection. *worker*: one event loop. *snapshot*: the compiled configuration.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod admin;
pub mod auth;
pub mod cli;
pub mod config;
pub mod control;
#[doc(hidden)]
pub mod fuzzing;
pub mod import;
pub mod metrics;
pub mod mirror;
pub mod pool;
pub mod record;
pub mod route;
pub mod server;
pub mod session;
pub mod shard;
pub mod snapshot;
pub mod sql;
pub mod wire;
pub mod worker;
