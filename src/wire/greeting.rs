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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::{hex, payload_of};

    /// MySQL 9.7.4, as seen on the wire.
    const MYSQL: &str = "0a 392e372e342d3200 30000000 7075014e432a167e 00 ffff ff 0200 ffdf 15 00000000000000000000 \
                         6809062102610c1840517a63 00 63616368696e675f736861325f70617373776f7264 00";
    /// MariaDB 10.11.19, as seen on the wire.
    const MARIADB: &str = "0a 352e352e352d31302e31312e31392d4d6172696144422d302b646562313275312d6c6f67 00 2a000000 3c4c48674b226454 00 \
                           feff 08 0200 ff81 15 000000000000 1d000000 56374b564e6329414c387153 00 \
                           6d7973716c5f6e61746976655f70617373776f7264 00";

    #[test]
    fn mysql() {
        let payload = hex(MYSQL);
        let greeting = Greeting::parse(&payload).unwrap();
        assert_eq!(
            greeting,
            Greeting {
                version: b"9.7.4-2",
                thread_id: 48,
                nonce: *b"pu\x01NC*\x16~h\x09\x06!\x02a\x0c\x18@Qzc",
                capabilities: Capabilities(0xdfff_ffff),
                charset: 255,
                status: Status::AUTOCOMMIT,
                plugin: b"caching_sha2_password",
            }
        );
        assert_eq!(payload_of(|out| greeting.write(out, 0)), payload);
    }

    #[test]
    fn mariadb_has_extended_capabilities() {
        let payload = hex(MARIADB);
        let greeting = Greeting::parse(&payload).unwrap();
        assert_eq!(greeting.version, b"5.5.5-10.11.19-MariaDB-0+deb12u1-log");
        assert_eq!(greeting.nonce, *b"<LHgK\"dTV7KVNc)AL8qS");
        assert_eq!(greeting.capabilities, Capabilities(0x1d_81ff_fffe));
        assert!(
            greeting
                .capabilities
                .contains(Capabilities::MARIADB_CACHE_METADATA)
        );
        assert_eq!(greeting.charset, 8);
        assert_eq!(greeting.plugin, b"mysql_native_password");
        assert_eq!(payload_of(|out| greeting.write(out, 0)), payload);
    }

    #[test]
    fn extended_capabilities_are_mariadbs_only() {
        let mut payload = hex(MARIADB);
        let low = payload.iter().position(|&byte| byte == 0xfe).unwrap();
        payload[low] = 0xff;
        let greeting = Greeting::parse(&payload).unwrap();
        assert_eq!(greeting.capabilities, Capabilities(0x81ff_ffff));
    }

    /// A fork may send a longer nonce; the plugin's name is behind all of it.
    #[test]
    fn the_stated_length_of_the_nonce_is_skipped() {
        let mut payload = hex(MYSQL);
        let name = payload.len() - 22;
        payload.splice(name..name, *b"xyz\0");
        let auth_len = payload.iter().position(|&byte| byte == 0x15).unwrap();
        payload[auth_len] += 4;
        assert_eq!(
            Greeting::parse(&payload).unwrap().plugin,
            b"caching_sha2_password"
        );
    }

    #[test]
    fn without_a_plugin() {
        let greeting = Greeting {
            version: b"5.1",
            thread_id: 1,
            nonce: *b"01234567890123456789",
            capabilities: Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION,
            charset: 33,
            status: Status::AUTOCOMMIT,
            plugin: b"",
        };
        let payload = payload_of(|out| greeting.write(out, 0));
        assert_eq!(Greeting::parse(&payload), Ok(greeting));
    }

    #[test]
    fn the_name_may_lack_its_zero_byte_and_nothing_else_may_be_cut() {
        for raw in [MYSQL, MARIADB] {
            let payload = hex(raw);
            let whole = Greeting::parse(&payload).unwrap();
            let name = payload.len() - whole.plugin.len() - 1;
            assert_eq!(Greeting::parse(&payload[..payload.len() - 1]), Ok(whole));
            for cut in 0..name {
                assert!(Greeting::parse(&payload[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn refused() {
        for (payload, field) in [
            (&b""[..], "protocol version"),
            (b"\x09", "protocol version"),
            (b"\xff\x10\x04Too many connections", "protocol version"),
            (b"\x0a5.0", "server version"),
        ] {
            assert_eq!(Greeting::parse(payload).unwrap_err().field, field);
        }
        let mut old = hex(MYSQL);
        old[22] = 0x7d;
        old[23] = 0x7f;
        assert_eq!(Greeting::parse(&old).unwrap_err().field, "capabilities");
    }
}
