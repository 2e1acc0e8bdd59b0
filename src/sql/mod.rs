//! Bytes of a statement to facts: what kind it is, what it contains, what session state it changes.
//!
//! There is no syntax tree here: a scanner walks tokens and a few words decide. When in doubt the
//! answer is the one that sends a statement to the primary.

mod block;
mod classify;
mod cursor;
mod dialect;
mod effect;
mod effects;
mod function;
mod head;
mod hint;
mod keyword;
mod literal;
mod local;
mod reason;
mod scan;
mod schema;
mod set;
mod statement;
mod traits;
mod value;
mod word;

#[cfg(test)]
mod tests;

pub use classify::{classify, classify_prefix};
pub use dialect::{Charset, Dialect, Server};
pub use effect::{Effect, Kill, Scope, Value};
pub use effects::effects;
pub use literal::{decode, push_name, push_string};
pub use local::{explain_route_target, kill_target};
pub use reason::Reason;
pub use statement::{Hint, Kind, Statement};
pub use traits::Traits;
