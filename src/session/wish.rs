//! How the shell is to log in to servers for a session. Logging in is `upstream`'s.

use super::{Credentials, Role, Session, TlsWish, Wish};
use crate::snapshot::Snapshot;
use crate::wire::Capabilities;

impl Session {
    /// How the shell is to log in to a server for this session.
    #[must_use]
    pub fn wish(
        &self,
        role: Role,
        snapshot: &Snapshot,
        tls: TlsWish,
        local: bool,
    ) -> (Wish, Credentials) {
        let account = self.account(snapshot);
        let backend = &account.backend[role as usize];
        // What shapes bytes must be there; the rest may be missing on one of the servers.
        let shaping = Capabilities::DEPRECATE_EOF
            | Capabilities::SESSION_TRACK
            | Capabilities::OPTIONAL_RESULTSET_METADATA
            | Capabilities::QUERY_ATTRIBUTES
            | Capabilities::MARIADB_CACHE_METADATA
            | Capabilities::MARIADB_EXTENDED_METADATA
            | Capabilities::MARIADB_STMT_BULK_OPERATIONS;
        let wish = Wish {
            capabilities: self.abilities(),
            needed: self.capabilities.intersection(shaping),
            max_packet: self.identity.max_packet,
            charset: self.identity.charset,
            schema: self
                .state
                .schema()
                .map(|name| self.schema_there(name).to_vec()),
            // What a client says of itself is not true of those who come after it.
            attributes: if self.shares {
                Box::default()
            } else {
                self.identity.attributes.clone()
            },
            tls,
            local,
        };
        (
            wish,
            Credentials {
                user: backend.user.clone(),
                passwords: backend.passwords.clone(),
            },
        )
    }
}
