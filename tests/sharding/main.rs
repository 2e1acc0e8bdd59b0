//! Sharded tables over two groups of real servers, against one server that has the same tables whole.

#[path = "../common/mod.rs"]
mod common;

mod alike;
mod auto;
mod bounds;
mod broadcast;
mod conversions;
mod definitions;
mod entry;
mod globals;
mod hostile;
mod ids;
mod imported;
mod inserts;
mod kill;
mod listing;
mod logs;
mod long;
mod merging;
mod names;
mod prepared;
mod quotes;
mod random;
mod reports;
mod requirements;
mod scatter;
mod sizes;
mod spread;
mod stage;
mod statements;
mod transactions;
mod xa;

use stage::Stage;
