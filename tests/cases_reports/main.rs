//! Faults that people reported of MySQL proxies, each as a test that names the report. What counts is what one server with all the data
//! would answer; where a statement ran is read from the servers' general logs.
//!
//! `route` where statements go · `transaction`, `transaction_forms` what is in a transaction and what ends it · `login`, `tls` the way in and the way to the
//! servers · `listen` who may come, and where to

#[path = "../common/mod.rs"]
mod common;

mod listen;
mod login;
mod raw_login;
mod route;
mod stage;
mod tls;
mod transaction;
mod transaction_forms;
