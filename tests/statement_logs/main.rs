//! The logs of statements: `[log] slow` and `audit`, and the labels of accounts in them. What is in a log is held against what the servers
//! and the clients say.

mod audit;
#[path = "../common/mod.rs"]
mod common;
mod full;
mod replay;
mod slow;
