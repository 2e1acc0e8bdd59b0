//! Logging in: what a test asks for, and the conversation until the verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::atlas::auth::{AuthStep, ClientAuth, Secret};
use ::atlas::wire::{Capabilities, SslRequest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::binary::put_bytes;
use super::packet::{Ended, Link, Packet, Part, Stream};
use super::reply::error_of;
use super::{Kind, Schema, Wire};

/// How to log in. Made by [`Login::app`] and its kin and changed by the methods that follow.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub schema: Option<String>,
    /// What the client can do. What the server does not offer is not sent; CONNECT_WITH_DB and SSL follow from the fields.
    pub capabilities: Capabilities,
    /// The collation id of the log-in: 45 is utf8mb4_general_ci.
    pub charset: u16,
    /// The plugin whose answer is sent first; None takes the one that the server names.
    pub plugin: Option<&'static str>,
    pub tls: Option<Tls>,
    pub attributes: Vec<(String, String)>,
    /// The packet limit that the client states, in bytes.
    pub max_packet: u32,
}

/// TLS of a client.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The authority that must have signed the server's certificate.
    pub ca: PathBuf,
    /// The name that the certificate must carry.
    pub name: String,
}

/// Why a log-in did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The server's ERR packet.
    Error {
        code: u16,
        state: String,
        text: String,
    },
    /// The connection ended without one.
    Ended(Ended),
    /// TLS was asked for and not offered, or failed.
    Tls(String),
    /// Nothing listens there.
    Connect(String),
}

impl From<Ended> for Refused {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

impl Login {
    /// What a present-day client asks for, but nothing that changes the shape of rows beyond DEPRECATE_EOF.
    pub const USUAL: Capabilities = Capabilities(
        Capabilities::LONG_PASSWORD.0
            | Capabilities::LONG_FLAG.0
            | Capabilities::LOCAL_FILES.0
            | Capabilities::PROTOCOL_41.0
            | Capabilities::TRANSACTIONS.0
            | Capabilities::SECURE_CONNECTION.0
            | Capabilities::MULTI_STATEMENTS.0
            | Capabilities::MULTI_RESULTS.0
            | Capabilities::PS_MULTI_RESULTS.0
            | Capabilities::PLUGIN_AUTH.0
            | Capabilities::CONNECT_ATTRS.0
            | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA.0
            | Capabilities::SESSION_TRACK.0
            | Capabilities::DEPRECATE_EOF.0,
    );

    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
            schema: None,
            capabilities: Self::USUAL,
            charset: 45,
            plugin: None,
            tls: None,
            attributes: vec![("program_name".to_owned(), "atlas-test".to_owned())],
            max_packet: 64 * 1024 * 1024,
        }
    }

    /// All rights.
    pub fn app() -> Self {
        Self::new("app", "app-pw")
    }

    /// The rights of an application: a read-only server refuses its writes.
    pub fn plain() -> Self {
        Self::new("plain", "plain-pw")
    }

    /// Without a password, on the servers themselves.
    pub fn root() -> Self {
        Self::new("root", "")
    }

    #[must_use]
    pub fn schema(mut self, schema: &Schema) -> Self {
        self.schema = Some(schema.name().to_owned());
        self
    }

    /// Asks for these too.
    #[must_use]
    pub fn with(mut self, more: Capabilities) -> Self {
        self.capabilities = self.capabilities | more;
        self
    }

    #[must_use]
    pub fn without(mut self, less: Capabilities) -> Self {
        self.capabilities = self.capabilities.without(less);
        self
    }

    #[must_use]
    pub fn charset(mut self, collation_id: u16) -> Self {
        self.charset = collation_id;
        self
    }

    #[must_use]
    pub fn plugin(mut self, plugin: &'static str) -> Self {
        self.plugin = Some(plugin);
        self
    }

    /// In TLS, with a certificate for 127.0.0.1 by that authority.
    #[must_use]
    pub fn tls(mut self, ca: &Path) -> Self {
        self.tls = Some(Tls {
            ca: ca.to_owned(),
            name: "127.0.0.1".to_owned(),
        });
        self
    }

    /// This log-in with every set of capabilities that changes what replies look like and where they end.
    pub fn shapes(&self, kind: Kind) -> Vec<Self> {
        let more = match kind {
            Kind::MariaDb => {
                Capabilities::MARIADB_CACHE_METADATA
                    | Capabilities::MARIADB_EXTENDED_METADATA
                    | Capabilities::MARIADB_PROGRESS
                    | Capabilities::MARIADB_STMT_BULK_OPERATIONS
            }
            Kind::MySql => {
                Capabilities::OPTIONAL_RESULTSET_METADATA | Capabilities::QUERY_ATTRIBUTES
            }
        };
        let eof = Capabilities::DEPRECATE_EOF;
        vec![
            self.clone(),
            self.clone().without(eof),
            self.clone().without(eof | Capabilities::SESSION_TRACK),
            self.clone().with(more),
            self.clone().with(more).without(eof),
        ]
    }

    /// What is sent to a server that offers `offered`.
    pub fn effective(&self, offered: Capabilities) -> Capabilities {
        // MariaDB does not offer LONG_PASSWORD, which there says "a MySQL client"; its extended capabilities go only without it.
        let mut caps = self.capabilities & (offered | Capabilities::LONG_PASSWORD);
        if caps.0 >> 32 != 0 {
            caps = caps.without(Capabilities::LONG_PASSWORD);
        }
        for (capability, wanted) in [
            (Capabilities::CONNECT_WITH_DB, self.schema.is_some()),
            (Capabilities::SSL, self.tls.is_some()),
        ] {
            caps = if wanted {
                caps | capability
            } else {
                caps.without(capability)
            };
        }
        caps
    }

    /// The attributes of the connection as the log-in carries them, without the length in front; none without the capability.
    fn attribute_bytes(&self, caps: Capabilities) -> Vec<u8> {
        let mut out = Vec::new();
        if !caps.contains(Capabilities::CONNECT_ATTRS) {
            return out;
        }
        for (name, value) in &self.attributes {
            put_bytes(&mut out, name.as_bytes());
            put_bytes(&mut out, value.as_bytes());
        }
        out
    }

    fn auth(&self, secure: bool, unix: bool) -> ClientAuth {
        let password = Secret::new(self.password.clone().into_bytes());
        if unix {
            ClientAuth::on_unix_socket(password)
        } else {
            ClientAuth::new(password, secure)
        }
    }

    /// The payload of the log-in, or of COM_CHANGE_USER without its first byte's meaning: see the callers.
    fn login_payload(&self, caps: Capabilities, answer: &[u8], plugin: &str) -> Vec<u8> {
        let attributes = self.attribute_bytes(caps);
        let login = ::atlas::wire::Login {
            capabilities: caps,
            max_packet: self.max_packet,
            charset: self.charset,
            user: self.user.as_bytes(),
            auth: answer,
            schema: self.schema.as_deref().map(str::as_bytes),
            plugin: caps
                .contains(Capabilities::PLUGIN_AUTH)
                .then_some(plugin.as_bytes()),
            attributes: &attributes,
            zstd_level: None,
        };
        let mut framed = Vec::new();
        login.write(&mut framed, 0);
        framed.split_off(4)
    }

    fn change_user_payload(&self, caps: Capabilities, answer: &[u8], plugin: &str) -> Vec<u8> {
        let attributes = self.attribute_bytes(caps);
        let change = ::atlas::wire::ChangeUser {
            user: self.user.as_bytes(),
            auth: answer,
            schema: self.schema.as_deref().unwrap_or("").as_bytes(),
            charset: Some(self.charset),
            plugin: Some(plugin.as_bytes()),
            attributes: &attributes,
        };
        let mut framed = Vec::new();
        change.write(&mut framed, 0, caps);
        framed.split_off(4)
    }
}

impl Wire {
    /// Logs in on a connection that has its greeting. The packets of the conversation stay in [`Wire::login_packets`].
    pub fn log_in(mut self, login: &Login) -> Result<Self, Refused> {
        let caps = login.effective(self.offered);
        self.capabilities = caps;
        let mut seq = 1;
        if let Some(tls) = &login.tls {
            if !self.offered.contains(Capabilities::SSL) {
                return Err(Refused::Tls("the server offers no TLS".to_owned()));
            }
            let request = SslRequest {
                capabilities: caps,
                max_packet: login.max_packet,
                charset: login.charset,
            };
            let mut framed = Vec::new();
            seq = request.write(&mut framed, seq);
            self.link.write(&framed)?;
            self.link = into_tls(self.link, tls)?;
        }
        let mut auth = login.auth(login.tls.is_some(), self.unix);
        let plugin = login.plugin.map_or(self.plugin.as_str(), |plugin| plugin);
        let answer = auth.first(plugin.as_bytes(), &self.nonce);
        let payload = login.login_payload(caps, &answer, auth.plugin());
        self.link.send(seq, &payload)?;
        let (link, packets) = (&mut self.link, &mut self.login_packets);
        converse(link, &mut auth, seq.wrapping_add(1), packets)?;
        Ok(self)
    }

    /// COM_CHANGE_USER with its whole conversation. Gives the server's packets; after a refusal MySQL closes the connection, MariaDB
    /// keeps it.
    pub fn change_user(&mut self, login: &Login) -> Result<Vec<Packet>, Refused> {
        let mut auth = login.auth(self.capabilities.contains(Capabilities::SSL), self.unix);
        let plugin = login.plugin.map_or(self.plugin.as_str(), |plugin| plugin);
        let answer = auth.first(plugin.as_bytes(), &self.nonce);
        let payload = login.change_user_payload(self.capabilities, &answer, auth.plugin());
        self.link.send(0, &payload)?;
        let mut packets = Vec::new();
        converse(&mut self.link, &mut auth, 1, &mut packets)?;
        Ok(packets)
    }
}

/// Answers the server until its OK or ERR. `seq` is the sequence id of the server's next packet.
fn converse(
    link: &mut Link,
    auth: &mut ClientAuth,
    seq: u8,
    packets: &mut Vec<Packet>,
) -> Result<(), Refused> {
    let mut due = seq;
    loop {
        let packet = link.read()?;
        // Servers count on from 0 in an ERR that they send before they have read anything.
        assert!(
            packet.seq == due || packet.first() == 0xff,
            "sequence id {due} is due: {packet:?}"
        );
        let step = auth
            .handle(&packet.payload)
            .unwrap_or_else(|error| panic!("log-in: {error}: {packet:?}"));
        due = packet.seq.wrapping_add(1);
        match step {
            AuthStep::Send(payload) => {
                packets.push(packet);
                link.send(due, &payload)?;
                due = due.wrapping_add(1);
            }
            AuthStep::Wait => packets.push(packet),
            AuthStep::Done => {
                packets.push(packet.in_part(Part::Ok));
                return Ok(());
            }
            AuthStep::Refused { .. } => {
                let (code, state, text) = error_of(&packet);
                packets.push(packet.in_part(Part::Err));
                return Err(Refused::Error { code, state, text });
            }
        }
    }
}

fn into_tls(link: Link, tls: &Tls) -> Result<Link, Refused> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&tls.ca).expect("the authority's file");
    for certificate in certificates {
        roots
            .add(certificate.expect("a certificate"))
            .expect("a usable certificate");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(tls.name.clone()).expect("a name");
    let mut connection =
        ClientConnection::new(Arc::new(config), name).map_err(|e| Refused::Tls(e.to_string()))?;
    let mut tcp = link.into_tcp();
    while connection.is_handshaking() {
        connection
            .complete_io(&mut tcp)
            .map_err(|error| Refused::Tls(error.to_string()))?;
    }
    Ok(Link::new(Stream::Tls(Box::new(StreamOwned::new(
        connection, tcp,
    )))))
}
