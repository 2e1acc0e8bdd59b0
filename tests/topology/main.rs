//! Roles of servers and what becomes of clients when they change: `topology = "follow"`, switchovers by hand, primaries that die.
//! All by real servers; where a write ran is read from the servers, never from Atlas. Time decides nothing but where a time is
//! promised.

#![expect(
    unreachable_pub,
    reason = "the modules of a test binary are for each other"
)]

#[path = "../common/mod.rs"]
mod common;
mod failover;
mod group_replication;
mod heartbeat;
mod load;
mod operator;
mod roles;
mod stage;
mod switchover;
