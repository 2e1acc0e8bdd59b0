//! The bodies of the fuzz targets in `fuzz/`, as plain functions, so that `cargo test` replays `fuzz/seeds` without a fuzzer.
//!
//! A body takes any bytes. A panic is its verdict: a parser's own, or of an assertion about what it said.
//! A new target is a function here, a file of three lines in `fuzz/fuzz_targets`, and a folder of seeds.

#[cfg(test)]
mod overrun;
mod packets;
pub(crate) mod reply;
#[cfg(test)]
mod retried;
mod session;
mod shard;
mod sql;
mod state;
mod watch;
mod wire;
mod worker;

pub use reply::session_reply;
pub use session::session_bytes;
pub use shard::shard_statement;
pub use sql::sql_statement;
pub use state::session_state;
pub use wire::{wire_execute, wire_login, wire_proxy, wire_reply};

/// Runs a target's body on its seeds.
#[cfg(test)]
fn replay(target: &str, body: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder of seeds") {
        let path = entry.expect("a readable folder").path();
        body(&std::fs::read(&path).expect("a readable seed"));
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", folder.display());
}
