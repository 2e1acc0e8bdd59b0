//! Log-in packets that need not be good ones, and their verdicts.

use ::atlas::auth::{caching_sha2_scramble, native_scramble};
use ::atlas::wire::Capabilities;

use super::common::Wire;
use super::stage::Stage;

/// How a test answers a switch of plugins: the plugin's name and the nonce, to the answer.
pub(crate) type Answer = dyn Fn(&[u8], &[u8; 20]) -> Vec<u8>;

/// A log-in packet that need not be a good one.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) capabilities: u64,
    pub(crate) charset: u8,
    pub(crate) user: Vec<u8>,
    /// With the length in front that the capabilities ask for.
    pub(crate) token: Vec<u8>,
    pub(crate) schema: Option<&'static [u8]>,
    pub(crate) plugin: Option<&'static [u8]>,
    pub(crate) attributes: Option<Vec<u8>>,
    pub(crate) tail: Vec<u8>,
}

pub(crate) const NATIVE: &[u8] = b"mysql_native_password";
pub(crate) const SHA2: &[u8] = b"caching_sha2_password";

impl Raw {
    /// As `plain`, by native password, with the token length in one byte.
    pub(crate) fn native(wire: &Wire) -> Self {
        let token = native_scramble(b"plain-pw", &wire.nonce());
        Self {
            capabilities: Capabilities::PROTOCOL_41.0
                | Capabilities::LONG_PASSWORD.0
                | Capabilities::SECURE_CONNECTION.0
                | Capabilities::PLUGIN_AUTH.0,
            charset: 45,
            user: b"plain".to_vec(),
            token: [&[20], token.as_slice()].concat(),
            schema: None,
            plugin: Some(NATIVE),
            attributes: None,
            tail: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, capabilities: Capabilities) -> Self {
        self.capabilities |= capabilities.0;
        self
    }

    pub(crate) fn without(mut self, capabilities: Capabilities) -> Self {
        self.capabilities &= !capabilities.0;
        self
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let low = u32::try_from(self.capabilities & 0xffff_ffff).expect("32 bits");
        out.extend_from_slice(&low.to_le_bytes());
        out.extend_from_slice(&(1u32 << 24).to_le_bytes());
        out.push(self.charset);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(&self.user);
        out.push(0);
        out.extend_from_slice(&self.token);
        if let Some(schema) = self.schema {
            out.extend_from_slice(schema);
            out.push(0);
        }
        if let Some(plugin) = self.plugin {
            out.extend_from_slice(plugin);
            out.push(0);
        }
        if let Some(attributes) = &self.attributes {
            out.extend_from_slice(&lenenc(attributes.len()));
            out.extend_from_slice(attributes);
        }
        out.extend_from_slice(&self.tail);
        out
    }
}

pub(crate) fn lenenc(len: usize) -> Vec<u8> {
    let bytes = (len as u64).to_le_bytes();
    match len {
        0..0xfb => vec![bytes[0]],
        0xfb..0x1_0000 => vec![0xfc, bytes[0], bytes[1]],
        _ => vec![0xfd, bytes[0], bytes[1], bytes[2]],
    }
}

/// Sends a log-in and follows it to its verdict: OK (then the connection answers a query), or the error's number (then it is closed).
/// An auth switch is answered by `answer`.
pub(crate) fn verdict(stage: &Stage, payload: &[u8], answer: &Answer) -> u16 {
    let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
    wire.send_as(1, payload);
    verdict_of(&mut wire, answer)
}

pub(crate) fn verdict_of(wire: &mut Wire, answer: &Answer) -> u16 {
    loop {
        let packet = match wire.try_packet() {
            Ok(packet) => packet,
            Err(ended) => panic!("no verdict: {ended:?}"),
        };
        match packet.first() {
            0xff => {
                assert!(wire.read_to_close().is_empty(), "bytes behind the refusal");
                return u16::from_le_bytes([packet.payload[1], packet.payload[2]]);
            }
            0xfe => {
                let rest = &packet.payload[1..];
                let end = rest.iter().position(|b| *b == 0).expect("a name");
                let nonce: [u8; 20] = rest[end + 1..end + 21].try_into().expect("a nonce");
                wire.send_as(packet.seq.wrapping_add(1), &answer(&rest[..end], &nonce));
            }
            0x01 => {}
            0x00 => {
                wire.capabilities = Capabilities::PROTOCOL_41;
                assert_eq!(wire.query("SELECT 1").cell(), "1");
                return 0;
            }
            other => panic!("{other:#04x}: {packet:?}"),
        }
    }
}

/// The right answer of `plain` to a switch.
pub(crate) fn right(plugin: &[u8], nonce: &[u8; 20]) -> Vec<u8> {
    match plugin {
        NATIVE => native_scramble(b"plain-pw", nonce),
        SHA2 => caching_sha2_scramble(b"plain-pw", nonce),
        other => panic!("{}", other.escape_ascii()),
    }
}

pub(crate) fn wrong(_: &[u8], _: &[u8; 20]) -> Vec<u8> {
    vec![7; 20]
}
