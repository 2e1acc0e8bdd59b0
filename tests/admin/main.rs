//! The admin port against a running Atlas in front of real servers: each command, each log-in that is refused, and the clients that
//! operators use.
//!
//! `stage` the fixture · `tables` what is shown · `log_in` who may come and who not, `refused` ten thousand who may not · `programs` command lines and drivers · `servers`,
//! `accounts`, `file`, `clients` what is changed

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod clients;
mod file;
mod log_in;
mod programs;
mod refused;
mod servers;
mod stage;
mod tables;
