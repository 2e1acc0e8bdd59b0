//! What must hold when a world has come to rest.

use std::collections::BTreeMap;

use crate::client::Phase;
use crate::world::World;

impl World {
    /// Everything has come to rest: nobody waits, nothing is open, and the rows are those that clients know of.
    pub fn check_end(&self) {
        for (client, front) in self.clients.iter().zip(&self.fronts) {
            assert!(
                client.phase == Phase::Closed && front.is_gone,
                "client {} hangs in {:?} with {:?} pending; Atlas wants {:?}, holds {} bytes",
                client.place,
                client.phase,
                client.pending,
                front.session.wants(),
                front.received.len(),
            );
        }
        for (place, (back, server)) in self.backs.iter().zip(&self.servers).enumerate() {
            if self.pool.idle.contains(&place) {
                assert!(back.known.is_some() && !back.is_gone);
                continue;
            }
            assert!(
                back.is_gone && server.is_closed,
                "server connection {} of {:?} is left open",
                server.backend,
                back.owner
            );
        }
        let mut rows: BTreeMap<u32, (usize, usize, usize)> = BTreeMap::new();
        for tag in &self.estate.committed {
            rows.entry(*tag).or_default().0 += 1;
        }
        for client in &self.clients {
            for tag in &client.oracle.believed {
                rows.entry(*tag).or_default().1 += 1;
            }
            for tag in &client.oracle.unknown {
                rows.entry(*tag).or_default().2 += 1;
            }
        }
        for (tag, (there, believed, unknown)) in rows {
            assert!(
                there >= believed && there <= believed + unknown,
                "row {tag} is there {there} times; clients know of {believed}, and may not know of {unknown}"
            );
        }
        let mut executed: BTreeMap<u32, usize> = BTreeMap::new();
        for execution in self.estate.log.iter().filter(|e| e.writes) {
            *executed.entry(execution.tag).or_default() += 1;
        }
        for client in &self.clients {
            for (tag, asked) in &client.oracle.asked {
                let found = executed.get(tag).copied().unwrap_or(0);
                assert!(
                    found <= *asked,
                    "write {tag} ran {found} times, asked {asked}"
                );
            }
        }
    }
}
