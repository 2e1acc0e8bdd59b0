//! A29: what operators live with, under the load of sysbench: replicas that die or fall behind, switchovers, a primary that dies, reloads
//! and upgrades, each with one primary and two replicas of MariaDB and of MySQL. Small forms by default; `scripts/operations` sets
//! `ATLAS_SWITCHOVERS`, `ATLAS_RELOADS` and `ATLAS_UPGRADES` and shows the figures, lines that begin with `figure:`.
//!
//! What was written where is read from the servers.

#![expect(
    unreachable_pub,
    reason = "the modules of a test binary are for each other"
)]

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod replicas;
#[path = "../topology/stage.rs"]
#[allow(dead_code, reason = "a part of what tests/topology needs")]
mod stage;
mod switchover;
mod sysbench;

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}
