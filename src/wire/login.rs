//! What a client sends to log in: the TLS request, the log-in itself, and COM_CHANGE_USER.
//!
//! Which fields are there follows from the client's own capability flags, so whoever reads must have offered all of `PROTOCOL_41`,
//! `SECURE_CONNECTION`, `CONNECT_WITH_DB`, `PLUGIN_AUTH`, `PLUGIN_AUTH_LENENC_CLIENT_DATA` and `CONNECT_ATTRS`, as both servers do.
//!
//! What is accepted was compared with MySQL 9.7 and MariaDB 10.11, cutting packets at every byte. They agree but for the ends: MariaDB
//! takes a schema without its zero byte, and both take a plugin name without it (or none). Here what one of them takes is taken. A field
//! that a flag announces and that is missing altogether is refused by both (1043 at log-in, 1047 to COM_CHANGE_USER), the plugin excepted.

use super::{Capabilities, Command, Malformed, PacketWriter, Reader};

/// Bytes before the user name: flags, packet limit, character set, filler.
const FIXED: usize = 32;

/// The fixed part of a log-in (Protocol::HandshakeResponse41), which alone is the TLS request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fixed {
    capabilities: Capabilities,
    max_packet: u32,
    charset: u16,
}

impl Fixed {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.remaining() < FIXED {
            return Err(r.malformed("payload", "is shorter than 32 bytes"));
        }
        let base = r.u32("capabilities")?;
        let max_packet = r.u32("packet limit")?;
        // The next byte is filler to both servers, although collation ids have outgrown this one.
        let charset = u16::from(r.u8("character set")?);
        r.bytes(19, "filler")?;
        let capabilities = Capabilities::from_words(base, r.u32("extended capabilities")?);
        if !capabilities.contains(Capabilities::PROTOCOL_41) {
            return Err(r.malformed("capabilities", "are those of a client before 4.1"));
        }
        Ok(Self {
            capabilities,
            max_packet,
            charset,
        })
    }

    fn write(self, w: &mut PacketWriter<'_>) {
        let (base, extended) = self.capabilities.to_words();
        w.bytes(&base);
        w.u32(self.max_packet);
        w.u16(self.charset);
        w.bytes(&[0; 18]);
        w.bytes(&extended);
    }
}

/// The request to go on in TLS (Protocol::SSLRequest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslRequest {
    /// What the client will use; the log-in inside TLS says it again.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes.
    pub max_packet: u32,
    /// The client's collation id.
    pub charset: u16,
}

impl SslRequest {
    /// Reads a TLS request. Like the servers it goes by the flag, not by the length. Flags alone (4 bytes, old Java clients) are
    /// enough to MySQL; packet limit and character set are 0 then.
    ///
    /// # Errors
    /// Another length below 32 bytes, a client before 4.1, or no [`Capabilities::SSL`].
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let padded;
        let payload = if payload.len() == 4 {
            padded = [payload, &[0; FIXED - 4]].concat();
            &padded
        } else {
            payload
        };
        let mut r = Reader::new("TLS request", payload);
        let fixed = Fixed::parse(&mut r)?;
        if !fixed.capabilities.contains(Capabilities::SSL) {
            return Err(r.malformed("capabilities", "do not ask for TLS"));
        }
        Ok(Self {
            capabilities: fixed.capabilities,
            max_packet: fixed.max_packet,
            charset: fixed.charset,
        })
    }

    /// Writes the request; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        Fixed {
            capabilities: self.capabilities | Capabilities::SSL,
            max_packet: self.max_packet,
            charset: self.charset,
        }
        .write(&mut w);
        w.finish()
    }
}

/// A log-in (Protocol::HandshakeResponse41).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// What the client can do, whether it was offered or not.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes.
    pub max_packet: u32,
    /// The low byte of the client's collation id: there is no more on the wire.
    pub charset: u16,
    /// User name.
    pub user: &'a [u8],
    /// The answer to the greeting's challenge by the named plugin.
    pub auth: &'a [u8],
    /// Schema; `None` when the flag is clear or the name empty, which means the same.
    pub schema: Option<&'a [u8]>,
    /// The plugin that made `auth`; `None` without [`Capabilities::PLUGIN_AUTH`]. A missing name is empty, a plugin that nobody knows.
    pub plugin: Option<&'a [u8]>,
    /// Connection attributes: the body of their block, pairs of length-encoded strings.
    pub attributes: &'a [u8],
    /// Level of zstd compression.
    pub zstd_level: Option<u8>,
}

impl<'a> Login<'a> {
    /// Whether the payload is a log-in from before 4.1 (HandshakeResponse320: 2 bytes of flags, 3 of packet limit, strings), to be
    /// refused with error 1251. What is too short for that is malformed.
    #[must_use]
    pub fn is_pre_41(payload: &[u8]) -> bool {
        match payload {
            &[a, b, _, _, _, _, ..] => {
                let flags = Capabilities(u64::from(u16::from_le_bytes([a, b])));
                !flags.contains(Capabilities::PROTOCOL_41)
            }
            _ => false,
        }
    }

    /// Reads a log-in. Unknown flags and trailing bytes are ignored.
    ///
    /// # Errors
    /// A client before 4.1, fewer than 32 bytes, a field that a flag announces and that is missing (the plugin excepted), or a length
    /// that goes beyond the payload.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("log-in", payload);
        let Fixed {
            capabilities,
            max_packet,
            charset,
        } = Fixed::parse(&mut r)?;
        let user = r.nul("user")?;
        let auth = if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            r.lenenc_bytes("token")?
        } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let len = r.u8("token length")?;
            r.bytes(usize::from(len), "token")?
        } else {
            r.nul_or_rest()
        };
        let schema = capabilities
            .contains(Capabilities::CONNECT_WITH_DB)
            .then(|| r.nul_or_nonempty_rest("schema"))
            .transpose()?
            .filter(|name| !name.is_empty());
        let plugin = capabilities
            .contains(Capabilities::PLUGIN_AUTH)
            .then(|| r.nul_or_rest());
        let attributes = if capabilities.contains(Capabilities::CONNECT_ATTRS) {
            r.lenenc_bytes("connection attributes")?
        } else {
            &[]
        };
        let zstd_level = capabilities
            .contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM)
            .then(|| r.u8("zstd level").ok())
            .flatten();
        Ok(Self {
            capabilities,
            max_packet,
            charset,
            user,
            auth,
            schema,
            plugin,
            attributes,
            zstd_level,
        })
    }

    /// Writes the log-in; gives the next sequence id. The flags that say which fields are there are set by the fields.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let lenenc = self
            .capabilities
            .contains(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
            || self.auth.len() > usize::from(u8::MAX);
        let mut capabilities =
            self.capabilities | Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
        for (flag, is_there) in [
            (Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA, lenenc),
            (Capabilities::CONNECT_WITH_DB, self.schema.is_some()),
            (Capabilities::PLUGIN_AUTH, self.plugin.is_some()),
            (Capabilities::CONNECT_ATTRS, !self.attributes.is_empty()),
            (
                Capabilities::ZSTD_COMPRESSION_ALGORITHM,
                self.zstd_level.is_some(),
            ),
        ] {
            capabilities = if is_there {
                capabilities | flag
            } else {
                capabilities.without(flag)
            };
        }
        let mut w = PacketWriter::begin(out, seq);
        Fixed {
            capabilities,
            max_packet: self.max_packet,
            charset: self.charset,
        }
        .write(&mut w);
        w.nul_bytes(self.user);
        // Below 251 the length byte and the length-encoded length are the same.
        if lenenc {
            w.lenenc_bytes(self.auth);
        } else {
            w.u8(u8::try_from(self.auth.len()).unwrap_or(u8::MAX));
            w.bytes(self.auth);
        }
        if let Some(schema) = self.schema {
            w.nul_bytes(schema);
        }
        if let Some(plugin) = self.plugin {
            w.nul_bytes(plugin);
        }
        if !self.attributes.is_empty() {
            w.lenenc_bytes(self.attributes);
        }
        if let Some(level) = self.zstd_level {
            w.u8(level);
        }
        w.finish()
    }
}

/// COM_CHANGE_USER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// The answer to the greeting's challenge; servers ask again anyway.
    pub auth: &'a [u8],
    /// Schema; empty for none.
    pub schema: &'a [u8],
    /// The client's collation id; old clients leave it out.
    pub charset: Option<u16>,
    /// The plugin that made `auth`.
    pub plugin: Option<&'a [u8]>,
    /// Connection attributes: the body of their block.
    pub attributes: &'a [u8],
}

impl<'a> ChangeUser<'a> {
    /// Reads the command (with its first byte) under the capabilities of the connection.
    ///
    /// # Errors
    /// Another command, a field missing that the capabilities announce, or a length that goes beyond the payload.
    pub fn parse(payload: &'a [u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new("COM_CHANGE_USER", payload);
        if r.u8("command")? != Command::ChangeUser.code() {
            return Err(r.malformed("command", "is not 11"));
        }
        let user = r.nul("user")?;
        let auth = if caps.contains(Capabilities::SECURE_CONNECTION) {
            let len = r.u8("token length")?;
            r.bytes(usize::from(len), "token")?
        } else {
            r.nul("token")?
        };
        let schema = r.nul_or_nonempty_rest("schema")?;
        let has_plugin = caps.contains(Capabilities::PLUGIN_AUTH);
        let has_attributes = caps.contains(Capabilities::CONNECT_ATTRS);
        let charset = (has_plugin || has_attributes || r.remaining() >= 2)
            .then(|| r.u16("character set"))
            .transpose()?;
        let plugin = has_plugin
            .then(|| r.nul_or_nonempty_rest("plugin"))
            .transpose()?;
        let attributes = if has_attributes {
            r.lenenc_bytes("connection attributes")?
        } else {
            &[]
        };
        Ok(Self {
            user,
            auth,
            schema,
            charset,
            plugin,
            attributes,
        })
    }

    /// Writes the command; gives the next sequence id. The fields that the capabilities announce are written, empty when they are `None`;
    /// a token is cut at 255 bytes, for which no plugin has a use.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let has_plugin = caps.contains(Capabilities::PLUGIN_AUTH);
        let has_attributes = caps.contains(Capabilities::CONNECT_ATTRS);
        let mut w = PacketWriter::begin(out, seq);
        w.u8(Command::ChangeUser.code());
        w.nul_bytes(self.user);
        if caps.contains(Capabilities::SECURE_CONNECTION) {
            let len = u8::try_from(self.auth.len()).unwrap_or(u8::MAX);
            w.u8(len);
            w.bytes(self.auth.get(..usize::from(len)).unwrap_or_default());
        } else {
            w.nul_bytes(self.auth);
        }
        w.nul_bytes(self.schema);
        if has_plugin || has_attributes || self.charset.is_some() {
            w.u16(self.charset.unwrap_or_default());
        }
        if has_plugin {
            w.nul_bytes(self.plugin.unwrap_or_default());
        }
        if has_attributes {
            w.lenenc_bytes(self.attributes);
        }
        w.finish()
    }
}
