//! Reads the certificates and keys that a configuration names and makes of them what TLS on both sides needs.

use std::io::{self, Read};
use std::path::Path;

use super::files::open_regular;
use crate::config::{BackendTlsMode, GroupConfig, ServerConfig, ServerTlsMode};
use crate::snapshot::Snapshot;
use crate::worker::Tls;
use crate::worker::tls::{BackendTls, ServerTls};

/// TLS on both sides, as the snapshot's configuration has it.
///
/// # Errors
/// A file cannot be read or used; the text says which, and for what.
pub fn read_tls(snapshot: &Snapshot) -> io::Result<Tls> {
    let groups = snapshot.groups.iter();
    Ok(Tls {
        clients: clients(&snapshot.config.server)?,
        backends: groups
            .map(|group| match group.is_gone {
                // Its files may be gone as well; connections to it are made no more.
                true => Ok(None),
                false => backend(&group.config),
            })
            .collect::<io::Result<_>>()?,
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map(|_| bytes)
        .map_err(|error| io::Error::other(format!("cannot read {}: {error}", path.display())))
}

/// TLS towards clients; nothing where it is off.
///
/// # Errors
/// As [`read_tls`].
pub(super) fn clients(server: &ServerConfig) -> io::Result<Option<ServerTls>> {
    let tls = &server.tls;
    if tls.mode == ServerTlsMode::Off {
        return Ok(None);
    }
    let ca = tls.ca.as_deref().map(read).transpose()?;
    ServerTls::load(&read(&tls.cert)?, &read(&tls.key)?, ca.as_deref())
        .map(Some)
        .map_err(|error| io::Error::other(format!("server.tls: {error}")))
}

/// TLS towards the servers of a group; nothing where it is off.
///
/// # Errors
/// As [`read_tls`].
pub(super) fn backend(group: &GroupConfig) -> io::Result<Option<BackendTls>> {
    let tls = &group.tls;
    if tls.mode == BackendTlsMode::Off {
        return Ok(None);
    }
    let ca = tls.ca.as_deref().map(read).transpose()?;
    let identity = match &tls.identity {
        None => None,
        Some((cert, key)) => Some((read(cert)?, read(key)?)),
    };
    let identity = identity
        .as_ref()
        .map(|(cert, key)| (cert.as_slice(), key.as_slice()));
    BackendTls::load(tls.mode, ca.as_deref(), identity)
        .map(Some)
        .map_err(|error| io::Error::other(format!("TLS of group {}: {error}", group.name)))
}
