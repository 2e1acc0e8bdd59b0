//! Certificates, keys and whom to trust, made once from PEM text and shared by all connections.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, RootCertStore,
    ServerConfig, ServerConnection, SignatureScheme,
};

use crate::config::BackendTlsMode;

use super::{TlsConfigError, TlsError, TlsSession};

/// TLS towards clients.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerConfig>);

impl ServerTls {
    /// Takes the PEM text of the files `cert` (the chain, own certificate first), `key`, and `ca`. Clients are asked for a
    /// certificate only when there is a `ca`; they need not have one, but one that they send must be signed by it.
    ///
    /// # Errors
    /// A text that is no PEM, a key that is encrypted, unknown, or another certificate's.
    pub fn load(cert: &[u8], key: &[u8], ca: Option<&[u8]>) -> Result<Self, TlsConfigError> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::BadCertificate("cert", error.to_string()))?;
        let builder = match ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(ca)?, provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| TlsConfigError::BadCertificate("ca", error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(certificates("cert", cert)?, private_key(key)?)
            .map_err(identity_error)?;
        // Hardly any MySQL client resumes sessions: tickets would cost every connection bytes and all workers a shared lock.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    /// TLS for a client whose SSLRequest was read.
    ///
    /// # Errors
    /// None that a correct configuration can cause.
    pub fn session(&self) -> Result<TlsSession, TlsError> {
        let conn =
            ServerConnection::new(self.0.clone()).map_err(|error| TlsError::new(error, true))?;
        Ok(TlsSession::new(Connection::Server(conn)))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls(..)")
    }
}

/// TLS towards servers.
#[derive(Clone)]
pub struct BackendTls {
    config: Arc<ClientConfig>,
    mode: BackendTlsMode,
}

impl BackendTls {
    /// Takes the mode and the PEM text of the files `ca`, and `cert` with `key` (Atlas's own certificate, for accounts that
    /// require one). Whether TLS is used at all in the modes `off` and `preferred` is the caller's decision: here they are
    /// like `required`, which encrypts but believes any server.
    ///
    /// # Errors
    /// A text that is no PEM, a key that does not fit, or a mode that verifies without a `ca`.
    pub fn load(
        mode: BackendTlsMode,
        ca: Option<&[u8]>,
        identity: Option<(&[u8], &[u8])>,
    ) -> Result<Self, TlsConfigError> {
        let provider = provider();
        let verifier: Arc<dyn ServerCertVerifier> = match (mode, ca) {
            (BackendTlsMode::Off | BackendTlsMode::Preferred | BackendTlsMode::Required, _) => {
                Arc::new(AnyCertificate(provider.clone()))
            }
            (BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity, None) => {
                return Err(TlsConfigError::CaNeeded);
            }
            (BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity, Some(ca)) => {
                let roots = roots(ca)?;
                let full =
                    WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
                        .build()
                        .map_err(|error| TlsConfigError::BadCertificate("ca", error.to_string()))?;
                if mode == BackendTlsMode::VerifyIdentity {
                    full
                } else {
                    Arc::new(AnyName {
                        full,
                        roots,
                        provider: provider.clone(),
                    })
                }
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::BadCertificate("cert", error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => builder
                .with_client_auth_cert(certificates("cert", cert)?, private_key(key)?)
                .map_err(identity_error)?,
        };
        // Server connections live long; a ticket store would be shared by all workers and mix servers of one name.
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            mode,
        })
    }

    /// TLS to the server at `host`: the configured name or address without port, or anything for a unix socket. Only
    /// `verify-identity` needs it to be a name that a certificate can hold.
    ///
    /// # Errors
    /// [`TlsError::BadName`].
    pub fn session(&self, host: &str) -> Result<TlsSession, TlsError> {
        // IPv6 addresses stand in brackets where a port follows.
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(host);
        let name = match ServerName::try_from(bare) {
            Ok(name) => name.to_owned(),
            Err(_) if self.mode == BackendTlsMode::VerifyIdentity => {
                return Err(TlsError::BadName(host.chars().take(80).collect()));
            }
            // No address and no name: none is sent, and none is compared.
            Err(_) => ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()),
        };
        let conn = ClientConnection::new(self.config.clone(), name)
            .map_err(|error| TlsError::new(error, true))?;
        Ok(TlsSession::new(Connection::Client(conn)))
    }
}

impl fmt::Debug for BackendTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendTls")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Believes any server. The signature of the handshake is not looked at either: without a chain it proves nothing, and MySQL's
/// old recipes make version 1 certificates, whose signatures could not be checked here.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// `verify-ca`: the chain must end at a known authority and be valid now; whom it names does not matter.
#[derive(Debug)]
struct AnyName {
    full: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.full.supported_verify_schemes()
    }
}

/// Named explicitly, so that another provider that some dependency turns on does not matter.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(
    file: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let list = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad_pem(file, &error))?;
    if list.is_empty() {
        Err(TlsConfigError::NoCertificate(file))
    } else {
        Ok(list)
    }
}

fn roots(ca: &[u8]) -> Result<Arc<RootCertStore>, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca", ca)? {
        roots
            .add(certificate)
            .map_err(|error| TlsConfigError::BadCertificate("ca", error.to_string()))?;
    }
    Ok(Arc::new(roots))
}

fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    // Both forms of encryption: PKCS#8's own section, and the header of the older one.
    let is_encrypted = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    if is_encrypted(b"BEGIN ENCRYPTED PRIVATE KEY") || is_encrypted(b"Proc-Type: 4,ENCRYPTED") {
        return Err(TlsConfigError::EncryptedKey);
    }
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsConfigError::NoKey,
        other => bad_pem("key", &other),
    })
}

/// Errors of PEM quote the text, and the text may be a key: only the kind is told.
fn bad_pem(file: &'static str, error: &pem::Error) -> TlsConfigError {
    let what = match error {
        pem::Error::MissingSectionEnd { .. } => "a block has no end",
        pem::Error::IllegalSectionStart { .. } => "a block's first line is malformed",
        pem::Error::Base64Decode(_) => "a block is not base64",
        pem::Error::NoItemsFound => "it is empty",
        _ => "a block is malformed",
    };
    TlsConfigError::BadPem(file, what.to_owned())
}

fn identity_error(error: Error) -> TlsConfigError {
    match error {
        Error::InconsistentKeys(_) => TlsConfigError::KeyMismatch,
        Error::InvalidCertificate(reason) => {
            TlsConfigError::BadCertificate("cert", reason.to_string())
        }
        other => TlsConfigError::BadKey(other.to_string()),
    }
}

/// For tests that make a client configuration of their own.
#[cfg(test)]
pub(super) fn any_certificate() -> Arc<dyn ServerCertVerifier> {
    Arc::new(AnyCertificate(provider()))
}
