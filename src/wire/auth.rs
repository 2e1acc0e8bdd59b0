//! The packets between greeting and final OK: a switch to another plugin, and more data of the present one.

use super::{Malformed, PacketWriter, Reader};

const SWITCH: u8 = 0xfe;
const MORE: u8 = 0x01;

/// The server asks for another authentication plugin (Protocol::AuthSwitchRequest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The plugin's name.
    pub plugin: &'a [u8],
    /// The plugin's first data as it stands; the zero byte behind a 20-byte nonce is part of it.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// Reads a switch request. The lone byte fe asks for the password hash from before 4.1.
    ///
    /// # Errors
    /// Another first byte, or a plugin name without its zero byte.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("auth switch", payload);
        if r.u8("header")? != SWITCH {
            return Err(r.malformed("header", "is not fe"));
        }
        if r.remaining() == 0 {
            return Ok(Self {
                plugin: b"mysql_old_password",
                data: &[],
            });
        }
        Ok(Self {
            plugin: r.nul("plugin")?,
            data: r.rest(),
        })
    }

    /// The challenge in the data: without the zero byte behind a 20-byte nonce, all of it otherwise (ed25519 sends 32 bytes and no zero).
    #[must_use]
    pub fn nonce(&self) -> &'a [u8] {
        match self.data {
            [nonce @ .., 0] if nonce.len() == 20 => nonce,
            all => all,
        }
    }

    /// Writes the request; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(SWITCH);
        w.nul_bytes(self.plugin);
        w.bytes(self.data);
        w.finish()
    }
}

/// Data of the present plugin from the server (Protocol::AuthMoreData), without the header byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthMore<'a>(pub &'a [u8]);

impl<'a> AuthMore<'a> {
    /// Reads the packet.
    ///
    /// # Errors
    /// Another first byte.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("auth more data", payload);
        if r.u8("header")? != MORE {
            return Err(r.malformed("header", "is not 01"));
        }
        Ok(Self(r.rest()))
    }

    /// Writes the packet; gives the next sequence id.
    pub fn write(&self, out: &mut Vec<u8>, seq: u8) -> u8 {
        let mut w = PacketWriter::begin(out, seq);
        w.u8(MORE);
        w.bytes(self.0);
        w.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::payload_of;

    #[test]
    fn switch() {
        let nonce = b"01234567890123456789";
        let native = [&b"\xfemysql_native_password\0"[..], nonce, b"\0"].concat();
        let switch = AuthSwitch::parse(&native).unwrap();
        assert_eq!(switch.plugin, b"mysql_native_password");
        assert_eq!(switch.nonce(), nonce);
        assert_eq!(payload_of(|out| switch.write(out, 2)), native);
    }

    #[test]
    fn a_zero_byte_inside_a_longer_challenge_stays() {
        let ed25519 = [&b"\xfeclient_ed25519\0"[..], &[7; 31], &[0]].concat();
        assert_eq!(AuthSwitch::parse(&ed25519).unwrap().nonce().len(), 32);
    }

    #[test]
    fn switch_to_the_plugin_before_4_1() {
        let switch = AuthSwitch::parse(b"\xfe").unwrap();
        assert_eq!(
            (switch.plugin, switch.data),
            (&b"mysql_old_password"[..], &b""[..])
        );
    }

    #[test]
    fn more() {
        assert_eq!(AuthMore::parse(b"\x01\x03"), Ok(AuthMore(b"\x03")));
        assert_eq!(AuthMore::parse(b"\x01"), Ok(AuthMore(b"")));
        assert_eq!(
            payload_of(|out| AuthMore(b"\x04").write(out, 2)),
            b"\x01\x04"
        );
    }

    #[test]
    fn refused() {
        for payload in [&b""[..], b"\x00", b"\xff\x15\x04"] {
            assert!(AuthSwitch::parse(payload).is_err());
            assert!(AuthMore::parse(payload).is_err());
        }
        assert_eq!(AuthSwitch::parse(b"\xfex").unwrap_err().field, "plugin");
    }
}
