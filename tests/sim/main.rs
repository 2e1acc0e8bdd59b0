//! The simulation: real sessions between model clients and model servers, in virtual time, over a network that splits,
//! delays, stalls and breaks. One seed is one world; the same seed gives the same world again.
//!
//! What holds in every world:
//! - each client gets the replies to its own commands, in order, whole, with the right sequence ids; and they say what a
//!   direct connection would have said (`oracle`, whose shadow is that direct connection);
//! - a statement that changes something runs on the primary only, at most once, and exactly once if the client was told so;
//! - a statement on a replica saw the session state that the client had set; nothing leaks from one client to another;
//! - what reaches a server is a well-formed command at a packet boundary (`server`);
//! - when the faults are over everything comes to rest: no client waits, no connection is left;
//! - nothing panics, and what is held back is bounded.
//!
//! In one world of three nothing goes wrong, and no error of Atlas's own is accepted.
//!
//! ```text
//! ATLAS_SIM_SEED=17 cargo nextest run --test sim     one world again; with ATLAS_SIM_TRACE=1 it tells what clients say and hear
//! ATLAS_SIM_SEEDS=5000 cargo nextest run --test sim  more worlds
//! ```

#![allow(
    missing_debug_implementations,
    unreachable_pub,
    reason = "the modules of one test"
)]

mod answer;
mod backends;
mod changes;
mod client;
mod command;
mod engine;
mod functions;
mod greeter;
mod hosts;
mod lex;
mod memory;
mod net;
mod oracle;
mod outcome;
mod prepared;
mod proxy;
mod reply;
mod rest;
mod rng;
mod script;
mod server;
mod setup;
mod statement;
mod verdict;
mod world;

use world::World;

/// Worlds in a usual run.
const SEEDS: u64 = 256;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Says which world it was.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in world {0}: ATLAS_SIM_SEED={0} shows it again", self.0);
        }
    }
}

/// Runs a world; gives how often a server connection went from one client to another.
fn run(seed: u64) -> u64 {
    let _said = Seed(seed);
    let mut world = World::new(seed);
    world.run();
    world.pool.passed_on
}

#[test]
fn worlds() {
    if let Some(seed) = number("ATLAS_SIM_SEED") {
        run(seed);
        return;
    }
    let seeds = number("ATLAS_SIM_SEEDS").unwrap_or(SEEDS);
    let passed_on: u64 = (0..seeds).map(run).sum();
    assert!(
        passed_on > seeds,
        "connections were shared {passed_on} times only"
    );
}
