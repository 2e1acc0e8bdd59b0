//! What makes two server connections interchangeable. A connection is made for whoever logs in first and serves all whose
//! shape is the same; what differs beyond it is state that can be brought about.

use crate::wire::Capabilities;

/// The shape of a server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The account on the server, see `snapshot::BackendAccount::id`.
    pub account: u16,
    /// Flags of the log-in that shape replies and cannot be changed later.
    pub capabilities: Capabilities,
    /// The log-in's collation id: what a server makes of it hangs on its own settings, which only a log-in asks for.
    pub charset: u16,
    /// It is in some schema. A connection can go from one schema to another, but not leave them all.
    pub has_schema: bool,
}

impl Shape {
    /// The flags of a client's capabilities that count. The others concern the log-in itself, or can be changed
    /// (MULTI_STATEMENTS, by COM_SET_OPTION).
    #[must_use]
    pub fn lasting(capabilities: Capabilities) -> Capabilities {
        capabilities.without(
            Capabilities::CONNECT_WITH_DB
                | Capabilities::SSL
                | Capabilities::PLUGIN_AUTH
                | Capabilities::CONNECT_ATTRS
                | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
                | Capabilities::SECURE_CONNECTION
                | Capabilities::MULTI_STATEMENTS
                | Capabilities::IGNORE_SIGPIPE
                | Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS
                | Capabilities::COMPRESS
                | Capabilities::LONG_FLAG,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shapes_replies_counts() {
        let lasting = Shape::lasting(
            Capabilities::DEPRECATE_EOF | Capabilities::SSL | Capabilities::MULTI_STATEMENTS,
        );
        assert_eq!(lasting, Capabilities::DEPRECATE_EOF);
    }
}
