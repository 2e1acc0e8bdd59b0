//! What stands before a log-in: the greeting, and before that, where the connection comes from a balancer, what that says of the
//! client. Nothing is said to a client until it is known whose connection it is.

use super::{Login, Stage};
use crate::config::ServerTlsMode;
use crate::session::{Cx, Fault, Outputs, Peer, Phase, Session};
use crate::wire::{Capabilities, Greeting, ProxyHeader};

/// Abilities that Atlas does not have, whatever the servers have.
const NOT_OFFERED: Capabilities = Capabilities::COMPRESS
    .union(Capabilities::ZSTD_COMPRESSION_ALGORITHM)
    .union(Capabilities::MULTI_FACTOR_AUTHENTICATION)
    .union(Capabilities::CAPABILITY_EXTENSION)
    .union(Capabilities::MARIADB_COM_MULTI)
    .union(Capabilities::SSL);

impl Login {
    /// Of a connection that a balancer has opened.
    fn proxied() -> Self {
        Self::at(Stage::Proxy)
    }
}

impl Session {
    /// Greets, or awaits what the balancer has to say first.
    pub(in crate::session) fn begin(&mut self, cx: &Cx<'_>, out: &mut Outputs) {
        let from = &cx.snapshot.config.server.proxy_protocol_from;
        if matches!(self.identity.peer, Peer::Ip(ip) if from.contains(ip)) {
            self.phase = Phase::Login(Box::new(Login::proxied()));
            self.want = 1;
        } else {
            self.greet(cx, out);
        }
    }

    /// Looks at the header that a balancer sends; gives the bytes consumed.
    pub(super) fn proxy_header(&mut self, cx: &Cx<'_>, input: &[u8], out: &mut Outputs) -> usize {
        let (header, len) = match ProxyHeader::parse(input) {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.want = input.len() + 1;
                return 0;
            }
            Err(_) => {
                self.refuse_and_close(&Fault::BadHandshake, 0, out);
                return input.len();
            }
        };
        if let ProxyHeader::Client(ip) = header {
            self.identity.peer = Peer::Ip(ip);
        }
        let networks = &cx.snapshot.config.server.client_networks;
        if matches!(self.identity.peer, Peer::Ip(ip) if !networks.allows(ip)) {
            self.refuse_and_close(
                &Fault::HostNotAllowed(self.identity.peer.to_string()),
                0,
                out,
            );
            return input.len();
        }
        self.want = 4;
        self.phase = Phase::Login(Box::new(Login::new()));
        self.greet(cx, out);
        len
    }

    fn greet(&mut self, cx: &Cx<'_>, out: &mut Outputs) {
        let facts = &cx.offer.facts;
        let mut capabilities = facts.capabilities.without(NOT_OFFERED)
            | Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
            | Capabilities::CONNECT_ATTRS
            | Capabilities::CONNECT_WITH_DB;
        if cx
            .snapshot
            .groups
            .iter()
            .any(|group| !group.replicas.is_empty())
        {
            // A server leaves out definitions that it has sent before, which need not be those that the client got last: they may
            // have come from the other server.
            capabilities = capabilities.without(Capabilities::MARIADB_CACHE_METADATA);
        }
        let server = &cx.snapshot.config.server;
        if server.tls.mode != ServerTlsMode::Off {
            capabilities = capabilities | Capabilities::SSL;
        }
        self.capabilities = capabilities;
        let greeting = Greeting {
            version: server
                .server_version
                .as_ref()
                .map_or(&facts.version, |v| v.as_bytes()),
            thread_id: self.id,
            nonce: self.identity.nonce,
            capabilities,
            charset: facts.charset,
            status: self.status,
            plugin: cx.snapshot.offered_plugin().name().as_bytes(),
        };
        out.client(|buffer| {
            greeting.write(buffer, 0);
        });
    }
}
