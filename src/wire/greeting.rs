//! The server's first packet (Protocol::HandshakeV10).

use super::{Capabilities, Malformed, PacketWriter, Reader, Status};

const PROTOCOL_VERSION: u8 = 10;
const NONCE_LEN: usize = 20;
/// What servers state as the length of the authentication data: the nonce and its zero byte.
const AUTH_DATA_LEN: u8 = 21;

/// The greeting of a server that speaks the protocol since 4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The version text as it stands; MariaDB puts `5.5.5-` in front.
    pub version: &'a [u8],
    /// Connection id, as in KILL.
    pub thread_id: u32,
    /// The challenge, without the zero byte behind it.
    pub nonce: [u8; NONCE_LEN],
    /// What the server offers.
    pub capabilities: Capabilities,
    /// The low byte of the default collation's id.
    pub charset: u8,
    /// Status flags.
    pub status: Status,
    /// The default authentication plugin; empty without [`Capabilities::PLUGIN_AUTH`].
    pub plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Reads a greeting. An ERR packet in its place (first byte ff) is the caller's to see first.
    ///
    /// # Errors
    /// Another protocol version, a field cut off, or a server older than the 20-byte nonce.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("greeting", payload);
        if r.u8("protocol version")? != PROTOCOL_VERSION {
            return Err(r.malformed("protocol version", "is not 10"));
        }
        let version = r.nul("server version")?;
        let thread_id = r.u32("thread id")?;
        let first: [u8; 8] = r.array("nonce")?;
        r.u8("filler")?;
        let low = r.u16("capabilities")?;
        let charset = r.u8("charset")?;
        let status = Status(r.u16("status")?);
        let high = r.u16("capabilities")?;
        let auth_len = r.u8("auth data length")?;
        r.bytes(6, "filler")?;
        let extended = r.u32("extended capabilities")?;
        let capabilities =
            Capabilities::from_words(u32::from(low) | u32::from(high) << 16, extended);
        if !capabilities.contains(Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION) {
            return Err(r.malformed("capabilities", "are those of a server before 4.1"));
        }
        let second: [u8; NONCE_LEN - 8] = r.array("nonce")?;
        // The rest of the nonce's part: at least its zero byte, more when the server states more.
        let rest = usize::from(auth_len).saturating_sub(NONCE_LEN).max(1);
        let plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            r.bytes(rest, "nonce")?;
            // Servers of old (MySQL 5.5.7 to 5.5.9) left the final zero byte out.
            r.nul_or_rest()
        } else {
            &[]
        };
        let mut nonce = [0; NONCE_LEN];
        for (to, from) in nonce.iter_mut().zip(first.into_iter().chain(second)) {
            *to = from;
        }
        Ok(Self {
            version,
            thread_id,
            nonce,
            capabilities,
            charset,
            status,
            plugin,
        })
    }

    /// Writes the greeting; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let ([a, b, c, d], extended) = self.capabilities.to_words();
        let (first, second) = self.nonce.split_at(8);
        let has_plugin = self.capabilities.contains(Capabilities::PLUGIN_AUTH);
        let mut w = PacketWriter::begin(out, seq);
        w.u8(PROTOCOL_VERSION);
        w.nul_bytes(self.version);
        w.u32(self.thread_id);
        w.bytes(first);
        w.u8(0);
        w.bytes(&[a, b]);
        w.u8(self.charset);
        w.u16(self.status.0);
        w.bytes(&[c, d]);
        w.u8(if has_plugin { AUTH_DATA_LEN } else { 0 });
        w.bytes(&[0; 6]);
        w.bytes(&extended);
        w.bytes(second);
        w.u8(0);
        if has_plugin {
            w.nul_bytes(self.plugin);
        }
        w.finish()
    }
}
