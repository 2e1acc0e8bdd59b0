//! Schemas for single tests, so that tests that run at the same time share nothing but the servers.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Bed, Login, Node, Wire};

/// A schema that is there for one test; dropped with the value. Displays as its name.
#[derive(Debug)]
pub struct Schema {
    name: String,
    primary: std::net::SocketAddr,
}

impl Schema {
    /// Creates it on the primary and waits until the replicas have it.
    pub fn on(bed: &Bed) -> Self {
        Self::named(bed, &unique_name("t"))
    }

    /// The same with a given name, for two runs that must see the same one. What was in it is gone.
    pub fn named(bed: &Bed, name: &str) -> Self {
        let mut root = bed.root(Node::Primary);
        root.ok(&format!("DROP DATABASE IF EXISTS {name}"));
        root.ok(&format!("CREATE DATABASE {name}"));
        bed.wait_replicas();
        Self {
            name: name.to_owned(),
            primary: bed.address(Node::Primary),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // The server may be gone, and the test may be failing: no panic here.
        if let Ok(mut root) = Wire::try_connect(self.primary, &Login::root()) {
            // A client that the test left in a transaction would keep the schema locked.
            let _ = root.try_query("SET lock_wait_timeout = 2");
            let _ = root.try_query(&format!("DROP DATABASE IF EXISTS {}", self.name));
        }
    }
}

/// A name that no other test has: `PREFIX_` and letters, digits. Always of the same length for the same prefix.
pub fn unique_name(prefix: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let count = COUNTER.fetch_add(1, Ordering::Relaxed) & 0xfff;
    format!("{prefix}_{:08x}{nanos:08x}{count:03x}", std::process::id())
}
