//! What can go wrong with TLS, in words that say what to do. rustls's own errors do not leave this folder.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};
use thiserror::Error;

/// Why a TLS session ended.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The socket failed.
    #[error("{0}")]
    Io(io::Error),
    /// The peer's certificate is not accepted.
    #[error("the peer's TLS certificate is refused: {0}")]
    Certificate(String),
    /// The peer refused, by this alert.
    #[error("the peer refused TLS with the alert {0}")]
    Alert(String),
    /// The peer's first bytes are no TLS.
    #[error("the peer does not speak TLS where it should")]
    NotTls,
    /// Nothing in common.
    #[error("no TLS version (1.2 or 1.3) or cipher in common with the peer: {0}")]
    Incompatible(String),
    /// The socket was closed before the handshake was over.
    #[error("the peer closed the connection during the TLS handshake")]
    ClosedInHandshake,
    /// The host's name cannot stand in a certificate.
    #[error("`{0}` is neither a host name nor an address, so no certificate can name it")]
    BadName(String),
    /// The peer broke the protocol, or somebody changed bytes on the way.
    #[error("TLS protocol error: {0}")]
    Protocol(String),
    /// The session ended earlier, with another error.
    #[error("the TLS session has failed before")]
    AlreadyFailed,
}

impl TlsError {
    pub(super) fn new(error: Error, is_handshaking: bool) -> Self {
        match error {
            Error::InvalidCertificate(reason) => Self::Certificate(certificate_text(&reason)),
            Error::NoCertificatesPresented => Self::Certificate("it sent none".to_owned()),
            Error::AlertReceived(alert) => Self::Alert(alert_text(alert)),
            Error::InvalidMessage(_) if is_handshaking => Self::NotTls,
            Error::PeerIncompatible(what) => Self::Incompatible(format!("{what:?}")),
            other => Self::Protocol(other.to_string()),
        }
    }
}

fn alert_text(alert: AlertDescription) -> String {
    let hint = match alert {
        AlertDescription::UnknownCA => {
            ": it does not know the authority of the certificate sent to it"
        }
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            ": it does not accept the certificate sent to it"
        }
        AlertDescription::CertificateExpired => ": the certificate sent to it has expired",
        AlertDescription::CertificateRequired => ": it wants a certificate (keys `cert` and `key`)",
        AlertDescription::ProtocolVersion => ": it wants another TLS version than 1.2 and 1.3",
        AlertDescription::HandshakeFailure => ": no cipher in common, or a certificate is missing",
        _ => "",
    };
    format!("{alert:?}{hint}")
}

fn certificate_text(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "no authority of the `ca` file has signed it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it, or one of its chain, has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet: check the clocks".to_owned()
        }
        CertificateError::NotValidForName => NO_NAME.to_owned(),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let presented: Vec<String> = presented.iter().take(8).map(|name| bare(name)).collect();
            format!(
                "{NO_NAME}: expected {}, it names [{}]",
                expected.to_str(),
                presented.join(", ")
            )
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it, or one of its chain, is signed with an algorithm or key that is not safe or not known (SHA-1, RSA below \
             2048 bits, DSA): make a new one"
                .to_owned()
        }
        CertificateError::BadSignature => "its signature is wrong".to_owned(),
        other => {
            // webpki's own reasons arrive as text only.
            let text = format!("{other:?}");
            if text.contains("CaUsedAsEndEntity") {
                "it is a self-signed authority: give the server a certificate of its own, signed by an authority".to_owned()
            } else if text.contains("UnsupportedCertVersion") {
                "it is an X.509 version 1 certificate: make one of version 3, with subjectAltName"
                    .to_owned()
            } else {
                other.to_string()
            }
        }
    }
}

/// webpki gives names as `DnsName("db.example")`.
fn bare(presented: &str) -> String {
    let inner = presented
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(presented);
    inner.trim_matches('"').chars().take(80).collect()
}

const NO_NAME: &str =
    "it does not name this host in subjectAltName (a common name alone does not count)";

/// Why certificates and keys cannot be used. The caller adds the file's name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TlsConfigError {
    /// The text holds no certificate.
    #[error("no certificate in the `{0}` file: it must be PEM, with `-----BEGIN CERTIFICATE-----`")]
    NoCertificate(&'static str),
    /// A block cannot be read.
    #[error("the `{0}` file cannot be read as PEM: {1}")]
    BadPem(&'static str, String),
    /// A certificate cannot be used.
    #[error("a certificate in the `{0}` file cannot be used: {1}")]
    BadCertificate(&'static str, String),
    /// The text holds no private key.
    #[error(
        "no private key in the `key` file: it must be PEM, with `-----BEGIN PRIVATE KEY-----` (or `EC` or `RSA`)"
    )]
    NoKey,
    /// The private key has a password.
    #[error(
        "the private key in the `key` file is encrypted: store it without a password, readable by Atlas only"
    )]
    EncryptedKey,
    /// The private key is of a kind that cannot be used.
    #[error("the private key in the `key` file cannot be used: {0}")]
    BadKey(String),
    /// Certificate and key do not belong together.
    #[error("the private key does not belong to the first certificate of the `cert` file")]
    KeyMismatch,
    /// The mode verifies, but against what?
    #[error("this TLS mode verifies the server's certificate, so it needs a `ca` file")]
    CaNeeded,
}
