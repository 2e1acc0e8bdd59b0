//! What a client sends to log in: the TLS request, the log-in itself, and COM_CHANGE_USER.
//!
//! Which fields are there follows from the client's own capability flags, so a server must offer all of `PROTOCOL_41`,
//! `SECURE_CONNECTION`, `CONNECT_WITH_DB`, `PLUGIN_AUTH`, `PLUGIN_AUTH_LENENC_CLIENT_DATA` and `CONNECT_ATTRS`, as both servers do.

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
        let charset = r.u16("character set")?;
        r.bytes(18, "filler")?;
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
    /// Reads a TLS request. Like the servers it goes by the flag, not by the length.
    ///
    /// # Errors
    /// Fewer than 32 bytes, a client before 4.1, or no [`Capabilities::SSL`].
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
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
    /// The client's collation id. Clients of old fill one byte and leave the other zero.
    pub charset: u16,
    /// User name.
    pub user: &'a [u8],
    /// The answer to the greeting's challenge by the named plugin.
    pub auth: &'a [u8],
    /// Schema; `None` when the flag is clear or the name empty, which means the same.
    pub schema: Option<&'a [u8]>,
    /// The plugin that made `auth`.
    pub plugin: Option<&'a [u8]>,
    /// Connection attributes: the body of their block, pairs of length-encoded strings.
    pub attributes: &'a [u8],
    /// Level of zstd compression.
    pub zstd_level: Option<u8>,
}

impl<'a> Login<'a> {
    /// Whether the payload is a log-in from before 4.1 (HandshakeResponse320), to be refused with error 1251.
    #[must_use]
    pub fn is_pre_41(payload: &[u8]) -> bool {
        payload.first_chunk().is_some_and(|&low| {
            !Capabilities(u64::from(u16::from_le_bytes(low))).contains(Capabilities::PROTOCOL_41)
        })
    }

    /// Reads a log-in. The last string may lack its zero byte, and unknown flags and trailing bytes are ignored, as servers do.
    ///
    /// # Errors
    /// A client before 4.1, fewer than 32 bytes, or a length that goes beyond the payload.
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
            r.nul("token")?
        };
        let schema = if capabilities.contains(Capabilities::CONNECT_WITH_DB) {
            Some(r.nul_or_rest()).filter(|name| !name.is_empty())
        } else {
            None
        };
        let plugin = capabilities
            .contains(Capabilities::PLUGIN_AUTH)
            .then(|| r.nul_or_rest());
        let attributes = if capabilities.contains(Capabilities::CONNECT_ATTRS) && r.remaining() > 0
        {
            r.lenenc_bytes("connection attributes")?
        } else {
            &[]
        };
        let zstd_level = if capabilities.contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM)
            && r.remaining() > 0
        {
            Some(r.u8("zstd level")?)
        } else {
            None
        };
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
    /// Reads the command (with its first byte) under the capabilities of the connection. Everything after the token may be missing.
    ///
    /// # Errors
    /// Another command, or a length that goes beyond the payload.
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
        let schema = r.nul_or_rest();
        let charset = if r.remaining() > 1 {
            Some(r.u16("character set")?)
        } else {
            None
        };
        let plugin = (caps.contains(Capabilities::PLUGIN_AUTH) && r.remaining() > 0)
            .then(|| r.nul_or_rest());
        let attributes = if caps.contains(Capabilities::CONNECT_ATTRS) && r.remaining() > 0 {
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

    /// Writes the command; gives the next sequence id. A field is written when all fields before it are.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8, caps: Capabilities) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(Command::ChangeUser.code());
        w.nul_bytes(self.user);
        let auth = self.auth.get(..usize::from(u8::MAX)).unwrap_or(self.auth);
        if caps.contains(Capabilities::SECURE_CONNECTION) {
            w.u8(u8::try_from(auth.len()).unwrap_or(u8::MAX));
            w.bytes(auth);
        } else {
            w.nul_bytes(auth);
        }
        w.nul_bytes(self.schema);
        let Some(charset) = self.charset else {
            return w.finish();
        };
        w.u16(charset);
        if !caps.contains(Capabilities::PLUGIN_AUTH) {
            return w.finish();
        }
        let Some(plugin) = self.plugin else {
            return w.finish();
        };
        w.nul_bytes(plugin);
        if caps.contains(Capabilities::CONNECT_ATTRS) {
            w.lenenc_bytes(self.attributes);
        }
        w.finish()
    }
}
