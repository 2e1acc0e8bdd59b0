//! The header that a balancer puts in front of a connection to say whose connection it is: the PROXY protocol, version 1 (a line
//! of text) and 2 (binary).
//!
//! Followed is "The PROXY protocol, versions 1 & 2" of HAProxy, where it leaves a choice as HAProxy takes it: an address family or
//! transport that no client of a database has counts as said by nobody, the fields behind the addresses are passed over, but must
//! be whole.
//!
//! Which connections begin with a header is decided elsewhere, before any byte was read: guessing by what arrives is what the
//! specification forbids.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Malformed, Reader};

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The connection is this client's.
    Client(IpAddr),
    /// The connection is the balancer's own (a health check), or it does not know whose: the address of the socket counts.
    Own,
}

/// Bytes of the longest line of version 1, with its end.
const LINE_MAX: usize = 107;
const LINE_START: &[u8] = b"PROXY ";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and transport, length.
const FIXED: usize = 16;
/// Bytes behind the fixed part of version 2. Its length could say 64 KiB; senders put less than one into it.
const REST_MAX: usize = 4096;

impl ProxyHeader {
    /// The longest header that is taken.
    pub const LEN_MAX: usize = FIXED + REST_MAX;

    /// Looks at the first bytes of a connection: the header and its length, or nothing when it is not all there.
    ///
    /// # Errors
    /// They are no header, whatever follows.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        if begins(bytes, LINE_START) {
            parse_line(bytes)
        } else if begins(bytes, SIGNATURE) {
            parse_binary(bytes)
        } else {
            Err(malformed("signature", "is that of no version"))
        }
    }
}

/// Whether `bytes`, as far as they are there, are the beginning.
fn begins(bytes: &[u8], beginning: &[u8]) -> bool {
    bytes.iter().zip(beginning).all(|(a, b)| a == b)
}

fn malformed(field: &'static str, why: &'static str) -> Malformed {
    Malformed {
        packet: "PROXY header",
        field,
        why,
    }
}

fn parse_line(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Malformed> {
    let head = bytes.get(..LINE_MAX).unwrap_or(bytes);
    let Some(end) = memchr::memchr(b'\n', head) else {
        return match bytes.len() {
            ..LINE_MAX => Ok(None),
            _ => Err(malformed("line", "is longer than 107 bytes")),
        };
    };
    let line = head
        .get(..end)
        .and_then(|line| line.strip_suffix(b"\r"))
        .and_then(|line| str::from_utf8(line).ok())
        .ok_or_else(|| malformed("line", "does not end as one"))?;
    let mut words = line.split(' ').skip(1);
    let family = words.next().unwrap_or_default();
    let header = match family {
        // What follows is to be ignored.
        "UNKNOWN" => ProxyHeader::Own,
        "TCP4" => {
            let (source, _) = line_addresses::<Ipv4Addr>(&mut words)?;
            ProxyHeader::Client(source.into())
        }
        "TCP6" => {
            let (source, _) = line_addresses::<Ipv6Addr>(&mut words)?;
            ProxyHeader::Client(IpAddr::V6(source).to_canonical())
        }
        _ => return Err(malformed("family", "is unknown")),
    };
    Ok(Some((header, end.saturating_add(1))))
}

/// Source and destination; the ports behind them must be there.
fn line_addresses<'a, A: std::str::FromStr>(
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(A, A), Malformed> {
    let mut address = || {
        let word = words.next().unwrap_or_default();
        word.parse::<A>()
            .map_err(|_| malformed("address", "is not one of its family"))
    };
    let pair = (address()?, address()?);
    for _ in 0..2 {
        let word = words.next().unwrap_or_default();
        // Digits only: `parse` would take a sign.
        let is_port = word.bytes().all(|b| b.is_ascii_digit()) && word.parse::<u16>().is_ok();
        if !is_port {
            return Err(malformed("port", "is none"));
        }
    }
    match words.next() {
        None => Ok(pair),
        Some(_) => Err(malformed("line", "goes on behind the ports")),
    }
}

fn parse_binary(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Malformed> {
    let Some(fixed) = bytes.get(SIGNATURE.len()..FIXED) else {
        return Ok(None);
    };
    let mut r = Reader::new("PROXY header", fixed);
    let (command, family) = (r.u8("command")?, r.u8("family")?);
    // Big-endian, unlike everything else here.
    let len = usize::from(r.u16("length")?.swap_bytes());
    if len > REST_MAX {
        return Err(malformed("length", "is more than 4096"));
    }
    let is_own = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(malformed("command", "is unknown")),
    };
    let end = FIXED.saturating_add(len);
    let Some(rest) = bytes.get(FIXED..end) else {
        return Ok(None);
    };
    let addresses = match family >> 4 {
        0 => 0,
        1 => 12,
        2 => 36,
        3 => 216,
        _ => return Err(malformed("family", "is unknown")),
    };
    let Some((address, fields)) = rest.split_at_checked(addresses) else {
        if is_own {
            // Nothing of it counts.
            return Ok(Some((ProxyHeader::Own, end)));
        }
        return Err(malformed("length", "has no room for the addresses"));
    };
    if !is_own {
        skip_fields(fields)?;
    }
    let header = match (is_own, family) {
        (false, 0x11) => {
            let source: Option<[u8; 4]> = address.first_chunk().copied();
            source.map_or(ProxyHeader::Own, |a| {
                ProxyHeader::Client(Ipv4Addr::from(a).into())
            })
        }
        (false, 0x21) => {
            let source: Option<[u8; 16]> = address.first_chunk().copied();
            source.map_or(ProxyHeader::Own, |a| {
                ProxyHeader::Client(IpAddr::from(a).to_canonical())
            })
        }
        _ => ProxyHeader::Own,
    };
    Ok(Some((header, end)))
}

/// Type, length, value, one behind the other: nothing of them is needed.
fn skip_fields(fields: &[u8]) -> Result<(), Malformed> {
    let mut r = Reader::new("PROXY header", fields);
    while r.remaining() > 0 {
        r.u8("field")?;
        let len = r.u16("field")?.swap_bytes();
        r.bytes(usize::from(len), "field")?;
    }
    Ok(())
}
