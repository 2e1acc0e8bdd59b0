//! Faults that people reported of MySQL proxies, each as a test that names the report. What counts is what one server with all the data
//! would answer; where a statement ran is read from the servers' general logs.
//!
//! `route` where statements go · `transaction`, `transaction_forms` what is in a transaction and what ends it · `session`, `variables`
//! the state of a session on its two connections · `prepared`, `prepared_sizes`, `prepared_memory` statements of the binary protocol · `login`, `rotation`,
//! `tls` the way in and the way to the servers · `listen` who may come, and where to · `packets` framing, errors, long replies · `kill` · `pools`
//! connections that are too many, lost or stale ·
//! `broken`, `dying` servers that say nonsense, hang or die, played by a script · `security` what must not leak or be slipped past

#[path = "../common/mod.rs"]
mod common;

mod broken;
mod dying;
mod kill;
mod listen;
mod login;
mod names;
mod packets;
mod pools;
mod prepared;
mod prepared_memory;
mod prepared_sizes;
mod raw_login;
mod rotation;
mod route;
mod security;
mod session;
mod stage;
mod tls;
mod transaction;
mod transaction_forms;
mod variables;
mod variations;
mod variations_login;
