//! Atlas, a proxy for MySQL and MariaDB.

pub mod auth;
pub mod cli;
pub mod config;
pub mod control;
pub mod pool;
pub mod route;
pub mod server;
pub mod session;
pub mod snapshot;
pub mod sql;
pub mod wire;
pub mod worker;
